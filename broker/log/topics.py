"""The topics of a data directory: their partition counts, and the deletion of all their logs.

A deletion is recorded in a file first, so that it is finished at the next start if the broker dies:
all logs of a topic are deleted, or none.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from threading import Event, Lock, Thread

from broker.config import BrokerConfig
from broker.log.atomic_file import sync_directory, write_atomically
from broker.log.data_directory import DELETED_NAME, DELETING_NAME, DataDirectory


class PartitionCounts:
    """The partition counts of one broker's topics; changed by one thread at a time.

    Args:
        config: the configured counts.
        directory: stores the explicit counts.
    """

    def __init__(self, config: BrokerConfig, directory: DataDirectory) -> None:
        self._config = config
        self._directory = directory
        self._explicit: dict[str, int] = {}
        self._found: dict[str, int] = {}

    def load(self) -> None:
        """Read the explicit counts.

        Raises:
            ConfigError: their file is damaged.
        """
        self._explicit = self._directory.read_partition_counts()

    def of(self, topic: str) -> int:
        """Return the count a topic was created with; else the configured one, or that on disk."""
        explicit = self._explicit.get(topic)
        if explicit is not None:
            return explicit
        config = self._config
        configured = config.topic_partition_counts.get(topic, config.num_partitions)
        return max(configured, self._found.get(topic, 0))

    def add_partition(self, topic: str, index: int) -> None:
        """Record that a partition exists."""
        self._found[topic] = max(self._found.get(topic, 0), index + 1)

    def set_explicit(self, topic: str, count: int) -> None:
        """Set and store the explicit count of a topic.

        Raises:
            StorageError: it cannot be stored.
        """
        explicit = {**self._explicit, topic: count}
        self._directory.write_partition_counts(explicit)
        self._explicit = explicit

    def forget(self, topic: str) -> None:
        """Remove a topic with its explicit count; `save` makes that permanent."""
        self._found.pop(topic, None)
        self._explicit = {name: n for name, n in self._explicit.items() if name != topic}

    def save(self) -> None:
        """Store the explicit counts, after `forget`.

        Raises:
            StorageError: they cannot be stored.
        """
        self._directory.write_partition_counts(self._explicit)

    def topics(self) -> set[str]:
        """Return the topics that have a partition or an explicit count."""
        return {*self._explicit, *list(self._found)}

    def __contains__(self, topic: str) -> bool:
        return topic in self._explicit or topic in self._found


logger = logging.getLogger(__name__)


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

    def begin(self, topic: str) -> None:
        """Record that a topic is being deleted; from now on a restart finishes its deletion.

        Raises:
            OSError: the record cannot be written; nothing has changed.
        """
        write_atomically(self._record, topic.encode())

    def unfinished(self) -> str | None:
        """Return the topic whose deletion has begun and not ended."""
        try:
            return self._record.read_bytes().decode()
        except FileNotFoundError:
            return None

    def move_aside(self, directories: Iterable[Path]) -> None:
        """Move log directories to the directory of deleted logs; open files stay readable.

        Raises:
            OSError: one cannot be moved; those before it are.
        """
        self._deleted.mkdir(exist_ok=True)
        for directory in directories:
            # onto a new empty directory, whose name cannot be in use
            directory.rename(tempfile.mkdtemp(dir=self._deleted))
        sync_directory(self._deleted)
        sync_directory(self._data_dir)

    def end(self) -> None:
        """Remove the record, if there is one, once all logs of the topic are moved aside.

        Raises:
            OSError: the record cannot be removed.
        """
        if self._record.exists():
            self._record.unlink()
            sync_directory(self._data_dir)

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
