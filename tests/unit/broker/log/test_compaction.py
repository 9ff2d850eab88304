"""Compaction: the last record of each key stays, at its offset, whatever happens meanwhile."""

from __future__ import annotations

import os
import random
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import LogCorruptError
from broker.log.aborted import AbortedTransactions
from broker.log.compaction import OffsetMap, Rewrite, cleanable_part, finish_swaps
from broker.log.offline.verify import verify_paths
from broker.protocol.codec import Record
from broker.protocol.record_batch import TRANSACTIONAL
from tests.support.compacted_logs import (
    LogWriter,
    batches_of,
    committed_of,
    compact,
    records_of,
    segments_of,
    values_of,
)
from tests.support.kafka_files import CopyPartition

Row = tuple[bytes | None, bytes | None]


@pytest.fixture
def writer(tmp_path: Path) -> LogWriter:
    return LogWriter(tmp_path / "data" / "orders-0")


def problems_of(directory: Path) -> list[str]:
    checkpoint = directory.parent / "cleaner-offset-checkpoint"
    topic, _, index = directory.name.rpartition("-")
    checkpoint.write_text(f"0\n1\n{topic} {index} 0\n")
    return [f"{one}" for one in verify_paths([directory]).problems]


def offsets_of(directory: Path) -> list[int]:
    return [one.offset for one in records_of(directory)]


def names_in(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def test_compact_when_keys_repeat_then_last_record_of_each_stays_at_its_offset(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
    writer.append((b"b", b"2"), (b"long key" * 9, b"1"), (b"c", b"1"))
    writer.append((b"long key" * 9, b"2"), (None, b"1"), (b"", b"1"), (None, b"2"), (b"", b"2"))
    writer.roll()
    writer.append((b"c", b"2"))  # active: neither cleaned nor read
    before = records_of(writer.directory)

    assert compact(writer.directory) == 11

    left = [2, 3, 5, 6, 7, 9, 10, 11]
    assert records_of(writer.directory) == [one for one in before if one.offset in left]
    assert problems_of(writer.directory) == []


def test_compact_when_nothing_is_lost_then_segment_is_left_alone(writer: LogWriter) -> None:
    for n in range(3000):
        writer.append((b"%d" % n, b"v" * 1000))
    writer.roll()
    path = segments_of(writer.directory)[0].path
    status = path.stat()

    compact(writer.directory)

    assert path.stat() == status
    assert not [name for name in names_in(writer.directory) if name.endswith(".cleaned")]


@pytest.mark.parametrize("codec", range(5))
def test_compact_when_some_batches_lose_records_then_others_stay_byte_for_byte(
    writer: LogWriter, codec: int
) -> None:
    for n in range(900):
        key = b"again" if n in (500, 700) else b"%d" % n
        writer.append((key, b"%d" % n * 500), (b"%d b" % n, b""), attributes=codec)
    writer.roll()
    (before, _) = segments_of(writer.directory)
    heads, old = batches_of(writer.directory), before.path.read_bytes()

    compact(writer.directory)

    new = before.path.read_bytes()
    after = batches_of(writer.directory)
    assert new[: heads[500].position] == old[: heads[500].position]
    assert new[after[501].position :] == old[heads[501].position :]
    assert (
        after[500][2:]
        == heads[500]._replace(
            crc=after[500].crc, record_count=1, max_timestamp=1001, base_timestamp=1000
        )[2:]
    )
    assert problems_of(writer.directory) == []


def test_compact_when_batches_lose_all_then_last_of_producer_and_of_segment_stay_empty(
    writer: LogWriter,
) -> None:
    for producer_id in (7, 8, 7, 8, 9):
        writer.append((b"k", b"1"), (b"k", b"2"), producer_id=producer_id, attributes=1)
    writer.roll()
    writer.append((b"k", b"3"))
    writer.roll()
    kept = [5, 7]  # the last offsets of producers 7 and 8; 9 is forgotten

    compact(writer.directory, kept_offsets=kept, segment_bytes=1)

    found = [
        (one.producer_id, one.last_offset, one.record_count) for one in batches_of(writer.directory)
    ]
    assert found == [(7, 5, 0), (8, 7, 0), (9, 9, 0), (-1, 10, 1)]
    assert problems_of(writer.directory) == []
    compact(writer.directory, start_offset=11)  # as one segment: 9 is not the last one any more
    assert [one.producer_id for one in batches_of(writer.directory)] == [-1]


def test_compact_when_a_value_is_deleted_then_tombstone_stays_for_its_time(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"1"), (b"b", b"1"))
    writer.append((b"a", None), (b"c", b"1"), time_ms=5)
    writer.roll()
    tombstone = Record(2, 5, b"a", None, (("n", b"1"),))

    def run(now_ms: int) -> list[Record]:
        compact(writer.directory, now_ms=now_ms, start_offset=4, delete_retention_ms=100)
        return records_of(writer.directory)

    compact(writer.directory, now_ms=1000, delete_retention_ms=100)
    horizons = [
        one.base_timestamp for one in batches_of(writer.directory) if one.has_delete_horizon
    ]
    first = records_of(writer.directory)
    writer.append((b"d", b"1"))
    writer.roll()

    assert horizons == [1100]
    assert [one.offset for one in first] == [1, 2, 3]
    assert first[1] == tombstone
    assert tombstone in run(1099)  # and the horizon does not move
    assert [one.offset for one in run(1100)] == [1, 3, 4]
    assert records_of(writer.directory)[1].timestamp == 6
    assert problems_of(writer.directory) == []


def test_compact_when_a_transaction_is_aborted_then_its_records_go_and_its_mark_later(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"kept"))
    writer.append((b"a", b"aborted"), producer_id=5, attributes=TRANSACTIONAL)
    writer.append((b"b", b"committed"), producer_id=6, attributes=TRANSACTIONAL)
    writer.end(5, is_commit=False)
    writer.end(6, is_commit=True)
    writer.append((b"z", b"1"))
    writer.roll()
    index = segments_of(writer.directory)[0].path.with_suffix(".txnindex")

    def run(now_ms: int) -> list[int]:
        compact(writer.directory, now_ms=now_ms, delete_retention_ms=100)
        return [one.offset for one in records_of(writer.directory, with_control=True)]

    assert run(1000) == [0, 2, 3, 4, 5]
    assert index.stat().st_size == 34  # the records were there at the start of the run
    assert run(2000) == [0, 2, 3, 4, 5]
    assert index.stat().st_size == 0
    assert run(2099) == [0, 2, 3, 4, 5]
    assert run(2100) == [0, 2, 4, 5]  # that of the commit stays with its record
    assert problems_of(writer.directory) == []


