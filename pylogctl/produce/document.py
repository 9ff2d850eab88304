"""What a run did, as a record for programs.

What a run did, as a line for people.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from broker.topic import TopicPartition
from pylogctl.cli.render import Column, Document, Kind
from pylogctl.cli.units import format_count, format_duration, format_size
from pylogctl.produce.sender import count_text

if TYPE_CHECKING:
    from pylogctl.produce.run import Outcome


DOCUMENT = Document(
    "produce/1",
    (
        Column("topic", "topic that was written to"),
        Column("partitions", "partitions that were written to"),
        Column("messages", "messages confirmed", Kind.INTEGER),
        Column("bytes", "their payloads", Kind.BYTES),
        Column("seconds", "time until all could be read", Kind.SECONDS),
        Column("messages_per_second", "messages by time", Kind.NUMBER),
        Column("refused", "messages left out as they could not be sent", Kind.INTEGER),
        Column("resumed", "messages an earlier run had sent", Kind.INTEGER),
        Column("verified", "all was read back and compared", Kind.BOOLEAN),
        Column("dry_run", "nothing was sent", Kind.BOOLEAN),
    ),
    empty="nothing",
)


def summary_record(topic: str, outcome: Outcome, *, dry_run: bool) -> dict[str, Any]:
    """Return the record of a run."""
    return {
        "topic": topic,
        "partitions": [partition.name for partition in sorted(outcome.partitions)],
        "messages": outcome.message_count,
        "bytes": outcome.payload_bytes,
        "seconds": round(outcome.seconds, 6),
        "messages_per_second": round(outcome.message_count / max(outcome.seconds, 1e-9)),
        "refused": outcome.refused_count,
        "resumed": outcome.resumed_count,
        "verified": outcome.is_verified,
        "dry_run": dry_run,
    }


_NAMED_PARTITIONS = 3


def summary_text(topic: str, outcome: Outcome, *, dry_run: bool) -> str:
    """Return what is said on standard error at the end of a run."""
    count = outcome.message_count
    rate = format_count(count / max(outcome.seconds, 1e-9))
    what = f"{count_text(count)}, {format_size(outcome.payload_bytes)}"
    where = _where(topic, outcome.partitions)
    if dry_run:
        text = f"{what} would go to {where}; nothing was sent"
    else:
        text = f"{what} to {where} in {format_duration(outcome.seconds)} ({rate} msg/s)"
    if outcome.resumed_count:
        text += f"; {count_text(outcome.resumed_count)} confirmed before"
    if outcome.refused_count:
        text += f"; {count_text(outcome.refused_count)} left out"
    return text + ("; all read back and compared" if outcome.is_verified else "")


def _where(topic: str, partitions: Mapping[TopicPartition, int]) -> str:
    if not partitions:
        return topic
    if len(partitions) > _NAMED_PARTITIONS:
        return f"{len(partitions)} partitions of {topic}"
    return ", ".join(str(partition) for partition in sorted(partitions))
