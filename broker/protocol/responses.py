"""Responses to 0.7's fetch, multifetch and offsets requests, and to ours (REQUESTS.md)."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Annotated, NamedTuple

from broker import errors
from broker.endpoints import join_address
from broker.ids import NO_EPOCH, NO_LEADER
from broker.protocol import layouts, primitives
from broker.protocol.framing import encode_frame
from broker.protocol.layouts import Int32, Int64
from broker.protocol.primitives import INT16, INT32, INT64, Buffer, Reader, encode_short_string
from broker.protocol.requests import decode_partition, encode_partition
from broker.topic import FORMAT_07, TopicPartition

ERROR_BYTES = 2
LAST_RESPONSE_ID = -1  # of the response that ends a connection; no request has it
_HEADER = struct.Struct(">ihi")
_ERROR_AND_ID = struct.Struct(">hi")
# error, high watermark and log start offset of a partition, and the size of its set
_PART = struct.Struct(">hqqi")
# error, high watermark, log start offset and next offset of a filtered part
_FILTERED = struct.Struct(">hqqq")


def encode_fetch_header(error: int, set_bytes: int) -> bytes:
    """Return the bytes before the message set in a fetch response, or in a part of a multifetch."""
    return INT32.pack(ERROR_BYTES + set_bytes) + INT16.pack(error)


def encode_multifetch_header(part_bytes: int) -> bytes:
    """Return the bytes before the parts of a multifetch response."""
    # `part_bytes` is the length of all parts, their headers included
    return encode_fetch_header(errors.NO_ERROR, part_bytes)


def encode_offsets_response(offsets: list[int]) -> bytes:
    """Return the response to an offsets request, newest offset first."""
    return encode_frame(
        INT16.pack(errors.NO_ERROR), INT32.pack(len(offsets)), b"".join(map(INT64.pack, offsets))
    )


def decode_fetch_response(frame: Buffer) -> tuple[int, memoryview]:
    """Return the error code and the message set of a fetch response without its size field."""
    reader = Reader(frame)
    return reader.int16(), reader.data(reader.remaining)


def decode_multifetch_response(frame: Buffer) -> list[tuple[int, memoryview]]:
    """Return error code and message set of each part; `ProtocolError` if parts are cut off."""
    reader = Reader(frame)
    reader.int16()
    parts = []
    while reader.remaining:
        part = reader.data(reader.int32())
        parts.append(decode_fetch_response(part))
    return parts


def decode_offsets_response(frame: Buffer) -> list[int]:
    """Return the offsets of an offsets response; raise its error if it carries one."""
    reader = Reader(frame)
    code = reader.int16()
    if code != errors.NO_ERROR:
        raise errors.error_for_code(code, "the broker refused the offsets request")
    return [reader.int64() for _ in range(reader.count(INT32, 8))]


def encode_extension_header(
    correlation_id: int, body_bytes: int, error: int = errors.NO_ERROR
) -> bytes:
    """Return the size field, error code and correlation id that start an extension response."""
    return _HEADER.pack(_ERROR_AND_ID.size + body_bytes, error, correlation_id)


def encode_extension_response(correlation_id: int, body: Buffer) -> bytes:
    """Return the frame of a successful response to an extension request."""
    return encode_extension_header(correlation_id, len(body)) + body


def encode_extension_error(correlation_id: int, error: int, text: str) -> bytes:
    """Return the frame that refuses an extension request as a whole."""
    body = encode_short_string(primitives.clip(text))
    return encode_extension_header(correlation_id, len(body), error) + body


def encode_last_response(text: str) -> bytes:
    """Return the frame with which a broker that stops ends a connection, after all responses.

    All acknowledged messages are flushed; those of requests without a response are not stored.
    """
    return encode_extension_error(LAST_RESPONSE_ID, errors.ShuttingDownError.code, text)


def decode_extension_response(frame: Buffer) -> tuple[int, Reader]:
    """Return the correlation id and body of a response, given without its size field.

    Raises:
        ServerError: the request was refused as a whole.
        BrokerStoppedError: it is the last response of a broker that stops.
    """
    reader = Reader(frame)
    code, correlation_id = reader.fields(_ERROR_AND_ID)
    if code != errors.NO_ERROR:
        text = reader.short_string()
        if correlation_id == LAST_RESPONSE_ID:
            raise errors.BrokerStoppedError(text)
        raise errors.error_for_code(code, text)
    return correlation_id, reader


HIDDEN_CLUSTER = "-"
"""Stands for the id of a cluster that the client may not know."""


class _Versions(NamedTuple):
    request_type: layouts.Int16
    least: layouts.Int16
    greatest: layouts.Int16


VERSIONS: layouts.Layout[dict[int, tuple[int, int]]] = layouts.mapped(
    layouts.response_list(layouts.record(_Versions)),
    lambda versions: [_Versions(number, *limits) for number, limits in versions.items()],
    lambda found: {number: (least, greatest) for number, least, greatest in found},
)


class HelloResponse(NamedTuple):
    """Identity and limits of a broker; `versions` has the least and greatest version by type."""

    broker_id: Int32
    cluster_id: str
    software: str
    max_message_bytes: Int32
    max_request_bytes: Int32
    versions: Annotated[dict[int, tuple[int, int]], VERSIONS]
    time_ms: Int64 = 0  # of its clock, since 1970


HELLO = layouts.record(HelloResponse)
NO_TERM = -1  # the term of a set that was not appended
_PUBLISHED = struct.Struct(">hqq")  # error, base offset, term


class Published(NamedTuple):
    """The result of one message set of a publish."""

    partition: TopicPartition
    error: int  # 0 for none
    base_offset: int  # of the set in the log; with an error, its `errors.detail_of`
    text: str  # of the error
    term: int = NO_TERM  # in which the set was appended, for `OffsetKind.TERM_END`


def encode_publish_response(results: list[Published]) -> bytes:
    """Return the body of the response to a publish."""
    parts = [INT32.pack(len(results))]
    for partition, error, base_offset, text, term in results:
        parts += (
            encode_partition(partition),
            _PUBLISHED.pack(error, base_offset, term),
            encode_short_string(primitives.clip(text)),
        )
    return b"".join(parts)


def decode_publish_response(reader: Reader) -> list[Published]:
    """Read the body of the response to a publish."""
    return [_decode_published(reader) for _ in range(reader.count(INT32, 30))]


def _decode_published(reader: Reader) -> Published:
    partition = decode_partition(reader)
    error, base_offset, term = reader.fields(_PUBLISHED)
    return Published(partition, error, base_offset, reader.short_string(), term)


class ReadPart(NamedTuple):
    """One partition of a read."""

    partition: TopicPartition
    error: int
    high_watermark: int = 0  # with `NotLeaderError`, the id of the leader
    log_start_offset: int = 0
    message_set: Buffer = b""


def encode_read_part_header(part: ReadPart, set_bytes: int) -> bytes:
    """Return the bytes before a partition's message set in the response to a read."""
    return encode_partition(part.partition) + _PART.pack(
        part.error, part.high_watermark, part.log_start_offset, set_bytes
    )


