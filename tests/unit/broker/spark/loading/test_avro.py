"""Avro payloads as columns of one schema, whichever they were written with."""

from __future__ import annotations

import io
import json
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from broker.errors import ConfigError
from broker.spark.load import LoadRequest, run_load
from broker.spark.loading.avro import SchemaRegistry
from broker.spark.loading.dates import DateRule
from broker.spark.local import LocalProcesses
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse

ENGINE = LocalProcesses(1)
AT_MS = 1_763_625_600_000
AT = datetime(2025, 11, 20, 8, tzinfo=UTC)


def long_of(meaning: str) -> dict[str, str]:
    return {"type": "long", "logicalType": meaning}


OLD: list[dict[str, Any]] = [
    {"name": "id", "type": "int"},
    {"name": "at", "type": long_of("timestamp-millis")},
    {"name": "gone", "type": "string"},
]
NEW: list[dict[str, Any]] = [
    {"name": "id", "type": "long"},
    {"name": "at", "type": long_of("timestamp-millis")},
    {"name": "tags", "type": {"type": "array", "items": ["null", "string"]}, "default": []},
    {"name": "counts", "type": {"type": "map", "values": "int"}, "default": {}},
    {
        "name": "price",
        "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 2}],
        "default": None,
    },
    {"name": "day", "type": ["null", {"type": "int", "logicalType": "date"}], "default": None},
]
FULL = {
    "id": 2,
    "at": AT_MS + 1,
    "tags": ["a", None],
    "counts": {"x": 1},
    "price": Decimal("1.25"),
    "day": date(2025, 11, 20),
}


