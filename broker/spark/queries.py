"""SQL on topics: each topic a view, the payload as text or as columns of its JSON.

make_view(with_json(messages, infer_schema(messages).schema), "orders")
query(spark, "SELECT customer, count(*) FROM orders GROUP BY customer")

What Spark's plan of a query tells, which columns it reads and whether an observation is whole, is
asked of the JVM, as PySpark has no names for plans. With Spark Connect, or another version of
Spark, the answer is that nothing is known.
"""

from __future__ import annotations

import time
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import functions as fn
from pyspark.sql.types import ArrayType, DataType, DoubleType, StringType, StructField, StructType

from broker.errors import QueryError
from broker.spark.extraction import text_of
from broker.spark.jobs import cause_of

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.sql import Column, DataFrame, Observation, SparkSession

CASE_SENSITIVE = "spark.sql.caseSensitive"
"""Setting of Spark: whether names of views and columns that differ in case are different."""

_MISFIT = "_pylog_misfit"
_WHOLE = "_pylog_whole"
_LARGE = "_pylog_large"
_LARGE_INTEGER = "[0-9]{16}"  # DOUBLE holds all integers of fewer digits
_INTEGERS = "decimal(38,0)"
_EMPTY = "_pylog_empty"
_EMPTY_KEY = r'([{,][ \t\r\n]*)""([ \t\r\n]*:)'  # not inside of a string, where quotes are escaped
_OF_SPARK = "_corrupt_record"
_NO_JSON = "["  # no parser accepts it: replaces messages that are not objects
_PARSED = "_pylog_parsed"
_JSON_SPACES = " \t\r\n"


def with_text(messages: DataFrame) -> DataFrame:
    """Return messages with an additional column `text`: their `value` as UTF-8."""
    return messages.withColumn("text", text_of(fn.col("value")))


class InferredSchema(NamedTuple):
    """The fields of JSON payloads."""

    schema: StructType  # DOUBLE for a field that has integers and fractions
    fits_all: bool  # all payloads are JSON objects
    rounded: tuple[str, ...] = ()  # names of fields with integers that DOUBLE does not hold exactly


def infer_schema(messages: DataFrame) -> InferredSchema:
    """Infer fields that can hold the JSON payloads of all messages of a batch, by reading them.

    A `QueryError` if no message is a JSON object with a value, or if names of fields differ only in
    case, and the session ignores case.
    """
    spark = messages.sparkSession
    text = text_of(fn.col("value"))
    stripped = _stripped(text)
    # Spark's reader alone would take an array as several objects, and drop all but the first of
    # several objects in a message, and fields with an empty name
    named = fn.regexp_replace(text, _EMPTY_KEY, f'$1"{_EMPTY}"$2')
    checked = (
        fn.when(text.isNull() | stripped.isin("", "null"), fn.lit("{}"))
        .when(stripped.startswith("{") & text.rlike(_LARGE_INTEGER), _wrapped(named, _LARGE))
        .when(stripped.startswith("{"), _wrapped(named))
    )
    texts = messages.select(checked.otherwise(fn.lit(_NO_JSON)).alias("value"))
    is_case_sensitive = str(spark.conf.get(CASE_SENSITIVE))
    spark.conf.set(CASE_SENSITIVE, "true")  # else one of two such fields would be dropped
    try:
        reader = spark.read.option("columnNameOfCorruptRecord", _MISFIT)
        found = {field.name: field.dataType for field in reader.json(texts).schema}
    finally:
        spark.conf.set(CASE_SENSITIVE, is_case_sensitive)
    fields = found.get(_WHOLE)
    if not isinstance(fields, StructType):
        raise QueryError("none of its messages is a JSON object with a value")
    schema = _with_unique_names(fields)
    assert isinstance(schema, StructType)
    if is_case_sensitive != "true":
        _check_case(schema)
    rounded = _rounded_fields(messages, schema) if _LARGE in found else ()
    return InferredSchema(schema, _MISFIT not in found, rounded)


def _stripped(text: Column) -> Column:
    return fn.btrim(text, fn.lit(_JSON_SPACES))


def _wrapped(text: Column, mark: str | None = None) -> Column:
    """Return JSON as the field of an object, beside `mark`; invalid if text follows the value."""
    marked = "" if mark is None else f'"{mark}":true,'
    return fn.concat(fn.lit(f'{{{marked}"{_WHOLE}":'), text, fn.lit("}"))


