"""`pylogctl log dump`, `grep`, `stat` and `index` of what Kafka left behind."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from broker.protocol import codec
from broker.protocol.codec import Record, RecordBatch
from broker.protocol.envelope import Envelope
from broker.protocol.message_set import build_set
from broker.times import moment_of
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke
from tests.support.kafka_files import batch

NAME = "00000000000000000100.log"
DAY_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z
RECORDS = (
    Record(100, DAY_MS, b"k", b"one", (("trace", b"id"), ("none", None), ("raw", b"\xff"))),
    Record(101, DAY_MS + 1000, None, b""),
    Record(103, DAY_MS + 2000, b"", None),  # 102 is compacted away
    Record(104, DAY_MS + 3000, b"\xff", b"\xfe"),
)
MARK = Record(110, DAY_MS + 9000, struct.pack(">hh", 0, 1), bytes(6))
HEAD = RecordBatch(leader_epoch=3, producer_id=7, producer_epoch=1)


def _jsonl(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """A partition of a topic with blanks, dashes and dots: two batches and a mark of a commit."""
    directory = tmp_path / "data" / "my topic.v1-x-3"
    directory.mkdir(parents=True)
    first = HEAD._replace(base_offset=100, base_sequence=2**31 - 1, attributes=0x11)
    later = [Record(105 + n, DAY_MS + 5000, b"k%d" % n, b"text %d" % n) for n in range(5)]
    second = HEAD._replace(base_offset=105, base_sequence=4)
    data = codec.encode_batch(RECORDS, first) + codec.encode_batch(later, second)
    data += codec.encode_batch([MARK], HEAD._replace(base_offset=110, attributes=0x30))
    (directory / NAME).write_bytes(data)
    return directory


def test_dump_when_rows_are_for_people_then_null_and_empty_differ(
    invoke: Invoke, partition: Path
) -> None:
    result = invoke("log", "dump", str(partition), "-n", "4")
    assert result.status == 0
    assert [" ".join(line.split()) for line in result.text.splitlines()] == [
        "OFFSET TIMESTAMP KEY PAYLOAD HEADERS CONTROL CODEC VALID",
        "100 2023-11-14T22:13:20.000Z k one trace=id,none,raw=\\xff - gzip yes",
        "101 2023-11-14T22:13:21.000Z - - - gzip yes",  # the payload is empty
        "103 2023-11-14T22:13:22.000Z - - - gzip yes",  # the key is empty
        "104 2023-11-14T22:13:23.000Z \\xff \\xfe - - gzip yes",
    ]
    columns = ("--columns", "key,payload", "--output", "tsv", "--no-header")
    assert invoke("log", "dump", str(partition), "-n", "1", *columns).text == "k\tone\n"


def test_dump_when_rows_are_json_then_each_record_has_all(invoke: Invoke, partition: Path) -> None:
    rows = _jsonl(invoke("log", "dump", str(partition), "--output", "jsonl").text)
    head = {"pos": 0, "magic": 2, "codec": "gzip", "valid": True, "leader_epoch": 3}
    head |= {"producer_id": 7, "producer_epoch": 1, "transactional": True, "control": None}
    first = head | {"offset": 100, "inner": 0, "sequence": 2**31 - 1, "key": "k", "payload": "one"}
    first |= {"timestamp": "2023-11-14T22:13:20.000Z", "size": 3}
    first["headers"] = [
        {"key": "trace", "value": "id"},
        {"key": "none", "value": None},
        {"key": "raw", "value_b64": "/w=="},
    ]
    assert rows[0].items() >= first.items()
    assert rows[1].items() >= {"offset": 101, "key": None, "payload": "", "sequence": 0}.items()
    assert rows[2].items() >= {"offset": 103, "key": "", "payload": None, "size": None}.items()
    assert rows[3].items() >= {"key_b64": "/w==", "payload_b64": "/g==", "sequence": 3}.items()
    mark = {"offset": 110, "control": "commit", "payload": None, "key": None, "sequence": None}
    assert rows[-1].items() >= mark.items()
    hexed = invoke("log", "dump", str(partition), "--payload", "hex", "-n", "1", "-o", "104")
    assert " ff " in hexed.text


def test_dump_when_a_real_broker_wrote_it_then_has_what_its_consumer_got(
    invoke: Invoke, kafka_logs: Path
) -> None:
    for expected in sorted((kafka_logs / "expected").iterdir()):
        directory = kafka_logs / f"{expected.stem}-0"
        rows = _jsonl(invoke("log", "dump", str(directory), "--output", "jsonl").text)
        wanted = _jsonl(expected.read_text())
        assert [_as_expected(row) for row in rows if row["control"] is None] == wanted


def _as_expected(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as the files beside the data have it: bytes in base64, times in ms."""
    time = moment_of(row["timestamp"])
    return {
        "offset": row["offset"],
        "timestamp": -1 if time is None else round(time.timestamp() * 1000),
        "key": _base64(row, "key"),
        "value": _base64(row, "payload"),
        "headers": [[one["key"], _base64(one, "value")] for one in row["headers"]],
    }


