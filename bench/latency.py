"""From producer to consumer at fixed rates, as `pylogctl perf e2e` measures it.

The lower limit is measured before: a relay that only passes messages on.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.broker_process import PYLOGCTL, BrokerProcess, running_broker, temporary_directory
from bench.measure import ChartPosition, Goal, Measurement, Plan
from bench.relay import relayed_ms

_TIMEOUT_S = 120.0
_NO_FLUSH = {"log.flush.before.read": "false"}
_PERCENTILES = ("p50_ms", "p90_ms", "p99_ms", "p99_9_ms", "max_ms")
_RATES = (1_000, 10_000, 50_000)
_GOAL_RATE = 10_000
_LIMITS = "latency of a bare relay, 10,000 messages a second"


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure messages of 200 bytes: flushed before they are readable, and readable before that."""
    yield from _limits(plan)
    strict, relaxed = Goal(5, is_most=True), Goal(2, is_most=True)
    yield from _measure(plan, "flushed before it is visible", {}, "-1", strict)
    yield from _measure(plan, "visible before it is flushed", _NO_FLUSH, "1", relaxed)


def _limits(plan: Plan) -> Iterator[Measurement]:
    for what, is_synced in (("passed on", False), ("synced, then passed on", True)):
        with temporary_directory(plan.directory) as directory:
            path = directory / "log" if is_synced else None
            found_ms = [
                relayed_ms(_GOAL_RATE, plan.size(10, 2), path) for _ in range(plan.repetitions)
            ]
        for percent in (50, 90, 99, 99.9):
            position = ChartPosition(_LIMITS, what, f"p{percent:g}")
            values = [one[int(len(one) * percent / 100)] for one in found_ms]
            title = f"limit at {_GOAL_RATE:,}/s: {what}, p{percent:g}"
            yield Measurement(title, "ms", values, position=position)


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
            position = ChartPosition(f"latency, {what} over messages a second", percentile, rate)
            values = [one[name] for one in found]
            its_goal = goal if (rate, name) == (_GOAL_RATE, "p99_ms") else None
            title = f"latency at {rate:,}/s, {what}, {percentile}"
            yield Measurement(title, "ms", values, its_goal, position)


def end_to_end(
    brokers: Sequence[BrokerProcess],
    rate: float,
    seconds: float,
    *,
    size: int,
    acks: str = "-1",
    options: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the record of one run on topic `latency`.

    Args:
        brokers: those with partitions of the topic, or the one that will create it.
        rate: messages a second.
        seconds: how long to measure.
        size: of payloads, in bytes.
        acks: value of `request.required.acks`.
        options: others of the command.
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
        "-X",
        f"request.required.acks={acks}",
        *options,
    ]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=_TIMEOUT_S)
    (record,) = json.loads(done.stdout)["data"]
    result: dict[str, Any] = record
    return result
