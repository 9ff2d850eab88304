"""Sends ready message sets on to a cluster, in order of each source partition.

What a broker has not acknowledged is kept and sent again, so a set may arrive twice but is never
lost. Knows nothing of where the sets come from. Sets travel as they are: nothing is decoded, and
compressed messages stay compressed.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from broker.errors import (
    BrokerError,
)
from broker.producer.producer import Delivery, Producer
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 5.0


class Parcel(NamedTuple):
    """A message set on its way from one partition to another.

    `next_offset` is where the source goes on after it. `acknowledged` is called once the target
    has the set for good, with the parcel and its base offset there (-1 if the broker does not
    tell); for parcels of one source partition it is called in order.
    """

    source: TopicPartition
    target: TopicPartition
    message_set: Buffer
    message_count: int
    next_offset: int
    acknowledged: Callable[[Parcel, int], None]


class Relay:
    """Sends parcels, and again if need be.

    Not safe for several threads at once. After a broker has refused one set for a passing reason,
    such as a full disk, sets sent behind it may be in its log before it.

    Args:
        make_producer: makes a producer with acks `COMMITTED`; again after each failure.
        wait: waits for so many seconds before the next attempt after a failure, and says whether
            to make one; None for a relay that gives up at the first failure.
        max_in_flight: parcels that may wait for a broker that does not acknowledge.
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
        self._windows: dict[int, deque[tuple[Delivery, Parcel]]] = {}
        self.last_error = ""
        """What went wrong last; empty while all is well."""

    @property
    def pending_count(self) -> int:
        """Return how many parcels are not acknowledged yet."""
        return sum(map(len, self._windows.values()))

    @property
    def pending_sources(self) -> set[TopicPartition]:
        """Return the source partitions of parcels that are not acknowledged yet."""
        return {parcel.source for window in self._windows.values() for _, parcel in window}

    def send(self, parcel: Parcel) -> None:
        """Send a parcel, waiting for room in the window only.

        Raises:
            BrokerError: the target refuses it, or is gone and `wait` says to give up; what is not
                acknowledged then may or may not have arrived.
        """
        window = self._windows.setdefault(parcel.target.home, deque())
        self._persist(lambda: self._send_to(window, parcel))
        if len(window) >= 2 * self._max_in_flight:
            self.flush()  # this broker acknowledges nothing by itself

    def flush(self) -> None:
        """Wait until all parcels are acknowledged, and consumers can read what is in them.

        Raises:
            BrokerError: as `send`.
        """
        if self.pending_count:
            self._persist(self._flush)

    def close(self) -> None:
        """Close the connections; what is not acknowledged is forgotten. `flush` comes first."""
        producer, self._producer = self._producer, None
        if producer is not None:
            producer.close()

    def _send_to(self, window: deque[tuple[Delivery, Parcel]], parcel: Parcel) -> None:
        # in the window first: whatever happens from here on, it is sent again
        window.append((Delivery(parcel.target, parcel.message_set), parcel))
        self._send_last(window)
        self._settle(only_told=True)

    def _send_last(self, window: deque[tuple[Delivery, Parcel]]) -> None:
        if self._producer is None:
            self._producer = self._make_producer()
        _, parcel = window[-1]
        window[-1] = (self._producer.send_set(parcel.target, parcel.message_set), parcel)

    def _flush(self) -> None:
        if self._producer is not None:
            self._producer.barrier()
        self._settle(only_told=False)

    def _settle(self, *, only_told: bool) -> None:
        """Note what is acknowledged; a delivery without an offset is so after a barrier only."""
        for window in self._windows.values():
            while window and window[0][0].is_done:
                delivery, parcel = window[0]
                if delivery.error is not None:
                    raise _named(delivery.error, parcel)
                if only_told and delivery.base_offset < 0:
                    break
                window.popleft()
                parcel.acknowledged(parcel, delivery.base_offset)

    def _persist(self, action: Callable[[], None]) -> None:
        """Do something; on a passing failure send all that is pending again, until it works."""
        backoff_s = _FIRST_BACKOFF_S
        while True:
            try:
                action()
                self._note_success()
                return
            except BrokerError as error:
                self._start_over(error, backoff_s)
            backoff_s = min(2 * backoff_s, _MAX_BACKOFF_S)
            action = self._send_again

    def _note_success(self) -> None:
        if self.last_error:
            logger.info("the target cluster takes messages again")
            self.last_error = ""

    def _start_over(self, error: BrokerError, backoff_s: float) -> None:
        self.close()
        self._keep_unacknowledged()
        if not error.is_retriable or self._wait is None:
            raise error
        if not self.last_error:
            logger.warning("the target cluster does not take messages: %s; trying on", error)
        self.last_error = str(error)
        if not self._wait(backoff_s):
            raise error

    def _keep_unacknowledged(self) -> None:
        """Note what was acknowledged before the failure; the rest is to be sent again."""
        for window in self._windows.values():
            while window and _is_acknowledged(window[0][0]):
                delivery, parcel = window.popleft()
                parcel.acknowledged(parcel, delivery.base_offset)

    def _send_again(self) -> None:
        """Send everything pending, with new connections, and wait for it."""
        for window in self._windows.values():
            parcels = [parcel for _, parcel in window]
            self._producer = self._producer or self._make_producer()
            for place, parcel in enumerate(parcels):
                delivery = self._producer.send_set(parcel.target, parcel.message_set)
                window[place] = (delivery, parcel)
        self._flush()


def _is_acknowledged(delivery: Delivery) -> bool:
    return delivery.is_done and delivery.error is None and delivery.base_offset >= 0


def _named(error: BrokerError, parcel: Parcel) -> BrokerError:
    """Return why a set was refused; if for what is in it, with where it is from."""
    if error.is_retriable:
        return error
    where = f"messages of {parcel.source} before {parcel.next_offset}"
    return type(error)(f"{parcel.target} does not take {where}: {error}")
