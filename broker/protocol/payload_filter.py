"""The filter of a filtered read: a regular expression searched for in payloads.

A broker applies it (in `broker.server.requests.filter_worker`), or the client where the broker
cannot; both do so with `message_set.filter_entries`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from broker.errors import InvalidPatternError, ProtocolError
from broker.protocol.primitives import INT8, INT32, Buffer, Reader

MAX_PATTERN_BYTES = 1024

_IGNORE_CASE = 1
_INVERT = 2


@dataclass(frozen=True, slots=True)
class PayloadFilter:
    """Selects messages by their payload.

    Args:
        pattern: a regular expression of Python's `re` over bytes, at most `MAX_PATTERN_BYTES`
            long. It may match anywhere in a payload; an empty one matches every payload.
        ignore_case: ignore the case of ASCII letters.
        invert: select the messages that the pattern does not match.
    """

    pattern: bytes
    ignore_case: bool = False
    invert: bool = False

    def compile(self) -> Callable[[Buffer], object]:
        """Return a function that returns a true value for a selected payload.

        Raises:
            InvalidPatternError: the pattern is too long, or not a regular expression.
        """
        if len(self.pattern) > MAX_PATTERN_BYTES:
            raise InvalidPatternError(
                f"the pattern has {len(self.pattern)} bytes; the limit is {MAX_PATTERN_BYTES}"
            )
        try:
            search = re.compile(self.pattern, re.IGNORECASE if self.ignore_case else 0).search
        except (re.error, ValueError, OverflowError, RecursionError) as error:
            raise InvalidPatternError(
                f"pattern '{self.text}' is no regular expression: {error}"
            ) from error
        return (lambda payload: search(payload) is None) if self.invert else search

    @property
    def text(self) -> str:
        """Return the pattern as text for error messages."""
        return self.pattern.decode("utf-8", "backslashreplace")

    def encode(self) -> bytes:
        """Return the wire form."""
        flags = _IGNORE_CASE * self.ignore_case | _INVERT * self.invert
        return INT8.pack(flags) + INT32.pack(len(self.pattern)) + self.pattern

    @classmethod
    def decode(cls, reader: Reader) -> PayloadFilter:
        """Read the wire form; the pattern is validated by `compile`.

        Raises:
            ProtocolError: an undefined flag is set, or the fields are cut off.
        """
        flags = reader.int8()
        if flags & ~(_IGNORE_CASE | _INVERT):
            raise ProtocolError(f"the flags of a filter are {flags}; 1 and 2 are defined")
        pattern = bytes(reader.data(reader.int32()))
        return cls(pattern, bool(flags & _IGNORE_CASE), bool(flags & _INVERT))
