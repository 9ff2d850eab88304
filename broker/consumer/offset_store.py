"""Where a group's offsets are kept: the interface, and the registry as 0.7 uses it.

A store is told positions and remembers them; who owns a partition, and whether a position may be
committed at all, is not its subject.

Offsets in a file, kept in step with a file of results: for one process on one machine.

The offsets file says how long the results file was when it was written. Whatever follows in the
results file was not committed, and is cut off when the store is opened again.

Offsets in an SQLite database, written in one transaction with what the messages led to.

What a crash undoes, it undoes together with the offset; what is stored is never done again. So
each message has its effect exactly once, whatever happens to the process in between.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from broker.consumer.chunk import GroupMessage, inner_index
from broker.errors import CoordinationError, OffsetStoreError
from broker.topic import MessagePosition, TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import decode_number, decode_partition_name, encode_number

logger = logging.getLogger(__name__)

UNREADABLE_OFFSET = -1
"""Stands for a stored offset that is no number: out of range on every broker."""


def position_after(message: GroupMessage) -> MessagePosition:
    """Return the position once a message, as a stream gave it, and all before it are done."""
    _, _, offset, next_offset, _ = message
    if next_offset != offset:
        return MessagePosition(next_offset)
    return MessagePosition(offset, inner_index(message) + 1)


class OffsetStore(Protocol):
    """Keeps positions of one group. Methods are called from several threads."""

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one.

        Raises:
            BrokerError: the store fails.
        """

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Keep positions, for good.

        Returns:
            The partitions that were left alone as somebody else has moved them since they were
            loaded; loading them again takes note of that.

        Raises:
            BrokerError: the store fails; any of the positions may have been kept.
        """

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Take note that a partition goes on at another offset, which may be a lower one.

        It is called before any message from there is given to the application: when there was no
        offset, or one out of range, and when the application asked for it.

        Raises:
            BrokerError: the store fails.
        """


class _Known(NamedTuple):
    """An offset node as this process last saw or wrote it."""

    offset: int
    version: int


