"""The messages that programs get: `Message`, in Python and as the compiled codec makes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, final

from broker.protocol.envelope import END_US, EPOCH, MAGIC, Envelope, open_envelope
from broker.protocol.record_batch import Record
from broker.topic import TopicPartition


@final
@dataclass(slots=True, unsafe_hash=True, repr=False)
class Message:
    """A message as it was read; it cannot be changed or subclassed, and is equal by its fields.

    Attributes:
        topic, partition: where it is.
        offset, next_offset: of this message and of the one after it. The messages of a compressed
            set share its offset, which all but the last have as their next offset too.
        value: the bytes that were sent, without the envelope.
        inner: the place in a compressed set, from 0; 0 for others.
        envelope: time, host, producer and sequence, if the producer writes them in front of its
            messages (`envelope=True`); else None.
        record: the message as topics of format `kafka` store it; None in those of 0.7. Its value is
            None if there is none, which says that the key is deleted.
        timestamp, headers: those of the record, or of the envelope; 0.7 stores none.
        key: that of the record; 0.7 stores none.
    """

    # The compiled codec has a class of the same face, which `adopt` completes; `json` and `text`
    # are the same functions there.

    topic: Final[str]
    partition: Final[TopicPartition]
    offset: Final[int]
    next_offset: Final[int]
    value: Final[bytes]
    inner: Final[int] = 0
    envelope: Final[Envelope | None] = None
    record: Final[Record | None] = None

    @property
    def key(self) -> bytes | None:
        """Return the key; None if the message has none."""
        return None if self.record is None else self.record.key

    @property
    def timestamp(self) -> datetime | None:
        """Return when the message was made, as its producer or broker says; None if they do not."""
        if self.record is None:
            return None if self.envelope is None else self.envelope.time
        time_ms = self.record.timestamp
        in_range = 0 <= time_ms < END_US // 1000
        return EPOCH + timedelta(milliseconds=time_ms) if in_range else None

    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """Return the headers of the record, or host, producer and sequence of the envelope."""
        if self.record is not None:
            return self.record.headers
        return () if self.envelope is None else self.envelope.headers

    def __repr__(self) -> str:
        shown = self.value if len(self.value) <= 40 else self.value[:40] + b".."
        return f"Message({self.topic}[{self.partition.name}] at {self.offset}: {shown!r})"

    def text(self, encoding: str = "utf-8") -> str:
        """Return the value as text; `UnicodeDecodeError` if it is none."""
        return self.value.decode(encoding)

    def json(self) -> Any:
        """Return the value parsed as JSON; `ValueError` if it is none."""
        import json  # late: many programs need none

        return json.loads(self.value)


def adopt(compiled: type) -> None:
    """Give the class of the compiled codec what is written in Python here."""
    for name in (
        *("__doc__", "__match_args__", "__repr__", "__eq__", "__hash__", "text", "json"),
        *("key", "timestamp", "headers"),
    ):
        setattr(compiled, name, Message.__dict__[name])


MakeMessage = Callable[[str, TopicPartition, int, int, bytes, int], Message]


def maker(kind: type[Message]) -> MakeMessage:
    """Return a function that makes messages of a class, and opens their envelopes."""

    def make(
        topic: str,
        partition: TopicPartition,
        offset: int,
        next_offset: int,
        stored: bytes,
        inner: int = 0,
    ) -> Message:
        if not stored.startswith(MAGIC):
            return kind(topic, partition, offset, next_offset, stored, inner)
        envelope, value = open_envelope(stored)
        return kind(topic, partition, offset, next_offset, value, inner, envelope)

    return make


make_message = maker(Message)


def make_messages(
    topic: str, partition: TopicPartition, found: Sequence[tuple[int, int, bytes]]
) -> list[Message]:
    """Return messages, of the offset, next offset and stored bytes of each."""
    new, inner, messages, magic = Message.__new__, 0, [], MAGIC
    for offset, next_offset, value in found:
        message: Any
        if value.startswith(magic):
            message = make_message(topic, partition, offset, next_offset, value, inner)
        else:
            message = new(Message)  # without `__init__`, which takes twice as long
            message.topic = topic
            message.partition = partition
            message.offset = offset
            message.next_offset = next_offset
            message.value = value
            message.inner = inner
            message.envelope = message.record = None
        inner = inner + 1 if next_offset == offset else 0
        messages.append(message)
    return messages


def messages_of_records(
    kind: type[Message], partition: TopicPartition, records: Sequence[Record], end: int
) -> list[Message]:
    """Return messages of a class for records; what follows the last one is at `end`.

    That is behind offsets which no record has: those of marks, and of what was compacted away.
    """
    topic = partition.topic
    messages = [
        kind(topic, partition, one[0], one[0] + 1, one[3] or b"", 0, None, one)
        for one in records[:-1]
    ]
    if records:
        last = records[-1]
        messages.append(
            kind(topic, partition, last[0], max(end, last[0] + 1), last[3] or b"", 0, None, last)
        )
    return messages
