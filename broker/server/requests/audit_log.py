"""The audit log: who was refused what, and who did what an administrator does, as lines of JSON.

A line has the fields of `AuditedDecision`, the broker and the time. All but ASCII is escaped, so
nobody can write a line, or hide in one, by a name. The same event again within `REPEAT_S` is
counted, and written once at the end of that time. One thread writes; what it cannot write in time
is dropped.
Refusals have a rate, those of logins, of administration and of the rest each its own, so that who
makes many of one kind hides no others, and does not push older lines out of the files. Each client
has a rate of its own within that, so that one hides no other. A line says how many were dropped.
"""

from __future__ import annotations

import json
import logging
from collections import deque
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Event as Signal
from threading import Lock
from typing import Any, NamedTuple

from broker.clock import Clock
from broker.endpoints import network_of
from broker.errors import ConfigError
from broker.files import JsonLines
from broker.security.principal import ANONYMOUS
from broker.threads import StoppableThread
from broker.token_bucket import TokenBucket

logger = logging.getLogger(__name__)

REPEAT_S = 10.0
MAX_FILE_BYTES = 64 << 20
MAX_FILES = 8
MAX_QUEUED = 10_000
"""Events that wait to be written, and those whose repetitions are counted; refusals are few."""
MAX_REFUSALS = 1000
REFUSALS_PER_S = 5
"""Refusals of a kind that are written at once, and how many more a second: 250 MB a day."""
CLIENT_REFUSALS = 100
CLIENT_REFUSALS_PER_S = 1
"""Of those, the ones of one principal, or of one network without a proof."""
_MAX_CLIENTS = 10_000
MAX_TOPICS = 10
"""Topics of an event that are named."""
MAX_TOPIC_LENGTH = 255
"""More of a name is cut off; that of a topic that exists is not longer."""
AUTHENTICATE = "authenticate"
ADMINISTRATION = ("create", "delete", "alter", "order")
"""Operations whose refusals have a rate of their own, as those of `AUTHENTICATE` have."""
_TICK_S = 1.0
_MODE = 0o640  # for the broker's user and group
MAX_NAME_LENGTH = 1024


class AuditedDecision(NamedTuple):
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
    reason: str
    rule: str = ""  # that decided; empty if none matched, or rules are off
    snapshot: int = -1  # the version of the rules
    topics: tuple[str, ...] = ()  # the first ones of those that it is about
    topic_count: int = 0  # of all of those

    @property
    def key(self) -> tuple[object, ...]:
        """Return what tells it from other events that are not counted together."""
        what = self.request, self.operation, self.resource, self.topics
        return self.principal, self.address, self.decision, *what

    @property
    def kind(self) -> str:
        """Return with which refusals it shares a rate; empty if it is allowed."""
        if self.decision == "allowed":
            return ""
        if self.operation in ADMINISTRATION:
            return "administration"
        return "login" if self.operation == AUTHENTICATE else "data"

    @property
    def client(self) -> str:
        """Return whose refusals share a rate: the principal's, without a proof the network's."""
        return self.principal if self.principal != str(ANONYMOUS) else network_of(self.address)


@dataclass(eq=False, slots=True)
class _Repeated:
    event: AuditedDecision
    until_s: float
    count: int = 0  # after the first


class AuditLog(StoppableThread):
    """Writes events to a file, which is rotated; `ConfigError` if it cannot be opened."""

    def __init__(
        self, path: Path, broker_id: int, clock: Clock, *, max_file_bytes: int = MAX_FILE_BYTES
    ) -> None:
        super().__init__("audit-log")
        self.dropped_count = 0  # events not written
        self._told_count = 0  # of those, the ones that a line tells of
        self._path = path
        self._broker_id = broker_id
        self._clock = clock
        self._lock = Lock()  # guards the queue and the repeated events
        self._queue: deque[tuple[int, AuditedDecision, int]] = deque()  # when, what, and how often
        self._repeated: dict[tuple[object, ...], _Repeated] = {}
        self._rates: dict[str, TokenBucket] = {}
        self._client_rates: dict[tuple[str, str], TokenBucket] = {}
        self._has_work = Signal()
        self._has_failed = False
        try:
            self._file = JsonLines(path, max_file_bytes, self._rotate, _MODE)
            if self._file.is_torn:
                self._file.write(b"\n")
        except OSError as error:
            raise ConfigError(f"cannot open audit.log={path}: {error.strerror}") from error

    def note(self, event: AuditedDecision) -> None:
        """Have an event written soon, from any thread."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            repeated = self._repeated.get(event.key)
            if repeated is not None:
                repeated.count += 1
                return
            if not self._has_room(event, now_s):
                self.dropped_count += 1
            else:
                self._repeated[event.key] = _Repeated(event, now_s + REPEAT_S)
                self._queue.append((self._clock.time_ms(), event, 1))
        self._has_work.set()

    def _has_room(self, event: AuditedDecision, now_s: float) -> bool:
        kind = event.kind
        if not kind:
            return max(len(self._queue), len(self._repeated)) < MAX_QUEUED
        if len(self._client_rates) >= _MAX_CLIENTS:
            self._client_rates.clear()
        own = self._client_rates.setdefault(
            (kind, event.client), TokenBucket(CLIENT_REFUSALS_PER_S, CLIENT_REFUSALS, now_s)
        )
        if own.take(now_s):
            return False
        if kind not in self._rates:
            self._rates[kind] = TokenBucket(REFUSALS_PER_S, MAX_REFUSALS, now_s)
        return not self._rates[kind].take(now_s)

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
        self._file.close()

    def _take(self, now_s: float) -> list[bytes]:
        """Return the lines to be written, with the counts of repeated events that are over."""
        with self._lock:
            for key, one in list(self._repeated.items()):
                if one.until_s <= now_s:
                    del self._repeated[key]
                    if one.count:
                        self._queue.append((self._clock.time_ms(), one.event, one.count))
            taken = list(self._queue)
            self._queue.clear()
        return [
            self._encode(when_ms, one._asdict() | {"count": count}) for when_ms, one, count in taken
        ]

    def _encode(self, when_ms: int, fields: dict[str, Any]) -> bytes:
        when = datetime.fromtimestamp(when_ms / 1000, UTC)
        line = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "broker": self._broker_id,
            **{
                name: value[:MAX_NAME_LENGTH] if isinstance(value, str) else value
                for name, value in fields.items()
            },
        }
        return json.dumps(line).encode() + b"\n"

    def _write(self, lines: list[bytes]) -> None:
        written_count = 0
        try:
            for line in lines:
                self._file.write(line)
                written_count += 1
            if (dropped_count := self.dropped_count) > self._told_count:
                dropped = {"dropped": dropped_count - self._told_count}
                self._file.write(self._encode(self._clock.time_ms(), dropped))
                self._told_count = dropped_count
            self._has_failed = False
        except OSError as error:
            with self._lock:
                self.dropped_count += len(lines) - written_count
            if not self._has_failed:
                logger.error("the audit log %s cannot be written: %s", self._path, error)
            self._has_failed = True

    def _rotate(self) -> Path:
        """Rename the file to .1, and older ones one further; the oldest one goes."""
        older = [self._path.with_name(f"{self._path.name}.{one}") for one in range(1, MAX_FILES)]
        for source, target in reversed(list(zip([self._path, *older], older, strict=False))):
            if source.exists():
                source.replace(target)
        return self._path
