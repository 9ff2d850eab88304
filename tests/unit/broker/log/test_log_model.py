"""Whatever is done to a log, it looks like the simplest log there could be (`log_model`)."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
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

from broker.config import BrokerConfig
from broker.errors import OffsetOutOfRangeError, StorageError
from broker.log.format import segment_name
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.segment import FileSlice
from broker.protocol.codec import encode, scan
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.unit.broker.log import log_model
from tests.unit.broker.log.log_model import LogModel

payloads_of_any_size = st.builds(
    lambda size, byte: bytes([byte]) * size, st.integers(0, 60), st.integers(0, 255)
)
payload_lists = st.lists(payloads_of_any_size, min_size=1, max_size=3)
fractions = st.floats(0, 1, allow_nan=False)


class HeldRead(NamedTuple):
    """A reader in flight: what it holds, and what it must find there."""

    where: FileSlice
    expected: bytes


def bytes_of(where: FileSlice) -> bytes:
    return os.pread(where.file.fd, where.length, where.position)


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.data_dir = Path(tempfile.mkdtemp(prefix="log-model-"))
        self.clock = FakeClock()
        self.disk = FaultyDisk()
        self.held: list[HeldRead] = []
        self.model = LogModel(now_ms=self.clock.time_ms())
        self.config = BrokerConfig(
            data_dirs=(self.data_dir,),
            segment_bytes=log_model.SEGMENT_BYTES,
            roll_ms=log_model.ROLL_MS,
            retention_ms=log_model.RETENTION_MS,
            retention_bytes=log_model.RETENTION_BYTES,
        )

    @initialize()
    def open_new(self) -> None:
        self.open()

    def open(self) -> None:
        self.manager = LogManager(self.config, self.clock, disk=self.disk.as_disk())
        self.recoveries = self.manager.open()
        self.log: Log = self.manager.creation.get_or_create("events", 0)
        for segment in self.log.segments.all:  # recovery synced them by itself
            self.disk.synced_sizes[segment.path.stat().st_ino] = segment.size

    def teardown(self) -> None:
        self.disk.sync_errno = 0
        self.manager.close()
        shutil.rmtree(self.data_dir)

    def path(self, base: int) -> Path:
        return self.data_dir / "events_0" / segment_name(base)

    def visible_position(self, fraction: float) -> int:
        start = self.model.start
        return start + int(fraction * (self.model.high_watermark - start))

    @property
    def is_failed(self) -> bool:
        return self.log.failure is not None

    @rule(seconds=st.integers(1, 100))
    def advance(self, seconds: int) -> None:
        self.clock.advance(seconds)
        self.model.now_ms = self.clock.time_ms()

    @rule(
        batches=st.lists(payload_lists, min_size=1, max_size=8),
        chunk_bytes=st.sampled_from([None, 7]),
    )
    def append(self, batches: list[list[bytes]], chunk_bytes: int | None) -> None:
        self.disk.chunk_bytes = chunk_bytes
        for payloads in batches:
            if self.is_failed:
                with pytest.raises(StorageError):
                    self.log.append(encode(payloads), len(payloads))
            else:
                expected = self.model.append([encode([payload]) for payload in payloads])
                assert self.log.append(encode(payloads), len(payloads)).base_offset == expected
        self.disk.chunk_bytes = None

    @precondition(lambda self: not self.is_failed)
    @rule(payloads=payload_lists, room_bytes=st.integers(0, 9))
    def append_to_full_disk(self, payloads: list[bytes], room_bytes: int) -> None:
        self.disk.room_bytes = room_bytes
        self.model.roll_if_due()
        with pytest.raises(StorageError):
            self.log.append(encode(payloads), len(payloads))
        self.disk.room_bytes = None

    @precondition(lambda self: not self.is_failed)
    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.model.high_watermark = self.model.end

    @precondition(lambda self: not self.is_failed and self.model.high_watermark < self.model.end)
    @rule()
    def fail_to_flush(self) -> None:
        self.disk.sync_errno = errno.EIO
        with pytest.raises(StorageError):
            self.log.flush()
        self.disk.sync_errno = 0

    @precondition(lambda self: not self.is_failed)
    @rule()
    def retain(self) -> None:
        self.manager.retention.apply()
        self.model.retain()

    @rule()
    def write_checkpoint(self) -> None:
        self.manager.checkpoints.write()

    @rule(fraction=fractions, max_bytes=st.integers(0, 200), is_held=st.booleans())
    def read(self, fraction: float, max_bytes: int, is_held: bool) -> None:
        offset = self.visible_position(fraction)
        found = self.log.read(offset, max_bytes)
        if found is None:
            assert offset == self.model.high_watermark
            return
        expected = self.model.read(offset, max_bytes)
        assert bytes_of(found) == expected
        if is_held:
            self.held.append(HeldRead(found, expected))

    @rule(distance=st.integers(1, 100))
    def read_out_of_range(self, distance: int) -> None:
        for offset in (self.model.start - distance, self.model.high_watermark + distance):
            with pytest.raises(OffsetOutOfRangeError):
                self.log.read(offset, 100)

    @rule(fraction=fractions)
    def find_boundaries(self, fraction: float) -> None:
        model = self.model
        position = self.visible_position(fraction)
        kept = [one for one in model.boundaries if model.start <= one <= model.high_watermark]
        before, after = (
            self.log.boundary_at_or_before(position),
            self.log.boundary_at_or_after(position),
        )
        assert before == max(one for one in kept if one <= position)
        assert after == min(one for one in kept if one >= position)

    @rule(seconds_ago=st.integers(-1, 400))
    def find_by_time(self, seconds_ago: int) -> None:
        time_ms = self.model.now_ms - 1000 * seconds_ago
        assert self.log.offsets_before(time_ms, 100) == self.model.offsets_before(time_ms)
        assert self.log.offsets_before(-1, 100) == self.model.offsets_before(-1)
        assert self.log.offsets_before(-2, 100) == [self.model.start]

    @precondition(lambda self: not self.is_failed)
    @rule()
    def close_and_reopen(self) -> None:
        self.manager.close()
        self.model.high_watermark = self.model.end
        self.restore_file_times()
        self.open()
        assert self.recoveries == []
        assert not self.manager.loaded.was_recovered
        assert self.log.active_since_ms == self.model.segments[-1].since_ms

    @rule(
        fraction=fractions,
        noise=st.one_of(st.binary(max_size=30), st.integers(0, 300).map(bytes)),
        keeps_later=st.booleans(),
        loses_checkpoint=st.booleans(),
    )
    def crash_and_reopen(
        self, fraction: float, noise: bytes, keeps_later: bool, loses_checkpoint: bool
    ) -> None:
        """Lose some of what was not flushed, find noise in its place, maybe segments behind."""
        self.manager.directories.unlock()
        flushed = self.model.high_watermark
        kept = flushed + int(fraction * (self.model.end - flushed))
        self.restore_file_times()
        checkpoint = self.data_dir / "recovery-point-checkpoint"
        if loses_checkpoint:
            checkpoint.unlink()
        self.damage(kept, noise, keeps_later=keeps_later and not loses_checkpoint)
        self.held.clear()
        self.open()
        self.check_recovered(kept)

    def damage(self, kept: int, noise: bytes, *, keeps_later: bool) -> None:
        """Cut the files at an offset and put noise there."""
        segments = [one for one in self.model.segments if one.base <= kept]
        torn, later = segments[-1], self.model.segments[len(segments) :]
        os.truncate(self.path(torn.base), kept - torn.base)
        for segment in later if not keeps_later else []:
            self.path(segment.base).unlink()
        room = torn.size - (kept - torn.base) - 1 if later and keeps_later else len(noise)
        noise = noise[: max(0, room)]
        last = max(one for one in self.model.boundaries if one <= kept)
        if scan(self.model.stream[last:kept] + noise).entry_count:
            return  # some noise is a message; nobody could tell
        with self.path(torn.base).open("ab") as file:
            file.write(noise)

    def check_recovered(self, kept: int) -> None:
        """What is there now is what was appended, without a hole, and all that was flushed."""
        end = self.log.log_end_offset
        assert end == self.log.high_watermark
        assert end >= max(one for one in self.model.boundaries if one <= kept)
        assert end in self.model.boundaries
        assert sum(one.cut_bytes for one in self.recoveries) == sum(
            one.side_file.stat().st_size for one in self.recoveries
        )
        self.model.truncate(end)
        active = self.model.segments[-1]
        since_ms = self.log.active_since_ms
        assert (since_ms is None) == (active.size == 0)
        active.since_ms = since_ms
        for segment, mine in zip(self.model.segments, self.log.segments.all, strict=True):
            segment.modified_ms = mine.modified_ms

    def restore_file_times(self) -> None:
        """Give the files the times that the fake clock would have given them."""
        for segment in self.model.segments:
            os.utime(self.path(segment.base), ns=(segment.modified_ms * 10**6,) * 2)

    @invariant()
    def numbers_agree(self) -> None:
        assert self.log.log_start_offset == self.model.start
        assert self.log.log_end_offset == self.model.end
        assert self.log.high_watermark == self.model.high_watermark
        assert self.log.size_bytes == self.model.end - self.model.start
        assert [(one.base_offset, one.size) for one in self.log.segments.all] == [
            (one.base, one.size) for one in self.model.segments
        ]

    @invariant()
    def files_hold_the_stream(self) -> None:
        for segment in self.model.segments:
            expected = self.model.stream[segment.base : segment.end]
            assert self.path(segment.base).read_bytes() == expected

    @invariant()
    def what_is_visible_was_synced(self) -> None:
        for segment in self.model.segments:
            visible = min(segment.end, self.model.high_watermark) - segment.base
            synced = self.disk.synced_sizes.get(self.path(segment.base).stat().st_ino, 0)
            assert synced >= visible

    @invariant()
    def readers_in_flight_find_their_bytes(self) -> None:
        for held in self.held:
            assert bytes_of(held.where) == held.expected


def test_log_when_anything_happens_then_like_the_model() -> None:
    run_state_machine_as_test(
        LogMachine,
        settings=settings(
            max_examples=50,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )
