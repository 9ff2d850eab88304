"""Deletion of topics and replicas: the files are moved aside first, and removed by a thread.

The deletion of a topic is recorded in a file first, so that it is finished at the next start if the
broker dies: all logs of a topic are deleted, or none. It must work on a full disk, as it makes
room: the record's room is taken beforehand, and other writes are repeated once the logs are
removed.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread
from uuid import uuid4

from broker.errors import ShuttingDownError, StorageError, UnknownTopicError
from broker.files import DIRECTORY_MODE, opened, sync_directory
from broker.log.checkpoints import Checkpoints
from broker.log.data_directory import DELETED_NAME, DELETING_NAME, DataDirectory
from broker.log.log import Log
from broker.log.table import LogTable
from broker.threads import LoopThread
from broker.topic import NO_HOME, TopicPartition

logger = logging.getLogger(__name__)

_RECORD_BYTES = 512
"""A sector, which a disk writes as a whole or not at all; a topic's name is shorter."""


class DirectoryDeletions:
    """Deletions in one data directory, one topic at a time.

    Owns the record of the topic being deleted, the directory deleted logs are moved to, and the
    thread that removes them there.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._record = data_dir / DELETING_NAME
        self._deleted = data_dir / DELETED_NAME
        self._lock = Lock()  # guards the thread
        self._thread: Thread | None = None
        self._stopping = Event()

    def prepare(self) -> None:
        """Take the room on disk that deletions need."""
        self._deleted.mkdir(DIRECTORY_MODE, exist_ok=True)
        if not self._record.exists():
            self._write_record("")

    def begin(self, topic: str) -> None:
        """Record that a topic is being deleted; from now on a restart finishes its deletion."""
        self._write_record(topic)

    def _write_record(self, topic: str) -> None:
        """Write a topic's name, or an empty one, over the record, which takes no new room."""
        with opened(self._record, os.O_WRONLY | os.O_CREAT) as fd:
            os.pwrite(fd, f"{topic}\n".encode().ljust(_RECORD_BYTES), 0)
            os.fsync(fd)

    def unfinished(self) -> str | None:
        """Return the topic whose deletion has begun and not ended."""
        try:
            topic, end, _ = self._record.read_bytes().partition(b"\n")
        except FileNotFoundError:
            return None
        return topic.decode() if topic and end else None

    def move_aside(self, directories: Iterable[Path]) -> None:
        """Move log directories to the directory of deleted logs; open files stay readable."""
        self._deleted.mkdir(DIRECTORY_MODE, exist_ok=True)
        parents = {self._deleted, self._data_dir}
        for directory in directories:
            parents.add(directory.parent)
            if directory.is_symlink():
                directory.unlink()  # and leave its target alone
                continue
            # a new name each time: a directory can be renamed to one that is being removed and has
            # no files left, and would then not be empty for the thread that removes it
            directory.rename(self._deleted / uuid4().hex)
        for parent in parents:
            sync_directory(parent)

    def end(self) -> None:
        """Remove the record, if there is one, once all logs of the topic are moved aside."""
        if self.unfinished() is not None:
            self._write_record("")

    def remove(self) -> None:
        """Remove the logs moved aside, and wait for that."""
        self.remove_in_background()
        self._join()

    def remove_in_background(self) -> None:
        """Start a thread that removes the logs moved aside, unless one is running."""
        with self._lock:
            if self._thread is None and not self._stopping.is_set() and self._deleted.exists():
                self._thread = LoopThread(self._remove, name="deletion")
                self._thread.start()

    def stop(self) -> None:
        """Stop after the log being removed; the rest is removed after the next start."""
        self._stopping.set()
        self._join()

    def _join(self) -> None:
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _remove(self) -> None:
        try:
            while (directory := self._next()) is not None:
                shutil.rmtree(directory)
        except OSError as error:
            path = error.filename or self._deleted
            logger.error("cannot remove a deleted log: %s: %s", path, error.strerror)
            with self._lock:
                self._thread = None

    def _next(self) -> Path | None:
        """Return a log to remove; without one, a log moved aside later gets another thread."""
        with self._lock:
            directory = next(self._deleted.iterdir(), None)
            if directory is None or self._stopping.is_set():
                self._thread = directory = None
            return directory


