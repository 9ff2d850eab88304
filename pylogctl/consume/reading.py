"""Reading partitions from a start to an end, or for ever, as stretches of whole messages.

Knows brokers and offsets; what becomes of the messages is for others. One broker is read on the
calling thread; several are read by a thread each, with a bounded queue between.

Whole messages out of the stretches that a reading gives, and what counts as damage.

Knows the codec and cursors; what the messages are wanted for is for others.
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple, Protocol

from broker.client.cluster import Cluster, Connect
from broker.consumer.chunk import MessageStream, Piece
from broker.consumer.fetcher import Fetcher
from broker.consumer.list_offsets import Positions
from broker.errors import (
    NO_ERROR,
    BrokerError,
    InvalidFetchSizeError,
    InvalidMessageError,
    OffsetOutOfRangeError,
)
from broker.protocol.codec import Fault, scan
from broker.protocol.message_set import raise_fault, slice_messages
from broker.protocol.payload_filter import PayloadFilter
from broker.topic import TopicPartition
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.offset_resolution import MessagePosition, ResolvedRange

_QUEUED_POLLS = 4
_QUEUE_WAIT_S = 0.1


class Stretch(NamedTuple):
    """Bytes of one partition that start on a message and may end inside one.

    `view` does not reach past the end that was asked for, unless that lies inside a compressed
    set; it is empty where a filter has left out what was there. `skip` is how many messages of the
    first entry come before the start that was asked for.
    """

    cursor: Place
    offset: int
    view: memoryview
    skip: int


class Place(Protocol):
    """Where a stretch is from, and how much of it has been dealt with."""

    @property
    def partition(self) -> TopicPartition:
        """Return which partition it is of."""

    @property
    def offset(self) -> int:
        """Return where the next message starts."""

    @property
    def end(self) -> MessagePosition | None:
        """Return where reading stops, None for never."""

    def take(self, valid_bytes: int) -> None:
        """Note that entries of so many more bytes have been dealt with."""

    def is_cut_for_good(self) -> bool:
        """Say whether the next entry, which seems to go on, cannot."""


class Source(Protocol):
    """Where stretches come from."""

    @property
    def partition_count(self) -> int:
        """Return how many partitions are read."""

    def polls(self) -> Iterator[list[Stretch]]:
        """Give what has come, an empty list after a wait for nothing, until all is read."""

    def settle(self) -> None:
        """Note that all that was taken so far is written where it had to go."""

    def finish(self, next_offset: int) -> bool:
        """Note that everything before an offset of the stretch given last is dealt with.

        Returns:
            False if what follows is for another process to deal with.
        """

    def find_behind(self, partition: TopicPartition, offset: int) -> int | None:
        """Return where the next good message starts behind a damaged one, None if unknown."""

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
        """Go on in a partition at another offset; all before it is settled."""


class Cursor:
    """How far one partition has been read.

    Args:
        partition: which.
        wanted: where to start and to end.
    """

    def __init__(self, partition: TopicPartition, wanted: ResolvedRange) -> None:
        self.partition = partition
        self.end = wanted.end
        self._skip = wanted.start.inner
        self._stream = MessageStream(wanted.start.offset)

    @property
    def offset(self) -> int:
        """Return where the next message starts."""
        return self._stream.offset

    @property
    def is_done(self) -> bool:
        """Say whether the end is reached."""
        if self.end is None:
            return False
        return self.offset > self.end.offset - (not self.end.inner)

    def add(self, piece: Piece) -> Stretch | None:
        """Put new bytes behind those left; None if they do not reach past the end of a message.

        Raises:
            InvalidMessageError: the bytes left are the start of a message that does not go on.
        """
        is_next = piece.offset == self.offset + len(self._stream.add(b""))
        if self.is_done or piece.next_offset == piece.offset or not is_next:
            return None
        if piece.is_skip:
            self._stream.skip_to(piece.next_offset)
            self._skip = 0
            return Stretch(self, self.offset, memoryview(b""), 0)
        view = self._stream.add(piece.data, piece.high_watermark)
        if self.end is not None and not self.end.inner:
            view = view[: self.end.offset - self.offset]
        return Stretch(self, self.offset, view, self._skip)

    def take(self, valid_bytes: int) -> None:
        """Note that entries of so many bytes have been dealt with."""
        self._stream.take(valid_bytes)
        if valid_bytes:
            self._skip = 0

    def is_cut_for_good(self) -> bool:
        """Say whether the next entry claims to go on past all there is."""
        return self._stream.is_cut_for_good()

    def restart_at(self, offset: int) -> None:
        """Go on at another offset, where a message starts."""
        self._stream = MessageStream(offset)
        self._skip = 0


class Reading:
    """Reads partitions until all have reached their end; ends with its block.

    Args:
        cluster: tells which broker has which partition.
        connect: makes connections.
        ranges: what to read of each partition.
        fetch_bytes: per partition and request.
        max_wait_ms: how long a broker may wait for new messages.
        payload_filter: leave out messages that it does not want, but not those in a compressed
            set with others that it wants.
    """

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        ranges: Mapping[TopicPartition, ResolvedRange],
        *,
        fetch_bytes: int,
        max_wait_ms: int,
        payload_filter: PayloadFilter | None = None,
    ) -> None:
        self._cluster = cluster
        self._connect = connect
        self.cursors = {one: Cursor(one, wanted) for one, wanted in ranges.items()}
        self._max_wait_ms = max_wait_ms
        self._fetchers = []
        for positions in _by_home(self.cursors):
            self._fetchers.append(
                Fetcher(
                    connect(cluster.leader(next(iter(positions)))),
                    positions,
                    fetch_bytes=fetch_bytes,
                    max_wait_ms=max_wait_ms,
                    payload_filter=payload_filter,
                )
            )
        self._orders: dict[Fetcher, deque[Callable[[], None]]] = {
            fetcher: deque() for fetcher in self._fetchers
        }
        self._queue: queue.Queue[list[Piece] | Exception] = queue.Queue(_QUEUED_POLLS)
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Reading:
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
        return len(self.cursors)

    def settle(self) -> None:
        """Do nothing: what is read here is remembered nowhere."""

    def finish(self, next_offset: int) -> bool:
        """Return True: nobody else takes over what is read here."""
        return True

    def find_behind(self, partition: TopicPartition, offset: int) -> int | None:
        """Return where the next good message starts behind a damaged one, None if unknown."""
        with Positions(self._cluster, self._connect) as positions:
            return positions.behind_damage(partition, offset)

    def skip_to(self, partition: TopicPartition, offset: int) -> None:
        """Go on in a partition at another offset."""
        self.cursors[partition].restart_at(offset)
        for fetcher in self._fetchers:
            if partition in fetcher.partitions:
                self._tell(fetcher, partial(fetcher.seek, partition, offset))

    @property
    def is_done(self) -> bool:
        """Say whether every partition has reached its end."""
        return all(cursor.is_done for cursor in self.cursors.values())

    def polls(self) -> Iterator[list[Stretch]]:
        """Give what has come, an empty list after a wait for nothing, until all is read.

        Every stretch must be dealt with, and `take` called on its cursor, before the next poll.

        Raises:
            BrokerError: a broker is gone for good or answers with an error.
            CliError: retention was faster than we are.
        """
        while not self.is_done:
            for pieces in _waves(self._next_pieces()):
                stretches = [self._stretch(piece) for piece in pieces]
                yield [one for one in stretches if one is not None]
            for fetcher in self._fetchers:
                for partition in fetcher.partitions:
                    if self.cursors[partition].is_done:
                        self._tell(fetcher, partial(fetcher.forget, partition))

    def _tell(self, fetcher: Fetcher, order: Callable[[], None]) -> None:
        """Have something done to a fetcher in the thread that polls it."""
        if self._threads:
            self._orders[fetcher].append(order)
        else:
            order()

    def _next_pieces(self) -> list[Piece]:
        if len(self._fetchers) == 1:
            return self._fetchers[0].poll()
        if not self._threads:
            self._start_threads()
        try:
            found = self._queue.get(timeout=max(self._max_wait_ms / 1000, _QUEUE_WAIT_S))
        except queue.Empty:
            return []
        if isinstance(found, Exception):
            raise found
        return found

    def _start_threads(self) -> None:
        for number, fetcher in enumerate(self._fetchers):
            thread = threading.Thread(
                target=self._fetch, args=(fetcher,), name=f"fetcher-{number}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def _fetch(self, fetcher: Fetcher) -> None:
        orders = self._orders[fetcher]
        while not self._stopped.is_set() and fetcher.partitions:
            while orders:
                orders.popleft()()
            try:
                found: list[Piece] | Exception = fetcher.poll()
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

    def _stretch(self, piece: Piece) -> Stretch | None:
        if piece.error == OffsetOutOfRangeError.code:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"{piece.partition}: {piece.offset} is out of range: the log now starts at "
                f"{piece.log_start_offset}; retention removed what was to be read",
                hints=["try: -o start, or a longer retention"],
                code="OFFSET_OUT_OF_RANGE",
            )
        if piece.error != NO_ERROR:
            raise piece.failure()
        try:
            return self.cursors[piece.partition].add(piece)
        except InvalidMessageError as error:
            raise InvalidMessageError(f"{piece.partition}: {error}") from error


def _waves(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """Give pieces in groups: what came of a partition is dealt with before more of it is added."""
    wave: list[Piece] = []
    filled: set[TopicPartition] = set()
    for piece in pieces:
        if piece.partition in filled:
            yield wave
            wave, filled = [], set()
        wave.append(piece)
        if len(piece.data):
            filled.add(piece.partition)
    yield wave


def _by_home(cursors: Mapping[TopicPartition, Cursor]) -> Sequence[dict[TopicPartition, int]]:
    """Return the starting offsets, grouped by home broker, without what is done already."""
    homes: dict[int, dict[TopicPartition, int]] = {}
    for partition, cursor in cursors.items():
        if not cursor.is_done:
            homes.setdefault(partition.home, {})[partition] = cursor.offset
    return list(homes.values())


_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 500


@contextmanager
def damage_of(partition: TopicPartition) -> Iterator[None]:
    """Have errors about corrupt messages name their partition, and say what to do.

    Raises:
        CliError: a message was found to be corrupt.
    """
    try:
        yield
    except (InvalidMessageError, InvalidFetchSizeError) as error:
        raise CliError(
            ExitStatus.CORRUPT,
            f"{partition}: {error}",
            hints=["try: pylogctl log verify on the broker's segment files"],
            code="INVALID_MESSAGE",
            details={"topic": partition.topic, "partition": partition.name},
        ) from error


def take_whole(stretch: Stretch, valid_bytes: int, fault: Fault) -> None:
    """Move a stretch's cursor on past its good messages.

    Args:
        stretch: what was looked at.
        valid_bytes: how far it is good.
        fault: why not further; `PARTIAL` is normal, as the rest is under way.

    Raises:
        CliError: a message is corrupt, or seems to go on behind the end of all there is.
    """
    stretch.cursor.take(valid_bytes)
    if fault is not Fault.PARTIAL or stretch.cursor.is_cut_for_good():
        with damage_of(stretch.cursor.partition):
            raise_fault(fault, stretch.offset + valid_bytes)


def count_messages(
    cluster: Cluster,
    connect: Connect,
    ranges: Mapping[TopicPartition, ResolvedRange],
    advance: Callable[[int], None],
) -> dict[TopicPartition, int]:
    """Return how many messages partitions have in some ranges, by reading all of them.

    Compressed sets are unfolded.

    Args:
        cluster: tells which broker has which partition.
        connect: makes connections.
        ranges: each with an end.
        advance: called with the number of bytes read, again and again.

    Raises:
        CliError: a message is corrupt.
        BrokerError: a broker is gone for good.
    """
    counts = dict.fromkeys(ranges, 0)
    with Reading(
        cluster, connect, ranges, fetch_bytes=_FETCH_BYTES, max_wait_ms=_MAX_WAIT_MS
    ) as reading:
        for stretches in reading.polls():
            for stretch in stretches:
                counts[stretch.cursor.partition] += _count(stretch, advance)
    return counts


def _count(stretch: Stretch, advance: Callable[[int], None]) -> int:
    found = scan(stretch.view)
    with damage_of(stretch.cursor.partition):
        wanted = slice_messages(
            stretch.view, found, stretch.offset, skip=stretch.skip, end=stretch.cursor.end
        )
    take_whole(stretch, found.valid_bytes, found.fault)
    advance(found.valid_bytes)
    return wanted.message_count
