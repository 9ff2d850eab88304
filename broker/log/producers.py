"""The idempotent and transactional producers of one log, by which repeated batches are found.

Each batch of such a producer has the producer's id, its epoch, and the sequence of the first record
in this partition. A log keeps of each producer the epoch, the last sequence, the last five batches
and the start of its open transaction: from the heads of batches, so that no record is looked at. A
producer takes about 450 bytes; those not used for longest are forgotten when there are too many.

The state as of an offset is in a `.snapshot` file, as Kafka writes it: at the start of segments and
at a clean stop. It has only the last batch of each producer. What was appended after the newest
snapshot is found again in the batches.
"""

from __future__ import annotations

import logging
import os
import struct
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

from broker.errors import (
    InvalidMessageError,
    InvalidProducerEpochError,
    InvalidRequestError,
    OutOfOrderSequenceError,
)
from broker.files import opened
from broker.log import side_files
from broker.log.batches import SearchBudget, good_head, resume_behind, scan_batch_blocks
from broker.log.side_files import (
    ABORTED_SUFFIX,
    INDEX_SUFFIX,
    SNAPSHOT_SUFFIX,
    AbortedTransaction,
    ProducerState,
    SideFileError,
)
from broker.protocol import codec
from broker.protocol.codec import RecordBatch
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

KEPT_BATCHES = 5
"""Of each producer, as clients of Kafka have up to five requests in flight."""
MAX_PRODUCERS = 20_000
EXPIRATION_MS = 24 * 3600 * 1000  # Kafka's `producer.id.expiration.ms` by default

_MAX_SEQUENCE = 2**31 - 1  # 0 follows
# last sequence, how many sequences are before it, base offset, max timestamp, span of offsets
_BATCH = struct.Struct("=iiqqi")
_KEPT_BYTES = KEPT_BATCHES * _BATCH.size
_MARK_KEY, _MARK_VALUE = struct.Struct(">hh"), struct.Struct(">hi")
_ABORT, _COMMIT = 0, 1

logger = logging.getLogger(__name__)


class KnownBatch(NamedTuple):
    """Where the log has the batches of an append that is repeated."""

    base_offset: int
    next_offset: int
    timestamp: int  # the largest of the last batch


