"""Reads topics from a start to a stop: messages, or batches of them as they are in the log."""

from __future__ import annotations

import inspect
import logging
import math
import re
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import compress
from queue import Empty

from broker import deadlines
from broker.api import values
from broker.api.errors import Closed, Error, translated
from broker.api.values import Batch, PartitionLike, Place, Start, Stop
from broker.client.cluster import Cluster, Connect
from broker.client.counts import ConsumerLedger
from broker.client.selection import Selected, causes_of_absence, find_partitions, partitions_away
from broker.closing import SelfClosing
from broker.consumer.arrivals import Arrivals
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader, naming_partition
from broker.errors import ArgumentError, InvalidPatternError, TopicNotFoundError
from broker.patterns import Pattern, from_re2
from broker.positions import Mark, OffsetRange, resolve
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.codec import Fault, Message, decode_messages, scan, scan_batches
from broker.protocol.read_message import messages_of_records
from broker.topic import ReadRange, TopicPartition

_MAX_WAIT_MS = 500
_NO_TIMEOUT_S = 3600.0  # of one response

logger = logging.getLogger("pylogctl")


def select(
    cluster: Cluster,
    topics: str | re.Pattern[str],
    partition: PartitionLike | Collection[PartitionLike] | None,
) -> Selected:
    """Return the partitions of a topic, or of all whose whole names match a pattern."""
    names = _names_of(cluster, topics)
    if not names and (pattern := pattern_of(topics)) is not None:
        raise TopicNotFoundError(f"no topic matches '{pattern.text}'")
    every = find_partitions(cluster, names)
    return every if partition is None else every.filtered(_chosen(partition, names[0], every))


def pattern_of(topics: object) -> Pattern | None:
    """Return the pattern of what `re` or `re2` has compiled; None for anything else.

    `ArgumentError` if it is none of RE2, or has other flags than for the case beside its text.
    """
    try:
        if not isinstance(topics, re.Pattern):
            return from_re2(topics)
        flags = topics.flags & ~re.compile(topics.pattern).flags
        if flags & ~re.IGNORECASE:
            raise ArgumentError(
                f"flags of the pattern '{topics.pattern}' must be in its text, such as '(?s)a.b': "
                "only re.IGNORECASE can be beside it"
            )
        return Pattern(topics.pattern, ignore_case=bool(flags))
    except InvalidPatternError as error:
        raise ArgumentError(str(error)) from error


def _names_of(cluster: Cluster, topics: str | re.Pattern[str]) -> list[str]:
    if (pattern := pattern_of(topics)) is not None:
        return [name for name in cluster.topics() if pattern.fullmatch(name)]
    return [values.topic_of(topics)]


def _chosen(
    partition: PartitionLike | Collection[PartitionLike], topic: str, every: Selected
) -> Callable[[TopicPartition], bool]:
    """Return which partitions are meant; raise if there is none for one of the values."""
    there = sorted([*every.led, *every.away])
    given: Iterable[PartitionLike]
    if isinstance(partition, str | TopicPartition) or not isinstance(partition, Iterable):
        given = (partition,)
    else:
        given = partition
    matchers = []
    for one in given:
        matcher = values.matcher_of(one)
        if not any(map(matcher, there)):
            raise _absent(topic, one, there)
        matchers.append(matcher)
    if not matchers:
        raise _absent(topic, partition, there)
    return lambda one: any(matches(one) for matches in matchers)


def readable(cluster: Cluster, found: Selected, *, allow_missing: bool) -> list[TopicPartition]:
    """Return the selected partitions that can be read; raise if others may not be missing."""
    if found.away and not (allow_missing and found.led):
        advice = "; give `partition` to read only others, or allow_missing=True"
        raise partitions_away(cluster, found.away, advice if found.led else "")
    for cause in causes_of_absence(cluster, found.away):
        logger.warning("%s", cause)
    return found.led


def reading_of(
    cluster: Cluster,
    connect: Connect,
    topics: str | re.Pattern[str],
    partition: PartitionLike | Collection[PartitionLike] | None,
    start: Start,
    stop: Stop,
    *,
    allow_missing: bool,
) -> tuple[dict[TopicPartition, ReadRange], Arrivals | None]:
    """Return the ranges to read, and without a stop what gives those that come later."""
    found = select(cluster, topics, partition)
    if stop is not None or not found.led:
        led = readable(cluster, found, allow_missing=allow_missing)
        return ranges_of(cluster, connect, led, start, stop), None
    every = [*found.led, *found.away]
    range_of = _ranging(every, start, None)
    with BoundaryFinder(cluster, connect) as finder:
        ranges = {one: range_of(one, finder) for one in found.led}
    matches = None if partition is None else _chosen(partition, every[0].topic, found)

    def find() -> list[TopicPartition]:
        names = _names_of(cluster, topics)
        there = [one for name in names for one in cluster.partitions(name)]
        return there if matches is None else list(filter(matches, there))

    for cause in causes_of_absence(cluster, found.away):
        logger.warning("%s; waiting for it", cause)
    return ranges, Arrivals(
        cluster,
        connect,
        find=find,
        known=every,
        waiting=found.away,
        range_of=range_of,
        tell=logger.warning,
    )