def decode_read_response(reader: Reader) -> list[ReadPart]:
    """Read the body of the response to a read; the message sets are views on it."""
    parts = []
    for _ in range(reader.count(INT32, 32)):
        partition = decode_partition(reader)
        error, high_watermark, log_start_offset, set_bytes = reader.fields(_PART)
        message_set = reader.data(set_bytes)
        parts.append(ReadPart(partition, error, high_watermark, log_start_offset, message_set))
    return parts


class Run(NamedTuple):
    """Entries that are adjacent in a log, from an offset on."""

    offset: int
    entries: Buffer


class FilteredPart(NamedTuple):
    """One partition of a filtered read.

    `runs` hold the wanted entries before `next_offset`, where reading continues. An `error`, with
    `text`, is about that offset.
    """

    partition: TopicPartition
    error: int
    high_watermark: int
    log_start_offset: int
    next_offset: int
    text: str
    runs: tuple[Run, ...]


def encode_filtered_part_header(part: FilteredPart, run_count: int) -> bytes:
    """Return the bytes before a partition's runs in the response to a filtered read."""
    return b"".join(
        (
            encode_partition(part.partition),
            _FILTERED.pack(*part[1:5]),
            encode_short_string(primitives.clip(part.text)),
            INT32.pack(run_count),
        )
    )


