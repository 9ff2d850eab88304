"""Callbacks of an asynchronous producer, and the events they may change at each stage.

Source: Kafka 0.7 `CallbackHandler`, whose methods these are.
"""

from __future__ import annotations

import logging
import reprlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from broker.errors import BrokerError, MessageDroppedError, PluginError
from broker.plugins import CALLBACKS, Plugin
from broker.producer.accumulator import Batch
from broker.producer.delivery import Failures, Handle, QueuedDelivery
from broker.producer.encoder import Packer
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Origin:
    """The queued message that an event stands for, and the delivery to complete with it."""

    partition: TopicPartition
    message: bytes
    delivery: Handle
    is_taken: bool = False


class Event(NamedTuple):
    """A message on its way through the producer.

    Callbacks change it with `_replace`, which keeps `origin`: it connects the event with the
    delivery that its sender holds. A new event has none.
    """

    topic: str
    message: bytes
    key: bytes | None = None
    origin: Origin | None = None


class ProducerCallbacks:
    """Does nothing at any stage; override methods to see or change messages.

    `before_enqueue` and `after_enqueue` run in the thread that sends, `close` and `last_batch` in
    the one that closes the producer, the others in a thread of the producer for each broker, at
    the same time. They must be quick, must not wait for the producer, and see messages encoded.
    Errors of `before_enqueue` and `after_enqueue` come out of `send`; those of the others are
    logged, and the messages in question are reported with `MessageDroppedError`.

    A message that a callback keeps may be returned by a later one; it is reported when it is sent,
    or with `MessageDroppedError` when the producer is closed.
    """

    def before_enqueue(self, event: Event) -> Event:
        """Return the event to queue; the events of one call must have one topic and key."""
        return event

    def after_enqueue(self, event: Event, *, is_queued: bool) -> None:
        """Called when an event is in the queue, or there was no room."""

    def after_dequeue(self, event: Event | None) -> Iterable[Event]:
        """Return the events to send for an event.

        Called with None when the time limit `queue.time` passed for a broker. Events of the same
        topic stay in the partition; others, and all at the time limit, are queued anew by their
        topic and key, whether there is room or not, and pass through this method again.
        """
        return () if event is None else (event,)

    def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
        """Return the events to send for a batch of one partition, as `after_dequeue` does."""
        return events

    def last_batch(self) -> Iterable[Event]:
        """Return events to send last, when all else is sent and the producer closes."""
        return ()

    def close(self) -> None:
        """Called when the producer is closed."""


class PluggedCallbacks(ProducerCallbacks):
    """Callbacks, and then an event handler, that settings name; errors tell of the message too."""

    def __init__(self, callbacks: Plugin | None, handler: Plugin | None) -> None:
        self._plugin = callbacks or Plugin(CALLBACKS, "", ProducerCallbacks())
        self._callbacks: ProducerCallbacks = self._plugin.target
        self._handler = handler

    def before_enqueue(self, event: Event) -> Event:
        """See `ProducerCallbacks`."""
        (found,) = _called(self._plugin, lambda: [self._callbacks.before_enqueue(event)], event)
        return found

    def after_enqueue(self, event: Event, *, is_queued: bool) -> None:
        """See `ProducerCallbacks`."""

        def call() -> Iterable[Event]:
            self._callbacks.after_enqueue(event, is_queued=is_queued)
            return ()

        _called(self._plugin, call, event)

    def after_dequeue(self, event: Event | None) -> Iterable[Event]:
        """See `ProducerCallbacks`."""
        return _called(self._plugin, lambda: self._callbacks.after_dequeue(event), event)

    def before_send(self, events: Sequence[Event]) -> Iterable[Event]:
        """See `ProducerCallbacks`."""
        found = _called(self._plugin, lambda: self._callbacks.before_send(events), *events)
        if (handler := self._handler) is None or not found:
            return found
        return _called(handler, lambda: handler.target(found), *found)

    def last_batch(self) -> Iterable[Event]:
        """See `ProducerCallbacks`."""
        return _called(self._plugin, self._callbacks.last_batch)

    def close(self) -> None:
        """See `ProducerCallbacks`."""
        self._plugin.call(self._callbacks.close)


