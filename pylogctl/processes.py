"""Processes of this machine, by their id."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus

_POLL_S = 0.05


def read_pid(path: Path) -> int:
    """Return the process id a pid file holds, of a process that runs.

    Raises:
        CliError: the file holds no id, or no such process runs.
        OSError: the file cannot be read.
    """
    text = path.read_text(encoding="ascii", errors="replace").strip()
    if not text.isdecimal() or int(text) < 1:
        raise CliError(ExitStatus.CONFIG, f"'{path}' holds no process id: '{text[:40]}'")
    if not is_running(int(text)):
        raise CliError(ExitStatus.NOT_FOUND, f"no process {text} runs, which '{path}' names")
    return int(text)


def is_running(pid: int) -> bool:
    """Say whether a process runs; one that ended and was not waited for by its parent does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    return state.rpartition(")")[2].split()[:1] != ["Z"]


def wait_for_exit(pid: int, timeout_s: float) -> bool:
    """Wait until a process has ended; return whether it has within the time."""
    give_up_s = time.monotonic() + timeout_s
    while is_running(pid):
        if time.monotonic() >= give_up_s:
            return False
        time.sleep(_POLL_S)
    return True
