"""Offsets in a file, kept in step with a file of results: for one process on one machine.

The offsets file says how long the results file was when it was written. Whatever follows in the
results file was not committed, and is cut off when the store is opened again.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.client.group_message import GroupMessage
from broker.client.offsets import Position, position_after
from broker.errors import OffsetStoreError
from broker.topic import TopicPartition
from broker.zk.values import decode_partition_name

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
        self._done: dict[TopicPartition, Position] = {}
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

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, Position]:
        """Return the positions of those partitions that have one, results not yet kept included."""
        with self._lock:
            found = {one: self._stored[one] for one in partitions if one in self._stored}
        found.update({one: self._done[one] for one in partitions if one in self._done})
        self._done.update(found)
        return found

    def commit(self, positions: Mapping[TopicPartition, Position]) -> set[TopicPartition]:
        """Keep positions for applications that store no results; see `OffsetStore.commit`.

        Raises:
            OffsetStoreError: the disk refuses.
        """
        with self._translated():
            self._save(positions, self._results_bytes)
        return set()

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Set a partition's position, to be kept with the next checkpoint or commit."""
        self._done[partition] = Position(offset)

    def _save(self, positions: Mapping[TopicPartition, Position], results_bytes: int) -> None:
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


def _read(path: Path) -> tuple[dict[TopicPartition, Position], int]:
    if not path.exists():
        return {}, 0
    try:
        content = json.loads(path.read_bytes())
        positions = {
            TopicPartition(topic, *decode_partition_name(name)): Position(*position)
            for topic, by_name in content["offsets"].items()
            for name, position in by_name.items()
        }
        return positions, int(content["results_bytes"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OffsetStoreError(f"{path} is damaged: {error!r}") from error


def _write(path: Path, positions: Mapping[TopicPartition, Position], results_bytes: int) -> None:
    offsets: dict[str, dict[str, Position]] = {}
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
