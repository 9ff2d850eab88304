"""Batches in files: found behind damage, and told from entries of 0.7."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from broker.files import opened
from broker.log.batches import find_batch, scan_batch_blocks
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
