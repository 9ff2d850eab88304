"""Start-up time of commands, as multiples of that of the bare interpreter.

The bare interpreter is that of an empty environment: packages installed here slow every start down,
and would improve the ratios.
"""

from __future__ import annotations

import os
import socket
import subprocess
import time
import venv
from collections.abc import Callable, Iterator
from functools import partial

from bench.broker_process import PYLOGCTL, temporary_directory
from bench.measure import Goal, Measurement, Plan

_TIMEOUT_S = 30.0
_GOALS = (1, 4, 8, 9, 9)


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure bare Python and each command in turn, so that load affects all of them."""
    with temporary_directory(plan.directory) as directory:
        venv.create(directory, symlinks=True)
        bare = [str(directory / "bin" / "python"), "-c", "pass"]
        actions: dict[str, Callable[[], float]] = {
            "bare python": partial(_until_exit, bare),
            "pylogctl --version": partial(_until_exit, [str(PYLOGCTL), "--version"]),
            "pylogctl --help": partial(_until_exit, [str(PYLOGCTL), "--help"]),
            "pylogctl produce to connect": partial(_until_connect, "produce"),
            "pylogctl consume to connect": partial(_until_connect, "consume"),
        }
        for action in actions.values():
            action()  # the first one may have to compile modules
        count = max(1, plan.size(15, 5) * plan.repetitions // 3)
        rounds = [[action() for action in actions.values()] for _ in range(count)]
    columns = [list(column) for column in zip(*rounds, strict=True)]
    for name, values in zip(actions, columns, strict=True):
        yield Measurement(f"start of {name}", "ms", [1000 * value for value in values])
    for name, values, goal in list(zip(actions, columns, _GOALS, strict=True))[1:]:
        ratio = min(values) / min(columns[0])
        most = Goal(goal, is_most=True)
        yield Measurement(f"start of {name}, best", "x bare python", [ratio], most)


def _until_exit(command: list[str]) -> float:
    started_s = time.perf_counter()
    subprocess.run(
        command, stdout=subprocess.DEVNULL, env=_environment(), check=True, timeout=_TIMEOUT_S
    )
    return time.perf_counter() - started_s


def _until_connect(command: str) -> float:
    """Return the seconds until a command connects to its broker, and end it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(_TIMEOUT_S)
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        started_s = time.perf_counter()
        process = subprocess.Popen(
            [PYLOGCTL, command, "--broker", address, "topic"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=_environment(),
        )
        try:
            listener.accept()[0].close()
            return time.perf_counter() - started_s
        finally:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    """Return the environment without variables that keep Python from caching compiled modules."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
