"""Payloads with a schema: what is encoded is decoded, and what does not fit is named."""

from __future__ import annotations

import io
import json
import math
import struct
import time
from typing import Any

import pytest
from fastavro import schemaless_reader, schemaless_writer
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import SchemaMismatchError, UnknownSchemaError
from broker.schemas.payloads import Decoder, Encoder, remembering, split, to_json
from broker.schemas.values import RegisteredSchema, SchemaType

ORDER = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": {"type": "record", "name": "User", "fields": [
            {"name": "name", "type": "string"}, {"name": "age", "type": ["null", "int"],
                                                  "default": None}]}},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": []},
    ],
}  # fmt: skip
NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}


def registered(
    schema: object, schema_id: int = 7, kind: SchemaType = SchemaType.AVRO
) -> RegisteredSchema:
    return RegisteredSchema(schema_id, kind, json.dumps(schema))


def decoder_of(*schemas: RegisteredSchema, reader: RegisteredSchema | None = None) -> Decoder:
    by_id = {one.id: one for one in schemas}

    def find(schema_id: int) -> RegisteredSchema:
        try:
            return by_id[schema_id]
        except KeyError:
            raise UnknownSchemaError(f"there is no schema {schema_id}") from None

    return Decoder(find, reader)


def round_trip(schema: object, value: object) -> object:
    one = registered(schema)
    return decoder_of(one).decode(Encoder(one).encode(value))


def long_of(number: int) -> bytes:
    number, out = number << 1, bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


_NAMES = st.sampled_from(["a", "b", "c", "long", "é"]).filter(str.isascii)
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
_LEAVES: list[tuple[object, st.SearchStrategy[Any]]] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    ("long", st.integers(-(1 << 63), (1 << 63) - 1)),
    ("float", st.floats(width=32, allow_nan=False, allow_infinity=False)),
    ("double", st.floats(allow_nan=False, allow_infinity=False)),
    ("double", st.sampled_from(["NaN", "Infinity", "-Infinity"])),
    ("string", _TEXT),
    ("bytes", st.binary(max_size=20).map(lambda data: data.decode("latin-1"))),
    ({"type": "fixed", "name": "F", "size": 3},
     st.binary(min_size=3, max_size=3).map(lambda data: data.decode("latin-1"))),
    ({"type": "enum", "name": "E", "symbols": ["UP", "DOWN"]}, st.sampled_from(["UP", "DOWN"])),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
    ({"type": "int", "logicalType": "date"}, st.dates().map(lambda day: day.isoformat())),
    ({"type": "long", "logicalType": "timestamp-micros"},
     st.datetimes().map(lambda moment: f"{moment.isoformat()}+00:00")),
    ({"type": "long", "logicalType": "local-timestamp-micros"},
     st.datetimes().map(lambda moment: moment.isoformat())),
    ({"type": "long", "logicalType": "time-micros"}, st.times().map(lambda at: at.isoformat())),
    ({"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
     st.integers(-(10**9) + 1, 10**9 - 1).map(
         lambda cents: f"{'-' * (cents < 0)}{abs(cents) // 100}.{abs(cents) % 100:02d}")),
]  # fmt: skip


@st.composite
def schemas_with_values(draw: st.DrawFn, depth: int = 3) -> tuple[Any, Any]:
    """A schema, and a value of JSON that it reads again as it is written."""
    kind = draw(st.sampled_from(["leaf", "array", "map", "record", "union"] if depth else ["leaf"]))
    if kind == "leaf":
        schema, values = draw(st.sampled_from(_LEAVES))
        return schema, draw(values)
    schema, value = draw(schemas_with_values(depth - 1))
    if kind == "array":
        return {"type": "array", "items": schema}, [value] * draw(st.integers(0, 3))
    if kind == "map":
        keys = draw(st.lists(_TEXT, max_size=3, unique=True))
        return {"type": "map", "values": schema}, dict.fromkeys(keys, value)
    if kind == "record":
        name = f"R{depth}"
        field = draw(st.sampled_from("ab"))
        return {"type": "record", "name": name, "fields": [{"name": field, "type": schema}]}, {
            field: value
        }
    if isinstance(schema, list) or schema == "null":
        return schema, value
    return ["null", schema], draw(st.sampled_from([value, None]))


