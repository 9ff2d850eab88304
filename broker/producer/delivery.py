"""The outcome of messages given to a producer: handles to ask, reports to a callback.

A `Delivery` is for the messages of one call, a `Report` for one message.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from broker.errors import BrokerError, DeliveryFailedError, RequestTimeoutError
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, Record
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition


class Report(NamedTuple):
    """The outcome of one message; every message gets exactly one.

    Attributes:
        partition: the target.
        offset: of its entry, which messages compressed together share in format 0.7. -1 if the
            message was not delivered, and where the broker sends none: one that knows only 0.7's
            requests, or any broker without acknowledgements.
        error: None if the message was delivered. Despite an error it can be in the log, as an
            acknowledgement can be lost.
        key: of the message.
        message: the payload, so that it can be kept elsewhere.
    """

    partition: TopicPartition
    offset: int
    error: BrokerError | None
    key: bytes | None
    message: Buffer

    @property
    def topic(self) -> str:
        """Return the topic."""
        return self.partition.topic


# called with reports on messages of one partition, in their order there
OnDelivery = Callable[[Sequence[Report]], None]


def reports_of(
    partition: TopicPartition,
    payloads: Sequence[bytes],
    keys: Sequence[bytes | None],
    base_offset: int,
    *,
    is_wrapped: bool,
    error: BrokerError | None,
) -> list[Report]:
    """Return the reports of the messages of one set, which is one wrapper if `is_wrapped`."""
    # `base_offset` is that of the set, -1 if unknown
    reports = []
    offset, counts = base_offset, partition.has_records
    for payload, key in zip(payloads, keys, strict=True):
        reports.append(Report(partition, offset, error, key, payload))
        if base_offset >= 0 and not is_wrapped:
            offset += 1 if counts else ENTRY_OVERHEAD_BYTES + len(payload)
    return reports


class Counted(Protocol):
    """What `Failures` counts."""

    counted_in: int
    """The round it is counted in; 0 at first."""


class Handle(Protocol):
    """What a program holds for queued messages of one call."""

    partition: TopicPartition
    key: bytes | None
    record: Record | None
    """What topics of format `kafka` store besides the payload; None: the key, and when it is sent.

    Its value is None if the messages have none.
    """

    @property
    def can_move(self) -> bool:
        """Return whether the messages may go to another partition."""

    def complete_message(self, offset: int, next_offset: int, error: BrokerError | None) -> None:
        """Complete the next of its messages; offsets are -1 if they are unknown."""

    def notice(self) -> None:
        """Note that the program knows of the failure, if there is one."""


class Failures:
    """Counts failed deliveries that the program has not read; safe for several threads."""

    # keeps no deliveries, as there may be many while a broker is away

    def __init__(self) -> None:
        self._lock = threading.Lock()  # guards the fields, and `counted_in` of deliveries
        self._round = 1  # until `take`; a delivery is counted in one of them
        self._count = 0
        self._first: BrokerError | None = None

    def add(self, delivery: Counted, error: BrokerError) -> None:
        """Count a delivery that has failed, once until it is noticed."""
        with self._lock:
            if delivery.counted_in != self._round:
                delivery.counted_in = self._round
                self._count += 1
                self._first = self._first or error

    def notice(self, delivery: Counted) -> None:
        """Stop counting a delivery, as the program knows of its failure."""
        with self._lock:
            if delivery.counted_in == self._round:
                delivery.counted_in = 0
                self._count -= 1
                if not self._count:
                    self._first = None

    def take(self) -> DeliveryFailedError | None:
        """Return the error to raise, and count from zero again."""
        with self._lock:
            count, first, self._count, self._first = self._count, self._first, 0, None
            self._round += 1
        if first is None:
            return None
        error = DeliveryFailedError(
            f"messages of {count} send{'s' * (count != 1)} were not delivered; "
            f"the first failure: {first}"
        )
        error.__cause__ = first
        return error


@dataclass(eq=False, repr=False, slots=True)
class Delivery:
    """The outcome of the messages of one call, which go to one partition.

    Attributes:
        partition: the target.
        base_offset: of the first message once it is acknowledged; -1 before, and for brokers that
            do not send it.
        next_offset: the one after the last message, once it is acknowledged; else -1.
        message_set: the set that a synchronous producer sends.
        message_count: of `message_set`; 0 for a ready set, whose messages are not counted unless
            they have to be numbered.
        is_numbered: whether the set has the numbers of its producer, if it is a record batch.
        is_done: whether it is acknowledged or has failed.
        can_move: whether the messages may go to another partition, as they have no key.
    """

    partition: TopicPartition
    message_set: Buffer = b""
    # counts a failure until the program reads it; None if the program gets it in any case
    failures: Failures | None = None
    on_complete: Callable[[Delivery], None] | None = None
    can_move: bool = field(default=False, kw_only=True)
    message_count: int = field(default=0, kw_only=True)
    is_numbered: bool = field(default=True, kw_only=True)
    stamp: ProducerStamp | None = field(default=None, init=False)
    base_offset: int = field(default=-1, init=False)
    next_offset: int = field(default=-1, init=False)
    is_done: bool = field(default=False, init=False)
    counted_in: int = field(default=0, init=False)  # for `Failures`
    _error: BrokerError | None = field(default=None, init=False)

    @property
    def offset_span(self) -> int:
        """Return by how much the set moves the end of the log."""
        return self.message_count if self.partition.has_records else len(self.message_set)

    @property
    def error(self) -> BrokerError | None:
        """Return the first reason why a message could not be delivered; None without one.

        Reading it counts as knowing of the failure: it is not raised at the end again.
        """
        self.notice()
        return self._error

    @property
    def has_failed(self) -> bool:
        """Return whether a message could not be delivered, without counting it as known."""
        return self._error is not None

    def complete(
        self, base_offset: int, error: BrokerError | None, *, is_raised: bool = False
    ) -> None:
        """Complete it; see `PendingSet.complete`."""
        if error is None:
            self.base_offset = base_offset
            if base_offset >= 0:
                self.next_offset = base_offset + self.offset_span
        else:
            self.fail(error)
        self.is_done = True
        if self.on_complete is not None:
            self.on_complete(self)
        if is_raised:
            self.notice()

    def fail(self, error: BrokerError) -> None:
        """Note that a message could not be delivered; the first reason is kept."""
        if self._error is None:
            self._error = error
        if self.failures is not None:
            self.failures.add(self, error)

    def notice(self) -> None:
        """Note that the program knows of the failure, if there is one."""
        if self.failures is not None and self.counted_in:
            self.failures.notice(self)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait, at most `timeout_s` (None: without limit), until it is done; return whether it is.

        A delivery of a synchronous producer is done once `Producer.flush` has returned: no wait
        here.
        """
        return self.is_done

    def result(self, timeout_s: float | None = None) -> int:
        """Return the base offset, waiting for it as `wait` does.

        Raises:
            BrokerError: a message could not be delivered.
            RequestTimeoutError: it is not done in time (queued deliveries only).
        """
        self.wait(timeout_s)
        if (error := self.error) is not None:
            raise error
        return self.base_offset


