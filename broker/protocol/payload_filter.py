"""What a filtered read asks for: a regular expression that payloads are searched for.

The same value filters at a broker (in `broker.server.filter_worker`) and in a client whose broker
cannot; `selecting.select` is what both apply it with.
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
    """Which messages a reader wants, by their payload.

    Args:
        pattern: a regular expression of Python's `re` over bytes, at most `MAX_PATTERN_BYTES`
            long. It may match anywhere in a payload; an empty one matches every payload.
        ignore_case: take ASCII letters of either case for the same.
        invert: want the messages that the pattern does not match.
    """

    pattern: bytes
    ignore_case: bool = False
    invert: bool = False

    def compile(self) -> Callable[[Buffer], object]:
        """Return what says whether a payload is wanted, by a true value or a false one.

        Raises:
            InvalidPatternError: the pattern is too long, or no regular expression; the text says
                what is wrong with it, and where.
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
        """Return the pattern for messages."""
        return self.pattern.decode("utf-8", "backslashreplace")

    def encode(self) -> bytes:
        """Return the wire form."""
        flags = _IGNORE_CASE * self.ignore_case | _INVERT * self.invert
        return INT8.pack(flags) + INT32.pack(len(self.pattern)) + self.pattern

    @classmethod
    def decode(cls, reader: Reader) -> PayloadFilter:
        """Read the wire form; whether the pattern makes sense is for `compile` to find.

        Raises:
            ProtocolError: a flag is set that is not defined, or the fields are cut off.
        """
        flags = reader.int8()
        if flags & ~(_IGNORE_CASE | _INVERT):
            raise ProtocolError(f"the flags of a filter are {flags}; 1 and 2 are defined")
        pattern = bytes(reader.data(reader.int32()))
        return cls(pattern, bool(flags & _IGNORE_CASE), bool(flags & _INVERT))
