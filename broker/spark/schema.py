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

Files with Kafka's record batches have the columns of Spark's Kafka source instead:

    | column        | type      | content                                                       |
    | key, value    | binary    | null if the record has none                                   |
    | topic         | string    | the topic                                                     |
    | partition     | int       | number of the partition                                       |
    | offset        | bigint    | number of the record                                          |
    | timestamp     | timestamp | null in Kafka's message format 0, which has none              |
    | timestampType | int       | 0: of the producer, 1: of the append, -1: none                |
    | headers       | array     | structs of key and value; null if there are none              |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
_HEADER = types.StructType().add("key", types.StringType()).add("value", types.BinaryType())
RECORD_TYPES: dict[str, types.DataType] = {
    "key": types.BinaryType(),
    "value": types.BinaryType(),
    "topic": types.StringType(),
    "partition": types.IntegerType(),
    "offset": types.LongType(),
    "timestamp": types.TimestampType(),
    "timestampType": types.IntegerType(),
    "headers": types.ArrayType(_HEADER),
}
"""The columns of Kafka's records."""
RECORD_COLUMNS = tuple(RECORD_TYPES)
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


def check_names(names: Iterable[str], known: Mapping[str, types.StructField]) -> None:
    """Raise a `ConfigError` for the first name of a column that does not exist."""
    for name in names:
        if name in known:
            continue
        reason = "" if "key" in known else kafka_column_hint(name)
        hint = " (it needs crc=mark)" if name == "crc_ok" else ""
        text = reason or f"valid: {', '.join(known)}"
        raise ConfigError(f"there is no column '{name}'{hint}; {text}")


def full_schema(crc: Crc, *, has_records: bool = False) -> types.StructType:
    """Return the schema of a read of which none is given."""
    known = known_columns(crc, has_records=has_records)
    return types.StructType([one for one in known.values() if one.name != ENVELOPE])


def known_columns(crc: Crc, *, has_records: bool = False) -> dict[str, types.StructField]:
    """Return all columns by name, of Kafka's records or of messages of 0.7.

    Damage and messages without an envelope lack values.
    """
    if has_records:
        return {name: types.StructField(name, kind) for name, kind in RECORD_TYPES.items()}
    names, nullable = (*COLUMNS, ENVELOPE), frozenset({ENVELOPE})  # Spark checks no others
    if crc is Crc.MARK:
        names, nullable = (*names, "crc_ok"), nullable | _NULL_IF_DAMAGED
    return {name: types.StructField(name, TYPES[name], name in nullable) for name in names}


def check_schema(schema: types.StructType, crc: Crc, *, has_records: bool = False) -> None:
    """Validate the schema that a user gave for a read: known columns, with their types."""
    columns = known_columns(crc, has_records=has_records)
    check_names(schema.names, columns)
    known = {name: field.dataType for name, field in columns.items()}
    for field in schema:
        if field.dataType != known[field.name]:
            raise ConfigError(
                f"column '{field.name}' is {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}: cast it after reading"
            )


def arrow_schema(schema: types.StructType) -> pa.Schema:
    """Return the Arrow schema of the batches that Spark expects for these columns."""
    import pyarrow as pa

    from broker.spark.reading.columns import HEADERS_TYPE  # late, as PyArrow
    from broker.spark.reading.task_reader import ENVELOPE_TYPE

    kinds: dict[types.DataType, pa.DataType] = {
        types.StringType(): pa.string(), types.LongType(): pa.int64(),
        types.IntegerType(): pa.int32(), types.BinaryType(): pa.binary(),
        types.BooleanType(): pa.bool_(), TYPES[ENVELOPE]: ENVELOPE_TYPE,
        types.TimestampType(): pa.timestamp("us", "UTC"), RECORD_TYPES["headers"]: HEADERS_TYPE,
    }  # fmt: skip
    return pa.schema([pa.field(one.name, kinds[one.dataType], one.nullable) for one in schema])
