"""Measures how long messages take from their producers to each stage: `pipeline latency`.

A thread reads the ends of the topics, and another one those of their mirrors; offsets of a group
and of loads are looked at in between. Times are those of this machine and of the envelopes, so
clocks that differ are measured, too.
"""

from __future__ import annotations

import math
import queue
import random
import time
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from operator import methodcaller
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from broker.client.selection import find_partitions
from broker.client.side import Side
from broker.consumer.cluster_reader import ClusterReader
from broker.exposition import exposition_text
from broker.metrics import ManagedObject, Reading, counter, gauge
from broker.metrics_server import served_metrics
from broker.positions import Mark
from broker.protocol.envelope import Envelope, open_envelope
from broker.records import Count, Fit, Integer, Rank, Seconds, Text
from broker.topic import ReadRange, TopicPartition
from broker.units import count_text, format_duration
from pylogctl.cli.columns import Document, Row
from pylogctl.cli.connections import open_registry, open_side
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.offsets import make_span, resolve_ranges
from pylogctl.cli.process import StopRequest, graceful_stop
from pylogctl.cli.render import render

if TYPE_CHECKING:
    from pylogctl.pipeline.options import LatencyChoice

_LOOK_S = 0.2  # between two looks at committed offsets and loads
_SAMPLE_COUNT = 100_000
"""Latencies of a stage that percentiles are of; of more, a random choice."""
_WAITING_COUNT = 100_000
"""Messages of a partition that are followed to a later stage at a time."""

_STAGES = ("broker", "consumer", "mirror", "load")

Ranges = Mapping[TopicPartition, ReadRange]


class LatencyRow(Row):
    """How long the messages of a topic took from their producers to a stage."""

    topic: Annotated[Text, "the topic"]
    stage: Annotated[
        Text,
        "broker: readable; consumer: committed; mirror: readable there; load: loaded",
        Fit.WHOLE,
    ]
    messages: Annotated[Integer, "messages with an envelope that came there"]
    p50: Annotated[Seconds, "time in which half of them came", Rank(1)]
    p90: Annotated[Seconds, "time in which 90 % came", Rank(2)]
    p99: Annotated[Seconds, "time in which 99 % came", Rank(1)]
    max: Annotated[Seconds, "the longest time"]
    min: Annotated[Seconds, "the shortest time; below zero if clocks differ", Rank(2)]
    early: Annotated[Count, "messages that came before they were made, as clocks differ", Rank(2)]
    waiting: Annotated[Integer, "messages that have not come there yet", Rank(1)]
    oldest: Annotated[Seconds, "age of the oldest of them", Rank(2)]


LATENCY = Document("pipeline.latency/1", LatencyRow, empty="no message with an envelope came")


class _Made(NamedTuple):
    """A message that was read: where reading resumes behind it, and when it was made."""

    partition: TopicPartition
    end: int
    envelope: Envelope


@dataclass(eq=False)
class Stage:
    """The latencies of the messages of a topic up to one stage, in microseconds."""

    topic: str
    name: str
    count: int = 0
    early_count: int = 0
    min_us: int = 0
    max_us: int = 0
    waiting: dict[TopicPartition, deque[tuple[int, int]]] = field(default_factory=dict)
    _sample: array[int] = field(default_factory=lambda: array("q"))

    def note(self, latency_us: int) -> None:
        """Note the latency of a message."""
        self.min_us = min(self.min_us, latency_us) if self.count else latency_us
        self.max_us = max(self.max_us, latency_us) if self.count else latency_us
        self.early_count += latency_us < 0
        self.count += 1
        if len(self._sample) < _SAMPLE_COUNT:
            self._sample.append(latency_us)
        elif (place := random.randrange(self.count)) < _SAMPLE_COUNT:
            self._sample[place] = latency_us

    def expect(self, made: _Made) -> None:
        """Wait for a message, unless very many of its partition are waited for."""
        waiting = self.waiting.setdefault(made.partition, deque())
        if len(waiting) < _WAITING_COUNT:
            waiting.append((made.end, made.envelope.time_us))

    def reach(self, partition: TopicPartition, offset: int, now_us: int) -> None:
        """Note that all messages before an offset have come."""
        waiting = self.waiting.get(partition, ())
        while waiting and waiting[0][0] <= offset:
            self.note(now_us - waiting.popleft()[1])

    def percentile_s(self, percent: int) -> float | None:
        """Return the latency that so many percent do not exceed."""
        sample = sorted(self._sample)
        return sample[math.ceil(len(sample) * percent / 100) - 1] / 1e6 if sample else None

    @property
    def waiting_count(self) -> int:
        """Return how many messages are waited for."""
        return sum(map(len, self.waiting.values()))

    def oldest_s(self, now_us: int) -> float | None:
        """Return the age of the oldest message that is waited for."""
        made = [one[0][1] for one in self.waiting.values() if one]
        return (now_us - min(made)) / 1e6 if made else None

    def row(self, now_us: int) -> LatencyRow:
        """Return what is known."""
        p50, p90, p99 = map(self.percentile_s, (50, 90, 99))
        longest = self.max_us / 1e6 if self.count else None
        shortest = self.min_us / 1e6 if self.count else None
        return LatencyRow(
            *(self.topic, self.name, self.count, p50, p90, p99, longest, shortest),
            *(self.early_count, self.waiting_count, self.oldest_s(now_us)),
        )


