"""A simulated broker: the state machines of replication and of the controller, and their shell."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

from broker.cluster_state import EpochStart, IsrChange, IsrDecision, ReplicatedPartition
from broker.controller.context import ControllerSettings
from broker.controller.controller import Controller
from broker.controller.pushes import Push
from broker.errors import (
    BrokerError,
    FencedEpochError,
    InvalidMessageError,
    KeptMessagesError,
    NotControllerError,
    NotLeaderError,
    OffsetNotAvailableError,
    OffsetOutOfRangeError,
    RegistryConflictError,
    RegistryUnreachableError,
    ServerError,
    StaleBrokerEpochError,
    StaleControllerEpochError,
    StorageError,
    UnknownFetchSessionError,
    UnknownTopicError,
)
from broker.ids import NO_LEADER
from broker.log.retention import MAX_CLOCK_DIFFERENCE_S, RetentionTime
from broker.log.segment import Appended
from broker.protocol.fetch_sessions import (
    NO_SESSION,
    FetchSessions,
    KeptSession,
    ReaderSession,
)
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.replication.follower import FetchResult, Follower
from broker.replication.leader import Leader
from broker.replication.replica_log import NO_DIVERGENCE, FetchAnswer, FetchPosition
from broker.replication.replicas import Replica, Replicas, ReplicaSettings, RoleChange
from broker.server.cluster.peer_watch import doubt_of
from broker.server.cluster.throttle import Throttle
from broker.topic import FORMAT_07, TopicPartition
from tests.simulation.batch_log import BatchLog
from tests.simulation.checker import CLOCK_S, Checker, Created, is_past_retention
from tests.simulation.disk import SimulatedLog
from tests.simulation.events import Done, Network, Process, Scheduler
from tests.simulation.registry import Registry, Session, SimulatedStore
from tests.simulation.watch import Watch

LAG_TIME_S = 1.5
_TICK_S = 0.4
_LONG_POLL_S = 0.4
_FETCH_TIMEOUT_S = 1.5
_REQUEST_TIMEOUT_S = 1.5
_RETRY_S = 0.4
_RECORD_S = 0.3
_MAX_FETCH = 4
MESSAGE_BYTES = 16 << 10
"""What a message, which is one offset, counts for the throttle."""


def _recorded(info: ReplicatedPartition) -> ReplicaRecord:
    return ReplicaRecord(
        info.partition, info.creation_id, info.replicas, info.state, info.version, {}
    )


class Fetched(NamedTuple):
    """The response to a replica fetch."""

    answer: FetchAnswer
    starts: tuple[EpochStart, ...]
    data: object
    times_s: list[float]


class Asked(NamedTuple):
    """What a follower's fetch names: of one partition, as its fetches go on one by one here."""

    session_id: int
    session_epoch: int
    changed: tuple[FetchPosition, ...]
    forgotten: tuple[TopicPartition, ...]


class Answered(NamedTuple):
    """The response to a fetch that was taken as one of a session."""

    session_id: int
    response: object


class OutOfRange(NamedTuple):
    """The error response to a follower that names the leader's start."""

    answer: FetchAnswer


class Published(NamedTuple):
    """The response to a producer; the creation, which no real one has, is for the checker."""

    created: Created
    offset: int


class Read(NamedTuple):
    """The response to a consumer; no messages where it is ahead of this replica, or behind.

    Attributes:
        creation_id: by which the consumer knows the topic.
        created: which topic it is, for the checker.
        log_start_offset: of this replica.
        messages: what is committed.
    """

    creation_id: str
    created: Created
    log_start_offset: int
    messages: list[object]


@dataclass
class _ParkedFetch:
    leader: Leader
    log: SimulatedLog
    position: FetchPosition
    most: int
    respond: Done
    is_answered: bool = False


@dataclass
class _Publish:
    leader: Leader
    created: Created
    appended: Appended
    respond: Done


@dataclass(frozen=True)
class Options:
    """What brokers of a run have in common."""

    counts_flushed: bool
    controller: ControllerSettings
    silence_s: float = 0.9
    is_fencing_orders: bool = True
    replicas: Callable[..., Replicas] = Replicas


