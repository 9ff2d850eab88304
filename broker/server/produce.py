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

from broker.errors import BrokerError, InvalidMessageError, MessageSizeTooLargeError
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.codec import Fault, scan
from broker.protocol.message_set import count_messages, describe_fault
from broker.protocol.primitives import INT32, Buffer, Reader
from broker.protocol.requests import ANY_PARTITION, MultiProduceRequest, ProduceRequest
from broker.server.metrics import ProcessorMetrics
from broker.topic import check_topic_name

logger = logging.getLogger(__name__)

_TYPE_AND_TOPIC_LENGTH = struct.Struct(">hh")
_FIRST_FAULTS = (Fault.PARTIAL, Fault.NONE)


class Appender:
    """Checks message sets and appends them to logs.

    Args:
        logs: where the logs are.
        metrics: where to count.
        max_message_bytes: the largest outer payload taken.
        max_topic_name_length: the longest topic name taken.
    """

    def __init__(
        self,
        logs: LogManager,
        metrics: ProcessorMetrics,
        *,
        max_message_bytes: int,
        max_topic_name_length: int,
    ) -> None:
        self._logs = logs
        self._metrics = metrics
        self._max_message_bytes = max_message_bytes
        self._max_topic_name_length = max_topic_name_length

    def append(self, topic: str, index: int, message_set: Buffer) -> tuple[Log, int]:
        """Check one set and append its whole messages.

        Args:
            topic: the topic; it is created if this is its first good set.
            index: the partition, or `ANY_PARTITION`.
            message_set: as it came; a partial message at its end is left out.

        Returns:
            The log and the base offset of the set in it.

        Raises:
            InvalidTopicError, WrongPartitionError: there is no such partition.
            InvalidMessageError: a message is bad, or the first one incomplete.
            MessageSizeTooLargeError: a message is too large.
            StorageError: the disk refuses.
        """
        counters = None
        try:
            check_topic_name(topic, self._max_topic_name_length)
            found = scan(message_set)
            if found.fault not in _FIRST_FAULTS or (found.fault and not found.valid_bytes):
                raise InvalidMessageError(describe_fault(found.fault, found.valid_bytes))
            if found.max_payload_bytes > self._max_message_bytes:
                raise MessageSizeTooLargeError(
                    f"a message of {found.max_payload_bytes} bytes for topic '{topic}' is above "
                    f"max.message.size={self._max_message_bytes}"
                )
            message_count = count_messages(message_set, found)
            if index == ANY_PARTITION:
                index = random.randrange(self._logs.partition_count(topic))
            log = self._logs.get_or_create(topic, index)
            counters = self._metrics.topics[topic]
            base_offset = log.append(memoryview(message_set)[: found.valid_bytes], message_count)
        except BrokerError:
            # a name that no log has would make the counters grow with every typing error
            if counters or self._logs.get(topic, max(index, 0)):
                self._metrics.topics[topic].failed_produce += 1
            raise
        counters.messages_in += message_count
        counters.bytes_in += len(message_set)
        return log, base_offset


