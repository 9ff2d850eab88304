"""Handling messages so that one that fails does not hold up those behind it.

A message whose handling fails is tried again in place a few times, then parked in a `RetryStore`
and tried again between other messages. There is no thread: whoever has the messages calls.

A local store of messages whose handling failed, so that later messages are not blocked.

What `add` was given survives a crash of the process and of the machine. Owns the directory, its
lock and the waiting times; knows neither brokers nor what handling is.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from broker.clock import Clock, SystemClock
from broker.consumer.chunk import inner_index
from broker.consumer.stream import ConsumerStream
from broker.errors import ConsumerTimeoutError, RetryStoreBusyError, RetryStoreError
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
    """A message as a handler gets it, now or later.

    `offset` is where its entry starts, `next_offset` where reading can resume after it, `inner` its
    index in a compressed set, 0 outside of one.
    """

    partition: TopicPartition
    offset: int
    next_offset: int
    inner: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class RetryEntry:
    """A message in the store.

    Attributes:
        entry_id: the store's own name for it; entries added later have higher ones.
        message: what could not be handled.
        attempts: how often that was tried.
        next_attempt_ms: when to try again, in milliseconds since 1970; None for never, as it was
            tried as often as it may be: the message is dead.
        last_error: why the last attempt failed.
    """

    entry_id: int
    message: RetryMessage
    attempts: int
    next_attempt_ms: int | None
    last_error: str

    @property
    def is_dead(self) -> bool:
        """Return whether it is kept only to be looked at, and not tried again by itself."""
        return self.next_attempt_ms is None


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long to wait between attempts, and when to give up.

    Args:
        first_wait_ms: wait before the first attempt out of the store; doubled for each one after.
        max_wait_ms: the longest wait.
        max_attempts: how often a message is tried in all, in place included; None for ever.
    """

    first_wait_ms: int = 1000
    max_wait_ms: int = 300_000
    max_attempts: int | None = None

    def next_attempt_ms(self, now_ms: int, attempts: int, stored_attempts: int) -> int | None:
        """Return when to try again after a failure; None for never.

        Args:
            now_ms: the time of the failure, in milliseconds since 1970.
            attempts: how often the message was tried in all.
            stored_attempts: how often of these since it is in the store, 0 when it is put there.
        """
        if self.max_attempts is not None and attempts >= self.max_attempts:
            return None
        doublings = min(stored_attempts, 40)  # beyond any wait, and still a small number
        return now_ms + min(self.first_wait_ms << doublings, self.max_wait_ms)


