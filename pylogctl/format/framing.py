"""Framings of messages in a pipe: the options that choose one, escapes, and writing.

`pylogctl.format.framing_reader` reads them. Length prefixes, hex, base64 and JSON lines are safe
for any bytes; a delimiter only for payloads without it.
"""

from __future__ import annotations

import binascii
import re
import struct
from enum import Enum
from typing import Literal, NamedTuple

from pylogctl.cli.declarations import Choice, OptionalValue, OptionGroup, Panel, inputs, outputs
from pylogctl.cli.environment import UsageError
from pylogctl.cli.escapes import printable_bytes

_SIMPLE = {"n": b"\n", "r": b"\r", "t": b"\t", "0": b"\0", "\\": b"\\", "e": b"\x1b"}
# compiled where it is used: commands import this at each start
_ESCAPE = r"(?s)\\(?:x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|(.?))"
_NAMES = {value[0]: "\\" + name for name, value in _SIMPLE.items()}
_PRINTABLE = range(32, 127)
_ESCAPED = [_NAMES.get(byte) or (chr(byte) if byte in _PRINTABLE else f"\\x{byte:02x}")
            for byte in range(256)]  # fmt: skip


def unescape(text: str) -> bytes:
    r"""Return text as UTF-8, with the escapes `\n \r \t \0 \\ \e \uNNNN`, and `\xNN` for a byte."""
    parts = []
    position = 0
    for match in re.finditer(_ESCAPE, text):
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
        raise UsageError(f"not an escape: '{match[0]}'", r"valid: \n \r \t \0 \\ \e \xNN \uNNNN")
    return _SIMPLE[letter]


def _encode(text: str) -> bytes:
    # Bytes of the command line that are not UTF-8 arrive as surrogates and become bytes again.
    return text.encode("utf-8", "surrogateescape")


def escape(data: bytes | bytearray | memoryview) -> str:
    """Return bytes as printable ASCII; `unescape` gives them back."""
    return "".join([_ESCAPED[byte] for byte in data])


class Shape(Enum):
    """The kinds of framings."""

    DELIMITED = "delimiter"
    LENGTH = "length prefix"
    HEX = "hex"
    BASE64 = "base64"
    JSONL = "jsonl"
    WHOLE = "whole"


class LengthCode(Enum):
    """The formats of a length prefix; the words of `--length-prefixed`."""

    U32BE = "u32be"
    U32LE = "u32le"
    U64BE = "u64be"
    VARINT = "varint"


class Framing(NamedTuple):
    """A framing: its shape, with the delimiter or the length code that it uses."""

    shape: Shape
    delimiter: bytes = b"\n"
    length_code: LengthCode = LengthCode.U32BE


FIXED_LENGTHS = {
    LengthCode.U32BE: struct.Struct(">I"),
    LengthCode.U32LE: struct.Struct("<I"),
    LengthCode.U64BE: struct.Struct(">Q"),
}
VARINT_BYTES_MAX = 10


class FramingChoice(Choice):
    """The options of framing; at most one of them may be given."""

    delimiter: str | None = None
    null: bool = False
    length_prefixed: str | None = None
    hex_lines: bool = False
    base64_lines: bool = False

    @property
    def names(self) -> list[str]:
        """The options that are given."""
        given = {
            "--delimiter": self.delimiter is not None,
            "--null": self.null,
            "--length-prefixed": self.length_prefixed is not None,
            "--hex": self.hex_lines,
            "--base64": self.base64_lines,
        }
        return [option for option, is_given in given.items() if is_given]


NO_FRAMING = FramingChoice()


def choose_framing(choice: FramingChoice, *, jsonl: bool = False, whole: bool = False) -> Framing:
    """Return the framing by the options, newline by default; more than one is a UsageError."""
    chosen = choice.names + ["--jsonl"] * jsonl + ["--whole or --raw"] * whole
    if len(chosen) > 1:
        raise UsageError(f"only one framing is possible: {' and '.join(chosen)}")
    if choice.length_prefixed is not None:
        return Framing(Shape.LENGTH, length_code=LengthCode(choice.length_prefixed))
    if choice.hex_lines or choice.base64_lines:
        return Framing(Shape.HEX if choice.hex_lines else Shape.BASE64)
    if jsonl:
        return Framing(Shape.JSONL)
    text = "\n" if choice.delimiter is None else choice.delimiter
    separator = b"\0" if choice.null else unescape(text)
    if whole or not separator:
        return Framing(Shape.WHOLE, delimiter=b"")
    return Framing(Shape.DELIMITED, delimiter=separator)


def encode_length(length: int, code: LengthCode) -> bytes:
    """Return a length prefix; `length` must be below 2^32 for the 32-bit codes."""
    if code is not LengthCode.VARINT:
        return FIXED_LENGTHS[code].pack(length)
    out = bytearray()
    while length > 0x7F:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    out.append(length)
    return bytes(out)


def write_message(payload: bytes, framing: Framing, *, for_terminal: bool = False) -> bytes:
    """Return a payload in its framing; `envelope` writes JSON lines.

    A delimiter in the payload is not escaped. `for_terminal` writes control characters of the
    payload, other than tabs, as escapes.
    """
    if framing.shape is Shape.LENGTH:
        framed = encode_length(len(payload), framing.length_code) + payload
        return printable_bytes(framed, keep="\t") if for_terminal else framed
    if framing.shape is Shape.HEX:
        return binascii.hexlify(payload) + b"\n"
    if framing.shape is Shape.BASE64:
        return binascii.b2a_base64(payload)
    shown = printable_bytes(payload, keep="\t") if for_terminal else payload
    return shown + framing.delimiter


_LENGTH_CODES = "u32be|u32le|u64be|varint"
_LENGTH_CODE = OptionalValue(_LENGTH_CODES, "u32be")


def _framing(panel: Panel, *, delimiter_help: str, length_help: str) -> OptionGroup:
    """Return the options for reading or writing, given the texts in which they differ."""

    class _Options(Choice):
        delimiter: str | None = panel.option("-D, --delimiter STR", delimiter_help)
        null: bool = panel.flag("-0, --null", "Same as -D '\\0'.")
        length_prefixed: Literal["u32be", "u32le", "u64be", "varint"] | None = panel.option(
            f"-L, --length-prefixed [{_LENGTH_CODES}]",
            f"{length_help}; u32be if left out. Safe for any bytes.",
        )
        hex_lines: bool = panel.flag("--hex", "A hexadecimal line each.")
        base64_lines: bool = panel.flag("--base64", "A base64 line each.")

    return OptionGroup(
        _Options.parameters(),
        FramingChoice,
        {"-L": _LENGTH_CODE, "--length-prefixed": _LENGTH_CODE},
    )


READ_FRAMING = _framing(
    inputs,
    delimiter_help="What ends a message, escapes allowed; '' is as --whole. Default: \\n.",
    length_help="A length stands before each message",
)
WRITE_FRAMING = _framing(
    outputs,
    delimiter_help="Write this after each message, escapes allowed. Default: \\n.",
    length_help="Write the length before each message",
)
