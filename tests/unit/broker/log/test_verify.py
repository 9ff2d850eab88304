from __future__ import annotations

import os
import struct
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.offline.segment_run import Engine, SegmentProblem, VerifyReport
from broker.log.offline.verify import Verification
from broker.protocol.checksum import crc32
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set

ENTRY = encode([b"some payload"])  # 22 bytes
SIZE = len(ENTRY)


def verify(
    tmp_path: Path,
    content: bytes,
    *,
    deep: bool = True,
    max_problems: int = 100,
    engine: Engine = "codec",
) -> VerifyReport:
    path = tmp_path / "segment"
    path.write_bytes(content)
    return Verification(path, deep, max_problems, engine).run()


def brief(problem: SegmentProblem) -> tuple[int, str, int, int]:
    return problem.pos, problem.kind, problem.skipped_bytes, problem.bytes_after


def with_bad_crc(entry: bytes) -> bytes:
    return entry[:-1] + bytes([entry[-1] ^ 1])


def wrapper_of(payload: bytes, codec: int) -> bytes:
    return struct.pack(">iBBI", 6 + len(payload), 1, codec, crc32(payload)) + payload


def test_verify_when_written_by_a_real_broker_then_clean(shared_data: Path) -> None:
    report = Verification(shared_data / "kafka-magic0" / f"{0:020d}.kafka").run()
    assert (report.size_bytes, report.entry_count, report.message_count) == (10_900, 100, 100)
    assert report.problems == ()
    assert report.is_complete


@pytest.mark.parametrize("engine", ["codec", "zlib", "crcmod"])
def test_verify_when_compressed_sets_are_inside_then_messages_are_counted(
    tmp_path: Path, engine: Engine
) -> None:
    content = ENTRY + build_set([b"a", b"b", b"c"], Codec.GZIP) + build_set([b"d"], Codec.SNAPPY)
    report = verify(tmp_path, content, engine=engine)
    assert (report.entry_count, report.message_count, report.problems) == (3, 5, ())


def test_verify_when_file_is_empty_then_clean(tmp_path: Path) -> None:
    assert verify(tmp_path, b"").is_complete


@pytest.mark.parametrize("engine", ["codec", "zlib", "crcmod"])
def test_verify_when_crc_is_bad_then_reported_and_the_rest_checked(
    tmp_path: Path, engine: Engine
) -> None:
    bad = with_bad_crc(ENTRY)
    report = verify(tmp_path, ENTRY + bad + bad + ENTRY, engine=engine)
    assert [brief(one) for one in report.problems] == [
        (SIZE, "crc", SIZE, 3 * SIZE),
        (2 * SIZE, "crc", SIZE, 2 * SIZE),
    ]
    assert report.problems[0].expected == f"{crc32(b'some payload'):08x}"
    assert report.problems[0].found == f"{crc32(b'some payloae'):08x}"
    assert report.entry_count == 2


def test_verify_when_magic_is_unknown_then_reported_once(tmp_path: Path) -> None:
    bad = bytearray(ENTRY)
    bad[4] = 7
    (problem,) = verify(tmp_path, ENTRY + bad + ENTRY).problems
    assert brief(problem) == (SIZE, "magic", SIZE, 2 * SIZE)
    assert (problem.expected, problem.found) == ("0 or 1", "7")


@pytest.mark.parametrize("engine", ["codec", "zlib", "crcmod"])
def test_verify_when_codec_is_unknown_then_reported_once(tmp_path: Path, engine: Engine) -> None:
    report = verify(tmp_path, ENTRY + wrapper_of(b"?", 3) + ENTRY, engine=engine)
    assert [brief(one) for one in report.problems] == [(SIZE, "codec", 11, 11 + SIZE)]
    assert report.entry_count == 2


def test_verify_when_wrapper_does_not_decompress_then_reported_if_deep(tmp_path: Path) -> None:
    content = ENTRY + wrapper_of(b"no gzip", Codec.GZIP) + ENTRY
    (problem,) = verify(tmp_path, content).problems
    assert (problem.pos, problem.kind, problem.expected) == (SIZE, "compressed", "gzip data")
    assert verify(tmp_path, content, deep=False).problems == ()


def test_verify_when_message_inside_a_wrapper_is_bad_then_reported(tmp_path: Path) -> None:
    from broker.protocol.message_set import wrap

    content = wrap(ENTRY + with_bad_crc(ENTRY), Codec.GZIP)
    (problem,) = verify(tmp_path, content).problems
    assert problem.kind == "compressed"


@pytest.mark.parametrize("engine", ["codec", "zlib", "crcmod"])
@pytest.mark.parametrize("size", range(1, SIZE))
def test_verify_when_last_entry_is_cut_anywhere_then_partial(
    tmp_path: Path, size: int, engine: Engine
) -> None:
    report = verify(tmp_path, ENTRY + ENTRY[:size], engine=engine)
    assert [brief(one) for one in report.problems] == [(SIZE, "partial", size, size)]
    assert report.entry_count == 1


