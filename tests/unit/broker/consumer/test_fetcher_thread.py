"""What the fetchers of a group do about a leader that is lost, or hangs."""

from __future__ import annotations

import math
import queue
import threading
import time
from collections.abc import Collection, Iterable

import pytest

from broker import deadlines
from broker.client.cluster import Cluster
from broker.client.connection import Connection
from broker.consumer.chunk import Chunk
from broker.consumer.committer import AssignedPartition
from broker.consumer.fetcher import Fetcher
from broker.consumer.fetcher_thread import Feed, FetcherThread, FetchSettings
from broker.consumer.membership import Lease
from broker.consumer.stream import ConsumerStream
from broker.errors import BrokerUnreachableError, RequestTimeoutError, StorageError
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.responses import BrokerAddress, HelloResponse
from broker.topic import MessagePosition, TopicPartition

PARTITION = TopicPartition("t", 0, 0)


class Lost(Cluster):
    """Broker 0 is lost; broker 1 is elected before the leaders are requested `elected_at` times."""

    def __init__(self, elected_at: int) -> None:
        self.elected_at = elected_at
        self.request_count = 0
        self.attempt_count = 0

    def brokers(self) -> list[BrokerAddress]:
        return [BrokerAddress(one, "fake", 1) for one in range(2)]

    def topics(self) -> list[str]:
        return ["t"]

    def partitions(self, topic: str) -> list[TopicPartition]:
        return [PARTITION]

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return self.brokers()[0]

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        self.request_count += 1
        return {PARTITION: 0 if self.request_count < self.elected_at else 1}

    def connect(self, address: BrokerAddress) -> Connection:
        self.attempt_count += 1
        raise BrokerUnreachableError(f"broker {address.id} refuses")


def assigned_at_zero() -> AssignedPartition:
    start = MessagePosition(0)
    return AssignedPartition(PARTITION, start, thread_id="c-0", committed=start)


@pytest.fixture
def stream() -> ConsumerStream:
    lease = Lease()
    lease.renew(time.monotonic() + 60)
    return ConsumerStream(
        "test",
        lease,
        max_chunks=1,
        timeout_s=60,
        on_room=lambda: None,
        on_restart=lambda _partition, _offset: None,
        next_good_message=lambda _partition, _offset: None,
    )


@pytest.mark.parametrize("elected_at", [1, 2, 4])
def test_fetcher_when_its_broker_is_lost_then_asks_who_leads_after_each_attempt(
    elected_at: int,
    stream: ConsumerStream,
) -> None:
    lost, moved = Lost(elected_at), queue.SimpleQueue[Collection[TopicPartition]]()
    settings = FetchSettings(1 << 20, 500, 3600.0, None, "largest")

    def give_away(partitions: Collection[TopicPartition]) -> None:
        thread.set_feeds({})
        moved.put(partitions)

    thread = FetcherThread(0, lost, lost.connect, settings, lambda _: True, give_away)
    thread.set_feeds({PARTITION: Feed(assigned_at_zero(), stream)})
    thread.start()
    try:
        assert list(moved.get(timeout=60)) == [PARTITION]
        assert lost.attempt_count == lost.request_count == elected_at
    finally:
        thread.stop()
        thread.join()


class Hanging(Connection):
    """A connection to a broker that responds to nothing."""

    def hello(self) -> HelloResponse:
        return HelloResponse(0, "", "", 1, 1, {})

    def send_extension(self, request: ExtensionRequest) -> int:
        return 1

    def has_received(self, within_s: float = 0.0) -> bool:
        return False


def test_fetcher_when_its_broker_hangs_then_waits_until_others_lead_its_partitions() -> None:
    answers = iter([False, False, True])
    fetcher = Fetcher(
        {PARTITION: 0},
        Hanging(BrokerAddress(0, "fake", 1), timeout_s=3600.0),
        is_replaced=lambda: next(answers),
    )
    with pytest.raises(RequestTimeoutError, match="has not answered for"):
        fetcher.poll()
    assert next(answers, None) is None


def test_fetcher_when_interrupted_while_its_broker_hangs_then_does_not_look_again() -> None:
    limits: list[float] = []

    def is_replaced() -> bool:
        limits.append(deadlines.left_s())
        fetcher.interrupt()
        return False

    connection = Hanging(BrokerAddress(0, "fake", 1))
    fetcher = Fetcher({PARTITION: 0}, connection, is_replaced=is_replaced)
    with pytest.raises(BrokerUnreachableError, match="is closed"):
        fetcher.poll()
    assert len(limits) == 1
    assert limits[0] < math.inf


def test_fetcher_when_a_partition_refused_before_is_blocked_then_waits_for_a_change(
    stream: ConsumerStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    assigned = assigned_at_zero()

    class Refusing(Fetcher):
        def poll(self) -> list[Chunk]:
            if assigned.is_blocked:
                return []
            assigned.is_blocked = True  # the message that is handed out meanwhile is corrupt
            return [Chunk(PARTITION, 0, b"", StorageError.code)]

    class Waits(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            waits.append(timeout)
            thread.stop()
            return True

    monkeypatch.setattr("broker.consumer.fetcher_thread.Fetcher", Refusing)
    waits: list[float | None] = []
    settings = FetchSettings(1 << 20, 500, 3600.0, None, "largest")
    thread = FetcherThread(0, Lost(1), Hanging, settings, lambda _: True, lambda _: None)
    thread._wake = Waits()
    thread.set_feeds({PARTITION: Feed(assigned, stream)})
    thread.run()
    assert waits == [3600.0]
