"""Recovery of Kafka's segments by a tool: the log is cut, and the files beside it fit again."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker.errors import LogLockedError
from broker.log.offline.recover import plan_recovery, recover
from broker.log.recovery import cut_file
from broker.log.side_files import INTERVAL_BYTES, indexes_of
from broker.protocol.codec import Record, RecordBatch, encode_batch
from tests.doubles import FakeClock
from tests.support.kafka_files import CopyPartition

FIRST = f"{0:020}.log"
CUT_FILE = "broker.log.offline.recover.cut_file"
MARKER = ".kafka_cleanshutdown"


@pytest.fixture
def described(kafka_logs: Path) -> dict[str, Any]:
    manifest = json.loads((kafka_logs / "manifest.json").read_bytes())
    topics: dict[str, Any] = manifest["topics"]
    return topics


def entries(path: Path, form: str) -> list[tuple[int, ...]]:
    return list(struct.iter_unpack(form, path.read_bytes()))


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir()}


@pytest.mark.parametrize("away", [-1, 0, 1])
@pytest.mark.parametrize("topic", ["v2-none", "v2-zstd", "v1-gzip", "v0-snappy"])
def test_recover_when_a_log_ends_around_any_batch_then_all_files_fit_the_whole_batches(
    copy_partition: CopyPartition,
    described: dict[str, Any],
    clock: FakeClock,
    topic: str,
    away: int,
) -> None:
    (segment,) = described[topic]["segments"]
    batches = segment["batch_list"]
    for number, batch in enumerate(batches):
        log = copy_partition(topic) / FIRST
        whole = log.read_bytes()
        size = batch["position"] + away
        if size < 0:
            continue
        log.write_bytes(whole[:size])
        kept = batches[:number] if away >= 0 else batches[: number - 1]
        end = kept[-1]["position"] + kept[-1]["size"] if kept else 0
        last = kept[-1]["last_offset"] if kept else -1

        done = recover(log, clock=clock)

        assert log.read_bytes() == whole[:end]
        assert (done.cut_at, done.cut_bytes, done.done) == (end, size - end, True)
        assert (done.backup is not None) == (size > end)
        index = entries(log.with_suffix(".index"), ">ii")
        assert set(index) <= {(one["last_offset"], one["position"]) for one in kept}
        assert bool(index) == any(one["position"] > INTERVAL_BYTES for one in kept)
        times = entries(log.with_suffix(".timeindex"), ">qi")
        assert all(offset <= last for _, offset in times)
        newest = max([one.get("max_timestamp", one.get("timestamp")) for one in kept], default=-1)
        assert (times[-1][0] if times else -1) == newest
        assert not list(log.parent.glob("*.snapshot"))  # that of the former end
        assert not plan_recovery(log).is_needed


@pytest.mark.parametrize("tail", [b"garbage" * 9, bytes(4096), b"\0" * 7])
def test_recover_when_a_log_has_a_tail_then_only_that_is_cut(
    copy_partition: CopyPartition, clock: FakeClock, tail: bytes
) -> None:
    log = copy_partition("v2-none") / FIRST
    before = contents(log.parent)
    log.write_bytes(before[FIRST] + tail)

    done = recover(log, clock=clock)

    assert Path(str(done.backup)).read_bytes() == tail
    Path(str(done.backup)).unlink()
    assert contents(log.parent) == before
    assert done.side_files == []
    assert done.messages_kept == 300


def test_recover_when_logs_are_good_then_nothing_is_needed(
    copy_partition: CopyPartition, described: dict[str, Any]
) -> None:
    for topic in described:
        directory = copy_partition(topic)
        (directory.parent / MARKER).touch()
        for log in directory.glob("*.log"):
            index = log.with_suffix(".index")
            index.write_bytes(index.read_bytes() + bytes(8000))  # preallocated by a broker
            plan = plan_recovery(log)
            assert (plan.is_needed, plan.fault, plan.later_segments) == (False, None, [])


def test_recover_when_something_is_cut_then_kafka_takes_its_stop_for_unclean(
    copy_partition: CopyPartition, clock: FakeClock
) -> None:
    log = copy_partition("v2-none") / FIRST
    marker = log.parents[1] / MARKER
    marker.touch()
    log.write_bytes(log.read_bytes()[:5000])

    assert MARKER in plan_recovery(log).side_files
    assert marker.exists()
    recover(log, clock=clock)

    assert not marker.exists()


def test_recover_when_a_middle_segment_is_damaged_then_what_tells_of_later_ones_goes(
    copy_partition: CopyPartition, clock: FakeClock
) -> None:
    directory = copy_partition("v2-rolled")
    log = directory / f"{75:020}.log"
    data = bytearray(log.read_bytes())
    data[2500] ^= 1
    log.write_bytes(data)

    done = recover(log, clock=clock)

    assert (done.cut_at, done.fault) == (2083, "crc")
    assert done.later_segments == [f"{150:020}.log", f"{225:020}.log"]
    assert [one.name for one in directory.glob("*.snapshot")] == [f"{75:020}.snapshot"]
    epochs = directory / "leader-epoch-checkpoint"
    assert epochs.read_text() == "0\n0\n"  # epoch 0 started at 300
    assert epochs.stat().st_mode & 0o777 == 0o644
    assert (directory / f"{150:020}.index").stat().st_size == 72


def test_recover_when_transactions_are_cut_then_the_index_of_aborted_ones_too(
    copy_partition: CopyPartition, clock: FakeClock
) -> None:
    log = copy_partition("v2-txn") / f"{10:020}.log"
    log.write_bytes(log.read_bytes()[:1800])  # in the mark of the second that was aborted

    done = recover(log, clock=clock)

    assert done.cut_at == 1747
    aborted = entries(log.with_suffix(".txnindex"), ">hqqqq")
    assert aborted == [(0, 1005, 11, 21, 22)]


def test_recover_when_offsets_go_back_then_cut_there(tmp_path: Path, clock: FakeClock) -> None:
    batches = [
        encode_batch([Record(offset, 0, None, b"value")], RecordBatch(base_offset=offset))
        for offset in (7, 9, 9, 10)
    ]
    log = tmp_path / "data" / "t-0" / f"{7:020}.log"
    log.parent.mkdir(parents=True)
    log.write_bytes(b"".join(batches))

    done = recover(log, clock=clock)

    assert (done.cut_at, done.fault) == (len(batches[0]) * 2, "offsets")
    log = log.rename(log.with_name(f"{8:020}.log"))  # below its name
    assert plan_recovery(log).cut_at == 0


def test_recover_when_kafka_has_the_directory_open_then_refused(
    copy_partition: CopyPartition, clock: FakeClock
) -> None:
    log = copy_partition("v2-none") / FIRST
    log.write_bytes(log.read_bytes()[:5000])
    code = (
        "import fcntl, sys; held = open(sys.argv[1], 'w'); fcntl.lockf(held, fcntl.LOCK_EX); "
        "print('held', flush=True); sys.stdin.read()"  # as FileChannel.tryLock of Java
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(log.parents[1] / ".lock")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"held\n"
        with pytest.raises(LogLockedError, match="Kafka"):
            recover(log, clock=clock)
        child.communicate()
    assert log.stat().st_size == 5000
    recover(log, clock=clock)
    assert log.stat().st_size == 4562


@pytest.mark.parametrize(("number", "suffix"), [(0, ".index"), (1, ".timeindex")])
def test_recover_when_an_index_is_damaged_then_it_is_written_anew_and_the_log_stays(
    copy_partition: CopyPartition, clock: FakeClock, number: int, suffix: str
) -> None:
    log = copy_partition("v2-none") / FIRST
    before, index = contents(log.parent), log.with_suffix(suffix)
    good = index.read_bytes()
    index.write_bytes(good[:24] + b"\xff" * 12 + good[36:])
    index.chmod(0o604)

    plan = recover(log, clock=clock)

    assert (plan.cut_bytes, plan.backup, plan.side_files) == (0, None, [index.name])
    anew = indexes_of(log, 0, log.stat().st_size)[number]
    assert contents(log.parent) == {**before, index.name: anew}
    assert anew[-12:] == good[-12:] or suffix == ".index"  # the last timestamp, for retention
    assert index.stat().st_mode & 0o777 == 0o604
    assert not plan_recovery(log).is_needed


@pytest.mark.parametrize("at", [1, 35])  # the version in the first entry, and in the second
def test_recover_when_the_list_of_aborted_transactions_is_damaged_then_it_is_not_changed(
    copy_partition: CopyPartition, clock: FakeClock, at: int
) -> None:
    log = copy_partition("v2-txn") / f"{10:020}.log"
    aborted = log.with_suffix(".txnindex")
    data = bytearray(aborted.read_bytes())
    data[at] = 9
    aborted.write_bytes(data)

    assert not plan_recovery(log).is_needed
    recover(log, clock=clock)

    assert aborted.read_bytes() == data


def test_recover_when_it_ends_after_the_cut_then_the_files_beside_the_log_fit(
    copy_partition: CopyPartition, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = copy_partition("v2-rolled")
    log = directory / f"{75:020}.log"
    log.write_bytes(log.read_bytes()[:2500])

    def cut_and_end(path: Path, valid_end: int, time_ms: int) -> Path:
        cut_file(path, valid_end, time_ms)
        raise KeyboardInterrupt

    monkeypatch.setattr(CUT_FILE, cut_and_end)
    with pytest.raises(KeyboardInterrupt):
        recover(log, clock=clock)

    assert log.stat().st_size == 2083
    assert [one.name for one in directory.glob("*.snapshot")] == [f"{75:020}.snapshot"]
    assert (directory / "leader-epoch-checkpoint").read_text() == "0\n0\n"
    assert not plan_recovery(log).is_needed


def test_recover_when_it_ends_before_the_cut_then_a_second_run_finishes(
    copy_partition: CopyPartition, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = copy_partition("v2-none") / FIRST
    log.write_bytes(log.read_bytes()[:5000])
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(CUT_FILE, lambda *_: 1 / 0)
        recover(log, clock=clock)

    assert log.stat().st_size == 5000
    assert recover(log, clock=clock).cut_bytes == 438
    assert log.stat().st_size == 4562


def test_recover_when_a_link_leads_to_the_partition_then_the_data_directory_counts(
    copy_partition: CopyPartition, tmp_path: Path, clock: FakeClock
) -> None:
    directory = copy_partition("v2-none")
    lock, marker = (directory.parent / name for name in (".lock", ".kafka_cleanshutdown"))
    marker.touch()
    (log,) = directory.glob("*.log")
    log.write_bytes(log.read_bytes()[:-1])
    link = tmp_path / "link"
    link.symlink_to(directory)
    lock.symlink_to(lock)
    with pytest.raises(LogLockedError):
        recover(link / log.name, clock=clock)

    lock.unlink()
    recover(link / log.name, clock=clock)

    assert not marker.exists()
