"""Finding the processes that match patterns for a broker, as an operator's `ps` does."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from broker.server.requests import filter_worker


def pattern_processes(broker_pid: int) -> list[int]:
    """Return the ids of those that a process has started and that run."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            state, parent_pid = (directory / "stat").read_text().rpartition(")")[2].split()[:2]
            arguments = (directory / "cmdline").read_bytes().split(b"\0")
            is_one = filter_worker.__name__.encode() in arguments
            if is_one and state != "Z" and int(parent_pid) == broker_pid:
                found.append(int(directory.name))
    return found


def is_busy(pid: int) -> bool:
    """Return whether a process is computing something."""
    return _state_of(pid) == "R"


def is_running(pid: int) -> bool:
    """Return whether there is such a process that has not ended."""
    return _state_of(pid) not in ("", "Z")


def _state_of(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return stat.rpartition(")")[2].split()[0]
