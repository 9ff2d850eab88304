"""Every request that appends message sets, in one form.

Produce and multiproduce of 0.7 and our publish differ in layout, in acknowledgement and in the
effect of a bad request; the broker appends the sets of all three in the same way. `append_request`
converts a decoded request. `decode_single_appends` reads requests of one set, which most are,
straight from their frames: those of one client for one partition differ in correlation id and set
only, so all other bytes are decoded once and recognised after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from broker.errors import ProtocolError
from broker.protocol import requests
from broker.protocol.client_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.codec import SingleAppends, single_appends
from broker.protocol.framing import Frames
from broker.protocol.primitives import Reader
from broker.topic import TopicPartition

SMALL_BYTES = 1 << 16
"""A single request that is larger is appended by itself: a set refused here is validated twice."""
_ASKED_BROKER = -1


# acks, timeout in milliseconds and partition, which requests of one client share
_Head = tuple[Acks, int, TopicPartition]


class AppendRequest(NamedTuple):
    """Message sets to append, in order; home -1 of a partition is the broker asked."""

    # None for 0.7's requests: they have no response, and an error closes the connection
    correlation_id: int | None
    acks: Acks
    timeout_ms: int  # limits the wait for `Acks.COMMITTED`
    sets: Sequence[PartitionSet]


class AppendRequests(NamedTuple):
    """Requests of one set each, which came one after the other and ask for the same."""

    end: int  # the number of the frame behind them
    is_publish: bool
    acks: Acks
    timeout_ms: int
    runs: list[tuple[TopicPartition, SingleAppends]]


def append_request(
    request: requests.ProduceRequest | requests.MultiProduceRequest | PublishRequest,
    correlation_id: int,
) -> AppendRequest:
    """Return the general form of a decoded request; 0.7's have no correlation id."""
    if isinstance(request, PublishRequest):
        return AppendRequest(correlation_id, request.acks, request.timeout_ms, request.sets)
    produces = (request,) if isinstance(request, requests.ProduceRequest) else request.produces
    sets = [
        PartitionSet(TopicPartition(one.topic, _ASKED_BROKER, one.index), one.message_set)
        for one in produces
    ]
    return AppendRequest(None, Acks.NONE, 0, sets)


def decode_single_appends(frames: Frames, first: int) -> AppendRequests | None:
    """Decode requests from one on, of one message set each and with the same acks and timeout.

    None if that is something else, or malformed: the general decoder must read it.
    """
    view, bounds = frames.view, frames.bounds
    end, last = first, len(bounds) - 1
    if last - first == 1 and bounds[last] - bounds[first] > SMALL_BYTES:
        return None  # a worker may have to read it, so that its thread must not even walk the set
    rule: tuple[bool, Acks, int] | None = None
    runs: list[tuple[TopicPartition, SingleAppends]] = []
    while end < last and (run := single_appends(view, bounds, end)) is not None:
        _, head, ids, *_ = run
        is_publish = bool(ids)
        decoded = _decode_publish_head(head) if is_publish else _decode_produce_head(head)
        if decoded is None or rule not in (None, (is_publish, *decoded[:2])):
            break
        rule = is_publish, *decoded[:2]
        runs.append((decoded[2], run))
        end = run[0]
    return None if rule is None else AppendRequests(end, *rule, runs)


@lru_cache(maxsize=8192)
def _decode_produce_head(head: bytes) -> _Head | None:
    reader = Reader(head)
    try:
        if reader.int16() != requests.RequestType.PRODUCE:
            return None
        partition = TopicPartition(reader.short_string(), _ASKED_BROKER, reader.int32())
    except ProtocolError:
        return None
    return Acks.NONE, 0, partition


@lru_cache(maxsize=8192)
def _decode_publish_head(head: bytes) -> _Head | None:
    """Return acks, timeout and partition; None if the head is malformed."""
    reader = Reader(head)
    try:
        reader.short_string()
        acks, timeout_ms, _ = reader.int16(), reader.int32(), reader.int32()
        partition = requests.decode_partition(reader)
    except ProtocolError:
        return None
    if acks not in tuple(Acks):
        return None
    return Acks(acks), timeout_ms, partition
