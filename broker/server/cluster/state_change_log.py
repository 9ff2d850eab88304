"""The state-change log: the controller's decisions, and how this broker carried them out.

It is a pair of files of lines in the first data directory, each named by the position of its first
byte; the older one is removed when the newer one is full. Lines are not flushed one by one: those
of the last seconds before a power cut can be missing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from broker.clock import Clock
from broker.files import JsonLines
from broker.log.data_directory import STATE_CHANGES_PREFIX
from broker.state_changes import LoggedChange

logger = logging.getLogger(__name__)
state_changes = logging.getLogger("broker.state_change")
"""The same lines in the log of the broker, for people."""

_SUFFIX = ".jsonl"
MAX_FILE_BYTES = 4 << 20  # about 20,000 changes
MAX_READ_BYTES = 256 << 10

NoteChanges = Callable[[Iterable[LoggedChange]], object]


class ChangeLines(NamedTuple):
    """Whole lines of the log, and the position where they begin; no lines at the end."""

    position: int
    lines: bytes


@dataclass(eq=False)
class StateChangeLog:
    """The state-change log of one broker; before `open`, lines go to the broker's log only."""

    me: int
    clock: Clock
    _: KW_ONLY
    max_file_bytes: int = MAX_FILE_BYTES
    max_read_bytes: int = MAX_READ_BYTES

    def __post_init__(self) -> None:
        self._lock = Lock()  # guards all below
        self._directory: Path | None = None
        self._file: JsonLines | None = None
        self._start = 0  # of the newer file
        self._end = 0
        self._has_failed = False

    def open(self, directory: Path) -> None:
        """Continue the log in a data directory; a torn last line is cut off."""
        with self._lock:
            self._directory = directory
            try:
                if paths := self._paths():
                    whole = paths[-1].read_bytes().rfind(b"\n") + 1
                    self._start, self._end = _start_of(paths[-1]), _start_of(paths[-1]) + whole
                self._file = self._opened(directory)
            except OSError as error:  # the broker works without this log
                self._note_failure(error)

    def close(self) -> None:
        """Close the file; later changes go to the broker's own log only."""
        with self._lock:
            self._directory = None
            self._close_file()

    def note(self, changes: Iterable[LoggedChange], *, level: int = logging.INFO) -> None:
        """Log changes, with this broker, and the time if they have none.

        `level` is for the broker's own log.
        """
        now_ms = self.clock.time_ms()
        logged = [one._replace(time_ms=one.time_ms or now_ms, broker=self.me) for one in changes]
        lines = b"".join(one.encode() for one in logged)
        for one in logged:
            state_changes.log(level, "%s", one)
        with self._lock:
            if self._directory is None:
                return
            try:
                was_open, start = self._file is not None, self._start
                if self._file is None:
                    self._file = self._opened(self._directory)
                self._file.write(lines)
                self._end += len(lines)
                self._has_failed = False
                if self._start != start or not was_open:  # perhaps in another file
                    for path in self._paths()[:-2]:
                        path.unlink()
            except OSError as error:
                self._note_failure(error)

    def read(self, position: int) -> ChangeLines:
        """Return lines from a position on: the end of those read before.

        One that is not kept any more, or of another log, means the oldest line there is.
        """
        with self._lock:
            paths = [] if self._directory is None else self._paths()
            if not paths or position == self._end:
                return ChangeLines(self._end, b"")
            if not _start_of(paths[0]) <= position < self._end:
                position = _start_of(paths[0])
            path = next(one for one in reversed(paths) if _start_of(one) <= position)
            end = self._end if path == paths[-1] else _start_of(paths[-1])
            with path.open("rb") as file:
                file.seek(position - _start_of(path))
                data = file.read(min(self.max_read_bytes, end - position))
        return ChangeLines(position, data[: data.rfind(b"\n") + 1])

    def _opened(self, directory: Path) -> JsonLines:
        found = JsonLines(self._newest(directory), self.max_file_bytes, self._roll)
        try:
            # a write may have failed in the middle of a line
            found.truncate(self._end - self._start)
        except OSError:
            found.close()
            raise
        return found

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _newest(self, directory: Path) -> Path:
        return directory / f"{STATE_CHANGES_PREFIX}{self._start:020}{_SUFFIX}"

    def _roll(self) -> Path:
        """Continue in another file."""
        assert self._directory is not None
        self._start = self._end
        return self._newest(self._directory)

    def _note_failure(self, error: OSError) -> None:
        """Warn once, and open the file again with the next change."""
        with suppress(OSError):
            self._close_file()
        if not self._has_failed:
            logger.warning("the state-change log cannot be written: %s", error)
        self._has_failed = True

    def _paths(self) -> list[Path]:
        """Return the files, the older one first."""
        assert self._directory is not None
        return sorted(self._directory.glob(f"{STATE_CHANGES_PREFIX}{'[0-9]' * 20}{_SUFFIX}"))


def _start_of(path: Path) -> int:
    return int(path.name.removeprefix(STATE_CHANGES_PREFIX).removesuffix(_SUFFIX))