@dataclass(eq=False, repr=False, slots=True)
class QueuedDelivery(Delivery):
    """A delivery of an asynchronous producer; all threads but sender threads may wait for it."""

    key: bytes | None = field(default=None, kw_only=True)
    record: Record | None = field(default=None, kw_only=True)  # see `Handle`
    left_count: int = field(kw_only=True)  # of its messages, until it is done
    # notified when deliveries are done, once it is queued; None for one that is never waited for
    changed: threading.Condition | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.is_done = not self.left_count

    def complete_message(self, offset: int, next_offset: int, error: BrokerError | None) -> None:
        """Complete the next of its messages; called by the sender thread."""
        if self.base_offset < 0:
            self.base_offset = offset
        self.next_offset = next_offset
        if error is not None:
            self.fail(error)
        self.left_count -= 1
        if not self.left_count:
            self.is_done = True
            # a sender thread that waits for work still has it, and must not keep its producer
            on_complete, self.on_complete = self.on_complete, None
            if on_complete is not None:
                on_complete(self)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until it is done, and return whether it is."""
        if not self.is_done and self.changed is not None:
            with self.changed:
                self.changed.wait_for(lambda: self.is_done, timeout_s)
        return self.is_done

    def result(self, timeout_s: float | None = None) -> int:
        """Return the base offset, waiting for it."""
        if not self.wait(timeout_s):
            raise RequestTimeoutError(
                f"a message to {self.partition} is not delivered after {timeout_s:g}s"
            )
        return Delivery.result(self)  # `super` does not know a class with slots
