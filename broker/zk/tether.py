"""A program that runs another one which must not outlive the process that started it.

`python tether.py MODE PARENT_PID COMMAND...`, always run as a script by `embedded`. In mode
`signal` (Linux) this process becomes the command, and the kernel sends it SIGTERM when the thread
that forked it ends. In mode `pipe` (any POSIX system) this process stays between, and sends SIGTERM
when standard input, whose other end the parent holds open, comes to its end.

Done in a process of its own because code between fork and exec in a process with threads can
deadlock. Imports nothing of the library, so that it starts in a few milliseconds.
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

_PR_SET_PDEATHSIG = 1


def run_with_signal(parent_pid: int, command: list[str]) -> NoReturn:
    """Become the command, to be sent SIGTERM when the parent dies.

    Args:
        parent_pid: the parent; if it died before the kernel was asked, nothing is run.
        command: program with its path, and arguments.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) != 0:
        sys.exit(f"cannot tie a process to its parent: {os.strerror(ctypes.get_errno())}")
    if os.getppid() != parent_pid:
        sys.exit("the parent has died already")
    os.execv(command[0], command)


def run_with_pipe(command: list[str]) -> int:
    """Run the command until it ends, or standard input does.

    Args:
        command: program with its path, and arguments.

    Returns:
        The command's exit status, 128 and the signal's number if it died of one.
    """
    # close_fds: the lock on the data directory must be held by the command as well.
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, close_fds=False)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())

    def terminate_at_end_of_input() -> None:
        while os.read(0, 1):
            pass
        child.terminate()

    threading.Thread(target=terminate_at_end_of_input, name="tether", daemon=True).start()
    status = child.wait()
    return status if status >= 0 else 128 - status


def main(arguments: list[str]) -> int:
    """Run the command in the mode asked for.

    Args:
        arguments: mode, parent's process id, command.

    Returns:
        The exit status.
    """
    mode, parent_pid, *command = arguments
    if mode == SIGNAL:
        return run_with_signal(int(parent_pid), command)
    return run_with_pipe(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
