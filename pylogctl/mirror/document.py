"""The documents of `pylogctl mirror`: columns, and the records that fill them."""

from __future__ import annotations

from pylogctl.cli.render import Column, ColumnKind, Document

PLAN = Document(
    "mirror.plan/1",
    (
        Column("topic", "topic of the source"),
        Column("target", "what it is called in the target"),
        Column("partitions", "partitions in the source", ColumnKind.INTEGER),
        Column("target_partitions", "partitions in the target", ColumnKind.INTEGER),
        Column("bytes", "bytes that can be read in the source", ColumnKind.BYTES),
        Column("action", "exists, or create if it is missing in the target"),
    ),
    empty="no topic would be mirrored",
)
STATUS = Document(
    "mirror.status/1",
    (
        Column("topic", "topic of the source"),
        Column("partition", "partition as home broker and index; none for a whole topic"),
        Column(
            "end", "end of the source, for a topic the sum over its partitions", ColumnKind.INTEGER
        ),
        Column("mirrored", "offset mirrored so far, summed likewise", ColumnKind.INTEGER),
        Column("lag_bytes", "bytes that are not mirrored yet", ColumnKind.BYTES),
        Column("rate", "bytes mirrored per second, with --interval", ColumnKind.NUMBER),
        Column("mirrors", "running mirrors of the group", ColumnKind.INTEGER),
        Column("failing", "whether nothing came through since the last error", ColumnKind.BOOLEAN),
        Column("error_time", "when something went wrong last", ColumnKind.TIME, shown=False),
        Column("last_error", "what went wrong last"),
        Column("corrupt", "corrupt messages that were left out", ColumnKind.INTEGER, shown=False),
    ),
    empty="no topics",
)
VERIFY = Document(
    "mirror.verify/1",
    (
        Column("topic", "topic of the source"),
        Column("target", "what it is called in the target"),
        Column("messages", "messages in the source", ColumnKind.INTEGER),
        Column("target_messages", "messages in the target", ColumnKind.INTEGER),
        Column("missing", "messages of the source that the target lacks", ColumnKind.INTEGER),
        Column("surplus", "messages of the target that the source lacks", ColumnKind.INTEGER),
        Column("digest", "checksum of all messages in the source, in any order"),
        Column("target_digest", "the same in the target"),
        Column("status", "ok, surplus (such as duplicates) or missing"),
    ),
    empty="no topics",
)
SUMMARY = Document(
    "mirror.run/1",
    (
        Column("group", "consumer group"),
        Column("messages", "messages that the target has acknowledged", ColumnKind.INTEGER),
        Column("bytes", "what they take in a log", ColumnKind.BYTES),
        Column("seconds", "how long it ran", ColumnKind.SECONDS),
        Column("last_error", "what went wrong last"),
        Column("error_time", "when that was", ColumnKind.TIME),
        Column("corrupt", "corrupt messages that were left out", ColumnKind.INTEGER),
    ),
    empty="nothing",
)
