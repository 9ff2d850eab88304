"""What the controller tells brokers, and when its connections to them are replaced."""

from __future__ import annotations

import socket
from queue import SimpleQueue
from types import SimpleNamespace
from typing import cast

from broker.clock import SystemClock
from broker.cluster_state import LiveBroker
from broker.config import BrokerConfig
from broker.controller.controller import Controller
from broker.controller.pushes import Push
from broker.protocol.primitives import INT32
from broker.protocol.replica_requests import UNKNOWN_REPLICAS
from broker.protocol.responses import encode_extension_response
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.push_sender import PushSenders

DEADLINE_S = 30


def receive_frame(connection: socket.socket) -> None:
    (size,) = INT32.unpack(connection.recv(INT32.size, socket.MSG_WAITALL))
    connection.recv(size, socket.MSG_WAITALL)


def test_push_when_the_broker_is_trusted_meanwhile_then_it_and_the_next_one_are_told() -> None:
    told: SimpleQueue[Push] = SimpleQueue()
    senders = PushSenders(
        lambda _controller, _id, push, _answer: told.put(push),
        SystemClock(),
        LiveBrokers(BrokerConfig()),
        BrokerConfig(),
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(DEADLINE_S)
        broker = LiveBroker(1, "127.0.0.1", listener.getsockname()[1], 5, is_clean=False, rack="")
        pushes = [Push(5, is_full, (), (), (), 0) for is_full in (True, False)]

        controller = SimpleNamespace(me=0, epoch=1, pushes=SimpleNamespace())

        def send(push: Push, to: LiveBroker) -> None:
            controller.pushes.take = lambda: {1: push}
            controller.context = SimpleNamespace(brokers={1: to})
            senders.send(cast(Controller, controller))

        try:
            send(pushes[0], broker)
            connection, _ = listener.accept()
            with connection:
                connection.settimeout(DEADLINE_S)
                receive_frame(connection)
                send(pushes[1], broker._replace(is_clean=True))
                for number in (1, 2):
                    if number == 2:
                        receive_frame(connection)
                    body = UNKNOWN_REPLICAS.encode([])
                    connection.sendall(encode_extension_response(number, body))
                assert [told.get(timeout=DEADLINE_S) for _ in pushes] == pushes
        finally:
            senders.stop()
