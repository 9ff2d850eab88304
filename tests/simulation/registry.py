"""A ZooKeeper of the simulation: sessions, the nodes of brokers and of the controller, states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from broker.cluster_state import (
    LiveBroker,
    PartitionState,
    Reassignment,
    StateResult,
    StateWrite,
    TopicAssignment,
)
from broker.errors import ControllerFencedError, RegistryUnreachableError
from broker.topic import TopicPartition
from tests.simulation.checker import Checker, Created
from tests.simulation.events import Process, Scheduler
from tests.support.model_store import ModelRegistry, ModelStore

ZOOKEEPER = 100
"""Its number in the network."""
SESSION_TIMEOUT_S = 2.0
_CHECK_S = 0.5


@dataclass(eq=False)
class Session:
    """A session of one broker."""

    process: Process
    run: int
    heard_s: float
    is_expired: bool = False


class Registry(ModelRegistry):
    """The nodes, and who has a session.

    Args:
        is_reachable: whether a process reaches ZooKeeper now.
    """

    def __init__(
        self, scheduler: Scheduler, checker: Checker, is_reachable: Callable[[int], bool]
    ) -> None:
        super().__init__()
        self.scheduler = scheduler
        self.checker = checker
        self.is_reachable = is_reachable
        self.zxid = 1
        self.sessions: list[Session] = []
        self.brokers: dict[int, tuple[Session, LiveBroker]] = {}
        self.controller: Session | None = None
        self.is_down = False
        self.lost_answers = 0.0
        self.listeners: list[Callable[[], None]] = []
        self.is_fencing = True
        self.id = 0
        """Another one once it has lost its data."""
        scheduler.after(_CHECK_S, self._expire)

    def live_brokers(self) -> list[LiveBroker]:
        return [broker for _, (_, broker) in sorted(self.brokers.items())]

    def reach(self, process: Process) -> None:
        """Raise if a process does not reach ZooKeeper."""
        if self.is_down or not self.is_reachable(process.id):
            raise RegistryUnreachableError("no answer in time")

    def use(self, session: Session) -> None:
        """Raise if a session cannot be used."""
        self.reach(session.process)
        if session.is_expired:
            raise RegistryUnreachableError("the session is lost")

    def lose_answer(self) -> None:
        """Now and then, raise after an operation as if its answer was lost."""
        if self.lost_answers and self.scheduler.random.random() < self.lost_answers:
            self.scheduler.counts["answers of ZooKeeper lost"] += 1
            raise RegistryUnreachableError("no answer in time")

    def connect(self, process: Process) -> Session:
        """Begin a session."""
        self.reach(process)
        session = Session(process, process.run, self.scheduler.now)
        self.sessions.append(session)
        return session

    def register(self, session: Session, *, is_clean: bool) -> int | None:
        """Create a broker's node; return its epoch, None while another session has the node."""
        self.use(session)
        id = session.process.id
        if id in self.brokers:
            holder, broker = self.brokers[id]
            return broker.epoch if holder is session else None
        self.zxid += 1
        self.brokers[id] = (session, LiveBroker(id, "host", 9092, self.zxid, is_clean, ""))
        self.scheduler.counts["starts that may have lost messages"] += not is_clean
        self._changed()
        return self.zxid

    def mark_clean(self, session: Session) -> None:
        """Record that a controller knows how the former run of a broker ended."""
        self.use(session)
        _, broker = self.brokers[session.process.id]
        self.brokers[session.process.id] = (session, broker._replace(is_clean=True))
        self._changed()

    def elect(self, session: Session) -> int | None:
        """Create the controller's node and raise the epoch, in one step; None if there is one."""
        self.use(session)
        if self.controller is session:
            return self.controller_epoch
        if self.controller is not None:
            return None
        self.controller = session
        self.controller_epoch += 1
        self.scheduler.counts["terms of controllers"] += 1
        self.lose_answer()
        return self.controller_epoch

    def take_over(self, session: Session, gone: LiveBroker) -> None:
        """Put the node of a broker in the place of that of a registration that is gone."""
        self.use(session)
        holder, registered = self.brokers.get(gone.id, (session, gone))
        if holder is not session and holder is self.controller and registered.epoch == gone.epoch:
            self.controller = session
            self.controller_epoch += 1
            self.scheduler.counts["terms of controllers"] += 1
            self.scheduler.counts["offices taken over"] += 1
            self._changed()
            self.lose_answer()

    def controller_id(self, process: Process) -> int | None:
        """Return what the controller's node says."""
        self.reach(process)
        return self.controller.process.id if self.controller else None

    def expire(self, session: Session) -> None:
        """End a session and remove its nodes."""
        if session.is_expired:
            return
        session.is_expired = True
        self.scheduler.counts["sessions ended"] += 1
        self.sessions.remove(session)
        id = session.process.id
        if id in self.brokers and self.brokers[id][0] is session:
            del self.brokers[id]
        if self.controller is session:
            self.controller = None
        self._changed()

    def lose_data(self) -> None:
        """Become empty: sessions end, and all epochs and versions begin again."""
        for session in list(self.sessions):
            self.expire(session)
        self.id += 1
        self.zxid = 1
        self.controller_epoch = 0
        self.topics, self.states, self.settings = {}, {}, {}
        self.reassignments, self.throttle_bytes_per_s = {}, 0
        self.deletions, self.deleted = set(), {}
        self.checker.registry_lost()

    def raise_epoch(self, session: Session, epoch: int) -> None:
        """Give a controller a later epoch, if it is in office in the given one."""
        self.use(session)
        if self.controller is session and self.controller_epoch == epoch:
            self.controller_epoch = 2 * epoch + 1
            self.scheduler.counts["epochs of controllers raised"] += 1

    def _expire(self) -> None:
        now = self.scheduler.now
        if self.is_down:  # nobody counts the time then
            for session in self.sessions:
                session.heard_s = now
        for session in list(self.sessions):
            process = session.process
            is_there = process.is_alive and process.run == session.run and not process.is_paused
            if is_there and self.is_reachable(process.id):
                session.heard_s = now
            elif now - session.heard_s > SESSION_TIMEOUT_S:
                self.scheduler.note("session of broker {} expires", process.id)
                self.expire(session)
        self.scheduler.after(_CHECK_S, self._expire)

    def _changed(self) -> None:
        for listener in self.listeners:
            listener()


