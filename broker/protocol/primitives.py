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
    """Return a short string's wire form.

    Args:
        text: at most 32767 bytes in UTF-8.

    Returns:
        The int16 byte count followed by the bytes. (0.7's own writer counts UTF-16 units, which
        is why it cannot send a name outside ASCII; its reader counts bytes as this does.)

    Raises:
        ProtocolError: the text is too long for the length field, or is no valid Unicode.
    """
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        raise ProtocolError(f"a short string cannot hold {text[:40]!r}: {error.reason}") from error
    if len(data) > MAX_SHORT_STRING_BYTES:
        raise ProtocolError(f"a short string holds at most 32767 bytes, not {len(data)}")
    return INT16.pack(len(data)) + data


def clip(text: str) -> str:
    """Return the text, cut to what a short string can hold.

    A file name that is no valid Unicode has lone surrogates in Python; they are escaped.
    """
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) * 4 <= MAX_SHORT_STRING_BYTES else text[: MAX_SHORT_STRING_BYTES // 4]


class Reader:
    """Reads fields one after another from a buffer.

    Args:
        buffer: the bytes to read; slices handed out are views on it.
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
        """Read several numbers at once.

        Args:
            layout: of what follows.

        Raises:
            ProtocolError: it does not follow whole.
        """
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
        """Read the length of an array.

        Args:
            layout: the integer that holds it, `INT16` or `INT32`.
            item_bytes: the least number of bytes one item takes, at least 1.

        Returns:
            A count that the bytes left can hold.

        Raises:
            ProtocolError: the count is negative, or promises more than is there.
        """
        count: int = self.fields(layout)[0]
        self.check_count(count, item_bytes)
        return count

    def check_count(self, count: int, item_bytes: int) -> None:
        """Validate that so many items can follow, before any of them is read.

        Raises:
            ProtocolError: the count is negative, or promises more than is there.
        """
        if count < 0 or count * item_bytes > len(self._view) - self._position:
            raise ProtocolError(f"{count} items cannot follow in {self.remaining} bytes")

    def data(self, size: int) -> memoryview:
        """Return the next `size` bytes as a view.

        Raises:
            ProtocolError: `size` is negative or more than is left.
        """
        start = self._position
        end = start + size
        if not start <= end <= len(self._view):
            raise ProtocolError(f"{size} bytes are due at byte {start}, {self.remaining} are left")
        self._position = end
        return self._view[start:end]

    def short_string(self) -> str:
        """Read a short string.

        Raises:
            ProtocolError: it is null (0.7 writes a negative length), cut off or no UTF-8.
        """
        (size,) = self.fields(INT16)
        if size < 0:
            raise ProtocolError("a short string is null")
        try:
            return str(self.data(size), "utf-8")
        except UnicodeDecodeError as error:
            raise ProtocolError(f"a short string is not UTF-8: {error.reason}") from error
