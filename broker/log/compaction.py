"""Compaction of a log of record batches: of the records with one key, only the last one stays.

A run reads the dirty part of a log, which no run has read before, and notes the last offset of each
key in it. Then it rewrites the log's closed segments without the records whose key has a later
offset. Offsets, and batches that lose nothing, stay as they are. As in Kafka:

- A record without a value, a tombstone, stays for a time after the first run that finds it: the
  batch gets a delete horizon. So does the mark of a transaction that has no batch left.
- Records of aborted transactions go at once, and are not the last of their keys.
- The last batch of a producer, and of each new segment, stays even if it is empty: they tell the
  last sequence and offset.

Records without a key stay, and so do messages of formats 0 and 1, whose batches are not rewritten.

New segments are written to `.cleaned` files, which become `.swap` files once they are durable, that
with the batches last. From then on a crash leaves the new segment: `finish_swaps` puts it in the
place of those it was made of. Before, it leaves the old ones.

Nothing here knows threads or clocks. Only closed segments are read.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import compress, groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from broker.errors import LogCorruptError
from broker.files import opened, sync_directory, write_all
from broker.log.aborted import AbortedTransactions
from broker.log.batches import scan_batch_blocks
from broker.log.scan import BLOCK_BYTES, ScannedBlock, read_range
from broker.log.segment import Segment
from broker.log.side_files import (
    ABORTED_ENTRY_BYTES,
    ABORTED_SUFFIX,
    INDEX_SUFFIX,
    INTERVAL_BYTES,
    SNAPSHOT_SUFFIX,
    TIME_INDEX_SUFFIX,
    indexes_of,
    read_aborted,
)
from broker.protocol import codec
from broker.protocol.codec import BatchScan, Fault, RecordBatch, RecordColumns
from broker.protocol.record_batch import CODEC_BITS, CONTROL, DELETE_HORIZON, MAGIC, TRANSACTIONAL

CLEANED_SUFFIX, SWAP_SUFFIX = ".cleaned", ".swap"

_SEGMENT_SUFFIX = ".log"
_SIDE_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, ABORTED_SUFFIX)
_DIGEST_BYTES = 16  # shorter keys are their own digests
_ENTRY_BYTES = 176  # of a dictionary, with a key, an offset and room to grow
_MOST_OFFSETS = 2**31  # of a segment, as its indexes have offsets relative to its base
_COLUMNS = ("offsets", "key_offsets", "keys", "key_validity", "value_validity")


class CleanablePart(NamedTuple):
    """The segments of a log that a run may rewrite."""

    segments: tuple[Segment, ...]  # from the log's first one on
    start_offset: int  # of the dirty part, which ends with the last of the segments
    dirty_bytes: int
    clean_bytes: int

    @property
    def dirty_ratio(self) -> float:
        """Return which part of the bytes no run has read."""
        return self.dirty_bytes / max(1, self.dirty_bytes + self.clean_bytes)


def cleanable_part(
    segments: Sequence[Segment], start_offset: int, *, end_offset: int, latest_ms: int | None
) -> CleanablePart:
    """Return the part of a log that a run may rewrite.

    Args:
        segments: all of the log; the last one is the active one, which is left alone.
        start_offset: of the dirty part. All is dirty if the log begins later, or has been truncated
            to less.
        end_offset: segments with later offsets, which are not safe or of open transactions, are
            left alone.
        latest_ms: as are dirty ones with later records; None if these may be of any time.
    """
    if not segments[0].base_offset <= start_offset <= segments[-1].base_offset:
        start_offset = segments[0].base_offset
    found: list[Segment] = []
    dirty_bytes = 0
    for one in segments[:-1]:
        is_dirty = one.next_offset > start_offset
        is_young = is_dirty and latest_ms is not None and one.time_ms > latest_ms
        if one.next_offset > end_offset or is_young:
            break
        found.append(one)
        dirty_bytes += one.size if is_dirty else 0
    clean_bytes = sum(one.size for one in found) - dirty_bytes
    return CleanablePart(tuple(found), start_offset, dirty_bytes, clean_bytes)


class OffsetMap(NamedTuple):
    """The last offset of each key in the dirty part of a log."""

    latest: dict[bytes, int]  # by the key, or by its digest
    end_offset: int  # of the part that was read: all of the dirty part, or what the memory allows


def map_offsets(
    part: CleanablePart,
    aborted: AbortedTransactions,
    *,
    max_bytes: int,
    throttle: Callable[[int], object] = lambda _byte_count: None,
) -> OffsetMap:
    """Return the last offset of each key in the dirty part, or at the start of that.

    Args:
        part: of the log.
        aborted: transactions, whose records do not count.
        max_bytes: of memory for the map, exceeded by the records of one block at most.
        throttle: is called with the number of bytes that were read or written.
    """
    latest: dict[bytes, int] = {}
    end_offset = part.start_offset
    for segment in part.segments:
        if segment.next_offset <= part.start_offset:
            continue
        with opened(segment.path, os.O_RDONLY) as fd:
            for block in _blocks_of(fd, segment, throttle):
                for batches, columns in _decoded(segment, block):
                    latest.update(_last_rows(batches, columns, part.start_offset, aborted))
                    end_offset = batches[-1].next_offset
                    if len(latest) * _ENTRY_BYTES >= max_bytes:
                        return OffsetMap(latest, end_offset)
        end_offset = segment.next_offset
    return OffsetMap(latest, end_offset)


def _last_rows(
    batches: Sequence[RecordBatch],
    columns: RecordColumns,
    start_offset: int,
    aborted: AbortedTransactions,
) -> Iterable[tuple[bytes, int]]:
    """Return the keys and offsets that count, of batches and their records."""
    rows = zip(_keys_of(columns), _offsets_of(columns), strict=True)
    is_inside = batches[0].base_offset >= start_offset
    left_out = [
        one
        for one in batches
        if (one.attributes & TRANSACTIONAL and one in aborted)
        or not (is_inside or one.next_offset > start_offset)
    ]
    nulls = _nulls_of(columns.key_validity, columns.record_count)
    if not left_out and not nulls:
        return rows
    counts = [True] * columns.record_count
    for row in nulls:
        counts[row] = False
    row = 0
    for batch in batches:
        if not batch.is_control:
            if batch in left_out:
                counts[row : row + batch.record_count] = [False] * batch.record_count
            row += batch.record_count
    return compress(rows, counts)


def _blocks_of(
    fd: int, segment: Segment, throttle: Callable[[int], object]
) -> Iterator[ScannedBlock[BatchScan]]:
    """Yield the blocks of a segment's file; `LogCorruptError` at the first damage."""
    for block in scan_batch_blocks(fd, 0, segment.size):
        throttle(len(block.data))
        if block.scan.fault:
            raise _corrupt(segment, block.end, block.scan.fault)
        yield block


