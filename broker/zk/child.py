"""The program between a process and a child that dies with it; see `ChildProcess`.

It is run as a script in a process of its own, as code between fork and exec can deadlock in a
process with threads: `child.py MODE PARENT_PID COMMAND..`
In mode `signal` (Linux) it becomes the command; the kernel sends it SIGTERM when the thread that
forked it ends. In mode `pipe` (any POSIX system) it runs the command as its child, and sends it
SIGTERM at the end of standard input, whose other end the parent holds open.

Imports nothing of the library, so that the script starts in a few milliseconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import NoReturn

SIGNAL = "signal"
PIPE = "pipe"
DEFAULT_MODE = SIGNAL if sys.platform == "linux" else PIPE

_PR_SET_PDEATHSIG = 1


def _become(parent_pid: int, command: list[str]) -> NoReturn:
    """Become the command, to be sent SIGTERM when the parent dies."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"cannot tie a process to its parent: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:  # it died before the kernel was asked
        sys.exit("the parent has died already")
    os.execv(command[0], command)


def _run_until_end_of_input(command: list[str]) -> int:
    """Run the command until it or standard input ends; return its exit status."""
    # close_fds: the command inherits the descriptor kept open for it.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    def terminate_at_end_of_input() -> None:
        while os.read(0, 1):
            pass
        child.terminate()

    threading.Thread(target=terminate_at_end_of_input, name="tether", daemon=True).start()
    status = child.wait()
    return status if status >= 0 else 128 - status  # 128 + the signal's number


def _main(mode: str, parent_pid: str, *command: str) -> int:
    # SIGTERM is the parent's order to end; a user who had the parent ignore it did not mean that
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if mode == SIGNAL:
        return _become(int(parent_pid), list(command))
    return _run_until_end_of_input(list(command))


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
