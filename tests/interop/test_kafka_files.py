"""Apache Kafka's own tools read the files that ours have written or mended."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from broker.log.side_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX, indexes_of
from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch
from tests.interop.peers import Peer, find_peer, pylogctl, require_peers

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


def test_indexes_when_we_make_them_then_kafka_takes_them_for_sane(
    kafka: Peer, tmp_path: Path
) -> None:
    file = tmp_path / f"{0:020d}.log"
    heads = [RecordBatch(base_offset=COUNT * n) for n in range(20)]
    file.write_bytes(b"".join(codec.encode_batch(records(one.base_offset), one) for one in heads))
    files = [file.with_suffix(INDEX_SUFFIX), file.with_suffix(TIME_INDEX_SUFFIX)]
    for one, content in zip(files, indexes_of(file, 0, file.stat().st_size), strict=True):
        one.write_bytes(content)

    options = ("--index-sanity-check", "--files", ",".join(map(str, files)))
    lines = kafka.run("kafka.tools.DumpLogSegments", *options)

    assert sum("passed sanity check" in line for line in lines) == 2


@pytest.mark.parametrize("cut_bytes", [1, 100])
def test_recovered_log_when_kafka_reads_it_then_all_of_it_is_valid(
    kafka: Peer, tmp_path: Path, kafka_logs: Path, cut_bytes: int
) -> None:
    directory = tmp_path / "v2-rolled-0"
    shutil.copytree(kafka_logs / directory.name, directory)
    for one in directory.iterdir():
        one.chmod(0o644)
    newest = max(directory.glob("*.log"))
    newest.write_bytes(newest.read_bytes()[:-cut_bytes])

    pylogctl("log", "recover", directory, "--execute", "--yes", "--confirm", newest.name)

    lines = dumped(kafka, *sorted(directory.glob("*.log")))
    assert any(line.startswith("| offset: 224 ") for line in lines)
    assert not [line for line in lines if "isvalid: false" in line or line.startswith("Found")]
