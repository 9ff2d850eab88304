"""Parts of a message set, counted in messages, as a set again.

Whole entries are taken as they are. Only a compressed set that is cut in two is decoded, and its
part compressed again the same way.
"""

from __future__ import annotations

from typing import NamedTuple

from broker.errors import InvalidMessageError
from broker.protocol.codec import Scan, count_unfolded
from broker.protocol.compression import Codec
from broker.protocol.message_set import (
    Entry,
    build_set,
    count_messages,
    iter_entries,
    messages_of,
)
from broker.protocol.primitives import Buffer


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
