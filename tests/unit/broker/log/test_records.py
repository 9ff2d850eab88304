"""The batches of Kafka's segment files, their records, and where offsets are."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.errors import InvalidMessageError, LogCorruptError
from broker.log.offline import records
from broker.log.offline.records import (
    StoredBatch,
    end_offset_of,
    first_offset_of,
    iter_batches,
    offset_at,
    position_of,
    records_of,
)
from broker.protocol import codec
from broker.protocol.codec import Fault, Record, RecordBatch

NAME = "00000000000000000000.log"


def batch(offset: int, *values: bytes, **fields: Any) -> bytes:
    made = [Record(offset + n, 1000 + n, None, value) for n, value in enumerate(values)]
    return codec.encode_batch(made, RecordBatch(base_offset=offset, **fields))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / NAME


def kafka_segments(kafka_logs: Path) -> Iterator[tuple[dict[str, Any], Path]]:
    for topic in json.loads((kafka_logs / "manifest.json").read_text())["topics"].values():
        for segment in topic["segments"]:
            yield segment, kafka_logs / segment["file"]


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def line_of(record: Record) -> bytes:
    fields = {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _base64(record.key),
        "value": _base64(record.value),
        "headers": [[name, _base64(value)] for name, value in record.headers],
    }
    return json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def test_records_when_a_real_broker_wrote_them_then_have_the_digest_of_the_manifest(
    kafka_logs: Path,
) -> None:
    for segment, path in kafka_segments(kafka_logs):
        digest = hashlib.sha256()
        for one in iter_batches(path):
            assert not one.fault
            for record in records_of(one) if not one.head.is_control else ():
                digest.update(line_of(record))
        assert digest.hexdigest() == segment["records_sha256"], path


def test_offsets_when_a_real_broker_wrote_them_then_lead_to_their_batches(
    kafka_logs: Path,
) -> None:
    for _, path in kafka_segments(kafka_logs):
        found = list(iter_batches(path))
        for one in found:
            for record in records_of(one):
                assert first_offset_of(one) <= record.offset < one.head.next_offset
                assert position_of(path, record.offset) == one.head.position
        assert end_offset_of(path) == found[-1].head.next_offset
        assert position_of(path, found[-1].head.next_offset) == path.stat().st_size


def test_iter_when_a_batch_is_damaged_then_has_it_with_its_fault_and_those_behind(
    path: Path,
) -> None:
    whole = [batch(0, b"a"), batch(1, b"b" * (2 << 20)), batch(2, b"c"), batch(3, b"d")]
    whole += [batch(4, b"e"), batch(5, b"f", b"g")]
    whole[1] = whole[1][:-1] + b"?"
    broken = bytearray(batch(4, b"e"))
    broken[57:61] = struct.pack(">i", 7)  # records, of which there is one offset
    broken[17:21] = struct.pack(">I", codec.crc32c(memoryview(broken)[21:]))
    whole[4] = bytes(broken)
    path.write_bytes(b"".join(whole))

    found = list(iter_batches(path))

    faults = [Fault.NONE, Fault.CRC, *[Fault.NONE] * 2, Fault.OFFSETS, Fault.NONE]
    assert [one.fault for one in found] == faults
    assert b"".join(one.data for one in found) == path.read_bytes()
    starts = [0, *(sum(map(len, whole[: n + 1])) for n in range(5))]
    assert [one.head.position for one in found] == starts
    second = starts[2]
    assert list(iter_batches(path, second)) == found[2:]
    assert list(iter_batches(path, starts[1], second)) == found[1:2]


def test_iter_when_records_do_not_unfold_then_is_a_fault_only_of_a_deep_walk(path: Path) -> None:
    data = bytearray(batch(0, b"x" * 99, attributes=1))
    data[-20:] = bytes(20)
    data[17:21] = struct.pack(">I", codec.crc32c(memoryview(data)[21:]))
    path.write_bytes(data + batch(1, b"y"))

    assert [one.fault for one in iter_batches(path)] == [Fault.COMPRESSED, Fault.NONE]
    shallow = list(iter_batches(path, deep=False))
    assert [one.fault for one in shallow] == [Fault.NONE, Fault.NONE]
    with pytest.raises(InvalidMessageError, match="message at 0 is invalid"):
        records_of(shallow[0])


@pytest.mark.parametrize("tail", [b"\0" * 100, b"\xff" * 100, batch(1, b"b")[:-1], b"to"])
def test_iter_when_the_tail_is_no_batch_then_corrupt_after_the_good_ones(
    path: Path, tail: bytes
) -> None:
    path.write_bytes(batch(0, b"a") + tail)
    found: list[StoredBatch] = []
    with pytest.raises(LogCorruptError, match=f"{NAME}: the message at {len(batch(0, b'a'))} "):
        found.extend(iter_batches(path))
    assert len(found) == 1


def test_iter_when_a_damaged_batch_claims_most_of_a_large_file_then_is_not_read(
    path: Path,
) -> None:
    size = records._MAX_DAMAGED_BYTES + (1 << 20)
    head = bytearray(batch(0, b"a"))
    head[8:12] = struct.pack(">i", size - 12)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(size)  # sparse
    with pytest.raises(LogCorruptError, match="the message at 0 is invalid"):
        next(iter_batches(path))


def test_position_when_the_index_lies_then_is_found_by_the_heads(path: Path) -> None:
    whole = [batch(10 * n, b"x", b"y") for n in range(5)]
    path.write_bytes(b"".join(whole))
    size = len(whole[0])
    for entries in ([(21, size)], [(21, 7)], [(21, 1 << 30)], [(21, -5)], [(21, 2 * size), (0, 0)]):
        data = b"".join(struct.pack(">ii", *one) for one in entries)
        path.with_suffix(".index").write_bytes(data + b"odd")
        assert [position_of(path, n) // size for n in (0, 1, 2, 21, 30, 99)] == [0, 0, 1, 2, 3, 5]
    path.with_suffix(".index").unlink()
    os.mkfifo(path.with_suffix(".index"))
    assert position_of(path, 21) == 2 * size


def test_position_when_the_index_is_right_then_heads_before_it_are_not_read(path: Path) -> None:
    whole = [batch(10 * n, b"x", b"y") for n in range(5)]
    size = len(whole[0])
    path.write_bytes(bytes(size) + b"".join(whole[1:]))
    assert position_of(path, 31) == 0
    path.with_suffix(".index").write_bytes(struct.pack(">ii", 21, 2 * size))
    assert position_of(path, 31) == 3 * size


def test_offset_at_when_a_position_is_inside_a_batch_then_is_that_of_the_next(path: Path) -> None:
    whole = [batch(10 * n, b"x", b"y") for n in range(3)]
    path.write_bytes(b"".join(whole))
    size = len(whole[0])
    assert [offset_at(path, one) for one in (0, 1, size, 2 * size + 1, 9999)] == [0, 2, 2, 22, 22]


def test_iter_when_a_damaged_size_leads_into_a_payload_then_corrupt_at_the_damage(
    path: Path,
) -> None:
    inner = batch(7, b"inner")
    damaged = bytearray(batch(1, b"x" * 50 + inner + b"y" * 50))
    start = damaged.index(inner)
    damaged[8:12] = struct.pack(">i", start - 12)
    path.write_bytes(batch(0, b"a") + damaged + batch(2, b"c"))
    found: list[StoredBatch] = []
    with pytest.raises(LogCorruptError, match="the message at 69 is invalid"):
        found.extend(iter_batches(path))
    assert [one.head.base_offset for one in found] == [0]


@pytest.mark.parametrize("kept", [0, 2, 3])
def test_iter_when_the_file_shrinks_between_two_batches_then_ends_there(
    path: Path, kept: int
) -> None:
    whole = [batch(n, bytes(900 << 10)) for n in range(4)]
    path.write_bytes(b"".join(whole))
    found = iter_batches(path, deep=False)
    next(found)
    os.truncate(path, kept * len(whole[0]))
    assert len([*found]) == max(0, kept - 1)


def test_position_when_the_index_is_large_then_little_of_it_is_read(
    path: Path, reads: list[int]
) -> None:
    whole = [batch(10 * n, b"x", b"y") for n in range(2000)]
    path.write_bytes(b"".join(whole))
    size = len(whole[0])
    entries = [struct.pack(">ii", 10 * n + 1, n * size) for n in range(1, 2000)]
    path.with_suffix(".index").write_bytes(b"".join(entries).ljust(10 << 20, b"\0"))
    for n in (1, 2, 700, 1999):
        reads.clear()
        assert position_of(path, 10 * n + 1) == n * size
        assert sum(reads) < 4096
