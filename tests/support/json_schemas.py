"""Checks documents against the JSON Schemas in the package, as far as those go."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pylogctl
from docs.json_schemas import file_name

SCHEMAS = Path(pylogctl.__file__).parent / "schemas"
_START = re.compile(rb'\{\s*"schema":\s*"pylogctl\.([^"]+)"')
_QUERIES = ("sql", "window", "join", "verify")
_OF_QUERIES = ("columns/", *(f"pipeline.{name}/" for name in _QUERIES))
_TIME = re.compile(r"\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
_KINDS: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
    "array": list,
    "object": dict,
}


@cache
def _schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((SCHEMAS / file_name(name)).read_text())
    return schema


def check_output(args: Sequence[str], stdout: bytes) -> None:
    """Check what a command wrote, if that is a document with all fields of its rows."""
    start = _START.match(stdout)
    if start is None or any(word.startswith("--columns") for word in args):
        return
    name = start[1].decode()
    if not name.startswith(_OF_QUERIES):
        check(json.loads(stdout), _schema(name), name)


def check(value: Any, schema: Mapping[str, Any], where: str) -> None:
    """Fail if a value is not what a schema says; `where` is the path to it."""
    if "const" in schema:
        assert value == schema["const"], where
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        assert any(_is_a(value, name) for name in names), f"{where} is {value!r}, not {names}"
    if isinstance(value, str) and schema.get("format") == "date-time":
        assert _TIME.fullmatch(value), f"{where} is {value!r}, no time"
    if isinstance(value, list):
        for place, item in enumerate(value):
            check(item, schema.get("items", {}), f"{where}[{place}]")
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        other = schema.get("additionalProperties")
        missing = set(schema.get("required", ())) - value.keys()
        assert not missing, f"{where} lacks {missing}"
        for key, item in value.items():
            if properties and other is None:
                assert key in properties, f"{where} has '{key}', which its schema has not"
            check(item, properties.get(key, other or {}), f"{where}.{key}")


def _is_a(value: Any, name: str) -> bool:
    if isinstance(value, bool):
        return name == "boolean"
    return isinstance(value, _KINDS[name])
