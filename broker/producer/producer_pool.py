"""The engine of an asynchronous producer: queues messages, sent by a thread for each broker."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import Any

from broker import deadlines, errors
from broker.producer import unclosed
from broker.producer.accumulator import report
from broker.producer.callbacks import Event, Hooks, ProducerCallbacks
from broker.producer.delivery import Delivery, QueuedDelivery, Report
from broker.producer.dispatcher import Dispatcher
from broker.producer.parts import Parts
from broker.producer.sender_thread import SenderThread, is_sender_thread
from broker.producer.settings import QueueRules
from broker.topic import NO_HOME, TopicPartition


class ProducerPool:
    """Queues messages and sends them from threads; may be used from several threads.

    It does not know its producer, which a program may drop. Source: Kafka 0.7 `ProducerPool`, with
    an asynchronous producer for each broker.
    """

    def __init__(
        self, parts: Parts, rules: QueueRules, callbacks: ProducerCallbacks | None = None
    ) -> None:
        # each thread awaits the response to a request before it sends the next
        parts.settings = replace(parts.settings, max_in_flight=1)
        self._parts = parts
        self._rules = rules
        self._callbacks = callbacks
        self.take_failure = parts.failures.take
        self._hooks = None
        if callbacks is not None:
            self._hooks = Hooks(callbacks, parts.packer, self._route, parts.unreported)
        self._lock = threading.Lock()
        self._threads: dict[int, SenderThread] = {}
        self._is_closed = False
        unclosed.watch(self)

    def send(self, topic: str, messages: Iterable[Any], key: bytes | None) -> Delivery:
        """Queue the messages of one call, all or none."""
        payloads = self._parts.packer.payloads(messages, topic)
        if self._callbacks is not None:
            return self._send_with(self._callbacks, topic, payloads, key)
        return self._queue(topic, payloads, key)

    def _queue(self, topic: str, payloads: list[bytes], key: bytes | None) -> Delivery:
        partition, count = self._parts.partitions.choose(topic, key), len(payloads)
        failures, can_move = self._parts.unreported, key is None and not partition.has_records
        delivery = QueuedDelivery(
            partition, failures=failures, key=key, left_count=count, can_move=can_move
        )
        self.put(payloads, delivery)
        return delivery

    def put(self, payloads: list[bytes], delivery: QueuedDelivery) -> None:
        """Queue payloads for the partition of a delivery, in this order, all or none.

        Its topic exists. A sender thread completes the delivery.
        """
        home = self._home_of(delivery.partition)
        thread = self._threads.get(home) or self._start_thread(home)
        thread.put(payloads, delivery)

    def _home_of(self, partition: TopicPartition) -> int:
        home = partition.home
        return self._parts.partitions.first_leader(partition) if home == NO_HOME else home

    def _send_with(
        self, callbacks: ProducerCallbacks, topic: str, payloads: list[bytes], key: bytes | None
    ) -> Delivery:
        events = [callbacks.before_enqueue(Event(topic, one, key)) for one in payloads]
        targets = {(event.topic, event.key) for event in events} or {(topic, key)}
        if len(targets) > 1:
            raise errors.ConfigError(
                "before_enqueue gives the messages of one call different topics or keys"
            )
        ((topic, key),) = targets
        payloads = self._parts.packer.validated(event.message for event in events)
        is_queued = False
        try:
            delivery = self._queue(topic, payloads, key)
            is_queued = True
        finally:
            for event in events:
                callbacks.after_enqueue(event, is_queued=is_queued)
        return delivery

    def _start_thread(self, home: int, *, is_closing: bool = False) -> SenderThread:
        """Return the sender thread for the partitions of a home broker."""
        with self._lock:
            if self._is_closed and not is_closing:
                raise errors.ProducerClosedError("the producer is closed")
            thread = self._threads.get(home)
            if thread is None:
                thread = SenderThread(home, self._parts, self._rules, self._hooks)
                thread.start()
                self._threads = {**self._threads, home: thread}  # read without the lock
            return thread

    def _route(self, event: Event) -> None:
        """Queue an event that a callback returned."""
        partition = self._parts.partitions.choose(event.topic, event.key)
        (message,) = self._parts.packer.validated((event.message,))
        home = self._home_of(partition)
        thread = self._threads.get(home) or self._start_thread(home, is_closing=True)
        assert self._hooks is not None  # they call this
        thread.add(partition, message, self._hooks.delivery_of(partition, event))

    def is_own_thread(self) -> bool:
        """Return whether the caller is a sender thread of this producer."""
        return threading.current_thread() in self._threads.values()

    def retry_now(self) -> None:
        """Make waiting sets due at once, as the cluster has changed; from any thread."""
        for thread in self._threads.values():
            thread.retry_now()

    def flush(self, timeout_s: float | None) -> None:
        """Send all queued messages without lingering, and wait until they are reported."""
        refuse_senders("flush")
        if not self._all_threads(timeout_s, SenderThread.flush):
            raise errors.RequestTimeoutError(
                f"queued messages are not delivered after {timeout_s:g}s"
            )

    def _all_threads(
        self, timeout_s: float | None, wait: Callable[[SenderThread, float | None], bool]
    ) -> bool:
        """Wait for all threads; return whether in time."""
        give_up_s = None if timeout_s is None else time.monotonic() + timeout_s
        is_done = True
        for thread in list(self._threads.values()):
            rest_s = None if give_up_s is None else max(0.0, give_up_s - time.monotonic())
            is_done = wait(thread, rest_s) and is_done
        return is_done

    def wait_until_readable(self) -> Collection[str]:
        """Wait until all that was sent can be read; return the topics it went to."""
        self.flush(None)
        topics: set[str] = set()
        for thread in self._threads.values():
            topics |= thread.dispatcher.topics
            dispatcher = Dispatcher(self._parts)  # only its thread may use the other one
            thread.dispatcher.hand_over(dispatcher)
            try:
                dispatcher.await_readable()
            finally:
                dispatcher.close()
        return topics

    def drain(self, timeout_s: float) -> None:
        """Take no more messages, and wait until the queued ones are sent or have failed."""
        for thread in self._threads.values():
            thread.refuse()
        self._all_threads(timeout_s, SenderThread.drain)

    def left(self) -> Counter[str]:
        """Return how many messages are not sent, by topic."""
        return sum((one.left() for one in self._threads.values()), Counter())

    def close(self, timeout_s: float | None) -> None:
        """Take no more messages, send and report the queued ones, and end all threads.

        Messages not delivered within the timeout (None: `timeout_s` of the producer) are reported
        as failed; a second call does nothing.
        """
        refuse_senders("close")
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        limit_s = self._parts.settings.timeout_s if timeout_s is None else timeout_s
        give_up_s = time.monotonic() + limit_s
        self.drain(limit_s)
        if self._hooks is not None:
            self._hooks.last_batch()
            rest_s = max(0.0, give_up_s - time.monotonic())
            self._all_threads(rest_s, SenderThread.drain)
        for thread in self._threads.values():
            thread.stop()
        for thread in self._threads.values():
            # one in an attempt to connect, or in a look at the cluster, ends after it
            thread.join(deadlines.join_s())
        unclosed.forget(self)
        if self._hooks is not None:
            self._report_kept(self._hooks)

    def _report_kept(self, hooks: Hooks) -> None:
        """Report on messages that callbacks never returned."""
        for origin in hooks.close():
            error = errors.MessageDroppedError(f"a callback kept a message to {origin.partition}")
            origin.delivery.complete_message(-1, -1, error)
            origin.delivery.notice()  # keeping it was the program's own doing
            if self._parts.on_delivery is not None:
                key = origin.delivery.key
                one = Report(origin.partition, -1, error, key, origin.message)
                report(self._parts.on_delivery, [one])


def refuse_senders(what: str) -> None:
    """Raise in a sender thread, which would wait for itself."""
    if is_sender_thread():
        raise errors.BrokerError(f"{what} cannot be called in a report or callback of a producer")
