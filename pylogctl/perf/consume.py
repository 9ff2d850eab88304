"""Load of consumers: partitions read by several threads; every message is decoded and timed.

`perf consume` reads with the library, with `--simple` as 0.7's simple consumer does: one fetch
request at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Protocol

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.clock import Clock
from broker.consumer.chunk import Chunk
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.errors import NO_ERROR
from broker.protocol.codec import Fault
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import decode_fetch_response
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.errors import UsageError
from pylogctl.perf import measure

_PAUSE_S = 0.1


class End(Enum):
    """The reason why consuming ended."""

    COUNT = "message count reached"
    END = "end reached"
    IDLE = "no message came"
    HALT = "duration over, or interrupted"


@dataclass(frozen=True, slots=True)
class ConsumePlan:
    """How to read, and when to stop; None for no limit."""

    message_count: int | None = None
    duration_s: float | None = None
    idle_timeout_s: float | None = None  # without a message
    thread_count: int = 1  # they share the partitions; at most one per partition is used
    fetch_bytes: int = 1 << 20  # per partition and request
    max_wait_ms: int = 500  # of a broker, for a response of at least `min_bytes`
    min_bytes: int = 1


class Polled(Protocol):
    """Partitions read by one thread."""

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Yield the partitions with new messages, or an empty list, until the end."""


OpenReadings = Callable[  # one `Polled` for each thread
    [ConsumePlan, Mapping[TopicPartition, ReadRange], Cluster, Connect],
    AbstractContextManager[list[Polled]],
]


@contextmanager
def shared_readings(
    plan: ConsumePlan,
    ranges: Mapping[TopicPartition, ReadRange],
    cluster: Cluster,
    connect: Connect,
) -> Iterator[list[Polled]]:
    """Open a reader for each thread, with a share of the partitions (at least one)."""
    with ExitStack() as stack:
        readings: list[Polled] = []
        for share in _shares(ranges, min(plan.thread_count, len(ranges))):
            reader = ClusterReader(
                cluster,
                connect,
                share,
                fetch_bytes=plan.fetch_bytes,
                max_wait_ms=plan.max_wait_ms,
                min_bytes=plan.min_bytes,
            )
            readings.append(stack.enter_context(reader))
        yield readings


@contextmanager
def single_reading(
    plan: ConsumePlan,
    ranges: Mapping[TopicPartition, ReadRange],
    cluster: Cluster,
    connect: Connect,
) -> Iterator[list[Polled]]:
    """Open the only partition of `ranges` for reading with one fetch request at a time."""
    if len(ranges) > 1:
        names = ", ".join(partition.name for partition in ranges)
        raise UsageError(
            f"one partition at a time, not {names}", hints=["try: -p with one of them"]
        )
    ((partition, wanted),) = ranges.items()
    with _SimpleReading(
        connect(cluster.leader(partition)), partition, wanted, fetch_bytes=plan.fetch_bytes
    ) as reading:
        yield [reading]


