"""Requests between the brokers of a cluster (field tables: REQUESTS.md).

A follower reads its leader's log with a `ReplicaFetchRequest`; the controller tells brokers who
leads what with a `PushStatesRequest`; leaders ask the controller to change the in-sync replicas
with a `ChangeIsrRequest`, and a broker that stops asks it to move its leaderships away with a
`ControlledShutdownRequest`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from sys import intern
from typing import ClassVar, NamedTuple

from broker.cluster_state import (
    EpochEnd,
    EpochStart,
    IsrChange,
    IsrDecision,
    IsrMember,
    LiveBroker,
    PartitionState,
    ReplicatedPartition,
    ShutdownProgress,
    StoppedReplica,
    Unmoved,
)
from broker.errors import NO_ERROR, ProtocolError
from broker.protocol.cluster_requests import decode_ids, encode_ids
from broker.protocol.primitives import INT16, INT32, Buffer, Reader, encode_short_string
from broker.protocol.requests import (
    RequestType,
    decode_partition,
    decode_valid_partition,
    decode_valid_topic,
    encode_partition,
    read_item_count,
)
from broker.protocol.responses import clip
from broker.topic import MAX_CLUSTER_PARTITIONS, TopicPartition

_FETCHER = struct.Struct(">iqiii")
"""Id and epoch of the broker that fetches; longest wait, least bytes, most bytes."""
_POSITION = struct.Struct(">iqiqii")
_FETCHED = struct.Struct(">hqqiqi")
"""Error, high watermark, log start offset, epoch and offset of a divergence, epoch count."""
_EPOCH_START = struct.Struct(">iq")
_CONTROLLER = struct.Struct(">iiqbq")
"""Id and epoch of the controller; epoch of the broker's registration, is full, throttle."""
_LIVE_BROKER = struct.Struct(">iiqb")
_STATE = struct.Struct(">iiiii")
"""Fewest in-sync replicas, leader, leader epoch, controller epoch, version of the node."""
_BROKER = struct.Struct(">iq")
_ISR_CHANGE = struct.Struct(">iii")
_STOPPED = struct.Struct(">ii")
_LEAST_PARTITION_BYTES = 10


class ReplicaPosition(NamedTuple):
    """Where a follower continues in one partition.

    Attributes:
        partition: which one.
        leader_epoch: the present one, as the follower knows it.
        offset: the follower's log end offset; it has all before it.
        last_epoch: the leader epoch in which the follower's log ends.
        flushed_offset: the follower has flushed all before it.
        creation: which creation of the topic the follower means.
        max_bytes: the most wanted of this partition.
    """

    partition: TopicPartition
    leader_epoch: int
    offset: int
    last_epoch: int
    flushed_offset: int
    creation: int
    max_bytes: int


@dataclass(frozen=True, slots=True)
class ReplicaFetchRequest:
    """Read many partitions up to their log end, as a follower; wait as a read does.

    Attributes:
        replica_id: id of the broker that fetches.
        broker_epoch: of its registration.
        max_wait_ms: how long to wait for `min_bytes`.
        min_bytes: answer as soon as the partitions have so much together.
        max_bytes: the most of all partitions together.
        positions: where to continue in each partition.
    """

    TYPE: ClassVar[RequestType] = RequestType.READ
    VERSION: ClassVar[int] = 2

    replica_id: int
    broker_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    positions: tuple[ReplicaPosition, ...]

    def encode(self) -> bytes:
        """Return the body."""
        parts = [
            _FETCHER.pack(
                self.replica_id,
                self.broker_epoch,
                self.max_wait_ms,
                self.min_bytes,
                self.max_bytes,
            ),
            INT32.pack(len(self.positions)),
        ]
        for partition, *numbers in self.positions:
            parts += (encode_partition(partition), _POSITION.pack(*numbers))
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> ReplicaFetchRequest:
        """Read the body."""
        replica_id, broker_epoch, max_wait_ms, min_bytes, max_bytes = reader.fields(_FETCHER)
        count = read_item_count(reader, _LEAST_PARTITION_BYTES + _POSITION.size)
        positions = tuple(
            ReplicaPosition(decode_partition(reader), *reader.fields(_POSITION))
            for _ in range(count)
        )
        return cls(replica_id, broker_epoch, max_wait_ms, min_bytes, max_bytes, positions)


class ReplicaPart(NamedTuple):
    """One partition of the response to a replica fetch.

    Attributes:
        partition: which one.
        error: 0, or why there is nothing.
        high_watermark: the leader's.
        log_start_offset: the leader's.
        diverging: where the follower's log parts from the leader's; with an epoch, there is no
            data, and the follower truncates.
        epoch_starts: of the epochs that the data is of, in order.
        data: whole entries, but the last may be cut.
    """

    partition: TopicPartition
    error: int
    high_watermark: int
    log_start_offset: int
    diverging: EpochEnd
    epoch_starts: tuple[EpochStart, ...]
    data: Buffer


