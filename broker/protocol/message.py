"""The layout of an entry of a message set, and what both codec engines share.

    | length int32 | magic int8 | attributes int8 (magic 1 only) | crc uint32 | payload |

`length` counts the bytes that follow it; the CRC covers the payload alone. Other modules outside
the codec do not know these fields: they call the functions here, or `message_set`.

Also here: the faults that can end a walk over a set, the results of the codec's functions, and the
unfolding of wrappers with its bounds. Nothing depends on which engine runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from broker.errors import InvalidMessageError, MessageSizeTooLargeError
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, codec_of, decompress
from broker.protocol.primitives import INT32, Buffer

LENGTH_BYTES = 4
CRC_BYTES = 4
# bytes of an entry before its payload, without the length field, for magic 0 and 1
MAGIC0_HEADER_BYTES = 5
MAGIC1_HEADER_BYTES = 6
MIN_ENTRY_BYTES = LENGTH_BYTES + MAGIC0_HEADER_BYTES
# bytes a message takes on the wire and on disk besides its payload
ENTRY_OVERHEAD_BYTES = LENGTH_BYTES + MAGIC1_HEADER_BYTES
MAX_PAYLOAD_BYTES = 2**31 - 1 - MAGIC1_HEADER_BYTES  # the length field is an int32
MAX_VALUE_BYTES = 2**31 - 1  # so that the value offsets of `Columns` are int32
MAX_NESTING = 8  # of wrappers; 0.7 has no limit, but some data unfolds to itself

_CRC = struct.Struct(">I")


class Fault(IntEnum):
    """Why a walk over a message set ended; `NONE` is the end of the buffer."""

    NONE = 0
    PARTIAL = 1  # the last entry is longer than the bytes that are left
    SIZE = 2  # a length is negative, or too small for a header
    MAGIC = 3  # a magic byte is neither 0 nor 1
    CODEC = 4  # the attributes name no codec
    CRC = 5  # a payload does not have the CRC stored with it
    COMPRESSED = 6  # a wrapper does not decompress, or its content is not a whole message set
    OFFSETS = 7  # a record batch's offset, last offset delta and record count are impossible
    RECORDS = 8  # the records of a batch do not fill it exactly, or contradict its header
    TIMESTAMPS = 9  # the max timestamp of a batch is not that of its records; only verified


class ProducerStamp(NamedTuple):
    """What makes a message set known when it is sent again, as the head of a record batch does."""

    producer_id: int
    producer_epoch: int
    base_sequence: int  # of its first message; those in wrappers count singly
    message_count: int

    @property
    def is_transactional(self) -> bool:
        """Return False: only batches can be."""
        return False

    @property
    def last_offset_delta(self) -> int:
        """Return how many sequences follow the first one."""
        return self.message_count - 1


class CrcCheck(IntEnum):
    """How `decode_columns` treats entries that do not match their header."""

    STOP = 0  # end at the first one, with its fault
    # return an entry with a fault of `CRC`, `CODEC` or `COMPRESSED` as one row: its payload as
    # stored, and a 0 in `crc_ok`
    MARK = 1
    OFF = 2  # compute no CRC of outer entries, only those of messages inside wrappers


class Scan(NamedTuple):
    """Result of `scan`."""

    valid_bytes: int  # the position of the first fault, or the end
    entry_count: int  # outer entries before it
    fault: Fault
    wrappers: list[int]  # positions of the wrappers among those entries
    max_payload_bytes: int  # of an outer entry; 0 without entries


SingleAppends = tuple[int, bytes, bytes, bytes, Buffer, bool]
"""Result of `single_appends`: requests that differ in correlation id and set only.