def _base64(fields: dict[str, Any], name: str) -> str | None:
    if fields.get(f"{name}_b64") is not None:
        return str(fields[f"{name}_b64"])
    text = fields.get(name)
    return None if text is None else base64.b64encode(text.encode()).decode()


def test_dump_of_a_data_directory_has_all_records_of_all_formats(
    invoke: Invoke, kafka_logs: Path
) -> None:
    lines = invoke("log", "dump", str(kafka_logs), "-F", "%t %p\\n").text.splitlines()
    topics = json.loads((kafka_logs / "manifest.json").read_text())["topics"]
    counts = {
        f"{name} 0": sum(
            sum(one["count"] for one in segment["batch_list"] if not one.get("control"))
            if "batch_list" in segment
            else segment["records"]
            for segment in topic["segments"]
        )
        for name, topic in topics.items()
    }
    assert {line: lines.count(line) for line in set(lines)} == counts


def test_dump_with_shallow_shows_batches(invoke: Invoke, partition: Path) -> None:
    rows = _jsonl(invoke("log", "dump", str(partition), "--shallow", "--output", "jsonl").text)
    names = ("offset", "last_offset", "records", "codec", "control")
    assert [tuple(row[name] for name in names) for row in rows] == [
        (100, 104, 4, "gzip", None), (105, 109, 5, "none", None), (110, 110, 1, "none", "commit"),
    ]  # fmt: skip
    text = invoke("log", "dump", str(partition), "--shallow").text
    assert text.split()[:3] == ["OFFSET", "LAST-OFFSET", "RECORDS"]


@pytest.mark.parametrize(
    ("spec", "offsets"),
    [
        ("102:106", [103, 104, 105]), ("104:105", [104]), (":101", [100]), ("-2", [109, 110]),
        ("+7", [108, 109, 110]), ("end", []), ("0:1", []), ("@1700000002:@1700000004", [103, 104]),
        ("@2023-11-14T22:13:29Z", [110]), ("@2024-01-01", []), ("-99", [100, 101, 103]),
    ],
)  # fmt: skip
def test_dump_given_offsets_shows_those_records(
    invoke: Invoke, partition: Path, spec: str, offsets: list[int]
) -> None:
    args = ("-o", spec, "-n", "3", "--output", "jsonl")
    rows = _jsonl(invoke("log", "dump", str(partition), *args).text)
    assert [row["offset"] for row in rows] == offsets


def test_dump_given_bytes_starts_with_a_batch_of_the_file(invoke: Invoke, partition: Path) -> None:
    args = ("--columns", "offset", "--no-header")
    assert invoke("log", "dump", str(partition), "-o", "-80B", *args).text == "110\n"


def test_dump_given_a_time_when_records_have_none_is_a_usage_error(
    invoke: Invoke, kafka_logs: Path
) -> None:
    result = invoke("log", "dump", str(kafka_logs / "v0-none-0"), "-o", "@2023-11-14")
    assert result.status == ExitStatus.USAGE
    assert "has none" in result.stderr


