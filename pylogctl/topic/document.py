"""The rows of `pylogctl topic`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from broker.admin.topic_facts import PartitionFacts, ReplicaFacts, TopicSummary, state_of
from broker.admin.topics import shape_of
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.columns import (
    HIDDEN,
    UNKNOWN,
    ByteRate,
    Bytes,
    ColumnKind,
    Document,
    Fit,
    Flag,
    Integer,
    Millis,
    Rank,
    Row,
    Text,
    if_known,
)
from pylogctl.format.envelope import MessageFacts

_Topic = Annotated[str, "name of the topic"]


class PartitionName(Row):
    """The first columns of all rows about a partition."""

    topic: _Topic
    partition: Annotated[Text, "partition as home broker and index", Fit.WHOLE]


def name_of(partition: TopicPartition) -> PartitionName:
    """Return the first columns of a row about a partition."""
    return PartitionName(partition.topic, partition.name)


class PartitionState(Row):
    """The columns that tell whether a partition can be used."""

    state: Annotated[
        Text, "ok, UNDER-REPLICATED, BELOW-MIN-IN-SYNC, or OFFLINE: no leader", Fit.STATE
    ]
    offline: Annotated[Flag, "whether it has no leader", HIDDEN]
    under_replicated: Annotated[Flag, "whether a replica is not in sync", HIDDEN]


class TopicRow(Row):
    """A topic."""

    name: _Topic
    brokers: Annotated[
        tuple[int, ...], "ids of the brokers that have logs of it", Fit.WRAP, Rank(2)
    ]
    partitions: Annotated[Integer, "number of partitions, also of those without a leader"]
    replicas: Annotated[Integer, "copies of each partition; none if it has no replicas"]
    offline: Annotated[Integer, "partitions without a leader", Rank(1)]
    under_replicated: Annotated[Integer, "partitions with a replica that is not in sync", Rank(1)]
    state: Annotated[Text, "ok, UNDER-REPLICATED or OFFLINE: some of its partitions", Fit.STATE]
    bytes: Annotated[Bytes, "readable bytes"]
    messages: Annotated[Integer, "number of messages, with --count", HIDDEN]


class PartitionRow(Row):
    """A partition; one without replicas has a single one, on its broker."""

    name: PartitionName
    leader: Annotated[Integer, "id of the broker that leads it"]
    state: PartitionState
    address: Annotated[Text, "address of that broker", Fit.WHOLE, HIDDEN]
    epoch: Annotated[Integer, "leader epoch: one higher with each decision", HIDDEN]
    replicas: Annotated[tuple[int, ...], "ids of its brokers, the preferred leader first", Fit.WRAP]
    isr: Annotated[tuple[int, ...], "ids of the in-sync replicas", Fit.WRAP]
    min_isr: Annotated[Integer, "fewest of them to commit a message", HIDDEN]
    lag: Annotated[Integer, "bytes that the follower furthest behind lacks"]
    lags: Annotated[dict[str, int | None], "the same of each, by broker id", Fit.WRAP, HIDDEN]
    start: Annotated[Integer, "first offset", HIDDEN]
    end: Annotated[Integer, "offset after the last readable message"]
    segments: Annotated[Integer, "number of the leader's segment files", HIDDEN]
    bytes: Annotated[Bytes, "readable bytes", Rank(1)]
    last_append: Annotated[Millis, "time of the last write", HIDDEN]
    settings: Annotated[
        Mapping[str, str] | None, "of the topic, where not those of brokers", Fit.WRAP, HIDDEN
    ]


class CreateRow(Row):
    """Partitions of a topic on a broker."""

    topic: _Topic
    broker: Annotated[int, ColumnKind.INTEGER, "id of the broker"]
    before: Annotated[Integer, "partitions it had there before"]
    partitions: Annotated[Integer, "partitions it has there now"]
    action: Annotated[Text, "create, created or exists", Fit.STATE]


class CreateReplicatedRow(Row):
    """A partition that was made with replicas."""

    name: PartitionName
    leader: Annotated[Integer, "id of the broker that leads it"]
    replicas: Annotated[Text, "ids of its brokers, the preferred leader first", Fit.WRAP]
    isr: Annotated[Text, "ids of the in-sync replicas", Fit.WRAP]
    min_isr: Annotated[Integer, "fewest in-sync replicas to commit a message", Rank(1)]


class ElectRow(Row):
    """The outcome of a request about a partition."""

    name: PartitionName
    result: Annotated[Text, "elect, elected, begun, throttled, not throttled or refused", Fit.STATE]
    reason: Annotated[Text, "why it was refused", Fit.WRAP] = None


class ReassignPlanRow(Row):
    """A partition that would move."""

    name: PartitionName
    replicas: Annotated[Text, "ids of its brokers, the preferred leader first", Fit.WRAP]
    target: Annotated[Text, "ids of the brokers it would get", Fit.WRAP]


class ReassignStatusRow(Row):
    """A partition whose replicas are changed."""

    name: PartitionName
    original: Annotated[Text, "ids of the brokers it had", Fit.WRAP, Rank(2)]
    target: Annotated[Text, "ids of the brokers it gets", Fit.WRAP]
    copying: Annotated[Text, "those that are not in sync yet", Fit.WRAP]
    left: Annotated[Bytes, "what the last of them still has to copy"]
    percent: Annotated[Integer, "how much of the partition that one has"]
    throttle: Annotated[ByteRate, "bytes per second that a broker may copy", Rank(1)]


class DeleteRow(Row):
    """Something of a topic that is deleted."""

    topic: _Topic
    broker: Annotated[Integer, "id of the broker; none for ZooKeeper"]
    partitions: Annotated[Integer, "partitions it has there"]
    group: Annotated[Text, "group whose offsets of it are deleted; else none"]
    action: Annotated[Text, "delete or deleted", Fit.STATE]


class OffsetsRow(Row):
    """The offsets that a range means in a partition."""

    name: PartitionName
    start: Annotated[Integer, "offset that START means"]
    end: Annotated[Integer, "offset that END means"]
    bytes: Annotated[Bytes, "bytes from start to end"]
    inner: Annotated[Integer, "messages to skip in the compressed set at start", HIDDEN]
    end_inner: Annotated[Integer, "messages to take of the set at end", HIDDEN]


class CountRow(Row):
    """The messages of a range."""

    name: PartitionName
    start: Annotated[Integer, "offset counted from"]
    end: Annotated[Integer, "offset counted up to"]
    bytes: Annotated[Bytes, "bytes from start to end"]
    messages: Annotated[Integer, "messages there, those of compressed sets one by one"]
    inner: Annotated[Integer, "messages left out of the compressed set at start", HIDDEN]
    end_inner: Annotated[Integer, "messages counted of the set at end", HIDDEN]


class SampleRow(Row):
    """A message."""

    name: PartitionName
    offset: Annotated[Integer, "offset of the message, or of its compressed set"]
    next_offset: Annotated[Integer, "offset of the next message or set", HIDDEN]
    inner: Annotated[Integer, "index inside a compressed set"]
    size: Annotated[Bytes, "bytes of payload"]
    codec: Annotated[Text, "compression of its entry", Fit.WHOLE, HIDDEN]
    crc: Annotated[Text, "CRC-32 of the payload", Fit.WHOLE, HIDDEN]
    payload: Annotated[Text, "the payload as text"]


LIST = Document("topic.list/1", TopicRow, empty="no topics")
DESCRIBE = Document("topic.describe/1", PartitionRow, empty="no partitions")
CREATE = Document("topic.create/1", CreateRow, empty="nothing to create")
CREATE_REPLICATED = Document(
    "topic.create-replicated/1", CreateReplicatedRow, empty="nothing to create"
)
ELECT = Document("topic.elect/1", ElectRow, empty="nothing to do")
REASSIGN_PLAN = Document("topic.reassign-plan/1", ReassignPlanRow, empty="nothing would move")
REASSIGN_STATUS = Document(
    "topic.reassign-status/1", ReassignStatusRow, empty="no change of replicas is under way"
)
DELETE = Document("topic.delete/1", DeleteRow, empty="nothing to delete")
OFFSETS = Document("topic.offsets/1", OffsetsRow, empty="no partitions")
COUNT = Document("topic.count/1", CountRow, empty="no partitions")
SAMPLE = Document("topic.sample/1", SampleRow, empty="no messages")
LIST_WITH_COUNT = LIST.showing("messages")


def topic_row(summary: TopicSummary, message_count: int | None) -> TopicRow:
    """Return a row of `LIST`; `message_count` is None if messages were not counted."""
    topic = shape_of(summary.topic, summary.partitions, summary.size_bytes)
    return TopicRow(
        topic.name,
        topic.brokers,
        topic.partitions,
        topic.replicas,
        topic.offline,
        topic.under_replicated,
        _mark(topic.state, is_known=summary.ends is not None),
        if_known(topic.size_bytes),
        if_known(message_count),
    )


def _mark(state: str, *, is_known: bool) -> str:
    """Return a state as it stands in a table: seen without colour if it is not ok."""
    if state == "ok":
        return state if is_known else UNKNOWN
    return state.upper().replace(" ", "-")


def _state_of(facts: PartitionFacts, found: ReplicaFacts) -> PartitionState:
    state = state_of(facts.leader, found.replicas, found.isr, found.min_isr)
    return PartitionState(
        _mark(state, is_known=facts.ends is not None),
        facts.leader is None,
        len(found.isr) < len(found.replicas),
    )


def partition_row(facts: PartitionFacts) -> PartitionRow:
    """Return a row of `DESCRIBE`."""
    leader = facts.leader
    home = (facts.partition.home,)
    found = facts.replicas or ReplicaFacts(0, home, home, 1, {}, None)
    followers = [id for id in found.replicas if leader is None or id != leader.id]
    lags = {str(id): found.lags.get(id) for id in followers} if facts.replicas else {}
    known = [lag for lag in lags.values() if lag is not None]
    return PartitionRow(
        name_of(facts.partition),
        leader=None if leader is None else leader.id,
        state=_state_of(facts, found),
        epoch=found.leader_epoch,
        replicas=found.replicas,
        isr=found.isr,
        min_isr=found.min_isr,
        lag=None if not lags else UNKNOWN if len(known) < len(lags) else max(known),
        lags=lags,
        settings=found.settings,
        **_log_fields(facts),
    )


def _log_fields(facts: PartitionFacts) -> dict[str, Any]:
    ends, leader = facts.ends, facts.leader
    return {
        "address": None if leader is None else leader.text,
        "start": UNKNOWN if ends is None else ends.start,
        "end": UNKNOWN if ends is None else ends.end,
        "segments": UNKNOWN if ends is None else facts.segment_count,
        "bytes": UNKNOWN if ends is None else ends.end - ends.start,
        "last_append": UNKNOWN if ends is None else facts.last_append_ms,
    }


def offsets_row(partition: TopicPartition, found: ReadRange | None) -> OffsetsRow:
    """Return a row of `OFFSETS`; `found` is None if the partition cannot be read."""
    return OffsetsRow(name_of(partition), **_range_fields(found))


def count_row(
    partition: TopicPartition, found: ReadRange | None, message_count: int | None
) -> CountRow:
    """Return a row of `COUNT`; without a range and a count if the partition cannot be read."""
    return CountRow(name_of(partition), messages=if_known(message_count), **_range_fields(found))


def count_total(rows: Sequence[CountRow]) -> dict[str, Any]:
    """Return the last row of `COUNT`; the sums are unknown if a partition cannot be read."""
    is_whole = not any(row.messages is UNKNOWN for row in rows)
    return {
        "topic": "total",
        "bytes": sum(row.bytes or 0 for row in rows) if is_whole else UNKNOWN,
        "messages": sum(row.messages or 0 for row in rows) if is_whole else UNKNOWN,
    }


def _range_fields(found: ReadRange | None) -> dict[str, Any]:
    if found is None:
        return dict.fromkeys(("start", "inner", "end", "end_inner", "bytes"), UNKNOWN)
    start, end = found.start, found.end
    return {
        "start": start.offset,
        "inner": start.inner,
        "end": None if end is None else end.offset,
        "end_inner": None if end is None else end.inner,
        "bytes": None if end is None else max(0, end.offset - start.offset),
    }


def sample_row(message: MessageFacts, show_payload: Callable[[bytes], str]) -> SampleRow:
    """Return a row of `SAMPLE`; `show_payload` turns the payload into text."""
    return SampleRow(
        name_of(message.partition),
        message.offset,
        message.next_offset,
        message.inner,
        len(message.payload),
        message.codec,
        f"{message.crc:08x}",
        show_payload(message.payload),
    )
