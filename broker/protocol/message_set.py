"""Message sets seen in full detail: entries as stored, messages as unfolded.

Hot paths use `codec`; this is the view for inspection, filters and output formats.

Taking those entries out of a message set that hold what a reader wants.

Parts of a message set, counted in messages, as a set again.

Whole entries are taken as they are. Only a compressed set that is cut in two is decoded, and its
part compressed again the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from broker.errors import InvalidFetchSizeError, InvalidMessageError
from broker.protocol.checksum import crc32
from broker.protocol.codec import (
    ENTRY_OVERHEAD_BYTES,
    LENGTH_BYTES,
    MAGIC0_HEADER_BYTES,
    MAGIC1_HEADER_BYTES,
    Fault,
    Scan,
    count_unfolded,
    decode,
    encode,
    scan,
    unfold,
)
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, codec_of, compress
from broker.protocol.primitives import INT32, Buffer

_FAULT_TEXT = {
    Fault.SIZE: "its length field is impossible",
    Fault.MAGIC: "its magic byte is unknown",
    Fault.CODEC: "its codec is unknown",
    Fault.CRC: "its payload does not match its CRC",
    Fault.COMPRESSED: "its compressed content cannot be read",
    Fault.PARTIAL: "it is incomplete",
}


class Entry(NamedTuple):
    """One outer entry as it is stored.

    `offset` is where it starts, `next_offset` where the next one does; `length` is its length
    field; `payload` is a view on the buffer; `codec` is None where the attributes name none.
    """

    offset: int
    next_offset: int
    length: int
    magic: int
    attributes: int
    codec: Codec | None
    crc: int
    payload: memoryview

    @property
    def is_valid(self) -> bool:
        """Return whether the codec is known and the payload has the stored CRC."""
        return self.codec is not None and crc32(self.payload) == self.crc


class Message(NamedTuple):
    """One message as an application sees it.

    `offset` is the position of its outer entry and `next_offset` the resume point after it, so
    all messages of one wrapper share the former; `inner` is the index inside the wrapper, 0 for a
    plain message. `codec` is the outer entry's, `crc` that of the payload.
    """

    offset: int
    next_offset: int
    inner: int
    magic: int
    codec: Codec
    crc: int
    payload: bytes


def describe_fault(fault: Fault, position: int) -> str:
    """Return a sentence fragment such as `the message at 33 ...: its magic byte is unknown`."""
    return f"the message at {position} is invalid: {_FAULT_TEXT[fault]}"


def raise_fault(fault: Fault, offset: int) -> None:
    """Raise what a client reports when a set turns out bad at `offset`; nothing for `NONE`.

    Raises:
        InvalidFetchSizeError: the entry is incomplete (0.7 code 4).
        InvalidMessageError: anything else is wrong with it (0.7 code 2).
    """
    if fault is Fault.PARTIAL:
        raise InvalidFetchSizeError(
            f"the message at {offset} is larger than the fetch, or its length is corrupt"
        )
    if fault:
        raise InvalidMessageError(describe_fault(fault, offset))


def iter_entries(buffer: Buffer, base_offset: int) -> Iterator[Entry]:
    """Give the outer entries of a message set, valid or not, as far as the lengths make sense.

    Args:
        buffer: starts on an entry; a partial entry at its end is left out.
        base_offset: the log offset of its first byte.
    """
    view = memoryview(buffer)
    position = 0
    while len(view) - position >= LENGTH_BYTES + MAGIC0_HEADER_BYTES:
        (length,) = INT32.unpack_from(view, position)
        end = position + LENGTH_BYTES + length
        magic = view[position + LENGTH_BYTES]
        header_bytes = MAGIC1_HEADER_BYTES if magic else MAGIC0_HEADER_BYTES
        if length < header_bytes or end > len(view) or magic > 1:
            return
        start = position + LENGTH_BYTES + header_bytes
        attributes = view[position + LENGTH_BYTES + 1] if magic else 0
        crc = int.from_bytes(view[start - 4 : start], "big")
        yield Entry(
            offset=base_offset + position,
            next_offset=base_offset + end,
            length=length,
            magic=magic,
            attributes=attributes,
            codec=codec_of(attributes),
            crc=crc,
            payload=view[start:end],
        )
        position = end


def iter_messages(buffer: Buffer, base_offset: int) -> Iterator[Message]:
    """Give the messages of a message set with every detail, compressed ones unfolded.

    Args:
        buffer: starts on an entry; a partial entry at its end ends the iteration, unless it is
            the first.
        base_offset: the log offset of its first byte.

    Raises:
        InvalidMessageError: at the first bad entry, after all messages before it.
        InvalidFetchSizeError: the very first entry is incomplete.
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
    """Give the messages one entry stands for: itself, or what is inside a wrapper.

    Raises:
        InvalidMessageError: its CRC is wrong, its codec unknown, or its content unreadable.
    """
    if entry.codec is None:
        raise_fault(Fault.CODEC, entry.offset)
    if crc32(entry.payload) != entry.crc:
        raise_fault(Fault.CRC, entry.offset)
    codec = entry.codec or Codec.NONE
    payloads = _payloads_of(entry)
    last = len(payloads) - 1
    for inner, payload in enumerate(payloads):
        yield Message(
            offset=entry.offset,
            next_offset=entry.next_offset if inner == last else entry.offset,
            inner=inner,
            magic=entry.magic,
            codec=codec,
            crc=crc32(payload) if codec else entry.crc,
            payload=payload,
        )


