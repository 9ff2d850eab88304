"""Settings in ZooKeeper: a broker applies them while it runs, and nothing there can stop it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from broker.errors import MessageSizeTooLargeError, SchemaMismatchError
from broker.log.data_directory import SETTINGS_NAME
from broker.protocol.client_requests import Acks, HelloRequest
from broker.protocol.codec import encode
from broker.protocol.requests import ProduceRequest
from broker.protocol.responses import HELLO
from broker.schemas.payloads import Encoder
from broker.schemas.values import SchemaType
from broker.server.broker import Broker
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.settings import SettingsNode, SettingsRegistry, node_of_broker, node_of_topic
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.waiting import wait_until
from tests.support.zookeeper import await_registered, expire_session

NEVER_MS = 3_600_000
MESSAGE = encode([b"x" * 90])
BROKER = node_of_broker(0)
TOPIC = node_of_topic("t")
BAD = {
    "broken JSON": b'{"version":1,"config":{"flush.ms":"1"',
    "no object": b"[]",
    "no config": b'{"version":1}',
    "config is a list": b'{"version":1,"config":["flush.ms"]}',
    "a value is a list": b'{"version":1,"config":{"flush.ms":["1"]}}',
    "no UTF-8": b'{"version":1,"config":{"flush.ms":"\xff"}}',
    "an unknown name": b'{"version":1,"config":{"flush.m":"1"}}',
    "out of range": b'{"version":1,"config":{"flush.ms":"0"}}',
    "nothing": b"",
}


def put(session: Session, node: SettingsNode, **texts: str | None) -> None:
    """Set overrides, named with _ for dots, or remove those that are None."""

    def edit(before: Any) -> dict[str, str]:
        named = {name.replace("_", "."): text for name, text in texts.items()}
        return {name: text for name, text in (before | named).items() if text is not None}

    SettingsRegistry(session).change(node, edit)


def topic_settings(broker: Broker) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = broker.status()["topic_settings"]
    return found


def segment_count(broker: Broker, topic: str) -> int:
    count: int = broker.status()["metrics"][f"logs.{topic}-0"]["NumberOfSegments"]
    return count


def fill(peer: Peer, topic: str, count: int) -> None:
    for _ in range(count):
        assert peer.publish(topic, MESSAGE).error == 0


def test_retention_when_set_for_a_topic_then_its_segments_go_and_those_of_others_stay(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper, segment_bytes=50, cleanup_interval_ms=20)
    peer = connect(broker)
    for topic in ("t", "other"):
        fill(peer, topic, 5)

    put(session, TOPIC, retention_bytes="1")

    wait_until(lambda: segment_count(broker, "t") == 1, "the removal of segments")
    assert segment_count(broker, "other") == 5

    put(session, BROKER, log_retention_size="1")

    wait_until(lambda: segment_count(broker, "other") == 1, "the removal by the broker's setting")
    fill(peer, "t", 1)


def test_segment_size_when_set_for_a_topic_then_its_next_message_starts_a_segment(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    peer = connect(broker)
    fill(peer, "t", 3)
    assert segment_count(broker, "t") == 1

    put(session, TOPIC, segment_bytes="50")
    wait_until(lambda: topic_settings(broker) == {"t": {"segment.bytes": "50"}}, "the setting")
    fill(peer, "t", 3)

    assert segment_count(broker, "t") == 4

    put(session, TOPIC, segment_bytes=None)
    wait_until(lambda: not topic_settings(broker), "the end of the setting")
    fill(peer, "t", 3)

    assert segment_count(broker, "t") == 4
    assert session.exists(TOPIC.path) is None


@pytest.mark.parametrize(
    "setting", [{"flush_ms": "1"}, {"flush_messages": "1"}, {"flush_before_read": "false"}]
)
def test_flush_when_set_for_a_topic_then_messages_that_wait_become_visible_at_once(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    zookeeper: str,
    session: Session,
    setting: dict[str, str],
) -> None:
    broker = start_broker(
        zookeeper=zookeeper, flush_interval_ms=NEVER_MS, flush_interval_messages=10**6
    )
    peer = connect(broker)
    for topic in ("t", "other"):
        assert peer.publish(topic, MESSAGE, acks=Acks.WRITTEN).error == 0
    assert peer.fetch("t", 0) == (0, b"")

    put(session, TOPIC, **setting)

    assert peer.read("t", 0, max_wait_ms=20_000).message_set == MESSAGE
    assert peer.publish("t", MESSAGE, acks=Acks.WRITTEN).error == 0
    assert peer.read("t", len(MESSAGE), max_wait_ms=20_000).message_set == MESSAGE
    assert peer.fetch("other", 0) == (0, b"")


def test_partition_count_when_set_for_a_topic_then_it_has_more_and_they_are_registered(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    peer = connect(broker)
    fill(peer, "t", 1)
    await_registered(session)

    put(session, TOPIC, partition_count="3")

    count = paths.topic_broker("t", 0)
    wait_until(lambda: session.get(count)[0] == b"3", "the registration of the new partitions")
    peer.send(ProduceRequest("t", 2, MESSAGE))
    wait_until(lambda: peer.fetch("t", 0, index=2) == (0, MESSAGE), "the message")

    put(session, TOPIC, partition_count=None)

    wait_until(lambda: not topic_settings(broker), "the end of the setting")
    assert session.get(count)[0] == b"3"  # partitions that exist stay


def test_limits_when_set_for_a_broker_then_hold_while_it_runs(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper, max_connections=3)
    peer = connect(broker)
    fill(peer, "t", 1)
    assert HELLO.decode(peer.call(HelloRequest())).max_message_bytes == 1_000_000

    put(session, BROKER, max_message_size="10", max_fetch_positions="1", max_connections="1")
    wait_until(lambda: broker.config.max_connections == 1, "the limits")

    refused = peer.publish("t", MESSAGE)
    assert (refused.error, refused.base_offset) == (MessageSizeTooLargeError.code, 10)
    assert HELLO.decode(peer.call(HelloRequest())).max_message_bytes == 10
    assert connect(broker, address="127.0.0.2").is_closed()  # not that of the broker
    found = broker.status()["settings"]
    assert found["max.message.size"] == {"value": "10", "origin": "broker"}
    assert found["max.connections"] == {"value": "1", "origin": "broker"}
    assert broker.status()["start_settings"]["max.connections"] == "3"
    assert found["log.dir"]["origin"] == "start"
    assert found["log.file.size"]["origin"] == "default"

    put(session, BROKER, max_message_size=None, max_connections=None)
    wait_until(lambda: broker.config.max_connections == 3, "the end of the limits")
    fill(peer, "t", 1)


def test_start_when_settings_were_changed_meanwhile_then_they_hold_from_the_beginning(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    start_broker(zookeeper=zookeeper).stop()
    put(session, TOPIC, segment_bytes="50")
    put(session, BROKER, log_file_size="60")

    broker = start_broker(zookeeper=zookeeper, segment_bytes=1000, topic_segment_bytes={"u": 70})

    assert topic_settings(broker) == {"t": {"segment.bytes": "50"}}
    assert broker.config.segment_bytes == 60
    peer = connect(broker)
    for topic in ("t", "u", "v"):
        fill(peer, topic, 2)
        assert segment_count(broker, topic) == 2


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
def test_node_when_it_cannot_be_used_then_a_warning_names_it_and_the_last_settings_stay(
    start_broker: BrokerFactory,
    connect: PeerFactory,
    zookeeper: str,
    session: Session,
    caplog: pytest.LogCaptureFixture,
    value: bytes,
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    put(session, TOPIC, segment_bytes="50")
    wait_until(lambda: topic_settings(broker) == {"t": {"segment.bytes": "50"}}, "the setting")

    session.set(TOPIC.path, value)
    put(session, node_of_topic("u"), segment_bytes="60")

    wait_until(lambda: "u" in topic_settings(broker), "the setting of the other topic")
    assert topic_settings(broker)["t"] == {"segment.bytes": "50"}
    assert list(broker.status()["settings_problems"]) == [TOPIC.path]
    warnings = [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]
    (warning,) = [text for text in warnings if f"node {TOPIC.path} of ZooKeeper" in text]
    assert "the last good ones stay in effect" in warning
    fill(connect(broker), "t", 1)

    broker.stop()
    again = start_broker(zookeeper=zookeeper)

    assert topic_settings(again)["t"] == {"segment.bytes": "50"}

    session.set(TOPIC.path, b'{"version":1,"config":{"segment.bytes":"70"}}')

    wait_until(lambda: topic_settings(again)["t"] == {"segment.bytes": "70"}, "the mended node")
    assert again.status()["settings_problems"] == {}


def test_node_of_a_broker_when_it_cannot_be_used_then_the_last_settings_stay(
    start_broker: BrokerFactory, zookeeper: str, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    put(session, BROKER, log_file_size="60")
    wait_until(lambda: broker.config.segment_bytes == 60, "the setting")

    session.set(BROKER.path, b'{"version":1,"config":{"log.file.size":"70","port":"1"}}')

    wait_until(lambda: BROKER.path in broker.status()["settings_problems"], "the problem")
    assert broker.config.segment_bytes == 60
    assert "port changes at a start only" in caplog.text

    session.delete(BROKER.path)

    wait_until(lambda: broker.config.segment_bytes == 1 << 30, "the setting of the start")
    assert broker.status()["settings_problems"] == {}


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"/config/topics/t":{"flush.m":"1"}}', b"\xff"])
def test_start_when_the_kept_settings_are_damaged_then_goes_on_without_them(
    start_broker: BrokerFactory,
    zookeeper: str,
    session: Session,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    content: bytes,
) -> None:
    start_broker(zookeeper=zookeeper).stop()
    kept = tmp_path / "data" / SETTINGS_NAME
    kept.write_bytes(content)
    put(session, TOPIC, segment_bytes="50")

    broker = start_broker(zookeeper=zookeeper)

    assert topic_settings(broker) == {"t": {"segment.bytes": "50"}}
    assert f"the settings kept in {kept} are not used" in caplog.text


def test_settings_when_all_their_nodes_are_deleted_then_the_broker_follows_the_next_ones(
    start_broker: BrokerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    put(session, TOPIC, segment_bytes="50")
    wait_until(lambda: topic_settings(broker), "the setting")

    for _, path in reversed(list(session.walk("/config"))[1:]):
        session.delete(path)
    wait_until(lambda: not topic_settings(broker), "the end of the setting")
    put(session, TOPIC, segment_bytes="60")

    wait_until(lambda: topic_settings(broker) == {"t": {"segment.bytes": "60"}}, "the setting")


def test_session_when_expired_then_settings_are_followed_in_the_next_one(
    start_broker: BrokerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    assert broker.membership.registry is not None
    expire_session(broker.membership.registry.session)

    put(session, TOPIC, segment_bytes="60")

    wait_until(lambda: topic_settings(broker) == {"t": {"segment.bytes": "60"}}, "the setting")


def test_contract_when_set_for_a_topic_then_its_messages_need_a_schema_of_the_subject(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    peer = connect(broker)
    fill(peer, "t", 1)
    schema = broker.schemas.register("s", '"string"', SchemaType.AVRO)

    put(session, TOPIC, schema_subject="s", schema_validation="full")
    wait_until(lambda: broker.contract("t")[:2] == ("s", "full"), "the contract")

    assert peer.publish("t", MESSAGE).error == SchemaMismatchError.code
    assert peer.publish("t", encode([Encoder(schema).encode("good")])).error == 0

    put(session, TOPIC, schema_validation=None)
    wait_until(lambda: broker.contract("t")[:2] == ("s", "none"), "the end of the validation")
    fill(peer, "t", 1)
