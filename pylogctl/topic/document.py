"""The rows of `pylogctl topic`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

from broker.admin.reassignment import Move, MoveProgress
from broker.admin.topics import PartitionInfo, TopicInfo
from broker.records import HIDDEN, Bytes, ColumnKind, Fit, Integer, Rank, Text, Title
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.columns import UNKNOWN, Column, Document, Row, by_column, if_known
from pylogctl.format.envelope import MessageFacts

_Topic = Annotated[str, "name of the topic"]


class CreateRow(Row):
    """Partitions of a topic on a broker."""

    topic: _Topic
    broker: Annotated[int, ColumnKind.INTEGER, "id of the broker"]
    before: Annotated[Integer, "partitions it had there before"]
    partitions: Annotated[Integer, "partitions it has there now"]
    action: Annotated[Text, "create, created or exists", Fit.STATE]


class CreateReplicatedRow(Row):
    """A partition that was made with replicas."""

    partition: TopicPartition
    leader: Annotated[Integer, "id of the broker that leads it"]
    replicas: Annotated[tuple[int, ...], "ids of its brokers, the preferred leader first", Fit.WRAP]
    in_sync: Annotated[tuple[int, ...], "ids of the in-sync replicas", Fit.WRAP]
    min_in_sync: Annotated[Integer, "fewest in-sync replicas to commit a message", Rank(1)]


class ElectRow(Row):
    """The outcome of a request about a partition."""

    partition: TopicPartition
    result: Annotated[Text, "elect, elected, begun, throttled, not throttled or refused", Fit.STATE]
    reason: Annotated[Text, "why it was refused", Fit.WRAP] = None


class DeleteRow(Row):
    """Something of a topic that is deleted."""

    topic: _Topic
    broker: Annotated[Integer, "id of the broker; none for ZooKeeper"]
    partitions: Annotated[Integer, "partitions it has there"]
    group: Annotated[Text, "group whose offsets of it are deleted; else none"]
    action: Annotated[Text, "delete or deleted", Fit.STATE]


class OffsetsRow(Row):
    """The offsets that a range means in a partition."""

    partition: TopicPartition
    start: Annotated[Integer, "offset that START means"]
    end: Annotated[Integer, "offset that END means"]
    size_bytes: Annotated[Bytes, "bytes from start to end; none in the format kafka", Title("SIZE")]
    inner: Annotated[Integer, "messages to skip in the compressed set at start", HIDDEN]
    end_inner: Annotated[Integer, "messages to take of the set at end", HIDDEN]


class CountRow(Row):
    """The messages of a range."""

    partition: TopicPartition
    start: Annotated[Integer, "offset counted from"]
    end: Annotated[Integer, "offset counted up to"]
    size_bytes: Annotated[Bytes, "bytes from start to end; none in the format kafka", Title("SIZE")]
    messages: Annotated[Integer, "messages there, those of compressed sets one by one"]
    inner: Annotated[Integer, "messages left out of the compressed set at start", HIDDEN]
    end_inner: Annotated[Integer, "messages counted of the set at end", HIDDEN]


class SampleRow(Row):
    """A message."""

    partition: TopicPartition
    offset: Annotated[Integer, "offset of the message, or of its compressed set"]
    next_offset: Annotated[Integer, "offset of the next message or set", HIDDEN]
    inner: Annotated[Integer, "index inside a compressed set"]
    size: Annotated[Bytes, "bytes of payload"]
    codec: Annotated[Text, "compression of its entry", Fit.WHOLE, HIDDEN]
    crc: Annotated[Text, "CRC-32 of the payload", Fit.WHOLE, HIDDEN]
    payload: Annotated[Text, "the payload as text"]


LIST = Document("topic.list/2", TopicInfo, empty="no topics").also(
    Column("messages", "number of messages, with --count", ColumnKind.INTEGER, shown=False)
)
DESCRIBE = Document("topic.describe/2", PartitionInfo, empty="no partitions")
CREATE = Document("topic.create/1", CreateRow, empty="nothing to create")
CREATE_REPLICATED = Document(
    "topic.create-replicated/2", CreateReplicatedRow, empty="nothing to create"
)
ELECT = Document("topic.elect/1", ElectRow, empty="nothing to do")
REASSIGN_PLAN = Document("topic.reassign-plan/2", Move, empty="nothing would move")
REASSIGN_STATUS = Document(
    "topic.reassign-status/2", MoveProgress, empty="no change of replicas is under way"
)
DELETE = Document("topic.delete/1", DeleteRow, empty="nothing to delete")
OFFSETS = Document("topic.offsets/2", OffsetsRow, empty="no partitions")
COUNT = Document("topic.count/2", CountRow, empty="no partitions")
SAMPLE = Document("topic.sample/1", SampleRow, empty="no messages")
LIST_WITH_COUNT = LIST.showing("messages")


def topic_row(topic: TopicInfo, message_count: int | None) -> dict[str, Any]:
    """Return a row of `LIST`; `message_count` is None if messages were not counted."""
    row = {**by_column(topic), "messages": if_known(message_count)}
    if topic.state == "ok" and topic.size_bytes is None:  # a broker that is silent may have failed
        row["state"] = UNKNOWN
    return row


def partition_row(one: PartitionInfo) -> dict[str, Any]:
    """Return a row of `DESCRIBE`; without followers there is no lag."""
    return {**by_column(one), "lag": if_known(one.lag) if one.lags else None}


def offsets_row(partition: TopicPartition, found: ReadRange | None) -> OffsetsRow:
    """Return a row of `OFFSETS`; `found` is None if the partition cannot be read."""
    return OffsetsRow(partition, **_range_fields(partition, found))


def count_row(
    partition: TopicPartition, found: ReadRange | None, message_count: int | None
) -> CountRow:
    """Return a row of `COUNT`; without a range and a count if the partition cannot be read."""
    fields = _range_fields(partition, found)
    return CountRow(partition, messages=if_known(message_count), **fields)


def count_total(rows: Sequence[CountRow]) -> dict[str, Any]:
    """Return the last row of `COUNT`; the sums are unknown if a partition cannot be read."""
    is_whole = not any(row.messages is UNKNOWN for row in rows)
    return {
        "topic": "total",
        "size_bytes": sum(row.size_bytes or 0 for row in rows) if is_whole else UNKNOWN,
        "messages": sum(row.messages or 0 for row in rows) if is_whole else UNKNOWN,
    }


def _range_fields(partition: TopicPartition, found: ReadRange | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(("start", "inner", "end", "end_inner", "size_bytes"), UNKNOWN)
    start, end = found.start, found.end
    has_bytes = end is not None and not partition.has_records  # whose offsets count records
    return {
        "start": start.offset,
        "inner": start.inner,
        "end": None if end is None else end.offset,
        "end_inner": None if end is None else end.inner,
        "size_bytes": max(0, end.offset - start.offset) if end and has_bytes else None,
    }


def sample_row(message: MessageFacts, show_payload: Callable[[bytes], str]) -> SampleRow:
    """Return a row of `SAMPLE`; `show_payload` turns the payload into text."""
    return SampleRow.of(
        message,
        size=len(message.payload),
        crc=f"{message.crc:08x}",
        payload=show_payload(message.payload),
    )
