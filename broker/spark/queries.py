"""SQL on topics: each topic a view, the payload as text or as columns of its JSON.

make_view(spark, "orders", with_json(messages, infer_schema(messages)))
query(spark, "SELECT customer, count(*) FROM orders GROUP BY customer")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as fn
from pyspark.sql.types import StructType

from broker.errors import QueryError
from broker.spark.extraction import text_of
from broker.spark.jobs import cause_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SAMPLE_COUNT = 10_000
_CORRUPT = "_corrupt_record"


def with_text(messages: DataFrame) -> DataFrame:
    """Return messages with a column `text`: the payload as UTF-8.

    Args:
        messages: has a column `value`.
    """
    return messages.withColumn("text", text_of(fn.col("value")))


def infer_schema(messages: DataFrame, *, sample_count: int = SAMPLE_COUNT) -> StructType:
    """Return what fields the JSON objects in some messages have.

    Args:
        messages: of a batch, with a column `value`.
        sample_count: how many to look at.

    Raises:
        QueryError: none of them is a JSON object.
    """
    texts = messages.select(text_of(fn.col("value")).alias("value")).limit(sample_count)
    found = messages.sparkSession.read.json(texts).schema
    fields = [field for field in found.fields if field.name != _CORRUPT]
    if not fields:
        raise QueryError("none of its messages is a JSON object")
    return StructType(fields)


def parse_schema(text: str) -> StructType:
    """Return a schema as SQL writes it.

    Args:
        text: such as `id BIGINT, user STRUCT<name: STRING>`.

    Raises:
        QueryError: it is none.
    """
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise QueryError(f"no schema: '{text}': {cause_of(error)}") from error
    if not isinstance(schema, StructType):
        raise QueryError(f"no schema: '{text}'; valid: id BIGINT, user STRING")
    return schema


def with_json(messages: DataFrame, schema: StructType) -> DataFrame:
    """Return messages with `text`, and a column for each field of their JSON objects.

    A field of the same name as a column of messages gets `json_` before it. Payloads that are not
    JSON objects, and fields that do not fit, are null.

    Args:
        messages: has a column `value`.
        schema: of the objects.
    """
    table = with_text(messages)
    taken = {name.lower() for name in table.columns}
    objects = fn.from_json(fn.col("text"), schema)
    fields = [
        objects.getField(field.name).alias(
            f"json_{field.name}" if field.name.lower() in taken else field.name
        )
        for field in schema
    ]
    return table.select("*", *fields)


def make_view(table: DataFrame, topic: str) -> None:
    """Have SQL know a table by the name of a topic; replaces what had that name."""
    table.createOrReplaceTempView(quoted(topic))


def quoted(topic: str) -> str:
    """Return a topic's name as SQL takes any name."""
    doubled = topic.replace("`", "``")
    return f"`{doubled}`"


def query(spark: SparkSession, text: str) -> DataFrame:
    """Return the result of a query; it is computed when it is used.

    Args:
        spark: the session with the views.
        text: a statement of Spark's SQL.

    Raises:
        QueryError: it is none, or names what there is not; says where.
    """
    try:
        return spark.sql(text)
    except PySparkException as error:
        raise cause_of(error) from error
