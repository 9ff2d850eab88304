"""The documents of `pylogctl topic`: columns, and the records that fill them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from broker.client.list_offsets import Watermarks
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.render import Column, Document, Kind, Record
from pylogctl.format.envelope import MessageFacts
from pylogctl.topic.facts import PartitionFacts, TopicSummary

_TOPIC = Column("topic", "name of the topic")
_PARTITION = Column("partition", "partition as home broker and index")

LIST = Document(
    "topic.list/1",
    (
        Column("name", "name of the topic"),
        Column("brokers", "ids of the brokers that have partitions of it"),
        Column("partitions", "number of partitions", Kind.INTEGER),
        Column("bytes", "readable bytes", Kind.BYTES),
        Column("messages", "number of messages, with --count", Kind.INTEGER, shown=False),
        Column("first", "smallest first offset of its partitions", Kind.INTEGER),
        Column("last", "largest end offset of its partitions", Kind.INTEGER),
    ),
    empty="no topics",
)
DESCRIBE = Document(
    "topic.describe/1",
    (
        _TOPIC,
        _PARTITION,
        Column("broker", "id of the broker that serves it", Kind.INTEGER),
        Column("address", "address of that broker", shown=False),
        Column("start", "first offset", Kind.INTEGER),
        Column("end", "offset after the last readable message", Kind.INTEGER),
        Column("segments", "number of segment files", Kind.INTEGER),
        Column("bytes", "readable bytes", Kind.BYTES),
        Column("last_append", "time of the last write", Kind.TIME),
    ),
    empty="no partitions",
)
CREATE = Document(
    "topic.create/1",
    (
        _TOPIC,
        Column("broker", "id of the broker", Kind.INTEGER),
        Column("before", "partitions it had there before", Kind.INTEGER),
        Column("partitions", "partitions it has there now", Kind.INTEGER),
        Column("action", "create, created or exists"),
    ),
    empty="nothing to create",
)
DELETE = Document(
    "topic.delete/1",
    (
        _TOPIC,
        Column("broker", "id of the broker; none for ZooKeeper", Kind.INTEGER),
        Column("partitions", "partitions it has there", Kind.INTEGER),
        Column("action", "delete or deleted"),
    ),
    empty="nothing to delete",
)
OFFSETS = Document(
    "topic.offsets/1",
    (
        _TOPIC,
        _PARTITION,
        Column("start", "offset that START means", Kind.INTEGER),
        Column("end", "offset that END means", Kind.INTEGER),
        Column("bytes", "bytes from start to end", Kind.BYTES),
        Column("inner", "messages to skip in the compressed set at start", Kind.INTEGER, False),
        Column("end_inner", "messages to take of the set at end", Kind.INTEGER, False),
    ),
    empty="no partitions",
)
WATERMARKS = Document(
    "topic.watermarks/1",
    (
        _TOPIC,
        _PARTITION,
        Column("log_start", "offset of the first message", Kind.INTEGER),
        Column("high_watermark", "offset after the last readable message", Kind.INTEGER),
        Column("log_end", "offset after the last message written", Kind.INTEGER),
        Column("pending_bytes", "bytes written that are not readable yet", Kind.BYTES),
    ),
    empty="no partitions",
)
COUNT = Document(
    "topic.count/1",
    (
        _TOPIC,
        _PARTITION,
        Column("start", "offset counted from", Kind.INTEGER),
        Column("end", "offset counted up to", Kind.INTEGER),
        Column("bytes", "bytes from start to end", Kind.BYTES),
        Column("messages", "messages there, those of compressed sets one by one", Kind.INTEGER),
        Column("inner", "messages left out of the compressed set at start", Kind.INTEGER, False),
        Column("end_inner", "messages counted of the set at end", Kind.INTEGER, False),
    ),
    empty="no partitions",
)
SAMPLE = Document(
    "topic.sample/1",
    (
        _TOPIC,
        _PARTITION,
        Column("offset", "offset of the message, or of its compressed set", Kind.INTEGER),
        Column("next_offset", "offset of the next message or set", Kind.INTEGER, False),
        Column("inner", "index inside a compressed set", Kind.INTEGER),
        Column("size", "bytes of payload", Kind.INTEGER),
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
    ends = facts.ends
    return {
        **_names(facts.partition),
        "broker": facts.leader.id,
        "address": f"{facts.leader.host}:{facts.leader.port}",
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
