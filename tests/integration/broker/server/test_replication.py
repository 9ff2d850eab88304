"""Brokers that replicate by the orders of a controller, which the test plays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import cast

import pytest

from broker.client.connection import Connection
from broker.cluster_state import (
    PartitionState,
    ReplicatedPartition,
    creation_key,
)
from broker.errors import (
    BrokerUnreachableError,
    LeaderNotAvailableError,
    NotEnoughReplicasError,
    NotLeaderError,
    OffsetNotAvailableError,
    RequestTimedOutError,
    ServerError,
    StaleControllerEpochError,
    StorageError,
    UnknownFetchSessionError,
)
from broker.log.creation import LogCreation
from broker.log.log import Log
from broker.log.log_parts import FlushedPart
from broker.log.segment import Disk, SegmentFiles
from broker.protocol.client_requests import (
    Acks,
    ListSegmentsRequest,
    OffsetKind,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.codec import encode
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import (
    PushStatesRequest,
    ReplicaPart,
    ReplicaPiece,
    ReplicaPosition,
    SessionFetchRequest,
)
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from broker.protocol.responses import (
    SEGMENT_STARTS,
    decode_publish_response,
    decode_read_response,
)
from broker.server.broker import Broker
from broker.server.cluster.replica_fetcher import ArrivingParts
from broker.server.cluster.replica_table import HostedReplica
from broker.topic import TopicPartition
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.scripted_cluster import CONTROLLER, PARTITION, ScriptedCluster
from tests.support.broker_proof import give_key, prove_to
from tests.support.replica_parts import read_replica_parts
from tests.support.waiting import wait_until

ONE = encode([b"one message"])
TWO = encode([b"another message"])


@pytest.fixture
def cluster(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> Iterator[ScriptedCluster]:
    yield ScriptedCluster(start_broker, connect, tmp_path)


def test_publish_when_all_are_in_sync_then_acknowledged_once_all_have_it(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    published = cluster.publish(0, ONE)
    assert (published.error, published.base_offset) == (0, 0)
    assert [cluster.bytes_of(one) for one in cluster.brokers] == [ONE] * 3
    part = cluster.read(0, 0)
    assert (part.error, bytes(part.message_set), part.high_watermark) == (0, ONE, len(ONE))


def test_publish_when_home_is_another_broker_then_its_leader_takes_it(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(1, (0, 1, 2))
    assert cluster.publish(1, ONE).error == 0
    refused = cluster.publish(0, ONE)
    assert (refused.error, refused.base_offset) == (NotLeaderError.code, 1)
    part = cluster.read(2, 0)
    assert (part.error, part.high_watermark) == (NotLeaderError.code, 1)
    cluster.await_bytes(ONE)


def test_publish_when_an_in_sync_replica_is_gone_then_not_acknowledged_but_kept(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    cluster.stop(2)
    assert cluster.publish(0, ONE, timeout_ms=300).error == RequestTimedOutError.code
    assert bytes(cluster.read(0, 0).message_set) == b""
    cluster.decide(0, (0, 1))
    assert cluster.publish(0, TWO).base_offset == len(ONE)
    assert bytes(cluster.read(0, 0).message_set) == ONE + TWO


def test_publish_when_too_few_are_in_sync_then_refused_and_not_written(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0,), min_isr=2)
    assert cluster.publish(0, ONE).error == NotEnoughReplicasError.code
    assert cluster.bytes_of(0) == b""
    cluster.reconnect(0)
    assert cluster.publish(0, ONE, acks=Acks.WRITTEN).error == 0


@pytest.mark.parametrize(
    ("leader", "isr", "error"),
    [(1, (0, 1, 2), NotLeaderError), (0, (0,), NotEnoughReplicasError)],
)
def test_publish_when_an_earlier_set_of_its_connection_was_refused_then_only_a_new_one_is_served(
    cluster: ScriptedCluster,
    leader: int,
    isr: tuple[int, ...],
    error: type[ServerError],
) -> None:
    cluster.decide(leader, isr, min_isr=2)
    assert cluster.publish(0, ONE).error == error.code
    cluster.decide(0, (0, 1, 2), min_isr=2)
    later = cluster.publish(0, TWO)
    assert later.error == error.code
    assert "earlier set of this connection" in later.text
    assert cluster.bytes_of(0) == b""
    cluster.reconnect(0)
    assert cluster.publish(0, ONE).error == 0


def test_publish_when_refused_by_a_broker_that_becomes_a_replica_then_needs_a_new_connection(
    cluster: ScriptedCluster,
) -> None:
    cluster.replicas = (0, 2)
    cluster.decide(0, (0, 2))
    assert cluster.publish(1, ONE).error == NotLeaderError.code
    cluster.replicas = (0, 1, 2)
    cluster.decide(1, (1,))
    assert cluster.publish(1, TWO).error == NotLeaderError.code
    cluster.reconnect(1)
    assert cluster.publish(1, ONE).error == 0


def test_publish_when_the_leader_changes_before_the_commit_then_told_at_once(
    cluster: ScriptedCluster, connect: PeerFactory
) -> None:
    cluster.decide(0, (0, 1, 2))
    cluster.stop(2)
    waiting = connect(cluster.brokers[0])
    request = PublishRequest(Acks.COMMITTED, 60_000, (PartitionSet(PARTITION, ONE),))
    waiting.send_extension(request)
    wait_until(lambda: cluster.bytes_of(0) == ONE, "the append")
    cluster.decide(1, (1, 0))
    (published,) = decode_publish_response(waiting.receive_extension())
    assert published.error == NotLeaderError.code


def test_failover_when_the_old_leader_has_more_then_it_takes_the_log_of_the_new_one(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, ONE).error == 0
    cluster.stop(1)
    cluster.stop(2)
    assert cluster.publish(0, TWO, acks=Acks.WRITTEN).error == 0
    cluster.stop(0)
    cluster.start(1)
    cluster.start(2)
    cluster.decide(1, (1, 2))
    assert cluster.publish(1, ONE * 3).base_offset == len(ONE)
    cluster.start(0)
    cluster.decide(1, (1, 2))
    cluster.await_bytes(ONE * 4)
    part = cluster.read(1, 0)
    assert bytes(part.message_set) == ONE * 4


def test_offsets_when_a_new_leader_does_not_know_what_is_committed_then_only_the_earliest(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    cluster.stop(2)
    assert cluster.publish(0, ONE, acks=Acks.WRITTEN).error == 0
    wait_until(lambda: cluster.bytes_of(1) == ONE, "the copy")
    cluster.decide(1, (1, 2))

    ends = (OffsetKind.LATEST, OffsetKind.LOG_END, OffsetKind.BEFORE_TIME)
    for kind in ends:
        assert cluster.list_offset(1, kind, 2**62).error == OffsetNotAvailableError.code
    assert cluster.list_offset(1, OffsetKind.EARLIEST).offset == 0
    for kind in (OffsetKind.BOUNDARY_BEFORE, OffsetKind.BOUNDARY_AFTER):
        assert cluster.list_offset(1, kind, 0).offset == 0
        assert cluster.list_offset(1, kind, 1).error == OffsetNotAvailableError.code
    with pytest.raises(OffsetNotAvailableError):
        cluster.peer(1).call(ListSegmentsRequest(PARTITION, LATEST_TIME, 10))
    body = cluster.peer(1).call(ListSegmentsRequest(PARTITION, EARLIEST_TIME, 10))
    assert SEGMENT_STARTS.decode(body) == [0]

    cluster.decide(1, (1,))
    for kind in ends:
        assert cluster.list_offset(1, kind, 2**62).offset == len(ONE)


def test_read_when_above_the_high_watermark_of_a_new_leader_then_waits_for_more(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    cluster.stop(2)
    assert cluster.publish(0, ONE, acks=Acks.WRITTEN).error == 0
    wait_until(lambda: cluster.bytes_of(1) == ONE, "the copy")
    cluster.decide(1, (1, 2))
    part = cluster.read(1, len(ONE), max_wait_ms=100)
    assert (part.error, bytes(part.message_set)) == (0, b"")

    position = PartitionPosition(PARTITION, len(ONE), 1 << 20)
    reader = cluster.connect(1)
    reader.send_extension(ReadRequest(60_000, 1, 1 << 20, (position,)))
    cluster.change_isr(1, (1,))
    assert cluster.publish(1, TWO).error == 0
    (part,) = decode_read_response(reader.receive_extension())
    assert (part.error, bytes(part.message_set)) == (0, TWO)


def test_produce_of_07_when_its_home_does_not_lead_then_forwarded_in_order(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(1, (0, 1, 2))
    peer = cluster.peer(0)
    for message_set in (ONE, TWO, ONE):
        peer.produce("events", message_set)
    cluster.await_bytes(ONE + TWO + ONE)
    wait_until(lambda: peer.fetch("events", 0) == (0, ONE + TWO + ONE), "the home's high watermark")
    assert peer.fetch("events", 10_000) == (0, b"")  # a follower may be behind


def test_orders_when_to_lead_and_to_follow_then_it_leads_first(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    broker = start_broker(broker_id=1, data_dir=give_key(tmp_path))
    broker.replicas.registered_epoch = lambda: 1
    caplog.set_level("INFO", "broker.state_change")
    leaders = [0, 1, 0, 1]
    partitions = [
        ReplicatedPartition(
            TopicPartition("events", 0, n), "id", (0, 1), 1, PartitionState(leader, 0, (0, 1), 1), 1
        )
        for n, leader in enumerate(leaders)
    ]
    peer = connect(broker)
    prove_to(broker, peer.call, CONTROLLER)
    peer.call(PushStatesRequest(CONTROLLER, 1, 1, False, (), tuple(partitions), ()))
    told = [one.getMessage() for one in caplog.records if one.name == "broker.state_change"]
    assert ["leads" in one for one in told] == [True, True, False, False]


def test_start_when_no_controller_has_spoken_then_nothing_is_appended(
    cluster: ScriptedCluster,
) -> None:
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, ONE).error == 0
    cluster.stop(0)
    cluster.start(0)
    assert cluster.publish(0, ONE).error == LeaderNotAvailableError.code
    cluster.reconnect(0)
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, ONE).base_offset == len(ONE)


def test_start_when_no_controller_has_spoken_then_an_unknown_partition_may_be_retried(
    cluster: ScriptedCluster,
) -> None:
    """It may be of a topic that was created after this broker has read the registry."""
    cluster.brokers[0].replica_manager.orders.expect_topics(["another"])
    home_of_other = TopicPartition("events", 1, 0)
    told_later = LeaderNotAvailableError.code
    assert cluster.list_offset(0, OffsetKind.LATEST, partition=home_of_other).error == told_later
    assert cluster.list_offset(0, OffsetKind.LATEST).error == told_later
    assert cluster.read(0, 0).error == told_later
    assert cluster.publish(0, ONE).error == told_later
    cluster.reconnect(0)

    cluster.decide(1, (1, 2))
    assert cluster.publish(0, ONE).error == NotLeaderError.code
    unknown = TopicPartition("no-such-topic", 7, 0)
    assert cluster.list_offset(0, OffsetKind.LATEST, partition=unknown).error == 3


def test_log_when_it_is_new_and_no_replica_yet_then_clients_get_nothing_of_it(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a broker that lost its disk: an empty log would void what they have read."""
    first = cluster.brokers[0].logs.creation
    replicate = LogCreation._replicate
    errors: list[int] = []

    def observed(creation: LogCreation, log: Log, creation_id: str) -> None:
        if creation is first:
            request = ReadRequest(0, 1, 1 << 20, (PartitionPosition(PARTITION, 100, 1 << 20),))
            peer = cluster.connect(0)  # the other waits for the response to the orders
            (part,) = decode_read_response(peer.call(request))
            errors.extend((part.error, peer.fetch(PARTITION.topic, 100)[0]))
        replicate(creation, log, creation_id)

    monkeypatch.setattr(LogCreation, "_replicate", observed)
    cluster.decide(0, (0, 1, 2))

    assert errors == [NotLeaderError.code, 0]
    assert cluster.read(0, 0).error == 0


