"""Whatever is done to a log of record batches, it looks like a list of batches in memory."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from broker.errors import (
    InvalidProducerEpochError,
    OffsetOutOfRangeError,
    OutOfOrderSequenceError,
    StorageError,
)
from broker.log.format import BATCHES
from broker.log.log import Log, LogParts
from broker.log.offline.verify import verify_paths
from broker.log.recovery import Recovery, list_segments, recover
from broker.log.replica_files import EpochFile
from broker.log.retention import apply_retention
from broker.log.segment import FileSlice, SegmentFiles
from broker.protocol import codec
from broker.protocol.codec import NEW_BATCH, Record
from broker.stats import WindowedStats
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk, RecordingSchedule
from tests.support.log_formats import bytes_of

PARTITION = TopicPartition("events", -1, 0)
CONFIG = TopicConfig(
    segment_bytes=16_000,
    roll_ms=60_000,
    retention_ms=300_000,
    retention_bytes=40_000,
    flush_interval_messages=10_000,
    flush_interval_ms=100,
)


class Batch(NamedTuple):
    """A batch as it is in the log."""

    base_offset: int
    next_offset: int
    data: bytes
    records: list[tuple[int, int]]
    """Timestamp and offset of each."""

    @property
    def max_timestamp(self) -> int:
        return max(timestamp for timestamp, _ in self.records)


@dataclass
class IdempotentProducer:
    """What a producer knows of its batches in the log."""

    producer_id: int
    epoch: int = 0
    sent: list[tuple[bytes, int, int, bool]] = field(default_factory=list)
    """Each as it was sent, its base offset, its sequence, and whether the log must know it."""
    next_sequence: int = 0


class Shape(NamedTuple):
    """What the records of a batch are like."""

    seconds_ago: list[int]
    value_bytes: int
    codec: int


shapes = st.builds(
    Shape,
    st.lists(st.integers(-5, 90), min_size=1, max_size=3),
    st.integers(0, 300) | st.integers(1000, 3000),
    st.sampled_from((0, 0, 0, 1, 4)),
)
fractions = st.floats(0, 1, allow_nan=False)
damage_to_side_files = st.sampled_from(("none", "lost", "cut", "empty", "zeros", "garbage"))


class HeldRead(NamedTuple):
    """A reader in flight: what it holds, and what it must find there."""

    where: FileSlice
    expected: bytes


def has_known_producer(machine: BatchLogMachine) -> bool:
    return any(one.sent for one in machine.producers)


class BatchLogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="batch-log-model-")) / "events-0"
        self.directory.mkdir()
        self.clock = FakeClock()
        self.disk = FaultyDisk()
        self.batches: list[Batch] = []
        """All that are in segments."""
        self.start = self.flushed = self.high_watermark = 0
        self.held: list[HeldRead] = []
        self.has_cut = self.is_spoilt = False
        self.producers = [IdempotentProducer(7), IdempotentProducer(1 << 62)]
        self.log: Log

    @initialize(is_replicated=st.booleans())
    def open_new(self, is_replicated: bool) -> None:
        self.is_replicated = is_replicated
        (self.directory / BATCHES.segment_name(0)).touch()
        self.open()

    def open(self) -> None:
        schedule = RecordingSchedule()
        self.log = Log(
            PARTITION,
            self.directory,
            CONFIG,
            list_segments(self.directory, BATCHES),
            LogParts(
                clock=self.clock,
                files=SegmentFiles(capacity=2),
                schedule_flush=schedule.schedule,
                flush_stats=WindowedStats(self.clock, 60.0),
                disk=self.disk.as_disk(),
            ),
        )
        if self.is_replicated:
            self.log.replicate(EpochFile(self.directory), self.high_watermark)

    def teardown(self) -> None:
        self.log.close()
        shutil.rmtree(self.directory.parent)

    @property
    def end(self) -> int:
        return self.batches[-1].next_offset if self.batches else self.start

    def encoded(self, shape: Shape, **head: int) -> bytes:
        now_ms = self.clock.time_ms()
        return codec.encode_batch(
            [
                Record(at, now_ms - 1000 * ago, None, bytes([at + 1]) * shape.value_bytes)
                for at, ago in enumerate(shape.seconds_ago)
            ],
            NEW_BATCH._replace(attributes=shape.codec, **head),
        )

    def note_appended(self, message_set: bytes) -> None:
        """Note what is at the log's end now."""
        for head in codec.scan_batches(message_set).batches:
            data, end = codec.stamp_batches(message_set[head.position : head.end], self.end, 0)
            records = codec.decode_records(data).records
            found = [(one.timestamp, one.offset) for one in records]
            self.batches.append(Batch(self.end, end, data, found))

    @rule(seconds=st.integers(1, 100))
    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(sets=st.lists(st.lists(shapes, min_size=1, max_size=3), min_size=1, max_size=4))
    def append(self, sets: list[list[Shape]]) -> None:
        for some in sets:
            message_set = b"".join(map(self.encoded, some))
            base = self.end
            count = sum(len(one.seconds_ago) for one in some)
            assert self.log.append(message_set, count) == (base, base + count)
            self.note_appended(message_set)

    @rule(some=st.lists(shapes, min_size=1, max_size=3), cut_bytes=st.integers(0, 60))
    def append_copied(self, some: list[Shape], cut_bytes: int) -> None:
        chunk, end = codec.stamp_batches(b"".join(map(self.encoded, some)), self.end, 0)
        torn = codec.stamp_batches(self.encoded(some[0]), end, 0)[0][:cut_bytes]
        copied = BATCHES.copied(chunk + torn, PARTITION, self.end)
        assert (copied.entry_count, copied.next_offset) == (end - self.end, end)
        self.log.append_copied(copied, self.end)
        self.note_appended(chunk)

    @rule(shape=shapes, room_bytes=st.integers(0, 60))
    def append_to_full_disk(self, shape: Shape, room_bytes: int) -> None:
        self.disk.room_bytes = room_bytes
        with pytest.raises(StorageError):
            self.log.append(self.encoded(shape), len(shape.seconds_ago))
        self.disk.room_bytes = None

    @rule(at=st.integers(0, 1), shape=shapes, begins_epoch=st.booleans())
    def append_idempotently(self, at: int, shape: Shape, begins_epoch: bool) -> None:
        producer = self.producers[at]
        if begins_epoch and producer.sent:
            producer.epoch += 1
            producer.next_sequence = 0
            producer.sent.clear()
        sequence, base = producer.next_sequence, self.end
        one = self.sequenced(producer, shape, sequence)
        count = len(shape.seconds_ago)
        assert self.log.append(one, count) == (base, base + count)
        self.note_appended(one)
        producer.next_sequence += count
        producer.sent.append((one, base, sequence, True))

    def sequenced(self, producer: IdempotentProducer, shape: Shape, sequence: int) -> bytes:
        return self.encoded(
            shape,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
        )

    def known_producer(self, at: int) -> IdempotentProducer:
        """Return one of which batches are in the log."""
        known = [one for one in self.producers if one.sent]
        return known[at % len(known)]

    @precondition(has_known_producer)
    @rule(at=st.integers(0, 1), back=st.integers(0, 7))
    def resend(self, at: int, back: int) -> None:
        """Send a former batch again: nothing is appended, and the last five are recognized."""
        producer = self.known_producer(at)
        back = 1 + back % len(producer.sent)
        one, base, _, is_known = producer.sent[-back]
        count = codec.scan_batches(one).batches[0].record_count
        try:
            found = self.log.append(one, count)
        except OutOfOrderSequenceError:
            assert back > 5 or not is_known
        else:
            assert found == (base, base + count)

    @precondition(has_known_producer)
    @rule(at=st.integers(0, 1), shape=shapes, skipped=st.integers(1, 5))
    def leave_out(self, at: int, shape: Shape, skipped: int) -> None:
        producer = self.known_producer(at)
        one = self.sequenced(producer, shape, producer.next_sequence + skipped)
        with pytest.raises(OutOfOrderSequenceError):
            self.log.append(one, len(shape.seconds_ago))

    @precondition(has_known_producer)
    @rule(at=st.integers(0, 1), shape=shapes)
    def send_in_a_former_epoch(self, at: int, shape: Shape) -> None:
        producer = self.known_producer(at)
        former = IdempotentProducer(producer.producer_id, producer.epoch - 1)
        if former.epoch >= 0:
            one = self.sequenced(former, shape, producer.next_sequence)
            with pytest.raises(InvalidProducerEpochError):
                self.log.append(one, len(shape.seconds_ago))

    def forget_producers(self, *, first_kept: int = 0, end: int | None = None) -> None:
        """Begin with new producers where the log may, or must, have lost what it knew of one."""
        for at, producer in enumerate(self.producers):
            offsets = [base for _, base, _, _ in producer.sent]
            if any(one >= (self.end if end is None else end) for one in offsets) or (
                offsets and offsets[-1] < first_kept
            ):
                self.producers[at] = IdempotentProducer(producer.producer_id + 2)

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end
        if not self.is_replicated:
            self.high_watermark = self.end

    @precondition(lambda self: self.is_replicated)
    @rule(fraction=fractions)
    def advance_high_watermark(self, fraction: float) -> None:
        offset = self.boundary(self.high_watermark, fraction)
        self.log.advance_high_watermark(offset)
        self.high_watermark = max(self.high_watermark, offset)

    def boundary(self, least: int, fraction: float) -> int:
        """Return an offset between batches, from another one on."""
        some = [one.base_offset for one in self.batches if one.base_offset >= least] + [self.end]
        return some[int(fraction * (len(some) - 1))]

    @precondition(lambda self: self.is_replicated)
    @rule(fraction=fractions)
    def truncate(self, fraction: float) -> None:
        offset = self.boundary(self.start, fraction)
        self.log.truncate(offset)
        self.has_cut = True
        self.cut(offset)

    @precondition(lambda self: self.is_replicated)
    @rule(distance=st.integers(-5, 5))
    def restart_at(self, distance: int) -> None:
        offset = max(0, self.start + distance)
        self.log.restart_at(offset)
        self.has_cut = True
        self.forget_producers(end=-1)
        self.batches = []
        self.start = self.flushed = self.high_watermark = offset

    def cut(self, end: int) -> None:
        """Forget what is behind an offset."""
        self.forget_producers(end=end)
        self.batches = [one for one in self.batches if one.next_offset <= end]
        self.flushed = min(self.flushed, end)
        self.high_watermark = min(self.high_watermark, end)

    @precondition(lambda self: self.start < self.high_watermark)
    @rule(fraction=fractions)
    def delete_records(self, fraction: float) -> None:
        offset = self.start + round(fraction * (self.high_watermark - self.start))
        self.log.delete_records(offset)
        if offset > self.flushed:
            self.flushed = self.end
        self.removed_before(max(self.start, offset))

    def removed_before(self, start: int) -> None:
        self.start = start
        first = self.log.segments.all[0].base_offset
        assert first <= start
        self.batches = [one for one in self.batches if one.base_offset >= first]

    @rule()
    def retain(self) -> None:
        segments = self.log.segments.all
        now_ms, expired = self.clock.time_ms(), 0
        for segment in segments:
            inside = self.of(segment.base_offset, segment.next_offset)
            if not inside or max(one.max_timestamp for one in inside) >= now_ms - 300_000:
                break
            expired += 1
        apply_retention(self.log, CONFIG, now_ms=now_ms, prepare=lambda _partition, _segment: None)
        left = self.log.segments.all
        assert left[-1].next_offset == self.end
        gone = [one for one in segments if one not in left]
        if gone:
            self.flushed = self.end
            if not self.is_replicated:
                self.high_watermark = self.end
        if not self.is_replicated:
            assert len(gone) >= expired
        for segment in gone[expired:]:  # deleted, or for their size: what stays is enough
            if segment.next_offset <= self.start:
                continue
            behind = [one for one in self.batches if one.base_offset >= segment.next_offset]
            assert sum(len(one.data) for one in behind) >= CONFIG.retention_bytes
        if gone:
            self.start = max(self.start, left[0].base_offset)
        self.removed_before(self.start)

    def of(self, start: int, end: int) -> list[Batch]:
        return [one for one in self.batches if start <= one.base_offset < end]

    @rule(fraction=fractions, max_bytes=st.integers(1, 20_000), is_held=st.booleans())
    def read(self, fraction: float, max_bytes: int, is_held: bool) -> None:
        visible_end = self.end if self.is_replicated else self.high_watermark
        offset = self.start + int(fraction * (visible_end - self.start))
        found = self.log.read(offset, max_bytes, to_log_end=self.is_replicated)
        if found is None:
            assert offset == visible_end
            return
        segments = self.log.segments.all
        base = max(one.base_offset for one in segments if one.base_offset <= offset)
        ends = [one.base_offset for one in segments if one.base_offset > base] or [visible_end]
        some = self.of(base, min(ends[0], visible_end))
        expected = b"".join(one.data for one in some if one.next_offset > offset)[:max_bytes]
        assert bytes_of(found) == expected
        if is_held:
            self.held.append(HeldRead(found, expected))

    @rule(distance=st.integers(1, 100))
    def read_out_of_range(self, distance: int) -> None:
        for offset in (self.start - distance, self.end + distance):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, 100)

    @rule(seconds_ago=st.integers(-5, 400))
    def find_by_time(self, seconds_ago: int) -> None:
        time_ms = self.clock.time_ms() - 1000 * seconds_ago
        visible = [
            record
            for one in self.batches
            for record in one.records
            if self.start <= record[1] < self.high_watermark and record[0] >= time_ms
        ]
        assert self.log.offset_at(time_ms) == (visible[0] if visible else None)

    @rule(damage=damage_to_side_files, noise=st.binary(min_size=1, max_size=40))
    def close_and_reopen(self, damage: str, noise: bytes) -> None:
        self.log.close()
        self.flushed = self.end
        if not self.is_replicated:
            self.high_watermark = self.end
        assert self.is_spoilt or not verify_paths([self.directory]).problems
        self.spoil_side_files(damage, noise)
        self.open()
        self.forget_all_but_last()

    def forget_all_but_last(self) -> None:
        """After a start a log knows the last batch of each producer, and those it has scanned."""
        for producer in self.producers:
            producer.sent = [
                (one, base, sequence, is_known and at == len(producer.sent) - 1)
                for at, (one, base, sequence, is_known) in enumerate(producer.sent)
            ]
        self.forget_producers(first_kept=self.start)

    def spoil_side_files(self, damage: str, noise: bytes) -> None:
        self.is_spoilt |= damage != "none"
        for path in self.directory.iterdir():
            if path.suffix in (".index", ".timeindex", ".snapshot"):
                content = path.read_bytes()
                match damage:
                    case "lost":
                        path.unlink()
                    case "cut":
                        path.write_bytes(content[: len(content) // 2])
                    case "empty":
                        path.write_bytes(b"")
                    case "zeros":
                        path.write_bytes(bytes(len(content)))
                    case "garbage":
                        path.write_bytes((noise * len(content))[: len(content)])

    @rule(
        fraction=fractions,
        noise=st.one_of(st.binary(max_size=30), st.integers(0, 300).map(bytes)),
        damage=damage_to_side_files,
    )
    def crash_and_reopen(self, fraction: float, noise: bytes, damage: str) -> None:
        """Lose some of what was not flushed, find noise in its place, and bad indexes."""
        paths = [(one.base_offset, one.path) for one in self.log.segments.all]
        unflushed = self.of(self.flushed, self.end)
        kept_bytes = int(fraction * sum(len(one.data) for one in unflushed))
        for base, path in reversed(paths):  # a segment behind the first torn one is lost
            before = sum(len(one.data) for one in unflushed if one.base_offset < base)
            if before > kept_bytes or (before == kept_bytes and base > self.flushed):
                path.unlink()
                continue
            size = sum(len(one.data) for one in self.of(base, self.flushed)) + kept_bytes - before
            os.truncate(path, size)
            with path.open("ab") as file:
                file.write(noise)
            break
        self.spoil_side_files(damage, noise or b"\0")
        self.held.clear()
        recoveries = self.recover()
        self.open()
        left = list(self.batches)
        while left and left[-1].next_offset > self.log.log_end_offset:
            left.pop()
        end = self.log.log_end_offset
        assert end == (left[-1].next_offset if left else self.start)
        kept = sum(len(one.data) for one in unflushed if one.next_offset <= end)
        following = [one for one in unflushed if one.next_offset > end][:1]
        # more only where the noise is what was lost
        assert kept_bytes < kept + sum(len(one.data) for one in following) + 1
        assert kept <= kept_bytes + len(noise)
        assert bool(recoveries) == bool(kept_bytes + len(noise) - kept)
        self.cut(end)
        self.flushed = end
        if not self.is_replicated:
            self.high_watermark = end
        self.forget_all_but_last()

    def recover(self) -> Sequence[Recovery]:
        segments = list_segments(self.directory, BATCHES)
        return recover(
            PARTITION,
            segments,
            recovery_point=self.flushed,
            time_ms=self.clock.time_ms(),
        )

    @invariant()
    def numbers_agree(self) -> None:
        assert self.log.log_start_offset == self.start
        assert self.log.log_end_offset == self.end
        assert self.log.high_watermark == self.high_watermark
        assert self.log.flushed_offset == self.flushed
        assert self.log.size_bytes == sum(len(one.data) for one in self.batches)

    @invariant()
    def files_hold_the_batches(self) -> None:
        segments = self.log.segments.all
        ends = [*(one.base_offset for one in segments[1:]), self.end]
        for segment, end in zip(segments, ends, strict=True):
            expected = b"".join(one.data for one in self.of(segment.base_offset, end))
            assert segment.path.read_bytes() == expected

    @invariant()
    def readers_in_flight_find_their_bytes(self) -> None:
        for held in self.held:
            found = bytes_of(held.where)
            assert held.expected.startswith(found)
            assert len(found) == len(held.expected) or self.has_cut


def test_log_of_batches_when_anything_happens_then_like_the_model() -> None:
    run_state_machine_as_test(
        BatchLogMachine,
        settings=settings(
            max_examples=50,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