class _Producer:
    __slots__ = (
        "coordinator_epoch",
        "epoch",
        "kept",
        "last_sequence",
        "timestamp",
        "transaction_start",
        "used_ms",
    )

    def __init__(self, epoch: int, used_ms: int) -> None:
        self.epoch = epoch
        self.used_ms = used_ms
        self.last_sequence = -1
        self.kept = b""  # of the epoch, packed: as objects they would take three times the memory
        self.timestamp = -1
        self.coordinator_epoch = -1
        self.transaction_start = -1

    def find(self, batch: RecordBatch | ProducerStamp) -> KnownBatch | None:
        """Return the kept batch with the epoch and the sequences of another one."""
        if batch.producer_epoch == self.epoch:
            last = _last_sequence(batch)
            for sequence, delta, offset, timestamp, span in _BATCH.iter_unpack(self.kept):
                if sequence == last and delta == batch.last_offset_delta:
                    return KnownBatch(offset, offset + span, timestamp)
        return None

    def begin(self, epoch: int) -> None:
        """Forget the batches of the former epoch, if this is another one."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.last_sequence = -1
            self.kept = b""

    def keep(
        self, last_sequence: int, delta: int, base_offset: int, timestamp: int, span: int
    ) -> None:
        """Note the last batch, or the rest of a message set of which the log had only a part."""
        if self.kept and last_sequence == self.last_sequence:
            part_span = _BATCH.unpack(self.kept[-_BATCH.size :])[-1]
            self.kept = self.kept[: -_BATCH.size]
            base_offset, span = base_offset - part_span, span + part_span
        self.last_sequence = last_sequence
        batch = _BATCH.pack(last_sequence, delta, base_offset, timestamp, span)
        self.kept = (self.kept + batch)[-_KEPT_BYTES:]

    def state(self, producer_id: int) -> ProducerState:
        """Return what a snapshot has of the producer."""
        sequence, delta, offset = -1, 0, -1
        if self.kept:
            sequence, delta, base_offset, _, span = _BATCH.unpack(self.kept[-_BATCH.size :])
            offset = base_offset + span - 1
        return ProducerState(
            producer_id,
            self.epoch,
            sequence,
            offset,
            delta,
            self.timestamp,
            self.coordinator_epoch,
            self.transaction_start,
        )


class Producers:
    """The producers of a log as of its end; guarded by the append lock of the log.

    Args:
        partition: of the log, for errors.
        max_count: of producers without an open transaction, and of those with one.
    """

    def __init__(self, partition: TopicPartition, max_count: int = MAX_PRODUCERS) -> None:
        self.partition = partition
        self.max_count = max_count
        self._idle: OrderedDict[int, _Producer] = OrderedDict()  # the last used one last
        # those with an open transaction, in the order of their starts; not forgotten before the end
        self._open: OrderedDict[int, _Producer] = OrderedDict()

    def __len__(self) -> int:
        return len(self._idle) + len(self._open)

    def __contains__(self, producer_id: int) -> bool:
        return producer_id in self._idle or producer_id in self._open

    @property
    def first_open_offset(self) -> int | None:
        """Return where the oldest open transaction starts, None if none is open."""
        for producer in self._open.values():
            return producer.transaction_start
        return None

    def check(self, batches: Sequence[RecordBatch | ProducerStamp]) -> KnownBatch | None:
        """Validate the batches, or the message set of 0.7, that a client wants to append together.

        Returns where they are in the log, if they are repeated; they must not be appended then.

        Raises:
            InvalidMessageError: a batch has a producer id and no sequence, or one producer has more
                batches than are kept of it, so that a repetition could not be told.
            InvalidProducerEpochError: a later producer has the same id.
            OutOfOrderSequenceError: a batch does not follow the last one of its producer.
            InvalidRequestError: too many transactions are open.
        """
        known: list[KnownBatch] = []
        ends: dict[int, tuple[int, int]] = {}  # epochs and last sequences with the batches before
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id < 0:
                continue
            if batch.base_sequence < 0:
                raise InvalidMessageError(
                    f"{self.partition}: a batch of producer {producer_id} has no sequence"
                )
            end = ends.get(producer_id)
            if end is None:
                producer = self._idle.get(producer_id) or self._open.get(producer_id)
                if producer is not None:
                    end = producer.epoch, producer.last_sequence
                    if (found := producer.find(batch)) is not None:
                        known.append(found)
                        continue
            if end is not None:
                self._validate_order(batch, *end)
            if batch.is_transactional and producer_id not in self._open:
                self._validate_room()
            ends[producer_id] = batch.producer_epoch, _last_sequence(batch)
        if len(batches) > KEPT_BATCHES:
            self._validate_count(batches)
        if not known:
            return None
        if len(known) < len(batches):
            raise OutOfOrderSequenceError(
                f"{self.partition}: only {len(known)} of {len(batches)} batches of an append are "
                "in the log already; a repeated append has the same batches"
            )
        return known[-1]._replace(base_offset=known[0].base_offset)

    def _validate_order(
        self, batch: RecordBatch | ProducerStamp, epoch: int, last_sequence: int
    ) -> None:
        """Raise an error unless a batch may follow one with this epoch and last sequence."""
        if batch.producer_epoch < epoch:
            raise InvalidProducerEpochError(
                f"{self.partition}: a batch of producer {batch.producer_id} has epoch "
                f"{batch.producer_epoch}, but a producer with epoch {epoch} has replaced it"
            )
        expected = 0 if batch.producer_epoch > epoch else (last_sequence + 1) & _MAX_SEQUENCE
        if batch.base_sequence != expected:
            raise OutOfOrderSequenceError(
                f"{self.partition}: a batch of producer {batch.producer_id}, epoch "
                f"{batch.producer_epoch}, has sequence {batch.base_sequence} instead of "
                f"{expected}, and is none of the last {KEPT_BATCHES} in the log"
            )

    def _validate_room(self) -> None:
        if len(self._open) >= self.max_count:
            raise InvalidRequestError(
                f"{self.partition}: {len(self._open)} transactions are open; end some of them"
            )

    def _validate_count(self, batches: Sequence[RecordBatch | ProducerStamp]) -> None:
        counts = Counter(one.producer_id for one in batches if one.producer_id >= 0)
        if counts and max(counts.values()) > KEPT_BATCHES:
            raise InvalidMessageError(
                f"{self.partition}: an append has more than {KEPT_BATCHES} batches of a producer; "
                "a repetition of them could not be told from new ones"
            )

    def note(
        self, batch: RecordBatch, base_offset: int, now_ms: int, content: Buffer = b""
    ) -> AbortedTransaction | None:
        """Note a batch that was appended, by a client or as the leader has it.

        Returns the transaction that it aborts, for the `.txnindex` of its segment.

        Args:
            batch: where it is in `content`.
            base_offset: the one it has in the log.
            now_ms: milliseconds since 1970.
            content: what the batch is in; only read if that is a control batch.
        """
        producer_id = batch.producer_id
        if producer_id < 0:
            return None
        if batch.is_control:
            return self._note_mark(batch, base_offset, now_ms, content)
        producer = self._used(producer_id, batch.producer_epoch, now_ms)
        producer.begin(batch.producer_epoch)
        delta, timestamp = batch.last_offset_delta, batch.max_timestamp
        producer.keep(_last_sequence(batch), delta, base_offset, timestamp, delta + 1)
        producer.timestamp = timestamp
        if batch.is_transactional and producer.transaction_start < 0:
            producer.transaction_start = base_offset
            self._open[producer_id] = self._idle.pop(producer_id)
        return None

    def note_set(
        self, stamp: ProducerStamp, base_offset: int, size_bytes: int, now_ms: int
    ) -> None:
        """Note a message set of 0.7, or a part of one, that was appended."""
        producer = self._used(stamp.producer_id, stamp.producer_epoch, now_ms)
        producer.begin(stamp.producer_epoch)
        delta = stamp.last_offset_delta
        producer.keep(_last_sequence(stamp), delta, base_offset, -1, size_bytes)

    def _note_mark(
        self, batch: RecordBatch, base_offset: int, now_ms: int, content: Buffer
    ) -> AbortedTransaction | None:
        """Note the end of a producer's transaction; see `note`."""
        mark = _mark_of(content, batch)
        if mark is None:
            return None
        kind, coordinator_epoch = mark
        producer_id = batch.producer_id
        producer = self._used(producer_id, batch.producer_epoch, now_ms)
        producer.begin(batch.producer_epoch)
        producer.timestamp = batch.max_timestamp
        producer.coordinator_epoch = coordinator_epoch
        start = producer.transaction_start
        if start < 0:
            return None
        producer.transaction_start = -1
        self._idle[producer_id] = self._open.pop(producer_id)
        self._fit()
        if kind != _ABORT:
            return None
        stable = self.first_open_offset
        return AbortedTransaction(
            producer_id, start, base_offset, base_offset + 1 if stable is None else stable
        )

    def _used(self, producer_id: int, epoch: int, now_ms: int) -> _Producer:
        """Return a producer, a new one if it is unknown, as the one used last."""
        producer = self._idle.get(producer_id)
        if producer is not None:
            self._idle.move_to_end(producer_id)
        else:
            producer = self._open.get(producer_id)
            if producer is None:
                producer = self._idle[producer_id] = _Producer(epoch, now_ms)
                self._fit()
        producer.used_ms = now_ms
        return producer

    def _fit(self) -> None:
        while len(self._idle) > self.max_count:
            self._idle.popitem(last=False)

    def expire(self, now_ms: int, expiration_ms: int = EXPIRATION_MS) -> None:
        """Forget the producers that have not been used for so long.

        Since when is known from their last batch, or from the start of the broker if that is later:
        timestamps of records may be of another year.
        """
        while self._idle:
            producer_id, producer = next(iter(self._idle.items()))
            if now_ms - producer.used_ms < expiration_ms:
                return
            del self._idle[producer_id]

    def cut(self, end_offset: int) -> bool:
        """Forget the batches from an offset on, which were cut off the log.

        Returns False, and changes nothing, if what the producers were before is not known here.
        """
        if self._open:
            return False
        changed: list[tuple[_Producer, bytes]] = []
        begun: list[int] = []
        for producer_id, producer in self._idle.items():
            if producer.coordinator_epoch >= 0:
                return False
            batches = list(_BATCH.iter_unpack(producer.kept))
            count = sum(batch[2] + batch[4] <= end_offset for batch in batches)
            if not count:
                if len(batches) == KEPT_BATCHES or not batches or batches[0][0] != batches[0][1]:
                    return False
                begun.append(producer_id)  # by its sequence 0, which is cut off as well
            elif count < len(batches):
                changed.append((producer, producer.kept[: count * _BATCH.size]))
        for producer_id in begun:
            del self._idle[producer_id]
        for producer, kept in changed:
            producer.kept = kept
            last = _BATCH.unpack(kept[-_BATCH.size :])
            producer.last_sequence, _, _, producer.timestamp, _ = last
        return True

    def states(self) -> Iterator[ProducerState]:
        """Yield what a snapshot has of each producer, the last used ones last."""
        for producer_id, producer in chain(self._idle.items(), self._open.items()):
            yield producer.state(producer_id)

    def write_snapshot(self, path: Path) -> None:
        """Write the state as of the offset in the file's name; an `OSError` if that fails."""
        side_files.write_snapshot(path, self.states())

    def load(self, states: Iterable[ProducerState], now_ms: int) -> None:
        """Add the producers of a snapshot."""
        starting: list[tuple[int, _Producer]] = []
        for state in states:
            producer = _Producer(state.epoch, now_ms)
            producer.timestamp = state.timestamp
            producer.coordinator_epoch = state.coordinator_epoch
            if state.last_offset >= 0:
                delta = state.offset_delta
                base_offset = state.last_offset - delta
                producer.keep(state.last_sequence, delta, base_offset, state.timestamp, delta + 1)
            if state.transaction_first_offset >= 0:
                producer.transaction_start = state.transaction_first_offset
                starting.append((state.producer_id, producer))
            else:
                self._idle[state.producer_id] = producer
        self._open.update(sorted(starting, key=lambda one: one[1].transaction_start))
        self._fit()


