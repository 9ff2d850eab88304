"""Whole messages out of the stretches that a reading gives, and what counts as damage.

Knows the codec and cursors; what the messages are wanted for is for others.
"""

from __future__ import annotations

from collections.abc import Callable

from broker.protocol.codec import Fault, scan
from broker.protocol.message_set import count_messages as count_in_set
from broker.protocol.message_set import raise_fault
from pylogctl.reading import Reading, Stretch


def take_whole(stretch: Stretch, valid_bytes: int, fault: Fault) -> None:
    """Move a stretch's cursor on past its good messages.

    Args:
        stretch: what was looked at.
        valid_bytes: how far it is good.
        fault: why not further; `PARTIAL` is normal, as the rest is under way.

    Raises:
        InvalidMessageError: a message is corrupt.
        InvalidFetchSizeError: a message seems to go on behind the end of all there is.
    """
    rest = stretch.view[valid_bytes:]
    stretch.cursor.take(valid_bytes)
    if fault is not Fault.PARTIAL or stretch.cursor.is_cut_for_good(rest):
        raise_fault(fault, stretch.offset + valid_bytes)


def count_messages(reading: Reading, advance: Callable[[int], None]) -> int:
    """Return how many messages a reading has from its start to its end, wrappers unfolded.

    Args:
        reading: every partition has an end that is a message boundary.
        advance: called with the number of bytes after each stretch.

    Raises:
        InvalidMessageError: a message is corrupt.
        BrokerError: a broker is gone for good.
    """
    count = 0
    for stretches in reading.polls():
        for stretch in stretches:
            found = scan(stretch.view)
            count += count_in_set(stretch.view, found)
            take_whole(stretch, found.valid_bytes, found.fault)
            advance(found.valid_bytes)
    return count
