"""The cleaner: which logs it compacts, and what becomes of them while they are in use."""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.log.cleaner import Cleaner
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.log.offline.verify import verify_paths
from broker.log.segment import FileSlice
from broker.protocol import codec
from broker.protocol.codec import NEW_BATCH, Record
from broker.protocol.record_batch import CONTROL, TRANSACTIONAL
from broker.topic import FORMAT_07, FORMAT_KAFKA, NO_HOME, TopicPartition
from broker.topic_settings import parse_overrides
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk
from tests.support.log_fixtures import ManagerFactory, abandon
from tests.support.waiting import wait_until

CLEANER = "broker.log.cleaner"


class Broker:
    """A manager with topics of small segments, and its cleaner."""

    def __init__(self, manager: LogManager) -> None:
        self.manager = manager
        manager.open()

    @property
    def cleaner(self) -> Cleaner:
        return self.manager.cleaner

    def topic(self, name: str, policy: str = "compact", **settings: str) -> Log:
        """Create a topic, and return the log of its partition."""
        texts = {"cleanup.policy": policy, "segment.bytes": "500"} | {
            key.replace("_", "."): text for key, text in settings.items()
        }
        self.configure(name, texts)
        self.manager.creation.create_topic(name, 1, format=FORMAT_KAFKA)
        return self.manager.creation.get_or_create(name, 0)

    def configure(self, topic: str, texts: dict[str, str]) -> None:
        settings = self.manager.settings
        overrides = {**settings.overrides, topic: parse_overrides(texts)}
        self.manager.reconfigure(settings.broker, overrides)

    def run(self) -> None:
        self.manager.flush_all()
        self.cleaner.run()

    def checkpoint(self) -> list[str]:
        (directory,) = self.manager.settings.broker.data_dirs
        path = directory / "cleaner-offset-checkpoint"
        return path.read_text().splitlines() if path.exists() else []


@pytest.fixture
def broker(make_manager: ManagerFactory) -> Broker:
    return Broker(make_manager())


def append(log: Log, *keys: bytes, time_ms: int = 1_700_000_000_000) -> None:
    """Append a batch of 100 bytes or more for each key."""
    for key in keys:
        log.append(codec.encode_batch([Record(0, time_ms, key, b"v" * 90)]), 1)


def bytes_of(part: FileSlice) -> bytes:
    return os.pread(part.file.fd, part.length, part.position)


def records_of(log: Log) -> list[Record]:
    found: list[Record] = []
    offset = log.log_start_offset
    while (part := log.read(offset, 1 << 20)) is not None:
        batches = bytes_of(part)
        found += codec.decode_records(batches).records
        offset = codec.scan_batches(batches).batches[-1].next_offset
    return found


def keys_of(log: Log) -> list[bytes | None]:
    return [one.key for one in records_of(log)]


def problems_of(log: Log) -> list[object]:
    return [*verify_paths([log.directory]).problems]


def test_run_when_logs_are_dirty_then_those_with_the_policy_are_compacted(broker: Broker) -> None:
    compacted = broker.topic("compacted")
    both = broker.topic("both", "compact,delete")
    deleted = broker.topic("deleted", "delete")
    for log in (compacted, both, deleted):
        append(log, *([b"a", b"b"] * 10))

    broker.run()

    for log in (compacted, both):
        end = log.segments.all[-1].base_offset
        assert [one.offset for one in records_of(log)] == sorted(
            {end - 2, end - 1, *range(end, 20)}
        )
        assert problems_of(log) == []
    assert len(records_of(deleted)) == 20
    end = compacted.segments.all[-1].base_offset
    assert broker.checkpoint() == ["0", "2", f"both 0 {end}", f"compacted 0 {end}"]
    assert broker.cleaner.times.count == 2
    assert broker.cleaner.removed_bytes > 2000
    assert broker.cleaner.max_dirty_ratio == 0


def test_run_when_a_log_is_of_07_then_is_left_alone(broker: Broker) -> None:
    broker.configure("old", {"cleanup.policy": "compact", "segment.bytes": "100"})
    log = broker.manager.creation.get_or_create("old", 0)
    assert log.partition.format == FORMAT_07
    for _ in range(20):
        log.append(codec.encode([b"v" * 90]), 1)

    broker.run()

    assert log.log_start_offset == 0
    assert len(log.segments.all) > 5
    assert broker.checkpoint() == []


def test_run_when_less_than_the_ratio_is_dirty_then_waits_for_more(broker: Broker) -> None:
    log = broker.topic("t", **{"min.cleanable.dirty.ratio": "0.7"})
    append(log, *(b"%d" % n for n in range(40)))
    broker.run()
    assert broker.checkpoint()[2:] == [f"t 0 {(first := log.segments.all[-1].base_offset)}"]
    append(log, *[b"again"] * 40)
    broker.run()
    assert 0.3 < broker.cleaner.max_dirty_ratio < 0.7
    assert broker.checkpoint()[2:] == [f"t 0 {first}"]

    broker.configure("t", {"cleanup.policy": "compact", "segment.bytes": "500"})
    broker.run()

    assert keys_of(log).count(b"again") < 8
    assert len(keys_of(log)) > 40


