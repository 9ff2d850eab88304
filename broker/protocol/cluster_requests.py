"""Requests of an operator to the controller: partitions, leaders and replicas of topics.

Any other broker refuses them, naming the controller (field tables: REQUESTS.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar, NamedTuple

from broker.cluster_state import Reassignment
from broker.errors import ProtocolError
from broker.protocol.primitives import INT8, INT16, INT32, INT64, Reader, encode_short_string
from broker.protocol.requests import (
    RequestType,
    decode_partition,
    decode_valid_partition,
    decode_valid_topic,
    encode_partition,
    read_item_count,
)
from broker.protocol.responses import clip
from broker.topic import TopicPartition

_LEAST_PARTITION_BYTES = 10
THROTTLE_STAYS = -1
"""The throttle of a `ReassignRequest` that does not change it."""


def encode_ids(ids: tuple[int, ...]) -> bytes:
    """Return the wire form of a list of broker ids."""
    return INT32.pack(len(ids)) + b"".join(map(INT32.pack, ids))


def decode_ids(reader: Reader) -> tuple[int, ...]:
    """Read a list of broker ids."""
    return tuple(reader.int32() for _ in range(read_item_count(reader, INT32.size)))


@dataclass(frozen=True, slots=True)
class AddPartitionsRequest:
    """Ask the controller to add partitions to a topic with replicas.

    Attributes:
        topic: its name.
        partition_count: how many to add, 1 or more.
    """

    TYPE: ClassVar[RequestType] = RequestType.ADD_PARTITIONS
    VERSION: ClassVar[int] = 0

    topic: str
    partition_count: int

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic) + INT32.pack(self.partition_count)

    @classmethod
    def decode(cls, reader: Reader) -> AddPartitionsRequest:
        """Read the body."""
        return cls(decode_valid_topic(reader), reader.int32())


@dataclass(frozen=True, slots=True)
class ReplicateTopicRequest:
    """Ask the controller to give replicas to a topic that has none.

    Attributes:
        topic: its name.
        replication_factor: copies of each partition, 1 or more.
    """

    TYPE: ClassVar[RequestType] = RequestType.REPLICATE_TOPIC
    VERSION: ClassVar[int] = 0

    topic: str
    replication_factor: int

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic) + INT32.pack(self.replication_factor)

    @classmethod
    def decode(cls, reader: Reader) -> ReplicateTopicRequest:
        """Read the body."""
        return cls(decode_valid_topic(reader), reader.int32())


@dataclass(frozen=True, slots=True)
class DeleteReplicatedTopicRequest:
    """Ask the controller to delete a topic with replicas, on all brokers."""

    TYPE: ClassVar[RequestType] = RequestType.DELETE_TOPIC
    VERSION: ClassVar[int] = 1

    topic: str

    def encode(self) -> bytes:
        """Return the body."""
        return encode_short_string(self.topic)

    @classmethod
    def decode(cls, reader: Reader) -> DeleteReplicatedTopicRequest:
        """Read the body."""
        return cls(decode_valid_topic(reader))


class ElectionKind(IntEnum):
    """Which replica is to lead."""

    PREFERRED = 0
    """The first of the replicas, if it is in sync."""
    UNCLEAN = 1
    """Any live one, of a partition without a leader; committed messages may be lost."""


@dataclass(frozen=True, slots=True)
class ElectLeadersRequest:
    """Ask the controller to elect leaders.

    Attributes:
        kind: which replicas are to lead.
        partitions: of which partitions.
    """

    TYPE: ClassVar[RequestType] = RequestType.ELECT_LEADERS
    VERSION: ClassVar[int] = 0

    kind: ElectionKind
    partitions: tuple[TopicPartition, ...]

    def encode(self) -> bytes:
        """Return the body."""
        partitions = b"".join(map(encode_partition, self.partitions))
        return INT8.pack(self.kind) + INT32.pack(len(self.partitions)) + partitions

    @classmethod
    def decode(cls, reader: Reader) -> ElectLeadersRequest:
        """Read the body."""
        kind = reader.int8()
        if kind not in ElectionKind.__members__.values():
            raise ProtocolError(f"{kind} is no kind of election")
        count = read_item_count(reader, _LEAST_PARTITION_BYTES)
        return cls(ElectionKind(kind), tuple(decode_valid_partition(reader) for _ in range(count)))


class ReplicaTarget(NamedTuple):
    """The replicas a partition is to have, the preferred leader first.

    Without any, a change of its replicas that is under way is cancelled.
    """

    partition: TopicPartition
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ReassignRequest:
    """Ask the controller to move partitions to other replicas, or to cancel that.

    Attributes:
        targets: one for each partition.
        throttle_bytes_per_s: how much each broker may copy to replicas that are being added, by
            all changes that are under way; 0 for no limit, `THROTTLE_STAYS` to leave it as it is.
    """

    TYPE: ClassVar[RequestType] = RequestType.REASSIGN
    VERSION: ClassVar[int] = 0

    targets: tuple[ReplicaTarget, ...]
    throttle_bytes_per_s: int = THROTTLE_STAYS

    def encode(self) -> bytes:
        """Return the body."""
        parts = [INT64.pack(self.throttle_bytes_per_s), INT32.pack(len(self.targets))]
        for partition, replicas in self.targets:
            parts += (encode_partition(partition), encode_ids(replicas))
        return b"".join(parts)

    @classmethod
    def decode(cls, reader: Reader) -> ReassignRequest:
        """Read the body."""
        throttle_bytes_per_s = reader.int64()
        count = read_item_count(reader, _LEAST_PARTITION_BYTES + INT32.size)
        return cls(
            tuple(
                ReplicaTarget(decode_valid_partition(reader), decode_ids(reader))
                for _ in range(count)
            ),
            throttle_bytes_per_s,
        )


class PartitionOutcome(NamedTuple):
    """What became of a request for one partition; `error` is 0 if it was carried out."""

    partition: TopicPartition
    error: int
    text: str


def encode_outcomes(outcomes: list[PartitionOutcome]) -> bytes:
    """Return the body of a response with an outcome for each partition."""
    parts = [INT32.pack(len(outcomes))]
    for partition, error, text in outcomes:
        parts += (encode_partition(partition), INT16.pack(error), encode_short_string(clip(text)))
    return b"".join(parts)


def decode_outcomes(reader: Reader) -> list[PartitionOutcome]:
    """Read the body of a response with an outcome for each partition."""
    return [
        PartitionOutcome(decode_partition(reader), reader.int16(), reader.short_string())
        for _ in range(reader.count(INT32, _LEAST_PARTITION_BYTES + 4))
    ]


@dataclass(frozen=True, slots=True)
class ListReassignmentsRequest:
    """Ask the controller which changes of replicas are under way."""

    TYPE: ClassVar[RequestType] = RequestType.LIST_REASSIGNMENTS
    VERSION: ClassVar[int] = 0

    def encode(self) -> bytes:
        """Return the body."""
        return b""

    @classmethod
    def decode(cls, reader: Reader) -> ListReassignmentsRequest:
        """Read the body, which is empty."""
        return cls()


class PartitionReassignment(NamedTuple):
    """A change of a partition's replicas that is under way."""

    partition: TopicPartition
    reassignment: Reassignment


class Reassignments(NamedTuple):
    """The changes of replicas that are under way, and their throttle, 0 for none."""

    throttle_bytes_per_s: int
    changes: tuple[PartitionReassignment, ...]


def encode_reassignments(found: Reassignments) -> bytes:
    """Return the body of the response about changes of replicas."""
    parts = [INT64.pack(found.throttle_bytes_per_s), INT32.pack(len(found.changes))]
    for partition, (original, target) in found.changes:
        parts += (encode_partition(partition), encode_ids(original), encode_ids(target))
    return b"".join(parts)


def decode_reassignments(reader: Reader) -> Reassignments:
    """Read the body of the response about changes of replicas."""
    throttle_bytes_per_s = reader.int64()
    changes = tuple(
        PartitionReassignment(
            decode_partition(reader), Reassignment(decode_ids(reader), decode_ids(reader))
        )
        for _ in range(reader.count(INT32, _LEAST_PARTITION_BYTES + 8))
    )
    return Reassignments(throttle_bytes_per_s, changes)
