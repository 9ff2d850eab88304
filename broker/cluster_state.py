"""What brokers and the controller know of replicated partitions and of each other.

A partition with replicas is named like any other, by its home broker and index, or by its number in
the format kafka; its leader changes. These values are exchanged between ZooKeeper, the controller,
and the brokers; there is no I/O here, nor the format of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple
from zlib import crc32

from broker.endpoints import Endpoint
from broker.topic import TopicPartition

# of an in-sync replica that has not fetched from its leader in this term, and of the leader itself
UNKNOWN_BROKER_EPOCH = -1


def creation_key(creation_id: str) -> int:
    """Return a number that tells a topic from a former one of its name, whose epochs began at 0."""
    # carried by requests between brokers: a late one must not be taken for the present topic
    return crc32(creation_id.encode()) & 0x7FFFFFFF


class Creation(NamedTuple):
    """The creation of a topic, by which clients tell it from former ones of its name."""

    id: str
    zxid: int  # of its record in ZooKeeper; offsets stored before are of a former topic

    def voids(self, offset_zxid: int) -> bool:
        """Return whether an offset, stored by the change `offset_zxid`, is of a former topic."""
        return offset_zxid < self.zxid


class KeptCreation(NamedTuple):
    """The creation that clients know a home broker's partitions by, older than the topic's node.

    Attributes:
        creation: offsets stored since count.
        partition_count: how many partitions it is of; those added later are new.
    """

    creation: Creation
    partition_count: int


class PartitionState(NamedTuple):
    """The leader and in-sync replicas of a partition, as in its node in ZooKeeper."""

    leader: int  # a broker id, or `NO_LEADER`
    leader_epoch: int  # one higher with each decision of the controller, from 0
    isr: tuple[int, ...]  # broker ids; never empty, with the leader if there is one
    controller_epoch: int  # of the controller that decided it


class ReplicatedPartition(NamedTuple):
    """A partition with replicas and its state, as the controller sends it to brokers."""

    partition: TopicPartition
    creation_id: str  # of its topic; a log of another creation is not a replica of it
    replicas: tuple[int, ...]  # broker ids, the preferred leader first
    min_isr: int  # the fewest in-sync replicas with which messages are committed, 1 or more
    state: PartitionState
    version: int  # of the node in ZooKeeper that holds the state
    adding: tuple[int, ...] = ()  # replicas added by a change of replicas, until it has ended
    # the creation id clients know it by, if not `creation_id`; see `TopicAssignment.kept`
    kept_id: str = ""

    def is_throttled(self, broker_id: int) -> bool:
        """Return whether the bytes a broker copies count against the throttle of such changes."""
        # not once the replica is in sync, as producers wait for it then
        return broker_id in self.adding and broker_id not in self.state.isr


class LiveBroker(NamedTuple):
    """A broker that is registered."""

    id: int
    host: str  # name or address for clients and other brokers
    port: int
    epoch: int  # of its registration; a later registration has a higher one
    is_clean: bool  # its last run ended cleanly; otherwise unflushed messages may be lost
    rack: str  # empty if not set
    has_replicas: bool = False  # when it registered; not sent to other brokers
    endpoints: tuple[Endpoint, ...] = ()  # that for other brokers first; not sent either


class PeerFinding(IntEnum):
    """What one broker finds when it asks another whether it is there."""

    ANSWERS = 0
    REFUSES = 1  # its connections are ended, and its port refuses another
    SILENT = 2


class EpochStart(NamedTuple):
    """The offset at which a leader epoch begins in a log."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The offset at which a leader epoch ends in a log; epoch `NO_EPOCH` if none is known."""

    epoch: int
    end_offset: int


class TopicAssignment(NamedTuple):
    """The brokers that have the replicas of a topic, as in the topic's node in ZooKeeper."""

    topic: str
    # differs from that of former topics of the same name; in the format kafka, the topic id: 16
    # bytes as hexadecimal digits
    creation_id: str
    replicas: Mapping[TopicPartition, tuple[int, ...]]  # broker ids, the preferred leader first
    version: int = 0  # of the node; 0 once it is created
    # By home broker, -1 in the format kafka, creations that are older than the node: the partitions
    # had no replicas before, or ZooKeeper has lost its data. Never changed.
    kept: Mapping[int, KeptCreation] = {}

    @property
    def format(self) -> str:
        """Return the format of the topic, for life; the names of its partitions tell it."""
        return next(iter(self.replicas)).format

    def described(
        self,
        partition: TopicPartition,
        stored: StoredState,
        min_isr: int,
        original: tuple[int, ...] | None = None,
    ) -> ReplicatedPartition:
        """Return a partition as brokers are told of it; `original` replicas, if they change."""
        replicas, kept = self.replicas[partition], self.kept.get(partition.home)
        adding = () if original is None else tuple(one for one in replicas if one not in original)
        return ReplicatedPartition(
            *(partition, self.creation_id, replicas, min_isr, stored.state, stored.version),
            *(adding, "" if kept is None else kept.creation.id),
        )


