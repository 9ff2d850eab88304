"""Apache Kafka's own tools read the files that ours have written or mended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch
from tests.interop.peers import Peer, find_peer, require_peers

pytestmark = pytest.mark.slow

require_peers()

COUNT = 100


@pytest.fixture(scope="module")
def kafka() -> Peer:
    return find_peer("kafka")


def dumped(kafka: Peer, *files: Path) -> list[str]:
    """Return what Kafka's `DumpLogSegments` prints of files, each record included."""
    options = ("--deep-iteration", "--print-data-log", "--files", ",".join(map(str, files)))
    return kafka.run("kafka.tools.DumpLogSegments", *options)


def records(first: int) -> list[Record]:
    return [
        Record(
            first + n,
            1_700_000_000_000 + 1000 * n - (2500 if n % 20 == 5 else 0),
            None if n % 3 == 0 else b"key-%d" % (n % 7),
            None if n % 50 == 49 else b"message %d" % n,
            (("trace", b"id-%d" % n), ("empty", None)) if n % 10 == 0 else (),
        )
        for n in range(COUNT)
    ]


@pytest.mark.parametrize(
    ("number", "name"), list(enumerate(["none", "gzip", "snappy", "lz4", "zstd"]))
)
def test_batch_when_we_encode_it_then_kafka_reads_its_records(
    kafka: Peer, tmp_path: Path, number: int, name: str
) -> None:
    told = RecordBatch(
        base_offset=500,
        attributes=number,
        leader_epoch=3,
        producer_id=77,
        producer_epoch=1,
        base_sequence=20,
    )
    file = tmp_path / f"{500:020d}.log"
    file.write_bytes(codec.encode_batch(records(500), told))

    lines = dumped(kafka, file)

    (head,) = (line for line in lines if line.startswith("baseOffset"))
    assert "baseOffset: 500 lastOffset: 599 count: 100 baseSequence: 20 lastSequence: 119" in head
    assert "producerId: 77 producerEpoch: 1 partitionLeaderEpoch: 3" in head
    assert f"compresscodec: {name} " in head
    found = [line for line in lines if line.startswith("| offset")]
    assert [int(re.findall(r"offset: (\d+)", line)[0]) for line in found] == [*range(500, 600)]
    assert "CreateTime: 1700000002500 keySize: 5 valueSize: 9" in found[5]
    assert "headerKeys: [trace,empty] key: key-3 payload: message 10" in found[10]
    assert "keySize: 5 valueSize: -1" in found[49]
