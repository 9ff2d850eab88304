"""The columns of the data source: what the format stores, and nothing else.

    | column      | type   | what it is                                                            |
    | topic       | string | the topic                                                             |
    | partition   | string | `HOME-INDEX`                                                          |
    | offset      | bigint | where the message starts; messages compressed together share it       |
    | next_offset | bigint | where to read on after it                                             |
    | inner_index | int    | its number among messages compressed together, else 0                 |
    | value       | binary | the payload                                                           |
    | crc         | bigint | CRC-32 of the payload; of one that is not compressed, as it is stored |

With `crc=mark` there is `crc_ok`, a boolean, too. Topic, partition, offset and inner_index together
are unique. Messages have no key, time or headers, so there are no such columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

from broker.errors import ConfigError
from broker.spark.options import Crc

if TYPE_CHECKING:
    import pyarrow as pa

TYPES: dict[str, DataType] = {
    "topic": StringType(),
    "partition": StringType(),
    "offset": LongType(),
    "next_offset": LongType(),
    "inner_index": IntegerType(),
    "value": BinaryType(),
    "crc": LongType(),
    "crc_ok": BooleanType(),
}
COLUMNS = tuple(TYPES)[:-1]
"""All columns but `crc_ok`."""


def full_schema(crc: Crc) -> StructType:
    """Return the schema of a read that does not say which columns it wants."""
    names = [*COLUMNS, "crc_ok"] if crc is Crc.MARK else COLUMNS
    return StructType([StructField(name, TYPES[name]) for name in names])


def check_schema(schema: StructType, crc: Crc) -> None:
    """Check the columns that a user asked for.

    Raises:
        ConfigError: there is no such column, or it has another type.
    """
    known = {field.name: field.dataType for field in full_schema(crc)}
    for field in schema:
        if field.name not in known:
            hint = " (it takes crc=mark)" if field.name == "crc_ok" else ""
            raise ConfigError(f"there is no column '{field.name}'{hint}; valid: {', '.join(known)}")
        if field.dataType != known[field.name]:
            raise ConfigError(
                f"column '{field.name}' is {known[field.name].simpleString()}, "
                f"not {field.dataType.simpleString()}: cast it after reading"
            )


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the Arrow schema that Spark expects for a schema of ours."""
    import pyarrow as pa

    types = {
        "string": pa.string(),
        "bigint": pa.int64(),
        "int": pa.int32(),
        "binary": pa.binary(),
        "boolean": pa.bool_(),
    }
    return pa.schema(
        [pa.field(one.name, types[one.dataType.simpleString()], one.nullable) for one in schema]
    )
