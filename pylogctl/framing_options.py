"""The options that choose a framing, the same ones wherever messages are read or written."""

from __future__ import annotations

from typing import Literal

from pylogctl.framing import FramingChoice
from pylogctl.options import OptionalValue, OptionGroup, shared_option

_LENGTH_CODES = "u32be|u32le|u64be|varint"
_LENGTH_CODE = OptionalValue(_LENGTH_CODES, "u32be")


def _framing(panel: str, *, delimiter: str, length_prefixed: str) -> OptionGroup:
    """Return the group for one direction, given the texts in which they differ."""
    return OptionGroup(
        (
            shared_option(
                "delimiter",
                str | None,
                None,
                "-D",
                "--delimiter",
                metavar="STR",
                panel=panel,
                help=delimiter,
            ),
            shared_option(
                "null", bool, False, "-0", "--null", panel=panel, help="Same as -D '\\0'."
            ),
            shared_option(
                "length_prefixed",
                Literal["u32be", "u32le", "u64be", "varint"] | None,
                None,
                "-L",
                "--length-prefixed",
                metavar=f"[{_LENGTH_CODES}]",
                panel=panel,
                help=f"{length_prefixed}; u32be if left out. Safe for any bytes.",
            ),
            shared_option(
                "hex_lines", bool, False, "--hex", panel=panel, help="A hexadecimal line each."
            ),
            shared_option(
                "base64_lines", bool, False, "--base64", panel=panel, help="A base64 line each."
            ),
        ),
        FramingChoice,
        {"-L": _LENGTH_CODE, "--length-prefixed": _LENGTH_CODE},
    )


READ_FRAMING = _framing(
    "Input",
    delimiter="What ends a message, escapes allowed; '' makes one of all. Default: \\n.",
    length_prefixed="A length stands before each message",
)
WRITE_FRAMING = _framing(
    "Output",
    delimiter="Write this after each message, escapes allowed. Default: \\n.",
    length_prefixed="Write the length before each message",
)
