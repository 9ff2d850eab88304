r"""Backslash escapes in delimiters and format strings: `\n \r \t \0 \\ \e \xNN \uNNNN`.

Pure text to bytes and back.
"""

from __future__ import annotations

import re

from pylogctl.cli.errors import UsageError

_SIMPLE = {
    "n": b"\n",
    "r": b"\r",
    "t": b"\t",
    "0": b"\0",
    "\\": b"\\",
    "e": b"\x1b",
}
_ESCAPE = re.compile(r"\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.?))", re.DOTALL)
_NAMES = {value[0]: "\\" + name for name, value in _SIMPLE.items()}
_PRINTABLE = range(32, 127)
_ESCAPED = [_NAMES.get(byte) or (chr(byte) if byte in _PRINTABLE else f"\\x{byte:02x}")
            for byte in range(256)]  # fmt: skip


def unescape(text: str) -> bytes:
    r"""Return the bytes of a text with escapes.

    Args:
        text: `\xNN` stands for one byte, everything else for its UTF-8 encoding.

    Raises:
        UsageError: an escape is not one of those known.
    """
    parts = []
    position = 0
    for match in _ESCAPE.finditer(text):
        parts.append(_encode(text[position : match.start()]))
        parts.append(_unescape_one(match))
        position = match.end()
    parts.append(_encode(text[position:]))
    return b"".join(parts)


def _unescape_one(match: re.Match[str]) -> bytes:
    two_digits, four_digits, letter = match.groups()
    if two_digits:
        return bytes([int(two_digits, 16)])
    if four_digits:
        return chr(int(four_digits, 16)).encode("utf-8", "surrogatepass")
    if letter not in _SIMPLE:
        raise UsageError(
            f"not an escape: '{match[0]}'", hints=[r"valid: \n \r \t \0 \\ \e \xNN \uNNNN"]
        )
    return _SIMPLE[letter]


def _encode(text: str) -> bytes:
    # Bytes of the command line that are no UTF-8 come as surrogates and leave as they were.
    return text.encode("utf-8", "surrogateescape")


def escape(data: bytes | bytearray | memoryview) -> str:
    """Return bytes as printable ASCII; `unescape` gives them back."""
    return "".join([_ESCAPED[byte] for byte in data])
