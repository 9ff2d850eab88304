"""Who uses more of a broker than its quota gets its answer, and waits before the next request."""

from __future__ import annotations

from typing import Any

from broker.log.data_directory import SETTINGS_NAME
from broker.protocol.client_requests import HelloRequest
from broker.protocol.codec import encode
from broker.server.broker import Broker
from broker.zk.session import Session
from broker.zk.settings import SettingsRegistry, node_of_user
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer, extension_frame
from tests.support.waiting import wait_until

MESSAGES = encode([b"x" * 90_000])
LIMITED = 22_500
"""A second: such a message, beyond what is saved up for a second, owes three seconds."""


def server_metrics(broker: Broker) -> dict[str, Any]:
    found: dict[str, Any] = broker.status()["metrics"]["SocketServerStats"]
    return found


def throttled(broker: Broker) -> list[tuple[str, str]]:
    return [(one["principal"], one["kind"]) for one in broker.status()["throttled"]]


def assert_next_request_waits(broker: Broker, peer: Peer, quota: str) -> None:
    assert throttled(broker) == [("User:ANONYMOUS", quota)]
    assert server_metrics(broker)["ConnectionsOverQuota"] == 1
    peer.send_bytes(extension_frame(HelloRequest(), 7))
    peer.receive_extension(7)
    assert server_metrics(broker)["QuotaThrottleSeconds"] > 0.1
    wait_until(lambda: not throttled(broker), "the end of the throttle")


def test_publish_when_beyond_the_quota_then_acknowledged_and_the_next_request_waits(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(quota_producer_bytes=LIMITED)
    peer = connect(broker)
    assert peer.publish("t", MESSAGES).error == 0
    assert_next_request_waits(broker, peer, "producer_byte_rate")


def test_fetch_when_beyond_the_quota_then_answered_and_the_next_request_waits(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker(quota_consumer_bytes=LIMITED)
    peer = connect(broker)
    assert peer.publish("t", MESSAGES).error == 0
    assert peer.fetch("t", 0) == (0, MESSAGES)
    wait_until(lambda: throttled(broker), "the throttle")
    assert_next_request_waits(broker, peer, "consumer_byte_rate")


def test_requests_when_they_cost_more_work_than_the_quota_then_wait(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    """1 percent of a thread: 10 ms are saved up, and a turn with thousands of requests is more."""
    broker = start_broker(quota_request_percent=1)
    peer = connect(broker)
    peer.send_bytes(extension_frame(HelloRequest(), 7) * 3000)
    found: list[tuple[str, str]] = []

    def is_throttled() -> bool:
        found[:] = throttled(broker)
        return bool(found)

    wait_until(is_throttled, "the throttle")
    assert found == [("User:ANONYMOUS", "request_percentage")]
    connect(broker).call(HelloRequest())  # a connection is served before it is throttled
    broker.stop()  # the requests that were received and wait get their responses


def test_quota_when_set_for_users_in_zookeeper_then_applies_while_running(
    start_broker: BrokerFactory, connect: PeerFactory, zookeeper: str, session: Session
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    registry = SettingsRegistry(session)
    peer = connect(broker)
    assert peer.publish("t", MESSAGES).error == 0
    assert not throttled(broker)

    def is_exceeded() -> bool:
        connect(broker).fetch("t", 0)
        return bool(throttled(broker))

    registry.change(node_of_user("<default>"), lambda _: {"consumer_byte_rate": "1"})
    wait_until(is_exceeded, "the quota")

    registry.change(
        node_of_user("ANONYMOUS"), lambda _: {"consumer_byte_rate": "0", "SCRAM-SHA-256": "salt=s"}
    )
    wait_until(lambda: not throttled(broker), "the end of the quota")
    assert connect(broker).fetch("t", 0) == (0, MESSAGES)
    assert not throttled(broker)
    assert "salt" not in (broker.config.data_dir / SETTINGS_NAME).read_text()
