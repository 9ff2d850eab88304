"""Message sets: inspect, build, count, filter and slice them.

Entries are shown as stored, messages as unfolded from their wrappers. Loops over messages on hot
paths are in `codec`; this is the detailed view for tools, filters and output formats.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import compress as compress_by
from itertools import pairwise
from typing import NamedTuple

from broker.errors import InvalidFetchSizeError, InvalidMessageError
from broker.patterns import PayloadTest
from broker.protocol import compression
from broker.protocol.checksum import crc32
from broker.protocol.codec import (
    Fault,
    Scan,
    boundaries,
    count_unfolded,
    decode,
    encode,
    scan,
    unfold,
)
from broker.protocol.compression import Codec
from broker.protocol.envelope import MAGIC, open_envelope
from broker.protocol.message import (
    CRC_BYTES,
    ENTRY_OVERHEAD_BYTES,
    LENGTH_BYTES,
    MAGIC0_HEADER_BYTES,
    MAGIC1_HEADER_BYTES,
    MIN_ENTRY_BYTES,
    entry_end,
)
from broker.protocol.primitives import INT32, Buffer

_UINT32 = struct.Struct(">I")
_UNFOLDED_AT_ONCE_BYTES = 1 << 20

_FAULT_TEXT = {
    Fault.SIZE: "its length field is impossible",
    Fault.MAGIC: "its magic byte is unknown",
    Fault.CODEC: "its codec is unknown",
    Fault.CRC: "its payload does not match its CRC",
    Fault.COMPRESSED: "its compressed content cannot be read",
    Fault.PARTIAL: "it is incomplete",
    Fault.OFFSETS: "its offsets and its record count are impossible",
    Fault.RECORDS: "its records do not fill it exactly",
    Fault.TIMESTAMPS: "its max timestamp is not that of its records",
}


class Entry(NamedTuple):
    """One outer entry as stored."""

    offset: int  # its start
    next_offset: int  # its end
    length: int  # its length field
    magic: int
    attributes: int
    codec: Codec | None  # None if the attributes name none
    crc: int
    payload: memoryview  # a view on the buffer

    @property
    def is_valid(self) -> bool:
        """Return whether the codec is known and the payload has the stored CRC."""
        return self.codec is not None and crc32(self.payload) == self.crc


class Message(NamedTuple):
    """One message as an application sees it."""

    offset: int  # start of its outer entry, which all messages of a wrapper share
    next_offset: int  # where to resume after it
    inner: int  # index inside the wrapper, 0 for a plain message
    magic: int
    codec: Codec  # of the outer entry
    crc: int  # of the payload
    payload: bytes


def describe_fault(fault: Fault, position: int) -> str:
    """Return a sentence fragment such as `the message at 33 ...: its magic byte is unknown`."""
    return f"the message at {position} is invalid: {_FAULT_TEXT[fault]}"


def raise_fault(fault: Fault, offset: int) -> None:
    """Raise the error for a fault at an offset; nothing for `NONE`."""
    # an incomplete entry is 0.7's error code 4, any other fault code 2
    if fault is Fault.PARTIAL:
        raise InvalidFetchSizeError(
            f"the message at {offset} is larger than the fetch, or its length is corrupt"
        )
    if fault:
        raise InvalidMessageError(describe_fault(fault, offset))


def iter_entries(buffer: Buffer, base_offset: int) -> Iterator[Entry]:
    """Yield the outer entries of a message set, valid or not, up to an impossible length.

    Here and below, a buffer starts on an entry, at log offset `base_offset`; a partial entry at its
    end is left out.
    """
    view = memoryview(buffer)
    position = 0
    while len(view) - position >= MIN_ENTRY_BYTES:
        (length,) = INT32.unpack_from(view, position)
        end = position + LENGTH_BYTES + length
        magic = view[position + LENGTH_BYTES]
        header_bytes = MAGIC1_HEADER_BYTES if magic else MAGIC0_HEADER_BYTES
        if length < header_bytes or end > len(view) or magic > 1:
            return
        start = position + LENGTH_BYTES + header_bytes
        attributes = view[position + LENGTH_BYTES + 1] if magic else 0
        crc = int.from_bytes(view[start - CRC_BYTES : start], "big")
        yield Entry(
            offset=base_offset + position,
            next_offset=base_offset + end,
            length=length,
            magic=magic,
            attributes=attributes,
            codec=compression.codec_of(attributes),
            crc=crc,
            payload=view[start:end],
        )
        position = end


def iter_messages(buffer: Buffer, base_offset: int) -> Iterator[Message]:
    """Yield the messages of a message set, wrappers unfolded.

    Raises `InvalidMessageError` at the first bad entry, after all messages before it;
    `InvalidFetchSizeError` if the very first entry is incomplete.
    """
    end_offset = base_offset
    for entry in iter_entries(buffer, base_offset):
        yield from messages_of(entry)
        end_offset = entry.next_offset
    rest = memoryview(buffer)[end_offset - base_offset :]
    found = scan(rest)
    if found.fault is not Fault.PARTIAL or end_offset == base_offset:
        raise_fault(found.fault, end_offset)


def messages_of(entry: Entry) -> Iterator[Message]:
    """Return the messages of one entry, itself or those inside a wrapper; raise if it is invalid.

    A wrapper is checked as a whole by the call, and unfolded a block at a time while iterating.
    """
    if entry.codec is None:
        raise_fault(Fault.CODEC, entry.offset)
    if crc32(entry.payload) != entry.crc:
        raise_fault(Fault.CRC, entry.offset)
    return _messages(entry, entry.codec or Codec.NONE, *_payloads_of(entry))


def _messages(
    entry: Entry, codec: Codec, count: int, payloads: Iterable[bytes]
) -> Iterator[Message]:
    for inner, payload in enumerate(payloads):
        yield Message(
            offset=entry.offset,
            next_offset=entry.next_offset if inner == count - 1 else entry.offset,
            inner=inner,
            magic=entry.magic,
            codec=codec,
            crc=crc32(payload) if codec else entry.crc,
            payload=payload,
        )


_MAGIC1_PLAIN = b"\x01\x00"


def iter_payload_crcs(buffer: Buffer) -> Iterator[tuple[int, int]]:
    """Yield CRC and size of each payload of a valid set, wrappers unfolded, to compare sets."""
    view = memoryview(buffer)
    unpack = _UINT32.unpack_from
    for start, end in pairwise(boundaries(view)):
        payload = start + ENTRY_OVERHEAD_BYTES
        crc = payload - CRC_BYTES
        if view[start + LENGTH_BYTES : crc] == _MAGIC1_PLAIN:
            yield unpack(view, crc)[0], end - payload
            continue
        for entry in iter_entries(view[start:end], start):
            if not entry.codec:
                yield entry.crc, len(entry.payload)
                continue
            for inner in unfold(entry.codec, entry.payload):
                yield crc32(inner), len(inner)


class MessageCount(NamedTuple):
    """Number of messages in a set, and the bytes its wrappers were unfolded to for counting."""

    message_count: int
    unfolded_bytes: int


def count_messages(
    buffer: Buffer, found: Scan, base_offset: int = 0, *, max_bytes: int | None = None
) -> MessageCount:
    """Count the messages in the good part of a scanned set, wrappers unfolded.

    `max_bytes` limits the bytes unfolded from all wrappers together (`UnfoldsTooFarError`); None
    for only each wrapper's own limit, `MAX_DECOMPRESSED_BYTES`. `base_offset` is for errors.
    """
    count = found.entry_count - len(found.wrappers)
    unfolded_bytes = 0
    view = memoryview(buffer)
    for position in found.wrappers:
        whole = view[position : entry_end(view, position)]
        (entry,) = iter_entries(whole, base_offset + position)
        left_bytes = compression.MAX_DECOMPRESSED_BYTES
        if max_bytes is not None:
            left_bytes = min(left_bytes, max_bytes - unfolded_bytes)
        with _naming(entry):
            inner_count, inner_bytes = count_unfolded(
                entry.codec or Codec.NONE, entry.payload, max_bytes=left_bytes
            )
        count += inner_count
        unfolded_bytes += inner_bytes
    return MessageCount(count, unfolded_bytes)


@contextmanager
def _naming(entry: Entry) -> Iterator[None]:
    """Add the wrapper's offset to errors about its content."""
    try:
        yield
    except InvalidMessageError as error:
        text = describe_fault(Fault.COMPRESSED, entry.offset)
        raise type(error)(f"{text} ({error})") from error