def encode_run(run: Run) -> bytes:
    """Return one run of a filtered part."""
    return b"".join((INT64.pack(run.offset), INT32.pack(len(run.entries)), run.entries))


def decode_filtered_read_response(reader: Reader) -> list[FilteredPart]:
    """Read the body of the response to a filtered read; the entries are views on it."""
    parts = []
    for _ in range(reader.count(INT32, 42)):
        head = decode_partition(reader), *reader.fields(_FILTERED), reader.short_string()
        count = reader.count(INT32, 12)
        runs = tuple(Run(reader.int64(), reader.data(reader.int32())) for _ in range(count))
        parts.append(FilteredPart._make((*head, runs)))
    return parts


class BrokerAddress(NamedTuple):
    """The address a broker listens at."""

    id: Int32
    host: str
    port: Int32

    @property
    def text(self) -> str:
        """Return `host:port`, an IPv6 address in brackets."""
        return join_address(self.host, self.port)


class PartitionMetadata(NamedTuple):
    """A partition's leader, replicas and in-sync replicas, as broker ids."""

    partition: TopicPartition
    error: int  # 0, or that there is no leader
    leader: int  # -1 if there is none at present
    replicas: tuple[int, ...]  # the preferred leader first
    isr: tuple[int, ...]  # those of the replicas that have all committed messages
    leader_epoch: int = NO_EPOCH  # higher with each change of the leader
    min_isr: int = 1  # the fewest in-sync replicas with which messages are committed

    @property
    def is_replicated(self) -> bool:
        """Return whether the controller manages it, even with a single replica."""
        return self.leader_epoch != NO_EPOCH


class TopicMetadata(NamedTuple):
    """A topic's partitions, or the error that there are none."""

    topic: str
    error: int  # 0, or why there are no partitions
    partitions: tuple[PartitionMetadata, ...]  # by home and index
    # by home broker, -1 in the format kafka, where the broker that responds, or the controller, has
    # told them; never changed
    creation_ids: Mapping[int, str] = {}
    format: str = FORMAT_07  # for life; empty for an unknown topic


class MetadataResponse(NamedTuple):
    """A broker's own address and the partitions it leads."""

    cluster_id: str
    brokers: tuple[BrokerAddress, ...]
    topics: tuple[TopicMetadata, ...]

    @classmethod
    def decode(cls, reader: Reader) -> MetadataResponse:
        """Read the body."""
        head = _HEAD.decode(reader)
        topics = tuple(_decode_topic_metadata(reader) for _ in range(reader.count(INT32, 8)))
        return cls(head.cluster_id, tuple(head.brokers), topics)


class _Head(NamedTuple):
    """What stands before the topics in the response to a metadata request."""

    cluster_id: str
    brokers: Annotated[list[BrokerAddress], layouts.response_list(layouts.record(BrokerAddress))]


_HEAD = layouts.record(_Head)


# home, index, error and leader of a partition; a list of one replica; a list of one in sync
_LED_PARTITION = struct.Struct(">iihiiiii")
LED_PARTITION_BYTES = _LED_PARTITION.size


def encode_metadata_header(cluster_id: str, broker: BrokerAddress, topic_count: int) -> bytes:
    """Return the bytes before the topics in the response to a metadata request."""
    return _HEAD.encode(_Head(cluster_id, [broker])) + INT32.pack(topic_count)


def encode_topic_metadata_header(topic: str, error: int, partition_count: int) -> bytes:
    """Return the bytes before the partitions of a topic in the response to a metadata request."""
    return encode_short_string(topic) + INT16.pack(error) + INT32.pack(partition_count)