class StoredState(NamedTuple):
    """The state of a partition and the version of the node in ZooKeeper that holds it."""

    state: PartitionState
    version: int


class StateWrite(NamedTuple):
    """A state that a controller decided, to be written."""

    partition: TopicPartition
    state: PartitionState
    expected_version: int | None  # of the node; None: it must not exist, and is created


class StateResult(NamedTuple):
    """The result of a `StateWrite`."""

    is_written: bool
    stored: StoredState | None  # the content of the node now; None if there is none


class Reassignment(NamedTuple):
    """A change of a partition's replicas that is under way."""

    original: tuple[int, ...]  # the replicas before, restored if the change is cancelled
    target: tuple[int, ...]


class UnreadableTopic(NamedTuple):
    """A topic with nodes in ZooKeeper that are damaged, or were deleted by hand."""

    reason: str  # names the first such node
    assignment: TopicAssignment | None  # None if the assignment itself cannot be read


class DeletedTopic(NamedTuple):
    """A topic that is deleted, and the brokers that were away then and may have logs of it."""

    topic: str
    creation_id: str  # tells it from a later topic of that name
    partitions: tuple[TopicPartition, ...]  # all it had
    brokers: frozenset[int]


class ClusterSnapshot(NamedTuple):
    """The state of a cluster that a controller reads when it takes office."""

    brokers: tuple[LiveBroker, ...] = ()
    topics: tuple[TopicAssignment, ...] = ()
    states: Mapping[TopicPartition, StoredState] = {}  # none for a partition just created
    settings: Mapping[str, Mapping[str, str]] = {}  # of topics with any, as in `/config/topics`
    reassignments: Mapping[TopicPartition, Reassignment] = {}  # those under way
    deletions: frozenset[str] = frozenset()  # topics that are being deleted
    unreadable: Mapping[str, UnreadableTopic] = {}  # topics that are not among `topics`
    deleted: tuple[DeletedTopic, ...] = ()
    throttle_bytes_per_s: int = 0  # of the changes of replicas; 0 for none


# the leader epoch with which replicas of a deleted topic are stopped: no later one undoes it
LAST_EPOCH = (1 << 31) - 1


class StoppedReplica(NamedTuple):
    """A partition of which the broker is to stop its replica."""

    partition: TopicPartition
    creation_id: str
    leader_epoch: int  # of the decision; a replica that knows a higher one continues
    deletes_log: bool


class IsrMember(NamedTuple):
    """An in-sync replica, and its broker's registration when it became one.

    The epoch may be `UNKNOWN_BROKER_EPOCH` for a replica that was in sync before and remains so.
    """

    broker_id: int
    broker_epoch: int


class IsrChange(NamedTuple):
    """The in-sync replicas that a leader requests for a partition."""

    partition: TopicPartition
    leader_epoch: int
    version: int  # of the partition's node in ZooKeeper, as the leader knows it
    isr: tuple[IsrMember, ...]  # with the leader itself; without, it resigns
    creation: int  # the `creation_key` of the topic that the leader means


class IsrDecision(NamedTuple):
    """The controller's decision for one partition."""

    partition: TopicPartition
    error: int  # 0, or why the change was refused
    text: str  # the reason, for people
    decided: ReplicatedPartition | None  # the present state; None if unknown to the controller


class Unmoved(NamedTuple):
    """A partition that the stopping broker still leads, and why."""

    partition: TopicPartition
    reason: str


class ShutdownProgress(NamedTuple):
    """The partitions that a controlled shutdown has moved."""

    moved: tuple[ReplicatedPartition, ...]  # another broker leads them now
    left: tuple[TopicPartition, ...]  # the broker has left their in-sync replicas
    unmoved: tuple[Unmoved, ...]