def test_compact_when_last_batch_of_a_producer_is_a_mark_then_stays_empty(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"1"), producer_id=5, attributes=TRANSACTIONAL)
    writer.end(5, is_commit=True)
    writer.append((b"a", b"2"))
    writer.roll()

    for now_ms in (1000, 2000, 4000):
        compact(writer.directory, now_ms=now_ms, kept_offsets=[1])

    (mark, _) = batches_of(writer.directory)
    assert (mark.last_offset, mark.is_control, mark.record_count) == (1, True, 0)
    assert problems_of(writer.directory) == []


def test_compact_when_map_is_full_then_later_runs_go_on(writer: LogWriter) -> None:
    for n in range(60):
        writer.append(*((b"%d" % (m % 50), b"%d" % n) for m in range(20)))
        if n % 7 == 6:
            writer.roll()
    writer.roll()
    before = records_of(writer.directory)
    start, ends = 0, list[int]()

    while start < writer.next_offset:
        start = compact(writer.directory, start_offset=start, max_bytes=1)
        ends.append(start)

    assert len(ends) == 9  # a run reads a block at least, and here a segment is one
    assert values_of(records_of(writer.directory)) == values_of(before)
    assert len(records_of(writer.directory)) == 20
    assert problems_of(writer.directory) == []


