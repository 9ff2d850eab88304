"""`pylogctl pipeline window` and `join`, in batches; and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.server.broker import Broker
from tests.support.command_line import Invoke
from tests.support.segments import WriteSegments
from tests.support.spark_rows import read, values
from tests.support.spark_session import publish

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = ("--key-field", ".user", "--time-field", ".ts")
STREAM = ("--stream", "--watermark", "1m", "--checkpoint")


def event(user: str, second: int) -> bytes:
    return json.dumps({"user": user, "ts": f"2026-01-02T03:00:{second:02d}Z"}).encode()


@pytest.mark.spark
def test_window_when_counted_then_messages_without_a_time_are_told(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([event("bob", 2), event("ada", 31), event("ada", 1), b"no json"])
    command = ("pipeline", "window", "events", "--path", str(data), *EVENTS)

    windows = invoke(*command, "--size", "1m", "--output", "csv")
    sessions = invoke(*command, "--session", "10s", "--output", "csv", "--columns", "key,messages")

    assert windows.text == (
        "start,end,key,messages\n"
        "2026-01-02T03:00:00Z,2026-01-02T03:01:00Z,ada,2\n"
        "2026-01-02T03:00:00Z,2026-01-02T03:01:00Z,bob,1\n"
    )
    assert windows.stderr == "warning: 1 messages have no time: not counted\n"
    assert sessions.text == "key,messages\nada,1\nbob,1\nada,1\n"


@pytest.mark.spark
def test_window_when_no_message_has_a_time_then_has_no_rows_and_says_so(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b"no json", b"nor this"])

    result = invoke("pipeline", "window", "events", "--path", str(data), *EVENTS, "--size", "1m")

    assert result.status == 0
    assert "2 messages have no time: not counted" in result.stderr


@pytest.mark.spark
def test_window_when_a_time_is_the_last_of_python_then_its_end_is_printed(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b'{"user":"ada","ts":"9999-12-31T23:59:59Z"}', event("ada", 1)])
    command = ("pipeline", "window", "events", "--path", str(data), *EVENTS, "--size", "1m")

    result = invoke(*command, "--output", "csv", "--columns", "start,end,messages")

    assert result.text.splitlines()[1:] == [
        "2026-01-02T03:00:00Z,2026-01-02T03:01:00Z,1",
        "9999-12-31T23:59:00Z,+10000-01-01T00:00:00Z,1",
    ]


@pytest.mark.spark
def test_window_when_values_are_named_then_their_sums_and_the_largest_are_told(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments(
        [b"03:00:01 ada 5", b"03:00:02 bob 7", b"03:00:03 ada 4", b"03:00:04 x -"]
    )
    pattern = r"(?P<time>[\d:]+) (?P<key>\w+) (?P<value>\S+)"

    result = invoke(
        "pipeline", "window", "events", "--path", str(data), "--size", "1h", "--pattern", pattern,
        "--time-format", "%T", "--year", "2026", "--top", "2", "--top-by", "sum", "--output", "csv",
        "--columns", "key,messages,sum,average,minimum,maximum",
    )  # fmt: skip

    assert result.text.splitlines()[1:] == ["ada,2,9.0,4.5,4.0,5.0", "bob,1,7.0,7.0,7.0,7.0"]
    assert "1 messages have no number: counted, but not in sums" in result.stderr


@pytest.mark.spark
def test_ssh_log_when_counted_then_the_top_sources_of_failed_logins_come_first(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke, shared_data: Path
) -> None:
    log = shared_data / "logs" / "OpenSSH_2k.log"
    if not log.is_file():
        pytest.skip(f"{log} is not here")
    data = write_segments(log.read_bytes().splitlines())
    pattern = r"^(?P<time>\w+ +\d+ [\d:]+) .*Failed password .* from (?P<key>\S+)"

    result = invoke(
        "pipeline", "window", "events", "--path", str(data), "--size", "1d", "--pattern", pattern,
        "--time-format", "%b %d %T", "--year", "2016", "--sort", "-messages", "--output", "csv",
    )  # fmt: skip

    lines = result.text.splitlines()
    assert lines[1] == "2016-12-10T00:00:00Z,2016-12-11T00:00:00Z,183.62.140.253,286"
    assert sum(int(line.rpartition(",")[2]) for line in lines[1:]) == 520


@pytest.mark.spark
def test_join_when_with_a_topic_or_a_table_then_partners_are_found(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path
) -> None:
    publish(running_broker, "orders", [event("ada", 1), event("bob", 2)])
    paid = [one.replace(b"user", b"who") for one in (event("ada", 30), event("ada", 40))]
    publish(running_broker, "paid", paid)
    users = tmp_path / "users.csv"
    users.write_text('id,name\nada,"Ada ""the first"",\nof Lovelace "\n')
    where = f"127.0.0.1:{running_broker.port}"
    at = ("--broker", where, *EVENTS)

    more = ("--key-field", ".user,.who", "--within", "30s", "--output", "csv")
    topics = invoke("pipeline", "join", "orders", "paid", *at, *more)
    table = ("--table", str(users), "--table-column", "id", "--how", "left")
    done = invoke("pipeline", "join", "orders", *table, *at, "--to-topic", "named")

    assert [line.split(",")[0] for line in topics.text.splitlines()] == ["key", "ada"]
    assert done.status == 0
    named = [json.loads(one) for one in values(read(brokers=where, subscribe="named"))]
    assert sorted((one["key"], one.get("name")) for one in named) == [
        ("ada", 'Ada "the first",\nof Lovelace '),
        ("bob", None),
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("window", "t", *EVENTS), "give either --size or --session"),
        (("window", "t", *EVENTS, "--size", "1m", "--session", "1m"), "give either --size"),
        (("window", "t", *EVENTS, "--session", "1m", "--slide", "1s"), "--slide needs --size"),
        (("window", "t", *EVENTS, "--size", "0m"), "--size is at least 1ms"),
        (("window", "t", *EVENTS, "--session", "0"), "--session is at least 1ms"),
        (
            ("window", "t", *EVENTS, "--size", "1m", "--slide", "2m"),
            "--slide 2m00s is longer than --size",
        ),
        (("window", "t", *EVENTS, "--size", "soon"), "not a duration: 'soon'"),
        (("window", "t", "--size", "1m"), "give --time-field, or --pattern"),
        (("window", "t", *EVENTS, "--size", "1m", "--stream"), "--stream needs --checkpoint DIR"),
        (
            ("window", "t", *EVENTS, "--size", "1m", "--stream", "--checkpoint", "x"),
            "--stream needs --watermark DUR",
        ),
        (("window", "t", *EVENTS, "--size", "1m", "--watermark", "1m"), "need --stream"),
        (
            ("window", "t", *EVENTS, "--size", "1m", *STREAM, "x", "--output", "json"),
            "a stream cannot be one JSON document",
        ),
        (
            ("window", "t", *EVENTS, "--size", "1m", *STREAM, "x", "--until", "end"),
            "--stream cannot be used with --path",
        ),
        (
            ("window", "t", "--size", "1m", "--pattern", "(?P<time>x)", "--time-format", "%Y%Q"),
            "'%Y%Q' is not a time format: 'Q' is a bad directive",
        ),
        (("join", "a", *EVENTS), "name another topic to join with, or give --table"),
        (("join", "a", "b", *EVENTS, "--table-column", "id"), "--table and --table-column go"),
        (("join", "a", "b"), "give --key-field, or --pattern"),
        (("join", "a", "a", *EVENTS), "'a' is named twice"),
        (("join", "a", "b", "--key-field", "k", "--within", "1m"), "give --time-field"),
        (("join", "a", "b", *EVENTS, *STREAM, "x"), "needs --within DUR"),
        (
            ("join", "a", "b", *EVENTS, "--within", "1m", "--stream", "--checkpoint", "x"),
            "--stream needs --watermark DUR",
        ),
    ],
)
def test_command_when_options_do_not_fit_then_says_so_before_anything_starts(
    invoke: Invoke, words: tuple[str, ...], message: str
) -> None:
    result = invoke("pipeline", *words, "--broker", "127.0.0.1:1")

    assert result.status == 2
    assert message in result.stderr


def test_window_when_the_topic_is_unknown_then_ends_with_3(
    running_broker: Broker, invoke: Invoke
) -> None:
    result = invoke(
        "pipeline",
        "window",
        "nope",
        *EVENTS,
        "--size",
        "1m",
        "-b",
        f"127.0.0.1:{running_broker.port}",
    )

    assert (result.status, result.stderr.splitlines()[0]) == (3, "error: topic 'nope' not found")


@pytest.mark.spark
def test_window_when_the_pattern_is_malformed_then_ends_with_2(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b"x"])

    result = invoke("pipeline", "window", "--path", str(data), "--size", "1m", "--pattern", "(")

    assert result.status == 2
    assert result.stderr.startswith("error: '(' is no regular expression of RE2: missing )")


@pytest.mark.parametrize("table", ["users.txt", "users.csv"])
def test_join_when_the_table_is_not_there_then_says_so(invoke: Invoke, table: str) -> None:
    given = ("--table", table, "--table-column", "id", *EVENTS, "--broker", "127.0.0.1:1")

    result = invoke("pipeline", "join", "t", *given)

    assert result.status == (2 if table.endswith("txt") else 3)
    assert f"'{table}'" in result.stderr


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("users.json", b'{"id":"ada"}\nno json\n', "line 2: is not a JSON object"),
        ("users.json", b'{"id":"a"}{"id":"b"}\n', "line 1: is not a JSON object"),
        ("users.json", b'{"id":"zo\xeb"}\n', "line 1: byte 0xeb is not UTF-8"),
        ("users.csv", b"id,name\nada\n", "line 2: fields: 1, columns: 2"),
        ("users.csv", b"id,name\nada,Ada\nzoe,Zo\xeb\n", "line 3: byte 0xeb is not UTF-8"),
        ("users.csv", b'id,name\nada,"Ada\nzoe,Zoe\n', "line 2: a quote is not closed"),
        ("users.csv", b'id,name\nada,"Ada\nzoe,"Zoe"\n', "line 2: a quote is not closed"),
    ],
)
def test_join_when_the_table_is_malformed_then_says_so_before_spark_starts(
    write_segments: WriteSegments,
    invoke: Invoke,
    tmp_path: Path,
    name: str,
    lines: bytes,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pylogctl.pipeline.jobs.open_spark", None)
    data = write_segments([event("ada", 1)])
    table = tmp_path / name
    table.write_bytes(lines)
    command = ("pipeline", "join", "events", "--path", str(data), "--key-field", ".user")

    result = invoke(*command, "--table", str(table), "--table-column", "id")

    assert result.status == 2
    assert result.stderr.startswith(f"error: '{table}' {message}")


@pytest.mark.spark
def test_stream_when_started_again_then_its_checkpoint_and_files_take_no_other_query(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path
) -> None:
    into = tmp_path / "counts.parquet"
    command = (
        "pipeline", "window", "events", "--broker", f"127.0.0.1:{running_broker.port}", *EVENTS,
        *STREAM, str(tmp_path / "checkpoint"), "--exit-at-end",
    )  # fmt: skip
    publish(running_broker, "events", [event("ada", 1)])

    first = invoke(*command, "--from", "start", "--size", "1s", "--into", str(into))
    publish(running_broker, "events", [event("ada", second) for second in (2, 59)])
    other_size = invoke(*command, "--size", "5s", "--into", str(into))
    other_target = invoke(*command, "--size", "1s", "--into", str(tmp_path / "other.json"))
    other_checkpoint = invoke(
        *command, "--size", "1s", "--into", str(into), "--checkpoint", str(tmp_path / "new")
    )
    other_start = invoke(*command, "--from", "-1", "--size", "1s", "--into", str(into))
    again = invoke(*command, "--size", "1s", "--into", str(into))

    assert (first.status, first.stderr) == (0, "")
    assert (other_size.status, other_size.stderr.splitlines()[0]) == (
        4,
        f"error: the checkpoint '{tmp_path}/checkpoint' is of a stream with --size 1000, not 5000",
    )
    assert (other_start.status, "with --from start, not -1" in other_start.stderr) == (4, True)
    assert (other_target.status, "with --into" in other_target.stderr) == (4, True)
    assert (other_checkpoint.status, "with another checkpoint" in other_checkpoint.stderr) == (
        4,
        True,
    )
    assert (again.status, again.stderr) == (0, "")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("windows", "late_seconds"),
    [
        (("--size", "1s"), [3, 4, 4, 4, 44]),
        (("--size", "4s", "--slide", "1s"), [3, 4, 4, 4, 44]),  # one window of 44 is closed
        (("--session", "2s"), [3, 4, 4, 4, 43]),
    ],
    ids=["size", "slide", "session"],
)
def test_stream_when_events_are_later_than_the_watermark_then_counts_each_and_files_are_whole(
    spark: SparkSession,
    running_broker: Broker,
    invoke: Invoke,
    tmp_path: Path,
    windows: tuple[str, ...],
    late_seconds: list[int],
) -> None:
    into = tmp_path / "counts.csv"
    command = (
        "pipeline", "window", "events", "--broker", f"127.0.0.1:{running_broker.port}", *EVENTS,
        "--stream", "--checkpoint", str(tmp_path / "checkpoint"), "--exit-at-end",
        "--watermark", "5s", *windows, "--from", "start", "--into", str(into),
    )  # fmt: skip
    publish(running_broker, "events", [event("ada", 10), event("ada", 50)])
    first = invoke(*command)
    seconds = [59, *late_seconds, 45]
    publish(running_broker, "events", [event("ada", second) for second in seconds])

    second = invoke(*command)

    assert (first.status, first.stderr, second.status) == (0, "", 0)
    told = f"warning: {len(late_seconds)} events came later than --watermark 5s, and were not"
    assert told in second.stderr
    files = sorted(into.glob("batch-*.csv"))
    assert {file.name for file in into.iterdir()} - {file.name for file in files} == {
        "_stream.json"
    }
    if "--slide" not in windows:
        rows = [line.split(",") for file in files for line in file.read_text().splitlines()[1:]]
        assert [row[2:] for row in rows] == [["ada", "1"]] * 3


@pytest.mark.spark
@pytest.mark.parametrize("target", ["stdout", "topic"])
def test_stream_when_the_top_is_asked_for_then_it_is_of_each_whole_window(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path, target: str
) -> None:
    where = f"127.0.0.1:{running_broker.port}"
    command = (
        "pipeline", "window", "events", "--broker", where, *EVENTS, "--stream", "--watermark", "0s",
        "--checkpoint", str(tmp_path / "checkpoint"), "--exit-at-end", "--size", "10s",
        "--from", "start", "--top", "1", *(("--to-topic", "top") if target == "topic" else ()),
    )  # fmt: skip
    users = ["ada", "bob", "bob", "eve"]
    publish(running_broker, "events", [event(user, 1) for user in users])
    first = invoke(*command, "--output", "jsonl")
    later = [event("ada", 2), event("ada", 3), event("eve", 11), event("ada", 12), event("ada", 50)]
    publish(running_broker, "events", later)

    second = invoke(*command, "--output", "jsonl")
    other = invoke(*command, "--output", "jsonl", "--top", "2")

    assert (first.status, second.status, other.status) == (0, 0, 4)
    lines: list[str] = (first.text + second.text).splitlines()
    if target == "topic":
        lines = [one.decode() for one in values(read(brokers=where, subscribe="top"))]
    found = [json.loads(line) for line in lines]
    # windows of one batch go to the partitions of a topic in any order
    assert sorted((one["start"][17:19], one["key"], one["messages"]) for one in found) == [
        ("00", "ada", 3),
        ("10", "ada", 1),
    ]
    assert "with --top 1, not 2" in other.stderr


def test_stream_when_the_top_goes_into_a_table_then_is_refused(invoke: Invoke) -> None:
    result = invoke(
        "pipeline", "window", "t", *EVENTS, *STREAM, "x", "--size", "1m", "--top", "1",
        "--into-table", "delta:a.b",
    )  # fmt: skip

    assert result.status == 2
    assert "--top cannot be used with --stream and --into-table" in result.stderr
