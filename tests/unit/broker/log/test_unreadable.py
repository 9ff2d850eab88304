"""What a log gives of a segment that cannot be read; `/proc/self/mem` fails as a bad disk does."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from broker.errors import StorageError
from broker.log.format import ENTRIES
from broker.log.log import Log
from broker.log.segment import FileSlice, SegmentFile
from tests.doubles import FakeClock
from tests.support.log_fixtures import LogFactory
from tests.support.log_formats import FormatExample


@pytest.fixture
def log(make_log: LogFactory, log_format: FormatExample) -> Log:
    """Two segments of three messages each."""
    log = make_log(segment_bytes=3 * log_format.size - 1)
    for _ in range(2):
        log.append(log_format.one * 3, 3)
    log.flush()
    return log


def read(log: Log, offset: int) -> FileSlice:
    found = log.read(offset, 1 << 20)
    assert found is not None
    return found


def cut_first_segment(log: Log, size: int) -> StorageError:
    """Cut the first segment behind the log's back, and note what a reader meets there."""
    os.truncate(log.segments.all[0].path, size)
    error = log.segments.note_unreadable(read(log, 0), size)
    assert error is not None
    return error


@pytest.mark.parametrize("lost_bytes", range(1, 13))
def test_read_when_a_file_became_shorter_then_whole_messages_before_it_and_an_error_behind(
    log: Log, log_format: FormatExample, lost_bytes: int
) -> None:
    step, size = log_format.step, log_format.size
    at = 3 * size - lost_bytes
    error = cut_first_segment(log, at)
    offset = at if log.format is ENTRIES else 2
    path = log.segments.all[0].path
    assert f"cannot read {log.partition} at offset {offset}: {path}: " in str(error)
    assert read(log, 0).length == read(log, step).length + size == 2 * size
    for offset in (2 * step, 3 * step - 1):
        with pytest.raises(StorageError) as raised:
            log.read(offset, 1 << 20)
        assert str(raised.value) == str(error)
    assert read(log, 3 * step).length == 3 * size
    assert list(map(str, log.failures())) == [str(error)]
    # a traceback would hold the frames of every read
    assert [one.__traceback__ for one in log.failures()] == [None]


def test_read_when_the_message_is_larger_than_a_block_then_nothing_of_it(
    make_log: LogFactory, log_format: FormatExample
) -> None:
    log = make_log()
    large = log_format.set_of(b"x" * (3 << 20))
    log.append(log_format.one + large, 2)
    log.flush()
    os.truncate(log.segments.all[0].path, len(large) - 5)
    log.segments.note_unreadable(read(log, 0), len(large) - 5)
    assert read(log, 0).length == log_format.size


def test_note_unreadable_when_the_disk_fails_then_the_reason_is_in_error_and_log(
    log: Log, log_format: FormatExample, caplog: pytest.LogCaptureFixture
) -> None:
    found = read(log, 0)
    broken = SegmentFile(Path("/proc/self/mem"))
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        os.pread(broken.fd, 1, 0)
    broken.path = found.file.path
    error = log.segments.note_unreadable(found._replace(file=broken), 0)
    assert os.strerror(errno.EIO) in str(error)
    assert str(error) in caplog.text
    with pytest.raises(StorageError):
        log.read(0, 100)


def test_note_unreadable_when_it_can_be_read_then_nothing_is_noted(
    log: Log, log_format: FormatExample
) -> None:
    assert log.segments.note_unreadable(read(log, 0), 5) is None
    assert log.failures() == []
    assert read(log, 0).length == 3 * log_format.size


def test_note_unreadable_when_noted_before_then_logged_once(
    log: Log, log_format: FormatExample, caplog: pytest.LogCaptureFixture
) -> None:
    cut_first_segment(log, 2 * log_format.size)
    log.segments.note_unreadable(read(log, 0), 2 * log_format.size)
    assert caplog.text.count("cannot read") == 1


def test_read_when_the_file_was_restored_then_read_again_a_while_later(
    log: Log, log_format: FormatExample, clock: FakeClock
) -> None:
    path = log.segments.all[0].path
    kept = path.read_bytes()
    cut_first_segment(log, 0)
    clock.advance(61)
    with pytest.raises(StorageError):
        log.read(0, 100)
    restored = path.with_name("restored")
    restored.write_bytes(kept)
    restored.replace(path)
    with pytest.raises(StorageError):
        log.read(0, 100)
    clock.advance(61)
    assert read(log, 0).length == 3 * log_format.size
    assert log.failures() == []


def test_note_unreadable_when_retention_removed_the_segment_then_no_other_is_marked(
    log: Log, log_format: FormatExample
) -> None:
    found = read(log, 0)
    os.truncate(log.segments.all[0].path, 0)
    log.remove(log.segments.all[0])
    assert log.segments.note_unreadable(found, 0) is not None
    assert log.failures() == []


def test_retry_when_the_file_can_be_read_again_then_the_log_is_not_faulty(
    log: Log, log_format: FormatExample
) -> None:
    path = log.segments.all[0].path
    kept = path.read_bytes()
    cut_first_segment(log, 0)
    log.retry_refused()
    assert [one.state for one in log.failures()] == ["unreadable"]
    restored = path.with_name("restored")
    restored.write_bytes(kept)
    restored.replace(path)
    log.retry_refused()
    assert not log.is_faulty
    assert read(log, 0).length == 3 * log_format.size


def test_read_when_the_file_cannot_be_opened_then_the_log_is_faulty_until_it_can(
    log: Log, log_format: FormatExample
) -> None:
    path = log.segments.all[0].path
    log._files.clear()
    path.rename(path.with_name("elsewhere"))
    with pytest.raises(StorageError, match=path.name):
        log.read(0, 100)
    assert [one.state for one in log.failures()] == ["unreadable"]
    path.with_name("elsewhere").rename(path)
    log.retry_refused()
    assert not log.is_faulty
