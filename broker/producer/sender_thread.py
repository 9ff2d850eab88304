"""A thread that sends the messages for one home's partitions: take, send, retry, report.

Each asynchronous producer has one for each home broker. It owns a `BrokerSender` for each broker
that leads some of the partitions and, under its lock, the accumulator. A set that fails with a
retriable error is put back and sent again, to the leader of its partition, in order there, while
other partitions go on; any other failure is reported at once. If the broker is gone, messages
without a key move to the thread of another partition.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from broker.errors import BrokerError, NotLeaderError, ProducerClosedError, QueueFullError
from broker.producer.accumulator import Accumulator, Batch, BatchRules, OutgoingSet
from broker.producer.broker_connection import BrokerConnection
from broker.producer.broker_sender import BrokerSender, SendRules, is_lost, retry_wait_s
from broker.producer.callbacks import Hooks
from broker.producer.delivery import Failures, OnDelivery, QueuedDelivery
from broker.producer.encoder import Packer
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_MIN_LIMIT_S = 0.1


@dataclass(frozen=True, slots=True)
class QueueRules:
    """How an asynchronous producer queues.

    Args:
        batches: when batches are sent.
        enqueue_timeout_s: how long `put` waits for room; None without a limit, 0 not at all.
    """

    batches: BatchRules
    enqueue_timeout_s: float | None = None


class Routing(Protocol):
    """Where the messages of sender threads go; for several threads."""

    def leader(self, partition: TopicPartition) -> int:
        """Return the id of the broker that leads a partition."""

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note which broker leads a partition, as one says that does not; -1 for an unknown one."""

    def has_other(self, topic: str, broker_id: int) -> bool:
        """Return whether a topic has a partition on another broker, which is there."""

    def replacement(self, topic: str, broker_id: int) -> TopicPartition | None:
        """Return a partition of a topic on another broker, None if there is none."""

    def move(self, partition: TopicPartition, batch: Batch) -> None:
        """Queue a batch of another partition for this one."""


def _drain(sender: BrokerSender, _sets: Sequence[OutgoingSet]) -> None:
    sender.drain()


def _is_movable(outgoing: OutgoingSet) -> bool:
    return any(delivery.key is None for batch in outgoing.batches for delivery in batch.deliveries)