class BatchSegment(Protocol):
    """A segment whose batches tell of producers."""

    @property
    def path(self) -> Path:
        """Return the path of its file."""

    @property
    def base_offset(self) -> int:
        """Return the offset in its name."""

    @property
    def size(self) -> int:
        """Return how many bytes of the file belong to the log."""


def snapshot_path(directory: Path, offset: int) -> Path:
    """Return the path of the snapshot as of an offset."""
    return directory / f"{offset:020d}{SNAPSHOT_SUFFIX}"


def rebuild(
    partition: TopicPartition,
    segments: Sequence[BatchSegment],
    end_offset: int,
    now_ms: int,
    *,
    max_count: int = MAX_PRODUCERS,
) -> Producers:
    """Return the producers of a log that ends at an offset, from its newest snapshot and batches.

    Removes the snapshots that are damaged, of offsets behind the end, or before the log's start;
    writes the `.txnindex` of the segments behind the snapshot anew where it differs from the
    batches. Used at the start of a broker, after recovery, and when the log was cut.

    Args:
        partition: of the log.
        segments: all of the log, at least one.
        end_offset: behind the last batch.
        now_ms: milliseconds since 1970, when the producers count as used.
        max_count: as for `Producers`.
    """
    producers = Producers(partition, max_count)
    snapshots = _snapshots_in(segments[0].path.parent)
    start_offset = segments[0].base_offset
    usable = [one for one in sorted(snapshots) if start_offset <= one <= end_offset]
    remove(snapshots[offset] for offset in snapshots.keys() - set(usable))
    for offset in reversed(usable):
        try:
            producers.load(list(side_files.read_snapshot(snapshots[offset])), now_ms)
        except SideFileError as error:
            logger.warning("%s; it is removed, and an earlier one taken", error)
            remove([snapshots[offset]])
        else:
            start_offset = offset
            break
    ends = [two.base_offset for _, two in pairwise(segments)]
    for segment, segment_end in zip(segments, [*ends, end_offset + 1], strict=True):
        if segment_end > start_offset:
            _replay(producers, segment, start_offset, end_offset, now_ms)
    return producers


