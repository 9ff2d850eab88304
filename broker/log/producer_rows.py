"""The idempotent appends to a log of 0.7's entries: a file of fixed rows beside the segments.

Entries have no room for the sequences of producers, so each such append has a row: where it is, and
the producer's id, epoch and sequences. The row is written before the entries, and flushed before
them: so what a killed broker leaves in the log has its row. After a power cut entries that were
never flushed may be there without theirs.

A log can end within a message set, of which a former leader had more. Its row reaches to the end of
what is there, and the rest gets a row of its own when the producer sends the set again.
"""

from __future__ import annotations

import os
import struct
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from broker.files import opened, sync_directory, write_all, write_atomically
from broker.log.producers import KEPT_BATCHES, KnownBatch, Producers
from broker.log.segment import Disk
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

FILE_NAME = "idempotent-appends"
_SPARE_ROWS = 4096
"""Added before the file is written anew without those that no repetition can need."""
_KEPT_ROWS = KEPT_BATCHES + 1  # of each producer: one of its sets can have two

_ROW = struct.Struct(">qiqhii")  # offset, bytes, producer id, epoch, base sequence, messages
_CRC = struct.Struct(">I")
ROW_BYTES = _ROW.size + _CRC.size


class AppendRow(NamedTuple):
    """Where a message set of an idempotent producer is in a log, or a part of one."""

    base_offset: int
    size_bytes: int
    stamp: ProducerStamp

    @property
    def next_offset(self) -> int:
        """Return the offset behind it."""
        return self.base_offset + self.size_bytes


_BASE_OFFSET, _NEXT_OFFSET = attrgetter("base_offset"), attrgetter("next_offset")


def encode_rows(rows: Iterable[AppendRow]) -> bytes:
    """Return rows as they are in the file, and between brokers."""
    parts: list[bytes] = []
    for one in rows:
        content = _ROW.pack(one.base_offset, one.size_bytes, *one.stamp)
        parts += content, _CRC.pack(zlib.crc32(content))
    return b"".join(parts)


def decode_rows(data: Buffer) -> list[AppendRow]:
    """Return the rows whose CRC is good, and which are behind the one before."""
    rows: list[AppendRow] = []
    view, end = memoryview(data), 0
    for position in range(0, len(view) - ROW_BYTES + 1, ROW_BYTES):
        content = view[position : position + _ROW.size]
        if zlib.crc32(content) != _CRC.unpack_from(view, position + _ROW.size)[0]:
            continue
        base_offset, size_bytes, *stamp = _ROW.unpack(content)
        if base_offset >= end and size_bytes > 0:
            rows.append(AppendRow(base_offset, size_bytes, ProducerStamp(*stamp)))
            end = base_offset + size_bytes
    return rows


