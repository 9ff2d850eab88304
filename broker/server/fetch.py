"""Reading: 0.7's fetch, multifetch and offsets requests, and our read that can wait."""

from __future__ import annotations

import time

from broker.clock import Clock
from broker.errors import (
    NO_ERROR,
    ProtocolError,
    ServerError,
    UnknownServerError,
    UnknownTopicError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.segment import FileSlice
from broker.protocol.extension_requests import PartitionPosition, ReadRequest
from broker.protocol.primitives import INT32
from broker.protocol.requests import (
    EARLIEST_TIME,
    LATEST_TIME,
    FetchRequest,
    MultiFetchRequest,
    OffsetsRequest,
    RequestHeader,
)
from broker.protocol.responses import (
    ERROR_BYTES,
    ReadPart,
    encode_extension_header,
    encode_fetch_header,
    encode_multifetch_header,
    encode_offsets_response,
    encode_read_part_header,
)
from broker.server.metrics import ProcessorMetrics
from broker.server.purgatory import Answer, Parked, Part, join_bytes
from broker.topic import TopicPartition, check_topic_name

_MAX_ANSWER_BYTES = (1 << 31) - 1
"""What the size field of an answer can say."""
_MAX_READ_BYTES = 1 << 30
"""Message sets in one answer to a read; with the headers of all parts it stays below the above."""


class FetchHandler:
    """Answers reads with slices of segment files.

    Args:
        logs: where the logs are.
        metrics: where to count.
        clock: for deadlines of reads that wait.
        broker_id: the home of this broker's partitions.
        max_topic_name_length: the longest topic name taken.
    """

    def __init__(
        self,
        logs: LogManager,
        metrics: ProcessorMetrics,
        clock: Clock,
        *,
        broker_id: int,
        max_topic_name_length: int,
    ) -> None:
        self._logs = logs
        self._metrics = metrics
        self._clock = clock
        self._broker_id = broker_id
        self._max_topic_name_length = max_topic_name_length

    def fetch(self, request: FetchRequest) -> Answer:
        """Answer a fetch at once, with what there is."""
        started_s = time.perf_counter()
        head, found = self._fetch_one(request, _MAX_ANSWER_BYTES - ERROR_BYTES)
        answer = Answer(head, found) if found else Answer(head)
        self._metrics.fetch.record(time.perf_counter() - started_s)
        return answer

    def multifetch(self, request: MultiFetchRequest) -> Answer:
        """Answer several fetches together; an error of one does not touch the others."""
        started_s = time.perf_counter()
        parts: list[Part] = []
        part_bytes = len(request.fetches) * len(encode_fetch_header(NO_ERROR, 0))
        for one in request.fetches:
            head, found = self._fetch_one(one, _MAX_ANSWER_BYTES - ERROR_BYTES - part_bytes)
            parts.append(head)
            if found:
                parts.append(found)
                part_bytes += found.length
        self._metrics.fetch.record(time.perf_counter() - started_s)
        return Answer(*join_bytes([encode_multifetch_header(part_bytes), *parts]))

    def _fetch_one(self, request: FetchRequest, room_bytes: int) -> tuple[bytes, FileSlice | None]:
        try:
            found = self._slice(request, room_bytes)
        except ServerError as error:
            # 0.7 answers an illegal topic with "unknown"; our other codes mean nothing to it
            code = error.code if error.code in (1, 3) else UnknownServerError.code
            if self._logs.get(request.topic, request.index):
                self._metrics.topics[request.topic].failed_fetch += 1
            return encode_fetch_header(code, 0), None
        if found is None:
            return encode_fetch_header(NO_ERROR, 0), None
        self._metrics.topics[request.topic].bytes_out += found.length
        return encode_fetch_header(NO_ERROR, found.length), found

    def _slice(self, request: FetchRequest, room_bytes: int) -> FileSlice | None:
        log = self._logs.get(request.topic, request.index)
        if log is None:
            self._check_partition(request.topic, request.index)
            return None
        found = log.read(request.offset, max(0, min(request.max_bytes, room_bytes)))
        return found if found and found.length else None

    def _check_partition(self, topic: str, index: int) -> None:
        check_topic_name(topic, self._max_topic_name_length)
        count = self._logs.partition_count(topic)
        if not 0 <= index < count:
            raise WrongPartitionError(
                f"topic '{topic}' has no partition {self._broker_id}-{index}: "
                f"it has {count} on this broker"
            )

    def offsets(self, request: OffsetsRequest) -> Answer:
        """Answer an offsets request.

        Raises:
            ServerError: there is no such partition; 0.7 closes the connection then.
            ProtocolError: the number of offsets asked for is negative.
        """
        if request.max_offsets < 0:
            raise ProtocolError(f"{request.max_offsets} offsets were asked for")
        log = self._logs.get(request.topic, request.index)
        if log is not None:
            return Answer(
                encode_offsets_response(log.offsets_before(request.time_ms, request.max_offsets))
            )
        self._check_partition(request.topic, request.index)
        is_end = request.time_ms in (LATEST_TIME, EARLIEST_TIME)
        return Answer(encode_offsets_response([0] if is_end else []))

    def read(self, request: ReadRequest, header: RequestHeader) -> Answer | Parked:
        """Answer a read now, or park it until it has enough or its time is up."""

        def attempt(is_last: bool) -> list[Part] | None:
            if is_last or self.is_enough(request):
                return self._read_parts(request, header)
            return None

        parts = attempt(request.max_wait_ms <= 0)
        if parts is not None:
            return Answer(*parts)
        logs = [self.log_of(position.partition) for position in request.positions]
        deadline_s = self._clock.monotonic_s() + request.max_wait_ms / 1000
        return Parked(Answer(), attempt, deadline_s, logs)

    def is_enough(self, request: ReadRequest) -> bool:
        """Return whether waiting is of no use: there is what was asked for, or an error."""
        total_bytes = 0
        for position in request.positions:
            try:
                log = self.log_of(position.partition)
            except ServerError:
                return True
            available = log.high_watermark - position.offset
            if available < 0 or position.offset < log.log_start_offset:
                return True
            total_bytes += max(0, min(available, position.max_bytes))
        return total_bytes >= min(request.min_bytes, request.max_bytes)

    def log_of(self, partition: TopicPartition) -> Log:
        """Return a partition's log, making it if only its topic is there.

        So a reader can wait for the first message of a partition.

        Raises:
            ServerError: this broker does not lead the partition, or has no such topic.
        """
        topic, index = partition.topic, partition.index
        if partition.home not in (-1, self._broker_id):
            raise WrongPartitionError(f"broker {self._broker_id} does not lead {partition}")
        log = self._logs.get(topic, index)
        if log is not None:
            return log
        check_topic_name(topic, self._max_topic_name_length)
        if topic not in self._logs.topics():
            raise UnknownTopicError(f"there is no topic '{topic}' on broker {self._broker_id}")
        return self._logs.get_or_create(topic, index)

    def _read_parts(self, request: ReadRequest, header: RequestHeader) -> list[Part]:
        started_s = time.perf_counter()
        count = INT32.pack(len(request.positions))
        parts: list[Part] = []
        body_bytes = len(count)
        room_bytes = min(request.max_bytes, _MAX_READ_BYTES)
        for position in request.positions:
            part, found = self._read_one(position, room_bytes)
            set_bytes = found.length if found else 0
            head = encode_read_part_header(part, set_bytes)
            body_bytes += len(head) + set_bytes
            room_bytes -= set_bytes
            parts.append(head)
            if found:
                parts.append(found)
        head = encode_extension_header(header.correlation_id, body_bytes) + count
        self._metrics.fetch.record(time.perf_counter() - started_s)
        return join_bytes([head, *parts])

    def _read_one(
        self, position: PartitionPosition, room_bytes: int
    ) -> tuple[ReadPart, FileSlice | None]:
        partition = position.partition
        try:
            log = self.log_of(partition)
        except ServerError as problem:
            return ReadPart(partition, problem.code, 0, 0, b""), None
        error = NO_ERROR
        found = None
        try:
            max_bytes = min(position.max_bytes, room_bytes)
            if max_bytes > 0:
                found = log.read(position.offset, max_bytes)
        except ServerError as problem:
            error = problem.code
            self._metrics.topics[partition.topic].failed_fetch += 1
        if found:
            self._metrics.topics[partition.topic].bytes_out += found.length
        # looked at only now: the high watermark told must not be below what was read
        part = ReadPart(partition, error, log.high_watermark, log.log_start_offset, b"")
        return part, found
