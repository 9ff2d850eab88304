"""Stores of a group's offsets: the interface, ZooKeeper as in 0.7, a file, and SQLite.

A store only keeps positions; whether a position may be committed is decided by its callers.

`FileOffsets` is for one process on one machine. It writes offsets together with a file of results:
the offsets file holds the length of the results file, and results behind that length were not
committed and are cut off when the store is opened again.

`SqliteOffsets` writes offsets in the transaction of the application's results. A crash undoes both
or neither, so each message has its effect exactly once.
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

from broker.closing import SelfClosing
from broker.cluster_state import Creation
from broker.consumer.chunk import GroupMessage, inner_index
from broker.errors import CoordinationError, OffsetStoreError
from broker.files import write_atomically
from broker.protocol.codec import Message
from broker.topic import MessagePosition, TopicPartition
from broker.zk import paths
from broker.zk.creations import read_creations
from broker.zk.session import Session
from broker.zk.values import decode_number, encode_number

logger = logging.getLogger(__name__)

UNREADABLE_OFFSET = -1  # for a stored value that is not a number; out of range on every broker


def position_after(message: GroupMessage | Message) -> MessagePosition:
    """Return the position after a message, which must be the object that the stream gave."""
    if isinstance(message, Message):
        offset, next_offset, inner = message.offset, message.next_offset, message.inner
    else:
        _, _, offset, next_offset, _ = message
        inner = inner_index(message)
    if next_offset != offset:
        return MessagePosition(next_offset)
    return MessagePosition(offset, inner + 1)


def partition_of(message: GroupMessage | Message) -> TopicPartition:
    """Return the partition of a message that a stream or a group gave."""
    return message.partition if isinstance(message, Message) else message[1]


class OffsetStore(Protocol):
    """Stores the positions of one group; called from several threads.

    Methods raise `BrokerError` if the store fails; a commit may have stored some of its positions.
    """

    def void_former(self, creations: Mapping[TopicPartition, Creation]) -> None:
        """Have partitions start at 0, where every log begins, whose topic was created again.

        Called before `load`, with the present creations: positions of another creation are void.
        """

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one."""

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Store positions durably; return the partitions for which that was refused.

        Another process has changed their positions since they were loaded. Loading them again
        allows the next commit.
        """

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Continue a partition at another offset, perhaps a lower one.

        Called before the application gets a message from there: when the group has no offset, when
        it is out of range, and after a seek.
        """


class _Known(NamedTuple):
    """An offset node as this process last saw or wrote it."""

    offset: int
    version: int