def test_compact_when_records_are_behind_the_map_then_stay_as_they_are(tmp_path: Path) -> None:
    writer = LogWriter(tmp_path / "orders-0")
    writer.append((b"a", b"1"))
    writer.append((b"b", None), (b"b", None))
    writer.append((b"c", b"1"), producer_id=3, attributes=TRANSACTIONAL)
    writer.end(3, is_commit=False)
    writer.roll()
    (segment, _) = segments_of(writer.directory)
    rewrite = Rewrite(OffsetMap({b"a": 0}, 1), AbortedTransactions(()), (), 10**9, 0)

    assert rewrite.write([segment]) is None


def test_compact_when_segments_are_small_then_are_joined_up_to_a_size(writer: LogWriter) -> None:
    for n in range(6):
        writer.append((b"%d" % n, b"v" * 100))
        writer.roll()
    size = segments_of(writer.directory)[0].size

    compact(writer.directory, segment_bytes=3 * size)

    assert [one.base_offset for one in segments_of(writer.directory)] == [0, 3, 6]
    assert len(list(writer.directory.glob("*index"))) == 4
    assert problems_of(writer.directory) == []


def test_compact_when_a_batch_is_damaged_then_error_names_it_and_nothing_changes(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"1"))
    writer.append((b"a", b"2"))
    writer.roll()
    path = segments_of(writer.directory)[0].path
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    (segment, _) = segments_of(writer.directory)
    rewrite = Rewrite(OffsetMap({b"a": 1}, 2), AbortedTransactions(()), (), 0, 0)
    before = names_in(writer.directory)

    with pytest.raises(LogCorruptError, match=rf"{path}: position {len(data) // 2}: .*crc"):
        rewrite.write([segment])

    assert names_in(writer.directory) == before
    assert path.read_bytes() == data


@pytest.mark.parametrize("failing", ["the batches", "an index", "a time index"])
def test_compact_when_disk_refuses_then_nothing_changes(writer: LogWriter, failing: str) -> None:
    writer.append((b"a", b"1"), (b"a", b"2"))
    writer.roll()
    before = {path: path.read_bytes() for path in writer.directory.iterdir()}
    files = iter(("the batches", "an index", "a time index"))

    def sync(_fd: int) -> None:
        if next(files) == failing:
            raise OSError(5, "the disk is bad")

    rewrite = Rewrite(OffsetMap({b"a": 1}, 2), AbortedTransactions(()), (), 0, 0, sync=sync)
    with pytest.raises(OSError, match="disk is bad"):
        rewrite.write(segments_of(writer.directory)[:1])

    assert {path: path.read_bytes() for path in writer.directory.iterdir()} == before


def test_compact_when_throttled_then_bytes_read_and_written_are_told(writer: LogWriter) -> None:
    for _ in range(50):
        writer.append((b"a", b"v" * 100_000))
    writer.roll()
    size = segments_of(writer.directory)[0].size
    told: list[int] = []

    compact(writer.directory, throttle=told.append)

    (left, _) = segments_of(writer.directory)
    assert sum(told) == 2 * size + left.size
    assert max(told) < 2 << 20


def test_cleanable_part_when_asked_then_ends_before_what_is_young_or_unsafe(
    writer: LogWriter,
) -> None:
    for time_ms in (100, 300, 200, 400):
        writer.append((b"a", b"1"), time_ms=time_ms)
        writer.roll()
    segments = segments_of(writer.directory)

    def part(start: int, end: int, latest_ms: int) -> tuple[int, int, float]:
        found = cleanable_part(segments, start, end_offset=end, latest_ms=latest_ms)
        return len(found.segments), found.start_offset, found.dirty_ratio

    assert part(0, 4, 1000) == (4, 0, 1.0)
    assert part(1, 4, 1000) == (4, 1, 0.75)
    assert part(0, 3, 1000) == (3, 0, 1.0)
    assert part(0, 4, 250) == (1, 0, 1.0)
    assert part(2, 4, 250) == (3, 2, 1 / 3)  # the second was young enough in a former run
    assert part(4, 4, 1000) == (4, 4, 0.0)
    assert part(5, 4, 1000) == (4, 0, 1.0)  # truncated since
    assert part(0, 0, 1000) == (0, 0, 0.0)


