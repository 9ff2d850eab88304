"""0.7's produce requests: check, append, and never a word to the client.

Requests that arrived together are appended together, one write for each partition. What cannot
be taken that way falls back to one request at a time, in order, so that a bad request costs
exactly what 0.7 makes it cost: itself and the connection.
"""

from __future__ import annotations

import logging
import random
import struct
import time
from collections.abc import Iterable
from typing import NamedTuple

from broker.errors import BrokerError, InvalidMessageError, MessageSizeTooLargeError
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.codec import Fault
from broker.protocol.message_set import describe_fault
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import ANY_PARTITION, MultiProduceRequest, ProduceRequest
from broker.server.checking import SetChecker, TooMuchToCheckError
from broker.server.joining import join_sets
from broker.server.metrics import ProcessorMetrics
from broker.topic import check_topic_name

logger = logging.getLogger(__name__)

_TYPE_AND_TOPIC_LENGTH = struct.Struct(">hh")
_FIRST_FAULTS = (Fault.PARTIAL, Fault.NONE)


class CheckedSet(NamedTuple):
    """The whole and good messages of a set, out of so many bytes that were received."""

    messages: Buffer
    message_count: int
    received_bytes: int


class Appender:
    """Checks message sets and appends them to logs.

    Args:
        logs: where the logs are.
        metrics: where to count.
        checker: looks at the sets.
        max_topic_name_length: the longest topic name taken.
    """

    def __init__(
        self,
        logs: LogManager,
        metrics: ProcessorMetrics,
        checker: SetChecker,
        *,
        max_topic_name_length: int,
    ) -> None:
        self._logs = logs
        self._metrics = metrics
        self._checker = checker
        self._max_topic_name_length = max_topic_name_length

    def begin_request(self) -> None:
        """Start to deal with a request; all its sets are checked before any is appended."""
        self._checker.begin_request()

    def check(self, topic: str, index: int, message_set: Buffer) -> CheckedSet:
        """Check one set, and nothing else; a partial message at its end is left out.

        Args:
            topic: where it should go.
            index: the partition, or `ANY_PARTITION`.
            message_set: as it came.

        Raises:
            InvalidTopicError: there can be no such topic.
            InvalidMessageError: a message is bad, or the first one incomplete.
            MessageSizeTooLargeError: a message is too large.
            TooMuchToCheckError: somebody with more time has to do it.
        """
        try:
            check_topic_name(topic, self._max_topic_name_length)
            found = self._checker.scan(message_set)
            if found.fault not in _FIRST_FAULTS or (found.fault and not found.valid_bytes):
                raise InvalidMessageError(describe_fault(found.fault, found.valid_bytes))
            limit = self._checker.max_message_bytes
            if found.max_payload_bytes > limit:
                raise MessageSizeTooLargeError(
                    f"a message of {found.max_payload_bytes} bytes for topic '{topic}' is above "
                    f"max.message.size={limit}"
                )
            count = self._checker.count_messages(message_set, found)
        except BrokerError:
            self._count_failure(topic, index)
            raise
        return CheckedSet(memoryview(message_set)[: found.valid_bytes], count, len(message_set))

    def append(
        self, topic: str, index: int, checked: CheckedSet, *, flush_now: bool = False
    ) -> tuple[Log, int]:
        """Append the whole messages of a checked set.

        Args:
            topic: the topic; it is created if this is its first good set.
            index: the partition, or `ANY_PARTITION`.
            checked: what `check` returned.
            flush_now: ask for a flush at once.

        Returns:
            The log and the base offset of the set in it.

        Raises:
            WrongPartitionError: there is no such partition.
            StorageError: the disk refuses.
        """
        try:
            if index == ANY_PARTITION:
                index = random.randrange(self._logs.partition_count(topic))
            log = self._logs.get_or_create(topic, index)
            base_offset = log.append(checked.messages, checked.message_count, flush_now=flush_now)
        except BrokerError:
            self._count_failure(topic, index)
            raise
        counters = self._metrics.topics[topic]
        counters.messages_in += checked.message_count
        counters.bytes_in += checked.received_bytes
        return log, base_offset

    def _count_failure(self, topic: str, index: int) -> None:
        # a name that no log has would make the counters grow with every typing error
        if self._logs.get(topic, max(index, 0)):
            self._metrics.topics[topic].failed_produce += 1