def _rounded_fields(messages: DataFrame, schema: StructType) -> tuple[str, ...]:
    """Return the fields in which DOUBLE rounds integers of some messages, by reading them."""
    names = [one.name for one in schema if _with_text(one.dataType) != one.dataType]
    if not names:
        return ()
    texts = StructType([StructField(one.name, _with_text(one.dataType)) for one in schema])
    parsed = fn.from_json(text_of(fn.col("value")), texts).alias("parsed")
    counts = (
        fn.count_if(_is_rounded(fn.col("parsed").getField(name), schema[name].dataType))
        for name in names
    )
    found = messages.select(parsed).select(*counts).head()
    assert found is not None
    return tuple(name for name, count in zip(names, found, strict=True) if count)


def _with_text(kind: DataType) -> DataType:
    """Return a type with text instead of DOUBLE: from JSON, the digits of the number."""
    match kind:
        case DoubleType():
            return StringType()
        case ArrayType(elementType=inner):
            return ArrayType(_with_text(inner))
        case StructType():
            return StructType([StructField(one.name, _with_text(one.dataType)) for one in kind])
    return kind


def _is_rounded(value: Column, kind: DataType) -> Column:
    """Return whether DOUBLE rounds an integer in a value that is parsed `_with_text`."""
    match kind:
        case DoubleType():
            exact, double = value.try_cast(_INTEGERS), value.try_cast("double").cast("string")
            is_same = fn.coalesce(exact == double.try_cast(_INTEGERS), fn.lit(False))
            return value.rlike("^-?[0-9]{16,}$") & ~is_same
        case ArrayType(elementType=inner):
            return fn.exists(value, lambda one: _is_rounded(one, inner))
        case StructType():
            parts = (_is_rounded(value.getField(one.name), one.dataType) for one in kind)
            return reduce(or_, parts, fn.lit(False))
    return fn.lit(False)


def _with_unique_names(kind: DataType) -> DataType:
    """Return a type without structs that have two fields of one name, as a JSON object may have.

    The empty name replaces `_EMPTY`.
    """
    if isinstance(kind, ArrayType):
        return ArrayType(_with_unique_names(kind.elementType))
    if not isinstance(kind, StructType):
        return kind
    kinds: dict[str, DataType] = {}
    for field in kind:
        found = _with_unique_names(field.dataType)
        name = "" if field.name == _EMPTY else field.name
        is_another = kinds.setdefault(name, found) != found
        kinds[name] = StringType() if is_another else found
    return StructType([StructField(name, found) for name, found in kinds.items()])


def _check_case(kind: DataType) -> None:
    if isinstance(kind, ArrayType):
        _check_case(kind.elementType)
    if not isinstance(kind, StructType):
        return
    names: dict[str, str] = {}
    for field in kind:
        _check_case(field.dataType)
        other = names.setdefault(field.name.lower(), field.name)
        if other != field.name:
            raise QueryError(
                f"its fields '{other}' and '{field.name}' differ only in upper and lower case: set "
                f"{CASE_SENSITIVE}=true to have both, or give a schema with one of them"
            )


def count_misfits(messages: DataFrame, schema: StructType) -> int:
    """Return how many messages of a batch are not JSON objects with values of a schema's types.

    `with_json` has nulls for the values that do not fit. Null and missing fields fit.
    """
    parsed = _parsed(text_of(fn.col("value")), schema).alias("parsed")
    return messages.select(parsed).where(f"parsed.{_MISFIT} IS NOT NULL").count()


def _parsed(text: Column, schema: StructType) -> Column:
    """Return JSON objects as `_WHOLE`, and `_MISFIT`, which is null where all values fit."""
    parts = StructType([StructField(_WHOLE, schema), StructField(_MISFIT, StringType())])
    checked = fn.when(_stripped(text) == "", fn.lit("{}")).otherwise(_wrapped(text))
    return fn.from_json(checked, parts, {"columnNameOfCorruptRecord": _MISFIT})


def parse_schema(text: str) -> StructType:
    """Parse a schema in SQL's notation, such as `id BIGINT, user STRUCT<name: STRING>`."""
    try:
        schema = StructType.fromDDL(text)
    except PySparkException as error:
        raise QueryError(f"'{text}' is not a schema: {cause_of(error)}") from error
    if not isinstance(schema, StructType):
        raise QueryError(f"'{text}' is not a schema; valid: id BIGINT, user STRING")
    return schema


