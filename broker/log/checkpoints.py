"""Writing the checkpoints of all logs: recovery points, high watermarks, and where the logs are."""

from __future__ import annotations

import logging
from pathlib import Path
from threading import Lock

from broker.errors import StorageError
from broker.log.data_directory import (
    REPLICAS_NAME,
    DataDirectory,
    RecoveryPoint,
    read_high_watermarks,
    write_high_watermarks,
    write_recovery_points,
)
from broker.log.table import LogTable
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


class Checkpoints:
    """The recovery points of all logs, and the high watermarks of those with replicas.

    Recovery points are in a file beside the logs they are of.
    """

    def __init__(self, table: LogTable) -> None:
        self._table = table
        self._directories = table.directories
        self._lock = Lock()
        self._written: dict[Path, dict[TopicPartition, RecoveryPoint]] = {}
        self._seen: list[tuple[object, ...]] = []  # all that the points written last are made of
        self._is_refused = False
        self.high_watermarks: dict[DataDirectory, dict[TopicPartition, int]] = {}
        """Those on disk."""

    def write(self) -> None:
        """Write the recovery point of each log, and its directory, unless nothing changed.

        Raises `OSError` if a directory refuses; its old checkpoint remains.
        """
        for error in self.write_recovery_points().values():
            raise error
        with self._lock:
            self._directories.write_places()

    def write_recovery_points(self) -> dict[DataDirectory, OSError]:
        """Write the recovery points that changed, all while logs are closed; return failures."""
        with self._lock:
            seen: list[tuple[object, ...]] = [
                (log, log.flushed_offset, log.active_since_ms, log.directory)
                for log in self._table.all()
            ]
            seen += [(*self._directories.online, *self._table.offline)]
            if self._table.is_open and seen == self._seen:
                return {}
            points = self._points()
            failures = {}
            for directory in self._directories.online:
                replicas = directory.path / REPLICAS_NAME
                try:
                    for place, of_place in points.items():
                        if place == directory.path or place.parent == replicas:
                            self._write_points(directory, place, of_place)
                except OSError as error:
                    failures[directory] = error
            self._seen = [] if failures else seen
            return failures

    def _points(self) -> dict[Path, dict[TopicPartition, RecoveryPoint]]:
        """Return the recovery points by the directory that the logs' directories are in."""
        points: dict[Path, dict[TopicPartition, RecoveryPoint]] = {one: {} for one in self._written}
        points |= {one.path: {} for one in self._directories.online}
        for log in self._table.all():
            point = RecoveryPoint(log.flushed_offset, log.active_since_ms)
            points.setdefault(log.directory.parent, {})[log.partition] = point
        for partition, one in list(self._table.offline.items()):
            directory = self._directories.place_of.get(partition)
            if directory is not None:
                place = directory.path_of(partition).parent
                points.setdefault(place, {})[partition] = one.point
        return points

    def _write_points(
        self, directory: DataDirectory, place: Path, points: dict[TopicPartition, RecoveryPoint]
    ) -> None:
        if self._table.is_open and points == self._written.get(place):
            return
        directory.is_suspect = True
        write_recovery_points(place, points)
        directory.is_suspect = False
        self._written[place] = points

    def before_truncation(self) -> None:
        """Write the checkpoint before a log is truncated below its recovery point."""
        try:
            self.write()
        except OSError as error:
            raise StorageError(f"cannot write the checkpoint: {error}") from error

    def write_or_log(self) -> bool:
        """Write the checkpoint; return False if the disk refuses, which is logged when it begins.

        A start does without a new checkpoint, as retention may have to make room for it: the old
        one is of earlier offsets.
        """
        try:
            self.write()
        except OSError as error:
            if not self._is_refused:
                logger.error("cannot write the checkpoint, trying again: %s", error)
            self._is_refused = True
            return False
        self._is_refused = False
        return True

    def load_high_watermarks(self) -> None:
        """Read the high watermarks in all directories in use."""
        self.high_watermarks = {
            one: read_high_watermarks(one.path) for one in self._directories.online
        }

    def write_high_watermarks(self) -> dict[DataDirectory, OSError]:
        """Write those of the directories where one has changed, and return the failures."""
        places = self._directories.place_of
        present: dict[DataDirectory | None, dict[TopicPartition, int]] = {}
        for log in self._table.all():
            if log.is_replicated:
                of_place = present.setdefault(places.get(log.partition), {})
                of_place[log.partition] = log.high_watermark
        failures = {}
        for directory in self._directories.online:
            offsets = present.get(directory, {})
            if offsets != self.high_watermarks.get(directory, {}):
                try:
                    write_high_watermarks(directory.path, offsets)
                    self.high_watermarks[directory] = offsets
                except OSError as error:
                    failures[directory] = error
        return failures

    def write_high_watermarks_or_log(self) -> None:
        """Write those that have changed, and log the failures.

        Without a replicated log nothing is written: those of logs that could not be opened stay.
        """
        if not self._table.has_replicas:
            return
        for directory, error in self.write_high_watermarks().items():
            logger.error("cannot write the high watermarks in %s: %s", directory.path, error)
