"""Load of consumers: partitions read by several threads; every message is decoded and timed.

`perf consume` reads with the library, with `--simple` as 0.7's simple consumer does: one fetch
request at a time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from broker.client.connection import Connection
from broker.client.side import Side
from broker.closing import SelfClosing
from broker.consumer.chunk import Chunk
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.config import ConsumerConfig
from broker.consumer.partition_reader import PartitionReader
from broker.errors import NO_ERROR
from broker.protocol.codec import Fault
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import decode_fetch_response
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.environment import UsageError
from pylogctl.perf import measure
from pylogctl.perf.options import MeasuredRead

_PAUSE_S = 0.1


class End(Enum):
    """The reason why consuming ended."""

    COUNT = "message count reached"
    END = "end reached"
    IDLE = "no message came"
    HALT = "duration over, or interrupted"


class Polled(Protocol):
    """Partitions read by one thread."""

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Yield the partitions with new messages, or an empty list, until the end."""


def open_readings(
    side: Side,
    ranges: Mapping[TopicPartition, ReadRange],
    choice: MeasuredRead,
    config: ConsumerConfig,
) -> Iterator[AbstractContextManager[Polled]]:
    """Make a reader for each thread; with `--simple` one that sends one fetch request at a time."""
    ordered = sorted(ranges.items())
    if choice.simple:
        if len(ordered) > 1:
            names = ", ".join(partition.name for partition in ranges)
            raise UsageError(f"one partition at a time, not {names}", "try: -p with one of them")
        ((partition, wanted),) = ordered
        reader = PartitionReader(partition, wanted.start, wanted.end)
        connection = side.connect(side.cluster.leader(partition))
        yield _SimpleReading(connection, reader, config.fetch_bytes)
        return
    count = min(choice.threads, len(ordered))
    for number in range(count):  # partitions in turn, so that each thread has some of each broker
        yield ClusterReader(
            *side[:2],
            dict(ordered[number::count]),
            fetch_bytes=config.fetch_bytes,
            max_wait_ms=config.max_wait_ms,
            min_bytes=config.fetch_min_bytes,
        )


@dataclass(slots=True)
class _SimpleReading(SelfClosing):
    """Reads one partition with one fetch request at a time; closes its connection."""

    connection: Connection
    reader: PartitionReader
    fetch_bytes: int  # per request; at least the size of the largest message

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Yield the partition after each fetch, an empty list after an empty one, until the end."""
        reader = self.reader
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
        partition = self.reader.partition
        request = FetchRequest(partition.topic, partition.index, offset, self.fetch_bytes)
        response = self.connection.repeat_if_lost(lambda: self.connection.ask(request))
        code, data = decode_fetch_response(response)
        chunk = Chunk(partition, offset, data, code)
        if code != NO_ERROR:
            raise chunk.failure()
        return chunk


def consume_load(
    readings: Sequence[Polled],
    choice: MeasuredRead,
    measurement: measure.Measurement,
    idle_timeout_s: float | None,
) -> tuple[measure.Result, End]:
    """Read, with a thread for each of `readings`, and measure until a limit of the choice.

    The clock stops with the last message. A latency is the time a reader waits for the next
    chunk. `idle_timeout_s` is how long no message may come; None for no limit.
    """
    budget = measure.Budget(choice.messages)
    started_s = time.monotonic()
    tallies = [measure.Tally(started_s) for _ in readings]
    readers = [
        _Reader(reading, tally, tallies, budget, measurement.halt, idle_timeout_s)
        for reading, tally in zip(readings, tallies, strict=True)
    ]
    result = measurement.run([one.run for one in readers], tallies, choice.duration_s)
    ends = {one.end for one in readers}
    end = next(end for end in (End.COUNT, End.HALT, End.IDLE, End.END) if end in ends)
    return replace(result, seconds=max(one.last_s for one in tallies) - started_s), end


@dataclass(slots=True)
class _Reader:
    reading: Polled
    tally: measure.Tally
    tallies: Sequence[measure.Tally]
    budget: measure.Budget
    halt: measure.Halt
    idle_timeout_s: float | None
    end: End = End.END

    def run(self) -> None:
        """Read until the end, or until `_has_to_end`."""
        asked_s = time.monotonic()
        for readers in self.reading.polls():
            if readers:
                self.tally.latencies.add(time.monotonic() - asked_s)
            for reader in readers:
                messages = reader.take_messages()
                if granted := self.budget.take(len(messages)):
                    size = sum([len(payload) for _, _, payload in messages[:granted]])
                    self.tally.add(granted, size)
            if self._has_to_end(is_empty=not readers):
                return
            asked_s = time.monotonic()

    def _has_to_end(self, *, is_empty: bool) -> bool:
        if self.budget.is_spent:
            self.end = End.COUNT
        elif self.halt():
            self.end = End.HALT
        elif is_empty and self.idle_timeout_s is not None:
            last_s = max(tally.last_s for tally in self.tallies)  # of a message, in any thread
            if time.monotonic() - last_s >= self.idle_timeout_s:
                self.end = End.IDLE
        return self.end is not End.END
