"""How many topics clients may create: so many a second each, and so many partitions in all.

Not limited is who needs no quota: brokers, super users, and whom a rule allows to create any topic.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from broker import errors
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.log.manager import LogManager
from broker.security.principal import Principal
from broker.token_bucket import TokenBucket

BURST_S = 200
"""Who has created nothing for so long may create at once what the rate allows in that time."""
_COUNTED_S = 5.0
_MAX_PRINCIPALS = 10_000


def is_refusal(error: BaseException | None) -> bool:
    """Return whether an error says that a topic was not created, and will not be."""
    return isinstance(error, errors.ServerError) and not isinstance(
        error, errors.LeaderNotAvailableError | errors.RequestTimedOutError
    )


class CreationLimits:
    """Counts what each principal creates; any thread."""

    def __init__(self, config: BrokerConfig, logs: LogManager, clock: Clock) -> None:
        self.refused_count = 0
        self._logs = logs
        self._clock = clock
        self._lock = threading.Lock()  # guards all below
        self._buckets: dict[Principal, TokenBucket] = {}
        self._created: Counter[Principal] = Counter()  # partitions, since the start
        self._here = 0  # partitions of this broker
        self._counted_until_s = 0.0
        self.reconfigure(config)

    def reconfigure(self, config: BrokerConfig) -> None:
        """Use other limits from now on."""
        with self._lock:
            self._rate, self._max_partitions = config.quota_creation_rate, config.max_partitions
            self._buckets.clear()

    def take(self, who: Principal | None, topic: str, partition_count: int) -> None:
        """Count a topic that is about to be created, with its partitions here, none or more.

        Raises:
            TooManyTopicsError: its principal creates too many.
        """
        if who is None:
            return
        partition_count = max(0, partition_count)
        with self._lock:
            reason = self._excess(who, partition_count)
            if reason:
                self.refused_count += 1
                raise errors.TooManyTopicsError(
                    f"partitions of topic '{topic}' are not created: {reason}"
                )
            self._created[who] += partition_count
            self._here += partition_count

    @contextmanager
    def charged(self, who: Principal | None, topic: str, partition_count: int) -> Iterator[None]:
        """Count a topic that is created in the block as `take` does, unless that is refused."""
        self.take(who, topic, partition_count)
        try:
            yield
        except errors.ServerError as error:
            if is_refusal(error):
                self.give_back(who, partition_count)
            raise

    def give_back(self, who: Principal | None, partition_count: int) -> None:
        """Uncount a topic that was not created after `take`."""
        if who is None:
            return
        with self._lock:
            self._created[who] = max(0, self._created[who] - partition_count)
            self._here = max(0, self._here - partition_count)
            if (bucket := self._buckets.get(who)) is not None:
                bucket.give_back()

    def _excess(self, who: Principal, partition_count: int) -> str:
        now_s = self._clock.monotonic_s()
        if now_s >= self._counted_until_s:  # it takes long where there are many
            self._here, self._counted_until_s = self._logs.partition_count(), now_s + _COUNTED_S
            for one, count in self._created.items():  # topics may have been deleted
                self._created[one] = min(count, self._here)
        limit = self._max_partitions
        if self._here + partition_count > limit:
            return f"this broker has {self._here} partitions (max.partitions={limit})"
        if self._created[who] + partition_count > limit // 2:
            return (
                f"{who} has created {self._created[who]} partitions since the start of this "
                f"broker, and one user may create half of max.partitions={limit}"
            )
        if not self._rate:
            return ""
        if len(self._buckets) >= _MAX_PRINCIPALS:
            self._buckets.clear()
        bucket = self._buckets.setdefault(who, TokenBucket(self._rate, self._rate * BURST_S, now_s))
        wait_s = bucket.take(now_s)
        if not wait_s:
            return ""
        return (
            f"{who} creates more than {self._rate} topics a second (quota.creation.default); "
            f"try again in {wait_s:.1f} s"
        )