class _SimpleReading:
    """Reads one partition with one fetch request at a time; closes its connection."""

    def __init__(
        self,
        connection: Connection,
        partition: TopicPartition,
        wanted: ReadRange,
        *,
        fetch_bytes: int,  # per request; at least the size of the largest message
    ) -> None:
        self._connection = connection
        self._reader = PartitionReader(partition, wanted.start, wanted.end)
        self._fetch_bytes = fetch_bytes

    def __enter__(self) -> _SimpleReading:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Yield the partition after each fetch, an empty list after an empty one, until the end."""
        reader = self._reader
        while reader.end is None or reader.offset < reader.end.offset:
            offset = reader.offset
            reader.drop_data()  # the start of a message, which is fetched again
            if reader.add(self._fetch(offset)):
                yield [reader]
                if reader.offset == offset:
                    raise reader.corrupt(Fault.PARTIAL)
            else:
                yield []
                time.sleep(_PAUSE_S)  # a 0.7 broker does not delay an empty response

    def _fetch(self, offset: int) -> Chunk:
        partition = self._reader.partition
        request = FetchRequest(partition.topic, partition.index, offset, self._fetch_bytes)
        response = self._connection.repeat_if_lost(lambda: self._connection.ask(request))
        code, data = decode_fetch_response(response)
        chunk = Chunk(partition, offset, data, code)
        if code != NO_ERROR:
            raise chunk.failure()
        return chunk


def consume_load(
    plan: ConsumePlan,
    readings: Sequence[Polled],
    *,
    clock: Clock,
    halt: measure.Halt,
    on_tick: Callable[[Sequence[measure.Tally]], None],
) -> tuple[measure.Result, End]:
    """Read, with a thread for each of `readings`, and measure until a limit of the plan is reached.

    The clock stops with the last message. A latency is the time a reader waits for the next
    chunk. For `halt` and `on_tick` see `run_threads`.
    """
    budget = measure.Budget(plan.message_count)
    tallies = [measure.Tally() for _ in readings]
    readers = [
        _Reader(reading, tally, tallies, budget, halt, plan.idle_timeout_s)
        for reading, tally in zip(readings, tallies, strict=True)
    ]
    started_ms, started_s, started_cpu_s = clock.time_ms(), time.monotonic(), measure.cpu_s()
    for tally in tallies:
        tally.last_s = started_s
    halt.set_duration(plan.duration_s)
    measure.run_threads([one.run for one in readers], halt, partial(on_tick, tallies))
    result = measure.Result(
        measure.Totals.of(tallies),
        started_ms,
        max(tally.last_s for tally in tallies) - started_s,
        measure.cpu_s() - started_cpu_s,
        measure.peak_rss_bytes(),
    )
    ends = {one.end for one in readers}
    return result, next(end for end in (End.COUNT, End.HALT, End.IDLE, End.END) if end in ends)


def _shares(
    ranges: Mapping[TopicPartition, ReadRange], count: int
) -> Iterator[dict[TopicPartition, ReadRange]]:
    """Distribute the partitions in turn, so that each share has some of each broker."""
    ordered = sorted(ranges.items())
    for number in range(count):
        yield dict(ordered[number::count])


class _Reader:
    def __init__(
        self,
        reading: Polled,
        tally: measure.Tally,
        tallies: Sequence[measure.Tally],
        budget: measure.Budget,
        halt: measure.Halt,
        idle_timeout_s: float | None,
    ) -> None:
        self.end = End.END
        self._reading = reading
        self._tally = tally
        self._tallies = tallies
        self._budget = budget
        self._halt = halt
        self._idle_timeout_s = idle_timeout_s

    def run(self) -> None:
        """Read until the end, or until `_has_to_end`."""
        asked_s = time.monotonic()
        for readers in self._reading.polls():
            if readers:
                self._tally.latencies.add(time.monotonic() - asked_s)
            for reader in readers:
                self._count(reader)
            if self._has_to_end(is_empty=not readers):
                return
            asked_s = time.monotonic()

    def _count(self, reader: PartitionReader) -> None:
        messages = reader.take_messages()
        granted = self._budget.take(len(messages))
        if granted:
            size = sum([len(payload) for _, _, payload in messages[:granted]])
            self._tally.add(granted, size)

    def _has_to_end(self, *, is_empty: bool) -> bool:
        if self._budget.is_spent:
            self.end = End.COUNT
        elif self._halt():
            self.end = End.HALT
        elif is_empty and self._is_idle():
            self.end = End.IDLE
        return self.end is not End.END

    def _is_idle(self) -> bool:
        """Return whether no thread has read a message for too long."""
        if self._idle_timeout_s is None:
            return False
        last_s = max(tally.last_s for tally in self._tallies)
        return time.monotonic() - last_s >= self._idle_timeout_s
