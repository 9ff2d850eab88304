"""A message as a consumer group's stream gives it."""

from __future__ import annotations

from broker.topic import TopicPartition

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
