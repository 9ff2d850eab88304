"""Consuming as load: partitions read on several threads, every message decoded, and timed.

Knows readings and the codec; knows neither options nor output.
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
from broker.clock import Clock
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.partition_reader import PartitionReader
from broker.protocol.codec import decode
from broker.topic import ReadRange, TopicPartition
from pylogctl.perf.measure import (
    Budget,
    Counted,
    Halt,
    Result,
    Tally,
    cpu_s,
    peak_rss_bytes,
    run_threads,
)


class End(Enum):
    """Why consuming ended."""

    COUNT = "as many as asked for"
    END = "end reached"
    IDLE = "nothing came"
    HALT = "time is up, or interrupted"


@dataclass(frozen=True, slots=True)
class ConsumePlan:
    """How to read, and until when.

    Args:
        message_count: how many messages to read, None for no limit.
        duration_s: how long to read, None for no limit.
        idle_timeout_s: stop when nothing came for so long, None for never.
        thread_count: threads that share the partitions; more than partitions are of no use.
        fetch_bytes: per partition and request.
        max_wait_ms: how long a broker may wait for new messages.
    """

    message_count: int | None = None
    duration_s: float | None = None
    idle_timeout_s: float | None = None
    thread_count: int = 1
    fetch_bytes: int = 1 << 20
    max_wait_ms: int = 500


class Polled(Protocol):
    """What a reader reads."""

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Give what has come, an empty list after a wait for nothing, until all is read."""


OpenReadings = Callable[
    [ConsumePlan, Mapping[TopicPartition, ReadRange], Cluster, Connect],
    AbstractContextManager[list[Polled]],
]
"""Opens what is read of some partitions, for a block."""


@contextmanager
def shared_readings(
    plan: ConsumePlan,
    ranges: Mapping[TopicPartition, ReadRange],
    cluster: Cluster,
    connect: Connect,
) -> Iterator[list[Polled]]:
    """Open a reading for each thread, with a share of the partitions, for a block.

    Args:
        plan: how to read.
        ranges: from where to where in each partition; at least one.
        cluster: tells which broker has which partition.
        connect: makes connections.
    """
    with ExitStack() as stack:
        readings: list[Polled] = []
        for share in _shares(ranges, min(plan.thread_count, len(ranges))):
            reader = ClusterReader(
                cluster,
                connect,
                share,
                fetch_bytes=plan.fetch_bytes,
                max_wait_ms=plan.max_wait_ms,
            )
            readings.append(stack.enter_context(reader))
        yield readings


def consume_load(
    plan: ConsumePlan,
    readings: Sequence[Polled],
    *,
    clock: Clock,
    halt: Halt,
    on_tick: Callable[[Sequence[Tally]], None],
) -> tuple[Result, End]:
    """Read until a plan says stop, and measure it.

    The clock stops with the last message. A latency is the time a reader waits for the next
    chunk.

    Args:
        plan: until when to read.
        readings: what to read, a thread for each.
        clock: tells when it started.
        halt: ends it early; what was read until then is the result.
        on_tick: called about ten times a second with what was counted so far.

    Returns:
        The result, and why it ended.

    Raises:
        CliError: a message is corrupt, or longer than what one request asks for.
        BrokerError: a broker is gone for good.
    """
    budget = Budget(plan.message_count)
    tallies = [Tally() for _ in readings]
    readers = [
        _Reader(reading, tally, tallies, budget, halt, plan.idle_timeout_s)
        for reading, tally in zip(readings, tallies, strict=True)
    ]
    started_ms, started_s, started_cpu_s = clock.time_ms(), time.monotonic(), cpu_s()
    for tally in tallies:
        tally.last_s = started_s
    halt.set_duration(plan.duration_s)
    run_threads([one.run for one in readers], halt, partial(on_tick, tallies))
    result = Result(
        Counted.of(tallies),
        started_ms,
        max(tally.last_s for tally in tallies) - started_s,
        cpu_s() - started_cpu_s,
        peak_rss_bytes(),
    )
    ends = {one.end for one in readers}
    return result, next(end for end in (End.COUNT, End.HALT, End.IDLE, End.END) if end in ends)


def _shares(
    ranges: Mapping[TopicPartition, ReadRange], count: int
) -> Iterator[dict[TopicPartition, ReadRange]]:
    """Deal partitions out, by home and index in turn, so that each share has some of each home."""
    ordered = sorted(ranges.items())
    for number in range(count):
        yield dict(ordered[number::count])


class _Reader:
    """Reads and decodes what one reading gives."""

    def __init__(
        self,
        reading: Polled,
        tally: Tally,
        tallies: Sequence[Tally],
        budget: Budget,
        halt: Halt,
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
        """Read until the end, or until it is time to stop."""
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
        skip = reader.skip
        messages, valid_bytes, fault = decode(reader.data, reader.offset)
        reader.take_good(valid_bytes, fault)
        del messages[:skip]
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
        """Say whether no thread has got anything for too long."""
        if self._idle_timeout_s is None:
            return False
        last_s = max(tally.last_s for tally in self._tallies)
        return time.monotonic() - last_s >= self._idle_timeout_s