class ProduceHandler:
    """Handles runs of produce requests as they lie in a receive buffer.

    Args:
        appender: checks and appends.
        logs: where the logs are.
        metrics: where to count.
        checker: looks at the sets.
    """

    def __init__(
        self,
        appender: Appender,
        logs: LogManager,
        metrics: ProcessorMetrics,
        checker: SetChecker,
    ) -> None:
        self._appender = appender
        self._logs = logs
        self._metrics = metrics
        self._checker = checker

    def handle_run(self, frames: list[memoryview]) -> int:
        """Append the sets of produce requests that arrived one after another.

        Args:
            frames: produce requests without their size fields.

        Returns:
            How many were handled before the turn was over; at least one.

        Raises:
            BrokerError: a request is bad in a way that 0.7 answers by closing the connection.
                What came before it is appended, it and what comes after is not.
            TooMuchToCheckError: the first request takes too long; nothing was done.
        """
        started_s = time.perf_counter()
        if self._append_together(frames):
            self._metrics.produce.record(time.perf_counter() - started_s, len(frames))
            return len(frames)
        done_count = 0
        try:
            for frame in frames:
                if done_count and self._checker.is_turn_over:
                    break
                self._append_one(frame)
                done_count += 1
        except TooMuchToCheckError:
            if not done_count:
                raise
        except BrokerError:
            done_count = len(frames)
            raise
        finally:
            if done_count:
                self._metrics.produce.record(time.perf_counter() - started_s, done_count)
        return done_count

    def _append_together(self, frames: list[memoryview]) -> bool:
        """Append with one write for each partition, or append nothing and return False."""
        batches = _group(frames)
        if batches is None:
            return False
        self._checker.begin_request()
        appends = []
        for head, batch in batches.items():
            log = self._find_log(head)
            joined = None if log is None else join_sets(batch, self._checker)
            if log is None or joined is None:
                return False
            appends.append((log, joined))
        for log, (message_set, count) in appends:
            counters = self._metrics.topics[log.partition.topic]
            try:
                log.append(message_set, count)
            except BrokerError:
                counters.failed_produce += 1
                raise
            counters.messages_in += count
            counters.bytes_in += len(message_set)
        return True

    def _find_log(self, head: bytes) -> Log | None:
        """Return an existing log; None where the slow path has to look closer."""
        topic = head[4:-4].decode(errors="replace")
        (index,) = INT32.unpack(head[-4:])
        log = self._logs.get(topic, index)
        return None if log is None or log.is_deleted else log

    def _append_one(self, frame: memoryview) -> None:
        reader = Reader(frame)
        reader.int16()
        self._append(self._check([ProduceRequest.decode(reader)]))

    def handle_multi(self, request: MultiProduceRequest) -> None:
        """Append the sets of a multiproduce one after another.

        Raises:
            BrokerError: an entry is bad; those before it are appended, those behind it are not.
            TooMuchToCheckError: nothing was appended; somebody with more time has to do it.
        """
        started_s = time.perf_counter()
        checked = self._check(request.produces)
        try:
            self._append(checked)
        finally:
            self._metrics.produce.record(time.perf_counter() - started_s)

    def _check(self, requests: Iterable[ProduceRequest]) -> list[_Checked]:
        """Check sets up to the first bad one, which comes last with what is wrong with it."""
        self._appender.begin_request()
        checked: list[_Checked] = []
        for request in requests:
            try:
                found = self._appender.check(request.topic, request.index, request.message_set)
            except MessageSizeTooLargeError as error:
                logger.warning("dropped a message set: %s", error)
            except BrokerError as error:
                return [*checked, (request, error)]
            else:
                checked.append((request, found))
        return checked

    def _append(self, checked: list[_Checked]) -> None:
        for request, found in checked:
            if isinstance(found, BrokerError):
                raise found
            self._appender.append(request.topic, request.index, found)


_Checked = tuple[ProduceRequest, CheckedSet | BrokerError]


def _group(frames: list[memoryview]) -> dict[bytes, list[memoryview]] | None:
    """Return the message sets by request head (type, topic, partition), or None if one is odd."""
    batches: dict[bytes, list[memoryview]] = {}
    batch: list[memoryview] | None = None
    layout, head = _layout(0), b""
    unpack, start = layout.unpack_from, layout.size
    for frame in frames:
        # most requests have the head of the one before, which then need not be taken apart
        if batch is None or len(frame) < start or unpack(frame)[0] != head:
            layout = _layout(_head_bytes(frame))
            unpack, start = layout.unpack_from, layout.size
            if len(frame) < start:
                return None
            (head, _) = unpack(frame)
            if not head:
                return None
            batch = batches.setdefault(head, [])
        _, size = unpack(frame)
        if size < 0 or start + size > len(frame):
            return None
        batch.append(frame[start : start + size])
    return batches


def _layout(head_bytes: int) -> struct.Struct:
    """Return how requests start that have so long a head; the size of the set comes last."""
    return struct.Struct(f">{head_bytes}si")


def _head_bytes(frame: memoryview) -> int:
    """Return the length of a produce request up to its partition; 0 if it cannot be told."""
    if len(frame) < _TYPE_AND_TOPIC_LENGTH.size:
        return 0
    _, topic_bytes = _TYPE_AND_TOPIC_LENGTH.unpack_from(frame)
    return 0 if topic_bytes < 0 else _TYPE_AND_TOPIC_LENGTH.size + topic_bytes + INT32.size