@given(schemas_with_values())
def test_a_value_that_is_encoded_is_decoded_the_same(made: tuple[Any, Any]) -> None:
    schema, value = made
    assert round_trip(schema, value) == value
    json.loads(to_json(round_trip(schema, value)), parse_constant=lambda text: pytest.fail(text))


@given(schemas_with_values(), st.binary(max_size=60))
def test_any_bytes_are_a_value_or_a_mismatch(made: tuple[Any, Any], body: bytes) -> None:
    try:
        to_json(decoder_of(registered(made[0])).decode(b"\0\0\0\0\x07" + body))
    except SchemaMismatchError as error:
        assert "schema 7" in str(error)


@given(schemas_with_values(), schemas_with_values())
def test_a_value_fits_another_schema_or_is_refused(
    made: tuple[Any, Any], other: tuple[Any, Any]
) -> None:
    one = registered(made[0])
    try:
        payload = Encoder(one).encode(other[1])
    except SchemaMismatchError:
        return
    decoder_of(one).decode(payload)


def test_a_payload_is_that_of_confluent() -> None:
    payload = Encoder(registered(ORDER, 258)).encode({"id": 1, "user": {"name": "ada"}})
    assert payload[:5] == b"\0\0\0\1\2"
    expected = {"id": 1, "user": {"name": "ada", "age": None}, "tags": []}
    assert schemaless_reader(io.BytesIO(payload[5:]), ORDER, None) == expected
    assert split(payload)[0] == 258


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"user": {"name": "a"}}, r"^\.id: missing, expected long"),
        ({"id": "x", "user": {"name": "a"}}, r'^\.id: expected long, not "x"'),
        ({"id": True, "user": {"name": "a"}}, r"^\.id: expected long, not true"),
        ({"id": 1 << 63, "user": {"name": "a"}}, r"^\.id: expected long"),
        ({"id": 1, "user": {"name": None}}, r"^\.user\.name: expected string, not null"),
        ({"id": 1, "user": {"name": "a", "age": "x"}}, r'^\.user\.age: expected null or int, not'),
        ({"id": 1, "user": {"name": "a"}, "tags": ["a", 5]}, r"^\.tags\[1\]: expected string"),
        ({"id": 1, "user": {"nam": "a"}}, r"^\.user\.nam: .* no such field; did you mean 'name'"),
        ([], r"^the value: expected an object, shop\.Order, not a list"),
    ],
)  # fmt: skip
def test_a_value_that_does_not_fit_names_its_field(value: object, says: str) -> None:
    with pytest.raises(SchemaMismatchError, match=says):
        Encoder(registered(ORDER)).encode(value)


def test_a_union_takes_plain_values_and_tagged_ones() -> None:
    union = ["null", "long", "double", "string", {"type": "map", "values": "long"}]
    for value in (None, 5, 5.5, "x", {"a": 1}):
        assert round_trip(union, value) == value
    assert round_trip(union, {"double": 5}) == 5.0
    assert round_trip(union, {"string": "x"}) == "x"
    assert round_trip(union, {"string": 1}) == {"string": 1}  # a map with this key
    fields = [{"name": "x", "type": "int"}]
    records = [{"type": "record", "name": name, "fields": fields} for name in ("A", "B")]
    assert round_trip(records, {"B": {"x": 1}}) == {"x": 1}
    with pytest.raises(SchemaMismatchError, match="fits A and B, so name one"):
        Encoder(registered(records)).encode({"x": 1})
    with pytest.raises(SchemaMismatchError, match=r"^\.x: expected int"):
        Encoder(registered(["null", records[0]])).encode({"x": "1"})


