"""The columns of the data source: the fields that the log format stores.

    | column      | type   | content                                                               |
    | topic       | string | the topic                                                             |
    | partition   | string | `HOME-INDEX`                                                          |
    | offset      | bigint | start of the message; messages in one wrapper share it                |
    | next_offset | bigint | start of the next message or wrapper                                  |
    | inner_index | int    | index of the message in its wrapper, else 0                           |
    | value       | binary | the payload, without its envelope                                     |
    | crc         | bigint | CRC-32 of the payload and its envelope, as stored if not compressed   |

On request, by name, there is also `envelope`, a struct of what the producer wrote in front of the
payload: timestamp, host, producer (eight hexadecimal digits) and sequence; null if there is none.
With `crc=mark` there is `crc_ok`, a boolean. Topic, partition, offset and inner_index together
are unique. Messages of Kafka 0.7 have no key, timestamp or headers, so there are no such columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from pyspark.sql import types

from broker.errors import ConfigError
from broker.spark.options import Crc

if TYPE_CHECKING:
    import pyarrow as pa

TYPES: dict[str, types.DataType] = {
    "topic": types.StringType(),
    "partition": types.StringType(),
    "offset": types.LongType(),
    "next_offset": types.LongType(),
    "inner_index": types.IntegerType(),
    "value": types.BinaryType(),
    "crc": types.LongType(),
    "envelope": types.StructType()
    .add("timestamp", types.TimestampType())
    .add("host", types.StringType())
    .add("producer", types.StringType())
    .add("sequence", types.LongType()),
    "crc_ok": types.BooleanType(),
}
COLUMNS = tuple(TYPES)[:-2]
"""All columns but `crc_ok`, and `envelope`, as no file of CSV or ORC takes a struct of nulls."""
ENVELOPE = "envelope"
_OF_KAFKA = frozenset({"key", "timestamp", "timestamptype", "headers"})
"""Columns that Spark's Kafka source has besides, in lower case."""
_NULL_IF_DAMAGED = frozenset({"value", "crc"})


def kafka_column_hint(name: str) -> str:
    """Return why a column of Spark's Kafka source is missing; an empty text for any other name."""
    if name.lower() not in _OF_KAFKA:
        return ""
    return (
        "messages of Kafka 0.7 have no key, timestamp or headers: take such fields from the value, "
        "or from the envelope"
    )


def missing_column(name: str, valid: Iterable[str]) -> str:
    """Return the text of an error about a column that does not exist."""
    if reason := kafka_column_hint(name):
        return f"there is no column '{name}'; {reason}"
    hint = " (it needs crc=mark)" if name == "crc_ok" else ""
    return f"there is no column '{name}'{hint}; valid: {', '.join(valid)}"


def full_schema(crc: Crc) -> types.StructType:
    """Return the schema of a read of which none is given."""
    return types.StructType([one for one in known_columns(crc).values() if one.name != ENVELOPE])


def known_columns(crc: Crc) -> dict[str, types.StructField]:
    """Return all columns by name; damage and messages without an envelope lack values."""
    names, nullable = (*COLUMNS, ENVELOPE), frozenset({ENVELOPE})  # Spark checks no others
    if crc is Crc.MARK:
        names, nullable = (*names, "crc_ok"), nullable | _NULL_IF_DAMAGED
    return {name: types.StructField(name, TYPES[name], name in nullable) for name in names}


def check_schema(schema: types.StructType, crc: Crc) -> None:
    """Validate the schema that a user gave for a read: known columns, with their types."""
    known = {name: field.dataType for name, field in known_columns(crc).items()}
    for field in schema:
        if field.name not in known:
            raise ConfigError(missing_column(field.name, known))
        if field.dataType != known[field.name]:
            raise ConfigError(
                f"column '{field.name}' is {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}: cast it after reading"
            )


def arrow_schema(schema: types.StructType) -> pa.Schema:
    """Return the Arrow schema of the batches that Spark expects for these columns."""
    import pyarrow as pa

    from broker.spark.reading.task_reader import ENVELOPE_TYPE  # late, as PyArrow

    kinds: dict[types.DataType, pa.DataType] = {
        types.StringType(): pa.string(), types.LongType(): pa.int64(),
        types.IntegerType(): pa.int32(), types.BinaryType(): pa.binary(),
        types.BooleanType(): pa.bool_(), TYPES[ENVELOPE]: ENVELOPE_TYPE,
    }  # fmt: skip
    return pa.schema([pa.field(one.name, kinds[one.dataType], one.nullable) for one in schema])
