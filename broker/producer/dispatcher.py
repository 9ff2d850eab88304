"""Sends message sets to the leaders of their partitions, again until they are acknowledged.

Each partition has a `Route`. While nothing fails, its sets are sent at once to the broker that
leads it. When a set comes back, as that broker is gone, does not lead any more or cannot take it
now, the route is broken: the responses to the sets behind it are awaited, and all are sent again in
order once the present leader has taken the first. Other partitions are not affected. A set behind
one that came back can have been stored before it; it is still completed after it.

A partition with replicas waits for its next leader. Without replicas, sets that may move go to
another partition when their broker is gone, together and in order.
"""

from __future__ import annotations

import logging
import math
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from operator import itemgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from broker import deadlines, errors
from broker.client.cluster import BRIEFLY_S
from broker.producer.broker_connection import BrokerConnection
from broker.producer.broker_sender import (
    MAX_IN_FLIGHT_BYTES,
    BrokerSender,
    BrokerSenders,
    PendingSet,
)
from broker.producer.parts import Parts
from broker.producer.records import Sequences, numbered
from broker.producer.route import Route, Routes
from broker.producer.written_ends import Barrier, WrittenEnds
from broker.protocol.client_requests import Acks
from broker.protocol.message import ProducerStamp
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

# how often responses are read while sets are sent: once for each set would cost a system call each
_RECEIVE_INTERVAL_S = 0.01
_SLICE_S = 0.2  # the wait for a broker between two calls of `on_wait`
_SILENT_S = 3.0  # after this time without a response, `on_wait` is called


class Waiting(NamedTuple):
    """The partitions whose messages wait for a broker, the longest wait first."""

    partitions: Sequence[TopicPartition]
    error: errors.BrokerError  # of the first one
    seconds: float  # since it came
    limit_s: float  # after this time they fail


class Moved(NamedTuple):
    """Sets that go to another partition, as the broker of theirs is gone."""

    source: TopicPartition
    target: TopicPartition
    sets: Sequence[PendingSet]
    error: errors.BrokerError


# called repeatedly while messages wait for a broker; returns whether to continue waiting
OnWait = Callable[[Waiting], bool]


class Question(NamedTuple):
    """What the cluster is asked before sets are sent again."""

    routes: Sequence[Route]  # that wait for the answer
    topics: set[str]  # whose leaders may have changed
    sources: Sequence[TopicPartition]  # whose sets may move to another partition


_Set = TypeVar("_Set", bound=PendingSet)

MakeSender = Callable[["Dispatcher", int], BrokerSender]


def _make_sender(dispatcher: Dispatcher, broker_id: int) -> BrokerSender:
    connection = BrokerConnection(dispatcher.parts, broker_id)
    return BrokerSender(connection, dispatcher, dispatcher.counts)


