"""The command line: a file into `pylogctl produce`, `pylogctl consume` to /dev/null."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.broker_process import PYLOGCTL, BrokerProcess, running_broker, temporary_directory
from bench.library import IN_MB_S, OUT_MB_S, RATES
from bench.measure import ChartPosition, Goal, Measurement, Plan, repeat_rate
from bench.workload import write_lines

_TOPIC = "piped"
_TIMEOUT_S = 300.0
_MB = 1e6


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure producing and consuming 1 GiB of lines of 200 bytes, with process starts."""
    with temporary_directory(plan.directory) as directory:
        source = directory / "lines"
        total = write_lines(source, plan.size(1 << 30, 128 << 20))
        rates = repeat_rate(plan, total / _MB, partial(_produce_fresh, plan, source))
        name = "pylogctl produce"
        yield Measurement(name, "MB/s", rates, Goal(IN_MB_S), ChartPosition(RATES, "", name))
        with running_broker(plan.directory) as broker:
            _produce(broker, source)
            rates = repeat_rate(plan, total / _MB, partial(_consume, broker))
            name = "pylogctl consume"
            yield Measurement(name, "MB/s", rates, Goal(OUT_MB_S), ChartPosition(RATES, "", name))


def _produce_fresh(plan: Plan, source: Path) -> float:
    with running_broker(plan.directory) as broker:
        return _produce(broker, source)


def _produce(broker: BrokerProcess, source: Path) -> float:
    command = [str(PYLOGCTL), "produce", "--quiet", *_at(broker), _TOPIC]
    started_s = time.perf_counter()
    with source.open("rb") as lines:
        subprocess.run(
            command, stdin=lines, stdout=subprocess.DEVNULL, check=True, timeout=_TIMEOUT_S
        )
    return time.perf_counter() - started_s


def _consume(broker: BrokerProcess) -> float:
    command = [str(PYLOGCTL), "consume", "--quiet", *_at(broker), "--from-beginning"]
    started_s = time.perf_counter()
    with Path("/dev/null").open("wb") as output:
        subprocess.run(
            [*command, "--exit-at-end", _TOPIC], stdout=output, check=True, timeout=_TIMEOUT_S
        )
    return time.perf_counter() - started_s


def _at(broker: BrokerProcess) -> list[str]:
    return ["--broker", f"{broker.address.host}:{broker.address.port}"]
