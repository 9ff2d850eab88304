"""The command line as it is used: `cat` into `pylogctl produce`, `pylogctl consume` to nowhere."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.bench.broker_process import (
    PYLOGCTL,
    BrokerProcess,
    running_broker,
    temporary_directory,
)
from tests.bench.measure import Goal, Measurement, Plan, repeat_rate
from tests.bench.workload import write_lines

_TOPIC = "piped"
_TIMEOUT_S = 300.0
_MB = 1e6


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure 1 GiB of lines of 200 bytes into a broker and out of it, processes' starts included.

    The same bytes through `cat` alone say what the pipe costs.
    """
    with temporary_directory(plan.directory) as directory:
        source = directory / "lines"
        total = write_lines(source, plan.size(1 << 30, 128 << 20))
        rates = repeat_rate(plan, total / _MB, partial(_pipe, source, ["wc", "-c"]))
        yield Measurement("cat | wc", "MB/s", rates)
        rates = repeat_rate(plan, total / _MB, partial(_produce_fresh, plan, source))
        yield Measurement("cat | pylogctl produce", "MB/s", rates, Goal(60))
        with running_broker(plan.directory) as broker:
            _produce(broker, source)
            rates = repeat_rate(plan, total / _MB, partial(_consume, broker))
            yield Measurement("pylogctl consume >/dev/null", "MB/s", rates, Goal(60))


def _produce_fresh(plan: Plan, source: Path) -> float:
    with running_broker(plan.directory) as broker:
        return _produce(broker, source)


def _produce(broker: BrokerProcess, source: Path) -> float:
    return _pipe(source, [str(PYLOGCTL), "produce", "--quiet", *_at(broker), _TOPIC])


def _pipe(source: Path, command: list[str]) -> float:
    """Return the seconds that `cat source | command` takes."""
    started_s = time.perf_counter()
    with subprocess.Popen(["cat", source], stdout=subprocess.PIPE) as cat:
        subprocess.run(
            command,
            stdin=cat.stdout,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=_TIMEOUT_S,
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
