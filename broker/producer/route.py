"""The routes of partitions' sets to their leaders: waiting sets, and when they are sent again."""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import dataclass, field

from broker import errors
from broker.client import backoff
from broker.producer.broker_sender import BrokerSender, PendingSet
from broker.producer.records import MAX_IN_FLIGHT
from broker.producer.settings import ProducerSettings
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)


@dataclass(eq=False, slots=True)
class Route:
    """The sets of a partition that its leader has not acknowledged yet."""

    partition: TopicPartition
    is_numbered: bool  # whether a broker knows the sets that it has already
    sender: BrokerSender | None = None  # to the leader; None if that is to be found
    in_flight: int = 0  # sets without a response
    # sets that came back, and those behind them, until none is in flight
    returned: list[PendingSet] = field(default_factory=list)
    waiting: deque[PendingSet] = field(default_factory=deque)  # sets to send, in order
    # base offsets of those in `waiting` that were stored before one ahead of them
    stored: dict[PendingSet, int] = field(default_factory=dict)
    # sets that came back and may be stored nevertheless, and why that is not known
    unknown: dict[PendingSet, errors.BrokerError] = field(default_factory=dict)
    error: errors.BrokerError | None = None  # why a set came back; None unless broken
    failures: int = 0  # how often in a row sets came back
    spent: int = 0  # how many of these count as retries
    since_s: float = 0.0  # when they first did
    retry_s: float = 0.0  # when to send again
    # sets begin another sequence once all have come back
    renumbers: bool = False
    is_asked: bool = False  # this attempt has begun: the cluster was asked what is to be asked

    @property
    def is_empty(self) -> bool:
        """Return whether all sets are completed."""
        return not (self.in_flight or self.returned or self.waiting)

    def has_room(self) -> bool:
        """Return whether another set may be sent without responses to those before it."""
        return self.in_flight < MAX_IN_FLIGHT or not self.is_numbered

    def take_stored(self) -> None:
        """Complete the sets at the head that are stored already."""
        while self.waiting and (base_offset := self.stored.pop(self.waiting[0], None)) is not None:
            self.waiting.popleft().complete(base_offset, None)

    def wants_leader(self) -> bool:
        """Return whether to request the leader of the partition again."""
        error = self.error
        if isinstance(error, errors.NotLeaderError):
            return error.leader < 0 or self.failures > 1
        return self.failures > 1 or isinstance(
            error, (errors.LeaderNotAvailableError, *errors.UNANSWERED)
        )

    def lacks_broker(self) -> bool:
        """Return whether the broker is gone, and not only a connection to it."""
        error = self.error
        if isinstance(error, errors.BrokerStoppedError | errors.RequestTimeoutError):
            return True
        return isinstance(error, errors.BrokerUnreachableError) and self.failures > 1

    def movable(self) -> list[PendingSet]:
        """Return the sets that wait and may go to another partition.

        Not one with a stamp: a broker has perhaps stored it, and another one cannot know that.
        """
        return [
            one
            for one in self.waiting
            if one.can_move and one not in self.stored and one.stamp is None
        ]

    def final_error(self, one: PendingSet, error: errors.BrokerError) -> errors.BrokerError:
        """Return the error for a set that is given up, with that of an earlier attempt."""
        earlier = self.unknown.pop(one, None)
        if earlier is None or earlier is error or not isinstance(error, errors.ServerError):
            return error
        text = f"{error}; an earlier attempt may have stored these messages: {earlier}"
        return errors.error_for_code(error.code, text)

    def return_stored(self, one: PendingSet, base_offset: int) -> None:
        """Take back a stored set, which is completed after one ahead of it."""
        self.returned.append(one)
        self.stored[one] = base_offset

    def plan_retry(self, backoff_s: float) -> None:
        """Queue all sets for the next attempt, as none is in flight any more."""
        self.requeue()
        self.take_stored()
        if self.renumbers:  # the broker misses one before them
            for one in self.waiting:
                # those that it may have are found by their numbers only
                one.is_numbered &= not one.message_count or one in self.unknown
        self.sender = None
        self.is_asked = self.renumbers = False
        self.failures += 1
        self.spent += self.error is None or not self.error.is_cut_short
        wait_s = backoff.wait_s(self.failures, backoff_s)
        self.retry_s = time.monotonic() + wait_s
        logger.debug("%s: trying again in %.1fs: %s", self.partition, wait_s, self.error)

    def requeue(self) -> None:
        """Put the sets that came back before those that wait."""
        self.waiting.extendleft(reversed(self.returned))
        self.returned = []

    def mend(self) -> None:
        """Mark the route as good: the leader has taken the first set."""
        self.error, self.failures, self.spent, self.retry_s = None, 0, 0, 0.0
        self.is_asked = False

    def is_due(self, now_s: float) -> bool:
        """Return whether the sets that wait may be sent."""
        return now_s >= self.retry_s and not (self.in_flight and self.error is not None)

    def is_over(self, settings: ProducerSettings, now_s: float) -> bool:
        """Return whether the sets have failed for good."""
        if settings.retries is not None and self.spent > settings.retries:
            return True
        return now_s - self.since_s >= settings.delivery_timeout_s


class Routes(dict[TopicPartition, Route]):
    """The routes of partitions, made at first use; `unsent` are broken, or have sets that wait."""

    def __init__(self, backoff_s: float, *, is_idempotent: bool = False) -> None:
        super().__init__()
        self._is_idempotent = is_idempotent
        self.unsent: dict[TopicPartition, Route] = {}
        self._backoff_s = backoff_s

    def __missing__(self, partition: TopicPartition) -> Route:
        route = self[partition] = Route(partition, partition.has_records or self._is_idempotent)
        return route

    def next_retry_s(self, *, counts_begun: bool) -> float | None:
        """Return when sets are to be sent again (`time.monotonic`); None if there are none.

        An attempt that has begun and sent nothing waits for a response, which makes room.
        """
        broken = [one for one in self.unsent.values() if one.error is not None]
        waiting = [
            one for one in broken if not one.in_flight and (counts_begun or not one.is_asked)
        ]
        return min((one.retry_s for one in waiting), default=None)

    def mend(self, route: Route) -> None:
        """Mark a route as good after the leader has handled a set, so that the others follow."""
        if route.partition in self.unsent:
            route.mend()
            route.take_stored()
            if not route.waiting:
                del self.unsent[route.partition]

    def return_set(
        self, route: Route, one: PendingSet, error: errors.BrokerError, *, may_be_stored: bool
    ) -> None:
        """Take a set back that is to be sent again."""
        if may_be_stored:
            route.unknown[one] = error
        if route.error is None:
            route.since_s = time.monotonic()
        if not route.returned:
            route.error = error
        route.returned.append(one)
        self.unsent[route.partition] = route
        self.plan_retry(route)

    def plan_retry(self, route: Route) -> None:
        """Plan the next attempt once all sets have come back."""
        if route.returned and not route.in_flight:
            route.plan_retry(self._backoff_s)
