"""Mirrors topics of one cluster into another until it is told to stop.

A group consumer reads message sets, mirror producers send them unchanged, and offsets are committed
in the source once the target has acknowledged. So nothing is lost if a mirror is killed; sets that
were in flight are sent again. Several mirrors of one group share the partitions.

`RouteLog` keeps the state of each route, from a source partition to its target partition.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import NamedTuple, Protocol, TypeVar

from broker import errors
from broker.client.cluster import Cluster, Connect, with_assigned
from broker.clock import Clock, SystemClock
from broker.consumer.committer import AssignedPartition
from broker.consumer.stream import ConsumerStream
from broker.producer.producer import Producer
from broker.protocol.codec import Fault, scan
from broker.protocol.message_set import count_messages, describe_fault, find_damage
from broker.threads import LoopThread
from broker.tools.mirror_producer import MirroredSet, MirrorProducer
from broker.tools.mirror_routes import counts_like, create_topic, place_by_order
from broker.topic import FORMAT_KAFKA, TopicPartition


@dataclass(frozen=True, slots=True)
class RouteStatus:
    """The state of a route, from a partition of the source to one of the target."""

    source: TopicPartition
    target: TopicPartition | None = None
    message_count: int = 0  # acknowledged by the target
    size_bytes: int = 0  # of these in a log
    next_offset: int | None = None  # in the source, after the last acknowledged message
    error_count: int = 0
    error: str = ""  # the last one
    error_ms: int | None = None  # its time, in milliseconds since 1970
    is_failing: bool = False  # nothing was acknowledged since the last error
    stuck_at: int | None = None  # offset of the corrupt message in the source that stops it
    corrupt_count: int = 0  # skipped corrupt messages


@dataclass(eq=False)
class RouteLog:
    """The state of all routes of a mirror. Safe for several threads."""

    clock: Clock
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _routes: dict[TopicPartition, RouteStatus] = field(default_factory=dict, init=False)

    def routes(self) -> list[RouteStatus]:
        """Return the known routes, by source."""
        with self._lock:
            return sorted(self._routes.values(), key=lambda route: route.source)

    def placed(self, source: TopicPartition, target: TopicPartition) -> None:
        """Record the target of a source partition."""
        with self._lock:
            self._routes[source] = replace(self._route(source), target=target)

    def acknowledged(self, mirrored: MirroredSet) -> None:
        """Record that the target has acknowledged a set."""
        with self._lock:
            route = self._route(mirrored.source)
            is_stuck = route.stuck_at is not None and mirrored.next_offset <= route.stuck_at
            self._routes[mirrored.source] = replace(
                route,
                target=mirrored.target,
                message_count=route.message_count + mirrored.message_count,
                size_bytes=route.size_bytes + len(mirrored.message_set),
                next_offset=mirrored.next_offset,
                is_failing=is_stuck,
                stuck_at=route.stuck_at if is_stuck else None,
            )

    def failed(self, sources: Iterable[TopicPartition], error: str) -> None:
        """Record an error, one sentence, for the partitions whose messages it stops."""
        now_ms = self.clock.time_ms()
        with self._lock:
            for source in sources:
                route = self._route(source)
                self._routes[source] = replace(
                    route,
                    error_count=route.error_count + 1,
                    error=error,
                    error_ms=now_ms,
                    is_failing=True,
                )

    def stuck(self, source: TopicPartition, offset: int, error: str) -> None:
        """Record a corrupt message in the source that stops all messages after it."""
        self.failed([source], error)
        with self._lock:
            self._routes[source] = replace(self._route(source), stuck_at=offset)

    def left_out(self, source: TopicPartition, error: str) -> None:
        """Record that a corrupt message was skipped, and that its partition continues."""
        self.failed([source], error)
        with self._lock:
            route = self._route(source)
            self._routes[source] = replace(
                route, is_failing=False, corrupt_count=route.corrupt_count + 1
            )

    def _route(self, source: TopicPartition) -> RouteStatus:
        """Return the state of a route; the caller holds the lock."""
        return self._routes.get(source) or RouteStatus(source)


T = TypeVar("T")

logger = logging.getLogger(__name__)

_POLL_S = 0.2
_TRY_AGAIN_S = 1.0
_GRACE_S = 1.0
"""Extra time for threads that give up in time to report why."""
_ACKNOWLEDGED_POLL_S = 0.02


class Consumer(Protocol):
    """The method of a `ConsumerConnector` that a mirror uses besides the streams."""

    def shutdown(self) -> None:
        """Leave the group, and commit finished messages."""


@dataclass(eq=False)
class Route:
    """Finds the target of each source partition, and keeps it. Safe for several threads.

    The n-th source partition, by home and index, goes to the n-th target partition; if the target
    topic has fewer, several sources share one. A missing topic is created with enough partitions.

    Args:
        source: the cluster that messages come from.
        target: the cluster they go to; safe for several threads if producers use it, too.
        connect: connects to a broker of the target.
        rename: returns the name of a topic in the target.
        is_read: returns whether a topic of the target is mirrored itself, which is possible if both
            clusters are one.
    """

    source: Cluster
    target: Cluster
    connect: Connect
    rename: Callable[[str], str]
    is_read: Callable[[str], bool] = field(default=lambda topic: False, kw_only=True)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # guards _targets
    _targets: dict[TopicPartition, TopicPartition] = field(default_factory=dict, init=False)

    def target_topic(self, topic: str) -> str:
        """Return the name of a topic in the target.

        Raises:
            InvalidTopicError: no topic can have that name.
            ConfigError: the topic would be mirrored again and again.
        """
        renamed = self.rename(topic)
        if self.is_read(renamed):
            raise errors.ConfigError(
                f"topic '{topic}' would go to '{renamed}' of the same cluster, which is mirrored "
                "as well"
            )
        return renamed

    def place(self, source: TopicPartition) -> TopicPartition:
        """Return the target partition for the messages of a partition.

        Raises:
            BrokerError: the target cannot be reached, or the topic cannot be created.
            ConfigError: as `target_topic`, or the topic is of the format kafka.
        """
        if source.format == FORMAT_KAFKA:
            raise errors.ConfigError(
                f"topic '{source.topic}' is of the format kafka, which a mirror does not carry"
            )
        with self._lock:
            target = self._targets.get(source)
            if target is None:
                self._targets = {**self._find(source), **self._targets}
                target = self._targets[source]
                logger.info("%s goes to %s", source, target)
            return target

    def _find(self, source: TopicPartition) -> dict[TopicPartition, TopicPartition]:
        topic = self.target_topic(source.topic)
        found = self.source.partitions(source.topic)
        sources = with_assigned(self.source, source.topic, [*found, source])
        targets = with_assigned(self.target, topic, self.target.partitions(topic))
        if not targets:
            broker_ids = [broker.id for broker in self.target.brokers()]
            if not broker_ids:
                raise errors.BrokerUnreachableError("the target cluster has no live broker")
            counts = counts_like(sources, broker_ids)
            targets = create_topic(self.target, self.connect, topic, counts)
        return place_by_order(sources, targets)


@dataclass(eq=False)
class Mirror:
    """Sends the messages of streams to another cluster.

    Args:
        consumer: owns the streams; it commits finished messages by itself, and its streams time out
            after a fraction of a second without messages. It is shut down at the end.
        streams: each is read on its own thread.
        make_producer: makes a producer with acks `COMMITTED` for each producer thread. The mirror
            ends at its delivery timeout, which therefore is usually `math.inf`.
        producer_count: number of producers; one sends all messages of a source partition.
        queue_size: maximum number of message sets that are queued for each producer.
        drain_s: how long to wait at the end for a target that does not respond.
        skips_corrupt: skip and count corrupt messages, instead of ending at the first.
    """

    consumer: Consumer
    streams: Sequence[ConsumerStream]
    route: Route
    make_producer: Callable[[], Producer]
    _: KW_ONLY
    producer_count: int = 1
    queue_size: int = 16
    drain_s: float = 10.0
    skips_corrupt: bool = False
    log: RouteLog = field(default_factory=lambda: RouteLog(SystemClock()))
    """The state of each route."""

    def __post_init__(self) -> None:
        self._give_up_s = float("inf")
        self._stopping = threading.Event()
        self._lock = threading.Lock()  # guards _failure, _queue_numbers and _in_flight
        self._failure: Exception | None = None
        self._queue_numbers: dict[TopicPartition, int] = {}
        self._in_flight: Counter[TopicPartition] = Counter()
        self._queues: list[queue.Queue[MirroredSet | None]] = [
            queue.Queue(self.queue_size) for _ in range(self.producer_count)
        ]
        self._readers = [
            LoopThread(partial(self._read, stream), name=f"mirror-{stream.name}")
            for stream in self.streams
        ]
        self._senders = [
            LoopThread(partial(self._send, waiting), name=f"mirror-producer-{number}")
            for number, waiting in enumerate(self._queues)
        ]

    @property
    def message_count(self) -> int:
        """Return the number of messages that the target has acknowledged."""
        return sum(route.message_count for route in self.log.routes())

    @property
    def size_bytes(self) -> int:
        """Return the size of these messages in a log."""
        return sum(route.size_bytes for route in self.log.routes())

    @property
    def corrupt_count(self) -> int:
        """Return the number of skipped corrupt messages."""
        return sum(route.corrupt_count for route in self.log.routes())

    def run(self, wait: Callable[[float], bool]) -> None:
        """Mirror until told to stop; then send messages that were read, commit, and leave.

        Args:
            wait: waits up to a number of seconds; returns True to stop.

        Raises:
            BrokerError: a message is corrupt and not to be skipped, the target refuses one, or
                messages could not be sent at the end. Offsets of acknowledged messages are
                committed anyway.
        """
        for thread in (*self._senders, *self._readers):
            thread.start()
        try:
            while not self._stopping.is_set() and not wait(_POLL_S):
                pass
        finally:
            self._stop()
        if self._failure is not None:
            raise self._failure

    def _stop(self) -> None:
        """Stop readers, then senders, then the consumer, so that queued message sets are sent."""
        self._give_up_s = time.monotonic() + self.drain_s
        self._stopping.set()
        for reader in self._readers:
            self._join(reader)
        for waiting, sender in zip(self._queues, self._senders, strict=True):
            while sender.is_alive():
                try:
                    waiting.put(None, timeout=_POLL_S)
                    break
                except queue.Full:
                    if time.monotonic() >= self._give_up_s + _GRACE_S:
                        break
            self._join(sender)
        self.consumer.shutdown()

    def _join(self, thread: threading.Thread) -> None:
        """Wait for the end of a thread; abandon one that a cluster delays for too long."""
        thread.join(max(0.0, self._give_up_s + _GRACE_S - time.monotonic()))
        if thread.is_alive():
            self._fail(
                errors.RequestTimeoutError(
                    f"{thread.name} had no answer {self.drain_s:g}s after the mirror was to stop; "
                    "what is not acknowledged comes again"
                )
            )

    def _fail(self, error: Exception) -> None:
        with self._lock:
            self._failure = self._failure or error
        self._stopping.set()

    def _read(self, stream: ConsumerStream) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    for assigned in stream.chunks():
                        self._take(stream, assigned)
                        if self._stopping.is_set():
                            return
                    return
                except errors.ConsumerTimeoutError:
                    continue
        except errors.BrokerError as error:
            self._fail(error)
        except Exception as error:  # after a bug, too, the mirror commits, and leaves the group
            logger.exception("failure in stream %s", stream.name)
            self._fail(error)

    def _take(self, stream: ConsumerStream, assigned: AssignedPartition) -> None:
        """Hand the whole entries of a chunk to a producer, and handle damage after them."""
        good = _good_part(assigned)
        message_set = assigned.data[: good.size_bytes]
        assigned.take(good.size_bytes, good.message_count)
        try:
            if good.size_bytes:
                self._pass_on(assigned, message_set, good)
        except errors.BrokerError as error:
            self.log.failed([assigned.partition], str(error))
            raise
        if good.problem:
            self._pass_over(stream, assigned, good.problem)

    def _pass_on(
        self, assigned: AssignedPartition, message_set: memoryview, good: _GoodPart
    ) -> None:
        """Hand entries, which `assigned` has passed already, to a producer."""
        source = assigned.partition
        target = self._insist(source, "no place for it", lambda: self.route.place(source))
        self.log.placed(source, target)

        def acknowledged(mirrored: MirroredSet, base_offset: int) -> None:
            assigned.finish(mirrored.next_offset)
            self.log.acknowledged(mirrored)
            with self._lock:
                self._in_flight[mirrored.source] -= 1

        facts = good.message_count, good.largest_bytes, assigned.offset
        self._put(MirroredSet(source, target, message_set, *facts, acknowledged))

    def _pass_over(self, stream: ConsumerStream, assigned: AssignedPartition, problem: str) -> None:
        """Skip the corrupt message that comes next, once all before it are acknowledged."""
        source, offset = assigned.partition, assigned.offset
        problem = f"{source}: {problem}"
        try:
            if not self.skips_corrupt:
                raise errors.InvalidMessageError(problem)
            # a skip also finishes all messages before it, so none of them may be in flight
            if not self._await_acknowledgement(source) or not assigned.finish(offset):
                return
            next_offset = self._insist(
                source, "no way past the damage", lambda: stream.skip_corrupt(source)
            )
        except errors.BrokerError as error:
            self.log.stuck(source, offset, str(error))
            raise
        if next_offset > offset:  # else the message is read again, or the partition was revoked
            logger.warning("%s; going on at %d", problem, next_offset)
            self.log.left_out(source, f"{problem}; went on at {next_offset}")

    def _await_acknowledgement(self, source: TopicPartition) -> bool:
        """Wait until no message of a partition is in flight; return False if the mirror stops."""
        while True:
            with self._lock:
                if not self._in_flight[source]:
                    return True
            if self._stopping.wait(_ACKNOWLEDGED_POLL_S):
                return False

    def _insist(self, source: TopicPartition, problem: str, action: Callable[[], T]) -> T:
        """Run an action, again while its errors are retriable and the mirror has time."""
        has_told = False
        while True:
            try:
                return action()
            except errors.BrokerError as error:
                if not error.is_retriable:
                    raise
                self.log.failed([source], str(error))
                if not has_told:
                    logger.warning("%s: %s: %s; trying on", source, problem, error)
                has_told = True
                if not self._has_time_after(_TRY_AGAIN_S):
                    raise

    def _put(self, mirrored: MirroredSet) -> None:
        with self._lock:
            number = self._queue_numbers.setdefault(
                mirrored.source, len(self._queue_numbers) % len(self._queues)
            )
            self._in_flight[mirrored.source] += 1
        while self._failure is None:
            try:
                self._queues[number].put(mirrored, timeout=_POLL_S)
                return
            except queue.Full:
                continue

    def _send(self, waiting: queue.Queue[MirroredSet | None]) -> None:
        told: tuple[object, ...] = ()

        def on_wait(error: errors.BrokerError) -> bool:
            nonlocal told
            # the same words about other sets are news: those before them were acknowledged
            if told != (news := (str(error), *producer.pending)):
                told = news
                self.log.failed(producer.pending_sources, str(error))
            return self._has_time()

        producer = MirrorProducer(self.make_producer(), on_wait=on_wait)
        try:
            while (mirrored := _next(waiting, producer)) is not None:
                producer.send(mirrored)
            producer.flush()
        except errors.BrokerError as error:
            self.log.failed(producer.pending_sources, str(error))
            self._fail(error)
        except Exception as error:  # as in streams
            logger.exception("failure in a producer of the mirror")
            self._fail(error)
        finally:
            producer.close()

    def _has_time(self) -> bool:
        """Return whether to wait longer for a cluster: at the end only for `drain_s`."""
        if not self._stopping.is_set():
            return True
        return self._failure is None and time.monotonic() < self._give_up_s

    def _has_time_after(self, seconds: float) -> bool:
        """Wait before another attempt; return False if there is to be none."""
        if self._stopping.wait(seconds) and self._has_time():
            time.sleep(min(seconds, _POLL_S))
        return self._has_time()


class _GoodPart(NamedTuple):
    """The entries of a chunk before the first one that is corrupt or partial."""

    size_bytes: int
    message_count: int
    largest_bytes: int  # of the payloads
    problem: str  # the damage after them; empty for none


def _good_part(reader: AssignedPartition) -> _GoodPart:
    found = scan(reader.data)
    try:
        count = count_messages(reader.data, found, reader.offset).message_count
    except errors.InvalidMessageError:
        damage = find_damage(reader.data, reader.offset)
        if damage is None:
            raise
        good = scan(reader.data[: damage.position])
        count = count_messages(reader.data, good).message_count
        return _GoodPart(damage.position, count, good.max_payload_bytes, damage.text)
    fault = found.fault
    if fault is Fault.PARTIAL:
        fault = Fault.SIZE if reader.ends_beyond_log(found.valid_bytes) else Fault.NONE
    problem = describe_fault(fault, reader.offset + found.valid_bytes) if fault else ""
    return _GoodPart(found.valid_bytes, count, found.max_payload_bytes, problem)


def _next(waiting: queue.Queue[MirroredSet | None], producer: MirrorProducer) -> MirroredSet | None:
    """Return the next set; while there is none, wait until those before it are acknowledged."""
    try:
        return waiting.get_nowait()
    except queue.Empty:
        producer.flush()
        return waiting.get()
