"""The topics in a broker's data directories: partition counts, and the deletion of all logs of one.

A deletion is recorded in a file first, so that it is finished at the next start if the broker dies:
all logs of a topic are deleted, or none. It must work on a full disk, as it makes room: the
record's room is taken beforehand, and other writes are repeated once the logs are removed.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from threading import Event, Lock, Thread

from broker.config import BrokerConfig
from broker.errors import StorageError
from broker.files import DIRECTORY_MODE, open_file, sync_directory
from broker.log.data_directory import DELETED_NAME, DELETING_NAME
from broker.log.directories import DataDirectories
from broker.topic_settings import NO_OVERRIDES, TopicOverrides, topic_config

logger = logging.getLogger(__name__)


class PartitionCounts:
    """Partition counts of one broker's topics; changed by one thread at a time.

    The explicit counts of all topics are stored in every directory.
    """

    def __init__(self, config: BrokerConfig, directories: DataDirectories) -> None:
        self._config = config
        self._directories = directories
        self._overrides: Mapping[str, TopicOverrides] = {}
        self._explicit: dict[str, int] = {}
        self._found: dict[str, int] = {}

    def load(self) -> None:
        """Read the explicit counts; the largest where directories differ."""
        directories = self._directories
        stored = {one: one.read_partition_counts() for one in directories.online}
        for directory, counts in stored.items():
            if directories.was_away(directory):
                # it may know topics that were deleted since: those that it has no log of
                here = directories.own_topics(directory)
                counts = {topic: n for topic, n in counts.items() if topic in here}
            for topic, count in counts.items():
                self._explicit[topic] = max(count, self._explicit.get(topic, 0))
        for directory, counts in stored.items():
            if counts != self._explicit:
                try:
                    directory.write_partition_counts(self._explicit)
                except StorageError as error:  # a full disk: the others have them
                    logger.warning("%s", error)

    def reconfigure(self, config: BrokerConfig, overrides: Mapping[str, TopicOverrides]) -> None:
        """Use other configured counts from now on."""
        self._config, self._overrides = config, overrides

    def of(self, topic: str) -> int:
        """Return the count a topic was created with; else the configured one, or that on disk.

        A setting of the topic comes before these, but partitions that exist stay.
        """
        explicit = self._explicit.get(topic)
        overrides = self._overrides.get(topic, NO_OVERRIDES)
        if explicit is not None and "partition_count" not in overrides:
            return explicit
        configured = topic_config(self._config, topic, overrides).partition_count
        return max(configured, explicit or 0, self._found.get(topic, 0))

    def add_partition(self, topic: str, index: int) -> None:
        """Record that a partition exists."""
        self._found[topic] = max(self._found.get(topic, 0), index + 1)

    def set_explicit(self, topic: str, count: int) -> None:
        """Set and store the explicit count of a topic."""
        explicit = {**self._explicit, topic: count}
        try:
            for directory in self._directories.online:
                directory.write_partition_counts(explicit)
        except StorageError:
            with suppress(StorageError):  # the next start would find the topic created
                self.save()
            raise
        self._explicit = explicit

    def fix(self, topic: str) -> None:
        """Make a topic's present count explicit, so that the broker's settings do not change it."""
        if topic not in self._explicit:
            self.set_explicit(topic, self.of(topic))

    def forget(self, topic: str) -> None:
        """Remove a topic with its explicit count; `save` makes that permanent."""
        self._found.pop(topic, None)
        self._explicit = {name: n for name, n in self._explicit.items() if name != topic}

    def save(self) -> None:
        """Store the explicit counts, after `forget`."""
        for directory in self._directories.online:
            directory.write_partition_counts(self._explicit)

    def topics(self) -> set[str]:
        """Return the topics that have a partition or an explicit count."""
        return {*self._explicit, *list(self._found)}

    def __contains__(self, topic: str) -> bool:
        return topic in self._explicit or topic in self._found


_RECORD_BYTES = 512
"""A sector, which a disk writes as a whole or not at all; a topic's name is shorter."""


def _rename(directory: Path, target: Path) -> bool:
    """Rename a directory; return False if one with content has the new name."""
    try:
        directory.rename(target)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY):
            return False
        raise
    return True


class Deletions:
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
        fd = open_file(self._record, os.O_WRONLY | os.O_CREAT)
        try:
            os.pwrite(fd, f"{topic}\n".encode().ljust(_RECORD_BYTES), 0)
            os.fsync(fd)
        finally:
            os.close(fd)

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
        number = 0
        parents = {self._deleted, self._data_dir}
        for directory in directories:
            parents.add(directory.parent)
            if directory.is_symlink():
                directory.unlink()  # and leave its target alone
                continue
            while not _rename(directory, self._deleted / str(number)):
                number += 1
        for parent in parents:
            sync_directory(parent)

    def end(self) -> None:
        """Remove the record, if there is one, once all logs of the topic are moved aside."""
        if self.unfinished() is not None:
            self._write_record("")

    def remove(self) -> None:
        """Remove the logs moved aside, and wait for that."""
        self.remove_in_background()
        with self._lock:
            if self._thread is not None:
                self._thread.join()

    def remove_in_background(self) -> None:
        """Start a thread that removes the logs moved aside, unless one is running."""
        with self._lock:
            is_busy = self._thread is not None and self._thread.is_alive()
            if is_busy or self._stopping.is_set() or not self._deleted.exists():
                return
            self._thread = Thread(target=self._remove, name="deletion", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop after the log being removed; the rest is removed after the next start."""
        self._stopping.set()
        with self._lock:
            if self._thread is not None:
                self._thread.join()

    def _remove(self) -> None:
        while not self._stopping.is_set():
            directory = next(self._deleted.iterdir(), None)
            if directory is None:
                return
            try:
                shutil.rmtree(directory)
            except OSError as error:
                logger.error("cannot remove a deleted log: %s: %s", directory, error.strerror)
                return