def schema_of(fields: list[dict[str, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": "Event", "fields": fields}


def avro(schema_id: int, fields: list[dict[str, Any]], record: dict[str, Any]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema_of(fields)), record)
    return struct.pack(">bi", 0, schema_id) + body.getvalue()


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    directory = tmp_path / "schemas"
    directory.mkdir()
    (directory / "1.avsc").write_text(json.dumps(schema_of(OLD)))
    (directory / "2.avsc").write_text(json.dumps(schema_of(NEW)))
    return directory


def load(data: Path, schemas: Path, **options: Any) -> list[dict[str, Any]]:
    """Load with the newer schema; returns the rows."""
    output = schemas.parent / "out"
    request = LoadRequest(
        output, parse({"path": str(data)}), schemas=schemas, avro_reader=2, **options
    )
    run_load(ENGINE, request)
    (path,) = output.glob("loads/load=*/topic=*/date=*/*.parquet")
    rows: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    return rows


def test_columns_when_records_are_of_two_schemas_then_have_the_reader_s_types(
    write_segments: WriteSegments, schemas: Path
) -> None:
    old = avro(1, OLD, {"id": 1, "at": AT_MS, "gone": "x"})
    data = write_segments([old, avro(2, NEW, FULL)])

    rows = load(data, schemas, dates=DateRule("2026-01-01", field="at"))

    assert [row["schema_id"] for row in rows] == [1, 2]
    first, second = (row["value"] for row in rows)
    nothing: dict[str, Any] = {"tags": [], "counts": [], "price": None, "day": None}
    assert first == {"id": 1, "at": AT, **nothing}
    moment = AT.replace(microsecond=1000)
    assert second == {**FULL, "at": moment, "counts": [("x", 1)]}


def test_columns_when_records_lack_fields_then_have_defaults_of_the_reader_s_types(
    write_segments: WriteSegments, schemas: Path
) -> None:
    decimal = {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 2}
    fixed = {
        "type": "fixed", "name": "Two", "size": 2, "logicalType": "decimal", "precision": 4,
        "scale": 2,
    }  # fmt: skip
    parts = [
        {"name": "a", "type": fixed},
        {"name": "b", "type": ["null", "Two"], "default": None},
        {"name": "c", "type": decimal, "default": "\u007d"},
    ]
    largest = int("9" * 38).to_bytes(16, signed=True).decode("latin-1")
    added: list[dict[str, Any]] = [
        {"name": "large", "type": [decimal, "null"], "default": largest},
        {"name": "negative", "type": decimal, "default": "\u00ff\u0083"},
        {"name": "plain", "type": "bytes", "default": "\u00ff\u0000"},
        {"name": "parts", "type": {"type": "record", "name": "Parts", "fields": parts},
         "default": {"a": "\u0000\u007d"}},
        {"name": "named", "type": "Two", "default": "\u0001\u0000"},
        {"name": "list", "type": {"type": "array", "items": "Parts"}, "default": [{"a": "\0\0"}]},
        {"name": "map", "type": {"type": "map", "values": "bytes"}, "default": {"k": "\u00fe"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}, "default": 1},
    ]  # fmt: skip
    (schemas / "2.avsc").write_text(json.dumps(schema_of([*NEW[:1], *added])))
    data = write_segments([avro(1, OLD, {"id": 1, "at": AT_MS, "gone": "x"})])

    (row,) = load(data, schemas)

    assert row["value"] == {
        "id": 1,
        "large": Decimal("9" * 36 + ".99"),
        "negative": Decimal("-1.25"),
        "plain": b"\xff\x00",
        "parts": {"a": Decimal("1.25"), "b": None, "c": Decimal("1.25")},
        "named": Decimal("2.56"),
        "list": [{"a": Decimal("0.00"), "b": None, "c": Decimal("1.25")}],
        "map": [("k", b"\xfe")],
        "day": date(1970, 1, 2),
    }


def test_schema_when_a_default_is_none_of_its_type_then_is_refused(schemas: Path) -> None:
    price = {"name": "price", "type": "bytes", "default": "\u20ac"}
    (schemas / "2.avsc").write_text(json.dumps(schema_of([price])))

    with pytest.raises(ConfigError, match=r"2\.avsc: a default does not fit its type"):
        SchemaRegistry(schemas, 2)


def test_columns_when_read_by_time_then_have_the_day_of_the_record(
    write_segments: WriteSegments, schemas: Path
) -> None:
    data = write_segments([avro(2, NEW, FULL)])

    load(data, schemas, dates=DateRule("2026-01-01", field="at"))

    (path,) = schemas.parent.glob("out/loads/load=*/topic=*/date=*")
    assert path.name == "date=2025-11-20"


def test_columns_when_a_record_does_not_fit_then_it_is_left_out(
    write_segments: WriteSegments, schemas: Path
) -> None:
    (schemas / "3.avsc").write_text(json.dumps(schema_of([{"name": "id", "type": "string"}])))
    wide = [field if field["name"] != "price" else PRICE_OF_9_DIGITS for field in NEW]
    (schemas / "4.avsc").write_text(json.dumps(schema_of(wide)))
    of_other = avro(3, [{"name": "id", "type": "string"}], {"id": "one"})
    too_long = avro(4, wide, FULL | {"price": Decimal("1234567.89")})
    data = write_segments([of_other, too_long, avro(2, NEW, FULL)])

    rows = load(data, schemas, skips_corrupt=True)

    assert [row["value"]["id"] for row in rows] == [2]


PRICE_OF_9_DIGITS = {
    "name": "price",
    "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
}


def test_output_when_the_reader_is_another_one_then_is_refused(
    write_segments: WriteSegments, schemas: Path
) -> None:
    data = write_segments([avro(2, NEW, FULL)])
    load(data, schemas)
    request = LoadRequest(schemas.parent / "out", parse({"path": str(data)}), schemas=schemas)

    with pytest.raises(Exception, match="has loads with payload 'avro of schema 2', not 'avro'"):
        run_load(ENGINE, request)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (["int", "string"], "a union of 2 types cannot be a column"),
        (["null", "Event"], "type 'Event' is recursive"),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 39},
            "a decimal of 39 digits cannot be a column",
        ),
        ({"type": "bytes", "logicalType": "decimal"}, "a decimal without precision"),
    ],
)
def test_reader_when_no_column_can_have_its_records_then_is_refused(
    schemas: Path, kind: Any, words: str
) -> None:
    (schemas / "5.avsc").write_text(json.dumps(schema_of([{"name": "part", "type": kind}])))

    with pytest.raises(ConfigError, match=rf"5\.avsc: {words}"):
        SchemaRegistry(schemas, 5)


@pytest.mark.parametrize(
    ("meaning", "kind"),
    [
        ("timestamp-micros", pa.timestamp("us", "UTC")),
        ("local-timestamp-millis", pa.timestamp("ms")),
        ("time-micros", pa.int64()),
    ],
)
def test_times_when_written_as_numbers_then_mean_what_the_reader_says(
    schemas: Path, meaning: str, kind: pa.DataType
) -> None:
    (schemas / "6.avsc").write_text(json.dumps(schema_of([{"name": "at", "type": "long"}])))
    reader = schema_of([{"name": "at", "type": long_of(meaning)}])
    (schemas / "7.avsc").write_text(json.dumps(reader))
    registry = SchemaRegistry(schemas, 7)

    record = registry.decode(avro(6, [{"name": "at", "type": "long"}], {"at": 5}))

    assert registry.value_type == pa.struct([("at", kind)])
    assert record[1] == {"at": 5}


@pytest.mark.parametrize("file_format", ["json", "text"])
def test_request_when_the_format_has_no_columns_then_is_refused(
    write_segments: WriteSegments, schemas: Path, file_format: Any
) -> None:
    data = write_segments([b"x"])
    with pytest.raises(ConfigError, match="format parquet"):
        load(data, schemas, file_format=file_format)
