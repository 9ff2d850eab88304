"""Other brokers on the same machine in the same run, and our throughput as multiples of theirs.

The peers are run by the harness in ../shared/bench, if it exists; its README lists their Debian
packages. `make bench-setup` installs the rest: the Python packages of the harness and the jars of
Apache Kafka. A missing peer is left out, and the reason is printed.

The harness's clients are in C. So is ours where brokers are compared: it sends requests that were
encoded beforehand, one per write. The figures of our library, with its client, are listed too.

Our broker is measured before each peer and after the last one, so that a machine that becomes
slower during the run affects all alike.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench import ours
from bench.broker_process import REPOSITORY
from bench.measure import ChartPosition, Goal, Measurement, Plan

HARNESS = REPOSITORY.parent / "shared" / "bench"
SETUP = Path(os.environ.get("BENCH_PEERS", REPOSITORY / "build" / "peers")).absolute()
"""Where `make bench-setup` puts Python packages (`venv`) and jars (`kafka`)."""
PYTHON = SETUP / "venv" / "bin" / "python"
MORE_IS_BETTER = "pylogctl as a multiple of peers"
LESS_IS_BETTER = "pylogctl as a multiple of peers, less is better"
_CLIENT_TIMEOUT_S = 300
_RUN_TIMEOUT_S = 3600


class Peer(NamedTuple):
    """A broker that the harness can run.

    `needs` is a program, or a path pattern from `SETUP` on; `share` is its part of the messages:
    less where it would take minutes.
    """

    needs: str
    share: float


PEERS = {
    "kafka": Peer("kafka/kafka_2.1*.jar", 0.2),
    "rabbitmq": Peer("rabbitmq-server", 0.2),
    "rabbitmq-stream": Peer("rabbitmq-server", 1.0),
    "activemq": Peer("activemq", 0.1),
    "nats": Peer("nats-server", 1.0),
    "nats-new": Peer("venv/bin/nats-server", 1.0),
    "redis": Peer("redis-server", 1.0),
}


class Figure(NamedTuple):
    """A mode of ours and the harness's modes it is compared with, of which the fastest counts."""

    name: str
    mode: str
    theirs: tuple[str, ...]


FIGURES = (
    Figure("produce batch 1", "c1-noack", ("b1-noack",)),
    Figure("produce batch 1, acknowledged", "c1-ack", ("b1-ack",)),
    Figure("produce batch 50", "c50-noack", ("b50-noack",)),
    Figure("produce batch 50, acknowledged", "c50-ack", ("b50-ack",)),
    Figure("library, one message a call, acknowledged", "queued", ("b1-ack",)),
    Figure("library, batches of 50, acknowledged", "b50", ("b50-ack",)),
    Figure("library, large batches, acknowledged", "b1000", ("b10000-ack", "perf-b50-ack")),
    Figure("library, consume", "consume", ("consume",)),
)


