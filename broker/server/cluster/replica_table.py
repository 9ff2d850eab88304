"""Which replicas are on this broker, and what a controller has told it of all partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from threading import Event, RLock
from typing import Any

from broker import errors
from broker.clock import Clock
from broker.cluster_state import UNKNOWN_BROKER_EPOCH, ReplicatedPartition
from broker.config import BrokerConfig
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.replication.follower import Follower
from broker.replication.leader import Leader
from broker.replication.replicas import Replica, Replicas, ReplicaSettings
from broker.server.cluster.state_change_log import NoteChanges
from broker.state_changes import ChangeKind, LoggedChange
from broker.topic import FORMAT_KAFKA, NO_HOME, TopicPartition


class HostedReplica:
    """A replica with its log, and the lock under which its state machine is driven.

    The log's events, appends and flushes, never wait for the lock: its holder handles them when it
    releases it. So a thread that holds a lock of a log does not block here.
    """

    def __init__(self, replica: Replica, log: Log, isr_due: Event) -> None:
        self.replica = replica
        self.log = log
        self.wanted_bytes = 0
        """The least a fetch must ask for, the size of a message larger than the last fetch."""
        self._lock = RLock()
        self._has_news = False
        self._isr_due = isr_due  # set once a log that is led here has become faulty
        self._was_faulty = False
        log.add_listener(self._note_news)
        log.append_listeners.add_listener(self._note_news)

    def __enter__(self) -> HostedReplica:
        self._lock.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._take_news()

    def forget_log(self) -> None:
        """Stop listening to the log."""
        self.log.remove_listener(self._note_news)
        self.log.append_listeners.remove_listener(self._note_news)

    def _note_news(self) -> None:
        self._has_news = True
        self._take_news()

    def _take_news(self) -> None:
        while self._has_news and self._lock.acquire(blocking=False):
            try:
                self._has_news = False
                role = self.replica.role
                if isinstance(role, Leader):
                    role.flushed()
                    is_faulty = self.log.is_faulty
                    if is_faulty and not self._was_faulty:
                        self._isr_due.set()
                    self._was_faulty = is_faulty
            finally:
                self._lock.release()


NoteStates = Callable[[Iterable[ReplicatedPartition], Iterable[TopicPartition]], object]
"""Called with states that the controller tells, and with partitions that are gone."""

_LONGEST_SCAN_S = 2.0


@dataclass(eq=False)
class ReplicaTable:
    """The replicas of one broker, by partition.

    All threads read it, without a lock. Orders change it, one push at a time; what
    `ReplicaOrders` alone writes are attributes.
    """

    config: BrokerConfig
    logs: LogManager
    clock: Clock
    note_states: NoteStates
    note_changes: NoteChanges

    def __post_init__(self) -> None:
        self.me = self.config.broker_id
        self.registered_epoch: Callable[[], int | None] = lambda: None
        """Returns the epoch of this broker's registration, None before the first."""
        self.topics: set[str] = set()
        """The topics that have replicas, here or on other brokers."""
        self.ordered_epoch: int | None = None
        """The registration in which a controller told this broker of all partitions it knows."""
        self.has_full_orders = False
        """Whether this run has carried out a push that names all partitions."""
        self.new_logs: set[TopicPartition] = set()
        """Partitions whose log was created for orders that are not carried out yet."""
        self.isr_due = Event()
        """Set to have changes of in-sync replicas proposed soon."""
        self.states = Replicas(
            self.config.broker_id,
            ReplicaSettings(self.config.replica_lag_ms / 1000, self.counts_flushed, self._keeps),
            self._open_log,
            self._delete_log,
        )
        """The state machines of the replicas, and the last state of each partition."""
        self._lag_s = self.config.replica_lag_ms / 1000
        self.scan_s = min(_LONGEST_SCAN_S, self._lag_s / 4)
        """How often to look at all replicas for what nothing tells of, such as followers that lag.

        So much may be missing in the times that they are compared with.
        """
        self._hosted: dict[TopicPartition, HostedReplica] = {}

    @property
    def broker_epoch(self) -> int:
        """Return the epoch of this broker's registration, -1 before the first."""
        epoch = self.registered_epoch()
        return UNKNOWN_BROKER_EPOCH if epoch is None else epoch

    def hosted(self, partition: TopicPartition) -> HostedReplica:
        """Return this broker's replica of a partition, or raise the error of `not_led`."""
        found = self._hosted.get(partition)
        if found is None:
            raise self.not_led(partition)
        return found

    def find(self, partition: TopicPartition) -> HostedReplica | None:
        """Return this broker's replica of a partition, None if there is none."""
        return self._hosted.get(partition)

    def all(self) -> list[HostedReplica]:
        """Return all replicas of this broker."""
        return list(self._hosted.values())

    def leader_of(self, partition: TopicPartition) -> Leader:
        """Return this broker's present term as leader of a partition, or raise like `hosted`."""
        return self.hosted(partition).replica.leader

    def leads(self, partition: TopicPartition) -> bool:
        """Return whether this broker leads a partition that has replicas."""
        hosted = self._hosted.get(partition)
        return hosted is not None and isinstance(hosted.replica.role, Leader)

    def leader_id(self, partition: TopicPartition) -> int:
        """Return which broker leads a partition, -1 if none does or that is not known."""
        known = self.states.known.get(partition)
        return -1 if known is None else known.state.leader

    def at_home(self, topic: str, index: int) -> TopicPartition:
        """Return the partition that a client which names no home means by its index.

        That of this broker; in the format kafka, of which partitions have no home, the only one.
        """
        if (topic, NO_HOME, 0) in self.states.known:
            return TopicPartition(topic, NO_HOME, index)
        return self.logs.table.named(topic, index)

    def format_of(self, topic: str) -> str:
        """Return the format of a topic, here or on other brokers; 0.7 if it is not known."""
        if (topic, NO_HOME, 0) in self.states.known:
            return FORMAT_KAFKA
        return self.logs.topics.format_of(topic)

    def resolved(self, partition: TopicPartition) -> TopicPartition:
        """Return a partition as its log names it: home -1 in a request means that of `at_home`."""
        topic, home, index = partition
        return self.at_home(topic, index) if home == NO_HOME else partition

    def find_served(self, partition: TopicPartition) -> Log | None:
        """Return the log of a partition that clients may use here, None if it has none yet.

        Home -1 means that of `at_home`. Raises the error of `not_led` if others lead the partition,
        or its topic is lost.
        """
        topic = partition.topic
        partition = self.resolved(partition)
        log = self.logs.table.find(partition)
        if log is None:
            is_foreign = not self.logs.table.is_own(partition) or topic in self.topics
            if (
                is_foreign
                or self.is_lost(topic)
                or (self._awaits_orders and topic not in self.logs.topics)
            ):
                raise self.not_led(partition)
        # or it is about to be one
        elif log.is_replicated or (self.states.known and partition in self.states.known):
            self.leader_of(partition)
        return log

    def find_readable(self, partition: TopicPartition) -> Log | None:
        """Return the log of a follower here that consumers may read, None if there is none.

        It is in sync as far as this broker has been told, and its leader responds: a follower cut
        off from controller and leader would stay behind for ever without knowing it.
        """
        hosted, known = self._hosted.get(partition), self.states.known.get(partition)
        if hosted is None or known is None or self.me not in known.state.isr:
            return None
        if hosted.log.is_faulty:
            return None
        role = hosted.replica.role
        if not isinstance(role, Follower) or role.is_stopped or role.answered_s is None:
            return None
        silent_s = self.clock.monotonic_s() - role.answered_s
        return hosted.log if silent_s <= self._lag_s else None

    def is_lost(self, topic: str) -> bool:
        """Return whether replicas here are of a topic of which no controller has told this run."""
        return topic not in self.topics and self.logs.table.has_replicas_of(topic)

    def is_unknown(self, partition: TopicPartition) -> bool:
        """Return whether no controller has told this run of a partition, or it is gone."""
        return partition not in self.states.known

    @property
    def _awaits_orders(self) -> bool:
        """Return whether no controller has pushed partitions since this broker registered."""
        # until then a partition that is not known here may have replicas, as topics may be new
        return bool(self.topics) and self.ordered_epoch != self.broker_epoch

    def not_led(self, partition: TopicPartition) -> errors.ServerError:
        """Return the error for a partition of which this broker has no log that it may use."""
        known = self.states.known.get(partition)
        if known is None:
            is_lost = self.is_lost(partition.topic)
            has_replicas = is_lost or partition.topic in self.topics
            is_unread = has_replicas and not self.has_full_orders
            if is_unread or self._awaits_orders:
                return errors.LeaderNotAvailableError(
                    f"the controller has not yet told this broker who leads {partition}; try again"
                )
            if is_lost:
                return errors.LeaderNotAvailableError(
                    f"ZooKeeper has lost topic '{partition.topic}', of which broker {self.me} has "
                    "logs: `pylogctl cluster recover` restores it"
                )
            return errors.WrongPartitionError(f"broker {self.me} does not lead {partition}")
        leader = known.state.leader
        return errors.NotLeaderError(
            f"broker {self.me} does not lead {partition}; "
            + ("no broker does" if leader < 0 else f"broker {leader} does"),
            leader,
        )

    def counts_flushed(self, topic: str) -> bool:
        """Return whether only flushed messages of a topic count as being on a replica."""
        return self.logs.settings.of(topic).flush_before_read

    def _keeps(self, partition: TopicPartition, offset: int, end_offset: int) -> bool:
        retention, log = self.logs.retention, self.logs.table.find(partition)
        if log is None:
            return False
        return retention.is_held or retention.keeps(log, offset, end_offset)

    def kept_error(self, hosted: HostedReplica) -> errors.KeptMessagesError | None:
        """Return the error of a leader that lacks messages which retention here keeps, if any."""
        role, log = hosted.replica.role, hosted.log
        if not isinstance(role, Follower) or (told := role.told) is None:
            return None
        start, end = told.log_start_offset, max(told.high_watermark, log.log_end_offset)
        if start <= log.log_start_offset or not self.logs.retention.keeps(log, start, end):
            return None
        return role.kept_error(told)

    def change_of(self, hosted: HostedReplica, kind: ChangeKind, **fields: Any) -> LoggedChange:
        """Return a change of a replica to be logged, in the epochs known here."""
        return LoggedChange(
            kind,
            controller_epoch=self.states.controller_epoch,
            partition=hosted.log.partition,
            leader_epoch=hosted.replica.leader_epoch,
            **fields,
        )

    def add(self, replica: Replica) -> HostedReplica | None:
        """Return a replica with its log, added in place of a former one; None if it has no log."""
        known = self._hosted.get(replica.partition)
        if known is not None and known.replica is replica:
            return known
        log = self.logs.table.find(replica.partition)
        if log is None:  # it was deleted
            return None
        if known is not None:
            known.forget_log()
        added = self._hosted[replica.partition] = HostedReplica(replica, log, self.isr_due)
        return added

    def _open_log(self, info: ReplicatedPartition) -> Log:
        if self.logs.table.find(info.partition) is None:
            self.new_logs.add(info.partition)
        return self.logs.creation.open_replica(info.partition, info.creation_id)

    def _delete_log(self, replica: Replica) -> None:
        hosted = self._hosted.pop(replica.partition, None)
        if hosted is not None:
            hosted.forget_log()
        self.logs.deletions.delete_replica(replica.partition)
