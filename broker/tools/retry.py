"""Handles messages so that a failed one does not block those after it.

A `RetryingHandler` retries a failed message a few times in place, then puts it into a `RetryStore`
and retries it between later messages, in the thread of its caller. The store is an SQLite database
in a directory that one process locks at a time; a message it has accepted survives a crash of the
process and of the machine.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from broker.clock import Clock, SystemClock
from broker.closing import SelfClosing
from broker.consumer.chunk import inner_index
from broker.consumer.stream import ConsumerStream
from broker.errors import ConsumerTimeoutError, RetryStoreBusyError, RetryStoreError
from broker.files import sync_directory
from broker.protocol.envelope import open_envelope
from broker.topic import TopicPartition

DATABASE_NAME = "retry.db"
LOCK_NAME = ".lock"
_BUSY_TIMEOUT_S = 10.0
_DAMAGE = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT}
_ERROR_LENGTH_MAX = 1000
_TABLES = """
CREATE TABLE IF NOT EXISTS retry_entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    topic TEXT NOT NULL,
    home INTEGER NOT NULL,
    partition_index INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    next_offset INTEGER NOT NULL,
    inner_index INTEGER NOT NULL,
    digest BLOB NOT NULL,
    payload BLOB NOT NULL,
    attempts INTEGER NOT NULL,
    next_attempt_ms INTEGER,
    last_error TEXT NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS retry_messages
    ON retry_entries (topic, home, partition_index, offset, inner_index, digest);
CREATE INDEX IF NOT EXISTS retry_times ON retry_entries (next_attempt_ms, id);
"""
_INSERT = """
INSERT OR IGNORE INTO retry_entries (topic, home, partition_index, offset, next_offset,
    inner_index, digest, payload, attempts, next_attempt_ms, last_error)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_SELECT = """
SELECT id, topic, home, partition_index, offset, next_offset, inner_index, payload, attempts,
    next_attempt_ms, last_error
FROM retry_entries
"""
_UPDATE = "UPDATE retry_entries SET attempts = ?, next_attempt_ms = ?, last_error = ? WHERE id = ?"


class RetryMessage(NamedTuple):
    """A message to be handled.

    `offset` is where its entry starts, `next_offset` where reading can resume after it, `inner` its
    index in a compressed set, 0 outside of one.
    """

    partition: TopicPartition
    offset: int
    next_offset: int
    inner: int
    payload: bytes

    def opened(self) -> RetryMessage:
        """Return it with the payload alone, without the envelope that is kept with it."""
        return self._replace(payload=open_envelope(self.payload)[1])


@dataclass(frozen=True, slots=True)
class RetryEntry:
    """A message in the store."""

    entry_id: int  # higher for entries that are added later
    message: RetryMessage
    attempts: int  # failed ones
    next_attempt_ms: int | None  # milliseconds since 1970; None if it is dead: no attempt is left
    last_error: str

    @property
    def is_dead(self) -> bool:
        """Return whether it is not retried automatically."""
        return self.next_attempt_ms is None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """The wait between attempts, and the maximum number of attempts.

    Args:
        first_wait_ms: wait before the first attempt out of the store; doubled for each one after.
        max_wait_ms: the longest wait.
        max_attempts: maximum number of attempts, including those in place; None for no limit.
    """

    first_wait_ms: int = 1000
    max_wait_ms: int = 300_000
    max_attempts: int | None = None

    def next_attempt_ms(self, now_ms: int, attempts: int, stored_attempts: int) -> int | None:
        """Return the time of the next attempt after a failure; None if there is none.

        Args:
            now_ms: the time of the failure, in milliseconds since 1970.
            attempts: number of failed attempts.
            stored_attempts: number of these since the message was stored, 0 when it is stored.
        """
        if self.max_attempts is not None and attempts >= self.max_attempts:
            return None
        doublings = min(stored_attempts, 40)  # beyond any wait, and still a small number
        return now_ms + min(self.first_wait_ms << doublings, self.max_wait_ms)