def encode_replica_part_header(part: ReplicaPart, data_bytes: int) -> bytes:
    """Return what precedes a partition's data in the response to a replica fetch."""
    return b"".join(
        (
            encode_partition(part.partition),
            _FETCHED.pack(
                part.error,
                part.high_watermark,
                part.log_start_offset,
                *part.diverging,
                len(part.epoch_starts),
            ),
            *(_EPOCH_START.pack(*one) for one in part.epoch_starts),
            INT32.pack(data_bytes),
        )
    )


def decode_replica_fetch_response(reader: Reader) -> list[ReplicaPart]:
    """Read the body of the response to a replica fetch; the data are views on it."""
    parts = []
    for _ in range(reader.count(INT32, _LEAST_PARTITION_BYTES + _FETCHED.size + INT32.size)):
        partition = decode_partition(reader)
        error, high_watermark, log_start, epoch, end, count = reader.fields(_FETCHED)
        reader.check_count(count, _EPOCH_START.size)
        starts = tuple(EpochStart(*reader.fields(_EPOCH_START)) for _ in range(count))
        data = reader.data(reader.int32())
        diverging = EpochEnd(epoch, end)
        parts.append(
            ReplicaPart(partition, error, high_watermark, log_start, diverging, starts, data)
        )
    return parts


def encode_replicated_partition(one: ReplicatedPartition) -> bytes:
    """Return the wire form of a partition with its state."""
    state = one.state
    return b"".join(
        (
            encode_partition(one.partition),
            encode_short_string(one.creation_id),
            _STATE.pack(
                one.min_isr, state.leader, state.leader_epoch, state.controller_epoch, one.version
            ),
            encode_ids(one.replicas),
            encode_ids(state.isr),
            encode_ids(one.adding),
            encode_short_string(one.kept_id),
        )
    )


def decode_replicated_partition(reader: Reader) -> ReplicatedPartition:
    """Read a partition with its state."""
    partition, creation_id = decode_partition(reader), intern(reader.short_string())
    min_isr, leader, leader_epoch, controller_epoch, version = reader.fields(_STATE)
    replicas, isr, adding = decode_ids(reader), decode_ids(reader), decode_ids(reader)
    state = PartitionState(leader, leader_epoch, isr, controller_epoch)
    return ReplicatedPartition(
        partition, creation_id, replicas, min_isr, state, version, adding, reader.short_string()
    )


_LEAST_REPLICATED_BYTES = _LEAST_PARTITION_BYTES + 2 * INT16.size + _STATE.size + 3 * INT32.size


class PushEpochs(NamedTuple):
    """Of the controller that pushes, and of the registration that it means."""

    controller_epoch: int
    broker_epoch: int


@dataclass(frozen=True, slots=True)
class PushStatesRequest:
    """Tell a broker who leads what; the response has no body.

    Attributes:
        controller_id: id of the broker that is the controller.
        controller_epoch: its term; one lower than the broker has seen is refused.
        broker_epoch: of the registration of the broker that this is for; refused if that has
            another one.
        is_full: `partitions` has all there are; those not named are no more.
        brokers: all that are registered.
        partitions: those that have changed; the replicas among the brokers act on them.
        stopped: replicas of this broker that are to stop.
        throttle_bytes_per_s: how much the broker may copy to replicas that are being added; 0 for
            no limit.
    """

    TYPE: ClassVar[RequestType] = RequestType.PUSH_STATES
    VERSION: ClassVar[int] = 0

    controller_id: int
    controller_epoch: int
    broker_epoch: int
    is_full: bool
    brokers: tuple[LiveBroker, ...]
    partitions: tuple[ReplicatedPartition, ...]
    stopped: tuple[StoppedReplica, ...]
    throttle_bytes_per_s: int = 0

    def encode(self) -> bytes:
        """Return the body."""
        parts = [
            _CONTROLLER.pack(
                self.controller_id,
                self.controller_epoch,
                self.broker_epoch,
                self.is_full,
                self.throttle_bytes_per_s,
            ),
            INT32.pack(len(self.brokers)),
        ]
        for broker in self.brokers:
            parts += (
                _LIVE_BROKER.pack(broker.id, broker.port, broker.epoch, broker.is_clean),
                encode_short_string(broker.host),
                encode_short_string(broker.rack),
            )
        parts.append(INT32.pack(len(self.partitions)))
        parts += map(encode_replicated_partition, self.partitions)
        parts.append(INT32.pack(len(self.stopped)))
        for one in self.stopped:
            parts += (
                encode_partition(one.partition),
                encode_short_string(one.creation_id),
                _STOPPED.pack(one.leader_epoch, one.deletes_log),
            )
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> PushStatesRequest:
        """Read the body."""
        header = reader.fields(_CONTROLLER)
        controller_id, controller_epoch, broker_epoch, is_full, throttle_bytes_per_s = header
        brokers = tuple(_decode_live_broker(reader) for _ in range(read_item_count(reader, 21)))
        partitions = tuple(
            decode_replicated_partition(reader)
            for _ in range(_read_partition_count(reader, _LEAST_REPLICATED_BYTES))
        )
        stopped = tuple(
            _decode_stopped(reader)
            for _ in range(_read_partition_count(reader, _LEAST_PARTITION_BYTES + 10))
        )
        return cls(
            controller_id,
            controller_epoch,
            broker_epoch,
            bool(is_full),
            brokers,
            partitions,
            stopped,
            throttle_bytes_per_s,
        )