class Counted(NamedTuple):
    """How many messages a set holds, and how many bytes its wrappers had to be unfolded to."""

    message_count: int
    unfolded_bytes: int


def count_messages(
    buffer: Buffer, found: Scan, base_offset: int = 0, *, max_bytes: int | None = None
) -> Counted:
    """Return how many messages the good part of a scanned set holds, wrappers unfolded.

    Args:
        buffer: the message set.
        found: what `codec.scan` says of it.
        base_offset: the log offset of its first byte, for errors.
        max_bytes: the most to unfold of all wrappers together; None for no more limit than each
            has of its own.

    Raises:
        InvalidMessageError: a wrapper's content cannot be read.
        UnfoldsTooFarError: a limit was reached.
    """
    count = found.entry_count - len(found.wrappers)
    unfolded_bytes = 0
    view = memoryview(buffer)
    for position in found.wrappers:
        whole = view[position : _entry_end(view, position)]
        (entry,) = iter_entries(whole, base_offset + position)
        room_bytes = MAX_DECOMPRESSED_BYTES
        if max_bytes is not None:
            room_bytes = min(room_bytes, max_bytes - unfolded_bytes)
        with _naming(entry):
            inner_count, inner_bytes = count_unfolded(
                entry.codec or Codec.NONE, entry.payload, max_bytes=room_bytes
            )
        count += inner_count
        unfolded_bytes += inner_bytes
    return Counted(count, unfolded_bytes)


@contextmanager
def _naming(entry: Entry) -> Iterator[None]:
    """Have errors about the content of a wrapper say which one it is."""
    try:
        yield
    except InvalidMessageError as error:
        text = describe_fault(Fault.COMPRESSED, entry.offset)
        raise type(error)(f"{text} ({error})") from error


def _payloads_of(entry: Entry) -> list[bytes]:
    """Return what an entry with a known codec holds; an error names its offset."""
    if not entry.codec:
        return [bytes(entry.payload)]
    with _naming(entry):
        return unfold(entry.codec, entry.payload)


def _entry_end(view: memoryview, position: int) -> int:
    return position + LENGTH_BYTES + int(INT32.unpack_from(view, position)[0])


def build_set(payloads: Iterable[Buffer], codec: Codec = Codec.NONE) -> bytes:
    """Return the message set of these payloads, in one wrapper if a codec is given.

    An empty list gives an empty set, not an empty wrapper, as in 0.7.
    """
    return wrap(encode(payloads), codec)


def wrap(message_set: Buffer, codec: Codec) -> bytes:
    """Return a message set as one wrapper entry; unchanged without a codec or when empty."""
    if not codec or not len(message_set):
        return bytes(message_set)
    payload = compress(codec, message_set)
    length = len(payload) + MAGIC1_HEADER_BYTES
    header = INT32.pack(length) + bytes((1, codec)) + crc32(payload).to_bytes(4, "big")
    return header + payload


_Message = tuple[int, int, bytes]


class Selection(NamedTuple):
    """What `select` found.

    `spans` are the stretches to keep, as start and end, neighbours made one; none of the
    `left_out_count` messages is in them. `end` is how far the buffer was looked at, and `fault`
    why not further; `NONE` is the end of the buffer, or of the room.
    """

    spans: list[tuple[int, int]]
    end: int
    left_out_count: int
    fault: Fault


def select(buffer: Buffer, is_wanted: Callable[[Buffer], object], room_bytes: int) -> Selection:
    """Find the entries of a message set that a reader wants to see.

    Left out is an entry that is in order and holds no wanted message. All others are kept, wrappers
    as a whole, and what is damaged too: that is not for a filter to hide.

    Args:
        buffer: starts on an entry; a partial entry at its end is left alone.
        is_wanted: says so of a payload, by a true value.
        room_bytes: how much to keep, at least 1; the entry that reaches it is the last.

    Returns:
        Stretches of whole entries. Only where no further entry can be found, as a length or magic
        byte makes no sense, what follows is kept as far as there is room.
    """
    view = memoryview(buffer)
    spans = _Spans(room_bytes)
    position = left_out_count = 0
    fault = Fault.CRC  # or any that a walk can go on behind
    while fault in (Fault.CRC, Fault.CODEC, Fault.COMPRESSED) and spans.room_bytes > 0:
        messages, valid_bytes, fault = decode(view[position:], position)
        end = position + valid_bytes
        wanted = dict.fromkeys(offset for offset, _, payload in messages if is_wanted(payload))
        for start in wanted:
            spans.add(start, _end_at(view, start))
            if spans.room_bytes <= 0:
                end, fault = spans.end, Fault.NONE
                break
        left_out_count += _count_before(end, messages, wanted)
        position = end
        if fault in (Fault.SIZE, Fault.MAGIC):
            position = min(len(view), end + max(spans.room_bytes, ENTRY_OVERHEAD_BYTES))
        elif fault not in (Fault.NONE, Fault.PARTIAL):
            position = _end_at(view, end)
        spans.add(end, position)
    return Selection(spans.found, position, left_out_count, fault)


