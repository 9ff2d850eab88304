"""Publish requests that arrived together, of one set each: one write and one answer for all.

A producer that sends message by message keeps many small requests in flight. One by one each
would cost a write, a wait for the flush and an answer of its own. Whatever is not plain and good
about any of them is left to `ExtensionHandler.publish`, one request at a time.
"""

from __future__ import annotations

import struct
import time
from functools import lru_cache
from typing import NamedTuple

from broker.clock import Clock
from broker.errors import ProtocolError, RequestTimedOutError, ServerError
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.extension_requests import Acks, PublishRequest, good_answer_from
from broker.protocol.primitives import INT16, Reader
from broker.protocol.requests import decode_partition
from broker.protocol.responses import (
    Published,
    encode_extension_response,
    encode_publish_response,
)
from broker.server.admin import Host
from broker.server.checking import SetChecker
from broker.server.joining import JoinedSets, join_sets
from broker.server.metrics import ProcessorMetrics
from broker.server.purgatory import Answer, Parked, Part
from broker.topic import TopicPartition

_START = struct.Struct(">hhi")
"""Type, version and correlation id."""
_ACKS_TIMEOUT_COUNT_BYTES = 10
_HOME_AND_INDEX_BYTES = 8
_MAX_HEAD_BYTES = 4096
"""Longer heads are not remembered: many of them must not fill the memory."""


class _Head(NamedTuple):
    """What precedes the set in a request, but for the correlation id."""

    acks: Acks
    timeout_ms: int
    partition: TopicPartition


class _Target:
    """The sets for one partition, and what became of them."""

    def __init__(self, head: _Head, log: Log) -> None:
        self.head = head
        self.log = log
        self.sets: list[memoryview] = []
        self.size = 0
        self.base_offset = -1
        self.error: ServerError | None = None
        self.good_answer = good_answer_from(log.partition)

    @property
    def is_pending(self) -> bool:
        """Return whether what was written may still be flushed."""
        is_flushed = self.log.flushed_offset >= self.base_offset + self.size
        return self.error is None and self.log.failure is None and not is_flushed

    def note_commit(self) -> None:
        """Take note of what became of the flush."""
        end = self.base_offset + self.size
        if self.error is None and self.log.flushed_offset < end:
            self.error = self.log.failure or RequestTimedOutError(
                f"{self.log.partition} is written up to {end}, but not flushed in time"
            )


_Request = tuple[int, _Target, int]
"""One of a run: its correlation id, its target, and where its set lies among the joined ones."""


class _Run(NamedTuple):
    """Requests with the same acknowledgement and timeout."""

    acks: Acks
    timeout_ms: int
    requests: list[_Request]
    targets: list[_Target]


