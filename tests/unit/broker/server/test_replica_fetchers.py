"""Which fetchers a broker has, and what each copies."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import cast
from unittest.mock import Mock

import pytest

from broker.client.connection import Connection
from broker.clock import SystemClock
from broker.cluster_state import PartitionState, ReplicatedPartition
from broker.config import BrokerConfig
from broker.errors import BrokerUnreachableError, StorageError
from broker.log.format import ENTRIES
from broker.log.segment import CopiedEntries
from broker.protocol.codec import encode
from broker.protocol.primitives import INT32, INT64, Reader
from broker.protocol.replica_requests import (
    NOTHING_DIVERGES,
    ReplicaPart,
    SessionFetchRequest,
    encode_replica_part_header,
)
from broker.replication.follower import Follower
from broker.server.cluster.replica_fetcher import ReplicaFetcher, ReplicaFetchers
from broker.server.cluster.replica_table import HostedReplica
from broker.topic import TopicPartition, share_of
from tests.doubles import FakeClock


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
    role = Follower(info, Mock(), Mock(), Mock())
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
    fetcher.follow([HostedReplica(replica, log, Event())])
    connection.interrupt.assert_called_once()

    for failure in ("", "lost"):
        fetcher._fetch()
        assert fetcher._failure == failure


ENTRY = encode([b"x" * 40])


class ScriptedLeader:
    """What a fetcher gets from its leader of one partition, and the log that it appends to."""

    def __init__(self, config: BrokerConfig) -> None:
        found = follower_of(1, 0)
        self.partition = found.log.partition
        self.log = Mock(partition=self.partition, is_faulty=False, flushes_before_read=True)
        self.log.format = ENTRIES
        self.log.log_end_offset = self.log.flushed_offset = self.log.high_watermark = 0
        self.log.epochs.last_epoch = 0
        self.log.append_copied.side_effect = self._append
        role = found.replica.role
        assert isinstance(role, Follower)
        role.log = self.log
        self.clock = FakeClock()
        self._body = b""
        connection = Mock(spec=Connection)
        connection.receive_size.side_effect = lambda: len(self._body)
        connection.receive_into.side_effect = self._receive_into
        connection.open_extension.side_effect = lambda start, _: Reader(start)
        self._send = connection.send_extension
        brokers, self.disks = Mock(), Mock()
        brokers.connect.return_value = connection
        self.fetcher = ReplicaFetcher(
            *(1, 0),
            table=Mock(scan_s=2.0),
            brokers=brokers,
            disks=self.disks,
            throttle=Mock(),
            config=config,
            clock=self.clock,
        )
        self.hosted = HostedReplica(Mock(role=role), self.log, Event())
        self.fetcher.follow([self.hosted])
        self.interrupt = connection.interrupt

    def _append(
        self, entries: CopiedEntries, offset: int, appended_ms: int | None, rows: bytes
    ) -> None:
        assert offset == self.log.log_end_offset
        self.log.log_end_offset += len(entries.data)

    def _receive_into(self, view: memoryview) -> None:
        view[:], self._body = self._body[: len(view)], self._body[len(view) :]

    def fetch(self, *parts: bytes) -> list[int]:
        """Have a response fetched; return the flushed offsets that the request names."""
        head = ReplicaPart(self.partition, 0, 0, 0, NOTHING_DIVERGES, (), b"")
        self._body = INT64.pack(7) + INT32.pack(len(parts))
        self._body += b"".join(encode_replica_part_header(head, len(one)) + one for one in parts)
        self.fetcher._fetch()
        return [one.flushed_offset for one in self.request.positions]

    @property
    def request(self) -> SessionFetchRequest:
        """The last one."""
        request: SessionFetchRequest = self._send.call_args.args[0]
        return request


@pytest.fixture
def leader(monkeypatch: pytest.MonkeyPatch) -> ScriptedLeader:
    monkeypatch.setattr("broker.server.cluster.replica_fetcher._PIECE_BYTES", 128)
    return ScriptedLeader(BrokerConfig(broker_id=0))


def test_fetch_when_a_response_is_cut_then_its_flush_is_told_of_once_it_has_ended(
    leader: ScriptedLeader,
) -> None:
    for cut in range(1, len(ENTRY)):  # also where the last piece has no whole entry
        leader.fetch((4 * ENTRY)[:-cut])
        leader.log.append.assert_called_once_with(b"", 0, flush_now=True)
        leader.log.append.reset_mock()

    assert leader.fetch() == [0]
    assert leader.fetch() == []
    leader.log.flushed_offset = leader.log.log_end_offset
    assert leader.fetch() == [leader.log.log_end_offset]
    assert leader.fetch() == []
    assert not leader.fetcher._flushing


def test_fetch_when_the_disk_is_full_then_that_is_logged_once_for_responses_of_several_pieces(
    leader: ScriptedLeader, caplog: pytest.LogCaptureFixture
) -> None:
    def fetch_refused() -> int:
        leader.log.append_copied.side_effect = StorageError("the disk is full")
        for _ in range(3):
            leader.clock.advance(2.0)  # it is tried again
            leader.fetch(4 * ENTRY)
        return len([one for one in caplog.records if "cannot copy" in one.message])

    assert fetch_refused() == 1
    leader.log.append_copied.side_effect = leader._append
    leader.clock.advance(2.0)
    leader.fetch(4 * ENTRY)
    assert leader.log.log_end_offset == 4 * len(ENTRY)
    assert fetch_refused() == 2


def test_fetch_when_nothing_moves_then_waits_longer_until_something_does(
    leader: ScriptedLeader,
) -> None:
    def wait_ms(*parts: bytes, after_s: float = 0.0) -> int:
        leader.clock.advance(after_s)
        leader.fetch(*parts)
        return leader.request.max_wait_ms

    log = leader.log
    assert wait_ms() == 500
    assert [wait_ms(after_s=2.0), wait_ms(ENTRY)] == [2000, 2000]
    assert [wait_ms(), wait_ms(after_s=2.0)] == [500, 500]  # the entry is not flushed
    log.flushed_offset = log.log_end_offset
    assert [wait_ms(after_s=2.0), wait_ms(after_s=2.0)] == [500, 500]  # nor known as committed
    log.high_watermark = log.log_end_offset
    assert wait_ms(after_s=2.0) == 2000


def test_follow_when_the_fetch_under_way_waits_longer_then_it_is_given_up_for_a_new_partition(
    leader: ScriptedLeader,
) -> None:
    found = follower_of(1, 1)
    log = Mock(partition=found.log.partition, is_faulty=False)
    new = HostedReplica(Mock(role=found.replica.role, leader_epoch=0), log, Event())
    leader.fetch()
    leader.fetcher.follow([leader.hosted])
    leader.interrupt.assert_not_called()
    leader.fetch()
    leader.clock.advance(2.0)
    leader.fetch()
    leader.fetcher.follow([leader.hosted, new])
    leader.interrupt.assert_called_once()


def test_fetch_when_nothing_moves_then_ends_before_the_connection_gives_up_or_by_any_byte() -> None:
    config = BrokerConfig(broker_id=0, replica_socket_timeout_ms=1500, replica_fetch_min_bytes=100)
    leader = ScriptedLeader(config)
    leader.fetch()
    leader.clock.advance(2.0)
    leader.fetch()
    assert (leader.request.max_wait_ms, leader.request.min_bytes) == (750, 1)
