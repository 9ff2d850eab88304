"""Threads that fetch ahead for a group's streams: one thread and one connection for each broker.

The thread retries an unreachable broker, at its current address in ZooKeeper, until its partitions
are revoked.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.client.list_offsets import OffsetLister
from broker.consumer.chunk import Chunk
from broker.consumer.committer import AssignedPartition
from broker.consumer.fetcher import Fetcher
from broker.consumer.offset_store import UNREADABLE_OFFSET
from broker.consumer.stream import ConsumerStream
from broker.errors import (
    NO_ERROR,
    BrokerError,
    BrokerUnreachableError,
    InvalidPatternError,
    OffsetOutOfRangeError,
    PatternTooSlowError,
)
from broker.protocol.payload_filter import PayloadFilter
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S = 0.05
_ALL_PAUSED_WAIT_S = 1.0


class Feed(NamedTuple):
    """A partition to fetch, and the stream that gets the chunks."""

    assigned: AssignedPartition
    stream: ConsumerStream


class FetchSettings(NamedTuple):
    """Settings of the fetcher threads.

    `reset` is used where the group has no offset, `out_of_range_reset` where the offset is out of
    range: `smallest`, `largest`, or `fail` to raise an error in the application.
    """

    fetch_bytes: int
    max_wait_ms: int
    max_backoff_s: float
    reset: str
    out_of_range_reset: str
    payload_filter: PayloadFilter | None = None


class FetcherThread:
    """Fetches the assigned partitions of one broker, in a thread of its own."""

    def __init__(
        self, broker_id: int, cluster: Cluster, connect: Connect, settings: FetchSettings
    ) -> None:
        self._broker_id = broker_id
        self._cluster = cluster
        self._connect = connect
        self._settings = settings
        self._feeds: dict[TopicPartition, Feed] = {}
        self._wake = threading.Event()
        self._is_stopped = False
        self._fetcher: Fetcher | None = None
        self._reading: dict[TopicPartition, AssignedPartition] = {}
        self._paused: set[TopicPartition] = set()
        self._retry_at_s: dict[TopicPartition, float] = {}
        self._failure = ""
        self._backoff_s = _FIRST_BACKOFF_S
        self._thread = threading.Thread(
            target=self._run, name=f"group-fetcher-{broker_id}", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop, and interrupt its wait."""
        self._is_stopped = True
        self._wake.set()
        fetcher = self._fetcher
        if fetcher is not None:
            fetcher.interrupt()

    def join(self) -> None:
        """Wait for the thread's end."""
        self._thread.join()

    def set_feeds(self, feeds: Mapping[TopicPartition, Feed]) -> None:
        """Replace the partitions to fetch; partitions in both sets are not interrupted."""
        self._feeds = dict(feeds)
        self._wake.set()

    def wake(self) -> None:
        """Check again whether paused partitions can be resumed."""
        self._wake.set()

    def _run(self) -> None:
        while not self._is_stopped:
            try:
                self._step()
            except InvalidPatternError as error:
                for assigned, stream in self._feeds.values():
                    if not assigned.is_blocked:
                        self._block(assigned, stream, error)
            except BrokerError as error:
                self._note_failure(error)
            except Exception:
                logger.exception("failure in the fetcher of broker %d", self._broker_id)
                self._note_failure(BrokerError("unexpected failure"))
        self._drop_connection()

    def _step(self) -> None:
        """Update the fetcher's partitions, poll once, and deliver the chunks."""
        self._wake.clear()
        feeds = self._feeds
        if not feeds:
            self._drop_connection()
            self._wake.wait()
            return
        fetcher = self._fetcher or self._open()
        self._align(fetcher, feeds)
        chunks = fetcher.poll()
        if self._failure:
            logger.info("broker %d is being read again", self._broker_id)
        self._failure, self._backoff_s = "", _FIRST_BACKOFF_S
        for chunk in chunks:
            feed = feeds.get(chunk.partition)
            if feed is not None:
                self._deliver(fetcher, feed, chunk)
        if not chunks and self._paused.issuperset(self._reading):
            self._wake.wait(self._settings.max_backoff_s)

    def _open(self) -> Fetcher:
        """Connect to the broker at its address in ZooKeeper."""
        addresses = {address.id: address for address in self._cluster.brokers()}
        if self._broker_id not in addresses:
            raise BrokerUnreachableError("it is not in the registry")
        connection = self._connect(addresses[self._broker_id])
        self._reading.clear()
        self._paused.clear()
        self._fetcher = Fetcher(
            connection,
            {},
            fetch_bytes=self._settings.fetch_bytes,
            max_wait_ms=self._settings.max_wait_ms,
            retry_s=0,
            payload_filter=self._settings.payload_filter,
        )
        hello = connection.hello()
        if hello is not None and hello.broker_id != self._broker_id:
            raise BrokerUnreachableError(
                f"{connection.name} is not broker {self._broker_id} but {hello.broker_id}"
            )
        return self._fetcher

    def _align(self, fetcher: Fetcher, feeds: Mapping[TopicPartition, Feed]) -> None:
        """Start, stop, seek, pause and resume partitions as feeds and streams require."""
        for partition in self._reading.keys() - feeds.keys():
            fetcher.forget(partition)
            self._paused.discard(partition)
            del self._reading[partition]
        self._find_starts([feed for feed in feeds.values() if feed.assigned.fetch_offset is None])
        now_s = time.monotonic()
        for partition, (assigned, stream) in feeds.items():
            if assigned.seek_offset is not None:
                assigned.fetch_offset, assigned.seek_offset = assigned.seek_offset, None
                self._reading.pop(partition, None)
            is_due = self._retry_at_s.get(partition, 0.0) <= now_s
            if self._reading.get(partition) is not assigned and is_due and not assigned.is_blocked:
                assert assigned.fetch_offset is not None
                fetcher.seek(partition, assigned.fetch_offset)
                self._reading[partition] = assigned
                self._retry_at_s.pop(partition, None)
            self._pause_or_resume(fetcher, assigned, stream)

    def _pause_or_resume(
        self, fetcher: Fetcher, assigned: AssignedPartition, stream: ConsumerStream
    ) -> None:
        if assigned.is_blocked or stream.is_full:
            self._paused.add(assigned.partition)
            fetcher.pause(assigned.partition)
        elif assigned.partition in self._paused:
            self._paused.discard(assigned.partition)
            fetcher.resume(assigned.partition)

    def _find_starts(self, feeds: Sequence[Feed]) -> None:
        """List the reset offsets of partitions that have no offset."""
        if not feeds:
            return
        with OffsetLister(self._cluster, self._connect) as offsets:
            for assigned, stream in feeds:
                if self._settings.reset == "fail":
                    assigned.fetch_offset = -1
                    text = f"{assigned.partition} has no offset, and autooffset.reset is fail"
                    self._block(assigned, stream, OffsetOutOfRangeError(text))
                    continue
                is_earliest = self._settings.reset == "smallest"
                list_offset = offsets.earliest if is_earliest else offsets.latest
                offset = list_offset(assigned.partition)
                logger.info("%s has no offset: reading from %d on", assigned.partition, offset)
                self._restart(assigned, stream, offset)

    def _restart(self, assigned: AssignedPartition, stream: ConsumerStream, offset: int) -> None:
        assigned.fetch_offset = offset
        stream.put(assigned, offset)

    def _deliver(self, fetcher: Fetcher, feed: Feed, chunk: Chunk) -> None:
        assigned, stream = feed
        partition = assigned.partition
        if self._reading.get(partition) is not assigned or assigned.fetch_offset != chunk.offset:
            return  # it was requested in an earlier assignment of the partition
        if chunk.error == OffsetOutOfRangeError.code:
            self._reset(fetcher, feed, chunk)
        elif chunk.error == PatternTooSlowError.code:
            self._block(assigned, stream, chunk.failure())
        elif chunk.error != NO_ERROR:
            error = chunk.failure()
            logger.warning("%s (%s); trying again", error, type(error).__name__)
            del self._reading[partition]
            self._retry_at_s[partition] = time.monotonic() + self._settings.max_backoff_s
        elif (next_offset := chunk.next_offset) > chunk.offset:
            assigned.fetch_offset = next_offset
            stream.put(assigned, chunk)
            self._pause_or_resume(fetcher, assigned, stream)

    def _reset(self, fetcher: Fetcher, feed: Feed, chunk: Chunk) -> None:
        """Handle an offset that is out of range."""
        (assigned, stream), reset = feed, self._settings.out_of_range_reset
        with OffsetLister(self._cluster, self._connect) as offsets:
            ends = offsets.earliest(assigned.partition), offsets.latest(assigned.partition)
        problem = f"offset {chunk.offset} of {assigned.partition} is out of range"
        if chunk.offset == UNREADABLE_OFFSET:
            problem = f"the offset of {assigned.partition} is no number that a log can have"
        problem += f": {ends[0]} to {ends[1]} can be read"
        if reset == "fail":
            self._block(assigned, stream, OffsetOutOfRangeError(problem))
            return
        offset = ends[reset == "largest"]
        logger.warning("%s; going on at the %s, %d", problem, reset, offset)
        fetcher.seek(assigned.partition, offset)
        self._restart(assigned, stream, offset)

    def _block(
        self, assigned: AssignedPartition, stream: ConsumerStream, error: BrokerError
    ) -> None:
        assigned.is_blocked = True
        stream.put(assigned, error)

    def _note_failure(self, error: BrokerError) -> None:
        """Log the first of several failures, and wait before the next attempt."""
        self._drop_connection()
        if self._is_stopped:
            return
        if not self._failure:
            self._failure = str(error)
            logger.warning("cannot read from broker %d: %s; trying on", self._broker_id, error)
        self._wake.wait(self._backoff_s)
        self._backoff_s = min(self._backoff_s * 2, self._settings.max_backoff_s)

    def _drop_connection(self) -> None:
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            fetcher.close()


class FetcherPool:
    """The fetcher threads of all brokers that have assigned partitions.

    Args:
        make: makes the fetcher thread of a broker id.
    """

    def __init__(self, make: Callable[[int], FetcherThread]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._fetchers: dict[int, FetcherThread] = {}
        self._is_stopped = False

    def set_feeds(self, feeds: Collection[Feed]) -> None:
        """Replace the partitions to fetch; partitions in both sets are not interrupted."""
        by_broker: dict[int, dict[TopicPartition, Feed]] = {}
        for feed in feeds:
            partition = feed.assigned.partition
            by_broker.setdefault(partition.home, {})[partition] = feed
        with self._lock:
            if self._is_stopped:
                return
            idle = [self._fetchers.pop(one) for one in self._fetchers.keys() - by_broker.keys()]
            for broker_id, wanted in by_broker.items():
                if broker_id not in self._fetchers:
                    self._fetchers[broker_id] = self._make(broker_id)
                    self._fetchers[broker_id].start()
                self._fetchers[broker_id].set_feeds(wanted)
        _stop(idle)

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
        fetcher.join()
