"""A growing log: appending, reading from its start and at random, cached and not."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator

from bench.broker_process import BrokerProcess, running_broker
from bench.measure import Measurement, Plan
from bench.scale import load
from bench.scale.point import MB, Axis, seconds, watch
from bench.workload import ENTRY_BYTES
from broker.consumer.fetcher import Fetcher
from broker.protocol.requests import FetchRequest
from broker.topic import TopicPartition
from pylogctl.perf.measure import Latencies

_GIB = 1 << 30
_SIZES_GIB = (0.25, 1, 2, 4, 8, 16, 32, 50)
_SLICE_S = 0.25
_CACHED_SHARE = 0.6
"""What part of the memory a log may have, to be measured as one that the page cache holds."""
_FILL_BYTES = 1 << 20


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure logs up to the plan's size."""
    axis = Axis("GiB of log")
    with running_broker(plan.directory) as broker:
        (partition,) = load.create(broker, "long", 1)
        for size_gib in _sizes(plan):
            yield from _grow(plan, axis, broker, partition, size_gib)
            end = _end(broker, partition)
            if size_gib * _GIB <= _CACHED_SHARE * _memory_bytes():
                _fill_cache(broker)
                yield from _reads(plan, axis, broker, partition, size_gib, end, "cached")
            yield from _reads(plan, axis, broker, partition, size_gib, end, "not cached")
            memory = broker.memory_mb("VmHWM")
            yield axis.figure("broker memory", "", size_gib, memory, "MB")


def _reads(
    plan: Plan,
    axis: Axis,
    broker: BrokerProcess,
    partition: TopicPartition,
    size_gib: float,
    end: int,
    series: str,
) -> Iterator[Measurement]:
    """Measure reading from the start, then at random."""
    if series == "not cached":
        _drop_cache(broker)
    with watch([broker]) as watched:
        received = _read(broker, partition, 0, end, seconds(plan))
    rate = received / watched.seconds / MB
    yield axis.figure("bytes", f"read from the start, {series}", size_gib, rate, "MB/s")
    if series == "not cached":
        _drop_cache(broker)
    latencies = _read_anywhere(broker, partition, end, seconds(plan))
    for name, percent in (("p50", 50.0), ("p99", 99.0)):
        value = 1000 * (latencies.percentile_s(percent) or 0.0)
        label = f"{series}, {name}"
        yield axis.figure("time to read 200 KB anywhere", label, size_gib, value, "ms")


def _sizes(plan: Plan) -> list[float]:
    return [size for size in _SIZES_GIB if size <= plan.size(plan.log_gib, 1)]


def _grow(
    plan: Plan, axis: Axis, broker: BrokerProcess, partition: TopicPartition, size_gib: float
) -> Iterator[Measurement]:
    """Append until the log has a size, and measure the last part."""
    connection = broker.connect()
    frames = load.requests([partition])
    wanted = int(size_gib * _GIB)
    rate = 0.0
    while (end := load.log_ends(connection, [partition])[0]) < wanted:
        started_s = time.perf_counter()
        load.send_for([connection], frames, _SLICE_S)
        (after,) = load.log_ends(connection, [partition])
        rate = (after - end) / (time.perf_counter() - started_s)
    load.wait_until_readable(connection, [partition])
    connection.close()
    yield axis.figure("bytes", "append", size_gib, rate / MB, "MB/s")


def _end(broker: BrokerProcess, partition: TopicPartition) -> int:
    connection = broker.connect()
    (end,) = load.log_ends(connection, [partition])
    connection.close()
    return end


def _read(
    broker: BrokerProcess, partition: TopicPartition, start: int, end: int, seconds: float
) -> int:
    """Read from an offset for some seconds or to the end; return the number of bytes."""
    fetcher = Fetcher({partition: start}, broker.connect(), fetch_bytes=load.FETCH_BYTES)
    received = 0
    end_s = time.perf_counter() + seconds
    while received < end - start and time.perf_counter() < end_s:
        received += sum(len(piece.data) for piece in fetcher.poll())
    fetcher.close()
    return received


def _read_anywhere(
    broker: BrokerProcess, partition: TopicPartition, end: int, seconds: float
) -> Latencies:
    """Fetch 200 KB at random message boundaries, for some seconds."""
    source = random.Random(7)
    latencies = Latencies()
    connection = broker.connect()
    last = (end - load.FETCH_BYTES) // ENTRY_BYTES
    end_s = time.perf_counter() + seconds
    while (started_s := time.perf_counter()) < end_s:
        offset = source.randrange(last) * ENTRY_BYTES
        connection.ask(FetchRequest(partition.topic, partition.index, offset, load.FETCH_BYTES))
        latencies.add(time.perf_counter() - started_s)
    connection.close()
    return latencies


def _memory_bytes() -> int:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _fill_cache(broker: BrokerProcess) -> None:
    """Read all of the log into the page cache."""
    for path in broker.data.glob("*/*.pylog"):
        with path.open("rb", buffering=0) as file:
            while file.read(_FILL_BYTES):
                pass


def _drop_cache(broker: BrokerProcess) -> None:
    """Drop the log's pages, all of which are on disk, from the page cache."""
    for path in broker.data.glob("*/*.pylog"):
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
