"""Every append to a log: 0.7's produce and multiproduce, and our publish.

All of them arrive as `AppendRequest`. Requests of one set each that arrived together are grouped by
log and appended with one write for each log (`append_together`): a producer that sends message by
message would else cost a write, a flush and a response for each. Of Kafka topics each is written by
itself, as a batch may be one that the log has. If any of them is unusual or invalid, `append`
handles them one at a time, so that an invalid request is refused alone; if it is one of 0.7, its
connection is closed, as in 0.7.

An acknowledgement that waits for the commit is a delayed response, woken by the log. Committed
means flushed to this broker's disk, or on all in-sync replicas. A partition with replicas is
appended to only while this broker leads it; if it loses the lead before the commit, the producer
learns that the outcome is unknown.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field

from broker import errors
from broker.log.format import BATCHES
from broker.log.log import Log
from broker.protocol import responses
from broker.protocol.append_request import SMALL_BYTES, AppendRequest, AppendRequests
from broker.protocol.client_requests import Acks, PartitionSet, single_publish_response
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import INT32, Buffer
from broker.protocol.requests import ANY_PARTITION
from broker.replication.leader import Leader
from broker.server.requests import purgatory
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.client import ConnectedClient, Refusal, RefusedPartitions
from broker.server.requests.judge import Rights, limited_principal
from broker.server.requests.metrics import ProcessorMetrics
from broker.server.requests.validation import Validator, ValidMessages
from broker.topic import FORMAT_07, NO_HOME, TopicPartition, validate_topic_name

logger = logging.getLogger(__name__)


_BREAKS_ORDER = (
    errors.StorageError,
    errors.NotLeaderError,
    errors.LeaderNotAvailableError,
    errors.NotEnoughReplicasError,
    errors.SchemasUnavailableError,
)
"""After these errors a later set may be accepted: the disk has room, the broker leads, replicas are
in sync, or the registry of schemas can be asked again.
"""


@dataclass(eq=False, slots=True)
class _LogAppend:
    """One write of consecutive sets to a log, and its result."""

    partition: TopicPartition  # as the request names it
    log: Log | None  # if None, the write has to find or create it
    target: TopicPartition  # as the log names it; index -1 is chosen by the write
    sets: list[Buffer] = field(default_factory=list)  # joined, of each run
    stamp: ProducerStamp | None = None
    set_count: int = 0
    received_bytes: int = 0
    valid: ValidMessages | None = None
    topic_format: str = field(init=False)  # by which they are valid, if the write finds the log
    base_offset: int = -1
    end_offset: int = -1
    term: int = responses.NO_TERM
    needs_commit: bool = False
    leader: Leader | None = None
    """The term in which a replicated log was appended to."""
    error: errors.ServerError | None = None

    def _check_commit(self) -> bool:
        """Return whether the messages are as safe as the log's settings ask; may set `error`."""
        if self.leader is None:
            return self.log is not None and self.log.flushed_offset >= self.end_offset
        try:
            return self.leader.is_committed(self.end_offset)
        except errors.ServerError as error:
            self.error = error
            return False

    @property
    def awaits_commit(self) -> bool:
        """Return whether the messages are written and not committed yet, but still may be."""
        if self.error is not None or self.log is None or self.log.failure is not None:
            return False
        return not self._check_commit() and self.error is None

    def fail_unless_committed(self) -> None:
        """Set the error of a write that is not committed when its response is due."""
        if self.error is not None or self.log is None or self._check_commit():
            return
        if self.error is None:
            missing = "flushed" if self.leader is None else "on all in-sync replicas"
            self.error = self.log.failure or errors.RequestTimedOutError(
                f"{self.log.partition} is written up to {self.end_offset}, but not {missing} in "
                "time"
            )

    def result(self, partition: TopicPartition) -> responses.Published:
        """Return the result of the first set; it names the log's partition once written."""
        if self.log is not None and self.base_offset >= 0:
            partition = self.log.partition
        if self.error is not None:
            detail = errors.detail_of(self.error)
            return responses.Published(partition, self.error.code, detail, str(self.error))
        return responses.Published(partition, errors.NO_ERROR, self.base_offset, "", self.term)


