"""Sets of idempotent producers in logs of 0.7's entries: what is sent again is there once."""

from __future__ import annotations

import errno
import os
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidProducerEpochError, OutOfOrderSequenceError, StorageError
from broker.log import producer_rows
from broker.log.format import ENTRIES
from broker.log.log import Log, LogParts
from broker.log.producer_rows import FILE_NAME, ROW_BYTES, decode_rows
from broker.log.recovery import list_segments
from broker.log.replica_files import EpochFile, read_epochs
from broker.log.segment import Appended, SegmentFiles
from broker.protocol.codec import decode, encode
from broker.protocol.message import ProducerStamp
from broker.stats import WindowedStats
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk, RecordingSchedule
from tests.support.log_fixtures import LogFactory
from tests.support.log_formats import bytes_of

PRODUCER = 7
SET = encode([b"one", b"two", b"three"])
SIZE = len(SET)


def stamp(
    sequence: int, count: int = 3, epoch: int = 0, producer_id: int = PRODUCER
) -> ProducerStamp:
    return ProducerStamp(producer_id, epoch, sequence, count)


def append(log: Log, sequence: int, epoch: int = 0) -> Appended:
    return log.append(SET, 3, stamp=stamp(sequence, epoch=epoch))


def rows_file(log: Log) -> Path:
    return log.directory / FILE_NAME


def test_append_when_a_set_is_sent_again_then_its_first_offsets_are_returned_and_nothing_written(
    make_log: LogFactory,
) -> None:
    log = make_log(segment_bytes=2 * SIZE)
    first = [append(log, 3 * n) for n in range(5)]
    log.append(SET, 3)

    assert [append(log, 3 * n) for n in range(5)] == first
    assert first == [(n * SIZE, (n + 1) * SIZE) for n in range(5)]
    assert log.log_end_offset == 6 * SIZE


def test_append_when_sequences_do_not_follow_then_refused(make_log: LogFactory) -> None:
    log = make_log()
    append(log, 0, epoch=1)
    with pytest.raises(OutOfOrderSequenceError):
        append(log, 6, epoch=1)
    with pytest.raises(InvalidProducerEpochError):
        append(log, 3, epoch=0)
    assert log.log_end_offset == SIZE


def test_log_when_none_is_idempotent_then_no_file_is_made(make_log: LogFactory) -> None:
    log = make_log()
    log.append(SET, 3)
    assert not rows_file(log).exists()
    assert log.rows_between(0, SIZE) == b""


@pytest.mark.parametrize("noise", [b"", b"\0" * ROW_BYTES, b"torn"])
def test_open_when_a_row_was_written_and_its_set_was_not_then_the_set_is_appended(
    make_log: LogFactory, noise: bytes
) -> None:
    log = make_log()
    append(log, 0)
    append(log, 3)
    segment = log.segments.all[0].path
    whole = segment.read_bytes()
    log.close()
    with rows_file(log).open("ab") as file:
        file.write(noise)
    segment.write_bytes(whole[:SIZE])

    log = make_log()
    assert append(log, 0) == (0, SIZE)
    log.append(SET, 3)  # where the row says that the other set is
    assert append(log, 3) == (2 * SIZE, 3 * SIZE)
    assert len(decode_rows(rows_file(log).read_bytes())) == 2
    log.close()
    assert append(make_log(), 3) == (2 * SIZE, 3 * SIZE)


def test_open_when_the_log_has_a_part_of_a_set_then_the_rest_is_appended_once(
    make_log: LogFactory,
) -> None:
    log = make_log()
    append(log, 0)
    append(log, 3)
    segment = log.segments.all[0].path
    log.close()
    part = len(encode([b"one"]))
    segment.write_bytes(segment.read_bytes()[: SIZE + part])

    log = make_log()
    for _ in range(2):
        assert append(log, 3) == (SIZE, 2 * SIZE)
        assert log.log_end_offset == 2 * SIZE
    log.close()
    assert append(make_log(), 3) == (SIZE, 2 * SIZE)


