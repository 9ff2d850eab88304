"""What `pylogctl retry list` shows of a message in a retry store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from broker.client.retry_store import RetryEntry
from pylogctl.escapes import escape
from pylogctl.render import Column, Document, Kind, Record
from pylogctl.units import format_time

DOCUMENT = Document(
    "retry.list/1",
    (
        Column("topic", "topic of the message"),
        Column("partition", "its partition, as broker and index"),
        Column("offset", "where its entry starts", Kind.INTEGER),
        Column("next_offset", "where reading resumes after it", Kind.INTEGER, shown=False),
        Column("inner", "index in a compressed set, -1 if not known", Kind.INTEGER, shown=False),
        Column("size", "bytes of its payload", Kind.BYTES),
        Column("attempts", "how often handling it failed", Kind.INTEGER),
        Column("state", "parked: tried again by itself; dead: given up"),
        Column("next_attempt", "when it is tried again; unknown for dead ones"),
        Column("error", "why it failed the last time"),
        Column("payload", "the payload, bytes that are no text as escapes", shown=False),
    ),
    empty="no messages",
)


def retry_records(entries: Iterable[RetryEntry]) -> Iterator[Record]:
    """Give a row for each entry."""
    for entry in entries:
        message = entry.message
        due_ms = entry.next_attempt_ms
        yield {
            "topic": message.partition.topic,
            "partition": message.partition.name,
            "offset": message.offset,
            "next_offset": message.next_offset,
            "inner": message.inner,
            "size": len(message.payload),
            "attempts": entry.attempts,
            "state": "dead" if entry.is_dead else "parked",
            "next_attempt": None if due_ms is None else format_time(due_ms),
            "error": entry.last_error,
            "payload": escape(message.payload),
        }
