from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from broker.cluster_state import EpochStart
from broker.errors import (
    InvalidMessageError,
    NotLeaderError,
    OffsetOutOfRangeError,
    StorageError,
)
from broker.leader_epochs import LeaderEpochs
from broker.log.log import Log, whole_entries
from broker.log.replica_files import EPOCH_FILE_NAME, EpochFile, read_epochs
from broker.protocol.codec import encode
from broker.protocol.primitives import Buffer
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import LogFactory

TWELVE_BYTES = encode([b"ab"])
OTHER_TWELVE = encode([b"yz"])


def replicated(log: Log) -> Log:
    log.replicate(EpochFile(log.directory))
    return log


def filled(make_log: LogFactory, count: int, **settings: object) -> Log:
    log = replicated(make_log(segment_bytes=30, **settings))
    for _ in range(count):
        log.append(TWELVE_BYTES, 1)
    return log


def bytes_of(log: Log) -> bytes:
    found, offset = b"", log.log_start_offset
    while (part := log.read(offset, 1 << 20, to_log_end=True)) is not None:
        found += os.pread(part.file.fd, part.length, part.position)
        offset += part.length
    return found


def on_disk(log: Log) -> dict[int, int]:
    return {int(path.stem): path.stat().st_size for path in sorted(log.directory.glob("*.pylog"))}


def copy(log: Log, chunk: Buffer, offset: int) -> None:
    log.append_copied(whole_entries(chunk, log.partition, offset), offset)


def refusal() -> NotLeaderError:
    return NotLeaderError("led elsewhere", 2)


def test_append_when_replicated_then_visible_and_committed_only_up_to_the_high_watermark_set(
    make_log: LogFactory,
) -> None:
    log = replicated(make_log())
    log.append(TWELVE_BYTES * 2, 2)
    log.flush()
    assert (log.high_watermark, log.flushed_offset) == (0, 24)
    log.advance_high_watermark(12)
    assert log.high_watermark == 12
    assert log.read(0, 100) is not None
    found = log.read(12, 100, to_log_end=True)
    assert found is not None and found.length == 12
    assert log.read(24, 100) is None  # a reader may know of a later high watermark
    with pytest.raises(OffsetOutOfRangeError):
        log.read(25, 100)


def test_advance_high_watermark_when_beyond_the_end_then_at_the_end_and_told_once(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 1)
    seen: list[int] = []
    log.add_listener(lambda: seen.append(log.high_watermark))
    log.advance_high_watermark(100)
    log.advance_high_watermark(100)
    assert seen == [12]


def test_append_when_replicated_then_append_listeners_are_told_and_others_are_not(
    make_log: LogFactory,
) -> None:
    log = replicated(make_log(flush_before_read=False))
    told: list[str] = []
    log.append_listeners.add_listener(lambda: told.append("append"))
    log.add_listener(lambda: told.append("high watermark"))
    log.append(TWELVE_BYTES, 1)
    assert told == ["append"]


def test_append_when_refused_then_not_written_until_appends_are_accepted(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 1)
    log.refuse_appends(refusal)
    with pytest.raises(NotLeaderError) as caught:
        log.append(TWELVE_BYTES, 1)
    assert caught.value.leader == 2
    assert log.log_end_offset == 12
    log.accept_appends()
    assert log.append(TWELVE_BYTES, 1) == 12


def test_append_copied_when_the_last_entry_is_cut_then_it_is_left_out(make_log: LogFactory) -> None:
    log = replicated(make_log())
    log.refuse_appends(refusal)
    copy(log, TWELVE_BYTES * 2 + TWELVE_BYTES[:7], 0)
    copy(log, TWELVE_BYTES[:7], 24)
    assert bytes_of(log) == TWELVE_BYTES * 2


def test_append_copied_when_the_leader_wrote_it_long_ago_then_its_age_counts_from_then(
    make_log: LogFactory, clock: FakeClock
) -> None:
    log = replicated(make_log())
    then_ms = clock.time_ms() - 9_000_000
    entries = whole_entries(TWELVE_BYTES, log.partition, 0)
    log.append_copied(entries, 0, then_ms)
    log.append_copied(entries, 12, then_ms + 1)
    log.append_copied(entries, 24)  # now it is in sync
    log.append_copied(entries, 36)
    assert on_disk(log) == {0: 24, 24: 24}
    old, young = log.segments.all
    assert (old.modified_ms, young.modified_ms) == (then_ms + 1, clock.time_ms())
    assert old.path.stat().st_mtime_ns == (then_ms + 1) * 1_000_000


