"""Offsets in an SQLite database, written in one transaction with what the messages led to.

What a crash undoes, it undoes together with the offset; what is stored is never done again. So
each message has its effect exactly once, whatever happens to the process in between.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from broker.client.group_message import GroupMessage
from broker.client.offsets import Position, position_after
from broker.errors import OffsetStoreError
from broker.topic import TopicPartition

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

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return the positions of those partitions that have one.

        Raises:
            OffsetStoreError: the database fails.
        """
        with self._opened() as database:
            found = {one: self._read(database, one) for one in partitions}
        return {one: position for one, position in found.items() if position is not None}

    def commit(self, positions: Mapping[TopicPartition, Position]) -> set[TopicPartition]:
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
            self._write(database, partition, Position(offset))

    def _read(self, database: sqlite3.Connection, partition: TopicPartition) -> Position | None:
        key = (self._group, partition.topic, partition.name)
        row = database.execute(_SELECT, key).fetchone()
        return None if row is None else Position(*row)

    def _write(
        self, database: sqlite3.Connection, partition: TopicPartition, position: Position
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