class RetryStore:
    """Messages to be handled again, in a directory that one process has at a time.

    For one thread. The file is an SQLite database that each change is written through to, so that
    a message may be counted as finished as soon as `add` has returned.

    Args:
        directory: made if it is missing.

    Raises:
        RetryStoreBusyError: another process has the directory.
        RetryStoreError: it cannot be made, written to or understood.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._lock_fd = _lock(directory)
        try:
            self._database = _connect(directory / DATABASE_NAME, "rwc")
            try:
                with _translated(directory):
                    self._database.execute("PRAGMA journal_mode=WAL")
                    self._database.execute("PRAGMA synchronous=FULL")
                    self._database.executescript(_TABLES)
                _sync_directory(directory)
            except RetryStoreError:
                self._database.close()
                raise
        except RetryStoreError:
            os.close(self._lock_fd)
            raise

    def __enter__(self) -> RetryStore:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and give the directory back; a second call does nothing."""
        if self._lock_fd >= 0:
            self._database.close()
            os.close(self._lock_fd)
            self._lock_fd = -1

    def add(
        self, message: RetryMessage, *, attempts: int, next_attempt_ms: int | None, error: str
    ) -> bool:
        """Keep a message whose handling failed; it is on the disk when this returns.

        Args:
            message: the message.
            attempts: how often handling it was tried.
            next_attempt_ms: when to try again, in milliseconds since 1970; None for never.
            error: why it failed.

        Returns:
            False if the very same message is in the store already, as after a crash before its
            offset was committed; that entry stays as it is.

        Raises:
            RetryStoreError: it could not be written; do not count the message as finished.
        """
        partition = message.partition
        values = (
            partition.topic,
            partition.home,
            partition.index,
            message.offset,
            message.next_offset,
            message.inner,
            hashlib.blake2b(message.payload, digest_size=16).digest(),
            message.payload,
            attempts,
            next_attempt_ms,
            error[:_ERROR_LENGTH_MAX],
        )
        with _translated(self.directory):
            return self._database.execute(_INSERT, values).rowcount > 0

    def due(self, now_ms: int, limit: int = 1) -> list[RetryEntry]:
        """Return entries whose time has come, those that waited longest first.

        Args:
            now_ms: milliseconds since 1970.
            limit: how many at most.

        Raises:
            RetryStoreError: the store cannot be read.
        """
        where = "WHERE next_attempt_ms <= ? ORDER BY next_attempt_ms, id LIMIT ?"
        with _translated(self.directory):
            rows = self._database.execute(_SELECT + where, (now_ms, limit)).fetchall()
        return [_entry(row) for row in rows]

    def entries(self) -> Iterator[RetryEntry]:
        """Give every entry as it is when it is reached, oldest first; each may be done meanwhile.

        Entries that are added meanwhile are left out.

        Raises:
            RetryStoreError: the store cannot be read.
        """
        with _translated(self.directory):
            ids = self._database.execute("SELECT id FROM retry_entries ORDER BY id").fetchall()
        for entry_id in ids:
            with _translated(self.directory):
                row = self._database.execute(_SELECT + "WHERE id = ?", entry_id).fetchone()
            if row is not None:
                yield _entry(row)

    def reschedule(self, entry: RetryEntry, next_attempt_ms: int | None, error: str) -> None:
        """Note that one more attempt failed.

        Args:
            entry: as the store gave it.
            next_attempt_ms: when to try again, in milliseconds since 1970; None for never.
            error: why it failed.

        Raises:
            RetryStoreError: it could not be written.
        """
        values = (entry.attempts + 1, next_attempt_ms, error[:_ERROR_LENGTH_MAX], entry.entry_id)
        with _translated(self.directory):
            self._database.execute(_UPDATE, values)

    def done(self, entry: RetryEntry) -> None:
        """Drop an entry, as its message is handled.

        Raises:
            RetryStoreError: it could not be written; the message will be handled again.
        """
        with _translated(self.directory):
            self._database.execute("DELETE FROM retry_entries WHERE id = ?", (entry.entry_id,))

    def __len__(self) -> int:
        with _translated(self.directory):
            row = self._database.execute("SELECT count(*) FROM retry_entries").fetchone()
        return int(row[0])


def read_entries(directory: Path) -> Iterator[RetryEntry]:
    """Give the entries of a store, oldest first, whether or not a process has it.

    Args:
        directory: of the store.

    Raises:
        FileNotFoundError: there is no store.
        RetryStoreError: it cannot be read.
    """
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
        )


