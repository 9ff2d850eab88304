from __future__ import annotations

import errno
import os
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from broker.errors import OffsetOutOfRangeError, ShuttingDownError, StorageError
from broker.log.format import BATCHES
from broker.log.log import Log
from broker.log.segment import Segment, SegmentFile, SegmentFiles
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import wrap
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk, RecordingSchedule
from tests.support.log_fixtures import LogFactory
from tests.support.log_formats import (
    FormatExample,
    bytes_of,
    messages_in,
    read_messages,
    read_values,
    set_of,
)


def segment_files(log: Log) -> dict[int, int]:
    """Return base offset and size of each segment on disk."""
    found = {log.format.base_offset_of(path.name): path for path in log.directory.iterdir()}
    return {base: path.stat().st_size for base, path in found.items() if base is not None}


def message_of(log_format: FormatExample, clock: FakeClock) -> bytes:
    """Return a set of one message of now."""
    return set_of(log_format.format, [b"ab"], time_ms=clock.time_ms())


def test_append_when_flushed_then_readable(make_log: LogFactory, log_format: FormatExample) -> None:
    log = make_log()
    assert log.append(log_format.one, 1) == (0, log_format.step)
    log.flush()
    assert read_messages(log) == [(0, b"ab")]


def test_append_when_repeated_then_each_set_is_behind_the_one_before(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    step, size = log_format.step, log_format.size
    found = [log.append(log_format.one, 1) for _ in range(3)]
    assert found == [(0, step), (step, 2 * step), (2 * step, 3 * step)]
    assert (log.log_end_offset, log.size_bytes) == (3 * step, 3 * size)
    assert log.appended_message_count == 3


def test_append_when_set_is_empty_then_nothing_happens(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule
) -> None:
    log = make_log()
    log.append(log_format.one, 1)
    asked = len(schedule.due_s)
    assert log.append(b"", 0) == (log_format.step, log_format.step)
    assert log.log_end_offset == log_format.step
    assert len(schedule.due_s) == asked


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_append_when_given_any_buffer_then_its_bytes_are_stored(
    make_log: LogFactory, log_format: FormatExample, kind: type
) -> None:
    log = make_log()
    log.append(kind(log_format.one), 1)
    log.flush()
    assert read_messages(log) == [(0, b"ab")]


def test_append_when_over_segment_bytes_then_rolls_before_the_next(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    step, size = log_format.step, log_format.size
    log = make_log(segment_bytes=8 * size + 1)
    for _ in range(20):
        log.append(log_format.one, 1)
    assert segment_files(log) == {0: 9 * size, 9 * step: 9 * size, 18 * step: 2 * size}


def test_append_when_size_equals_segment_bytes_then_does_not_roll(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log(segment_bytes=log_format.size)
    log.append(log_format.one, 1)
    log.append(log_format.one, 1)
    assert len(log.segments.all) == 1


def test_append_when_one_set_exceeds_the_segment_then_it_is_not_split(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log(segment_bytes=10)
    log.append(log_format.one * 5, 5)
    assert segment_files(log) == {0: 5 * log_format.size}


def test_append_when_segment_is_older_than_roll_time_then_rolls(
    make_log: LogFactory, log_format: FormatExample, clock: FakeClock
) -> None:
    log = make_log(roll_ms=1000)
    log.append(message_of(log_format, clock), 1)
    clock.advance(1)
    log.append(message_of(log_format, clock), 1)
    size = log_format.size
    assert [one.size for one in log.segments.all] == [2 * size]
    clock.advance(1)
    log.append(message_of(log_format, clock), 1)
    assert [one.size for one in log.segments.all] == [2 * size, size]
    assert log.active_since_ms == clock.time_ms()


def test_append_when_the_clock_went_back_then_no_start_by_time_is_too_late(
    make_log: LogFactory, clock: FakeClock
) -> None:
    log, entry = make_log(), encode([b"ab"])
    log.append(entry, 1)
    clock.advance(100)
    log.append(entry, 1)
    former_ms = clock.time_ms()
    clock.jump(-3600)
    log.append(entry, 1)
    log.flush()
    assert [one.size for one in log.segments.all] == [24, 12]
    assert log.offsets_before(clock.time_ms(), 10) == []
    assert log.offsets_before(former_ms - 1, 10) == []
    assert log.offsets_before(former_ms, 10) == [36, 24, 0]


def test_append_when_reopened_with_active_since_then_age_counts_from_there(
    make_log: LogFactory, log_format: FormatExample, clock: FakeClock
) -> None:
    first = make_log(roll_ms=1000)
    first.append(message_of(log_format, clock), 1)
    since_ms = first.active_since_ms
    first.close()
    clock.advance(2)
    log = make_log(roll_ms=1000, active_since_ms=since_ms)
    log.append(message_of(log_format, clock), 1)
    assert len(log.segments.all) == 2


def test_read_when_not_flushed_then_invisible_and_out_of_range(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    log.append(log_format.one, 1)
    assert log.read(0, 100) is None
    with pytest.raises(OffsetOutOfRangeError, match=rf"offset {log_format.step} of events\["):
        log.read(log_format.step, 100)


def test_append_when_flush_need_not_come_before_reads_then_readable_at_once_and_told(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule
) -> None:
    log = make_log(flush_before_read=False)
    seen: list[tuple[int, int]] = []
    log.add_listener(lambda: seen.append((log.high_watermark, log.flushed_offset)))
    log.append(log_format.one, 1)
    assert read_values(log) == [b"ab"]
    assert schedule.due_s  # it is flushed all the same, when it is due
    log.flush()
    assert seen == [(log_format.step, 0), (log_format.step, log_format.step)]


@pytest.mark.parametrize("is_before", [True, False])
def test_read_when_outside_then_out_of_range(
    make_log: LogFactory, log_format: FormatExample, is_before: bool
) -> None:
    log = make_log()
    log.append(log_format.one * 2, 2)
    log.flush()
    with pytest.raises(OffsetOutOfRangeError):
        log.read(-1 if is_before else 2 * log_format.step + 1, 100)


def test_read_when_inside_a_message_then_bytes_from_there(make_log: LogFactory) -> None:
    log, entry = make_log(), encode([b"ab"])
    log.append(entry, 1)
    log.flush()
    found = log.read(5, 3)
    assert found is not None
    assert bytes_of(found) == entry[5:8]


@pytest.mark.parametrize("log_format", ["kafka"], indirect=True)
def test_read_when_inside_a_batch_then_the_whole_batch(make_log: LogFactory) -> None:
    log = make_log()
    log.append(set_of(BATCHES, [b"a", b"b", b"c"]), 3)
    log.flush()
    found = log.read(2, 100)
    assert found is not None
    assert messages_in(BATCHES, bytes_of(found)) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.read(3, 100) is None


def test_read_when_segment_ends_then_slice_ends_too(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log(segment_bytes=10)
    for _ in range(3):
        log.append(log_format.one, 1)
    log.flush()
    for number in range(3):
        found = log.read(number * log_format.step, 1 << 20)
        assert found is not None
        assert messages_in(log.format, bytes_of(found), number * log_format.step) == [
            (number * log_format.step, b"ab")
        ]
    assert log.read(3 * log_format.step, 100) is None


def test_read_when_rolled_but_unflushed_then_old_segment_shows_flushed_part(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(log_format.one, 1)
    log.flush()
    log.append(log_format.one, 1)
    log.append(log_format.one, 1)
    assert read_values(log) == [b"ab"]
    assert log.read(log_format.step, 100) is None


def test_flush_when_segments_rolled_then_old_files_are_synced_first(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk(), segment_bytes=10)
    for _ in range(3):
        log.append(log_format.one, 1)
    assert faulty_disk.synced_fds == []
    log.flush()
    assert len(faulty_disk.synced_fds) == 3
    assert log.segments.all[-1].file is not None
    assert faulty_disk.synced_fds[-1] == log.segments.all[-1].file.fd
    assert log.high_watermark == 3 * log_format.step


def test_flush_when_nothing_is_unflushed_then_no_sync(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    log.append(log_format.one, 1)
    log.flush()
    log.flush()
    assert len(faulty_disk.synced_fds) == 1


def test_flush_when_only_an_empty_wrapper_is_unflushed_then_its_bytes_count(
    make_log: LogFactory,
) -> None:
    entry = encode([b"ab"])
    log = make_log(segment_bytes=1)
    wrapper = wrap(entry, Codec.GZIP)
    log.append(wrapper, 0)
    log.append(entry, 1)
    log.flush()
    assert log.high_watermark == len(wrapper) + 12
    assert log.segments.all[1].base_offset == len(wrapper)


def test_append_when_first_unflushed_then_flush_is_due_after_the_interval(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log(flush_interval_ms=250)
    log.append(log_format.one, 1)
    log.append(log_format.one, 1)
    assert schedule.due_s == [clock.monotonic_s() + 0.25]


def test_append_when_message_count_is_reached_then_flush_is_due_at_once(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log(flush_interval_messages=3)
    log.append(log_format.one, 2)
    log.append(log_format.one, 1)
    assert schedule.due_s[-1] == clock.monotonic_s()


def test_append_when_flushed_before_then_count_starts_again(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log(flush_interval_messages=3)
    log.append(log_format.one, 2)
    log.flush()
    log.append(log_format.one, 2)
    assert schedule.due_s[-1] > clock.monotonic_s()


def test_append_of_nothing_when_all_is_flushed_then_no_flush_is_asked_for(
    make_log: LogFactory, schedule: RecordingSchedule
) -> None:
    log = make_log()
    log.append(b"", 0, flush_now=True)
    assert schedule.due_s == []


def test_append_of_nothing_when_unflushed_then_a_flush_is_due_now(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log()
    log.append(log_format.one, 1)
    log.append(b"", 0, flush_now=True)
    assert schedule.due_s[-1] == clock.monotonic_s()


def test_append_when_it_is_to_be_flushed_now_then_that_is_asked_for_once(
    make_log: LogFactory, log_format: FormatExample, schedule: RecordingSchedule, clock: FakeClock
) -> None:
    log = make_log()
    log.append(log_format.one, 1, flush_now=True)
    assert schedule.due_s == [clock.monotonic_s()]


def test_listener_when_high_watermark_advances_then_sees_the_new_one(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    seen: list[int] = []
    listener = lambda: seen.append(log.high_watermark)  # noqa: E731 - needs one identity to remove
    log.add_listener(listener)
    log.append(log_format.one, 1)
    log.flush()
    log.remove_listener(listener)
    log.append(log_format.one, 1)
    log.flush()
    assert seen == [log_format.step]


def test_listener_when_added_twice_and_removed_once_then_still_called(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    calls: list[int] = []
    listener = lambda: calls.append(1)  # noqa: E731 - needs one identity to remove
    log.add_listener(listener)
    log.add_listener(listener)
    log.remove_listener(listener)
    log.append(log_format.one, 1)
    log.flush()
    assert calls == [1]


def test_listener_when_added_from_an_offset_then_called_from_there_on_and_when_closed(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = make_log()
    seen: list[int] = []
    listener = lambda: seen.append(log.high_watermark)  # noqa: E731 - needs one identity to remove
    log.add_listener(listener, 2 * log_format.step)
    for _ in range(3):
        log.append(log_format.one, 1)
        log.flush()
    step = log_format.step
    assert seen == [2 * step, 3 * step]
    log.close()
    assert seen == [2 * step, 3 * step, 3 * step]
    log.remove_listener(listener, 2 * log_format.step)
    log.close()
    assert seen == [2 * step, 3 * step, 3 * step]


def test_listener_when_one_raises_then_the_others_are_called(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    calls: list[int] = []

    def fail() -> None:
        raise RuntimeError("a bug in a listener")

    log.add_listener(fail)
    log.add_listener(lambda: calls.append(1))
    log.append(log_format.one, 1)
    log.flush()
    assert calls == [1]


def test_append_when_writes_are_short_then_every_byte_arrives_once(
    make_log: LogFactory, faulty_disk: FaultyDisk, log_format: FormatExample
) -> None:
    faulty_disk.chunk_bytes = 5
    log = make_log(disk=faulty_disk.as_disk())
    values = [b"first", b"second", b"third"]
    message_set = log_format.set_of(*values)
    log.append(message_set, 3)
    log.append(message_set, 3)
    log.flush()
    assert read_values(log) == values * 2


def test_append_when_disk_is_full_then_file_is_cut_and_log_stays_usable(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    log.append(log_format.one, 1)
    faulty_disk.room_bytes = 5
    with pytest.raises(StorageError, match=r"cannot append events.* at offset .*No space"):
        log.append(log_format.one, 1)
    assert segment_files(log) == {0: log_format.size}
    assert log.failure is None
    faulty_disk.room_bytes = None
    assert log.append(log_format.one, 1).base_offset == log_format.step
    log.flush()
    assert read_values(log) == [b"ab"] * 2


def test_append_when_write_and_cut_fail_then_log_is_failed_and_listeners_are_called(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    calls: list[int] = []
    log.add_listener(lambda: calls.append(1))
    faulty_disk.room_bytes, faulty_disk.truncate_errno = 5, errno.EIO
    with pytest.raises(StorageError):
        log.append(log_format.one, 1)
    faulty_disk.room_bytes = None
    with pytest.raises(StorageError, match="undo a failed append"):
        log.append(log_format.one, 1)
    assert log.failure is not None
    assert calls == [1]


def test_flush_when_sync_fails_then_failed_for_good_and_nothing_becomes_visible(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    log.append(log_format.one, 1)
    log.flush()
    calls: list[int] = []
    log.add_listener(lambda: calls.append(1))
    log.append(log_format.one, 1)
    faulty_disk.sync_errno = errno.EIO
    with pytest.raises(StorageError, match="cannot flush"):
        log.flush()
    faulty_disk.sync_errno = 0
    with pytest.raises(StorageError):
        log.flush()
    with pytest.raises(StorageError):
        log.append(log_format.one, 1)
    assert log.high_watermark == log_format.step
    assert read_values(log) == [b"ab"]
    assert calls == [1]


def test_append_when_segment_cannot_be_made_then_storage_error_and_old_one_stays(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(log_format.one, 1)
    blocker = log.directory / log.format.segment_name(log_format.step)
    blocker.mkdir()
    with pytest.raises(StorageError, match="cannot start a segment"):
        log.append(log_format.one, 1)
    assert log.log_end_offset == log_format.step
    blocker.rmdir()
    assert log.append(log_format.one, 1).base_offset == log_format.step


def test_close_when_unflushed_then_flushes_wakes_and_refuses_appends(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    calls: list[int] = []
    log.add_listener(lambda: calls.append(log.high_watermark))
    log.append(log_format.one, 1)
    log.close()
    assert calls[-1] == log_format.step
    with pytest.raises(ShuttingDownError):
        log.append(log_format.one, 1)


def test_reopen_when_closed_then_goes_on_at_the_end(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    first = make_log(segment_bytes=10)
    for _ in range(3):
        first.append(log_format.one, 1)
    first.close()
    log = make_log(segment_bytes=10)
    end = 3 * log_format.step
    assert (log.log_start_offset, log.high_watermark, len(log.segments.all)) == (0, end, 3)
    assert log.append(log_format.one, 1).base_offset == end


def test_read_when_reopened_then_no_descriptor_is_open_until_read(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    first = make_log(segment_bytes=10)
    for _ in range(3):
        first.append(log_format.one, 1)
    first.close()
    log = make_log(segment_bytes=10)
    assert open_files_below(log.directory) == []
    assert log.read(log_format.step, 100) is not None
    assert len(open_files_below(log.directory)) == 1


def open_files_below(directory: Path) -> list[Path]:
    found = []
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # it was closed meanwhile
            found.append(descriptor.readlink())
    return [path for path in found if path.is_relative_to(directory)]


def test_append_when_many_threads_then_every_set_is_whole_and_counted(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log, step = make_log(segment_bytes=1000), log_format.step
    offsets: list[int] = []

    def work(text: bytes) -> None:
        message_set = log_format.set_of(text)
        offsets.extend(log.append(message_set, 1).base_offset for _ in range(100))

    threads = [threading.Thread(target=work, args=(b"%02d" % n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.flush()
    found = read_messages(log)
    assert sorted(offsets) == [one.offset for one in found] == [*range(0, 400 * step, step)]
    assert log.appended_message_count == 400
    assert sorted(one.value for one in found) == [b"%02d" % n for n in range(4) for _ in range(100)]


def test_read_when_retention_removes_the_segment_meanwhile_then_out_of_range(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    class FilesOfRemovedSegments(SegmentFiles):
        """Removes each segment just before its file is opened."""

        def get(self, segment: Segment) -> SegmentFile:
            log.remove(segment)
            return super().get(segment)

    log = make_log(segment_bytes=10, files=FilesOfRemovedSegments())
    log.append(log_format.one, 1)
    log.append(log_format.one, 1)
    log.flush()

    with pytest.raises(OffsetOutOfRangeError, match="was just removed"):
        log.read(0, 100)


def test_read_when_the_file_was_removed_by_another_program_then_storage_error(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(log_format.one, 1)
    log.close()
    log.segments.all[0].path.unlink()
    with pytest.raises(StorageError, match=r"cannot read events\[.*\]: .*No such file"):
        log.read(0, 100)


def has_open_file(log: Log) -> bool:
    return log.segments.all[-1].file is not None


def test_release_file_when_all_is_flushed_then_closed_until_the_next_append(
    make_log: LogFactory,
    log_format: FormatExample,
) -> None:
    log = make_log()
    log.append(log_format.one, 1)
    assert not log.release_file(may_flush=False)
    log.flush()
    assert log.release_file(may_flush=False)
    assert not has_open_file(log)
    log.append(log_format.one, 1)
    assert has_open_file(log)
    assert log.release_file(may_flush=True)
    assert read_values(log) == [b"ab"] * 2


def test_flush_when_out_of_descriptors_then_flushed_later_and_appends_go_on(
    make_log: LogFactory,
    log_format: FormatExample,
    monkeypatch: pytest.MonkeyPatch,
    schedule: RecordingSchedule,
) -> None:
    log = make_log(segment_bytes=10)

    def refuse(_directory: Path) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    log.append(log_format.one, 1)
    log.append(log_format.one, 1)
    asked = len(schedule.due_s)
    with monkeypatch.context() as patch:
        patch.setattr("broker.log.log_parts.sync_directory", refuse)
        with pytest.raises(StorageError, match="raise the limit on open files"):
            log.flush()
    assert (log.failure, log.high_watermark) == (None, 0)
    assert len(schedule.due_s) == asked + 1
    log.append(log_format.one, 1)
    log.flush()
    assert log.high_watermark == 3 * log_format.step


def test_failures_when_the_disk_is_full_then_told_without_holding_the_messages(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    faulty_disk.room_bytes = 5
    with pytest.raises(StorageError):
        log.append(log_format.one, 1)
    (failure,) = log.failures()
    assert "No space left on device" in str(failure)
    assert (failure.__traceback__, failure.__cause__, failure.__context__) == (None, None, None)
    faulty_disk.room_bytes = None
    log.append(log_format.one, 1)
    assert log.failures() == []


def test_retry_when_the_disk_was_full_then_takes_messages_again_once_there_is_room(
    make_log: LogFactory, log_format: FormatExample, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    log.append(log_format.one, 1)
    faulty_disk.room_bytes = 5
    with pytest.raises(StorageError):
        log.append(log_format.one, 1)
    assert [one.state for one in log.failures()] == ["full"]
    with pytest.raises(StorageError):
        log.retry_refused()
    assert len(log.failures()) == 1
    faulty_disk.room_bytes = None
    log.retry_refused()
    assert not log.is_faulty
    assert segment_files(log) == {0: log_format.size}
