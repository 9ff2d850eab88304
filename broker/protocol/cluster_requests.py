"""Requests of an operator about topics with replicas (field tables: REQUESTS.md).

Any broker but the controller refuses them, naming the controller; only `ListUnknownReplicasRequest`
is for each.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from broker.cluster_state import Reassignment
from broker.protocol import layouts
from broker.protocol.layouts import ControllerRequest, ControlRequest, Fields
from broker.protocol.replica_requests import PARTITIONS, RECORD, UNKNOWN_REPLICAS
from broker.protocol.requests import RequestType
from broker.replica_records import ReplicaRecord
from broker.topic import TopicPartition, validate_topic_name

THROTTLE_STAYS = -1  # the throttle of a `ReassignRequest` that does not change it


class PartitionOutcome(NamedTuple):
    """The result of a request for one partition; `error` is 0 if it was carried out."""

    partition: TopicPartition
    error: int
    text: str


OUTCOMES = layouts.response_list(
    layouts.record(
        PartitionOutcome, partition=layouts.PARTITION, error=layouts.INT16, text=layouts.TEXT
    )
)


class Setting(NamedTuple):
    """A setting of a topic, as text."""

    name: str
    value: str


@dataclass(frozen=True)
class CreateReplicatedTopicRequest(ControllerRequest):
    """Create a topic, spread over the brokers."""

    TYPE = RequestType.CREATE_TOPIC
    VERSION = 1
    BODY = Fields(
        topic=layouts.TOPIC,
        partition_count=layouts.INT32,
        replication_factor=layouts.INT32,
        settings=layouts.array(layouts.record(Setting, name=layouts.STRING, value=layouts.STRING)),
    )
    RESPONSE = PARTITIONS

    topic: str
    partition_count: int  # of all brokers together, 1 or more
    replication_factor: int  # copies of each partition, 1 or more
    settings: tuple[Setting, ...]  # those that differ from the brokers'


@dataclass(frozen=True)
class AddPartitionsRequest(ControllerRequest):
    """Add `partition_count` partitions, 1 or more, to a topic with replicas."""

    TYPE = RequestType.ADD_PARTITIONS
    BODY = Fields(topic=layouts.TOPIC, partition_count=layouts.INT32)
    RESPONSE = PARTITIONS

    topic: str
    partition_count: int


@dataclass(frozen=True)
class ReplicateTopicRequest(ControllerRequest):
    """Give a topic without replicas `replication_factor` copies of each partition, 1 or more."""

    TYPE = RequestType.REPLICATE_TOPIC
    BODY = Fields(topic=layouts.TOPIC, replication_factor=layouts.INT32)
    RESPONSE = PARTITIONS

    topic: str
    replication_factor: int


@dataclass(frozen=True)
class DeleteReplicatedTopicRequest(ControllerRequest):
    """Delete a topic with replicas, on all brokers."""

    TYPE = RequestType.DELETE_TOPIC
    VERSION = 1
    BODY = Fields(topic=layouts.TOPIC)
    RESPONSE = layouts.NOTHING

    topic: str


class ElectionKind(IntEnum):
    """Which replica becomes the leader."""

    PREFERRED = 0  # the first of the replicas, if it is in sync
    UNCLEAN = 1  # any live one, if there is no leader; committed messages may be lost


@dataclass(frozen=True)
class ElectLeadersRequest(ControllerRequest):
    """Elect leaders of partitions."""

    TYPE = RequestType.ELECT_LEADERS
    BODY = Fields(
        kind=layouts.enum(ElectionKind, layouts.INT8, "kind of election"),
        partitions=layouts.array(layouts.VALID_PARTITION),
    )
    RESPONSE = OUTCOMES

    kind: ElectionKind
    partitions: tuple[TopicPartition, ...]


class ReplicaTarget(NamedTuple):
    """The replicas a partition is to have, the preferred leader first; none: cancel a change."""

    partition: TopicPartition
    replicas: tuple[int, ...]


@dataclass(frozen=True)
class ReassignRequest(ControllerRequest):
    """Move partitions to other replicas, or cancel that."""

    TYPE = RequestType.REASSIGN
    BODY = Fields(
        throttle_bytes_per_s=layouts.INT64,
        targets=layouts.array(
            layouts.record(
                ReplicaTarget, partition=layouts.VALID_PARTITION, replicas=layouts.BROKER_IDS
            )
        ),
    )
    RESPONSE = OUTCOMES

    targets: tuple[ReplicaTarget, ...]  # one for each partition
    # the most that each broker may copy to added replicas, for all changes under way; 0 for no
    # limit
    throttle_bytes_per_s: int = THROTTLE_STAYS


class PartitionReassignment(NamedTuple):
    """A change of a partition's replicas that is under way."""

    partition: TopicPartition
    reassignment: Reassignment


class ListedReassignments(NamedTuple):
    """The changes of replicas that are under way, and their throttle, 0 for none."""

    throttle_bytes_per_s: int
    changes: tuple[PartitionReassignment, ...]


REASSIGNMENTS = layouts.record(
    ListedReassignments,
    throttle_bytes_per_s=layouts.INT64,
    changes=layouts.array(
        layouts.record(
            PartitionReassignment,
            partition=layouts.PARTITION,
            reassignment=layouts.record(
                Reassignment, original=layouts.BROKER_IDS, target=layouts.BROKER_IDS
            ),
        ),
        layouts.any_count,
    ),
)


class ListReassignmentsRequest(ControllerRequest):
    """List the changes of replicas that are under way."""

    TYPE = RequestType.LIST_REASSIGNMENTS
    RESPONSE = REASSIGNMENTS


class ListUnknownReplicasRequest(ControlRequest):
    """List the replicas that a broker has logs of and the registry does not know."""

    TYPE = RequestType.LIST_UNKNOWN_REPLICAS
    RESPONSE = UNKNOWN_REPLICAS


def _with_valid_topic(record: ReplicaRecord) -> ReplicaRecord:
    validate_topic_name(record.partition.topic)
    return record


@dataclass(frozen=True)
class RestorePartitionsRequest(ControllerRequest):
    """Add partitions of one topic, which the registry has lost, to it in the recorded states."""

    TYPE = RequestType.RESTORE_PARTITIONS
    BODY = Fields(
        records=layouts.array(layouts.mapped(RECORD, _with_valid_topic, _with_valid_topic))
    )
    RESPONSE = PARTITIONS

    records: tuple[ReplicaRecord, ...]