@pytest.mark.parametrize("length", [-1, 0, 4, 1 << 30], ids=["negative", "zero", "short", "huge"])
def test_verify_when_length_is_broken_then_goes_on_at_the_next_good_entry(
    tmp_path: Path, length: int
) -> None:
    broken = struct.pack(">i", length) + ENTRY[4:]
    report = verify(tmp_path, ENTRY * 2 + broken + ENTRY * 3)
    assert [brief(one) for one in report.problems] == [(2 * SIZE, "size", SIZE, 4 * SIZE)]
    assert report.problems[0].found == str(length)
    assert report.entry_count == 5


def test_verify_when_a_broken_length_stays_inside_the_file_then_finds_its_way_back(
    tmp_path: Path,
) -> None:
    broken = struct.pack(">i", SIZE + 7) + ENTRY[4:]
    report = verify(tmp_path, ENTRY + broken + ENTRY * 5)
    assert [brief(one)[:3] for one in report.problems] == [(SIZE, "crc", SIZE)]
    assert report.entry_count == 6


def test_verify_when_file_ends_in_zeros_then_one_problem(tmp_path: Path) -> None:
    report = verify(tmp_path, ENTRY + bytes(10_000))
    assert [brief(one) for one in report.problems] == [(SIZE, "size", 10_000, 10_000)]


def test_verify_when_there_are_too_many_problems_then_stops(tmp_path: Path) -> None:
    report = verify(tmp_path, with_bad_crc(ENTRY) * 10, max_problems=3)
    assert len(report.problems) == 3
    assert not report.is_complete


def test_verify_when_done_then_progress_adds_up_to_the_size(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    path.write_bytes(ENTRY * 3 + with_bad_crc(ENTRY) + ENTRY + b"torn")
    done: list[int] = []
    Verification(path, progress=done.append).run()
    assert sum(done) == path.stat().st_size


def test_verify_when_file_is_missing_then_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Verification(tmp_path / "none").run()


@given(
    payloads=st.lists(st.binary(max_size=40), min_size=1, max_size=8),
    position=st.integers(0, 10_000),
    bit=st.integers(0, 7),
)
def test_verify_when_one_bit_flips_in_payload_or_crc_then_exactly_that_entry_is_reported(
    tmp_path_factory: pytest.TempPathFactory, payloads: list[bytes], position: int, bit: int
) -> None:
    entries = [encode([payload]) for payload in payloads]
    index = position % len(entries)
    at = 6 + position % (len(entries[index]) - 6)
    changed = bytearray(entries[index])
    changed[at] ^= 1 << bit
    path = tmp_path_factory.mktemp("flip") / "segment"
    path.write_bytes(b"".join([*entries[:index], bytes(changed), *entries[index + 1 :]]))
    (problem,) = Verification(path).run().problems
    assert (problem.pos, problem.kind) == (sum(map(len, entries[:index])), "crc")


@given(content=st.binary(max_size=200), head=st.integers(0, 3))
def test_verify_when_bytes_are_random_then_never_raises_and_accounts_for_all(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, head: int
) -> None:
    path = tmp_path_factory.mktemp("noise") / "segment"
    path.write_bytes(ENTRY * head + content)
    report = Verification(path).run()
    assert report.is_complete
    assert report.entry_count >= head
    assert all(one.skipped_bytes <= one.bytes_after for one in report.problems)


@pytest.mark.parametrize("kept", [0, 100_000])
def test_verify_when_the_file_shrinks_between_two_entries_then_ends_there(
    tmp_path: Path, kept: int
) -> None:
    path = tmp_path / "segment"
    path.write_bytes(ENTRY * 300_000)
    run = Verification(path)
    run.progress = lambda _: os.truncate(path, kept * SIZE)
    report = run.run()
    assert (report.problems, report.is_complete) == ((), True)
    assert report.size_bytes == report.entry_count * SIZE < 300_000 * SIZE


@pytest.mark.parametrize("kept", [0, 100_000])
def test_verify_when_the_file_shrinks_then_a_range_ends_there(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "segment"
    path.write_bytes(ENTRY * 300_000)
    run = Verification(path)
    run.progress = lambda _: os.truncate(path, kept * SIZE)
    report = run.run_range(0, 300_000 * SIZE)
    assert report.end == report.entry_count * SIZE < 300_000 * SIZE


def test_verify_when_a_broken_length_leads_near_the_end_then_the_good_ones_between_are_kept(
    tmp_path: Path,
) -> None:
    content = bytearray(ENTRY * 40)
    content[:4] = struct.pack(">i", len(content) - 4 - 3)
    report = verify(tmp_path, bytes(content))
    assert report.entry_count == 39
    assert [one.skipped_bytes for one in report.problems] == [SIZE]


@pytest.mark.parametrize("at", [4, 21])
def test_verify_when_every_third_entry_is_damaged_then_costs_little(
    tmp_path: Path, at: int
) -> None:
    damaged = bytearray(ENTRY)
    damaged[at] ^= 64
    started = time.process_time()
    report = verify(tmp_path, (ENTRY * 2 + damaged) * 20_000, max_problems=1 << 30)
    assert time.process_time() - started < 5
    assert report.entry_count == 40_000
