"""Threads that fetch ahead for a group's streams: one or `count` for each broker.

Each has a connection of its own. It retries an unreachable broker, at its current address in
ZooKeeper, until its partitions are revoked, or other brokers lead them.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from typing import NamedTuple

from broker import deadlines, errors
from broker.client.cluster import Cluster, Connect, led_elsewhere
from broker.client.counts import ConsumerCounts, Ledger
from broker.client.read_replicas import ReadReplicas
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.chunk import Chunk
from broker.consumer.cluster_reader import WITHOUT_LEADER
from broker.consumer.committer import AssignedPartition
from broker.consumer.fetcher import Fetcher
from broker.consumer.offset_store import UNREADABLE_OFFSET
from broker.consumer.placement import Placement
from broker.consumer.stream import ConsumerStream
from broker.positions import Mark, OffsetRange, Position, resolve
from broker.protocol.client_requests import PayloadFilter
from broker.threads import StoppableThread
from broker.topic import MessagePosition, TopicPartition, share_of

logger = logging.getLogger(__name__)

_ALL_PAUSED_WAIT_S = 1.0
# for a new leader that does not know yet what is committed; afterwards other partitions are read
_LATEST_WAIT_S = 1.0
# of a start that no later attempt can find: the application is told
_NO_START = (errors.ArgumentError, errors.OffsetOutOfRangeError, errors.InvalidMessageError)


class Feed(NamedTuple):
    """A partition to fetch, and the stream that gets the chunks."""

    assigned: AssignedPartition
    stream: ConsumerStream


StartOf = Callable[[TopicPartition], Position]


class FetchSettings(NamedTuple):
    """Settings of the fetcher threads."""

    fetch_bytes: int
    max_wait_ms: int
    max_backoff_s: float
    start_of: StartOf | None  # of a partition without an offset; None: that is an error
    out_of_range_reset: str  # `smallest`, `largest`, or `fail`: an error
    payload_filter: PayloadFilter | None = None
    min_bytes: int = 1


OnMoved = Callable[[Collection[TopicPartition]], None]  # the partitions have another broker


@dataclass(eq=False, repr=False)
class FetcherThread(StoppableThread):
    """Fetches assigned partitions of one broker, all or a share.

    `is_current` returns whether a partition's topic has not been created again since it was
    assigned; `on_moved` is called by this thread alone, for its own partitions.
    """

    broker_id: int
    cluster: Cluster
    connect: Connect
    settings: FetchSettings
    is_current: Callable[[AssignedPartition], bool]
    on_moved: OnMoved
    replicas: InitVar[ReadReplicas | None] = None
    ledger: Ledger[ConsumerCounts] = field(default_factory=lambda: Ledger(ConsumerCounts))

    def __post_init__(self, replicas: ReadReplicas | None) -> None:
        super().__init__(f"group-fetcher-{self.broker_id}")
        self._replicas = replicas or ReadReplicas(self.cluster)
        self._seen_version = 0  # of `_replicas`
        self._feeds: dict[TopicPartition, Feed] = {}
        self._wake = threading.Event()
        self._fetcher: Fetcher | None = None
        self._reading: dict[TopicPartition, AssignedPartition] = {}
        self._paused: set[TopicPartition] = set()
        self._placement: Placement[int] = Placement(self.settings.max_backoff_s)
        self._refusals: dict[TopicPartition, str] = {}  # the last error of partitions
        self._deleted: set[TopicPartition] = set()  # their topics do not exist, says the broker
        self._failure = ""

    def stop(self) -> None:
        """Ask the thread to stop, and interrupt its wait."""
        super().stop()
        self._wake.set()
        fetcher = self._fetcher
        if fetcher is not None:
            fetcher.interrupt()

    def set_feeds(self, feeds: Mapping[TopicPartition, Feed]) -> None:
        """Replace the partitions to fetch; partitions in both sets are not interrupted."""
        self._feeds = dict(feeds)
        self._wake.set()

    def wake(self) -> None:
        """Check again whether paused partitions can be resumed."""
        self._wake.set()

    def _loop(self) -> None:
        """Fetch until the thread is stopped."""
        while not self._stopping.is_set():
            try:
                self._step()
            except errors.InvalidPatternError as error:
                for assigned, stream in self._feeds.values():
                    if not assigned.is_blocked:
                        self._block(assigned, stream, error)
            except errors.BrokerError as error:
                self._note_failure(error)
            except Exception:  # a bug must not end the reading of all partitions
                logger.exception("failure in the fetcher of broker %d", self.broker_id)
                self._note_failure(errors.BrokerError("unexpected failure"))
        self._drop_connection()

    def _step(self) -> None:
        """Update the fetcher's partitions, poll once, and deliver the chunks."""
        self._wake.clear()
        feeds = self._feeds
        if not feeds:
            self._drop_connection()
            self._wake.wait()
            return
        if self._has_moved(feeds):
            return
        fetcher = self._fetcher or self._open()
        self._align(fetcher, feeds)
        chunks = fetcher.poll()
        if self._failure:
            logger.info("broker %(peer)d is being read again", {"peer": self.broker_id})
        self._failure = ""
        self._placement.recover(self.broker_id)
        for chunk in chunks:
            feed = feeds.get(chunk.partition)
            if feed is not None:
                self._deliver(fetcher, feed, chunk)
        without_leader = {one.partition for one in chunks if one.error in WITHOUT_LEADER}
        if unled := [one for one in without_leader if self._placement.retry_at_s(one) is not None]:
            self._leave_moved(unled)
        if not chunks and self._paused.issuperset(self._reading):
            self._wake.wait(self._idle_s(feeds))

    def _idle_s(self, feeds: Mapping[TopicPartition, Feed]) -> float:
        """Return how long nothing is to be read, unless the feeds change."""
        retries_s = [
            retry_at_s
            for one, feed in feeds.items()
            if not feed.assigned.is_blocked
            and (retry_at_s := self._placement.retry_at_s(one)) is not None
        ]
        first_s = min(retries_s, default=math.inf) - time.monotonic()
        return max(0.0, min(first_s, self.settings.max_backoff_s))

    def _has_moved(self, feeds: Mapping[TopicPartition, Feed]) -> bool:
        """Give up partitions that another replica is chosen for; return whether there are any."""
        if not self._replicas.uses_followers:
            return False
        self._replicas.refresh_if_due({one.topic for one in feeds})
        if self._replicas.version == self._seen_version:
            return False
        self._seen_version = self._replicas.version
        moved = [one for one in feeds if self._replicas.broker_of(one) != self.broker_id]
        self._give_away(moved)
        return bool(moved)

    def _give_away(self, partitions: Collection[TopicPartition]) -> None:
        """Have partitions read at other brokers; chunks that still arrive here are dropped."""
        for partition in partitions:
            self._reading.pop(partition, None)
        if partitions:
            self.on_moved(partitions)

    def _open(self) -> Fetcher:
        """Connect to the broker at its address in ZooKeeper."""
        addresses = {address.id: address for address in self.cluster.brokers()}
        if self.broker_id not in addresses:
            raise errors.BrokerUnreachableError("it is not in the registry")
        connection = self.connect(addresses[self.broker_id])
        connection.retries_refused = False  # the attempts are made by this thread
        self._reading.clear()
        self._paused.clear()
        self._fetcher = Fetcher(
            {},
            connection,
            fetch_bytes=self.settings.fetch_bytes,
            max_wait_ms=self.settings.max_wait_ms,
            min_bytes=self.settings.min_bytes,
            payload_filter=self.settings.payload_filter,
            takes_followers=self._replicas.uses_followers,
            is_replaced=lambda: bool(self._moved(self._feeds)),
            ledger=self.ledger,
        )
        hello = connection.hello()
        if hello is not None and hello.broker_id != self.broker_id:
            raise errors.BrokerUnreachableError(
                f"{connection.name} is not broker {self.broker_id} but {hello.broker_id}"
            )
        return self._fetcher

    def _align(self, fetcher: Fetcher, feeds: Mapping[TopicPartition, Feed]) -> None:
        """Start, stop, seek, pause and resume partitions as feeds and streams require."""
        for partition in self._reading.keys() - feeds.keys():
            fetcher.forget(partition)
            self._paused.discard(partition)
            del self._reading[partition]
        now_s = time.monotonic()
        due = {one for one in feeds if (self._placement.retry_at_s(one) or 0.0) <= now_s}
        self._find_starts(
            [
                feeds[one]
                for one in due
                if feeds[one].assigned.fetch_offset is feeds[one].assigned.seek_offset is None
            ]
        )
        for partition, (assigned, stream) in feeds.items():
            if assigned.seek_offset is not None:
                assigned.fetch_offset, assigned.seek_offset = assigned.seek_offset, None
                self._reading.pop(partition, None)
            offset = assigned.fetch_offset
            is_idle = self._reading.get(partition) is not assigned and not assigned.is_blocked
            if is_idle and partition in due and offset is not None:
                if partition in self._deleted and not self.is_current(assigned):
                    # the offset is not of the new topic, which will be assigned anew
                    self._placement.postpone(partition, now_s + self.settings.max_backoff_s)
                    continue
                self._deleted.discard(partition)
                fetcher.seek(partition, offset)
                self._reading[partition] = assigned
                self._placement.attempt(partition)
            elif offset is not None and assigned.expected_end > offset:
                fetcher.expect(partition, assigned.expected_end)
            self._pause_or_resume(fetcher, assigned, stream)

    def _pause_or_resume(
        self, fetcher: Fetcher, assigned: AssignedPartition, stream: ConsumerStream
    ) -> None:
        if assigned.is_blocked or assigned.is_paused or stream.is_full:
            self._paused.add(assigned.partition)
            fetcher.pause(assigned.partition)
        elif assigned.partition in self._paused:
            self._paused.discard(assigned.partition)
            fetcher.resume(assigned.partition)

    def _find_starts(self, feeds: Sequence[Feed]) -> None:
        """Find where partitions start that have no offset."""
        if not feeds:
            return
        with self._list_offsets() as offsets:
            for assigned, stream in feeds:
                partition = assigned.partition
                try:
                    start = self._start_of(assigned, offsets)
                except _NO_START as error:
                    assigned.fetch_offset = -1
                    self._block(assigned, stream, error)
                    continue
                except errors.ServerError as error:
                    self._try_later(partition, error)
                    continue
                reason = "is new" if assigned.starts_at_beginning else "has no offset"
                logger.info("%s %s: reading from %d on", partition, reason, start.offset)
                assigned.fetch_offset = start.offset
                stream.put_start(assigned, start)

    def _start_of(self, assigned: AssignedPartition, offsets: BoundaryFinder) -> MessagePosition:
        partition, start_of = assigned.partition, self.settings.start_of
        start: Position = Mark.EARLIEST
        if not assigned.starts_at_beginning:
            if start_of is None:
                raise errors.OffsetOutOfRangeError(
                    f"{partition} has no offset, and autooffset.reset is fail"
                )
            start = start_of(partition)
        is_strict = self.settings.out_of_range_reset == "fail"
        wanted = OffsetRange(start, None)
        return resolve(wanted, partition, offsets, strict=is_strict, warn=logger.warning).start

    def _list_offsets(self) -> BoundaryFinder:
        return BoundaryFinder(self.cluster, self.connect, latest_wait_s=_LATEST_WAIT_S)

    def _try_later(self, partition: TopicPartition, error: errors.ServerError) -> None:
        """Stop reading a partition for a while after an error of its own; log it once."""
        text = f"{error} ({type(error).__name__})"
        if self._refusals.get(partition) != text:
            logger.warning("%s; trying again, others go on", text)
        self._refusals[partition] = text
        if isinstance(error, errors.UnknownTopicError):
            self._deleted.add(partition)
        self._placement.fail(partition, time.monotonic())
        self._reading.pop(partition, None)

    def _restart(self, assigned: AssignedPartition, stream: ConsumerStream, offset: int) -> None:
        assigned.fetch_offset = offset
        stream.put(assigned, MessagePosition(offset))

    def _deliver(self, fetcher: Fetcher, feed: Feed, chunk: Chunk) -> None:
        assigned, stream = feed
        partition = assigned.partition
        if self._reading.get(partition) is not assigned or assigned.fetch_offset != chunk.offset:
            return  # it was requested in an earlier assignment of the partition
        if chunk.error == errors.NO_ERROR:
            assigned.log_end = chunk.high_watermark
            if self._refusals.pop(partition, ""):
                self._placement.recover(partition)
                logger.warning("%s is being read again", partition)
        if chunk.error != errors.NO_ERROR and self._is_follower(partition):
            self._replicas.leave([partition])
            self._give_away([partition])  # the leader may not have this error
        elif chunk.error == errors.OffsetOutOfRangeError.code:
            self._reset(fetcher, feed, chunk)
        elif chunk.error == errors.NotLeaderError.code:
            self.cluster.note_leader(partition, chunk.high_watermark)
            if self.cluster.leader_id(partition) == self.broker_id:
                self._try_later(partition, chunk.failure())
            else:
                self._give_away([partition])
        elif chunk.error != errors.NO_ERROR:
            self._try_later(partition, chunk.failure())
        elif (next_offset := chunk.next_offset) > chunk.offset:
            assigned.fetch_offset = next_offset
            stream.put(assigned, chunk)
            self._pause_or_resume(fetcher, assigned, stream)

    def _is_follower(self, partition: TopicPartition) -> bool:
        """Return whether this broker does not lead a partition, by a new list of leaders."""
        if not self._replicas.uses_followers:
            return False
        leader = self.cluster.find_leaders([partition.topic]).get(partition)
        return leader is not None and leader != self.broker_id

    def _reset(self, fetcher: Fetcher, feed: Feed, chunk: Chunk) -> None:
        (assigned, stream), reset = feed, self.settings.out_of_range_reset
        try:
            with self._list_offsets() as offsets:
                start, end, _ = offsets.watermarks(assigned.partition)
        except errors.ServerError as error:
            self._try_later(assigned.partition, error)
            return
        if self._replicas.uses_followers and start <= chunk.offset <= end:
            self._try_later(assigned.partition, chunk.failure())  # out of range at a follower only
            return
        problem = f"offset {chunk.offset} of {assigned.partition} is out of range"
        if chunk.offset == UNREADABLE_OFFSET:
            problem = f"the offset of {assigned.partition} is no number that a log can have"
        problem += f": {start} to {end} can be read"
        if reset == "fail":
            self._block(assigned, stream, errors.OffsetOutOfRangeError(problem))
            return
        offset = end if reset == "largest" else start
        logger.warning("%s; going on at the %s, %d", problem, reset, offset)
        fetcher.seek(assigned.partition, offset)
        self._restart(assigned, stream, offset)

    def _block(
        self, assigned: AssignedPartition, stream: ConsumerStream, error: errors.BrokerError
    ) -> None:
        assigned.is_blocked = True
        stream.put(assigned, error)

    def _note_failure(self, error: errors.BrokerError) -> None:
        """Log the first of several failures, and wait before the next attempt."""
        self._drop_connection()
        if self._stopping.is_set():
            return
        if not self._failure:
            self._failure = str(error)
            values = {"peer": self.broker_id, "error": error}
            logger.warning("cannot read from broker %(peer)d: %(error)s; trying on", values)
        if isinstance(error, errors.BrokerUnreachableError | errors.RequestTimeoutError):
            self._leave_moved(self._feeds)
        self._wake.wait(self._placement.fail(self.broker_id, time.monotonic()))

    def _leave_moved(self, partitions: Collection[TopicPartition]) -> None:
        """Give up partitions that other brokers lead now."""
        self._replicas.leave(partitions)
        self._give_away(self._moved(partitions))

    def _moved(self, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions that other brokers lead now."""
        try:
            return list(led_elsewhere(self.cluster, partitions, self.broker_id))
        except errors.UNANSWERED as error:
            logger.warning("the leaders of partitions are unknown: %s; asking again", error)
            return []

    def _drop_connection(self) -> None:
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            fetcher.close()


@dataclass(eq=False, repr=False)
class FetcherPool:
    """The fetcher threads of all brokers that have assigned partitions, `count` for each broker.

    `make` makes a thread of a broker id, `broker_of` chooses the broker of a partition.
    """

    make: Callable[[int], FetcherThread]
    broker_of: Callable[[TopicPartition], int]
    _: KW_ONLY
    count: int = 1

    def __post_init__(self) -> None:
        self._feeds: dict[TopicPartition, Feed] = {}
        # Two fetchers must never have one partition, as each would continue where the other is. So
        # only the fetcher that has a partition gives it to another, between two polls.
        self._broker_ids: dict[TopicPartition, int] = {}
        self._lock = threading.Lock()
        self._fetchers: dict[tuple[int, int], FetcherThread] = {}
        self._is_stopped = False

    def set_feeds(self, feeds: Collection[Feed]) -> None:
        """Replace the partitions to fetch; partitions in both sets are not interrupted."""
        with self._lock:
            if self._is_stopped:
                return
            former, self._feeds = self._feeds, {one.assigned.partition: one for one in feeds}
            self._broker_ids = {
                partition: self._broker_ids[partition]
                if partition in former and former[partition].assigned is feed.assigned
                else self.broker_of(partition)
                for partition, feed in self._feeds.items()
            }
            busy = self._spread()
            idle = [self._fetchers.pop(one) for one in self._fetchers.keys() - busy]
        _stop(idle)

    def regroup(self, partitions: Collection[TopicPartition]) -> None:
        """Give partitions to the fetchers of other brokers; called by the one that has them."""
        with self._lock:
            if not self._is_stopped:
                for partition in self._feeds.keys() & set(partitions):
                    self._broker_ids[partition] = self.broker_of(partition)
                self._spread()

    def _spread(self) -> set[tuple[int, int]]:
        """Give each fetcher its partitions; return the keys of those that have some."""
        by_fetcher: dict[tuple[int, int], dict[TopicPartition, Feed]] = {}
        for partition, feed in self._feeds.items():
            key = self._broker_ids[partition], share_of(partition, self.count)
            by_fetcher.setdefault(key, {})[partition] = feed
        for key in by_fetcher.keys() - self._fetchers.keys():
            self._fetchers[key] = self.make(key[0])
            self._fetchers[key].start()
        for key, fetcher in self._fetchers.items():
            fetcher.set_feeds(by_fetcher.get(key, {}))
        return set(by_fetcher)

    def wake(self) -> None:
        """Make all fetchers check whether paused partitions can be resumed."""
        with self._lock:
            fetchers = list(self._fetchers.values())
        for fetcher in fetchers:
            fetcher.wake()

    def stop(self) -> None:
        """Stop all fetchers for good and wait for their end."""
        with self._lock:
            self._is_stopped = True
            fetchers = list(self._fetchers.values())
            self._fetchers.clear()
        _stop(fetchers)


def _stop(fetchers: Collection[FetcherThread]) -> None:
    for fetcher in fetchers:
        fetcher.stop()
    for fetcher in fetchers:
        fetcher.join(deadlines.join_s())