@dataclass(eq=False, slots=True)
class ProduceHandler:
    """Appends message sets for the connections of one thread."""

    broker: BrokerParts
    metrics: ProcessorMetrics
    validator: Validator

    def append_together(
        self,
        request: AppendRequests,
        refused: RefusedPartitions,
        rights: Rights | None,
        *,
        is_one: bool,
    ) -> list[purgatory.Response] | None:
        """Append the sets of requests that arrived together, one write for each log.

        Return one response that stands for all, or none if the client expects none; None if nothing
        was done, as the requests have to be appended one at a time. A `ServerError` means that the
        disk refuses the sets of produce requests. `is_one`: it is a single request.
        """
        if self.broker.shutdown.refuses_appends:
            return None
        appends: dict[int, _LogAppend] = {}
        written: list[_WrittenSets] = []
        for partition, (_, _, ids, sizes, sets, are_whole) in request.runs:
            if is_one and len(sets) > SMALL_BYTES:
                return None
            log = self._find_ready(partition, refused, rights)
            if log is None:
                return None
            if log.format is BATCHES:  # each has an offset of its own, and a producer can repeat it
                if not request.is_publish:
                    return None
                for one in _each_alone(partition, log, ids, sizes, sets):
                    appends[id(one[1])] = one[1]
                    written.append(one)
                continue
            # an entry cut off at the end of one set must not be completed by the start of the next
            if not are_whole:
                return None
            log_append = appends.get(id(log))
            if log_append is None:
                log_append = appends[id(log)] = _LogAppend(partition, log, log.partition)
            written.append((partition, log_append, log_append.received_bytes, ids, sizes))
            log_append.sets.append(sets)
            log_append.set_count += len(sizes) // INT32.size
            log_append.received_bytes += len(sets)
        self.validator.begin_request()
        for log_append in appends.values():
            joined = log_append.sets[0] if len(log_append.sets) == 1 else b"".join(log_append.sets)
            if log_append.target.home == NO_HOME:
                count = self.validator.count_plain(joined)
            else:
                count = self.validator.validate_together(joined, log_append.set_count)
            if count is None:
                return None
            log_append.valid = joined, count
        for log_append in appends.values():
            self._write(log_append, refused, request.acks, is_publish=request.is_publish)
            if log_append.error is not None and not request.is_publish:
                raise log_append.error
        response = self._respond(
            request.acks,
            request.timeout_ms,
            list(appends.values()),
            lambda: _encode_single(written),
        )
        return [] if response is None else [response]

    def _find_ready(
        self, partition: TopicPartition, refused: RefusedPartitions, rights: Rights | None
    ) -> Log | None:
        """Return the log for requests that arrived together; None if `append` has to look."""
        broker = self.broker
        contracts = broker.guard.contracts
        if contracts and partition.topic in contracts:
            return None
        # before the log is looked for: the time must not tell of a hidden topic
        if rights is not None and not rights.allows(partition.topic):
            return None
        if partition.home in (NO_HOME, broker.config.broker_id):
            log = broker.logs.table.get(partition.topic, partition.index)
        else:
            log = broker.logs.table.find(partition)
        if log is None or (log.is_replicated and not broker.replicas.leads(log.partition)):
            return None
        if log.format is BATCHES and partition.home != NO_HOME:
            return None
        return None if refused and log.partition in refused else log

    def append(
        self, request: AppendRequest, client: ConnectedClient, rights: Rights | None
    ) -> purgatory.Response | Future[purgatory.Response | None] | None:
        """Append the sets of one request, each with a write of its own.

        None if the client expects no response. Sets of 0.7's requests for partitions that another
        broker leads are forwarded to it: no later request of the connection may be handled before
        that future is done. A `ServerError` means that a set of one of 0.7's requests is refused:
        the sets before it are appended, those behind it are not. After a
        `ValidationBudgetExceededError` nothing was appended; a worker must do it.
        """
        correlation_id, acks, timeout_ms, sets = request
        is_publish, refused = correlation_id is not None, client.refused
        if self.broker.shutdown.refuses_appends and not is_publish:
            raise errors.ShuttingDownError("the broker is shutting down")
        self.validator.begin_request()
        appends: list[_LogAppend] = []
        forwarded: list[PartitionSet] = []
        for partition, message_set, stamp in sets:
            if error := self._refusal(partition.topic, rights):
                log_append = _LogAppend(partition, None, partition)
                log_append.set_count, log_append.error = 1, error
            else:
                if not is_publish and self._has_replicas(partition.topic):
                    partition = self._at_home(partition)
                log_append = self._validate(partition, message_set, refused, is_publish=is_publish)
                if stamp is not None and log_append.error is None:
                    self._take_stamp(log_append, stamp)
                if log_append.error is None and not is_publish:  # which creates none
                    log_append.error = self._excess(partition.topic, client, rights)
            if isinstance(log_append.error, errors.MessageSizeTooLargeError) and not is_publish:
                logger.warning("dropped a message set: %s", log_append.error)
                self._count_errors([log_append])
                continue
            if log_append.error is None and not is_publish and self._is_led_elsewhere(partition):
                forwarded.append(PartitionSet(partition, bytes(message_set)))
                continue
            appends.append(log_append)
            if log_append.error is not None and not is_publish:
                break  # those behind it are not appended either
        refusal: errors.ServerError | None = None
        for log_append in appends:
            if log_append.error is None:
                self._write(log_append, refused, acks, is_publish=is_publish)
            if log_append.error is not None and not is_publish:
                refusal = log_append.error
                break
        if forwarded:
            return self.broker.forwarder.produce(forwarded, refusal)
        if refusal is not None:
            raise refusal
        return self._respond(
            acks, timeout_ms, appends, lambda: _encode(correlation_id or 0, appends)
        )

    def _refusal(self, topic: str, rights: Rights | None) -> errors.ServerError | None:
        """Return why a client has no right to append to a topic, or to make it by that."""
        if rights is None:
            return None
        if (refusal := rights.refusal(topic)) is not None or self._exists(topic):
            return refusal
        return self.broker.creations.refusal(topic, rights)

    def _exists(self, topic: str) -> bool:
        return topic in self.broker.logs.topics or topic in self.broker.replicas.topics

    def _excess(
        self, topic: str, client: ConnectedClient, rights: Rights | None
    ) -> errors.ServerError | None:
        """Return why a client may not make a topic now, if it would by a message of 0.7."""
        if self._exists(topic):
            return None
        return self.broker.creations.excess(topic, limited_principal(client, rights))

    def _at_home(self, partition: TopicPartition) -> TopicPartition:
        """Return the partition that a request of 0.7 means, of a topic with replicas."""
        index = partition.index
        if index == ANY_PARTITION:
            index = self.broker.logs.table.choose_partition(partition.topic)
        return self.broker.at_home(partition.topic, index)

    def _is_led_elsewhere(self, partition: TopicPartition) -> bool:
        """Return whether another broker than this home leads a partition, or none at present."""
        return self._has_replicas(partition.topic) and not self.broker.replicas.leads(partition)

    def _has_replicas(self, topic: str) -> bool:
        """Return whether other brokers take part in an append: replicas, or a new topic's homes."""
        return topic in self.broker.replicas.topics or self.broker.creations.needs_cluster(topic)

    def _validate(
        self,
        partition: TopicPartition,
        message_set: Buffer,
        refused: RefusedPartitions,
        *,
        is_publish: bool,
    ) -> _LogAppend:
        topic, at_home = partition.topic, self.broker.at_home(partition.topic, partition.index)
        target = at_home if partition.home == NO_HOME else partition
        log_append = _LogAppend(partition, None, target)
        log_append.set_count = 1
        if target != at_home:
            log_append.log = self.broker.logs.table.find(partition)
            if log_append.log is None:
                log_append.error = self.broker.replicas.not_led(partition)
                _note_refused(partition, log_append.error, refused)
                return log_append
        log_append.received_bytes = len(message_set)
        try:
            validate_topic_name(topic, self.broker.config.max_topic_name_length)
            topic_format = target.format
            is_unnamed = partition.home == NO_HOME and partition.index != ANY_PARTITION
            if is_unnamed and topic_format == FORMAT_07 and topic in self.broker.replicas.topics:
                # raises: a broker that has just started may not know yet that it is of Kafka's
                self.broker.replicas.find_served(target)
            if not self._exists(topic):
                if is_publish:
                    self._get_or_create(target, is_publish=True)  # raises: there is no topic
                topic_format = self.broker.logs.settings.format_of_new()
            log_append.topic_format = topic_format
            valid = log_append.valid = self.validator.validate(topic, message_set, topic_format)
            is_worker = self.validator.turn_bytes is None
            self.broker.guard.check(topic, valid, topic_format, is_worker=is_worker)
        except errors.ServerError as error:
            self.validator.refused["schema"] += isinstance(error, errors.SchemaMismatchError)
            _note_refused(target, error, refused)
            self._fail(log_append, error)
        return log_append

    def _take_stamp(self, log_append: _LogAppend, stamp: ProducerStamp) -> None:
        """Have a valid set appended unless the log has it, or set why it cannot be."""
        assert log_append.valid is not None
        if log_append.target.has_records:
            text = f"{log_append.target}: batches have their sequences themselves"
            self._fail(log_append, errors.WrongFormatError(text))
        elif log_append.target.index == ANY_PARTITION:
            text = f"topic '{log_append.target.topic}': sequences are those of one partition"
            self._fail(log_append, errors.InvalidRequestError(text))
        else:
            log_append.stamp = stamp._replace(message_count=log_append.valid[1])

    def _write(
        self, log_append: _LogAppend, refused: RefusedPartitions, acks: Acks, *, is_publish: bool
    ) -> None:
        assert log_append.valid is not None
        messages, message_count = log_append.valid
        partition = log_append.target
        topic = partition.topic
        try:
            log = log_append.log
            if log is None:
                if self.broker.shutdown.refuses_appends:
                    log_append.error = errors.ShuttingDownError(
                        f"broker {self.broker.config.broker_id} is shutting down"
                    )
                    return
                if partition.index == ANY_PARTITION:
                    index = self.broker.logs.table.choose_partition(topic)
                    partition = partition._replace(index=index)
                log = self._get_or_create(partition, is_publish=is_publish)
                if log.format.name != log_append.topic_format:
                    raise errors.WrongFormatError(
                        f"topic '{topic}' was just made in format {log.format.name}: the messages "
                        f"are of format {log_append.topic_format}"
                    )
                log_append.log = log
            if refused and (earlier := refused.get(log.partition)) is not None:
                raise earlier.again()
            needs_commit = acks is Acks.COMMITTED or (acks is Acks.AUTO and log.is_replicated)
            log_append.needs_commit = needs_commit
            if log.is_replicated:
                log_append.leader = self.broker.replicas.leader_of(log.partition)
                log_append.leader.check_append(needs_commit=needs_commit)
                log_append.term = log_append.leader.term
            else:
                log_append.term = log.incarnations.term
            appended = log.append(
                messages, message_count, flush_now=needs_commit, stamp=log_append.stamp
            )
            log_append.base_offset, log_append.end_offset = appended
        except errors.ServerError as error:
            _note_refused(partition, error, refused)
            self._fail(log_append, error)
            return
        counters = self.metrics.topics[topic]
        counters.messages_in += message_count
        counters.bytes_in += log_append.received_bytes
        log_append.valid = None  # the response may wait for long, and needs no messages
        log_append.sets.clear()

    def _get_or_create(self, partition: TopicPartition, *, is_publish: bool) -> Log:
        log = self.broker.logs.table.find(partition)
        if log is None:
            topic = partition.topic
            # raises NotLeaderError if the partition has its replicas on other brokers
            self.broker.replicas.find_served(partition)
            if topic not in self.broker.logs.topics:
                if is_publish:  # its clients ask for a topic first, and know a deleted one by this
                    raise self.broker.creations.absence(topic)
                self.broker.creations.validate_allowed(topic)
            log = self.broker.logs.creation.get_or_create(topic, partition.index)
        return log

    def _fail(self, log_append: _LogAppend, error: errors.ServerError) -> None:
        log_append.error = error
        topic, _, index = partition = log_append.target
        # A name without a log is not counted: every mistyped name would add counters.
        if self.broker.logs.table.find(partition._replace(index=max(index, 0))):
            self.metrics.topics[topic].failed_produce += log_append.set_count

    def _count_errors(self, appends: Iterable[_LogAppend]) -> None:
        for one in appends:
            if one.error is not None:
                self.metrics.errors.note(
                    purgatory.RequestGroup.PRODUCE, one.error.code, one.set_count
                )

    def _respond(
        self, acks: Acks, timeout_ms: int, appends: list[_LogAppend], encode: Callable[[], bytes]
    ) -> purgatory.Response | None:
        """Return the response: now, when the writes are committed, or never, as `acks` says."""
        if acks is Acks.NONE:
            self._count_errors(appends)
            return None
        waiting = [one for one in appends if one.needs_commit]
        if not waiting:
            self._count_errors(appends)
            return purgatory.Response(encode())

        def attempt(is_last: bool) -> list[purgatory.Part] | None:
            if not is_last and any(log_append.awaits_commit for log_append in waiting):
                return None
            for log_append in waiting:
                log_append.fail_unless_committed()
            self._count_errors(appends)
            return [encode()]

        deadline_s = self.broker.clock.monotonic_s() + max(timeout_ms, 0) / 1000
        logs = dict.fromkeys(  # each once, however many sets were appended to it
            log_append.log
            for log_append in waiting
            if log_append.log is not None and log_append.error is None
        )
        awaits_flush = not any(log.is_replicated for log in logs)
        # it holds `encode`, which must not hold the messages
        return purgatory.DelayedResponse(
            attempt,
            deadline_s,
            list(logs),
            awaits_flush=awaits_flush,
            kind=purgatory.DelayKind.PUBLISH,
        )