The number of the frame behind them; their head, which is what stands between correlation id, or
start, and size of the set; their correlation ids as on the wire, none of 0.7's requests; the sizes
of the sets, likewise; the sets, joined; and whether each has whole entries only, by their lengths.
"""


class EncodedText(NamedTuple):
    """Result of `encode_delimited`."""

    message_set: bytes
    consumed: int  # bytes of the input that are encoded
    message_count: int
    cuts: list[int]  # the end of each batch in the set; the last is the end of the set
    counts: list[int]  # messages in each batch


class Decoded(NamedTuple):
    """Result of `decode`: messages as (offset, next offset, payload) before the first fault."""

    messages: list[tuple[int, int, bytes]]
    valid_bytes: int  # the end of the last good outer entry
    fault: Fault


class DecodedText(NamedTuple):
    """Result of `decode_delimited`: `message_count` payloads, each followed by the delimiter."""

    text: bytes
    # The end of the last outer entry written out. A wrapper in which a limit ended is not counted,
    # as a reader can only resume at its start.
    valid_bytes: int
    message_count: int
    fault: Fault


class Columns(NamedTuple):
    """Result of `decode_columns`: one row for each message, each column in a buffer of its own.

    Numbers are in the byte order of the machine, so that `pyarrow.py_buffer` takes each buffer
    without a copy. Columns that were not requested are empty.
    """

    message_count: int  # rows
    valid_bytes: int  # the end of the last outer entry taken
    fault: Fault  # why the walk ended there; `NONE` also at the limit on value bytes
    offsets: bytes  # int64, the start of a message's outer entry
    # int64, where to resume after it; the wrapper's start for all its messages but the last
    next_offsets: bytes
    inners: bytes  # int32, the index inside the wrapper, 0 for a plain message
    attributes: bytes  # uint8, those of the outer entry; 0 for magic 0
    crcs: bytes  # uint32, the CRC stored with the message itself
    value_offsets: bytes  # int32, one more than rows: where each payload starts in `values`
    values: bytes  # the payloads, back to back
    # one bit a row, the lowest of a byte first, set where the message is good; empty unless
    # requested with `CrcCheck.MARK`
    crc_ok: bytes


COLUMN_NAMES = Columns._fields[3:]
"""Those of the buffers of `Columns`, in their order."""


class OversizePieceError(MessageSizeTooLargeError):
    """A line of delimited text is too large for a message.

    `index` is its number in the buffer, from 0; `position` its start, `size` its length in bytes.
    """

    def __init__(self, index: int, position: int, size: int, limit: int) -> None:
        super().__init__(
            f"message {index} (byte {position}) has {size} bytes; the limit is {limit}", limit
        )
        self.index = index
        self.position = position
        self.size = size


class EntryHeader(NamedTuple):
    """The fields of an entry before its payload, as stored, valid or not."""

    length: int
    magic: int
    attributes: int
    crc: int
    payload_position: int
    end: int

    @property
    def is_plausible(self) -> bool:
        """Return whether magic byte and length are possible together."""
        return self.magic <= 1 and self.length >= MAGIC0_HEADER_BYTES + self.magic


def parse_header(data: bytes, position: int) -> EntryHeader | None:
    """Return the header of an entry; None if the data ends inside it."""
    # `data` is the entry's first `ENTRY_OVERHEAD_BYTES`, or fewer at the end of a file; `position`,
    # where the entry starts, is added to the positions in the header
    if len(data) < MIN_ENTRY_BYTES:
        return None
    (length,) = INT32.unpack_from(data)
    magic = data[LENGTH_BYTES]
    header_bytes = MIN_ENTRY_BYTES + bool(magic)
    return EntryHeader(
        length=length,
        magic=magic,
        attributes=data[LENGTH_BYTES + 1] if magic else 0,
        crc=int.from_bytes(data[:header_bytes][-CRC_BYTES:], "big"),
        payload_position=position + header_bytes,
        end=position + LENGTH_BYTES + length,
    )


def entry_bytes(buffer: Buffer, position: int = 0) -> int:
    """Return the size of an entry by its length field alone, which the buffer must hold."""
    # a damaged length gives any number below 2**31 + 4, negative ones included
    return LENGTH_BYTES + int(INT32.unpack_from(buffer, position)[0])


def entry_end(buffer: Buffer, position: int) -> int:
    """Return where an entry ends by its length field alone, which the buffer must hold."""
    return position + LENGTH_BYTES + int(INT32.unpack_from(buffer, position)[0])


def has_length(buffer: Buffer, position: int = 0) -> bool:
    """Return whether the whole length field of an entry is in the buffer."""
    return len(buffer) - position >= LENGTH_BYTES


def payload_sizes(buffer: memoryview, boundaries: list[int]) -> tuple[list[int], list[int]]:
    """Return the magic bytes and the payload sizes of the entries between boundaries."""
    magics = [buffer[start + LENGTH_BYTES] for start in boundaries[:-1]]
    sizes = [
        end - start - MIN_ENTRY_BYTES - magic
        for (start, end), magic in zip(pairwise(boundaries), magics, strict=True)
    ]
    return magics, sizes


def fault_of_header(view: memoryview, position: int) -> Fault:
    """Return the fault in an entry's length or magic byte; NONE for a whole entry."""
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
    """Return the fault in the codec or CRC of an entry whose header is good."""
    if codec_at(view, position) is None:
        return Fault.CODEC
    matches = crc32(payload_at(view, position)) == crc_at(view, position)
    return Fault.NONE if matches else Fault.CRC


