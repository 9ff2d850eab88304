"""All fetchers of a broker: for each leader that it follows, `num.replica.fetchers` at most."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from threading import Lock

from broker.replication.follower import Follower
from broker.server.cluster.hosted_replica import HostedReplica
from broker.server.cluster.replica_fetcher import ReplicaFetcher
from broker.topic import share_of


class ReplicaFetchers:
    """The fetchers of one broker.

    Args:
        make: returns the fetcher for a leader's broker, and a share of its partitions.
        count: in how many shares the partitions of a leader are divided.
    """

    def __init__(self, make: Callable[[int, int], ReplicaFetcher], count: int) -> None:
        self._make = make
        self._count = count
        self._lock = Lock()  # guards the fields below; no other lock is taken under it
        self._by_share: dict[tuple[int, int], ReplicaFetcher] = {}
        self._retired: list[ReplicaFetcher] = []  # without partitions; they end soon
        self._is_stopped = False

    def all(self) -> list[ReplicaFetcher]:
        """Return the fetchers that copy from other brokers."""
        return list(self._by_share.values())

    def direct(self, replicas: Iterable[HostedReplica]) -> None:
        """Have the followers of all replicas copied from their leaders; end the other fetchers."""
        shares: dict[tuple[int, int], list[HostedReplica]] = {}
        for hosted in replicas:
            role = hosted.replica.role
            if isinstance(role, Follower) and role.leader >= 0:
                share = role.leader, share_of(hosted.log.partition, self._count)
                shares.setdefault(share, []).append(hosted)
        with self._lock:
            if self._is_stopped:
                return
            self._retired = [one for one in self._retired if one.is_alive()]
            for share in self._by_share.keys() - shares.keys():
                retired = self._by_share.pop(share)
                retired.stop()
                self._retired.append(retired)
            for share, followers in shares.items():
                fetcher = self._by_share.get(share)
                if fetcher is None:
                    fetcher = self._by_share[share] = self._make(*share)
                    fetcher.start()
                fetcher.follow(followers)

    def stop(self) -> None:
        """Have all fetchers end soon, and start no others."""
        with self._lock:
            self._is_stopped = True
            for fetcher in self._by_share.values():
                fetcher.stop()

    def join(self) -> None:
        """Wait for the end of all fetchers."""
        for fetcher in (*self._by_share.values(), *self._retired):
            fetcher.join()
