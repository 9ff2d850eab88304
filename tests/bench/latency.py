"""From producer to consumer at fixed rates, as `pylogctl perf e2e` measures it.

What no broker can be better than is measured before: how long a flush takes, and for how long the
machine stands still while its cores are busy, as machines that share processors do.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tests.bench.broker_process import (
    PYLOGCTL,
    BrokerProcess,
    running_broker,
    temporary_directory,
)
from tests.bench.measure import Goal, Measurement, Place, Plan

_TIMEOUT_S = 120.0
_NO_FLUSH = {"log.flush.before.read": "false"}
_PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "max_ms")
_RATES = (1_000, 10_000, 50_000)
_GOAL_RATE = 10_000
_ONE_PROCESSOR = {"num.threads": "1"}
_LIMITS = "no latency can be below"
_FLUSH_BYTES = 2000
_FLUSH_INTERVAL_S = 0.001


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure messages of 200 bytes: flushed before they are visible, and visible before that."""
    yield from _limits(plan)
    strict, relaxed = Goal(5, is_most=True), Goal(2, is_most=True)
    yield from _measure(plan, "flushed before it is visible", {}, "-1", strict)
    yield from _measure(plan, "visible before it is flushed", _NO_FLUSH, "1", relaxed)
    one = {**_NO_FLUSH, **_ONE_PROCESSOR}
    yield from _measure(plan, "visible before it is flushed, one processor", one, "1", relaxed)


def _limits(plan: Plan) -> Iterator[Measurement]:
    with temporary_directory(plan.directory) as directory:
        flushes_ms = sorted(_flushes_ms(directory / "log", plan.size(4000, 400)))
    for percent in (50, 99, 99.9):
        value = flushes_ms[int(len(flushes_ms) * percent / 100)]
        name = f"a flush of 2 KB, p{percent:g}"
        yield Measurement(f"limit: {name}", "ms", [value], place=Place(_LIMITS, "", name))
    cores = len(os.sched_getaffinity(0))
    with ProcessPoolExecutor(cores) as pool:
        pauses_ms = list(pool.map(_longest_pause_ms, [plan.size(10, 1)] * cores))
    name = "longest pause of a core, all busy"
    yield Measurement(f"limit: {name}", "ms", [max(pauses_ms)], place=Place(_LIMITS, "", name))


def _flushes_ms(path: Path, count: int) -> list[float]:
    """Return how long flushes take behind appends of what comes in a millisecond."""
    found = []
    with path.open("wb", buffering=0) as file:
        for _ in range(count):
            file.write(bytes(_FLUSH_BYTES))
            started_s = time.perf_counter()
            os.fdatasync(file.fileno())
            found.append(1000 * (time.perf_counter() - started_s))
            time.sleep(_FLUSH_INTERVAL_S)
    return found


def _longest_pause_ms(seconds: float) -> float:
    """Return the longest time between two looks at the clock, by a process that does just that."""
    longest_ns, last_ns = 0, time.monotonic_ns()
    end_ns = last_ns + int(seconds * 1e9)
    while last_ns < end_ns:
        now_ns = time.monotonic_ns()
        longest_ns, last_ns = max(longest_ns, now_ns - last_ns), now_ns
    return longest_ns / 1e6


def _measure(
    plan: Plan, what: str, properties: Mapping[str, str], acks: str, goal: Goal
) -> Iterator[Measurement]:
    for rate in _RATES:
        found = []
        for _ in range(plan.repetitions):
            with running_broker(plan.directory, **properties) as broker:
                seconds = plan.size(10, 2)
                found.append(end_to_end([broker], rate, seconds, size=200, acks=acks))
        for name in _PERCENTILES:
            percentile = name.removesuffix("_ms").replace("_", ".")
            place = Place(f"latency, {what} over messages a second", percentile, rate)
            values = [one[name] for one in found]
            its_goal = goal if (rate, name) == (_GOAL_RATE, "p99_ms") else None
            title = f"latency at {rate:,}/s, {what}, {percentile}"
            yield Measurement(title, "ms", values, its_goal, place)


def end_to_end(
    brokers: Sequence[BrokerProcess], rate: float, seconds: float, *, size: int, acks: str = "-1"
) -> dict[str, Any]:
    """Return the record of one run on topic `latency`.

    Args:
        brokers: which have the topic's partitions, or one that will.
        rate: messages a second.
        seconds: how long to measure.
        size: of payloads, in bytes.
        acks: acknowledgement asked for, as a property's value.
    """
    command = [str(PYLOGCTL), "perf", "e2e", "latency", "--rate", f"{rate:g}/s"]
    for broker in brokers:
        command += ["--broker", f"{broker.address.host}:{broker.address.port}"]
    command += [
        "--duration",
        f"{seconds:g}s",
        "--size",
        str(size),
        "--output",
        "json",
        "--quiet",
        "--acks",
        acks,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_TIMEOUT_S)
    (record,) = json.loads(done.stdout)["data"]
    result: dict[str, Any] = record
    return result
