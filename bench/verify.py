"""Verifying a segment file on one core, without a broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.broker_process import temporary_directory
from bench.measure import Goal, Measurement, Plan, repeat_rate
from bench.workload import ENTRY_BYTES, payloads
from broker.log.format import segment_name
from broker.log.offline.verify import Verification
from broker.protocol import codec

_MB = 1e6


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure a segment of messages of 200 bytes whose file is in the page cache."""
    with temporary_directory(plan.directory) as directory:
        path = directory / segment_name(0)
        total = _write_segment(path, plan.size(1 << 30, 256 << 20))
        rates = repeat_rate(plan, total / _MB, partial(_verify, path, total))
        goal = Goal(1500 if codec.IS_COMPILED else 300)
        yield Measurement("verify, one core", "MB/s", rates, goal)


def _write_segment(path: Path, total_bytes: int) -> int:
    block = codec.encode(payloads())
    count = total_bytes // len(block)
    with path.open("wb") as file:
        for _ in range(count):
            file.write(block)
    return count * len(block)


def _verify(path: Path, total: int) -> float:
    """Return the processor seconds, which equal elapsed time on an idle machine."""
    started_s = time.process_time()
    report = Verification(path).run()
    elapsed_s = time.process_time() - started_s
    if report.problems or report.message_count != total // ENTRY_BYTES:
        raise RuntimeError(f"{path} was not written as meant: {report}")
    return elapsed_s