def _payloads_of(entry: Entry) -> tuple[int, Iterable[bytes]]:
    """Return how many messages an entry has, and their payloads; raise if one is invalid."""
    if not entry.codec:
        return 1, [bytes(entry.payload)]
    with _naming(entry):
        count, unfolded_bytes = count_unfolded(entry.codec, entry.payload)
        if unfolded_bytes <= _UNFOLDED_AT_ONCE_BYTES:
            return count, unfold(entry.codec, entry.payload)
    return count, _unfold_in_blocks(entry.codec, entry.payload)


def _unfold_in_blocks(codec: Codec, payload: Buffer) -> Iterator[bytes]:
    """Yield the payloads of a wrapper known to be good, of which a million may be empty ones."""
    # as objects, small messages take ten times their bytes
    view = memoryview(compression.decompress(codec, payload))
    position = 0
    while position < len(view):
        block = view[position : position + _UNFOLDED_AT_ONCE_BYTES]
        messages, valid_bytes, _ = decode(block, 0)
        if not valid_bytes and len(block) < len(view) - position:  # a larger message
            block = view[position : entry_end(view, position)]
            messages, valid_bytes, _ = decode(block, 0)
        if not valid_bytes:
            return  # a partial tail
        yield from (inner for _, _, inner in messages)
        position += valid_bytes


