"""Throughput as a share of the machine's limits: loopback TCP, the page cache, CRC-32.

The limits are measured by ../shared/bench/limits.py, if it exists, with the Python packages of
`make bench-setup`, which have the fastest CRC libraries.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from bench import ours, verify
from bench.measure import ChartPosition, Measurement, Plan
from bench.peers import HARNESS, PYTHON
from bench.workload import ENTRY_BYTES

_TIMEOUT_S = 1200
_GB = 1e9
_CHART = "share of the machine's limits"
_WHAT = {
    "tcp_loopback_64k": "loopback TCP, 64 KB writes",
    "tcp_loopback_1m": "loopback TCP, 1 MB writes",
    "write_1m_no_fsync": "writes to the page cache, 1 MB",
    "sendfile_page_cache_200k": "sendfile from the page cache, 200 KB",
    "write_1m_fsync_at_end": "writes with one fsync at the end, 1 MB",
    "memcpy_256m": "memory copy",
}
_SHARES = (
    ("produce batch 50, ready requests", "c50-ack", "tcp_loopback_64k"),
    ("produce batch 1000, library", "b1000", "tcp_loopback_64k"),
    ("produce batch 1000, library", "b1000", "write_1m_no_fsync"),
    ("produce batch 1000, library", "b1000", "crc_200"),
    ("fetch, not decoded", "fetch", "sendfile_page_cache_200k"),
    ("consume, decoded", "consume", "sendfile_page_cache_200k"),
    ("consume, decoded", "consume", "crc_200"),
    ("verify", "verify", "crc_1m"),
)
"""Something of ours, and the limit it is held against."""


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure the limits, our rates, and the shares."""
    if not (HARNESS / "limits.py").exists():
        print("limits: left out: the harness, ../shared/bench, is not here", file=sys.stderr)
        return
    limits, names = _limits(_measured(plan))
    for key, value in limits.items():
        yield Measurement(f"limit: {names[key]}", "GB/s", [value])
    rates = _our_rates(plan)
    for what, mode, key in _SHARES:
        shares = [rate / limits[key] for rate in rates[mode]]
        name = f"{what}, of {names[key]}"
        yield Measurement(name, "x", shares, position=ChartPosition(_CHART, "", name))


def _measured(plan: Plan) -> dict[str, Any]:
    python = PYTHON if PYTHON.exists() else sys.executable
    with tempfile.TemporaryDirectory(dir=plan.directory) as directory:
        result = Path(directory) / "limits.json"
        subprocess.run(
            [python, HARNESS / "limits.py", "--dir", directory, "--out", result]
            + ["--quick"] * plan.is_quick,
            stdout=subprocess.DEVNULL,
            check=True,
            timeout=_TIMEOUT_S,
        )
        found: dict[str, Any] = json.loads(result.read_text())
    return found


def _limits(found: Mapping[str, Any]) -> tuple[dict[str, float], dict[str, str]]:
    """Return limits in GB/s by name."""
    values = {key: found[key]["median"] for key in _WHAT}
    names = dict(_WHAT)
    ieee = {name: rates for name, rates in found["crc"].items() if "IEEE" in name}
    for key, size in (("crc_200", "200B"), ("crc_1m", "1MB")):
        best = max(ieee, key=lambda name: float(ieee[name][size]))
        values[key] = ieee[best][size]
        names[key] = f"{best.partition(' ')[0]} of {size.replace('B', ' B').replace('M ', ' M')}"
    return values, names


def _our_rates(plan: Plan) -> dict[str, list[float]]:
    """Return GB/s by mode."""
    rates: dict[str, list[float]] = {}
    for _ in range(plan.size(plan.repetitions, 1)):
        for row in ours.measure(plan.directory, plan.size(1_000_000, 100_000)):
            rate = row.messages_per_s * ENTRY_BYTES / _GB
            rates.setdefault(row.mode, []).append(rate)
    (verified,) = verify.run(plan)
    rates["verify"] = [mb_per_s / 1000 for mb_per_s in verified.values]
    return rates
