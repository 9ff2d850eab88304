"""How many partitions each topic has on this broker, existing or not.

Owns the rule which count holds; keeps the explicit ones in the data directory.

Deleting the logs of a topic: all of them or none, whenever the broker dies.

Owns the note which topic is being deleted, the directory deleted logs are moved to, and the thread
that removes them there. Knows no log: their directories are given.
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
    """The partition counts of one broker; changes are up to one thread at a time.

    Args:
        config: the configured counts.
        directory: where explicit counts are kept.
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
        """Return a topic's count.

        Args:
            topic: any text.

        Returns:
            The count it was created with; else the configured one, or more if more are on disk.
        """
        explicit = self._explicit.get(topic)
        if explicit is not None:
            return explicit
        config = self._config
        configured = config.topic_partition_counts.get(topic, config.num_partitions)
        return max(configured, self._found.get(topic, 0))

    def note_partition(self, topic: str, index: int) -> None:
        """Remember that a partition exists.

        Args:
            topic: its topic.
            index: its index.
        """
        self._found[topic] = max(self._found.get(topic, 0), index + 1)

    def set_explicit(self, topic: str, count: int) -> None:
        """Give a topic its count, for good.

        Args:
            topic: a topic without one.
            count: at least 1.

        Raises:
            StorageError: it cannot be kept.
        """
        explicit = {**self._explicit, topic: count}
        self._directory.write_partition_counts(explicit)
        self._explicit = explicit

    def forget(self, topic: str) -> None:
        """Forget a topic, its explicit count and the partitions it had, until the next `load`.

        Args:
            topic: any topic.
        """
        self._found.pop(topic, None)
        self._explicit = {name: n for name, n in self._explicit.items() if name != topic}

    def save(self) -> None:
        """Keep the explicit counts, after `forget`.

        Raises:
            StorageError: they cannot be kept.
        """
        self._directory.write_partition_counts(self._explicit)

    def topics(self) -> set[str]:
        """Return the topics that have a partition or an explicit count."""
        return {*self._explicit, *list(self._found)}

    def __contains__(self, topic: str) -> bool:
        return topic in self._explicit or topic in self._found


logger = logging.getLogger(__name__)


class Deletions:
    """What is deleted from one data directory; one topic at a time.

    Args:
        data_dir: the data directory.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._note = data_dir / DELETING_NAME
        self._deleted = data_dir / DELETED_NAME
        self._lock = Lock()  # guards the thread
        self._thread: Thread | None = None
        self._stopping = Event()

    def begin(self, topic: str) -> None:
        """Note that a topic is to go; from now on a restart ends what this process does not.

        Args:
            topic: a valid topic name.

        Raises:
            OSError: the note cannot be written; nothing has changed.
        """
        write_atomically(self._note, topic.encode())

    def unfinished(self) -> str | None:
        """Return the topic whose deletion has begun and not ended.

        Raises:
            OSError: the note cannot be read.
        """
        try:
            return self._note.read_bytes().decode()
        except FileNotFoundError:
            return None

    def move_aside(self, directories: Iterable[Path]) -> None:
        """Move log directories to where they are removed from; their files stay readable.

        Args:
            directories: in the data directory.

        Raises:
            OSError: one cannot be moved; those before it are.
        """
        self._deleted.mkdir(exist_ok=True)
        for directory in directories:
            # over an empty directory of its own: the name is free whatever was deleted before
            directory.rename(tempfile.mkdtemp(dir=self._deleted))
        sync_directory(self._deleted)
        sync_directory(self._data_dir)

    def end(self) -> None:
        """Take the note back, if there is one: nothing of the topic is left.

        Raises:
            OSError: the note cannot be removed.
        """
        if self._note.exists():
            self._note.unlink()
            sync_directory(self._data_dir)

    def remove_in_background(self) -> None:
        """Have a thread remove what was moved aside, unless one is at it."""
        with self._lock:
            is_busy = self._thread is not None and self._thread.is_alive()
            if is_busy or self._stopping.is_set() or not self._deleted.exists():
                return
            self._thread = Thread(target=self._remove, name="deletion", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Stop removing after the log at hand; the rest goes after the next start."""
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
