"""The replicated topics in ZooKeeper: their nodes, read by brokers and written by the controller.

Every write is a transaction with a condition on `/controller_epoch`, so that nothing is written by
a controller that is not the last one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from broker import errors
from broker.cluster_state import (
    ClusterSnapshot,
    DeletedTopic,
    LiveBroker,
    PartitionState,
    Reassignment,
    ReplicatedPartition,
    StateResult,
    StateWrite,
    StoredState,
    TopicAssignment,
    UnreadableTopic,
)
from broker.ids import NO_LEADER
from broker.topic import NO_HOME, TopicPartition
from broker.topic_settings import normalize
from broker.zk import paths, replicated_values
from broker.zk.nodes import (
    CheckNode,
    CreateNode,
    DeleteNode,
    NodeChange,
    SetNode,
    TransactionOutcome,
)
from broker.zk.session import Session, Watch
from broker.zk.values import broker_ids, decode_settings, encode_settings

logger = logging.getLogger(__name__)

_BATCH = 100
"""The states written in one transaction at most."""
_MAX_RECORD_BYTES = 240 << 10  # the embedded ZooKeeper takes 256 kB at a time
_ATTEMPTS = 10
_ROOTS = (paths.REPLICATED_TOPICS, paths.TOPIC_SETTINGS, paths.DELETIONS)


class FoundTopics(NamedTuple):
    """Replicated topics as they were read; those with a bad node are `unreadable`, by name.

    A partition that never had a state has none in `states`.
    """

    topics: tuple[TopicAssignment, ...]
    states: dict[TopicPartition, StoredState]
    unreadable: dict[str, UnreadableTopic]


class _Malformed(NamedTuple):
    """The reason why a node is malformed, and its version."""

    reason: str
    version: int


@dataclass(eq=False)
class ReplicatedTopics:
    """Reads the replicated topics, and the brokers registered for replication.

    All methods raise `RegistryUnreachableError` if no response comes in time. A malformed node of a
    broker, or of the changes of replicas, is left out and logged. Watches are called once, when a
    broker or topic comes or goes, as for `Session.get`.

    Args:
        last_good_settings: returns those of a topic whose node of settings is not valid.
    """

    session: Session
    last_good_settings: Callable[[str], Mapping[str, str]] = lambda _topic: {}

    def brokers(self, watch: Watch | None = None) -> tuple[LiveBroker, ...]:
        """Return the brokers that are registered for replication."""
        names = self._children(paths.REPLICATED_BROKERS, watch)
        nodes = {paths.replicated_broker(one): one for one in broker_ids(names)}
        brokers = []
        for path, (value, stat) in self.session.get_many(nodes).items():
            with _malformed_is_logged():
                brokers.append(
                    replicated_values.decode_replicated_broker(nodes[path], value, stat.czxid)
                )
        return tuple(brokers)

    def topics(self, watch: Watch | None = None) -> list[str]:
        """Return the names of the replicated topics."""
        return self._children(paths.REPLICATED_TOPICS, watch)

    def _children(self, path: str, watch: Watch | None) -> list[str]:
        if watch is None:
            return self.session.children_if_any(path)
        while True:
            try:
                return self.session.children(path, watch=watch)
            except errors.RegistryNodeNotFoundError:
                with suppress(errors.RegistryConflictError):
                    self.session.create(path)

    def snapshot(self, *, on_brokers: Watch, on_topics: Watch) -> ClusterSnapshot:
        """Return all that a new controller needs to know."""
        brokers = self.brokers(on_brokers)
        names = self.topics(on_topics)
        deletions = frozenset(self.session.children_if_any(paths.DELETIONS))
        found = self.find(names, deletions)
        reassignments, throttle_bytes_per_s = self._reassignments()
        return ClusterSnapshot(
            brokers,
            found.topics,
            found.states,
            self.settings(names),
            reassignments,
            deletions,
            found.unreadable,
            self._deleted(),
            throttle_bytes_per_s,
        )

    def find(self, names: Iterable[str], deletions: Collection[str] = ()) -> FoundTopics:
        """Return topics with the states of their partitions; unknown topics are left out.

        A missing state may never have been written, or was deleted by hand: in the second case it
        is not known which brokers have the messages, and the topic is unreadable. `deletions` are
        topics being deleted, whose states may be gone.
        """
        assignments, unreadable = self._assignments(names)
        states: dict[TopicPartition, StoredState] = {}
        missing: list[TopicPartition] = []
        stored = self.stored(one for topic in assignments for one in topic.replicas)
        for topic in assignments:
            for partition in topic.replicas:
                found = stored.get(partition)
                if isinstance(found, StoredState):
                    states[partition] = found
                elif topic.topic in deletions:
                    continue
                elif found is None:
                    missing.append(partition)
                else:
                    unreadable.setdefault(topic.topic, UnreadableTopic(found.reason, topic))
        reasons = self._find_deleted(missing)
        for topic in assignments:
            if topic.topic in reasons:
                unreadable.setdefault(topic.topic, UnreadableTopic(reasons[topic.topic], topic))
        return FoundTopics(
            tuple(one for one in assignments if one.topic not in unreadable),
            {one: state for one, state in states.items() if one.topic not in unreadable},
            unreadable,
        )

    def partitions(
        self, names: Iterable[str], min_isr_of: Callable[[str], int]
    ) -> list[ReplicatedPartition]:
        """Return the partitions of topics as a controller tells of them; unreadable ones left out.

        Args:
            names: of the topics.
            min_isr_of: returns the least number of in-sync replicas of a topic.
        """
        found = self.find(names)
        return [
            topic.described(partition, found.states[partition], min_isr_of(topic.topic))
            for topic in found.topics
            for partition in topic.replicas.keys() & found.states.keys()
        ]

    def _find_deleted(self, missing: Sequence[TopicPartition]) -> dict[str, str]:
        """Return which node of a state was deleted by hand, by topic."""
        if not missing:
            return {}
        above = {paths.replicated_partitions(one.topic) for one in missing}
        found = self.session.get_many([*above, *map(paths.replicated_partition, missing)])
        reasons: dict[str, str] = {}
        for partition in missing:
            root = paths.replicated_partitions(partition.topic)
            if root not in found:
                reasons.setdefault(partition.topic, f"node {root} was deleted")
            # A state is created together with the node above it, and that one is never deleted
            # alone. ZooKeeper counts (`cversion`) what was created and deleted below a node.
            elif (
                paths.replicated_partition(partition) in found
                or found[root][1].cversion != found[root][1].children_count
            ):
                path = paths.partition_state(partition)
                reasons.setdefault(partition.topic, f"node {path} was deleted")
        return reasons

    def assignments(self, names: Iterable[str]) -> list[TopicAssignment]:
        """Return topics with their replicas; those without replicas, or unreadable, left out."""
        return self._assignments(names)[0]

    def _assignments(
        self, names: Iterable[str]
    ) -> tuple[list[TopicAssignment], dict[str, UnreadableTopic]]:
        nodes = {paths.replicated_topic(one): one for one in names}
        topics, unreadable = [], {}
        for path, (value, stat) in self.session.get_many(nodes).items():
            try:
                topics.append(replicated_values.decode_assignment(nodes[path], value, stat.version))
            except errors.CoordinationError as error:
                unreadable[nodes[path]] = UnreadableTopic(str(error), None)
        return topics, unreadable

    def states(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredState]:
        """Return the states of partitions, without those that are missing or malformed."""
        found = self.stored(partitions).items()
        return {one: stored for one, stored in found if isinstance(stored, StoredState)}

    def stored(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, StoredState | _Malformed]:
        """Return the states of partitions, without those that are missing."""
        nodes = {paths.partition_state(one): one for one in partitions}
        states: dict[TopicPartition, StoredState | _Malformed] = {}
        for path, (value, stat) in self.session.get_many(nodes).items():
            try:
                found = replicated_values.decode_state(nodes[path], value)
                states[nodes[path]] = StoredState(found, stat.version)
            except errors.CoordinationError as error:
                states[nodes[path]] = _Malformed(str(error), stat.version)
        return states

    def homes_without_leader(self, topics: Iterable[str]) -> dict[str, list[int]]:
        """Return the home brokers of partitions without a leader, by topic with replicas.

        Partitions that have no home wait for the brokers that were in sync last.
        """
        found = self.assignments(topics)
        states = self.states(partition for one in found for partition in one.replicas)

        def homes(topic: TopicAssignment) -> Iterator[int]:
            for partition in topic.replicas:
                stored = states.get(partition)
                if stored is not None and stored.state.leader != NO_LEADER:
                    continue
                if partition.home != NO_HOME:
                    yield partition.home
                else:
                    yield from topic.replicas[partition] if stored is None else stored.state.isr

        return {one.topic: sorted(set(homes(one))) for one in found}

    def led_states(self, topics: Iterable[str]) -> dict[TopicPartition, PartitionState]:
        """Return the states of the partitions of topics that have a leader."""
        return self._led(self.assignments(topics))

    def _led(self, topics: Iterable[TopicAssignment]) -> dict[TopicPartition, PartitionState]:
        states = self.states(partition for one in topics for partition in one.replicas)
        return {
            partition: stored.state
            for partition, stored in states.items()
            if stored.state.leader != NO_LEADER
        }

    def settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        """Return the settings of topics, without those that have none of their own."""
        nodes = {paths.topic_settings(one): one for one in topics}
        settings = {}
        for path, (value, _) in self.session.get_many(nodes).items():
            topic = nodes[path]
            try:
                settings[topic] = normalize(decode_settings(path, value))
            except (errors.CoordinationError, errors.ConfigError):  # every broker logs it
                settings[topic] = dict(self.last_good_settings(topic))
        return settings

    def _deleted(self) -> tuple[DeletedTopic, ...]:
        nodes = {paths.deleted(one): one for one in self.session.children_if_any(paths.DELETED)}
        found = []
        for path, (value, _) in self.session.get_many(nodes).items():
            with _malformed_is_logged():
                found.append(replicated_values.decode_deleted(nodes[path], value))
        return tuple(found)

    def _reassignments(self) -> tuple[dict[TopicPartition, Reassignment], int]:
        with suppress(errors.RegistryNodeNotFoundError), _malformed_is_logged():
            return replicated_values.decode_reassignments(self.session.get(paths.REASSIGNMENTS)[0])
        return {}, 0


@contextmanager
def _malformed_is_logged() -> Iterator[None]:
    """Log the error of a malformed node instead of raising it; other errors pass."""
    try:
        yield
    except errors.CoordinationError as error:
        if type(error) is not errors.CoordinationError:
            raise
        logger.error("%s; it is left alone until it is mended", error)


class ReplicatedTopicsStore:
    """Writes the replicated topics, as one controller in one term; the `Store` of its decisions.

    `epoch_version` is that of `/controller_epoch` while this controller is the last one.
    """

    def __init__(self, session: Session, epoch_version: int) -> None:
        self._session = session
        self._topics = ReplicatedTopics(session)
        self._fence = CheckNode(paths.CONTROLLER_EPOCH, epoch_version)

    def write_states(self, writes: Sequence[StateWrite]) -> list[StateResult]:
        """Write states, many in a transaction; see `Store.write_states`.

        A malformed node is replaced, and nodes above that are gone are created.
        """
        writes = list(writes)
        results: dict[int, StateResult] = {}
        changes = [_changes_of(one, has_parent=False) for one in writes]
        batches = [range(len(writes))[at : at + _BATCH] for at in range(0, len(writes), _BATCH)]
        joined = [[one for i in batch for one in changes[i]] for batch in batches]
        unsure: list[int] = []
        for batch, outcome in zip(batches, self._transact_many(joined), strict=True):
            if outcome.is_done:
                results.update((i, _written(writes[i])) for i in batch)
            else:
                unsure += batch
        if unsure:
            self._mend_parents({writes[i].partition.topic for i in unsure})
        for _ in range(_ATTEMPTS):
            if not unsure:
                return [results[i] for i in range(len(writes))]
            unsure = self._write_each(writes, unsure, results)
        raise errors.RegistryUnreachableError("ZooKeeper's answers to writes of states were lost")

    def _mend_parents(self, topics: Collection[str]) -> None:
        """Create the `partitions` nodes of topics from which they were deleted by hand."""
        nodes = {paths.replicated_partitions(one): paths.replicated_topic(one) for one in topics}
        found = self._session.get_many([*nodes, *nodes.values()])
        missing = [node for node, topic in nodes.items() if topic in found and node not in found]
        if missing:  # if it fails, the writes fail too
            self._transact_many([CreateNode(node, b"")] for node in missing)

    def _write_each(
        self, writes: list[StateWrite], numbers: list[int], results: dict[int, StateResult]
    ) -> list[int]:
        """Write states one by one and add their results; return those to be written once more."""
        parents = [paths.replicated_partition(writes[i].partition) for i in numbers]
        existing = self._session.get_many(parents)
        changes = [
            _changes_of(writes[i], has_parent=parent in existing)
            for i, parent in zip(numbers, parents, strict=True)
        ]
        refused, again = [], []
        for i, outcome in zip(numbers, self._transact_many(changes), strict=True):
            if outcome.is_done:
                results[i] = _written(writes[i])
            elif outcome.is_done is None:
                # The next attempt tells: its version does not fit if this write was made, and the
                # node then shows which controller wrote it.
                again.append(i)
            else:
                refused.append(i)
        stored = self._topics.stored(writes[i].partition for i in refused)
        for i in refused:
            found = stored.get(writes[i].partition)
            if isinstance(found, _Malformed):
                # it may be replaced: only controllers write states, so its last valid value is not
                # newer than the one known
                logger.warning("%s; it is written anew", found.reason)
                writes[i] = writes[i]._replace(expected_version=found.version)
                again.append(i)
            else:  # also of a write whose response was lost
                results[i] = StateResult(found == _written(writes[i]).stored, found)
        return again

    def _transact_many(self, changes: Iterable[Sequence[NodeChange]]) -> list[TransactionOutcome]:
        outcomes = self._session.transact_many([self._fence, *one] for one in changes)
        if any(outcome.failed == 0 for outcome in outcomes):
            raise errors.ControllerFencedError(
                "another broker has become the controller of the cluster"
            )
        return outcomes

    def _change(self, plan: Callable[[], Sequence[NodeChange]], what: str) -> None:
        """Make changes in one step, planned again until they are made or there are none to make.

        `plan` reads the nodes and returns the changes still to be made, also after a lost response;
        `what` is the subject of `RegistryConflictError`, if others change the nodes all the time.
        """
        for _ in range(_ATTEMPTS):
            changes = plan()
            if not changes:
                return
            (outcome,) = self._transact_many([changes])
            if outcome.is_done:
                return
        raise errors.RegistryConflictError(f"{what} is changed by other clients all the time")

    def write_topic(
        self,
        assignment: TopicAssignment,
        settings: Mapping[str, str] = MappingProxyType({}),
        states: Mapping[TopicPartition, PartitionState] = MappingProxyType({}),
    ) -> TopicAssignment:
        """Create a topic or replace its replicas; see `Store.write_topic`."""
        topic, version = assignment.topic, assignment.version
        path, settings_path = paths.replicated_topic(topic), paths.topic_settings(topic)
        value = replicated_values.encode_assignment(assignment)
        setting = encode_settings(settings) if settings else None
        first = [StateWrite(partition, state, None) for partition, state in states.items()]
        changes = [change for one in first for change in _changes_of(one, has_parent=False)]
        if version < 0:
            self._session.create_many(dict.fromkeys(_ROOTS, b""), ephemeral=False)

        def plan() -> list[NodeChange]:
            found = self._value(path)
            if found == (value, version + 1):
                return []
            if (-1 if found is None else found[1]) != version:
                raise errors.RegistryConflictError(
                    f"there is a replicated topic '{topic}'"
                    if version < 0
                    else f"node {path} was changed by another client"
                )
            if found is not None:
                return [SetNode(path, value, version), *changes]
            create = [CreateNode(path, value), CreateNode(paths.replicated_partitions(topic), b"")]
            return [*create, *self._replacement(settings_path, setting), *changes]

        self._change(plan, f"node {path}")
        return assignment._replace(version=version + 1)

    def validate_reassignments(self, changes: Mapping[TopicPartition, Reassignment]) -> None:
        """Raise if the record would be too long; see `Store.validate_reassignments`."""
        size = len(replicated_values.encode_reassignments(changes, 0))
        if size > _MAX_RECORD_BYTES:
            raise errors.InvalidRequestError(
                f"{len(changes)} partitions cannot move at once, as ZooKeeper takes a record of "
                f"about {len(changes) * _MAX_RECORD_BYTES // size}: move the others after these"
            )

    def write_reassignments(
        self, changes: Mapping[TopicPartition, Reassignment], throttle_bytes_per_s: int
    ) -> None:
        """Record the changes of replicas under way; see `Store.write_reassignments`."""
        value = None
        if changes:
            value = replicated_values.encode_reassignments(changes, throttle_bytes_per_s)
        self._session.create_many({paths.ADMIN: b""}, ephemeral=False)
        self._change(lambda: self._replacement(paths.REASSIGNMENTS, value), paths.REASSIGNMENTS)

    def begin_deletion(self, topic: str) -> None:
        """Record that a topic is being deleted; see `Store.begin_deletion`."""
        self._session.create_many({paths.DELETIONS: b""}, ephemeral=False)
        self._change(lambda: self._replacement(paths.deletion(topic), b""), f"topic '{topic}'")

    def finish_deletion(self, assignment: TopicAssignment) -> None:
        """Remove a topic, its record of deletion last; see `Store.finish_deletion`."""
        topic = assignment.topic
        parents = [paths.replicated_partition(one) for one in assignment.replicas]
        for nodes in ([f"{parent}/state" for parent in parents], parents):
            for at in range(0, len(nodes), _BATCH):
                self._delete(nodes[at : at + _BATCH], topic)
        path = paths.replicated_topic(topic)
        parent = paths.replicated_partitions(topic)
        last = [parent, path, paths.topic_settings(topic), paths.deletion(topic)]
        self._delete(last, topic)

    def write_deleted(self, deleted: DeletedTopic) -> None:
        """Record where logs of a deleted topic may be; see `Store.write_deleted`."""
        self._session.create_many({paths.DELETED: b""}, ephemeral=False)
        path, value = paths.deleted(deleted.creation_id), replicated_values.encode_deleted(deleted)
        self._change(lambda: self._replacement(path, value if deleted.brokers else None), path)

    def _delete(self, nodes: Sequence[str], topic: str) -> None:
        def plan() -> list[NodeChange]:
            found = self._session.get_many(nodes)
            return [DeleteNode(path, -1) for path in nodes if path in found]

        self._change(plan, f"topic '{topic}'")

    def _replacement(self, path: str, value: bytes | None) -> list[NodeChange]:
        """Return the change, if any, that gives a node a value or, for None, deletes it."""
        found = self._value(path)
        if found is None:
            return [] if value is None else [CreateNode(path, value)]
        if value is None:
            return [DeleteNode(path, found[1])]
        return [] if found[0] == value else [SetNode(path, value, found[1])]

    def _value(self, path: str) -> tuple[bytes, int] | None:
        """Return value and version of a node, None if there is none."""
        with suppress(errors.RegistryNodeNotFoundError):
            value, stat = self._session.get(path)
            return value, stat.version
        return None


def _changes_of(write: StateWrite, *, has_parent: bool) -> list[NodeChange]:
    """Return the changes of nodes that a write takes."""
    path = paths.partition_state(write.partition)
    value = replicated_values.encode_state(write.state)
    if write.expected_version is not None:
        return [SetNode(path, value, write.expected_version)]
    if has_parent:  # the state was deleted by hand
        return [CreateNode(path, value)]
    return [CreateNode(paths.replicated_partition(write.partition), b""), CreateNode(path, value)]


def _written(write: StateWrite) -> StateResult:
    version = 0 if write.expected_version is None else write.expected_version + 1
    return StateResult(True, StoredState(write.state, version))
