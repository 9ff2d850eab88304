"""The loop of every read that may wait: consumers read up to the high watermark, followers beyond.

A read looks up its logs once an attempt. If they have too little for it, it waits as a
`DelayedResponse`; else one loop over its positions makes the response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from broker.log.segment import FileSlice
from broker.protocol.primitives import INT32
from broker.protocol.responses import encode_extension_header
from broker.server.requests.purgatory import Part, join_bytes

_Position = TypeVar("_Position")
ENOUGH = 1 << 63
"""Stands for the readable bytes of a position that a read must not wait for: it has an error."""


def is_enough(readable: Iterable[int], min_bytes: int) -> bool:
    """Return whether a read need not wait, from the bytes that each position has for it."""
    total_bytes = 0
    for one in readable:
        total_bytes += one
        if total_bytes >= min_bytes:
            return True  # an error of a later position would end the wait too
    return total_bytes >= min_bytes


def read_parts(
    correlation_id: int,
    positions: Iterable[_Position],
    max_bytes: int,
    read: Callable[[_Position, int, bool], tuple[bytes, FileSlice | None]],
    before: bytes = b"",
) -> list[Part]:
    """Return the parts of a response with at most `max_bytes` of messages.

    `read` takes a position, the bytes left for its messages, and whether the response has messages
    already; it returns what comes before the messages, and these. An empty head leaves the position
    out. `before` comes before the array.
    """
    parts: list[Part] = []
    count = body_bytes = 0
    has_messages = False
    for position in positions:
        head, found = read(position, max_bytes, has_messages)
        if not head:
            continue
        count += 1
        body_bytes += len(head)
        parts.append(head)
        if found is not None:
            has_messages = True
            body_bytes += found.length
            max_bytes -= found.length
            parts.append(found)
    before += INT32.pack(count)
    header = encode_extension_header(correlation_id, len(before) + body_bytes)
    return join_bytes([header + before, *parts])
