"""Apache Kafka's own tools read the files that ours have written or mended."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from broker.log.format import BATCHES
from broker.log.recovery import list_segments, recover
from broker.log.side_files import INDEX_SUFFIX, TIME_INDEX_SUFFIX, indexes_of
from broker.protocol import codec
from broker.protocol.codec import NEW_BATCH, Record, RecordBatch
from broker.topic import TopicPartition
from tests.interop.peers import Peer, find_peer, pylogctl, require_peers
from tests.support.log_fixtures import LogFactory
from tests.support.log_fixtures import clock as clock
from tests.support.log_fixtures import log_format as log_format
from tests.support.log_fixtures import make_log as make_log
from tests.support.log_fixtures import schedule as schedule

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


def is_valid(kafka: Peer, directory: Path) -> list[str]:
    """Let Kafka read all files of a log; return what it tells of the records."""
    lines = dumped(kafka, *sorted(directory.glob("*.log")))
    indexes = [*directory.glob("*.index"), *directory.glob("*.timeindex")]
    others = [*directory.glob("*.snapshot"), *directory.glob("*.txnindex")]
    told = [*lines, *dumped(kafka, *indexes, *others)]
    bad = ("isvalid: false", "Found", "ismatch", "nvalid", "corrupt", "xception", "not monoton")
    assert not [line for line in told if any(word in line for word in bad)]
    return [line for line in lines if line.startswith("| offset")]


@pytest.mark.parametrize("log_format", ["kafka"], indirect=True)
def test_log_when_we_write_it_then_kafka_reads_all_of_its_files(
    kafka: Peer, make_log: LogFactory, tmp_path: Path
) -> None:
    log = make_log(segment_bytes=8_000)
    for number in range(20):
        told = NEW_BATCH._replace(
            attributes=number % 5,
            producer_id=77 if number % 2 else (1 << 62) + 5,
            producer_epoch=1,
            base_sequence=number // 2 * COUNT,
        )
        log.append(codec.encode_batch(records(0), told), COUNT)
    log.close()
    assert len(log.segments.all) > 2

    found = is_valid(kafka, log.directory)

    assert [int(re.findall(r"offset: (\d+)", line)[0]) for line in found] == [*range(20 * COUNT)]
    assert "headerKeys: [trace,empty] key: key-3 payload: message 10" in found[-COUNT + 10]
    (snapshot,) = log.directory.glob(f"{20 * COUNT:020d}.snapshot")
    producers = [line for line in dumped(kafka, snapshot) if line.startswith("producerId")]
    assert sorted(re.findall(r"producerId: (\d+) .*lastSequence: (\d+)", "\n".join(producers))) == [
        (str((1 << 62) + 5), "999"),
        ("77", "999"),
    ]


@pytest.mark.parametrize("log_format", ["kafka"], indirect=True)
@pytest.mark.parametrize(
    "topic", ["v2-none", "v2-rolled", "v2-compacted", "v2-txn", "v2-clients", "v1-gzip", "v0-none"]
)
def test_log_of_kafka_when_we_go_on_with_it_then_kafka_reads_all_of_it(
    kafka: Peer, make_log: LogFactory, tmp_path: Path, kafka_logs: Path, topic: str
) -> None:
    directory = tmp_path / "log"
    shutil.copytree(kafka_logs / f"{topic}-0", directory)
    for one in directory.iterdir():
        one.chmod(0o644)
    before = len(is_valid(kafka, directory))
    segments = list_segments(directory, BATCHES)
    found = recover(
        TopicPartition("log", -1, 0), segments, recovery_point=None, time_ms=1_700_000_000_000
    )
    assert found == []

    log = make_log(segment_bytes=20_000)
    end = log.log_end_offset
    for _ in range(4):
        log.append(codec.encode_batch(records(0)), COUNT)
    log.close()

    assert log.log_end_offset == end + 4 * COUNT
    lines = is_valid(kafka, directory)
    assert len(lines) == before + 4 * COUNT
    assert f"| offset: {end + 4 * COUNT - 1} " in lines[-1]
    pylogctl("log", "verify", directory)