EXTRAS = {
    "produce batch 1, gathered writes": "piped",
    "library, one message a call, each its own request": "windowed",
    "bytes fetched, not decoded": "fetch",
}
"""Modes of ours that no peer has."""


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure our broker and every installed peer; yield figures and ratios."""
    message_count = plan.size(1_000_000, 50_000)
    found: dict[str, list[dict[str, Any]]] = {}
    mine = [ours.measure(plan.directory, message_count)]
    for name, peer in PEERS.items():
        reason, rows = _why_absent(peer), []
        if not reason:
            rows = _run_harness(plan, name, int(message_count * peer.share))
            reason = "" if rows else "the harness measured nothing"
        if reason:
            print(f"{name}: left out: {reason}", file=sys.stderr)
            continue
        found[name] = rows
        mine.append(ours.measure(plan.directory, message_count))
    for figure in FIGURES:
        values = [row.messages_per_s for rows in mine for row in rows if row.mode == figure.mode]
        theirs = {name: _best(rows, figure) for name, rows in found.items()}
        yield from _compared(figure.name, "messages/s", values, theirs, is_less_better=False)
    for what, mode in EXTRAS.items():
        values = [row.messages_per_s for rows in mine for row in rows if row.mode == mode]
        yield Measurement(what, "messages/s", values)
    for batch in (1, 50):
        mode = f"b{batch}-ack"
        yield from _compared(
            f"broker time, produce batch {batch}, acknowledged",
            "us/message",
            [row.broker_us for rows in mine for row in rows if row.mode == f"c{batch}-ack"],
            {name: _column(rows, "broker_cpu_us_per_msg", mode) for name, rows in found.items()},
            is_less_better=True,
        )
    yield from _compared(
        "bytes on disk",
        "bytes/message",
        [row.disk_bytes for rows in mine for row in rows if row.disk_bytes is not None],
        {name: _column(rows, "disk_bytes_per_msg", "b50-ack") for name, rows in found.items()},
        is_less_better=True,
    )
    yield from _compared(
        "broker memory, at most",
        "MB",
        [max(row.broker_mb for row in rows) for rows in mine],
        {name: _most(rows, "broker_peak_rss_mb") for name, rows in found.items()},
        is_less_better=True,
    )


def _why_absent(peer: Peer) -> str:
    """Return why a peer cannot be run; None if it can."""
    if not (HARNESS / "bench_peers.py").exists():
        return "the harness, ../shared/bench, is not here"
    if not PYTHON.exists():
        return "no Python packages; run: make bench-setup"
    if "/" not in peer.needs:
        return "" if shutil.which(peer.needs) else f"{peer.needs} is not installed"
    return "" if any(SETUP.glob(peer.needs)) else f"no {SETUP / peer.needs}; run: make bench-setup"


def _run_harness(plan: Plan, name: str, message_count: int) -> list[dict[str, Any]]:
    """Return what the harness measured of one peer; it starts the broker and stops it."""
    modes = {mode for figure in FIGURES for mode in figure.theirs} - {"consume"}
    with tempfile.TemporaryDirectory(dir=plan.directory) as directory:
        result = Path(directory) / "result.json"
        arguments = {
            "--peers": name,
            "--messages": str(message_count),
            "--reps": str(plan.size(plan.repetitions, 1)),
            "--modes": ",".join(sorted(modes)),
            "--timeout": str(_CLIENT_TIMEOUT_S),
            "--dir": directory,
            "--out": str(result),
        }
        options = [word for pair in arguments.items() for word in pair]
        path = f"{PYTHON.parent}:{os.environ.get('PATH', '')}"
        with subprocess.Popen(
            [PYTHON, HARNESS / "bench_peers.py", "--no-python", *options],
            env={**os.environ, "PATH": path, "KAFKA_LIBS": str(SETUP / "kafka")},
            stdout=sys.stderr,
        ) as process:
            try:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_RUN_TIMEOUT_S)
            finally:
                process.terminate()  # it then stops its broker
        rows: list[dict[str, Any]] = []
        with suppress(FileNotFoundError, ValueError):  # it was ended before or while it wrote
            rows = json.loads(result.read_text())["rows"]
    return [row for row in rows if "error" not in row]


def _compared(
    what: str,
    unit: str,
    mine: Sequence[float],
    theirs: Mapping[str, Sequence[float]],
    *,
    is_less_better: bool,
) -> Iterator[Measurement]:
    """Yield our values, theirs, and the ratios: median, worst and best."""
    yield Measurement(what, unit, mine, position=ChartPosition(what, "", "pylogctl"))
    for name, values in theirs.items():
        if values:
            yield Measurement(
                f"{what}: {name}", unit, values, position=ChartPosition(what, "", name)
            )
    for name, values in theirs.items():
        if values:
            ratios = [
                min(mine) / max(values),
                median(mine) / median(values),
                max(mine) / min(values),
            ]
            goal = Goal(1, is_most=is_less_better)
            matrix = LESS_IS_BETTER if is_less_better else MORE_IS_BETTER
            position = ChartPosition(matrix, f"/ {name}", what)
            yield Measurement(f"{what}: pylogctl / {name}", "x", ratios, goal, position)


def _best(rows: Sequence[Mapping[str, Any]], figure: Figure) -> list[float]:
    """Return the rates of the fastest mode."""
    by_mode: dict[str, list[float]] = {}
    for row in rows:
        is_consume = row["test"] == "consume"
        label = "consume" if is_consume else row["mode"]
        if label in figure.theirs:
            by_mode.setdefault(row["mode"], []).append(row["msgs_per_s"])
    return max(by_mode.values(), key=median, default=[])


def _column(rows: Sequence[Mapping[str, Any]], name: str, mode: str) -> list[float]:
    """Return a column of the rows that produced in a mode."""
    return [
        row[name]
        for row in rows
        if row["test"] == "produce" and row["mode"] == mode and name in row
    ]


def _most(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return sorted(row[name] for row in rows if name in row)[-1:]