def truncated(
    producers: Producers, segments: Sequence[BatchSegment], end_offset: int, now_ms: int
) -> Producers:
    """Return the producers of a log that was cut to an offset; files beside it as by `rebuild`.

    The log is read again only if more than the kept batches of a producer were cut, or if it has
    transactions.

    Args:
        producers: of the log before.
        segments: all of the log as it is now, at least one.
        end_offset: behind the last batch.
        now_ms: milliseconds since 1970.
    """
    if not producers.cut(end_offset):
        return rebuild(
            producers.partition, segments, end_offset, now_ms, max_count=producers.max_count
        )
    snapshots = _snapshots_in(segments[0].path.parent)
    remove(path for offset, path in snapshots.items() if offset > end_offset)
    side_files.mend_aborted(segments[-1].path.with_suffix(ABORTED_SUFFIX), end_offset, ())
    return producers


def stale_snapshots(directory: Path, base_offsets: Iterable[int]) -> list[Path]:
    """Return the snapshots that are of no use to a log with these segments.

    Those at the start of a segment are, and the newest one.
    """
    snapshots = _snapshots_in(directory)
    kept = {*base_offsets, max(snapshots, default=0)}
    return [path for offset, path in snapshots.items() if offset not in kept]


def remove(paths: Iterable[Path]) -> None:
    """Remove files that may be gone already."""
    for path in paths:
        path.unlink(missing_ok=True)