class SenderThread(threading.Thread):
    """Queues messages for the partitions of one home broker, and sends them.

    Args:
        home: the id of the home broker.
        make_connection: makes the connection to a broker, by its id; owned by the thread.
        routing: see there.
        packer: makes message sets.
        sending: how to send.
        rules: how to queue.
        hooks: callbacks that batches pass through; None for none.
        on_delivery: called with reports on messages.
        failures: counts messages that were not delivered; None if `on_delivery` reports them.
    """

    def __init__(
        self,
        home: int,
        make_connection: Callable[[int], BrokerConnection],
        routing: Routing,
        packer: Packer,
        *,
        sending: SendRules,
        rules: QueueRules,
        hooks: Hooks | None,
        on_delivery: OnDelivery | None,
        failures: Failures | None,
    ) -> None:
        super().__init__(name=f"producer-sender-{home}", daemon=True)
        self._home = home
        self._make_connection = make_connection
        self._routing = routing
        self._senders: dict[int, BrokerSender] = {}  # by the broker's id; replaced, not changed
        self._leaders: dict[TopicPartition, int] = {}
        self._packer = packer
        self._sending = sending
        self._rules = rules
        self._hooks = hooks
        self._on_delivery = on_delivery
        self._failures = failures
        self._accumulator = Accumulator(rules.batches, self._complete_or_retry)
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)  # there may be something to take
        self._room = threading.Condition(self._lock)  # there may be room, or the end has come
        self._changed = threading.Condition(self._lock)  # deliveries are done
        self._room_tickets: deque[object] = deque()  # threads that wait for room, in order
        self._is_refusing = False
        self._is_draining = False
        self._is_aborted = False
        self._set_limit(time.monotonic())

    @property
    def ends(self) -> dict[TopicPartition, int]:
        """Return the end offset of what was flushed to each partition."""
        return {key: end for one in self._senders.values() for key, end in one.ends.items()}

    @property
    def unsafe_ends(self) -> dict[int, dict[TopicPartition, int]]:
        """Return the end offsets that are not known to be safe, by the broker's id."""
        return {broker_id: one.unsafe_ends() for broker_id, one in self._senders.items()}

    @property
    def changed(self) -> threading.Condition:
        """Return the condition that is notified when deliveries are done."""
        return self._changed

    def put(
        self, partition: TopicPartition, payloads: Sequence[bytes], key: bytes | None
    ) -> QueuedDelivery:
        """Queue messages: all of them or none.

        Raises:
            QueueFullError: there was no room in time.
            ProducerClosedError: the thread takes no more.
        """
        count = len(payloads)
        delivery = QueuedDelivery(partition, key, count, self._changed, self._failures)
        accumulator = self._accumulator
        with self._lock:
            if self._is_refusing:
                raise ProducerClosedError("the producer is closed")
            if self._room_tickets or not accumulator.has_room(count):
                self._wait_for_room(count, partition)
            if count and accumulator.add(partition, payloads, delivery, time.monotonic()):
                self._work.notify()
        return delivery

    def _wait_for_room(self, count: int, partition: TopicPartition) -> None:
        """Wait in line for room; caller holds the lock."""
        ticket = object()
        self._room_tickets.append(ticket)

        def is_over() -> bool:
            is_first = self._room_tickets[0] is ticket
            return self._is_refusing or (is_first and self._accumulator.has_room(count))

        try:
            has_room = self._room.wait_for(
                is_over, 0 if is_sender_thread() else self._rules.enqueue_timeout_s
            )
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

    def add(self, partition: TopicPartition, payload: bytes, delivery: QueuedDelivery) -> None:
        """Queue a message that a callback returned, whether there is room or not."""
        with self._lock:
            self._accumulator.add(partition, [payload], delivery, time.monotonic())
            self._work.notify()

    def add_batch(self, partition: TopicPartition, batch: Batch) -> None:
        """Queue messages that were for a broker that is gone, whether there is room or not."""
        with self._lock:
            self._accumulator.add_batch(partition, batch)
            self._work.notify()

    def flush(self, timeout_s: float | None) -> bool:
        """Send all that is queued without lingering; return whether it is done in time."""
        with self._lock:
            batches = self._accumulator.close_batches()
            self._work.notify()
            return self._changed.wait_for(
                lambda: all(batch.is_done for batch in batches), timeout_s
            )

    def retry_now(self) -> None:
        """Send again at once what waits for its retry, as the cluster has changed."""
        for sender in self._senders.values():
            sender.connection.retry_now()
        with self._lock:
            self._accumulator.retry_now()
            self._work.notify()

    def refuse(self) -> None:
        """Take no more messages; threads that wait for room get an error."""
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
        """Give up what is left, and end the thread."""
        with self._lock:
            self._is_aborted = True
            self._work.notify()
        for sender in self._senders.values():
            sender.connection.abort()

    def run(self) -> None:
        """Send until `stop`; then report what is left as failed."""
        try:
            while (taken := self._take()) is not None:
                if taken:
                    self._send(taken)
                elif self._hooks is not None:
                    self._hooks.on_time_limit()
            with self._lock:
                rest = self._accumulator.take_all()
            for outgoing in rest:
                self._complete(outgoing, -1, self._closed_error(outgoing))
        finally:
            for sender in self._senders.values():
                sender.close()

    def _take(self) -> list[OutgoingSet] | None:
        """Wait for sets to send; none if the time limit passed, None at the end."""
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
        """Note when callbacks learn that nothing was sent for the time limit."""
        self._limit_s = now_s + max(_MIN_LIMIT_S, self._rules.batches.linger_s)

    def _send(self, taken: list[OutgoingSet]) -> None:
        """Send sets in one request; each is completed or put back in the end."""
        full = []
        for outgoing in taken:
            try:
                if not outgoing.is_encoded:
                    self._encode(outgoing)
            except Exception as error:  # encoders and callbacks are of the application
                logger.exception("failure over messages to %s", outgoing.partition)
                failure = BrokerError(f"failure while sending: {error!r}")
                self._complete(outgoing, -1, failure)
                continue
            if outgoing.message_set:
                full.append(outgoing)
            else:  # callbacks have kept all its messages
                self._complete(outgoing, -1, None)
        by_leader: dict[int, list[OutgoingSet]] = {}
        for outgoing in full:
            by_leader.setdefault(self._leader(outgoing.partition), []).append(outgoing)
        gone = set()
        for step in (BrokerSender.send, _drain):
            for broker_id, sets in by_leader.items():
                if not self._try(step, broker_id, sets):
                    gone.add(broker_id)
        for broker_id in gone:
            self._leave(broker_id)

    def _leader(self, partition: TopicPartition) -> int:
        leader = self._leaders.get(partition)
        if leader is None:
            leader = self._leaders[partition] = self._routing.leader(partition)
        return leader

    def _try(
        self,
        step: Callable[[BrokerSender, Sequence[OutgoingSet]], None],
        broker_id: int,
        sets: Sequence[OutgoingSet],
    ) -> bool:
        """Send sets, or wait for their responses; return whether the broker is there."""
        sender = self._senders.get(broker_id)
        if sender is None:
            # retries are for the accumulator: it lets other partitions go on meanwhile
            sender = BrokerSender(self._make_connection(broker_id), self._sending, retries=0)
            with self._lock:
                self._senders = {**self._senders, broker_id: sender}
                is_aborted = self._is_aborted
            if is_aborted:
                sender.connection.abort()
        try:
            if step is BrokerSender.send and self._can_leave(broker_id, sender, sets):
                for outgoing in sets:
                    with self._lock:
                        self._accumulator.put_back(outgoing, time.monotonic())
                return False
            step(sender, sets)
        except BrokerError as error:  # each set was completed, or put back, with it
            logger.debug("broker %d: %s", broker_id, error)
            return not is_lost(error) or self._is_aborted or sender.connection.can_open()
        except Exception as error:  # a bug costs what is being sent, not the thread
            logger.exception("failure while sending to broker %d", broker_id)
            sender.close()
            sender.fail_all(BrokerError(f"failure while sending: {error!r}"))
        return True

    def _can_leave(self, broker_id: int, sender: BrokerSender, sets: Sequence[OutgoingSet]) -> bool:
        """Return whether messages that wait for a broker that is gone can go elsewhere."""
        if self._is_aborted or sender.connection.is_open or not any(map(_is_movable, sets)):
            return False
        if sender.connection.can_open():
            return False
        return any(self._routing.has_other(one.partition.topic, broker_id) for one in sets)

    def _leave(self, broker_id: int) -> None:
        """Send messages without a key elsewhere, as the broker they wait for is gone."""
        with self._lock:
            waiting = self._accumulator.waiting_partitions
        for partition in waiting:
            if self._is_aborted or self._leader(partition) != broker_id:
                continue
            self._leaders.pop(partition, None)
            self._move_keyless(partition, broker_id)

    def _move_keyless(self, partition: TopicPartition, broker_id: int) -> None:
        other = self._routing.replacement(partition.topic, broker_id)
        if other is None:
            return
        with self._lock:
            moving = self._accumulator.take_keyless(partition)
        for batch in moving:
            self._routing.move(other, batch)
        if not moving:
            return
        logger.info(
            "%d messages move from %s to %s: broker %d is gone",
            *(sum(len(batch.payloads) for batch in moving), partition, other, broker_id),
        )
        with self._lock:
            for batch in self._accumulator.drop_empty(partition):
                batch.is_done = True
            self._changed.notify_all()
            self._room.notify_all()

    def _encode(self, outgoing: OutgoingSet) -> None:
        """Pass batches through the callbacks, and make one message set of those of each batch."""
        sets = []
        for batch in outgoing.batches:
            if self._hooks is not None and not batch.is_prepared:
                batch.is_prepared = True
                error = self._hooks.apply(outgoing.partition, batch)
                if error is not None:
                    batch.complete(outgoing.partition, -1, error, self._on_delivery)
                    batch.payloads, batch.deliveries = [], []
            message_set, batch.is_wrapped = self._packer.pack(
                outgoing.partition.topic, batch.payloads
            )
            batch.set_bytes = len(message_set)
            sets.append(message_set)
        outgoing.message_set = sets[0] if len(sets) == 1 else b"".join(sets)
        outgoing.is_encoded = True

    def _complete_or_retry(
        self, outgoing: OutgoingSet, base_offset: int, error: BrokerError | None
    ) -> None:
        """Complete a set, or have it sent again later if its error is retriable."""
        if error is None:
            self._complete(outgoing, base_offset, None)
            return
        outgoing.failures += 1
        outgoing.error = error
        self._leaders.pop(outgoing.partition, None)
        if isinstance(error, NotLeaderError):
            self._routing.note_leader(outgoing.partition, error.leader)
        if self._is_aborted:
            self._complete(outgoing, -1, self._closed_error(outgoing))
        elif not error.is_retriable or outgoing.failures > self._sending.retries:
            self._complete(outgoing, -1, error)
        else:
            wait_s = retry_wait_s(self._sending.backoff_s, outgoing.failures)
            logger.info("%s: trying again in %.1fs: %s", outgoing.partition, wait_s, error)
            with self._lock:
                self._accumulator.put_back(outgoing, time.monotonic() + wait_s)

    def _closed_error(self, outgoing: OutgoingSet) -> BrokerError:
        why = "" if outgoing.error is None else f" ({outgoing.error})"
        return ProducerClosedError(
            f"the producer was closed before this was delivered to {outgoing.partition}{why}"
        )

    def _complete(self, outgoing: OutgoingSet, base_offset: int, error: BrokerError | None) -> None:
        """Complete the batches of a set, report on their messages and drop it."""
        if error is not None:
            count = sum(len(batch.payloads) for batch in outgoing.batches)
            logger.error("%d messages to %s not delivered: %s", count, outgoing.partition, error)
        for batch in outgoing.batches:
            batch.complete(outgoing.partition, base_offset, error, self._on_delivery)
            if base_offset >= 0:
                base_offset += batch.set_bytes
        with self._lock:
            for batch in outgoing.batches:
                batch.is_done = True
            self._accumulator.finish(outgoing)
            self._changed.notify_all()


def is_sender_thread() -> bool:
    """Return whether the caller runs in a sender thread, as reports and callbacks do."""
    return isinstance(threading.current_thread(), SenderThread)
