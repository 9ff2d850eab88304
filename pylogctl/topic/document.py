"""The documents of `pylogctl topic`: columns, and the records that fill them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.client.list_offsets import Watermarks
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.render import Column, ColumnKind, Document, Record
from pylogctl.format.envelope import MessageFacts
from pylogctl.topic.facts import PartitionFacts, ReplicaFacts, TopicSummary

_TOPIC = Column("topic", "name of the topic")
_PARTITION = Column("partition", "partition as home broker and index")

LIST = Document(
    "topic.list/1",
    (
        Column("name", "name of the topic"),
        Column("brokers", "ids of the brokers that have partitions of it"),
        Column("partitions", "number of partitions", ColumnKind.INTEGER),
        Column("bytes", "readable bytes", ColumnKind.BYTES),
        Column("messages", "number of messages, with --count", ColumnKind.INTEGER, shown=False),
        Column("first", "smallest first offset of its partitions", ColumnKind.INTEGER),
        Column("last", "largest end offset of its partitions", ColumnKind.INTEGER),
    ),
    empty="no topics",
)
DESCRIBE = Document(
    "topic.describe/1",
    (
        _TOPIC,
        _PARTITION,
        Column("broker", "id of the broker that serves it", ColumnKind.INTEGER),
        Column("address", "address of that broker", shown=False),
        Column("start", "first offset", ColumnKind.INTEGER),
        Column("end", "offset after the last readable message", ColumnKind.INTEGER),
        Column("segments", "number of segment files", ColumnKind.INTEGER),
        Column("bytes", "readable bytes", ColumnKind.BYTES),
        Column("last_append", "time of the last write", ColumnKind.TIME),
    ),
    empty="no partitions",
)
DESCRIBE_REPLICATED = Document(
    "topic.describe-replicated/1",
    (
        _TOPIC,
        _PARTITION,
        Column("leader", "id of the broker that leads it", ColumnKind.INTEGER),
        Column("address", "address of that broker", shown=False),
        Column("epoch", "leader epoch: one higher with each decision", ColumnKind.INTEGER),
        Column("replicas", "ids of its brokers, the preferred leader first"),
        Column("isr", "ids of the in-sync replicas"),
        Column("min_isr", "fewest of them to commit a message", ColumnKind.INTEGER, shown=False),
        Column("lag", "bytes that each follower is behind, by broker id"),
        Column("start", "first offset", ColumnKind.INTEGER, shown=False),
        Column("end", "offset after the last readable message", ColumnKind.INTEGER, shown=False),
        Column("segments", "number of the leader's segment files", ColumnKind.INTEGER, shown=False),
        Column("bytes", "readable bytes", ColumnKind.BYTES),
        Column("last_append", "time of the last write", ColumnKind.TIME, shown=False),
        Column("settings", "of the topic, where not those of brokers", shown=False),
    ),
    empty="no partitions",
)
CREATE = Document(
    "topic.create/1",
    (
        _TOPIC,
        Column("broker", "id of the broker", ColumnKind.INTEGER),
        Column("before", "partitions it had there before", ColumnKind.INTEGER),
        Column("partitions", "partitions it has there now", ColumnKind.INTEGER),
        Column("action", "create, created or exists"),
    ),
    empty="nothing to create",
)
CREATE_REPLICATED = Document(
    "topic.create-replicated/1",
    (
        _TOPIC,
        _PARTITION,
        Column("leader", "id of the broker that leads it", ColumnKind.INTEGER),
        Column("replicas", "ids of its brokers, the preferred leader first"),
        Column("isr", "ids of the in-sync replicas"),
        Column("min_isr", "fewest in-sync replicas to commit a message", ColumnKind.INTEGER),
    ),
    empty="nothing to create",
)
ELECT = Document(
    "topic.elect/1",
    (
        _TOPIC,
        _PARTITION,
        Column("result", "elect, elected, begun, throttled, not throttled or refused"),
        Column("reason", "why it was refused"),
    ),
    empty="nothing to do",
)
REASSIGN_PLAN = Document(
    "topic.reassign-plan/1",
    (
        _TOPIC,
        _PARTITION,
        Column("replicas", "ids of its brokers, the preferred leader first"),
        Column("target", "ids of the brokers it would get"),
    ),
    empty="nothing would move",
)
REASSIGN_STATUS = Document(
    "topic.reassign-status/1",
    (
        _TOPIC,
        _PARTITION,
        Column("original", "ids of the brokers it had"),
        Column("target", "ids of the brokers it gets"),
        Column("copying", "those that are not in sync yet"),
        Column("left", "what the last of them still has to copy", ColumnKind.BYTES),
        Column("percent", "how much of the partition that one has", ColumnKind.INTEGER),
        Column("throttle", "bytes per second that a broker may copy", ColumnKind.BYTES),
    ),
    empty="no change of replicas is under way",
)
DELETE = Document(
    "topic.delete/1",
    (
        _TOPIC,
        Column("broker", "id of the broker; none for ZooKeeper", ColumnKind.INTEGER),
        Column("partitions", "partitions it has there", ColumnKind.INTEGER),
        Column("group", "group whose offsets of it are deleted; else none"),
        Column("action", "delete or deleted"),
    ),
    empty="nothing to delete",
)
OFFSETS = Document(
    "topic.offsets/1",
    (
        _TOPIC,
        _PARTITION,
        Column("start", "offset that START means", ColumnKind.INTEGER),
        Column("end", "offset that END means", ColumnKind.INTEGER),
        Column("bytes", "bytes from start to end", ColumnKind.BYTES),
        Column(
            "inner", "messages to skip in the compressed set at start", ColumnKind.INTEGER, False
        ),
        Column("end_inner", "messages to take of the set at end", ColumnKind.INTEGER, False),
    ),
    empty="no partitions",
)
WATERMARKS = Document(
    "topic.watermarks/1",
    (
        _TOPIC,
        _PARTITION,
        Column("log_start", "offset of the first message", ColumnKind.INTEGER),
        Column("high_watermark", "offset after the last readable message", ColumnKind.INTEGER),
        Column("log_end", "offset after the last message written", ColumnKind.INTEGER),
        Column("pending_bytes", "bytes written that are not readable yet", ColumnKind.BYTES),
    ),
    empty="no partitions",
)
COUNT = Document(
    "topic.count/1",
    (
        _TOPIC,
        _PARTITION,
        Column("start", "offset counted from", ColumnKind.INTEGER),
        Column("end", "offset counted up to", ColumnKind.INTEGER),
        Column("bytes", "bytes from start to end", ColumnKind.BYTES),
        Column(
            "messages", "messages there, those of compressed sets one by one", ColumnKind.INTEGER
        ),
        Column(
            "inner", "messages left out of the compressed set at start", ColumnKind.INTEGER, False
        ),
        Column("end_inner", "messages counted of the set at end", ColumnKind.INTEGER, False),
    ),
    empty="no partitions",
)
SAMPLE = Document(
    "topic.sample/1",
    (
        _TOPIC,
        _PARTITION,
        Column("offset", "offset of the message, or of its compressed set", ColumnKind.INTEGER),
        Column("next_offset", "offset of the next message or set", ColumnKind.INTEGER, False),
        Column("inner", "index inside a compressed set", ColumnKind.INTEGER),
        Column("size", "bytes of payload", ColumnKind.INTEGER),
        Column("codec", "compression of its entry", shown=False),
        Column("crc", "CRC-32 of the payload", shown=False),
        Column("payload", "the payload as text"),
    ),
    empty="no messages",
)
LIST_WITH_COUNT = LIST._replace(columns=tuple(c._replace(shown=True) for c in LIST.columns))


def _names(partition: TopicPartition) -> dict[str, Any]:
    return {"topic": partition.topic, "partition": partition.name}


def list_record(summary: TopicSummary, message_count: int | None) -> Record:
    """Return a row of `LIST`; `message_count` is None if messages were not counted."""
    ends = list((summary.ends or {}).values())
    return {
        "name": summary.topic,
        "brokers": sorted({partition.home for partition in summary.partitions}),
        "partitions": len(summary.partitions),
        "bytes": summary.size_bytes,
        "messages": message_count,
        "first": min((one.start for one in ends), default=None),
        "last": max((one.end for one in ends), default=None),
    }


def describe_record(facts: PartitionFacts) -> Record:
    """Return a row of `DESCRIBE`."""
    leader = facts.leader
    return {
        **_names(facts.partition),
        "broker": None if leader is None else leader.id,
        **_log_fields(facts),
    }


def describe_replicated_record(facts: PartitionFacts) -> Record:
    """Return a row of `DESCRIBE_REPLICATED`, also for a topic without replicas."""
    leader, home = facts.leader, facts.partition.home
    found = facts.replicas or ReplicaFacts(0, (home,), (home,), 1, {}, None)
    followers = [id for id in found.replicas if leader is None or id != leader.id]
    return {
        **_names(facts.partition),
        "leader": None if leader is None else leader.id,
        "epoch": found.leader_epoch,
        "replicas": list(found.replicas),
        "isr": list(found.isr),
        "min_isr": found.min_isr,
        "lag": {str(id): found.lags.get(id) for id in followers},
        "settings": found.settings,
        **_log_fields(facts),
    }


def _log_fields(facts: PartitionFacts) -> dict[str, Any]:
    ends, leader = facts.ends, facts.leader
    return {
        "address": None if leader is None else f"{leader.host}:{leader.port}",
        "start": None if ends is None else ends.start,
        "end": None if ends is None else ends.end,
        "segments": facts.segment_count,
        "bytes": None if ends is None else ends.end - ends.start,
        "last_append": facts.last_append_ms,
    }


def offsets_record(partition: TopicPartition, found: ReadRange) -> dict[str, Any]:
    """Return a row of `OFFSETS`."""
    start, end = found.start, found.end
    return {
        **_names(partition),
        "start": start.offset,
        "inner": start.inner,
        "end": None if end is None else end.offset,
        "end_inner": None if end is None else end.inner,
        "bytes": None if end is None else max(0, end.offset - start.offset),
    }


def count_record(partition: TopicPartition, found: ReadRange, message_count: int) -> dict[str, Any]:
    """Return a row of `COUNT`."""
    return {**offsets_record(partition, found), "messages": message_count}


def count_total(records: Sequence[Record]) -> Record:
    """Return the last row of `COUNT`."""
    sums = {name: sum(record[name] for record in records) for name in ("bytes", "messages")}
    return {"topic": "total", **sums}


def watermarks_record(partition: TopicPartition, found: Watermarks | None) -> Record:
    """Return a row of `WATERMARKS`; `found` is None if the broker did not respond."""
    if found is None:
        return _names(partition)
    pending = None if found.log_end is None else found.log_end - found.high_watermark
    return {**_names(partition), **found._asdict(), "pending_bytes": pending}


def sample_record(message: MessageFacts, show_payload: Callable[[bytes], str]) -> Record:
    """Return a row of `SAMPLE`; `show_payload` turns the payload into text."""
    return {
        **_names(message.partition),
        "offset": message.offset,
        "next_offset": message.next_offset,
        "inner": message.inner,
        "size": len(message.payload),
        "codec": message.codec,
        "crc": f"{message.crc:08x}",
        "payload": show_payload(message.payload),
    }
