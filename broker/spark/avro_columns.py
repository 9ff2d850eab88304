"""Avro records as columns: the Arrow type of a schema, and the schema that gives values for it.

As in Spark's `from_avro`, underlying types are resolved, and the reader's schema says what numbers
mean; times of a day stay numbers.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from broker.errors import ConfigError

_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "fixed": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_TIMES = {
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
}
_AS_STORED = {"uuid", "time-millis", "time-micros", *(name for _, name in _TIMES)}
_PARTS = ("type", "fields", "items", "values")
_MAX_DECIMAL_DIGITS = 38


def stored(schema: Any) -> Any:
    """Return a schema by which times and UUIDs are the numbers and texts that are stored.

    Args:
        schema: as in a file of the registry.
    """
    if isinstance(schema, list):
        return [stored(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: stored(part) if name in _PARTS else part for name, part in schema.items()}
    if kept.get("logicalType") in _AS_STORED:
        del kept["logicalType"]
    return kept


def arrow_type(schema: Any) -> pa.DataType:
    """Return the type of a column with the values of a schema.

    Args:
        schema: as fastavro has parsed it.

    Raises:
        ConfigError: no column can have them: a union of several types, a type within itself, or a
            decimal of more than 38 digits.
    """
    return _Types().of(schema)


class _Types:
    """Follows a schema; named types stand for themselves where they are used again."""

    def __init__(self) -> None:
        self._named: dict[str, pa.DataType] = {}

    def of(self, schema: Any) -> pa.DataType:
        if isinstance(schema, list):
            return self._of_union(schema)
        if isinstance(schema, str):
            return self._of_name(schema)
        found = self._of_dict(schema)
        if "name" in schema:
            self._named[schema["name"]] = found
        return found

    def _of_union(self, branches: list[Any]) -> pa.DataType:
        others = [branch for branch in branches if branch != "null"]
        if len(others) != 1:
            raise ConfigError(
                f"a union of {len(others)} types is no column; --avro-reader needs one"
            )
        return self.of(others[0])

    def _of_name(self, name: str) -> pa.DataType:
        found = _PLAIN.get(name) or self._named.get(name)
        if found is None:
            raise ConfigError(f"type '{name}' is within itself, which no column can be")
        return found

    def _of_dict(self, schema: dict[str, Any]) -> pa.DataType:
        kind, meaning = schema["type"], str(schema.get("logicalType"))
        if not isinstance(kind, str):
            return self.of(kind)
        if kind in ("record", "error"):
            return pa.struct(
                [(field["name"], self.of(field["type"])) for field in schema["fields"]]
            )
        if kind == "array":
            return pa.list_(self.of(schema["items"]))
        if kind == "map":
            return pa.map_(pa.string(), self.of(schema["values"]))
        if meaning == "decimal" and kind in ("bytes", "fixed"):
            return _decimal(schema)
        if (kind, meaning) == ("int", "date"):
            return pa.date32()
        return _TIMES.get((kind, meaning)) or self.of(kind)


def _decimal(schema: dict[str, Any]) -> pa.DataType:
    precision = schema["precision"]
    if precision > _MAX_DECIMAL_DIGITS:
        raise ConfigError(f"a decimal of {precision} digits is no column; 38 are the most")
    return pa.decimal128(precision, schema.get("scale", 0))