def encode_led_partitions(broker_id: int, indexes: range) -> bytes:
    """Return partitions, of any topic, whose home, leader and only replica is one broker."""
    return b"".join(
        _LED_PARTITION.pack(
            broker_id, index, errors.NO_ERROR, broker_id, 1, broker_id, 1, broker_id
        )
        for index in indexes
    )


def _decode_topic_metadata(reader: Reader) -> TopicMetadata:
    topic, error = reader.short_string(), reader.int16()
    count = reader.count(INT32, 22)
    partitions = tuple(_decode_partition_metadata(reader, topic) for _ in range(count))
    return TopicMetadata(topic, error, partitions)


def _decode_partition_metadata(reader: Reader, topic: str) -> PartitionMetadata:
    partition = TopicPartition(topic, reader.int32(), reader.int32())
    error, leader = reader.int16(), reader.int32()
    return PartitionMetadata(partition, error, leader, _decode_ids(reader), _decode_ids(reader))


def _decode_ids(reader: Reader) -> tuple[int, ...]:
    return tuple(reader.int32() for _ in range(reader.count(INT32, 4)))


# home, index, error, leader, leader epoch and fewest in-sync replicas of a partition
_CLUSTER_PARTITION = struct.Struct(">iihiii")
# the same, a list of one replica and a list of one in sync
_HOME_PARTITION = struct.Struct(">iihiiiiiii")
HOME_PARTITION_BYTES = _HOME_PARTITION.size


class ClusterMetadataResponse(NamedTuple):
    """The brokers and topics of the whole cluster that the responding broker knows."""

    cluster_id: str  # empty if the broker knows only itself
    broker_id: int  # of the broker that responds
    controller_id: int  # -1 if the broker knows none
    brokers: tuple[BrokerAddress, ...]  # those that are live
    racks: dict[int, str]  # of the brokers that have one, by id
    topics: tuple[TopicMetadata, ...]  # those requested

    @property
    def partitions(self) -> list[PartitionMetadata]:
        """The partitions of all these topics."""
        return [one for topic in self.topics for one in topic.partitions]

    @classmethod
    def decode(cls, reader: Reader) -> ClusterMetadataResponse:
        """Read the body."""
        head = _CLUSTER_HEAD.decode(reader)
        topics = tuple(_decode_cluster_topic(reader) for _ in range(reader.count(INT32, 14)))
        brokers = tuple(BrokerAddress(one.id, one.host, one.port) for one in head.brokers)
        racks = {one.id: one.rack for one in head.brokers if one.rack}
        return cls(head.cluster_id, head.broker_id, head.controller_id, brokers, racks, topics)


class _RackedBroker(NamedTuple):
    """A broker in the response to a cluster metadata request; the rack is empty if it has none."""

    id: Int32
    host: str
    port: Int32
    rack: str


class _ClusterHead(NamedTuple):
    """What stands before the topics in the response to a cluster metadata request."""

    cluster_id: str
    broker_id: Int32
    controller_id: Int32
    brokers: Annotated[list[_RackedBroker], layouts.response_list(layouts.record(_RackedBroker))]


_CLUSTER_HEAD = layouts.record(_ClusterHead)


def encode_cluster_metadata_header(
    cluster_id: str,
    broker_id: int,
    controller_id: int,
    brokers: Sequence[BrokerAddress],
    racks: Mapping[int, str],
    topic_count: int,
) -> bytes:
    """Return the bytes before the topics in the response to a cluster metadata request."""
    racked = [_RackedBroker(*one, racks.get(one.id, "")) for one in brokers]
    head = _ClusterHead(cluster_id, broker_id, controller_id, racked)
    return _CLUSTER_HEAD.encode(head) + INT32.pack(topic_count)


def encode_cluster_topic_header(
    topic: str, error: int, format: str, creation_ids: Mapping[int, str], partition_count: int
) -> bytes:
    """Return the bytes before the partitions of a topic in a cluster metadata response."""
    parts = [encode_short_string(topic), INT16.pack(error), layouts.TOPIC_FORMAT.encode(format)]
    parts.append(INT32.pack(len(creation_ids)))
    for home, creation_id in creation_ids.items():
        parts += INT32.pack(home), encode_short_string(creation_id)
    parts.append(INT32.pack(partition_count))
    return b"".join(parts)


