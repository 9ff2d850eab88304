"""The messages that programs get: `Message`, in Python and as the compiled codec makes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, final

from broker.topic import TopicPartition


@final
@dataclass(slots=True, unsafe_hash=True, repr=False)
class Message:
    """A message as it was read; it cannot be changed or subclassed, and is equal by its fields.

    Attributes:
        topic, partition: where it is.
        offset, next_offset: of this message and of the one after it. The messages of a compressed
            set share its offset, which all but the last have as their next offset too.
        value: the bytes that were sent.
        inner: the place in a compressed set, from 0; 0 for others.
        key, timestamp, headers: the log format of Kafka 0.7 stores none.
    """

    # The compiled codec has a class of the same face, which `adopt` completes; `json` and `text`
    # are the same functions there.

    topic: Final[str]
    partition: Final[TopicPartition]
    offset: Final[int]
    next_offset: Final[int]
    value: Final[bytes]
    inner: Final[int] = 0

    key: ClassVar[bytes | None] = None
    timestamp: ClassVar[datetime | None] = None
    headers: ClassVar[tuple[tuple[str, bytes], ...]] = ()

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
    for name in ("__doc__", "__match_args__", "__repr__", "__eq__", "__hash__", "text", "json"):
        setattr(compiled, name, Message.__dict__[name])
    for name in ("key", "timestamp", "headers"):
        setattr(compiled, name, getattr(Message, name))


def make_messages(
    topic: str, partition: TopicPartition, found: Sequence[tuple[int, int, bytes]]
) -> list[Message]:
    """Return messages, of the offset, next offset and payload of each."""
    new, inner, messages = Message.__new__, 0, []
    for offset, next_offset, value in found:
        message: Any = new(Message)  # without `__init__`, which takes twice as long
        message.topic = topic
        message.partition = partition
        message.offset = offset
        message.next_offset = next_offset
        message.value = value
        message.inner = inner
        inner = inner + 1 if next_offset == offset else 0
        messages.append(message)
    return messages
