from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql.types import StringType, StructField, StructType

from broker.errors import BrokerUnreachableError, LogCorruptError, StorageError
from broker.server.broker import Broker
from broker.spark.options import parse_write_options
from broker.spark.writer import BatchWriter, StagingFile, staged_sets
from broker.topic import TopicPartition
from tests.support.command_line import Process
from tests.support.spark_rows import read, values
from tests.support.spark_session import REPOSITORY
from tests.support.waiting import wait_until

SCHEMA = StructType([StructField("value", StringType())])


def test_sets_when_staged_then_come_back_in_their_order(tmp_path: Path) -> None:
    sets = [
        (TopicPartition("a", 0, 0), b"first\n"),
        (TopicPartition('b \n"', 7, 1), b""),
        (TopicPartition("a", 0, 0), b"\x00\n[]"),
    ]
    file = StagingFile(tmp_path / "new" / "directory")
    for partition, message_set in sets:
        file.add(partition, message_set)
    file.close()

    assert list(staged_sets(file.path)) == sets


def test_file_when_cut_short_then_says_so(tmp_path: Path) -> None:
    file = StagingFile(tmp_path)
    file.add(TopicPartition("a", 0, 0), b"whole")
    file.close()
    file.path.write_bytes(file.path.read_bytes()[:-1])

    with pytest.raises(LogCorruptError, match="was truncated"):
        list(staged_sets(file.path))


def test_file_when_it_is_not_there_then_says_so(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot read .*x\.sets"):
        list(staged_sets(tmp_path / "x.sets"))


def test_directory_when_it_cannot_be_made_then_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StorageError, match="cannot write"):
        StagingFile(tmp_path / "file" / "below")


def writer_to(broker: Broker, staging: Path) -> BatchWriter:
    options = {
        "brokers": f"127.0.0.1:{broker.port}",
        "topic": "events",
        "stagingPath": str(staging),
        "connectTimeoutMs": "100",
        "retries": "0",
    }
    return BatchWriter(parse_write_options(options), SCHEMA)


def rows(*payloads: str) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"value": list(payloads)})]


def test_attempts_when_only_some_count_then_only_those_are_sent(
    running_broker: Broker, tmp_path: Path
) -> None:
    writer = writer_to(running_broker, tmp_path / "staging")

    writer.write(iter(rows("failed later")))
    counted = [writer.write(iter(rows("a", "b"))), writer.write(iter(rows("c")))]
    writer.commit([*counted, None])

    assert values(read(brokers=f"127.0.0.1:{running_broker.port}", subscribe="events")) == [
        b"a",
        b"b",
        b"c",
    ]
    assert list((tmp_path / "staging").iterdir()) == []


def test_write_when_given_up_then_nothing_is_sent_or_left(
    running_broker: Broker, tmp_path: Path
) -> None:
    writer = writer_to(running_broker, tmp_path / "staging")
    writer.write(iter(rows("a")))

    writer.abort([None])

    assert list((tmp_path / "staging").iterdir()) == []


def test_commit_when_the_broker_is_gone_then_what_is_staged_stays(
    start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    broker = start_broker()
    writer = writer_to(broker, tmp_path / "staging")
    message = writer.write(iter(rows("a")))
    broker.stop()

    with pytest.raises(BrokerUnreachableError):
        writer.commit([message])
    assert len(list((tmp_path / "staging").rglob("*.sets"))) == 1


@pytest.mark.spark
@pytest.mark.timeout(600)
def test_write_when_spark_was_killed_then_the_next_one_removes_what_it_staged(
    running_broker: Broker, tmp_path: Path
) -> None:
    staging = tmp_path / "staging"
    brokers = f"127.0.0.1:{running_broker.port}"
    job = [
        sys.executable,
        "-m",
        "tests.integration.broker.spark.staging_job",
        str(staging),
        brokers,
    ]
    environ = os.environ | {"PYTHONPATH": str(REPOSITORY), "TMPDIR": str(tmp_path)}
    with Process(job, cwd=REPOSITORY, env=environ, start_new_session=True) as process:
        try:
            wait_until(lambda: list(staging.glob("*/*.sets")), "staging", deadline_s=270)
            writer_to(running_broker, staging)
            assert list(staging.glob("*/*.sets"))
        finally:
            os.killpg(process.pid, signal.SIGKILL)

    def is_removed() -> bool:
        writer_to(running_broker, staging)
        return not list(staging.iterdir())

    wait_until(is_removed, "the end of the JVM, and the removal of what it staged")