def fault_at(view: memoryview, position: int) -> Fault:
    """Return the fault of an entry; NONE for a good one."""
    return fault_of_header(view, position) or fault_of_content(view, position)


def attributes_at(view: memoryview, position: int) -> int:
    """Return an entry's attributes; 0 for magic 0, which has none."""
    return view[position + LENGTH_BYTES + 1] if view[position + LENGTH_BYTES] else 0


def codec_at(view: memoryview, position: int) -> Codec | None:
    """Return the codec an entry's attributes name; None if there is no such codec."""
    return codec_of(attributes_at(view, position))


def crc_at(view: memoryview, position: int) -> int:
    """Return the CRC stored in an entry."""
    return int(_CRC.unpack_from(view, _payload_start(view, position) - CRC_BYTES)[0])


def payload_at(view: memoryview, position: int) -> memoryview:
    """Return a view on an entry's payload."""
    return view[_payload_start(view, position) : entry_end(view, position)]


def _payload_start(view: memoryview, position: int) -> int:
    return position + MIN_ENTRY_BYTES + view[position + LENGTH_BYTES]


# returns the payloads in a wrapper, given its codec and payload; None if it cannot be read
Opener = Callable[[int, Buffer], list[bytes] | None]

# an engine's loop: the payloads of a message set, the end of its good part, and the fault there
_PayloadsOf = Callable[[Buffer, Opener], tuple[list[bytes], int, Fault]]


def unfold_with(payloads_of: _PayloadsOf, codec: int, payload: Buffer) -> list[bytes]:
    """Return the payloads inside a wrapper, those of wrappers nested in it included.

    Raises:
        InvalidMessageError: it does not decompress, an inner message is invalid, the first inner
            message is incomplete, all of it unfolds to more than `MAX_DECOMPRESSED_BYTES`, or
            wrappers nest deeper than `MAX_NESTING`. A partial inner tail is ignored.

    Source: Kafka 0.7 `ByteBufferMessageSet.internalIterator`.
    """
    budget = _UnfoldingBudget(MAX_DECOMPRESSED_BYTES)

    def unfold(codec: int, payload: Buffer, depth: int) -> list[bytes]:
        inner_set = budget.decompress(codec, payload, depth)
        payloads, valid_bytes, fault = payloads_of(
            inner_set, lambda inner_codec, inner: unfold(inner_codec, inner, depth + 1)
        )
        _validate_end(fault, valid_bytes, len(inner_set))
        return payloads

    return unfold(codec, payload, 1)


def opener(payloads_of: _PayloadsOf) -> Opener:
    """Return `unfold_with` of an engine as a function that returns None for invalid wrappers."""

    def open_(codec: int, payload: Buffer) -> list[bytes] | None:
        try:
            return unfold_with(payloads_of, codec, payload)
        except InvalidMessageError:
            return None

    return open_


def count_with(
    scan: Callable[[Buffer], Scan],
    codec: int,
    payload: Buffer,
    *,
    max_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> tuple[int, int]:
    """Return how many messages `unfold_with` would return, and their size decompressed.

    `UnfoldsTooFarError` if that exceeds `max_bytes`; else as `unfold_with`.
    """
    budget = _UnfoldingBudget(max_bytes)

    def count(codec: int, payload: Buffer, depth: int) -> int:
        inner_set = budget.decompress(codec, payload, depth)
        found = scan(inner_set)
        _validate_end(found.fault, found.valid_bytes, len(inner_set))
        total = found.entry_count - len(found.wrappers)
        view = memoryview(inner_set)
        for position in found.wrappers:
            inner_codec = codec_at(view, position) or Codec.NONE
            total += count(inner_codec, payload_at(view, position), depth + 1)
        return total

    message_count = count(codec, payload, 1)
    return message_count, max_bytes - budget.left_bytes


class _UnfoldingBudget:
    """How many bytes one outermost wrapper may still decompress to."""

    def __init__(self, max_bytes: int) -> None:
        self.left_bytes = max_bytes

    def decompress(self, codec: int, payload: Buffer, depth: int) -> bytes:
        if depth > MAX_NESTING:
            raise InvalidMessageError(f"compressed messages nest deeper than {MAX_NESTING}")
        inner_set = decompress(Codec(codec), payload, max_bytes=self.left_bytes)
        self.left_bytes -= len(inner_set)
        return inner_set


def _validate_end(fault: Fault, position: int, size: int) -> None:
    """Raise for an inner set that ends badly; up to 3 bytes, or a partial tail, are ignored."""
    if fault and not (fault is Fault.PARTIAL and (position or size < LENGTH_BYTES)):
        raise InvalidMessageError(
            f"a compressed set has a bad message at byte {position}: {fault.name}"
        )