class _Spans:
    """Stretches to keep, in order."""

    def __init__(self, room_bytes: int) -> None:
        self.found: list[tuple[int, int]] = []
        self.room_bytes = room_bytes
        self.end = 0

    def add(self, start: int, end: int) -> None:
        if start < end:
            first = self.found.pop()[0] if self.found and self.end == start else start
            self.found.append((first, end))
            self.room_bytes -= end - start
            self.end = end


def _end_at(view: memoryview, position: int) -> int:
    return position + LENGTH_BYTES + int(INT32.unpack_from(view, position)[0])


def _count_before(end: int, messages: Sequence[_Message], wanted: dict[int, None]) -> int:
    """Return how many messages before `end` are in no wanted entry."""
    if not wanted:
        return len(messages)
    return sum(offset < end and offset not in wanted for offset, _, _ in messages)


class Excerpt(NamedTuple):
    """A part of a message set.

    `taken_bytes` is where the next part may start: after the last entry the part has all the
    wanted messages of, and so before one that a limit has cut in two.
    """

    message_set: Buffer
    message_count: int
    taken_bytes: int


def excerpt(
    buffer: Buffer,
    found: Scan,
    base_offset: int,
    *,
    skip: int = 0,
    end: tuple[int, int] | None = None,
    limit: int | None = None,
) -> Excerpt:
    """Return a part of a message set.

    Args:
        buffer: the set; may end inside an entry or be damaged, which ends the part.
        found: what `codec.scan` says of it.
        base_offset: the log offset of its first byte.
        skip: how many messages of the first entry to leave out.
        end: offset of an entry, and how many of its messages are wanted; none of those behind it.
        limit: the most messages to take; None for all.

    Raises:
        InvalidMessageError: the content of a compressed set cannot be read.
    """
    good = memoryview(buffer)[: found.valid_bytes]
    goes_on = end is None or end[0] >= base_offset + found.valid_bytes
    if goes_on and not skip and (limit is None or limit >= found.entry_count):
        count = count_messages(buffer, found, base_offset).message_count
        if limit is None or count <= limit:
            return Excerpt(good, count, found.valid_bytes)
    return _by_entry(good, base_offset, skip, end, limit)


class Damage(NamedTuple):
    """Where in a message set the first entry is that cannot be read, and what is wrong with it."""

    position: int
    text: str


def find_damage(buffer: Buffer, base_offset: int) -> Damage | None:
    """Return the first whole entry that cannot be read, its compressed content included.

    Args:
        buffer: the set.
        base_offset: the log offset of its first byte.
    """
    for entry in iter_entries(buffer, base_offset):
        try:
            for _ in messages_of(entry):
                pass
        except InvalidMessageError as error:
            return Damage(entry.offset - base_offset, str(error))
    return None


def _by_entry(
    view: memoryview, base_offset: int, skip: int, end: tuple[int, int] | None, limit: int | None
) -> Excerpt:
    parts: list[Buffer] = []
    total = 0
    taken_bytes = 0
    for entry in iter_entries(view, base_offset):
        if end is not None and entry.offset >= end[0] + (end[1] > 0):
            taken_bytes = len(view)
            break
        wanted = _count(entry)
        if end is not None and entry.offset == end[0]:
            wanted = min(wanted, end[1])
        last = wanted if limit is None else min(wanted, skip + limit - total)
        if last > skip:
            parts.append(_part(view, base_offset, entry, skip, last))
            total += last - skip
        if last < wanted:
            break
        taken_bytes = entry.next_offset - base_offset
        skip = 0
    return Excerpt(b"".join(parts), total, taken_bytes)


def _count(entry: Entry) -> int:
    codec = entry.codec or Codec.NONE
    return count_unfolded(codec, entry.payload)[0] if codec else 1


def _part(view: memoryview, base_offset: int, entry: Entry, first: int, last: int) -> Buffer:
    """Return messages `first` to `last` (exclusive) of an entry as an entry."""
    if not first and last == _count(entry):
        return view[entry.offset - base_offset : entry.next_offset - base_offset]
    payloads = [message.payload for message in messages_of(entry)]
    return build_set(payloads[first:last], entry.codec or Codec.NONE)