class RegistryOffsets:
    """Stores offsets in ZooKeeper, in 0.7's nodes and format; `session` must be started.

    An offset is replaced only if its node has the version this process last saw: a process that was
    frozen and has lost its partitions cannot overwrite the commits of the member that has them now.
    """

    def __init__(self, session: Session, group: str) -> None:
        self._session = session
        self._group = group
        self._lock = threading.Lock()  # guards _known
        self._known: dict[TopicPartition, _Known] = {}

    def void_former(self, creations: Mapping[TopicPartition, Creation]) -> None:
        """Do nothing: `load` recognizes void offsets by their age."""

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return positions: -1 for a value that is not a number, 0 for one older than its topic."""
        nodes = {paths.offset(self._group, partition): partition for partition in partitions}
        found = self._session.get_many(nodes)
        creations = read_creations(self._session, map(nodes.__getitem__, found))
        positions = {}
        with self._lock:
            for path, partition in nodes.items():
                self._known.pop(partition, None)
                if path in found:
                    value, stat = found[path]
                    offset = _offset_in(value, path)
                    self._known[partition] = _Known(offset, stat.version)
                    creation = creations.of(partition)
                    # the topic was deleted and created again, and every log begins at 0
                    if creation is not None and creation.voids(stat.mzxid):
                        _log_void(partition, offset)
                        offset = 0
                        # even a commit of the same number is written, as it renews the age
                        self._known[partition] = _Known(UNREADABLE_OFFSET, stat.version)
                    positions[partition] = MessagePosition(offset)
        return positions

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Store the offsets; see `OffsetStore`."""
        offsets = {partition: position.offset for partition, position in positions.items()}
        with self._lock:
            known = {one: self._known[one] for one in offsets if one in self._known}
            changed = {
                one: offset
                for one, offset in offsets.items()
                if one not in known or known[one].offset != offset
            }
            for one in changed:
                self._known.pop(one, None)  # unknown if ZooKeeper does not respond
        done = self._replace({one: known[one].version for one in changed if one in known}, offsets)
        done |= self._create({one: at for one, at in changed.items() if one not in known})
        with self._lock:
            self._known.update({one: _Known(offsets[one], done[one]) for one in done})
        return changed.keys() - done.keys()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Do nothing: the next commit writes the new offset."""

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


def _log_void(partition: TopicPartition, offset: int) -> None:
    logger.warning(
        "offset %d of %s is void: it was stored before topic '%s' was created again; reading from "
        "the start",
        *(offset, partition, partition.topic),
    )


def _offset_in(value: bytes, path: str) -> int:
    try:
        return decode_number(value, f"offset in {path}")
    except CoordinationError as error:
        logger.error("%s; it is treated as out of range", error)
        return UNREADABLE_OFFSET


OFFSETS_NAME = "offsets.json"
RESULTS_NAME = "results"
_LOCK_NAME = "lock"


class FileOffsets(SelfClosing):
    r"""Stores a group's offsets in a directory, together with the application's results.

    Set `autocommit.enable` to false: `checkpoint` commits.

        with FileOffsets(Path("totals")) as store:
            for message in stream:
                if store.finish(message):
                    store.results.write(message[4] + b"\n")
                if is_time_for_it:
                    store.checkpoint()

    Args:
        directory: created when missing; holds the files `offsets.json` and `results`.

    Raises:
        OffsetStoreError: another process has the directory open, or its files are damaged.
    """

    def __init__(self, directory: str | Path) -> None:
        self._directory = directory = Path(directory)
        self._lock = threading.Lock()  # guards _stored, _creation_ids and the offsets file
        self._done: dict[TopicPartition, MessagePosition] = {}
        with self._translated():
            directory.mkdir(parents=True, exist_ok=True)
            self._lock_file = (directory / _LOCK_NAME).open("wb")
            try:
                fcntl.flock(self._lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = _read(directory / OFFSETS_NAME)
                self._stored, self._creation_ids, self._results_bytes = found
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

    def close(self) -> None:
        """Close the files; results that were not committed are lost."""
        self.results.close()
        self._lock_file.close()

    def finish(self, message: GroupMessage | Message) -> bool:
        """Mark a message of a stream or group as processed; write its results before a checkpoint.

        Returns:
            False if it was processed before, and its results are stored already.
        """
        partition, position = partition_of(message), position_after(message)
        before = self._done.get(partition)
        if before is not None and before >= position:
            return False
        self._done[partition] = position
        return True

    def checkpoint(self) -> None:
        """Store the results and the positions of all processed messages, both or neither.

        Raises:
            OffsetStoreError: writing fails.
        """
        with self._translated():
            self.results.flush()
            os.fsync(self.results.fileno())
            self._save(self._done, self.results.tell())

    def void_former(self, creations: Mapping[TopicPartition, Creation]) -> None:
        """Have partitions start at 0 whose topic was created again; see `OffsetStore`."""
        with self._lock:
            for partition, creation in creations.items():
                known = self._creation_ids.get(partition, creation.id)
                position = self._done.get(partition) or self._stored.get(partition)
                if known != creation.id and position is not None:
                    _log_void(partition, position.offset)
                    self._stored[partition] = self._done[partition] = MessagePosition(0)
                self._creation_ids[partition] = creation.id

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one, checkpointed or not."""
        with self._lock:
            found = {one: self._stored[one] for one in partitions if one in self._stored}
        found.update({one: self._done[one] for one in partitions if one in self._done})
        self._done.update(found)
        return found

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Store positions for applications without results; `OffsetStoreError` if writing fails."""
        with self._translated():
            self._save(positions, self._results_bytes)
        with self._lock:
            self._done.update(positions)
        return set()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Set a partition's position, to be stored with the next checkpoint or commit."""
        self._done[partition] = MessagePosition(offset)

    def _save(
        self, positions: Mapping[TopicPartition, MessagePosition], results_bytes: int
    ) -> None:
        with self._lock:
            stored = {**self._stored, **positions}
            ids = {one: self._creation_ids[one] for one in stored if one in self._creation_ids}
            _write(self._directory / OFFSETS_NAME, stored, ids, results_bytes)
            self._stored, self._results_bytes = stored, results_bytes

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BlockingIOError as error:
            raise OffsetStoreError(f"{self._directory} is in use by another process") from error
        except OSError as error:
            raise OffsetStoreError(f"offsets in {self._directory}: {error}") from error


