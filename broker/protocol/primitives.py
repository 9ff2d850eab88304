"""Integers and short strings of the wire, read with bounds checks.

All integers are big-endian and signed. A short string is an int16 byte count and UTF-8.
"""

from __future__ import annotations

import struct
from typing import Any

from broker.errors import ProtocolError

Buffer = bytes | bytearray | memoryview

INT8 = struct.Struct(">b")
INT16 = struct.Struct(">h")
INT32 = struct.Struct(">i")
INT64 = struct.Struct(">q")

MAX_SHORT_STRING_BYTES = 32767


def encode_short_string(text: str) -> bytes:
    """Return a short string's wire form; `ProtocolError` if over 32767 bytes or not Unicode."""
    # 0.7's own writer counts UTF-16 units, so that it cannot send a name outside ASCII; its reader
    # counts bytes as this does
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ProtocolError(f"a short string cannot hold {text[:40]!r}: {error.reason}") from error
    if len(data) > MAX_SHORT_STRING_BYTES:
        raise ProtocolError(f"a short string holds at most 32767 bytes, not {len(data)}")
    return INT16.pack(len(data)) + data


def clip(text: str) -> str:
    """Return the text, cut to the length of a short string."""
    # a file name that is no valid Unicode has lone surrogates in Python; they are escaped
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) * 4 <= MAX_SHORT_STRING_BYTES else text[: MAX_SHORT_STRING_BYTES // 4]


class Reader:
    """Reads fields one after another from a buffer; slices handed out are views on it.

    Raises `ProtocolError` if the bytes for a field are missing or invalid.
    """

    __slots__ = ("_position", "_view")

    def __init__(self, buffer: Buffer) -> None:
        self._view = memoryview(buffer)
        self._position = 0

    @property
    def remaining(self) -> int:
        """Return how many bytes are left."""
        return len(self._view) - self._position

    @property
    def rest(self) -> memoryview:
        """Return a view of the bytes that are left."""
        return self._view[self._position :]

    def fields(self, layout: struct.Struct) -> tuple[Any, ...]:
        """Read several numbers at once."""
        try:
            values = layout.unpack_from(self._view, self._position)
        except struct.error as error:
            raise ProtocolError(
                f"{layout.size} bytes are due at byte {self._position}, {self.remaining} are left"
            ) from error
        self._position += layout.size
        return values

    def int8(self) -> int:
        """Read an int8."""
        value: int = self.fields(INT8)[0]
        return value

    def int16(self) -> int:
        """Read an int16."""
        value: int = self.fields(INT16)[0]
        return value

    def int32(self) -> int:
        """Read an int32."""
        value: int = self.fields(INT32)[0]
        return value

    def int64(self) -> int:
        """Read an int64."""
        value: int = self.fields(INT64)[0]
        return value

    def count(self, layout: struct.Struct, item_bytes: int) -> int:
        """Read the length of an array, an `INT16` or `INT32`, that the bytes left can hold."""
        # `item_bytes` is the least number of bytes of one item, at least 1
        count: int = self.fields(layout)[0]
        self.check_count(count, item_bytes)
        return count

    def check_count(self, count: int, item_bytes: int) -> None:
        """Validate that `count` items can follow, before any of them is read."""
        if count < 0 or count * item_bytes > len(self._view) - self._position:
            raise ProtocolError(f"{count} items cannot follow in {self.remaining} bytes")

    def data(self, size: int) -> memoryview:
        """Return the next `size` bytes as a view."""
        start = self._position
        end = start + size
        if not start <= end <= len(self._view):
            raise ProtocolError(f"{size} bytes are due at byte {start}, {self.remaining} are left")
        self._position = end
        return self._view[start:end]

    def short_string(self) -> str:
        """Read a short string."""
        (size,) = self.fields(INT16)
        if size < 0:  # as 0.7 writes null
            raise ProtocolError("a short string is null")
        try:
            return str(self.data(size), "utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a short string is not UTF-8: {error.reason}") from error