def test_start_when_a_topic_is_gone_by_the_first_orders_then_clients_are_not_told_of_it(
    cluster: ScriptedCluster,
) -> None:
    gone = TopicPartition("gone", 1, 0)
    state = PartitionState(1, 0, (1,), 1)
    broker = cluster.brokers[0]
    broker.replica_manager.orders.expect_topics(["gone"], [gone])
    broker._note_states([ReplicatedPartition(gone, "id", (1,), 1, state, 0)], ())
    assert broker.view.snapshot().topic("gone") is not None

    cluster.peer(0).call(PushStatesRequest(CONTROLLER, 1, 1, True, (), (), ()))

    assert broker.view.snapshot().topic("gone") is None


class HangingLog:
    """A faulty log whose disk does not respond before the test says so."""

    is_faulty = True

    def __init__(self, index: int, responds: Event) -> None:
        self.partition = TopicPartition("hanging", 0, index)
        self._responds = responds

    def retry_refused(self) -> None:
        self._responds.wait()
        raise StorageError("it is as before")


def test_orders_when_the_disks_of_many_faulty_logs_hang_then_are_carried_out_meanwhile(
    cluster: ScriptedCluster,
) -> None:
    responds = Event()
    hanging = [SimpleNamespace(log=HangingLog(index, responds)) for index in range(40)]
    cluster.brokers[0].replica_manager._faults.retry(cast(list[HostedReplica], hanging))
    try:
        cluster.decide(0, (0, 1, 2))
        assert cluster.publish(0, ONE).error == 0
    finally:
        responds.set()


