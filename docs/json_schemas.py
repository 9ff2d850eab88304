"""JSON Schemas of all documents, made from the classes of their rows.

`docs.docgen` writes them to `pylogctl/schemas`, where programs and `--help-fields` find them.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import pylogctl
from pylogctl.cli.columns import Column, ColumnKind, Document

_NAMES = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}
_TEXT = {"type": ["string", "null"]}
_OF_KIND: dict[ColumnKind, Any] = {
    ColumnKind.TEXT: _TEXT,
    ColumnKind.BOOLEAN: {"type": ["boolean", "null"]},
    ColumnKind.INTEGER: {"type": ["integer", "null"]},
    ColumnKind.BYTES: {"type": ["integer", "null"]},
}
_NUMBER = {"type": ["number", "null"]}


def documents() -> dict[str, Document]:
    """Return every document of a command by its schema; imports all modules."""
    found: dict[str, Document] = {}
    for module in pkgutil.walk_packages(pylogctl.__path__, "pylogctl."):
        if module.name != "pylogctl.__main__":
            for value in vars(importlib.import_module(module.name)).values():
                if isinstance(value, Document):
                    found.setdefault(value.schema, value)
    return found


def schema_of(document: Document) -> dict[str, Any]:
    """Return the JSON Schema of what `--output json` writes without `--columns`."""
    fields = {one.name: {**_of_column(one), "description": one.doc} for one in document.columns}
    row = {"type": "object", "properties": fields, "required": list(fields)}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"pylogctl.{document.schema}",
        "type": "object",
        "properties": {
            "schema": {"const": f"pylogctl.{document.schema}"},
            "data": {"type": "array", "items": row},
        },
        "required": ["schema", "data"],
    }


def file_name(schema: str) -> str:
    """Return the name of a schema's file: `topic.list-1.json` for `topic.list/1`."""
    return f"{schema.replace('/', '-')}.json"


def files() -> dict[str, str]:
    """Return the text of each schema by the name of its file."""
    return {
        file_name(name): json.dumps(schema_of(document), indent=1) + "\n"
        for name, document in sorted(documents().items())
    }


def _of_column(column: Column) -> dict[str, Any]:
    if column.kind is ColumnKind.TIME:
        return {**_TEXT, "format": "date-time"}
    if column.values is None:
        return dict(_OF_KIND.get(column.kind, _NUMBER))
    return _of_type(column.values)


def _of_type(kind: Any) -> dict[str, Any]:
    if kind in _NAMES:
        return {"type": _NAMES[kind]}
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        parts = [_of_type(one) for one in inner]
        types = [part.pop("type") for part in parts]
        merged: dict[str, Any] = {"type": types}
        for part in parts:
            merged |= part
        return merged
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return {"type": "object", "additionalProperties": _of_type(inner[1])}
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return {"type": "array", "items": _of_type(inner[0])}
    return {}  # any value
