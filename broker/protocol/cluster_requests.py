"""Requests of an operator about topics with replicas (field tables: REQUESTS.md).

Any broker but the controller refuses them, naming the controller; only `ListUnknownReplicasRequest`
is for each.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Annotated, NamedTuple

from broker.cluster_state import Reassignment
from broker.protocol import layouts
from broker.protocol.layouts import ControllerRequest, ControlRequest, Int16, Int32, Int64
from broker.protocol.replica_requests import PARTITIONS, RECORD, UNKNOWN_REPLICAS
from broker.protocol.requests import RequestType
from broker.replica_records import ReplicaRecord
from broker.topic import TopicPartition, validate_topic_name

THROTTLE_STAYS = -1  # the throttle of a `ReassignRequest` that does not change it


class PartitionOutcome(NamedTuple):
    """The result of a request for one partition; `error` is 0 if it was carried out."""

    partition: TopicPartition
    error: Int16
    text: layouts.Text


OUTCOMES = layouts.response_list(layouts.record(PartitionOutcome))


class SettingText(NamedTuple):
    """A setting of a topic, as text."""

    name: str
    value: str


@dataclass(frozen=True)
class CreateReplicatedTopicRequest(ControllerRequest):
    """Create a topic, spread over the brokers."""

    TYPE = RequestType.CREATE_TOPIC
    VERSION = 1
    RESPONSE = PARTITIONS

    topic: layouts.Topic
    partition_count: Int32  # of all brokers together, 1 or more
    replication_factor: Int32  # copies of each partition, 1 or more
    settings: tuple[SettingText, ...]  # those that differ from the brokers'
    format: layouts.TopicFormat = ""  # for life; empty: `log.format` of the controller


@dataclass(frozen=True)
class AddPartitionsRequest(ControllerRequest):
    """Add `partition_count` partitions, 1 or more, to a topic with replicas."""

    TYPE = RequestType.ADD_PARTITIONS
    RESPONSE = PARTITIONS

    topic: layouts.Topic
    partition_count: Int32


@dataclass(frozen=True)
class ReplicateTopicRequest(ControllerRequest):
    """Give a topic without replicas `replication_factor` copies of each partition, 1 or more."""

    TYPE = RequestType.REPLICATE_TOPIC
    RESPONSE = PARTITIONS

    topic: layouts.Topic
    replication_factor: Int32


@dataclass(frozen=True)
class DeleteReplicatedTopicRequest(ControllerRequest):
    """Delete a topic with replicas, on all brokers."""

    TYPE = RequestType.DELETE_TOPIC
    VERSION = 1
    RESPONSE = layouts.NOTHING

    topic: layouts.Topic


class ElectionKind(IntEnum):
    """Which replica becomes the leader."""

    PREFERRED = 0  # the first of the replicas, if it is in sync
    UNCLEAN = 1  # any live one, if there is no leader; committed messages may be lost


@dataclass(frozen=True)
class ElectLeadersRequest(ControllerRequest):
    """Elect leaders of partitions."""

    TYPE = RequestType.ELECT_LEADERS
    RESPONSE = OUTCOMES

    kind: Annotated[ElectionKind, layouts.enum(ElectionKind, layouts.INT8, "kind of election")]
    partitions: tuple[layouts.ValidPartition, ...]


class ReplicaTarget(NamedTuple):
    """The replicas a partition is to have, the preferred leader first; none: cancel a change."""

    partition: layouts.ValidPartition
    replicas: tuple[Int32, ...]


@dataclass(frozen=True)
class ReassignRequest(ControllerRequest):
    """Move partitions to other replicas, or cancel that."""

    TYPE = RequestType.REASSIGN
    RESPONSE = OUTCOMES

    # the most that each broker may copy to added replicas, for all changes under way; 0 for no
    # limit
    throttle_bytes_per_s: Int64 = field(default=THROTTLE_STAYS, kw_only=True)
    targets: tuple[ReplicaTarget, ...]  # one for each partition


class PartitionReassignment(NamedTuple):
    """A change of a partition's replicas that is under way."""

    partition: TopicPartition
    reassignment: Annotated[
        Reassignment,
        layouts.record(Reassignment, original=layouts.BROKER_IDS, target=layouts.BROKER_IDS),
    ]


class ListedReassignments(NamedTuple):
    """The changes of replicas that are under way, and their throttle, 0 for none."""

    throttle_bytes_per_s: Int64
    changes: Annotated[
        tuple[PartitionReassignment, ...],
        layouts.array(layouts.record(PartitionReassignment), layouts.any_count),
    ]


REASSIGNMENTS = layouts.record(ListedReassignments)


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
    RESPONSE = PARTITIONS

    records: tuple[
        Annotated[ReplicaRecord, layouts.mapped(RECORD, _with_valid_topic, _with_valid_topic)], ...
    ]
