"""Every append to a log: 0.7's produce and multiproduce, and our publish.

All of them arrive as `AppendRequest`. Requests of one set each that arrived together are grouped
by log and appended with one write for each log (`append_together`): a producer that sends message
by message would else cost a write, a flush and a response for each. What is unusual or invalid
about any of them is left to `append`, one request at a time, so that an invalid request is refused
alone; if it is one of 0.7, its connection is closed, as in 0.7.

An acknowledgement that waits for the commit is a delayed response, woken by the log.
`_LogAppend.is_committed` says what committed means: flushed to this broker's disk.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence

from broker.clock import Clock
from broker.errors import (
    NO_ERROR,
    MessageSizeTooLargeError,
    RequestTimedOutError,
    ServerError,
    ShuttingDownError,
    WrongPartitionError,
)
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.protocol.append_request import AppendRequest, decode_single_appends
from broker.protocol.extension_requests import Acks, single_publish_response
from broker.protocol.primitives import Buffer
from broker.protocol.requests import ANY_PARTITION
from broker.protocol.responses import (
    Published,
    encode_extension_response,
    encode_publish_response,
)
from broker.server.admin import Host
from broker.server.metrics import ProcessorMetrics
from broker.server.purgatory import DelayedResponse, Part, Response
from broker.server.validation import Validator, ValidMessages
from broker.topic import TopicPartition, validate_topic_name

logger = logging.getLogger(__name__)

_SMALL_BYTES = 4096
"""A single request with a larger set goes to `append`: what is refused here is validated twice."""


class _LogAppend:
    """One write to a log, of sets that follow each other, and its result.

    Args:
        partition: as the request names it.
        log: None where the write has to find or create it.
    """

    __slots__ = (
        "base_offset",
        "end_offset",
        "error",
        "log",
        "partition",
        "received_bytes",
        "sets",
        "valid",
    )

    def __init__(self, partition: TopicPartition, log: Log | None) -> None:
        self.partition = partition
        self.log = log
        self.sets: list[Buffer] = []
        self.received_bytes = 0
        self.valid: ValidMessages | None = None
        self.base_offset = self.end_offset = -1
        self.error: ServerError | None = None

    @property
    def is_committed(self) -> bool:
        """Return whether the written messages are as safe as this broker makes them."""
        return self.log is not None and self.log.flushed_offset >= self.end_offset

    @property
    def is_pending(self) -> bool:
        """Return whether the write may still be committed."""
        has_failed = self.error is not None or self.log is None or self.log.failure is not None
        return not has_failed and not self.is_committed

    def end_wait(self) -> None:
        """Set the error of a write that is not committed when its response is due."""
        if self.error is None and self.log is not None and not self.is_committed:
            self.error = self.log.failure or RequestTimedOutError(
                f"{self.log.partition} is written up to {self.end_offset}, but not flushed in time"
            )

    def result(self, partition: TopicPartition) -> Published:
        """Return the result of the first set.

        Args:
            partition: as its request names it; a result about written messages names the log's.
        """
        if self.log is not None and self.base_offset >= 0:
            partition = self.log.partition
        if self.error is not None:
            return Published(partition, self.error.code, -1, str(self.error))
        return Published(partition, NO_ERROR, self.base_offset, "")


class ProduceHandler:
    """Appends message sets for the connections of one thread.

    Args:
        host: says whether the broker refuses appends.
        logs: where the logs are.
        validator: validates the sets.
        metrics: of the thread.
        clock: for deadlines.
        broker_id: the home broker of its partitions.
        max_topic_name_length: the longest topic name allowed.
    """

    def __init__(
        self,
        host: Host,
        logs: LogManager,
        validator: Validator,
        metrics: ProcessorMetrics,
        clock: Clock,
        *,
        broker_id: int,
        max_topic_name_length: int,
    ) -> None:
        self._host = host
        self._logs = logs
        self._validator = validator
        self._metrics = metrics
        self._clock = clock
        self._broker_id = broker_id
        self._max_topic_name_length = max_topic_name_length

    def append_together(self, frames: Sequence[memoryview]) -> list[Response] | None:
        """Append the sets of requests that arrived together, one write for each log.

        Args:
            frames: produce requests, or publish requests, without their size fields.

        Returns:
            One response that stands for all, or none where the client expects none; None if
            nothing was done, as the requests have to be appended one at a time.

        Raises:
            ServerError: the disk refuses the sets of produce requests.
        """
        started_s = time.perf_counter()
        if self._host.refuses_appends or (len(frames) == 1 and len(frames[0]) > _SMALL_BYTES):
            return None
        request = decode_single_appends(frames)
        if request is None:
            return None
        appends: dict[int, _LogAppend] = {}
        parts: list[_WrittenSet] = []
        for partition, sets in request.parts:
            log = self._logs.get(partition.topic, partition.index)
            if log is None or partition.home not in (-1, self._broker_id):
                return None
            one = appends.get(id(log))
            if one is None:
                one = appends[id(log)] = _LogAppend(partition, log)
            sizes = list(map(len, sets))
            parts.append((partition, one, one.received_bytes, sizes))
            one.sets += sets
            one.received_bytes += sum(sizes)
        self._validator.begin_request()
        for one in appends.values():
            one.valid = self._validator.validate_together(one.sets)
            if one.valid is None:
                return None
        correlation_ids, acks, timeout_ms, _ = request
        try:
            for one in appends.values():
                self._write(one, flush_now=acks is Acks.COMMITTED)
                if one.error is not None and correlation_ids is None:
                    raise one.error
        finally:
            self._metrics.produce.record(time.perf_counter() - started_s, len(frames))
        response = self._respond(
            acks,
            timeout_ms,
            list(appends.values()),
            lambda: _encode_single(correlation_ids or (), parts),
        )
        return [] if response is None else [response]

    def append(self, request: AppendRequest) -> Response | None:
        """Append the sets of one request, each with a write of its own.

        Returns:
            The response, perhaps delayed; None if the client expects none.

        Raises:
            ServerError: a set of one of 0.7's requests is refused; the sets before it are
                appended, those behind it are not.
            ValidationBudgetExceededError: nothing was appended; a worker must do it.
        """
        started_s = time.perf_counter()
        correlation_ids, acks, timeout_ms, parts = request
        is_publish = correlation_ids is not None
        if self._host.refuses_appends and not is_publish:
            raise ShuttingDownError("the broker is shutting down")
        self._validator.begin_request()
        appends: list[_LogAppend] = []
        for partition, (message_set,) in parts:
            one = self._validate(partition, message_set)
            if isinstance(one.error, MessageSizeTooLargeError) and not is_publish:
                logger.warning("dropped a message set: %s", one.error)
                continue
            appends.append(one)
            if one.error is not None and not is_publish:
                break  # those behind it are not appended either
        try:
            for one in appends:
                if one.error is None:
                    self._write(one, flush_now=acks is Acks.COMMITTED)
                if one.error is not None and not is_publish:
                    raise one.error
        finally:
            self._metrics.produce.record(time.perf_counter() - started_s)
        return self._respond(
            acks, timeout_ms, appends, lambda: _encode(correlation_ids or (), appends)
        )

    def _validate(self, partition: TopicPartition, message_set: Buffer) -> _LogAppend:
        one = _LogAppend(partition, None)
        if partition.home not in (-1, self._broker_id):
            one.error = WrongPartitionError(f"broker {self._broker_id} does not lead {partition}")
            return one
        one.received_bytes = len(message_set)
        try:
            validate_topic_name(partition.topic, self._max_topic_name_length)
            one.valid = self._validator.validate(partition.topic, message_set)
        except ServerError as error:
            self._fail(one, error)
        return one

    def _write(self, one: _LogAppend, *, flush_now: bool) -> None:
        """Write validated messages to their log, or set the error."""
        assert one.valid is not None
        messages, message_count = one.valid
        topic, index = one.partition.topic, one.partition.index
        try:
            if one.log is None:
                if self._host.refuses_appends:
                    one.error = ShuttingDownError(f"broker {self._broker_id} is shutting down")
                    return
                if index == ANY_PARTITION:
                    index = random.randrange(self._logs.partition_count(topic))
                one.log = self._logs.get_or_create(topic, index)
            one.base_offset = one.log.append(messages, message_count, flush_now=flush_now)
        except ServerError as error:
            self._fail(one, error)
            return
        one.end_offset = one.base_offset + len(messages)
        counters = self._metrics.topics[topic]
        counters.messages_in += message_count
        counters.bytes_in += one.received_bytes
        one.valid = None  # the response may wait for long, and needs no messages
        one.sets.clear()

    def _fail(self, one: _LogAppend, error: ServerError) -> None:
        one.error = error
        topic, index = one.partition.topic, one.partition.index
        # A name without a log is not counted: every mistyped name would add counters.
        if self._logs.get(topic, max(index, 0)):
            self._metrics.topics[topic].failed_produce += max(1, len(one.sets))

    def _respond(
        self,
        acks: Acks,
        timeout_ms: int,
        appends: list[_LogAppend],
        encode: Callable[[], bytes],
    ) -> Response | None:
        """Return the response: now, when the writes are committed, or never, as `acks` says.

        A delayed response holds `encode`, which must not hold the messages.
        """
        if acks is Acks.NONE:
            return None
        if acks is Acks.WRITTEN:
            return Response(encode())

        def attempt(is_last: bool) -> list[Part] | None:
            if not is_last and any(one.is_pending for one in appends):
                return None
            for one in appends:
                one.end_wait()
            return [encode()]

        deadline_s = self._clock.monotonic_s() + max(timeout_ms, 0) / 1000
        logs = [one.log for one in appends if one.log is not None and one.error is None]
        return DelayedResponse(attempt, deadline_s, logs, awaits_flush=True)


_WrittenSet = tuple[TopicPartition, _LogAppend, int, list[int]]
"""Sets that follow each other: partition as named, write, position in it, size of each set."""


def _encode_single(correlation_ids: Sequence[int], parts: list[_WrittenSet]) -> bytes:
    """Return the responses to publishes of one set each, in order."""
    frames: list[bytes] = []
    ids = iter(correlation_ids)
    for partition, one, position, sizes in parts:
        if one.error is None and one.log is not None:
            encode = single_publish_response(one.log.partition).encode
            position += one.base_offset
            for size in sizes:
                frames.append(encode(next(ids), position))
                position += size
        else:
            body = encode_publish_response([one.result(partition)])
            frames += [encode_extension_response(next(ids), body) for _ in sizes]
    return b"".join(frames)


def _encode(correlation_ids: Sequence[int], appends: list[_LogAppend]) -> bytes:
    """Return the response to a publish of any number of sets."""
    body = encode_publish_response([one.result(one.partition) for one in appends])
    return encode_extension_response(correlation_ids[0], body)
