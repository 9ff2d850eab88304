"""Which replica of each partition a consumer reads from: its leader, or an in-sync follower.

The in-sync replicas are read again every few seconds. A partition that its follower does not
serve is read at its leader until then.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass

from broker import errors
from broker.client.cluster import Cluster, InSyncReplicas
from broker.protocol.checksum import crc32
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

LEADER = "leader"
ANY = "any"
_REFRESH_S = 10.0


@dataclass(eq=False, repr=False)
class ReadReplicas:
    """Chooses a replica of each partition to read from; for several threads.

    `read_from` is `leader`; `any` in-sync replica, so that readers spread over all of them; or the
    rack where a replica is preferred, the leader if it is there.
    """

    cluster: Cluster
    read_from: str = LEADER
    _: KW_ONLY
    clock_s: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        if not self.read_from:
            raise errors.ConfigError("to read from: leader, any or the name of a rack")
        self._draw = random.getrandbits(31)  # differs between readers, so that they spread
        self._lock = threading.Lock()
        self._topics: set[str] = set()
        self._chosen: dict[TopicPartition, int] = {}  # replaced, never changed in place
        self._refresh_at_s = 0.0
        self.version = 0  # counts refreshes; after each, other replicas may be chosen

    @property
    def uses_followers(self) -> bool:
        """Return whether a follower may be chosen."""
        return self.read_from != LEADER

    def broker_of(self, partition: TopicPartition) -> int:
        """Return the id of the broker to read a partition from, without a request."""
        chosen = self._chosen.get(partition)
        return self.cluster.leader_id(partition) if chosen is None else chosen

    def leave(self, partitions: Iterable[TopicPartition]) -> None:
        """Read partitions at their leader until the next refresh, as their replica fails."""
        gone = set(partitions)
        with self._lock:
            self._chosen = {one: id for one, id in self._chosen.items() if one not in gone}

    def refresh_if_due(self, topics: Iterable[str]) -> None:
        """Read which replicas are in sync, if due or for a new topic."""
        # without a response the former ones are kept
        if not self.uses_followers:
            return
        with self._lock:
            is_new = not self._topics.issuperset(topics)
            self._topics.update(topics)
            if not is_new and self.clock_s() < self._refresh_at_s:
                return
            self._refresh_at_s = self.clock_s() + _REFRESH_S
            asked = sorted(self._topics)
        with suppress(*errors.UNANSWERED):
            found = self.cluster.in_sync_replicas(asked)
            live = {one.id for one in self.cluster.brokers()}
            chosen = {one: self._choose(one, found, live) for one in found.replicas}
            with self._lock:
                self._chosen = {one: id for one, id in chosen.items() if id is not None}
                self.version += 1

    def _choose(
        self, partition: TopicPartition, found: InSyncReplicas, live: set[int]
    ) -> int | None:
        """Return the replica to read from; None for the leader, whichever broker that is then."""
        wanted = [
            one
            for one in sorted(found.replicas[partition])
            if one in live and self.read_from in (ANY, found.racks.get(one))
        ]
        leader = self.cluster.leader_id(partition)
        if not wanted or (leader in wanted and self.read_from != ANY):
            return None
        one = wanted[(crc32(str(partition).encode()) + self._draw) % len(wanted)]
        return None if one == leader else one
