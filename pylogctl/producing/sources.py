"""The inputs of a run, opened one after another.

Owns what standard input may be: a terminal, closed, a pipe, a file.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pylogctl.context import Environment
from pylogctl.framing_reader import CHUNK_BYTES
from pylogctl.producing.input_reader import STDIN, Idle, InputError, InputReader
from pylogctl.signals import StopRequest

PACED_CHUNK_BYTES = 1 << 16
"""Read at once when the rate is limited, so that little is left to send after a signal."""


class Sources:
    """Opens inputs.

    Args:
        env: has standard input.
        names: file names; `-` is standard input.
        stop: ends the reading.
        wakeup_fd: becomes readable when a signal arrives.
        is_paced: read little at once.
    """

    def __init__(
        self,
        env: Environment,
        names: Sequence[str],
        *,
        stop: StopRequest,
        wakeup_fd: int,
        is_paced: bool,
    ) -> None:
        self._env = env
        self.names = names
        self._stop = stop
        self._wakeup_fd = wakeup_fd
        self._chunk_bytes = PACED_CHUNK_BYTES if is_paced else CHUNK_BYTES

    @property
    def uses_terminal(self) -> bool:
        """Say whether somebody types the messages."""
        return STDIN in self.names and self._env.streams.stdin_is_tty

    def total_bytes(self) -> int | None:
        """Return how much there is to read; None if nobody knows."""
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
        if self._env.streams.stdin is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return self._env.streams.stdin.fileno()

    @contextmanager
    def open(
        self,
        name: str,
        *,
        on_read: Callable[[int], None],
        before_wait: Callable[[], None],
        chore: Idle | None = None,
    ) -> Iterator[InputReader | None]:
        """Open an input for the time of a block; None if standard input is closed.

        Args:
            name: a file name, or `-`.
            on_read: told how much was read, each time.
            before_wait: called before each wait.
            chore: done during waits, each time it is due.

        Raises:
            InputError: the file cannot be opened.
        """
        if name == STDIN and self._env.streams.stdin is None:
            yield None
            return
        fd = self._stdin_fd() if name == STDIN else _open_file(name)
        try:
            yield InputReader(
                fd,
                name,
                stop=self._stop,
                wakeup_fd=self._wakeup_fd,
                chunk_bytes=self._chunk_bytes,
                on_read=on_read,
                before_wait=before_wait,
                chore=chore,
            )
        finally:
            if name != STDIN:
                os.close(fd)


def _open_file(name: str) -> int:
    # Opening a named pipe would wait for its writer, and no signal could end that wait.
    try:
        fd = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise InputError(name, error) from error
    os.set_blocking(fd, True)
    return fd


def check_files(names: Sequence[str]) -> None:
    """Check that every file is there and can be read, before anything is sent.

    Raises:
        OSError: one is not.
    """
    for name in names:
        if name == STDIN:
            continue
        if stat.S_ISDIR(Path(name).stat().st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
        if not os.access(name, os.R_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), name)