LATENCIES: ManagedObject[Stage] = ManagedObject(
    "PipelineLatency.{topic}-{stage}",
    *(
        gauge(
            f"P{percent}", methodcaller("percentile_s", percent),
            f"time from the producer in which {percent} % of the messages came", unit="seconds",
            series=f'pipeline_latency_seconds{{quantile="{percent / 100:g}"}}')
        for percent in (50, 90, 99, 100)
    ),
    counter("Messages", lambda it: it.count,
        "messages that came to the stage", series="pipeline_latency_messages_total"),
    counter("EarlyMessages", lambda it: it.early_count,
        "messages that came before they were made, as clocks differ",
        series="pipeline_latency_early_messages_total"),
    gauge("Waiting", lambda it: it.waiting_count,
        "messages that have not come to the stage yet", series="pipeline_latency_waiting"),
)  # fmt: skip


def run(env: Environment, mirror: Environment | None, choice: LatencyChoice) -> ExitStatus:
    """Measure until time or messages are over, and render; fail above the limit."""
    with ExitStack() as stack:
        measuring = _Measuring(choice, stack.enter_context(graceful_stop()))
        threads = stack.enter_context(ThreadPoolExecutor(2, "tail"))
        looks = [_loaded(choice.load)] if choice.load is not None else []
        if choice.group is not None:
            looks.append(stack.enter_context(_committed(env, choice.group)))
        for name, one in (("broker", env), ("mirror", mirror)):
            if one is not None:
                side = stack.enter_context(open_side(one, is_stream=True))
                reader = ClusterReader(*side[:2], _ends(one, side, choice.topics))
                measuring.tails.append(threads.submit(_read, name, reader, measuring.arrived))
                stack.callback(wait, measuring.tails[-1:])
                stack.callback(reader.interrupt)
        followed = {"broker", *(name for name, _ in looks)}
        followed |= {"mirror"} if mirror is not None else set()
        measuring.stages = {
            (topic, name): Stage(topic, name)
            for topic in choice.topics
            for name in _STAGES
            if name in followed
        }
        if choice.metrics_port is not None:
            serving = served_metrics(measuring.exposition, choice.metrics_port)
            env.note(f"metrics at {stack.enter_context(serving)}")
        measuring.run(looks)
    return _report(env, measuring)


def _ends(env: Environment, side: Side, topics: Sequence[str]) -> Ranges:
    span = make_span(env, (), from_beginning=False, exit_at_end=False)
    found = find_partitions(side.cluster, topics)
    return resolve_ranges(env, side, found, span, default_start=Mark.LATEST)


_Look = tuple[str, Callable[[], Mapping[TopicPartition, int]]]
"""The name of a stage, and a function that returns the offsets before which all has come there."""


@contextmanager
def _committed(env: Environment, group: str) -> Iterator[_Look]:
    from broker.admin.groups import read_group, require_group  # late: ZooKeeper's client

    with open_registry(env) as registry:
        require_group(registry.session, group)

        def look() -> dict[TopicPartition, int]:
            offsets = read_group(registry.session, group, all_topics=()).offsets
            found = {partition: one.offset for partition, one in offsets.items()}
            return {partition: one for partition, one in found.items() if one is not None}

        yield "consumer", look


def _loaded(directory: Path) -> _Look:
    from broker.spark.loading.output import LoadOutput  # late: few runs look at loads

    output = LoadOutput(directory)

    def look() -> Mapping[TopicPartition, int]:
        last = output.last()
        return {} if last is None else last.offsets

    look()  # a directory of something else is an error at once
    return "load", look


class _Arrival(NamedTuple):
    stage: str
    time_us: int
    found: list[_Made]


def _read(stage: str, reader: ClusterReader, arrived: queue.SimpleQueue[_Arrival]) -> None:
    """Give each batch that is appended to topics with the time it came, until interrupted."""
    with reader:
        for readers in reader.polls():
            now_us = time.time_ns() // 1000
            for one in readers:
                arrived.put(_Arrival(stage, now_us, _made(one.partition, one.take_messages())))


