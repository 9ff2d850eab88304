"""The seam for speed: every loop over the messages of a buffer is one of these functions.

Each works on a whole buffer and returns plain values, so that a compiled twin can stand in for
it. Nothing else walks messages one by one on a hot path.

An entry of a message set:

    | length int32 | magic int8 | attributes int8 (magic 1 only) | crc uint32 | payload |

`length` counts what follows it; the CRC covers the payload alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from enum import IntEnum
from itertools import accumulate
from typing import NamedTuple

from broker.errors import InvalidMessageError, MessageSizeTooLargeError
from broker.protocol.checksum import crc32
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, codec_of, decompress
from broker.protocol.primitives import INT32, Buffer

MAX_NESTING = 8
_SHORT_BYTES = 500
_COPY_MAX_BYTES = 4 << 20

_MAGIC1 = struct.Struct(">iBBI")
_MAGIC0 = struct.Struct(">iBI")
_KIND = struct.Struct(">iHI")
_PLAIN = 0x0100
"""Magic 1 and attributes 0 taken together, as nearly all entries have them."""

LENGTH_BYTES = 4
MAGIC0_HEADER_BYTES = 5
"""Bytes of a magic 0 message before its payload, without the length field."""
MAGIC1_HEADER_BYTES = 6
"""Bytes of a magic 1 message before its payload, without the length field."""
ENTRY_OVERHEAD_BYTES = LENGTH_BYTES + MAGIC1_HEADER_BYTES
"""What a message takes on the wire and on disk besides its payload."""


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
    `cuts` are the ends of its batches, the last one the end of the set.
    """

    message_set: bytes
    consumed: int
    message_count: int
    cuts: list[int]


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


def encode(payloads: Iterable[Buffer]) -> bytes:
    """Return the message set, magic 1 and uncompressed, of these payloads."""
    pack = _MAGIC1.pack
    parts: list[Buffer] = []
    add = parts.append
    for payload in payloads:
        add(pack(len(payload) + MAGIC1_HEADER_BYTES, 1, 0, crc32(payload)))
        add(payload)
    return b"".join(parts)


def encode_delimited(
    buffer: Buffer, delimiter: bytes, *, max_payload_bytes: int, batch_count: int
) -> EncodedText:
    """Make a message of each delimited piece of text.

    Args:
        buffer: text; what follows its last delimiter is left for the next call.
        delimiter: at least one byte; it is not part of a message.
        max_payload_bytes: the largest payload allowed.
        batch_count: how many messages one batch has at most, at least 1.

    Raises:
        MessageSizeTooLargeError: a piece is too large; the text names its index in the buffer,
            from 0, and its byte position.
    """
    pieces = bytes(buffer).split(delimiter)
    rest = pieces.pop()
    sizes = list(map(len, pieces))
    if sizes and max(sizes) > max_payload_bytes:
        index = next(i for i, size in enumerate(sizes) if size > max_payload_bytes)
        position = sum(sizes[:index]) + index * len(delimiter)
        raise OversizePieceError(index, position, sizes[index], max_payload_bytes)
    ends = list(accumulate([size + ENTRY_OVERHEAD_BYTES for size in sizes]))
    cuts = ends[batch_count - 1 :: batch_count]
    if ends and (not cuts or cuts[-1] != ends[-1]):
        cuts.append(ends[-1])
    return EncodedText(encode(pieces), len(buffer) - len(rest), len(pieces), cuts)


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


def scan(buffer: Buffer) -> Scan:
    """Check sizes, magic bytes, codecs and CRCs of the outer entries of a message set.

    Args:
        buffer: starts on an entry; may end inside one.

    Returns:
        How far the buffer is good, and why not further. Never raises for any bytes.
    """
    view = memoryview(buffer)
    data = _to_slice(buffer)
    size = len(view)
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - ENTRY_OVERHEAD_BYTES
    wrappers: list[int] = []
    position = count = largest = 0
    fault = Fault.NONE
    while position <= last_start:
        length, kind, crc = unpack(data, position)
        end = position + 4 + length
        if kind != _PLAIN or length < 6 or end > size:
            fault = _fault_of_entry(view, position)
            if fault:
                break
            if _codec_at(view, position):
                wrappers.append(position)
            if kind < _PLAIN:
                length += 1  # magic 0 has no attributes: the payload is larger by one
        elif checksum(data[position + 10 : end]) != crc:
            fault = Fault.CRC
            break
        if length > largest:
            largest = length
        position = end
        count += 1
    else:
        if position < size:  # one last magic 0 entry of 9 bytes may be left, or a tail
            fault = _fault_of_entry(view, position)
            if not fault:
                position, count = size, count + 1
    return Scan(position, count, fault, wrappers, max(0, largest - MAGIC1_HEADER_BYTES))


