"""Message sets in a file, on their way from a task to whoever sends them.

A file is a row of sets, each behind a line of JSON that says where it goes: `["topic",0,3,SIZE]`.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from broker.errors import LogCorruptError, StorageError
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class StagingFile:
    """The message sets of one attempt of a task.

    Args:
        directory: where the file goes; made if it does not exist. Executors and the driver must
            all see it.

    Raises:
        StorageError: it cannot be made.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"{uuid.uuid4().hex}.sets"
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = self.path.open("xb")
        except OSError as error:
            raise self._unusable(error) from error

    def put(self, partition: TopicPartition, message_set: Buffer) -> None:
        """Add a set.

        Raises:
            StorageError: it cannot be written.
        """
        head = [partition.topic, partition.home, partition.index, len(message_set)]
        try:
            self._file.write(json.dumps(head).encode() + b"\n")
            self._file.write(message_set)
        except OSError as error:
            raise self._unusable(error) from error

    def finish(self) -> None:
        """Have all of it in the file.

        Raises:
            StorageError: it cannot be written.
        """
        try:
            self._file.close()
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> StorageError:
        return StorageError(f"cannot write {self.path}: {error.strerror}")


def staged_sets(path: Path) -> Iterator[tuple[TopicPartition, bytes]]:
    """Give the message sets in a file, in their order.

    Args:
        path: a file that is finished.

    Raises:
        StorageError: it cannot be read: the directory is not one that all machines share.
        LogCorruptError: it is shorter than it was.
    """
    try:
        with path.open("rb") as file:
            while line := file.readline():
                topic, home, index, size = json.loads(line)
                message_set = file.read(size)
                if len(message_set) != size:
                    raise LogCorruptError(f"{path} is shorter than it was")
                yield TopicPartition(topic, home, index), message_set
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror}") from error
