"""SQL on topics: each topic a view, the payload as text or as columns of its JSON.

make_view(with_json(messages, infer_schema(messages).schema), "orders")
query(spark, "SELECT customer, count(*) FROM orders GROUP BY customer")
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from broker.errors import QueryError
from broker.spark.extraction import text_of
from broker.spark.jobs import cause_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import DataFrame, SparkSession

_CORRUPT = "_corrupt_record"
_MISFIT = "_pylog_misfit"
_NAMING_NODES = {
    "Aggregate", "Filter", "GlobalLimit", "Join", "LocalLimit", "Project", "Sort", "SubqueryAlias",
}  # fmt: skip
"""Nodes of a plan that need only the columns that they or their parents name."""


def with_text(messages: DataFrame) -> DataFrame:
    """Return messages with an additional column `text`: their `value` as UTF-8."""
    return messages.withColumn("text", text_of(fn.col("value")))


class InferredSchema(NamedTuple):
    """The fields of JSON payloads; `fits_all` unless some payloads are not JSON objects."""

    schema: StructType
    fits_all: bool


def infer_schema(messages: DataFrame) -> InferredSchema:
    """Infer fields that can hold the JSON payloads of all messages of a batch, by reading them.

    Raises:
        QueryError: none of the messages is a JSON object.
    """
    texts = messages.select(text_of(fn.col("value")).alias("value"))
    found = messages.sparkSession.read.json(texts).schema
    fields = [field for field in found.fields if field.name != _CORRUPT]
    if not fields:
        raise QueryError("none of its messages is a JSON object")
    return InferredSchema(StructType(fields), len(fields) == len(found.fields))


def count_misfits(messages: DataFrame, schema: StructType) -> int:
    """Return how many messages of a batch are not JSON objects with values of a schema's types.

    `with_json` has nulls for the values that do not fit. Null and missing fields fit.
    """
    whole = StructType([*schema.fields, StructField(_MISFIT, StringType())])
    options = {"columnNameOfCorruptRecord": _MISFIT}
    parsed = fn.from_json(text_of(fn.col("value")), whole, options).alias("parsed")
    return messages.select(parsed).where(f"parsed.{_MISFIT} IS NOT NULL").count()


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


def used_columns(table: DataFrame) -> frozenset[str] | None:
    """Return the columns of messages that a query needs, by Spark's optimized plan.

    Spark does not tell a Python data source which columns it needs.

    Returns:
        None if the query reads no messages, or its plan is not to be had.
    """
    from py4j.protocol import Py4JError

    try:
        plan = table._jdf.queryExecution().optimizedPlan()
        return _used_in([plan, *_items(plan.subqueriesAll())])
    except (AttributeError, PySparkException, Py4JError):
        return None  # Spark Connect, or an expression that fails before anything is read


def _used_in(plans: list[JavaObject]) -> frozenset[str] | None:
    names: dict[int, str] = {}
    used: set[int] = set()
    for plan in plans:
        used |= _ids(plan.output())
    nodes = list(plans)
    while nodes:
        node = nodes.pop()
        children = _items(node.children())
        if children:
            used |= _ids(node.references().toSeq())
        elif _kind(node) == "DataSourceV2ScanRelation":
            names |= {one.exprId().id(): one.name() for one in _items(node.output())}
        if _kind(node) not in _NAMING_NODES:
            for child in children:
                used |= _ids(child.output())
        nodes += children
    return frozenset(names[one] for one in used if one in names) if names else None


def _kind(node: JavaObject) -> str:
    return str(node.getClass().getSimpleName())


def _items(sequence: JavaObject) -> list[JavaObject]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _ids(attributes: JavaObject) -> set[int]:
    return {one.exprId().id() for one in _items(attributes)}


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
