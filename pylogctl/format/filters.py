"""Filters of messages: `--grep`, `--where`, `--sample` and `--skip`."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from broker.errors import InvalidPatternError, did_you_mean
from broker.json_fields import MISSING, field_path, read_json, value_at
from broker.patterns import PayloadTest
from pylogctl.cli.environment import UsageError
from pylogctl.format.envelope import MessageFacts

Filter = Callable[[MessageFacts], bool]

_FIELDS: dict[str, Callable[[MessageFacts], Any]] = {
    "size": lambda m: len(m.payload),
    "offset": lambda m: m.offset,
    "next_offset": lambda m: m.next_offset,
    "inner": lambda m: m.inner,
    "crc": lambda m: f"{m.crc:08x}",
    "codec": lambda m: m.codec,
    "magic": lambda m: m.magic,
    "topic": lambda m: m.partition.topic,
    "broker": lambda m: m.partition.home,
    "partition": lambda m: m.partition.index,
    "host": lambda m: MISSING if m.envelope is None else m.envelope.host,
    "sequence": lambda m: MISSING if m.envelope is None else m.envelope.sequence,
}
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_EXPRESSION = re.compile(r"\s*(json:[^\s=!<>]+|\w+)\s*(==|!=|<=|>=|<|>)\s*(.*?)\s*", re.DOTALL)
_HINT = 'valid: size>1000, offset<4096, codec==gzip, json:.level=="ERROR"'


def parse_where(text: str) -> Filter:
    """Return the filter of `FIELD OPERATOR VALUE`.

    The value is JSON or a bare word, the field one of the message or `json:.a.b`, a path in a JSON
    payload. A missing value is unequal to every value, and neither smaller nor larger.
    """
    match = _EXPRESSION.fullmatch(text)
    if match is None or not match[3]:
        raise UsageError(f"not a comparison: '{text}'", _HINT)
    name, symbol, literal = match.groups()
    value = _literal(literal)
    compare = _OPERATORS[symbol]
    if name.startswith("json:"):
        path = field_path(name.removeprefix("json:"))

        def is_wanted(message: MessageFacts) -> bool:
            document = read_json(message.payload, with_values=True)
            return _holds(compare, value_at(document, path), value)

        return is_wanted
    if name not in _FIELDS:
        raise UsageError(
            f"no field '{name}' to compare{did_you_mean(name, _FIELDS)}",
            f"fields: {', '.join(_FIELDS)}, json:.PATH",
        )
    get = _FIELDS[name]
    return lambda m: _holds(compare, get(m), value)


def _literal(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _holds(compare: Callable[[Any, Any], bool], found: Any, value: Any) -> bool:
    if found is MISSING:
        return compare is operator.ne
    try:
        return bool(compare(found, value))
    except TypeError:
        return False


def grep(text: str, *, ignore_case: bool, invert: bool) -> Filter:
    """Return a filter for payloads that match a pattern, or with `invert` do not."""
    try:
        is_wanted = PayloadTest(text, ignore_case=ignore_case, invert=invert)
    except InvalidPatternError as error:
        raise UsageError(f"--grep: {error}") from error
    return lambda m: is_wanted(m.payload)


@dataclass(slots=True)
class SampleFilter:
    """A filter for the first `take` of every `of` messages, after `skip` messages."""

    skip: int = 0
    take: int = 1
    of: int = 1
    _seen: int = 0

    def __call__(self, message: MessageFacts) -> bool:
        """Whether a message is in the sample; counts it."""
        index = self._seen
        self._seen += 1
        return index >= self.skip and (index - self.skip) % self.of < self.take


def parse_sample(text: str) -> tuple[int, int]:
    """Return the numbers of a `--sample` value such as `1/100`, from 0/1 to 1/1."""
    take, slash, of = text.partition("/")
    if not slash or not take.isdecimal() or not of.isdecimal() or not int(take) <= int(of) != 0:
        raise UsageError(f"not a sample: '{text}'", "valid: 1/100, 3/10")
    return int(take), int(of)
