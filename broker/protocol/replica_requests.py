"""Requests between the brokers of a cluster (field tables: REQUESTS.md).

A follower reads its leader's log with a `ReplicaFetchRequest`; the controller tells brokers the
leaders with a `PushStatesRequest`; leaders ask the controller to change the in-sync replicas with a
`ChangeIsrRequest`, and a broker that stops asks it to move its leaderships away with a
`ControlledShutdownRequest`. A broker that misses another asks a third with a `ProbeBrokerRequest`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from sys import intern
from typing import Annotated, NamedTuple

from broker.cluster_state import (
    EpochEnd,
    EpochStart,
    IsrChange,
    IsrDecision,
    IsrMember,
    LiveBroker,
    PartitionState,
    PeerFinding,
    ReplicatedPartition,
    ShutdownProgress,
    StoppedReplica,
    Unmoved,
)
from broker.errors import ProtocolError
from broker.protocol import layouts, requests
from broker.protocol.codec import BatchScan, Fault, scan, scan_batches
from broker.protocol.layouts import ControllerRequest, ControlRequest, Int32, Int64
from broker.protocol.message import Scan
from broker.protocol.primitives import INT16, INT32, Buffer, Reader, encode_short_string
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import MAX_CLUSTER_PARTITIONS, NO_HOME, TopicPartition

# error, high watermark, log start offset, epoch and offset of a divergence, time of the segment,
# epoch count
_FETCHED = struct.Struct(">hqqiqqi")
_EPOCH_START = struct.Struct(">iq")
# id and epoch of the controller, epoch of the broker's registration
_CONTROLLER = struct.Struct(">iiq")
# fewest in-sync replicas, leader, leader epoch, controller epoch, version of the node
_STATE = struct.Struct(">iiiii")


NOTHING_DIVERGES = EpochEnd(-1, -1)  # the follower's log is a part of the leader's
LEAVES_IN_SYNC = -1
"""As `max_bytes`: the follower's disk refuses more, so that it is not in sync from now on."""


class ReplicaPosition(NamedTuple):
    """The position from which a follower fetches one partition."""

    partition: TopicPartition
    leader_epoch: Int32  # the present one, as the follower knows it
    offset: Int64  # the follower's log end offset
    last_epoch: Int32  # the leader epoch of the last messages in the follower's log
    flushed_offset: Int64  # the follower has flushed all before it
    creation: Int32  # which creation of the topic the follower means
    max_bytes: Int32  # or `LEAVES_IN_SYNC`


@dataclass(frozen=True)
class ReplicaFetchRequest(ControlRequest):
    """Read many partitions up to their log end, as a follower; wait as a read does."""

    TYPE = requests.RequestType.READ
    VERSION = 2

    replica_id: Int32  # of the broker that fetches
    broker_epoch: Int64  # of its registration
    max_wait_ms: Int32
    min_bytes: Int32  # of all partitions together, as `max_bytes`
    max_bytes: Int32
    positions: tuple[ReplicaPosition, ...]


@dataclass(frozen=True)
class SessionFetchRequest(ControlRequest):
    """A replica fetch that names what has changed since the one before it in its session."""

    TYPE = requests.RequestType.READ
    VERSION = 4

    replica_id: Int32  # as in `ReplicaFetchRequest`
    broker_epoch: Int64
    session_id: Int64  # 0: another one begins
    session_epoch: Int64  # counts the fetches of the session, from 0
    max_wait_ms: Int32
    min_bytes: Int32
    max_bytes: Int32
    positions: tuple[ReplicaPosition, ...]  # new or changed ones
    forgotten: tuple[TopicPartition, ...]  # are not fetched any more


class ReplicaPart(NamedTuple):
    """One partition of the response to a replica fetch."""

    partition: TopicPartition
    error: int  # 0, or why there is no data
    high_watermark: int  # the leader's; with an error, the id of the leader or -1
    log_start_offset: int  # the leader's
    # where the follower's log diverges from the leader's; if it has an epoch, there is no data,
    # and the follower truncates
    diverging: EpochEnd = NOTHING_DIVERGES
    epoch_starts: tuple[EpochStart, ...] = ()  # of the epochs of the data, in order
    data: Buffer = b""  # whole entries or batches, but the last may be cut
    # when the leader last appended to the segment of the data, milliseconds since 1970
    appended_ms: int = 0
    rows: bytes = b""  # of the idempotent appends that the data of a 0.7 topic are of


def encode_replica_part_header(part: ReplicaPart, data_bytes: int) -> bytes:
    """Return the bytes before a partition's data in the response to a replica fetch."""
    return b"".join(
        (
            requests.encode_partition(part.partition),
            _FETCHED.pack(
                part.error,
                part.high_watermark,
                part.log_start_offset,
                *part.diverging,
                part.appended_ms,
                len(part.epoch_starts),
            ),
            *(_EPOCH_START.pack(*one) for one in part.epoch_starts),
            INT32.pack(len(part.rows)),
            part.rows,
            INT32.pack(data_bytes),
        )
    )


