"""Escapes for text of unknown origin: names and values of the registry, messages, file names.

Such text could otherwise move the cursor, change colours, make the terminal send input in the
user's place, or reorder the text shown.
"""

from __future__ import annotations

import re

_CONTROLS = r"\x00-\x1f\x7f-\x9f"
# What is not seen, or moves what is: marks of writing direction, separators of lines, characters
# without a width, and bytes that were no UTF-8.
_MISLEADING = (
    r"\u00ad\u034f\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2800\u3164\ufeff\ufff9-\ufffb\U000e0000-\U000e007f\U000e0100-\U000e01ef\ud800-\udfff"
)
# Joiners belong to the writing of some languages, and to emoji: but not beside ASCII.
_JOINED = r"[^\x00-\x7f\u200c\u200d]"
_JOINER = rf"(?<!{_JOINED})[\u200c\u200d]|[\u200c\u200d](?!{_JOINED})"
# expressions are compiled where they are used: commands import this at each start
_CONTROL = f"[{_CONTROLS}]"
_UNSAFE = f"[{_CONTROLS}{_MISLEADING}]|{_JOINER}"
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
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