def _absent(topic: str, partition: object, there: Sequence[TopicPartition]) -> ArgumentError:
    shown = ", ".join(one.name for one in there)
    asked = partition if isinstance(partition, TopicPartition) else repr(partition)
    return ArgumentError(f"'{topic}' has no partition {asked}; it has {shown}")


def ranges_of(
    cluster: Cluster,
    connect: Connect,
    partitions: Sequence[TopicPartition],
    start: Start,
    stop: Stop,
) -> dict[TopicPartition, ReadRange]:
    """Return the range to read of each partition; without a stop a range has no end."""
    range_of = _ranging(partitions, start, stop)
    with BoundaryFinder(cluster, connect) as finder:
        return {one: range_of(one, finder) for one in partitions}


def _ranging(
    partitions: Sequence[TopicPartition], start: Start, stop: Stop
) -> Callable[[TopicPartition, BoundaryFinder], ReadRange]:
    """Return what finds the range of each partition; times count from now."""
    now_ms = time.time_ns() // 1_000_000
    _validate_keys(start, partitions)
    _validate_keys(stop, partitions)

    start_of = values.positions_of(start, now_ms)
    stop_of = None if stop is None else values.positions_of(stop, now_ms)

    def range_of(partition: TopicPartition, finder: BoundaryFinder) -> ReadRange:
        wanted = OffsetRange(
            start_of(partition) or Mark.EARLIEST,
            None if stop_of is None else stop_of(partition) or Mark.LATEST,
        )
        return resolve(wanted, partition, finder, strict=True)

    return range_of


def one_of(partition: PartitionLike, read: Iterable[TopicPartition]) -> TopicPartition:
    """Return the one partition of a reader that is meant."""
    found = list(filter(values.matcher_of(partition), read))
    if len(found) != 1:
        shown = ", ".join(map(str, found or read))
        raise ArgumentError(f"{partition!r} is not one partition of this reader: {shown}")
    return found[0]


def _validate_keys(given: Stop, partitions: Sequence[TopicPartition]) -> None:
    """Raise if a key of a mapping by partition means none."""
    for key in given if isinstance(given, Mapping) else ():
        if not any(map(values.matcher_of(key), partitions)):
            shown = ", ".join(map(str, partitions))
            raise ArgumentError(f"a place is given for partition {key!r}, but there are {shown}")


@dataclass(frozen=True, kw_only=True)
class ReadOrder:
    """How a `Reader` reads: what `Client.read` was asked for."""

    payload_filter: PayloadFilter | None
    limit: int | None
    idle_s: float | None
    read_from: str
    timeout_s: float | None
    may_retry: bool