class RetryStore(SelfClosing):
    """Messages to be handled again, in a directory that one process locks at a time.

    For any number of threads. Each change is synced to disk, so a message counts as finished when
    `add` returns. Each method raises a `RetryStoreError` if the database cannot be read or written.

    Args:
        directory: created if it is missing.

    Raises:
        RetryStoreBusyError: another process has locked the directory.
        RetryStoreError: it cannot be created or written, or is damaged.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock = threading.Lock()  # one statement at a time
        self._lock_fd = _lock(directory)
        try:
            self._database = _connect(directory / DATABASE_NAME, "rwc")
            try:
                with _translated(directory):
                    self._database.execute("PRAGMA journal_mode=WAL")
                    self._database.execute("PRAGMA synchronous=FULL")
                    self._database.executescript(_TABLES)
                    sync_directory(directory)
            except RetryStoreError:
                self._database.close()
                raise
        except RetryStoreError:
            os.close(self._lock_fd)
            raise

    @contextmanager
    def _using(self) -> Iterator[None]:
        with self._lock, _translated(self.directory):
            yield

    def close(self) -> None:
        """Close the database and unlock the directory; a second call does nothing."""
        if self._lock_fd >= 0:
            self._database.close()
            os.close(self._lock_fd)
            self._lock_fd = -1

    def add(
        self, message: RetryMessage, *, attempts: int, next_attempt_ms: int | None, error: str
    ) -> bool:
        """Store a message whose handling failed; it is on disk when this returns.

        Args:
            attempts: number of failed attempts.
            next_attempt_ms: time of the next attempt, in milliseconds since 1970; None for none.
            error: why the last attempt failed.

        Returns:
            False if the store has the message already, as after a crash before its offset was
            committed; that entry is not changed.

        Raises:
            RetryStoreError: it could not be written; do not count the message as finished.
        """
        partition, *position, payload = message
        digest = hashlib.blake2b(payload, digest_size=16).digest()
        attempt = attempts, next_attempt_ms, error[:_ERROR_LENGTH_MAX]
        values = (*partition, *position, digest, payload, *attempt)
        with self._using():
            return self._database.execute(_INSERT, values).rowcount > 0

    def due(self, now_ms: int, limit: int = 1) -> list[RetryEntry]:
        """Return up to `limit` entries whose next attempt is due, those due longest first.

        Args:
            now_ms: milliseconds since 1970.
        """
        where = "WHERE next_attempt_ms <= ? ORDER BY next_attempt_ms, id LIMIT ?"
        with self._using():
            rows = self._database.execute(_SELECT + where, (now_ms, limit)).fetchall()
        return [_entry(row) for row in rows]

    def entries(self) -> Iterator[RetryEntry]:
        """Yield the present entries, oldest first; the caller may change the store meanwhile.

        Entries that are added meanwhile are not included.
        """
        with self._using():
            ids = self._database.execute("SELECT id FROM retry_entries ORDER BY id").fetchall()
        for entry_id in ids:
            with self._using():
                row = self._database.execute(_SELECT + "WHERE id = ?", entry_id).fetchone()
            if row is not None:
                yield _entry(row)

    def reschedule(self, entry: RetryEntry, next_attempt_ms: int | None, error: str) -> None:
        """Record a failed attempt.

        Args:
            next_attempt_ms: time of the next attempt, in milliseconds since 1970; None for none.
            error: why the attempt failed.
        """
        values = (entry.attempts + 1, next_attempt_ms, error[:_ERROR_LENGTH_MAX], entry.entry_id)
        with self._using():
            self._database.execute(_UPDATE, values)

    def done(self, entry: RetryEntry) -> None:
        """Remove an entry whose message was handled.

        Raises:
            RetryStoreError: it could not be written; the message will be handled again.
        """
        with self._using():
            self._database.execute("DELETE FROM retry_entries WHERE id = ?", (entry.entry_id,))

    def __len__(self) -> int:
        with self._using():
            row = self._database.execute("SELECT count(*) FROM retry_entries").fetchone()
        return int(row[0])


def read_entries(directory: Path) -> Iterator[RetryEntry]:
    """Yield the entries of a store, oldest first, even if a process has locked it."""
    path = directory / DATABASE_NAME
    if not path.is_file():
        raise FileNotFoundError(errno.ENOENT, "no retry store", str(path))
    with _translated(directory), closing(_connect(path, "rw")) as database:
        for row in database.execute(_SELECT + "ORDER BY id"):
            yield _entry(row)


def _entry(
    row: tuple[int, str, int, int, int, int, int, bytes, int, int | None, str],
) -> RetryEntry:
    entry_id, topic, home, index, offset, next_offset, inner, payload, attempts, next_ms, why = row
    message = RetryMessage(TopicPartition(topic, home, index), offset, next_offset, inner, payload)
    return RetryEntry(entry_id, message, attempts, next_ms, why)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    with _translated(path.parent):
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=_BUSY_TIMEOUT_S,
            isolation_level=None,  # each statement is a transaction of its own
            check_same_thread=False,  # the store has a lock
        )


def _lock(directory: Path) -> int:
    """Return the descriptor that holds the directory's lock for as long as it is open."""
    try:
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            sync_directory(directory.absolute().parent)
        fd = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RetryStoreError(f"retry store {directory}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(fd, 20).decode("ascii", "replace").strip()
        os.close(fd)
        raise RetryStoreBusyError(
            f"retry store {directory} is in use by process {holder or 'unknown'}; "
            "stop that process first"
        ) from error
    os.ftruncate(fd, 0)
    os.write(fd, b"%d\n" % os.getpid())
    return fd


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        # errors of the module itself have no code; the low byte is that without an extension
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise RetryStoreError(
                f"retry store {directory} is damaged: {error}; once {DATABASE_NAME} is moved away "
                "the store starts empty; consume its messages from their topics again"
            ) from error
        raise RetryStoreError(f"retry store {directory}: {error}") from error
    except OSError as error:
        raise RetryStoreError(f"retry store {directory}: {error.strerror}") from error


Handle = Callable[[RetryMessage], None]
"""The application's function for a message; it raises an exception if handling fails."""
Pause = Callable[[float], bool]
"""Waits for a number of seconds; returns True if the wait was interrupted by a stop request."""


class RetryOutcome(Enum):
    """The result of handling a message."""

    DONE = "done"
    SCHEDULED = "scheduled"
    """It failed, and is in the store to be retried."""
    DEAD = "dead"
    """It failed, and is in the store without another attempt."""


@dataclass(frozen=True, slots=True)
class InPlace:
    """Retries in place, before a message is stored."""

    retries: int = 3
    first_wait_ms: int = 100  # doubled for each further retry, up to the first wait in the store

    @classmethod
    def before(cls, first_stored_wait_ms: int, retries: int) -> InPlace:
        """Return retries with a tenth of the first wait in the store."""
        return cls(retries, first_stored_wait_ms // 10)


@dataclass(slots=True)
class RetryTally:
    """Counts of a handler's messages."""

    done: int = 0  # handled, directly or from the store
    scheduled: int = 0  # stored to be retried
    dead: int = 0  # reached the maximum number of attempts; they stay in the store


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@dataclass(slots=True)
class RetryingHandler:
    """Handles messages, and stores those that fail to retry them.

    A message is finished when `handle` returns: it was handled, or is on disk. After a crash a
    message may be handled twice, but none is lost. A `RetryStoreError` means that the store failed.

        with RetryStore(Path("failed")) as store:
            handler = RetryingHandler(write_to_warehouse, store)
            handler.run(stream)

    Args:
        attempt: handles a message, or raises an exception.
        in_place: retries before a message is stored.
        policy: retries of stored messages.
        pause: waits for seconds between attempts in place; returns True to store the message now.
    """

    attempt: Handle
    store: RetryStore
    in_place: InPlace = field(default_factory=InPlace)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = field(default_factory=SystemClock)
    pause: Pause = _sleep
    tally: RetryTally = field(default_factory=RetryTally)

    def handle(self, message: RetryMessage) -> RetryOutcome:
        """Handle a message, or store it if it fails.

        Raises:
            RetryStoreError: it failed and cannot be stored: it is not finished.
        """
        attempts = 1
        error = self._try(message)
        while error is not None and attempts <= self.in_place.retries and self._may_go_on(attempts):
            if self.pause(self._wait_s(attempts)):
                break
            attempts += 1
            error = self._try(message)
        if error is None:
            self.tally.done += 1
            return RetryOutcome.DONE
        next_ms = self.policy.next_attempt_ms(self.clock.time_ms(), attempts, 0)
        self.store.add(message, attempts=attempts, next_attempt_ms=next_ms, error=error)
        return self._count_stored(next_ms)

    def retry_due(self, limit: int = 1) -> int:
        """Retry up to `limit` stored messages that are due, once each; return their number.

        With a low limit, new messages wait less.
        """
        entries = self.store.due(self.clock.time_ms(), limit)
        for entry in entries:
            self.retry(entry)
        return len(entries)

    def retry(self, entry: RetryEntry) -> RetryOutcome:
        """Retry a stored message once, even a dead one."""
        error = self._try(entry.message)
        if error is None:
            self.store.done(entry)
            self.tally.done += 1
            return RetryOutcome.DONE
        attempts = entry.attempts + 1
        stored_attempts = max(1, attempts - 1 - self.in_place.retries)
        next_ms = self.policy.next_attempt_ms(self.clock.time_ms(), attempts, stored_attempts)
        self.store.reschedule(entry, next_ms, error)
        if next_ms is not None:
            return RetryOutcome.SCHEDULED
        self.tally.dead += not entry.is_dead
        return RetryOutcome.DEAD

    def drain(self, entries: Iterable[RetryEntry]) -> int:
        """Retry entries once each, such as `store.entries()`; return how many failed again."""
        return sum(self.retry(entry) is not RetryOutcome.DONE for entry in entries)

    def run(self, stream: ConsumerStream) -> None:
        """Handle the messages of a group's stream until it ends, and retry stored ones in between.

        With `consumer.timeout.ms` set, stored messages are also retried after each timeout;
        otherwise only after a message of the stream.

        Raises:
            RetryStoreError: a message failed and cannot be stored; it is not committed.
            BrokerError: of the stream, except a timeout.
        """
        messages = iter(stream)
        while True:
            try:
                message = next(messages)
            except ConsumerTimeoutError:
                self.retry_due()
                messages = iter(stream)
                continue
            except StopIteration:
                return
            _, partition, offset, next_offset, payload = message
            inner = inner_index(message)
            self.handle(RetryMessage(partition, offset, next_offset, inner, payload))
            stream.finish(message)
            self.retry_due()

    def _wait_s(self, attempts: int) -> float:
        wait_ms = self.in_place.first_wait_ms << min(attempts - 1, 20)
        return min(wait_ms, self.policy.first_wait_ms) / 1000

    def _may_go_on(self, attempts: int) -> bool:
        limit = self.policy.max_attempts
        return limit is None or attempts < limit

    def _try(self, message: RetryMessage) -> str | None:
        """Handle a message; return None, or the text of the error if it failed."""
        try:
            self.attempt(message)
        except Exception as error:  # noqa: BLE001 - the application's code may raise anything
            return str(error) or type(error).__name__
        return None

    def _count_stored(self, next_attempt_ms: int | None) -> RetryOutcome:
        if next_attempt_ms is None:
            self.tally.dead += 1
            return RetryOutcome.DEAD
        self.tally.scheduled += 1
        return RetryOutcome.SCHEDULED
