"""The way of one partition's sets to its leader: those that wait, and when they go again."""

from __future__ import annotations

import logging
import time
from collections import deque

from broker.errors import (
    BrokerError,
    BrokerStoppedError,
    BrokerUnreachableError,
    LeaderNotAvailableError,
    NotLeaderError,
    RequestTimeoutError,
    ServerError,
    error_for_code,
)
from broker.producer.broker_sender import BrokerSender, PendingSet, SendRules
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_MAX_DOUBLINGS = 3


def retry_wait_s(backoff_s: float, failures: int) -> float:
    """Return how long to wait after so many failures in a row, from 1 on: not at all at first."""
    return 0.0 if failures < 2 else backoff_s * 2.0 ** min(failures - 2, _MAX_DOUBLINGS)


class Route:
    """The sets of a partition that its leader has not acknowledged yet.

    Attributes:
        sender: to the leader, None if it has to be looked up.
        in_flight: how many sets have no response.
        returned: sets that came back, and those behind them, until none is in flight.
        waiting: sets to send, in order.
        stored: the base offsets of those in `waiting` that were stored before one ahead of them.
        unknown: of sets that came back and may be stored nevertheless, why that is not known.
        error: why a set came back; None while the route is not broken.
        failures: how often in a row sets came back.
        since_s: when they did first.
        retry_s: when to send again.
    """

    __slots__ = (
        "error",
        "failures",
        "in_flight",
        "partition",
        "retry_s",
        "returned",
        "sender",
        "since_s",
        "stored",
        "unknown",
        "waiting",
    )

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.sender: BrokerSender | None = None
        self.in_flight = 0
        self.returned: list[PendingSet] = []
        self.waiting: deque[PendingSet] = deque()
        self.stored: dict[PendingSet, int] = {}
        self.unknown: dict[PendingSet, BrokerError] = {}
        self.error: BrokerError | None = None
        self.failures = 0
        self.since_s = 0.0
        self.retry_s = 0.0

    def take_stored(self) -> None:
        """Complete the sets at the head that are stored already."""
        while self.waiting and (base_offset := self.stored.pop(self.waiting[0], None)) is not None:
            self.waiting.popleft().complete(base_offset, None)

    def wants_leader(self) -> bool:
        """Return whether the cluster is to be asked who leads the partition."""
        error = self.error
        if isinstance(error, NotLeaderError):
            return error.leader < 0 or self.failures > 1
        return self.failures > 1 or isinstance(error, LeaderNotAvailableError | BrokerStoppedError)

    def lacks_broker(self) -> bool:
        """Return whether the broker is gone, and not only a connection to it."""
        error = self.error
        if isinstance(error, BrokerStoppedError | RequestTimeoutError):
            return True
        return isinstance(error, BrokerUnreachableError) and self.failures > 1

    def return_set(self, one: PendingSet, error: BrokerError) -> None:
        """Take a set back that is to be sent again."""
        if self.error is None:
            self.since_s = time.monotonic()
        if not self.returned:
            self.error = error
        self.returned.append(one)

    def final_error(self, one: PendingSet, error: BrokerError) -> BrokerError:
        """Return the error for a set that is given up: it tells of an earlier attempt, too."""
        earlier = self.unknown.pop(one, None)
        if earlier is None or earlier is error or not isinstance(error, ServerError):
            return error
        text = f"{error}; an earlier attempt may have stored these messages: {earlier}"
        return error_for_code(error.code, text)

    def return_stored(self, one: PendingSet, base_offset: int) -> None:
        """Take back a set that is stored, and is completed after one ahead of it."""
        self.returned.append(one)
        self.stored[one] = base_offset

    def plan_retry(self, backoff_s: float) -> None:
        """Let all sets wait for the next attempt, as none is in flight any more."""
        self.requeue()
        self.take_stored()
        self.sender = None
        self.failures += 1
        wait_s = retry_wait_s(backoff_s, self.failures)
        self.retry_s = time.monotonic() + wait_s
        logger.debug("%s: trying again in %.1fs: %s", self.partition, wait_s, self.error)

    def requeue(self) -> None:
        """Put the sets that came back before those that wait."""
        self.waiting.extendleft(reversed(self.returned))
        self.returned = []

    def mend(self) -> None:
        """Take note that the leader has taken the first set."""
        self.error, self.failures, self.retry_s = None, 0, 0.0

    def is_due(self, now_s: float) -> bool:
        """Return whether the sets that wait may be sent."""
        return now_s >= self.retry_s and not (self.in_flight and self.error is not None)

    def is_over(self, rules: SendRules, now_s: float) -> bool:
        """Return whether the sets are not to be tried again."""
        if rules.retries is not None and self.failures > rules.retries:
            return True
        return now_s - self.since_s >= rules.delivery_timeout_s
