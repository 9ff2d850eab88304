"""A child process that dies with this one, even if this one is killed.

This file is also the program between the two, run as a script in a process of its own, as code
between fork and exec can deadlock in a process with threads: `child.py MODE PARENT_PID COMMAND..`
In mode `signal` (Linux) it becomes the command; the kernel sends it SIGTERM when the thread that
forked it ends. In mode `pipe` (any POSIX system) it runs the command as its child, and sends it
SIGTERM at the end of standard input, whose other end the parent holds open.

Imports nothing of the library, so that the script starts in a few milliseconds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

SIGNAL = "signal"
PIPE = "pipe"
_DEFAULT_MODE = SIGNAL if sys.platform == "linux" else PIPE

_PR_SET_PDEATHSIG = 1


class ChildProcess:
    """A child process that is terminated when this process dies.

    A thread of its own starts it and waits for it: Linux sends the death signal when the *thread*
    that forked the child ends, so that thread must live as long as the child.

    Args:
        log_file: all output is appended to it.
        environ: the whole environment.
        kept_fd: a descriptor the child inherits and keeps open.
        on_exit: called in the thread with the exit status (negative: the signal) when the process
            has ended, also after `stop`.
        mode: how the child is tied to this process, `SIGNAL` or `PIPE`.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        directory: Path,
        log_file: Path,
        environ: Mapping[str, str],
        kept_fd: int,
        on_exit: Callable[[int], None],
        mode: str = _DEFAULT_MODE,
    ) -> None:
        self._command = command
        self._directory = directory
        self._log_file = log_file
        self._environ = environ
        self._kept_fd = kept_fd
        self._on_exit = on_exit
        self._mode = mode
        self._process: subprocess.Popen[bytes] | None = None
        self._start_error: OSError | None = None
        self._started = threading.Event()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="child-process", daemon=True)

    @property
    def pid(self) -> int:
        """Return the id of the process, which has been started."""
        assert self._process is not None
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Return how the process ended (negative: the signal), None while it runs."""
        return self._process.returncode if self._process and self._ended.is_set() else None

    def start(self) -> None:
        """Start the process; `OSError` if the log file or the program cannot be opened."""
        self._thread.start()
        self._started.wait()
        if self._start_error:
            self._thread.join()
            raise self._start_error

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process to end; return whether it has."""
        return self._ended.wait(timeout_s)

    def stop(self, timeout_s: float) -> None:
        """End the process and wait for it; SIGTERM is followed by SIGKILL after `timeout_s`."""
        self._signal(signal.SIGTERM)
        if not self._ended.wait(timeout_s):
            self._signal(signal.SIGKILL)
        self._thread.join()

    def _signal(self, number: signal.Signals) -> None:
        # The child leads a process group, which in pipe mode has two members.
        with contextlib.suppress(ProcessLookupError):
            if not self._ended.is_set():
                os.killpg(self.pid, number)

    def _run(self) -> None:
        try:
            self._process = self._spawn()
        except OSError as error:
            self._start_error = error
            return
        finally:
            self._started.set()
        with self._process as process:
            status = process.wait()
        self._ended.set()
        self._on_exit(status)

    def _spawn(self) -> subprocess.Popen[bytes]:
        tether_command = [sys.executable, "-I", "-S", __file__, self._mode, str(os.getpid())]
        with self._log_file.open("ab") as output:
            return subprocess.Popen(
                [*tether_command, *self._command],
                cwd=self._directory,
                env=dict(self._environ),
                stdin=subprocess.PIPE if self._mode == PIPE else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self._kept_fd,),
                start_new_session=True,  # Ctrl-C on the terminal is for the parent alone
            )


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
