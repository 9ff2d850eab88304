"""Chunks that fetchers deliver, and the messages of a group's streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from broker.errors import NO_ERROR, ServerError, TopicAuthorizationError, error_for_code
from broker.protocol.codec import Message
from broker.protocol.primitives import Buffer
from broker.protocol.responses import Run
from broker.topic import TopicPartition


class Chunk(NamedTuple):
    """Bytes fetched from a partition, or the error code of the fetch.

    A chunk may start and end inside a message; the chunks of a partition follow each other without
    gaps. Of a topic of format `kafka` it has whole batches, of which the first may start before the
    offset. After an error the fetcher no longer reads the partition, until `Fetcher.seek`.
    """

    partition: TopicPartition
    offset: int  # of the first byte
    data: Buffer = b""
    error: int = NO_ERROR  # of the broker; `text` may explain it
    # -1 if unknown; with `NotLeaderError`, the id of the leader. A 0.7 broker does not send it, but
    # a response shorter than the request ends at a message boundary, if only that of a segment.
    high_watermark: int = -1
    log_start_offset: int = -1  # -1 if unknown
    text: str = ""
    skip_to: int | None = None  # a filter left out all messages up to here; there is no data
    records_end: int | None = None  # of whole record batches: the offset behind the last one

    @property
    def next_offset(self) -> int:
        """Return the offset at which the partition's next chunk starts."""
        if self.skip_to is not None:
            return self.skip_to
        return self.offset + len(self.data) if self.records_end is None else self.records_end

    def failure(self) -> ServerError:
        """Return the exception for the error code."""
        text = self.text or f"cannot read {self.partition} at {self.offset}"
        if self.error == TopicAuthorizationError.code and not self.text:
            text += f": this user may not read topic '{self.partition.topic}'"
        return error_for_code(self.error, text, self.high_watermark)

    def filtered(self, runs: Sequence[Run], next_offset: int) -> Iterator[Chunk]:
        """Give the entries a filter kept as chunks, and skips between them, up to `next_offset`."""
        offset = self.offset  # `runs` are in order from here on
        for start, entries in runs:
            if start > offset:
                yield self._replace(offset=offset, data=b"", skip_to=start)
            yield self._replace(offset=start, data=entries, skip_to=None)
            offset = start + len(entries)
        if next_offset > offset:
            yield self._replace(offset=offset, data=b"", skip_to=next_offset)


GroupMessage = tuple[str, TopicPartition, int, int, bytes]
"""A message as (topic, partition, offset, next offset, payload).

Offsets are byte positions. In a wrapper all messages but the last have the wrapper's start as
their next offset, as a group resumes only there. They are each an `InnerMessage`. Of a topic of
format `kafka` offsets count records, and messages are each a `RecordMessage`.
"""


class InnerMessage(GroupMessage):
    """A message of a wrapper; `inner` is its index in it, from 0."""

    inner: int

    def __new__(cls, fields: GroupMessage, inner: int = 0) -> InnerMessage:
        """Return a message with these fields."""
        message = super().__new__(cls, fields)
        message.inner = inner
        return message


class RecordMessage(GroupMessage):
    """A message of a topic of format `kafka`; `message` has its key, headers and timestamp too."""

    message: Message

    def __new__(cls, message: Message) -> RecordMessage:
        """Return the fields of a message."""
        place = (message.topic, message.partition, message.offset, message.next_offset)
        found = super().__new__(cls, (*place, message.value))
        found.message = message
        return found


def inner_index(message: GroupMessage) -> int:
    """Return the index of a message in its wrapper, from 0; 0 without a wrapper."""
    if isinstance(message, InnerMessage):
        return message.inner
    _, partition, offset, next_offset, _ = message
    if next_offset == offset:
        raise TypeError(  # a copy of the tuple, without the index
            f"which message of the compressed set at {offset} of {partition} this is, only the "
            "object tells that the stream gave"
        )
    return 0
