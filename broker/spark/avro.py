"""Avro payloads: a zero byte, the id of a schema in four bytes, and the record in binary.

The registry is a directory with a file `<id>.avsc` for each schema. Decoding is fastavro's work.
"""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa

from broker.errors import ConfigError, InvalidMessageError
from broker.spark.avro_columns import arrow_type, stored
from broker.spark.requirements import check_package

_HEADER = struct.Struct(">bi")
_MAGIC = 0


@dataclass(frozen=True, slots=True)
class AvroRecord:
    """A payload decoded."""

    schema_id: int
    value: Any


class SchemaRegistry:
    """Schemas by id, each read when it is first needed.

    Args:
        directory: has `<id>.avsc` files; every executor must see it.
        reader_id: the schema that all records are resolved to, for columns of its type; None for
            records as they were written.

    Attributes:
        value_type: of such a column; None without a `reader_id`.

    Raises:
        ConfigError: it is no directory, fastavro is not installed, or no column can have the
            reader's records.
    """

    def __init__(self, directory: Path, reader_id: int | None = None) -> None:
        check_package("fastavro", "fastavro")
        if not directory.is_dir():
            raise ConfigError(f"{directory} is no directory of schemas (<id>.avsc)")
        self._directory = directory
        self._schemas: dict[int, Any] = {}
        self._is_stored = reader_id is not None
        self._reader = None if reader_id is None else self.schema(reader_id)
        self.value_type: pa.DataType | None = None
        if reader_id is not None:
            self.value_type = self._column_type(reader_id)

    def _column_type(self, reader_id: int) -> pa.DataType:
        path = self._directory / f"{reader_id}.avsc"
        try:
            return arrow_type(_parsed(json.loads(path.read_text())))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    def schema(self, schema_id: int) -> Any:
        """Return a schema, parsed.

        Raises:
            ConfigError: its file is missing, or no schema.
        """
        from fastavro.schema import SchemaParseException, UnknownType

        if schema_id not in self._schemas:
            path = self._directory / f"{schema_id}.avsc"
            try:
                written = json.loads(path.read_text())
                self._schemas[schema_id] = _parsed(stored(written) if self._is_stored else written)
            except FileNotFoundError as error:
                raise ConfigError(f"there is no schema {schema_id}: {path} is missing") from error
            except (ValueError, SchemaParseException, UnknownType) as error:
                raise ConfigError(f"{path} is no Avro schema: {error}") from error
        return self._schemas[schema_id]

    def decode(self, payload: bytes) -> AvroRecord:
        """Return the record in a payload.

        Raises:
            InvalidMessageError: the payload has no such form, or is no record of its schema.
            ConfigError: its schema is not there.
        """
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        if len(payload) < _HEADER.size or payload[0] != _MAGIC:
            raise InvalidMessageError("no Avro payload: it does not start with a zero and an id")
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
                f"no Avro record of schema {schema_id}: {str(error) or type(error).__name__}"
            ) from error
        if body.tell() != len(payload):
            raise InvalidMessageError(
                f"{len(payload) - body.tell()} bytes behind the Avro record of schema {schema_id}"
            )
        self._check_fits(value, schema_id)
        return AvroRecord(schema_id, value)

    def _check_fits(self, value: Any, schema_id: int) -> None:
        """Check what resolution leaves to the column: the digits of decimals."""
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
    """Return a record as JSON: bytes as text of one character each, times in ISO 8601."""
    return json.dumps(value, default=_plain, ensure_ascii=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode("latin-1")  # as Avro's own JSON has it
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID):
        return str(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")