def _called(
    plugin: Plugin, action: Callable[[], Iterable[Event]], *about: Event | None
) -> list[Event]:
    """Return the events of a plug-in's call; an error names the first one that it is about."""
    try:
        found: list[Any] = plugin.call(lambda: list(action()))  # a generator fails here, not later
        if strange := [one for one in found if not isinstance(one, Event)]:
            raise plugin.mistake(f"returned {reprlib.repr(strange[0])} for an event")
    except PluginError as error:
        if (first := about[0] if about else None) is None:
            raise
        more = f" and {len(about) - 1} more" * (len(about) > 1)
        shown = f"message {reprlib.repr(first.message)}{more} for topic '{first.topic}'"
        raise error.about(shown) from error
    return found


@dataclass(eq=False)
class Hooks:
    """Runs callbacks, and keeps track of which message became which event.

    `route` queues an event by its topic and key; `failures` is None if messages are reported.
    """

    callbacks: ProducerCallbacks
    packer: Packer
    route: Callable[[Event], None]
    failures: Failures | None
    # changed by several threads, one element at a time
    kept: set[Origin] = field(default_factory=set, init=False)

    def apply(self, partition: TopicPartition, batch: Batch) -> BrokerError | None:
        """Pass a batch taken from the queue through the callbacks.

        After a failure, which is returned, the messages left in the batch must be given up.
        """
        origins = [
            Origin(partition, message, delivery)
            for message, delivery in zip(batch.payloads, batch.deliveries, strict=True)
        ]
        try:
            events = self._run(partition, origins)
            messages = self.packer.validated(one.message for one in events)
        except Exception as error:  # the application's code may raise anything
            logger.exception("callback failed over messages to %s", partition)
            rest = [one for one in origins if not one.is_taken]
            batch.payloads = [one.message for one in rest]
            batch.deliveries = [one.delivery for one in rest]
            return MessageDroppedError(f"a callback failed over a message to {partition}: {error}")
        batch.payloads = messages
        batch.deliveries = [self.delivery_of(partition, one) for one in events]
        self.kept.update(one for one in origins if not one.is_taken)
        return None

    def _run(self, partition: TopicPartition, origins: Sequence[Origin]) -> list[Event]:
        events: list[Event] = []
        for origin in origins:
            event = Event(partition.topic, origin.message, origin.delivery.key, origin)
            events += self.callbacks.after_dequeue(event)
        events = self._own(partition.topic, events)
        if events:
            events = self._own(partition.topic, self.callbacks.before_send(events))
        return events

    def _own(self, topic: str, events: Iterable[Event]) -> list[Event]:
        # queues events of other topics again
        own = []
        for event in events:
            if event.topic == topic:
                own.append(event)
            else:
                self.route(event)
        return own

    def delivery_of(self, partition: TopicPartition, event: Event) -> Handle:
        """Return the delivery to complete: that of the event's origin, once, or a new one."""
        origin, key = event.origin, event.key
        if origin is None or origin.is_taken:
            return QueuedDelivery(
                partition, failures=self.failures, key=key, left_count=1, can_move=key is None
            )
        origin.is_taken = True
        self.kept.discard(origin)
        return origin.delivery

    def on_time_limit(self) -> None:
        """Call `after_dequeue` at the time limit, and queue the events it returns."""
        self._route_all(lambda: self.callbacks.after_dequeue(None))

    def last_batch(self) -> None:
        """Call `last_batch`, and queue the events it returns."""
        self._route_all(self.callbacks.last_batch)

    def _route_all(self, source: Callable[[], Iterable[Event]]) -> None:
        try:
            for event in source():
                self.route(event)
        except Exception:  # as above
            logger.exception("callback failed, or what it returned could not be queued")

    def close(self) -> list[Origin]:
        """Call `close`; return the messages that callbacks never returned."""
        try:
            self.callbacks.close()
        except Exception:  # as above
            logger.exception("callback failed at the end")
        return list(self.kept)