def test_run_when_records_are_young_then_they_stay_until_their_time(
    broker: Broker, clock: FakeClock
) -> None:
    log = broker.topic("t", **{"min.compaction.lag.ms": "60000"})
    append(log, *[b"a"] * 20, time_ms=clock.time_ms())

    clock.advance(59)
    broker.run()
    assert len(records_of(log)) == 20
    clock.advance(1)
    broker.run()

    assert len(records_of(log)) < 8


def test_run_when_a_transaction_is_open_then_ends_before_it(broker: Broker) -> None:
    log = broker.topic("t")
    head = NEW_BATCH._replace(producer_id=5, producer_epoch=0, attributes=TRANSACTIONAL)
    append(log, *[b"a"] * 20)
    log.append(codec.encode_batch([Record(0, 1, b"a", b"1")], head._replace(base_sequence=0)), 1)
    append(log, *[b"a"] * 20)

    broker.run()
    offsets = [one.offset for one in records_of(log)]
    assert len(offsets) < 30
    assert offsets[-21:] == list(range(20, 41))
    mark = codec.encode_batch(
        [Record(41, 1, b"\0\0\0\0", bytes(6))],
        head._replace(base_offset=41, attributes=TRANSACTIONAL | CONTROL),
    )
    log.append_copied(log.format.copied(mark, log.partition, 41), 41)
    append(log, *[b"a"] * 20)
    broker.run()

    assert len(records_of(log)) < 8
    assert 20 not in [one.offset for one in records_of(log)]  # it was aborted
    assert problems_of(log) == []


def test_run_when_readers_have_slices_then_they_read_what_was_there(broker: Broker) -> None:
    log = broker.topic("t")
    append(log, *[b"a"] * 20)
    broker.manager.flush_all()
    slices = [log.read(offset, 1 << 20) for offset in range(20)]
    before = [bytes_of(one) for one in slices if one]

    broker.run()

    assert len(records_of(log)) < 8
    assert [bytes_of(one) for one in slices if one] == before


def test_run_when_a_batch_is_damaged_then_logged_once_and_tried_again_with_other_segments(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = broker.topic("bad"), broker.topic("good")
    for log in (bad, good):
        append(log, *[b"a"] * 20)
    path = bad.segments.all[1].path
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"!" + content[101:])

    with caplog.at_level(logging.ERROR, CLEANER):
        for _ in range(3):
            broker.run()
            append(good, *[b"a"] * 20)

    assert [one.getMessage() for one in caplog.records] == [
        f"bad[0] cannot be compacted: {path}: position 0: the batch is damaged (crc): the log is "
        "not compacted; see pylogctl log verify"
    ]
    assert list(broker.cleaner.uncleanable) == [bad.partition]
    assert len(records_of(good)) < 30
    path.write_bytes(content)
    broker.run()
    assert len(records_of(bad)) == 20  # the segments are the same
    append(bad, *[b"a"] * 20)
    broker.run()
    assert len(records_of(bad)) < 8
    assert not broker.cleaner.uncleanable


