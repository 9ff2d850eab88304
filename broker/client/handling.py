"""Handling messages so that one that fails does not hold up those behind it.

A message whose handling fails is tried again in place a few times, then parked in a `RetryStore`
and tried again between other messages. There is no thread: whoever has the messages calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum

from broker.client.group_message import inner_index
from broker.client.retry_store import (
    RetryEntry,
    RetryMessage,
    RetryPolicy,
    RetryStore,
)
from broker.client.streams import ConsumerStream
from broker.clock import Clock, SystemClock
from broker.errors import ConsumerTimeoutError

Handle = Callable[[RetryMessage], None]
"""What an application does with a message; an exception says that it failed."""
Pause = Callable[[float], bool]
"""Waits so many seconds; returns True if it was cut short, as the program is to stop."""


class Outcome(Enum):
    """What became of a message."""

    DONE = "done"
    PARKED = "parked"
    DEAD = "dead"


@dataclass(frozen=True, slots=True)
class InPlace:
    """How a message is tried again before it is parked.

    Args:
        retries: how often at most.
        first_wait_ms: wait before the first of these; doubled for each one after, but never longer
            than a message waits first in the store.
    """

    retries: int = 3
    first_wait_ms: int = 100


@dataclass(slots=True)
class Tally:
    """What a handler has done so far.

    Attributes:
        done: messages handled, in place or out of the store.
        parked: messages put into the store.
        dead: messages given up; they stay in the store.
    """

    done: int = 0
    parked: int = 0
    dead: int = 0


def _sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return False


@dataclass(slots=True)
class RetryingHandler:
    """Handles messages, and keeps those that fail for later.

    A message counts as finished when `handle` returns: it is handled, or on the disk. After a
    crash a message may be handled twice, but none is lost.

        with RetryStore(Path("failed")) as store:
            handler = RetryingHandler(write_to_warehouse, store)
            handler.run(stream)

    Args:
        attempt: handles a message, or raises an exception.
        store: where messages go that fail.
        in_place: how a message is tried again at once.
        policy: how it is tried again out of the store.
        clock: tells the time.
        pause: waits between attempts in place.
    """

    attempt: Handle
    store: RetryStore
    in_place: InPlace = field(default_factory=InPlace)
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    clock: Clock = field(default_factory=SystemClock)
    pause: Pause = _sleep
    tally: Tally = field(default_factory=Tally)

    def handle(self, message: RetryMessage) -> Outcome:
        """Handle a message, or else keep it in the store.

        Raises:
            RetryStoreError: it failed and cannot be kept: it is not finished.
        """
        attempts = 1
        error = self._try(message)
        while error is not None and attempts <= self.in_place.retries and self._may_go_on(attempts):
            if self.pause(self._wait_s(attempts)):
                break
            attempts += 1
            error = self._try(message)
        if error is None:
            self.tally.done += 1
            return Outcome.DONE
        next_ms = self.policy.next_attempt_ms(self.clock.time_ms(), attempts, 0)
        self.store.add(message, attempts=attempts, next_attempt_ms=next_ms, error=error)
        return self._count_kept(next_ms)

    def retry_due(self, limit: int = 1) -> int:
        """Try parked messages whose time has come once more.

        Args:
            limit: how many at most, so that new messages need not wait long.

        Returns:
            How many were tried.

        Raises:
            RetryStoreError: the store failed.
        """
        entries = self.store.due(self.clock.time_ms(), limit)
        for entry in entries:
            self.retry(entry)
        return len(entries)

    def retry(self, entry: RetryEntry) -> Outcome:
        """Try one message of the store once more, even a dead one.

        Args:
            entry: as the store gave it.

        Raises:
            RetryStoreError: the store failed.
        """
        error = self._try(entry.message)
        if error is None:
            self.store.done(entry)
            self.tally.done += 1
            return Outcome.DONE
        attempts = entry.attempts + 1
        stored_attempts = max(1, attempts - 1 - self.in_place.retries)
        next_ms = self.policy.next_attempt_ms(self.clock.time_ms(), attempts, stored_attempts)
        self.store.reschedule(entry, next_ms, error)
        if next_ms is not None:
            return Outcome.PARKED
        self.tally.dead += not entry.is_dead
        return Outcome.DEAD

    def drain(self, entries: Iterable[RetryEntry]) -> int:
        """Try messages of the store once more each.

        Args:
            entries: such as `store.entries()` or `store.due(...)`.

        Returns:
            How many failed again.

        Raises:
            RetryStoreError: the store failed.
        """
        return sum(self.retry(entry) is not Outcome.DONE for entry in entries)

    def run(self, stream: ConsumerStream) -> None:
        """Handle the messages of a group's stream until it ends, and parked ones in between.

        With `consumer.timeout.ms` set, parked messages are looked at whenever that has passed;
        without it only when a message comes.

        Raises:
            RetryStoreError: a message failed and cannot be kept; it is not committed.
            BrokerError: as the stream raises it, but for a timeout.
        """
        messages = iter(stream)
        while True:
            try:
                message = next(messages)
            except ConsumerTimeoutError:
                self.retry_due()
                messages = iter(stream)
                continue
            except StopIteration:
                return
            _, partition, offset, next_offset, payload = message
            inner = inner_index(message)
            self.handle(RetryMessage(partition, offset, next_offset, inner, payload))
            stream.finish(message)
            self.retry_due()

    def _wait_s(self, attempts: int) -> float:
        wait_ms = self.in_place.first_wait_ms << min(attempts - 1, 20)
        return min(wait_ms, self.policy.first_wait_ms) / 1000

    def _may_go_on(self, attempts: int) -> bool:
        limit = self.policy.max_attempts
        return limit is None or attempts < limit

    def _try(self, message: RetryMessage) -> str | None:
        """Return None when a message is handled, else why it is not."""
        try:
            self.attempt(message)
        except Exception as error:  # noqa: BLE001 - the application's code may raise anything
            return str(error) or type(error).__name__
        return None

    def _count_kept(self, next_attempt_ms: int | None) -> Outcome:
        if next_attempt_ms is None:
            self.tally.dead += 1
            return Outcome.DEAD
        self.tally.parked += 1
        return Outcome.PARKED
