"""What a load makes of payloads: formats, days, Avro."""

from __future__ import annotations

import base64
import gzip
import io
import json
import struct
import subprocess
import sys
import zlib
from datetime import date
from pathlib import Path
from textwrap import dedent
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import BrokerError, ConfigError, InvalidMessageError, LogCorruptError
from broker.protocol.message_set import build_set
from broker.spark.load import LoadRequest, run_load
from broker.spark.loading.avro import SchemaRegistry, to_json
from broker.spark.loading.dates import NO_DATE, DateRule, TimeFormat
from broker.spark.loading.files import escape_name
from broker.spark.loading.task import Chain
from broker.spark.local import LocalProcesses
from broker.spark.reading.ranges import ByteRange
from broker.topic import TopicPartition
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse

ENGINE = LocalProcesses(1)
DAY = "2026-11-22"
NO_YEAR = TimeFormat("%b %d")
EVENTS = TopicPartition("events", 0, 0)


def files_of(output: Path, suffix: str) -> list[Path]:
    return sorted(output.glob(f"loads/load=*/topic=*/date=*/*.{suffix}"))


def days_of(output: Path) -> list[str]:
    return sorted({path.parent.name for path in output.glob("loads/load=*/topic=*/date=*/*")})


def test_json_when_loaded_then_has_offsets_and_any_bytes(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments([b'"quoted"\n', "gr\u00fc\u00df".encode(), b"\xff\x00"])
    request = LoadRequest(tmp_path / "out", parse({"path": str(data)}), file_format="json")

    run_load(ENGINE, request)

    (path,) = files_of(tmp_path / "out", "json")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row.get("value") for row in rows] == ['"quoted"\n', "gr\u00fc\u00df", None]
    assert base64.b64decode(rows[2]["value_base64"]) == b"\xff\x00"
    assert (rows[0]["partition"], rows[0]["offset"]) == ("0-0", 0)
    assert rows[0]["next_offset"] == rows[1]["offset"]


