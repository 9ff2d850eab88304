"""Which broker serves each partition, since when it fails to, and when to try again.

Without I/O and without a clock: who reads tells what happens, and when.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar

from broker.client import backoff
from broker.topic import TopicPartition

_S = TypeVar("_S")


@dataclass(slots=True)
class _Outage:
    since_s: float
    failures: int = 0  # in a row
    retry_at_s: float | None = None


class Placement(Generic[_S]):
    """Where partitions are read, and what fails: a partition at its server, or a server as a whole.

    A server is what reads at one broker. Attempts are repeated after growing waits, at most
    `longest_wait_s`.
    """

    def __init__(self, longest_wait_s: float = math.inf) -> None:
        self.server_of: dict[TopicPartition, _S] = {}
        self._longest_wait_s = longest_wait_s
        self._outages: dict[TopicPartition | _S, _Outage] = {}

    def fail(
        self, one: TopicPartition | _S, now_s: float, *, since_s: float | None = None
    ) -> float:
        """Note that an attempt failed, begun at `since_s`; return the wait before the next one."""
        outage = self._outages.get(one)
        if outage is None:
            outage = self._outages[one] = _Outage(now_s if since_s is None else since_s)
        outage.failures += 1
        wait_s = min(backoff.wait_s(outage.failures), self._longest_wait_s)
        outage.retry_at_s = now_s + wait_s
        return wait_s

    def postpone(self, one: TopicPartition | _S, until_s: float) -> None:
        """Make no attempt before `until_s`."""
        self._outages.setdefault(one, _Outage(until_s)).retry_at_s = until_s

    def attempt(self, one: TopicPartition | _S) -> None:
        """Note that another attempt begins: no retry is due any more."""
        if (outage := self._outages.get(one)) is not None:
            outage.retry_at_s = None

    def recover(self, one: TopicPartition | _S) -> bool:
        """Note a success; return whether it failed before."""
        return self._outages.pop(one, None) is not None

    def failing_since_s(self, one: TopicPartition | _S, now_s: float) -> float:
        """Return when the first of the failures in a row began; now if there is none."""
        outage = self._outages.get(one)
        return now_s if outage is None else outage.since_s

    def retry_at_s(self, one: TopicPartition | _S) -> float | None:
        """Return when the next attempt is due; None if none is waited for."""
        outage = self._outages.get(one)
        return None if outage is None else outage.retry_at_s
