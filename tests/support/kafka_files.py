"""Segment files as Kafka has them: made here, or left by real brokers."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from broker.protocol.codec import NEW_BATCH, Record, RecordBatch, encode_batch

ABORT = Record(0, 0, b"\0\0\0\0", b"\0\0\0\0\0\0")
TRANSACTIONAL, CONTROL = 0x10, 0x30

CopyPartition = Callable[[str], Path]


@pytest.fixture
def copy_partition(kafka_logs: Path, tmp_path: Path) -> CopyPartition:
    """Copies the directory of a topic's partition into a data directory, and returns it."""

    def copy(topic: str) -> Path:
        target = tmp_path / "kafka" / f"{topic}-0"
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(kafka_logs / target.name, target)
        for one in (target, *target.iterdir()):
            one.chmod(0o755 if one.is_dir() else 0o644)
        return target

    return copy


def records(first: int, last: int) -> list[Record]:
    """Records whose value is their offset, of one second after the other."""
    return [Record(one, 1_000 * one, b"k", b"%d" % one) for one in range(first, last)]


def batch(some: Sequence[Record], head: RecordBatch = NEW_BATCH) -> bytes:
    return encode_batch(some, head._replace(base_offset=some[0].offset))


def write_log(directory: Path, *batches: bytes, base_offset: int = 0) -> Path:
    """Write a segment, and return its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(b"".join(batches))
    return path


def write_aborted(log: Path, *transactions: tuple[int, int, int]) -> None:
    """Write the aborted transactions beside a segment: producer id, first and last offset."""
    entries = (struct.pack(">hqqqq", 0, *one, one[2] + 1) for one in transactions)
    log.with_suffix(".txnindex").write_bytes(b"".join(entries))


def committed_digests(folder: Path) -> dict[str, str]:
    """Return the digest of the records of each topic that readers of committed ones get."""
    topics = json.loads((folder / "manifest.json").read_text())["topics"]
    found = {}
    for topic, known in topics.items():
        if len(known["segments"]) == 1:
            found[topic] = known["segments"][0]["records_sha256"]
        elif "expected" in known:
            aborted = [
                range(one["first_offset"], one["last_offset"])
                for segment in known["segments"]
                for one in segment.get("txnindex", ())
            ]
            digest = hashlib.sha256()
            for line in (folder / known["expected"]).read_text().splitlines():
                if not any(json.loads(line)["offset"] in some for some in aborted):
                    digest.update(f"{line}\n".encode())
            found[topic] = digest.hexdigest()
    return found


def digest_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the digest of rows of one topic, as the manifest has it for records."""
    digest = hashlib.sha256()
    for row in sorted(rows, key=lambda row: int(row["offset"])):
        moment = row["timestamp"]
        line = {
            "offset": row["offset"],
            "timestamp": -1 if moment is None else round(moment.timestamp() * 1000),
            "key": _base64(row["key"]),
            "value": _base64(row["value"]),
            "headers": [[one["key"], _base64(one["value"])] for one in row["headers"] or ()],
        }
        digest.update(f"{json.dumps(line, separators=(',', ':'))}\n".encode())
    return digest.hexdigest()


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
