"""Sends message sets of one cluster to another, and tells which are acknowledged.

Sets are sent unchanged: nothing is decoded, and compressed messages stay compressed. A set may
arrive twice, but is never lost. Used by mirrors and by copies of topics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from broker.errors import BrokerError
from broker.producer.producer import Delivery, Producer
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


class MirroredSet(NamedTuple):
    """A message set on its way from one partition to another.

    `largest_bytes` is the size of the largest payload. `acknowledged` is called once the target has
    committed the set, with its base offset there (-1 if the broker tells none); for sets of one
    source partition in order.
    """

    source: TopicPartition
    target: TopicPartition
    message_set: Buffer
    message_count: int
    largest_bytes: int
    next_offset: int  # after the set, in the source
    acknowledged: Callable[[MirroredSet, int], None]


@dataclass(eq=False)
class MirrorProducer:
    """Sends sets with a `Producer` that waits for the leaders of the target. Not thread-safe.

    `producer` has acks `COMMITTED`; `close` closes it. `on_wait` is called repeatedly, with the
    reason, while sets wait for a broker, and returns False to give up; without it only the
    producer's delivery timeout limits the wait. Up to twice `max_in_flight` sets are sent to
    brokers that do not acknowledge before a `flush`. After an error no set is acknowledged any
    more; those in flight may or may not have arrived.
    """

    producer: Producer
    on_wait: Callable[[BrokerError], bool] | None = field(default=None, kw_only=True)
    max_in_flight: int = field(default=64, kw_only=True)
    pending: dict[int, MirroredSet] = field(default_factory=dict, init=False)
    """Sets that are not acknowledged yet, in the order of sending."""
    last_error: str = field(default="", init=False)
    """Why sets wait, or have failed; empty while the target accepts sets."""
    _sent_count: int = field(default=0, init=False)
    _handed_over: list[int] = field(default_factory=list, init=False)
    """Of `pending`, those at brokers without acknowledgements."""
    _failure: BrokerError | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if self.on_wait is not None:
            self.producer.watch(lambda waiting: self._goes_on(waiting.error))

    @property
    def pending_sources(self) -> set[TopicPartition]:
        """Return the source partitions of sets that are not acknowledged yet."""
        return {one.source for one in self.pending.values()}

    def send(self, mirrored: MirroredSet) -> None:
        """Send a set; wait only for room in the window."""
        number = self._sent_count
        self._sent_count += 1
        self.pending[number] = mirrored
        # none is stored behind one that is refused
        may_be_refused = mirrored.largest_bytes > self.producer.message_limit(mirrored.target)
        self._send_one(number, mirrored)
        if may_be_refused or len(self._handed_over) >= 2 * self.max_in_flight:
            self.flush()

    def flush(self) -> None:
        """Wait until all sets are acknowledged, and consumers can read them."""
        while self.pending:
            try:
                self.producer.flush()
                if self._failure is None:  # a refused set never becomes readable
                    self.producer.wait_until_readable()
            except BrokerError as error:
                if self._failure or not self._handed_over or not self._may_send_again(error):
                    raise self._failure or error from error
                # a 0.7 broker may not have received all sets that were sent to it
                handed_over, self._handed_over = self._handed_over, []
                for number in handed_over:
                    self._send_one(number, self.pending[number])
                continue
            self._raise_failure()
            handed_over, self._handed_over = self._handed_over, []
            for number in handed_over:
                self._acknowledge(number, -1)

    def close(self) -> None:
        """Close the connections; sets that are not acknowledged are dropped. `flush` first."""
        self.producer.close()

    def _send_one(self, number: int, mirrored: MirroredSet) -> None:
        try:
            self.producer.send_set(
                mirrored.target, mirrored.message_set, partial(self._complete, number)
            )
        except BrokerError as error:
            raise self._failure or error from error
        self._raise_failure()

    def _complete(self, number: int, delivery: Delivery) -> None:
        """Handle the end of a delivery."""
        if self._failure is not None:
            return  # it is not acknowledged: a set before it has failed
        if delivery.error is not None:
            self._failure = _named(delivery.error, self.pending[number])
            self.last_error = str(self._failure)
        elif delivery.base_offset < 0:
            self._handed_over.append(number)
        else:
            self._acknowledge(number, delivery.base_offset)

    def _acknowledge(self, number: int, base_offset: int) -> None:
        if self.last_error:
            logger.info("the target cluster takes messages again")
            self.last_error = ""
        mirrored = self.pending.pop(number)
        mirrored.acknowledged(mirrored, base_offset)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _may_send_again(self, error: BrokerError) -> bool:
        return self.on_wait is not None and error.is_retriable and self._goes_on(error)

    def _goes_on(self, error: BrokerError) -> bool:
        """Record why sets wait; return whether they wait longer."""
        assert self.on_wait is not None
        if not self.last_error:
            logger.warning("the target cluster does not take messages: %s; trying on", error)
        self.last_error = str(error)
        return self.on_wait(error)


def _named(error: BrokerError, mirrored: MirroredSet) -> BrokerError:
    """Return why a set was refused; if for its content, with the source."""
    if error.is_retriable:
        return error
    where = f"messages of {mirrored.source} before {mirrored.next_offset}"
    return type(error)(f"{mirrored.target} does not take {where}: {error}")