@pytest.mark.parametrize("is_damaged", [False, True])
def test_dump_given_a_time_when_one_batch_has_none_finds_it_by_the_others(
    invoke: Invoke, tmp_path: Path, is_damaged: bool
) -> None:
    untimed = bytearray(batch([Record(100, -1, None, b"untimed")]))
    untimed[-1] ^= is_damaged
    timed = batch([Record(101, DAY_MS, None, b"timed")])
    path = tmp_path / NAME
    path.write_bytes(untimed + timed)

    for year, offsets in (("2023", [101]), ("2024", [])):
        result = invoke("log", "dump", str(path), "-o", f"@{year}-01-01", "--output", "jsonl")
        assert [row["offset"] for row in _jsonl(result.text)] == offsets
        assert result.status == 0, result.stderr


def test_dump_with_a_format_writes_keys_and_headers_and_no_marks(
    invoke: Invoke, partition: Path
) -> None:
    result = invoke("log", "dump", str(partition), "-F", "%t[%p] %o %K %k %S %T{ms} %h %s|")
    assert result.status == 0
    lines = result.stdout.split(b"|")
    assert lines[:4] == [
        b"my topic.v1-x[3] 100 1 k 3 1700000000000 trace=id,none,raw=\\xff one",
        b"my topic.v1-x[3] 101 -1  0 1700000001000 - ",
        b"my topic.v1-x[3] 103 0  -1 1700000002000 - ",
        b"my topic.v1-x[3] 104 1 \xff 1 1700000003000 - \xfe",
    ]
    assert len(lines) == 10  # and an empty rest: the mark is no message


def test_dump_when_a_value_has_an_envelope_then_a_format_shows_what_is_inside(
    invoke: Invoke, tmp_path: Path
) -> None:
    value = Envelope(DAY_MS * 1000, "web1", 15, 7).wrap(b"inside")
    file = tmp_path / NAME
    file.write_bytes(codec.encode_batch([Record(0, 5, b"k", value)], RecordBatch()))
    text = invoke("log", "dump", str(file), "-F", "%T{ms} %h %s").text
    assert text == "5 host=web1,producer=0000000f,sequence=7 inside"
    assert invoke("log", "grep", "^inside$", str(file), "-F", "%o").text == "0"


def test_dump_of_a_damaged_batch_shows_it_and_fails(invoke: Invoke, partition: Path) -> None:
    path = partition / NAME
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    result = invoke("log", "dump", str(path), "--output", "csv", "--columns", "pos,offset,valid")
    assert result.status == ExitStatus.CORRUPT
    damaged, good = result.text.splitlines()[1:3]
    assert damaged == "0,100,false"
    assert good.endswith(",105,true")
    assert "1 damaged message" in result.stderr
    shown = invoke("log", "dump", str(path), "-F", "%o,", "-o", "100:106")
    assert (shown.text, shown.status) == ("105,", ExitStatus.CORRUPT)
    found = invoke("log", "grep", "text|one", str(path), "-F", "%o,")
    assert (found.text, found.status) == ("105,106,107,108,109,", 0)


@pytest.mark.parametrize("tail", [b"\0" * 1000, b"\xff" * 1000, b"\0\0\0"])
@pytest.mark.parametrize("command", ["dump", "index", "stat"])
def test_commands_when_the_tail_is_damaged_then_show_what_is_before_and_fail(
    invoke: Invoke, partition: Path, command: str, tail: bytes
) -> None:
    path = partition / NAME
    size = path.stat().st_size
    path.write_bytes(path.read_bytes() + tail)
    result = invoke("log", command, str(path), "--output", "jsonl")
    assert result.status == ExitStatus.CORRUPT
    rows = _jsonl(result.text)
    if command == "stat":
        assert (rows[0]["messages"], rows[0]["valid_bytes"]) == (9, size)
    else:
        assert len(rows) == (10 if command == "dump" else 3)
        assert f"the message at {size} is invalid" in result.stderr


