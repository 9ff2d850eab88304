"""A child process that dies with this one, however this one dies.

The other half is `tether`, the program that stands between. Knows nothing about ZooKeeper.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from broker.zk import tether

TETHER_MODE = tether.SIGNAL if sys.platform == "linux" else tether.PIPE


class ChildProcess:
    """A process tied to the life of this one, with a thread that starts it and waits for it.

    The thread is needed: Linux sends the signal that ends the child when the *thread* that forked
    it ends, so that must be one that lives as long as the child.

    Args:
        command: program with its path, and arguments.
        directory: working directory.
        log_file: gets all output, appended.
        environ: the whole environment.
        kept_fd: a descriptor the child keeps open for as long as it lives.
        on_exit: called in the thread with the exit status (negative: the signal) when the process
            has ended, also after `stop`.
        mode: how it is tied, one of `tether`'s.
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
        mode: str = TETHER_MODE,
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
        """Return the process id; the process has been started."""
        assert self._process is not None
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Return how the process ended (negative: the signal), `None` while it runs."""
        return self._process.returncode if self._process and self._ended.is_set() else None

    def start(self) -> None:
        """Start the process.

        Raises:
            OSError: the log file cannot be opened or the program cannot be run.
        """
        self._thread.start()
        self._started.wait()
        if self._start_error:
            self._thread.join()
            raise self._start_error

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process to end, and return whether it has."""
        return self._ended.wait(timeout_s)

    def stop(self, timeout_s: float) -> None:
        """End the process and wait for it.

        Args:
            timeout_s: how long it may take over SIGTERM before it gets SIGKILL.
        """
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
        tether_command = [sys.executable, "-I", "-S", tether.__file__, self._mode, str(os.getpid())]
        with self._log_file.open("ab") as output:
            return subprocess.Popen(
                [*tether_command, *self._command],
                cwd=self._directory,
                env=dict(self._environ),
                stdin=subprocess.PIPE if self._mode == tether.PIPE else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self._kept_fd,),
                start_new_session=True,  # Ctrl-C on the terminal is for the parent alone
            )
