"""The filter of a filtered read: a regular expression searched for in payloads.

A broker applies it (in `broker.server.requests.pattern_filter`), or the client where the broker
cannot; both do so with `message_set.filter_entries`.
"""

from __future__ import annotations

from dataclasses import dataclass

from broker.errors import InvalidPatternError, ProtocolError
from broker.patterns import PayloadTest
from broker.protocol.primitives import INT8, INT32, Reader

MAX_PATTERN_BYTES = 1024

_IGNORE_CASE = 1
_INVERT = 2


@dataclass(frozen=True, slots=True)
class PayloadFilter:
    """Selects messages by their payload.

    Args:
        pattern: see `broker.patterns`; in UTF-8, at most `MAX_PATTERN_BYTES` long. It may match
            anywhere in a payload; an empty one matches every payload.
        ignore_case: ignore the case of letters.
        invert: select the messages that the pattern does not match.
    """

    pattern: bytes
    ignore_case: bool = False
    invert: bool = False

    def compile(self) -> PayloadTest:
        """Return the test of payloads.

        Raises:
            InvalidPatternError: the pattern is too long, not UTF-8, or not a regular expression.
        """
        if len(self.pattern) > MAX_PATTERN_BYTES:
            raise InvalidPatternError(
                f"the pattern has {len(self.pattern)} bytes; the limit is {MAX_PATTERN_BYTES}"
            )
        try:
            text = self.pattern.decode()
        except UnicodeDecodeError as error:
            raise InvalidPatternError(f"the pattern '{self.text}' is not UTF-8") from error
        return PayloadTest(text, ignore_case=self.ignore_case, invert=self.invert)

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
