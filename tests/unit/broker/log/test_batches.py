"""Batches in files: found behind damage, and told from entries of 0.7."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from broker.files import opened
from broker.log.batches import find_batch, resume_behind, scan_batch_blocks
from broker.log.offline.segments import has_batches
from broker.protocol import codec
from broker.protocol.codec import Fault, Record, RecordBatch
from broker.protocol.message_set import build_set


def batch(offset: int, *values: bytes) -> bytes:
    records = [Record(offset + n, 1000 + n, None, value) for n, value in enumerate(values)]
    return codec.encode_batch(records, RecordBatch(base_offset=offset))


def test_scan_when_batches_are_larger_than_a_block_then_has_each_once(tmp_path: Path) -> None:
    whole = [batch(n, random.Random(n).randbytes(n * 50)) for n in range(40)]
    file = tmp_path / "f"
    file.write_bytes(b"".join(whole))

    with opened(file, os.O_RDONLY) as fd:
        blocks = list(scan_batch_blocks(fd, 0, file.stat().st_size, block_bytes=128))
        found = [one.base_offset for block in blocks for one in block.scan.batches]

    assert found == list(range(40))
    assert blocks[-1].end == file.stat().st_size
    assert not blocks[-1].scan.fault


@pytest.mark.parametrize("filler", [b"\0", b"\xff", b"\2"])
def test_find_when_a_span_is_overwritten_then_is_the_batch_behind_it(
    tmp_path: Path, filler: bytes
) -> None:
    whole = [batch(10 * n, b"x" * 900, b"y") for n in range(3000)]
    data = bytearray(b"".join(whole))
    size = len(whole[0])
    data[size + 5 : 2000 * size - 7] = filler * (1999 * size - 12)
    file = tmp_path / "f"
    file.write_bytes(data)

    with opened(file, os.O_RDONLY) as fd:
        *_, last = scan_batch_blocks(fd, 0, len(data))
        assert (last.end, bool(last.scan.fault)) == (size, True)
        assert find_batch(fd, last.end + 1, len(data)) == 2000 * size
        assert find_batch(fd, len(data) - size + 1, len(data)) is None


def test_scan_when_a_large_batch_is_damaged_then_has_its_fault(tmp_path: Path) -> None:
    data = bytearray(batch(0, b"x" * (3 << 20)))
    data[-1] ^= 1
    file = tmp_path / "f"
    file.write_bytes(data)

    with opened(file, os.O_RDONLY) as fd:
        (block,) = scan_batch_blocks(fd, 0, len(data))
        assert (block.end, block.scan.fault) == (0, Fault.CRC)
        (block,) = scan_batch_blocks(fd, 0, len(data) - 1)
        assert block.scan.fault is Fault.PARTIAL


@pytest.mark.parametrize("name", ["00000000000000000000.log", "00000000000000000000.pylog", "x"])
def test_format_when_a_file_is_looked_at_then_is_told_by_its_content(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.write_bytes(batch(0, b"a"))
    assert has_batches(file)
    file.write_bytes(build_set([b"a", b"b"]))
    assert not has_batches(file)


@pytest.mark.parametrize(
    ("name", "is_kafka"),
    [("00000000000000000000.log", True), ("00000000000000000000.pylog", False)],
)
def test_format_when_the_start_is_damaged_or_missing_then_the_name_tells(
    tmp_path: Path, name: str, is_kafka: bool
) -> None:
    file = tmp_path / name
    for content in (b"", b"\0" * 500, b"\7" * 500):
        file.write_bytes(content)
        assert has_batches(file) is is_kafka


def test_format_when_a_nameless_file_starts_damaged_then_the_first_good_batch_tells(
    tmp_path: Path,
) -> None:
    file = tmp_path / "x"
    file.write_bytes(b"\7" * 500 + batch(7, b"a"))
    assert has_batches(file)


@pytest.mark.parametrize("zeros", [0, 1, 7, 8, 50, (1 << 20) - 20, 1 << 20, (3 << 20) + 5])
@pytest.mark.parametrize("offset", [0, 1, 2**40])
def test_find_when_zeros_are_before_a_batch_then_is_found(
    tmp_path: Path, zeros: int, offset: int
) -> None:
    file = tmp_path / "f"
    file.write_bytes(bytes(zeros) + batch(offset, b"x"))
    with opened(file, os.O_RDONLY) as fd:
        assert find_batch(fd, 0, file.stat().st_size) == zeros


def with_crc(damaged: bytearray) -> bytes:
    damaged[17:21] = struct.pack(">I", codec.crc32c(memoryview(damaged)[21:]))
    return bytes(damaged)


@pytest.mark.parametrize("fault", [Fault.CRC, Fault.OFFSETS, Fault.CODEC])
def test_resume_when_a_damaged_batch_holds_a_batch_then_is_behind_the_whole(
    tmp_path: Path, fault: Fault
) -> None:
    damaged = bytearray(batch(0, b"x" * 50 + batch(7, b"inner") + b"y" * 50))
    if fault is Fault.CRC:
        damaged[-5] ^= 1
    else:
        at = 60 if fault is Fault.OFFSETS else 22  # the last bytes of count and attributes
        damaged[at] = 7
        with_crc(damaged)
    file = tmp_path / "f"
    file.write_bytes(damaged + batch(1, b"a") + batch(2, b"b"))
    with opened(file, os.O_RDONLY) as fd:
        end = file.stat().st_size
        (block,) = scan_batch_blocks(fd, 0, end)
        assert block.scan.fault is fault
        assert resume_behind(fd, 0, end, fault) == len(damaged)


@pytest.mark.parametrize("rest", [1, 60])
def test_resume_when_a_damaged_size_leads_near_the_end_then_is_the_next_good_batch(
    tmp_path: Path, rest: int
) -> None:
    whole = [batch(n, b"x") for n in range(40)]
    size = len(whole[0])
    data = bytearray(b"".join(whole))
    data[8:12] = struct.pack(">i", len(data) - 12 - rest)
    file = tmp_path / "f"
    file.write_bytes(data)
    with opened(file, os.O_RDONLY) as fd:
        assert resume_behind(fd, 0, len(data), Fault.CRC) == size