def build_set(payloads: Iterable[Buffer], codec: Codec = Codec.NONE) -> bytes:
    """Return the message set of these payloads, in one wrapper if a codec is given."""
    # an empty list gives an empty set, not an empty wrapper, as in 0.7
    return wrap(encode(payloads), codec)


def wrap(message_set: Buffer, codec: Codec) -> bytes:
    """Return a message set as one wrapper entry; unchanged without a codec or when empty."""
    if not codec or not len(message_set):
        return bytes(message_set)
    payload = compression.compress(codec, message_set)
    length = len(payload) + MAGIC1_HEADER_BYTES
    header = INT32.pack(length) + bytes((1, codec)) + crc32(payload).to_bytes(CRC_BYTES, "big")
    return header + payload


class FilteredEntries(NamedTuple):
    """Result of `filter_entries`."""

    spans: list[tuple[int, int]]  # start and end of each range to keep, adjacent ones merged
    end: int  # of the part that was filtered
    left_out_count: int  # messages that are in no span
    fault: Fault  # why it ends there; `NONE` at the end of the buffer, or at the limit on bytes


def filter_entries(buffer: Buffer, is_wanted: PayloadTest, max_kept_bytes: int) -> FilteredEntries:
    """Find the entries of a message set to return to a filtering reader.

    A good entry without a wanted message is left out. All others are kept: wrappers as a whole,
    and damaged entries too, as a filter must not hide damage. Only where a length or magic byte is
    impossible, so that no further entry can be found, the bytes that follow are kept up to
    `max_kept_bytes` (at least 1). The entry that reaches this limit is the last one kept.
    """
    view = memoryview(buffer)
    spans = _Spans(max_kept_bytes)
    position = left_out_count = 0
    fault = Fault.CRC  # or any fault after which the walk can continue
    while fault in (Fault.CRC, Fault.CODEC, Fault.COMPRESSED) and spans.left_bytes > 0:
        scanned = scan(view[position:])
        if scanned.wrappers:
            messages, valid_bytes, fault = decode(view[position:], position)
            selected = is_wanted.select([open_envelope(stored)[1] for _, _, stored in messages])
            offsets = [offset for offset, _, _ in messages]
        else:
            valid_bytes, fault = scanned.valid_bytes, scanned.fault
            data = bytes(view[position : position + valid_bytes])
            bounds = boundaries(data)
            selected = is_wanted.select_between(data, bounds, partial(_payload_start, data))
            offsets = [position + bound for bound in bounds[:-1]]
        end = position + valid_bytes
        wanted = dict.fromkeys(compress_by(offsets, selected))
        for start in wanted:
            spans.add(start, entry_end(view, start))
            if spans.left_bytes <= 0:
                end, fault = spans.end, Fault.NONE
                break
        left_out_count += _count_left_out(end, offsets, wanted)
        position = end
        if fault in (Fault.SIZE, Fault.MAGIC):
            position = min(len(view), end + max(spans.left_bytes, ENTRY_OVERHEAD_BYTES))
        elif fault not in (Fault.NONE, Fault.PARTIAL):
            position = entry_end(view, end)
        spans.add(end, position)
    return FilteredEntries(spans.found, position, left_out_count, fault)


