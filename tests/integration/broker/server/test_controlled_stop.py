"""What clients that publish know when a broker stops, whatever they have in flight."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from broker.errors import BrokerStoppedError, ShuttingDownError
from broker.log.log import Log
from broker.log.segment import Appended
from broker.protocol.client_requests import Acks
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    ShutdownRequest,
)
from broker.protocol.responses import decode_publish_response
from broker.server.broker import Broker
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import extension_frame, publish_request
from tests.support.waiting import wait_until

LARGE = encode([b"x" * 300_000])


def in_background(action: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=action)
    thread.start()
    return thread


def test_shutdown_request_when_a_client_waits_for_nothing_then_it_is_told_and_not_waited_for(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.server.cluster.shutdown.QUIET_CLIENT_S", 1000.0)
    monkeypatch.setattr("broker.server.cluster.shutdown.MAX_CLIENT_WAIT_S", 1000.0)
    peer, client = connect(running_broker), connect(running_broker)
    client.publish("events", encode([b"one"]))
    peer.send_extension(ShutdownRequest(force=False))
    assert running_broker.wait_for_shutdown_request(20)
    running_broker.stop()
    with pytest.raises(BrokerStoppedError):
        client.receive_extension()
    assert client.is_closed()


@pytest.mark.parametrize("acks", [Acks.WRITTEN, Acks.COMMITTED])
@pytest.mark.parametrize("size", [10, 100_000])
def test_stop_when_publishes_are_on_their_way_then_all_that_is_stored_is_answered(
    start_broker: BrokerFactory, connect: PeerFactory, acks: Acks, size: int
) -> None:
    broker = start_broker()
    client = connect(broker)
    client.make_topics(["events"])
    message_set = encode([b"x" * size])
    sent_count = 0
    is_over = threading.Event()

    def send() -> None:
        """Send without end, so that much is on its way when the broker stops."""
        nonlocal sent_count
        try:
            while not is_over.is_set():
                frame = extension_frame(publish_request("events", message_set, acks=acks), 1)
                client.send_bytes(frame)
                sent_count += 1
        except OSError:
            return

    sending = in_background(send)
    stored: list[int] = []

    def receive() -> None:
        while True:
            (published,) = decode_publish_response(client.receive_extension())
            if published.error == ShuttingDownError.code:
                continue
            assert published.error == 0, published.text
            stored.append(published.base_offset)
            if len(stored) == 20:
                in_background(broker.stop)

    with pytest.raises(BrokerStoppedError):
        receive()
    assert client.is_closed()
    is_over.set()
    client.close()
    sending.join()
    assert stored == [place * len(message_set) for place in range(len(stored))]
    wait_until(lambda: broker.status()["phase"] == "stopped", "the end of the broker")
    with connect(start_broker(data_dir=broker.config.data_dir)) as peer:
        assert peer.offsets("events", -1) == [len(stored) * len(message_set), 0]


def test_stop_when_an_append_is_under_way_then_it_is_flushed_and_answered(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(running_broker)
    client.publish("events", encode([b"one"]))
    has_begun, may_go_on = threading.Event(), threading.Event()
    append = Log.append

    def append_later(log: Log, *args: object, **options: object) -> Appended:
        has_begun.set()
        may_go_on.wait(60)
        return append(log, *args, **options)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(Log, "append", append_later)
    client.send_extension(publish_request("events", encode([b"two"])))
    assert has_begun.wait(60)
    stopping = in_background(running_broker.stop)
    wait_until(lambda: running_broker.shutdown.refuses_appends, "the refusal of appends")
    assert not client.has_answer(0.05)
    may_go_on.set()
    (published,) = decode_publish_response(client.receive_extension())
    assert (published.error, published.base_offset) == (0, len(encode([b"one"])))
    stopping.join()


def test_stop_when_part_of_a_request_has_come_then_it_is_not_stored_and_the_client_is_told(
    start_broker: BrokerFactory, connect: PeerFactory
) -> None:
    broker = start_broker()
    client = connect(broker)
    assert client.publish("events", LARGE).error == 0
    client.send_bytes(extension_frame(publish_request("events", LARGE))[:-1])
    broker.stop()
    with pytest.raises(BrokerStoppedError):
        client.receive_extension()
    with connect(start_broker(data_dir=broker.config.data_dir)) as peer:
        assert peer.offsets("events", -1) == [len(LARGE), 0]


def test_stop_when_the_flush_fails_then_no_client_is_told_that_all_is_safe(
    running_broker: Broker, connect: PeerFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = connect(running_broker)
    client.publish("events", encode([b"one"]))

    def fail(logs: object) -> None:
        raise ShuttingDownError("the disk is gone")

    monkeypatch.setattr("broker.log.manager.LogManager.flush_all", fail)
    running_broker.stop()
    assert client.is_closed()


def test_stop_when_a_client_of_0_7_sends_then_its_connection_ends_at_once(
    running_broker: Broker, connect: PeerFactory
) -> None:
    client = connect(running_broker)
    client.produce("events", encode([b"one"]))
    assert client.fetch("events", 0)[0] == 0
    running_broker.stop()
    assert client.is_closed()
    with pytest.raises(OSError, match=r"reset|pipe"):
        for _ in range(1000):  # the first tells the peer that it is gone
            client.produce("events", encode([b"two"]))