def _note_refused(
    partition: TopicPartition, error: errors.ServerError, refused: RefusedPartitions
) -> None:
    if isinstance(error, _BREAKS_ORDER) and partition not in refused:
        refused[partition] = Refusal(error.code, str(error), errors.detail_of(error))


_WrittenSets = tuple[TopicPartition, _LogAppend, int, bytes, bytes]
"""Consecutive sets: partition as named, write, position in it, correlation ids and sizes."""


def _each_alone(
    partition: TopicPartition, log: Log, ids: bytes, sizes: bytes, sets: Buffer
) -> Iterator[_WrittenSets]:
    """Yield each of consecutive sets with a write of its own."""
    start = 0
    for at, (size,) in enumerate(INT32.iter_unpack(sizes)):
        log_append = _LogAppend(partition, log, log.partition)
        log_append.sets.append(memoryview(sets)[start : start + size])
        log_append.set_count, log_append.received_bytes = 1, size
        start += size
        number = slice(at * INT32.size, (at + 1) * INT32.size)
        yield partition, log_append, 0, ids[number], sizes[number]


def _encode_single(parts: list[_WrittenSets]) -> bytes:
    """Return the responses to publishes of one set each, in order."""
    frames: list[bytes] = []
    for partition, log_append, position, ids, sizes in parts:
        if log_append.error is None and log_append.log is not None:
            response = single_publish_response(log_append.log.partition)
            offset = log_append.base_offset + position
            frames.append(response.encode(ids, sizes, offset, log_append.term))
        else:
            body = responses.encode_publish_response([log_append.result(partition)])
            for (correlation_id,) in INT32.iter_unpack(ids):
                frames.append(responses.encode_extension_response(correlation_id, body))
    return b"".join(frames)


def _encode(correlation_id: int, appends: list[_LogAppend]) -> bytes:
    body = responses.encode_publish_response(
        [log_append.result(log_append.partition) for log_append in appends]
    )
    return responses.encode_extension_response(correlation_id, body)