class RegistryOffsets:
    """Keeps offsets in ZooKeeper, in 0.7's nodes and format.

    An offset is replaced only if its node is as this process last saw it, so that a process that
    was frozen and has lost its partitions cannot overwrite what the new owner committed.

    Args:
        session: started.
        group: the group's name.
    """

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._lock = threading.Lock()  # guards _known
        self._known: dict[TopicPartition, _Known] = {}

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one.

        An offset that is no number is logged and given as -1, which no broker has.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        nodes = {paths.offset(self._group, partition): partition for partition in partitions}
        found = self._session.get_many(nodes)
        positions = {}
        with self._lock:
            for path, partition in nodes.items():
                self._known.pop(partition, None)
                if path in found:
                    value, stat = found[path]
                    offset = _offset_in(value, path)
                    self._known[partition] = _Known(offset, stat.version)
                    positions[partition] = MessagePosition(offset)
        return positions

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Keep the offsets; see `OffsetStore.commit`.

        Raises:
            RegistryUnreachableError: no answer came in time; any of them may have been kept.
        """
        offsets = {partition: position.offset for partition, position in positions.items()}
        with self._lock:
            known = {one: self._known[one] for one in offsets if one in self._known}
        changed = {
            one: offset
            for one, offset in offsets.items()
            if one not in known or known[one].offset != offset
        }
        done = self._replace({one: known[one].version for one in changed if one in known}, offsets)
        done |= self._create({one: at for one, at in changed.items() if one not in known})
        with self._lock:
            self._known.update({one: _Known(offsets[one], done[one]) for one in done})
        return changed.keys() - done.keys()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Do nothing: the next commit writes whatever the offset is by then."""

    def _replace(
        self, versions: Mapping[TopicPartition, int], offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        nodes = {paths.offset(self._group, partition): partition for partition in versions}
        found = self._session.set_many(
            {
                path: (encode_number(offsets[partition]), versions[partition])
                for path, partition in nodes.items()
            }
        )
        return {nodes[path]: version for path, version in found.items()}

    def _create(self, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        nodes = {paths.offset(self._group, partition): partition for partition in offsets}
        existing = self._session.create_many(
            {path: encode_number(offsets[partition]) for path, partition in nodes.items()},
            ephemeral=False,
        )
        return {nodes[path]: 0 for path in nodes.keys() - set(existing)}


def _offset_in(value: bytes, path: str) -> int:
    try:
        return decode_number(value, f"offset in {path}")
    except CoordinationError as error:
        logger.error("%s; it is taken for one out of range", error)
        return UNREADABLE_OFFSET


OFFSETS_NAME = "offsets.json"
RESULTS_NAME = "results"
_LOCK_NAME = "lock"


class FileOffsets:
    r"""Keeps a group's offsets in a directory, and beside them what the messages led to.

    Set `autocommit.enable` to false, and let `checkpoint` do the committing.

        with FileOffsets(Path("totals")) as store:
            for message in stream:
                if store.finish(message):
                    store.results.write(message[4] + b"\n")
                if is_time_for_it:
                    store.checkpoint()

    Args:
        directory: created when missing; holds the files `offsets.json` and `results`.

    Raises:
        OffsetStoreError: another process has it open, or its files are damaged.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()  # guards _stored and the offsets file
        self._done: dict[TopicPartition, MessagePosition] = {}
        with self._translated():
            directory.mkdir(parents=True, exist_ok=True)
            self._lock_file = (directory / _LOCK_NAME).open("wb")
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._stored, self._results_bytes = _read(directory / OFFSETS_NAME)
                self.results = self._open_results()
                """The results file, open for writing at its end."""
            except BaseException:
                self._lock_file.close()
                raise

    def _open_results(self) -> Any:
        path = self._directory / RESULTS_NAME
        path.touch()
        if path.stat().st_size < self._results_bytes:
            raise OffsetStoreError(
                f"{path} is shorter than the {self._results_bytes} bytes committed"
            )
        os.truncate(path, self._results_bytes)
        return path.open("ab")

    def __enter__(self) -> FileOffsets:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files; what was not committed comes to nothing."""
        self.results.close()
        self._lock_file.close()

    def finish(self, message: GroupMessage) -> bool:
        """Count a message as done; its results go into `results`, before the next checkpoint.

        Args:
            message: as a stream gave it.

        Returns:
            False if it was done before, so that its results are there.
        """
        partition, position = message[1], position_after(message)
        before = self._done.get(partition)
        if before is not None and before >= position:
            return False
        self._done[partition] = position
        return True

    def checkpoint(self) -> None:
        """Keep the results so far and the offsets of the messages done, both or neither.

        Raises:
            OffsetStoreError: the disk refuses.
        """
        with self._translated():
            self.results.flush()
            os.fsync(self.results.fileno())
            self._save(self._done, self.results.tell())

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one, results not yet kept included."""
        with self._lock:
            found = {one: self._stored[one] for one in partitions if one in self._stored}
        found.update({one: self._done[one] for one in partitions if one in self._done})
        self._done.update(found)
        return found

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Keep positions for applications that store no results; see `OffsetStore.commit`.

        Raises:
            OffsetStoreError: the disk refuses.
        """
        with self._translated():
            self._save(positions, self._results_bytes)
        return set()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Set a partition's position, to be kept with the next checkpoint or commit."""
        self._done[partition] = MessagePosition(offset)

    def _save(
        self, positions: Mapping[TopicPartition, MessagePosition], results_bytes: int
    ) -> None:
        with self._lock:
            stored = {**self._stored, **positions}
            _write(self._directory / OFFSETS_NAME, stored, results_bytes)
            self._stored, self._results_bytes = stored, results_bytes

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError as error:
            raise OffsetStoreError(f"{self._directory} is in use by another process") from error
        except OSError as error:
            raise OffsetStoreError(f"offsets in {self._directory}: {error}") from error


def _read(path: Path) -> tuple[dict[TopicPartition, MessagePosition], int]:
    if not path.exists():
        return {}, 0
    try:
        content = json.loads(path.read_bytes())
        positions = {
            TopicPartition(topic, *decode_partition_name(name)): MessagePosition(*position)
            for topic, by_name in content["offsets"].items()
            for name, position in by_name.items()
        }
        return positions, int(content["results_bytes"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OffsetStoreError(f"{path} is damaged: {error!r}") from error


def _write(
    path: Path, positions: Mapping[TopicPartition, MessagePosition], results_bytes: int
) -> None:
    offsets: dict[str, dict[str, MessagePosition]] = {}
    for partition, position in sorted(positions.items()):
        offsets.setdefault(partition.topic, {})[partition.name] = position
    content = {"results_bytes": results_bytes, "offsets": offsets}
    temporary = path.with_suffix(".tmp")
    with temporary.open("wb") as file:
        file.write(json.dumps(content, indent=1).encode())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    _sync_directory(path.parent)


def _sync_directory(directory: Path) -> None:
    """Make a renaming last."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


DEFAULT_BUSY_TIMEOUT_S = 10.0
_TABLE = """
CREATE TABLE IF NOT EXISTS consumer_offsets (
    consumer_group TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition TEXT NOT NULL,
    offset INTEGER NOT NULL,
    inner_count INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition)
) WITHOUT ROWID
"""
_SELECT = """
SELECT offset, inner_count FROM consumer_offsets
WHERE consumer_group = ? AND topic = ? AND partition = ?
"""
_REPLACE = "INSERT OR REPLACE INTO consumer_offsets VALUES (?, ?, ?, ?, ?)"


class SqliteOffsets:
    """Keeps a group's offsets in a table of a database that the results go to as well.

    All members of a group use the same file. Set `autocommit.enable` to false: the transactions
    of the application do the committing. One of them may finish many messages.

        store = SqliteOffsets(Path("results.db"), "counters")
        for message in stream:
            with store.transaction() as database:
                if store.finish(message):
                    database.execute("INSERT INTO results ...")

    Args:
        path: the database, created when missing.
        group: the group's name.
        busy_timeout_s: how long to wait for another process's transaction.

    Raises:
        OffsetStoreError: the file is no database, or cannot be opened.
    """

    def __init__(
        self, path: Path, group: str, *, busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S
    ) -> None:
        self._path = path
        self._group = group
        self._busy_timeout_s = busy_timeout_s
        # The application's connection: the threads of the library never wait for its transaction.
        self._database = self._connect()
        try:
            with self._translated():
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.execute(_TABLE)
        except OffsetStoreError:
            self._database.close()
            raise

    def __enter__(self) -> SqliteOffsets:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the application's connection; an open transaction is rolled back."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection to write results with; all of it is kept at the end, or nothing.

        Use it in one thread, and do not wait for messages inside: other processes wait meanwhile.

        Raises:
            OffsetStoreError: the database is busy for too long, or fails.
        """
        with self._translated():
            self._database.execute("BEGIN IMMEDIATE")
        try:
            yield self._database
            with self._translated():
                self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    def finish(self, message: GroupMessage) -> bool:
        """Move the offset past a message, in the transaction that is open.

        Args:
            message: as a stream gave it.

        Returns:
            False if it is past the message already, so that its results are stored: another member
            that had the partition, or this one before a restart, has done it.

        Raises:
            OffsetStoreError: no transaction is open, or the database fails.
        """
        if not self._database.in_transaction:
            raise OffsetStoreError("finish a message within a transaction")
        partition, position = message[1], position_after(message)
        with self._translated():
            stored = self._read(self._database, partition)
            if stored is not None and stored >= position:
                return False
            self._write(self._database, partition, position)
        return True

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one.

        Raises:
            OffsetStoreError: the database fails.
        """
        with self._opened() as database:
            found = {one: self._read(database, one) for one in partitions}
        return {one: position for one, position in found.items() if position is not None}

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Keep positions for applications that store no results; see `OffsetStore.commit`.

        A position never goes back.

        Raises:
            OffsetStoreError: the database is busy for too long, or fails.
        """
        with self._opened() as database:
            database.execute("BEGIN IMMEDIATE")
            for partition, position in positions.items():
                stored = self._read(database, partition)
                if stored is None or stored < position:
                    self._write(database, partition, position)
            database.execute("COMMIT")
        return set()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Set a partition's position to an offset, wherever it was; see `OffsetStore.restart`.

        Raises:
            OffsetStoreError: the database is busy for too long, or fails.
        """
        with self._opened() as database:
            self._write(database, partition, MessagePosition(offset))

    def _read(
        self, database: sqlite3.Connection, partition: TopicPartition
    ) -> MessagePosition | None:
        key = (self._group, partition.topic, partition.name)
        row = database.execute(_SELECT, key).fetchone()
        return None if row is None else MessagePosition(*row)

    def _write(
        self, database: sqlite3.Connection, partition: TopicPartition, position: MessagePosition
    ) -> None:
        key = (self._group, partition.topic, partition.name)
        database.execute(_REPLACE, (*key, *position))

    def _connect(self) -> sqlite3.Connection:
        with self._translated():
            return sqlite3.connect(
                self._path,
                timeout=self._busy_timeout_s,
                isolation_level=None,  # transactions begin and end where they are written
                check_same_thread=False,
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        """Give a connection of one's own, closed at the end."""
        database = self._connect()
        try:
            with self._translated():
                yield database
        finally:
            database.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise OffsetStoreError(f"offsets in {self._path}: {error}") from error