def _decoded(
    segment: Segment, block: ScannedBlock[BatchScan]
) -> Iterator[tuple[list[RecordBatch], RecordColumns]]:
    """Yield the batches of format 2 in a block, with the columns of their records.

    Rows of control batches are in none.
    """
    for is_new, run in groupby(block.scan.batches, key=_is_new):
        batches = list(run) if is_new else []
        while batches:
            start = batches[0].position
            columns = codec.decode_record_columns(
                block.data[start : batches[-1].end], max_bytes=BLOCK_BYTES, columns=_COLUMNS
            )
            end = start + columns.valid_bytes
            if columns.fault:
                raise _corrupt(segment, block.position + end, columns.fault)
            count = bisect_left(batches, end, key=attrgetter("position"))
            yield batches[:count], columns
            batches = batches[count:]


def _is_new(batch: RecordBatch) -> bool:
    return batch.magic == MAGIC


def _corrupt(segment: Segment, position: int, fault: Fault) -> LogCorruptError:
    return LogCorruptError(
        f"{segment.path}: position {position}: the batch is damaged ({fault.name.lower()}): the "
        "log is not compacted; see pylogctl log verify"
    )


def _keys_of(columns: RecordColumns) -> list[bytes]:
    """Return the keys of all rows, long ones as digests; empty for a row without one."""
    keys = columns.keys
    return [
        key
        if len(key := keys[start:end]) < _DIGEST_BYTES
        else blake2b(key, digest_size=_DIGEST_BYTES).digest()
        for start, end in pairwise(memoryview(columns.key_offsets).cast("i").tolist())
    ]


def _offsets_of(columns: RecordColumns) -> list[int]:
    return memoryview(columns.offsets).cast("q").tolist()


def _nulls_of(validity: bytes, row_count: int) -> list[int]:
    """Return the rows that have no value in a column."""
    if int.from_bytes(validity, "little").bit_count() == row_count:  # as nearly always
        return []
    return [row for row in range(row_count) if not validity[row >> 3] >> (row & 7) & 1]


