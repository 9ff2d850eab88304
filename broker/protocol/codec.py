"""The codec: every loop over the messages or requests of a buffer is one of these functions.

Each works on a whole buffer and returns plain values. Two engines implement them: `_codec_python`,
which documents each function and runs everywhere, and the one in C (`native/`), which runs where it
is built. `PYLOGCTL_CODEC` forces one of them. No hot path loops over messages elsewhere.
"""

from __future__ import annotations

import os

from broker.errors import ConfigError
from broker.protocol.message import (
    ENTRY_OVERHEAD_BYTES,
    MAX_NESTING,
    Columns,
    CrcCheck,
    Decoded,
    DecodedText,
    EncodedText,
    Fault,
    OversizePieceError,
    Scan,
    SingleAppends,
)

VARIABLE = "PYLOGCTL_CODEC"
"""The environment variable that forces an engine: `python` or `compiled`."""
# the compiled engine must have the same number: an older build may be in this folder
_INTERFACE = 6


def _is_compiled() -> bool:
    """Return whether the compiled engine runs; `ConfigError` if it is forced and missing."""
    wanted = os.environ.get(VARIABLE, "")
    if wanted not in ("", "python", "compiled"):
        raise ConfigError(f"{VARIABLE} is {wanted!r}; set it to python or compiled, or unset it")
    if wanted == "python":
        return False
    problem = _problem_of_compiled()
    if problem and wanted:
        raise ConfigError(
            f"{VARIABLE} asks for the compiled codec, but {problem}; "
            "install again where there is a C compiler, or unset the variable"
        )
    return not problem


def _problem_of_compiled() -> str:
    """Return why the compiled engine cannot run; empty if it can."""
    try:
        from broker.protocol import _codec
    except (ImportError, AttributeError) as error:  # AttributeError: it misses one of our types
        return f"it is not built ({error})"
    if _codec.INTERFACE != _INTERFACE:
        return "it was built from sources of another version"
    return ""


IS_COMPILED = _is_compiled()

if IS_COMPILED:
    from broker.protocol._codec_compiled import (
        Message,
        boundaries,
        count_delimiters,
        count_unfolded,
        decode,
        decode_columns,
        decode_delimited,
        decode_messages,
        encode,
        encode_delimited,
        find_entry,
        publish_responses,
        scan,
        single_appends,
        unfold,
    )
else:
    from broker.protocol._codec_python import (
        Message,
        boundaries,
        count_delimiters,
        count_unfolded,
        decode,
        decode_columns,
        decode_delimited,
        decode_messages,
        encode,
        encode_delimited,
        find_entry,
        publish_responses,
        scan,
        single_appends,
        unfold,
    )

__all__ = [
    "ENTRY_OVERHEAD_BYTES",
    "IS_COMPILED",
    "MAX_NESTING",
    "Columns",
    "CrcCheck",
    "Decoded",
    "DecodedText",
    "EncodedText",
    "Fault",
    "Message",
    "OversizePieceError",
    "Scan",
    "SingleAppends",
    "boundaries",
    "count_delimiters",
    "count_unfolded",
    "decode",
    "decode_columns",
    "decode_delimited",
    "decode_messages",
    "describe",
    "encode",
    "encode_delimited",
    "find_entry",
    "publish_responses",
    "scan",
    "single_appends",
    "unfold",
]


def describe() -> str:
    """Return a text that names the engine and its CRC routine."""
    if not IS_COMPILED:
        return "plain Python, CRC-32 by zlib"
    from broker.protocol import _codec

    return f"compiled, CRC-32 by {_codec.CRC_ENGINE}"
