"""The rows of `pylogctl mirror`, and the documents that show them."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import (
    HIDDEN,
    ByteRate,
    Bytes,
    Count,
    Document,
    Fit,
    Flag,
    Integer,
    Millis,
    Rank,
    Row,
    Seconds,
    Size,
    Text,
)


class PlanRow(Row):
    """A topic that would be mirrored."""

    topic: Annotated[Text, "topic of the source"]
    target: Annotated[Text, "what it is called in the target"]
    partitions: Annotated[Integer, "partitions in the source", Rank(3)]
    target_partitions: Annotated[Integer, "partitions in the target", Rank(3)]
    bytes: Annotated[Bytes, "bytes that can be read in the source"]
    action: Annotated[Text, "exists, or create if it is missing in the target", Fit.STATE]


class Errors(Row):
    """The last error of a topic."""

    failing: Annotated[Flag, "whether nothing came through since the last error"]
    error_time: Annotated[Millis, "when something went wrong last", HIDDEN] = None
    last_error: Annotated[Text, "what went wrong last", Fit.WRAP] = None
    corrupt: Annotated[Integer, "corrupt messages that were left out", HIDDEN] = 0


class StatusRow(Row):
    """How far a topic is mirrored."""

    topic: Annotated[Text, "topic of the source"]
    end: Annotated[Integer, "end of the source, the sum over its partitions", Rank(3)]
    mirrored: Annotated[Integer, "offset mirrored so far, summed likewise", Rank(2)]
    lag_bytes: Annotated[Size, "bytes that are not mirrored yet"]
    rate: Annotated[ByteRate, "bytes mirrored per second, with --interval", Rank(1)]
    mirrors: Annotated[Integer, "running mirrors of the group", Rank(2)]
    errors: Errors


class VerifyRow(Row):
    """A topic in source and target."""

    topic: Annotated[Text, "topic of the source"]
    target: Annotated[Text, "what it is called in the target", Rank(1)]
    messages: Annotated[Integer, "messages in the source"]
    target_messages: Annotated[Integer, "messages in the target", Rank(2)]
    missing: Annotated[Count, "messages of the source that the target lacks"]
    surplus: Annotated[Count, "messages of the target that the source lacks"]
    digest: Annotated[
        Text, "checksum of all messages in the source, in any order", Fit.WHOLE, Rank(3)
    ]
    target_digest: Annotated[Text, "the same in the target", Fit.WHOLE, Rank(3)]
    status: Annotated[Text, "ok, surplus (such as duplicates) or missing", Fit.STATE]


class SummaryRow(Row):
    """A run of a mirror."""

    group: Annotated[Text, "consumer group"]
    messages: Annotated[Integer, "messages that the target has acknowledged"]
    bytes: Annotated[Bytes, "what they take in a log"]
    seconds: Annotated[Seconds, "how long it ran"]
    last_error: Annotated[Text, "what went wrong last", Fit.WRAP]
    error_time: Annotated[Millis, "when that was"]
    corrupt: Annotated[Integer, "corrupt messages that were left out"]


PLAN = Document("mirror.plan/1", PlanRow, empty="no topic would be mirrored")
STATUS = Document("mirror.status/1", StatusRow, empty="no topics")
VERIFY = Document("mirror.verify/1", VerifyRow, empty="no topics")
SUMMARY = Document("mirror.run/1", SummaryRow, empty="nothing")
