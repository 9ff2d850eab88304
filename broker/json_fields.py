"""Fields of messages in JSON: the last of equal keys counts, numbers stay as they were written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

MISSING = object()
"""The value at a path that does not exist."""


class Number(str):
    """A number as its text stands in a document, such as `1.10`."""

    __slots__ = ()


_AS_WRITTEN: dict[str, Any] = dict.fromkeys(("parse_int", "parse_float", "parse_constant"), Number)


def read_json(payload: bytes | bytearray | memoryview | str, *, with_values: bool = False) -> Any:
    """Return a document; `MISSING` if it is none.

    Its numbers are `Number`, or with `with_values` their values, which may be rounded.
    """
    text = payload if isinstance(payload, str) else bytes(payload)
    try:
        return json.loads(text, **({} if with_values else _AS_WRITTEN))
    except (ValueError, RecursionError):  # the latter for thousands of nested arrays
        return MISSING


def field_path(text: str) -> list[str]:
    """Return the keys of a path such as `.meta.ts`."""
    return [key for key in text.split(".") if key]


def value_at(document: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys and indices, `MISSING` if there is none."""
    for key in path:
        if isinstance(document, Mapping) and key in document:
            document = document[key]
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return MISSING
    return document


def text_of(value: Any) -> str | None:
    """Return a value of a document as text, what is no text in JSON; None for null and missing.

    None also for what is nested too deeply.
    """
    if value is None or value is MISSING:
        return None
    try:
        return str(value) if isinstance(value, str) else _json_of(value)
    except RecursionError:  # for hundreds of nested arrays
        return None


def _json_of(value: Any) -> str:
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, Mapping):
        inside = ",".join(f"{_json_of(key)}:{_json_of(one)}" for key, one in value.items())
        return f"{{{inside}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json_of, value))}]"
    return json.dumps(value, ensure_ascii=False)