class ReplicaPiece(NamedTuple):
    """Whole entries of a partition, as far as they have come; a part comes in one piece or more."""

    part: ReplicaPart  # its data are those of the piece
    start: int  # of these in the data of the partition
    found: Scan | BatchScan  # of these; after a fault, no more of the partition comes
    is_cut: bool  # the part ends within an entry, as there is more than was sent
    former_end: int = -1
    """The offset behind the batches of the pieces before; -1 without any."""

    def offset(self, asked: int) -> int:
        """Return the offset of the piece, if the partition was asked for from another one on."""
        return asked + self.start if self.former_end < 0 else self.former_end


class ReplicaParts:
    """The partitions in the body of the response to a replica fetch, decoded as it arrives."""

    def __init__(self, reader: Reader) -> None:
        self._to_come = reader.count(INT32, 1)
        self._part: ReplicaPart | None = None  # of which more data are to come
        self._start = 0
        self._former_end = -1
        self._left_bytes = 0
        self._is_damaged = False

    @property
    def is_complete(self) -> bool:
        """Return whether all partitions have been taken."""
        return self._part is None and not self._to_come

    def take(self, body: memoryview, *, is_end: bool) -> tuple[list[ReplicaPiece], int]:
        """Return the pieces in the bytes that have come, views on them, and how many are taken.

        The others have to be given again, with what follows them, unless this is the end.
        """
        pieces = []
        reader = Reader(body)
        taken = 0
        while not self.is_complete:
            if self._part is None:
                try:
                    self._part, self._left_bytes = _decode_replica_part_header(reader)
                except ProtocolError:
                    if is_end:
                        raise
                    break
                taken = len(body) - reader.remaining
                self._to_come -= 1
                self._start, self._former_end, self._is_damaged = 0, -1, False
            is_whole = is_end or self._left_bytes <= reader.remaining
            data = reader.data(self._left_bytes if is_whole else reader.remaining)
            if not self._is_damaged:
                found = _scan(self._part.partition, data)
                is_partial = found.fault is Fault.PARTIAL
                self._is_damaged = not is_partial and found.fault is not Fault.NONE
                if is_partial and not is_whole:
                    data = data[: found.valid_bytes]
                if data or is_whole:
                    part = self._part._replace(data=data)
                    is_cut, end = is_partial and is_whole, self._former_end
                    pieces.append(ReplicaPiece(part, self._start, found, is_cut, end))
                if isinstance(found, BatchScan) and found.batches:
                    self._former_end = found.batches[-1].next_offset
            taken += len(data)
            self._start += len(data)
            self._left_bytes -= len(data)
            if not is_whole:
                break
            self._part = None
        return pieces, taken


def _scan(partition: TopicPartition, data: Buffer) -> Scan | BatchScan:
    return scan_batches(data) if partition.home == NO_HOME else scan(data)


def _decode_replica_part_header(reader: Reader) -> tuple[ReplicaPart, int]:
    """Return a part without its data, and their size."""
    partition = requests.decode_partition(reader)
    error, high_watermark, log_start, epoch, end, appended_ms, count = reader.fields(_FETCHED)
    reader.check_count(count, _EPOCH_START.size)
    starts = tuple(EpochStart(*reader.fields(_EPOCH_START)) for _ in range(count))
    rows = bytes(reader.data(reader.int32()))
    part = ReplicaPart(
        *(partition, error, high_watermark, log_start, EpochEnd(epoch, end), starts, b""),
        *(appended_ms, rows),
    )
    return part, reader.int32()


def _encode_replicated_partition(one: ReplicatedPartition) -> bytes:
    state = one.state
    return b"".join(
        (
            requests.encode_partition(one.partition),
            encode_short_string(one.creation_id),
            _STATE.pack(
                one.min_isr, state.leader, state.leader_epoch, state.controller_epoch, one.version
            ),
            layouts.BROKER_IDS.encode(one.replicas),
            layouts.BROKER_IDS.encode(state.isr),
            layouts.BROKER_IDS.encode(one.adding),
            encode_short_string(one.kept_id),
        )
    )


def _decode_replicated_partition(reader: Reader) -> ReplicatedPartition:
    named = requests.decode_partition(reader)
    partition = TopicPartition(intern(named.topic), named.home, named.index)  # many are kept
    creation_id = intern(reader.short_string())
    min_isr, leader, leader_epoch, controller_epoch, version = reader.fields(_STATE)
    decode_ids = layouts.BROKER_IDS.decode
    replicas, isr, adding = decode_ids(reader), decode_ids(reader), decode_ids(reader)
    state = PartitionState(leader, leader_epoch, isr, controller_epoch)
    return ReplicatedPartition(
        partition, creation_id, replicas, min_isr, state, version, adding, reader.short_string()
    )


REPLICATED_PARTITION = layouts.Layout(
    _encode_replicated_partition,  # by hand: a push has all partitions of a cluster
    _decode_replicated_partition,
    layouts.PARTITION.least_bytes + 2 * INT16.size + _STATE.size + 3 * INT32.size,
)
PARTITIONS = layouts.array(REPLICATED_PARTITION, layouts.any_count)


