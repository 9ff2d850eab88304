"""Logs made of segment files, without a broker: which partitions there are, where their bytes lie.

Answers the questions that `broker.consumer.boundaries.Positions` answers of logs on brokers. A
file may be the newest of a log that is being written: what is behind its last whole message is left
out, and told.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from glob import has_magic
from itertools import pairwise
from pathlib import Path

from broker.client.list_offsets import Watermarks
from broker.errors import ConfigError, LogCorruptError, OffsetOutOfRangeError
from broker.log.data_directory import parse_log_directory_name, read_broker_id
from broker.log.scan import BLOCK_BYTES, boundaries_despite_damage, find_entry
from broker.log.segment import SegmentFile, base_offset_of, expand_paths
from broker.protocol.codec import boundaries
from broker.spark.places import SegmentPiece
from broker.topic import TopicPartition

_REPLICAS_NAME = "replicas"
_TAIL_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes of a partition that no segment file has, between two that are there."""

    start: int
    end: int


class FileLog:
    """The segment files of one partition.

    Args:
        partition: whose.
        pieces: in the order of their offsets.
    """

    def __init__(self, partition: TopicPartition, pieces: Iterable[SegmentPiece]) -> None:
        self.partition = partition
        self.pieces = tuple(pieces)
        self._files: dict[Path, SegmentFile] = {}
        for earlier, later in pairwise(self.pieces):
            if later.base_offset < earlier.end_offset:
                raise LogCorruptError(
                    f"{partition}: {earlier.path} and {later.path} both have offset "
                    f"{later.base_offset}; name only one of them"
                )

    @property
    def start(self) -> int:
        """Return the offset of the first message."""
        return self.pieces[0].base_offset

    @cached_property
    def end(self) -> int:
        """Return the offset after the last whole message of the newest file."""
        newest = self.pieces[-1]
        return newest.base_offset + _whole_bytes(
            newest.path, newest.end_offset - newest.base_offset
        )

    @property
    def tail_bytes(self) -> int:
        """Return how many bytes behind the last whole message are none."""
        return self.pieces[-1].end_offset - self.end

    def gaps(self) -> list[Gap]:
        """Return what is missing between the files."""
        return [
            Gap(earlier.end_offset, later.base_offset)
            for earlier, later in pairwise(self.pieces)
            if later.base_offset > earlier.end_offset
        ]

    def boundaries_around(self, position: int) -> tuple[int, int]:
        """Return the message boundaries at or before, and at or after, a position.

        Damage reaches up to the next good message, as it does for brokers, and a gap up to the
        next file.

        Raises:
            OffsetOutOfRangeError: the position is outside the log.
        """
        if position == self.end:
            return position, position
        place = bisect_right(self.pieces, position, key=lambda piece: piece.base_offset) - 1
        if place < 0 or position > self.end:
            raise OffsetOutOfRangeError(
                f"{position} is not in the segment files of {self.partition}, "
                f"{self.start}..{self.end}"
            )
        if position >= self.pieces[place].end_offset:
            return self.pieces[place].end_offset, self.pieces[place + 1].base_offset
        piece = self.pieces[place]
        size = min(piece.end_offset, self.end) - piece.base_offset
        if piece.path not in self._files:
            self._files[piece.path] = SegmentFile(piece.path)
        file = self._files[piece.path]
        before, after = boundaries_despite_damage(file, position - piece.base_offset, size)
        return piece.base_offset + before, piece.base_offset + after


