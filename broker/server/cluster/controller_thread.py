"""This broker's controller: the election, and its work while it is in office.

One thread has one queue of events: watches of ZooKeeper that have fired, requests of brokers and
clients (`controller_requests.py`), responses of brokers. It hands each event to the `Controller`,
and the resulting pushes to one sender for each broker (`push_sender.py`). A broker
that is not the controller sleeps here.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

from broker import errors
from broker.clock import Clock
from broker.cluster_state import LiveBroker, PeerFinding, ReplicatedPartition, UnreadableTopic
from broker.config import BrokerConfig
from broker.controller.context import ControllerSettings
from broker.controller.controller import Controller
from broker.controller.pushes import Push
from broker.controller.states import StateChange
from broker.controller.suspicion import SilentOffice, Suspicion
from broker.ids import NO_CONTROLLER
from broker.server.cluster import live_brokers, peer_watch, push_sender, state_change_log
from broker.state_changes import ChangeKind, LoggedChange
from broker.stats import ELECTION_BOUNDS_S, WindowedStats
from broker.threads import LoopThread
from broker.zk.controller_election import ControllerElection, Term
from broker.zk.paths import CONTROLLER_EPOCH
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics, ReplicatedTopicsStore
from broker.zk.session import SessionState

logger = logging.getLogger(__name__)


class _Creation(NamedTuple):
    future: Future[list[ReplicatedPartition]]
    partitions: list[ReplicatedPartition]
    waiting: set[int]  # the brokers that do not know yet which partitions they lead


class PendingCreations:
    """Creations whose requests have no response; the controller's thread, but for `expect`.

    A client that heard of its topic sooner could produce to a home broker that knows of no
    replicas: it would acknowledge messages that no replica gets.
    """

    def __init__(self) -> None:
        self._expected: set[Future[list[ReplicatedPartition]]] = set()
        self._creations: list[_Creation] = []

    def __bool__(self) -> bool:
        """Return whether a creation waits, or may do so soon; any thread."""
        return bool(self._expected)

    def expect(self, future: Future[list[ReplicatedPartition]]) -> None:
        """Note a creation before its request is carried out; any thread."""
        self._expected.add(future)
        future.add_done_callback(self._expected.discard)

    def add(
        self, future: Future[list[ReplicatedPartition]], partitions: list[ReplicatedPartition]
    ) -> None:
        """Note a creation that was carried out."""
        leaders = {one.state.leader for one in partitions}
        self._creations.append(_Creation(future, partitions, leaders))

    def note_pushed(self, broker_id: int, push: Push) -> None:
        """Note what a broker has been told."""
        told = {one.partition.topic for one in push.partitions}
        for creation in self._creations:
            if creation.partitions[0].partition.topic in told:
                creation.waiting.discard(broker_id)

    def complete(self, live: Collection[int]) -> None:
        """Respond to creations all of whose live leaders know of them."""
        for creation in [one for one in self._creations if not one.waiting.intersection(live)]:
            self._creations.remove(creation)
            creation.future.set_result(creation.partitions)


class ControllerEvents:
    """The events of the controller, with the times at which they came."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._queue: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._arrivals: deque[float] = deque()  # of those that wait, and of those being handled
        self._taken_count = 0
        self._began_s = 0.0

    def put(self, event: Callable[[], None]) -> None:
        """Add an event; callable from any thread."""
        self._arrivals.append(self._clock.monotonic_s())
        self._queue.put(event)

    def get(self, timeout: float | None) -> Callable[[], None]:
        """Return the next event; `queue.Empty` after `timeout` seconds, None waits for ever."""
        try:
            event = self._queue.get(timeout=timeout)
            self._taken_count += 1
        finally:
            self._began_s = self._clock.monotonic_s()
        return event

    def note_done(self) -> None:
        """Note that the events taken since the last call are handled."""
        for _ in range(self._taken_count):
            self._arrivals.popleft()
        self._taken_count = 0

    @property
    def age_s(self) -> float:
        """Return the age of the event being handled, or of work that the thread itself began."""
        since_s = self._arrivals[0] if self._taken_count else self._began_s
        return self._clock.monotonic_s() - since_s

    def empty(self) -> bool:
        """Return whether no event waits."""
        return self._queue.empty()

    @property
    def waiting_count(self) -> int:
        """Return how many events wait; callable from any thread, as `oldest_s` is."""
        return self._queue.qsize()

    @property
    def oldest_s(self) -> float:
        """Return how long the oldest event has waited or been handled; 0 if there is none."""
        try:
            return max(0.0, self._clock.monotonic_s() - self._arrivals[0])
        except IndexError:
            return 0.0


