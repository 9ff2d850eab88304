"""Brokers in this process, and a ZooKeeper that is started once for all tests that ask for it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.config import BrokerConfig
from broker.server.broker import Broker
from tests.support.ports import port_of_its_own
from tests.support.zookeeper import java as java
from tests.support.zookeeper import session as session
from tests.support.zookeeper import zookeeper as zookeeper
from tests.support.zookeeper import zookeeper_dir as zookeeper_dir
from tests.support.zookeeper import zookeeper_server as zookeeper_server


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Start brokers in this process, without a registry, on free ports; stopped at the end."""
    brokers: list[Broker] = []

    def start(*, data_dir: Path = tmp_path / "data", **settings: object) -> Broker:
        defaults: dict[str, object] = {
            "port": port_of_its_own(),
            "data_dirs": (data_dir,),
            "num_threads": 1,
            "zk_connection_timeout_ms": 60_000,
        }
        broker = Broker(BrokerConfig(**(defaults | settings)))  # type: ignore[arg-type]  # test settings by name
        broker.start()
        brokers.append(broker)
        return broker

    yield start
    for broker in brokers:
        broker.request_shutdown(force=True)  # so that it waits for no other one to lead
        broker.stop()


@pytest.fixture
def running_broker(start_broker: Callable[..., Broker]) -> Broker:
    """A broker with default settings and no registry."""
    return start_broker()


@pytest.fixture
def raw_socket(running_broker: Broker) -> Iterator[socket.socket]:
    """A plain connection to `running_broker`."""
    with socket.create_connection(("127.0.0.1", running_broker.port), timeout=60) as sock:
        yield sock