def _lock(directory: Path) -> int:
    """Return the descriptor that holds the directory's lock for as long as it is open."""
    try:
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            _sync_directory(directory.absolute().parent)
        fd = os.open(directory / LOCK_NAME, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise RetryStoreError(f"retry store {directory}: {error.strerror}") from error
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(fd, 20).decode("ascii", "replace").strip()
        os.close(fd)
        raise RetryStoreBusyError(
            f"retry store {directory} is in use by process {holder or 'unknown'}"
        ) from error
    os.ftruncate(fd, 0)
    os.write(fd, b"%d\n" % os.getpid())
    return fd


def _sync_directory(directory: Path) -> None:
    """Make the names in a directory durable, where the file system can."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def _translated(directory: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        # errors of the module itself have no code; the low byte is that without an extension
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:
            raise RetryStoreError(
                f"retry store {directory} is damaged: {error}; once {DATABASE_NAME} is moved away "
                "it starts empty, and what was in it is to be read from its topics again"
            ) from error
        raise RetryStoreError(f"retry store {directory}: {error}") from error


Handle = Callable[[RetryMessage], None]
"""What an application does with a message; an exception says that it failed."""
Pause = Callable[[float], bool]
"""Waits so many seconds; returns True if it was cut short, as the program is to stop."""


class Outcome(Enum):
    """What became of a message."""

    DONE = "done"
    PARKED = "parked"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class InPlace:
    """How a message is tried again before it is parked.

    Args:
        retries: how often at most.
        first_wait_ms: wait before the first of these; doubled for each one after, but never longer
            than a message waits first in the store.
    """

    retries: int = 3
    first_wait_ms: int = 100


@dataclass(slots=True)
class Tally:
    """Counts of a handler's messages.

    Attributes:
        done: messages handled, in place or out of the store.
        parked: messages put into the store.
        dead: messages given up; they stay in the store.
    """

    done: int = 0
    parked: int = 0
    dead: int = 0


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@dataclass(slots=True)
class RetryingHandler:
    """Handles messages, and keeps those that fail for later.

    A message counts as finished when `handle` returns: it is handled, or on the disk. After a
    crash a message may be handled twice, but none is lost.

        with RetryStore(Path("failed")) as store:
            handler = RetryingHandler(write_to_warehouse, store)
            handler.run(stream)

    Args:
        attempt: handles a message, or raises an exception.
        store: where messages go that fail.
        in_place: how a message is tried again at once.
        policy: how it is tried again out of the store.
        clock: tells the time.
        pause: waits between attempts in place.
    """

    attempt: Handle
    store: RetryStore
    in_place: InPlace = field(default_factory=InPlace)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = field(default_factory=SystemClock)
    pause: Pause = _sleep
    tally: Tally = field(default_factory=Tally)

    def handle(self, message: RetryMessage) -> Outcome:
        """Handle a message, or else keep it in the store.

        Raises:
            RetryStoreError: it failed and cannot be kept: it is not finished.
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
            return Outcome.DONE
        next_ms = self.policy.next_attempt_ms(self.clock.time_ms(), attempts, 0)
        self.store.add(message, attempts=attempts, next_attempt_ms=next_ms, error=error)
        return self._count_kept(next_ms)

    def retry_due(self, limit: int = 1) -> int:
        """Try parked messages whose time has come once more.

        Args:
            limit: how many at most, so that new messages need not wait long.

        Returns:
            How many were tried.

        Raises:
            RetryStoreError: the store failed.
        """
        entries = self.store.due(self.clock.time_ms(), limit)
        for entry in entries:
            self.retry(entry)
        return len(entries)

    def retry(self, entry: RetryEntry) -> Outcome:
        """Try one message of the store once more, even a dead one.

        Args:
            entry: as the store gave it.

        Raises:
            RetryStoreError: the store failed.
        """
        error = self._try(entry.message)
        if error is None:
            self.store.done(entry)
            self.tally.done += 1
            return Outcome.DONE
        attempts = entry.attempts + 1
        stored_attempts = max(1, attempts - 1 - self.in_place.retries)
        next_ms = self.policy.next_attempt_ms(self.clock.time_ms(), attempts, stored_attempts)
        self.store.reschedule(entry, next_ms, error)
        if next_ms is not None:
            return Outcome.PARKED
        self.tally.dead += not entry.is_dead
        return Outcome.DEAD

    def drain(self, entries: Iterable[RetryEntry]) -> int:
        """Try messages of the store once more each.

        Args:
            entries: such as `store.entries()` or `store.due(...)`.

        Returns:
            How many failed again.

        Raises:
            RetryStoreError: the store failed.
        """
        return sum(self.retry(entry) is not Outcome.DONE for entry in entries)

    def run(self, stream: ConsumerStream) -> None:
        """Handle the messages of a group's stream until it ends, and parked ones in between.

        With `consumer.timeout.ms` set, parked messages are looked at whenever that has passed;
        without it only when a message comes.

        Raises:
            RetryStoreError: a message failed and cannot be kept; it is not committed.
            BrokerError: as the stream raises it, but for a timeout.
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
        """Return None when a message is handled, else why it is not."""
        try:
            self.attempt(message)
        except Exception as error:  # noqa: BLE001 - the application's code may raise anything
            return str(error) or type(error).__name__
        return None

    def _count_kept(self, next_attempt_ms: int | None) -> Outcome:
        if next_attempt_ms is None:
            self.tally.dead += 1
            return Outcome.DEAD
        self.tally.parked += 1
        return Outcome.PARKED