@pytest.mark.parametrize(
    ("logical", "fits", "misfit"),
    [
        ("long timestamp-millis", "0001-01-01T00:00:00+00:00", "0001-01-01T00:00:00+05:00"),
        ("long timestamp-millis", "9999-12-31T23:59:59.999000+00:00", 253_402_300_800_000),
        ("long timestamp-millis", "2026-11-20T08:00:00+00:00", "2026-11-20T08:00:00.000001Z"),
        ("long local-timestamp-micros", "2026-11-20T08:00:00", "2026-11-20T08:00:00Z"),
        ("int time-millis", "23:59:59.999000", 86_400_000),
        ("int date", "9999-12-31", 2_932_897),
        ("int date", "0001-01-01", -719_163),
    ],
)
def test_a_time_is_written_only_if_it_can_be_read_again(
    logical: str, fits: object, misfit: object
) -> None:
    kind, name = logical.split()
    schema = {"type": kind, "logicalType": name}
    assert round_trip(schema, fits) == fits
    with pytest.raises(SchemaMismatchError, match=f"expected {name}"):
        Encoder(registered(schema)).encode(misfit)


def test_the_readers_schema_resolves_records() -> None:
    old = registered(ORDER)
    fields = [*ORDER["fields"], {"name": "note", "type": "string", "default": "-"}]
    new = registered({**ORDER, "fields": fields}, 8)
    payload = Encoder(old).encode({"id": 1, "user": {"name": "a"}})
    assert decoder_of(old, reader=new).decode(payload) == {
        "id": 1, "user": {"name": "a", "age": None}, "tags": [], "note": "-",
    }  # fmt: skip
    with pytest.raises(SchemaMismatchError, match=r"schema 7: it does not fit the reader's[^{]*$"):
        decoder_of(old, reader=registered("int", 8)).decode(payload)


@pytest.mark.parametrize(
    ("payload", "says"),
    [
        (b"", "no schema"),
        (b"\0\0\0", "no schema"),
        (b"{}{}{}", "no schema"),
        (b"\0\0\0\0\x09\x02", "there is no schema 9"),
        (b"\0\0\0\0\x07", "schema 7"),
        (b"\0\0\0\0\x07\x02a", "schema 7: 1 bytes follow"),
    ],
)
def test_a_payload_that_is_none_is_a_mismatch(payload: bytes, says: str) -> None:
    with pytest.raises(SchemaMismatchError, match=says):
        decoder_of(registered("long")).decode(payload)


_ITEMS = {"type": "array", "items": {"type": "record", "name": "E", "fields": []}}
_LAUGHS: dict[str, Any] = {"type": "record", "name": "L0", "fields": [
    {"name": "x", "type": "null"}]}  # fmt: skip
for _level in range(1, 30):
    _LAUGHS = {"type": "record", "name": f"L{_level}", "fields": [
        {"name": "x", "type": _LAUGHS}, {"name": "y", "type": f"L{_level - 1}"}]}  # fmt: skip
_WIDE = {
    "type": "array",
    "items": {
        "type": "record",
        "name": "W",
        "fields": [
            {"name": "i", "type": "int"},
            *({"name": f"n{n}", "type": "null"} for n in range(1000)),
        ],
    },
}
_MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}


@pytest.mark.parametrize(
    ("schema", "body"),
    [
        ("bytes", long_of(2 << 30) + b"abc"),
        ("string", b"\x01" + b"abc"),
        ({"type": "map", "values": "bytes"}, long_of(2 << 30) + b"abc"),
        (NODE, b"\x02" * 1_000_000 + b"\0"),
        ({"type": "array", "items": "null"}, long_of(1 << 60) + b"\0"),
        (_ITEMS, long_of(1 << 60) + b"\0"),
        (_LAUGHS, b""),
        (_WIDE, long_of(900_000) + b"\0" * 900_001),
        (_MONEY, long_of(1_000_000) + b"\x7f" * 1_000_000),
        ("long", b"\xff" * 1_000_000),
        ({"type": "long", "logicalType": "timestamp-micros"}, long_of(1 << 62)),
        (["null", "int"], long_of(1 << 40)),
    ],
    ids=str.split("bytes negative map deep nulls empties laughs wide decimal long moment union"),
)
def test_a_hostile_payload_is_a_mismatch_in_bounded_time(schema: object, body: bytes) -> None:
    started_s = time.process_time()
    with pytest.raises(SchemaMismatchError):
        decoder_of(registered(schema)).decode(b"\0\0\0\0\x07" + body)
    assert time.process_time() - started_s < 20