def encode_home_partitions(home: int, indexes: range, *, broker_id: int, is_led: bool) -> bytes:
    """Return partitions, of any topic, whose only replica is on a broker; live if `is_led`."""
    error, leader = (
        (errors.NO_ERROR, broker_id) if is_led else (errors.LeaderNotAvailableError.code, NO_LEADER)
    )
    return b"".join(
        _HOME_PARTITION.pack(home, index, error, leader, NO_EPOCH, 1, 1, broker_id, 1, broker_id)
        for index in indexes
    )


def encode_cluster_partition(one: PartitionMetadata) -> bytes:
    """Return a partition in the response to a cluster metadata request."""
    partition = one.partition
    fields = (
        *(partition.home, partition.index, one.error),
        *(one.leader, one.leader_epoch, one.min_isr),
    )
    lists = (len(one.replicas), *one.replicas, len(one.isr), *one.isr)
    return _CLUSTER_PARTITION.pack(*fields) + struct.pack(f">{len(lists)}i", *lists)


def _decode_cluster_topic(reader: Reader) -> TopicMetadata:
    topic, error = reader.short_string(), reader.int16()
    format = layouts.TOPIC_FORMAT.decode(reader)
    creation_ids = {reader.int32(): reader.short_string() for _ in range(reader.count(INT32, 6))}
    count = reader.count(INT32, _CLUSTER_PARTITION.size + 2 * INT32.size)
    partitions = tuple(_decode_cluster_partition(reader, topic) for _ in range(count))
    return TopicMetadata(topic, error, partitions, creation_ids, format)


def _decode_cluster_partition(reader: Reader, topic: str) -> PartitionMetadata:
    home, index, error, leader, epoch, min_isr = reader.fields(_CLUSTER_PARTITION)
    partition = TopicPartition(topic, home, index)
    replicas, isr = _decode_ids(reader), _decode_ids(reader)
    return PartitionMetadata(partition, error, leader, replicas, isr, epoch, min_isr)


class ListedOffset(NamedTuple):
    """The response to one `OffsetQuery`; `offset` is -1 if there is none for the given time."""

    partition: TopicPartition
    error: layouts.Int16
    offset: Int64
    log_start_offset: Int64
    high_watermark: Int64


LISTED_OFFSETS = layouts.response_list(layouts.record(ListedOffset))
SEGMENT_STARTS = layouts.response_list(layouts.INT64)  # the newest first


class DamageState(IntEnum):
    """The state of damaged messages in a range of a broker's log."""

    NONE = 0
    MENDABLE = 1  # another replica is to serve it, and this broker to copy it from there
    LASTING = 2  # no other replica is known to have an intact copy


class LogDamage(NamedTuple):
    """The first damaged message in a range of a log; offset -1 if there is none."""

    state: Annotated[DamageState, layouts.enum(DamageState, layouts.INT8, "state of damage")] = (
        DamageState.NONE
    )
    offset: Int64 = -1


class LogDigest(NamedTuple):
    """The digest of a range of a log."""

    log_start_offset: Int64
    high_watermark: Int64  # the range ends here at the latest
    segment: Int64  # base offset of the segment that has the first byte, -1 if none has
    length: Int32  # bytes in the digest: fewer than requested at the end of the log
    damage: LogDamage
    digest: bytes  # SHA-256


LOG_DIGEST = layouts.record(LogDigest)


class LoggedLines(NamedTuple):
    """Lines of a state-change log, and the position of the first."""

    position: Int64
    lines: bytes


CHANGES = layouts.record(LoggedLines)


def check_correlation_id(expected: int, found: int) -> None:
    """Raise `ProtocolError` if a response, out of step, belongs to another request."""
    if expected != found:
        raise errors.ProtocolError(f"the response to request {found} came where {expected} was due")
