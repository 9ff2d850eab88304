"""Reading as a member of a consumer group, as stretches of whole messages.

What was written out and flushed is finished, and so committed; nothing else is. Where a run starts
is the group's stored offset, unless the user names another start and nobody else is in the group.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping

from broker.consumer.connector import ConsumerConnector
from broker.consumer.list_offsets import Positions
from broker.consumer.offset_store import OffsetStore, Position
from broker.consumer.stream import Chunk, ConsumerStream
from broker.errors import BrokerError, ConsumerTimeoutError, RegistryUnreachableError
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError
from pylogctl.cli.offset_resolution import MessagePosition
from pylogctl.consume.reading import Stretch


class StartElsewhere:
    """An offset store that names another start for each partition, the first time it is asked.

    A partition that comes back later in the same run goes on where it was committed.

    Args:
        store: where offsets are kept.
        start_of: the start of a partition; None for the one that is stored.
        is_kept: keep each start at once, so that the next run goes on from it even if this one
            finishes nothing.
    """

    def __init__(
        self,
        store: OffsetStore,
        start_of: Callable[[TopicPartition], Position | None],
        *,
        is_kept: bool,
    ) -> None:
        self._store = store
        self._start_of = start_of
        self._is_kept = is_kept
        self._started: set[TopicPartition] = set()
        self.failure: CliError | None = None
        """Why a partition has no start, for whoever reads: `load` runs in a thread of its own."""

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return where to go on, or where to start what was not started yet.

        Raises:
            BrokerError: the store failed, or a partition has no such start; see `failure`.
        """
        positions = self._store.load(partitions)
        fresh = set(partitions) - self._started
        try:
            found = {partition: self._start_of(partition) for partition in sorted(fresh)}
        except CliError as error:
            self.failure = error
            raise BrokerError(str(error)) from error
        starts = {partition: start for partition, start in found.items() if start is not None}
        if starts and self._is_kept:
            self._store.commit(starts)
        self._started |= fresh
        return positions | starts

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Have the store behind take note that a partition goes on elsewhere."""
        self._store.restart(partition, offset)

    def commit(self, positions: Mapping[TopicPartition, Position]) -> set[TopicPartition]:
        """Keep positions in the store behind."""
        return self._store.commit(positions)


class _ChunkPlace:
    """Where a chunk is from, and how much of it has been dealt with."""

    end: MessagePosition | None = None

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self.taken_bytes = 0

    @property
    def partition(self) -> TopicPartition:
        """Return which partition it is of."""
        return self._chunk.partition

    @property
    def offset(self) -> int:
        """Return where the next message starts."""
        return self._chunk.offset + self.taken_bytes

    def take(self, valid_bytes: int) -> None:
        """Note that entries of so many more bytes have been dealt with."""
        self.taken_bytes += valid_bytes

    def is_cut_for_good(self) -> bool:
        """Say whether the next entry claims to go on past all there is."""
        return self._chunk.is_cut_for_good(self.taken_bytes)


class GroupReading:
    """Reads what the group assigns to this member.

    Args:
        connector: has joined; its stream times out, so that ends and signals are looked at.
        stream: of the connector, the only one.
        ends: where to stop in each partition; None for never.
        positions: looks up where messages start.
        starts: fails the reading if a partition has no such start as was asked for.
        patience_s: how long a reading with ends goes on while the registry is away. One without
            ends waits for it.
    """

    def __init__(
        self,
        connector: ConsumerConnector,
        stream: ConsumerStream,
        ends: Mapping[TopicPartition, int] | None,
        positions: Positions,
        starts: StartElsewhere,
        *,
        patience_s: float,
    ) -> None:
        self._connector = connector
        self._stream = stream
        self._ends = ends
        self._positions = positions
        self._starts = starts
        self._patience_s = patience_s
        self._certain_at_s = time.monotonic()
        self._open: tuple[Chunk, _ChunkPlace] | None = None

    @property
    def partition_count(self) -> int:
        """Return how many partitions this member reads."""
        return len(self._connector.positions)

    def polls(self) -> Iterator[list[Stretch]]:
        """Give a chunk at a time, an empty list after a wait for nothing, until all is read.

        Every chunk must be dealt with, and settled, before the next poll.

        Raises:
            BrokerError: an offset is not there and no reset is configured.
            RegistryUnreachableError: the registry is away for too long.
            CliError: a partition has no such start as was asked for.
        """
        chunks = self._stream.chunks()
        while not self._is_done():
            self._check_progress()
            try:
                chunk = next(chunks)
            except ConsumerTimeoutError:
                chunks = self._stream.chunks()
                yield []
                continue
            except StopIteration:
                return
            place = _ChunkPlace(chunk)
            self._open = (chunk, place)
            yield [Stretch(place, chunk.offset, chunk.data, 0)]

    def settle(self) -> None:
        """Finish what was taken of the chunk given last: it may be committed now."""
        if self._open is not None:
            chunk, place = self._open
            self._open = None
            chunk.take(place.taken_bytes)
            chunk.finish(place.offset)

    def finish(self, next_offset: int) -> bool:
        """Finish the chunk given last up to an offset: it may be committed, and nothing behind it.

        Returns:
            False if the partition was given up meanwhile, and another member reads on.
        """
        return self._open is not None and self._open[0].finish(next_offset)

    def find_behind(self, partition: TopicPartition, offset: int) -> int | None:
        """Return where the next good message starts behind a damaged one, None if unknown."""
        return self._positions.behind_damage(partition, offset)

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
        """Go on in a partition, if it still is ours, at another offset; all before is finished."""
        self._stream.seek(partition, offset)

    def _check_progress(self) -> None:
        """Find out why nothing may come any more."""
        if self._starts.failure is not None:
            raise self._starts.failure
        now_s = time.monotonic()
        if self._connector.is_certain or self._ends is None:
            self._certain_at_s = now_s
        elif now_s - self._certain_at_s > self._patience_s:
            raise RegistryUnreachableError(
                f"the registry is away for {self._patience_s:g}s longer than the session lasts, "
                "and what this member owned may be read by others"
            )

    def _is_done(self) -> bool:
        """Say whether this member has its share, and all of that is read to its end."""
        if self._ends is None or not self._connector.await_assignment(0):
            return False
        beyond = []
        for partition, position in self._connector.positions.items():
            offset, end = 0 if position is None else position.offset, self._ends.get(partition, 0)
            if offset < end:
                return False
            if offset > end:
                beyond.append((partition, offset))
        # either the group has come further since, or what it had stored is out of range: then the
        # fetcher is about to move it, and all of the partition has yet to be read
        return all(offset <= self._positions.latest(partition) for partition, offset in beyond)
