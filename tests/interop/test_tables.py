"""Tables of Iceberg and Delta, written by their own packages on the PySpark they are made for."""

from __future__ import annotations

import io
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import fastavro
import pytest

from bench.broker_process import REPOSITORY, BrokerProcess
from broker.topic import TopicPartition
from tests.interop.peers import find_tables, require_peers
from tests.support.spark_session import publish_to
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3000)]

require_peers()

_TIMEOUT_S = 600


class Tables(NamedTuple):
    """A package of tables: a table, and what runs commands that write it."""

    table_format: str
    table: str
    files: Path
    conf: dict[str, str]
    variables: dict[str, str]
    broker: BrokerProcess

    @property
    def at(self) -> tuple[str, ...]:
        """The options of a command that name the broker and the table."""
        broker = ("--broker", f"127.0.0.1:{self.broker.port}")
        return (*broker, "--into-table", f"{self.table_format}:{self.table}")

    def publish(self, topic: str, payloads: list[bytes], partition: int = 0) -> None:
        publish_to(self.broker.port, TopicPartition(topic, 0, partition), payloads)

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a pipeline command, in a session of processes of its own."""
        settings = [f"--spark-conf={name}={value}" for name, value in self.conf.items()]
        java = "--spark-conf=spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1"
        command = ["-m", "pylogctl", "pipeline", *words, *self.at, *settings, java, "--quiet"]
        return self._run(*command, "--master", "local[2,4]")

    def run(self, *words: str, status: int = 0) -> str:
        """Run a pipeline command to its end, and return what it prints to both outputs."""
        process = self.start(*words)
        output, errors = process.communicate(timeout=_TIMEOUT_S)
        assert process.returncode == status, output + errors
        return output + errors

    def job(self, action: str, *arguments: str) -> subprocess.Popen[str]:
        """Start an action of `table_job`."""
        words = (action, self.table, self.table_format, json.dumps(self.conf), *arguments)
        return self._run("-m", "tests.interop.table_job", *words)

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the table."""
        output, errors = self.job("show").communicate(timeout=_TIMEOUT_S)
        assert not errors, errors
        return [json.loads(line) for line in output.splitlines()]

    def values(self) -> list[str]:
        return sorted(row["value"] for row in self.rows())

    def _run(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, *words],
            cwd=REPOSITORY,
            env={**os.environ, **self.variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    settings = {"num.partitions": "2", "log.default.flush.interval.ms": "20"}
    process = BrokerProcess(tmp_path, **settings)
    yield process
    process.stop()


@pytest.fixture(params=["delta", "iceberg"])
def tables(request: pytest.FixtureRequest, broker: BrokerProcess, tmp_path: Path) -> Tables:
    table_format: str = request.param
    conf, variables = find_tables(table_format)
    table, files = str(tmp_path / "events"), tmp_path / "events"
    if table_format == "iceberg":
        table, files = "lake.logs.events", tmp_path / "lake" / "logs" / "events"
        catalog = {"": "org.apache.iceberg.spark.SparkCatalog", ".type": "hadoop"}
        catalog[".warehouse"] = str(tmp_path / "lake")
        conf |= {f"spark.sql.catalog.lake{name}": value for name, value in catalog.items()}
    else:
        conf["spark.databricks.delta.snapshotPartitions"] = "2"
    return Tables(table_format, table, files, conf, variables, broker)


def numbered(first: int, last: int) -> list[bytes]:
    return [b'{"n": %d, "ts": "2026-11-22T10:00:00Z"}' % number for number in range(first, last)]


def texts(payloads: list[bytes]) -> list[str]:
    return sorted(payload.decode() for payload in payloads)


def test_load_when_repeated_then_the_table_has_each_message_once(tables: Tables) -> None:
    tables.publish("events", numbered(0, 300), 0)
    tables.publish("events", numbered(300, 400), 1)
    dated = ("load", "events", "--date-field", ".ts", "--output", "json")

    planned = tables.run("load", "events", "--dry-run")
    assert "events" in planned
    assert not tables.files.exists()
    first = json.loads(tables.run(*dated))["data"]
    assert json.loads(tables.run(*dated))["data"] == []
    tables.publish("events", numbered(400, 450), 1)
    second = json.loads(tables.run(*dated))["data"]

    assert [(one["load"], one["partition"], one["messages"]) for one in first] == [
        (1, "0-0", 300), (1, "0-1", 100),
    ]  # fmt: skip
    assert [(one["load"], one["messages"]) for one in second] == [(2, 50)]
    rows = tables.rows()
    assert sorted(row["value"] for row in rows) == texts(numbered(0, 450))
    assert {(row["topic"], row["date"], row["load"]) for row in rows} == {
        ("events", "2026-11-22", 1), ("events", "2026-11-22", 2),
    }  # fmt: skip
    again = tables.run(*dated, "--from", "start", status=4)
    assert "rows are not taken back" in again
    assert "date" in tables.run("load", "events", status=4)


FIELDS: list[dict[str, Any]] = [
    {"name": "n", "type": "long"},
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
]
NOTE = {"name": "note", "type": ["null", "string"], "default": None}
EVENTS = {
    number: {"type": "record", "name": "Event", "fields": fields}
    for number, fields in ((1, FIELDS), (2, [*FIELDS, NOTE]))
}
"""Schemas by their ids."""
TIME_MS = 1_795_345_200_000  # 2026-11-22T11:00:00Z


def avro(schema_id: int, record: dict[str, Any]) -> bytes:
    payload = io.BytesIO(struct.pack(">bi", 0, schema_id))
    payload.seek(0, io.SEEK_END)
    fastavro.schemaless_writer(payload, fastavro.parse_schema(EVENTS[schema_id]), record)
    return payload.getvalue()


@pytest.mark.parametrize("reader", [None, 2])
def test_load_when_payloads_are_avro_then_the_table_has_their_records(
    tables: Tables, tmp_path: Path, reader: int | None
) -> None:
    schemas = tmp_path / "schemas"
    schemas.mkdir()
    for schema_id, schema in EVENTS.items():
        (schemas / f"{schema_id}.avsc").write_text(json.dumps(schema))
    first = {"n": 1, "ts": TIME_MS, "tags": ["a", "b"]}
    second = {"n": 2, "ts": TIME_MS + 1, "tags": [], "note": "x"}
    words = ["load", "events", "--avro-schemas", str(schemas), "--date-field", ".ts"]
    if reader is not None:
        words += ["--avro-reader", str(reader)]

    tables.publish("events", [avro(1, first)])
    tables.run(*words)
    tables.publish("events", [avro(2, second)])
    tables.run(*words)

    rows = sorted(tables.rows(), key=lambda row: row["schema_id"])
    assert [(row["load"], row["schema_id"], row["date"]) for row in rows] == [
        (1, 1, "2026-11-22"), (2, 2, "2026-11-22"),
    ]  # fmt: skip
    found = [json.loads(row["value"]) if reader is None else row["value"] for row in rows]
    for one in found:
        time = datetime.fromisoformat(one.pop("ts"))
        assert int(time.timestamp() * 1000) == TIME_MS + one["n"] - 1
    assert found == [{"n": 1, "tags": ["a", "b"]}, {"n": 2, "tags": [], "note": "x"}]


def kill_once_written(command: subprocess.Popen[str], files: Path) -> None:
    """Kill a command, and its JVM, when it has begun to write another file."""
    before = set(files.rglob("*.parquet"))
    wait_until(
        lambda: bool(command.poll() is not None or set(files.rglob("*.parquet")) - before),
        "a file of the command",
        deadline_s=_TIMEOUT_S,
    )
    os.killpg(command.pid, signal.SIGKILL)
    command.communicate()


def test_load_when_killed_then_the_next_one_has_each_message_once(tables: Tables) -> None:
    tables.publish("events", numbered(0, 20_000))
    data = tables.files if tables.table_format == "delta" else tables.files / "data"

    for _ in range(2):
        kill_once_written(tables.start("load", "events"), data)
    tables.run("load", "events")

    assert tables.values() == texts(numbered(0, 20_000))


def test_loads_when_planned_at_the_same_time_then_one_is_committed(tables: Tables) -> None:
    tables.publish("events", numbered(0, 100))
    job = tables.job("race", f"127.0.0.1:{tables.broker.port}")
    assert job.stdin is not None
    assert job.stdout is not None

    first = [json.loads(job.stdout.readline()) for _ in range(3)]
    tables.publish("events", numbered(100, 130))
    job.stdin.write("\n")
    job.stdin.flush()
    second = [json.loads(job.stdout.readline()) for _ in range(3)]
    job.communicate("\n", timeout=_TIMEOUT_S)

    assert first == [100, "conflict", True]
    assert second == [30, "conflict", True]
    assert tables.values() == texts(numbered(0, 130))


def test_load_when_the_table_was_set_back_then_loads_again_or_asks_for_the_start(
    tables: Tables,
) -> None:
    tables.publish("events", numbered(0, 50))
    tables.run("load", "events")
    tables.publish("events", numbered(50, 80))
    tables.run("load", "events")

    job = tables.job("restored", f"127.0.0.1:{tables.broker.port}")
    output, errors = job.communicate(timeout=_TIMEOUT_S)

    ended = json.loads(output)
    if tables.table_format == "iceberg":
        assert ended == 30, errors
    else:
        assert "--from" in ended
        start = max(row["next_offset"] for row in tables.rows())
        tables.run("load", "events", "--from", str(start))
    assert tables.values() == texts(numbered(0, 80))


def test_sql_when_into_a_table_then_appends_its_rows(tables: Tables) -> None:
    tables.publish("events", numbered(0, 10))
    query = ("sql", "SELECT n, text FROM events WHERE n < 3", "-t", "events", "--schema", "n INT")

    tables.run(*query)
    tables.run(*query)

    assert sorted(row["n"] for row in tables.rows()) == [0, 0, 1, 1, 2, 2]
    refused = tables.run("sql", "SELECT 1 AS n, 2 AS other FROM events", "-t", "events", status=2)
    assert "has no column 'other'; it has: n, text" in refused


@pytest.mark.parametrize("tables", ["delta"], indirect=True)
def test_stream_when_killed_then_the_table_has_each_window_once(
    tables: Tables, tmp_path: Path
) -> None:
    def at(minute: int) -> bytes:
        return b'{"k": "a", "ts": "2026-11-22T10:%02d:00Z"}' % minute

    words = (
        "window", "events", "--size", "1m", "--key-field", ".k", "--time-field", ".ts", "--from",
        "start", "--stream", "--watermark", "0s", "--checkpoint", str(tmp_path / "checkpoint"),
    )  # fmt: skip
    tables.publish("events", [at(minute) for minute in range(10)])
    kill_once_written(tables.start(*words), tables.files)
    tables.publish("events", [at(minute) for minute in range(10, 20)])
    tables.run(*words, "-e")
    tables.run(*words, "-e")

    rows = sorted(row["start"] for row in tables.rows())
    assert len(rows) == len(set(rows)) == 19
