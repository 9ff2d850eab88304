"""Which fetchers a broker has, and what each copies."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

from broker.client.connection import Connection
from broker.clock import SystemClock
from broker.cluster_state import PartitionState, ReplicatedPartition
from broker.config import BrokerConfig
from broker.errors import BrokerUnreachableError
from broker.replication.follower import Follower
from broker.server.cluster.hosted_replica import HostedReplica
from broker.server.cluster.replica_fetcher import ReplicaFetcher
from broker.server.cluster.replica_fetchers import ReplicaFetchers
from broker.topic import TopicPartition, share_of


class RecordedFetcher:
    """Notes what it is told, and fetches nothing."""

    def __init__(self, leader_id: int, share: int) -> None:
        self.key = (leader_id, share)
        self.followed: list[HostedReplica] = []
        self._is_running = False

    def start(self) -> None:
        self._is_running = True

    def is_alive(self) -> bool:
        return self._is_running

    def follow(self, followers: list[HostedReplica]) -> None:
        self.followed = followers

    def stop(self) -> None:
        self._is_running = False


def make(leader_id: int, share: int) -> ReplicaFetcher:
    return cast(ReplicaFetcher, RecordedFetcher(leader_id, share))


def follower_of(leader_id: int, index: int) -> HostedReplica:
    partition = TopicPartition("t", 0, index)
    state = PartitionState(leader_id, 1, (1, 2), 1)
    info = ReplicatedPartition(partition, "id", (0, 1, 2), 1, state, 1)
    role = Follower(info, Mock(), Mock())
    found = SimpleNamespace(
        log=SimpleNamespace(partition=partition), replica=SimpleNamespace(role=role)
    )
    return cast(HostedReplica, found)


def running(fetchers: ReplicaFetchers) -> dict[tuple[int, int], RecordedFetcher]:
    found = cast(list[RecordedFetcher], fetchers.all())
    assert all(one.is_alive() for one in found)
    return {one.key: one for one in found}


def test_direct_when_leaders_change_then_each_present_leader_has_a_fetcher() -> None:
    fetchers = ReplicaFetchers(make, 1)
    of_first, moved, leaderless = follower_of(1, 0), follower_of(2, 1), follower_of(-1, 2)
    fetchers.direct([of_first, moved, leaderless])
    before = running(fetchers)
    assert {key: one.followed for key, one in before.items()} == {
        (1, 0): [of_first],
        (2, 0): [moved],
    }

    moved = follower_of(1, 1)
    fetchers.direct([of_first, moved])

    assert running(fetchers) == {(1, 0): before[1, 0]}
    assert before[1, 0].followed == [of_first, moved]
    assert not before[2, 0].is_alive()


def test_direct_when_a_leader_has_several_fetchers_then_each_partition_belongs_to_one() -> None:
    fetchers = ReplicaFetchers(make, 3)
    replicas = [follower_of(1, index) for index in range(20)]
    fetchers.direct(replicas)
    copied = {
        (one.log.partition.index, key[1])
        for key, fetcher in running(fetchers).items()
        for one in fetcher.followed
    }
    assert copied == {(n, share_of(TopicPartition("t", 0, n), 3)) for n in range(20)}


def test_direct_when_all_fetchers_are_to_stop_then_none_is_started() -> None:
    fetchers = ReplicaFetchers(make, 1)
    fetchers.direct([follower_of(1, 0)])
    (first,) = running(fetchers).values()
    fetchers.stop()
    fetchers.direct([follower_of(2, 0)])
    assert len(fetchers.all()) == 1
    assert not first.is_alive()


def test_fetcher_when_it_is_to_copy_more_between_two_fetches_then_fetches_again_at_once() -> None:
    connection = Mock(spec=Connection)
    connection.send_extension.side_effect = BrokerUnreachableError("lost")
    brokers = Mock()
    brokers.connect.return_value = connection
    fetcher = ReplicaFetcher(
        *(1, 0),
        table=Mock(scan_s=1.0),
        brokers=brokers,
        disks=Mock(),
        throttle=Mock(),
        config=BrokerConfig(broker_id=0),
        clock=SystemClock(),
    )
    fetcher._connection = connection
    found = follower_of(1, 0)
    log = Mock(partition=found.log.partition, is_faulty=False)
    replica = Mock(role=found.replica.role, leader_epoch=1)
    fetcher.follow([HostedReplica(replica, log)])
    connection.interrupt.assert_called_once()

    for failure in ("", "lost"):
        fetcher._fetch()
        assert fetcher._failure == failure
