"""From producer to consumer at fixed rates, as `pylogctl perf e2e` measures it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from typing import Any

from tests.bench.broker_process import PYLOGCTL, BrokerProcess, running_broker
from tests.bench.measure import Goal, Measurement, Place, Plan

_TIMEOUT_S = 120.0
_PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "max_ms")
_FLUSHED = "flushed before it is visible"
_RATES = (1_000, 10_000, 50_000)
_GOAL_RATE = 10_000


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure messages of 200 bytes, each flushed before it is visible."""
    for rate in _RATES:
        found = []
        for _ in range(plan.repetitions):
            with running_broker(plan.directory) as broker:
                found.append(end_to_end([broker], rate, plan.size(10, 2), size=200))
        for name in _PERCENTILES:
            goal = Goal(5, is_most=True) if (rate, name) == (_GOAL_RATE, "p99_ms") else None
            percentile = name.removesuffix("_ms").replace("_", ".")
            place = Place(f"latency, {_FLUSHED} over messages a second", percentile, rate)
            values = [one[name] for one in found]
            yield Measurement(f"latency at {rate:,}/s, {percentile}", "ms", values, goal, place)


def end_to_end(
    brokers: Sequence[BrokerProcess], rate: float, seconds: float, *, size: int
) -> dict[str, Any]:
    """Return the record of one run on topic `latency`.

    Args:
        brokers: which have the topic's partitions, or one that will.
        rate: messages a second.
        seconds: how long to measure.
        size: of payloads, in bytes.
    """
    command = [str(PYLOGCTL), "perf", "e2e", "latency", "--rate", f"{rate:g}/s"]
    for broker in brokers:
        command += ["--broker", f"{broker.address.host}:{broker.address.port}"]
    command += ["--duration", f"{seconds:g}s", "--size", str(size), "--output", "json", "--quiet"]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_TIMEOUT_S)
    (record,) = json.loads(done.stdout)["data"]
    result: dict[str, Any] = record
    return result
