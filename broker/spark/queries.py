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
    """Return messages with an additional column `text`: their `value` as UTF-8."""
    return messages.withColumn("text", text_of(fn.col("value")))


def infer_schema(messages: DataFrame, *, sample_count: int = SAMPLE_COUNT) -> StructType:
    """Infer the fields of JSON payloads from the first `sample_count` messages of a batch.

    Raises:
        QueryError: none of these messages is a JSON object.
    """
    texts = messages.select(text_of(fn.col("value")).alias("value")).limit(sample_count)
    found = messages.sparkSession.read.json(texts).schema
    fields = [field for field in found.fields if field.name != _CORRUPT]
    if not fields:
        raise QueryError("none of its messages is a JSON object")
    return StructType(fields)


def parse_schema(text: str) -> StructType:
    """Parse a schema in SQL's notation, such as `id BIGINT, user STRUCT<name: STRING>`.

    Raises:
        QueryError: the text is not a schema.
    """
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise QueryError(f"'{text}' is not a schema: {cause_of(error)}") from error
    if not isinstance(schema, StructType):
        raise QueryError(f"'{text}' is not a schema; valid: id BIGINT, user STRING")
    return schema


def with_json(messages: DataFrame, schema: StructType) -> DataFrame:
    """Return messages with `text`, and a column for each field of their JSON objects.

    A field with the name of an existing column is prefixed with `json_`. Fields are null if the
    payload is not a JSON object or their value has another type.
    """
    table = with_text(messages)
    existing = {name.lower() for name in table.columns}
    objects = fn.from_json(fn.col("text"), schema)
    fields = [
        objects.getField(field.name).alias(
            f"json_{field.name}" if field.name.lower() in existing else field.name
        )
        for field in schema
    ]
    return table.select("*", *fields)


def make_view(table: DataFrame, topic: str) -> None:
    """Create or replace the view of a table, named after a topic."""
    table.createOrReplaceTempView(quoted(topic))


def quoted(topic: str) -> str:
    """Return a topic's name as a quoted SQL identifier."""
    doubled = topic.replace("`", "``")
    return f"`{doubled}`"


def query(spark: SparkSession, text: str) -> DataFrame:
    """Return the result of a Spark SQL statement, evaluated lazily.

    Raises:
        QueryError: the statement is invalid, or names an unknown table or column; the text has the
            position.
    """
    try:
        return spark.sql(text)
    except PySparkException as error:
        raise cause_of(error) from error
