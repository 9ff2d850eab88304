"""The controller of a cluster: events in, states in the registry and pushes to brokers out.

It knows every replicated partition and every live broker. Each event is handled to its end before
the next: a decision is first written to the registry, then added to `take_pushes`. It reads no
clock and does no I/O but through its `Store`, so that a simulation can drive it.

Source: Kafka 0.8 `KafkaController`, `PartitionStateMachine`, `ReplicaStateMachine`, with the
repairs of later versions: broker epochs, one writer of in-sync replicas, fenced writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import NamedTuple

from broker.cluster_state import (
    LAST_EPOCH,
    NO_LEADER,
    UNKNOWN_BROKER_EPOCH,
    ClusterSnapshot,
    Creation,
    DeletedTopic,
    IsrChange,
    IsrDecision,
    KeptCreation,
    LiveBroker,
    PartitionState,
    Reassignment,
    ReplicatedPartition,
    ShutdownProgress,
    StateWrite,
    StoppedReplica,
    StoredState,
    TopicAssignment,
    Unmoved,
    UnreadableTopic,
    creation_key,
)
from broker.controller.assignment import place_partitions, place_replicas, validate_target
from broker.controller.election import elect_offline, elect_preferred, elect_reassigned
from broker.controller.lost import LostPartitions, validate_records
from broker.controller.store import Store
from broker.errors import (
    NO_ERROR,
    FencedEpochError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    RegistryConflictError,
    ServerError,
    StaleBrokerEpochError,
    TopicExistsError,
    UnknownTopicError,
)
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import MAX_CLUSTER_PARTITIONS, TopicPartition, validate_topic_name

MIN_ISR = "min.insync.replicas"
ALLOWS_UNCLEAN = "unclean.leader.election.enable"

_MISSING = -1
"""The version of a state whose node is gone from the registry; it is created again."""
_MAX_ROUNDS = 10


class Push(NamedTuple):
    """The states and orders that a broker gets; `stopped` takes effect after `partitions`."""

    broker_epoch: int  # of the registration of the broker that it is for
    # `partitions` is complete: others do not exist. Never while a topic cannot be read.
    is_full: bool
    brokers: tuple[LiveBroker, ...]  # all that are registered
    partitions: tuple[ReplicatedPartition, ...]
    stopped: tuple[StoppedReplica, ...]
    throttle_bytes_per_s: int  # for copies to replicas that are being added; 0: no limit


class StateChange(NamedTuple):
    """A decision that was written, for the log of state changes."""

    partition: TopicPartition
    state: PartitionState
    version: int  # of the node that holds the state
    reason: str
    is_unclean: bool  # the leader was not in sync: committed messages may be lost
    is_election: bool  # a partition that is not new has another leader now


class ControllerCounts(NamedTuple):
    """Numbers for monitoring."""

    offline: int  # partitions without a leader
    away: int  # partitions that another than the preferred replica leads
    unclean_elections: int  # of this term: replicas that led without being in sync
    deletions: int  # topics being deleted, of which a broker may still have a log


class ControllerSettings(NamedTuple):
    """Defaults for topics that have no setting of their own."""

    min_isr: int = 1  # the fewest in-sync replicas with which messages are committed
    allows_unclean: bool = False  # a replica that is not in sync may lead if no other is live


class Controller:
    """One term of office of one broker.

    After any error but a `ServerError` the controller's knowledge is behind the registry: replace
    it by a new controller and load that.

    Args:
        epoch: of this term, higher than those of all before.
    """

    def __init__(
        self, me: int, epoch: int, store: Store, settings: ControllerSettings | None = None
    ) -> None:
        self.me = me
        self.epoch = epoch
        self.unclean_election_count = 0  # of replicas not in sync, in this term
        self._store = store
        self._defaults = settings or ControllerSettings()
        self._brokers: dict[int, LiveBroker] = {}
        self._shutting_down: set[int] = set()
        self._topics: dict[str, TopicAssignment] = {}
        self._states: dict[TopicPartition, StoredState] = {}
        self._settings: dict[str, Mapping[str, str]] = {}
        self._reassignments: dict[TopicPartition, Reassignment] = {}
        self._throttle_bytes_per_s = 0  # for all reassignments together, on each broker
        self._unreadable: Mapping[str, UnreadableTopic] = {}
        self._unreadable_reassignments: dict[TopicPartition, Reassignment] = {}
        self._deletions: dict[str, set[int]] = {}  # the brokers that still may have a log
        self._deleted: dict[str, DeletedTopic] = {}  # by creation id
        self._lost = LostPartitions()
        self._unpushed: dict[TopicPartition, None] = {}  # in the order of the decisions
        self._without_full_push: set[int] = set()
        self._tells_all = False  # brokers or the throttle have changed
        self._stops: dict[int, list[StoppedReplica]] = {}
        self._changes: list[StateChange] = []

    # State.

    @property
    def brokers(self) -> tuple[LiveBroker, ...]:
        """Return the brokers that are registered, by id."""
        return tuple(self._brokers[one] for one in sorted(self._brokers))

    @property
    def topics(self) -> Collection[str]:
        """Return the names of the replicated topics, those that are being deleted too."""
        return self._topics.keys()

    @property
    def unreadable(self) -> Mapping[str, UnreadableTopic]:
        """Return the topics, by name, that this controller leaves as they are.

        Only a new controller includes a topic once it can be read.
        """
        return self._unreadable

    def partitions(self) -> Iterator[ReplicatedPartition]:
        """Yield every partition that has a state."""
        for partition in self._all_partitions():
            if partition in self._states:
                yield self._described(partition)

    def counts(self) -> ControllerCounts:
        """Return numbers for monitoring; any thread."""
        states = list(self._states.items())  # one step of the interpreter: no change intervenes
        offline = away = 0
        for partition, (state, _) in states:
            assignment = self._topics.get(partition.topic)
            replicas = () if assignment is None else assignment.replicas.get(partition, ())
            offline += state.leader == NO_LEADER
            away += state.leader != NO_LEADER and state.leader not in replicas[:1]
        deletions = len(self._deletions)
        return ControllerCounts(offline, away, self.unclean_election_count, deletions)

    @property
    def reassignments(self) -> Mapping[TopicPartition, Reassignment]:
        """Return the reassignments under way."""
        return self._reassignments

    @property
    def throttle_bytes_per_s(self) -> int:
        """Return how much each broker may copy to replicas that are being added; 0: no limit."""
        return self._throttle_bytes_per_s

    def _all_partitions(self) -> Iterator[TopicPartition]:
        for topic, assignment in self._topics.items():
            if topic not in self._deletions:
                yield from assignment.replicas

    def _described(self, partition: TopicPartition) -> ReplicatedPartition:
        assignment, stored = self._topics[partition.topic], self._states[partition]
        replicas = assignment.replicas[partition]
        change = self._reassignments.get(partition)
        kept = assignment.kept.get(partition.home)
        return ReplicatedPartition(
            partition,
            assignment.creation_id,
            replicas,
            self._min_isr(partition.topic),
            stored.state,
            stored.version,
            tuple(one for one in replicas if change and one not in change.original),
            "" if kept is None else kept.creation.id,
        )

    def _min_isr(self, topic: str) -> int:
        text = self._settings.get(topic, {}).get(MIN_ISR, "")
        return max(1, int(text)) if text.isascii() and text.isdigit() else self._defaults.min_isr

    def _allows_unclean(self, topic: str) -> bool:
        text = self._settings.get(topic, {}).get(ALLOWS_UNCLEAN)
        return self._defaults.allows_unclean if text is None else text == "true"

    def _eligible(self) -> set[int]:
        return self._brokers.keys() - self._shutting_down

    # Pushes.

    def take_pushes(self) -> dict[int, Push]:
        """Return the pushes for changes since the last call, by broker id.

        The first push after a broker has registered, or this controller has taken office, names all
        partitions. It is full unless some topics cannot be read: a broker stops replicas that a
        full push does not name.
        """
        changed = [
            self._described(one)
            for one in self._unpushed
            if one in self._states and one.topic not in self._deletions
        ]
        everything = tuple(self.partitions()) if self._without_full_push else ()
        brokers = self.brokers
        pushes = {}
        for broker_id, broker in self._brokers.items():
            gets_all = broker_id in self._without_full_push
            stopped = tuple(self._stops.get(broker_id, ()))
            if gets_all or changed or stopped or self._tells_all:
                pushes[broker_id] = Push(
                    broker.epoch,
                    gets_all and not self._unreadable,
                    brokers,
                    everything if gets_all else tuple(changed),
                    stopped,
                    self._throttle_bytes_per_s,
                )
        self._unpushed.clear()
        self._without_full_push.clear()
        self._tells_all = False
        self._stops.clear()
        return pushes

    def take_changes(self) -> list[StateChange]:
        """Return the decisions since the last call, in their order."""
        changes, self._changes = self._changes, []
        return changes

    def _stop(
        self, broker_id: int, partition: TopicPartition, epoch: int, *, deletes: bool
    ) -> None:
        creation_id = self._topics[partition.topic].creation_id
        self._order_stop(broker_id, StoppedReplica(partition, creation_id, epoch, deletes))

    def _order_stop(self, broker_id: int, stopped: StoppedReplica) -> None:
        self._stops.setdefault(broker_id, []).append(stopped)

    # Decisions.

    def _decide(
        self,
        partitions: Iterable[TopicPartition],
        decision: Callable[[TopicPartition, PartitionState], PartitionState],
        reason: str,
        *,
        confirmed: Mapping[TopicPartition, int] = MappingProxyType({}),
    ) -> None:
        """Write new states; where another writer changed a node, decide again from its content.

        Args:
            decision: returns the state a partition is to have, the same one if it may stay.
            confirmed: versions to replace by later ones even if the state stays.
        """
        waiting = [one for one in partitions if one in self._states]
        for _ in range(_MAX_ROUNDS):
            writes = []
            for partition in waiting:
                state, version = self._states[partition]
                decided = decision(partition, state)
                is_confirmed = confirmed.get(partition) == version
                if decided != state or is_confirmed or version == _MISSING:
                    new = decided._replace(controller_epoch=self.epoch)
                    writes.append(
                        StateWrite(partition, new, None if version == _MISSING else version)
                    )
            waiting = self._write(writes, reason)
            if not waiting:
                return
        raise RegistryConflictError(f"the state of {waiting[0]} keeps being changed by others")

    def _write(self, writes: list[StateWrite], reason: str) -> list[TopicPartition]:
        """Write states, elections first; return the partitions whose nodes had another version."""
        if not writes:
            return []
        writes.sort(key=lambda one: not self._changes_leader(one))
        refused = []
        for write, result in zip(writes, self._store.write_states(writes), strict=True):
            partition, before = write.partition, self._states.get(write.partition)
            if result.is_written:
                assert result.stored is not None
                is_unclean = before is not None and write.state.leader not in before.state.isr
                is_unclean &= write.state.leader != NO_LEADER
                self.unclean_election_count += is_unclean
                self._changes.append(
                    StateChange(
                        partition,
                        write.state,
                        result.stored.version,
                        reason,
                        is_unclean,
                        before is not None
                        and write.state.leader not in (before.state.leader, NO_LEADER),
                    )
                )
            else:
                refused.append(partition)
            self._unpushed[partition] = None
            if result.stored is not None:
                self._states[partition] = _never_older(result.stored, before)
            elif before is not None:
                self._states[partition] = before._replace(version=_MISSING)
        return refused

    def _changes_leader(self, write: StateWrite) -> bool:
        before = self._states.get(write.partition)
        return before is None or before.state.leader != write.state.leader

    def _settle(self, reason: str) -> None:
        """Bring every partition to the best state that live brokers allow."""
        self._start_new()
        self._decide(self._all_partitions(), self._settled, reason)
        self._advance_reassignments()

    def _start_new(self) -> None:
        eligible = self._eligible()
        writes = []
        for partition in self._all_partitions():
            if partition not in self._states:
                assignment = self._topics[partition.topic]
                replicas = assignment.replicas[partition]
                kept = assignment.kept.get(partition.home)
                if kept is not None and partition.index < kept.partition_count:
                    # its log has messages that others lack
                    replicas = (partition.home,)
                live = tuple(one for one in replicas if one in eligible)
                # a partition without a live replica gets its first state once one is live
                if live:
                    state = PartitionState(live[0], 0, live, self.epoch)
                    writes.append(StateWrite(partition, state, None))
        for partition in self._write(writes, "created"):
            if partition not in self._states:
                raise RegistryConflictError(f"the nodes of topic '{partition.topic}' are gone")

    def _settled(self, partition: TopicPartition, state: PartitionState) -> PartitionState:
        """Return the state of a partition without dead brokers among its leader and ISR.

        Leaving the in-sync replicas keeps the leader epoch: until the leader hears of it, it only
        waits for more replicas than it must.
        """
        replicas = self._topics[partition.topic].replicas[partition]
        eligible = self._eligible()
        if state.leader in self._brokers:
            isr = tuple(one for one in state.isr if one in eligible or one == state.leader)
            return state._replace(isr=isr)
        allows_unclean = self._allows_unclean(partition.topic)
        election = elect_offline(replicas, state.isr, eligible, is_unclean=allows_unclean)
        if election is not None:
            return _led_by(state, election.leader, election.isr)
        # in-sync replicas may lead again once they are back
        return state if state.leader == NO_LEADER else _led_by(state, NO_LEADER, state.isr)

    def _distrust(self, unclean: Collection[int]) -> None:
        """Take brokers that may have lost messages out of in-sync replicas with other members."""

        def without(partition: TopicPartition, state: PartitionState) -> PartitionState:
            isr = tuple(one for one in state.isr if one not in unclean)
            if len(isr) == len(state.isr):
                return state
            if not isr:  # all of them may have lost messages: keep the first
                replicas = self._topics[partition.topic].replicas[partition]
                isr = tuple(one for one in replicas if one in state.isr)[:1] or state.isr[:1]
            if state.leader not in unclean:
                return state._replace(isr=isr)
            # a new epoch even if it stays leader: its log may end before offsets that it gave out
            election = elect_offline(isr, isr, self._eligible(), is_unclean=False)
            return _led_by(state, election.leader if election else NO_LEADER, isr)

        self._decide(self._all_partitions(), without, "not shut down cleanly")

    # Events.

    def load(self, snapshot: ClusterSnapshot) -> None:
        """Take office: take over the registry's data, and bring partitions to their best state."""
        self._brokers = {one.id: one for one in snapshot.brokers}
        self._topics = {one.topic: one for one in snapshot.topics}
        self._unreadable = dict(snapshot.unreadable)
        self._settings = dict(snapshot.settings)
        self._states = {
            partition: stored
            for partition, stored in snapshot.states.items()
            if partition in self._replicas_of(partition.topic)
        }
        self._reassignments = {
            partition: change
            for partition, change in snapshot.reassignments.items()
            if partition in self._replicas_of(partition.topic)
        }
        self._unreadable_reassignments = {
            partition: change
            for partition, change in snapshot.reassignments.items()
            if partition.topic in self._unreadable
        }
        self._throttle_bytes_per_s = snapshot.throttle_bytes_per_s
        self._without_full_push = set(self._brokers)
        for topic in snapshot.deletions & self._topics.keys():
            self._begin_stops(topic)
        self._deleted = {one.creation_id: one for one in snapshot.deleted}
        self._stop_deleted(self._brokers.keys())
        self._distrust({one.id for one in snapshot.brokers if not one.is_clean})
        # Replicas may have been added without the next epoch, in which alone they start.
        self._decide(self._reassignments, _in_next_epoch, "replicas are being changed")
        self._settle("new controller")
        self._finish_deletions()

    def _replicas_of(self, topic: str) -> Mapping[TopicPartition, tuple[int, ...]]:
        return self._topics[topic].replicas if topic in self._topics else {}

    def brokers_changed(self, brokers: Iterable[LiveBroker]) -> None:
        """Note the registered brokers; one with another epoch has failed and restarted."""
        now = {one.id: one for one in brokers}
        before = self._brokers
        survivors = {
            one: broker
            for one, broker in before.items()
            if one in now and now[one].epoch == broker.epoch
        }
        if now == before:
            return
        self._tells_all = True
        if len(survivors) < len(before):
            self._brokers = survivors
            self._shutting_down &= survivors.keys()
            self._lost.forget_brokers(before.keys() - survivors.keys())
            for gone in before.keys() - survivors.keys():
                self._stops.pop(gone, None)
                self._without_full_push.discard(gone)
            self._settle("broker failed")
            self._finish_deletions()
        self._brokers = now
        started = now.keys() - survivors.keys()
        if started:
            self._without_full_push |= started
            self._distrust({one for one in started if not now[one].is_clean})
            for topic, waiting in self._deletions.items():
                for broker_id in started & waiting:
                    self._stop_all(topic, broker_id)
            self._stop_deleted(started)
            self._settle("broker started")

    def change_isr(
        self, broker_id: int, broker_epoch: int, changes: Sequence[IsrChange]
    ) -> list[IsrDecision]:
        """Change in-sync replicas as the leader, a broker under its `broker_epoch`, proposes.

        A leader that leaves itself out resigns, as its log has failed: another live member leads
        then, if there is one.

        Returns:
            One decision for each change; one with an error changed nothing. A broker that is not
            registered under that epoch gets no states.
        """
        refusals: list[ServerError | None] = []
        accepted: dict[TopicPartition, IsrChange] = {}
        for change in changes:
            refusal = self._isr_refusal(broker_id, broker_epoch, change)
            refusals.append(refusal)
            if refusal is None:
                accepted[change.partition] = change

        def changed(partition: TopicPartition, state: PartitionState) -> PartitionState:
            change = accepted[partition]
            if self._states[partition].version != change.version:
                return state  # the leader decides again from the state it is told
            wanted = {member.broker_id for member in change.isr}
            replicas = self._topics[partition.topic].replicas[partition]
            isr = tuple(one for one in replicas if one in wanted)
            if broker_id in wanted:
                return state._replace(isr=isr)
            election = elect_offline(replicas, isr, self._eligible(), is_unclean=False)
            return _led_by(state, election.leader, election.isr) if election else state

        # A leader proposes the present members if the outcome of its last proposal is unknown.
        versions = {one.partition: one.version for one in accepted.values()}
        self._decide(accepted, changed, f"asked by leader {broker_id}", confirmed=versions)
        self._advance_reassignments()
        is_registered = self._is_registered(broker_id, broker_epoch)
        return [
            IsrDecision(
                change.partition,
                refusal.code if refusal else NO_ERROR,
                str(refusal or ""),
                self._described(change.partition)
                if is_registered and change.partition in self._states
                else None,
            )
            for change, refusal in zip(changes, refusals, strict=True)
        ]

    def _isr_refusal(
        self, broker_id: int, broker_epoch: int, change: IsrChange
    ) -> ServerError | None:
        partition = change.partition
        if not self._is_registered(broker_id, broker_epoch):
            return _not_registered(broker_id)
        if partition not in self._states or partition.topic in self._deletions:
            return UnknownTopicError(f"no replicated partition {partition}")
        if change.creation != creation_key(self._topics[partition.topic].creation_id):
            return UnknownTopicError(f"{partition} is of another creation of its topic")
        state, version = self._states[partition]
        if (state.leader, state.leader_epoch) != (broker_id, change.leader_epoch):
            return FencedEpochError(f"broker {broker_id} does not lead {partition} in that epoch")
        if version != change.version:
            return None  # the response has the present state
        members = {member.broker_id for member in change.isr}
        allowed = set(self._topics[partition.topic].replicas[partition])
        if broker_id not in members:
            allowed = set(state.isr)  # they have all committed messages
        if not members or not members <= allowed:
            return InvalidRequestError(
                f"in-sync replicas {sorted(members)} of {partition} are none, or have a broker "
                "that is no replica, or is not in sync while the leader resigns"
            )
        for member in change.isr:
            if member.broker_id in state.isr and member.broker_epoch == UNKNOWN_BROKER_EPOCH:
                continue
            if not self._is_registered(*member):
                return _not_registered(member.broker_id)
            if member.broker_id in self._shutting_down and member.broker_id not in state.isr:
                return StaleBrokerEpochError(f"broker {member.broker_id} is shutting down")
        return None

    def _is_registered(self, broker_id: int, broker_epoch: int) -> bool:
        broker = self._brokers.get(broker_id)
        return broker is not None and broker.epoch == broker_epoch

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> ShutdownProgress:
        """Move leaderships away from a broker, and take it out of in-sync replicas.

        It gets no leadership until its registration is gone. Can be repeated.
        """
        if not self._is_registered(broker_id, broker_epoch):
            raise _not_registered(broker_id)
        self._shutting_down.add(broker_id)
        eligible = self._eligible()
        hosted = [
            one
            for one in self._all_partitions()
            if one in self._states and broker_id in self._topics[one.topic].replicas[one]
        ]
        shared = [one for one in hosted if len(self._topics[one.topic].replicas[one]) > 1]
        led = {one for one in shared if self._leader_of(one) == broker_id}
        in_sync = [one for one in shared if broker_id in self._states[one].state.isr]

        def without(partition: TopicPartition, state: PartitionState) -> PartitionState:
            if state.leader == broker_id:
                replicas = self._topics[partition.topic].replicas[partition]
                election = elect_offline(replicas, state.isr, eligible, is_unclean=False)
                return _led_by(state, election.leader, election.isr) if election else state
            isr = tuple(one for one in state.isr if one != broker_id)
            return state._replace(isr=isr or state.isr)

        self._decide(shared, without, f"broker {broker_id} shuts down")
        unmoved = []
        for partition in shared:
            state = self._states[partition].state
            if state.leader == broker_id:
                unmoved.append(Unmoved(partition, "no other replica is in sync, live and staying"))
            elif partition not in led:
                self._stop(broker_id, partition, state.leader_epoch, deletes=False)
        moved = [one for one in shared if one in led and self._leader_of(one) != broker_id]
        left = [one for one in in_sync if broker_id not in self._states[one].state.isr]
        return ShutdownProgress(
            tuple(self._described(one) for one in moved),
            tuple(one for one in left if one not in led),
            tuple(unmoved),
        )

    def _leader_of(self, partition: TopicPartition) -> int:
        return self._states[partition].state.leader

    def settings_changed(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Note the settings of all topics."""
        changed = [
            one for one in self._topics if settings.get(one, {}) != self._settings.get(one, {})
        ]
        self._settings = dict(settings)
        for topic in changed:
            self._unpushed.update(dict.fromkeys(self._replicas_of(topic)))
        if changed:
            self._settle("settings changed")

    # Administration.

    def create_topic(
        self,
        topic: str,
        partition_count: int,
        replication_factor: int,
        settings: Mapping[str, str],
        *,
        creation_id: str,
        start: int,
    ) -> list[ReplicatedPartition]:
        """Create a topic whose partitions are spread over the brokers.

        Args:
            creation_id: not used by any topic before.
            start: any number; which broker gets the first partition follows from it.
        """
        validate_topic_name(topic)
        self._validate_absent(topic)
        brokers = self._brokers_for_new(topic, replication_factor)
        replicas = place_partitions(
            topic, partition_count, replication_factor, brokers, start=start
        )
        _validate_min_isr(topic, settings, replication_factor)
        return self._create(TopicAssignment(topic, creation_id, replicas), settings)

    def replicate_topic(
        self,
        topic: str,
        partitions: Collection[TopicPartition],
        replication_factor: int,
        kept: Mapping[int, Creation],
        settings: Mapping[str, str],
        *,
        creation_id: str,
    ) -> list[ReplicatedPartition]:
        """Give replicas to a topic that has none.

        The log at the home of a partition has all its messages: the home leads, and alone is in
        sync until others have copied it. To clients it stays the same topic: `kept` has the
        creations that they know, by home broker.
        """
        self._validate_absent(topic)
        brokers = self._brokers_for_new(topic, replication_factor)
        if away := {one.home for one in partitions} - {one.id for one in brokers}:
            raise InvalidRequestError(
                f"topic '{topic}' cannot get replicas while its brokers {sorted(away)} are away: "
                "start them first"
            )
        if not 1 <= replication_factor <= len(brokers):
            raise InvalidReplicationFactorError(
                f"topic '{topic}' cannot have {replication_factor} replicas of a partition: "
                f"{len(brokers)} brokers are live"
            )
        _validate_min_isr(topic, settings, replication_factor)
        replicas = place_replicas(partitions, replication_factor, brokers)
        counts = Counter(one.home for one in partitions)
        older = {home: KeptCreation(one, counts[home]) for home, one in kept.items()}
        return self._create(TopicAssignment(topic, creation_id, replicas, kept=older), settings)

    def _validate_absent(self, topic: str) -> None:
        if topic in self._unreadable:
            raise TopicExistsError(f"topic '{topic}' exists: {self._unreadable[topic].reason}")
        self._raise_if_lost(topic)
        if topic in self._topics:
            state = "is being deleted" if topic in self._deletions else "exists"
            raise TopicExistsError(f"topic '{topic}' {state}")

    def _create(
        self, assignment: TopicAssignment, settings: Mapping[str, str]
    ) -> list[ReplicatedPartition]:
        self._raise_if_too_many(assignment.replicas)
        self._store.create_topic(assignment, settings)
        self._topics[assignment.topic] = assignment
        self._settings[assignment.topic] = dict(settings)
        self._settle("created")
        return [self._described(one) for one in assignment.replicas]

    def add_partitions(
        self, topic: str, partition_count: int, *, start: int
    ) -> list[ReplicatedPartition]:
        """Add partitions to a topic, with as many replicas as its others have."""
        assignment = self._assignment(topic)
        self._raise_if_lost(topic)
        factor = min(len(self._settled_replicas(one)) for one in assignment.replicas)
        brokers = self._brokers_for_new(topic, factor)
        added = place_partitions(
            topic, partition_count, factor, brokers, start=start, existing=assignment.replicas
        )
        self._raise_if_too_many(added)
        self._topics[topic] = self._store.write_assignment(
            assignment._replace(replicas={**assignment.replicas, **added})
        )
        self._settle("created")
        return [self._described(one) for one in added]

    def _raise_if_too_many(self, added: Collection[TopicPartition]) -> None:
        """Refuse partitions with which brokers could not be told of all there are."""
        count = sum(len(one.replicas) for one in self._topics.values())
        if count + len(added) > MAX_CLUSTER_PARTITIONS:
            raise InvalidRequestError(
                f"{len(added)} partitions cannot be added to the {count} with replicas: a cluster "
                f"has at most {MAX_CLUSTER_PARTITIONS}"
            )

    def _raise_if_lost(self, topic: str) -> None:
        """Refuse to give new partitions the names of lost ones that brokers still have logs of."""
        if self._lost.has_topic(topic):
            raise TopicExistsError(
                f"brokers have logs of a topic '{topic}' that ZooKeeper has lost: `pylogctl "
                "cluster recover` shows and restores it"
            )

    def told_unknown(
        self, broker_id: int, broker_epoch: int, found: Iterable[UnknownReplica]
    ) -> None:
        """Note all replicas that a broker has logs of and this controller does not know.

        Those that are certain to be lost, not deleted, are restored at once.
        """
        if not self._is_registered(broker_id, broker_epoch):
            return
        gone = {*self._deleted, *(self._topics[one].creation_id for one in self._deletions)}
        for partition, creation_id, *_ in (one.record for one in found):
            if creation_id in gone:  # the topic was deleted without the partition
                self._order_stop(
                    broker_id, StoppedReplica(partition, creation_id, LAST_EPOCH, True)
                )
        self._lost.told(broker_id, [one for one in found if one.record.creation_id not in gone])
        for records in self._lost.certain(self._eligible()):
            with suppress(TopicExistsError):  # another topic has the name by now
                self.restore(records)

    def lost_homes(self, topic: str) -> set[int]:
        """Return the homes of partitions of a topic that the registry has lost."""
        return self._lost.homes(topic)

    def restore(self, records: Sequence[ReplicaRecord]) -> list[ReplicatedPartition]:
        """Put partitions of one topic back that the registry has lost and brokers have logs of.

        The records have the new states, in higher leader epochs than any log has, and the topic's
        settings.
        """
        topic, creation_id = records[0].partition.topic, records[0].creation_id
        known = self._topics.get(topic, TopicAssignment(topic, creation_id, {}, version=-1))
        if topic in self._unreadable or topic in self._deletions:
            raise TopicExistsError(f"topic '{topic}' exists, or is being deleted")
        validate_records(records, known)
        for partition, _, _, (leader, *_), *_ in records:
            holders = self._lost.holders(partition, creation_id)
            if not holders:
                raise InvalidRequestError(f"no broker has told of a log of {partition}")
            if leader not in {*holders, NO_LEADER}:
                raise InvalidRequestError(
                    f"broker {leader} is to lead {partition}, and has told of no log of it"
                )
        states = {one.partition: one.state._replace(controller_epoch=self.epoch) for one in records}
        replicas = {**known.replicas, **{one.partition: one.replicas for one in records}}
        kept = dict(known.kept)
        for partition, *_, kept_id in records:
            count = max(one.index for one in replicas if one.home == partition.home) + 1
            # to clients it is the same topic, and no offset in the new registry is older
            kept[partition.home] = KeptCreation(Creation(kept_id or creation_id, 0), count)
        self._topics[topic] = self._store.restore_partitions(
            known._replace(replicas=replicas, kept=kept), records[0].settings, states
        )
        self._settings.setdefault(topic, dict(records[0].settings))
        self._lost.forget(states)
        for partition, state in states.items():
            self._states[partition] = StoredState(state, 0)
            self._unpushed[partition] = None
            text = "restored over its logs: ZooKeeper had lost it"
            self._changes.append(StateChange(partition, state, 0, text, False, False))
        self._settle("restored")
        return [self._described(one) for one in states]

    def _brokers_for_new(self, topic: str, factor: int) -> list[LiveBroker]:
        """Return the brokers that new partitions may be placed on.

        A broker that all replicas are being moved away from is about to be removed, so it gets
        none.
        """
        kept: set[int] = set()
        for partition in self._all_partitions():
            change = self._reassignments.get(partition)
            kept.update(
                change.target if change else self._topics[partition.topic].replicas[partition]
            )
        originals = (one for change in self._reassignments.values() for one in change.original)
        eligible = self._eligible()
        left = eligible.intersection(originals) - kept
        if len(eligible) >= factor > len(eligible - left):
            raise InvalidReplicationFactorError(
                f"topic '{topic}' cannot have {factor} replicas of a partition: "
                f"{len(eligible - left)} brokers are live besides {sorted(left)}, from which all "
                "replicas are being moved away"
            )
        return [self._brokers[one] for one in sorted(eligible - left)]

    def _settled_replicas(self, partition: TopicPartition) -> tuple[int, ...]:
        """Return the replicas of a partition, those before a reassignment that is under way."""
        change = self._reassignments.get(partition)
        return change.original if change else self._topics[partition.topic].replicas[partition]

    def _assignment(self, topic: str) -> TopicAssignment:
        if topic in self._unreadable:
            raise InvalidRequestError(
                f"topic '{topic}' stays as it is until it can be read: "
                f"{self._unreadable[topic].reason}"
            )
        if topic not in self._topics or topic in self._deletions:
            raise UnknownTopicError(f"no replicated topic '{topic}'")
        return self._topics[topic]

    def delete_topic(self, topic: str) -> None:
        """Delete a topic with all its logs; brokers that are away delete theirs when they are back.

        It is gone once all live brokers have deleted their logs. A topic whose states cannot be
        read can be deleted if its brokers can be read; of one that the registry has lost, the logs
        of live brokers.
        """
        if topic not in {**self._topics, **self._unreadable} and self._lost.has_topic(topic):
            self._stop_lost(topic)
            return
        if (damaged := self._unreadable.get(topic)) is None or damaged.assignment is None:
            self._assignment(topic)
        self._store.begin_deletion(topic)
        if damaged is not None and damaged.assignment is not None:
            self._topics[topic] = damaged.assignment
            self._unreadable = {t: one for t, one in self._unreadable.items() if t != topic}
            aside = self._unreadable_reassignments
            self._unreadable_reassignments = {p: c for p, c in aside.items() if p.topic != topic}
            if not self._unreadable:  # brokers wait for a full push
                self._without_full_push = set(self._brokers)
        self._begin_stops(topic)
        self._finish_deletions()

    def _begin_stops(self, topic: str) -> None:
        # also if a former controller began: a later topic of the name must not inherit them
        changes = {p: one for p, one in self._reassignments.items() if p.topic != topic}
        if len(changes) < len(self._reassignments):
            self._write_reassignments(changes)
        holders = {one for replicas in self._replicas_of(topic).values() for one in replicas}
        self._deletions[topic] = holders
        for broker_id in self._brokers:  # also those without a replica, which know of the topic
            self._stop_all(topic, broker_id)
        self._stop_lost(topic)

    def _stop_lost(self, topic: str) -> None:
        for broker_id, order in self._lost.take(topic):
            self._order_stop(broker_id, order)

    def _stop_deleted(self, broker_ids: Collection[int]) -> None:
        """Have brokers that are back delete their logs of deleted topics."""
        for deleted in self._deleted.values():
            for broker_id in deleted.brokers & set(broker_ids):
                for partition in deleted.partitions:
                    order = StoppedReplica(partition, deleted.creation_id, LAST_EPOCH, True)
                    self._order_stop(broker_id, order)

    def _stop_all(self, topic: str, broker_id: int) -> None:
        for partition in self._replicas_of(topic):
            self._stop(broker_id, partition, LAST_EPOCH, deletes=True)

    def delivered(self, broker_id: int, push: Push) -> None:
        """Note that a broker has carried out a push."""
        ids = {one.creation_id for one in push.stopped if one.leader_epoch == LAST_EPOCH}
        for topic, waiting in self._deletions.items():
            if self._topics[topic].creation_id in ids:
                waiting.discard(broker_id)
        for deleted in [self._deleted[one] for one in ids if one in self._deleted]:
            left = deleted._replace(brokers=deleted.brokers - {broker_id})
            if left != deleted:
                self._record_deleted(left)
        self._finish_deletions()

    def _record_deleted(self, deleted: DeletedTopic) -> None:
        self._store.write_deleted(deleted)
        self._deleted[deleted.creation_id] = deleted
        if not deleted.brokers:
            del self._deleted[deleted.creation_id]

    def _finish_deletions(self) -> None:
        live = self._brokers.keys()
        for topic in [one for one, waiting in self._deletions.items() if not waiting & live]:
            assignment = self._topics[topic]
            if away := frozenset(self._deletions[topic]):
                partitions = tuple(assignment.replicas)
                self._record_deleted(DeletedTopic(topic, assignment.creation_id, partitions, away))
            self._store.finish_deletion(assignment)
            del self._deletions[topic], self._topics[topic]
            self._settings.pop(topic, None)
            for partition in assignment.replicas:
                self._states.pop(partition, None)
                self._unpushed.pop(partition, None)

    def elect_preferred(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ServerError | None]:
        """Give leaderships to the preferred replicas, where these are live and in sync.

        Returns:
            None for each partition that its preferred replica leads now, else why not.
        """
        wanted = list(partitions)

        def preferred(partition: TopicPartition, state: PartitionState) -> PartitionState:
            replicas = self._topics[partition.topic].replicas[partition]
            election = elect_preferred(replicas, state.isr, self._eligible())
            if election is None or election.leader == state.leader:
                return state
            return _led_by(state, election.leader, election.isr)

        known = [one for one in wanted if one in self._states and one.topic not in self._deletions]
        self._decide(known, preferred, "preferred leader")
        outcome: dict[TopicPartition, ServerError | None] = {}
        for partition in wanted:
            if partition not in self._states or partition.topic in self._deletions:
                outcome[partition] = UnknownTopicError(f"no replicated partition {partition}")
                continue
            replicas = self._topics[partition.topic].replicas[partition]
            outcome[partition] = (
                None
                if self._states[partition].state.leader == replicas[0]
                else InvalidRequestError(
                    f"broker {replicas[0]}, the preferred leader of {partition}, is not live and "
                    "in sync"
                )
            )
        return outcome

    def balance_leaders(self, max_percentage: int) -> None:
        """Move leaderships back to brokers of whose preferred partitions others lead too many.

        That is more than `max_percentage`. Partitions that are being reassigned are left out.
        """
        preferred: dict[int, list[TopicPartition]] = {}
        for partition in self._all_partitions():
            if partition in self._states and partition not in self._reassignments:
                first = self._topics[partition.topic].replicas[partition][0]
                preferred.setdefault(first, []).append(partition)
        wanted = []
        for broker_id, partitions in preferred.items():
            elsewhere = [one for one in partitions if self._states[one].state.leader != broker_id]
            if len(elsewhere) * 100 > len(partitions) * max_percentage:
                wanted += elsewhere
        self.elect_preferred(wanted)

    def elect_unclean(self, partition: TopicPartition) -> ReplicatedPartition:
        """Let a replica that is not in sync lead a partition that has no leader."""
        self._assignment(partition.topic)
        if partition not in self._states:
            raise UnknownTopicError(f"no replicated partition {partition}")
        state = self._states[partition].state
        if state.leader != NO_LEADER:
            raise InvalidRequestError(f"{partition} has a leader: broker {state.leader}")
        if not self._allows_unclean(partition.topic):
            raise InvalidRequestError(
                f"topic '{partition.topic}' does not allow it: set {ALLOWS_UNCLEAN} to true first"
            )
        self._decide([partition], self._settled, "unclean election asked for")
        if self._states[partition].state.leader == NO_LEADER:
            raise InvalidRequestError(f"no replica of {partition} is live")
        return self._described(partition)

    def reassign(
        self,
        targets: Mapping[TopicPartition, tuple[int, ...]],
        throttle_bytes_per_s: int | None = None,
    ) -> None:
        """Begin to move partitions to other replicas; a refusal changes nothing.

        The new replicas are added, and the old ones removed once all new ones are in sync. A
        reassignment that is under way continues to the new target.

        Args:
            targets: the replicas each partition is to have, the preferred leader first.
            throttle_bytes_per_s: how much each broker may copy, for all reassignments under way
                together, until they have ended; 0 for no limit, None to leave it unchanged.
        """
        for partition, target in targets.items():
            self._validate_target(partition, target)
        if throttle_bytes_per_s is not None:
            if throttle_bytes_per_s < 0:
                raise InvalidRequestError(
                    f"a throttle of {throttle_bytes_per_s} bytes per second is below 0"
                )
            self._tells_all |= throttle_bytes_per_s != self._throttle_bytes_per_s
            self._throttle_bytes_per_s = throttle_bytes_per_s
        changes = dict(self._reassignments)
        for partition, target in targets.items():
            replicas = self._topics[partition.topic].replicas[partition]
            # a change stays under way while one of its replicas still copies
            if partition in changes or target != replicas:
                changes[partition] = Reassignment(self._settled_replicas(partition), target)
        self._write_reassignments(changes)
        self._advance_reassignments()

    def _validate_target(self, partition: TopicPartition, target: tuple[int, ...]) -> None:
        if partition not in self._assignment(partition.topic).replicas:
            raise UnknownTopicError(f"no replicated partition {partition}")
        present_count = len(self._settled_replicas(partition))
        min_isr = self._min_isr(partition.topic)
        validate_target(partition, target, self._eligible(), present_count, min_isr)

    def cancel_reassignment(self, partition: TopicPartition) -> None:
        """Return a partition to the replicas it had before the reassignment under way."""
        change = self._reassignments.get(partition)
        if change is None:
            raise UnknownTopicError(f"no change of the replicas of {partition} is under way")
        if not set(self._states[partition].state.isr) & set(change.original):
            raise InvalidRequestError(
                f"none of the former replicas {list(change.original)} of {partition} is in sync"
            )
        self._complete_reassignment(partition, change.original)

    def _advance_reassignments(self) -> None:
        """Take the next possible step of each reassignment."""
        for partition, change in list(self._reassignments.items()):
            if partition not in self._states:
                continue
            replicas = self._topics[partition.topic].replicas[partition]
            union = (*replicas, *(one for one in change.target if one not in replicas))
            if union != replicas:
                self._assign(partition, union)
                self._decide([partition], _in_next_epoch, "replicas added")
            if set(change.target) <= set(self._states[partition].state.isr):
                self._complete_reassignment(partition, change.target)

    def _complete_reassignment(self, partition: TopicPartition, target: tuple[int, ...]) -> None:
        """Remove the replicas not in the target; the record of the reassignment goes last."""
        removed = set(self._topics[partition.topic].replicas[partition]) - set(target)

        def reduced(_: TopicPartition, state: PartitionState) -> PartitionState:
            isr = tuple(one for one in target if one in state.isr)
            if state.leader in target and state.leader in self._brokers:
                return _led_by(state, state.leader, isr)
            election = elect_reassigned(target, isr, self._eligible())
            return _led_by(state, election.leader if election else NO_LEADER, isr)

        self._decide([partition], reduced, "replicas removed")
        self._assign(partition, target)
        self._write_reassignments(
            {p: one for p, one in self._reassignments.items() if p != partition}
        )
        epoch = self._states[partition].state.leader_epoch
        for broker_id in sorted(removed):
            self._stop(broker_id, partition, epoch, deletes=True)

    def _write_reassignments(self, changes: dict[TopicPartition, Reassignment]) -> None:
        """Replace the record but for unreadable topics; with the last entry the throttle ends."""
        recorded = {**self._unreadable_reassignments, **changes}
        if not recorded:
            self._tells_all |= self._throttle_bytes_per_s != 0
            self._throttle_bytes_per_s = 0
        self._store.write_reassignments(recorded, self._throttle_bytes_per_s)
        self._reassignments = changes

    def _assign(self, partition: TopicPartition, replicas: tuple[int, ...]) -> None:
        assignment = self._topics[partition.topic]
        if assignment.replicas[partition] != replicas:
            self._topics[partition.topic] = self._store.write_assignment(
                assignment._replace(replicas={**assignment.replicas, partition: replicas})
            )
        self._unpushed[partition] = None


def _not_registered(broker_id: int) -> StaleBrokerEpochError:
    return StaleBrokerEpochError(f"broker {broker_id} has another registration than that one")


def _led_by(state: PartitionState, leader: int, isr: tuple[int, ...]) -> PartitionState:
    return state._replace(leader=leader, leader_epoch=state.leader_epoch + 1, isr=isr)


def _in_next_epoch(_: TopicPartition, state: PartitionState) -> PartitionState:
    return _led_by(state, state.leader, state.isr)


def _never_older(stored: StoredState, known: StoredState | None) -> StoredState:
    """Return a stored state, but in no lower leader epoch than known: its node was edited."""
    if known is None or stored.state.leader_epoch >= known.state.leader_epoch:
        return stored
    return stored._replace(state=stored.state._replace(leader_epoch=known.state.leader_epoch))


def _validate_min_isr(topic: str, settings: Mapping[str, str], factor: int) -> None:
    text = settings.get(MIN_ISR, "1")
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= factor):
        raise InvalidRequestError(
            f"{MIN_ISR} of topic '{topic}' is {text}: it must be a number from 1 to the "
            f"replication factor, {factor}"
        )
