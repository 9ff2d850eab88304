"""Chunks as fetchers give them, and the messages of a group's streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.errors import NO_ERROR, ServerError, error_for_code
from broker.protocol.primitives import Buffer
from broker.protocol.responses import Run
from broker.topic import TopicPartition


class Chunk(NamedTuple):
    """Bytes fetched from a partition, or the error code of the fetch.

    A chunk may start and end inside a message; the chunks of a partition follow each other without
    gaps. After an error the fetcher no longer reads the partition, until `Fetcher.seek`.

    Attributes:
        partition: where the bytes are from.
        offset: of the first byte.
        data: the bytes.
        error: the broker's error code, which `text` may explain.
        high_watermark: -1 if unknown; with the error that the broker does not lead the partition,
            the id of the leader. A 0.7 broker does not send it, but a response shorter than
            the request ends at a message boundary, if only that of a segment.
        log_start_offset: -1 if unknown.
        skip_to: a filter left out all messages between `offset` and this one; there is no data.
    """

    partition: TopicPartition
    offset: int
    data: Buffer = b""
    error: int = NO_ERROR
    high_watermark: int = -1
    log_start_offset: int = -1
    text: str = ""
    skip_to: int | None = None

    @property
    def next_offset(self) -> int:
        """Return the offset at which the partition's next chunk starts."""
        return self.offset + len(self.data) if self.skip_to is None else self.skip_to

    def failure(self) -> ServerError:
        """Return the exception for the error code."""
        text = self.text or f"cannot read {self.partition} at {self.offset}"
        return error_for_code(self.error, text, self.high_watermark)

    def filtered(self, runs: Sequence[Run], next_offset: int) -> Iterator[Chunk]:
        """Give what a filter kept as chunks, with skips for all else.

        Args:
            runs: in order, from the chunk's offset on.
            next_offset: where the last of the new chunks ends.
        """
        offset = self.offset
        for start, entries in runs:
            if start > offset:
                yield self._replace(offset=offset, data=b"", skip_to=start)
            yield self._replace(offset=start, data=entries, skip_to=None)
            offset = start + len(entries)
        if next_offset > offset:
            yield self._replace(offset=offset, data=b"", skip_to=next_offset)


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
