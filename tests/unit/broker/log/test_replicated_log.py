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
from broker.log.format import BATCHES
from broker.log.log import Log
from broker.log.recovery import list_segments, recover
from broker.log.replica_files import EPOCH_FILE_NAME, EpochFile, read_epochs
from broker.protocol.codec import NEW_BATCH, Record, encode, encode_batch
from broker.protocol.primitives import Buffer
from broker.topic import NO_HOME
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import LogFactory
from tests.support.log_formats import FormatExample, bytes_of, read_values


def replicated(log: Log) -> Log:
    log.replicate(EpochFile(log.directory))
    return log


def filled(make_log: LogFactory, count: int, log_format: FormatExample, **settings: object) -> Log:
    """Return a log with a segment for each three messages."""
    log = replicated(make_log(segment_bytes=5 * log_format.size // 2, **settings))
    for _ in range(count):
        log.append(log_format.one, 1)
    return log


def on_disk(log: Log) -> dict[int, int]:
    """Return base offset and size of each segment on disk."""
    found = {log.format.base_offset_of(path.name): path for path in log.directory.iterdir()}
    return {
        base: found[base].stat().st_size for base in sorted(one for one in found if one is not None)
    }


def copy(log: Log, chunk: Buffer, offset: int) -> None:
    log.append_copied(log.format.copied(chunk, log.partition, offset), offset)


def refusal() -> NotLeaderError:
    return NotLeaderError("led elsewhere", 2)


def test_append_when_replicated_then_visible_and_committed_only_up_to_the_high_watermark_set(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = replicated(make_log())
    step = log_format.step
    log.append(log_format.one * 2, 2)
    log.flush()
    assert (log.high_watermark, log.flushed_offset) == (0, 2 * step)
    log.advance_high_watermark(step)
    assert log.high_watermark == step
    assert log.read(0, 100) is not None
    found = log.read(step, 100, to_log_end=True)
    assert found is not None and found.length == log_format.size
    assert log.read(2 * step, 100) is None  # a reader may know of a later high watermark
    with pytest.raises(OffsetOutOfRangeError):
        log.read(2 * step + 1, 100)


def test_advance_high_watermark_when_beyond_the_end_then_at_the_end_and_told_once(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 1, log_format)
    seen: list[int] = []
    log.add_listener(lambda: seen.append(log.high_watermark))
    log.advance_high_watermark(100)
    log.advance_high_watermark(100)
    assert seen == [log_format.step]


def test_append_when_replicated_then_append_listeners_are_told_and_others_are_not(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = replicated(make_log(flush_before_read=False))
    told: list[str] = []
    log.append_listeners.add_listener(lambda: told.append("append"))
    log.add_listener(lambda: told.append("high watermark"))
    log.append(log_format.one, 1)
    assert told == ["append"]


def test_append_when_refused_then_not_written_until_appends_are_accepted(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 1, log_format)
    log.refuse_appends(refusal)
    with pytest.raises(NotLeaderError) as caught:
        log.append(log_format.one, 1)
    assert caught.value.leader == 2
    assert log.log_end_offset == log_format.step
    log.accept_appends()
    assert log.append(log_format.one, 1).base_offset == log_format.step


def test_append_copied_when_the_last_entry_is_cut_then_it_is_left_out(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = replicated(make_log())
    log.refuse_appends(refusal)
    one, end = log_format.one, 2 * log_format.step
    copy(log, log_format.at(0, one * 2) + log_format.at(end, one)[:7], 0)
    copy(log, log_format.at(end, one)[:7], end)
    assert read_values(log, to_log_end=True) == [b"ab"] * 2


def test_append_copied_when_the_leader_wrote_it_long_ago_then_its_age_counts_from_then(
    make_log: LogFactory, clock: FakeClock
) -> None:
    log = replicated(make_log())
    then_ms = clock.time_ms() - 9_000_000
    # the last two when it is in sync
    for at, appended_ms in enumerate((then_ms, then_ms + 1, None, None)):
        entries = log.format.copied(encode([b"ab"]), log.partition, 12 * at)
        log.append_copied(entries, 12 * at, appended_ms)
    assert on_disk(log) == {0: 24, 24: 24}
    old, young = log.segments.all
    assert (old.modified_ms, young.modified_ms) == (then_ms + 1, clock.time_ms())
    assert old.path.stat().st_mtime_ns == (then_ms + 1) * 1_000_000


def test_append_copied_when_damaged_then_nothing_is_written(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = replicated(make_log())
    damaged = bytearray(log_format.at(0, log_format.one * 2))
    damaged[-1] ^= 1
    with pytest.raises(InvalidMessageError, match=f"at offset {log_format.step} came"):
        copy(log, damaged, 0)
    assert log.log_end_offset == 0


BATCH = encode_batch([Record(offset, 1, None, b"ab") for offset in range(4)])
NEXT_BATCH = encode_batch([Record(4, 1, None, b"yz")], NEW_BATCH._replace(base_offset=4))


def begun_inside_a_batch(make_log: LogFactory) -> Log:
    """The log of a follower whose leader has deleted the records before offset 2."""
    log = replicated(make_log(home=NO_HOME))
    log.restart_at(2)
    log.append_copied(BATCHES.copied(BATCH + NEXT_BATCH, log.partition, 2), 2)
    return log


def test_append_copied_when_the_leader_starts_inside_a_batch_then_so_does_the_log(
    make_log: LogFactory,
) -> None:
    log = begun_inside_a_batch(make_log)

    assert (log.log_start_offset, log.log_end_offset) == (2, 5)
    found = log.read(2, 1 << 20, to_log_end=True)
    assert found is not None
    assert os.pread(found.file.fd, found.length, found.position) == BATCH + NEXT_BATCH
    with pytest.raises(OffsetOutOfRangeError):
        log.read(1, 1 << 20, to_log_end=True)


@pytest.mark.parametrize("kept_bytes", [0, len(BATCH) - 1])
def test_open_when_the_batch_that_holds_the_start_is_lost_then_the_log_is_empty_there(
    make_log: LogFactory, kept_bytes: int
) -> None:
    log = begun_inside_a_batch(make_log)
    os.truncate(log.segments.all[0].path, kept_bytes)
    segments = list_segments(log.directory, BATCHES)
    recover(log.partition, segments, recovery_point=0, time_ms=0, has_copies=True)

    log = replicated(make_log(home=NO_HOME))
    assert log.log_start_offset == log.log_end_offset == 2
    log.append_copied(BATCHES.copied(BATCH, log.partition, 2), 2)
    assert (log.log_start_offset, log.log_end_offset) == (2, 4)


def test_append_copied_when_a_batch_begins_before_the_end_then_refused(
    make_log: LogFactory,
) -> None:
    log = replicated(make_log(home=NO_HOME))
    log.append_copied(BATCHES.copied(BATCH, log.partition, 0), 0)
    other = encode_batch(
        [Record(3 + n, 1, None, b"ab") for n in range(3)], NEW_BATCH._replace(base_offset=3)
    )

    with pytest.raises(InvalidMessageError, match="of offset 3, where 4 is the next one"):
        log.append_copied(BATCHES.copied(other, log.partition, 4), 4)
    assert log.log_end_offset == 4


def test_append_copied_when_the_log_ends_elsewhere_then_refused(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = filled(make_log, 1, log_format)
    step = log_format.step
    with pytest.raises(OffsetOutOfRangeError, match=f"ends at offset {step}, not at {2 * step}"):
        copy(log, log_format.at(2 * step, log_format.one), 2 * step)
    assert read_values(log, to_log_end=True) == [b"ab"]


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 6])
def test_truncate_when_log_has_several_segments_then_what_is_before_stays_and_it_goes_on(
    make_log: LogFactory, log_format: FormatExample, count: int
) -> None:
    log, offset = filled(make_log, 6, log_format), count * log_format.step
    assert len(log.segments.all) > 1
    log.flush()
    log.truncate(offset)
    assert log.log_end_offset == offset
    copy(log, log_format.at(offset, log_format.set_of(b"yz")), offset)
    log.flush()
    expected = [b"ab"] * count + [b"yz"]
    assert read_values(log, to_log_end=True) == expected
    assert log.flushed_offset == offset + log_format.step
    bases = [one.base_offset for one in log.segments.all]
    assert list(on_disk(log)) == bases
    assert bases[1:] == [one.next_offset for one in log.segments.all[:-1]]
    log.close()
    assert read_values(make_log()) == expected


def test_truncate_when_readers_hold_what_is_cut_then_they_never_see_what_is_written_there(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log, other = replicated(make_log()), log_format.set_of(b"yz")
    log.append(log_format.one * 3, 3)
    held = log.read(log_format.step, 2 * log_format.size, to_log_end=True)
    assert held is not None and held.length == 2 * log_format.size
    log.truncate(log_format.step)
    log.append(other * 2, 2)
    assert bytes_of(held) == b""
    log.restart_at(0)
    log.append(other, 1)
    assert read_values(log, to_log_end=True) == [b"yz"]


def test_truncate_when_a_slice_of_it_was_not_sent_then_its_segment_is_not_called_unreadable(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = replicated(make_log())
    log.append(log_format.one * 3, 3)
    held = log.read(0, 3 * log_format.size, to_log_end=True)
    assert held is not None
    log.truncate(log_format.step)
    log.append(log_format.set_of(b"yz"), 1)
    assert log.segments.note_unreadable(held, log_format.size) is not None
    assert log.failures() == []
    assert read_values(log, to_log_end=True) == [b"ab", b"yz"]


def test_truncate_when_below_offsets_then_high_watermark_and_flushed_offset_are_at_the_end(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 4, log_format)
    log.flush()
    end = 2 * log_format.step
    log.advance_high_watermark(2 * end)
    log.truncate(end)
    assert (log.high_watermark, log.flushed_offset, log.log_end_offset) == (end, end, end)
    log.append(log_format.one, 1)
    assert (log.high_watermark, log.flushed_offset) == (end, end)


def test_truncate_when_what_is_left_is_unflushed_then_a_flush_makes_it_durable(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = filled(make_log, 6, log_format, disk=faulty_disk.as_disk())
    log.truncate(4 * log_format.step)
    log.flush()
    assert log.flushed_offset == 4 * log_format.step
    synced = faulty_disk.synced_sizes
    statuses = [one.path.stat() for one in log.segments.all if one.size]
    assert all(synced.get(one.st_ino) == one.st_size for one in statuses)


def test_truncate_when_before_the_start_then_refused(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = filled(make_log, 1, log_format)
    log.restart_at(2 * log_format.step)
    with pytest.raises(OffsetOutOfRangeError):
        log.truncate(log_format.step)
    assert log.log_start_offset == 2 * log_format.step


def test_truncate_when_it_must_lower_a_recovery_point_then_that_is_told_before_anything_is_cut(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 2, log_format)
    log.flush()
    seen: list[tuple[int, dict[int, int]]] = []
    log._note_truncation = lambda: seen.append((log.flushed_offset, on_disk(log)))
    log.truncate(log_format.step)
    assert seen == [(log_format.step, {0: 2 * log_format.size})]


def test_truncate_when_the_disk_refuses_then_the_log_fails(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = filled(make_log, 2, log_format, disk=faulty_disk.as_disk())
    faulty_disk.truncate_errno = errno.EIO
    with pytest.raises(StorageError, match="cannot truncate"):
        log.truncate(log_format.step)
    with pytest.raises(StorageError):
        log.append(log_format.one, 1)


def test_restart_at_when_log_has_messages_then_it_is_empty_there_without_epochs(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 6, log_format)
    log.begin_epoch(3, 0)
    log.restart_at(1000)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1000, 1000, 1000)
    assert list(log.epochs.entries) == []
    assert on_disk(log) == {1000: 0}
    copy(log, log_format.at(1000, log_format.one), 1000)
    log.flush()
    assert log.flushed_offset == 1000 + log_format.step


def test_restart_at_when_log_is_empty_there_then_only_its_epochs_are_gone_before_the_first_message(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 0, log_format)
    log.begin_epoch(3, 0)
    log.settle_epochs()
    log._note_truncation = lambda: pytest.fail("nothing is truncated")
    log.restart_at(0)
    assert list(log.epochs.entries) == []
    copy(log, log_format.at(0, log_format.one), 0)
    assert list(read_epochs(log.directory).entries) == []
    log.flush()
    assert read_values(log, to_log_end=True) == [b"ab"]
    assert on_disk(log) == {0: log_format.size}


def test_prepare_removal_when_segments_are_above_the_high_watermark_then_they_are_kept(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 7, log_format)
    step, size = log_format.step, log_format.size
    assert on_disk(log) == {0: 3 * size, 3 * step: 3 * size, 6 * step: size}
    log.flush()
    assert log.prepare_removal(len) == ()
    log.advance_high_watermark(3 * step)
    removable = log.prepare_removal(len)
    assert [one.base_offset for one in removable] == [0]
    log.truncate(step)
    log.remove(removable[0])  # it is another segment now
    assert read_values(log, to_log_end=True) == [b"ab"]


def test_epochs_when_begun_truncated_and_removed_by_retention_then_as_the_rules_say(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 7, log_format)
    step = log_format.step
    log.begin_epoch(0, 0)
    log.begin_epoch(1, step)
    log.begin_epoch(3, 4 * step)
    log.begin_epoch(4, 7 * step)
    assert list(log.epochs.entries) == [(0, 0), (1, step), (3, 4 * step), (4, 7 * step)]
    assert list(read_epochs(log.directory).entries) == [(0, 0), (1, step), (3, 4 * step)]
    log.settle_epochs()
    assert read_epochs(log.directory) == log.epochs
    log.truncate(7 * step)  # the log is not longer
    assert list(log.epochs.entries) == [(0, 0), (1, step), (3, 4 * step)]
    log.begin_epoch(5, 4 * step)  # an epoch without messages gives way
    assert list(log.epochs.entries) == [(0, 0), (1, step), (5, 4 * step)]
    log.flush()
    log.advance_high_watermark(7 * step)
    for segment in log.prepare_removal(lambda segments: 1):
        log.remove(segment)
    assert log.log_start_offset == 3 * step
    assert list(log.epochs.entries) == [(1, step), (5, 4 * step)]


def test_append_when_an_epoch_has_begun_then_it_is_durable_before_the_message(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = filled(make_log, 1, log_format, disk=faulty_disk.as_disk())
    log.begin_epoch(3, log_format.step)
    assert read_epochs(log.directory) == LeaderEpochs()
    faulty_disk.room_bytes = 0
    with pytest.raises(StorageError):
        copy(log, log_format.at(log_format.step, log_format.one), log_format.step)
    assert read_epochs(log.directory) == LeaderEpochs((EpochStart(3, log_format.step),))


def test_settle_epochs_when_the_disk_refuses_then_the_log_is_faulty_until_it_takes_them(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = filled(make_log, 1, log_format)
    log.begin_epoch(3, log_format.step)
    blocker = log.directory / f"{EPOCH_FILE_NAME}.tmp"
    blocker.mkdir()
    log.settle_epochs()
    assert log.failures()
    with pytest.raises(StorageError):
        log.append(log_format.one, 1)
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