def test_a_value_of_json_is_validated() -> None:
    schema = {
        "type": "object",
        "properties": {"id": {"type": "integer"}, "name": {"type": "string", "pattern": "^a+$"}},
        "patternProperties": {"^x-": {"type": "string"}},
        "additionalProperties": False,
        "required": ["id"],
    }
    one = registered(schema, kind=SchemaType.JSON)
    payload = Encoder(one).encode({"id": 1, "x-y": "z"})
    assert payload == b'\0\0\0\0\x07{"id":1,"x-y":"z"}'
    assert decoder_of(one).decode(payload) == {"id": 1, "x-y": "z"}
    for value, says in [
        ({}, "'id' is a required"), ({"id": "x"}, r"\.id: 'x' is not of type"),
        ({"id": 1, "x-y": 1}, "x-y"), ({"id": 1, "z": 1}, "'z' is no property"),
        ({"id": 1, "name": "b"}, r"\.name: 'b' does not match"),
    ]:  # fmt: skip
        with pytest.raises(SchemaMismatchError, match=says):
            Encoder(one).encode(value)
    for body in (b'{"id":', b"\xff\xff", b'{"id": NaN}', b"[" * 200_000):
        with pytest.raises(SchemaMismatchError, match="schema 7: not JSON"):
            decoder_of(one).decode(b"\0\0\0\0\x07" + body)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"pattern": "^(a+)+$"}, "a" * 40_000 + "!"),
        ({"uniqueItems": True}, [{"a": n % 30_000} for n in range(30_001)]),
        ({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, 1),
        ({"$ref": "http://192.0.2.1/schema.json"}, 1),
        ({"$ref": "#/$defs/d0", "$defs": {"e": False, **{
            f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(30)},
            "d30": False}}, 1),
    ],
    ids=str.split("pattern unique recursive remote laughs"),
)  # fmt: skip
def test_a_hostile_json_schema_is_a_mismatch_in_bounded_time(schema: object, value: object) -> None:
    one = registered(schema, kind=SchemaType.JSON)
    started_s = time.process_time()
    with pytest.raises(SchemaMismatchError):
        decoder_of(one).decode(b"\0\0\0\0\x07" + json.dumps(value).encode())
    assert time.process_time() - started_s < 20


def test_an_unknown_id_is_asked_for_once_and_a_schema_too() -> None:
    asked: list[int] = []

    def find(schema_id: int) -> RegisteredSchema:
        asked.append(schema_id)
        if schema_id != 7:
            raise UnknownSchemaError(f"there is no schema {schema_id}")
        return registered("int")

    decoder = Decoder(remembering(find))
    for _ in range(3):
        with pytest.raises(SchemaMismatchError, match="no schema 9"):
            decoder.decode(b"\0\0\0\0\x09\x02")
        assert decoder.decode(b"\0\0\0\0\x07\x02") == 1
    assert asked == [9, 7]


def test_a_float_beyond_json_is_text() -> None:
    out = io.BytesIO()
    schemaless_writer(out, "float", math.inf)
    payload = struct.pack(">bi", 0, 7) + out.getvalue()
    assert decoder_of(registered("float")).decode(payload) == "Infinity"
    assert Encoder(registered("float")).encode("Infinity") == payload


@pytest.mark.parametrize("text", ["", "{", '{"type": "nothing"}', "[" * 5000 + "]" * 5000, "5"])
@pytest.mark.parametrize("kind", list(SchemaType))
def test_a_schema_that_is_none_is_a_mismatch(text: str, kind: SchemaType) -> None:
    with pytest.raises(SchemaMismatchError, match="schema"):
        Encoder(RegisteredSchema(7, kind, text)).encode(1)
