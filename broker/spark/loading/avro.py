"""Avro payloads: a zero byte, the id of a schema in four bytes, and the record in binary.

The schema registry is a directory with a file `<id>.avsc` for each schema; fastavro decodes. With a
reader's schema, values become a column of its Arrow type. As in Spark's `from_avro`, the underlying
types are resolved, logical types come from the reader's schema, and times of a day stay numbers.

A missing or invalid schema is a `ConfigError`, a payload that does not fit its schema an
`InvalidMessageError`.
"""

from __future__ import annotations

import io
import json
import struct
from decimal import Context, Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from broker.errors import ConfigError, InvalidMessageError
from broker.schemas import payloads
from broker.schemas.avro_values import plain
from broker.spark.runtime.requirements import check_package

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
_DECIMALS = Context(prec=_MAX_DECIMAL_DIGITS)


def _stored(schema: Any) -> Any:
    """Remove the logical types of times and UUIDs from a schema: they are read as stored."""
    if isinstance(schema, list):
        return [_stored(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _stored(part) if name in _PARTS else part for name, part in schema.items()}
    if kept.get("logicalType") in _AS_STORED:
        del kept["logicalType"]
    return kept


def _arrow_type(schema: Any, named: dict[str, pa.DataType]) -> pa.DataType:
    """Return the Arrow type for a schema that fastavro has parsed; add the types it names.

    There is none for a union of several types, a recursive type, or a decimal of more than 38
    digits.
    """
    match schema:
        case list():
            others = [branch for branch in schema if branch != "null"]
            if len(others) != 1:
                raise ConfigError(
                    f"a union of {len(others)} types cannot be a column; "
                    "--avro-reader needs one type"
                )
            return _arrow_type(others[0], named)
        case str():
            found = _PLAIN.get(schema) or named.get(schema)
            if found is None:
                raise ConfigError(f"type '{schema}' is recursive, which a column cannot be")
            return found
        case {"type": "record" | "error", "fields": fields}:
            found = pa.struct([(one["name"], _arrow_type(one["type"], named)) for one in fields])
        case {"type": "array", "items": inner}:
            found = pa.list_(_arrow_type(inner, named))
        case {"type": "map", "values": inner}:
            found = pa.map_(pa.string(), _arrow_type(inner, named))
        case {"type": "bytes" | "fixed", "logicalType": "decimal"}:
            digits = schema.get("precision")
            if not isinstance(digits, int):
                raise ConfigError("a decimal without precision cannot be a column")
            if digits > _MAX_DECIMAL_DIGITS:
                raise ConfigError(
                    f"a decimal of {digits} digits cannot be a column; the limit is 38"
                )
            found = pa.decimal128(digits, schema.get("scale", 0))
        case {"type": "int", "logicalType": "date"}:
            found = pa.date32()
        case _:
            moment = _TIMES.get((str(schema["type"]), str(schema.get("logicalType"))))
            found = moment or _arrow_type(schema["type"], named)
    if "name" in schema:
        named[schema["name"]] = found
    return found


class _Defaults:
    """Replaces the defaults in a reader's schema by values, as fastavro returns them unchanged.

    In JSON, bytes and the unscaled numbers of decimals are text, one character for each byte.
    """

    def __init__(self) -> None:
        self._named: dict[str, dict[str, Any]] = {}

    def convert(self, schema: Any) -> None:
        """Convert the defaults of all records in a schema that fastavro has parsed."""
        if isinstance(schema, dict) and "name" in schema:
            self._named[schema["name"]] = schema
        match schema:
            case list():
                for branch in schema:
                    self.convert(branch)
            case {"fields": fields}:
                for field in fields:
                    self.convert(field["type"])
                    if "default" in field:
                        field["default"] = self._value(field["type"], field["default"])
            case {"items": inner} | {"values": inner} | {"type": dict() | list() as inner}:
                self.convert(inner)

    def _value(self, schema: Any, value: Any) -> Any:
        match schema:
            case list():
                kind = next((branch for branch in schema if branch != "null"), "null")
                return None if value is None else self._value(kind, value)
            case str() if schema in self._named:
                return self._value(self._named[schema], value)
            case {"fields": fields}:
                return {
                    field["name"]: self._value(field["type"], value[field["name"]])
                    if field["name"] in value
                    else field["default"]
                    for field in fields
                }
            case {"items": inner}:
                return [self._value(inner, one) for one in value]
            case {"values": inner}:
                return {name: self._value(inner, one) for name, one in value.items()}
            case {"type": "bytes" | "fixed", "logicalType": "decimal"}:
                unscaled = int.from_bytes(value.encode("latin-1"), signed=True)
                return Decimal(unscaled).scaleb(-schema.get("scale", 0), _DECIMALS)
            case "bytes" | {"type": "bytes" | "fixed"}:
                return value.encode("latin-1")
            case {"type": dict() | list() as inner}:
                return self._value(inner, value)
        return value


_HEADER = struct.Struct(">bi")
_MAGIC = 0


class SchemaRegistry:
    """Schemas by id, each read on first use.

    Args:
        directory: has `<id>.avsc` files; every executor must see it.
        reader_id: the schema that all records are resolved to; None to keep the writer's.

    Attributes:
        value_type: Arrow type of the reader's records; None without `reader_id`.
    """

    def __init__(self, directory: Path, reader_id: int | None = None) -> None:
        check_package("fastavro", "fastavro")
        if not directory.is_dir():
            raise ConfigError(f"{directory} is not a directory of schemas (<id>.avsc)")
        self._directory = directory
        self._schemas: dict[int, Any] = {}
        self._is_stored = reader_id is not None
        self._reader = None if reader_id is None else self.schema(reader_id)
        self.value_type: pa.DataType | None = None
        if reader_id is not None:
            path = directory / f"{reader_id}.avsc"
            try:
                self.value_type = _arrow_type(_parsed(json.loads(path.read_text())), {})
            except ConfigError as error:
                raise ConfigError(f"{path}: {error}") from error
            try:
                _Defaults().convert(self._reader)
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise ConfigError(f"{path}: a default does not fit its type: {error}") from error

    def schema(self, schema_id: int) -> Any:
        """Return a schema, parsed."""
        from fastavro.schema import SchemaParseException, UnknownType

        if schema_id not in self._schemas:
            path = self._directory / f"{schema_id}.avsc"
            try:
                written = json.loads(path.read_text())
                self._schemas[schema_id] = _parsed(_stored(written) if self._is_stored else written)
            except FileNotFoundError as error:
                raise ConfigError(f"there is no schema {schema_id}: {path} is missing") from error
            except (ValueError, SchemaParseException, UnknownType) as error:
                raise ConfigError(f"{path} is not an Avro schema: {error}") from error
        return self._schemas[schema_id]

    def decode(self, payload: bytes) -> tuple[int, Any]:
        """Return the id of a payload's schema, and its record."""
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        if len(payload) < _HEADER.size or payload[0] != _MAGIC:
            raise InvalidMessageError(
                "not an Avro payload: it does not start with a zero byte and a schema id"
            )
        _, schema_id = _HEADER.unpack_from(payload)
        body = io.BytesIO(payload)
        body.seek(_HEADER.size)
        try:
            value = schemaless_reader(body, self.schema(schema_id), self._reader)
        except SchemaResolutionError as error:
            raise InvalidMessageError(
                f"the Avro record of schema {schema_id} does not fit the reader's: {error}"
            ) from error
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise InvalidMessageError(
                f"not an Avro record of schema {schema_id}: {str(error) or type(error).__name__}"
            ) from error
        if body.tell() != len(payload):
            raise InvalidMessageError(
                f"{len(payload) - body.tell()} bytes after the Avro record of schema {schema_id}"
            )
        self._check_fits(value, schema_id)
        return schema_id, value

    def _check_fits(self, value: Any, schema_id: int) -> None:
        # resolution does not compare the digits of decimals with the reader's schema
        if self.value_type is None or "decimal" not in str(self.value_type):
            return
        try:
            pa.scalar(value, self.value_type)
        except (pa.ArrowException, TypeError, ValueError) as error:
            raise InvalidMessageError(
                f"the Avro record of schema {schema_id} does not fit the reader's: {error}"
            ) from error


def _parsed(schema: Any) -> Any:
    from fastavro.schema import parse_schema

    return parse_schema(schema)


def to_json(value: Any) -> str:
    """Return a record as JSON, as `broker.schemas.avro_values` has it."""
    return payloads.to_json(plain(value)).decode()