_RETRY_S = 1.0
_REREAD_S = 3.0
"""How often topics that cannot be read are read again."""


@dataclass(eq=False)
class ControllerThread:
    """The controller thread of one broker, in office or not; the broker is registered before."""

    registry: Registry
    topics: ReplicatedTopics
    config: BrokerConfig
    clock: Clock
    # called with the controller's id, or `NO_CONTROLLER`, whenever it may have changed
    on_controller: Callable[[int], None]
    changes: state_change_log.StateChangeLog
    brokers: live_brokers.LiveBrokers
    election_count: int = field(default=0, init=False)  # partitions that got another leader
    # those of them before a session with ZooKeeper ended
    early_election_count: int = field(default=0, init=False)
    # those whose new leader was not in sync
    unclean_election_count: int = field(default=0, init=False)
    fenced_count: int = field(default=0, init=False)  # terms that ended as another broker took it

    def __post_init__(self) -> None:
        config, clock = self.config, self.clock
        self._me = config.broker_id
        self._balance_at_s = self._reread_at_s = 0.0
        self._unreadable = _UnreadableReport()
        self._election = ControllerElection(self.registry.session, self._me)
        self._lock = threading.Lock()  # guards _is_stopped
        self._is_stopped = False
        self._term: Term | None = None
        self._controller_id = NO_CONTROLLER
        self._office = SilentOffice()
        self._creations = PendingCreations()
        self.controller: Controller | None = None
        """None out of office; tests and metrics read it without locks."""
        # annotated, as modules that metrics are declared in are checked before this one
        self.events: ControllerEvents = ControllerEvents(clock)
        self.senders = push_sender.PushSenders(self._take_answer, clock, self.brokers, config)
        self._watches = peer_watch.PeerWatches(
            # that another broker is silent is no evidence if the limit is 0
            peer_watch.Watcher(
                self._me, self.brokers, clock, config.broker_silence_ms / 1000, self._note_found
            )
        )
        self._told: tuple[LiveBroker, ...] = ()  # the live brokers, as a controller told last
        period_s = config.monitoring_period_ms / 1000
        self.election_stats: WindowedStats = WindowedStats(clock, period_s, ELECTION_BOUNDS_S)
        """Events that changed leaders; timed from arrival until the states were written."""
        self._thread = LoopThread(self._run, name="controller")

    def start(self) -> None:
        """Start the thread, which tries to become the controller."""
        self.events.put(self._look)
        self._thread.start()

    def request_stop(self) -> None:
        """Resign, so that another broker can be elected, and have the thread end."""
        with self._lock:
            self._is_stopped = True
        self.events.put(self._leave)

    def join(self) -> None:
        """Wait for the end of the thread; a request to ZooKeeper ends with the session."""
        self._thread.join()

    def note_live(self, brokers: tuple[LiveBroker, ...]) -> None:
        """Note the live brokers, as a controller tells them; callable from any thread."""
        if brokers != self._told:
            self._told = brokers
            self.events.put(self._follow_peers)

    # Requests.

    def submit(self, job: Callable[[Controller], Any], *, is_creation: bool = False) -> Future[Any]:
        """Have the controller do a job; the future fails with a `ServerError`.

        The creation of a topic is done when all leaders of its partitions know that they lead.
        """
        future: Future[Any] = Future()
        if is_creation:
            self._creations.expect(future)
        with self._lock:
            if self._is_stopped:
                future.set_exception(errors.ShuttingDownError("the broker is shutting down"))
            else:  # before the event of the stop
                self.events.put(partial(self._answer, future, job, is_creation=is_creation))
        return future

    def settings_changed(self) -> None:
        """Note that settings of topics may have changed; returns at once."""
        self.events.put(self._read_settings)

    def _answer(
        self, future: Future[Any], job: Callable[[Controller], Any], *, is_creation: bool
    ) -> None:
        try:
            if self.controller is None:
                known = self._controller_id
                who = "no broker is at present" if known == NO_CONTROLLER else f"broker {known} is"
                raise errors.NotControllerError(f"broker {self._me} is not the controller: {who}")
            outcome = job(self.controller)
            self._carry_out()
        except errors.ServerError as error:
            future.set_exception(error)
        except errors.CoordinationError as error:
            self._take_failure(error)
            text = f"whether it was done is not known: {error}"
            future.set_exception(errors.RequestTimedOutError(text))
        except BaseException as error:
            future.set_exception(errors.UnknownServerError(f"the controller failed: {error!r}"))
            raise
        else:
            if is_creation:
                self._creations.add(future, outcome)
                self._complete_creations(self.controller)
            else:
                future.set_result(outcome)

    def _complete_creations(self, controller: Controller | None) -> None:
        """Complete creations whose live leaders all know of them; out of office, all creations."""
        self._creations.complete(() if controller is None else controller.context.brokers)

    # The thread.

    def _run(self) -> None:
        retry_s: float | None = None
        is_told = False  # that it waits for ZooKeeper
        while not (self._is_stopped and self.events.empty()):  # all requests have responses
            try:
                event = self.events.get(timeout=retry_s or self._wait_s())
            except queue.Empty:
                event = self._look if retry_s else self._do_what_is_due
            retry_s = None
            try:
                event()
            except errors.CoordinationError as error:
                if not (self._is_stopped or is_told):
                    logger.warning("the controller's work waits for ZooKeeper: %s", error)
                retry_s, is_told = _RETRY_S, True
            except Exception:  # the thread must not end; it reads the registry again
                logger.exception("the controller failed at an event, and starts again")
                self.controller = None
                retry_s = _RETRY_S
            if retry_s is None:
                is_told = False
                self.events.note_done()

    def _wait_s(self) -> float | None:
        """Return the time until the next periodic work; None if there is none."""
        if (controller := self.controller) is None:
            return None
        due = [self._balance_at_s] if self.config.balances_leaders else []
        due += [self._reread_at_s] if controller.context.unreadable else []
        return max(0.001, min(due) - self.clock.monotonic_s()) if due else None

    def _do_what_is_due(self) -> None:
        now_s = self.clock.monotonic_s()
        if (controller := self.controller) is None:
            return
        if controller.context.unreadable and now_s >= self._reread_at_s:
            self._reread(controller)
        if self.config.balances_leaders and now_s >= self._balance_at_s:
            self._delay_balance()
            most = self.config.max_leader_imbalance
            elect = partial(controller.leadership.balance_leaders, most)
            self._handle(controller, elect)

    def _delay_balance(self) -> None:
        interval_s = self.config.leader_balance_interval_ms / 1000
        self._balance_at_s = self.clock.monotonic_s() + interval_s

    def _reread(self, controller: Controller) -> None:
        """Read all states again once a topic can be read that could not."""
        self._reread_at_s = self.clock.monotonic_s() + _REREAD_S
        names = controller.context.unreadable
        still = self.topics.find(names).unreadable
        if still.keys() == names.keys():
            self._unreadable.note(still)
            return
        logger.info("topics can be read again: reading all states")
        self.controller = None
        self._look()

    def _leave(self) -> None:
        was_in_office = self._term is not None
        self._watches.stop()
        self._end_term()
        if was_in_office and self.registry.state is SessionState.CONNECTED:
            self._election.resign()

    def _look(self, first: Callable[[Controller], object] = lambda _: None) -> None:
        """Find out who the controller is, and become it if there is none.

        `first` is what a new controller does before anyone is told what it has decided.
        """
        if self._is_stopped:
            return
        outcome = self._election.try_to_win(
            lambda: self.events.put(self._look), now_ms=self.clock.time_ms()
        )
        if isinstance(outcome, Term):
            self._take_office(outcome, first)
        else:
            self._end_term()
            self._note_controller(outcome.broker_id)

    def _take_office(self, term: Term, first: Callable[[Controller], object]) -> None:
        if self._term != term:
            self._end_term()
            self.changes.note([LoggedChange(ChangeKind.ELECTED, controller_epoch=term.epoch)])
            self._term = term
        if self.controller is None:
            snapshot = self.topics.snapshot(
                on_brokers=lambda: self.events.put(self._read_brokers),
                on_topics=lambda: self.events.put(self._read_topics),
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
            store = ReplicatedTopicsStore(self.registry.session, term.epoch_version)
            settings = ControllerSettings(
                self.config.min_insync_replicas, self.config.allows_unclean_election
            )
            controller = Controller(self._me, term.epoch, store, settings)

            def begin() -> None:
                controller.load(snapshot)
                first(controller)

            self._guard(begin)
            self.controller = controller
            self._reread_at_s = self.clock.monotonic_s() + _REREAD_S
            self._unreadable.note(controller.context.unreadable)
            self._delay_balance()
            self._carry_out()
        self._note_controller(self._me)

    def _end_term(self) -> None:
        if self._term is not None:
            epoch = self._term.epoch
            self.changes.note([LoggedChange(ChangeKind.RESIGNED, controller_epoch=epoch)])
        self._term = self.controller = None
        self._complete_creations(None)
        self.senders.stop()

    def _note_controller(self, broker_id: int) -> None:
        self._controller_id = broker_id
        self._office.note(broker_id, self.clock.monotonic_s())
        self.on_controller(broker_id)
        self._follow_peers()

    def _handle(self, controller: Controller, event: Callable[[], None]) -> None:
        """Have a controller handle an event, unless another one has taken its place."""
        if self.controller is controller:
            self._guard(event)
            self._carry_out()

    def _guard(self, job: Callable[[], None]) -> None:
        """Run a job that writes to the registry; a failure ends the term or reloads the states."""
        try:
            job()
        except errors.CoordinationError as error:
            self._take_failure(error)
            raise

    def _take_failure(self, error: errors.CoordinationError) -> None:
        """Forget the known states, as the registry may have others; look again."""
        if self.controller is not None:
            logger.warning("the controller reads all states again: %s", error)
        self.controller = None
        if isinstance(error, errors.ControllerFencedError):
            self.fenced_count += 1
            self._end_term()
        self.events.put(self._look)

    def _read_brokers(self) -> None:
        if (controller := self.controller) is not None:
            brokers = self.topics.brokers(lambda: self.events.put(self._read_brokers))
            self._handle(controller, lambda: controller.brokers_changed(brokers))
            self._complete_creations(controller)

    def _read_topics(self) -> None:
        """Read the list of topics; one that this controller has not created means a new start."""
        if (controller := self.controller) is not None:
            names = self.topics.topics(lambda: self.events.put(self._read_topics))
            if set(names) != {*controller.context.topics, *controller.context.unreadable}:
                logger.warning("topics were created or deleted by hand: reading all states again")
                self.controller = None
                self._look()

    def _read_settings(self) -> None:
        if (controller := self.controller) is not None and controller.context.topics:
            settings = self.topics.settings(controller.context.topics)
            self._handle(controller, lambda: controller.settings_changed(settings))

    def _look_whether_outdated(self, epoch: int) -> None:
        """Find out why a broker knows of a later controller: ZooKeeper may have lost its epochs."""
        self._look()
        if self._term is not None and self._term.epoch == epoch:
            logger.warning(
                "controller epoch %(controller_epoch)d is not the last one, and ZooKeeper knows of "
                "no later one: it has lost its data, or node %(node)s was edited by hand",
                {"controller_epoch": epoch, "node": CONTROLLER_EPOCH},
            )
            self._term = self._election.raise_epoch(self._term, 2 * epoch)
            self.controller = None
            self._look()

    # Brokers that die.

    def _follow_peers(self) -> None:
        """Watch all brokers that are told of states, or else the controller that tells them."""
        if self._is_stopped:
            return
        if (controller := self.controller) is not None:
            live = tuple(controller.context.brokers.values())
            self._watches.follow(live if self._tells_brokers(controller) else (), live)
        elif self._term is None:
            office = [one for one in self._told if one.id == self._controller_id]
            self._watches.follow(office, self._told)

    def _note_found(self, peer: LiveBroker, suspicion: Suspicion) -> None:
        """Note whether a broker is taken for dead; called in the watch's thread."""
        evidence, is_missed = suspicion.evidence, suspicion.is_missed
        is_news = bool(evidence)
        if (controller := self.controller) is not None:
            context = controller.context
            known = peer.id in context.suspected, peer.id in context.missed
            is_news = (is_news, is_missed) != known
        if is_news:
            self.events.put(partial(self._take_found, peer, evidence, suspicion.own, is_missed))

    def _take_found(
        self, peer: LiveBroker, evidence: str, finding: PeerFinding, is_missed: bool
    ) -> None:
        if (controller := self.controller) is not None:
            controller.note_reach(peer.id, peer.epoch, is_missed=is_missed)
            before = self.election_count
            if evidence:
                self._handle(controller, partial(controller.suspect, peer.id, peer.epoch, evidence))
                self.early_election_count += self.election_count - before
            else:
                self._handle(controller, partial(controller.trust, peer.id, peer.epoch))
        elif evidence and self._term is None and peer.id == self._controller_id:
            if self._is_stopped or not self._office.can_be_taken(finding, self.clock.monotonic_s()):
                return
            logger.warning(
                "controller %(peer)d is taken for dead: %(evidence)s",
                {"peer": peer.id, "evidence": evidence},
            )
            before = self.election_count
            self._election.take_over(peer.id, peer.epoch, now_ms=self.clock.time_ms())
            self._look(lambda new: new.suspect(peer.id, peer.epoch, evidence))
            self.early_election_count += self.election_count - before

    # Pushes.

    def _carry_out(self) -> None:
        controller = self.controller
        if controller is None:
            return
        changes = controller.states.take_changes()
        if elected_count := sum(one.is_election for one in changes):
            self.election_count += elected_count
            self.election_stats.record(self.events.age_s)
        self.unclean_election_count += sum(one.is_unclean for one in changes)
        if self._tells_brokers(controller):
            self.senders.send(controller)
        for is_unclean, some in groupby(changes, key=lambda one: one.is_unclean):
            level = logging.WARNING if is_unclean else logging.INFO
            self.changes.note((_logged(one, controller.epoch) for one in some), level=level)
        self._follow_peers()

    def _tells_brokers(self, controller: Controller) -> bool:
        """Return whether brokers are told of states: not without replicated topics.

        But a broker that may have lost messages is told that this is known, so that it is trusted
        with new topics, and one with replicas is asked for them.
        """
        context = controller.context
        return bool(
            context.topics
            or context.unreadable
            or any(one.has_replicas or not one.is_clean for one in context.brokers.values())
        )

    def _take_answer(
        self, controller: Controller, broker_id: int, push: Push, answer: push_sender.PushAnswer
    ) -> None:
        """Handle a broker's response to a push; called in the sender's thread."""

        def then(event: Callable[[], None]) -> None:
            self.events.put(partial(self._handle, controller, event))

        if isinstance(answer.error, errors.StaleControllerEpochError):
            self.events.put(partial(self._look_whether_outdated, controller.epoch))
        elif isinstance(answer.error, errors.StaleBrokerEpochError):
            self.events.put(self._read_brokers)
        else:
            if answer.unknown:
                told = controller.told_unknown
                then(partial(told, broker_id, push.broker_epoch, answer.unknown))
            if any(one.deletes_log for one in push.stopped):
                then(partial(controller.deletions.delivered, broker_id, push))
            if self._creations and push.partitions:
                self.events.put(partial(self._note_topic_pushed, controller, broker_id, push))

    def _note_topic_pushed(self, controller: Controller, broker_id: int, push: Push) -> None:
        self._creations.note_pushed(broker_id, push)
        self._complete_creations(controller)


class _UnreadableReport:
    """Logs which topics cannot be read, once for each reason, and which can be again."""

    def __init__(self) -> None:
        self._reasons: dict[str, str] = {}

    def note(self, topics: Mapping[str, UnreadableTopic]) -> None:
        """Log what has changed since the last call."""
        reasons = {topic: one.reason for topic, one in topics.items()}
        for topic, reason in reasons.items():
            if self._reasons.get(topic) != reason:
                logger.error(
                    "topic '%(topic)s' cannot be read: %(reason)s. Its brokers go on as they "
                    "are, without elections. Write the node again, or delete the topic with "
                    "`pylogctl topic delete %(topic)s --data` (docs/operations/cluster.md, "
                    "Damaged nodes)",
                    {"topic": topic, "reason": reason},
                )
        for topic in self._reasons.keys() - reasons.keys():
            logger.info("topic '%(topic)s' can be read again, or is gone", {"topic": topic})
        self._reasons = reasons


def _logged(change: StateChange, controller_epoch: int) -> LoggedChange:
    unclean = "; UNCLEAN: messages may be lost" if change.is_unclean else ""
    return LoggedChange(
        ChangeKind.DECIDED,
        controller_epoch=controller_epoch,
        partition=change.partition,
        leader_epoch=change.state.leader_epoch,
        leader=change.state.leader,
        isr=change.state.isr,
        version=change.version,
        text=f"{change.reason}{unclean}",
    )
