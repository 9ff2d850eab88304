"""Escapes for text of unknown origin: names and values of the registry, messages, file names.

Such text could otherwise move the cursor, change colours, make the terminal send input in the
user's place, or reorder the text shown.
"""

from __future__ import annotations

import re

_CONTROLS = r"\x00-\x1f\x7f-\x9f"
# Marks of writing direction, line separators, and bytes that were no UTF-8.
_MISLEADING = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
# expressions are compiled where they are used: commands import this at each start
_CONTROL = f"[{_CONTROLS}]"
_UNSAFE = f"[{_CONTROLS}{_MISLEADING}]"
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}
_FIRST_RAW_BYTE = 0xDC80  # as `surrogateescape` decodes 0x80


def one_line(text: str) -> str:
    """Return text with its control characters as escapes."""
    return re.sub(_CONTROL, _escape, text)


def printable(text: str, *, keep: str = "") -> str:
    """Return text with all that could mislead a terminal as escapes, but the characters to keep."""
    return re.sub(_UNSAFE, lambda match: match[0] if match[0] in keep else _escape(match), text)


def printable_bytes(data: bytes, *, keep: str = "") -> bytes:
    """Return bytes as `printable` text in UTF-8; bytes that are no UTF-8 become escapes."""
    text = data.decode("utf-8", "backslashreplace")
    return printable(text, keep=keep).encode()


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _NAMED:
        return _NAMED[character]
    code = ord(character)
    if _FIRST_RAW_BYTE <= code < _FIRST_RAW_BYTE + 0x80:
        code -= _FIRST_RAW_BYTE - 0x80
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