def grouped(segments: Iterable[Segment], max_bytes: int) -> Iterator[tuple[Segment, ...]]:
    """Yield adjoining segments that fit one segment of so many bytes together."""
    group: list[Segment] = []
    group_bytes = 0
    for one in segments:
        is_wide = group and one.next_offset - group[0].base_offset > _MOST_OFFSETS
        if group and (is_wide or group_bytes + one.size > max_bytes):
            yield tuple(group)
            group, group_bytes = [], 0
        group.append(one)
        group_bytes += one.size
    if group:
        yield tuple(group)


@dataclass(eq=False)
class Rewrite:
    """The second part of a run: writes new segments, in the order of their offsets."""

    offsets: OffsetMap
    aborted: AbortedTransactions
    kept_offsets: Collection[int]
    """The last offset of the last batch of each producer."""
    now_ms: int
    delete_retention_ms: int
    """How long tombstones, and marks of transactions that have no batch, stay from now on."""
    interval_bytes: int = INTERVAL_BYTES
    throttle: Callable[[int], object] = lambda _byte_count: None
    sync: Callable[[int], object] = os.fsync
    _producers: set[int] = field(default_factory=set, init=False)
    """Those of a transaction of which a batch was found, and not yet the mark."""
    _ended: set[int] = field(default_factory=set, init=False)
    """The offsets of marks of transactions of which a batch was found."""

    def write(self, group: Sequence[Segment]) -> Path | None:
        """Write a new segment for a group; return its `.swap` file, None if nothing changes.

        `finish_swap` puts it in place, or `discard` removes it. After an error all is as it was.
        """
        log = group[0].path
        last = max((one.base_offset for one in group if one.size), default=None)
        if last is None:
            return None
        try:
            with _Output(_named(log, CLEANED_SUFFIX), self.throttle) as output:
                if len(group) > 1:
                    output.open()
                for segment in group:
                    self._write_kept(segment, output, is_last=segment.base_offset == last)
                if not output.is_open:
                    return None
                output.finish(group[-1].path.stat(), self.sync)
            self._write_side_files(group)
            return _commit(log)
        except BaseException as error:
            discard(log, CLEANED_SUFFIX)  # a `.swap` can be that of a segment under repair
            if isinstance(error, OSError):  # of a descriptor it names none
                error.filename = error.filename or str(log)
            raise

    def _write_kept(self, segment: Segment, output: _Output, *, is_last: bool) -> None:
        end = segment.size if is_last else -1
        with opened(segment.path, os.O_RDONLY) as fd:
            for block in _blocks_of(fd, segment, self.throttle):
                done = 0
                for batch, left in self._changes(segment, block, end - block.position):
                    if not output.is_open:
                        output.open()
                        output.copy(fd, block.position + batch.position)
                    else:
                        output.write(block.data[done : batch.position])
                    output.write(left)
                    done = batch.end
                if output.is_open:
                    output.write(block.data[done:])

    def _changes(
        self, segment: Segment, block: ScannedBlock[BatchScan], end: int
    ) -> Iterator[tuple[RecordBatch, bytes]]:
        """Yield the batches of a block that change, and what is left of each."""
        latest = self.offsets.latest
        for batches, columns in _decoded(segment, block):
            stays = [
                latest.get(key, -1) <= offset
                for key, offset in zip(_keys_of(columns), _offsets_of(columns), strict=True)
            ]
            nulls = _nulls_of(columns.key_validity, columns.record_count)
            for row in nulls:
                stays[row] = True
            empty = _nulls_of(columns.value_validity, columns.record_count)
            if not (empty or False in stays or any(map(_is_special, batches))):
                continue
            tombstones = [False] * columns.record_count
            for row in empty:
                tombstones[row] = True
            for row in nulls:
                tombstones[row] = False
            row = 0
            for batch in batches:
                left: bytes | None
                data = block.data[batch.position : batch.end]
                if batch.is_control:
                    left = self._left_of_mark(batch, data, is_last=batch.end == end)
                else:
                    rows = slice(row, row + batch.record_count)
                    row = rows.stop
                    left = self._left_of(
                        batch, data, stays[rows], tombstones[rows], is_last=batch.end == end
                    )
                if left is not None:
                    yield batch, left

    def _left_of(
        self,
        batch: RecordBatch,
        data: memoryview,
        stays: list[bool],
        tombstones: list[bool],
        *,
        is_last: bool,
    ) -> bytes | None:
        """Return what is left of a batch, None if that is all of it."""
        if batch.is_transactional:
            self._producers.add(batch.producer_id)
        if batch.next_offset > self.offsets.end_offset:
            return None
        if batch in self.aborted:
            stays = [False] * len(stays)
        horizon_ms = None
        if True in tombstones:
            if not batch.has_delete_horizon:
                if any(compress(stays, tombstones)):
                    horizon_ms = self.now_ms + self.delete_retention_ms
            elif batch.base_timestamp <= self.now_ms:
                stays = [one and not gone for one, gone in zip(stays, tombstones, strict=True)]
        if True not in stays:
            return self._emptied(batch, is_last=is_last)
        if horizon_ms is None and False not in stays:
            return None
        return _encoded(batch, data, stays, horizon_ms)

    def _left_of_mark(self, batch: RecordBatch, data: memoryview, *, is_last: bool) -> bytes | None:
        """Return what is left of a control batch, None if that is all of it."""
        if not batch.is_transactional:
            return None
        if batch.producer_id in self._producers:
            self._producers.remove(batch.producer_id)
            self._ended.add(batch.last_offset)
            return None
        if batch.next_offset > self.offsets.end_offset:
            self._ended.add(batch.last_offset)
            return None
        if not batch.record_count:
            return self._emptied(batch, is_last=is_last)
        if not batch.has_delete_horizon:
            return _encoded(batch, data, [True], self.now_ms + self.delete_retention_ms)
        if batch.base_timestamp > self.now_ms:
            return None
        return self._emptied(batch, is_last=is_last)

    def _emptied(self, batch: RecordBatch, *, is_last: bool) -> bytes | None:
        """Return what is left of a batch without records, None if that is all of it."""
        if not is_last and batch.last_offset not in self.kept_offsets:
            return b""
        if not batch.record_count:
            return None
        attributes = batch.attributes & ~(CODEC_BITS | DELETE_HORIZON)
        times = {"base_timestamp": batch.max_timestamp, "max_timestamp": batch.max_timestamp}
        return codec.encode_batch([], batch._replace(attributes=attributes, **times))

    def _write_side_files(self, group: Sequence[Segment]) -> None:
        log = group[0].path
        cleaned = _named(log, CLEANED_SUFFIX)
        index, time_index = indexes_of(
            cleaned,
            group[0].base_offset,
            cleaned.stat().st_size,
            interval_bytes=self.interval_bytes,
        )
        contents = {INDEX_SUFFIX: index, TIME_INDEX_SUFFIX: time_index}
        aborted = [path for one in group if (path := one.path.with_suffix(ABORTED_SUFFIX)).exists()]
        if aborted:
            contents[ABORTED_SUFFIX] = b"".join(map(self._aborted_in, aborted))
        for suffix, content in contents.items():
            path = _named(log.with_suffix(suffix), CLEANED_SUFFIX)
            with opened(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
                write_all(fd, content)
                self.sync(fd)

    def _aborted_in(self, path: Path) -> bytes:
        """Return the entries of a `.txnindex` for the transactions of which there was a batch."""
        content = path.read_bytes()
        return b"".join(
            content[at : at + ABORTED_ENTRY_BYTES]
            for at, one in zip(
                range(0, len(content), ABORTED_ENTRY_BYTES), read_aborted(path), strict=True
            )
            if one.last_offset in self._ended
        )


def _is_special(batch: RecordBatch) -> bool:
    """Return whether a batch may change although all of its records stay."""
    return bool(batch.attributes & (TRANSACTIONAL | CONTROL)) or not batch.record_count


def _encoded(
    batch: RecordBatch, data: memoryview, stays: list[bool], horizon_ms: int | None
) -> bytes:
    """Return a batch with the records that stay, and with a delete horizon if one is given."""
    records = codec.decode_records(data, with_control=True).records
    if horizon_ms is not None:
        attributes = batch.attributes | DELETE_HORIZON
        batch = batch._replace(attributes=attributes, base_timestamp=horizon_ms)
    return codec.encode_batch(list(compress(records, stays)), batch)


class _Output:
    """A new file that is written to in blocks; made by `open`, closed by the end of a `with`."""

    def __init__(self, path: Path, throttle: Callable[[int], object]) -> None:
        self._path = path
        self._throttle = throttle
        self._fd: int | None = None
        self._buffer = bytearray()

    def __enter__(self) -> _Output:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._fd is not None:
            os.close(self._fd)

    @property
    def is_open(self) -> bool:
        """Return whether there is a file."""
        return self._fd is not None

    def open(self) -> None:
        """Create the file."""
        self._path.unlink(missing_ok=True)
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o640)

    def copy(self, source_fd: int, end: int) -> None:
        """Append the start of another file."""
        for position in range(0, end, BLOCK_BYTES):
            self.write(read_range(source_fd, position, min(BLOCK_BYTES, end - position)))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self._buffer += data
        if len(self._buffer) >= BLOCK_BYTES:
            self._flush()

    def _flush(self) -> None:
        assert self._fd is not None
        write_all(self._fd, memoryview(self._buffer))
        self._throttle(len(self._buffer))
        self._buffer = bytearray()

    def finish(self, like: os.stat_result, sync: Callable[[int], object]) -> None:
        """Make the file durable, with the time of the last segment that it replaces."""
        self._flush()
        assert self._fd is not None
        os.utime(self._fd, ns=(like.st_atime_ns, like.st_mtime_ns))
        sync(self._fd)


