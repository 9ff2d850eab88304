"""Validates values of JSON by a JSON Schema, in bounded steps; nothing is fetched for it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from broker.errors import InvalidPatternError, SchemaMismatchError
from broker.patterns import Pattern

_MAX_STEPS = 100_000  # and one more for each byte of the value
_SHOWN_LENGTH = 200
_compiled = lru_cache(maxsize=256)(Pattern)


class JsonValidator:
    """A JSON Schema; `SchemaMismatchError` if its text is none.

    A step is a keyword that is applied to a value. Patterns are those of RE2, which need a time
    that the text bounds.
    """

    def __init__(self, text: str, schema_id: int) -> None:
        self._of_thread = threading.local()
        try:
            document = json.loads(text)
            if "patternProperties" in text and "unevaluatedProperties" in text:
                raise ValueError("patternProperties and unevaluatedProperties together")
            self._validator = self._made(document)
        except (ValueError, TypeError, RecursionError) as error:
            raise SchemaMismatchError(f"schema {schema_id} cannot be applied: {error}") from error

    def _made(self, document: Any) -> Any:
        from jsonschema import Draft202012Validator, validators
        from jsonschema_specifications import REGISTRY

        kind = validators.validator_for(document, default=Draft202012Validator)
        bounded = {
            name: self._counted(_OWN.get(name, check)) for name, check in kind.VALIDATORS.items()
        }
        return validators.extend(kind, bounded)(document, registry=REGISTRY)

    def _counted(self, check: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def checked(*arguments: Any) -> Iterator[Any]:
            self._of_thread.left -= 1
            if self._of_thread.left < 0:
                raise SchemaMismatchError("to validate it takes too long")
            yield from check(*arguments) or ()

        return checked

    def validate(self, value: object, size: int) -> None:
        """Raise a `SchemaMismatchError` for the first place that does not fit; `size` in bytes."""
        from jsonschema.exceptions import UnknownType, ValidationError
        from referencing.exceptions import Unresolvable

        self._of_thread.left = _MAX_STEPS + size
        try:
            found: ValidationError | None = next(self._validator.iter_errors(value), None)
        except InvalidPatternError as error:
            raise SchemaMismatchError(str(error)) from error
        except (
            *(Unresolvable, UnknownType, RecursionError, TypeError, ValueError),
            *(AttributeError, KeyError, ArithmeticError),
        ) as error:
            raise SchemaMismatchError(f"the schema cannot be applied: {error}") from error
        if found is not None:
            where = found.json_path.removeprefix("$") or "the value"
            raise SchemaMismatchError(f"{where}: {found.message[:_SHOWN_LENGTH]}")


def _pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if validator.is_type(value, "string") and _compiled(pattern).search(value) is None:
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, schema: Any) -> Iterator[Any]:
    for text, inner in patterns.items() if validator.is_type(value, "object") else ():
        pattern = _compiled(text)
        for name, one in value.items():
            if pattern.search(name) is not None:
                yield from validator.descend(one, inner, path=name, schema_path=text)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if not validator.is_type(value, "object"):
        return
    patterns = [_compiled(one) for one in schema.get("patternProperties", ())]
    known = schema.get("properties", {})
    for name, one in value.items():
        if name in known or any(pattern.search(name) is not None for pattern in patterns):
            continue
        if wanted is False:
            yield ValidationError(f"'{name}' is no property that the schema has")
        elif wanted is not True:
            yield from validator.descend(one, wanted, path=name)


def _unique_items(validator: Any, wanted: bool, value: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    is_checked = wanted and validator.is_type(value, "array")
    if is_checked and len({_frozen(one) for one in value}) < len(value):
        yield ValidationError("items are not unique")


def _frozen(value: Any) -> object:
    """Return a hashable value that is equal where JSON Schema says so: true is not 1."""
    match value:
        case dict():
            return frozenset((name, _frozen(one)) for name, one in value.items())
        case list():
            return tuple(_frozen(one) for one in value)
    return type(value) is bool, value


_OWN: dict[str, Callable[..., Iterator[Any]]] = {
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional_properties,
    "uniqueItems": _unique_items,
}
"""Keywords that jsonschema takes unbounded time for."""
