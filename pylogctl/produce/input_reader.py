"""Reads standard input or files, one after another, and runs callbacks while input is awaited.

A read never waits while messages stay buffered longer than they may, and a signal ends a wait at
once. Nothing here knows of messages. Standard input may be a terminal, closed, a pipe or a file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import signal
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pylogctl.cli.environment import CliError, Environment
from pylogctl.cli.process import StopRequest
from pylogctl.cli.report import failure_of
from pylogctl.format.framing_reader import CHUNK_BYTES

STDIN = "-"
_PIPE_BYTES = 1 << 20


class InputStopped(Exception):  # noqa: N818 - a signal's wish, not an error
    """A signal asked to stop; no more input is read."""


class InputError(CliError):
    """An input, a file or `-`, cannot be opened or read."""

    def __init__(self, name: str, error: OSError) -> None:
        failure = failure_of(OSError(error.errno, error.strerror, name))
        assert failure is not None
        message = failure.message
        if name == STDIN:
            message = message.replace(f"'{STDIN}'", "standard input", 1)
        super().__init__(failure.status, message, code=failure.code)


class Idle(Protocol):
    """Work to do before and while input is awaited."""

    def due_s(self) -> float | None:
        """Return when buffered messages must be sent, on the monotonic clock; None without any."""

    def on_idle(self) -> None:
        """Send buffered messages, and wait for acknowledgements."""


@dataclass(eq=False)
class InputReader:
    """Reads one input from a descriptor.

    Attributes:
        sources: end the reading at a signal, and limit what is read at once.
        fd: open for reading; not closed here.
        file_name: or `-`; for errors.
        on_read: called with the bytes of each read; with 0 when a signal asks for progress.
        before_wait: called before each wait, after the attended object.
        chore: done while input is awaited, each time it is due.
    """

    sources: Sources
    fd: int
    file_name: str
    on_read: Callable[[int], None]
    before_wait: Callable[[], object]
    chore: Idle | None = None
    read_bytes: int = field(default=0, init=False)
    _idle: Idle | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._stop = self.sources.stop
        self._waits = not stat.S_ISREG(os.fstat(self.fd).st_mode)
        self._poll = select.poll()
        self._poll.register(self.sources.wakeup_fd, select.POLLIN)
        if self._waits:
            self._poll.register(self.fd, select.POLLIN)
            _widen_pipe(self.fd)

    @property
    def name(self) -> str:
        """Return the prefix of messages about this input; empty for standard input."""
        return "" if self.file_name == STDIN else f"{self.file_name}: "

    def attend(self, idle: Idle) -> None:
        """Run `idle` before each wait."""
        self._idle = idle

    def is_ready(self, timeout_s: float | None = 0.0) -> bool:
        """Return whether a read would not wait, within `timeout_s`; None to wait forever."""
        if not self._waits or self._stop.is_set:
            return True
        events = self._poll.poll(None if timeout_s is None else timeout_s * 1000)
        return any(fd == self.fd for fd, _ in events) or self._stop.is_set

    def read1(self, size: int, /) -> bytes:
        """Return available bytes, waiting for one; empty at the end; `InputStopped` at a signal."""
        if not self.is_ready():
            self._wait()
        if self._stop.is_set:
            raise InputStopped
        try:
            chunk = os.read(self.fd, min(size, self.sources.chunk_bytes))
        except OSError as error:
            raise InputError(self.file_name, error) from error
        self.read_bytes += len(chunk)
        self.on_read(len(chunk))
        return chunk

    def _wait(self) -> None:
        if self._idle is not None:
            wait_s = _until_due_s(self._idle)
            if wait_s is not None and self.is_ready(wait_s):
                return
            self._idle.on_idle()
        self.before_wait()
        while not self.is_ready(_until_due_s(self.chore)):
            try:
                os.read(self.sources.wakeup_fd, 4096)
            except BlockingIOError:
                if self.chore is not None:
                    self.chore.on_idle()
            else:  # woken by a signal that asks for no stop, such as SIGUSR1
                self.on_read(0)


def _until_due_s(idle: Idle | None) -> float | None:
    """Return the time until `idle` is due; None if it never is."""
    due_s = None if idle is None else idle.due_s()
    return None if due_s is None else max(0.0, due_s - time.monotonic())


def _widen_pipe(fd: int) -> None:
    """Enlarge a pipe's buffer, where the system allows it: fewer and larger reads."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):
        try:
            fcntl.fcntl(fd, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        except OSError:
            return  # not a pipe, or the user's limit of pipe memory is reached


@contextmanager
def signal_wakeup() -> Iterator[int]:
    """Give a descriptor that becomes readable when a signal arrives, until the end of a block.

    A Python signal handler runs only between two instructions: a signal just before a wait would
    otherwise be noticed after it.
    """
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(before)
        os.close(reader)
        os.close(writer)


PACED_CHUNK_BYTES = 1 << 16  # with a limited rate, so that little is left to send after a signal


@dataclass(eq=False)
class Sources:
    """Opens inputs.

    Attributes:
        env: has standard input.
        names: file names; `-` is standard input.
        stop: ends the reading.
        wakeup_fd: becomes readable when a signal arrives.
        is_paced: read in small chunks.
    """

    env: Environment
    names: Sequence[str]
    stop: StopRequest
    wakeup_fd: int
    is_paced: bool

    @property
    def chunk_bytes(self) -> int:
        """The most to read at once."""
        return PACED_CHUNK_BYTES if self.is_paced else CHUNK_BYTES

    def total_bytes(self) -> int | None:
        """Return the size of all inputs; None unless all are files."""
        total = 0
        for name in self.names:
            try:
                found = os.fstat(self._stdin_fd()) if name == STDIN else Path(name).stat()
            except OSError:
                return None
            if not stat.S_ISREG(found.st_mode):
                return None
            total += found.st_size
        return total

    def _stdin_fd(self) -> int:
        if self.env.streams.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self.env.streams.stdin.fileno()

    @contextmanager
    def open(
        self,
        name: str,
        on_read: Callable[[int], None],
        before_wait: Callable[[], object],
        chore: Idle | None = None,
    ) -> Iterator[InputReader | None]:
        """Open an input until the end of a block; None if stdin is closed. See `InputReader`."""
        if name == STDIN and self.env.streams.stdin is None:
            yield None
            return
        fd = self._stdin_fd() if name == STDIN else _open_file(name)
        try:
            yield InputReader(self, fd, name, on_read, before_wait, chore)
        finally:
            if name != STDIN:
                os.close(fd)


def _open_file(name: str) -> int:
    # A blocking open of a named pipe would wait for its writer, and no signal could end that wait.
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(name, error) from error
    os.set_blocking(fd, True)
    return fd


def check_files(names: Sequence[str]) -> None:
    """Raise `OSError` if a file is missing or cannot be read, before anything is sent."""
    for name in names:
        if name == STDIN:
            continue
        if stat.S_ISDIR(Path(name).stat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not os.access(name, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