def _run_model(directory: Path, steps: list[tuple[object, ...]]) -> None:
    writer = LogWriter(directory)
    start, now_ms = 0, 10_000
    for kind, *arguments in steps:
        now_ms += 10
        if kind == "append":
            rows, codec, producer_id, is_transactional = arguments
            assert isinstance(rows, list)
            assert isinstance(codec, int)
            assert isinstance(producer_id, int)
            is_open = producer_id in writer.open or (is_transactional and producer_id >= 0)
            attributes = codec | (TRANSACTIONAL if is_open else 0)
            writer.append(*rows, time_ms=now_ms, producer_id=producer_id, attributes=attributes)
        elif kind == "end":
            producer_id, is_commit = arguments
            assert isinstance(producer_id, int)
            if producer_id in writer.open:
                writer.end(producer_id, is_commit=bool(is_commit), time_ms=now_ms)
        elif kind == "roll":
            writer.roll()
        else:
            max_bytes, segment_bytes, kept = arguments
            assert isinstance(max_bytes, int)
            assert isinstance(segment_bytes, int)
            start = _clean_and_judge(
                writer,
                start,
                now_ms,
                max_bytes=max_bytes,
                segment_bytes=segment_bytes,
                kept=frozenset(writer.last_offsets.values()) if kept else frozenset(),
            )


def _clean_and_judge(
    writer: LogWriter,
    start: int,
    now_ms: int,
    *,
    max_bytes: int,
    segment_bytes: int,
    kept: frozenset[int],
) -> int:
    directory = writer.directory
    before = committed_of(directory)
    # an earlier run may have been asked to keep none
    kept &= {one.last_offset for one in batches_of(directory)}
    ends = {one.next_offset for one in segments_of(directory)}
    end = compact(
        directory,
        start_offset=start,
        end_offset=writer.stable_offset,
        now_ms=now_ms,
        delete_retention_ms=25,
        kept_offsets=kept,
        max_bytes=max_bytes,
        segment_bytes=segment_bytes,
    )
    after = committed_of(directory)
    assert end >= start
    assert values_of(after) == values_of(before)
    rest = iter(before)
    assert all(one in rest for one in after)  # in their order, and unchanged
    assert [one for one in after if one.offset >= end] == [
        one for one in before if one.offset >= end
    ]
    assert [one for one in after if one.key is None] == [one for one in before if one.key is None]
    keys = [one.key for one in after if one.offset < end and one.key is not None]
    assert len(keys) == len(set(keys))
    lasts = {one.last_offset for one in batches_of(directory)}
    assert kept <= lasts
    segments = segments_of(directory)
    assert {one.next_offset for one in segments} <= ends
    assert segments[-1].next_offset == writer.next_offset
    assert not [name for name in names_in(directory) if name.endswith((".swap", ".cleaned"))]
    assert problems_of(directory) == []
    return end


_rows = st.lists(
    st.tuples(
        st.sampled_from(
            [None, b"", b"a", b"b", b"c", b"a long key, hashed", b"another key, hashed"]
        ),
        st.sampled_from([None, b"", b"1", b"2" * 50]),
    ),
    min_size=1,
    max_size=6,
)
_steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            _rows,
            st.sampled_from([0, 0, 1, 4]),
            st.integers(-1, 2),
            st.booleans(),
        ),
        st.tuples(st.just("end"), st.integers(0, 2), st.booleans()),
        st.tuples(st.just("roll")),
        st.tuples(
            st.just("clean"),
            st.sampled_from([1, 1 << 20]),
            st.sampled_from([1, 400, 1 << 20]),
            st.booleans(),
        ),
    ),
    max_size=40,
)


