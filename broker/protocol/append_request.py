"""Every request that appends message sets, in one form.

Produce and multiproduce of 0.7 and our publish differ in layout, in acknowledgement and in the
effect of a bad request; the broker appends the sets of all three in the same way. `append_request`
converts a decoded request. `decode_single_appends` reads requests of one set, which most are,
straight from their frames: those of one client for one partition differ in correlation id and set
only, so all other bytes are decoded once and recognised after that.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from broker.errors import ProtocolError
from broker.protocol import requests
from broker.protocol.client_requests import (
    Acks,
    PublishRequest,
)
from broker.protocol.primitives import INT16, INT32, Buffer, Reader
from broker.topic import TopicPartition

PRODUCE_TYPE = INT16.pack(requests.RequestType.PRODUCE)
PUBLISH_TYPE = INT16.pack(requests.RequestType.PUBLISH)
_PUBLISH_START = PUBLISH_TYPE + INT16.pack(PublishRequest.VERSION)
_START_AND_ID_BYTES = 8
_ACKS_TIMEOUT_COUNT_BYTES = 10
_HOME_AND_INDEX_BYTES = 8
# longer heads are not decoded here: a cache full of them would take too much memory
_MAX_HEAD_BYTES = 4096
_ASKED_BROKER = -1


# acks, timeout in milliseconds and partition, which requests of one client share
_Head = tuple[Acks, int, TopicPartition]


class PartitionSets(NamedTuple):
    """Message sets for one partition, in order; home -1 is the broker asked."""

    partition: TopicPartition
    sets: list[Buffer]


class AppendRequest(NamedTuple):
    """Message sets to append, in order: of one request, or of several of one set each."""

    # One for a request, whose response has the results of all sets, or one for each set. None for
    # 0.7's requests: they have no response, and an error closes the connection.
    correlation_ids: Sequence[int] | None
    acks: Acks
    timeout_ms: int  # limits the wait for `Acks.COMMITTED`
    parts: list[PartitionSets]


def append_request(
    request: requests.ProduceRequest | requests.MultiProduceRequest | PublishRequest,
    correlation_id: int,
) -> AppendRequest:
    """Return the general form of a decoded request; 0.7's have no correlation id."""
    if isinstance(request, PublishRequest):
        parts = [PartitionSets(one.partition, [one.message_set]) for one in request.sets]
        return AppendRequest((correlation_id,), request.acks, request.timeout_ms, parts)
    produces = (request,) if isinstance(request, requests.ProduceRequest) else request.produces
    parts = [
        PartitionSets(TopicPartition(one.topic, _ASKED_BROKER, one.index), [one.message_set])
        for one in produces
    ]
    return AppendRequest(None, Acks.NONE, 0, parts)


def decode_single_appends(frames: Sequence[memoryview]) -> AppendRequest | None:
    """Decode requests of one message set each that have the same acks and timeout.

    All frames, without size fields, are of one type, `PRODUCE_TYPE` or `PUBLISH_TYPE`. None if one
    is something else, or malformed: the general decoder must read each.
    """
    is_publish = frames[0][: INT16.size] == PUBLISH_TYPE
    layout = _layout(is_publish, 0)
    unpack, set_start = layout.unpack_from, layout.size
    correlation_ids: list[int] = []
    parts: list[PartitionSets] = []
    sets: list[Buffer] = []
    rule: tuple[Acks, int] | None = None
    head: bytes | None = None
    for frame in frames:
        size = len(frame)
        if size < set_start or (fields := unpack(frame))[-2] != head:
            head_bytes = _head_bytes(frame, is_publish)
            layout = _layout(is_publish, head_bytes)
            unpack, set_start = layout.unpack_from, layout.size
            if not 0 < head_bytes <= _MAX_HEAD_BYTES or size < set_start:
                return None
            fields = unpack(frame)
            head = fields[-2]
            decoded = _decode_publish_head(head) if is_publish else _decode_produce_head(head)
            if decoded is None or rule not in (None, decoded[:2]):
                return None
            rule, sets = decoded[:2], []
            parts.append(PartitionSets(decoded[2], sets))
        if fields[-1] != size - set_start:
            return None
        if is_publish:
            if fields[0] != _PUBLISH_START:
                return None
            correlation_ids.append(fields[1])
        sets.append(frame[set_start:])
    if rule is None:
        return None
    return AppendRequest(correlation_ids if is_publish else None, *rule, parts)


@lru_cache(maxsize=1024)
def _layout(is_publish: bool, head_bytes: int) -> struct.Struct:
    """Return how a request starts: head and size of the set."""
    # the head of a produce request begins with its type; that of a publish follows type, version
    # and correlation id
    start = "4si" if is_publish else ""
    return struct.Struct(f">{start}{head_bytes}si")


def _head_bytes(frame: memoryview, is_publish: bool) -> int:
    """Return the length of the bytes between start and set size; 0 if they are cut off."""
    try:
        if not is_publish:
            topic_bytes: int = INT16.unpack_from(frame, INT16.size)[0]
            return max(0, 2 * INT16.size + topic_bytes + INT32.size)
        end: int = _START_AND_ID_BYTES
        end += INT16.size + INT16.unpack_from(frame, end)[0] + _ACKS_TIMEOUT_COUNT_BYTES
        end += INT16.size + INT16.unpack_from(frame, end)[0] + _HOME_AND_INDEX_BYTES
    except struct.error:
        return 0
    return max(0, end - _START_AND_ID_BYTES)


@lru_cache(maxsize=1024)
def _decode_produce_head(head: bytes) -> _Head | None:
    reader = Reader(head)
    try:
        if reader.int16() != requests.RequestType.PRODUCE:
            return None
        partition = TopicPartition(reader.short_string(), _ASKED_BROKER, reader.int32())
    except ProtocolError:
        return None
    return Acks.NONE, 0, partition


@lru_cache(maxsize=1024)
def _decode_publish_head(head: bytes) -> _Head | None:
    """Return acks, timeout and partition; None if the head is malformed, or not of one set."""
    reader = Reader(head)
    try:
        reader.short_string()
        acks, timeout_ms, count = reader.int16(), reader.int32(), reader.int32()
        partition = requests.decode_partition(reader)
    except ProtocolError:
        return None
    if acks not in tuple(Acks) or count != 1:
        return None
    return Acks(acks), timeout_ms, partition
