"""Taking those entries out of a message set that hold what a reader wants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, LENGTH_BYTES, Fault, decode
from broker.protocol.primitives import INT32, Buffer

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
