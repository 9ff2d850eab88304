"""The rows of `pylogctl mirror`, and the documents that show them."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import (
    HIDDEN,
    Bytes,
    Count,
    Document,
    Flag,
    Integer,
    Millis,
    Number,
    Row,
    Seconds,
    Size,
    Text,
)


class PlanRow(Row):
    """A topic that would be mirrored."""

    topic: Annotated[Text, "topic of the source"]
    target: Annotated[Text, "what it is called in the target"]
    partitions: Annotated[Integer, "partitions in the source"]
    target_partitions: Annotated[Integer, "partitions in the target"]
    bytes: Annotated[Bytes, "bytes that can be read in the source"]
    action: Annotated[Text, "exists, or create if it is missing in the target"]


class Errors(Row):
    """The last error of a partition, or of a topic."""

    failing: Annotated[Flag, "whether nothing came through since the last error"]
    error_time: Annotated[Millis, "when something went wrong last", HIDDEN] = None
    last_error: Annotated[Text, "what went wrong last"] = None
    corrupt: Annotated[Integer, "corrupt messages that were left out", HIDDEN] = 0


class StatusRow(Row):
    """How far a partition, or a topic, is mirrored."""

    topic: Annotated[Text, "topic of the source"]
    partition: Annotated[Text, "partition as home broker and index; none for a whole topic"]
    end: Annotated[Integer, "end of the source, for a topic the sum over its partitions"]
    mirrored: Annotated[Integer, "offset mirrored so far, summed likewise"]
    lag_bytes: Annotated[Size, "bytes that are not mirrored yet"]
    rate: Annotated[Number, "bytes mirrored per second, with --interval"]
    mirrors: Annotated[Integer, "running mirrors of the group"]
    errors: Errors


class VerifyRow(Row):
    """A topic in source and target."""

    topic: Annotated[Text, "topic of the source"]
    target: Annotated[Text, "what it is called in the target"]
    messages: Annotated[Integer, "messages in the source"]
    target_messages: Annotated[Integer, "messages in the target"]
    missing: Annotated[Count, "messages of the source that the target lacks"]
    surplus: Annotated[Count, "messages of the target that the source lacks"]
    digest: Annotated[Text, "checksum of all messages in the source, in any order"]
    target_digest: Annotated[Text, "the same in the target"]
    status: Annotated[Text, "ok, surplus (such as duplicates) or missing"]


class SummaryRow(Row):
    """A run of a mirror."""

    group: Annotated[Text, "consumer group"]
    messages: Annotated[Integer, "messages that the target has acknowledged"]
    bytes: Annotated[Bytes, "what they take in a log"]
    seconds: Annotated[Seconds, "how long it ran"]
    last_error: Annotated[Text, "what went wrong last"]
    error_time: Annotated[Millis, "when that was"]
    corrupt: Annotated[Integer, "corrupt messages that were left out"]


PLAN = Document("mirror.plan/1", PlanRow, empty="no topic would be mirrored")
STATUS = Document("mirror.status/1", StatusRow, empty="no topics")
VERIFY = Document("mirror.verify/1", VerifyRow, empty="no topics")
SUMMARY = Document("mirror.run/1", SummaryRow, empty="nothing")
