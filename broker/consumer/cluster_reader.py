"""Reads partitions of a cluster from a start to an end, or forever.

One fetcher is polled in the calling thread; several are polled by a thread each, which put chunks
into a bounded queue.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import partial
from typing import Protocol

from broker import deadlines, errors
from broker.client import backoff
from broker.client.cluster import BRIEFLY_S, Cluster, Connect, led_elsewhere, locked
from broker.client.counts import ConsumerCounts, ConsumerLedger
from broker.client.damage import DamagedReads
from broker.client.list_offsets import DEFAULT_LEADER_WAIT_S, OffsetLister
from broker.client.read_replicas import LEADER, ReadReplicas
from broker.closing import SelfClosing
from broker.consumer.chunk import Chunk
from broker.consumer.fetch_session import DEFAULT_FETCH_BYTES, DEFAULT_MAX_WAIT_MS
from broker.consumer.fetcher import Fetcher
from broker.consumer.partition_reader import PartitionReader
from broker.consumer.placement import Placement
from broker.protocol.client_requests import DigestLogRequest, PayloadFilter
from broker.protocol.responses import BrokerAddress
from broker.threads import start_once
from broker.topic import ReadRange, TopicPartition, share_of

logger = logging.getLogger(__name__)

_QUEUED_POLLS = 4
_QUEUE_WAIT_S = 0.1
_LEAST_LOOK_S = 0.5  # for new leaders, however long the lost broker was waited for
# of a broker that does not lead a partition, or was not told yet that it does
WITHOUT_LEADER = (errors.NotLeaderError.code, errors.LeaderNotAvailableError.code)


class Arrivals(Protocol):
    """See `broker/consumer/arrivals.py`, which imports this module."""

    @property
    def are_due(self) -> bool:
        """Return whether it is time for the next look."""

    def look(self) -> Mapping[TopicPartition, ReadRange | None]:
        """Return what to read of which partitions from now on; None to go on where reading was."""

    def wait_for(self, partitions: Iterable[TopicPartition], cause: object) -> None:
        """Give partitions again once they can be read."""


@dataclass(eq=False, repr=False)
class _Source:
    """A fetcher of partitions at one broker, and the thread that polls it, if there is one."""

    fetcher: Fetcher
    broker_id: int
    wait_s: float  # before the next poll

    def __post_init__(self) -> None:
        self.thread: threading.Thread | None = None
        self.asked_s = 0.0  # when the last poll began
        self._calls: deque[Callable[[], None]] = deque()

    def call(self, action: Callable[[], None]) -> None:
        """Change the fetcher in the thread that polls it, before the next poll."""
        if self.thread is None:
            action()
        else:
            self._calls.append(action)

    def make_calls(self) -> None:
        """Make the calls that are due; for the thread, or once it has ended."""
        while self._calls:
            self._calls.popleft()()

    def poll(self) -> list[Chunk] | errors.BrokerError:
        """Return the next chunks, or why there are none."""
        self.asked_s = time.monotonic()
        try:
            return self.fetcher.poll()
        except errors.BrokerError as error:
            return error


@dataclass(eq=False, repr=False)
class ClusterReader(SelfClosing):
    """Reads partitions until all have reached their end; a context manager.

    Args:
        cluster: finds the broker of each partition.
        connect: makes connections.
        ranges: to read, by partition.
        fetch_bytes: per partition and request.
        max_wait_ms: how long a broker may delay a response of fewer than `min_bytes`.
        fetcher_count: threads that share the partitions of a broker.
        payload_filter: chooses messages; a wrapper is read whole if one of its messages matches.
        read_from: chooses replicas; see `ReadReplicas`.
        leader_wait_s: how long to wait for a lost broker, or for a new leader of its partitions.
        ledger: gets the counts of this object, and shows its partitions.
        arrivals: gives partitions that are to be read as well. Those of a lost broker are then
            waited for, as long as others are read.
    """

    cluster: Cluster
    connect: Connect
    ranges: InitVar[Mapping[TopicPartition, ReadRange]]
    _: KW_ONLY
    fetch_bytes: int = DEFAULT_FETCH_BYTES
    max_wait_ms: int = DEFAULT_MAX_WAIT_MS
    min_bytes: int = 1
    fetcher_count: int = 1
    payload_filter: PayloadFilter | None = None
    read_from: str = LEADER
    leader_wait_s: float = DEFAULT_LEADER_WAIT_S
    ledger: ConsumerLedger = field(default_factory=ConsumerLedger)
    arrivals: Arrivals | None = None

    def __post_init__(self, ranges: Mapping[TopicPartition, ReadRange]) -> None:
        self.cluster = locked(self.cluster)  # the threads of fetchers ask it who leads
        self._replicas = ReadReplicas(self.cluster, self.read_from)
        self._topics = sorted({one.topic for one in ranges})
        self._readers = {
            partition: PartitionReader(partition, start, end)
            for partition, (start, end) in ranges.items()
        }
        self._make_fetcher = partial(
            Fetcher,
            fetch_bytes=self.fetch_bytes,
            max_wait_ms=self.max_wait_ms,
            min_bytes=self.min_bytes,
            payload_filter=self.payload_filter,
            takes_followers=self._replicas.uses_followers,
            ledger=self.ledger,
        )
        self._damaged_reads = DamagedReads(self.leader_wait_s)
        self._sources: list[_Source] = []
        self._placement: Placement[_Source] = Placement()
        self._seen_version = 0  # of `_replicas`
        self._queue: queue.Queue[tuple[_Source, list[Chunk] | errors.BrokerError]] = queue.Queue(
            _QUEUED_POLLS
        )
        self._stopped = threading.Event()
        self._has_threads = False
        self.give_up_s: float | None = None
        """When a poll stops waiting for chunks, on the monotonic clock; None: when brokers do."""
        self.in_turns = False
        """Whether a poll without chunks gives the turn to the caller; see `broker.api.reader`."""
        # whether the last poll was answered without a chunk: by a 0.7 broker at the end of its log
        self.is_at_end_of_07 = False
        self._replicas.refresh_if_due(self._topics)
        self._seen_version = self._replicas.version
        for broker_id, offsets in self._offsets_by_fetcher(self.fetcher_count):
            self._open_first(broker_id, offsets)
        self._counts = self.ledger.show(self._readers)

    def close(self) -> None:
        """End the reading, and close the connections."""
        self._stopped.set()
        if self._has_threads:
            for source in self._sources:
                source.fetcher.interrupt()
        with deadlines.Limit(BRIEFLY_S):  # a thread may be asking brokers that hang who leads
            for source in self._sources:
                if source.thread is not None:
                    source.thread.join(deadlines.left_s())
        for source in self._sources:
            source.fetcher.close()
        self.ledger.hide(self._readers, self._counts)

    def interrupt(self) -> None:
        """End the reading, in any thread: a poll that waits returns, and there are no more."""
        self._stopped.set()
        for source in list(self._sources):
            source.fetcher.interrupt()

    @property
    def partition_count(self) -> int:
        """Return how many partitions are read."""
        return len(self._readers)

    @property
    def left_bytes(self) -> int | None:
        """Return the bytes up to the ends of all partitions; None if one has no end."""
        left = 0
        for one in self._readers.values():
            if one.end is None:
                return None
            left += max(0, one.end.offset - one.offset)
        return left

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Give the partitions with new data until all are read; an empty list after an empty poll.

        The data must be decoded, and `take` called, before the next poll.
        """
        while not (self._stopped.is_set() or all(one.is_done for one in self._readers.values())):
            self._choose_again()
            self._add_arrivals()
            for chunks in _one_per_partition(self._next_chunks()):
                ready = {
                    chunk.partition: self._readers[chunk.partition]
                    for chunk in chunks
                    if self._add(chunk)
                }
                yield list(ready.values())
                for reader in ready.values():
                    self._request_rest(reader)

    def _add_arrivals(self) -> None:
        """Read partitions that have come, and those whose brokers are back."""
        if self.arrivals is None or not self.arrivals.are_due:
            return
        found = self.arrivals.look()
        readers = new_readers(found, self._counts)
        self._readers.update(readers)
        self._topics = sorted({*self._topics, *(one.topic for one in readers)})
        active = {
            source.broker_id: source
            for one, source in self._placement.server_of.items()
            if not self._readers[one].is_done
        }
        for one in found:
            source = active.get(self.cluster.leader_id(one))
            if source is not None:
                self._placement.server_of[one] = source
                source.call(partial(source.fetcher.seek, one, self._readers[one].offset))
                continue
            try:
                self._read_at_leader([one])
            except errors.BrokerUnreachableError as error:
                self.arrivals.wait_for([one], error)
            else:
                source = self._placement.server_of[one]
                active[source.broker_id] = source

    def _wait_for(self, partitions: Sequence[TopicPartition], cause: object) -> bool:
        """Leave partitions until their broker is back; return False if no others are read."""
        if self.arrivals is None or len(self._placement.server_of) <= len(partitions):
            return False
        for one in partitions:
            del self._placement.server_of[one]
            self._placement.recover(one)
            self._readers[one].drop_data()
        self.arrivals.wait_for(partitions, cause)
        return True

    def _request_rest(self, reader: PartitionReader) -> None:
        """Request the rest of a message of which a part has arrived, at once; none at the end."""
        partition, end = reader.partition, reader.expected_end
        source = self._placement.server_of.get(partition)
        if source is None:  # it is waited for
            return
        if reader.is_done:
            source.call(partial(source.fetcher.forget, partition))
        elif not partition.has_records and end > reader.offset + len(reader.data):
            source.call(partial(source.fetcher.expect, partition, end))

    def seek(self, partition: TopicPartition, offset: int, inner: int = 0) -> None:
        """Continue in a partition at another offset, or inside the wrapper there."""
        source = self._placement.server_of.get(partition)
        # the thread of a fetcher ends once all of its partitions are read
        has_thread = not self._has_threads or any(
            one is source and not self._readers[other].is_done
            for other, one in self._placement.server_of.items()
        )
        self._readers[partition].restart_at(offset, inner)
        if source is not None and has_thread:
            source.call(partial(source.fetcher.seek, partition, offset))
            self._request_rest(self._readers[partition])
        elif source is None and self.arrivals is not None:
            return  # it is waited for
        elif not self._readers[partition].is_done:
            self._read_at_leader([partition])

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the offset of the next good message behind a corrupt one; None if unknown."""
        # the same offset means that the message is to be read again; see `OffsetLister`
        self._tell_follower(partition, offset)
        with OffsetLister(self.cluster, self.connect, damaged_reads=self._damaged_reads) as offsets:
            return offsets.next_good_message(partition, offset)

    def _tell_follower(self, partition: TopicPartition, offset: int) -> None:
        """Report a damaged message to the follower that sent it, which is then not read again."""
        broker_id = self._placement.server_of[partition].broker_id
        if not self._replicas.uses_followers or broker_id == self.cluster.leader_id(partition):
            return
        with (
            suppress(errors.BrokerError),  # the leader has the message as well
            closing(self.connect(self.cluster.address(broker_id))) as connection,
        ):
            connection.call(DigestLogRequest(partition, offset, 1))

    def _offsets_by_fetcher(self, count: int) -> list[tuple[int, dict[TopicPartition, int]]]:
        """Return broker and starting offsets for each fetcher, `count` of them for a broker."""
        shares: dict[tuple[int, int], dict[TopicPartition, int]] = {}
        for partition, reader in self._readers.items():
            if not reader.is_done:
                key = self._replicas.broker_of(partition), share_of(partition, count)
                shares.setdefault(key, {})[partition] = reader.offset
        return [(broker_id, offsets) for (broker_id, _), offsets in shares.items()]

    def _open_first(self, broker_id: int, offsets: Mapping[TopicPartition, int]) -> None:
        """Open the first fetcher of partitions."""
        if all(self.cluster.leader_id(one) == broker_id for one in offsets):
            self._open(offsets)
            return
        try:
            self._open(offsets, self.cluster.address(broker_id))
        except errors.BrokerUnreachableError:
            for partition in offsets:
                self._read_at_leader([partition])

    def _choose_again(self) -> None:
        """Move partitions to other replicas, after the set of in-sync replicas was refreshed."""
        self._replicas.refresh_if_due(self._topics)
        if self._replicas.version == self._seen_version:
            return
        self._seen_version = self._replicas.version
        moving: dict[int, list[TopicPartition]] = {}
        for partition, reader in self._readers.items():
            broker_id = self._replicas.broker_of(partition)
            source = self._placement.server_of.get(partition)  # none if it is waited for
            if not reader.is_done and source is not None and broker_id != source.broker_id:
                moving.setdefault(broker_id, []).append(partition)
        for broker_id, partitions in moving.items():
            former = [(one, self._placement.server_of[one]) for one in partitions]
            try:
                self._read_at(partitions, self.cluster.address(broker_id))
            except errors.BrokerUnreachableError:
                self._replicas.leave(partitions)  # their present fetchers keep them
                continue
            for partition, source in former:
                source.call(partial(source.fetcher.forget, partition))
        self._drop_unused()

    def _drop_unused(self) -> None:
        """Close fetchers that have no partitions, once their threads have ended."""
        used = set(self._placement.server_of.values())
        for source in [one for one in self._sources if one not in used]:
            if source.thread is None or not source.thread.is_alive():
                self._close(source)

    def _close(self, source: _Source) -> None:
        self._sources.remove(source)
        self._placement.recover(source)
        source.fetcher.close()

    def _follow(self, chunk: Chunk) -> None:
        """Read a partition at its leader, as the broker asked is not, or does not know it yet."""
        partition, now_s = chunk.partition, time.monotonic()
        give_up_s = self._placement.failing_since_s(partition, now_s) + self.leader_wait_s
        if now_s > give_up_s:
            if not self._wait_for([partition], "no leader"):
                raise chunk.failure()  # no leader was found in time
            self._drop_unused()
            return
        wait_s = self._placement.fail(partition, now_s)
        if chunk.error == errors.NotLeaderError.code:
            self.cluster.note_leader(partition, chunk.high_watermark)
        waits_s = backoff.waits_s()
        while not self._stopped.is_set():
            try:
                self._read_at_leader([partition], wait_s)
                break
            except errors.BrokerUnreachableError:
                # the broker that named this leader does not know yet that it is gone
                if time.monotonic() > give_up_s:
                    if self._wait_for([partition], "no leader"):
                        break
                    raise
            with suppress(*errors.UNANSWERED):
                self.cluster.find_leaders([partition.topic])
            deadlines.sleep(next(waits_s))
        self._drop_unused()

    def _read_at_leader(self, partitions: Sequence[TopicPartition], wait_s: float = 0.0) -> None:
        """Read partitions, which no fetcher has, at the broker that leads them all."""
        self._replicas.leave(partitions)
        self._read_at(partitions, self.cluster.leader(partitions[0]), wait_s)

    def _read_at(
        self, partitions: Sequence[TopicPartition], address: BrokerAddress, wait_s: float = 0.0
    ) -> None:
        # a further fetcher for these partitions alone, as leaders move seldom
        offsets = {one: self._readers[one].offset for one in partitions}
        source = self._open(offsets, address, wait_s)
        for one in partitions:
            self._readers[one].drop_data()
        if self._has_threads:
            self._start_thread(source)

    def _open(
        self,
        offsets: Mapping[TopicPartition, int],
        address: BrokerAddress | None = None,
        wait_s: float = 0.0,
    ) -> _Source:
        """Open a fetcher of partitions at these offsets, by default at the leader of them all."""
        if address is None:
            address = self.cluster.leader(next(iter(offsets)))
            connection = self.connect(address)
        else:
            connection = self.connect(address)
            connection.retries_refused = False  # it is no broker that may be starting
        fetcher = self._make_fetcher(
            offsets, connection, is_replaced=lambda: self._is_replaced(source)
        )
        source: _Source = _Source(fetcher, address.id, wait_s)
        self._sources.append(source)
        self._placement.server_of.update(dict.fromkeys(offsets, source))
        return source

    def _handle_loss(self, source: _Source, error: errors.BrokerError) -> None:
        """Read partitions of a lost broker at their new leaders; retry the others there."""
        # the fetcher's thread, if it has one, has ended: its calls are made here
        if not error.is_retriable:
            raise error
        source.wait_s = self._placement.fail(source, time.monotonic(), since_s=source.asked_s)
        give_up_s = self._placement.failing_since_s(source, 0.0) + self.leader_wait_s
        source.make_calls()
        # if leaders stay unknown, they are requested again after the next attempt
        with (
            suppress(*errors.UNANSWERED),
            deadlines.Limit(max(give_up_s - time.monotonic(), _LEAST_LOOK_S)),
        ):
            self._leave(source)
        left = source.fetcher.partitions
        is_late = time.monotonic() >= give_up_s
        if not left or (is_late and self._wait_for(left, error)):
            self._close(source)
            return
        if is_late:
            raise error
        if self._has_threads:
            self._start_thread(source)

    def _leave(self, source: _Source) -> None:
        """Read partitions elsewhere that the broker of a fetcher does not lead any more."""
        fetcher = source.fetcher
        moved: dict[int, list[TopicPartition]] = {}
        led = led_elsewhere(self.cluster, fetcher.partitions, source.broker_id)
        for partition, leader in led.items():
            moved.setdefault(leader, []).append(partition)
        for partitions in moved.values():
            self._read_at_leader(partitions)
            for partition in partitions:
                fetcher.forget(partition)

    def _is_replaced(self, source: _Source) -> bool:
        """Return whether other brokers lead partitions of a fetcher now; in its thread."""
        with suppress(*errors.UNANSWERED):
            return bool(led_elsewhere(self.cluster, source.fetcher.partitions, source.broker_id))
        return False

    def _add(self, chunk: Chunk) -> bool:
        reader = self._readers[chunk.partition]
        if reader.is_done:  # it was requested ahead, or again from another broker
            self._request_rest(reader)
            return False
        if chunk.error in WITHOUT_LEADER or self._may_differ_at_leader(chunk):
            self._follow(chunk)
            return False
        if chunk.error != errors.NO_ERROR:
            raise failure_of(chunk)
        self._placement.recover(chunk.partition)  # if empty too: its broker leads, perhaps for long
        reader.log_end = chunk.high_watermark
        return reader.add(chunk)

    def _may_differ_at_leader(self, chunk: Chunk) -> bool:
        """Return whether an error is that of a follower, so that the leader must be asked."""
        if chunk.error == errors.NO_ERROR or not self._replicas.uses_followers:
            return False
        if chunk.error == errors.OffsetNotAvailableError.code:
            return True
        # listed anew, as the broker may have led the partition when it was chosen
        leaders: Mapping[TopicPartition, int] = {}
        with suppress(*errors.UNANSWERED):
            leaders = self.cluster.find_leaders([chunk.partition.topic])
        broker_id = self._placement.server_of[chunk.partition].broker_id
        return leaders.get(chunk.partition) != broker_id

    def _next_chunks(self) -> list[Chunk]:
        self.is_at_end_of_07 = False
        give_up_s = self.give_up_s
        if len(self._sources) == 1 and not self._has_threads and give_up_s is None:
            source = self._sources[0]
            if source.wait_s:
                deadlines.sleep(source.wait_s)
                source.wait_s = 0.0
            found = source.poll()
        else:
            if not self._has_threads:
                self._has_threads = True
                for source in self._sources:
                    self._start_thread(source)
            wait_s = max(self.max_wait_ms / 1000, _QUEUE_WAIT_S)
            if give_up_s is not None:
                wait_s = min(wait_s, max(0.0, give_up_s - time.monotonic()))
            try:
                source, found = self._queue.get(timeout=wait_s)
            except queue.Empty:
                return []
        if self._stopped.is_set() or source not in self._sources:
            return []  # other fetchers have its partitions
        if isinstance(found, errors.BrokerError):
            self._handle_loss(source, found)
            return []
        self._placement.recover(source)
        self.is_at_end_of_07 = not found
        return [
            chunk for chunk in found if self._placement.server_of.get(chunk.partition) is source
        ]

    def _start_thread(self, source: _Source) -> None:
        fetch = partial(self._fetch, source)
        source.thread = start_once(fetch, name=f"fetcher-{source.broker_id}")

    def _fetch(self, source: _Source) -> None:
        """Poll one broker and queue the chunks, until a poll fails; runs in a thread."""
        self._stopped.wait(source.wait_s)
        while not self._stopped.is_set() and source.fetcher.partitions:
            try:
                source.make_calls()
                found = source.poll()
            except Exception as error:  # a bug, which the reader is told of
                logger.exception("fetching from broker %s failed", source.broker_id)
                found = errors.BrokerError(f"failure while fetching: {error!r}")
            while not self._stopped.is_set():
                try:
                    self._queue.put((source, found), timeout=_QUEUE_WAIT_S)
                    break
                except queue.Full:
                    continue
            if isinstance(found, errors.BrokerError):
                return


def new_readers(
    found: Mapping[TopicPartition, ReadRange | None], counts: ConsumerCounts
) -> dict[TopicPartition, PartitionReader]:
    """Return a reader for each range; none for a partition that has one."""
    readers = {one: PartitionReader(one, *wanted) for one, wanted in found.items() if wanted}
    for one, reader in readers.items():
        reader.counts = counts.of(one.topic)
    return readers


def failure_of(chunk: Chunk) -> errors.BrokerError:
    """Return the exception for a chunk that has an error."""
    if chunk.error == errors.OffsetOutOfRangeError.code:
        return errors.OffsetOutOfRangeError(
            f"{chunk.partition}: {chunk.offset} is out of range: the log now starts at "
            f"{chunk.log_start_offset}; retention removed what was to be read"
        )
    return chunk.failure()


def _one_per_partition(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Give chunks in groups with at most one chunk with data of each partition, its last one."""
    # a chunk must be decoded before the next one of its partition is added
    group: list[Chunk] = []
    filled: set[TopicPartition] = set()
    for chunk in chunks:
        if chunk.partition in filled:
            yield group
            group, filled = [], set()
        group.append(chunk)
        if len(chunk.data):
            filled.add(chunk.partition)
    yield group
