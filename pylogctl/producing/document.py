"""What a run did, as a record for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylogctl.render import Column, Document, Kind

if TYPE_CHECKING:
    from pylogctl.producing.run import Outcome

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