class ProduceHandler:
    """Handles runs of produce requests as they lie in a receive buffer.

    Args:
        appender: checks and appends.
        logs: where the logs are.
        metrics: where to count.
        max_message_bytes: the largest outer payload taken.
    """

    def __init__(
        self,
        appender: Appender,
        logs: LogManager,
        metrics: ProcessorMetrics,
        *,
        max_message_bytes: int,
    ) -> None:
        self._appender = appender
        self._logs = logs
        self._metrics = metrics
        self._max_message_bytes = max_message_bytes
        self._log_of_head: dict[bytes, Log] = {}

    def handle_run(self, frames: list[memoryview]) -> None:
        """Append the sets of produce requests that arrived one after another.

        Args:
            frames: produce requests without their size fields.

        Raises:
            BrokerError: a request is bad in a way that 0.7 answers by closing the connection.
                What came before it is appended, it and what comes after is not.
        """
        started_s = time.perf_counter()
        try:
            if not self._append_together(frames):
                for frame in frames:
                    self._append_one(frame)
        finally:
            self._metrics.produce.record(time.perf_counter() - started_s, len(frames))

    def _append_together(self, frames: list[memoryview]) -> bool:
        """Append with one write for each partition, or append nothing and return False."""
        batches = _group(frames)
        if batches is None:
            return False
        appends = []
        for head, batch in batches.items():
            log = self._log_of_head.get(head)
            if log is None or log.is_deleted:
                log = self._find_log(head)
            taken = self._take(batch) if log is not None else None
            if log is None or taken is None:
                return False
            appends.append((log, *taken))
        for log, message_set, count in appends:
            counters = self._metrics.topics[log.partition.topic]
            try:
                log.append(message_set, count)
            except BrokerError:
                counters.failed_produce += 1
                raise
            counters.messages_in += count
            counters.bytes_in += len(message_set)
        return True

    def _take(self, batch: _Batch) -> tuple[Buffer, int] | None:
        """Return the sets as one, and how many messages it holds; None if one is not all good."""
        sets = batch.sets
        message_set = sets[0] if len(sets) == 1 else b"".join(sets)
        count = 0
        # only where each set is one message do their ends show in a scan of all: a message cut
        # off at the end of one set must not be completed by the next
        for one in [message_set] if batch.are_single else sets:
            found = scan(one)
            if found.fault or found.max_payload_bytes > self._max_message_bytes:
                return None
            try:
                count += count_messages(one, found) if found.wrappers else found.entry_count
            except InvalidMessageError:
                return None
        return message_set, count

    def _find_log(self, head: bytes) -> Log | None:
        """Return and remember an existing log; None where the slow path has to look closer."""
        topic = head[4:-4].decode(errors="replace")
        (index,) = INT32.unpack(head[-4:])
        log = self._logs.get(topic, index)
        if log is not None:
            self._log_of_head[head] = log
        else:
            self._log_of_head.pop(head, None)  # of a topic that was deleted
        return log

    def _append_one(self, frame: memoryview) -> None:
        reader = Reader(frame)
        reader.int16()
        request = ProduceRequest.decode(reader)
        self._append_request(request)

    def _append_request(self, request: ProduceRequest) -> None:
        try:
            self._appender.append(request.topic, request.index, request.message_set)
        except MessageSizeTooLargeError as error:
            logger.warning("dropped a message set: %s", error)

    def handle_multi(self, request: MultiProduceRequest) -> None:
        """Append the sets of a multiproduce one after another.

        Raises:
            BrokerError: an entry is bad; those before it stay appended.
        """
        started_s = time.perf_counter()
        try:
            for produce in request.produces:
                self._append_request(produce)
        finally:
            self._metrics.produce.record(time.perf_counter() - started_s)


class _Batch:
    """The message sets of one partition among requests that arrived together.

    `are_single` says that each is as long as the length field of its first message says.
    """

    __slots__ = ("are_single", "sets")

    def __init__(self) -> None:
        self.sets: list[memoryview] = []
        self.are_single = True


def _group(frames: list[memoryview]) -> dict[bytes, _Batch] | None:
    """Return the message sets by request head (type, topic, partition), or None if one is odd."""
    batches: dict[bytes, _Batch] = {}
    batch = _Batch()
    unpack_size = INT32.unpack_from
    head = b""
    head_bytes = 0
    for frame in frames:
        # most requests have the head of the one before, which then need not be taken apart
        if not head or frame[:head_bytes] != head:
            head_bytes = _head_bytes(frame)
            head = bytes(frame[:head_bytes])
            batch = batches.setdefault(head, _Batch())
        start = head_bytes + INT32.size
        if not head or start > len(frame):
            return None
        (size,) = unpack_size(frame, head_bytes)
        if size < 0 or start + size > len(frame):
            return None
        batch.sets.append(frame[start : start + size])
        if batch.are_single and (size < 4 or unpack_size(frame, start)[0] != size - 4):
            batch.are_single = False
    return batches


def _head_bytes(frame: memoryview) -> int:
    """Return the length of a produce request up to its partition; 0 if it cannot be told."""
    if len(frame) < _TYPE_AND_TOPIC_LENGTH.size:
        return 0
    _, topic_bytes = _TYPE_AND_TOPIC_LENGTH.unpack_from(frame)
    return 0 if topic_bytes < 0 else _TYPE_AND_TOPIC_LENGTH.size + topic_bytes + INT32.size
