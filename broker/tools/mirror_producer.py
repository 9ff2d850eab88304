"""Sends message sets of one cluster to another, again and again until they are acknowledged.

Sets travel as they are: nothing is decoded, and compressed messages stay compressed. A set may
arrive twice, but is never lost. Used by mirrors and by copies of topics.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from broker.errors import BrokerError
from broker.producer.producer import Delivery, Producer
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0


class MirroredSet(NamedTuple):
    """A message set on its way from one partition to another.

    `next_offset` is the offset after it in the source. `acknowledged` is called once the target
    has committed the set, with its base offset there (-1 if the broker tells none); for sets of
    one source partition in order.
    """

    source: TopicPartition
    target: TopicPartition
    message_set: Buffer
    message_count: int
    next_offset: int
    acknowledged: Callable[[MirroredSet, int], None]


class MirrorProducer:
    """Sends sets with a `Producer`, and all unacknowledged ones again with a new one if it fails.

    Not safe for several threads at once. After a broker has refused one set with a retriable
    error, such as a full disk, sets sent behind it may be in its log before it.

    Args:
        make_producer: makes a producer with acks `COMMITTED`; again after each failure.
        wait: waits for so many seconds before the next attempt after a failure, and returns
            whether to make one; None to give up at the first failure.
        max_in_flight: sets that may be handed to brokers that do not acknowledge.
    """

    def __init__(
        self,
        make_producer: Callable[[], Producer],
        *,
        wait: Callable[[float], bool] | None = None,
        max_in_flight: int = 64,
    ) -> None:
        self._make_producer = make_producer
        self._wait = wait
        self._max_in_flight = max_in_flight
        self._producer: Producer | None = None
        self._sent_count = 0
        self._pending: dict[int, MirroredSet] = {}  # in the order of sending
        self._handed_over: list[int] = []  # of pending: to brokers that acknowledge nothing
        self._failed: dict[int, BrokerError] = {}  # brokers' homes, until all is sent again
        self.last_error = ""
        """The last failure; empty while sets are taken."""

    @property
    def pending_count(self) -> int:
        """Return how many sets are not acknowledged yet."""
        return len(self._pending)

    @property
    def pending_sources(self) -> set[TopicPartition]:
        """Return the source partitions of sets that are not acknowledged yet."""
        return {one.source for one in self._pending.values()}

    def send(self, mirrored: MirroredSet) -> None:
        """Send a set, waiting for room in the window only.

        Raises:
            BrokerError: the target refuses it, or is gone and `wait` returned False; sets that
                are not acknowledged then may or may not have arrived.
        """
        number = self._sent_count
        self._sent_count += 1
        self._pending[number] = mirrored  # from here on it is sent again after any failure
        self._persist(lambda: self._send_one(number, mirrored))
        if len(self._handed_over) >= 2 * self._max_in_flight:
            self.flush()

    def flush(self) -> None:
        """Wait until all sets are acknowledged, and consumers can read them; see `send`."""
        if self._pending:
            self._persist(self._flush)

    def close(self) -> None:
        """Close the connections; sets that are not acknowledged are dropped. `flush` first."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _send_one(self, number: int, mirrored: MirroredSet) -> None:
        if self._producer is None:
            self._producer = self._make_producer()
        self._producer.send_set(
            mirrored.target, mirrored.message_set, partial(self._complete, number)
        )
        self._raise_failure()

    def _flush(self) -> None:
        if self._producer is not None:
            self._producer.wait_until_readable()
        self._raise_failure()
        handed_over, self._handed_over = self._handed_over, []
        for number in handed_over:
            mirrored = self._pending.pop(number)
            mirrored.acknowledged(mirrored, -1)

    def _complete(self, number: int, delivery: Delivery) -> None:
        """Take note of the end of a delivery."""
        mirrored = self._pending[number]
        home = mirrored.target.home
        if home in self._failed:
            return  # acknowledged out of order: the failed set before it is still to be sent again
        if delivery.error is not None:
            self._failed[home] = _named(delivery.error, mirrored)
        elif delivery.base_offset < 0:
            self._handed_over.append(number)
        else:
            del self._pending[number]
            mirrored.acknowledged(mirrored, delivery.base_offset)

    def _raise_failure(self) -> None:
        for error in self._failed.values():
            raise error

    def _persist(self, action: Callable[[], None]) -> None:
        """Do one step; after a retriable failure send all that is pending again, until it works."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                action()
                if self.last_error:
                    logger.info("the target cluster takes messages again")
                    self.last_error = ""
                return
            except BrokerError as error:
                self.close()
                self._failed.clear()
                self._handed_over.clear()
                if not error.is_retriable or self._wait is None:
                    raise
                if not self.last_error:
                    logger.warning(
                        "the target cluster does not take messages: %s; trying on", error
                    )
                self.last_error = str(error)
                if not self._wait(backoff_s):
                    raise
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
            action = self._send_again

    def _send_again(self) -> None:
        """Send everything pending, with new connections, and wait for it."""
        for number, mirrored in list(self._pending.items()):
            self._send_one(number, mirrored)
        self._flush()


def _named(error: BrokerError, mirrored: MirroredSet) -> BrokerError:
    """Return why a set was refused; if for its content, with the source."""
    if error.is_retriable:
        return error
    where = f"messages of {mirrored.source} before {mirrored.next_offset}"
    return type(error)(f"{mirrored.target} does not take {where}: {error}")
