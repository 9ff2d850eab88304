"""What a fetcher gives of a partition, piece by piece, and how messages are made of that again.

A message as a consumer group's stream gives it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.errors import InvalidMessageError, ServerError, error_for_code
from broker.protocol.message import entry_end, has_length
from broker.protocol.primitives import Buffer
from broker.protocol.responses import Run
from broker.topic import TopicPartition


class Piece(NamedTuple):
    """What came of one partition: bytes from `offset` on, or an error code.

    The next piece of the partition starts at `next_offset`. That is behind the bytes, unless a
    filter has left out what lies in between: then there are no bytes, and this is a skip.
    After an error, which `text` may explain, the partition is no longer read, until `seek` says
    from where to go on. `high_watermark` is -1 where the broker does not tell it. A 0.7 one does so
    in its way: an answer that is shorter than what was asked for ends at a boundary, if only of a
    segment.
    """

    partition: TopicPartition
    offset: int
    data: Buffer
    next_offset: int
    error: int
    high_watermark: int
    log_start_offset: int
    text: str = ""

    @property
    def is_skip(self) -> bool:
        """Return whether messages were left out that have been here."""
        return not len(self.data) and self.next_offset > self.offset

    def failure(self) -> ServerError:
        """Return what to raise for the error."""
        text = self.text or f"cannot read {self.partition} at {self.offset}"
        return error_for_code(self.error, text)

    def filtered(self, runs: Sequence[Run], next_offset: int) -> Iterator[Piece]:
        """Give what a filter left of this piece as pieces, with skips for all else.

        Args:
            runs: in order, from the piece's offset on.
            next_offset: where the last of the pieces ends.
        """
        offset = self.offset
        for start, entries in runs:
            if start > offset:
                yield self._replace(offset=offset, data=b"", next_offset=start)
            offset = start + len(entries)
            yield self._replace(offset=start, data=entries, next_offset=offset)
        if next_offset > offset:
            yield self._replace(offset=offset, data=b"", next_offset=next_offset)


class MessageStream:
    """The pieces of one partition put together again.

    Args:
        offset: where the first piece will start.
    """

    def __init__(self, offset: int) -> None:
        self.offset = offset
        """The offset of the first byte not taken yet: a message boundary."""
        self._rest: Buffer = b""
        self._high_watermark = -1

    def add(self, data: Buffer, high_watermark: int = -1) -> memoryview:
        """Put a piece behind what is left, and return all of it.

        Args:
            data: of the piece.
            high_watermark: what the piece says of it.
        """
        self._rest = memoryview(b"".join((self._rest, data)) if len(self._rest) else data)
        self._high_watermark = max(self._high_watermark, high_watermark)
        return self._rest

    def is_cut_for_good(self, after_bytes: int = 0) -> bool:
        """Say whether an entry that seems to go on cannot: its end is past all there is.

        A broker shows whole messages only, so such a length is damage and not a message under way.

        Args:
            after_bytes: how much of what is left lies before the entry.
        """
        if not has_length(self._rest, after_bytes):
            return False
        return 0 <= self._high_watermark < self.offset + entry_end(self._rest, after_bytes)

    def take(self, valid_bytes: int) -> None:
        """Drop bytes from the front that have been decoded.

        Args:
            valid_bytes: the length of whole entries.
        """
        self.offset += valid_bytes
        self._rest = bytes(memoryview(self._rest)[valid_bytes:])

    def skip_to(self, offset: int) -> None:
        """Go on at a later offset, as what lies before it was left out by a filter.

        Raises:
            InvalidMessageError: the start of a message is here, the rest of which will not come.
        """
        if len(self._rest):
            raise InvalidMessageError(
                f"the message at {self.offset} is invalid: its length is impossible"
            )
        self.offset = offset


GroupMessage = tuple[str, TopicPartition, int, int, bytes]
"""A message as (topic, partition, offset, next offset, payload).

Offsets are byte positions. Inside a compressed set all messages but the last have the set's start
as their next offset: a group resumes at a set's start only. They are each an `InnerMessage`.
"""


class InnerMessage(GroupMessage):
    """A message out of a compressed set, which also tells which one of the set it is.

    Attributes:
        inner: its index in the set, from 0.
    """

    inner: int

    def __new__(cls, fields: GroupMessage, inner: int = 0) -> InnerMessage:
        """Make one; `fields` are those of any message."""
        message = super().__new__(cls, fields)
        message.inner = inner
        return message


def inner_index(message: GroupMessage) -> int:
    """Return which message of a compressed set this is, from 0; 0 for one on its own.

    Raises:
        TypeError: it is of a set, but no longer the object that the stream gave.
    """
    if isinstance(message, InnerMessage):
        return message.inner
    _, partition, offset, next_offset, _ = message
    if next_offset == offset:
        raise TypeError(
            f"which message of the compressed set at {offset} of {partition} this is, only the "
            "object tells that the stream gave"
        )
    return 0
