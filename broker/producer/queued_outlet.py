"""The way out of a producer through queues: a lane with a thread of its own for each broker."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from broker.client.cluster import Cluster, Connect
from broker.errors import (
    BrokerError,
    ConfigError,
    MessageDroppedError,
    ProducerClosedError,
    RequestTimeoutError,
)
from broker.producer.callbacks import Event, Hooks, ProducerCallbacks
from broker.producer.channel import Channel
from broker.producer.delivery import Delivery, Failures, OnDelivery, QueuedDelivery, Report
from broker.producer.encoder import Packer
from broker.producer.link import SendRules
from broker.producer.outlet import open_link
from broker.producer.publisher import Publisher
from broker.producer.routes import Routes
from broker.producer.sender_thread import Lane, LaneRules, is_sender
from broker.producer.settlement import report
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class QueuedOutlet:
    """Queues messages and sends them from threads; may be used from several threads.

    Args:
        cluster: says where brokers are; several threads ask it.
        connect: makes connections to them.
        routes: picks partitions.
        packer: makes message sets.
        sending: how to send.
        queueing: how to queue.
        callbacks: what messages are put through; None for nothing.
        on_delivery: told what became of messages, by the threads that send.
        failures: told of messages that were not delivered if `on_delivery` is not.
    """

    def __init__(
        self,
        cluster: Cluster,
        connect: Connect,
        routes: Routes,
        packer: Packer,
        *,
        sending: SendRules,
        queueing: LaneRules,
        callbacks: ProducerCallbacks | None,
        on_delivery: OnDelivery | None,
        failures: Failures,
    ) -> None:
        self._cluster = cluster
        self._connect = connect
        self._routes = routes
        self._packer = packer
        self._sending = sending
        self._queueing = queueing
        self._callbacks = callbacks
        self._on_delivery = on_delivery
        self._failures = None if on_delivery is not None else failures
        self._hooks = None
        if callbacks is not None:
            self._hooks = Hooks(callbacks, packer, self._route, self._failures)
        self._lock = threading.Lock()
        self._lanes: dict[int, Lane] = {}
        self._is_closed = False

    def put(self, topic: str, payloads: list[bytes], key: bytes | None) -> Delivery:
        """Queue the messages of one call, all or none.

        Raises:
            QueueFullError: there was no room in time.
            ProducerClosedError: the producer is closed.
            BrokerError: the topic has no partitions to pick from; see `Routes.choose`.
        """
        if self._callbacks is not None:
            return self._put_with(self._callbacks, topic, payloads, key)
        partition = self._routes.choose(topic, key)
        lane = self._lanes.get(partition.home) or self._new_lane(partition)
        return lane.put(partition, payloads, key)

    def _put_with(
        self,
        callbacks: ProducerCallbacks,
        topic: str,
        payloads: list[bytes],
        key: bytes | None,
    ) -> Delivery:
        events = [callbacks.before_enqueue(Event(topic, one, key)) for one in payloads]
        targets = {(event.topic, event.key) for event in events} or {(topic, key)}
        if len(targets) > 1:
            raise ConfigError(
                "before_enqueue gives the messages of one call different topics or keys"
            )
        ((topic, key),) = targets
        payloads = self._packer.payloads(event.message for event in events)
        is_queued = False
        try:
            partition = self._routes.choose(topic, key)
            lane = self._lanes.get(partition.home) or self._new_lane(partition)
            delivery = lane.put(partition, payloads, key)
            is_queued = True
        finally:
            for event in events:
                callbacks.after_enqueue(event, is_queued=is_queued)
        return delivery

    def _new_lane(self, partition: TopicPartition, *, is_closing: bool = False) -> Lane:
        """Return the lane to the broker that has a partition."""
        with self._lock:
            if self._is_closed and not is_closing:
                raise ProducerClosedError("the producer is closed")
            lane = self._lanes.get(partition.home)
            if lane is None:
                lane = Lane(
                    partition.home,
                    open_link(self._cluster, self._connect, partition, self._sending),
                    Publisher(self._packer, self._sending),
                    sending=self._sending,
                    rules=self._queueing,
                    hooks=self._hooks,
                    on_delivery=self._on_delivery,
                    failures=self._failures,
                )
                lane.start()
                self._lanes = {**self._lanes, partition.home: lane}  # read without the lock
            return lane

    def _route(self, event: Event) -> None:
        """Queue an event that a callback returned."""
        partition = self._routes.choose(event.topic, event.key)
        (message,) = self._packer.payloads((event.message,))
        lane = self._lanes.get(partition.home) or self._new_lane(partition, is_closing=True)
        delivery = None if self._hooks is None else self._hooks.take(event)
        delivery = delivery or QueuedDelivery(partition, event.key, 1, failures=self._failures)
        lane.add(partition, message, delivery)

    def send_set(self, partition: TopicPartition, message_set: Buffer) -> Delivery:
        """Refuse: what is in a ready set could not be reported message by message.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("ready message sets are for producers that send in the caller's thread")

    def retry_now(self) -> None:
        """Go on with what waits for a broker, as the cluster has changed; from any thread."""
        for lane in self._lanes.values():
            lane.retry_now()

    def flush(self, timeout_s: float | None) -> None:
        """Send all that was queued without lingering, and wait until it is reported.

        Raises:
            RequestTimeoutError: that takes longer than the timeout.
        """
        _refuse_senders("flush")
        if not _all_within(timeout_s, [lane.flush for lane in self._lanes.values()]):
            raise RequestTimeoutError(f"queued messages are not delivered after {timeout_s:g}s")

    def barrier(self) -> Collection[str]:
        """Wait until all that was sent can be read; return the topics it went to."""
        self.flush(None)
        topics = set()
        for lane in self._lanes.values():
            ends = lane.ends
            if not ends:
                continue
            topics |= {partition.topic for partition in ends}
            link = open_link(self._cluster, self._connect, next(iter(ends)), self._sending)
            channel = Channel(link, rules=self._sending, max_in_flight=1)
            channel.expect(ends)
            try:
                channel.barrier()
            finally:
                channel.close()
        return topics

    def close(self, timeout_s: float | None) -> None:
        """Take no more messages, send and report what is queued, and end all threads.

        What is not delivered within the timeout is reported as failed; a second call does nothing.

        Args:
            timeout_s: None for as long as a broker may take to commit.
        """
        _refuse_senders("close")
        with self._lock:
            if self._is_closed:
                return
            self._is_closed = True
        for lane in self._lanes.values():
            lane.refuse()
        limit_s = self._sending.timeout_s if timeout_s is None else timeout_s
        give_up_s = time.monotonic() + limit_s
        _all_within(limit_s, [lane.drain for lane in self._lanes.values()])
        if self._hooks is not None:
            self._hooks.last_batch()
            rest_s = max(0.0, give_up_s - time.monotonic())
            _all_within(rest_s, [lane.drain for lane in self._lanes.values()])
        for lane in self._lanes.values():
            lane.stop()
        for lane in self._lanes.values():
            lane.join()
        if self._hooks is not None:
            self._report_kept(self._hooks)

    def _report_kept(self, hooks: Hooks) -> None:
        """Report on messages that callbacks have kept to themselves."""
        for origin in hooks.close():
            error = MessageDroppedError(f"a callback kept a message to {origin.partition}")
            origin.delivery.settle(-1, error)
            origin.delivery.notice()  # keeping it was the program's own doing
            if self._on_delivery is not None:
                key = origin.delivery.key
                one = Report(origin.partition, -1, error, key, origin.message)
                report(self._on_delivery, [one])


def _all_within(timeout_s: float | None, waits: Collection[Callable[[float | None], bool]]) -> bool:
    """Wait for all of several things together; return whether all came about in time."""
    give_up_s = None if timeout_s is None else time.monotonic() + timeout_s
    is_done = True
    for wait in waits:
        rest_s = None if give_up_s is None else max(0.0, give_up_s - time.monotonic())
        is_done = wait(rest_s) and is_done
    return is_done


def _refuse_senders(what: str) -> None:
    """Raise in a thread that would wait for itself."""
    if is_sender():
        raise BrokerError(f"{what} cannot be called in a report or callback of a producer")
