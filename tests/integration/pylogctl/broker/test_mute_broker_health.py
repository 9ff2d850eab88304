"""`cluster health` beside a broker that accepts connections and says nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from broker.server.broker import Broker
from broker.zk import paths, values
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        yield listener


def first_frames(listener: socket.socket) -> list[bytes]:
    """Return what each client has sent that has connected since, and close the connections."""
    found = []
    with suppress(BlockingIOError):
        while True:
            sock, _ = listener.accept()
            with sock:
                sock.setblocking(False)
                found.append(sock.recv(1000))
    return found


def test_health_when_a_broker_is_mute_then_it_is_asked_once_and_named_and_others_are_checked(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    session: Session,
    invoke: Invoke,
    mute: socket.socket,
) -> None:
    start_broker(broker_id=3, zookeeper=zookeeper)
    info = values.BrokerNode(0, "127.0.0.1", mute.getsockname()[1], "127.0.0.1-1")
    session.create(paths.broker(0), values.encode_broker(info), ephemeral=True)
    session.create("/consumers/g/offsets/t/0-0", b"1")
    session.create("/brokers/topics/t/0", b"1", ephemeral=True)

    def found() -> dict[str, list[str]]:
        first_frames(mute)
        # the mute broker takes half of the time: the rest must do for the other one
        limit = ("--timeout", "8s")
        result = invoke("cluster", "health", "-Z", zookeeper, *limit, "--output", "json")
        assert result.status == ExitStatus.THRESHOLD, result
        return {row["name"]: row["found"] for row in json.loads(result.text)["data"]}

    wait_until(lambda: any("broker 0" in one for one in found()["storage"]), "the registration")
    checks = found()
    assert [one for one in checks["storage"] if "broker 3" in one] == []
    assert sum(b"pylogctl" in one for one in first_frames(mute)) == 1  # brokers connect, too