def _snapshots_in(directory: Path) -> dict[int, Path]:
    paths = directory.glob(f"*{SNAPSHOT_SUFFIX}")
    return {int(path.stem): path for path in paths if path.stem.isdecimal()}


def _replay(
    producers: Producers, segment: BatchSegment, start_offset: int, end_offset: int, now_ms: int
) -> None:
    """Note the batches of a segment from one offset to another, and mend its `.txnindex`."""
    aborted: list[AbortedTransaction] = []
    if start_offset < end_offset:
        for batch, content in _batches_of(segment, start_offset):
            if batch.base_offset >= end_offset:
                break
            if batch.base_offset >= start_offset:
                one = producers.note(batch, batch.base_offset, now_ms, content)
                if one is not None:
                    aborted.append(one)
    side_files.mend_aborted(segment.path.with_suffix(ABORTED_SUFFIX), start_offset, aborted)


def _batches_of(
    segment: BatchSegment, start_offset: int
) -> Iterator[tuple[RecordBatch, memoryview]]:
    """Yield the good batches of a segment, at least those from an offset on, and what they are in.

    Their positions are those in what they are in.
    """
    budget = SearchBudget(segment.size)
    with opened(segment.path, os.O_RDONLY) as fd:
        position = _position_before(fd, segment, start_offset)
        while position < segment.size:
            for block in scan_batch_blocks(fd, position, segment.size):
                for batch in block.scan.batches:
                    yield batch, block.data
            if not block.scan.fault:
                return
            position = resume_behind(fd, block.end, segment.size, block.scan.fault, budget)


def _position_before(fd: int, segment: BatchSegment, offset: int) -> int:
    """Return the position of a batch that is not behind an offset, by the index if that is good."""
    if offset <= segment.base_offset:
        return 0
    try:
        path = segment.path.with_suffix(INDEX_SUFFIX)
        found = side_files.find_indexed(path, segment.base_offset, offset)
    except OSError:
        return 0
    head = good_head(fd, found.position, segment.size)
    return found.position if head is not None and head.base_offset <= offset else 0


def _mark_of(content: Buffer, batch: RecordBatch) -> tuple[int, int] | None:
    """Return the kind and the coordinator epoch of an end mark.

    None if the batch has none any more, as the whole transaction was compacted away, or another
    control record.
    """
    data = memoryview(content)[batch.position : batch.end]
    for record in codec.decode_records(data, with_control=True).records[:1]:
        key, value = record.key or b"", record.value or b""
        if len(key) >= _MARK_KEY.size and len(value) >= _MARK_VALUE.size:
            kind = _MARK_KEY.unpack_from(key)[1]
            if kind in (_ABORT, _COMMIT):
                return kind, _MARK_VALUE.unpack_from(value)[1]
    return None


def _last_sequence(batch: RecordBatch | ProducerStamp) -> int:
    """Return the sequence of a batch's last record, -1 if it has none."""
    if batch.base_sequence < 0:
        return -1
    return (batch.base_sequence + batch.last_offset_delta) & _MAX_SEQUENCE
