"""What `pylogctl copy` did, or would do: the record of a partition, and a line for people."""

from __future__ import annotations

from collections.abc import Mapping

from broker.topic import TopicPartition
from pylogctl.copying import Copied, Copy
from pylogctl.offset_resolution import ResolvedRange
from pylogctl.producing.sender import count_text
from pylogctl.render import Column, Document, Kind, Record
from pylogctl.units import format_count, format_duration, format_size

DOCUMENT = Document(
    "copy/1",
    (
        Column("source", "topic and partition read from"),
        Column("target", "topic and partition written to"),
        Column("start", "offset in the source where the copy starts", Kind.INTEGER),
        Column("end", "offset in the source where it ends", Kind.INTEGER),
        Column("next_offset", "offset in the source after what is copied", Kind.INTEGER),
        Column("messages", "messages confirmed in the target", Kind.INTEGER),
        Column("bytes", "what they take in its log", Kind.BYTES),
        Column("verified", "all was read back and compared", Kind.BOOLEAN),
    ),
    empty="no partitions",
)


def copy_records(
    ranges: Mapping[TopicPartition, ResolvedRange],
    copied: Mapping[TopicPartition, Copied],
    *,
    is_verified: bool,
) -> list[Record]:
    """Return a row for each source partition."""
    return [
        {
            "source": str(source),
            "target": str(done.target),
            "start": ranges[source].start.offset,
            "end": None if (end := ranges[source].end) is None else end.offset,
            "next_offset": done.next_offset,
            "messages": done.message_count,
            "bytes": done.size_bytes,
            "verified": is_verified,
        }
        for source, done in copied.items()
    ]


def summary_text(copy: Copy, source: str, target: str, *, is_verified: bool) -> str:
    """Return what is said on standard error at the end of a copy."""
    rate = format_count(copy.message_count / max(copy.seconds, 1e-9))
    return (
        f"{count_text(copy.message_count)}, {format_size(copy.size_bytes)} from {source} to "
        f"{target} in {format_duration(copy.seconds)} ({rate} msg/s)"
        + (f", {copy.corrupt.count} corrupt" if copy.corrupt.count else "")
        + ("; all read back and compared" if is_verified else "")
    )
