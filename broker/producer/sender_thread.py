"""A thread that sends the messages for one home's partitions: take, send, report.

Each asynchronous producer has one for each home broker. It owns a `Dispatcher` and, under its lock,
the accumulator. While a set waits for its leader, others of its partition wait behind it in the
accumulator; other partitions are not affected.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Sequence

from broker import deadlines
from broker.errors import BrokerError, MessageSizeTooLargeError, ProducerClosedError, QueueFullError
from broker.producer.accumulator import Accumulator, OutgoingSet
from broker.producer.callbacks import Hooks
from broker.producer.delivery import Handle, QueuedDelivery
from broker.producer.dispatcher import Dispatcher
from broker.producer.parts import Parts
from broker.producer.settings import QueueRules
from broker.threads import LoopThread
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_MIN_LIMIT_S = 0.1


class SenderThread(LoopThread):
    """Queues messages for the partitions of one home broker, and sends them."""

    def __init__(self, home: int, parts: Parts, rules: QueueRules, hooks: Hooks | None) -> None:
        super().__init__(self._loop, name=f"producer-sender-{home}")
        self._home = home
        self._parts = parts
        self._rules = rules
        self._hooks = hooks
        self.dispatcher = dispatcher = Dispatcher(parts)  # used by this thread alone
        self._accumulator = Accumulator(
            rules.batches, self._end_set, dispatcher.counts, parts.settings.max_message_bytes
        )
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # there may be something to take
        self._room = threading.Condition(self._lock)  # there may be room, or the end has come
        self._changed = threading.Condition(self._lock)  # deliveries are done
        self._room_tickets: deque[object] = deque()  # threads that wait for room, in order
        self._is_refusing = False
        self._is_draining = False
        self._is_aborted = False
        self._set_limit(time.monotonic())

    def put(self, payloads: Sequence[bytes], delivery: QueuedDelivery) -> None:
        """Queue messages: all of them or none (`QueueFullError`)."""
        count = len(payloads)
        size_bytes = sum(map(len, payloads))
        delivery.changed = self._changed
        partition, accumulator = delivery.partition, self._accumulator
        with self._lock:
            if self._is_refusing:
                raise ProducerClosedError("the producer is closed")
            if self._room_tickets or not accumulator.has_room(count, size_bytes):
                self._wait_for_room(count, size_bytes, partition)
            if count and accumulator.add(partition, payloads, delivery, time.monotonic()):
                self._work.notify()

    def _wait_for_room(self, count: int, size_bytes: int, partition: TopicPartition) -> None:
        """Wait in line for room; caller holds the lock."""
        if not self._rules.lingers_when_full:
            self._accumulator.close_batches()
            self._work.notify()
        ticket = object()
        self._room_tickets.append(ticket)

        def is_over() -> bool:
            is_first = self._room_tickets[0] is ticket
            return self._is_refusing or (is_first and self._accumulator.has_room(count, size_bytes))

        limit_s = self._rules.enqueue_timeout_s
        if is_sender_thread():
            limit_s = 0
        elif (left_s := deadlines.left_s(math.inf if limit_s is None else limit_s)) < math.inf:
            limit_s = left_s
        try:
            has_room = self._room.wait_for(is_over, limit_s)
        finally:
            self._room_tickets.remove(ticket)
            self._room.notify_all()  # the next in line may have room as well
        if self._is_refusing:
            raise ProducerClosedError("the producer was closed while a message waited for room")
        if not has_room:
            raise QueueFullError(
                f"{self._accumulator.message_count} messages wait for broker {self._home}: "
                f"there is no room for {count} to {partition}"
            )

    def add(self, partition: TopicPartition, payload: bytes, delivery: Handle) -> None:
        """Queue a message that a callback returned, whether there is room or not."""
        with self._lock:
            self._accumulator.add(partition, [payload], delivery, time.monotonic())
            self._work.notify()

    def flush(self, timeout_s: float | None) -> bool:
        """Send all queued messages without lingering; return whether it is done in time."""
        with self._lock:
            batches = self._accumulator.close_batches()
            self._work.notify()
            return self._changed.wait_for(
                lambda: all(batch.is_done for batch in batches), timeout_s
            )

    def retry_now(self) -> None:
        """Make waiting sets due at once, as the cluster has changed."""
        self.dispatcher.retry_now()
        with self._lock:
            self._work.notify()

    def refuse(self) -> None:
        """Take no more messages; threads that wait for room get an error."""
        with self._lock:
            self._is_refusing = True
            self._room.notify_all()

    def drain(self, timeout_s: float | None) -> bool:
        """Send all messages without lingering, also later ones; return whether in time."""
        with self._lock:
            self._is_draining = True
            self._work.notify()
            return self._changed.wait_for(lambda: self._accumulator.is_empty, timeout_s)

    def left(self) -> Counter[str]:
        """Return how many messages are not sent, by topic."""
        with self._lock:
            return self._accumulator.left()

    def stop(self) -> None:
        """Give up the rest, and end the thread."""
        with self._lock:
            self._is_aborted = True
            self._work.notify()
        self.dispatcher.abort()

    def _loop(self) -> None:
        """Send until `stop`; then report the rest as failed."""
        while (taken := self._take()) is not None:
            self._send(taken)
            if self._hooks is not None and time.monotonic() >= self._limit_s:
                self._set_limit(time.monotonic())
                self._hooks.on_time_limit()
        self.dispatcher.fail_all(ProducerClosedError("it waited for a response"))
        with self._lock:
            rest = self._accumulator.take_all()
        for outgoing in rest:
            self.dispatcher.fail(outgoing, ProducerClosedError("it was queued"))
        self.dispatcher.close()

    def _take(self) -> list[OutgoingSet] | None:
        """Wait for sets to send, or the time of a retry or of callbacks; None at the end."""
        with self._lock:
            while not self._is_aborted:
                now_s = time.monotonic()
                if self._is_draining:
                    self._accumulator.close_batches()
                taken = self._accumulator.take(now_s)
                if taken:
                    self._set_limit(now_s)
                    self._room.notify_all()
                    return taken
                limit_s = None if self._hooks is None else self._limit_s
                retry_s = self.dispatcher.routes.next_retry_s(counts_begun=True)
                dues_s = (self._accumulator.due_s(), retry_s, limit_s)
                wait_s = min((one - now_s for one in dues_s if one is not None), default=None)
                if wait_s is not None and wait_s <= 0:
                    return []
                self._work.wait(wait_s)
        return None

    def _set_limit(self, now_s: float) -> None:
        """Set when callbacks are called as nothing was sent for the time limit."""
        self._limit_s = now_s + max(_MIN_LIMIT_S, self._rules.batches.linger_s)

    def _send(self, taken: list[OutgoingSet]) -> None:
        """Send new sets, and those due again, and wait for the responses."""
        full = []
        for outgoing in taken:
            if not self.dispatcher.encode(outgoing, self._encode):
                continue
            if outgoing.message_set:
                full.append(outgoing)
            else:  # callbacks have kept all its messages
                self._complete(outgoing, -1, None)
        try:
            self.dispatcher.offer(full)
            self.dispatcher.retry_due()
            self.dispatcher.drain()
        except BrokerError as error:
            self.dispatcher.fail_all(error)
        except Exception as error:  # a bug costs what is being sent, not the thread
            logger.exception("failure while sending messages of broker %d", self._home)
            self.dispatcher.fail_all(BrokerError(f"failure while sending: {error!r}"))

    def _encode(self, outgoing: OutgoingSet) -> None:
        if self._hooks is not None:
            for batch in outgoing.batches:
                error = None if batch.is_again else self._hooks.apply(outgoing.partition, batch)
                if error is not None:
                    batch.complete(outgoing.partition, -1, error, self._parts.on_delivery)
                    batch.payloads, batch.deliveries = [], []
        outgoing.encode(self._parts.packer)

    def _end_set(self, outgoing: OutgoingSet, base_offset: int, error: BrokerError | None) -> None:
        if isinstance(error, MessageSizeTooLargeError):
            with self._lock:
                self._accumulator.take_back(outgoing, error.limit)
        self._complete(outgoing, base_offset, error)

    def _complete(self, outgoing: OutgoingSet, base_offset: int, error: BrokerError | None) -> None:
        """Complete the batches of a set, report on their messages and drop it."""
        logs = self._rules.logs_failures
        outgoing.complete_batches(base_offset, error, self._parts.on_delivery, logs=logs)
        with self._lock:
            self._accumulator.finish(outgoing)
            self._changed.notify_all()
        if error is None:
            self._parts.partitions.renew(outgoing.partition.topic, self._rules.refresh_s)


def is_sender_thread() -> bool:
    """Return whether the caller runs in a sender thread, as reports and callbacks do."""
    return isinstance(threading.current_thread(), SenderThread)
