"""`pylogctl pipeline audit` on what producers have counted, topics have, and loads have."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from broker.server.broker import Broker
from tests.integration.pylogctl.audit.test_audit import START_MS, at, produce, report
from tests.support.command_line import Invoke
from tests.support.spark_session import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE_MS = 60_000


def rows(text: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(text)["data"]
    return data


def of_window(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    names = ("tier", "expected", "found", "lost", "late", "duplicated", "status")
    return [tuple(one[name] for name in names) for one in found]


@pytest.mark.spark
@pytest.mark.parametrize("form", ["parquet", "json"])
def test_audit_when_a_load_is_behind_and_then_lacks_a_file_then_says_late_and_lost(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path, form: str
) -> None:
    lake = tmp_path / "lake"
    where = ("--broker", at(running_broker))
    load = ("pipeline", "load", "t", "--to", str(lake), "--format", form, *where, "--local", "-q")
    audit = ("pipeline", "audit", "audit", "--time-field", "ts", "--load", str(lake), *where)
    more = ("--output", "json", "--all", "--fail-above", "0")
    produce(running_broker, "producer", [START_MS + at * 1000 for at in range(10)])
    assert invoke(*load).status == 0

    whole = invoke(*audit, *more)
    produce(running_broker, "producer", [START_MS + MINUTE_MS + at for at in range(5)])
    behind = invoke(*audit, *more)
    assert invoke(*load).status == 0
    (first,) = (lake / "loads" / "load=0000000001").rglob(f"part-*.{form}")
    first.unlink()
    lacking = invoke(*audit, *more)

    assert whole.status == 0, whole.stderr
    assert of_window(rows(whole.text)) == [
        ("load", 10, 10, 0, 0, 0, "ok"), ("log", 10, 10, 0, 0, 0, "ok"),
    ]  # fmt: skip
    assert behind.status == 12
    assert of_window(rows(behind.text))[2:] == [
        ("load", 5, 0, 0, 5, 0, "late"), ("log", 5, 5, 0, 0, 0, "ok"),
    ]  # fmt: skip
    assert lacking.status == 12
    assert of_window(rows(lacking.text))[0] == ("load", 10, 0, 10, 0, 0, "lost")
    assert "error: 10 messages lost, late or duplicated; the limit is 0" in lacking.stderr
    assert "4 windows compared: 10 lost, 0 late, 0 duplicated" in lacking.stderr


@pytest.mark.spark
def test_audit_when_a_load_has_columns_of_avro_then_counts_its_messages(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path
) -> None:
    schema = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}]}
    (tmp_path / "1.avsc").write_text(json.dumps(schema))
    publish(running_broker, "t", [bytes([0, 0, 0, 0, 1, 2 * number]) for number in range(3)])
    report(running_broker, "producer", {START_MS: 3})
    lake, where = str(tmp_path / "lake"), ("--broker", at(running_broker), "--output", "json")
    avro = ("--avro-schemas", str(tmp_path), "--avro-reader", "1")
    assert invoke("pipeline", "load", "t", "--to", lake, *avro, *where, "--local").status == 0

    result = invoke("pipeline", "audit", "audit", "--load", lake, "--all", *where)

    assert [one[:3] for one in of_window(rows(result.text))] == [("load", 3, 3), ("log", 3, 3)]
    (row,) = spark.read.parquet(f"{lake}/loads").select("value.id").where("id = 2").collect()
    assert row.id == 2


@pytest.mark.spark
def test_audit_when_messages_are_lost_or_came_twice_then_counts_both(
    spark: SparkSession, running_broker: Broker, invoke: Invoke
) -> None:
    produce(running_broker, "producer", [START_MS] * 3)
    publish(running_broker, "t", [b'{"ts":%d}' % START_MS, b'{"ts":%d}' % START_MS, b"no time"])
    report(running_broker, "producer", {START_MS + MINUTE_MS: 4})
    publish(running_broker, "audit", [b"no event"])
    where = ("--broker", at(running_broker))

    timed = invoke("pipeline", "audit", "audit", "--time-field", "ts", *where, "--output", "json")
    merged = invoke("pipeline", "audit", "audit", *where, "--output", "csv", "--fail-above", "1")

    assert of_window(rows(timed.text)) == [
        ("log", 3, 5, 0, 0, 2, "duplicated"), ("log", 4, 0, 4, 0, 0, "lost"),
    ]  # fmt: skip
    assert timed.status == 6
    assert "error: 1 messages of 'audit' are no audit events" in timed.stderr
    assert "warning: 1 messages have no time in ts: not in log" in timed.stderr
    assert merged.text.splitlines()[1].endswith(",log,7,6,1,0,0,lost")


@pytest.mark.spark
def test_audit_when_nothing_can_be_compared_then_says_what_is_missing(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path
) -> None:
    produce(running_broker, "mirror", [START_MS])
    where = ("--broker", at(running_broker))

    tier = invoke("pipeline", "audit", "audit", *where)
    load = invoke("pipeline", "audit", "audit", *where, "--load", str(tmp_path / "none"))
    topic = invoke("pipeline", "audit", "nope", *where)

    assert (tier.status, load.status, topic.status) == (3, 3, 3)
    assert "tier 'producer' has not reported to 'audit'" in tier.stderr
    assert "tiers that have: mirror" in tier.stderr
    assert "has no load" in load.stderr
    assert "topic 'nope' not found" in topic.stderr