def _to_slice(buffer: Buffer) -> bytes | memoryview:
    """Return a buffer in the form that its entries are sliced off fastest.

    Slices of bytes cost less than views as long as they are short; the first entry stands for
    all. Bytes that are no `bytes` are copied for it, within reason.
    """
    view = memoryview(buffer)
    is_short = len(view) < LENGTH_BYTES or INT32.unpack_from(view)[0] <= _SHORT_BYTES
    if not is_short or len(view) > _COPY_MAX_BYTES:
        return view
    return buffer if isinstance(buffer, bytes) else bytes(view)


def _fault_of_entry(view: memoryview, position: int) -> Fault:
    """Say what is wrong with one entry, carefully; NONE for a good one."""
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
    if LENGTH_BYTES + length > rest:
        return Fault.PARTIAL
    if view[position + LENGTH_BYTES]:
        _, _, attributes, crc = _MAGIC1.unpack_from(view, position)
        if codec_of(attributes) is None:
            return Fault.CODEC
    else:
        _, _, crc = _MAGIC0.unpack_from(view, position)
    payload = _payload(view, position, position + LENGTH_BYTES + length)
    return Fault.NONE if crc32(payload) == crc else Fault.CRC


def _payload(view: memoryview, position: int, end: int) -> memoryview:
    header = LENGTH_BYTES + MAGIC0_HEADER_BYTES + view[position + LENGTH_BYTES]
    return view[position + header : end]


def boundaries(buffer: Buffer) -> list[int]:
    """Return where the entries of a message set start, by the length chain alone.

    Args:
        buffer: starts on an entry; may end inside one.

    Returns:
        The starts of all whole entries and the end of the last one: at least `[0]`. The walk ends
        early at a length that is too small for a header.
    """
    unpack = INT32.unpack_from
    position = 0
    last_start = len(buffer) - LENGTH_BYTES - MAGIC0_HEADER_BYTES
    end_of_buffer = len(buffer)
    found = [0]
    add = found.append
    while position <= last_start:
        (length,) = unpack(buffer, position)
        position += 4 + length
        if length < MAGIC0_HEADER_BYTES or position > end_of_buffer:
            break
        add(position)
    return found


def decode(buffer: Buffer, base_offset: int) -> Decoded:
    """Return the messages of a message set, compressed ones unfolded.

    Args:
        buffer: starts on an entry; a partial entry at its end is left alone.
        base_offset: the log offset of its first byte.

    Returns:
        Messages up to the first fault. Inside a wrapper all messages have the wrapper's start as
        their offset, and all but the last have it as their next offset too (kafka07.md 2.5).
    """
    view = memoryview(buffer)
    data = buffer if isinstance(buffer, bytes) else bytes(buffer)
    size = len(data)
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - ENTRY_OVERHEAD_BYTES
    messages: list[tuple[int, int, bytes]] = []
    add = messages.append
    position = 0
    offset = base_offset
    while position <= last_start:
        length, kind, crc = unpack(data, position)
        end = position + 4 + length
        if kind != _PLAIN or length < 6 or end > size:
            fault, inner = _unfold_entry(view, position)
            if fault:
                return Decoded(messages, position, fault)
            messages += [(offset, offset, payload) for payload in inner[:-1]]
            next_offset = base_offset + end
            messages += [(offset, next_offset, payload) for payload in inner[-1:]]
            offset = next_offset
        else:
            payload = data[position + 10 : end]
            if checksum(payload) != crc:
                return Decoded(messages, position, Fault.CRC)
            add((offset, (offset := base_offset + end), payload))
        position = end
    if position == size:
        return Decoded(messages, position, Fault.NONE)
    fault, inner = _unfold_entry(view, position)
    if fault:
        return Decoded(messages, position, fault)
    messages += [(offset, base_offset + size, payload) for payload in inner]
    return Decoded(messages, size, Fault.NONE)


def decode_delimited(buffer: Buffer, delimiter: bytes, limit: int = -1) -> DecodedText:
    """Write the payloads of a message set out as delimited text.

    Args:
        buffer: starts on an entry; a partial entry at its end is left alone.
        delimiter: written after each payload; may be empty.
        limit: the most payloads to write, or -1 for all.
    """
    view = memoryview(buffer)
    data = _to_slice(buffer)
    size = len(view)
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - ENTRY_OVERHEAD_BYTES
    parts: list[Buffer] = []
    add = parts.append
    position = 0
    fault = Fault.NONE
    while position != size and len(parts) != limit:
        if position <= last_start:
            length, kind, crc = unpack(data, position)
            end = position + 4 + length
            if kind == _PLAIN and length >= 6 and end <= size:
                payload = data[position + 10 : end]
                if checksum(payload) != crc:
                    fault = Fault.CRC
                    break
                add(payload)
                position = end
                continue
        fault, inner = _unfold_entry(view, position)
        if fault:
            break
        if 0 <= limit < len(parts) + len(inner):
            parts += inner[: limit - len(parts)]
            break
        parts += inner
        position += LENGTH_BYTES + INT32.unpack_from(view, position)[0]
    count = len(parts)
    if count:
        add(b"")
    return DecodedText(delimiter.join(parts), position, count, fault)