class Reader(Iterator[Message], SelfClosing):
    """The messages of some partitions, from a start to a stop; made by `Client.read`.

    Whole chunks of a partition come in turn; there is no order between partitions. It is for one
    thread at a time (`RuntimeError` for a second one); `close`, from any thread, ends the
    iteration.

    Errors while iterating: `CorruptMessage` before a message whose CRC or structure is wrong;
    `OffsetOutOfRange` if retention has removed what comes next; `Unreachable` or `TimedOut` if a
    broker gave no sign for the timeout of `read`. They end it, and are raised again when more is
    asked for, until `close`.
    """

    __module__ = "pylogctl"

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        ranges: Mapping[TopicPartition, ReadRange],
        order: ReadOrder,
        ledger: ConsumerLedger,
        arrivals: Arrivals | None,
    ) -> None:
        self.positions: dict[TopicPartition, int] = {
            partition: one.start.offset for partition, one in ranges.items()
        }
        """The offset in each partition up to which chunks were taken for the iteration."""
        self.ends: dict[TopicPartition, int] = {
            partition: one.end.offset for partition, one in ranges.items() if one.end is not None
        }
        """The offset in each partition at which the iteration ends; none for a stop of None."""
        self._cluster = cluster
        self._connect = connect
        self._timeout_s = order.timeout_s
        self._is_wanted = None if order.payload_filter is None else order.payload_filter.compile()
        self._limit = order.limit
        self._closed = threading.Event()
        self._why_closed: Error | None = None  # None if it is at its end
        self._in_hand: list[Message] = []
        self._left = iter(self._in_hand)
        self._fault: tuple[PartitionReader, Fault] | None = None  # behind what is in hand
        self._undecoded: PartitionReader | None = None  # has record batches that are left
        timeout_s = math.inf if order.timeout_s is None else order.timeout_s
        # half of the time: then there is time for another broker that leads
        response_s = (_NO_TIMEOUT_S if order.timeout_s is None else timeout_s) / 2
        idle_ms = math.inf if order.idle_s is None else 1000 * order.idle_s
        self._source = ClusterReader(
            cluster,
            lambda address: connect(address).limited_to(response_s),
            ranges,
            payload_filter=order.payload_filter,
            max_wait_ms=int(min(_MAX_WAIT_MS, 1000 * response_s / 2, idle_ms)),
            read_from=order.read_from,
            leader_wait_s=timeout_s if order.may_retry else 0.0,
            ledger=ledger,
            arrivals=arrivals,
        )
        # No generator that this object keeps may know it: a reader that is dropped ends at once.
        self._chunks = _ready(self._source, order.idle_s, self._closed)

    def __del__(self) -> None:
        if hasattr(self, "_chunks"):
            self.close()

    def __iter__(self) -> Iterator[Message]:
        """Return the messages that are left; see the class."""
        while True:
            left = self._left
            yield from left  # `seek` empties the list
            if left is self._left and not self._load():  # `poll` has not loaded the next chunk
                return

    def __next__(self) -> Message:
        """Return the next message; see the class."""
        while True:
            for message in self._left:
                return message
            if not self._load():
                raise StopIteration

    def poll(self, timeout: float) -> Message | None:
        """Return the next message; None after so many seconds without one, and at the end at once.

        A lost broker is waited for as by the iteration, which can take longer.

        Raises:
            Closed: the reader was closed.
        """
        values.number_of("timeout", timeout, 0)
        if self._why_closed is not None:
            raise self._why_closed
        self._raise_if_in_use()
        self._source.give_up_s = time.monotonic() + timeout
        try:
            return next(self, None)
        except Empty:
            return None
        finally:
            self._source.give_up_s = None

    def _load(self) -> bool:
        """Take the messages of the next chunk in hand; return False at the end."""
        if self._limit == 0 or (reader := self._next_chunk()) is None:
            self._end(None)
            return False
        partition, is_wanted = reader.partition, self._is_wanted
        valid_bytes, fault = 0, Fault.NONE
        if partition.has_records:
            messages = self._take_records(reader)
        else:
            messages, valid_bytes, fault = decode_messages(
                reader.data, reader.offset, partition.topic, partition
            )
            values.cut_to(messages, reader.inner, reader.end)
        if is_wanted is not None:
            selected = is_wanted.select([one.value for one in messages])
            messages[:] = compress(messages, selected)
        if self._limit is not None:
            del messages[self._limit :]
            self._limit -= len(messages)
        if not partition.has_records:
            self._take(reader, valid_bytes, fault, len(messages))
        self._in_hand = messages
        self._left = iter(messages)
        return True

    def _take_records(self, reader: PartitionReader) -> list[Message]:
        with self._ending():
            records = reader.take_records()
        self._note_left(reader)
        return messages_of_records(Message, reader.partition, records, reader.offset)

    def _note_left(self, reader: PartitionReader) -> None:
        self._undecoded = reader if reader.has_batches else None
        self.positions[reader.partition] = reader.offset

    def _next_batch(self) -> Batch | None:
        """Return the whole messages of the next chunk, None at the end."""
        while (reader := self._next_chunk()) is not None:
            if reader.partition.has_records:
                return self._take_batches(reader)
            start, skip, data = reader.offset, reader.inner, reader.data
            found = scan(data)
            self._take(reader, found.valid_bytes, found.fault, found.entry_count)
            if found.valid_bytes:
                return Batch(reader.partition, start, data[: found.valid_bytes], skip, reader.end)
        self._end(None)
        return None

    def _take_batches(self, reader: PartitionReader) -> Batch:
        """Return the whole batches of a chunk of a topic of format `kafka`."""
        start, data = reader.offset, reader.batches
        found = scan_batches(data)
        with self._ending():
            if not found.batches:
                raise reader.corrupt(found.fault)
        count = sum(one.record_count for one in found.batches)
        reader.take_batches(found.valid_bytes, found.batches[-1].next_offset, count)
        self._note_left(reader)
        return Batch(
            reader.partition, start, data[: found.valid_bytes], 0, reader.end, reader.offset
        )

    def _next_chunk(self) -> PartitionReader | None:
        """Return a partition that has data, None at the end; `Empty` if `poll` is over."""
        if self._closed.is_set():
            if self._why_closed is None or isinstance(self._why_closed, Closed):
                return None
            raise self._why_closed
        if (undecoded := self._undecoded) is not None:
            self._undecoded = None
            if undecoded.has_batches:  # else it was sought away
                return undecoded
        with self._ending():
            self._raise_fault()
            found = next(self._chunks, None)
        if isinstance(found, Empty):
            raise found
        return found

    @contextmanager
    def _ending(self) -> Iterator[None]:
        """End the iteration by an error of the block."""
        try:
            with translated():
                yield
        except ValueError:
            self._raise_if_in_use()
            self._end(None)
            raise
        except BaseException as error:
            self._end(error if isinstance(error, Error) else None)
            raise

    def _raise_if_in_use(self) -> None:
        if inspect.getgeneratorstate(self._chunks) == inspect.GEN_RUNNING:
            raise RuntimeError("another thread uses this reader at this moment")

    def _take(
        self, reader: PartitionReader, valid_bytes: int, fault: Fault, message_count: int
    ) -> None:
        reader.take(valid_bytes, message_count)
        self.positions[reader.partition] = reader.offset
        self._fault = reader, fault

    def _raise_fault(self) -> None:
        if self._fault is not None:
            (reader, fault), self._fault = self._fault, None
            if reader.offset == self.positions[reader.partition]:  # else it was sought away
                with naming_partition(reader.partition):
                    reader.take_valid(0, fault)

    def seek(self, partition: PartitionLike, place: Place) -> None:
        """Continue in one of the partitions elsewhere; what is in hand of it is not given any more.

        Raises:
            ArgumentError: the reader has not exactly one such partition, or `place` is malformed.
            NotABoundary, OffsetOutOfRange: no message is at this offset.
            Closed: the reader was closed, or has ended; after a failure that error again.
        """
        if self._closed.is_set():
            raise self._why_closed or Closed("the reader has ended")
        chosen = one_of(partition, self.positions)
        with translated(), deadlines.Limit(self._timeout_s):
            ranges = ranges_of(self._cluster, self._connect, [chosen], place, None)
            self._source.seek(chosen, *ranges[chosen].start)
        self.positions[chosen] = ranges[chosen].start.offset
        if self._in_hand and self._in_hand[0].partition == chosen:
            self._in_hand.clear()

    def _abandon(self) -> None:
        """End the iteration; see `Client`."""
        self._why_closed = Closed("the reader is closed")
        self._closed.set()

    def close(self) -> None:
        """End the iteration and close its connections; from any thread."""
        self._end(Closed("the reader is closed"))

    def _end(self, why: Error | None) -> None:
        if not self._closed.is_set() or isinstance(why, Closed):
            self._why_closed = why
        if self._closed.is_set():
            return
        self._closed.set()
        self._in_hand.clear()
        try:
            self._chunks.close()
        except ValueError:  # a thread is inside
            self._source.interrupt()
        else:
            self._source.close()