def _made(partition: TopicPartition, messages: Sequence[tuple[int, int, bytes]]) -> list[_Made]:
    """Return the messages that have an envelope; those of a wrapper end where it does."""
    found, end = [], 0
    for offset, next_offset, stored in reversed(messages):
        if next_offset != offset:
            end = next_offset
        envelope, _ = open_envelope(stored)
        if envelope is not None:
            found.append(_Made(partition, end, envelope))
    return found[::-1]


@dataclass(eq=False)
class _Measuring:
    choice: LatencyChoice
    stop: StopRequest
    stages: dict[tuple[str, str], Stage] = field(default_factory=dict)
    arrived: queue.SimpleQueue[_Arrival] = field(default_factory=queue.SimpleQueue)
    tails: list[Future[None]] = field(default_factory=list)
    earliest: dict[str, int] = field(default_factory=dict)  # negative latencies, by host
    made_count: int = 0  # messages that are followed

    def run(self, looks: Sequence[_Look]) -> None:
        until_s = time.monotonic() + self.choice.for_s
        later = [name for name, _ in looks]
        while (left_s := until_s - time.monotonic()) > 0 and not self.stop.is_set:
            look_s = time.monotonic() + min(_LOOK_S, left_s)
            while (wait_s := look_s - time.monotonic()) > 0:
                try:
                    self._take(self.arrived.get(timeout=wait_s), later)
                except queue.Empty:
                    break
            for name, look in looks:
                offsets, now_us = look(), time.time_ns() // 1000
                for partition, offset in offsets.items():
                    if (stage := self.stages.get((partition.topic, name))) is not None:
                        stage.reach(partition, offset, now_us)
            for tail in self.tails:
                if tail.done():
                    tail.result()  # it ends by a failure only
            if self._has_enough():
                return

    def _take(self, arrival: _Arrival, later: Sequence[str]) -> None:
        limit = self.choice.max_messages
        for made in arrival.found:
            if arrival.stage == "broker":
                if limit is not None and self.made_count >= limit:
                    return
                self.made_count += 1
            envelope, topic = made.envelope, made.partition.topic
            latency_us = arrival.time_us - envelope.time_us
            if latency_us < 0:
                self.earliest[envelope.host] = min(latency_us, self.earliest.get(envelope.host, 0))
            self.stages[topic, arrival.stage].note(latency_us)
            if arrival.stage == "broker":
                for name in later:
                    self.stages[topic, name].expect(made)

    def _has_enough(self) -> bool:
        limit = self.choice.max_messages
        if limit is None or self.made_count < limit:
            return False
        mirrored = [one.count for one in self.stages.values() if one.name == "mirror"]
        is_mirrored = not mirrored or sum(mirrored) >= limit
        return is_mirrored and not any(one.waiting_count for one in self.stages.values())

    def exposition(self) -> str:
        stages = list(self.stages.values())
        return exposition_text([Reading(LATENCIES, one, (one.topic, one.name)) for one in stages])


def _report(env: Environment, measuring: _Measuring) -> ExitStatus:
    """Render what was measured; raise if there was nothing, or a latency is above the limit."""
    choice, now_us = measuring.choice, time.time_ns() // 1000
    rows = [one.row(now_us) for one in measuring.stages.values()]
    render(env, LATENCY, [one for one in rows if one.messages or one.waiting])
    for host, latency_us in sorted(measuring.earliest.items()):
        env.warn(
            f"messages of host '{host}' came up to {format_duration(-latency_us / 1e6)} before "
            "they were made: its clock and the one here differ"
        )
    if measuring.stop.is_set:
        return measuring.stop.status
    lacks = choice.max_messages is not None and measuring.made_count < choice.max_messages
    if not measuring.made_count or lacks:
        wanted = "" if choice.max_messages is None else f" of {choice.max_messages}"
        raise CliError(
            ExitStatus.TIMEOUT,
            f"{count_text(measuring.made_count)}{wanted} with an envelope came in "
            f"{choice.for_s:g}s",
            "produce --envelope, or the topic's setting envelope=true, gives them one",
        )
    slowest = max(rows, key=_longest_s)
    if choice.fail_above is not None and _longest_s(slowest) > choice.fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"a message of '{slowest.topic}' took {format_duration(_longest_s(slowest))} to stage "
            f"{slowest.stage}, or longer; the limit is {choice.fail_above:g}s",
            details={"seconds": _longest_s(slowest), "limit": choice.fail_above},
        )
    return ExitStatus.OK


def _longest_s(row: LatencyRow) -> float:
    """Return the longest time that a message took, or waits for."""
    return max(row.max or 0.0, row.oldest or 0.0)
