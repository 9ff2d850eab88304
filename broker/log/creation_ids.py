"""The creation ids of a broker's topics: a topic gets another one each time it is created.

By the id in the registry consumers know that a topic was deleted and created again, and that stored
offsets are of the former one. A file in each data directory has a line `ID TOPIC` for each
creation, of which the last one of a topic counts.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from broker.errors import StorageError
from broker.files import open_file, write_all, write_atomically
from broker.log.data_directory import CREATION_IDS_NAME, DataDirectory
from broker.log.directories import DataDirectories

_ID_BYTES = 8

logger = logging.getLogger(__name__)


class _IdFile:
    """The file in one data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / CREATION_IDS_NAME
        self._lines: list[str] = []
        self._end = 0
        """The end of the whole lines; a crash or a full disk can leave part of one behind it."""

    def read(self) -> dict[str, str]:
        """Return the ids by topic."""
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return {}
        *whole, rest = content.decode(errors="replace").split("\n")
        self._lines = [*(f"{line}\n" for line in whole), *filter(None, [rest])]
        self._end = content.rfind(b"\n") + 1
        return {topic: one for one, _, topic in (line.partition(" ") for line in whole)}

    def correct(self, ids: Mapping[str, str]) -> None:
        """Make the file hold these ids and no others, unless the disk refuses."""
        lines = [f"{one} {topic}\n" for topic, one in ids.items()]
        if sorted(lines) == sorted(self._lines):
            return
        content = "".join(lines).encode()
        try:
            write_atomically(self._path, content)
            self._end = len(content)
        except OSError as error:  # a full disk: lines of other topics do no harm
            logger.warning("cannot correct %s: %s", self._path, error)

    def append(self, topic: str, creation_id: str) -> None:
        line = f"{creation_id} {topic}\n".encode()
        try:
            fd = open_file(self._path, os.O_WRONLY | os.O_CREAT)
            try:
                os.lseek(fd, self._end, os.SEEK_SET)
                write_all(fd, line)
                os.ftruncate(fd, self._end + len(line))
            finally:
                os.close(fd)
        except OSError as error:
            raise StorageError(f"cannot write {self._path}: {error.strerror}") from error
        self._end += len(line)


class CreationIds:
    """Ids of one broker's topics, stored in every directory; changed by one thread at a time."""

    def __init__(self, directories: DataDirectories) -> None:
        self._directories = directories
        self._ids: dict[str, str] = {}
        self._files: dict[DataDirectory, _IdFile] = {}

    def load(self, topics: Collection[str]) -> None:
        """Read the ids of existing topics, and drop the lines of others."""
        directories = self._directories
        # the first counts where directories differ, so those that were away come last
        for directory in sorted(directories.online, key=directories.was_away):
            file = self._files[directory] = _IdFile(directory.path)
            self._ids = {**file.read(), **self._ids}
        self._ids = {topic: one for topic, one in self._ids.items() if topic in topics}
        for file in self._files.values():
            file.correct(self._ids)

    def add(self, topic: str) -> None:
        """Give a topic that is about to be created an id."""
        # Not flushed: a topic that loses its id in a power failure counts as one without, and its
        # records in the registry stay.
        creation_id = os.urandom(_ID_BYTES).hex()
        for directory in self._directories.online:
            self._files[directory].append(topic, creation_id)
        self._ids[topic] = creation_id

    def of(self, topic: str) -> str | None:
        """Return the id of a topic, None if it was created before brokers kept ids."""
        return self._ids.get(topic)