@given(steps=_steps)
@settings(max_examples=150, deadline=None)
def test_compact_when_logs_are_arbitrary_then_readers_see_the_same_values(
    steps: list[tuple[object, ...]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        _run_model(Path(folder) / "orders-0", [*steps, ("roll",), ("clean", 1 << 20, 500, False)])


def test_compact_when_a_real_broker_wrote_the_log_then_last_values_stay(
    kafka_logs: Path, copy_partition: CopyPartition
) -> None:
    topics = sorted(path.name.removesuffix("-0") for path in kafka_logs.glob("v*-0"))
    assert len(topics) == 18
    changed = []
    for topic in topics:
        directory = copy_partition(topic)
        before, end = committed_of(directory), segments_of(directory)[-1].next_offset
        (directory / f"{end:020}.log").touch()  # the active one
        for _ in range(3):
            compact(directory, now_ms=1, delete_retention_ms=1 << 60, segment_bytes=12_000)
            assert values_of(committed_of(directory)) == values_of(before)
            assert set(committed_of(directory)) <= set(before)
            assert problems_of(directory) == []
        if committed_of(directory) != before:
            changed.append(topic)
    kept = ("v0", "v1", "v2-compacted")  # old formats stay as they are
    assert changed == [topic for topic in topics if not topic.startswith(kept)]


_KILLED_AT_EACH_STEP = """
import os, shutil, signal, sys
from pathlib import Path
from tests.support.compacted_logs import compact

made, copies = map(Path, sys.argv[1:])
NAMES = ("replace", "rename", "unlink", "remove", "fsync", "write", "utime", "close", "open")
originals = {name: getattr(os, name) for name in NAMES}

def dying(name, at):
    def call(*arguments, **options):
        global count
        count += 1
        if count == at:
            os.kill(os.getpid(), signal.SIGKILL)
        return originals[name](*arguments, **options)
    return call

for at in range(1, 1000):
    directory = copies / str(at) / made.name
    shutil.copytree(made, directory)
    pid = os.fork()
    if not pid:
        count = 0
        for name in NAMES:
            setattr(os, name, dying(name, at))
        compact(directory, now_ms=1000)
        os._exit(0)
    if os.waitpid(pid, 0)[1] == 0:
        break
print(at)
"""


def killed_at_each_step(made: Path, copies: Path) -> list[Path]:
    """Compact copies of a log in processes, each killed before another system call."""
    run = subprocess.run(
        [sys.executable, "-c", _KILLED_AT_EACH_STEP, str(made), str(copies)],
        capture_output=True,
        text=True,
        check=True,
    )
    return [copies / str(at) / made.name for at in range(1, int(run.stdout) + 1)]


def test_finish_swaps_when_killed_at_any_step_then_old_or_new_segments_are_there(
    writer: LogWriter, tmp_path: Path
) -> None:
    for n in range(4):
        writer.append((b"k", b"%d" % n), (b"%d" % n, b"v"), producer_id=1, attributes=TRANSACTIONAL)
        writer.end(1, is_commit=n != 2)
        writer.roll()
        (writer.directory / f"{writer.next_offset:020}.snapshot").write_bytes(b"")
    (writer.directory / f"{writer.next_offset:020}.snapshot").unlink()
    for path in writer.directory.glob("*.snapshot"):
        path.unlink()
    writer.append((b"active", b"1"))
    directories = killed_at_each_step(writer.directory, tmp_path / "copies")
    old, new = records_of(writer.directory), records_of(directories[-1])
    outcomes = []

    for directory in directories:
        done = finish_swaps(directory)
        outcomes.append(records_of(directory))
        assert not [name for name in names_in(directory) if name.endswith((".swap", ".cleaned"))]
        assert outcomes[-1] in (old, new)
        assert problems_of(directory) == []
        if done:
            assert done == [directory / f"{0:020}.log"]
            assert outcomes[-1] == new
            assert names_in(directory) == names_in(directories[-1])
        assert finish_swaps(directory) == []

    assert len(new) < len(old)
    assert outcomes == sorted(outcomes, key=len, reverse=True)  # old up to a step, and then new
    assert outcomes.count(new) > 10


class PowerCuts:
    """Notes what a directory may have after a loss of power at any time.

    Names that were changed since the directory was synced last may be as before or as after, each
    by itself; files that were not synced are empty.
    """

    def __init__(self, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.states: list[dict[str, bytes]] = []
        self._directory = directory
        self._random = random.Random(1)
        self._files = {path.name: path.stat().st_ino for path in directory.iterdir()}
        self._synced = set(self._files.values())
        self._contents: dict[int, bytes] = {}
        self._pending: list[tuple[str, str, int]] = []
        for name in ("open", "replace", "unlink", "fsync"):
            self._patch(name, monkeypatch)

    def _patch(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        original, note = getattr(os, name), getattr(self, f"_{name}")

        def call(*arguments: Any, **options: Any) -> Any:
            self._read()
            done = original(*arguments, **options)
            note(*arguments)
            return done

        monkeypatch.setattr(os, name, call)

    def _read(self) -> None:
        for path in self._directory.iterdir():
            self._contents[path.stat().st_ino] = path.read_bytes()

    def _open(self, path: str | Path, flags: int = 0, *_rest: int) -> None:
        if flags & os.O_CREAT:
            self._pending.append(("", Path(path).name, Path(path).stat().st_ino))

    def _replace(self, source: Path, target: Path) -> None:
        self._pending.append((Path(source).name, Path(target).name, 0))

    def _unlink(self, path: Path) -> None:
        self._pending.append((Path(path).name, "", 0))

    def _fsync(self, fd: int) -> None:
        found = os.fstat(fd)
        if not stat.S_ISDIR(found.st_mode):
            self._synced.add(found.st_ino)
            return
        count = len(self._pending)
        for at in range(count + 1):  # in their order, up to any
            self._note(self._pending[:at])
        for _ in range(100):
            self._note(self._random.sample(self._pending, self._random.randint(0, count)))
        self._files = self._applied(self._pending)
        self._pending = []

    def _applied(self, changes: list[tuple[str, str, int]]) -> dict[str, int]:
        files = dict(self._files)
        for source, target, inode in sorted(changes, key=self._pending.index):
            found = files.pop(source, None) if source else inode
            if target and found is not None:
                files[target] = found
        return files

    def _note(self, changes: list[tuple[str, str, int]]) -> None:
        self._read()
        state = {
            name: self._contents[inode] if inode in self._synced else b""
            for name, inode in self._applied(changes).items()
        }
        if state not in self.states:
            self.states.append(state)


def test_finish_swaps_when_power_is_lost_at_any_time_then_old_or_new_segments_are_there(
    writer: LogWriter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        writer.append((b"k", b"%d" % n), producer_id=1, attributes=TRANSACTIONAL)
        writer.end(1, is_commit=False)
        writer.append((b"k", b"%d" % n), (b"%d" % n, b"v"))
        writer.roll()
    old = records_of(writer.directory)
    with monkeypatch.context() as context:
        cuts = PowerCuts(writer.directory, context)
        compact(writer.directory, now_ms=1000)
    new = records_of(writer.directory)
    outcomes = []

    for number, state in enumerate(cuts.states):
        directory = tmp_path / f"{number}" / "orders-0"
        directory.mkdir(parents=True)
        for name, content in state.items():
            (directory / name).write_bytes(content)
        finish_swaps(directory)
        outcomes.append(records_of(directory))
        assert outcomes[-1] in (old, new)
        assert problems_of(directory) == []

    assert outcomes.count(old) > 20
    assert outcomes.count(new) > 20


def test_finish_swaps_when_a_new_segment_is_damaged_then_error_and_nothing_changes(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"1"), (b"a", b"2"))
    writer.roll()
    (writer.directory / f"{0:020}.log.swap").write_bytes(b"\0" * 70)
    before = names_in(writer.directory)

    with pytest.raises(LogCorruptError, match=r"log\.swap: position 0"):
        finish_swaps(writer.directory)

    assert names_in(writer.directory) == before


def test_finish_swaps_when_kafka_left_half_of_a_split_then_old_segment_stays(
    writer: LogWriter,
) -> None:
    writer.append((b"a", b"1"), (b"a", b"2"))
    writer.append((b"a", b"3"))
    writer.roll()
    path = segments_of(writer.directory)[0].path
    old = path.read_bytes()
    half = old[batches_of(writer.directory)[1].position :]
    (writer.directory / f"{2:020}.log.swap").write_bytes(half)
    (writer.directory / f"{0:020}.log.cleaned").write_bytes(old[:10])

    assert finish_swaps(writer.directory) == []

    assert path.read_bytes() == old
    assert problems_of(writer.directory) == []
