"""This broker's controller: the election, and its work while it is in office.

One thread has one queue of events: watches of ZooKeeper that have fired, requests of brokers and
clients, responses of brokers. It hands each event to the `Controller`, and the resulting pushes to
one sender for each broker. A broker that is not the controller sleeps here.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple, TypeVar

from broker.clock import Clock
from broker.cluster_state import (
    NO_CONTROLLER,
    Creation,
    IsrDecision,
    LiveBroker,
    ReplicatedPartition,
    ShutdownProgress,
)
from broker.controller.context import ControllerSettings
from broker.controller.controller import Controller
from broker.controller.pushes import Push
from broker.errors import (
    NO_ERROR,
    ControllerFencedError,
    CoordinationError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    NotControllerError,
    RequestTimedOutError,
    ServerError,
    ShuttingDownError,
    StaleBrokerEpochError,
    StaleControllerEpochError,
    TopicExistsError,
    UnknownServerError,
    UnknownTopicError,
)
from broker.protocol.cluster_requests import (
    THROTTLE_STAYS,
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    DeleteReplicatedTopicRequest,
    ElectionKind,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    PartitionOutcome,
    PartitionReassignment,
    Reassignments,
    ReassignRequest,
    ReplicateTopicRequest,
    RestorePartitionsRequest,
)
from broker.protocol.replica_requests import ChangeIsrRequest, ControlledShutdownRequest
from broker.replica_records import UnknownReplica
from broker.server.controller_events import ControllerEvents
from broker.server.push_sender import PushAnswer, PushSender, PushTimes
from broker.server.state_change_log import StateChangeLog
from broker.state_changes import ChangeKind, LoggedChange
from broker.stats import WindowedStats
from broker.topic import TopicPartition
from broker.zk.controller_election import ControllerElection, Term
from broker.zk.creations import read_creations
from broker.zk.paths import CONTROLLER_EPOCH
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics, ReplicatedTopicsStore
from broker.zk.session import SessionState

logger = logging.getLogger(__name__)

_RETRY_S = 1.0
_REREAD_S = 3.0
"""How often topics that cannot be read are read again."""
_T = TypeVar("_T")


class LeaderBalance(NamedTuple):
    """When leaderships return to the preferred leaders."""

    interval_s: float  # between two checks
    max_percentage: int  # of a broker's preferred partitions that others may lead


class _Creation(NamedTuple):
    """A created topic, and the brokers that do not know yet which partitions they lead."""

    topic: str
    partitions: list[ReplicatedPartition]
    waiting: set[int]
    future: Future[list[ReplicatedPartition]]


class ControllerThread:
    """The controller thread of one broker, in office or not; the broker is registered before."""

    def __init__(
        self,
        registry: Registry,
        broker_id: int,
        clock: Clock,
        settings: ControllerSettings,
        on_controller: Callable[[int], None],
        changes: StateChangeLog,
        *,
        last_good_settings: Callable[[str], Mapping[str, str]],
        balance: LeaderBalance | None = None,
        stats_period_s: float = 600.0,
        push_timeout_s: float = 30.0,
    ) -> None:
        self._registry = registry
        self._me = broker_id
        self._clock = clock
        self._settings = settings
        # called with the controller's id, or `NO_CONTROLLER`, whenever it may have changed
        self._on_controller = on_controller
        self._changes = changes
        self._balance = balance  # None: leaderships return on request only
        self._balance_at_s = 0.0
        self._reread_at_s = 0.0
        self._reported_unreadable: dict[str, str] = {}
        self._election = ControllerElection(registry.session, broker_id)
        # `last_good_settings` is for topics whose settings in ZooKeeper are not valid
        self._topics = ReplicatedTopics(registry.session, last_good_settings)
        self._events = ControllerEvents(clock)
        self._lock = threading.Lock()  # guards _is_stopped
        self._is_stopped = False
        self._term: Term | None = None
        self._controller: Controller | None = None
        self._controller_id = NO_CONTROLLER
        self._senders: dict[int, PushSender] = {}
        self.election_stats = WindowedStats(clock, stats_period_s)
        """Events that changed leaders; timed from arrival until the states were written."""
        self.election_count = 0  # partitions that got another leader
        self.fenced_count = 0  # terms of office that ended as another broker took it
        self._stats_period_s = stats_period_s  # the windows of rates and times
        self._push_timeout_s = push_timeout_s  # to carry out a push
        self._push_stats: dict[int, WindowedStats] = {}
        self._awaited: set[Future[list[ReplicatedPartition]]] = set()  # creations
        self._creations: list[_Creation] = []
        self._thread = threading.Thread(target=self._run, name="controller", daemon=True)

    def start(self) -> None:
        """Start the thread, which tries to become the controller."""
        self._events.put(self._look)
        self._thread.start()

    def request_stop(self) -> None:
        """Resign, so that another broker can be elected, and have the thread end."""
        with self._lock:
            self._is_stopped = True
        self._events.put(self._leave)

    def join(self) -> None:
        """Wait for the end of the thread; a request to ZooKeeper ends with the session."""
        if self._thread.ident is not None:
            self._thread.join()

    @property
    def controller(self) -> Controller | None:
        """Return the controller if this broker is it; for tests and metrics, without locks."""
        return self._controller

    @property
    def event_count(self) -> int:
        """Return how many events wait for the thread."""
        return self._events.waiting_count

    @property
    def oldest_event_s(self) -> float:
        """Return how long the oldest event has waited or been handled; 0 if there is none."""
        return self._events.oldest_s

    def pushes(self) -> dict[int, PushTimes]:
        """Return how fast brokers carry out pushes, by broker id; none out of office."""
        return {id: sender.times() for id, sender in self._senders.copy().items()}

    # Requests. Their futures fail with a `ServerError`.

    def change_isr(self, request: ChangeIsrRequest) -> Future[list[IsrDecision]]:
        """Have in-sync replicas changed as their leader proposes."""
        return self._submit(
            lambda one: one.change_isr(request.broker_id, request.broker_epoch, request.changes)
        )

    def controlled_shutdown(self, request: ControlledShutdownRequest) -> Future[ShutdownProgress]:
        """Have leaderships moved away from a broker."""
        return self._submit(
            lambda one: one.controlled_shutdown(request.broker_id, request.broker_epoch)
        )

    def create_topic(
        self, request: CreateReplicatedTopicRequest
    ) -> Future[list[ReplicatedPartition]]:
        """Have a topic created; done when all leaders of its partitions know that they lead."""

        def create(controller: Controller) -> list[ReplicatedPartition]:
            homes = self._registry.topic_partitions(request.topic)
            known = {*controller.context.topics, *controller.context.unreadable}
            if homes and request.topic not in known:
                raise TopicExistsError(
                    f"topic '{request.topic}' exists without replicas on brokers {sorted(homes)}"
                )
            return controller.topics.create(
                request.topic,
                request.partition_count,
                request.replication_factor,
                {one.name: one.value for one in request.settings},
                creation_id=os.urandom(16).hex(),
                start=random.randrange(1 << 16),
            )

        # until then a home broker would append and acknowledge messages that no replica gets
        return self._submit_creation(request.topic, create)

    def replicate_topic(self, request: ReplicateTopicRequest) -> Future[list[ReplicatedPartition]]:
        """Give replicas to a topic without any; done when its home brokers know of them."""
        topic = request.topic

        def replicate(controller: Controller) -> list[ReplicatedPartition]:
            counts = self._registry.topic_partitions(topic)
            if not counts and topic not in controller.context.topics:
                raise UnknownTopicError(f"no live broker has topic '{topic}'")
            away = self._registry.absent_homes([topic]).get(topic, [])
            partitions = [
                TopicPartition(topic, home, index)
                for home, count in {**counts, **dict.fromkeys(away, 1)}.items()
                for index in range(count)
            ]
            creations = read_creations(self._registry.session, partitions)
            return controller.topics.replicate(
                topic,
                partitions,
                request.replication_factor,
                {
                    one.home: creations.of(one) or Creation("", 0)  # no older creation is known
                    for one in partitions
                },
                self._topics.settings([topic]).get(topic, {}),
                creation_id=os.urandom(16).hex(),
            )

        return self._submit_creation(topic, replicate)

    def _submit_creation(
        self, topic: str, create: Callable[[Controller], list[ReplicatedPartition]]
    ) -> Future[list[ReplicatedPartition]]:
        created: Future[list[ReplicatedPartition]] = Future()

        def await_leaders(decided: Future[list[ReplicatedPartition]]) -> None:
            error = decided.exception()
            if error is not None:
                self._awaited.discard(created)
                created.set_exception(error)
                return
            leaders = {one.state.leader for one in decided.result()}
            self._creations.append(_Creation(topic, decided.result(), leaders, created))
            self._end_creations(self._controller)

        self._awaited.add(created)
        self._submit(self._with_all_brokers(create)).add_done_callback(await_leaders)
        return created

    def restore(self, request: RestorePartitionsRequest) -> Future[list[ReplicatedPartition]]:
        """Have partitions put back that the registry has lost, and brokers have logs of."""

        def restore(controller: Controller) -> list[ReplicatedPartition]:
            if not request.records:
                raise InvalidRequestError("no partitions to restore are named")
            topic = request.records[0].partition.topic
            homes = self._registry.topic_partitions(topic).keys()
            context = controller.context
            if topic not in context.topics and (others := homes - context.lost.homes(topic)):
                raise TopicExistsError(
                    f"a topic '{topic}' exists without replicas on brokers {sorted(others)}"
                )
            return controller.topics.restore(request.records)

        return self._submit(restore)

    def add_partitions(self, request: AddPartitionsRequest) -> Future[list[ReplicatedPartition]]:
        """Have partitions added to a topic."""
        start = random.randrange(1 << 16)
        return self._submit(
            self._with_all_brokers(
                lambda one: one.topics.add_partitions(
                    request.topic, request.partition_count, start=start
                )
            )
        )

    def delete_topic(self, request: DeleteReplicatedTopicRequest) -> Future[None]:
        """Have a topic deleted on all brokers."""
        return self._submit(lambda one: one.deletions.delete_topic(request.topic))

    def elect_leaders(self, request: ElectLeadersRequest) -> Future[list[PartitionOutcome]]:
        """Have leaders elected."""

        def elect(controller: Controller) -> list[PartitionOutcome]:
            if request.kind is ElectionKind.PREFERRED:
                outcomes = controller.leadership.elect_preferred(request.partitions)
                return [_outcome(one, outcomes[one]) for one in request.partitions]
            return [
                _outcome(one, _refusal(partial(controller.leadership.elect_unclean, one)))
                for one in request.partitions
            ]

        return self._submit(elect)

    def reassign(self, request: ReassignRequest) -> Future[list[PartitionOutcome]]:
        """Have replicas moved, or their reassignments cancelled."""

        def reassign(controller: Controller) -> list[PartitionOutcome]:
            targets = {one.partition: one.replicas for one in request.targets if one.replicas}
            throttle = request.throttle_bytes_per_s
            if targets or throttle != THROTTLE_STAYS:
                controller.reassignments.begin(
                    targets, None if throttle == THROTTLE_STAYS else throttle
                )
            return [
                _outcome(
                    one.partition,
                    None
                    if one.replicas
                    else _refusal(partial(controller.reassignments.cancel, one.partition)),
                )
                for one in request.targets
            ]

        return self._submit(self._with_all_brokers(reassign))

    def reassignments(self, _: ListReassignmentsRequest) -> Future[Reassignments]:
        """List the reassignments under way."""
        return self._submit(
            lambda one: Reassignments(
                one.context.throttle_bytes_per_s,
                tuple(PartitionReassignment(*item) for item in one.context.reassignments.items()),
            )
        )

    def settings_changed(self) -> None:
        """Note that settings of topics may have changed; returns at once."""
        self._events.put(self._read_settings)

    def _submit(self, job: Callable[[Controller], _T]) -> Future[_T]:
        future: Future[_T] = Future()
        with self._lock:
            if self._is_stopped:
                future.set_exception(ShuttingDownError("the broker is shutting down"))
                return future
            self._events.put(lambda: self._answer(future, job))  # before the event of the stop
        return future

    def _with_all_brokers(self, job: Callable[[Controller], _T]) -> Callable[[Controller], _T]:
        """Have a refused job done again if a broker is registered that was not known before."""

        def work(controller: Controller) -> _T:
            try:
                return job(controller)
            except (InvalidReplicationFactorError, InvalidRequestError):
                # ZooKeeper's watch for brokers may fire after a client's request that needs them
                brokers = self._topics.brokers()
                if set(brokers) == set(controller.context.brokers.values()):
                    raise
                controller.brokers_changed(brokers)
                return job(controller)

        return work

    def _note_topic_pushed(self, controller: Controller, broker_id: int, push: Push) -> None:
        for creation in list(self._creations):
            if any(one.partition.topic == creation.topic for one in push.partitions):
                creation.waiting.discard(broker_id)
        self._end_creations(controller)

    def _end_creations(self, controller: Controller | None) -> None:
        """Complete creations whose live leaders all know of them; out of office, all creations."""
        live = set() if controller is None else controller.context.brokers.keys()
        for creation in list(self._creations):
            if not creation.waiting & live:
                self._creations.remove(creation)
                self._awaited.discard(creation.future)
                creation.future.set_result(creation.partitions)

    def _answer(self, future: Future[_T], job: Callable[[Controller], _T]) -> None:
        try:
            if self._controller is None:
                raise self._not_controller()
            outcome = job(self._controller)
            self._carry_out()
        except ServerError as error:
            future.set_exception(error)
        except CoordinationError as error:
            self._take_failure(error)
            text = f"whether it was done is not known: {error}"
            future.set_exception(RequestTimedOutError(text))
        except BaseException as error:
            future.set_exception(UnknownServerError(f"the controller failed: {error!r}"))
            raise
        else:
            future.set_result(outcome)

    def _not_controller(self) -> NotControllerError:
        known = self._controller_id
        who = "no broker is at present" if known == NO_CONTROLLER else f"broker {known} is"
        return NotControllerError(f"broker {self._me} is not the controller: {who}")

    # The thread.

    def _run(self) -> None:
        retry_s: float | None = None
        while not self._has_left():
            try:
                event = self._events.get(timeout=retry_s or self._wait_s())
            except queue.Empty:
                event = self._look if retry_s else self._do_what_is_due
            retry_s = None
            try:
                event()
            except CoordinationError as error:
                if not self._is_stopped:
                    logger.warning("the controller's work waits for ZooKeeper: %s", error)
                retry_s = _RETRY_S
            except Exception:  # the thread must not end; it reads the registry again
                logger.exception("the controller failed at an event, and starts again")
                self._controller = None
                retry_s = _RETRY_S
            if retry_s is None:
                self._events.note_done()

    def _wait_s(self) -> float | None:
        """Return the time until the next periodic work; None if there is none."""
        if (controller := self._controller) is None:
            return None
        due = [self._balance_at_s] if self._balance is not None else []
        due += [self._reread_at_s] if controller.context.unreadable else []
        return max(0.001, min(due) - self._clock.monotonic_s()) if due else None

    def _do_what_is_due(self) -> None:
        now_s = self._clock.monotonic_s()
        controller = self._controller
        if controller is not None and controller.context.unreadable and now_s >= self._reread_at_s:
            self._reread(controller)
        if now_s >= self._balance_at_s:
            self._balance_leaders()

    def _reread(self, controller: Controller) -> None:
        """Read all states again once a topic can be read that could not."""
        self._reread_at_s = self._clock.monotonic_s() + _REREAD_S
        names = controller.context.unreadable
        still = self._topics.find(names).unreadable
        if still.keys() == names.keys():
            self._report_unreadable({topic: one.reason for topic, one in still.items()})
            return
        logger.info("topics can be read again: reading all states")
        self._controller = None
        self._look()

    def _report_unreadable(self, reasons: dict[str, str]) -> None:
        """Log which topics cannot be read, once for each reason, and which can be again."""
        for topic, reason in reasons.items():
            if self._reported_unreadable.get(topic) != reason:
                logger.error(
                    "topic '%s' cannot be read: %s. Its brokers go on as they are, without "
                    "elections. Write the node again, or delete the topic with `pylogctl topic "
                    "delete %s --data` (docs/operations/cluster.md, Damaged nodes)",
                    *(topic, reason, topic),
                )
        for topic in self._reported_unreadable.keys() - reasons.keys():
            logger.info("topic '%s' can be read again, or is gone", topic)
        self._reported_unreadable = reasons

    def _balance_leaders(self) -> None:
        if self._balance is None or (controller := self._controller) is None:
            return
        self._balance_at_s = self._clock.monotonic_s() + self._balance.interval_s
        max_percentage = self._balance.max_percentage
        self._guard(lambda: controller.leadership.balance_leaders(max_percentage))
        self._carry_out()

    def _has_left(self) -> bool:
        """Return whether the thread may end: all requests have their responses."""
        return self._is_stopped and self._events.empty()

    def _leave(self) -> None:
        was_in_office = self._term is not None
        self._end_term()
        if was_in_office and self._registry.state is SessionState.CONNECTED:
            self._election.resign()

    def _look(self) -> None:
        """Find out who the controller is, and become it if there is none."""
        if self._is_stopped:
            return
        outcome = self._election.try_to_win(
            lambda: self._events.put(self._look), now_ms=self._clock.time_ms()
        )
        if isinstance(outcome, Term):
            self._take_office(outcome)
        else:
            self._end_term()
            self._note_controller(outcome.broker_id)

    def _take_office(self, term: Term) -> None:
        if self._term != term:
            self._end_term()
            self._changes.note(LoggedChange(ChangeKind.ELECTED, controller_epoch=term.epoch))
            self._term = term
        if self._controller is None:
            snapshot = self._topics.snapshot(
                on_brokers=lambda: self._events.put(self._read_brokers),
                on_topics=lambda: self._events.put(self._read_topics),
            )
            last_epoch = max(
                (one.state.controller_epoch for one in snapshot.states.values()), default=0
            )
            if last_epoch > term.epoch:  # brokers would refuse pushes of an earlier epoch
                logger.warning(
                    "node %s says %d, and there was epoch %d: it was deleted or edited by hand",
                    *(CONTROLLER_EPOCH, term.epoch, last_epoch),
                )
                term = self._term = self._election.raise_epoch(term, last_epoch)
            store = ReplicatedTopicsStore(self._registry.session, term.epoch_version)
            controller = Controller(self._me, term.epoch, store, self._settings)
            self._guard(lambda: controller.load(snapshot))
            self._controller = controller
            self._reread_at_s = self._clock.monotonic_s() + _REREAD_S
            self._report_unreadable(
                {topic: one.reason for topic, one in controller.context.unreadable.items()}
            )
            if self._balance is not None:
                self._balance_at_s = self._clock.monotonic_s() + self._balance.interval_s
            self._carry_out()
        self._note_controller(self._me)

    def _end_term(self) -> None:
        if self._term is not None:
            epoch = self._term.epoch
            self._changes.note(LoggedChange(ChangeKind.RESIGNED, controller_epoch=epoch))
        self._term = self._controller = None
        self._end_creations(None)
        for sender in self._senders.values():
            sender.request_stop()
        for sender in self._senders.values():
            sender.join()
        self._senders = {}

    def _note_controller(self, broker_id: int) -> None:
        self._controller_id = broker_id
        self._on_controller(broker_id)

    def _guard(self, job: Callable[[], None]) -> None:
        """Run a job that writes to the registry; a failure ends the term or reloads the states."""
        try:
            job()
        except CoordinationError as error:
            self._take_failure(error)
            raise

    def _take_failure(self, error: CoordinationError) -> None:
        """Forget the known states, as the registry may have others; look again."""
        if self._controller is not None:
            logger.warning("the controller reads all states again: %s", error)
        self._controller = None
        if isinstance(error, ControllerFencedError):
            self.fenced_count += 1
            self._end_term()
        self._events.put(self._look)

    def _read_brokers(self) -> None:
        if (controller := self._controller) is not None:
            brokers = self._topics.brokers(lambda: self._events.put(self._read_brokers))
            self._guard(lambda: controller.brokers_changed(brokers))
            self._carry_out()
            self._end_creations(controller)

    def _read_topics(self) -> None:
        """Read the list of topics; one that this controller has not created means a new start."""
        if (controller := self._controller) is not None:
            names = self._topics.topics(lambda: self._events.put(self._read_topics))
            if set(names) != {*controller.context.topics, *controller.context.unreadable}:
                logger.warning("topics were created or deleted by hand: reading all states again")
                self._controller = None
                self._look()

    def _read_settings(self) -> None:
        if (controller := self._controller) is not None and controller.context.topics:
            settings = self._topics.settings(controller.context.topics)
            self._guard(lambda: controller.settings_changed(settings))
            self._carry_out()

    def _note_delivered(self, controller: Controller, broker_id: int, push: Push) -> None:
        if self._controller is controller:
            self._guard(lambda: controller.deletions.delivered(broker_id, push))
            self._carry_out()

    def _note_unknown(
        self, controller: Controller, broker_id: int, push: Push, found: list[UnknownReplica]
    ) -> None:
        if self._controller is controller:
            self._guard(lambda: controller.told_unknown(broker_id, push.broker_epoch, found))
            self._carry_out()

    def _look_whether_outdated(self, epoch: int) -> None:
        """Find out why a broker knows of a later controller: ZooKeeper may have lost its epochs."""
        self._look()
        if self._term is not None and self._term.epoch == epoch:
            logger.warning(
                "controller epoch %d is not the last one, and ZooKeeper knows of no later one: it "
                "has lost its data, or node %s was edited by hand",
                *(epoch, CONTROLLER_EPOCH),
            )
            self._term = self._election.raise_epoch(self._term, 2 * epoch)
            self._controller = None
            self._look()

    # Pushes.

    def _carry_out(self) -> None:
        controller = self._controller
        if controller is None:
            return
        changes = controller.states.take_changes()
        if elected_count := sum(one.is_election for one in changes):
            self.election_count += elected_count
            self.election_stats.record(self._events.age_s)
        for change in changes:
            unclean = "; UNCLEAN: messages may be lost" if change.is_unclean else ""
            self._changes.note(
                LoggedChange(
                    ChangeKind.DECIDED,
                    controller_epoch=controller.epoch,
                    partition=change.partition,
                    leader_epoch=change.state.leader_epoch,
                    leader=change.state.leader,
                    isr=change.state.isr,
                    version=change.version,
                    text=f"{change.reason}{unclean}",
                ),
                level=logging.WARNING if change.is_unclean else logging.INFO,
            )
        live = controller.context.brokers
        topics = controller.context.topics or controller.context.unreadable
        if not topics and all(one.is_clean and not one.has_replicas for one in live.values()):
            # No pushes and no connections without replicated topics. But a broker that may have
            # lost messages is told that this is known, so that it is trusted with new topics, and
            # one with replicas is asked for them.
            return
        pushes = controller.pushes.take()
        for broker_id in self._senders.keys() - live.keys():
            self._senders.pop(broker_id).request_stop()
        for broker_id, push in pushes.items():
            self._sender_to(live[broker_id], controller).send(push)

    def _sender_to(self, broker: LiveBroker, controller: Controller) -> PushSender:
        sender = self._senders.get(broker.id)
        if sender is not None and (sender.broker != broker or sender.controller is not controller):
            sender.request_stop()
            sender = None
        if sender is None:
            stats = self._push_stats.setdefault(
                broker.id, WindowedStats(self._clock, self._stats_period_s)
            )
            sender = self._senders[broker.id] = PushSender(
                broker, controller, self._take_answer, self._clock, stats, self._push_timeout_s
            )
        return sender

    def _take_answer(
        self, controller: Controller, broker_id: int, push: Push, answer: PushAnswer
    ) -> None:
        """Handle a broker's response to a push; called in the sender's thread."""
        if isinstance(answer.error, StaleControllerEpochError):
            self._events.put(partial(self._look_whether_outdated, controller.epoch))
        elif isinstance(answer.error, StaleBrokerEpochError):
            self._events.put(self._read_brokers)
        else:
            if answer.unknown:
                self._events.put(
                    partial(self._note_unknown, controller, broker_id, push, answer.unknown)
                )
            if any(one.deletes_log for one in push.stopped):
                self._events.put(lambda: self._note_delivered(controller, broker_id, push))
            if self._awaited and push.partitions:
                self._events.put(lambda: self._note_topic_pushed(controller, broker_id, push))


def _refusal(job: Callable[[], object]) -> ServerError | None:
    """Return why a job was refused, None if it was done."""
    try:
        job()
    except ServerError as error:
        return error
    return None


def _outcome(partition: TopicPartition, refusal: ServerError | None) -> PartitionOutcome:
    if refusal is None:
        return PartitionOutcome(partition, NO_ERROR, "")
    return PartitionOutcome(partition, refusal.code, str(refusal))
