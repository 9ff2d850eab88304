"""From producer to consumer at fixed rates, as `pylogctl perf e2e` measures it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.bench.broker_process import PYLOGCTL, BrokerProcess, running_broker
from tests.bench.measure import Goal, Measurement, Place, Plan

_TIMEOUT_S = 120.0
_NO_FLUSH = {"log.flush.before.read": "false"}
_PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "max_ms")
_RATES = (1_000, 10_000, 50_000)
_GOAL_RATE = 10_000


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure messages of 200 bytes: flushed before they are visible, and visible before that."""
    yield from _measure(plan, "flushed before it is visible", {}, "-1", Goal(5, is_most=True))
    yield from _measure(plan, "visible before it is flushed", _NO_FLUSH, "1", Goal(2, is_most=True))


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
