"""Facts about the machine, without which figures cannot be judged."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from broker.protocol import codec


def facts(repository: Path) -> dict[str, Any]:
    """Return processor, cores, memory, load, system, Python, codec and the commit measured."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "load": [round(load, 2) for load in os.getloadavg()],
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "codec": codec.describe(),
        "commit": _commit(repository),
    }


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor()
    lines = path.read_text().splitlines()
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "?")


def _commit(repository: Path) -> str:
    command = ["git", "-C", str(repository), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"
