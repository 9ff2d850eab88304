from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.log.scan import BLOCK_BYTES, find_entry, scan_blocks
from broker.log.segment import SegmentFile
from broker.protocol import codec
from broker.protocol.codec import Fault, encode
from tests.support.codec_engines import ENGINE_NAMES, load_engine


def walk(path: Path, block_bytes: int) -> tuple[int, int, Fault]:
    file = SegmentFile(path)
    end, count, fault = 0, 0, Fault.NONE
    for block in scan_blocks(file.fd, 0, path.stat().st_size, block_bytes=block_bytes):
        assert block.position == end
        end, fault = block.end, block.scan.fault
        count += block.scan.entry_count
    return end, count, fault


@given(
    sizes=st.lists(st.integers(0, 300), max_size=20),
    tail=st.binary(max_size=3),
    block_bytes=st.integers(16, 400),
)
def test_scan_blocks_when_any_block_size_then_same_result(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], tail: bytes, block_bytes: int
) -> None:
    path = tmp_path_factory.mktemp("walk") / "segment"
    content = encode([b"x" * size for size in sizes])
    path.write_bytes(content + tail)
    fault = Fault.PARTIAL if tail else Fault.NONE
    assert walk(path, block_bytes) == (len(content), len(sizes), fault)


def test_scan_blocks_when_large_entry_has_bad_crc_then_fault_without_reading_it_whole(
    tmp_path: Path,
) -> None:
    path = tmp_path / "segment"
    good, large = encode([b"a"]), bytearray(encode([b"b" * 1000]))
    large[500] ^= 1
    path.write_bytes(good + large + good)
    assert walk(path, 64) == (len(good), 1, Fault.CRC)


def test_scan_blocks_when_length_points_past_the_file_then_partial(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    good = encode([b"a" * 30])
    broken = struct.pack(">iBBI", 0x7FFFFFF0, 1, 0, 0) + bytes(200)
    path.write_bytes(good + broken)
    assert walk(path, 64) == (len(good), 1, Fault.PARTIAL)


def test_scan_blocks_when_large_magic0_entry_then_whole(tmp_path: Path) -> None:
    path = tmp_path / "segment"
    payload = b"x" * 500
    crc = int.from_bytes(encode([payload])[6:10], "big")
    path.write_bytes(struct.pack(">iBI", 505, 0, crc) + payload)
    assert walk(path, 64) == (509, 1, Fault.NONE)


@pytest.mark.parametrize("payload_bytes", [1, 600, 3 << 20, (1 << 24) - 7])
@pytest.mark.parametrize("shift", [-16, -9, -5, -4, -3, -1, 0, 1])
def test_find_entry_when_it_lies_across_blocks_then_found(
    tmp_path: Path, payload_bytes: int, shift: int
) -> None:
    path = tmp_path / "segment"
    entry = encode([b"x" * payload_bytes])
    start = BLOCK_BYTES + shift
    path.write_bytes(bytes(start) + entry + b"tail")
    file, size = SegmentFile(path), path.stat().st_size

    assert find_entry(file.fd, 1, size) == start
    assert find_entry(file.fd, start + 1, size) is None
    assert find_entry(file.fd, 1, size, search_end=start) is None
    assert find_entry(file.fd, 1, start + len(entry) - 1) is None  # it is not whole before there


@pytest.mark.parametrize("shape", [b"\0\0\0\1", b"\0\xff\xff\0\0"])
def test_find_entry_when_each_place_looks_like_a_long_one_then_the_good_one_is_found(
    tmp_path: Path, shape: bytes
) -> None:
    path = tmp_path / "segment"
    front = shape * 200_000  # by the CRC of each candidate by itself this took minutes
    entry = encode([b"good"])
    path.write_bytes(front + b"x" + entry * 2 + front)
    file, size = SegmentFile(path), path.stat().st_size

    assert find_entry(file.fd, 1, size) == len(front) + 1
    assert find_entry(file.fd, len(front) + 2 + len(entry), size) is None


@pytest.mark.parametrize("engine_name", ENGINE_NAMES)
def test_find_entry_when_the_file_ends_before_the_given_end_then_the_search_ends_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine_name: str
) -> None:
    monkeypatch.setattr(codec, "find_entry", load_engine(engine_name).find_entry)
    path = tmp_path / "segment"
    path.write_bytes(bytes(50) + encode([b"good"]) + b"end")
    file = SegmentFile(path)

    assert find_entry(file.fd, 0, 200) == 50
    assert find_entry(file.fd, 51, 200) is None
    assert find_entry(file.fd, 150, 200) is None
