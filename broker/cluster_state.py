"""What brokers and the controller know of replicated partitions and of each other.

A partition that has replicas is named as any other, by its home broker and index; which broker
leads it changes. These values travel between ZooKeeper, the controller, and the brokers; they do
no I/O and know no format of messages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from zlib import crc32

from broker.topic import TopicPartition

NO_LEADER = -1
"""The leader of a partition that has none: no replica that may lead is alive."""
NO_CONTROLLER = -1
"""The controller of a cluster that has none, or of which none is known."""
NO_EPOCH = -1
"""Of a log in which no leader epoch has begun, and of a partition without replication."""


UNKNOWN_BROKER_EPOCH = -1
"""Of an in-sync replica that its leader has not heard of in its term; and of the leader itself."""


def creation_key(creation_id: str) -> int:
    """Return what tells a topic from a former one of its name, whose epochs began at 0 as well.

    Requests between brokers carry it: one that is late must not be taken for the present topic.
    """
    return crc32(creation_id.encode()) & 0x7FFFFFFF


class Creation(NamedTuple):
    """The creation of a topic, by which clients know it from former ones of its name.

    Attributes:
        id: the creation id.
        zxid: the change in ZooKeeper that recorded it: offsets stored before are of a former topic.
    """

    id: str
    zxid: int

    def voids(self, offset_zxid: int) -> bool:
        """Return whether an offset, stored by a change in ZooKeeper, is of a former topic."""
        return offset_zxid < self.zxid


class PartitionState(NamedTuple):
    """Who leads a partition, as its node in ZooKeeper says.

    Attributes:
        leader: a broker id, or `NO_LEADER`.
        leader_epoch: one higher with each decision of the controller, from 0.
        isr: the broker ids of the in-sync replicas; never empty, with the leader if there is one.
        controller_epoch: of the controller that decided it.
    """

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    controller_epoch: int


class ReplicatedPartition(NamedTuple):
    """A partition with replicas and its state, as the controller tells it to brokers.

    Attributes:
        partition: which one.
        creation_id: of its topic; a log of another creation is not a replica of it.
        replicas: broker ids, the preferred leader first.
        min_isr: the fewest in-sync replicas with which messages are committed, 1 or more.
        state: who leads it.
        version: of the node in ZooKeeper that holds the state.
        adding: those of the replicas that a change of replicas has added, until it has ended.
        kept_id: the creation id that clients know it by, if not `creation_id`; see
            `TopicAssignment.kept`.
    """

    partition: TopicPartition
    creation_id: str
    replicas: tuple[int, ...]
    min_isr: int
    state: PartitionState
    version: int
    adding: tuple[int, ...] = ()
    kept_id: str = ""

    def is_throttled(self, broker_id: int) -> bool:
        """Return whether what a broker copies of it counts against the throttle of such changes.

        It does not once the replica is in sync: producers wait for it then.
        """
        return broker_id in self.adding and broker_id not in self.state.isr


class LiveBroker(NamedTuple):
    """A broker that is registered.

    Attributes:
        id: its number.
        host: name or address for clients and other brokers.
        port: its port.
        epoch: of its registration; a later registration has a higher one.
        is_clean: whether it had shut down cleanly before this start; if not, what it had not
            flushed may be lost.
        rack: where it stands, empty if not set.
        has_replicas: whether it had logs of replicas when it registered; other brokers are not
            told.
    """

    id: int
    host: str
    port: int
    epoch: int
    is_clean: bool
    rack: str
    has_replicas: bool = False


class EpochStart(NamedTuple):
    """The offset at which a leader epoch begins in a log."""

    epoch: int
    start_offset: int


class EpochEnd(NamedTuple):
    """The offset at which a leader epoch ends in a log; epoch `NO_EPOCH` if nothing is known."""

    epoch: int
    end_offset: int


class TopicAssignment(NamedTuple):
    """Which brokers have the replicas of a topic, as the topic's node in ZooKeeper says.

    Attributes:
        topic: its name.
        creation_id: differs from that of former topics of the same name.
        replicas: broker ids of each partition, the preferred leader first.
        version: of the node; 0 once it is created.
        kept: by home broker, the creations that clients know partitions by which are older than
            the node, as they had no replicas before: offsets stored since count.
    """

    topic: str
    creation_id: str
    replicas: Mapping[TopicPartition, tuple[int, ...]]
    version: int = 0
    kept: Mapping[int, Creation] = {}  # never changed


class StoredState(NamedTuple):
    """The state of a partition and the version of the node in ZooKeeper that holds it."""

    state: PartitionState
    version: int


class StateWrite(NamedTuple):
    """A state that a controller decided, to be written.

    Attributes:
        partition: whose.
        state: the new one.
        expected_version: that the node must have; None: there must be no node, it is created.
    """

    partition: TopicPartition
    state: PartitionState
    expected_version: int | None


class StateResult(NamedTuple):
    """What became of a `StateWrite`.

    Attributes:
        is_written: whether the node holds the new state.
        stored: what the node holds now; None if there is none.
    """

    is_written: bool
    stored: StoredState | None


class Reassignment(NamedTuple):
    """A change of a partition's replicas that is under way.

    Attributes:
        original: the replicas before; they come back if the change is cancelled.
        target: the replicas it is to have.
    """

    original: tuple[int, ...]
    target: tuple[int, ...]


class UnreadableTopic(NamedTuple):
    """A topic with nodes in ZooKeeper that are damaged, or were deleted by hand.

    Attributes:
        reason: names the first such node.
        assignment: which brokers have its replicas; None if it is that what cannot be read.
    """

    reason: str
    assignment: TopicAssignment | None


class DeletedTopic(NamedTuple):
    """A topic that is deleted, and the brokers that were away then and may have logs of it.

    Attributes:
        topic: its name; there may be another one of that name by now.
        creation_id: tells it from that.
        partitions: all it had.
        brokers: ids.
    """

    topic: str
    creation_id: str
    partitions: tuple[TopicPartition, ...]
    brokers: frozenset[int]


class ClusterSnapshot(NamedTuple):
    """All that a controller needs to know of a cluster when it takes office.

    Attributes:
        brokers: those that are registered.
        topics: the replicated ones.
        states: of partitions; one that was just created, and never had a state, has none.
        settings: of topics that have any, as in `/config/topics`.
        reassignments: changes of replicas that are under way.
        deletions: topics that are being deleted.
        unreadable: topics that are not among `topics`, as nodes of them cannot be read.
        deleted: topics that brokers still may have logs of.
        throttle_bytes_per_s: of the changes of replicas; 0 for none.
    """

    brokers: tuple[LiveBroker, ...] = ()
    topics: tuple[TopicAssignment, ...] = ()
    states: Mapping[TopicPartition, StoredState] = {}
    settings: Mapping[str, Mapping[str, str]] = {}
    reassignments: Mapping[TopicPartition, Reassignment] = {}
    deletions: frozenset[str] = frozenset()
    unreadable: Mapping[str, UnreadableTopic] = {}
    deleted: tuple[DeletedTopic, ...] = ()
    throttle_bytes_per_s: int = 0


LAST_EPOCH = (1 << 31) - 1
"""The leader epoch with which replicas of a deleted topic are stopped: no later one undoes it."""


class StoppedReplica(NamedTuple):
    """A partition of which the broker is to stop its replica.

    Attributes:
        partition: which one.
        creation_id: of its topic.
        leader_epoch: of the decision; a replica that knows a higher one goes on.
        deletes_log: whether the log is deleted, too.
    """

    partition: TopicPartition
    creation_id: str
    leader_epoch: int
    deletes_log: bool


class IsrMember(NamedTuple):
    """A broker that is in sync, and its registration while it came to be.

    The epoch may be `UNKNOWN_BROKER_EPOCH` if it is in sync already and stays.
    """

    broker_id: int
    broker_epoch: int


class IsrChange(NamedTuple):
    """The in-sync replicas that a leader wants for a partition.

    Attributes:
        partition: which one.
        leader_epoch: in which the leader leads it.
        version: of the partition's node in ZooKeeper, as the leader knows it.
        isr: the wanted members, itself among them; without itself, it resigns.
        creation: the `creation_key` of the topic that the leader means.
    """

    partition: TopicPartition
    leader_epoch: int
    version: int
    isr: tuple[IsrMember, ...]
    creation: int


class IsrDecision(NamedTuple):
    """The controller's answer for one partition.

    Attributes:
        partition: which one.
        error: 0, or why the change was refused.
        text: the reason, for people.
        decided: the partition as it is now; None where the controller does not know it.
    """

    partition: TopicPartition
    error: int
    text: str
    decided: ReplicatedPartition | None


class Unmoved(NamedTuple):
    """A partition that the stopping broker still leads, and why."""

    partition: TopicPartition
    reason: str


class ShutdownProgress(NamedTuple):
    """What a controlled shutdown has moved.

    Attributes:
        moved: partitions that another broker leads now.
        left: partitions whose in-sync replicas the broker has left.
        unmoved: those that it still leads.
    """

    moved: tuple[ReplicatedPartition, ...]
    left: tuple[TopicPartition, ...]
    unmoved: tuple[Unmoved, ...]