class LogDeletions:
    """Deletions in all directories of one broker."""

    def __init__(self, table: LogTable, checkpoints: Checkpoints) -> None:
        self._table = table
        self._topics = table.topics
        self._directories = table.directories
        self._checkpoints = checkpoints
        self._in = {one: DirectoryDeletions(one.path) for one in table.directories.all}

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its logs; blocks on flushes, so not for a processor's thread.

        Fetches in flight keep their files. A deletion that fails half-way is finished by the next
        call or the next start, and the topic refuses data until then.
        """
        with self._table.removal_lock:
            with self._table.lock:
                self._validate_deletable(topic)
            try:
                self._end()  # of another topic, if that failed half-way
                self._begin(topic)
                self._close(topic)
                self._end()
            except OSError as error:
                raise StorageError(f"cannot delete topic '{topic}': {error}") from error
        self._topics.on_removed(topic)
        self.remove_in_background()

    def delete_replica(self, partition: TopicPartition) -> None:
        """Delete the log of a replicated partition; blocks on a flush."""
        with self._table.removal_lock:
            log = self._table.find(partition)
            if log is not None:
                self.move_replica_aside(log)
        self.remove_in_background()

    def move_replica_aside(self, log: Log) -> None:
        """Close a replicated log and move its directory aside; caller holds `removal_lock`."""
        table, partition = self._table, log.partition
        with table.lock:
            table.remove(partition)
            table.replica_creation_ids.pop(partition, None)
            directory = self._directories.place_of[partition]
            self._directories.remove(partition)
            is_home = partition.home == table.home
            is_last = is_home and not table.has_own(partition.topic)
            if is_last:
                self._topics.forget([partition.topic])
        if is_last:
            self._topics.on_deleted(partition.topic)
        _delete([log])
        try:
            self._in[directory].move_aside([log.directory])
            if is_last:
                with table.lock:
                    self._topics.save()
            # before a new log can have the name of this one
            self._with_room(self._checkpoints.write)
        except OSError as error:
            raise StorageError(f"cannot delete {partition}: {error}") from error

    def _validate_deletable(self, topic: str) -> None:
        if not self._table.is_open:
            raise ShuttingDownError("nothing can be deleted: the logs are closed")
        if topic not in self._topics and topic not in self._topics.deleting:
            raise UnknownTopicError(f"there is no topic '{topic}' on broker {self._table.home}")

    def _begin(self, topic: str) -> None:
        try:
            for directory in self._directories.online:
                self._in[directory].begin(topic)
        except OSError:
            with suppress(OSError):  # the next start would finish it
                self.note_ended()
            raise

    def _close(self, topic: str) -> None:
        with self._table.lock:
            self._topics.deleting.add(topic)
            logs = self._table.remove_topic(topic)
            self._topics.forget([topic])
            self._directories.remove_topic(topic)
        self._table.notify_deleted(topic)
        self._topics.on_deleted(topic)
        _delete(logs)

    def _end(self) -> None:
        """Finish the deletion that was begun, if there is one, for good."""
        topics = self.unfinished()
        if topics:
            for directory in self._directories.online:
                self.move_topics_aside(directory, topics)
            with self._table.lock:
                self.forget(topics)
            # before a new log can have the name of an old one
            self._with_room(self._checkpoints.write)
            self.note_ended()
            with self._table.lock:
                self._topics.deleting -= topics

    def unfinished(self) -> set[str]:
        """Return the topic whose deletion was begun and not ended, if there is one."""
        found = (self._in[one].unfinished() for one in self._directories.online)
        return {topic for topic in found if topic is not None}

    def note_ended(self) -> None:
        """Note in all directories that the deletion is ended."""
        for directory in self._directories.online:
            self._in[directory].end()

    def forget(self, topics: Collection[str]) -> None:
        """Remove the counts of topics that are deleted; caller holds the table's lock."""
        self._topics.forget(topics)
        self._with_room(self._topics.save)

    def move_topics_aside(self, directory: DataDirectory, topics: Collection[str]) -> None:
        """Move the logs of topics aside; caller holds `removal_lock`."""
        homes = (self._table.home, NO_HOME)
        own = (one for one in directory.logs().items() if one[0].home in homes)
        self.move_aside(directory, [path for partition, path in own if partition.topic in topics])

    def move_aside(self, directory: DataDirectory, paths: Iterable[Path]) -> None:
        """Move log directories in a data directory aside."""
        self._in[directory].move_aside(paths)

    def finish_in(self, directory: DataDirectory) -> None:
        """Remove, at a start, what was to be removed from a directory and is still there.

        That is unfinished copies, and the logs of topics that were deleted while it was away.
        """
        deletions = self._in[directory]
        if copies := directory.unfinished_copies():
            deletions.move_aside(copies)
        if self._directories.was_away(directory):
            topics = self._directories.deleted_topics(directory)
            # only here, as the other directories have records of their own
            topics |= set(filter(None, [deletions.unfinished()]))
            self.move_topics_aside(directory, topics)
            deletions.end()

    def prepare(self) -> None:
        """Take the room on disk that deletions need."""
        try:
            for directory in self._directories.online:
                self._in[directory].prepare()
        except OSError as error:
            logger.error("there may be no room to delete a topic: %s", error)

    def _with_room(self, action: Callable[[], object]) -> None:
        """Write to the disks; if one refuses, once more after deleted logs are removed."""
        try:
            action()
        except (OSError, StorageError):
            for directory in self._directories.online:
                self._in[directory].remove()
            action()

    def remove_in_background(self) -> None:
        """Have the logs that were moved aside removed."""
        for directory in self._directories.online:
            self._in[directory].remove_in_background()

    def stop(self) -> None:
        """Stop removing; the rest is removed after the next start."""
        for deletions in self._in.values():
            deletions.stop()


def _delete(logs: Iterable[Log]) -> None:
    for log in logs:
        try:
            log.delete()
        except StorageError as error:  # the unflushed data is deleted too
            logger.warning("%s", error)
