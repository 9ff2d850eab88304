"""What the codec's functions return and raise, and the layout of an entry.

    | length int32 | magic int8 | attributes int8 (magic 1 only) | crc uint32 | payload |

`length` counts what follows it; the CRC covers the payload alone. Both twins of the codec make
these values, so nothing here knows how.

Fields of one entry of a message set, read with care, for the plain twin of the codec.

Each takes a view on the set and the position where the entry starts.

Unfolding of compressed wrappers, for either twin of the codec.

Owns the bounds on how deep wrappers nest and on what they unfold to. The loops over what is inside
are the twin's own.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from broker.errors import InvalidMessageError, MessageSizeTooLargeError
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, codec_of, decompress
from broker.protocol.primitives import INT32, Buffer

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


_CRC = struct.Struct(">I")


def fault_of_header(view: memoryview, position: int) -> Fault:
    """Say what is wrong with length or magic byte; NONE for a whole entry."""
    rest = len(view) - position
    if rest < LENGTH_BYTES:
        return Fault.PARTIAL
    (length,) = INT32.unpack_from(view, position)
    if length < MAGIC0_HEADER_BYTES:
        return Fault.SIZE
    if rest > LENGTH_BYTES:
        magic = view[position + LENGTH_BYTES]
        if magic > 1:
            return Fault.MAGIC
        if length < MAGIC0_HEADER_BYTES + magic:
            return Fault.SIZE
    return Fault.PARTIAL if LENGTH_BYTES + length > rest else Fault.NONE


def fault_of_content(view: memoryview, position: int) -> Fault:
    """Say what is wrong inside an entry whose header is good; NONE for nothing."""
    if codec_at(view, position) is None:
        return Fault.CODEC
    matches = crc32(payload_at(view, position)) == crc_at(view, position)
    return Fault.NONE if matches else Fault.CRC


def fault_at(view: memoryview, position: int) -> Fault:
    """Say what is wrong with an entry; NONE for a good one."""
    return fault_of_header(view, position) or fault_of_content(view, position)


def end_at(view: memoryview, position: int) -> int:
    """Return where the entry ends."""
    return position + LENGTH_BYTES + int(INT32.unpack_from(view, position)[0])


def attributes_at(view: memoryview, position: int) -> int:
    """Return its attributes; magic 0 has none and is plain."""
    return view[position + LENGTH_BYTES + 1] if view[position + LENGTH_BYTES] else 0


def codec_at(view: memoryview, position: int) -> Codec | None:
    """Return the codec that its attributes name, None if there is no such codec."""
    return codec_of(attributes_at(view, position))


def crc_at(view: memoryview, position: int) -> int:
    """Return the CRC that is stored with it."""
    return int(_CRC.unpack_from(view, _payload_start(view, position) - _CRC.size)[0])


def payload_at(view: memoryview, position: int) -> memoryview:
    """Return its payload, a view too."""
    return view[_payload_start(view, position) : end_at(view, position)]


def _payload_start(view: memoryview, position: int) -> int:
    magic = view[position + LENGTH_BYTES]
    return position + LENGTH_BYTES + MAGIC0_HEADER_BYTES + magic


Opener = Callable[[int, Buffer], list[bytes] | None]
"""Returns the payloads in a wrapper, given its codec and payload; None if it cannot be read."""

PayloadsOf = Callable[[Buffer, Opener], tuple[list[bytes], int, Fault]]
"""Returns the payloads of a message set, how far it is good, and why no further."""


def unfold_with(payloads_of: PayloadsOf, codec: int, payload: Buffer) -> list[bytes]:
    """Return the payloads inside a wrapper, whatever wrappers it holds in turn.

    Args:
        payloads_of: the twin's loop over a message set.
        codec: how the wrapper is compressed, not `NONE`.
        payload: the wrapper's payload.

    Raises:
        InvalidMessageError: it does not decompress, an inner message is invalid, the first inner
            message is incomplete, all of it unfolds to more than `MAX_DECOMPRESSED_BYTES`, or
            wrappers nest deeper than `MAX_NESTING`. A partial inner tail is ignored.

    Source: Kafka 0.7 `ByteBufferMessageSet.internalIterator`.
    """
    room = _Room(MAX_DECOMPRESSED_BYTES)

    def unfold(codec: int, payload: Buffer, depth: int) -> list[bytes]:
        data = room.open(codec, payload, depth)
        found, valid_bytes, fault = payloads_of(
            data, lambda inner_codec, inner: unfold(inner_codec, inner, depth + 1)
        )
        _check_inner(fault, valid_bytes, len(data))
        return found

    return unfold(codec, payload, 1)


def count_with(
    scan: Callable[[Buffer], Scan], codec: int, payload: Buffer, max_bytes: int
) -> tuple[int, int]:
    """Return how many messages `unfold_with` would give, and to how many bytes it unfolded them.

    Args:
        scan: the twin's scan.
        codec: how the wrapper is compressed, not `NONE`.
        payload: the wrapper's payload.
        max_bytes: the most to unfold.

    Raises:
        InvalidMessageError: as `unfold_with`.
        UnfoldsTooFarError: there is more than `max_bytes` in it.
    """
    room = _Room(max_bytes)

    def count(codec: int, payload: Buffer, depth: int) -> int:
        data = room.open(codec, payload, depth)
        found = scan(data)
        _check_inner(found.fault, found.valid_bytes, len(data))
        inner = (_wrapper_at(data, position) for position in found.wrappers)
        plain_count = found.entry_count - len(found.wrappers)
        return plain_count + sum(count(*wrapper, depth + 1) for wrapper in inner)

    message_count = count(codec, payload, 1)
    return message_count, max_bytes - room.left_bytes


class _Room:
    """What one outermost wrapper may still unfold to."""

    def __init__(self, max_bytes: int) -> None:
        self.left_bytes = max_bytes

    def open(self, codec: int, payload: Buffer, depth: int) -> bytes:
        if depth > MAX_NESTING:
            raise InvalidMessageError(f"compressed messages nest deeper than {MAX_NESTING}")
        data = decompress(Codec(codec), payload, max_bytes=self.left_bytes)
        self.left_bytes -= len(data)
        return data


def _check_inner(fault: Fault, position: int, size: int) -> None:
    """Raise for an inner set that ends badly; up to 3 bytes, or a partial tail, are no harm."""
    if fault and not (fault is Fault.PARTIAL and (position or size < LENGTH_BYTES)):
        raise InvalidMessageError(
            f"a compressed set has a bad message at byte {position}: {fault.name}"
        )


def _wrapper_at(data: bytes, position: int) -> tuple[int, memoryview]:
    """Return codec and payload of a wrapper; it is of magic 1, as magic 0 has no attributes."""
    start = position + LENGTH_BYTES
    end = start + INT32.unpack_from(data, position)[0]
    return codec_of(data[start + 1]) or Codec.NONE, memoryview(data)[
        start + MAGIC1_HEADER_BYTES : end
    ]
