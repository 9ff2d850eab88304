"""Reads partitions of a cluster from a start to an end, or for ever.

One broker is polled in the calling thread; several are polled by a thread each, which put chunks
into a bounded queue.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from broker.client.cluster import Cluster, Connect
from broker.client.list_offsets import OffsetLister
from broker.consumer.chunk import Chunk
from broker.consumer.fetcher import DEFAULT_FETCH_BYTES, DEFAULT_MAX_WAIT_MS, Fetcher
from broker.consumer.partition_reader import PartitionReader
from broker.errors import NO_ERROR, BrokerError, OffsetOutOfRangeError
from broker.protocol.payload_filter import PayloadFilter
from broker.topic import ReadRange, TopicPartition

_QUEUED_POLLS = 4
_QUEUE_WAIT_S = 0.1


class ClusterReader:
    """Reads partitions until all have reached their end; a context manager.

    Args:
        cluster: finds the broker of each partition.
        connect: makes connections.
        ranges: to read, by partition.
        fetch_bytes: per partition and request.
        max_wait_ms: how long a broker may wait for new messages.
        payload_filter: which messages to read; a compressed set is read whole if one of its
            messages matches.
    """

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        ranges: Mapping[TopicPartition, ReadRange],
        *,
        fetch_bytes: int = DEFAULT_FETCH_BYTES,
        max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
        payload_filter: PayloadFilter | None = None,
    ) -> None:
        self._cluster = cluster
        self._connect = connect
        self._readers = {
            partition: PartitionReader(partition, start, end)
            for partition, (start, end) in ranges.items()
        }
        self._max_wait_ms = max_wait_ms
        self._fetchers = [
            Fetcher(
                connect(cluster.leader(next(iter(offsets)))),
                offsets,
                fetch_bytes=fetch_bytes,
                max_wait_ms=max_wait_ms,
                payload_filter=payload_filter,
            )
            for offsets in self._offsets_by_broker()
        ]
        # calls to make in a fetcher's own thread, before its next poll
        self._calls: dict[Fetcher, deque[Callable[[], None]]] = {
            fetcher: deque() for fetcher in self._fetchers
        }
        self._queue: queue.Queue[list[Chunk] | Exception] = queue.Queue(_QUEUED_POLLS)
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> ClusterReader:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        for fetcher in self._fetchers:
            fetcher.close()

    @property
    def partition_count(self) -> int:
        """Return how many partitions are read."""
        return len(self._readers)

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Give the partitions with new data until all are read; an empty list after an empty poll.

        The data must be decoded, and `take` called, before the next poll.

        Raises:
            OffsetOutOfRangeError: retention removed messages that were to be read.
            InvalidMessageError: a message is corrupt where a filter skipped messages.
            BrokerError: a broker is gone for good or responds with an error.
        """
        while not all(one.is_done for one in self._readers.values()):
            for chunks in _one_per_partition(self._next_chunks()):
                ready = {
                    chunk.partition: self._readers[chunk.partition]
                    for chunk in chunks
                    if self._add(chunk)
                }
                yield list(ready.values())
            for fetcher in self._fetchers:
                for partition in fetcher.partitions:
                    if self._readers[partition].is_done:
                        self._call(fetcher, partial(fetcher.forget, partition))

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Continue in a partition at another offset."""
        self._readers[partition].restart_at(offset)
        for fetcher in self._fetchers:
            if partition in fetcher.partitions:
                self._call(fetcher, partial(fetcher.seek, partition, offset))

    def next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        """Return the offset of the next good message behind a corrupt one; None if unknown."""
        with OffsetLister(self._cluster, self._connect) as offsets:
            return offsets.next_good_message(partition, offset)

    def _offsets_by_broker(self) -> list[dict[TopicPartition, int]]:
        """Return the starting offsets by home broker, without partitions that are done already."""
        homes: dict[int, dict[TopicPartition, int]] = {}
        for partition, reader in self._readers.items():
            if not reader.is_done:
                homes.setdefault(partition.home, {})[partition] = reader.offset
        return list(homes.values())

    def _add(self, chunk: Chunk) -> bool:
        if chunk.error == OffsetOutOfRangeError.code:
            raise OffsetOutOfRangeError(
                f"{chunk.partition}: {chunk.offset} is out of range: the log now starts at "
                f"{chunk.log_start_offset}; retention removed what was to be read"
            )
        if chunk.error != NO_ERROR:
            raise chunk.failure()
        return self._readers[chunk.partition].add(chunk)

    def _call(self, fetcher: Fetcher, action: Callable[[], None]) -> None:
        """Change a fetcher in the thread that polls it."""
        if self._threads:
            self._calls[fetcher].append(action)
        else:
            action()

    def _next_chunks(self) -> list[Chunk]:
        if len(self._fetchers) == 1:
            return self._fetchers[0].poll()
        if not self._threads:
            for number, fetcher in enumerate(self._fetchers):
                thread = threading.Thread(
                    target=self._fetch, args=(fetcher,), name=f"fetcher-{number}", daemon=True
                )
                thread.start()
                self._threads.append(thread)
        try:
            found = self._queue.get(timeout=max(self._max_wait_ms / 1000, _QUEUE_WAIT_S))
        except queue.Empty:
            return []
        if isinstance(found, Exception):
            raise found
        return found

    def _fetch(self, fetcher: Fetcher) -> None:
        """Poll one broker and queue the chunks; runs in a thread."""
        calls = self._calls[fetcher]
        while not self._stopped.is_set() and fetcher.partitions:
            while calls:
                calls.popleft()()
            try:
                found: list[Chunk] | Exception = fetcher.poll()
            except BrokerError as error:
                found = error
            while not self._stopped.is_set():
                try:
                    self._queue.put(found, timeout=_QUEUE_WAIT_S)
                    break
                except queue.Full:
                    continue
            if isinstance(found, Exception):
                return


def _one_per_partition(chunks: Sequence[Chunk]) -> Iterator[list[Chunk]]:
    """Give chunks in groups with at most one chunk with data of each partition, its last one.

    A chunk must be decoded before the next one of its partition is added.
    """
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