class Broker(Process):
    """One broker; its logs outlive it."""

    def __init__(
        self,
        id: int,
        scheduler: Scheduler,
        network: Network,
        registry: Registry,
        checker: Checker,
        options: Options,
    ) -> None:
        super().__init__(id, scheduler)
        self.network = network
        self.registry = registry
        self.checker = checker
        self.options = options
        self.peers: dict[int, Broker] = {}
        self.logs: dict[TopicPartition, tuple[str, SimulatedLog]] = {}
        self.records: dict[TopicPartition, ReplicaRecord] = {}
        """What is kept beside the logs."""
        self.directory = Path()
        """Of the files of its logs in the format kafka, set for each run."""
        self.damages = Random()
        """Of the choices of what happens to those files."""
        self._directory_count = 0
        self.is_clean = True
        self.is_slow = False
        self.is_full = False
        self.has_failed_disk = False
        self.disk_count = 1
        """How many disks it has had."""
        self.ahead_s = 0.0
        """How far the clock of its machine is ahead, in simulated time."""
        self.is_stopping = False
        registry.listeners.append(self._registry_changed)
        self._reset()

    def _reset(self) -> None:
        settings = ReplicaSettings(
            LAG_TIME_S, lambda topic: self.options.counts_flushed, self._keeps
        )
        self._retention_time = RetentionTime(self)
        self._awaits_clocks, self._clock_doubt = True, ""
        self.replicas = self.options.replicas(self.id, settings, self._open, self._delete)
        self.throttle = Throttle()
        self.session: Session | None = None
        self.broker_epoch = -1
        self._registry_id = 0
        self.controller: Controller | None = None
        self.controller_id: int | None = None
        self._parked: list[_ParkedFetch] = []
        # each run counts from 1, so that one may meet the sessions of the run before
        new_id = itertools.count(NO_SESSION + 1).__next__
        self._sessions: FetchSessions[KeptSession[FetchPosition]] = FetchSessions(
            KeptSession, new_id
        )
        self._following: dict[tuple[int, TopicPartition], ReaderSession[FetchPosition]] = {}
        self._publishes: list[_Publish] = []
        self._queues: dict[int, list[Push]] = {}
        self._is_sending: set[int] = set()
        self._is_noticing = False
        self._is_loading = False
        self.watch = Watch(self)
        self._is_known = False  # whether a controller has heard how the former run ended

    # Start and end.

    def start(self) -> None:
        """Start the process; `is_clean` says how it ended before."""
        self.is_alive, self.is_paused, self.is_stopping = True, False, False
        self.is_off = False
        self.has_failed_disk = False
        self.run += 1
        self._waiting = []
        self._reset()
        for _, log in self.logs.values():
            log.opened()
        self.scheduler.note("broker {} starts, clean: {}", self.id, self.is_clean)
        self._was_clean = self.is_clean
        self.is_clean = False
        self._keep_session()
        self.compare_clocks()
        self.later(_TICK_S, self._tick)
        self.watch.beat()

    def kill(self) -> None:
        """End the process; what it wrote stays (SIGKILL)."""
        self.scheduler.note("broker {} is killed", self.id)
        self.is_alive = False

    def lose_power(self) -> None:
        """End the machine; what was not flushed is lost, all or some of it."""
        self.is_alive, self.is_off = False, True
        for _, log in self.logs.values():
            kept = self.scheduler.random.randint(log.flushed_offset, log.log_end_offset)
            self.scheduler.note(
                "broker {} loses power, {} ends at {}, was {}",
                *(self.id, log.partition, kept, log.log_end_offset),
            )
            log.crash(kept)

    def stop_cleanly(self) -> None:
        """Ask the controller to move leaderships away, then end in good order."""
        self.is_stopping = True
        self._shut_down(3)

    def _shut_down(self, tries: int) -> None:
        controller = self.peers.get(self._controller())
        if controller is None or not tries:
            self._end()
            return

        def done(response: object) -> None:
            if response == "moved":
                self._end()
            else:
                self.later(_RETRY_S, self._shut_down, tries - 1)

        epoch = self.broker_epoch
        self.network.call(
            *(self, controller, lambda r: controller.controlled_shutdown(self.id, epoch, r)),
            *(done, _REQUEST_TIMEOUT_S),
        )

    def _end(self) -> None:
        self.scheduler.note("broker {} stops in good order", self.id)
        self.is_alive = False
        self.is_clean = self._was_clean  # a loss is remembered until a controller knows of it
        self.is_clean &= not self.has_failed_disk
        self.scheduler.counts["stops in good order"] += self.is_clean
        for _, log in self.logs.values():
            if not log.is_failed:
                log.close()
        if self.session is not None:
            self.registry.expire(self.session)

    def replace_disk(self) -> None:
        """Have an empty disk in the place of the one there was; the process must have ended."""
        self.scheduler.note("broker {} gets an empty disk", self.id)
        self.scheduler.counts["disks emptied"] += any(log.entries for _, log in self.logs.values())
        self.disk_count += 1
        for _, log in self.logs.values():
            del self.checker.logs[self.id, log.created]
        self.logs.clear()

    def fail_disk(self) -> None:
        """Have the disk refuse everything until the next start."""
        self.scheduler.note("the disk of broker {} fails", self.id)
        self.has_failed_disk = True
        for _, log in self.logs.values():
            log.is_failed = True

    def _open(self, info: ReplicatedPartition) -> SimulatedLog:
        creation_id, log = self.logs.get(info.partition, ("", None))
        if log is None or creation_id != info.creation_id:
            if log is not None:
                self.scheduler.counts["logs of a former creation set aside"] += 1
                self.checker.logs.pop((self.id, log.created))
            created = Created(info.partition, info.creation_id)
            log = self._create(created)
            log.is_failed = self.has_failed_disk
            self.logs[info.partition] = (info.creation_id, log)
            self.checker.logs[self.id, created] = log
        log.is_full = self.is_full
        return log

    def _create(self, created: Created) -> SimulatedLog:
        if created.partition.format == FORMAT_07:
            return SimulatedLog(self.id, created, self.checker)
        self._directory_count += 1
        directory = self.directory / str(self._directory_count)
        return BatchLog(self.id, created, self.checker, directory, self, self.damages)

    def _delete(self, replica: Replica) -> None:
        creation_id, _ = self.logs.get(replica.partition, ("", None))
        if creation_id == replica.creation_id:
            del self.logs[replica.partition]
            del self.checker.logs[self.id, Created(replica.partition, creation_id)]

    # Retention.

    def time_ms(self) -> int:
        return int((self.scheduler.now + self.ahead_s) * CLOCK_S * 1000)

    def monotonic_s(self) -> float:
        return self.scheduler.now * CLOCK_S

    def now_s(self) -> float:
        """Return the time by its clock."""
        return self.scheduler.now + self.ahead_s

    def _retention_s(self) -> float:
        return self._retention_time.now_ms() / 1000 / CLOCK_S

    def _keeps(self, partition: TopicPartition, offset: int, end_offset: int) -> bool:
        _, log = self.logs[partition]
        least_s = self._retention_s() + MAX_CLOCK_DIFFERENCE_S / CLOCK_S
        return self.is_held() or any(
            not is_past_retention(one, least_s) for one in log.times_s[: offset - log.start]
        )

    def is_held(self) -> bool:
        """Return whether nothing is deleted, as the clock may be wrong."""
        self._retention_s()
        return self._awaits_clocks or bool(self._clock_doubt or self._retention_time.waits)

    def compare_clocks(self) -> None:
        """Compare the clock with those of the other brokers, and go on doing so."""
        others = [one for one in self.peers.values() if one is not self]
        ahead_ms = {
            one.id: self.time_ms() - one.time_ms()
            for one in others
            if one.is_alive and not one.is_paused and not self.network.is_cut(self.id, one.id)
        }
        if ahead_ms:
            self._clock_doubt = doubt_of(ahead_ms) or ""
            self._awaits_clocks = False
            if not self._clock_doubt:
                self._retention_time.trust(self._retention_time.offset_s())
            self.scheduler.counts["clocks that differ"] += bool(self._clock_doubt)
        self.later(1.0, self.compare_clocks)

    def retain(self) -> None:
        """Remove what is past retention."""
        if self.is_held():
            self.scheduler.counts["retention held back"] += 1
            return
        now_s = self._retention_s()
        for _, log in self.logs.values():
            log.expire(now_s)

    # ZooKeeper.

    def _keep_session(self) -> None:
        """Begin a session and register, again and again if need be."""
        try:
            if self.session is None or self.session.is_expired:
                self._resign()
                self.session = None
                self.session = self.registry.connect(self)
            epoch = self.registry.register(self.session, is_clean=self._was_clean)
            registry_id = self.registry.id
            if epoch is not None and (epoch, registry_id) != (self.broker_epoch, self._registry_id):
                self.broker_epoch, self._registry_id = epoch, registry_id
                self.replicas.registered(epoch, registry_id)
                self.scheduler.note("broker {} registers as {}", self.id, epoch)
            if self._is_known and not self._was_clean:
                self._was_clean = True
                self.registry.mark_clean(self.session)
            self._run_for_controller()
        except RegistryUnreachableError:
            pass
        self.later(_TICK_S, self._keep_session)

    def _controller(self) -> int:
        try:
            found = self.registry.controller_id(self)
        except RegistryUnreachableError:
            found = None
        if found is not None:
            self.controller_id = found
        return -1 if self.controller_id is None else self.controller_id

    def _registry_changed(self) -> None:
        if self.is_alive and not self._is_noticing:
            self._is_noticing = True
            self.later(0.01 + self.scheduler.random.random() * 0.2, self._notice)

    def _notice(self) -> None:
        self._is_noticing = False
        try:
            self.registry.reach(self)
            self._run_for_controller()
        except RegistryUnreachableError:
            self.later(_RETRY_S, self._registry_changed)
            return
        if self.controller is not None and self.registry.controller is not self.session:
            self._resign()
        if self.controller is not None and self.session is not None:
            self._control(lambda c: c.brokers_changed(self.registry.live_brokers()))

    # The controller.

    def _run_for_controller(self) -> None:
        if self.controller is not None or self._is_loading or self.session is None:
            return
        if self.broker_epoch < 0 or self.session.is_expired or self.is_stopping:
            return
        epoch = self.registry.elect(self.session)
        if epoch is not None:
            self._load(epoch, self.session)

    def _load(self, epoch: int, session: Session) -> None:
        """Take office, or take it again after what is in the registry became uncertain."""
        self._is_loading = False
        if session.is_expired or self.session is not session:
            return
        controller = Controller(
            *(self.id, epoch, SimulatedStore(self.registry, session, epoch)),
            self.options.controller,
        )
        self.scheduler.note("broker {} is controller of epoch {}", self.id, epoch)
        self.controller = controller

        def load(controller: Controller) -> None:
            self.registry.use(session)
            controller.load(self.registry.snapshot(self.registry.live_brokers()))

        self._control(load)

    def _resign(self) -> None:
        if self.controller is not None:
            self.scheduler.note("broker {} resigns", self.id)
        self.controller = None
        self._queues.clear()

    def _control(self, event: Callable[[Controller], object]) -> object:
        """Have the controller handle an event; return what that returns, None if it failed."""
        controller = self.controller
        if controller is None:
            return None
        try:
            result = event(controller)
        except ServerError as error:
            result = error
        except (RegistryUnreachableError, RegistryConflictError):
            self.controller = None
            if self.session is not None and not self._is_loading:
                self._is_loading = True
                self.later(_RETRY_S, self._load, controller.epoch, self.session)
            return None
        except BrokerError:
            self._resign()
            return None
        controller.states.take_changes()
        for id, push in controller.pushes.take().items():
            queue = self._queues.setdefault(id, [])
            if push.is_full:
                queue.clear()
            queue.append(push)
            self._send_pushes(controller, id)
        return result

    def _send_pushes(self, controller: Controller, id: int) -> None:
        """Send what is queued for a broker, one push at a time, each until it is answered."""
        queue = self._queues.get(id)
        if self.controller is not controller or id in self._is_sending or not queue:
            return
        push = queue[0]
        target = self.peers[id]
        if not controller.context.is_registered(id, push.broker_epoch):
            queue.pop(0)
            self._send_pushes(controller, id)
            return
        self._is_sending.add(id)

        def done(response: object) -> None:
            self._is_sending.discard(id)
            now = self.controller
            if now is not controller:
                if now is not None:
                    self._send_pushes(now, id)
                return
            if response is None:
                self.later(0.1, self._send_pushes, controller, id)
                return
            if isinstance(response, StaleControllerEpochError):
                self._resign()
                if self.session is not None:
                    with suppress(RegistryUnreachableError):
                        self.registry.raise_epoch(self.session, controller.epoch)
                return
            if queue and queue[0] is push:
                queue.pop(0)
            if isinstance(response, list):
                if response:
                    registration = push.broker_epoch
                    self._control(lambda c: c.told_unknown(id, registration, response))
                self._control(lambda c: c.deletions.delivered(id, push))
            self._send_pushes(controller, id)

        epoch, me = controller.epoch, self.id
        self.network.call(
            *(self, target, lambda r: target.pushed(me, epoch, push, r)),
            *(done, _REQUEST_TIMEOUT_S),
        )

    def change_isr(self, id: int, broker_epoch: int, change: IsrChange, respond: Done) -> None:
        """Handle a leader's request."""
        answer = self._control(lambda c: c.change_isr(id, broker_epoch, [change]))
        respond(answer or NotControllerError("another broker is"))

    def controlled_shutdown(self, id: int, broker_epoch: int, respond: Done) -> None:
        """Handle the request of a broker that stops."""
        answer = self._control(lambda c: c.controlled_shutdown(id, broker_epoch))
        unmoved = getattr(answer, "unmoved", None)
        respond("moved" if unmoved == () else "not moved")

    # Replicas.

    def pushed(self, controller_id: int, epoch: int, push: Push, respond: Done) -> None:
        """Handle the orders of a controller."""
        now = self.scheduler.now
        if epoch > self.replicas.controller_epoch and not self._is_in_office(epoch):
            self.scheduler.counts["controllers not known to ZooKeeper"] += 1
            return  # the controller sends again
        try:
            applied = self.replicas.push(
                *(epoch, push.broker_epoch, push.partitions, push.stopped, now),
                is_full=push.is_full,
            )
        except (StaleControllerEpochError, StaleBrokerEpochError) as error:
            self.scheduler.counts["late orders refused"] += 1
            respond(error)
            return
        self.replicas.note_brokers(push.brokers)
        self.watch.told = push.brokers
        self.controller_id = controller_id
        self.throttle.set(push.throttle_bytes_per_s, now)
        self._is_known = True
        for replica, change in applied.changes:
            self._changed(replica, change)
        if applied.failures:  # the disk refused: the controller sends again
            self.scheduler.counts["orders that the disk refused"] += 1
            return
        self._delete_unopened(push)
        self.later(_RECORD_S, self._record, [*push.partitions])
        respond(self.unknown() if push.is_full else [])

    def _delete_unopened(self, push: Push) -> None:
        """Delete logs that no order has opened since the start, and that are to go."""
        stopped = {(one.partition, one.creation_id) for one in push.stopped if one.deletes_log}
        present = {one.partition.topic: one.creation_id for one in push.partitions}
        for partition, (creation_id, _) in list(self.logs.items()):
            known = self.replicas.known.get(partition)
            is_unused = known is None or self.id not in known.replicas
            is_former = present.get(partition.topic, creation_id) != creation_id
            if self.replicas.get(partition) is None and (
                is_former or ((partition, creation_id) in stopped and is_unused)
            ):
                del self.logs[partition]
                del self.checker.logs[self.id, Created(partition, creation_id)]

    def _record(self, partitions: list[ReplicatedPartition]) -> None:
        """Write what is known of partitions beside their logs."""
        for info in partitions:
            if self.logs.get(info.partition, ("", None))[0] == info.creation_id:
                self.records[info.partition] = _recorded(info)

    def unknown(self) -> list[UnknownReplica]:
        """Return the replicas that the registry does not know."""
        found = []
        for partition, (creation_id, log) in self.logs.items():
            if partition in self.replicas.known:
                continue
            record = self.records.get(partition)
            if record is None or record.creation_id != creation_id:
                record = ReplicaRecord.of_bare_log(partition, creation_id)
            info = self.replicas.unnamed.get(partition)
            is_live = info is not None and info.creation_id == creation_id
            if info is not None and is_live:
                record = _recorded(info)
            found.append(
                UnknownReplica(
                    record, is_live, log.epochs.last_epoch, log.start, log.log_end_offset
                )
            )
        return found

    def _is_in_office(self, epoch: int) -> bool:
        """Return whether ZooKeeper knows of a controller of an epoch."""
        try:
            self.registry.reach(self)
        except RegistryUnreachableError:
            return False
        return epoch <= self.registry.controller_epoch

    def _changed(self, replica: Replica, change: RoleChange) -> None:
        if change is RoleChange.FOLLOWS and isinstance(replica.role, Follower):
            self._fetch(replica, replica.role)
        if change is RoleChange.SKIPPED:
            self.scheduler.counts["orders of earlier leader epochs skipped"] += 1
        if change not in (RoleChange.SKIPPED, RoleChange.REFRESHED):
            self.scheduler.note("broker {}: {} {}", self.id, replica.partition, change.name)
        self._settle()

    def _fetch(self, replica: Replica, follower: Follower) -> None:
        """Fetch from the leader, for as long as this term lasts."""
        if follower.is_stopped or follower.is_parked or self.is_stopping:
            return
        position = follower.next_fetch(self.scheduler.now)
        leader = self.peers.get(follower.leader)
        if position is None or leader is None:
            self.later(_RETRY_S, self._fetch, replica, follower)
            return

        most, wait_s, reserved = _MAX_FETCH, _LONG_POLL_S, 0
        if follower.info.is_throttled(self.id):
            now = self.scheduler.now
            reserved = self.throttle.reserve(_MAX_FETCH * MESSAGE_BYTES, MESSAGE_BYTES, now)
            most = reserved // MESSAGE_BYTES
            if not most:
                self.scheduler.counts["fetches that wait for the throttle"] += 1
                wait_s = min(wait_s, 0.001 + self.throttle.due_s(now) - now)

        partition, epoch = replica.partition, self.broker_epoch
        session = self._following.setdefault((leader.id, partition), ReaderSession())
        session.name(partition, position)
        asked = Asked(session.id, session.epoch, *session.take_changes())

        def done(answer: object) -> None:
            response = answer.response if isinstance(answer, Answered) else answer
            # the next term fetches beside a request of this one, where a thread would await it
            if isinstance(answer, Answered) and not follower.is_stopped:
                session.answered(answer.session_id)
            else:
                session.end()
            if reserved:
                count = len(response.times_s) if isinstance(response, Fetched) else 0
                self.throttle.settle(reserved, count * MESSAGE_BYTES)
            if isinstance(response, UnknownFetchSessionError):
                self._fetch(replica, follower)
                return
            delay = self._fetched(follower, position, response)
            if delay > 0:
                self.later(delay, self._fetch, replica, follower)
            else:
                self._fetch(replica, follower)

        self.network.call(
            *(
                self,
                leader,
                lambda r: leader.fetch(partition, self.id, epoch, asked, most, wait_s, r),
            ),
            *(done, _FETCH_TIMEOUT_S),
        )

    def _fetched(self, follower: Follower, position: FetchPosition, response: object) -> float:
        """Handle the response to a fetch; return when to fetch again."""
        now = self.scheduler.now
        log = follower.log
        assert isinstance(log, SimulatedLog)
        try:
            if isinstance(response, Fetched):
                count = log.count_in(response.data, position.offset)
                result = follower.fetched(position, response.answer, response.starts, count)
                if result is FetchResult.APPEND:
                    now_s = self.now_s()
                    is_in_sync = self.id in follower.info.state.isr
                    times_s = [now_s if is_in_sync else min(one, now_s) for one in response.times_s]
                    log.append_copied(response.data, position.offset, times_s)
                    follower.appended(response.answer)
                    return self._begin_flush(log)
                self.scheduler.counts[f"fetches {result.name.lower()}"] += 1
                if result is FetchResult.TRUNCATED:
                    self.scheduler.note(
                        "broker {} cuts {} to {}", self.id, log.partition, log.log_end_offset
                    )
            elif isinstance(response, OutOfRange):
                follower.out_of_range(position, response.answer, now)
            else:
                error = response if isinstance(response, Exception) else NotLeaderError("lost")
                follower.refused(position, error, now)
        except (StorageError, KeptMessagesError, InvalidMessageError) as error:
            self.scheduler.counts["messages kept"] += isinstance(error, KeptMessagesError)
            follower.refused(position, error, now)
            return _RETRY_S
        return 0.0 if isinstance(response, Fetched) else _RETRY_S

    def fetch(
        self,
        partition: TopicPartition,
        follower_id: int,
        broker_epoch: int,
        asked: Asked,
        most: int,
        wait_s: float,
        answer_with: Done,
    ) -> None:
        """Handle a follower's fetch; wait for data if there is none, or none is wanted."""
        owner = follower_id, broker_epoch, partition
        try:
            if asked.session_id == NO_SESSION:
                session = self._sessions.begin(owner)
            else:
                session = self._sessions.take(asked.session_id, asked.session_epoch, owner)
        except UnknownFetchSessionError as error:
            self.scheduler.counts["fetches of another session refused"] += 1
            answer_with(error)
            return
        for one in asked.changed:
            session.parts[partition] = one
        if not session.parts:  # where the same order is taken twice, by a defect that is built in
            answer_with(UnknownFetchSessionError("this session names no position"))
            return
        # those of two partitions may be mixed up where that defect is built in
        position = next(iter(session.parts.values()))

        def respond(response: object) -> None:
            answer_with(Answered(session.id, response))

        replica = self.replicas.get(partition)
        try:
            if replica is None:
                raise NotLeaderError("no replica")
            self.replicas.check_follower(follower_id, broker_epoch)
            leader = replica.leader
            log = replica.log
            assert isinstance(log, SimulatedLog)
            answer = leader.fetched(follower_id, broker_epoch, position, self.scheduler.now)
        except OffsetOutOfRangeError:
            assert replica is not None
            log = replica.log
            answer = FetchAnswer(log.high_watermark, log.log_start_offset, NO_DIVERGENCE)
            respond(OutOfRange(answer))
            return
        except ServerError as error:
            self.scheduler.counts[f"fetches refused: {type(error).__name__}"] += 1
            respond(error)
            return
        if leader.has_joining:
            self._propose(replica, leader)
        self._settle()
        is_at_end = position.offset == log.log_end_offset
        if answer.diverging == NO_DIVERGENCE and (is_at_end or not most):
            parked = _ParkedFetch(leader, log, position, most, respond)
            self._parked.append(parked)
            self.later(wait_s, self._answer_fetch, parked)
        else:
            respond(self._read(log, position, most, answer))

    def _answer_fetch(self, parked: _ParkedFetch) -> None:
        if parked.is_answered:
            return
        parked.is_answered = True
        self._parked.remove(parked)
        try:
            answer = parked.leader.answer(parked.position)
        except ServerError as error:
            parked.respond(error)
            return
        parked.respond(self._read(parked.log, parked.position, parked.most, answer))

    def _read(
        self, log: SimulatedLog, position: FetchPosition, most: int, answer: FetchAnswer
    ) -> Fetched:
        if answer.diverging != NO_DIVERGENCE or not most:
            return Fetched(answer, (), [], [])
        count = self.scheduler.random.randint(1, most)
        data, end_offset = log.fetch(position.offset, count)
        starts = log.epochs.covering(position.offset, end_offset)
        times_s = log.times_s[position.offset - log.start : end_offset - log.start]
        return Fetched(answer, starts, data, times_s)

    def _begin_flush(self, log: SimulatedLog) -> float:
        """Flush a log; return how long that takes."""
        random = self.scheduler.random.random
        if log.is_failed:
            return _RETRY_S
        delay = random() * (1.0 if self.is_slow else 0.02)
        if not self.options.counts_flushed:
            delay += 0.5
        self.later(delay, self._flushed, log, log.cuts, log.log_end_offset)
        return delay + 0.001 if self.options.counts_flushed else 0.0

    def _flushed(self, log: SimulatedLog, cuts: int, end_offset: int) -> None:
        if log.cuts == cuts and not log.is_failed:
            log.flushed(end_offset)
            replica = self.replicas.get(log.partition)
            if replica is not None and replica.log is log and isinstance(replica.role, Leader):
                replica.role.flushed()
                self._settle()

    def _propose(self, replica: Replica, leader: Leader) -> None:
        log = replica.log
        assert isinstance(log, SimulatedLog)
        change = leader.resignation() if log.is_failed else leader.tick(self.scheduler.now)
        if change is None:
            return
        controller = self.peers.get(self._controller())
        if controller is None:
            leader.isr_failed(change, self.scheduler.now)
            return

        def done(response: object) -> None:
            now = self.scheduler.now
            if isinstance(response, list):
                (decision,) = response
                self._decided(replica, leader, change, decision)
            else:
                leader.isr_failed(change, now)
            self._settle()

        me, epoch = self.id, self.broker_epoch
        self.network.call(
            *(self, controller, lambda r: controller.change_isr(me, epoch, change, r)),
            *(done, _REQUEST_TIMEOUT_S),
        )

    def _decided(
        self, replica: Replica, leader: Leader, change: IsrChange, decision: IsrDecision
    ) -> None:
        now = self.scheduler.now
        known = decision.decided
        counts = self.scheduler.counts
        if decision.error:
            counts["changes of in-sync replicas refused"] += 1
            if decision.error == FencedEpochError.code:
                counts["changes of in-sync replicas that met an election"] += 1
        elif known is not None and known.version != change.version + 1:
            counts["changes of in-sync replicas that met another"] += 1
        if self.id not in {member.broker_id for member in change.isr}:
            counts["leaderships given up for a failed disk"] += not decision.error
        if known is not None and known.creation_id == replica.creation_id:
            replica.isr_answered(change, known, now)
        else:
            leader.isr_failed(change, now)

    def _tick(self) -> None:
        for replica in self.replicas:
            if isinstance(replica.role, Leader):
                self._propose(replica, replica.role)
        for _, log in self.logs.values():
            if log.is_failed:
                continue
            if self.scheduler.random.random() < 0.1:
                log.checkpoint = log.high_watermark
            if log.flushed_offset < log.log_end_offset:
                self._begin_flush(log)
        self._settle()
        self.later(_TICK_S, self._tick)

    def _settle(self) -> None:
        """Answer what waited for an append, a commit, or the end of a term."""
        for parked in list(self._parked):
            has_more = parked.log.log_end_offset > parked.position.offset
            if parked.leader.is_stopped or (has_more and parked.most):
                self._answer_fetch(parked)
        if not self._publishes:
            return
        waiting = []
        for publish in self._publishes:
            try:
                if publish.leader.is_committed(publish.appended.end_offset):
                    publish.respond(Published(publish.created, publish.appended.base_offset))
                else:
                    waiting.append(publish)
            except ServerError as error:
                self.scheduler.counts[f"outcomes unknown: {type(error).__name__}"] += 1
                publish.respond("unknown")
        self._publishes = waiting

    # Clients.

    def publish(
        self, partition: TopicPartition, message_set: object, acks: int, respond: Done
    ) -> None:
        """Append messages, or a batch."""
        replica = self.replicas.get(partition)
        try:
            if replica is None or self.is_stopping:
                raise NotLeaderError("no replica")
            leader = replica.leader
            leader.check_append(needs_commit=acks == -1)
            log = replica.log
            assert isinstance(log, SimulatedLog)
            appended = log.publish(message_set, self.now_s())
        except ServerError as error:
            self.scheduler.counts[f"publishes refused: {type(error).__name__}"] += 1
            respond(error)
            return
        created, epoch = log.created, leader.info.state.leader_epoch
        self.checker.appended(created, epoch, self.id, log.losses)
        messages = log.read(*appended)
        self.scheduler.note("broker {} appends {} at {}", self.id, messages, appended.base_offset)
        leader.appended()
        self._begin_flush(log)
        if acks == -1:
            self._publishes.append(_Publish(leader, created, appended, respond))
        else:
            respond(Published(created, appended.base_offset))
        self._settle()

    def read(self, partition: TopicPartition, offset: int, respond: Done) -> None:
        """Give a consumer what is committed; any replica may be asked."""
        replica = self.replicas.get(partition)
        if replica is None or replica.role is None:
            respond(UnknownTopicError("no replica"))
            return
        log = replica.log
        assert isinstance(log, SimulatedLog)
        if isinstance(replica.role, Leader):
            self._list_latest(replica.role, log)
        messages = []
        if log.start <= offset <= log.high_watermark:
            messages = log.read_committed(offset, min(offset + 10, log.high_watermark))
        creation_id = self.creation_id_of(self.replicas.known[partition])
        respond(Read(creation_id, log.created, log.start, messages))

    def creation_id_of(self, info: ReplicatedPartition) -> str:
        """Return what clients are told of a partition's topic."""
        return info.creation_id

    def _list_latest(self, leader: Leader, log: SimulatedLog) -> None:
        """Give the latest offset, as to a consumer that asks for it with each read."""
        try:
            leader.check_latest()
        except OffsetNotAvailableError:
            self.scheduler.counts["latest offsets not known yet"] += 1
            return
        epoch = leader.info.state.leader_epoch
        self.checker.listed_latest(log.created, epoch, log.high_watermark)

    def leader_of(self, partition: TopicPartition) -> tuple[int, int]:
        """Return whom this broker believes to lead, and in which epoch."""
        info = self.replicas.known.get(partition)
        return (info.state.leader, info.state.leader_epoch) if info else (NO_LEADER, -1)
