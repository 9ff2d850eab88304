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

from broker.errors import ConfigError, InvalidMessageError
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

    Raises:
        ConfigError: it is no directory, or fastavro is not installed.
    """

    def __init__(self, directory: Path) -> None:
        check_package("fastavro", "fastavro")
        if not directory.is_dir():
            raise ConfigError(f"{directory} is no directory of schemas (<id>.avsc)")
        self._directory = directory
        self._schemas: dict[int, Any] = {}

    def schema(self, schema_id: int) -> Any:
        """Return a schema, parsed.

        Raises:
            ConfigError: its file is missing, or no schema.
        """
        from fastavro.schema import SchemaParseException, UnknownType, parse_schema

        if schema_id not in self._schemas:
            path = self._directory / f"{schema_id}.avsc"
            try:
                self._schemas[schema_id] = parse_schema(json.loads(path.read_text()))
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

        if len(payload) < _HEADER.size or payload[0] != _MAGIC:
            raise InvalidMessageError("no Avro payload: it does not start with a zero and an id")
        _, schema_id = _HEADER.unpack_from(payload)
        body = io.BytesIO(payload)
        body.seek(_HEADER.size)
        try:
            value = schemaless_reader(body, self.schema(schema_id), None)
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise InvalidMessageError(
                f"no Avro record of schema {schema_id}: {str(error) or type(error).__name__}"
            ) from error
        if body.tell() != len(payload):
            raise InvalidMessageError(
                f"{len(payload) - body.tell()} bytes behind the Avro record of schema {schema_id}"
            )
        return AvroRecord(schema_id, value)


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