def decode_push_epochs(body: Buffer) -> PushEpochs:
    """Return what tells whether the body of a `PushStatesRequest` is worth decoding.

    Raises:
        ProtocolError: it is cut off.
    """
    _, controller_epoch, broker_epoch, _, _ = Reader(body).fields(_CONTROLLER)
    return PushEpochs(controller_epoch, broker_epoch)


def _read_partition_count(reader: Reader, item_bytes: int) -> int:
    count = reader.count(INT32, item_bytes)
    if count > MAX_CLUSTER_PARTITIONS:
        raise ProtocolError(
            f"{count} partitions with replicas are more than the {MAX_CLUSTER_PARTITIONS} that a "
            "cluster can have"
        )
    return count


def _decode_live_broker(reader: Reader) -> LiveBroker:
    broker_id, port, epoch, is_clean = reader.fields(_LIVE_BROKER)
    host, rack = reader.short_string(), reader.short_string()
    return LiveBroker(broker_id, host, port, epoch, bool(is_clean), rack)


def _decode_stopped(reader: Reader) -> StoppedReplica:
    partition, creation_id = decode_partition(reader), reader.short_string()
    leader_epoch, deletes_log = reader.fields(_STOPPED)
    return StoppedReplica(partition, creation_id, leader_epoch, bool(deletes_log))


@dataclass(frozen=True, slots=True)
class ChangeIsrRequest:
    """Ask the controller to change the in-sync replicas of partitions.

    Attributes:
        broker_id: of the leader that asks.
        broker_epoch: of its registration.
        changes: one for each partition.
    """

    TYPE: ClassVar[RequestType] = RequestType.CHANGE_ISR
    VERSION: ClassVar[int] = 0

    broker_id: int
    broker_epoch: int
    changes: tuple[IsrChange, ...]

    def encode(self) -> bytes:
        """Return the body."""
        parts = [_BROKER.pack(self.broker_id, self.broker_epoch), INT32.pack(len(self.changes))]
        for partition, leader_epoch, version, isr, creation in self.changes:
            parts += (
                encode_partition(partition),
                _ISR_CHANGE.pack(leader_epoch, version, creation),
                INT32.pack(len(isr)),
                *(_BROKER.pack(*member) for member in isr),
            )
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> ChangeIsrRequest:
        """Read the body."""
        broker_id, broker_epoch = reader.fields(_BROKER)
        count = read_item_count(reader, _LEAST_PARTITION_BYTES + _ISR_CHANGE.size + INT32.size)
        changes = tuple(_decode_isr_change(reader) for _ in range(count))
        return cls(broker_id, broker_epoch, changes)


def _decode_isr_change(reader: Reader) -> IsrChange:
    partition = decode_valid_partition(reader)
    leader_epoch, version, creation = reader.fields(_ISR_CHANGE)
    isr = tuple(
        IsrMember(*reader.fields(_BROKER)) for _ in range(read_item_count(reader, _BROKER.size))
    )
    return IsrChange(partition, leader_epoch, version, isr, creation)


def encode_change_isr_response(decisions: list[IsrDecision]) -> bytes:
    """Return the body of the response to a change of in-sync replicas."""
    parts = [INT32.pack(len(decisions))]
    for partition, error, text, decided in decisions:
        parts += (
            encode_partition(partition),
            INT16.pack(error),
            encode_short_string(clip(text)),
            INT16.pack(decided is not None),
        )
        if decided is not None:
            parts.append(encode_replicated_partition(decided))
    return b"".join(parts)