def test_run_when_the_disk_refuses_then_log_stays_and_the_next_run_tries_again(
    make_manager: ManagerFactory, faulty_disk: FaultyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(make_manager(disk=faulty_disk.as_disk()))
    log = broker.topic("t")
    append(log, *[b"a"] * 20)
    broker.manager.flush_all()
    before = sorted(path.name for path in log.directory.iterdir())
    faulty_disk.sync_errno = errno.ENOSPC

    with caplog.at_level(logging.ERROR, CLEANER):
        broker.cleaner.run()
        broker.cleaner.run()

    (message,) = [one.getMessage() for one in caplog.records]
    assert message.endswith("No space left on device")
    assert sorted(path.name for path in log.directory.iterdir()) == before
    assert (log.clean_offset, log.failure) == (0, None)
    faulty_disk.sync_errno = 0
    broker.cleaner.run()
    assert len(records_of(log)) < 8
    assert not broker.cleaner.uncleanable


def test_start_when_logs_were_compacted_then_goes_on_where_they_are_clean(
    broker: Broker, make_manager: ManagerFactory
) -> None:
    log = broker.topic("t")
    append(log, *[b"a"] * 20)
    broker.run()
    clean, keys = log.clean_offset, keys_of(log)
    broker.manager.close()
    again = make_manager()
    again.open()
    again.settings.overrides = broker.manager.settings.overrides

    again.cleaner.load()
    again.cleaner.run()

    found = again.table.find(log.partition)
    assert found is not None
    assert found.clean_offset == clean > 10
    assert keys_of(found) == keys
    assert again.cleaner.times.count == 0


def test_start_when_compacted_log_was_not_closed_then_producers_are_known(
    broker: Broker, make_manager: ManagerFactory
) -> None:
    log = broker.topic("t")
    head = NEW_BATCH._replace(producer_epoch=0)
    sets = [
        codec.encode_batch(
            [Record(0, 1, b"a", b"v" * 90)],
            head._replace(producer_id=producer_id, base_sequence=sequence),
        )
        for producer_id in (1, 2, 3)
        for sequence in range(3)
    ]
    for one in sets:
        log.append(one, 1)
    append(log, *[b"a"] * 10)
    broker.run()
    assert len(records_of(log)) < 8
    for path in log.directory.glob("*.snapshot"):
        path.unlink()
    abandon(broker.manager)

    manager = make_manager()
    manager.open()
    found = manager.table.find(log.partition)

    assert found is not None
    assert [found.append(one, 1).base_offset for one in sets[2::3]] == [2, 5, 8]
    assert found.log_end_offset == log.log_end_offset
    assert problems_of(found) == []


def test_stop_when_a_compaction_is_throttled_then_it_is_abandoned_at_once(
    make_manager: ManagerFactory,
) -> None:
    broker = Broker(make_manager(cleaner_bytes_per_s=1))
    log = broker.topic("t")
    append(log, *[b"a"] * 20)
    thread = threading.Thread(target=broker.run)
    thread.start()
    wait_until(lambda: broker.cleaner.copied_bytes > 0, "the first bytes")

    broker.cleaner.stop()
    thread.join(10)

    assert not thread.is_alive()
    assert len(records_of(log)) == 20
    assert log.clean_offset == 0
    assert not [path for path in log.directory.iterdir() if path.suffix == ".cleaned"]


def test_cut_when_a_log_was_clean_there_then_it_is_dirty_again(broker: Broker) -> None:
    log = broker.topic("t")
    append(log, *[b"a"] * 20)
    broker.run()
    with log._flush_lock, log._lock:
        log._replace_end(10)
    assert log.clean_offset == 10


def test_retention_when_a_topic_is_compacted_then_only_deletes_if_the_policy_says_so(
    broker: Broker, clock: FakeClock
) -> None:
    logs = {
        policy: broker.topic(f"t{number}", policy)
        for number, policy in enumerate(("compact", "compact,delete", "delete,compact"))
    }
    for log in logs.values():
        append(log, *(b"%d" % n for n in range(20)), time_ms=clock.time_ms())
    broker.run()
    clock.advance(8 * 24 * 3600)

    broker.manager.retention.apply()

    assert {policy: len(records_of(log)) for policy, log in logs.items()} == {
        "compact": 20,
        "compact,delete": 0,
        "delete,compact": 0,
    }


def test_topic_when_deleted_and_created_again_then_is_dirty_as_a_whole(broker: Broker) -> None:
    log = broker.topic("t")
    append(log, *[b"a"] * 20)
    broker.run()
    broker.manager.deletions.delete_topic("t")
    again = broker.topic("t")
    append(again, *[b"a"] * 10)

    broker.run()

    assert again.partition == TopicPartition("t", NO_HOME, 0)
    assert len(records_of(again)) < 8
    assert broker.checkpoint()[2:] == [f"t 0 {again.segments.all[-1].base_offset}"]


def test_run_when_readers_and_producers_are_busy_then_each_sees_the_last_values_in_order(
    make_manager: ManagerFactory,
) -> None:
    broker = Broker(make_manager(cleaner_bytes_per_s=0))
    log = broker.topic("t", **{"segment.bytes": "10000", "min.cleanable.dirty.ratio": "0.01"})
    count, key_count = 2000, 7
    is_over = threading.Event()

    def compactions_after(known: int) -> Callable[[], bool]:
        return lambda: broker.cleaner.times.count > known

    def produce() -> None:
        try:
            while (n := log.log_end_offset) < count:
                record = Record(0, 1, b"%d" % (n % key_count), b"%d" % n * 20)
                log.append(codec.encode_batch([record]), 1)
                if n % 20 == 19:
                    log.flush()
                if n % 500 == 499:  # else this ends before the first compaction
                    wait_until(compactions_after(broker.cleaner.times.count), "a compaction")
        finally:
            is_over.set()

    def read() -> dict[bytes | None, int]:
        while True:
            is_last = is_over.wait(0.001)
            offset, found = 0, dict[bytes | None, int]()
            while offset < log.high_watermark and (part := log.read(offset, 5000)) is not None:
                data = bytes_of(part)
                batches = codec.scan_batches(data).batches
                assert len(data) == part.length
                assert batches[-1].next_offset > offset
                for record in codec.decode_records(data).records:
                    assert record.value == b"%d" % record.offset * 20
                    assert record.offset >= found.get(record.key, 0)
                    found[record.key] = record.offset
                offset = batches[-1].next_offset
            if is_last:
                return found

    def clean() -> None:
        while not is_over.wait(0.001):
            broker.cleaner.run()

    with ThreadPoolExecutor() as threads:
        ends = [threads.submit(clean), threads.submit(produce)]
        seen = [threads.submit(read) for _ in range(2)]

    for one in ends:
        one.result()
    expected = {b"%d" % (n % key_count): n for n in range(count)}
    assert [one.result() for one in seen] == [expected] * 2
    assert not broker.cleaner.uncleanable
    broker.run()
    assert len(records_of(log)) < count / 4
    assert problems_of(log) == []