def with_json(
    messages: DataFrame, schema: StructType, misfits: Observation | None = None
) -> DataFrame:
    """Return messages with `text`, and a column for each field of their JSON objects.

    A field with the name of an existing column, or with the empty name, is prefixed with `json_`.
    Fields are null if the payload is not a JSON object or their value has another type. `misfits`
    counts what `count_misfits` counts; all messages are parsed as a whole then.
    """
    table = with_text(messages)
    names = table.columns
    existing = {name.lower() for name in names}
    if misfits is None:
        # Spark prunes fields that a query does not use only where there are no options
        is_of_spark = any(field.name == _OF_SPARK for field in schema)
        options = {"columnNameOfCorruptRecord": _MISFIT} if is_of_spark else None
        objects = fn.from_json(fn.col("text"), schema, options)
    else:
        count = fn.count_if(fn.col(_PARSED).getField(_MISFIT).isNotNull()).alias("count")
        table = table.withColumn(_PARSED, _parsed(fn.col("text"), schema)).observe(misfits, count)
        objects = fn.col(_PARSED).getField(_WHOLE)
    taken = existing | {field.name.lower() for field in schema}
    fields = []
    for field in schema:
        name = field.name
        while not name or name.lower() in (existing if name == field.name else taken):
            name = f"json_{name}"
        taken.add(name.lower())
        fields.append(objects.getField(field.name).alias(name))
    return table.select(*names, *fields)


def make_view(table: DataFrame, topic: str) -> None:
    """Create or replace the view of a table, named after a topic."""
    table.createOrReplaceTempView(quoted(topic))


def quoted(topic: str) -> str:
    """Return a topic's name as a quoted SQL identifier."""
    doubled = topic.replace("`", "``")
    return f"`{doubled}`"


def check_syntax(spark: SparkSession, text: str) -> None:
    """Raise a `QueryError` with the position if text is no statement of Spark SQL."""
    try:  # no other parser takes all that Spark's takes
        spark._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except PySparkException as error:
        raise cause_of(error) from error


def query(spark: SparkSession, text: str) -> DataFrame:
    """Return the result of a Spark SQL statement, evaluated lazily.

    The `QueryError` of an invalid statement has the position.
    """
    try:
        return spark.sql(text)
    except PySparkException as error:
        raise cause_of(error) from error


_NAMING_NODES = {
    "Aggregate", "Filter", "GlobalLimit", "Join", "LocalLimit", "Project", "Sort", "SubqueryAlias",
}  # fmt: skip
"""Nodes of a plan that need only the columns that they or their parents name."""
_WHOLE_NODES = {"Aggregate", "CollectMetrics", "Filter", "Project", "Sort", "Union", "Window"}
"""Nodes of a plan that read all rows of their children."""
_METRICS_DEADLINE_S = 60.0
_POLL_S = 0.02


def used_columns(table: DataFrame) -> frozenset[str] | None:
    """Return the columns of messages that a query reads; None if none or unknown.

    Taken from Spark's optimized plan, as Spark does not tell a Python data source.
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


def observed_misfits(
    result: DataFrame, observation: Observation, *, is_written: bool
) -> int | None:
    """Return the number of `count_misfits`, as counted by the job that has computed a result.

    `observation` is that of the table from `with_json`. With `is_written`, Spark wrote the result,
    else its rows were fetched. None if the job may have read only some of the messages, or if Spark
    does not report the number.
    """
    from py4j.protocol import Py4JError

    try:
        name = _java(observation).name()
        plans = result._jdf.queryExecution()
        if _wholly_observed(plans.optimizedPlan()).count(name) != 1:
            return None
        if is_written:
            row = _told_of(observation)
        else:
            found = plans.observedMetrics().get(name)
            row = found.get() if found.isDefined() else None
        return None if row is None else int(row.getLong(0))
    except (AttributeError, Py4JError):
        return None  # Spark Connect, or another version


def _java(observation: Observation) -> JavaObject:
    assert observation._jo is not None, "with_json gives it to Spark"
    return observation._jo


def _told_of(observation: Observation) -> JavaObject | None:
    """Return the row of an observation, which Spark reports some time after the end of the job."""
    deadline_s = time.monotonic() + _METRICS_DEADLINE_S
    future = _java(observation).future()
    while not future.isCompleted():
        if time.monotonic() > deadline_s:
            return None
        time.sleep(_POLL_S)
    told = future.value().get()
    return told.get() if told.isSuccess() else None


def _wholly_observed(plan: JavaObject) -> list[str]:
    """Return the names of the observations in a plan that see all rows."""
    found, nodes = [], [plan]
    while nodes:
        node = nodes.pop()
        if _kind(node) in _WHOLE_NODES:
            nodes += _items(node.children())
        if _kind(node) == "CollectMetrics":
            found.append(str(node.name()))
    return found


def is_observed(result: DataFrame, observation: Observation) -> bool:
    """Return whether a query names, or may name, a table that `with_json` observes."""
    from py4j.protocol import Py4JError

    try:
        return str(_java(observation).name()) in str(result._jdf.queryExecution().analyzed())
    except (AttributeError, Py4JError):
        return True
