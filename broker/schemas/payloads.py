"""Payloads with a schema: a zero byte, the schema's id in four bytes, big endian, then the value.

The value is binary of Avro, or JSON as text; `avro_values` says how Avro's values look in JSON. It
is the form of Confluent's serializers.
"""

from __future__ import annotations

import io
import json
import struct
from collections import OrderedDict
from collections.abc import Callable
from decimal import DecimalException
from importlib.util import find_spec
from typing import Any, NoReturn

from broker.errors import ConfigError, SchemaMismatchError, UnknownSchemaError
from broker.schemas.avro_values import MAX_EXTRA_NODES, Fitting, Measure, may_be_hostile, plain
from broker.schemas.values import RegisteredSchema, SchemaType

MAGIC = 0
_HEADER = struct.Struct(">bi")
_MAX_UNKNOWN = 10_000
_MAX_FORMS = 1000  # schemas that a decoder keeps parsed

Lookup = Callable[[int], RegisteredSchema]
"""Returns the schema of an id; raises `UnknownSchemaError`."""


def split(payload: bytes | memoryview) -> tuple[int, memoryview]:
    """Return the id in front of a payload, and the value behind it."""
    if len(payload) < _HEADER.size or payload[0] != MAGIC:
        raise SchemaMismatchError(
            "it has no schema: it does not start with a zero byte and the id of one"
        )
    return _HEADER.unpack_from(payload)[1], memoryview(payload)[_HEADER.size :]


class Encoder:
    """Makes payloads of values, by one schema.

    Args:
        schema: its id goes in front of each payload.

    Raises:
        ConfigError: a package that is needed is not installed.
    """

    def __init__(self, schema: RegisteredSchema) -> None:
        self.schema = schema
        self._head = _HEADER.pack(MAGIC, schema.id)
        self._form = _form_of(schema)

    def encode(self, value: object) -> bytes:
        """Return a payload; `SchemaMismatchError` names the field that does not fit.

        For Avro values are those of JSON, as `avro_values` has them.
        """
        return self._head + self._form.encode(value)


class Decoder:
    """Makes values of payloads, by the schemas that these name; for any thread.

    Args:
        lookup: called once for each id that it knows.
        reader: Avro values are resolved to it; JSON ones are validated by it too.
    """

    def __init__(self, lookup: Lookup, reader: RegisteredSchema | None = None) -> None:
        self._lookup = lookup
        self._reader = None if reader is None else _form_of(reader)
        self._forms: dict[int, _AvroForm | _JsonForm | str] = {}  # or why there is none

    def decode(self, payload: bytes) -> object:
        """Return the value in a payload as JSON has it; `SchemaMismatchError` if it has none."""
        schema_id, body = split(payload)
        form = self._forms.get(schema_id)
        if form is None:
            try:
                form = self._made(self._lookup(schema_id))
            except UnknownSchemaError as error:
                raise SchemaMismatchError(f"there is no schema {schema_id}") from error
        if isinstance(form, str):
            raise SchemaMismatchError(form)
        try:
            return form.decode(bytes(body))
        except SchemaMismatchError as error:
            raise SchemaMismatchError(f"not a value of schema {schema_id}: {error}") from error

    def _made(self, schema: RegisteredSchema) -> _AvroForm | _JsonForm | str:
        form: _AvroForm | _JsonForm | str
        try:
            form = _form_of(schema, self._reader)
        except SchemaMismatchError as error:
            form = str(error)
        if len(self._forms) >= _MAX_FORMS:
            self._forms.clear()
        self._forms[schema.id] = form
        return form


def remembering(lookup: Lookup) -> Lookup:
    """Return a lookup that asks for an unknown id once; for one run, as ids are added later."""
    unknown: OrderedDict[int, None] = OrderedDict()

    def find(schema_id: int) -> RegisteredSchema:
        if schema_id in unknown:
            raise UnknownSchemaError(f"there is no schema {schema_id}")
        try:
            return lookup(schema_id)
        except UnknownSchemaError:
            unknown[schema_id] = None
            if len(unknown) > _MAX_UNKNOWN:
                unknown.popitem(last=False)
            raise

    return find