def decode_change_isr_response(reader: Reader) -> list[IsrDecision]:
    """Read the body of the response to a change of in-sync replicas."""
    decisions = []
    for _ in range(reader.count(INT32, _LEAST_PARTITION_BYTES + 6)):
        partition, error, text = decode_partition(reader), reader.int16(), reader.short_string()
        decided = decode_replicated_partition(reader) if reader.int16() else None
        decisions.append(IsrDecision(partition, error, text, decided))
    return decisions


@dataclass(frozen=True, slots=True)
class ControlledShutdownRequest:
    """Ask the controller to move leaderships away from a broker that is about to stop.

    Attributes:
        broker_id: which one.
        broker_epoch: of its registration.
    """

    TYPE: ClassVar[RequestType] = RequestType.CONTROLLED_SHUTDOWN
    VERSION: ClassVar[int] = 0

    broker_id: int
    broker_epoch: int

    def encode(self) -> bytes:
        """Return the body."""
        return _BROKER.pack(self.broker_id, self.broker_epoch)

    @classmethod
    def decode(cls, reader: Reader) -> ControlledShutdownRequest:
        """Read the body."""
        return cls(*reader.fields(_BROKER))


def encode_controlled_shutdown_response(progress: ShutdownProgress) -> bytes:
    """Return the body of the response to a controlled shutdown."""
    parts = [INT32.pack(len(progress.moved))]
    parts += map(encode_replicated_partition, progress.moved)
    parts.append(INT32.pack(len(progress.left)))
    parts += map(encode_partition, progress.left)
    parts.append(INT32.pack(len(progress.unmoved)))
    for partition, reason in progress.unmoved:
        parts += (encode_partition(partition), encode_short_string(clip(reason)))
    return b"".join(parts)


def decode_controlled_shutdown_response(reader: Reader) -> ShutdownProgress:
    """Read the body of the response to a controlled shutdown."""
    moved = tuple(
        decode_replicated_partition(reader)
        for _ in range(reader.count(INT32, _LEAST_REPLICATED_BYTES))
    )
    left = tuple(
        decode_partition(reader) for _ in range(reader.count(INT32, _LEAST_PARTITION_BYTES))
    )
    unmoved = tuple(
        Unmoved(decode_partition(reader), reader.short_string())
        for _ in range(reader.count(INT32, _LEAST_PARTITION_BYTES + 2))
    )
    return ShutdownProgress(moved, left, unmoved)


class Setting(NamedTuple):
    """A setting of a topic, as text."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class CreateReplicatedTopicRequest:
    """Ask the controller to create a topic, spread over the brokers.

    Attributes:
        topic: its name.
        partition_count: of all brokers together, 1 or more.
        replication_factor: copies of each partition, 1 or more.
        settings: those that differ from the brokers'.
    """

    TYPE: ClassVar[RequestType] = RequestType.CREATE_TOPIC
    VERSION: ClassVar[int] = 1

    topic: str
    partition_count: int
    replication_factor: int
    settings: tuple[Setting, ...]

    def encode(self) -> bytes:
        """Return the body."""
        parts = [
            encode_short_string(self.topic),
            INT32.pack(self.partition_count),
            INT32.pack(self.replication_factor),
            INT32.pack(len(self.settings)),
        ]
        for name, value in self.settings:
            parts += (encode_short_string(name), encode_short_string(value))
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> CreateReplicatedTopicRequest:
        """Read the body."""
        topic = decode_valid_topic(reader)
        partition_count, factor = reader.int32(), reader.int32()
        settings = tuple(
            Setting(reader.short_string(), reader.short_string())
            for _ in range(read_item_count(reader, 4))
        )
        return cls(topic, partition_count, factor, settings)


def encode_partitions_response(partitions: tuple[ReplicatedPartition, ...]) -> bytes:
    """Return the body of a response that names partitions with their states."""
    return INT32.pack(len(partitions)) + b"".join(map(encode_replicated_partition, partitions))


def decode_partitions_response(reader: Reader) -> tuple[ReplicatedPartition, ...]:
    """Read the body of a response that names partitions with their states."""
    return tuple(
        decode_replicated_partition(reader)
        for _ in range(reader.count(INT32, _LEAST_REPLICATED_BYTES))
    )


NOTHING_DIVERGES = EpochEnd(-1, -1)
"""The `diverging` of a part whose follower is on the leader's log."""


def refused_replica_part(partition: TopicPartition, error: int, leader: int) -> ReplicaPart:
    """Return the part of a response that says why there is nothing.

    Args:
        partition: which one.
        error: its code, not 0.
        leader: id of the broker that leads the partition, -1 if unknown.
    """
    assert error != NO_ERROR
    return ReplicaPart(partition, error, leader, 0, NOTHING_DIVERGES, (), b"")
