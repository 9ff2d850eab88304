"""Checking message sets before they are appended, within what a processor has time for.

A few kilobytes can stand for millions of messages, and a large request can hold as many: to look
at them all takes seconds. A processor ends its turn with a connection once it has checked so much,
and leaves a request that is larger than that to a worker; meanwhile it serves its other
connections.
"""

from __future__ import annotations

from broker.protocol import codec
from broker.protocol.codec import Scan
from broker.protocol.compression import UnfoldsTooFarError
from broker.protocol.message_set import count_messages
from broker.protocol.primitives import Buffer

TURN_BYTES = 2 << 20
"""What a processor checks in a turn, compressed sets unfolded.

All that one read brings is less. As many of the smallest messages take a tenth of a second.
"""


class TooMuchToCheckError(Exception):
    """A request is more than there is time for in a turn."""


class SetChecker:
    """Looks at message sets as far as there is time.

    Args:
        max_message_bytes: the largest outer payload taken.
        turn_bytes: how much of one request may be looked at, and after how much a turn is over;
            None for no limit.
    """

    def __init__(self, max_message_bytes: int, *, turn_bytes: int | None) -> None:
        self.max_message_bytes = max_message_bytes
        self._turn_bytes = turn_bytes
        self._turn_left_bytes = self._request_left_bytes = turn_bytes

    def begin_turn(self) -> None:
        """Start to deal with a connection."""
        self._turn_left_bytes = self._request_left_bytes = self._turn_bytes

    def begin_request(self) -> None:
        """Start to deal with one request, or with several that are checked together."""
        self._request_left_bytes = self._turn_bytes

    @property
    def is_turn_over(self) -> bool:
        """Return whether it is time to serve other connections."""
        return self._turn_left_bytes is not None and self._turn_left_bytes <= 0

    def scan(self, message_set: Buffer) -> Scan:
        """Return what `codec.scan` finds.

        Raises:
            TooMuchToCheckError: a worker has to do it.
        """
        self._spend(len(message_set))
        return codec.scan(message_set)

    def count_messages(self, message_set: Buffer, found: Scan) -> int:
        """Return how many messages the good part of a scanned set holds, wrappers unfolded.

        Raises:
            InvalidMessageError: a wrapper's content cannot be read.
            TooMuchToCheckError: a worker has to do it.
        """
        if not found.wrappers:
            return found.entry_count
        try:
            counted = count_messages(message_set, found, max_bytes=self._request_left_bytes)
        except UnfoldsTooFarError as error:
            if self._request_left_bytes is None:
                raise
            raise TooMuchToCheckError from error
        self._spend(counted.unfolded_bytes)
        return counted.message_count

    def _spend(self, size: int) -> None:
        if self._request_left_bytes is None or self._turn_left_bytes is None:
            return
        if size > self._request_left_bytes:
            raise TooMuchToCheckError
        self._request_left_bytes -= size
        self._turn_left_bytes -= size
