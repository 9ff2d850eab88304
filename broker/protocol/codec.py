"""The seam for speed: every loop over the messages of a buffer is one of these functions.

Each works on a whole buffer and returns plain values. Two twins have them: `codec_python`, which
says what they do, and the compiled one, which serves where it is built; `PYLOGCTL_CODEC` forces
one. Nothing else walks messages one by one on a hot path.
"""

from __future__ import annotations

from broker.protocol.codec_choice import IS_COMPILED
from broker.protocol.message import (
    ENTRY_OVERHEAD_BYTES,
    LENGTH_BYTES,
    MAGIC0_HEADER_BYTES,
    MAGIC1_HEADER_BYTES,
    MAX_NESTING,
    Columns,
    CrcCheck,
    Decoded,
    DecodedText,
    EncodedText,
    Fault,
    OversizePieceError,
    Scan,
)

if IS_COMPILED:
    from broker.protocol._codec_compiled import (
        boundaries,
        count_delimiters,
        count_unfolded,
        decode,
        decode_columns,
        decode_delimited,
        encode,
        encode_delimited,
        scan,
        unfold,
    )
else:
    from broker.protocol._codec_python import (
        boundaries,
        count_delimiters,
        count_unfolded,
        decode,
        decode_columns,
        decode_delimited,
        encode,
        encode_delimited,
        scan,
        unfold,
    )

__all__ = [
    "ENTRY_OVERHEAD_BYTES",
    "IS_COMPILED",
    "LENGTH_BYTES",
    "MAGIC0_HEADER_BYTES",
    "MAGIC1_HEADER_BYTES",
    "MAX_NESTING",
    "Columns",
    "CrcCheck",
    "Decoded",
    "DecodedText",
    "EncodedText",
    "Fault",
    "OversizePieceError",
    "Scan",
    "boundaries",
    "count_delimiters",
    "count_unfolded",
    "decode",
    "decode_columns",
    "decode_delimited",
    "describe",
    "encode",
    "encode_delimited",
    "scan",
    "unfold",
]


def describe() -> str:
    """Return which twin runs and what computes its CRCs, for people."""
    if not IS_COMPILED:
        return "plain Python, CRC-32 by zlib"
    from broker.protocol import _codec

    return f"compiled, CRC-32 by {_codec.CRC_ENGINE}"