def test_text_when_loaded_then_has_a_line_for_each_message(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments([b"one", b"", b"\xfftwo"])
    run_load(ENGINE, LoadRequest(tmp_path / "out", parse({"path": str(data)}), file_format="text"))

    (path,) = files_of(tmp_path / "out", "txt")
    assert path.read_bytes() == b"one\n\n\xfftwo\n"


def test_parquet_when_loaded_then_offsets_are_stored_as_differences(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments([b"line %d" % number for number in range(10_000)])
    run_load(ENGINE, LoadRequest(tmp_path / "out", parse({"path": str(data)})))

    (path,) = files_of(tmp_path / "out", "parquet")
    group = pq.read_metadata(path).row_group(0)
    columns = {
        column.path_in_schema: column
        for column in (group.column(number) for number in range(group.num_columns))
    }
    for name in ("offset", "next_offset", "inner_index"):
        assert "DELTA_BINARY_PACKED" in columns[name].encodings
        assert columns[name].total_compressed_size < 10_000, "less than a byte for each"
    assert columns["partition"].has_dictionary_page and not columns["crc"].has_dictionary_page


def test_load_when_pandas_is_installed_then_does_without(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    data = write_segments([b"one", b"two"])
    lines = f"""
        import sys
        from pathlib import Path
        from broker.spark.load import LoadRequest, run_load
        from broker.spark.local import LocalProcesses
        from broker.spark.options import parse_read_options

        options = parse_read_options({{"path": {str(data)!r}}})
        run_load(LocalProcesses(1), LoadRequest(Path({str(tmp_path / "out")!r}), options))
        assert "pandas" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", dedent(lines)], check=True, timeout=60)

    assert len(files_of(tmp_path / "out", "parquet")) == 1


def test_topic_when_its_name_is_special_then_its_directory_is_named_as_spark_does() -> None:
    assert escape_name("a:b=c%d e.f-g") == "a%3Ab%3Dc%25d e.f-g"


@pytest.mark.parametrize(
    ("rule", "payload", "day"),
    [
        (DateRule(DAY), b"anything", DAY),
        (
            DateRule(DAY, field=".meta.ts"),
            b'{"meta":{"ts":"2026-01-02T23:30:00-02:00"}}',
            "2026-01-03",
        ),
        (DateRule(DAY, field="ts"), b'{"ts":1763625600}', "2025-11-20"),
        (DateRule(DAY, field="ts"), b'{"ts":1763625600123}', "2025-11-20"),
        (DateRule(DAY, field="ts"), b'{"ts":"1763625600123456"}', "2025-11-20"),
        (DateRule(DAY, field="ts"), b'{"ts":"2026-05-06"}', "2026-05-06"),
        (DateRule(DAY, field="ts"), b'{"ts":true}', NO_DATE),
        (DateRule(DAY, field="ts"), b'{"ts":"soon"}', NO_DATE),
        (DateRule(DAY, field="a.b"), b'{"a":[1]}', NO_DATE),
        (DateRule(DAY, field="ts"), b"no json", NO_DATE),
        (DateRule(DAY, field="ts"), b"[" * 100_000, NO_DATE),
        (DateRule(DAY, pattern=r"on (\d+-\d+-\d+)"), b"\xff on 2026-07-08", "2026-07-08"),
        (DateRule(DAY, pattern=r"\d{4}-\d\d-\d\d"), b"x 2026-07-08 y", "2026-07-08"),
        (DateRule(DAY, pattern="(z)"), b"nothing", NO_DATE),
        (DateRule(DAY, pattern=r"on (?:(\d+-\d+-\d+)|-)"), b"on -", NO_DATE),
        (
            DateRule(DAY, pattern=r"\[(.*?)\]", time_format=TimeFormat("%d/%b/%Y:%H:%M:%S %z")),
            b"[10/Oct/2000:23:55:36 -0700] GET /",
            "2000-10-11",
        ),
        (DateRule("2026-11-22", pattern="^.*", time_format=NO_YEAR), b"Dec 10", "2025-12-10"),
        (DateRule("2026-11-22", pattern="^.*", time_format=NO_YEAR), b"Nov 22", "2026-11-22"),
        (DateRule("2026-11-22", pattern="^.*", time_format=NO_YEAR), b"Nov 23", "2026-11-23"),
        (DateRule("2026-11-22", pattern="^.*", time_format=NO_YEAR), b"Nov 24", "2025-11-24"),
        (DateRule("2026-12-31", pattern="^.*", time_format=NO_YEAR), b"Jan 1", "2027-01-01"),
        (DateRule("2026-11-22", pattern="^.*", time_format=NO_YEAR), b"Feb 29", "2024-02-29"),
        (DateRule("2026-11-22", pattern="^.*", time_format=NO_YEAR), b"Feb 30", NO_DATE),
        (
            DateRule("2026-11-22", pattern="^.*", time_format=TimeFormat("%b %d", year=2015)),
            b"Dec 10",
            "2015-12-10",
        ),
        (DateRule("2028-03-01", pattern="^.{15}", time_format=TimeFormat("%b %d %H:%M:%S")),
         b"Feb 29 06:55:46 LabSZ sshd[24200]", "2028-02-29"),
    ],
)  # fmt: skip
def test_day_when_told_from_a_payload_then_is_in_utc(
    rule: DateRule, payload: bytes, day: str
) -> None:
    assert rule.day_of(payload) == day


@given(st.binary(max_size=40), st.floats() | st.integers())
def test_day_when_the_payload_is_anything_then_there_is_one(payload: bytes, number: float) -> None:
    rule = DateRule(DAY, field="ts")
    assert rule.day_of(payload)
    assert rule.day_of(json.dumps({"ts": number}).encode())


def test_date_rule_when_contradictory_then_is_refused() -> None:
    for fields in (
        {"field": "a", "pattern": "b"},
        {"pattern": "("},
        {"time_format": TimeFormat("%Y")},
        {"pattern": "a", "time_format": TimeFormat(year=2015)},
        {"pattern": "a", "time_format": TimeFormat("%Y", year=2015)},
    ):
        with pytest.raises(ConfigError):
            DateRule(DAY, **fields)


def test_day_when_a_field_is_a_date_then_is_that_date() -> None:
    assert DateRule(DAY, field="day").day_of(b"", {"day": date(2026, 7, 8)}) == "2026-07-08"


def test_days_when_many_then_each_has_its_directory(
    write_segments: WriteSegments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.spark.loading.files._MAX_OPEN_FILES", 3)
    payloads = [b'{"ts":"2026-01-%02d","n":%d}' % (1 + n % 9, n) for n in range(90)]
    payloads.append(b"none")
    data = write_segments(payloads)
    request = LoadRequest(
        tmp_path / "out",
        parse({"path": str(data)}),
        dates=DateRule(DAY, field="ts"),
        file_format="text",
        file_bytes=0,
    )

    made = run_load(ENGINE, request)

    assert days_of(tmp_path / "out") == [
        *(f"date=2026-01-{day:02d}" for day in range(1, 10)),
        f"date={NO_DATE}",
    ]
    files = [path.read_bytes().splitlines() for path in files_of(tmp_path / "out", "txt")]
    lines = [line for found in files for line in found]
    assert sorted(lines) == sorted(payloads)
    assert made and sum(file.message_count for file in made.files) == 91


SCHEMA = {
    "type": "record",
    "name": "Event",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "raw", "type": ["null", "bytes"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


def avro(schema_id: int, record: dict[str, Any]) -> bytes:
    body = io.BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(SCHEMA), record)
    return struct.pack(">bi", 0, schema_id) + body.getvalue()


@pytest.fixture
def schemas(tmp_path: Path) -> Path:
    directory = tmp_path / "schemas"
    directory.mkdir()
    (directory / "7.avsc").write_text(json.dumps(SCHEMA))
    return directory


EVENT = {"id": 5, "raw": b"\xff", "at": 1763625600000}


def test_avro_when_loaded_then_records_are_json_and_have_dates(
    write_segments: WriteSegments, tmp_path: Path, schemas: Path
) -> None:
    data = write_segments([avro(7, EVENT), avro(7, EVENT | {"id": 6, "raw": None})])
    request = LoadRequest(
        tmp_path / "out",
        parse({"path": str(data)}),
        schemas=schemas,
        dates=DateRule(DAY, field="at"),
    )

    made = run_load(ENGINE, request)

    (path,) = files_of(tmp_path / "out", "parquet")
    assert path.parent.name == "date=2025-11-20"
    rows = pq.ParquetFile(path).read().to_pylist()
    assert [row["schema_id"] for row in rows] == [7, 7]
    moment = "2025-11-20T08:00:00+00:00"
    assert json.loads(rows[0]["value"]) == {"id": 5, "raw": "\xff", "at": moment}
    assert made and made.partitions[0].payload_bytes == len(avro(7, EVENT)) * 2 - 2


def test_avro_when_loaded_as_json_then_records_stand_in_the_lines(
    write_segments: WriteSegments, tmp_path: Path, schemas: Path
) -> None:
    data = write_segments([avro(7, EVENT)])
    request = LoadRequest(
        tmp_path / "out", parse({"path": str(data)}), schemas=schemas, file_format="json"
    )
    run_load(ENGINE, request)

    (path,) = files_of(tmp_path / "out", "json")
    row = json.loads(path.read_text())
    assert (row["schema_id"], row["value"]["id"], row["offset"]) == (7, 5, 0)


@pytest.mark.parametrize(
    ("payload", "kind", "words"),
    [
        (b"plain", InvalidMessageError, "does not start with a zero byte"),
        (avro(7, EVENT)[:-1], InvalidMessageError, "not an Avro record of schema 7"),
        (avro(7, EVENT) + b"x", InvalidMessageError, "1 bytes after the Avro record"),
        (avro(8, EVENT), ConfigError, r"there is no schema 8: .*8\.avsc is missing"),
    ],
)
def test_avro_when_undecodable_then_load_fails_or_leaves_it_out(
    write_segments: WriteSegments,
    tmp_path: Path,
    schemas: Path,
    payload: bytes,
    kind: type[BrokerError],
    words: str,
) -> None:
    data = write_segments([avro(7, EVENT), payload, avro(7, EVENT)])
    options = parse({"path": str(data)})
    with pytest.raises(kind, match=rf"events\[0-0\]: the message at \d+: .*{words}"):
        run_load(ENGINE, LoadRequest(tmp_path / "out", options, schemas=schemas))
    made = run_load(
        ENGINE, LoadRequest(tmp_path / "out", options, schemas=schemas, skips_corrupt=True)
    )

    assert made and made.message_count == 2
    assert [gap.cause for gap in made.left_out] == ["undecodable"]


def test_schema_when_it_is_none_then_names_the_file(schemas: Path) -> None:
    (schemas / "9.avsc").write_text('{"type": "nothing"}')
    with pytest.raises(ConfigError, match=r"9\.avsc is not an Avro schema"):
        SchemaRegistry(schemas).schema(9)
    with pytest.raises(ConfigError, match="is not a directory of schemas"):
        SchemaRegistry(schemas / "none")


def test_json_of_a_record_when_it_has_odd_values_then_is_text() -> None:
    with pytest.raises(TypeError):
        to_json({1, 2})
    assert to_json({"a": b"\x01"}) == '{"a":"\\u0001"}'


def rows(*spans: tuple[int, int, int]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.int64()) for column in zip(*spans, strict=True)]
    return pa.RecordBatch.from_arrays(
        [columns[0], columns[1], columns[2].cast(pa.int32())],
        ["offset", "next_offset", "inner_index"],
    )


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 10, 0), (20, 30, 0)],
        [(0, 10, 0), (0, 10, 0)],
        [(10, 20, 0)],
        [(0, 30, 0), (0, 30, 2)],
        [(0, 20, 0)],
    ],
)
def test_chain_when_broken_then_is_an_error(spans: list[tuple[int, int, int]]) -> None:
    chain = Chain(ByteRange(EVENTS, 0, 30))
    with pytest.raises(LogCorruptError, match=r"events\[0-0\]"):
        chain.add(rows(*spans))
        chain.finish([], lambda _: False)


def test_compressed_set_when_it_is_empty_then_is_no_gap(
    write_segments: WriteSegments, tmp_path: Path
) -> None:
    payload = gzip.compress(b"")
    body = b"\x01\x01" + struct.pack(">I", zlib.crc32(payload)) + payload
    data = write_segments([])
    parts = [build_set([b"a"]), struct.pack(">i", len(body)) + body, build_set([b"b"])]
    (data / "events_0" / f"{0:020d}.pylog").write_bytes(b"".join(parts))

    made = run_load(ENGINE, LoadRequest(tmp_path / "out", parse({"path": str(data)})))

    assert made and (made.message_count, made.left_out) == (2, [])
