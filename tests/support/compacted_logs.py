"""Directories of record batches that are compacted: writing them, one run, and what is in them."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from broker.log.aborted import AbortedTransactions, aborted_beside
from broker.log.compaction import Rewrite, cleanable_part, finish_swap, grouped, map_offsets
from broker.log.format import BATCHES
from broker.log.segment import Segment
from broker.log.side_files import indexes_of
from broker.protocol.codec import (
    NEW_BATCH,
    Record,
    RecordBatch,
    decode_records,
    encode_batch,
    scan_batches,
)
from broker.protocol.record_batch import CONTROL, TRANSACTIONAL

MARKS = (b"\0\0\0\0", b"\0\0\0\1")  # the keys of an abort and a commit
FOREVER_MS = 1 << 50


def segments_of(directory: Path) -> list[Segment]:
    """Return the segments of a log, which follow each other."""
    return [
        Segment(
            *(directory, int(path.stem)), size=path.stat().st_size, modified_ms=0, format=BATCHES
        )
        for path in sorted(directory.glob("*.log"))
    ]


def batches_of(directory: Path) -> list[RecordBatch]:
    """Return the batches of a log."""
    contents = [one.path.read_bytes() for one in segments_of(directory)]
    return [batch for content in contents for batch in scan_batches(content).batches]


def records_of(directory: Path, *, with_control: bool = False) -> list[Record]:
    """Return the records of a log, those of aborted transactions among them."""
    contents = [one.path.read_bytes() for one in segments_of(directory)]
    found = [decode_records(content, with_control=with_control) for content in contents]
    assert not any(one.fault for one in found)
    return [record for one in found for record in one.records]


def committed_of(directory: Path) -> list[Record]:
    """Return the records that a reader of committed ones gets."""
    segments = segments_of(directory)
    aborted = AbortedTransactions(aborted_beside([one.path for one in segments]))
    found = []
    for one in segments:
        content = one.path.read_bytes()
        for batch in scan_batches(content).batches:
            if batch not in aborted:
                found += decode_records(content[batch.position : batch.end]).records
    return found


def values_of(records: Iterable[Record]) -> dict[bytes, bytes]:
    """Return the last value of each key; none for one that was deleted."""
    last = {one.key: one.value for one in records if one.key is not None}
    return {key: value for key, value in last.items() if value is not None}


class LogWriter:
    """Appends to the log in a directory, as a broker would; the last segment is the active one."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.next_offset = 0
        self.open: dict[int, int] = {}
        """The first offsets of open transactions, by producer."""
        self.last_offsets: dict[int, int] = {}
        """Of the last batch of each producer."""
        self._aborted: list[bytes] = []
        directory.mkdir(parents=True)
        self._path = directory / f"{0:020}.log"
        self._path.touch()

    @property
    def stable_offset(self) -> int:
        """Return the offset before which all transactions have ended."""
        return min(self.open.values(), default=self.next_offset)

    def append(
        self,
        *rows: tuple[bytes | None, bytes | None],
        time_ms: int = 1000,
        producer_id: int = -1,
        attributes: int = 0,
    ) -> None:
        """Append a batch of keys and values."""
        base = self.next_offset
        records = [
            Record(base + n, time_ms + n, *row, (("n", b"1"),)) for n, row in enumerate(rows)
        ]
        head = NEW_BATCH._replace(
            base_offset=base, leader_epoch=0, attributes=attributes, producer_id=producer_id
        )
        self._append(encode_batch(records, head), len(rows))
        if producer_id >= 0:
            self.last_offsets[producer_id] = self.next_offset - 1
        if attributes & TRANSACTIONAL:
            self.open.setdefault(producer_id, base)

    def end(self, producer_id: int, *, is_commit: bool, time_ms: int = 1000) -> None:
        """Append the mark of a transaction."""
        offset = self.next_offset
        record = Record(offset, time_ms, MARKS[is_commit], bytes(6))
        head = NEW_BATCH._replace(
            base_offset=offset,
            leader_epoch=0,
            attributes=TRANSACTIONAL | CONTROL,
            producer_id=producer_id,
            producer_epoch=0,
        )
        self._append(encode_batch([record], head), 1)
        first = self.open.pop(producer_id, offset)
        self.last_offsets[producer_id] = offset
        if not is_commit:
            entry = (0, producer_id, first, offset, self.stable_offset)
            self._aborted.append(struct.pack(">hqqqq", *entry))
            self._path.with_suffix(".txnindex").write_bytes(b"".join(self._aborted))

    def _append(self, data: bytes, count: int) -> None:
        with self._path.open("ab") as file:
            file.write(data)
        self.next_offset += count

    def roll(self) -> None:
        """Begin another segment, unless the active one is empty."""
        size = self._path.stat().st_size
        if not size:
            return
        contents = indexes_of(self._path, int(self._path.stem), size)
        for suffix, content in zip((".index", ".timeindex"), contents, strict=True):
            self._path.with_suffix(suffix).write_bytes(content)
        self._path = self.directory / f"{self.next_offset:020}.log"
        self._path.touch()
        self._aborted = []


def compact(
    directory: Path,
    *,
    start_offset: int = 0,
    end_offset: int = FOREVER_MS,
    now_ms: int = FOREVER_MS,
    latest_ms: int = FOREVER_MS,
    delete_retention_ms: int = 1000,
    kept_offsets: Collection[int] = (),
    max_bytes: int = 1 << 30,
    segment_bytes: int = 1 << 20,
    throttle: Callable[[int], object] = lambda _byte_count: None,
) -> int:
    """Compact a log once; return where its dirty part begins now."""
    segments = segments_of(directory)
    aborted = AbortedTransactions(aborted_beside([one.path for one in segments]))
    part = cleanable_part(segments, start_offset, end_offset=end_offset, latest_ms=latest_ms)
    offsets = map_offsets(part, aborted, max_bytes=max_bytes, throttle=throttle)
    rewrite = Rewrite(
        *(offsets, aborted, kept_offsets, now_ms, delete_retention_ms),
        throttle=throttle,
        sync=os.fsync,  # as it is now, which a test may have replaced
    )
    rewritten = [one for one in part.segments if one.base_offset < offsets.end_offset]
    for group in grouped(rewritten, segment_bytes):
        swap = rewrite.write(group)
        if swap is not None:
            finish_swap(swap, group[-1].next_offset)
    return offsets.end_offset
