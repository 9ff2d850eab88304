"""Verifying segments of batches: each kind of damage has its place, and the rest is verified."""

from __future__ import annotations

import os
import random
import struct
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.log.offline.batch_verify import BatchVerification
from broker.log.offline.segment_run import Engine, SegmentProblem, VerifyReport
from broker.log.offline.verify import verify_paths
from broker.log.side_files import indexes_of
from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch
from broker.protocol.compression import Codec, compress_batch
from tests.support.record_batches import batch_bytes, old_bytes, varint, wrapper

ENGINES: list[Engine] = ["codec", "zlib", "crcmod"]


def batch(offset: int, count: int = 2, *, size: int = 20, **fields: int) -> bytes:
    records = [Record(offset + n, 1000 + n, b"k", b"v" * size) for n in range(count)]
    return codec.encode_batch(records, RecordBatch(base_offset=offset, **fields))


def segment(directory: Path, *parts: bytes, base: int = 0) -> Path:
    """Write a segment with its indexes."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base:020d}.log"
    path.write_bytes(b"".join(parts))
    size = path.stat().st_size
    index, time_index = indexes_of(path, base, size, interval_bytes=100)
    path.with_suffix(".index").write_bytes(index)
    path.with_suffix(".timeindex").write_bytes(time_index)
    return path


def verify(path: Path, engine: Engine = "codec", *, deep: bool = True) -> VerifyReport:
    return BatchVerification(path, deep=deep, engine=engine).run()


def brief(problem: SegmentProblem) -> tuple[str, int, str, int | None]:
    return Path(problem.file).suffix, problem.pos, problem.kind, problem.offset


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "my.topic-with dash-0"


LONG = batch(2)
SIZE = len(batch(0))


def changed(data: bytes, at: int, *, bit: int = 0) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def with_time(data: bytes, timestamp: int) -> bytes:
    """Return a batch with another max timestamp, and its CRC."""
    head = codec.scan_batches(data).batches[0]
    return batch_bytes(data[61:], head._replace(max_timestamp=timestamp))


UNPARSED = batch_bytes(b"\0" * 9, RecordBatch(base_offset=2, last_offset_delta=1, record_count=1))
UNOPENED = batch_bytes(
    b"none", RecordBatch(base_offset=2, attributes=1, last_offset_delta=1, record_count=2)
)
DAMAGED = {
    "crc": (changed(LONG, 70), "crc", 0),
    "magic": (changed(LONG, 16, bit=3), "magic", 0),
    "size": (changed(LONG, 8, bit=7), "size", 0),
    "offset below": (batch(1, 3), "offset", 0),
    "negative offset": (changed(LONG, 0, bit=7), "offset", 0),
    "count": (batch_bytes(b"", RecordBatch(base_offset=2, record_count=2)), "offset", 0),
    "attributes": (batch(2, attributes=1 << 9), "attributes", 0),
    "codec": (batch_bytes(b"", RecordBatch(base_offset=2, attributes=6)), "codec", 0),
    "records": (UNPARSED, "records", 0),
    "time": (with_time(LONG, 999), "time", 0),
    "compressed": (UNOPENED, "compressed", 0),
    "epoch": (batch(2, leader_epoch=4), "epoch", SIZE),
}
"""A damaged batch behind a good one, its kind, and how far behind its start it is noticed."""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", DAMAGED)
def test_verify_when_a_batch_is_damaged_then_is_named_and_the_rest_verified(
    directory: Path, name: str, engine: Engine
) -> None:
    damaged, kind, later = DAMAGED[name]
    path = segment(directory, batch(0), damaged, batch(4), batch(6))
    report = verify(path, engine)
    assert [brief(one)[:3] for one in report.problems] == [(".log", SIZE + later, kind)], name
    assert report.problems[0].offset in (2, 4)
    assert (report.next_offset, report.is_complete) == (8, True)
    assert report.entry_count >= 3


def test_verify_when_only_the_checkpoint_tells_that_an_epoch_is_wrong_then_the_batch_is_named(
    directory: Path,
) -> None:
    path = segment(directory, batch(0), batch(2, leader_epoch=4), batch(4))
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (problem,) = verify(path).problems
    assert brief(problem) == (".log", SIZE, "epoch", 2)
    assert (problem.expected, problem.found) == ("-1 to 0", "4")


def test_verify_when_time_is_that_of_the_broker_or_compaction_then_max_timestamp_may_differ(
    directory: Path,
) -> None:
    parts = [with_time(batch(2 * n, attributes=bit), 5) for n, bit in enumerate((1 << 3, 1 << 6))]
    assert verify(segment(directory, *parts)).problems == ()


@pytest.mark.parametrize("engine", ENGINES)
def test_verify_when_old_formats_are_inside_then_wrappers_are_opened(
    directory: Path, engine: Engine
) -> None:
    inner = b"".join(old_bytes(1, n, b"v", timestamp=100 + n) for n in range(3))
    good = wrapper(1, 4, 1, inner, timestamp=102)
    path = segment(directory, old_bytes(0, 0, b"a"), old_bytes(1, 1, b"b", timestamp=5), good)
    report = verify(path, engine)
    assert (report.problems, report.message_count, report.next_offset) == ((), 5, 5)

    position = path.stat().st_size - len(good)
    for bad, kind in (
        (wrapper(1, 4, 1, inner, timestamp=101), "time"),
        (wrapper(1, 3, 1, inner, timestamp=102), "offset"),
        (wrapper(1, 4, 1, inner[:-1], timestamp=102), "compressed"),
    ):
        path.write_bytes(path.read_bytes()[:position] + bad)
        (problem,) = (one for one in verify(path, engine).problems if one.file == str(path))
        assert (problem.pos, problem.kind) == (position, kind)


def test_verify_when_shallow_then_compressed_batches_are_not_opened(directory: Path) -> None:
    path = segment(directory, batch(0, attributes=4), UNOPENED, UNPARSED)
    assert [one.kind for one in verify(path).problems] == ["compressed", "records"]
    assert [one.kind for one in verify(path, deep=False).problems] == ["records"]


def edit(offset: int, layout: str, value: int) -> Callable[[bytes], bytes]:
    def changed(data: bytes) -> bytes:
        edited = bytearray(data)
        struct.pack_into(layout, edited, offset, value)
        return bytes(edited)

    return changed


@pytest.mark.parametrize(
    ("suffix", "change", "position"),
    [
        (".index", edit(4, ">i", SIZE + 1), 0),  # the position of no batch
        (".index", edit(0, ">i", 4), 0),  # an offset inside a batch
        (".index", edit(8, ">i", 1), 8),
        (".index", lambda data: data + struct.pack(">ii", 5000, 10**6), 40),
        (".index", lambda data: data[:-3], 32),
        (".timeindex", edit(8, ">i", 10**6), 0),
        (".timeindex", edit(0, ">q", -5), 0),
        (".txnindex", lambda _: struct.pack(">hqqqq", 0, 1, 0, 1000, 9), 0),
        (".snapshot", lambda _: b"\0\1" + bytes(8), 2),
    ],
)
def test_verify_when_a_file_beside_is_damaged_then_is_named_once(
    directory: Path, suffix: str, change: Callable[[bytes], bytes], position: int
) -> None:
    path = segment(directory, *(batch(3 * n, 3) for n in range(6)))
    assert verify(path).problems == ()
    beside = path.with_suffix(suffix)
    beside.write_bytes(change(beside.read_bytes() if beside.exists() else b""))
    (problem,) = verify(path).problems
    assert (problem.file, problem.pos, problem.kind) == (str(beside), position, suffix[1:])


def test_verify_when_an_index_is_preallocated_or_missing_then_is_no_damage(directory: Path) -> None:
    path = segment(directory, *(batch(2 * n) for n in range(6)))
    for suffix in (".index", ".timeindex"):
        with path.with_suffix(suffix).open("ab") as file:
            file.truncate(24 << 10)
    assert verify(path).problems == ()
    for suffix in (".index", ".timeindex"):
        path.with_suffix(suffix).unlink()
    assert verify(path).problems == ()


def test_verify_when_an_index_has_what_other_versions_write_then_is_good(directory: Path) -> None:
    path = segment(directory, *(batch(2 * n) for n in range(6)))
    # the first offset of a batch, as before 1.1; the last one of three batches appended at once
    rows = [(2, SIZE), (9, 2 * SIZE)]
    path.with_suffix(".index").write_bytes(b"".join(struct.pack(">ii", *row) for row in rows))
    assert verify(path).problems == ()


def test_verify_when_a_log_is_cut_between_batches_then_its_index_tells(directory: Path) -> None:
    path = segment(directory, *(batch(2 * n) for n in range(6)))
    path.write_bytes(path.read_bytes()[: 3 * SIZE])
    assert [brief(one)[:3] for one in verify(path).problems] == [(".index", 16, "index")]


@pytest.mark.parametrize("filler", [b"\0", b"\xff"])
def test_verify_when_a_file_ends_in_filler_then_is_one_problem(
    directory: Path, filler: bytes
) -> None:
    path = segment(directory, batch(0), filler * 10_000)
    (problem,) = verify(path).problems
    assert (problem.pos, problem.skipped_bytes, problem.offset) == (SIZE, 10_000, 2)


def test_verify_when_cut_anywhere_then_the_end_is_partial(directory: Path) -> None:
    whole = batch(0) + batch(2, attributes=1)
    for size in range(len(whole)):
        path = segment(directory, whole[:size])
        problems = [brief(one) for one in verify(path).problems]
        start = SIZE if size >= SIZE else 0
        offset = 2 if size >= SIZE else 0
        expected = [(".log", start, "partial", offset)] if size > start else []
        assert problems == expected, size


def test_joints_when_offsets_are_missing_then_a_gap_unless_the_log_was_compacted(
    directory: Path,
) -> None:
    segment(directory, batch(0), batch(2))
    segment(directory, batch(10), base=10)
    (problem,) = verify_paths([directory]).problems
    assert brief(problem) == (".log", 2 * SIZE, "gap", 4)

    segment(directory, batch(0, last_offset_delta=7))
    assert verify_paths([directory]).problems == []

    segment(directory, batch(0), batch(9))
    (problem,) = verify_paths([directory]).problems
    assert brief(problem) == (".log", 2 * SIZE, "overlap", 11)


def test_directory_when_its_files_are_damaged_then_each_is_named_once(directory: Path) -> None:
    segment(directory, batch(0))
    segment(directory, batch(2), base=2)
    names = ["leader-epoch-checkpoint", "partition.metadata", f"{4:020d}.snapshot"]
    for name in names:
        (directory / name).write_bytes(b"\xff")
    found = verify_paths([directory / f"{2:020d}.log"]).problems
    assert [Path(one.file).name for one in found] == names
    assert [one.kind for one in found] == ["epochs", "metadata", "snapshot"]


def test_paths_when_a_data_directory_has_leftovers_then_are_passed_over(tmp_path: Path) -> None:
    for name in ("t-0", "t-0." + "a" * 32 + "-delete", "t-1." + "0" * 32 + "-future"):
        segment(tmp_path / name, batch(0))
    segment(tmp_path / "t-0", batch(0)).with_suffix(".log.deleted").write_bytes(b"x")
    (report,) = verify_paths([tmp_path]).reports
    assert report.path.parent == tmp_path / "t-0"


def test_verify_when_a_batch_is_completed_meanwhile_then_is_no_damage(directory: Path) -> None:
    whole = batch(0) + batch(2)
    path = segment(directory, whole[:-5])
    running = BatchVerification(path)
    path.write_bytes(whole + batch(4)[:9])
    report = running.run()
    assert (report.problems, report.next_offset) == ((), 4)


def test_verify_when_heads_claim_all_that_follows_then_takes_bounded_time_and_memory(
    directory: Path,
) -> None:
    head = bytearray(batch(0)[:61])
    total = 2 << 20
    claims = []
    for position in range(0, total, 61):
        struct.pack_into(">i", head, 8, total - position - 12)
        claims.append(bytes(head))
    path = directory / f"{0:020d}.log"
    directory.mkdir()
    path.write_bytes(b"".join(claims)[:total] + batch(4))
    started_s = time.process_time()
    tracemalloc.start()
    report = verify(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.problems
    assert peak < 32 << 20
    assert time.process_time() - started_s < 20


def test_verify_when_records_are_a_bomb_then_memory_is_bounded(directory: Path) -> None:
    count = 3_000_000
    content = b"".join(
        bytes([2 * len(body)]) + body
        for n in range(0, count, 1000)
        for body in [b"\0\0" + varint(n) + b"\1\1\0"]
    )
    bomb = cramjam.zstd.compress(bytes(1 << 30))
    fields = RecordBatch(attributes=int(Codec.NONE) | 4, last_offset_delta=count, record_count=3000)
    good = batch_bytes(compress_batch(Codec.ZSTD, content), fields._replace(max_timestamp=-1))
    bad = batch_bytes(bytes(bomb), fields._replace(base_offset=count + 1))
    path = segment(directory, good, bad)
    tracemalloc.start()
    report = verify(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [(one.kind, one.pos) for one in report.problems] == [("compressed", len(good))]
    assert peak < 160 << 20


@pytest.mark.parametrize("name", ["v0-none-0", "v1-gzip-0", "v2-txn-0", "v2-compacted-0"])
def test_flips_in_a_log_of_kafka_when_verified_then_are_found(
    kafka_logs: Path, tmp_path: Path, name: str
) -> None:
    choose = random.Random(name)
    for file in (kafka_logs / name).iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    for path in sorted(tmp_path.glob("*.log")):
        good = path.read_bytes()
        # an offset has no CRC: only that of the next batch contradicts it, if there is no gap
        found = codec.scan_batches(good).batches
        unsure = found if name == "v2-compacted-0" else found[-1:]
        unknown = {one.position + n for one in unsure for n in range(8)}
        step = max(1, len(good) // 600)
        for at in range(choose.randrange(step), len(good), step):
            path.write_bytes(changed(good, at, bit=choose.randrange(8)))
            problems = verify(path).problems
            assert problems or at in unknown, at
            assert all(0 <= one.pos <= len(good) for one in problems)
        path.write_bytes(good)


@given(content=st.binary(max_size=200), at=st.integers(0, 150), index=st.binary(max_size=60))
@settings(max_examples=60)
def test_verify_when_bytes_are_random_then_never_raises_and_accounts_for_all(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, at: int, index: bytes
) -> None:
    directory = tmp_path_factory.mktemp("noise-0")
    path = directory / f"{0:020d}.log"
    whole = batch(0) + batch(2)
    path.write_bytes(whole[:at] + content + whole[at:] + batch(4))
    for suffix in (".index", ".timeindex", ".txnindex", ".snapshot"):
        path.with_suffix(suffix).write_bytes(index)
    (directory / "leader-epoch-checkpoint").write_bytes(index)
    report = verify(path)
    assert report.is_complete
    assert all(one.skipped_bytes <= one.bytes_after for one in report.problems)


@pytest.mark.parametrize("kept", [0, 1, 700])
def test_verify_when_the_file_shrinks_between_two_batches_then_ends_there(
    directory: Path, kept: int
) -> None:
    whole = [batch(2 * n, size=4000) for n in range(1000)]
    path = segment(directory, *whole)
    run = BatchVerification(path)
    run.progress = lambda _: os.truncate(path, kept * len(whole[0]))
    report = run.run()
    assert not [one for one in report.problems if one.file == str(path)]
    assert report.is_complete
    assert report.entry_count * len(whole[0]) == report.size_bytes < 1000 * len(whole[0])


@pytest.mark.parametrize("claimed", [None, 1 << 20])
@pytest.mark.parametrize("kind", ["magic", "crc"])
def test_verify_when_every_second_batch_is_damaged_then_costs_a_few_reads_of_the_file(
    directory: Path, reads: list[int], kind: str, claimed: int | None
) -> None:
    good = batch(0)
    damaged = bytearray(good)
    damaged[16 if kind == "magic" else 70] ^= 1 << 3
    if claimed:
        damaged[8:12] = struct.pack(">i", claimed)
    path = directory / f"{0:020d}.log"
    directory.mkdir()
    path.write_bytes((good + damaged) * 5_000 + bytes(1 << 20))
    report = BatchVerification(path, max_problems=1 << 30).run()
    assert sum(reads) < 100 * report.size_bytes
    if not claimed:
        assert report.entry_count == 5_000