class SimulatedStore(ModelStore):
    """The store of one controller: reaches ZooKeeper or not, loses answers."""

    def __init__(self, registry: Registry, session: Session, epoch: int) -> None:
        self.registry = registry
        self.nodes = registry
        self.session = session
        self.registry_id = registry.id
        self.epoch = epoch

    def _check(self) -> None:
        """Raise as ZooKeeper would. A client may have a new session before its program knows."""
        nodes = self.nodes
        nodes.reach(self.session.process)
        if self.registry_id != nodes.id:
            raise RegistryUnreachableError("the session is lost")
        if self.session.is_expired and nodes.scheduler.random.random() < 0.5:
            raise RegistryUnreachableError("the session is lost")
        if self.nodes.is_fencing and self.nodes.controller_epoch != self.epoch:
            nodes.scheduler.counts["controllers fenced"] += 1
            raise ControllerFencedError(f"there is a controller after epoch {self.epoch}")
        process = self.session.process
        self.nodes.checker.controller_acted(self.epoch, process.id, self.session.run)

    def write_states(self, writes: Sequence[StateWrite]) -> list[StateResult]:
        self._check()
        results = []
        for write in writes:
            self.nodes.lose_answer()
            results.append(self._write(write))
        self.nodes.lose_answer()
        return results

    def _write(self, write: StateWrite) -> StateResult:
        stored = self.nodes.states.get(write.partition)
        if not self.nodes.is_fencing:
            write = write._replace(expected_version=stored and stored.version)
        elif (
            stored is not None
            and stored.state == write.state
            and stored.version
            == (-1 if write.expected_version is None else write.expected_version) + 1
        ):
            return StateResult(True, stored)
        result = super()._write(write)
        if result.is_written and result.stored is not None:
            self.nodes.zxid += 1
            assignment = self.nodes.topics[write.partition.topic]
            self.nodes.checker.state_written(
                Created(write.partition, assignment.creation_id),
                result.stored,
                assignment.replicas.get(write.partition, ()),
            )
            self.nodes.scheduler.note("state of {}: {} version {}", write.partition, *result.stored)
        return result

    def write_topic(
        self,
        assignment: TopicAssignment,
        settings: Mapping[str, str] = MappingProxyType({}),
        states: Mapping[TopicPartition, PartitionState] = MappingProxyType({}),
    ) -> TopicAssignment:
        written = super().write_topic(assignment, settings, states)
        for partition in states:
            self.nodes.checker.state_written(
                Created(partition, assignment.creation_id),
                self.nodes.states[partition],
                assignment.replicas[partition],
            )
            self.nodes.scheduler.note(
                "state of {}: restored {} version {}", partition, *self.nodes.states[partition]
            )
        self.nodes.lose_answer()
        return written

    def write_reassignments(
        self, changes: Mapping[TopicPartition, Reassignment], throttle_bytes_per_s: int
    ) -> None:
        before = self.nodes.reassignments
        super().write_reassignments(changes, throttle_bytes_per_s)
        counts = self.nodes.scheduler.counts
        counts["changes of replicas begun"] += len(changes.keys() - before.keys())
        counts["changes of replicas ended"] += len(before.keys() - changes.keys())
        self.nodes.lose_answer()

    def begin_deletion(self, topic: str) -> None:
        super().begin_deletion(topic)
        self.nodes.scheduler.note("topic {} is to be deleted", topic)
        self.nodes.checker.deleted.add(self.nodes.topics[topic].creation_id)
        self.nodes.lose_answer()

    def finish_deletion(self, assignment: TopicAssignment) -> None:
        super().finish_deletion(assignment)
        self.nodes.scheduler.note("topic {} is deleted", assignment.topic)
        self.nodes.scheduler.counts["topics deleted"] += 1
        self.nodes.lose_answer()