class ProducerRows:
    """The rows of one log, and the producers that they tell of; guarded by its append lock.

    Errors of methods that write: an `OSError` if the disk refuses.
    """

    def __init__(self, partition: TopicPartition, directory: Path) -> None:
        self.directory = directory
        self.producers = Producers(partition)
        self._rows: list[AppendRow] = []
        self._file_bytes = 0
        self._needs_sync = False
        self.is_torn = False
        """Whether the file has other bytes than the rows: `settle` removes them."""
        self._rewrite_at = _SPARE_ROWS

    @property
    def path(self) -> Path:
        """Return the path of the file."""
        return self.directory / FILE_NAME

    def load(self, end_offset: int, now_ms: int) -> None:
        """Take the rows of the file, and drop those of what is not in the log."""
        data = self.path.read_bytes()
        rows = decode_rows(data)
        self._file_bytes = len(data)
        self.is_torn = self._file_bytes != len(rows) * ROW_BYTES
        self._use(rows, now_ms)
        self.cut(end_offset, now_ms)

    def _use(self, rows: list[AppendRow], now_ms: int) -> None:
        """Know these rows and no others."""
        self._rows, self.producers = rows, Producers(self.producers.partition)
        self.note(rows, now_ms)

    def find(self, stamp: ProducerStamp) -> KnownBatch | None:
        """Return where a set, or the first part of it, is in the log; see `Producers.check`."""
        return self.producers.check([stamp])

    def write(self, rows: list[AppendRow], now_ms: int) -> None:
        """Write the rows of what is appended next.

        The first can be that of a set of which another part than before is copied now.
        """
        if self._rows and rows[0].base_offset == self._rows[-1].base_offset:
            self._rewrite(self._rows[:-1], now_ms)
        if len(self._rows) + len(rows) > self._rewrite_at:
            self._rewrite(self._needed(), now_ms)
        data = encode_rows(rows)
        is_new = not self._file_bytes
        with opened(self.path, os.O_WRONLY | os.O_CREAT) as fd:
            if self.is_torn:
                os.ftruncate(fd, self._file_bytes)
            self.is_torn = True
            os.lseek(fd, self._file_bytes, os.SEEK_SET)
            write_all(fd, data)
            self.is_torn = False
        if is_new:
            sync_directory(self.directory)
        self._file_bytes += len(data)
        self._rows += rows
        self._needs_sync = True

    def note(self, rows: list[AppendRow], now_ms: int) -> None:
        """Note that what the last written rows are of is appended."""
        for one in rows:
            self.producers.note_set(one.stamp, one.base_offset, one.size_bytes, now_ms)

    def undo(self, rows: list[AppendRow]) -> None:
        """Forget the last written rows, as what they are of could not be appended.

        Nothing may be appended before `settle`. It opens no file: there may be no descriptor left.
        """
        del self._rows[len(self._rows) - len(rows) :]
        self._file_bytes -= len(rows) * ROW_BYTES
        self.is_torn = True

    def settle(self) -> None:
        """Cut what is behind the rows off the file."""
        with opened(self.path, os.O_WRONLY) as fd:
            os.ftruncate(fd, self._file_bytes)
        self.is_torn = False

    def sync(self, disk: Disk) -> None:
        """Make the rows durable; callable without the append lock."""
        if self._needs_sync:
            self._needs_sync = False
            try:
                with opened(self.path, os.O_RDONLY) as fd:
                    disk.sync(fd)
            except OSError:
                self._needs_sync = True
                raise

    def cut(self, end_offset: int, now_ms: int) -> None:
        """Drop what rows tell of offsets from one on: the log ends there."""
        rows = [
            one._replace(size_bytes=min(one.size_bytes, end_offset - one.base_offset))
            for one in self._rows
            if one.base_offset < end_offset
        ]
        if rows != self._rows or self.is_torn:
            self._rewrite(rows, now_ms)

    def _rewrite(self, rows: list[AppendRow], now_ms: int) -> None:
        data = encode_rows(rows)
        write_atomically(self.path, data)
        self._file_bytes, self.is_torn, self._needs_sync = len(data), False, False
        self._rewrite_at = 2 * len(rows) + _SPARE_ROWS
        self._use(rows, now_ms)

    def _needed(self) -> list[AppendRow]:
        """Return the last rows of each producer that is still known."""
        counts: Counter[int] = Counter()
        kept: list[AppendRow] = []
        for one in reversed(self._rows):
            producer_id = one.stamp.producer_id
            counts[producer_id] += 1
            if counts[producer_id] <= _KEPT_ROWS and producer_id in self.producers:
                kept.append(one)
        return kept[::-1]

    def between(self, offset: int, end: int) -> list[AppendRow]:
        """Return the rows of what is between two offsets; callable without the append lock."""
        rows = self._rows
        first = bisect_right(rows, offset, key=_NEXT_OFFSET)
        return rows[first : bisect_left(rows, end, lo=first, key=_BASE_OFFSET)]

    def unknown(self, rows: Iterable[AppendRow], end_offset: int) -> list[AppendRow]:
        """Return the rows of another replica that are missing here, of what is before an offset."""
        last = self._rows[-1] if self._rows else None
        return [
            one
            for one in rows
            if one.base_offset < end_offset and (last is None or one[:2] > last[:2])
        ]


def load(
    partition: TopicPartition, directory: Path, end_offset: int, now_ms: int
) -> ProducerRows | None:
    """Return the rows of a log that ends at an offset; None if no producer was idempotent."""
    rows = ProducerRows(partition, directory)
    try:
        rows.load(end_offset, now_ms)
    except FileNotFoundError:
        return None
    return rows
