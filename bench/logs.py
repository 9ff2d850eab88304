"""Logs of both formats: sets of 0.7's entries, and batches of the same messages.

An append validates its set before, as a broker does for every request. A read finds a slice of a
segment's file and copies it from the page cache; the next one begins behind the last whole set or
batch in it. Both formats take turns; figures are of processor time, which equals elapsed time on an
idle machine. The last ones are of a broker that is sent a request at a time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bench.broker_process import BrokerProcess, running_broker, temporary_directory
from bench.measure import Measurement, Plan
from bench.workload import payloads
from broker.clock import SystemClock
from broker.log.format import format_of
from broker.log.log import Log, LogParts
from broker.log.segment import Segment, SegmentFiles
from broker.protocol import codec
from broker.protocol.client_requests import (
    Acks,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import Record
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.layouts import ExtensionRequest
from broker.stats import WindowedStats
from broker.topic import NO_HOME, TopicPartition
from broker.topic_settings import TopicConfig

_HOMES = {"0.7": 0, "batches": NO_HOME}
_SETS = {"1 message": 1, "16 kB": 75, "64 kB": 300}
"""How many messages a set or batch has."""
_READS = {"64 kB": 64 << 10, "1 MiB": 1 << 20}
_SEGMENT_BYTES = 16 << 20
_TURNS = 5
_MB = 1e6


class _Case(NamedTuple):
    """A log, and the set that is appended to it."""

    log: Log
    message_set: bytes
    message_count: int
    scan: Callable[[bytes], object]

    @property
    def offset_count(self) -> int:
        """Return how many offsets each set takes."""
        return self.message_count if self.log.format.counts_records else len(self.message_set)


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure appends, reads, and the scan of a recovery."""
    cases: list[_Case] = []
    with temporary_directory(plan.directory) as directory:
        for name, count in _SETS.items():
            cases = [_make(directory / str(count), one, count) for one in _HOMES]
            append = partial(_append, set_count=plan.size(300, 60))
            yield from _in_turns(plan, f"log append, {name}", "messages/s", cases, append)
        for name, size in _READS.items():
            for place in ("active segment", "closed segments"):
                read = partial(_read, max_bytes=size, is_closed=place != "active segment")
                yield from _in_turns(plan, f"log read, {name}, {place}", "MB/s", cases, read)
        yield from _in_turns(plan, "log recovery scan", "MB/s", cases, _scan)
    with running_broker(plan.directory) as broker:
        for case in cases:
            partition, name = case.log.partition, case.log.format.name
            broker.connect().call(CreateTopicRequest(partition.topic + name, 1, format=name))
        count = plan.size(2000, 400)  # processor time has a resolution of 10 ms
        for what, measure in (("publish, 64 kB", _publish), ("read, 64 kB", _read_broker)):
            one = partial(measure, broker=broker, count=count)
            yield from _in_turns(plan, f"broker {what}", "requests/s", cases, one)


def _make(directory: Path, kind: str, message_count: int) -> _Case:
    partition = TopicPartition("log", _HOMES[kind], 0)
    clock, format, path = SystemClock(), format_of(partition), directory / kind
    path.mkdir(parents=True)
    segment = Segment(path, 0, size=0, modified_ms=clock.time_ms(), format=format)
    format.prepare([segment])
    segment.file = segment.open(os.O_RDWR | os.O_CREAT)
    never = 1 << 40
    config = TopicConfig(
        segment_bytes=_SEGMENT_BYTES,
        roll_ms=never,
        retention_ms=never,
        retention_bytes=-1,
        flush_interval_messages=never,
        flush_interval_ms=never,
        flush_before_read=False,
    )
    parts = LogParts(
        clock=clock,
        files=SegmentFiles(),
        schedule_flush=lambda log, due_s: None,
        flush_stats=WindowedStats(clock, 60.0),
    )
    messages = payloads()[:message_count]
    log = Log(partition, path, config, [segment], parts)
    if not format.counts_records:
        return _Case(log, codec.encode(messages), message_count, codec.scan)
    records = [Record(n, clock.time_ms(), None, one) for n, one in enumerate(messages)]
    return _Case(log, codec.encode_batch(records), message_count, codec.scan_batches)


def _in_turns(
    plan: Plan, name: str, unit: str, cases: list[_Case], measure: Callable[[_Case], float]
) -> Iterator[Measurement]:
    """Yield the rate of each format, and the ratio of both."""
    rounds = [[measure(one) for one in cases] for _ in range(_TURNS * plan.repetitions)]
    for kind, rates in zip(_HOMES, zip(*rounds, strict=True), strict=True):
        yield Measurement(f"{name}, {kind}", unit, rates)
    ratios = [batches / entries for entries, batches in rounds]
    yield Measurement(f"{name}, batches to 0.7", "times", ratios)


def _append(case: _Case, set_count: int) -> float:
    started_s = time.process_time()
    for _ in range(set_count):
        case.scan(case.message_set)
        case.log.append(case.message_set, case.message_count)
    return set_count * case.message_count / (time.process_time() - started_s)


def _read(case: _Case, max_bytes: int, *, is_closed: bool) -> float:
    """Read the last segment or all others, from start to end."""
    log = case.log
    last = log.segments.all[-1].base_offset
    offset, end = (log.log_start_offset, last) if is_closed else (last, log.high_watermark)
    step = max(1, max_bytes // len(case.message_set)) * case.offset_count
    buffer = memoryview(bytearray(max_bytes))
    copied = 0
    started_s = time.process_time()
    while offset < end:
        found = log.read(offset, max_bytes)
        assert found is not None
        copied += os.preadv(found.file.fd, [buffer[: found.length]], found.position)
        offset = min(offset + step, end)
    return copied / _MB / (time.process_time() - started_s)


def _scan(case: _Case) -> float:
    segment = case.log.segments.all[0]
    started_s = time.process_time()
    end = segment.format.valid_end(segment, segment.open(), 0)
    elapsed_s = time.process_time() - started_s
    assert end == segment.size
    return end / _MB / elapsed_s


def _publish(case: _Case, broker: BrokerProcess, count: int) -> float:
    """Return how many requests of one set a broker handles in a second of processor time."""
    request = PublishRequest(
        Acks.WRITTEN, 1000, (PartitionSet(_of_broker(case), case.message_set),)
    )
    return _calls(broker, [request] * count)


def _read_broker(case: _Case, broker: BrokerProcess, count: int) -> float:
    """As `_publish`, for reads of a set each, from the log's start on."""
    size = len(case.message_set)
    positions = (
        PartitionPosition(_of_broker(case), number * case.offset_count, size)
        for number in range(count)
    )
    return _calls(broker, [ReadRequest(0, 1, size, (one,)) for one in positions])


def _of_broker(case: _Case) -> TopicPartition:
    return case.log.partition._replace(topic=case.log.partition.topic + case.log.format.name)


def _calls(broker: BrokerProcess, requests: Sequence[ExtensionRequest]) -> float:
    connection = broker.connect()
    connection.call(requests[0])
    before_s = broker.cpu_s()
    for one in requests:
        connection.call(one)
    used_s = broker.cpu_s() - before_s
    connection.close()
    return len(requests) / used_s
