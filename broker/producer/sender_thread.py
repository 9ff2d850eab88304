"""The thread that sends what waits for one broker: take, send, retry, report.

Owns the link to the broker and, under its lock, the accumulator. What fails because the broker is
gone, shuts down or is slow is sent again, in order; all else that fails is reported at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from broker.client.connection import Connection
from broker.errors import (
    BrokerError,
    ProducerClosedError,
    QueueFullError,
)
from broker.producer.accumulator import Accumulator, BatchRules, Parcel
from broker.producer.callbacks import Hooks
from broker.producer.delivery import Failures, OnDelivery, QueuedDelivery
from broker.producer.link import Link, SendRules, retry_wait_s
from broker.producer.publisher import Publisher
from broker.producer.settlement import settle
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_MIN_LIMIT_S = 0.1


class SenderThread(threading.Thread):
    """A thread that sends for a producer: it must never wait for one."""


def is_sender() -> bool:
    """Return whether this is a thread that sends, as in a report or callback."""
    return isinstance(threading.current_thread(), SenderThread)


@dataclass(frozen=True, slots=True)
class LaneRules:
    """How a lane queues.

    Args:
        batches: when batches are sent.
        enqueue_timeout_s: how long `put` waits for room; None without a limit, 0 not at all.
    """

    batches: BatchRules
    enqueue_timeout_s: float | None = None


class Lane:
    """A queue, a thread and a link for one broker.

    Args:
        home: the broker's id.
        link: to the broker; owned by the lane from now on.
        publisher: makes requests.
        sending: how to send.
        rules: how to queue.
        hooks: what batches are put through; None for nothing.
        on_delivery: told what became of messages.
        failures: told of those that were not delivered; None if `on_delivery` is.
    """

    def __init__(
        self,
        home: int,
        link: Link,
        publisher: Publisher,
        *,
        sending: SendRules,
        rules: LaneRules,
        hooks: Hooks | None,
        on_delivery: OnDelivery | None,
        failures: Failures | None,
    ) -> None:
        self._home = home
        self._link = link
        self._publisher = publisher
        self._sending = sending
        self._rules = rules
        self._hooks = hooks
        self._on_delivery = on_delivery
        self._failures = failures
        self._accumulator = Accumulator(rules.batches)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # there may be something to take
        self._room = threading.Condition(self._lock)  # there may be room, or the end has come
        self._changed = threading.Condition(self._lock)  # deliveries are done
        self._waiting: deque[object] = deque()  # who waits for room, in order
        self._is_refusing = False
        self._is_draining = False
        self._is_aborted = False
        self._nudge = threading.Event()  # ends a pause between attempts to connect
        self._set_limit(time.monotonic())
        self._thread = SenderThread(target=self._run, name=f"producer-sender-{home}", daemon=True)

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """Return a copy of the publisher's ends; of all that was flushed before."""
        return dict(self._publisher.ends)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def put(
        self, partition: TopicPartition, payloads: Sequence[bytes], key: bytes | None
    ) -> QueuedDelivery:
        """Queue messages: all of them or none.

        Raises:
            QueueFullError: there was no room in time.
            ProducerClosedError: the lane takes no more.
        """
        count = len(payloads)
        delivery = QueuedDelivery(partition, key, count, self._changed, self._failures)
        accumulator = self._accumulator
        with self._lock:
            if self._is_refusing:
                raise ProducerClosedError("the producer is closed")
            if self._waiting or not accumulator.has_room(count):
                self._wait_for_room(count, partition)
            if count and accumulator.add(partition, payloads, delivery, time.monotonic()):
                self._work.notify()
        return delivery

    def _wait_for_room(self, count: int, partition: TopicPartition) -> None:
        """Wait in line for room; caller holds the lock."""
        ticket = object()
        self._waiting.append(ticket)

        def may_go_on() -> bool:
            is_first = self._waiting[0] is ticket
            return self._is_refusing or (is_first and self._accumulator.has_room(count))

        try:
            has_room = self._room.wait_for(
                may_go_on, 0 if is_sender() else self._rules.enqueue_timeout_s
            )
        finally:
            self._waiting.remove(ticket)
            self._room.notify_all()  # the next in line may have room as well
        if self._is_refusing:
            raise ProducerClosedError("the producer was closed while a message waited for room")
        if not has_room:
            raise QueueFullError(
                f"{self._accumulator.message_count} messages wait for broker {self._home}: "
                f"there is no room for {count} to {partition}"
            )

    def add(self, partition: TopicPartition, payload: bytes, delivery: QueuedDelivery) -> None:
        """Queue a message that a callback returned, whether there is room or not."""
        with self._lock:
            self._accumulator.add(partition, [payload], delivery, time.monotonic())
            self._work.notify()

    def flush(self, timeout_s: float | None) -> bool:
        """Send all that waits without lingering; return whether it is done in time."""
        with self._lock:
            batches = self._accumulator.close_batches()
            self._work.notify()
            return self._changed.wait_for(
                lambda: all(batch.is_done for batch in batches), timeout_s
            )

    def retry_now(self) -> None:
        """Go on at once with what waits for another attempt, as the broker may be there again."""
        self._link.interrupt_if_moved()
        with self._lock:
            self._accumulator.retry_now()
            self._work.notify()
        self._nudge.set()

    def refuse(self) -> None:
        """Take no more messages; those who wait for room are told."""
        with self._lock:
            self._is_refusing = True
            self._room.notify_all()

    def drain(self, timeout_s: float | None) -> bool:
        """Send all there is without lingering; return whether nothing is left in time."""
        with self._lock:
            self._is_draining = True
            self._work.notify()
            return self._changed.wait_for(lambda: self._accumulator.is_empty, timeout_s)

    def stop(self) -> None:
        """Give up what is left, and have the thread end."""
        with self._lock:
            self._is_aborted = True
            self._work.notify()
        self._link.interrupt()
        self._nudge.set()

    def join(self) -> None:
        """Wait for the end of the thread."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while (parcels := self._next()) is not None:
                if parcels:
                    self._send(parcels)
                elif self._hooks is not None:
                    self._hooks.on_time_limit()
            with self._lock:
                rest = self._accumulator.take_all()
            for parcel in rest:
                self._settle(parcel, -1, self._closed_error(parcel))
        finally:
            self._link.close()

    def _next(self) -> list[Parcel] | None:
        """Wait for something to send; none if the time limit passed, None at the end."""
        with self._lock:
            while not self._is_aborted:
                now_s = time.monotonic()
                if self._is_draining:
                    self._accumulator.close_batches()
                parcels = self._accumulator.take(now_s)
                if parcels:
                    self._set_limit(now_s)
                    self._room.notify_all()
                    return parcels
                wait_s = self._accumulator.wait_s(now_s)
                if self._hooks is not None:
                    if now_s >= self._limit_s:
                        self._set_limit(now_s)
                        return []
                    limit_s = self._limit_s - now_s
                    wait_s = limit_s if wait_s is None else min(wait_s, limit_s)
                self._work.wait(wait_s)
        return None

    def _set_limit(self, now_s: float) -> None:
        """Note when callbacks are told that nothing was sent for the time limit."""
        self._limit_s = now_s + max(_MIN_LIMIT_S, self._rules.batches.linger_s)

    def _send(self, parcels: list[Parcel]) -> None:
        """Send parcels in one request; each is settled or put back in the end."""
        left = deque(parcels)
        try:
            packed = [(one, one.message_set or self._prepare(one)) for one in parcels]
            self._publish(packed, left)
        except BrokerError as error:
            self._link.close()
            while left:
                self._fail(left.popleft(), error)
        except Exception as error:
            logger.exception("failure while sending to broker %d", self._home)
            self._link.close()
            while left:
                self._settle(left.popleft(), -1, BrokerError(f"failure while sending: {error!r}"))

    def _prepare(self, parcel: Parcel) -> bytes:
        """Put a parcel's batches through the callbacks, and return its message set."""
        if self._hooks is not None:
            for batch in parcel.batches:
                error = self._hooks.apply(parcel.partition, batch)
                if error is not None:
                    settle(parcel.partition, batch, -1, error, self._on_delivery)
                    batch.payloads, batch.deliveries = [], []
        parcel.message_set = self._publisher.pack(parcel)
        return parcel.message_set

    def _publish(self, packed: Sequence[tuple[Parcel, bytes]], left: deque[Parcel]) -> None:
        """Send what is not empty; `left` loses what is dealt with, in order."""
        sets = [(one.partition, message_set) for one, message_set in packed if message_set]
        outcomes = iter(self._publisher.publish(self._open(), sets) if sets else ())
        for parcel, message_set in packed:
            base_offset, error = next(outcomes) if message_set else (-1, None)
            left.popleft()
            if error is None:
                self._settle(parcel, base_offset, None)
            else:
                self._fail(parcel, error)

    def _open(self) -> Connection:
        """Return a connection, waiting for a broker that is nowhere or refuses."""
        if self._link.is_reconnect_due:
            self._link.reconnect()
        self._link.note_request()
        connection = self._link.open(self._sending.connect_timeout_s, self._pause)
        if self._is_aborted:
            raise ProducerClosedError("the producer was closed")
        return connection

    def _pause(self, seconds: float) -> bool:
        """Wait, or less if the cluster changes; return whether there is any use in going on."""
        self._nudge.wait(seconds)
        self._nudge.clear()
        return not self._is_aborted

    def _fail(self, parcel: Parcel, error: BrokerError) -> None:
        """Have a parcel sent again later, or give it up."""
        parcel.failures += 1
        parcel.error = error
        if self._is_aborted:
            self._settle(parcel, -1, self._closed_error(parcel))
        elif not error.is_retriable or parcel.failures > self._sending.retries:
            self._settle(parcel, -1, error)
        else:
            wait_s = retry_wait_s(self._sending.backoff_s, parcel.failures)
            logger.info("%s: trying again in %.1fs: %s", parcel.partition, wait_s, error)
            with self._lock:
                self._accumulator.put_back(parcel, time.monotonic() + wait_s)

    def _closed_error(self, parcel: Parcel) -> BrokerError:
        why = "" if parcel.error is None else f" ({parcel.error})"
        return ProducerClosedError(
            f"the producer was closed before this was delivered to {parcel.partition}{why}"
        )

    def _settle(self, parcel: Parcel, base_offset: int, error: BrokerError | None) -> None:
        """Report on a parcel and let go of it."""
        if error is not None:
            count = sum(len(batch.payloads) for batch in parcel.batches)
            logger.error("%d messages to %s not delivered: %s", count, parcel.partition, error)
        for batch in parcel.batches:
            settle(parcel.partition, batch, base_offset, error, self._on_delivery)
            if base_offset >= 0:
                base_offset += batch.set_bytes
        with self._lock:
            for batch in parcel.batches:
                batch.is_done = True
            self._accumulator.finish(parcel)
            self._changed.notify_all()
