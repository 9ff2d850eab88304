"""What a group is given of topics that come into being, or are created again, while it exists."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.committer import AssignedPartition
from broker.consumer.fetcher_thread import Feed, FetcherThread, FetchSettings
from broker.consumer.membership import Lease
from broker.consumer.stream import ConsumerStream
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest
from broker.server.broker import Broker
from broker.topic import MessagePosition, TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import DELETED_CREATION
from tests.integration.broker.consumer.group_members import (
    Member,
    connect,
    numbered,
    publish,
)
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered

pytestmark = pytest.mark.zookeeper

StartBroker = Callable[..., Broker]


def delete(broker: Broker, topic: str = "t") -> None:
    connection = connect(broker)
    connection.call(DeleteTopicRequest(topic))
    connection.close()


def test_group_when_a_topic_is_new_then_it_is_read_from_its_start(
    start_broker: StartBroker, zookeeper: str, join: Callable[..., Member]
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    member = join()

    publish(broker, numbered("m", 1000))

    member.await_payloads(numbered("m", 1000))


def create_part(broker: Broker) -> None:
    """Create the part of the topic that one broker has, as in 0.7."""
    with Peer(broker.port) as peer:
        peer.call(CreateTopicRequest("t", 1))


def test_group_when_a_topic_is_new_on_a_second_broker_then_it_is_read_there_from_its_start(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    join: Callable[..., Member],
    tmp_path: Path,
) -> None:
    first = start_broker(zookeeper=zookeeper)
    second = start_broker(zookeeper=zookeeper, broker_id=1, data_dir=tmp_path / "second")
    create_part(first)
    publish(first, [b"before"])
    await_registered(session)
    member = join("t")

    create_part(second)
    publish(second, numbered("m", 100))

    member.await_payloads(numbered("m", 100))


def test_group_when_a_broker_was_away_at_the_start_then_its_old_messages_are_as_the_reset_says(
    start_broker: StartBroker, zookeeper: str, session: Session, join: Callable[..., Member]
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, [b"old"])
    await_registered(session)
    broker.stop()
    member = join("t")

    broker = start_broker(zookeeper=zookeeper)
    offsets = paths.offset("g", TopicPartition("t", 0, 0))
    wait_until(lambda: session.exists(offsets), "the first commit")
    publish(broker, [b"new"])

    member.await_payloads([b"new"])


def test_group_when_a_member_joins_later_then_new_topics_are_still_read_from_their_start(
    start_broker: StartBroker, zookeeper: str, session: Session, join: Callable[..., Member]
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    first = join(consumer_name="a")
    second = join(consumer_name="b")  # only "a" gets a partition of a topic that has one

    publish(broker, numbered("m", 100))
    first.await_payloads(numbered("m", 100))

    assert second.payloads == []


def test_group_when_a_topic_was_created_again_then_its_offsets_are_void_and_it_is_read_all(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    join: Callable[..., Member],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    member = join("t")
    publish(broker, numbered("former", 1000))
    member.await_payloads(numbered("former", 1000))
    member.leave()
    assert session.get(paths.offset("g", TopicPartition("t", 0, 0)))[0] != b"0"
    creation = paths.creation_id("t", 0)
    former, _ = session.get(creation)

    delete(broker)
    publish(broker, numbered("m", 3000))
    others = (former, DELETED_CREATION)
    wait_until(lambda: session.get(creation)[0] not in others, "the record of the second one")
    await_registered(session)
    again = join("t")

    again.await_payloads(numbered("m", 3000))
    assert "of t[0-0] is void" in caplog.text


def test_group_when_a_topic_is_created_again_under_a_member_then_it_is_read_from_the_start(
    start_broker: StartBroker,
    zookeeper: str,
    join: Callable[..., Member],
    caplog: pytest.LogCaptureFixture,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    member = join("t")
    publish(broker, numbered("former", 100))
    member.await_payloads(numbered("former", 100))

    delete(broker)
    publish(broker, numbered("m", 10))
    wait_until(lambda: "created again" in caplog.text, "a warning")
    end = {TopicPartition("t", 0, 0): MessagePosition(120)}
    # some may come twice: a fetch can reach the new log before the registry knows of it
    wait_until(lambda: set(member.payloads[100:]) == set(numbered("m", 10)), "delivery")
    wait_until(lambda: member.connector.positions == end, "its end")
    member.leave()
    assert member.payloads[:100] == numbered("former", 100)

    again = join("t")
    publish(broker, [b"last"])
    again.await_payloads([b"last"])


def test_group_when_offsets_are_plain_and_newer_than_the_topic_then_they_are_used(
    start_broker: StartBroker, zookeeper: str, session: Session, join: Callable[..., Member]
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    publish(broker, [b"1", b"2", b"3"])
    await_registered(session)
    session.create(paths.offset("g", TopicPartition("t", 0, 0)), b"11")  # as a 0.7 member does

    member = join("t")

    member.await_payloads([b"2", b"3"])


def test_group_when_a_broker_keeps_topics_from_before_it_kept_ids_then_offsets_are_used(
    start_broker: StartBroker,
    zookeeper: str,
    session: Session,
    join: Callable[..., Member],
    tmp_path: Path,
) -> None:
    broker = start_broker()
    publish(broker, [b"1", b"2", b"3"])
    broker.stop()
    (tmp_path / "data" / "topic-creation-ids").unlink()
    session.create(paths.offset("g", TopicPartition("t", 0, 0)), b"11")

    start_broker(zookeeper=zookeeper)
    await_registered(session)

    join("t").await_payloads([b"2", b"3"])


def test_fetcher_when_its_topic_is_created_again_then_does_not_read_on_at_the_old_offset(
    start_broker: StartBroker,
) -> None:
    broker = start_broker()
    partition = TopicPartition("t", 0, 0)
    publish(broker, numbered("former", 10))
    stream = make_stream()
    assigned = AssignedPartition(
        partition, MessagePosition(0), thread_id="c-0", committed=MessagePosition(0)
    )
    stream.assign(assigned)
    asked: list[AssignedPartition] = []

    def is_current(one: AssignedPartition) -> bool:
        asked.append(one)
        return False

    settings = FetchSettings(1 << 20, 20_000, 0.01, None, "largest")
    cluster = StaticCluster([connect(broker).address], Connection)
    thread = FetcherThread(0, cluster, Connection, settings, is_current, lambda _: None)
    thread.set_feeds({partition: Feed(assigned, stream)})
    thread.start()
    try:
        messages = iter(stream)
        assert [next(messages)[4] for _ in range(10)] == numbered("former", 10)
        delete(broker)
        # a fetch in progress is told of the deletion
        wait_until(lambda: asked, "a look at the registry")
        publish(broker, numbered("m", 100))
        before = len(asked)
        wait_until(lambda: len(asked) > before + 3, "more looks at the registry")
        assert not stream.is_full
    finally:
        thread.stop()
        thread.join()
        cluster.close()


def make_stream() -> ConsumerStream:
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