def to_json(value: object) -> bytes:
    """Return a decoded value as one line of JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "replace")


def _form_of(
    schema: RegisteredSchema, reader: _AvroForm | _JsonForm | None = None
) -> _AvroForm | _JsonForm:
    if reader is not None and reader.type is not schema.type:
        raise SchemaMismatchError(
            f"schema {schema.id} is {schema.type}, and the reader's is {reader.type}"
        )
    kind = _AvroForm if schema.type is SchemaType.AVRO else _JsonForm
    if find_spec(kind.package) is None:
        raise ConfigError(f"{kind.package} is not installed; try: pip install 'pylogctl[schemas]'")
    return kind(schema, reader)  # type: ignore[arg-type]  # of the same type


class _AvroForm:
    """A parsed schema of Avro."""

    type = SchemaType.AVRO
    package = "fastavro"

    def __init__(self, schema: RegisteredSchema, reader: _AvroForm | None = None) -> None:
        from fastavro.schema import SchemaParseException, UnknownType, parse_schema

        self.named: dict[str, Any] = {}
        try:
            self.parsed = parse_schema(json.loads(schema.text), self.named)
            self._reader = None if reader is None else reader.parsed
            self._extra = 0 if reader is None else reader.most_fields
            self._is_measured = may_be_hostile(self.parsed, self.named)
            self._is_measured |= self._extra > MAX_EXTRA_NODES
        except (
            *(SchemaParseException, UnknownType, RecursionError),
            *(ValueError, TypeError, KeyError, AttributeError),
        ) as error:
            raise SchemaMismatchError(f"schema {schema.id} is not one of Avro: {error}") from error

    @property
    def most_fields(self) -> int:
        """Return the number of fields of the largest record."""
        return max((len(one.get("fields", ())) for one in self.named.values()), default=0)

    def encode(self, value: object) -> bytes:
        from fastavro import schemaless_writer

        out = io.BytesIO()
        fitted = Fitting(self.parsed, self.named).fit(value)
        try:
            schemaless_writer(out, self.parsed, fitted)
        except (ValueError, TypeError, KeyError, OverflowError, DecimalException) as error:
            raise SchemaMismatchError(f"the value cannot be written: {error}") from error
        return out.getvalue()

    def decode(self, body: bytes) -> object:
        from fastavro import schemaless_reader
        from fastavro.read import SchemaResolutionError

        if self._is_measured:
            Measure(self.parsed, self.named, self._extra).check(body)
        stream = io.BytesIO(body)
        try:
            value = schemaless_reader(stream, self.parsed, self._reader)
        except SchemaResolutionError as error:
            reason = str(error).partition("{")[0].strip(" :")  # both schemas follow, as wholes
            raise SchemaMismatchError(f"it does not fit the reader's: {reason}") from error
        except (
            *(EOFError, ValueError, IndexError, KeyError, TypeError),
            *(OverflowError, DecimalException),
        ) as error:
            raise SchemaMismatchError(str(error) or type(error).__name__) from error
        if rest := len(body) - stream.tell():
            raise SchemaMismatchError(f"{rest} bytes follow the value")
        return plain(value)


class _JsonForm:
    """A JSON Schema."""

    type = SchemaType.JSON
    package = "jsonschema"

    def __init__(self, schema: RegisteredSchema, reader: _JsonForm | None = None) -> None:
        from broker.schemas.json_values import JsonValidator

        self._validator = JsonValidator(schema.text, schema.id)
        self._reader = reader

    def encode(self, value: object) -> bytes:
        return to_json(self._validated(value, 0))

    def decode(self, body: bytes) -> object:
        return self._validated(read_value(body), len(body))

    def _validated(self, value: object, size: int) -> object:
        self._validator.validate(value, size)
        return value if self._reader is None else self._reader._validated(value, size)


def read_value(text: bytes) -> object:
    """Return a value of JSON; a `SchemaMismatchError` says where it is none."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise SchemaMismatchError(f"not JSON: {error}") from error


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