def _read(
    path: Path,
) -> tuple[dict[TopicPartition, MessagePosition], dict[TopicPartition, str], int]:
    """Return positions, the creation ids of their topics, and the length of the results."""
    if not path.exists():
        return {}, {}, 0
    try:
        content = json.loads(path.read_bytes())
        positions = {
            TopicPartition.named(topic, name): MessagePosition(*position)
            for topic, by_name in content["offsets"].items()
            for name, position in by_name.items()
        }
        creation_ids = {
            one: str(content["creations"][one.topic][one.name])
            for one in positions
            if one.name in content["creations"].get(one.topic, {})
        }
        return positions, creation_ids, int(content["results_bytes"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OffsetStoreError(f"{path} is damaged: {error!r}") from error


def _write(
    path: Path,
    positions: Mapping[TopicPartition, MessagePosition],
    creation_ids: Mapping[TopicPartition, str],
    results_bytes: int,
) -> None:
    content = {
        "results_bytes": results_bytes,
        "offsets": _by_topic(positions),
        "creations": _by_topic(creation_ids),
    }
    write_atomically(path, json.dumps(content, indent=1).encode())


def _by_topic(values: Mapping[TopicPartition, object]) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    for partition, value in sorted(values.items()):
        found.setdefault(partition.topic, {})[partition.name] = value
    return found


DEFAULT_BUSY_TIMEOUT_S = 10.0
_TABLES = """
CREATE TABLE IF NOT EXISTS consumer_offsets (
    consumer_group TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition TEXT NOT NULL,
    offset INTEGER NOT NULL,
    inner_count INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS consumer_creations (
    consumer_group TEXT NOT NULL,
    topic TEXT NOT NULL,
    partition TEXT NOT NULL,
    creation_id TEXT NOT NULL,
    zxid INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition)
) WITHOUT ROWID;
"""
_SELECT = """
SELECT offset, inner_count FROM consumer_offsets
WHERE consumer_group = ? AND topic = ? AND partition = ?
"""
_REPLACE = "INSERT OR REPLACE INTO consumer_offsets VALUES (?, ?, ?, ?, ?)"
_SELECT_CREATION = """
SELECT creation_id, zxid FROM consumer_creations
WHERE consumer_group = ? AND topic = ? AND partition = ?
"""
_REPLACE_CREATION = "INSERT OR REPLACE INTO consumer_creations VALUES (?, ?, ?, ?, ?)"


class SqliteOffsets(SelfClosing):
    """Stores a group's offsets in a table of the database that holds the application's results.

    All members of a group use the same file. Set `autocommit.enable` to false: the transactions of
    the application commit. A transaction may finish many messages.

        store = SqliteOffsets(Path("results.db"), "counters")
        for message in stream:
            with store.transaction() as database:
                if store.finish(message):
                    database.execute("INSERT INTO results ...")

    Every method but `close` raises `OffsetStoreError` if the database fails, or is busy for too
    long.

    Args:
        path: the database, created when missing.
        group: the group's name.
        busy_timeout_s: the wait for another process's transaction.

    Raises:
        OffsetStoreError: the file is not a database, or cannot be opened.
    """

    def __init__(
        self, path: str | Path, group: str, *, busy_timeout_s: float = DEFAULT_BUSY_TIMEOUT_S
    ) -> None:
        self._path = Path(path)
        self._group = group
        self._busy_timeout_s = busy_timeout_s
        # used by the application only, so that the library's threads never wait for its transaction
        self._database = self._connect()
        try:
            with self._translated():
                self._database.execute("PRAGMA journal_mode=WAL")
                self._database.executescript(_TABLES)
        except OffsetStoreError:
            self._database.close()
            raise

    def close(self) -> None:
        """Close the application's connection; an open transaction is rolled back."""
        self._database.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for writing results in a transaction, committed at the end.

        Use it in one thread, and do not wait for messages inside: it blocks other processes.
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

    def finish(self, message: GroupMessage | Message) -> bool:
        """Move the offset past a message, given by a stream or a group, in the open transaction.

        Returns:
            False if the offset is past the message: another member, or this one before a restart,
            has processed it and stored its results.
        """
        if not self._database.in_transaction:
            raise OffsetStoreError("finish a message within a transaction")
        partition, position = partition_of(message), position_after(message)
        with self._translated():
            stored = self._read(self._database, partition)
            if stored is not None and stored >= position:
                return False
            self._write(self._database, partition, position)
        return True

    def void_former(self, creations: Mapping[TopicPartition, Creation]) -> None:
        """Have partitions start at 0 whose topic was created again; see `OffsetStore`."""
        with self._opened() as database:
            database.execute("BEGIN IMMEDIATE")
            for partition, creation in creations.items():
                key = (self._group, partition.topic, partition.name)
                row = database.execute(_SELECT_CREATION, key).fetchone()
                known = creation if row is None else Creation(*row)
                # a member that does not know the last creation yet must change nothing
                if known.id != creation.id and known.zxid < creation.zxid:
                    if (position := self._read(database, partition)) is not None:
                        _log_void(partition, position.offset)
                        self._write(database, partition, MessagePosition(0))
                    row = None
                # the same one has another number once ZooKeeper has lost its data
                if row is None or (known.id == creation.id and known != creation):
                    database.execute(_REPLACE_CREATION, (*key, *creation))
            database.execute("COMMIT")

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return the positions of those partitions that have one."""
        with self._opened() as database:
            found = {one: self._read(database, one) for one in partitions}
        return {one: position for one, position in found.items() if position is not None}

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Store positions for applications without results; a position never moves back."""
        with self._opened() as database:
            database.execute("BEGIN IMMEDIATE")
            for partition, position in positions.items():
                stored = self._read(database, partition)
                if stored is None or stored < position:
                    self._write(database, partition, position)
            database.execute("COMMIT")
        return set()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Set a partition's position, which may move back; see `OffsetStore`."""
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
                isolation_level=None,  # no implicit transactions
                check_same_thread=False,
            )

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
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