def test_append_when_the_disk_refuses_the_set_then_its_row_is_removed(
    make_log: LogFactory, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    append(log, 0)
    faulty_disk.room_bytes = 5
    with pytest.raises(StorageError):
        append(log, 3)
    faulty_disk.room_bytes = None
    log.append(SET, 3)  # where the set would have been
    assert rows_file(log).stat().st_size == ROW_BYTES
    assert append(log, 3) == (2 * SIZE, 3 * SIZE)


def test_append_when_no_file_can_be_opened_then_is_refused_and_goes_on_later(
    make_log: LogFactory, faulty_disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    append(log, 0)

    def none_left(*_: object) -> NoReturn:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    faulty_disk.room_bytes = 5
    with pytest.raises(StorageError):
        append(log, 3)
    with monkeypatch.context() as patch:
        patch.setattr("broker.files.open_file", none_left)
        for _ in range(2):
            with pytest.raises(StorageError):
                log.append(SET, 3)
    faulty_disk.room_bytes = None

    assert log.append(SET, 3) == (SIZE, 2 * SIZE)
    assert append(log, 3) == (2 * SIZE, 3 * SIZE)


def test_append_when_rows_are_many_then_those_that_no_repetition_needs_are_dropped(
    make_log: LogFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_rows, "_SPARE_ROWS", 20)
    log = make_log()
    for n in range(100):
        append(log, 3 * n)
    assert rows_file(log).stat().st_size <= 32 * ROW_BYTES
    log.close()
    log = make_log()
    assert append(log, 3 * 95) == (95 * SIZE, 96 * SIZE)
    assert append(log, 3 * 100) == (100 * SIZE, 101 * SIZE)


def test_flush_when_rows_were_written_then_they_are_synced_before_the_sets(
    make_log: LogFactory, faulty_disk: FaultyDisk
) -> None:
    log = make_log(disk=faulty_disk.as_disk())
    append(log, 0)
    log.flush()
    paths = rows_file(log), log.segments.all[0].path
    assert list(faulty_disk.synced_sizes.items()) == [
        (path.stat().st_ino, size) for path, size in zip(paths, (ROW_BYTES, SIZE), strict=True)
    ]


def test_restart_when_a_replica_begins_anew_then_it_forgets_what_it_had(
    make_log: LogFactory,
) -> None:
    log = make_log()
    log.replicate(EpochFile(log.directory))
    append(log, 0)
    log.restart_at(5 * SIZE)
    assert append(log, 0) == (5 * SIZE, 6 * SIZE)


class Sent(NamedTuple):
    """A set without a response."""

    sequence: int
    payloads: list[bytes]


class Pair:
    """Two replicas of a partition, which are killed and take turns to lead; some producers."""

    def __init__(self, directory: Path) -> None:
        self.clock = FakeClock()
        self.epoch = 1
        self.logs = []
        for name in ("a", "b"):
            (directory / name).mkdir()
            (directory / name / ENTRIES.segment_name(0)).touch()
            self.logs.append(self.open(directory / name))
        self.logs[0].begin_epoch(1, 0)
        self.pending: dict[int, Sent] = {}
        self.sent: defaultdict[int, int] = defaultdict(int)  # messages

    def open(self, directory: Path) -> Log:
        log = Log(
            TopicPartition("events", 0, 0),
            directory,
            TopicConfig(300, 1 << 40, 1 << 40, -1, 10_000, 100),
            list_segments(directory, ENTRIES),
            LogParts(
                clock=self.clock,
                files=SegmentFiles(),
                schedule_flush=RecordingSchedule().schedule,
                flush_stats=WindowedStats(self.clock, 60.0),
            ),
        )
        log.replicate(EpochFile(directory, read_epochs(directory)))
        return log

    def send(self, producer_id: int, count: int) -> None:
        """Send a set, or again the one without a response."""
        if producer_id not in self.pending:
            first = self.sent[producer_id]
            payloads = [b"%d %d" % (producer_id, first + n) for n in range(count)]
            self.pending[producer_id] = Sent(first, payloads)
            self.sent[producer_id] += count
        one = self.pending[producer_id]
        number = ProducerStamp(producer_id, 0, one.sequence, len(one.payloads))
        end = self.logs[0].append(encode(one.payloads), count, stamp=number).end_offset
        if self.logs[1].log_end_offset >= end:
            del self.pending[producer_id]

    def send_plain(self, count: int) -> None:
        self.logs[0].append(encode([b"plain"] * count), count)

    def copy(self, max_bytes: int) -> None:
        """Copy what a fetch of the follower gives, as `Follower` does."""
        leader, follower = self.logs
        offset = follower.log_end_offset
        found = leader.read(offset, max_bytes, to_log_end=True)
        if found is None:
            return
        chunk = bytes_of(found)
        entries = ENTRIES.copied(chunk, "events", offset)
        for epoch, start in leader.epochs.entries:
            if epoch > follower.epochs.last_epoch and start < entries.next_offset:
                follower.begin_epoch(epoch, max(start, offset))
        rows = leader.rows_between(offset, offset + len(chunk))
        follower.append_copied(entries, offset, None, rows)

    def kill(self, at: int) -> None:
        self.logs[at].close()
        self.logs[at] = self.open(self.logs[at].directory)

    def fail_over(self, _: int = 0) -> None:
        former, leader = self.logs
        self.logs = [leader, former]
        self.epoch += 1
        leader.begin_epoch(self.epoch, leader.log_end_offset)
        former.truncate(leader.log_end_offset)

    def settle(self) -> None:
        """Have all acknowledged."""
        for _ in range(3):
            while self.logs[0].log_end_offset > self.logs[1].log_end_offset:
                self.copy(1000)
            for producer_id in list(self.pending):
                self.send(producer_id, 1)

    def payloads(self) -> list[bytes]:
        log, found = self.logs[0], []
        offset = 0
        while chunk := log.read(offset, 1 << 20, to_log_end=True):
            decoded = decode(bytes_of(chunk), offset)
            found += [payload for _, _, payload in decoded.messages]
            offset += decoded.valid_bytes
        return found


STEPS = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 4)),
    st.tuples(st.just("send"), st.integers(1, 3), st.integers(1, 4)),
    st.tuples(st.just("send_plain"), st.integers(1, 2)),
    st.tuples(st.just("copy"), st.integers(20, 90)),
    st.tuples(st.just("copy"), st.just(1000)),
    st.tuples(st.just("kill"), st.integers(0, 1)),
    st.tuples(st.just("fail_over")),
)


@given(st.lists(STEPS, max_size=40), st.sampled_from((4, 4096)))
def test_replicas_when_they_die_and_take_over_then_each_message_of_a_producer_is_there_once(
    steps: list[tuple[str, int]], spare_rows: int
) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as directory:
        patch.setattr(producer_rows, "_SPARE_ROWS", spare_rows)
        pair = Pair(Path(directory))
        for name, *arguments in steps:
            getattr(pair, name)(*arguments)
        pair.settle()
        found = pair.payloads()
        for log in pair.logs:
            log.close()
    assert not pair.pending
    for producer_id, count in pair.sent.items():
        ours = [one for one in found if one.startswith(b"%d " % producer_id)]
        assert ours == [b"%d %d" % (producer_id, n) for n in range(count)]
