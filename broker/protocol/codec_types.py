"""What the codec's functions return and raise, and the layout of an entry.

    | length int32 | magic int8 | attributes int8 (magic 1 only) | crc uint32 | payload |

`length` counts what follows it; the CRC covers the payload alone. Both twins of the codec make
these values, so nothing here knows how.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

from broker.errors import MessageSizeTooLargeError

LENGTH_BYTES = 4
MAGIC0_HEADER_BYTES = 5
"""Bytes of a magic 0 message before its payload, without the length field."""
MAGIC1_HEADER_BYTES = 6
"""Bytes of a magic 1 message before its payload, without the length field."""
ENTRY_OVERHEAD_BYTES = LENGTH_BYTES + MAGIC1_HEADER_BYTES
"""What a message takes on the wire and on disk besides its payload."""
MAX_PAYLOAD_BYTES = 2**31 - 1 - MAGIC1_HEADER_BYTES
"""The largest payload whose length field is still an int32."""
MAX_VALUE_BYTES = 2**31 - 1
"""What the int32 value offsets of `Columns` can reach."""
MAX_NESTING = 8
"""How deep wrappers may lie in one another. 0.7 has no limit, but some unfold to themselves."""


class Fault(IntEnum):
    """Why a walk over a message set ended; `NONE` is the end of the buffer."""

    NONE = 0
    PARTIAL = 1
    """The last entry is longer than the bytes that are left."""
    SIZE = 2
    """A length is negative, or too small for a header."""
    MAGIC = 3
    """A magic byte is neither 0 nor 1."""
    CODEC = 4
    """The attributes name no codec."""
    CRC = 5
    """A payload does not have the CRC stored with it."""
    COMPRESSED = 6
    """A wrapper does not decompress, or what is in it is no whole message set."""


class CrcCheck(IntEnum):
    """What `decode_columns` does about entries that are not what their header says."""

    STOP = 0
    """End at the first one, with its fault."""
    MARK = 1
    """Give an entry with a fault of `CRC`, `CODEC` or `COMPRESSED` as one row, its payload as it
    is stored, and a 0 in `crc_ok`."""
    OFF = 2
    """Compute no CRC of outer entries; what is inside wrappers is checked all the same."""


class Scan(NamedTuple):
    """What `scan` found.

    `valid_bytes` is where the first fault lies, or the end; `entry_count` counts the outer
    entries before it, `wrappers` the positions of the compressed ones among them, and
    `max_payload_bytes` is the largest outer payload (0 without entries).
    """

    valid_bytes: int
    entry_count: int
    fault: Fault
    wrappers: list[int]
    max_payload_bytes: int


class EncodedText(NamedTuple):
    """What `encode_delimited` made.

    `message_set` holds `message_count` messages out of the first `consumed` bytes of the input;
    `cuts` are the ends of its batches, the last one the end of the set, and `counts` how many
    messages each batch has.
    """

    message_set: bytes
    consumed: int
    message_count: int
    cuts: list[int]
    counts: list[int]


class Decoded(NamedTuple):
    """What `decode` found: messages as (offset, next offset, payload) before the first fault.

    `valid_bytes` is how far the outer entries were good.
    """

    messages: list[tuple[int, int, bytes]]
    valid_bytes: int
    fault: Fault


class DecodedText(NamedTuple):
    """What `decode_delimited` made: `message_count` payloads, each followed by the delimiter.

    `valid_bytes` is how far the outer entries were written out. A limit that ends inside a wrapper
    leaves the wrapper out of it, as a reader can only resume at its start.
    """

    text: bytes
    valid_bytes: int
    message_count: int
    fault: Fault


class Columns(NamedTuple):
    """What `decode_columns` made: a row for each message, each column in a buffer of its own.

    Numbers are in the byte order of the machine, as Arrow wants them, so that `pyarrow.py_buffer`
    takes each buffer as it is.

    Attributes:
        message_count: the number of rows.
        valid_bytes: how far the outer entries were taken.
        fault: why no further; `NONE` also where the limit on value bytes ended it.
        offsets: int64, the start of a message's outer entry.
        next_offsets: int64, where to resume behind it; all messages of a wrapper but the last have
            the wrapper's start.
        inners: int32, the place inside the wrapper, 0 for a plain message.
        attributes: uint8, those of the outer entry; 0 for magic 0.
        crcs: uint32, the CRC stored with the message itself.
        value_offsets: int32, one more than rows: where each payload starts in `values`.
        values: the payloads, back to back.
        crc_ok: one bit a row, the lowest of a byte first, set where nothing is wrong; empty unless
            asked for with `CrcCheck.MARK`.
    """

    message_count: int
    valid_bytes: int
    fault: Fault
    offsets: bytes
    next_offsets: bytes
    inners: bytes
    attributes: bytes
    crcs: bytes
    value_offsets: bytes
    values: bytes
    crc_ok: bytes


class OversizePieceError(MessageSizeTooLargeError):
    """A piece of delimited text makes too large a message.

    Args:
        index: which piece of the buffer, from 0.
        position: where in the buffer it starts, in bytes.
        size: its length in bytes.
        limit: the largest length allowed.
    """

    def __init__(self, index: int, position: int, size: int, limit: int) -> None:
        super().__init__(
            f"message {index} (byte {position}) has {size} bytes; the limit is {limit}"
        )
        self.index = index
        self.position = position
        self.size = size
        self.limit = limit
