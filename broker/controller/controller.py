"""The controller of a cluster: events in, states in the registry and pushes to brokers out.

It knows every replicated partition and every live broker. Each event is handled to its end before
the next: a decision is first written to the registry, then added to the pending pushes. It reads no
clock and does no I/O but through its `Store`, so that a simulation can drive it.

Source: Kafka 0.8 `KafkaController`, `PartitionStateMachine`, `ReplicaStateMachine`, with the
repairs of later versions: broker epochs, one writer of in-sync replicas, fenced writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from broker import errors
from broker.cluster_state import (
    UNKNOWN_BROKER_EPOCH,
    ClusterSnapshot,
    IsrChange,
    IsrDecision,
    LiveBroker,
    PartitionState,
    ShutdownProgress,
    Unmoved,
    creation_key,
)
from broker.controller.context import ControllerContext, ControllerSettings
from broker.controller.deletions import TopicDeletions
from broker.controller.election import elect_offline
from broker.controller.leadership import Leadership
from broker.controller.pushes import PendingPushes
from broker.controller.reassignments import Reassignments
from broker.controller.states import StateWriter, Store, in_next_epoch, led_by
from broker.controller.topics import TopicChanges
from broker.ids import NO_LEADER
from broker.replica_records import UnknownReplica
from broker.topic import TopicPartition


class ControllerCounts(NamedTuple):
    """Numbers for monitoring."""

    offline: int  # partitions without a leader
    away: int  # partitions that another than the preferred replica leads
    suspected: int  # registered brokers that are taken for dead
    deletions: int  # topics being deleted, of which a broker may still have a log


class Controller:
    """One term of office of one broker: the events of brokers and the registry.

    What operators ask for is carried out by the parts that are attributes. After any error but a
    `ServerError` the controller's knowledge is behind the registry: replace it by a new controller
    and load that.

    Args:
        epoch: of this term, higher than those of all before.
    """

    def __init__(
        self, me: int, epoch: int, store: Store, settings: ControllerSettings | None = None
    ) -> None:
        self.me = me
        self.epoch = epoch
        self.context = context = ControllerContext(settings or ControllerSettings())
        self.pushes = pushes = PendingPushes(context)
        self.states = states = StateWriter(epoch, context, store, pushes)
        self.reassignments = Reassignments(context, store, pushes, states)
        self.leadership = Leadership(context, states, self.reassignments)
        self.topics = TopicChanges(context, store, states, self.leadership)
        self.deletions = TopicDeletions(context, store, pushes, self.reassignments)

    def counts(self) -> ControllerCounts:
        """Return numbers for monitoring; any thread."""
        context = self.context
        # one step of the interpreter: no change intervenes
        states = list(context.states.items())
        offline = away = 0
        for partition, (state, _) in states:
            replicas = context.replicas_of(partition.topic).get(partition, ())
            offline += state.leader == NO_LEADER
            away += state.leader != NO_LEADER and state.leader not in replicas[:1]
        deletions = len(context.deletions)
        return ControllerCounts(offline, away, len(context.suspected), deletions)

    def load(self, snapshot: ClusterSnapshot) -> None:
        """Take office: take over the registry's data, and bring partitions to their best state."""
        self.context.load(snapshot)
        self.reassignments.load(snapshot.reassignments)
        self.pushes.add_full(self.context.brokers)
        self.deletions.load(snapshot)
        self.leadership.distrust({one.id for one in snapshot.brokers if not one.is_clean})
        # Replicas may have been added without the next epoch, in which alone they start.
        self.states.decide(self.context.reassignments, in_next_epoch, "replicas are being changed")
        self.leadership.settle("new controller")
        self.deletions.finish()

    def brokers_changed(self, brokers: Iterable[LiveBroker]) -> None:
        """Note the registered brokers; one with another epoch has failed and restarted."""
        context = self.context
        now = {one.id: one for one in brokers}
        before = context.brokers
        survivors = {
            one: broker
            for one, broker in before.items()
            if one in now and now[one].epoch == broker.epoch
        }
        if now == before:
            return
        self.pushes.tell_all()
        if gone := before.keys() - survivors.keys():
            context.brokers = survivors
            context.shutting_down &= survivors.keys()
            context.suspected &= survivors.keys()
            context.missed &= survivors.keys()
            context.lost.forget_brokers(gone)
            self.pushes.forget_brokers(gone)
            self.leadership.settle("broker failed")
            self.deletions.finish()
        context.brokers = now
        if started := now.keys() - survivors.keys():
            self.pushes.add_full(started)
            self.leadership.distrust({one for one in started if not now[one].is_clean})
            self.deletions.started(started)
            self.leadership.settle("broker started")

    def suspect(self, broker_id: int, broker_epoch: int, evidence: str) -> None:
        """Elect leaders as if a broker had failed; its registration and its replicas stay.

        It gets no leadership, and joins no in-sync replicas, until it is trusted again.
        """
        context = self.context
        if context.is_registered(broker_id, broker_epoch) and broker_id in context.eligible():
            context.suspected.add(broker_id)
            self.leadership.settle(f"broker {broker_id} is taken for dead: {evidence}")

    def trust(self, broker_id: int, broker_epoch: int) -> None:
        """Take a broker that answers again for live; what was decided meanwhile stays."""
        context = self.context
        if context.is_registered(broker_id, broker_epoch) and broker_id in context.suspected:
            context.suspected.discard(broker_id)
            self.leadership.settle(f"broker {broker_id} answers again")

    def note_reach(self, broker_id: int, broker_epoch: int, *, is_missed: bool) -> None:
        """Note whether the controller itself misses a broker, which others may hear."""
        if is_missed and self.context.is_registered(broker_id, broker_epoch):
            self.context.missed.add(broker_id)
        else:
            self.context.missed.discard(broker_id)

    def settings_changed(self, settings: Mapping[str, Mapping[str, str]]) -> None:
        """Note the settings of all topics."""
        context = self.context
        changed = [
            one for one in context.topics if settings.get(one, {}) != context.settings.get(one, {})
        ]
        context.settings = dict(settings)
        for topic in changed:
            self.pushes.add(context.replicas_of(topic))
        if changed:
            self.leadership.settle("settings changed")

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
        context = self.context
        refusals: list[errors.ServerError | None] = []
        accepted: dict[TopicPartition, IsrChange] = {}
        for change in changes:
            refusal = self._isr_refusal(broker_id, broker_epoch, change)
            refusals.append(refusal)
            if refusal is None:
                accepted[change.partition] = change

        def changed(partition: TopicPartition, state: PartitionState) -> PartitionState:
            change = accepted[partition]
            if context.states[partition].version != change.version:
                return state  # the leader decides again from the state it is told
            wanted = {member.broker_id for member in change.isr}
            replicas = context.replicas(partition)
            isr = tuple(one for one in replicas if one in wanted)
            if broker_id in wanted:
                return state._replace(isr=isr)
            candidates = context.candidates(partition)
            election = elect_offline(candidates, isr, context.eligible(), is_unclean=False)
            return led_by(state, election.leader, election.isr) if election else state

        # A leader proposes the present members if the outcome of its last proposal is unknown.
        versions = {one.partition: one.version for one in accepted.values()}
        self.states.decide(accepted, changed, f"asked by leader {broker_id}", confirmed=versions)
        self.reassignments.advance()
        is_registered = context.is_registered(broker_id, broker_epoch)
        return [
            IsrDecision(
                change.partition,
                refusal.code if refusal else errors.NO_ERROR,
                str(refusal or ""),
                context.described(change.partition)
                if is_registered and change.partition in context.states
                else None,
            )
            for change, refusal in zip(changes, refusals, strict=True)
        ]

    def _isr_refusal(
        self, broker_id: int, broker_epoch: int, change: IsrChange
    ) -> errors.ServerError | None:
        context, partition = self.context, change.partition
        if not context.is_registered(broker_id, broker_epoch):
            return _not_registered(broker_id)
        if not context.is_known(partition):
            return errors.UnknownTopicError(f"no replicated partition {partition}")
        if change.creation != creation_key(context.topics[partition.topic].creation_id):
            return errors.UnknownTopicError(f"{partition} is of another creation of its topic")
        state, version = context.states[partition]
        if (state.leader, state.leader_epoch) != (broker_id, change.leader_epoch):
            return errors.FencedEpochError(
                f"broker {broker_id} does not lead {partition} in that epoch"
            )
        if version != change.version:
            return None  # the response has the present state
        members = {member.broker_id for member in change.isr}
        allowed = set(context.replicas(partition))
        if broker_id not in members:
            allowed = set(state.isr)  # they have all committed messages
        if not members or not members <= allowed:
            return errors.InvalidRequestError(
                f"in-sync replicas {sorted(members)} of {partition} are none, or have a broker "
                "that is no replica, or is not in sync while the leader resigns"
            )
        for member in change.isr:
            if member.broker_id in state.isr and member.broker_epoch == UNKNOWN_BROKER_EPOCH:
                continue
            if not context.is_registered(*member):
                return _not_registered(member.broker_id)
            if member.broker_id not in context.eligible() and member.broker_id not in state.isr:
                return errors.StaleBrokerEpochError(
                    f"broker {member.broker_id} is shutting down, or does not answer"
                )
        return None

    def told_unknown(
        self, broker_id: int, broker_epoch: int, found: Iterable[UnknownReplica]
    ) -> None:
        """Note all replicas that a broker has logs of and this controller does not know.

        Those that are certain to be lost, not deleted, are restored at once.
        """
        context = self.context
        if not context.is_registered(broker_id, broker_epoch):
            return
        gone = self.deletions.creation_ids
        for partition, creation_id, *_ in (one.record for one in found):
            if creation_id in gone:  # the topic was deleted without the partition
                self.pushes.delete_log(broker_id, partition, creation_id)
        context.lost.told(broker_id, [one for one in found if one.record.creation_id not in gone])
        for records in context.lost.certain(context.eligible()):
            with suppress(errors.TopicExistsError):  # another topic has the name by now
                self.topics.restore(records)

    def controlled_shutdown(self, broker_id: int, broker_epoch: int) -> ShutdownProgress:
        """Move leaderships away from a broker, and take it out of in-sync replicas.

        It gets no leadership until its registration is gone. Can be repeated.
        """
        context = self.context
        if not context.is_registered(broker_id, broker_epoch):
            raise _not_registered(broker_id)
        context.shutting_down.add(broker_id)
        eligible = context.eligible()
        hosted = [
            one
            for one in context.partitions()
            if one in context.states and broker_id in context.replicas(one)
        ]
        shared = [one for one in hosted if len(context.replicas(one)) > 1]
        led = {one for one in shared if context.leader_of(one) == broker_id}
        in_sync = [one for one in shared if broker_id in context.states[one].state.isr]

        def without(partition: TopicPartition, state: PartitionState) -> PartitionState:
            if state.leader == broker_id:
                candidates = context.candidates(partition)
                election = elect_offline(candidates, state.isr, eligible, is_unclean=False)
                return led_by(state, election.leader, election.isr) if election else state
            isr = tuple(one for one in state.isr if one != broker_id)
            return state._replace(isr=isr or state.isr)

        self.states.decide(shared, without, f"broker {broker_id} shuts down")
        unmoved = []
        for partition in shared:
            state = context.states[partition].state
            if state.leader == broker_id:
                unmoved.append(Unmoved(partition, "no other replica is in sync, live and staying"))
            elif partition not in led:
                self.pushes.stop(broker_id, partition, state.leader_epoch, deletes=False)
        moved = [one for one in shared if one in led and context.leader_of(one) != broker_id]
        left = [one for one in in_sync if broker_id not in context.states[one].state.isr]
        return ShutdownProgress(
            tuple(context.described(one) for one in moved),
            tuple(one for one in left if one not in led),
            tuple(unmoved),
        )


def _not_registered(broker_id: int) -> errors.StaleBrokerEpochError:
    return errors.StaleBrokerEpochError(
        f"broker {broker_id} has another registration than that one"
    )
