"""Drives the engine of producers from an event loop: takes batches, sends them, reads responses.

The engine is the `Dispatcher` of the producers for threads. Everything happens in `_turn`, which
never waits and is called after something has happened: messages were queued, responses have come, a
broker is connected to, a time has come. What asks the cluster runs in threads meanwhile.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from broker import errors
from broker.aio.sending import LoopBroker, LoopConnection, LoopSender
from broker.producer import unclosed
from broker.producer.accumulator import Accumulator, Batch, OutgoingSet
from broker.producer.delivery import Handle
from broker.producer.dispatcher import Dispatcher, Question
from broker.producer.parts import Parts
from broker.producer.route import Route
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_POLL_S = 0.02

InThread = Callable[..., Coroutine[Any, Any, Any]]
"""Runs a function with arguments in a thread, and returns its result."""


class _Ticket(NamedTuple):
    """A call that waits for room, and for how many messages and bytes."""

    is_next: asyncio.Future[None]
    message_count: int
    size_bytes: int


@dataclass(eq=False, slots=True)
class Lane:
    """The messages queued for the partitions of one home broker, and the calls that wait."""

    home: int
    accumulator: Accumulator
    tickets: deque[_Ticket] = field(default_factory=deque)

    def has_room(self, message_count: int, size_bytes: int) -> bool:
        """Return whether messages may be added now, before those of calls that wait."""
        return not self.tickets and self.accumulator.has_room(message_count, size_bytes)

    def call_next(self) -> None:
        """Wake the call that has waited longest, if there is room for its messages."""
        if self.tickets:
            first = self.tickets[0]
            has_room = self.accumulator.has_room(first.message_count, first.size_bytes)
            if has_room and not first.is_next.done():
                first.is_next.set_result(None)


class SendLoop:
    """Queues messages and sends them, for the tasks of one event loop.

    If it is not ended when its loop
    ends, it first sends what is queued, in `unclosed.LIMIT_S`; `on_end` is called at the end.
    """

    def __init__(
        self, parts: Parts, in_thread: InThread, on_end: Callable[[SendLoop], object]
    ) -> None:
        assert parts.settings.queueing is not None
        self._rules = parts.settings.queueing
        self._parts = parts
        self._in_thread = in_thread
        self.loop = asyncio.get_running_loop()
        self._lanes: dict[int, Lane] = {}
        self._brokers: list[LoopBroker] = []
        self._dispatcher = Dispatcher(parts, self._make_sender)
        self._is_woken = False  # a turn is due
        self._timer: asyncio.TimerHandle | None = None
        # the next look for brokers that hang, or the one under way
        self._silence: asyncio.TimerHandle | asyncio.Task[None] | None = None
        self._is_draining = False  # nothing lingers
        self._is_finishing = False  # it ends once nothing is queued
        self.is_ended = False
        self._changes: list[asyncio.Future[None]] = []  # are done after the next turn
        self._tasks: set[asyncio.Task[None]] = set()
        # routes whose leaders are being asked for, and those with an answer
        self._asking: set[Route] = set()
        self._answers: list[tuple[Question, Mapping[TopicPartition, TopicPartition]]] = []
        self._renewing: set[str] = set()  # topics whose partitions are being read again
        self._looking: asyncio.Task[None] | None = None  # for what is left of former terms
        self._loss: errors.AcknowledgedLossError | None = None
        self.take_failure = parts.failures.take
        self._on_end = on_end
        # `asyncio.run` closes generators before the loop, and waits for that
        self._guard = self._finish_with_loop()
        _advance(self._guard.asend(None))
        unclosed.watch(self)

    def _make_sender(self, dispatcher: Dispatcher, broker_id: int) -> LoopSender:
        broker = LoopBroker(dispatcher.parts, broker_id, self.wake)
        self._brokers.append(broker)
        return LoopSender(broker, dispatcher, dispatcher.counts)

    @property
    def _connections(self) -> list[LoopConnection]:
        """Return the connections that were made."""
        return [one.in_loop for one in self._brokers if one.in_loop is not None]

    # Queueing.

    def lane(self, home: int) -> Lane:
        """Return the queue for a home broker."""
        lane = self._lanes.get(home)
        if lane is None:
            accumulator = Accumulator(
                self._rules.batches,
                partial(self._end_set, home),
                self._dispatcher.counts,
                self._parts.settings.max_message_bytes,
            )
            lane = self._lanes[home] = Lane(home, accumulator)
        return lane

    def put(
        self, lane: Lane, partition: TopicPartition, payloads: list[bytes], delivery: Handle
    ) -> None:
        """Queue messages, with room or without."""
        if lane.accumulator.add(partition, payloads, delivery, time.monotonic()):
            self.wake()

    async def wait_for_room(self, lane: Lane, message_count: int, size_bytes: int) -> None:
        """Wait in line for room, without a limit; the caller queues its messages at once then."""
        lane.accumulator.close_batches()  # what lingers takes the room
        self.wake()
        ticket = _Ticket(self.loop.create_future(), message_count, size_bytes)
        lane.tickets.append(ticket)
        lane.call_next()
        try:
            await ticket.is_next
        finally:
            lane.tickets.remove(ticket)
            # the caller queues its messages first
            self.loop.call_soon(lane.call_next)

    # Sending.

    def wake(self) -> None:
        """Have a turn soon, as something has happened."""
        if not self._is_woken:
            self._is_woken = True
            self.loop.call_soon(self._turn)

    def _turn(self) -> None:
        self._is_woken = False
        if self.is_ended:
            return
        try:
            self._advance()
        except errors.BrokerError as error:
            self._dispatcher.fail_all(error)
        except Exception as error:  # a bug costs what is being sent, not the producer
            logger.exception("failure while sending messages")
            self._dispatcher.fail_all(errors.BrokerError(f"failure while sending: {error!r}"))
        if self._is_finishing and self._is_empty:
            self.end_unclosed()
            return
        self._tell_change()
        self._plan_turn()
        self._watch_silence()

    def _advance(self) -> None:
        dispatcher = self._dispatcher
        dispatcher.receive_ready()
        if self._answers:
            self._take_answers()
        if dispatcher.routes.unsent:
            self._resend()
        now_s = time.monotonic()
        taken: list[OutgoingSet] = []
        for lane in self._lanes.values():
            if self._is_draining:
                lane.accumulator.close_batches()
            taken += lane.accumulator.take(now_s)
            lane.call_next()
        if taken:
            dispatcher.offer([one for one in taken if dispatcher.encode(one, self._encode)])
        if dispatcher.written.has_new_term and self._looking is None:
            # at once: a broker knows the end of one term before a crash only
            self._looking = self._start(self._find_loss())

    def _encode(self, outgoing: OutgoingSet) -> None:
        outgoing.encode(self._parts.packer)

    def _resend(self) -> None:
        ready, question = self._dispatcher.due()
        if question is not None:
            self._asking.update(question.routes)
            self._start(self._ask(question))
        self._dispatcher.resend([one for one in ready if one not in self._asking])

    async def _ask(self, question: Question) -> None:
        targets: Mapping[TopicPartition, TopicPartition] = {}
        try:
            targets = await self._in_thread(self._dispatcher.ask, question)
        except errors.BrokerError as error:
            self._dispatcher.fail_all(error)
        finally:
            self._answers.append((question, targets))
            self.wake()

    def _take_answers(self) -> None:
        answers, self._answers = self._answers, []
        now_s = time.monotonic()
        for question, targets in answers:
            self._asking.difference_update(question.routes)
            unsent = self._dispatcher.routes.unsent
            due = [
                one
                for one in question.routes
                if unsent.get(one.partition) is one and one.is_due(now_s)
            ]
            self._dispatcher.resend(due, targets)

    def _plan_turn(self) -> None:
        """Set the timer for batches that linger, and for attempts that wait."""
        now_s = time.monotonic()
        due_s = math.inf
        for lane in self._lanes.values():
            due_s = min(due_s, lane.accumulator.due_s() or math.inf)
        for route in self._dispatcher.routes.unsent.values():
            # the others wait for an event: an answer, a response, or a connection
            if route.error is not None and not route.is_asked and not route.in_flight:
                due_s = min(due_s, route.retry_s)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_s < math.inf:
            self._timer = self.loop.call_later(max(0.0, due_s - now_s), self.wake)

    def _watch_silence(self) -> None:
        if self._silence is None and (due_s := self._dispatcher.silence_s()) < math.inf:
            wait_s = max(0.0, due_s - time.monotonic())
            self._silence = self.loop.call_later(wait_s, self._look_for_silence)

    def _look_for_silence(self) -> None:
        self._silence = None
        self._dispatcher.lose_silent()
        if topics := self._dispatcher.silent_topics(time.monotonic()):
            self._silence = self._start(self._leave_silent(topics))
        self.wake()

    async def _leave_silent(self, topics: set[str]) -> None:
        try:
            await self._in_thread(self._dispatcher.ask_leaders, topics)
            self._dispatcher.leave_silent()
        except errors.BrokerError as error:
            self._dispatcher.fail_all(error)
        finally:
            self._silence = None
            self.wake()

    async def _find_loss(self) -> None:
        written = self._dispatcher.written
        try:
            while unsure := written.unsure():
                found = await self._in_thread(written.find_ends, unsure)
                self._loss = self._loss or written.settle(unsure, found)
                if not written.has_new_term:
                    break
        finally:
            self._looking = None

    def _end_set(
        self, home: int, outgoing: OutgoingSet, base_offset: int, error: errors.BrokerError | None
    ) -> None:
        if isinstance(error, errors.MessageSizeTooLargeError):
            self._lanes[home].accumulator.take_back(outgoing, error.limit)
        outgoing.complete_batches(base_offset, error, None, logs=False)
        self._lanes[home].accumulator.finish(outgoing)
        self.wake()  # for the next set of the partition, or the end
        topic = outgoing.partition.topic
        is_new = error is not None or not self._parts.partitions.has_age(
            topic, self._rules.refresh_s
        )
        if not is_new and topic not in self._renewing:
            self._renewing.add(topic)
            self._start(self._renew(topic))

    def _tell_change(self) -> None:
        changes, self._changes = self._changes, []
        for waiter in changes:
            if not waiter.done():
                waiter.set_result(None)

    async def _renew(self, topic: str) -> None:
        """Look for new partitions of a topic."""
        try:
            with suppress(errors.BrokerError):
                await self._in_thread(self._parts.partitions.renew, topic, self._rules.refresh_s)
        finally:
            self._renewing.discard(topic)

    # Waiting.

    async def flush(self) -> None:
        """Wait until all that is queued is acknowledged or has failed, and is on its way."""
        batches: list[Batch] = []
        for lane in self._lanes.values():
            batches += lane.accumulator.close_batches()
        self.wake()
        while batches := [one for one in batches if not one.is_done]:
            await self._change()
        while any(one.has_unsent for one in self._connections):
            await self._change()
        if self._looking is None and self._dispatcher.written.unsure():
            self._looking = self._start(self._find_loss())
        if self._looking is not None:
            await asyncio.wait([self._looking])

    async def drained(self) -> None:
        """Wait as `flush`, also for what is queued meanwhile."""
        self._is_draining = True
        while not self._is_empty:
            await self.flush()

    @property
    def _is_empty(self) -> bool:
        return all(lane.accumulator.is_empty for lane in self._lanes.values())

    async def _change(self) -> None:
        waiter = self.loop.create_future()
        self._changes.append(waiter)
        await waiter

    def take_loss(self) -> errors.AcknowledgedLossError | None:
        """Return the first loss of acknowledged messages since the last call."""
        loss, self._loss = self._loss, None
        return loss

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # The end.

    def refuse(self) -> None:
        """Wake all calls that wait for room, as there will be none."""
        for lane in self._lanes.values():
            for ticket in lane.tickets:
                if not ticket.is_next.done():
                    ticket.is_next.set_result(None)

    def end(self) -> None:
        """Give up the rest, and close the connections; without waiting."""
        if self.is_ended:
            return
        self.is_ended = True
        self._dispatcher.fail_all(errors.ProducerClosedError("it waited for a response"))
        for lane in self._lanes.values():
            for outgoing in lane.accumulator.take_all():
                self._dispatcher.fail(outgoing, errors.ProducerClosedError("it was queued"))
        for task in self._tasks:
            task.cancel()
        for one in (self._timer, self._silence):
            if one is not None:
                one.cancel()
        for broker in self._brokers:
            broker.abort()
        self._dispatcher.close()
        unclosed.forget(self)
        self._tell_change()
        with suppress(RuntimeError):  # it runs, and waits for this
            _advance(self._guard.aclose())
        self._on_end(self)

    async def closed(self) -> None:
        """Wait until the connections have ended."""
        await asyncio.gather(*(one.closed() for one in self._connections))

    # The end of one that the program has not closed.

    def finish(self) -> None:
        """Send what is queued, in `unclosed.LIMIT_S` at most, and end; without waiting."""
        if not self.is_ended and not self._is_finishing:
            self._is_finishing = self._is_draining = True
            self.refuse()
            self.loop.call_later(unclosed.LIMIT_S, self.end_unclosed)
            self.wake()

    def end_unclosed(self) -> None:
        """End, and log how many messages are given up."""
        if not self.is_ended:
            left = self.left()
            self.end()
            failure = self.take_failure()  # of what is left, too
            unclosed.report(left, () if left else (failure,))

    async def _finish_with_loop(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if not self.is_ended:
                await self.finished()

    async def finished(self) -> None:
        """Finish, and wait until it has ended."""
        self.finish()
        while not self.is_ended:
            await self._change()
        await self.closed()

    # What `unclosed` calls when the program ends, by another thread than that of the loop.

    def drain(self, timeout_s: float) -> None:
        """Finish if the loop runs; see `unclosed.Engine`."""
        with suppress(RuntimeError):  # it is closed
            self.loop.call_soon_threadsafe(self.finish)
        give_up_s = time.monotonic() + timeout_s
        while self.loop.is_running() and not self.is_ended and time.monotonic() < give_up_s:
            time.sleep(_POLL_S)

    def left(self) -> Counter[str]:
        """Return how many messages are not sent, by topic."""
        return sum((one.accumulator.left() for one in self._lanes.values()), Counter())

    def close(self, timeout_s: float) -> None:
        """Forget what is left: no loop will send it."""
        unclosed.forget(self)


def _advance(step: Coroutine[Any, Any, None]) -> None:
    """Take a step of a generator that waits for nothing."""
    with suppress(StopIteration, StopAsyncIteration):
        step.send(None)