def _payload_start(data: bytes, position: int) -> int:
    """Return where the payload of an entry starts, behind its envelope."""
    start = position + MIN_ENTRY_BYTES + bool(data[position + LENGTH_BYTES])
    if data.startswith(MAGIC, start):
        end = entry_end(data, position)
        start = end - len(open_envelope(data[start:end])[1])
    return start


class _Spans:
    """Ranges to keep, in order, and how many more bytes may be kept."""

    def __init__(self, max_bytes: int) -> None:
        self.found: list[tuple[int, int]] = []
        self.left_bytes = max_bytes
        self.end = 0

    def add(self, start: int, end: int) -> None:
        if start < end:
            first = self.found.pop()[0] if self.found and self.end == start else start
            self.found.append((first, end))
            self.left_bytes -= end - start
            self.end = end


def _count_left_out(end: int, offsets: Sequence[int], wanted: dict[int, None]) -> int:
    if not wanted:
        return len(offsets)
    return sum(offset < end and offset not in wanted for offset in offsets)


class MessageSlice(NamedTuple):
    """A range of the messages of a set, as a set again."""

    message_set: Buffer
    message_count: int
    # where the next slice may start: after the last entry whose wanted messages are all in the
    # slice, so before one that a limit has cut in two
    taken_bytes: int


def slice_messages(
    buffer: Buffer,
    found: Scan,
    base_offset: int,
    *,
    skip: int = 0,
    end: tuple[int, int] | None = None,
    limit: int | None = None,
) -> MessageSlice:
    """Return a range of the messages of a set as a set; damage ends it.

    Whole entries stay as stored. Only a wrapper that is cut in two is decoded, and its part
    compressed again with the same codec.

    Args:
        buffer: the set; may end inside an entry.
        found: its `codec.scan`.
        base_offset: the log offset of its first byte.
        skip: how many messages of the first entry to leave out.
        end: offset of the last entry, and how many of its messages to take.
        limit: the most messages to take; None for all.
    """
    good = memoryview(buffer)[: found.valid_bytes]
    ends_later = end is None or end[0] >= base_offset + found.valid_bytes
    if ends_later and not skip and (limit is None or limit >= found.entry_count):
        count = count_messages(buffer, found, base_offset).message_count
        if limit is None or count <= limit:
            return MessageSlice(good, count, found.valid_bytes)
    return _slice_by_entry(good, base_offset, skip, end, limit)


class Damage(NamedTuple):
    """The position of the first entry of a message set that cannot be read, and why."""

    position: int
    text: str


def find_damage(buffer: Buffer, base_offset: int) -> Damage | None:
    """Return the first whole entry that cannot be read, its compressed content included."""
    for entry in iter_entries(buffer, base_offset):
        try:
            messages_of(entry)
        except InvalidMessageError as error:
            return Damage(entry.offset - base_offset, str(error))
    return None


def _slice_by_entry(
    view: memoryview, base_offset: int, skip: int, end: tuple[int, int] | None, limit: int | None
) -> MessageSlice:
    parts: list[Buffer] = []
    total = 0
    taken_bytes = 0
    for entry in iter_entries(view, base_offset):
        if end is not None and entry.offset >= end[0] + (end[1] > 0):
            taken_bytes = len(view)
            break
        wanted = _count_inner(entry)
        if end is not None and entry.offset == end[0]:
            wanted = min(wanted, end[1])
        last = wanted if limit is None else min(wanted, skip + limit - total)
        if last > skip:
            parts.append(_part_of_entry(view, base_offset, entry, skip, last))
            total += last - skip
        if last < wanted:
            break
        taken_bytes = entry.next_offset - base_offset
        skip = 0
    return MessageSlice(b"".join(parts), total, taken_bytes)


def _count_inner(entry: Entry) -> int:
    codec = entry.codec or Codec.NONE
    return count_unfolded(codec, entry.payload)[0] if codec else 1


def _part_of_entry(
    view: memoryview, base_offset: int, entry: Entry, first: int, last: int
) -> Buffer:
    """Return messages `first` to `last` (exclusive) of an entry as an entry."""
    if not first and last == _count_inner(entry):
        return view[entry.offset - base_offset : entry.next_offset - base_offset]
    payloads = [message.payload for message in messages_of(entry)]
    return build_set(payloads[first:last], entry.codec or Codec.NONE)