def test_dump_when_a_timestamp_is_no_date_then_is_unknown(invoke: Invoke, tmp_path: Path) -> None:
    file = tmp_path / NAME
    made = [Record(n, time, None, b"x") for n, time in enumerate((2**62, -1, -(2**62)))]
    file.write_bytes(codec.encode_batch(made, RecordBatch()))
    for args in ((), ("--shallow",), ("-F", "%T %T{ms}\n")):
        assert invoke("log", "dump", str(file), *args).status == 0
    assert invoke("log", "stat", str(file), "--columns", "first_time").status == 0


def test_dump_reads_a_segment_of_kafka_from_stdin(invoke: Invoke, partition: Path) -> None:
    data = (partition / NAME).read_bytes()
    result = invoke("log", "dump", "-", "-F", "%o %k,", "-n", "1", stdin=data)
    assert result.stdout == b"100 k,"


def test_dump_of_both_formats_has_rows_of_both(
    invoke: Invoke, partition: Path, tmp_path: Path
) -> None:
    old = tmp_path / "data" / "t_0"
    old.mkdir()
    (old / "00000000000000000000.pylog").write_bytes(build_set([b"old"]))
    rows = _jsonl(invoke("log", "dump", str(tmp_path / "data"), "--output", "jsonl").text)
    assert [row["payload"] for row in rows].count("old") == 1
    assert len(rows) == 11
    assert invoke("log", "dump", str(tmp_path / "data")).status == 0


@pytest.mark.parametrize(
    ("args", "offsets"),
    [
        (["text [13]"], [106, 108]),
        (["k[24]"], [107, 109]),
        (["^one$"], [100]),
        (["-i", "^ONE$"], [100]),
        (["^$"], [101, 103]),  # an empty value, an empty key
        (["--invert", "text|one|k"], [101, 103, 104]),
        (["commit"], []),
    ],
)
def test_grep_matches_keys_and_values(
    invoke: Invoke, partition: Path, args: list[str], offsets: list[int]
) -> None:
    *options, pattern = args
    result = invoke("log", "grep", *options, pattern, str(partition), "--output", "jsonl")
    assert result.status == 0
    assert [row["offset"] for row in _jsonl(result.text)] == offsets


def test_stat_measures_batches_and_ranges(invoke: Invoke, partition: Path) -> None:
    (row,) = _jsonl(invoke("log", "stat", str(partition), "--output", "jsonl").text)
    wanted: dict[str, Any] = {"entries": 3, "messages": 9, "min": 0, "max": 6, "fault": None}
    wanted |= {"codecs": {"gzip": 1, "none": 2}, "magics": {"2": 3}}
    wanted |= {"first_offset": 100, "last_offset": 109, "payload_bytes": 34}
    wanted |= {"first_time": "2023-11-14T22:13:20.000Z", "last_time": "2023-11-14T22:13:25.000Z"}
    assert row.items() >= wanted.items()


def test_index_lists_the_first_offset_of_each_batch(invoke: Invoke, kafka_logs: Path) -> None:
    topics = json.loads((kafka_logs / "manifest.json").read_text())["topics"]
    for segment in _with_batches(topics):
        path = kafka_logs / segment["file"]
        rows = _jsonl(invoke("log", "index", str(path), "--output", "jsonl").text)
        assert [(row["pos"], row["offset"], row["bytes"]) for row in rows] == [
            (one["position"], one["base_offset"], one["size"]) for one in segment["batch_list"]
        ]


def _with_batches(topics: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for topic in topics.values():
        yield from (one for one in topic["segments"] if "batch_list" in one)


@pytest.mark.parametrize("form", ["utf8", "hex", "base64"])
def test_dump_when_produced_again_then_has_the_values_and_no_nulls(
    invoke: Invoke, running_broker: Broker, partition: Path, form: str
) -> None:
    dumped = invoke("log", "dump", str(partition), "--payload", form, "--output", "jsonl")
    at = f"127.0.0.1:{running_broker.port}"
    produced = invoke("produce", "t", "-b", at, "--jsonl", stdin=dumped.stdout)
    assert produced.status == 0
    read = invoke("consume", "t", "-b", at, "-o", "start", "-e", "-F", "%s|")
    texts = [b"text %d" % n for n in range(5)]
    assert read.stdout == b"|".join([b"one", b"", b"\xfe", *texts, b""])
