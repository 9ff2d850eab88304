"""The audit log: who was refused what, and who did what an administrator does, as lines of JSON.

A line has the fields of `Event` and `Decided`, and the broker and the time. All but ASCII is
escaped, so nobody can write a line, or hide in one, by a name. The same event again within
`REPEAT_S` is counted, and written once at the end of that time. One thread writes; what it cannot
write in time is dropped, and a line says how many events that were.
"""

from __future__ import annotations

import json
import logging
import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Signal
from threading import Lock
from typing import Any, NamedTuple

from broker.clock import Clock
from broker.errors import ConfigError
from broker.files import open_file, write_all
from broker.threads import StoppableThread

logger = logging.getLogger(__name__)

REPEAT_S = 10.0
MAX_FILE_BYTES = 64 << 20
MAX_FILES = 8
MAX_QUEUED = 10_000
"""Events that wait to be written, and those whose repetitions are counted."""
_TICK_S = 1.0
_MAX_NAME_LENGTH = 1024


class Event(NamedTuple):
    """A decision about a request."""

    listener: str
    address: str
    port: int
    principal: str
    mechanism: str  # that proved the principal; empty without proof
    tls: bool
    client_id: str
    request: str  # its type
    operation: str
    resource: str
    decision: str  # allowed, denied
    reason: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """Return what tells it from other events that are not counted together."""
        return self.principal, self.address, self.operation, self.resource, self.decision


class Decided(NamedTuple):
    """What a decision comes from."""

    rule: str = ""  # empty if none matched, or rules are off
    snapshot: int = -1  # the version of the rules


class _Repeated:
    __slots__ = ("count", "fields", "until_s")

    def __init__(self, fields: dict[str, Any], until_s: float) -> None:
        self.fields = fields
        self.until_s = until_s
        self.count = 0  # after the first


class AuditLog(StoppableThread):
    """Writes events to a file, which is rotated; `ConfigError` if it cannot be opened."""

    def __init__(self, path: Path, broker_id: int, clock: Clock) -> None:
        super().__init__("audit-log")
        self.dropped_count = 0  # events not written
        self._told_count = 0  # of those, the ones that a line tells of
        self._path = path
        self._broker_id = broker_id
        self._clock = clock
        self._lock = Lock()  # guards the queue and the repeated events
        self._queue: deque[bytes] = deque()
        self._repeated: dict[tuple[str, ...], _Repeated] = {}
        self._has_work = Signal()
        self._has_failed = False
        self._fd = self._size = 0
        try:
            self._open()
        except OSError as error:
            raise ConfigError(f"cannot open audit.log={path}: {error.strerror}") from error

    def note(self, event: Event, decide: Callable[[], Decided] = Decided) -> None:
        """Have an event written soon, from any thread; `decide` is called if it is written."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            repeated = self._repeated.get(event.key)
            if repeated is not None:
                repeated.count += 1
                return
            if max(len(self._queue), len(self._repeated)) >= MAX_QUEUED:
                self.dropped_count += 1
            else:
                fields = event._asdict() | decide()._asdict()
                self._repeated[event.key] = _Repeated(fields, now_s + REPEAT_S)
                self._queue.append(self._encode(fields, 1))
        self._has_work.set()

    def stop(self) -> None:
        """Ask the thread to write what it has, and to end."""
        super().stop()
        self._has_work.set()

    def _loop(self) -> None:
        """Write until the thread is stopped."""
        while not self._stopping.is_set():
            self._has_work.wait(_TICK_S if self._repeated else None)
            self._has_work.clear()
            self._write(self._take(self._clock.monotonic_s()))
        self._write(self._take(float("inf")))
        os.close(self._fd)

    def _take(self, now_s: float) -> list[bytes]:
        """Return the lines to be written, with the counts of repeated events that are over."""
        with self._lock:
            for key, one in list(self._repeated.items()):
                if one.until_s <= now_s:
                    del self._repeated[key]
                    if one.count:
                        self._queue.append(self._encode(one.fields, one.count))
            lines = list(self._queue)
            self._queue.clear()
        return lines

    def _encode(self, fields: dict[str, Any], count: int | None = None) -> bytes:
        when = datetime.fromtimestamp(self._clock.time_ms() / 1000, UTC)
        line = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "broker": self._broker_id,
            **{
                name: value[:_MAX_NAME_LENGTH] if isinstance(value, str) else value
                for name, value in fields.items()
            },
        }
        if count is not None:
            line["count"] = count
        return json.dumps(line).encode() + b"\n"

    def _write(self, lines: list[bytes]) -> None:
        written_count = 0
        try:
            for line in lines:
                self._write_line(line)
                written_count += 1
            if (dropped_count := self.dropped_count) > self._told_count:
                self._write_line(self._encode({"dropped": dropped_count - self._told_count}))
                self._told_count = dropped_count
            self._has_failed = False
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)  # of a line that was written in part
            with self._lock:
                self.dropped_count += len(lines) - written_count
            if not self._has_failed:
                logger.error("the audit log %s cannot be written: %s", self._path, error)
            self._has_failed = True

    def _write_line(self, line: bytes) -> None:
        if self._size + len(line) > MAX_FILE_BYTES:
            self._rotate()
        write_all(self._fd, line)
        self._size += len(line)

    def _rotate(self) -> None:
        """Rename the file to .1, and older ones one further; the oldest one goes."""
        older = [self._path.with_name(f"{self._path.name}.{one}") for one in range(1, MAX_FILES)]
        for source, target in reversed(list(zip([self._path, *older], older, strict=False))):
            if source.exists():
                source.replace(target)
        full_fd = self._fd
        self._open()
        os.close(full_fd)

    def _open(self) -> None:
        fd = open_file(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        os.fchmod(fd, 0o640)  # whatever the umask: it is for its user and group
        self._fd, self._size = fd, os.fstat(fd).st_size
        if self._size and os.pread(fd, 1, self._size - 1) != b"\n":
            write_all(fd, b"\n")  # a crash left part of a line
            self._size += 1