def test_append_copied_when_damaged_then_nothing_is_written(make_log: LogFactory) -> None:
    log = replicated(make_log())
    damaged = bytearray(TWELVE_BYTES * 2)
    damaged[-1] ^= 1
    with pytest.raises(InvalidMessageError, match="at offset 12"):
        copy(log, damaged, 0)
    assert log.log_end_offset == 0


def test_append_copied_when_the_log_ends_elsewhere_then_refused(make_log: LogFactory) -> None:
    log = filled(make_log, 1)
    with pytest.raises(OffsetOutOfRangeError, match="ends at offset 12, not at 24"):
        copy(log, TWELVE_BYTES, 24)
    assert bytes_of(log) == TWELVE_BYTES


@pytest.mark.parametrize("offset", [0, 12, 36, 48, 60, 72])
def test_truncate_when_log_has_several_segments_then_what_is_before_stays_and_it_goes_on(
    make_log: LogFactory, offset: int
) -> None:
    log = filled(make_log, 6)
    assert len(log.segments.all) > 1
    log.flush()
    log.truncate(offset)
    assert log.log_end_offset == offset
    copy(log, OTHER_TWELVE, offset)
    log.flush()
    expected = TWELVE_BYTES * (offset // 12) + OTHER_TWELVE
    assert bytes_of(log) == expected
    assert log.flushed_offset == offset + 12
    sizes = on_disk(log)
    assert list(sizes) == [sum(list(sizes.values())[:index]) for index in range(len(sizes))]
    log.close()
    assert bytes_of(make_log()) == expected


def test_truncate_when_readers_hold_what_is_cut_then_they_never_see_what_is_written_there(
    make_log: LogFactory,
) -> None:
    log = replicated(make_log())
    log.append(TWELVE_BYTES * 3, 3)
    held = log.read(12, 24, to_log_end=True)
    assert held is not None
    log.truncate(12)
    log.append(OTHER_TWELVE * 2, 2)
    assert os.pread(held.file.fd, held.length, held.position) == b""
    log.restart_at(0)
    log.append(OTHER_TWELVE, 1)
    assert bytes_of(log) == OTHER_TWELVE


def test_truncate_when_a_slice_of_it_was_not_sent_then_its_segment_is_not_called_unreadable(
    make_log: LogFactory,
) -> None:
    log = replicated(make_log())
    log.append(TWELVE_BYTES * 3, 3)
    held = log.read(0, 36, to_log_end=True)
    assert held is not None
    log.truncate(12)
    log.append(OTHER_TWELVE, 1)
    assert log.segments.note_unreadable(held, 12) is not None
    assert log.failures() == []
    assert bytes_of(log) == TWELVE_BYTES + OTHER_TWELVE


def test_truncate_when_below_offsets_then_high_watermark_and_flushed_offset_are_at_the_end(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 4)
    log.flush()
    log.advance_high_watermark(48)
    log.truncate(24)
    assert (log.high_watermark, log.flushed_offset, log.log_end_offset) == (24, 24, 24)
    log.append(TWELVE_BYTES, 1)
    assert (log.high_watermark, log.flushed_offset) == (24, 24)


def test_truncate_when_what_is_left_is_unflushed_then_a_flush_makes_it_durable(
    make_log: LogFactory, faulty_disk: FaultyDisk
) -> None:
    log = filled(make_log, 6, disk=faulty_disk.as_disk())
    log.truncate(48)
    log.flush()
    assert log.flushed_offset == 48
    synced = faulty_disk.synced_sizes
    assert all(
        synced.get(path.stat().st_ino) == path.stat().st_size
        for path in log.directory.glob("*.pylog")
        if path.stat().st_size
    )


def test_truncate_when_before_the_start_then_refused(make_log: LogFactory) -> None:
    log = filled(make_log, 1)
    log.restart_at(24)
    with pytest.raises(OffsetOutOfRangeError):
        log.truncate(12)
    assert log.log_start_offset == 24


def test_truncate_when_it_must_lower_a_recovery_point_then_that_is_told_before_anything_is_cut(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 2)
    log.flush()
    seen: list[tuple[int, dict[int, int]]] = []
    log._note_truncation = lambda: seen.append((log.flushed_offset, on_disk(log)))
    log.truncate(12)
    assert seen == [(12, {0: 24})]


def test_truncate_when_the_disk_refuses_then_the_log_fails(
    make_log: LogFactory, faulty_disk: FaultyDisk
) -> None:
    log = filled(make_log, 2, disk=faulty_disk.as_disk())
    faulty_disk.truncate_errno = errno.EIO
    with pytest.raises(StorageError, match="cannot truncate"):
        log.truncate(12)
    with pytest.raises(StorageError):
        log.append(TWELVE_BYTES, 1)


def test_restart_at_when_log_has_messages_then_it_is_empty_there_without_epochs(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 6)
    log.begin_epoch(3, 0)
    log.restart_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert list(log.epochs.entries) == []
    assert on_disk(log) == {1000: 0}
    copy(log, TWELVE_BYTES, 1000)
    log.flush()
    assert log.flushed_offset == 1012


def test_restart_at_when_log_is_empty_there_then_only_its_epochs_are_gone_before_the_first_message(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 0)
    log.begin_epoch(3, 0)
    log.settle_epochs()
    log._note_truncation = lambda: pytest.fail("nothing is truncated")
    log.restart_at(0)
    assert list(log.epochs.entries) == []
    copy(log, TWELVE_BYTES, 0)
    assert list(read_epochs(log.directory).entries) == []
    log.flush()
    assert (bytes_of(log), on_disk(log)) == (TWELVE_BYTES, {0: 12})


def test_prepare_removal_when_segments_are_above_the_high_watermark_then_they_are_kept(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 7)
    assert on_disk(log) == {0: 36, 36: 36, 72: 12}
    log.flush()
    assert log.prepare_removal(len) == ()
    log.advance_high_watermark(40)
    removable = log.prepare_removal(len)
    assert [one.base_offset for one in removable] == [0]
    log.truncate(12)
    log.remove(removable[0])  # it is another segment now
    assert bytes_of(log) == TWELVE_BYTES


def test_epochs_when_begun_truncated_and_removed_by_retention_then_as_the_rules_say(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 7)
    log.begin_epoch(0, 0)
    log.begin_epoch(1, 12)
    log.begin_epoch(3, 48)
    log.begin_epoch(4, 84)
    assert list(log.epochs.entries) == [(0, 0), (1, 12), (3, 48), (4, 84)]
    assert list(read_epochs(log.directory).entries) == [(0, 0), (1, 12), (3, 48)]
    log.settle_epochs()
    assert read_epochs(log.directory) == log.epochs
    log.truncate(84)  # the log is not longer
    assert list(log.epochs.entries) == [(0, 0), (1, 12), (3, 48)]
    log.begin_epoch(5, 48)  # an epoch without messages gives way
    assert list(log.epochs.entries) == [(0, 0), (1, 12), (5, 48)]
    log.flush()
    log.advance_high_watermark(84)
    for segment in log.prepare_removal(lambda segments: 1):
        log.remove(segment)
    assert log.log_start_offset == 36
    assert list(log.epochs.entries) == [(1, 12), (5, 48)]


def test_append_when_an_epoch_has_begun_then_it_is_durable_before_the_message(
    make_log: LogFactory, faulty_disk: FaultyDisk
) -> None:
    log = filled(make_log, 1, disk=faulty_disk.as_disk())
    log.begin_epoch(3, 12)
    assert read_epochs(log.directory) == LeaderEpochs()
    faulty_disk.room_bytes = 0
    with pytest.raises(StorageError):
        copy(log, TWELVE_BYTES, 12)
    assert read_epochs(log.directory) == LeaderEpochs((EpochStart(3, 12),))


def test_settle_epochs_when_the_disk_refuses_then_the_log_is_faulty_until_it_takes_them(
    make_log: LogFactory,
) -> None:
    log = filled(make_log, 1)
    log.begin_epoch(3, 12)
    blocker = log.directory / f"{EPOCH_FILE_NAME}.tmp"
    blocker.mkdir()
    log.settle_epochs()
    assert log.failures()
    with pytest.raises(StorageError):
        log.append(TWELVE_BYTES, 1)
    blocker.rmdir()
    log.retry_refused()
    assert log.failures() == []
    assert read_epochs(log.directory) == log.epochs


@pytest.mark.parametrize(
    "content", ["", "1\n0\n", "0\n2\n0 0\n", "0\n1\n0 0", "0\n2\n1 5\n0 9\n", "0\n1\nx 0\n"]
)
def test_read_epochs_when_damaged_then_there_are_none(tmp_path: Path, content: str) -> None:
    (tmp_path / EPOCH_FILE_NAME).write_text(content)
    assert read_epochs(tmp_path) == LeaderEpochs()


def test_read_epochs_when_written_then_the_format_of_later_kafka(tmp_path: Path) -> None:
    EpochFile(tmp_path).replace(LeaderEpochs((EpochStart(2, 100),)))
    assert (tmp_path / EPOCH_FILE_NAME).read_text() == "0\n1\n2 100\n"
    assert read_epochs(tmp_path) == LeaderEpochs((EpochStart(2, 100),))
