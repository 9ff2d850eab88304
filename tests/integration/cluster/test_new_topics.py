"""A topic is there as a whole from its creation on, for all clients, whoever makes it, and when."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

import pylogctl
from broker.protocol.client_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.codec import encode
from broker.protocol.requests import LATEST_TIME
from broker.server.broker import Broker
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.creations import read_homes
from broker.zk.session import Session
from broker.zk.values import encode_homes
from tests.integration.broker.factories import BrokerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session_of

pytestmark = pytest.mark.zookeeper

KEYS = [str(number) for number in range(60)]
StartBrokers = Callable[[Sequence[int]], list[Broker]]


@pytest.fixture
def start_brokers(
    start_broker: BrokerFactory, zookeeper: str, session: Session, tmp_path: Path
) -> StartBrokers:
    def start(ids: Sequence[int]) -> list[Broker]:
        brokers = [
            start_broker(broker_id=id, data_dir=tmp_path / str(id), zookeeper=zookeeper)
            for id in ids
        ]
        wait_until(
            lambda: all(one.view.snapshot().brokers.keys() >= {*ids} for one in brokers),
            "brokers that know each other",
        )
        return brokers

    return start


@pytest.fixture
def brokers(start_brokers: StartBrokers) -> list[Broker]:
    return start_brokers(range(3))


@pytest.fixture
def client(brokers: list[Broker]) -> Iterator[pylogctl.Client]:
    with pylogctl.connect(at(brokers)) as client:
        yield client


def at(brokers: Sequence[Broker]) -> str:
    return ",".join(f"127.0.0.1:{one.port}" for one in brokers)


def stop_last(brokers: Sequence[Broker]) -> None:
    """Stop broker 2, and wait until the others know."""
    brokers[2].stop()
    wait_until(
        lambda: all(2 not in one.view.snapshot().brokers for one in brokers[:2]),
        "the news of its end",
    )


def places_of(client: pylogctl.Client, topic: str) -> dict[str, str]:
    """Send a message with each key, and return the partitions that they are in."""
    with client.producer() as producer:
        sent = {key: producer.send(topic, key, key=key) for key in KEYS}
    return {key: one.result(0).partition.name for key, one in sent.items()}


def test_count_when_first_messages_are_acknowledged_then_has_all_of_them(
    client: pylogctl.Client,
) -> None:
    for number in range(5):
        topic = f"t{number}"
        with client.producer() as producer:
            for text in KEYS:
                producer.send(topic, text)
        assert client.count(topic) == len(KEYS)
        assert len(list(client.read(topic))) == len(KEYS)


def test_keys_when_the_topic_is_new_then_have_the_places_that_they_have_later(
    brokers: list[Broker], client: pylogctl.Client
) -> None:
    first = places_of(client, "t")

    assert set(first.values()) == {"0-0", "1-0", "2-0"}
    with pylogctl.connect(at(brokers[2:])) as other:
        assert places_of(other, "t") == first
    sent = {key: client.send("t", key, key=key).partition.name for key in KEYS[:10]}
    assert sent == {key: first[key] for key in sent}

    async def send_all() -> dict[str, str]:
        async with await pylogctl.aconnect(at(brokers)) as aclient:
            return {
                key: (await aclient.send("t", key, key=key)).partition.name for key in KEYS[:10]
            }

    assert asyncio.run(send_all()) == sent


def test_keys_when_several_clients_make_the_topic_at_once_then_all_place_them_alike(
    brokers: list[Broker],
) -> None:
    found: list[dict[str, str]] = []
    start = threading.Barrier(6)

    def run(first: int) -> None:
        with pylogctl.connect(at([*brokers[first:], *brokers[:first]])) as client:
            start.wait()
            found.append(places_of(client, "t"))

    threads = [threading.Thread(target=run, args=(number % 3,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(found) == 6
    assert all(one == found[0] for one in found)
    assert set(found[0].values()) == {"0-0", "1-0", "2-0"}


def test_metadata_while_a_topic_is_made_then_has_no_partition_or_all(
    brokers: list[Broker], client: pylogctl.Client
) -> None:
    seen: set[int] = set()
    is_over = threading.Event()

    def look(broker: Broker) -> None:
        while not is_over.is_set():
            for topic in ("first", "made"):
                metadata = broker.view.snapshot().topic(topic)
                seen.add(0 if metadata is None else len(metadata.partitions))

    threads = [threading.Thread(target=look, args=(one,)) for one in brokers]
    for thread in threads:
        thread.start()
    client.send("first", "x")
    client.create_topic("made", partitions=3)
    wait_until(
        lambda: all(
            one.view.snapshot().has(topic) for one in brokers for topic in ("first", "made")
        ),
        "all brokers to show the topics",
    )
    is_over.set()
    for thread in threads:
        thread.join()

    assert seen <= {0, 3}


def test_topic_when_a_home_is_away_then_its_partition_stays_and_keys_keep_their_places(
    brokers: list[Broker], client: pylogctl.Client, zookeeper: str
) -> None:
    before = places_of(client, "t")
    stop_last(brokers)

    for other in (
        pylogctl.connect(at(brokers[:2])),
        pylogctl.connect(zookeeper=zookeeper),
    ):
        with other:
            kept = {key: name for key, name in before.items() if name != "2-0"}
            sent = {key: other.send("t", key, key=key).partition.name for key in list(kept)[:9]}
            assert sent == {key: kept[key] for key in sent}
            without_key = {other.send("t", "x").partition.name for _ in range(20)}
            assert without_key <= {"0-0", "1-0"}
    metadata = brokers[0].view.snapshot().topic("t")
    assert metadata is not None
    assert [(one.partition.name, one.leader) for one in metadata.partitions] == [
        ("0-0", 0),
        ("1-0", 1),
        ("2-0", -1),
    ]


def test_first_message_when_a_broker_is_dead_then_the_topic_is_on_the_live_ones(
    brokers: list[Broker], session: Session
) -> None:
    stop_last(brokers)
    with pylogctl.connect(at(brokers[:2])) as client:
        places = places_of(client, "t")
        assert set(places.values()) == {"0-0", "1-0"}
        assert read_homes(session, ["t"]) == {"t": {0: 1, 1: 1}}
        assert places_of(client, "t") == places


def test_home_when_it_was_away_as_the_topic_was_made_then_has_its_part_once_it_is_back(
    start_brokers: StartBrokers, session: Session
) -> None:
    (broker,) = start_brokers([0])
    session.create(paths.creation_ids("t"), encode_homes({0: 1, 1: 2}))
    session.create(paths.topic("t"))
    wait_until(lambda: broker.view.snapshot().has("t"), "the topic")
    with pylogctl.connect(at([broker])) as client:
        assert client.send("t", "x", partition="0-0").offset == 0

    start_brokers([1])

    with pylogctl.connect(at([broker])) as client:
        receipt = client.send("t", "x", partition="1-1")
        assert receipt.partition.name == "1-1"


@pytest.mark.parametrize("replicas", [None, 3])
def test_topic_when_it_is_deleted_while_a_producer_sends_then_stays_deleted_and_is_named(
    client: pylogctl.Client, replicas: int | None
) -> None:
    client.create_topic("t", partitions=3, replicas=replicas)
    failures: list[BaseException] = []
    sent = threading.Event()

    def note(delivery: pylogctl.Delivery) -> None:
        sent.set()
        if (error := delivery.exception()) is not None:
            failures.append(error)

    producer = client.producer(on_delivery=note)
    is_over = threading.Event()

    def send() -> None:
        while not is_over.wait(0.001):
            producer.send("t", "x")

    thread = threading.Thread(target=send)
    thread.start()
    sent.wait(60)
    client.delete_topic("t")
    wait_until(lambda: len(failures) > 200, "messages that fail")
    is_over.set()
    thread.join()
    producer.close()

    assert [one.name for one in client.topics()] == []
    assert "there is no topic 't'" in str(failures[-1])
    assert "deleted" in str(failures[-1])


def test_first_produce_of_0_7_when_there_are_several_brokers_then_nothing_is_lost(
    brokers: list[Broker], session: Session
) -> None:
    messages = encode([b"one", b"two"])
    with Peer(brokers[1].port) as peer:
        for _ in range(3):
            peer.produce("t", messages)
        wait_until(
            lambda: peer.offsets("t", LATEST_TIME)[0] == 3 * len(messages), "all sets to be stored"
        )
    assert read_homes(session, ["t"]) == {"t": {0: 1, 1: 1, 2: 1}}


def test_publish_when_there_is_no_topic_then_is_refused_and_makes_none(
    brokers: list[Broker], session: Session
) -> None:
    sets = (PartitionSet(TopicPartition("t", 0, 0), encode([b"x"])),)
    with Peer(brokers[0].port) as peer:
        peer.send_extension(PublishRequest(Acks.COMMITTED, 1000, sets))
        peer.receive_extension()
    assert session.exists(paths.topic("t")) is None


def test_topic_when_its_last_live_home_deletes_it_then_is_gone_though_another_is_away(
    brokers: list[Broker], client: pylogctl.Client, session: Session
) -> None:
    client.send("t", "x")
    stop_last(brokers)
    expire_session_of(session, paths.broker(2))

    client.delete_topic("t")

    assert [one.name for one in client.topics()] == []
    wait_until(lambda: not read_homes(session, ["t"]), "the end of the record")
