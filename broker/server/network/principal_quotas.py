"""How much each principal uses of this broker, and how long its connections are throttled for it.

A principal that used more than its rate allows owes the time in which that would have been right,
as in Kafka (KIP-13, 124, 219): its response is sent at once, and the connection then waits before
the broker reads its next request. All connections of a principal share what it may use; brokers
may use all.
"""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import NamedTuple

from broker.clock import Clock
from broker.security.principal import BROKER, Principal
from broker.security.quotas import NO_LIMIT, Quotas
from broker.token_bucket import TokenBucket
from broker.zk.paths import DEFAULT_USER

MAX_THROTTLE_S = 20.0
"""Longer than this no connection waits: clients give up a request after 30 s."""
_SAVED_S = 1.0
"""What was not used is saved up for so long."""
_MAX_BUCKETS = 10_000


class PrincipalUse(NamedTuple):
    """What a principal has used."""

    received_bytes: float
    sent_bytes: float
    worked_s: float


class ThrottledPrincipal(NamedTuple):
    """A principal whose connections wait."""

    principal: str
    seconds_left: float
    kind: str  # the quota that it exceeded most


class _Bucket:
    """What one principal may still use now, in bytes, bytes and seconds."""

    __slots__ = ("exceeded", "limits", "until_s", "updated_s")

    def __init__(self, quotas: Quotas, now_s: float) -> None:
        rates = (
            float(quotas.producer_byte_rate or NO_LIMIT),
            float(quotas.consumer_byte_rate or NO_LIMIT),
            (quotas.request_percentage or NO_LIMIT) / 100,
        )
        self.limits = {
            index: TokenBucket(rate, rate * _SAVED_S, now_s)
            for index, rate in enumerate(rates)
            if rate
        }
        self.updated_s = now_s
        self.until_s = 0.0  # when nothing is owed any more
        self.exceeded = 0  # the index of the quota that this is for

    def take(self, use: PrincipalUse, now_s: float) -> None:
        self.updated_s = now_s
        longest_s = 0.0
        for index, limit in self.limits.items():
            owed_s = limit.spend(now_s, use[index], MAX_THROTTLE_S)
            if owed_s > longest_s:
                longest_s, self.exceeded = owed_s, index
        self.until_s = now_s + longest_s


class PrincipalQuotas:
    """The quotas of all principals, and what they have used; callable from any thread."""

    def __init__(self, clock: Clock) -> None:
        self.is_limiting = False  # whether there is any quota of what is used
        self._clock = clock
        self._lock = Lock()
        self._default = Quotas()
        self._of_users: Mapping[str, Quotas] = {}
        self._buckets: dict[Principal, _Bucket] = {}

    def set(self, default: Quotas, of_users: Mapping[str, Quotas]) -> None:
        """Use other quotas from now on; `default` is the broker's own, below `DEFAULT_USER`'s."""
        with self._lock:
            default = of_users.get(DEFAULT_USER, Quotas()).or_else(default)
            if (default, of_users) == (self._default, self._of_users):
                return
            self._default, self._of_users = default, of_users
            self._buckets.clear()
            rates = [one._replace(connections=None) for one in (default, *of_users.values())]
            self.is_limiting = any(map(any, rates))

    def max_connections(self, principal: Principal) -> int:
        """Return how many connections a principal may have; `NO_LIMIT` for any number."""
        if principal.kind == BROKER:
            return NO_LIMIT
        with self._lock:
            own = self._of_users.get(principal.name, Quotas())
            return own.or_else(self._default).connections or NO_LIMIT

    def charge(self, principal: Principal, use: PrincipalUse) -> float:
        """Note what a principal has used; return until when it is throttled, in the past if not."""
        if principal.kind == BROKER:
            return 0.0
        now_s = self._clock.monotonic_s()
        with self._lock:
            bucket = self._buckets.get(principal)
            if bucket is None:
                if len(self._buckets) >= _MAX_BUCKETS:
                    self._forget_idle(now_s)
                own = self._of_users.get(principal.name, Quotas())
                bucket = self._buckets[principal] = _Bucket(own.or_else(self._default), now_s)
            bucket.take(use, now_s)
            return bucket.until_s

    def throttled(self) -> list[ThrottledPrincipal]:
        """Return the principals that are throttled now, those that wait longest first."""
        now_s = self._clock.monotonic_s()
        with self._lock:
            found = [
                ThrottledPrincipal(
                    str(principal), one.until_s - now_s, Quotas._fields[one.exceeded]
                )
                for principal, one in self._buckets.items()
                if one.until_s > now_s
            ]
        return sorted(found, key=lambda one: -one.seconds_left)

    def _forget_idle(self, now_s: float) -> None:
        """Drop the buckets that are full again."""
        for principal, bucket in list(self._buckets.items()):
            if max(bucket.updated_s, bucket.until_s) < now_s - _SAVED_S:
                del self._buckets[principal]