class PublishRunHandler:
    """Handles publish requests that arrived one after another.

    Args:
        host: the broker.
        logs: where the logs are.
        checker: looks at the sets.
        metrics: where to count.
        clock: for deadlines.
        broker_id: the home of this broker's partitions.
    """

    def __init__(
        self,
        host: Host,
        logs: LogManager,
        checker: SetChecker,
        metrics: ProcessorMetrics,
        clock: Clock,
        *,
        broker_id: int,
    ) -> None:
        self._host = host
        self._logs = logs
        self._checker = checker
        self._metrics = metrics
        self._clock = clock
        self._broker_id = broker_id

    def handle(self, frames: list[memoryview]) -> list[Answer | Parked] | None:
        """Append the sets of all requests and answer them together, or do nothing.

        Args:
            frames: publish requests without their size fields.

        Returns:
            One answer that stands for all of them, or no answer for acks 0; None if they have to
            be handled singly.
        """
        started_s = time.perf_counter()
        run = None if self._host.refuses_appends() else self._group(frames)
        if run is None:
            return None
        self._checker.begin_request()
        joined: list[JoinedSets] = []
        for target in run.targets:
            sets = join_sets(target.sets, self._checker)
            if sets is None:
                return None
            joined.append(sets)
        flush_now = run.acks is Acks.COMMITTED
        for target, sets in zip(run.targets, joined, strict=True):
            self._append(target, sets, flush_now=flush_now)
        self._metrics.produce.record(time.perf_counter() - started_s, len(frames))
        return self._answer(run)

    def _append(self, target: _Target, joined: JoinedSets, *, flush_now: bool) -> None:
        counters = self._metrics.topics[target.log.partition.topic]
        try:
            target.base_offset = target.log.append(
                joined.message_set, joined.message_count, flush_now=flush_now
            )
        except ServerError as error:
            target.error = error
            counters.failed_produce += len(target.sets)
            return
        counters.messages_in += joined.message_count
        counters.bytes_in += target.size

    def _answer(self, run: _Run) -> list[Answer | Parked]:
        if run.acks is Acks.NONE:
            return []
        if run.acks is Acks.WRITTEN:
            return [Answer(_encode(run))]

        def attempt(is_last: bool) -> list[Part] | None:
            if not is_last and any(target.is_pending for target in run.targets):
                return None
            for target in run.targets:
                target.note_commit()
            return [_encode(run)]

        deadline_s = self._clock.monotonic_s() + max(run.timeout_ms, 0) / 1000
        logs = [target.log for target in run.targets]
        return [Parked(Answer(), attempt, deadline_s, logs, awaits_flush=True)]

    def _group(self, frames: list[memoryview]) -> _Run | None:
        """Return what the requests ask for, or None if one of them is odd."""
        targets: dict[bytes, _Target] = {}
        requests: list[_Request] = []
        layout, head = _layout(0), b""
        unpack, start = layout.unpack_from, layout.size
        target: _Target | None = None
        for frame in frames:
            # most requests have the head of the one before, which then need not be taken apart
            if target is None or len(frame) < start or unpack(frame)[3] != head:
                layout = _layout(_head_bytes(frame))
                unpack, start = layout.unpack_from, layout.size
                if len(frame) < start:
                    return None
                head = unpack(frame)[3]
                target = targets.get(head) or self._target(head)
                if target is None:
                    return None
                targets[head] = target
            _, version, correlation_id, _, size = unpack(frame)
            if version != PublishRequest.VERSION or size != len(frame) - start:
                return None
            requests.append((correlation_id, target, target.size))
            target.sets.append(frame[start:])
            target.size += size
        return _run_of(requests, list(targets.values()))

    def _target(self, encoded: bytes) -> _Target | None:
        """Return where the sets behind a head go; None where somebody has to look closer."""
        head = _decode_head(encoded) if len(encoded) <= _MAX_HEAD_BYTES else None
        if head is None or head.partition.home not in (-1, self._broker_id):
            return None
        log = self._logs.get(head.partition.topic, head.partition.index)
        return None if log is None or log.is_deleted else _Target(head, log)


def _run_of(requests: list[_Request], targets: list[_Target]) -> _Run | None:
    """Return a run, if it is one: one rule for all, and no log under two names, out of order."""
    rules = {(one.head.acks, one.head.timeout_ms) for one in targets}
    if len(rules) != 1 or len({one.log for one in targets}) != len(targets):
        return None
    return _Run(*rules.pop(), requests, targets)


def _head_bytes(frame: memoryview) -> int:
    """Return how many bytes a request of one set has between start and set; 0 if it is cut."""
    try:
        end: int = _START.size
        end += INT16.size + INT16.unpack_from(frame, end)[0] + _ACKS_TIMEOUT_COUNT_BYTES
        end += INT16.size + INT16.unpack_from(frame, end)[0] + _HOME_AND_INDEX_BYTES
    except struct.error:
        return 0
    return max(0, end - _START.size)


def _layout(head_bytes: int) -> struct.Struct:
    """Return how requests start that have so long a head; the size of the set comes last."""
    return struct.Struct(f"{_START.format}{head_bytes}si")


@lru_cache(maxsize=1024)
def _decode_head(encoded: bytes) -> _Head | None:
    """Return what a request asks for, None if it is malformed or has not one set."""
    reader = Reader(encoded)
    try:
        reader.short_string()
        acks, timeout_ms, count = reader.int16(), reader.int32(), reader.int32()
        partition = decode_partition(reader)
    except ProtocolError:
        return None
    if acks not in tuple(Acks) or count != 1:
        return None
    return _Head(Acks(acks), timeout_ms, partition)


def _encode(run: _Run) -> bytes:
    """Return the answers to the requests of a run, in their order."""
    parts: list[bytes] = []
    for correlation_id, target, place in run.requests:
        error = target.error
        if error is None:
            parts.append(target.good_answer.encode(correlation_id, target.base_offset + place))
        else:
            failed = Published(target.head.partition, error.code, -1, str(error))
            parts.append(
                encode_extension_response(correlation_id, encode_publish_response([failed]))
            )
    return b"".join(parts)
