"""SQL on topics, and what is said of SQL that cannot be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from broker.errors import QueryError
from broker.spark.jobs import cause_of
from broker.spark.queries import (
    infer_schema,
    make_view,
    parse_schema,
    query,
    used_columns,
    with_json,
    with_text,
)
from broker.spark.source import read_messages
from tests.support.segments import WriteSegments

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ORDERS = [
    b'{"id": 1, "user": {"name": "ada"}, "offset": "home"}',
    b'{"id": 2, "price": 2.5}',
    b"no json",
]


@pytest.fixture
def messages(spark: SparkSession, write_segments: WriteSegments) -> DataFrame:
    """Messages of a topic."""
    return read_messages(spark, {"path": str(write_segments(ORDERS))})


def test_view_when_of_any_topic_name_then_can_be_queried(
    spark: SparkSession, messages: DataFrame
) -> None:
    make_view(with_text(messages), "web-logs.2026 `x`")

    found = query(spark, "SELECT text, partition FROM `web-logs.2026 ``x``` WHERE text LIKE 'no%'")

    assert [tuple(row) for row in found.collect()] == [("no json", "0-0")]


def test_json_when_inferred_then_fields_are_columns(messages: DataFrame) -> None:
    schema, fits_all, _ = infer_schema(messages)
    table = with_json(messages, schema).select("offset", "id", "user", "price", "json_offset")

    rows = [row.asDict(recursive=True) for row in table.orderBy("offset").collect()]

    assert (
        schema.simpleString()
        == "struct<id:bigint,offset:string,price:double,user:struct<name:string>>"
    )
    assert not fits_all
    assert [row["id"] for row in rows] == [1, 2, None]
    assert rows[0] == {
        "offset": 0, "id": 1, "user": {"name": "ada"}, "price": None, "json_offset": "home",
    }  # fmt: skip


def test_json_when_the_schema_is_given_then_only_those_fields_come(messages: DataFrame) -> None:
    table = with_json(messages, parse_schema("id string, missing int"))

    assert table.columns[-3:] == ["text", "id", "missing"]
    assert [row.id for row in table.orderBy("offset").collect()] == ["1", "2", None]


def test_json_when_there_is_none_then_says_so(
    spark: SparkSession, write_segments: WriteSegments
) -> None:
    with pytest.raises(QueryError, match="none of its messages is a JSON object"):
        infer_schema(read_messages(spark, {"path": str(write_segments([b"x", b"[1]"]))}))


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT count(*) FROM t", ""),
        ("SELECT * FROM t", "crc inner_index next_offset offset partition topic value"),
        ("SELECT offset FROM t WHERE text LIKE 'a%' ORDER BY crc", "crc offset value"),
        ("SELECT 1 UNION ALL SELECT offset FROM t", "offset"),
        ("SELECT topic FROM t UNION SELECT text FROM t", "topic value"),
        ("SELECT 1 FROM t WHERE offset > (SELECT avg(next_offset) FROM t)", "next_offset offset"),
        ("SELECT 5 FROM t WHERE EXISTS (SELECT * FROM t e WHERE e.crc = t.offset)", "crc offset"),
        ("SELECT sum(a.crc) FROM t a JOIN t b ON a.offset = b.next_offset",
         "crc next_offset offset"),
        ("SELECT offset, row_number() OVER (PARTITION BY topic ORDER BY crc) FROM t",
         "crc offset topic"),
        ("SELECT 1", None),
        ("SHOW TABLES", None),
    ],
)  # fmt: skip
def test_columns_when_a_query_needs_some_then_they_are_known(
    spark: SparkSession, messages: DataFrame, text: str, columns: str | None
) -> None:
    make_view(with_text(messages), "t")

    found = used_columns(query(spark, text))

    assert found == (None if columns is None else set(columns.split()))


def test_schema_when_malformed_then_says_where(spark: SparkSession) -> None:
    with pytest.raises(QueryError, match="'id bigit bigint' is not a schema: line 1, column "):
        parse_schema("id bigit bigint")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELEC 1", "line 1, column 1: Syntax error at or near 'SELEC'"),
        (
            "SELECT *\n FROM nope",
            "line 2, column 7: The table or view `nope` cannot be found. Verify the spelling and "
            "correctness of the schema and catalog",
        ),
        (
            "SELECT txt FROM events",
            "line 1, column 8: A column, variable, or function parameter with name `txt` cannot "
            "be resolved. Did you mean one of the following? [`text`, `",
        ),
        ("SELECT 1 / 0", "line 1, column 8: Division by zero. Use `try_divide` to tolerate"),
        ("SELECT regexp_extract('a', '(')", "The value of parameter(s) `regexp` in"),
    ],
)
def test_query_when_impossible_then_says_what_and_where(
    spark: SparkSession, messages: DataFrame, text: str, message: str
) -> None:
    make_view(with_text(messages), "events")

    with pytest.raises(Exception) as caught:
        query(spark, text).collect()

    cause = cause_of(caught.value)
    assert isinstance(cause, QueryError)
    assert str(cause).startswith(message)
    assert "\n" not in str(cause)
    assert "SQLSTATE" not in str(cause)


@pytest.mark.parametrize("text", ["SELECT key FROM t", "SELECT 1 FROM t e WHERE e.Timestamp > 5"])
def test_query_when_a_column_is_of_spark_s_kafka_source_only_then_says_why_there_is_none(
    spark: SparkSession, messages: DataFrame, text: str
) -> None:
    make_view(with_text(messages), "t")

    with pytest.raises(
        QueryError, match=r"^line 1, column .*; messages of Kafka 0\.7 have no key, "
    ):
        query(spark, text)


def test_query_when_impossible_then_standard_error_stays_empty(
    spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(QueryError, match="`nowhere` cannot be found"):
        query(spark, "SELECT * FROM nowhere")

    assert capfd.readouterr().err == ""