class Batches(Iterator[Batch], SelfClosing):
    """The messages of some partitions as they are in the log; made by `Client.read_batches`.

    For one thread at a time; `close`, from any thread, ends the iteration.
    """

    __module__ = "pylogctl"

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def __next__(self) -> Batch:
        """Return the next batch; errors are those of `Reader`."""
        if (batch := self._reader._next_batch()) is None:
            raise StopIteration
        return batch

    def close(self) -> None:
        """End the iteration and close its connections; from any thread."""
        self._reader.close()


def _ready(
    source: ClusterReader, idle_s: float | None, closed: threading.Event
) -> Generator[PartitionReader | Empty, None, None]:
    """Give partitions that have data, until all are read, it is idle for so long, or `closed`.

    `Empty` when a poll is over, or a turn in which nothing came. Only the time in here counts as
    idle.
    """
    quiet_since_s = time.monotonic()
    with source:
        for ready in source.polls():
            for reader in ready:
                if closed.is_set():
                    return
                yield reader
            now_s = time.monotonic()
            if ready:
                quiet_since_s = now_s
            is_idle = idle_s is not None and now_s - quiet_since_s >= idle_s
            if is_idle or closed.is_set():
                return
            if source.give_up_s is not None and now_s >= source.give_up_s:
                yield Empty()
                quiet_since_s = time.monotonic()
            elif source.in_turns and not ready:
                yield Empty()
                quiet_since_s += time.monotonic() - now_s