class Dispatcher:
    """Sends sets, and completes them, as the `Results` of its senders; for one thread at a time.

    `step`, `drain`, `flush` and what is built on them wait for brokers. An event loop calls what
    never waits: `offer`, `receive_ready`, `due`, `resend`, `leave_silent`, `fail_all`; and in a
    thread `ask` and `ask_leaders`.

    `make_sender` makes the one to a broker, with the counts of this object, which go into the
    ledger of the parts.
    """

    def __init__(self, parts: Parts, make_sender: MakeSender = _make_sender) -> None:
        self.counts = parts.ledger.open()
        self.on_wait: OnWait = lambda _waiting: True
        self.on_move: Callable[[Moved], object] = _log_move  # called when sets move
        self.parts: Parts = parts
        self._cluster = parts.cluster
        self._settings = parts.settings
        self._senders = BrokerSenders(partial(make_sender, self))
        self.routes = Routes(parts.settings.backoff_s, is_idempotent=parts.settings.is_idempotent)
        self._sequences = Sequences()
        self._numbers_07 = parts.settings.is_idempotent
        self._unsent = self.routes.unsent
        self.written = WrittenEnds(parts.cluster, parts.connect)
        self._receive_due_s = 0.0
        self._look_s = 0.0  # when the leaders of silent brokers' partitions are requested again
        self._failure: errors.BrokerError | None = None
        self._wake = threading.Event()

    @property
    def is_idle(self) -> bool:
        """Return whether all sets are completed."""
        return not self._unsent and not self._senders.busy

    @property
    def topics(self) -> set[str]:
        """Return the topics that brokers have taken messages for."""
        sent_to = {partition.topic for partition in self.routes}
        return {one for one in sent_to if self.counts.of(one).size_bytes}

    def message_limit(self, partition: TopicPartition) -> int:
        """Return the largest payload that the leader of a partition takes; 0 if it is not known.

        Of a leader that cannot be reached it is taken to be that of other brokers.
        """
        try:
            if limit := self._senders[self._cluster.leader_id(partition)].message_limit():
                return limit
            found = [one.message_limit() for one in self._senders.values()]
            if not any(found):
                found = [self._senders[one.id].message_limit() for one in self._cluster.brokers()]
            return min(filter(None, found), default=0)
        except errors.BrokerError:
            return 0

    def take_failure(self) -> errors.BrokerError | None:
        """Return the first error since the last call for which sets were given up, or lost."""
        failure, self._failure = self._failure, None
        if failure is self.written.loss:
            self.written.loss = None
        return failure

    # Sending.

    def send(self, one: PendingSet) -> None:
        """Send a set, or queue it behind others of its partition; wait only for room."""
        # a set that cannot be delivered is completed with its error, which `take_failure` returns
        partition = one.partition
        route = self.routes[partition]
        sender = None
        if partition not in self._unsent:
            sender = route.sender or self._find_sender(route)
            while not (sender.has_room(len(one.message_set)) and route.has_room()):
                self._await_responses()
        if sender is not None and partition not in self._unsent:
            self._transmit(sender, (one,))
        else:
            route.waiting.append(one)
            while partition in self._unsent and (
                len(route.waiting) > self._settings.max_in_flight
                or sum(len(each.message_set) for each in route.waiting) > MAX_IN_FLIGHT_BYTES
            ):
                self.step()
        if self._unsent or time.monotonic() >= self._receive_due_s:
            self.poll()

    def encode(self, one: _Set, encode: Callable[[_Set], object]) -> bool:
        """Encode a set; if that fails, complete the set with the error and return False."""
        try:
            encode(one)
        except Exception as error:  # of an encoder or callback, or a codec is not installed
            logger.exception("failure over messages to %s", one.partition)
            self.fail(one, errors.BrokerError(f"failure while sending: {error!r}"))
            return False
        return True

    def offer(self, sets: Iterable[PendingSet]) -> None:
        """Send sets of different partitions, with one request to each broker, without waiting.

        Those without room wait for `resend`.
        """
        for sender, some in self._by_sender(sets).items():
            if sender.has_room(sum(len(one.message_set) for one in some)):
                self._transmit(sender, some)
                continue
            for one in some:
                route = self.routes[one.partition]
                route.waiting.append(one)
                self._unsent[one.partition] = route

    def _by_sender(self, sets: Iterable[PendingSet]) -> dict[BrokerSender, list[PendingSet]]:
        """Return the sets that can be sent by their senders, and queue those behind others."""
        found: dict[BrokerSender, list[PendingSet]] = {}
        for one in sets:
            route = self.routes[one.partition]
            if one.partition in self._unsent:
                route.waiting.append(one)
            else:
                sender = route.sender or self._find_sender(route)
                found.setdefault(sender, []).append(one)
        return found

    def _find_sender(self, route: Route) -> BrokerSender:
        route.sender = sender = self._senders[self._cluster.leader_id(route.partition)]
        return sender

    def _transmit(self, sender: BrokerSender, sets: Sequence[PendingSet]) -> None:
        for one in sets:
            self.routes[one.partition].in_flight += 1
            if not one.is_numbered or (self._numbers_07 and one.stamp is None):
                self._number(one)
        acks = Acks.COMMITTED if isinstance(sets[0], Barrier) else self._settings.acks
        try:
            sender.send(sets, acks)
        except errors.BrokerError as error:
            self._lose(sender, error)

    def _number(self, one: PendingSet) -> None:
        """Give a set its producer id and sequence, as far as it can have them."""
        count = one.message_count
        if one.partition.has_records:
            if count and not one.is_numbered:
                numbers = self._sequences.take(one.partition, count)
                one.message_set = numbered(one.message_set, *numbers)
        elif count and one.message_set:
            producer_id, sequence = self._sequences.take(one.partition, count)
            one.stamp = ProducerStamp(producer_id, 0, sequence, count)
        one.is_numbered = True

    # Responses.

    def poll(self) -> None:
        """Read the responses that have come, and send again sets that are due, without waiting."""
        self._receive_due_s = time.monotonic() + _RECEIVE_INTERVAL_S
        self.receive_ready()
        if self._unsent:
            self.retry_due()
            self._ask_whether_to_wait(time.monotonic())
        if self.written.has_new_term:
            # at once: a broker knows the end of one term before a crash only
            self._find_loss()

    def receive_ready(self) -> None:
        """Read the responses that have come, without waiting."""
        for sender in list(self._senders.values()):  # a callback may send to another broker
            try:
                sender.receive_ready()
            except errors.BrokerError as failure:
                self._lose(sender, failure)

    def acknowledged(self, one: PendingSet, acks: Acks, base_offset: int, term: int) -> None:
        """Complete a set that a broker has appended, after those before it."""
        partition = one.partition
        route = self.routes[partition]
        route.in_flight -= 1
        if route.unknown:
            route.unknown.pop(one, None)
        if isinstance(one, Barrier):
            one.term = term
        else:
            size_bytes = len(one.message_set)
            self.written.note(partition, acks, term, base_offset + one.offset_span)
            counts = self.counts.of(partition.topic)
            counts.messages += one.message_count
            counts.size_bytes += size_bytes
        if route.returned:
            route.return_stored(one, base_offset)
            self.routes.plan_retry(route)
            return
        one.complete(base_offset, None)
        self.routes.mend(route)

    def refused(self, one: PendingSet, error: errors.ServerError) -> None:
        """Return or fail a set that a broker did not append, or not safely."""
        route = self.routes[one.partition]
        route.in_flight -= 1
        if error.is_retriable:
            if isinstance(error, errors.NotLeaderError):
                self._cluster.note_leader(one.partition, error.leader)
            unsure = errors.RequestTimedOutError | errors.NotEnoughReplicasAfterAppendError
            self._return(route, one, error, may_be_stored=isinstance(error, unsure))
            return
        # a set that may be stored fails: a broker that was started again knows only the last batch
        # before a snapshot, and would store under another id what it has
        is_unsure = one in route.unknown and not route.returned
        if isinstance(error, errors.OutOfOrderSequenceError) and not is_unsure:
            if not route.returned:  # else those before it are sent again, and then it is in order
                route.renumbers = True
                self._sequences.renew(one.partition)
            self._return(route, one, error, may_be_stored=False)
            return
        one.complete(-1, route.final_error(one, error))
        self._note_failed(one)  # not those that the owner has taken out, to send them again
        if route.returned:
            self.routes.plan_retry(route)
        else:
            self.routes.mend(route)

    def _lose(self, sender: BrokerSender, error: errors.BrokerError) -> None:
        """Take back the sets in flight on a lost connection."""
        sets, error = sender.take_back(error)
        is_stop = isinstance(error, errors.BrokerStoppedError)
        is_cut = not is_stop and self._senders.is_aborted  # by this end
        if is_stop:
            self.written.note_stopped(
                {one.partition for one in self.routes.values() if one.sender is sender}
            )
        elif is_cut:
            error = errors.ProducerClosedError("the producer was closed")
        for one, may_be_stored in sets.items():
            route = self.routes[one.partition]
            route.in_flight -= 1
            if (
                is_stop
                and isinstance(one, Barrier)
                and one.partition not in self.written.partitions
            ):
                one.complete(-1, None)  # all before it is safe
            elif error.is_retriable:
                self._return(route, one, error, may_be_stored=may_be_stored)
            else:
                self.fail(one, (is_cut and route.error) or error)
        if not error.is_retriable:
            for route in {self.routes[one.partition] for one in sets}:
                self._give_up(route, (is_cut and route.error) or error)

    def _return(
        self, route: Route, one: PendingSet, error: errors.BrokerError, *, may_be_stored: bool
    ) -> None:
        self.counts.of(one.partition.topic).retries += one.message_count
        self.routes.return_set(route, one, error, may_be_stored=may_be_stored)

    # Sending again.

    def retry_now(self) -> None:
        """Make waiting sets due at once, as the cluster has changed; from any thread."""
        for route in list(self._unsent.values()):
            route.retry_s, route.is_asked = 0.0, False
        self._senders.retry_now()
        self._wake.set()

    def retry_due(self) -> None:
        """Send sets that are due again, and give up those that have waited for too long."""
        ready, question = self.due()
        if question is None:
            self.resend(ready)
        else:
            self.resend([*ready, *question.routes], self.ask(question))

    def due(self) -> tuple[list[Route], Question | None]:
        """Return the routes to send on again now, and those that wait for an answer before it.

        The same is not asked again before the next attempt has failed.
        """
        now_s = time.monotonic()
        ready: list[Route] = []
        asking: list[Route] = []
        for one in self._unsent.values():
            if one.is_due(now_s):
                is_open = one.is_asked or not (one.wants_leader() or self._may_move(one))
                (ready if is_open else asking).append(one)
                one.is_asked = True
        if not asking:
            return ready, None
        topics = {one.partition.topic for one in asking if one.wants_leader()}
        sources = [one.partition for one in asking if self._may_move(one)]
        return ready, Question(asking, topics, sources)

    def _may_move(self, route: Route) -> bool:
        return self._settings.moves and route.lacks_broker() and bool(route.movable())

    def ask(self, question: Question) -> dict[TopicPartition, TopicPartition]:
        """Request leaders, and return where sets may move to; it uses no state of this object."""
        targets: dict[TopicPartition, TopicPartition] = {}
        if question.topics:
            with _retriable_ignored():
                self._cluster.find_leaders(question.topics)
        for source in question.sources:
            with _retriable_ignored():
                if not self._cluster.has_replicas(source):
                    leader_id = self._cluster.leader_id(source)
                    target = self.parts.partitions.replacement(source.topic, leader_id)
                    if target not in (None, source):
                        targets[source] = target
        return targets

    def resend(
        self,
        routes: Iterable[Route],
        targets: Mapping[TopicPartition, TopicPartition] = MappingProxyType({}),
    ) -> None:
        """Send on routes that are due, or give up their sets, or move them to the targets."""
        now_s = time.monotonic()
        for route in routes:
            error, target = route.error, targets.get(route.partition)
            if error is not None and route.is_over(self._settings, now_s):
                self._give_up(route, error)
                continue
            if error is not None and target is not None:
                self._move(route, error, target)
            self._send_waiting(route)

    def _send_waiting(self, route: Route) -> None:
        """Send the sets that wait for a partition; only the first one while the route is broken."""
        while route.waiting and not route.returned:
            one = route.waiting[0]
            if one in route.stored:
                return  # it is completed after the sets in flight
            sender = route.sender or self._find_sender(route)
            if not (sender.has_room(len(one.message_set)) and route.has_room()):
                return  # a response makes room
            route.waiting.popleft()
            self._transmit(sender, (one,))
            if route.error is not None:
                return
            if not route.in_flight:
                route.take_stored()
        if not route.waiting and not route.returned:
            self._unsent.pop(route.partition, None)

    def _give_up(self, route: Route, error: errors.BrokerError) -> None:
        """Fail all sets of a partition: none of them may be stored without those before it."""
        self._unsent.pop(route.partition, None)
        route.requeue()
        sets, stored = route.waiting, route.stored
        route.waiting, route.stored = deque(), {}
        route.mend()
        for one in sets:
            if one in stored:
                one.complete(stored[one], None)
            else:
                self.fail(one, route.final_error(one, error))

    def fail(self, one: PendingSet, error: errors.BrokerError) -> None:
        """Complete a set with the error for which it is given up."""
        self._failure = self._failure or error
        self._note_failed(one)
        one.complete(-1, error, is_raised=True)

    def _note_failed(self, one: PendingSet) -> None:
        """Count the messages of a set that could not be delivered."""
        self.counts.of(one.partition.topic).errors += one.message_count
        if self.routes[one.partition].is_empty:  # else the broker finds those behind out of order
            self._sequences.renew(one.partition)

    def _move(self, route: Route, error: errors.BrokerError, target: TopicPartition) -> None:
        """Move the sets that may move to another partition."""
        moving = route.movable()
        source = route.partition
        self.on_move(Moved(source, target, moving, error))
        gone = set(moving)
        route.waiting = deque(one for one in route.waiting if one not in gone)
        if not route.waiting:
            self._unsent.pop(source, None)
            route.mend()
        other = self.routes[target]
        for one in moving:
            one.partition = target
            other.waiting.append(one)
        self._unsent.setdefault(target, other)
        if other.error is None:
            self._send_waiting(other)

    # Waiting.

    def step(self) -> None:
        """Send again the sets that are due, or wait for responses or the next attempt."""
        if self._unsent:
            self.retry_due()
        due_s = self.routes.next_retry_s(counts_begun=False)
        limit_s = math.inf if due_s is None else max(0.0, due_s - time.monotonic())
        if self._senders.busy:
            self._await_responses(min(limit_s, _SLICE_S))
            return
        self._ask_whether_to_wait(time.monotonic())
        if self._unsent:
            self._wake.wait(min(limit_s, _SLICE_S))
            self._wake.clear()

    def silent_topics(self, now_s: float) -> set[str]:
        """Return the topics whose leaders are silent and to be asked for, by `ask_leaders`."""
        silent = [one for one in self._senders.values() if one.is_silent(BRIEFLY_S)]
        if not silent or now_s < self._look_s:
            return set()
        return {one.topic for each in silent for one in each.partitions}

    def ask_leaders(self, topics: Iterable[str]) -> None:
        """Request the leaders of topics; it uses no state of this object."""
        # `on_wait` is called in time also if the only broker to ask is the silent one
        with _retriable_ignored(), deadlines.Limit(_SILENT_S - BRIEFLY_S):
            self._cluster.find_leaders(topics)

    def leave_silent(self) -> None:
        """Lose brokers that are silent while others lead their partitions, by `ask_leaders`."""
        self._look_s = time.monotonic() + BRIEFLY_S
        for sender in list(self._senders.values()):
            if sender.is_silent(BRIEFLY_S):
                leaders = {self._cluster.leader_id(one) for one in sender.partitions}
                if leaders - {sender.connection.broker_id}:
                    self._lose(sender, sender.silence(BRIEFLY_S))

    def lose_silent(self) -> None:
        """Lose brokers that have not responded in the time that a response may take."""
        timeout_s = self._settings.timeout_s
        for sender in self._senders.busy:
            if sender.is_silent(timeout_s):
                self._lose(sender, sender.silence(timeout_s))

    def silence_s(self) -> float:
        """Return when brokers may be silent next; infinite if no response is awaited."""
        heard_s = min([one.heard_s for one in self._senders.busy], default=math.inf)
        look_s = max(heard_s + BRIEFLY_S, self._look_s)
        return min(look_s, heard_s + self._settings.timeout_s)

    def _ask_whether_to_wait(self, now_s: float) -> None:
        self.lose_silent()
        if topics := self.silent_topics(now_s):
            self.ask_leaders(topics)
            self.leave_silent()
        waits: list[tuple[float, errors.BrokerError, Sequence[TopicPartition]]] = []
        for sender in self._senders.values():
            if sender.is_silent(_SILENT_S):
                waits.append((sender.heard_s, sender.silence(_SILENT_S), sender.partitions))
        for route in self._unsent.values():
            if route.error is not None:
                waits.append((route.since_s, route.error, [route.partition]))
        if not waits:
            return
        waits.sort(key=itemgetter(0))
        since_s, first, _ = waits[0]
        partitions = list(dict.fromkeys(one for *_, some in waits for one in some))
        limit_s = self._settings.delivery_timeout_s
        if self.on_wait(Waiting(partitions, first, now_s - since_s, limit_s)):
            return
        for partition in partitions:
            route = self.routes[partition]
            if route.in_flight and route.sender is not None:
                self._lose(route.sender, route.error or first)
            if route.error is not None:  # else its set was among those of a sender that is lost now
                self._give_up(route, route.error)

    def _await_responses(self, limit_s: float = _SLICE_S) -> None:
        """Wait for responses, at most `limit_s`; lose brokers that are silent for too long."""
        if len(self._senders.busy) > 1 or self._unsent:
            self._ask_whether_to_wait(time.monotonic())
        ready = _with_response(self._senders.busy, limit_s)
        for sender in ready:
            try:
                if not sender.is_idle:
                    sender.receive()
            except errors.BrokerError as error:
                self._lose(sender, error)
        if not ready:
            self._ask_whether_to_wait(time.monotonic())

    def drain(self) -> None:
        """Wait for all responses; sets that come back wait for `retry_due`."""
        while self._senders.busy:
            self._await_responses()
            if any(one.error is None for one in self._unsent.values()):
                self.retry_due()
        self._find_loss()

    def flush(self) -> None:
        """Wait until all sets are completed."""
        while not self.is_idle:
            self.step()
        self._find_loss()

    # What is written and not committed.

    def await_readable(self) -> None:
        """Wait until consumers can read all that was sent; `AcknowledgedLossError` if it is lost.

        Acknowledged sets of a partition without replicas whose broker was stopped since are
        flushed, and are not waited for: consumers can read them as soon as the broker is back.
        """
        self.flush()
        barriers = self.send_barriers(self.written.partitions)
        limit_s = min(self._settings.delivery_timeout_s, self._settings.timeout_s)
        self.written.prove(barriers, limit_s)
        for sender in self._senders.values():
            sender.await_grown()

    def _find_loss(self) -> None:
        """Check with the leaders of partitions with a new term that acknowledged sets are there."""
        loss = self.written.find_loss()
        self._failure = self._failure or loss

    def send_barriers(self, partitions: Iterable[TopicPartition]) -> list[Barrier]:
        """Send barriers to partitions, and wait until they are completed, each with its error."""
        barriers = [Barrier(one) for one in partitions]
        for barrier in barriers:
            self.send(barrier)
        self.flush()
        self._failure = None
        return barriers

    def hand_over(self, other: Dispatcher) -> None:
        """Make a new dispatcher wait until the sets of this one can be read."""
        other.written, self.written = self.written, other.written
        for broker_id, sender in self._senders.items():
            if sender.ends_07:
                other._senders[broker_id].ends_07 = dict(sender.ends_07)

    # The end of all.

    def fail_all(self, error: errors.BrokerError) -> None:
        """Complete all sets with an error; those that wait to be sent again, with their own."""
        for sender in list(self._senders.values()):
            sets, _ = sender.take_back(error)
            for one in sets:
                self.routes[one.partition].in_flight -= 1
                self.fail(one, error)
        for route in list(self._unsent.values()):
            self._give_up(route, route.error or error)

    def abort(self) -> None:
        """Make requests under way, and all later ones, fail at once; from any thread."""
        self._senders.abort()
        self._wake.set()

    def close(self) -> None:
        """Close all connections, without completing sets."""
        for sender in self._senders.values():
            sender.close()
        self._senders.clear()
        self.routes.clear()
        self._unsent.clear()
        self.parts.ledger.end(self.counts)


def _with_response(busy: Sequence[BrokerSender], limit_s: float) -> list[BrokerSender]:
    """Return the senders that have a response within `limit_s`, without waiting for others."""
    if len(busy) < 2:
        return [one for one in busy if one.has_response(limit_s)]
    if ready := [one for one in busy if one.has_response(0.0)]:
        return ready
    poll = select.poll()
    by_fd = {one.connection.current.fileno(): one for one in busy}
    for fd in by_fd:
        poll.register(fd, select.POLLIN)
    return [by_fd[fd] for fd, _ in poll.poll(limit_s * 1000)]


@contextmanager
def _retriable_ignored() -> Iterator[None]:
    try:
        yield
    except errors.BrokerError as failure:
        if not failure.is_retriable:
            raise


def _log_move(moved: Moved) -> None:
    logger.info(
        "%d message sets move from %s to %s: %s",
        *(len(moved.sets), moved.source, moved.target, moved.error),
    )