def test_orders_when_of_a_former_controller_then_refused(cluster: ScriptedCluster) -> None:
    cluster.controller_epoch = 5
    cluster.decide(0, (0, 1, 2))
    cluster.controller_epoch = 4
    with pytest.raises(StaleControllerEpochError):
        cluster.push(0, 1, (0, 1, 2))
    assert cluster.publish(0, ONE).error == 0


def test_publish_when_messages_are_larger_than_a_fetch_then_they_are_copied(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    def start_small(**settings: object) -> Broker:
        return start_broker(replica_fetch_bytes=100, **settings)

    cluster = ScriptedCluster(start_small, connect, tmp_path)
    cluster.decide(0, (0, 1, 2))
    large = encode([b"x" * 5000])
    assert cluster.publish(0, ONE + large + ONE).error == 0
    cluster.await_bytes(ONE + large + ONE)


@pytest.mark.parametrize("sizes", [(200, 700_000, 3000, 100), (1000, 1000, 1000, 1000)])
def test_follower_when_it_lacks_more_than_a_response_holds_then_fetches_on_beside_its_flush(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch, sizes: tuple[int, ...]
) -> None:
    cluster.decide(0, (0, 1, 2))
    cluster.stop(2)
    cluster.decide(0, (0, 1))
    sets = [encode([b"x" * size] * (1_500_000 // size)) for size in sizes]
    for one in sets:
        assert cluster.publish(0, one).error == 0
    may_sync, sync = Event(), FlushedPart.sync

    def sync_late(part: FlushedPart, files: SegmentFiles, disk: Disk) -> None:
        if any("replicas" in one.path.parts for one in part.files):
            may_sync.wait()
        sync(part, files, disk)

    monkeypatch.setattr(FlushedPart, "sync", sync_late)
    try:
        cluster.start(2)
        cluster.decide(0, (0, 1))
        cluster.await_bytes(b"".join(sets))
        leader = cluster.brokers[0].replicas.hosted(PARTITION).replica.leader
        wait_until(lambda: leader.lag_of(2) == sum(map(len, sets)), "a fetch without a flush")
    finally:
        may_sync.set()
    wait_until(lambda: leader.lag_of(2) == 0, "the flush")


def test_follower_when_a_response_is_broken_off_then_goes_on_behind_what_it_has_of_it(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.decide(0, (0, 1, 2))
    cluster.stop(2)
    cluster.decide(0, (0, 1))
    large = encode([b"x" * 1000] * 3000)
    assert cluster.publish(0, large).error == 0
    receive, broken_off = ArrivingParts.receive, Event()

    def break_off(
        self: ArrivingParts, connection: Connection, start: Reader, left_bytes: int
    ) -> Iterator[list[ReplicaPiece]]:
        for pieces in receive(self, connection, start, left_bytes):
            yield pieces
            if pieces and not broken_off.is_set():
                broken_off.set()
                raise BrokerUnreachableError("lost")

    monkeypatch.setattr(ArrivingParts, "receive", break_off)
    cluster.start(2)
    cluster.decide(0, (0, 1))
    cluster.await_bytes(large)
    assert broken_off.is_set()
    fetchers = cluster.brokers[2].replica_manager.fetchers.all()
    assert sum(one.fetched_bytes for one in fetchers) == len(large)


def test_fetch_when_positions_of_clients_are_limited_then_followers_copy_all_the_same(
    start_broker: BrokerFactory, connect: PeerFactory, tmp_path: Path
) -> None:
    def start_limited(**settings: object) -> Broker:
        return start_broker(max_fetch_positions=1, **settings)

    cluster = ScriptedCluster(start_limited, connect, tmp_path)
    cluster.decide(0, (0, 1, 2))
    assert cluster.publish(0, ONE).error == 0


class SessionFollower:
    """A connection on which the test is broker 1, which follows in fetch sessions."""

    def __init__(self, cluster: ScriptedCluster) -> None:
        self._peer = cluster.connect(0)
        prove_to(cluster.brokers[0], self._peer.call, 1)

    def fetch(
        self, session: tuple[int, int], *ends: int, forgets: bool = False, wait_ms: int = 0
    ) -> tuple[int, list[ReplicaPart]]:
        """Fetch, from where the log ends; without an end from where it ended before."""
        last_epoch = 0 if any(ends) else -1
        positions = tuple(
            ReplicaPosition(PARTITION, 0, end, last_epoch, end, creation_key("id"), 1 << 20)
            for end in ends
        )
        forgotten = (PARTITION,) if forgets else ()
        request = SessionFetchRequest(1, 1, *session, wait_ms, 1, 1 << 20, positions, forgotten)
        body = self._peer.call(request)
        return body.int64(), read_replica_parts(body)


def test_fetch_when_in_a_session_then_what_is_not_named_counts_and_only_news_come(
    cluster: ScriptedCluster,
) -> None:
    cluster.replicas = (0, 1)
    cluster.decide(0, (0, 1))
    cluster.stop(1)
    follower = SessionFollower(cluster)
    session, (first,) = follower.fetch((0, 0), 0)
    assert (first.error, first.high_watermark, bytes(first.data)) == (0, 0, b"")
    assert follower.fetch((session, 1)) == (session, [])

    cluster.publish(0, ONE, acks=Acks.WRITTEN)
    for epoch in (2, 3):  # until it is acknowledged
        _, (part,) = follower.fetch((session, epoch))
        assert (bytes(part.data), part.high_watermark) == (ONE, 0)
    log = cluster.brokers[0].replicas.hosted(PARTITION).log
    wait_until(lambda: log.flushed_offset == len(ONE), "the leader's flush")
    _, (part,) = follower.fetch((session, 4), len(ONE))
    assert (bytes(part.data), part.high_watermark) == (b"", len(ONE))
    assert cluster.read(0, 0).high_watermark == len(ONE)

    for strange, another in ((4, follower), (6, follower), (5, SessionFollower(cluster))):
        with pytest.raises(UnknownFetchSessionError):
            another.fetch((session, strange), 0)
    role = cluster.brokers[0].replicas.leader_of(PARTITION)
    fetched_s = role._followers[1].caught_up_s
    wait_until(
        lambda: cluster.brokers[0].replicas.scan_s < time.monotonic() - fetched_s,
        "the next look at all partitions",
    )
    assert follower.fetch((session, 5)) == (session, [])
    assert role._followers[1].caught_up_s > fetched_s

    cluster.publish(0, TWO, acks=Acks.WRITTEN)
    assert follower.fetch((session, 6), forgets=True) == (session, [])
    _, (part,) = follower.fetch((0, 0), len(ONE))
    assert bytes(part.data) == TWO
    with pytest.raises(UnknownFetchSessionError):  # one of a connection is enough
        follower.fetch((session, 7))


def test_fetch_when_a_follower_would_wait_for_longer_than_its_leader_allows_then_is_answered(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.integration.broker.server.peer.ANSWER_TIMEOUT_S", 30)
    cluster.replicas = (0, 1)
    cluster.decide(0, (0, 1))
    cluster.stop(1)
    follower = SessionFollower(cluster)
    session, _ = follower.fetch((0, 0), 0)
    assert follower.fetch((session, 1), wait_ms=3_600_000) == (session, [])


def test_publish_when_the_leader_is_of_an_earlier_version_then_followers_name_all_each_time(
    cluster: ScriptedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Connection, "understands", lambda connection, kind: False)
    cluster.decide(0, (0, 1, 2))
    for message_set in (ONE, TWO):
        assert cluster.publish(0, message_set).error == 0
    cluster.await_bytes(ONE + TWO)
    assert not cluster.brokers[0].sessions._by_id