def _unfold_entry(view: memoryview, position: int) -> tuple[Fault, list[bytes]]:
    """Return the payloads of the entry at `position`, or what is wrong with it."""
    fault = _fault_of_entry(view, position)
    if fault:
        return fault, []
    end = position + LENGTH_BYTES + INT32.unpack_from(view, position)[0]
    payload = _payload(view, position, end)
    codec = _codec_at(view, position)
    if not codec:
        return Fault.NONE, [bytes(payload)]
    try:
        return Fault.NONE, unfold(codec, payload)
    except InvalidMessageError:
        return Fault.COMPRESSED, []


def unfold(codec: Codec, payload: Buffer) -> list[bytes]:
    """Return the payloads inside a wrapper, whatever wrappers it holds in turn.

    Args:
        codec: how the wrapper is compressed, not `NONE`.
        payload: the wrapper's payload.

    Raises:
        InvalidMessageError: it does not decompress, an inner message is invalid, the first inner
            message is incomplete, all of it unfolds to more than `MAX_DECOMPRESSED_BYTES`, or
            wrappers nest deeper than `MAX_NESTING` (0.7 has no limit, but some containers unfold
            to themselves). A partial inner tail is ignored.

    Source: Kafka 0.7 `ByteBufferMessageSet.internalIterator`.
    """
    payloads: list[bytes] = []
    _unfold_into(payloads, codec, payload, depth=1, room_bytes=MAX_DECOMPRESSED_BYTES)
    return payloads


def count_unfolded(codec: Codec, payload: Buffer) -> int:
    """Return how many messages `unfold` would give, without making them.

    Raises:
        InvalidMessageError: as `unfold`.
    """
    return _count_into(codec, payload, depth=1, room_bytes=MAX_DECOMPRESSED_BYTES)[0]


def _count_into(codec: Codec, payload: Buffer, *, depth: int, room_bytes: int) -> tuple[int, int]:
    """Return the number of messages in one wrapper, and how much of the room is left."""
    data = _open_wrapper(codec, payload, depth, room_bytes)
    room_bytes -= len(data)
    found = scan(data)
    _check_inner(found.fault, found.valid_bytes, len(data))
    count = found.entry_count - len(found.wrappers)
    view = memoryview(data)
    for position in found.wrappers:
        end = position + LENGTH_BYTES + INT32.unpack_from(view, position)[0]
        inner, room_bytes = _count_into(
            _codec_at(view, position) or Codec.NONE,
            _payload(view, position, end),
            depth=depth + 1,
            room_bytes=room_bytes,
        )
        count += inner
    return count, room_bytes


def _open_wrapper(codec: Codec, payload: Buffer, depth: int, room_bytes: int) -> bytes:
    if depth > MAX_NESTING:
        raise InvalidMessageError(f"compressed messages nest deeper than {MAX_NESTING}")
    return decompress(codec, payload, max_bytes=room_bytes)


def _check_inner(fault: Fault, position: int, size: int) -> None:
    """Raise for an inner set that ends badly; up to 3 bytes, or a partial tail, are no harm."""
    if fault and not (fault is Fault.PARTIAL and (position or size < LENGTH_BYTES)):
        raise InvalidMessageError(
            f"a compressed set has a bad message at byte {position}: {fault.name}"
        )


def _unfold_into(
    payloads: list[bytes], codec: Codec, payload: Buffer, *, depth: int, room_bytes: int
) -> int:
    """Append the payloads of one wrapper; return how much of the room is left."""
    data = _open_wrapper(codec, payload, depth, room_bytes)
    view = memoryview(data)
    size = len(data)
    room_bytes -= size
    unpack = _KIND.unpack_from
    checksum = crc32
    last_start = size - ENTRY_OVERHEAD_BYTES
    position = 0
    while size - position >= LENGTH_BYTES:
        if position <= last_start:
            length, kind, crc = unpack(data, position)
            end = position + 4 + length
            if kind == _PLAIN and length >= 6 and end <= size:
                inner = data[position + 10 : end]
                if checksum(inner) == crc:
                    payloads.append(inner)
                    position = end
                    continue
        fault = _fault_of_entry(view, position)
        _check_inner(fault, position, size)
        if fault:
            break
        end = position + LENGTH_BYTES + INT32.unpack_from(view, position)[0]
        inner_codec = _codec_at(view, position)
        if inner_codec:
            room_bytes = _unfold_into(
                payloads,
                inner_codec,
                _payload(view, position, end),
                depth=depth + 1,
                room_bytes=room_bytes,
            )
        else:
            payloads.append(bytes(_payload(view, position, end)))
        position = end
    return room_bytes


def _codec_at(view: memoryview, position: int) -> Codec | None:
    """Return the codec of the entry at `position`; magic 0 has no attributes and is plain."""
    if not view[position + LENGTH_BYTES]:
        return Codec.NONE
    return codec_of(view[position + LENGTH_BYTES + 1])