def _read_partition_count(reader: Reader, item_bytes: int) -> int:
    count = reader.count(INT32, item_bytes)
    if count > MAX_CLUSTER_PARTITIONS:
        raise ProtocolError(
            f"{count} partitions with replicas are more than the {MAX_CLUSTER_PARTITIONS} that a "
            "cluster can have"
        )
    return count


RECORD = layouts.mapped(layouts.DATA, ReplicaRecord.encode, ReplicaRecord.decode)
UNKNOWN_REPLICAS = layouts.response_list(
    layouts.record(
        UnknownReplica, RECORD, layouts.BOOL, layouts.INT32, layouts.INT64, layouts.INT64
    )
)


class PushEpochs(NamedTuple):
    """The epochs of the controller that pushes, and of the registration that the push is for."""

    controller_epoch: int
    broker_epoch: int


_LIVE_BROKER = layouts.record(
    LiveBroker,
    id=layouts.INT32,
    port=layouts.INT32,
    epoch=layouts.INT64,
    is_clean=layouts.BOOL,
    host=layouts.STRING,
    rack=layouts.STRING,
)
_STOPPED_REPLICA = layouts.record(
    StoppedReplica,
    *(layouts.PARTITION, layouts.STRING, layouts.INT32, layouts.mapped(layouts.INT32, int, bool)),
)


@dataclass(frozen=True)
class PushStatesRequest(ControlRequest):
    """Send a broker the states of partitions; it responds with replicas the registry has lost."""

    TYPE = requests.RequestType.PUSH_STATES
    RESPONSE = UNKNOWN_REPLICAS

    controller_id: Int32  # id of the broker that is the controller
    controller_epoch: Int32  # its term; one lower than the broker has seen is refused
    # of the registration of the broker that this is for; refused if that has another one
    broker_epoch: Int64
    is_full: bool  # `partitions` has all there are; those not listed exist no more
    # the most the broker may copy to added replicas; 0 for no limit
    throttle_bytes_per_s: Int64 = field(default=0, kw_only=True)
    # all that are registered
    brokers: Annotated[tuple[LiveBroker, ...], layouts.array(_LIVE_BROKER)]
    # those that have changed; the brokers that are their replicas act on them
    partitions: Annotated[
        tuple[ReplicatedPartition, ...], layouts.array(REPLICATED_PARTITION, _read_partition_count)
    ]
    # replicas of this broker that are to stop
    stopped: Annotated[
        tuple[StoppedReplica, ...], layouts.array(_STOPPED_REPLICA, _read_partition_count)
    ]


def decode_push_epochs(body: Buffer) -> PushEpochs:
    """Return the epochs of a `PushStatesRequest`; a stale one is refused without decoding it."""
    _, controller_epoch, broker_epoch = Reader(body).fields(_CONTROLLER)
    return PushEpochs(controller_epoch, broker_epoch)


ISR_DECISIONS = layouts.response_list(
    layouts.record(
        IsrDecision,
        *(layouts.PARTITION, layouts.INT16, layouts.TEXT, layouts.optional(REPLICATED_PARTITION)),
    )
)


_ISR_CHANGE = layouts.record(
    IsrChange,
    partition=layouts.VALID_PARTITION,
    leader_epoch=layouts.INT32,
    version=layouts.INT32,
    creation=layouts.INT32,
    isr=layouts.array(layouts.record(IsrMember, layouts.INT32, layouts.INT64)),
)


@dataclass(frozen=True)
class ChangeIsrRequest(ControllerRequest):
    """Change the in-sync replicas of partitions."""

    TYPE = requests.RequestType.CHANGE_ISR
    RESPONSE = ISR_DECISIONS

    broker_id: Int32  # of the leader that asks
    broker_epoch: Int64  # of its registration
    changes: Annotated[tuple[IsrChange, ...], layouts.array(_ISR_CHANGE)]  # one for each partition


SHUTDOWN_PROGRESS = layouts.record(
    ShutdownProgress,
    PARTITIONS,
    layouts.array(layouts.PARTITION, layouts.any_count),
    layouts.array(layouts.record(Unmoved, layouts.PARTITION, layouts.TEXT), layouts.any_count),
)


@dataclass(frozen=True)
class ControlledShutdownRequest(ControllerRequest):
    """Move leaderships away from a broker, registered with `broker_epoch`, that will stop."""

    TYPE = requests.RequestType.CONTROLLED_SHUTDOWN
    RESPONSE = SHUTDOWN_PROGRESS

    broker_id: Int32
    broker_epoch: Int64


@dataclass(frozen=True)
class ProbeBrokerRequest(ControlRequest):
    """Ask a broker whether another one, registered with `probed_epoch`, answers it now."""

    TYPE = requests.RequestType.PROBE_BROKER
    RESPONSE = layouts.enum(PeerFinding, layouts.INT16, "finding")

    broker_id: Int32  # of the broker that asks
    probed_id: Int32
    probed_epoch: Int64
    timeout_ms: Int32  # after which no answer is silence
