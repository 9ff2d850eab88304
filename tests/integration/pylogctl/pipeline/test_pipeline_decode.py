"""`pipeline load`, `sql` and `window` on messages with schemas: `--decode`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.server.broker import Broker
from broker.spark.source import read_messages
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}
LATER = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]}
NAMES = ("ada", "bob", "ada")


@pytest.fixture
def orders(running_broker: Broker, invoke: Invoke, tmp_path: Path) -> str:
    """The address of a broker with three orders, and garbage behind the first one."""
    address = f"127.0.0.1:{running_broker.port}"
    lines = [
        json.dumps({"id": number, "user": name, "at": f"2026-11-20T08:00:0{number}Z"})
        for number, name in enumerate(NAMES)
    ]
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    to = ("produce", "orders", "-b", address)
    schema = ("--schema", str(tmp_path / "order.avsc"))
    assert not invoke(*to, *schema, stdin=lines[0].encode()).status
    assert not invoke(*to, stdin=b"garbage\n").status
    # a compressed set, whose messages share an offset
    rest = "\n".join([*lines[1:], ""]).encode()
    assert not invoke(*to, "--schema", "auto", "-z", "gzip", stdin=rest).status
    return address


def rows_of(directory: Path) -> list[dict[str, object]]:
    texts = (path.read_bytes() for path in directory.rglob("date=*/*.json"))
    return [json.loads(line) for text in texts for line in text.splitlines()]


def test_load_when_a_message_cannot_be_decoded_then_it_fails_or_leaves_that_out(
    orders: str, invoke: Invoke, tmp_path: Path
) -> None:
    load = ("pipeline", "load", "orders", "--local", "--to", str(tmp_path / "lake"), "-b", orders)
    decode = ("--format", "json", "--decode", "auto")

    failed = invoke(*load, *decode)
    done = invoke(*load, *decode, "--corrupt", "skip")

    assert failed.status == ExitStatus.CORRUPT
    assert "it has no schema" in failed.stderr
    assert done.status == 0, done.stderr
    assert "is left out: it has no schema" in done.stderr
    values = [(row["schema_id"], row["value"]) for row in rows_of(tmp_path / "lake")]
    assert values == [
        (1, {"id": number, "user": name, "at": f"2026-11-20T08:00:0{number}+00:00"})
        for number, name in enumerate(NAMES)
    ]


@pytest.mark.parametrize(
    "more",
    [
        ["--path", "data"],
        ["--reader", "1"],
        ["--decode", "auto", "--avro-schemas", "."],
        ["--decode", "auto", "--reader", "latest", "--include", ".*"],
    ],
)
def test_load_when_options_contradict_then_says_so(
    invoke: Invoke, tmp_path: Path, more: list[str]
) -> None:
    decode = ["--decode", "auto"] if "--path" in more else ["orders"] * ("--include" not in more)
    to = ("--to", str(tmp_path / "lake"), "--local")
    assert invoke("pipeline", "load", *decode, *more, *to).status == ExitStatus.USAGE


@pytest.mark.spark
def test_sql_and_window_when_decoded_then_fields_are_columns(
    spark: SparkSession, orders: str, invoke: Invoke, tmp_path: Path
) -> None:
    decode = ("-b", orders, "--decode", "auto")
    query = "SELECT id, user, note FROM orders ORDER BY id"
    (tmp_path / "later.avsc").write_text(json.dumps(LATER))
    registered = ("--schema", str(tmp_path / "later.avsc"), "-b", orders)
    assert not invoke("produce", "orders", *registered, stdin=b"").status

    failed = invoke("pipeline", "sql", query, "-t", "orders", "--json-payloads", *decode)
    skipping = (*decode, "--corrupt", "skip")
    latest = ("--json-payloads", "--reader", "latest", "--output", "csv")
    done = invoke("pipeline", "sql", query, "-t", "orders", *latest, *skipping)
    fields = ("--size", "1m", "--key-field", ".user", "--time-field", ".at", "--output", "json")
    counted = invoke("pipeline", "window", "orders", *fields, *skipping)

    assert failed.status == ExitStatus.CORRUPT
    assert "orders[0-0]: the message at" in failed.stderr
    assert done.text == "id,user,note\n0,ada,-\n1,bob,-\n2,ada,-\n", done.stderr
    counts = {row["key"]: row["messages"] for row in json.loads(counted.text)["data"]}
    assert counts == {"ada": 2, "bob": 1}


@pytest.mark.spark
def test_read_when_damaged_messages_are_marked_then_undecodable_ones_stay(
    spark: SparkSession, orders: str
) -> None:
    options = {"brokers": orders, "subscribe": "orders", "decode": "auto", "crc": "mark"}
    values = [
        bytes(row.value) for row in read_messages(spark, options, columns=["value"]).collect()
    ]
    assert sorted(values)[0] == b"garbage"
    assert sorted(json.loads(one)["id"] for one in values if one != b"garbage") == [0, 1, 2]