def _named(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


def _commit(log: Path) -> Path:
    """Make `.cleaned` files that are durable the new segment, from a crash on too."""
    for suffix in _SIDE_SUFFIXES:
        side = log.with_suffix(suffix)
        with suppress(FileNotFoundError):
            _named(side, CLEANED_SUFFIX).replace(_named(side, SWAP_SUFFIX))
    swap = _named(log, SWAP_SUFFIX)
    _named(log, CLEANED_SUFFIX).replace(swap)
    sync_directory(log.parent)
    return swap


def finish_swap(swap: Path, end_offset: int) -> Path:
    """Put a new segment in the place of those it was made of, durably; return its path.

    A crash meanwhile leaves it to `finish_swaps`. Readers that have the old files open keep them.

    Args:
        swap: its `.swap` file.
        end_offset: the offset behind it; the segments up to there are removed.
    """
    log = swap.with_suffix("")
    for path in log.parent.glob(f"*{_SEGMENT_SUFFIX}"):
        if path.stem.isdecimal() and int(log.stem) < int(path.stem) < end_offset:
            for suffix in (*_SIDE_SUFFIXES, SNAPSHOT_SUFFIX, _SEGMENT_SUFFIX):
                path.with_suffix(suffix).unlink(missing_ok=True)
    for suffix in _SIDE_SUFFIXES:
        side = log.with_suffix(suffix)
        with suppress(FileNotFoundError):
            _named(side, SWAP_SUFFIX).replace(side)
    sync_directory(log.parent)  # else old segments beside the new one could be back after a crash
    swap.replace(log)
    sync_directory(log.parent)
    return log


def discard(log: Path, *kinds: str) -> None:
    """Remove what was written for a segment and is not in its place: of some kinds, else of all."""
    for suffix in (_SEGMENT_SUFFIX, *_SIDE_SUFFIXES):  # without the first the others are nothing
        for kind in kinds or (SWAP_SUFFIX, CLEANED_SUFFIX):
            _named(log.with_suffix(suffix), kind).unlink(missing_ok=True)


def finish_swaps(directory: Path) -> list[Path]:
    """Finish what a crash has left in a log's directory; return the new segments.

    Called before its segments are listed. `LogCorruptError` if a new segment is damaged: nothing is
    changed then.
    """
    cleaned = [*directory.glob(f"*{CLEANED_SUFFIX}")]
    done: list[Path] = []
    for swap in sorted(directory.glob(f"*{_SEGMENT_SUFFIX}{SWAP_SUFFIX}")):
        # Kafka can split a segment in two, of which not both were ready then
        if not any(one.name[:20] <= swap.name[:20] for one in cleaned):
            end_offset = _end_of(swap)
            if end_offset is not None:
                done.append(finish_swap(swap, end_offset))
    left = [*cleaned, *directory.glob(f"*{SWAP_SUFFIX}")]
    for path in left:
        path.unlink()
    if left:
        sync_directory(directory)
    return done


def _end_of(swap: Path) -> int | None:
    """Return the offset behind a new segment; None if it is empty."""
    last = None
    with opened(swap, os.O_RDONLY) as fd:
        for block in scan_batch_blocks(fd, 0, os.fstat(fd).st_size):
            if block.scan.fault:
                raise LogCorruptError(
                    f"{swap}: position {block.end}: the new segment of a compaction is damaged "
                    f"({block.scan.fault.name.lower()}); remove it if those it replaces are there"
                )
            last = block.scan.batches[-1]
    return None if last is None else last.next_offset
