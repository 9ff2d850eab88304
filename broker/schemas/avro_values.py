"""Values of Avro as JSON has them, in both directions, and the bounds of a payload that is decoded.

Bytes and fixed values are text with one character for each byte, as in Avro's JSON encoding; dates,
times and timestamps are text in ISO 8601, decimals and UUIDs text; a float that JSON has no number
for is `NaN`, `Infinity` or `-Infinity` as text. A value of a union stands as it is. To be written
it may also have Avro's tagged form, an object whose one key names the branch: `{"long": 5}`.

Of several branches that a plain value fits, numbers without a fraction take the first of int and
long, other numbers double before float, and text takes string; else the tagged form is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time
from decimal import Context, Decimal, InvalidOperation
from typing import Any, TypeVar
from uuid import UUID

from broker.errors import SchemaMismatchError, did_you_mean

MAX_DEPTH = 100
_MAX_NODES = 1_000_000  # of a value, whatever its bytes
MAX_EXTRA_NODES = 64  # of a record, with which payloads are not measured first
_MAX_LONG = 10  # bytes of a number
_INTEGERS = {"int": 31, "long": 63}
_FLOATS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_WIDTHS = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_PREFERRED = ("int", "long", "double", "float", "string")

_Clocked = TypeVar("_Clocked", datetime, time)
Named = Mapping[str, Any]
"""The record, enum and fixed types of a schema by their full names."""


def plain(value: Any) -> Any:
    """Return a value that fastavro has read as JSON has it."""
    match value:
        case dict():
            return {name: plain(one) for name, one in value.items()}
        case list():
            return [plain(one) for one in value]
        case float() if not math.isfinite(value):
            return next(text for text, one in _FLOATS.items() if str(one) == str(value))
        case bytes():
            return value.decode("latin-1")
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal() | UUID():
            return str(value)
    return value


def _kind_of(schema: Any, named: Named) -> tuple[str, Any]:
    """Return the kind of a schema that fastavro has parsed, and the schema, a name replaced."""
    if isinstance(schema, str):
        schema = named.get(schema, schema)
    if isinstance(schema, list):
        return "union", schema
    return (schema, {}) if isinstance(schema, str) else (schema["type"], schema)


def _branch_name(schema: Any) -> str:
    return schema if isinstance(schema, str) else schema.get("name") or schema["type"]


class Fitting:
    """Makes a value of JSON one that fastavro writes by a schema; used once."""

    def __init__(self, schema: Any, named: Named) -> None:
        self._schema, self._named = schema, named
        self._left = _MAX_NODES

    def fit(self, value: Any) -> Any:
        """Return a value for fastavro; `SchemaMismatchError` names the field that does not fit."""
        return self._fit(self._schema, value, "", 0)

    def _fit(self, schema: Any, value: Any, path: str, depth: int) -> Any:
        self._left -= 1
        if depth > MAX_DEPTH or self._left < 0:
            raise SchemaMismatchError(f"{path or 'the value'}: nested too deeply, or too large")
        kind, schema = _kind_of(schema, self._named)
        match kind, value:
            case "union", _:
                return self._fit_union(schema, value, path, depth)
            case "record" | "error", dict():
                return self._fit_record(schema, value, path, depth)
            case "array", list():
                items = schema["items"]
                return [
                    self._fit(items, one, f"{path}[{at}]", depth + 1)
                    for at, one in enumerate(value)
                ]
            case "map", dict():
                values = schema["values"]
                return {
                    key: self._fit(values, one, f"{path}.{key}", depth + 1)
                    for key, one in value.items()
                }
        try:
            return _simple(kind, schema, value)
        except (ValueError, OverflowError, InvalidOperation):
            expected = _text_of(kind, schema)
        raise SchemaMismatchError(
            f"{path or 'the value'}: expected {expected}, not {_shown(value)}"
        )

    def _fit_record(
        self, schema: Any, value: Mapping[str, Any], path: str, depth: int
    ) -> dict[str, Any]:
        fields = {field["name"]: field for field in schema["fields"]}
        for name in value:
            if name not in fields:
                hint = did_you_mean(name, fields)
                raise SchemaMismatchError(
                    f"{path}.{name}: record {schema['name']} has no such field{hint}"
                )
        made = {}
        for name, field in fields.items():
            if name in value:
                made[name] = self._fit(field["type"], value[name], f"{path}.{name}", depth + 1)
            elif "default" in field:
                made[name] = self._default(field, f"{path}.{name}", depth + 1)
            else:
                kind, found = _kind_of(field["type"], self._named)
                raise SchemaMismatchError(
                    f"{path}.{name}: missing, expected {_text_of(kind, found)}"
                )
        return made

    def _default(self, field: Any, path: str, depth: int) -> Any:
        kind, schema = _kind_of(field["type"], self._named)
        if kind != "union":
            return self._fit(field["type"], field["default"], path, depth)
        for branch in schema:  # of the first branch, by later rules of any
            try:
                return _branch_name(branch), self._fit(branch, field["default"], path, depth)
            except SchemaMismatchError:
                continue
        raise SchemaMismatchError(f"{path}: missing, and its default does not fit")

    def _fit_union(self, branches: list[Any], value: Any, path: str, depth: int) -> Any:
        names = [_branch_name(one) for one in branches]
        failures: list[SchemaMismatchError] = []
        if isinstance(value, dict) and len(value) == 1 and (tag := next(iter(value))) in names:
            try:
                branch = branches[names.index(tag)]
                return tag, self._fit(branch, value[tag], path, depth + 1)
            except SchemaMismatchError as error:
                failures.append(error)
        found = {}
        for name, branch in zip(names, branches, strict=True):
            try:
                found[name] = self._fit(branch, value, path, depth + 1)
            except SchemaMismatchError as error:
                failures.append(error)
        best = next((one for one in (*_PREFERRED, *names) if one in found), None)
        if best is not None and (len(found) == 1 or best in _PREFERRED):
            return best, found[best]
        if found:
            one = next(iter(found))
            raise _AmbiguousError(
                f"{path or 'the value'}: fits {' and '.join(found)}, so name one of them, as in "
                f'{{"{one}": ...}}'
            )
        own = path or "the value"
        deeper = [one for one in failures if not str(one).startswith(f"{own}: expected")]
        if len(deeper) == 1:  # the only branch that the value is like
            raise deeper[0]
        raise SchemaMismatchError(f"{own}: expected {' or '.join(names)}, not {_shown(value)}")


class _AmbiguousError(SchemaMismatchError):
    """A value fits several branches of a union."""


def _simple(kind: str, schema: Any, value: Any) -> Any:
    """Return a value without parts for fastavro; a ValueError if it does not fit."""
    logical = schema.get("logicalType") if schema else None
    convert = _LOGICAL.get((kind, logical)) if isinstance(logical, str) else None
    if convert is not None and isinstance(value, str):
        return convert(value, schema)
    match kind, value:
        case "null", None:
            return None
        case "boolean", bool():
            return value
        case "int" | "long", int() if not isinstance(value, bool):
            limit = 1 << _INTEGERS[kind]
            first, last = _STORED.get(str(logical), (-limit, limit - 1))
            if not first <= value <= last:
                raise ValueError
            return value
        case (("float" | "double"), int() | float()) if not isinstance(value, bool):
            return _number(kind, float(value))
        case (("float" | "double"), str()) if value in _FLOATS:
            return _FLOATS[value]
        case "bytes" | "fixed", int() | float() if convert is not None:  # a decimal
            return convert(str(value), schema)
        case "bytes", str():
            return value.encode("latin-1")
        case "string", str():
            value.encode()  # a lone half of a surrogate pair has no UTF-8
            return value
        case "fixed", str() if len(data := value.encode("latin-1")) == schema["size"]:
            return data
        case "enum", str() if value in schema["symbols"]:
            return value
    raise ValueError


def _number(kind: str, value: float) -> float:
    if kind == "float" and math.isfinite(value) and abs(value) > 3.4028235677973366e38:
        raise OverflowError
    return value


def _decimal(text: str, schema: Any) -> Decimal:
    value, digits, scale = Decimal(text), schema["precision"], schema.get("scale", 0)
    if not value.is_finite() or abs(value.adjusted()) > digits + scale:
        raise ValueError
    made = value.quantize(Decimal(1).scaleb(-scale), context=Context(prec=digits))
    if made != value:  # it has more fractional digits
        raise ValueError
    return made


def _moment(text: str, schema: Any) -> datetime:
    found = datetime.fromisoformat(text)
    if schema["logicalType"].startswith("local-"):
        if found.tzinfo is not None:
            raise ValueError
    else:
        found = found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return _stored_exactly(found, schema)


def _time(text: str, schema: Any) -> time:
    found = time.fromisoformat(text)
    if found.tzinfo is not None:
        raise ValueError
    return _stored_exactly(found, schema)


def _stored_exactly(found: _Clocked, schema: Any) -> _Clocked:
    if schema["logicalType"].endswith("-millis") and found.microsecond % 1000:
        raise ValueError
    return found


_Convert = Callable[[str, Any], Any]
_LOGICAL: dict[tuple[str, str], _Convert] = {
    ("string", "uuid"): lambda text, _: str(UUID(text)),
    ("int", "date"): lambda text, _: date.fromisoformat(text),
    ("int", "time-millis"): _time,
    ("long", "time-micros"): _time,
    ("bytes", "decimal"): _decimal,
    ("fixed", "decimal"): _decimal,
}
_STORED = {
    "date": (-719_162, 2_932_896),
    "time-millis": (0, 86_399_999),
    "time-micros": (0, 86_399_999_999),
}
"""The least and greatest numbers that fastavro reads again."""
for _unit, _second in (("millis", 1000), ("micros", 1_000_000)):
    for _name in (f"timestamp-{_unit}", f"local-timestamp-{_unit}"):
        _LOGICAL["long", _name] = _moment
        _STORED[_name] = (-62_135_596_800 * _second, 253_402_300_800 * _second - 1)


def _text_of(kind: str, schema: Any) -> str:
    """Return what is expected of a value, in words."""
    match kind:
        case "union":
            return " or ".join(_branch_name(one) for one in schema)
        case "record" | "error":
            return f"an object, {schema['name']}"
        case "enum":
            return f"one of {', '.join(schema['symbols'][:20])}"
        case "fixed" if "logicalType" not in schema:
            return f"text of {schema['size']} characters, a byte each"
        case "bytes" if "logicalType" not in (schema or {}):
            return "text with a character for each byte"
    logical = schema.get("logicalType") if schema else None
    if logical == "decimal":
        return f"a decimal of {schema['precision']} digits, {schema.get('scale', 0)} of them behind"
    return str(logical or kind)


def _shown(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", type(None): "null", bool: str(value).lower()}
    if type(value) in kinds:
        return kinds[type(value)]
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= 40 else f"{text[:40]}..."


class Measure:
    """Whether a payload is decoded within bounds: fastavro has none, and recurses in C; used once.

    Only payloads of schemas that `may_be_hostile` have to be looked at before. `extra_nodes` is
    what the reader's schema may add to each record.
    """

    def __init__(self, schema: Any, named: Named, extra_nodes: int) -> None:
        self._schema, self._named = schema, named
        self._extra = extra_nodes
        self._left = _MAX_NODES

    def check(self, body: bytes) -> None:
        """Raise a `SchemaMismatchError` for a payload beyond the bounds, or not of the schema."""
        self._skip(self._schema, body, 0, 0)

    def _skip(self, schema: Any, data: bytes, at: int, depth: int) -> int:
        """Return the position behind a value."""
        kind, schema = _kind_of(schema, self._named)
        self._left -= 1 + (self._extra if kind == "record" else 0)
        if depth > MAX_DEPTH or self._left < 0:
            raise SchemaMismatchError("nested too deeply, or too large")
        match kind:
            case "record" | "error":
                for field in schema["fields"]:
                    at = self._skip(field["type"], data, at, depth + 1)
                return at
            case "union":
                number, at = _long(data, at)
                if not 0 <= number < len(schema):
                    raise SchemaMismatchError(f"a union has no branch {number}")
                return self._skip(schema[number], data, at, depth + 1)
            case "array" | "map":
                return self._skip_items(kind, schema, data, at, depth)
            case "int" | "long" | "enum":
                return _long(data, at)[1]
        if kind in ("bytes", "string"):
            size, at = _long(data, at)
        else:
            size = schema["size"] if kind == "fixed" else _WIDTHS[kind]
        if size < 0 or at + size > len(data):
            raise SchemaMismatchError(f"it ends within {kind} of {size} bytes")
        digits = schema.get("precision", 0) if schema else 0
        if schema and schema.get("logicalType") == "decimal" and size > 64 + min(digits, 1000):
            raise SchemaMismatchError(f"a decimal of {size} bytes, where {digits} digits are most")
        return at + size

    def _skip_items(self, kind: str, schema: Any, data: bytes, at: int, depth: int) -> int:
        while True:
            count, at = _long(data, at)
            if not count:
                return at
            if count < 0:  # then the size of the block follows
                count, at = -count, _long(data, at)[1]
            for _ in range(count):
                if kind == "map":
                    at = self._skip("string", data, at, depth + 1)
                at = self._skip(
                    schema["items" if kind == "array" else "values"], data, at, depth + 1
                )


def may_be_hostile(schema: Any, named: Named) -> bool:
    """Return whether a few bytes can be a value that is deep, or large.

    So they can if types are named again, as these may recurse; if arrays have items that are large
    or take no bytes; or if there are decimals, which take a time by the square of their digits.
    """
    match schema:
        case str():
            return schema in named
        case list():
            return any(may_be_hostile(one, named) for one in schema)
        case {"fields": fields}:
            return any(may_be_hostile(one["type"], named) for one in fields)
        case {"items": inner} | {"values": inner}:
            return not isinstance(inner, str) or inner == "null" or inner in named
    return bool(schema.get("logicalType") == "decimal")


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Return the number at a position, and the position behind it."""
    number = 0
    for place, byte in enumerate(data[at : at + _MAX_LONG]):
        number |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), at + place + 1
    raise SchemaMismatchError("it ends within a number, or has one of more than 64 bits")