class FileLogs:
    """All logs that some paths stand for.

    Args:
        paths: segment files, directories, and patterns such as `data/*/*.pylog`.

    Raises:
        ConfigError: a path does not exist, or is no segment file.
        LogCorruptError: two files have the same offsets of one partition.
    """

    def __init__(self, paths: Iterable[Path]) -> None:
        pieces: dict[TopicPartition, list[SegmentPiece]] = {}
        for file in expand_paths(_existing(paths)):
            piece = _piece(file)
            pieces.setdefault(partition_of_directory(file.absolute().parent), []).append(piece)
        self.logs = {
            partition: FileLog(partition, sorted(found, key=lambda piece: piece.base_offset))
            for partition, found in sorted(pieces.items())
        }

    def partitions(self) -> list[TopicPartition]:
        """Return the partitions there are files of."""
        return list(self.logs)

    def watermarks(self, partition: TopicPartition) -> Watermarks:
        """Return where the first message starts and the last whole one ends."""
        log = self.logs[partition]
        return Watermarks(log.start, log.end, None)

    def has_lookup(self, partition: TopicPartition) -> bool:
        """Return True: the chain of lengths is followed, which is quick on a local file."""
        return partition in self.logs

    def segment_starts(self, partition: TopicPartition) -> list[int]:
        """Return where files start, oldest first, and the end as the last item."""
        log = self.logs[partition]
        return [*(piece.base_offset for piece in log.pieces), log.end]

    def by_time(self, partition: TopicPartition, time_ms: int, *, rounded_up: bool) -> int | None:
        """Return the start of a file found by the time of its last change.

        Args:
            partition: where to look.
            time_ms: milliseconds since 1970.
            rounded_up: the first start after the last one not after the time, instead of that one.

        Returns:
            None when every file was changed later, or, rounded up, none starts later.
        """
        log = self.logs[partition]
        times = [piece.path.stat().st_mtime_ns // 1_000_000 for piece in log.pieces]
        count = sum(1 for one in times if one <= time_ms)
        starts = self.segment_starts(partition)
        if rounded_up:
            return starts[count] if count < len(starts) else None
        return starts[count - 1] if count else None

    def boundary_before(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or before a position."""
        return self.logs[partition].boundaries_around(position)[0]

    def boundary_after(self, partition: TopicPartition, position: int) -> int:
        """Return the message boundary at or after a position."""
        return self.logs[partition].boundaries_around(position)[1]


def _existing(paths: Iterable[Path]) -> list[Path]:
    """Return paths with patterns filled in."""
    found = []
    for path in paths:
        root = Path(path.anchor or ".")
        matches = (
            sorted(root.glob(str(path.relative_to(path.anchor))))
            if has_magic(str(path))
            else [path]
        )
        if not matches or not all(one.exists() for one in matches):
            raise ConfigError(f"no such file or directory: {path}")
        found += matches
    return found


def _piece(file: Path) -> SegmentPiece:
    base_offset = base_offset_of(file)
    if base_offset is None:
        raise ConfigError(f"{file} is not named as a segment: 20 digits and .pylog or .kafka")
    return SegmentPiece(file.absolute(), base_offset, base_offset + file.stat().st_size)


def partition_of_directory(directory: Path) -> TopicPartition:
    """Return whose segment files are in a directory, as a broker names its directories.

    Args:
        directory: `<data>/<topic>_<index>`, or `<data>/replicas/<home>/<topic>_<index>`.

    Returns:
        The home is broker 0 where nothing says which it is; the topic of a directory with another
        name is that name.
    """
    topic, index = parse_log_directory_name(directory.name) or (directory.name, 0)
    parent = directory.parent
    if parent.parent.name == _REPLICAS_NAME and parent.name.isdecimal():
        return TopicPartition(topic, int(parent.name), index)
    return TopicPartition(topic, read_broker_id(parent) or 0, index)


def _whole_bytes(path: Path, size: int) -> int:
    """Return where the last whole message of a file ends, by the chain of lengths.

    Damage that whole messages follow is not the end: whoever reads it says what is wrong there.
    """
    file = SegmentFile(path)
    if _ends_on_message(file.fd, size):
        return size
    start = 0
    while True:
        end = _chain_end(file.fd, start, size)
        resumed = find_entry(file.fd, end + 1, size) if end < size else None
        if resumed is None:
            return end
        start = resumed


def _ends_on_message(fd: int, size: int) -> bool:
    """Return whether a message ends where the file does, as far as its last part can tell.

    So that a directory of large segments is planned at once. What looks like a message and is
    the inside of one cannot end there, unless the file itself ends in the middle of that one.
    """
    start = find_entry(fd, max(0, size - _TAIL_BYTES), size)
    return start is not None and _chain_end(fd, start, size) == size


def _chain_end(fd: int, position: int, size: int) -> int:
    block_bytes = BLOCK_BYTES
    while position < size:
        block = os.pread(fd, min(block_bytes, size - position), position)
        whole = boundaries(block)[-1]
        if not whole and len(block) < block_bytes:
            break
        # a message larger than a block: look at more of the file, until it is whole or the end
        block_bytes = BLOCK_BYTES if whole else 2 * block_bytes
        position += whole
    return position
