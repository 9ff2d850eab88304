from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from broker.config import BrokerConfig
from broker.server.lifecycle import Broker

REPOSITORY = Path(__file__).parents[1]

settings.register_profile("repository", deadline=None)  # a busy machine must not fail a test
settings.load_profile("repository")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real input that lies beside a checkout on machines that have it."""
    folder = REPOSITORY.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the folder of real input, ../shared/data, is not here")
    return folder


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Start brokers in this process, without a registry, on free ports; stopped at the end."""
    brokers: list[Broker] = []

    def start(**settings: object) -> Broker:
        defaults: dict[str, object] = {"port": 0, "data_dir": tmp_path / "data", "num_threads": 1}
        broker = Broker(BrokerConfig(**(defaults | settings)))  # type: ignore[arg-type]  # test settings by name
        broker.start()
        brokers.append(broker)
        return broker

    yield start
    for broker in brokers:
        broker.stop()


@pytest.fixture
def running_broker(start_broker: Callable[..., Broker]) -> Broker:
    """A broker with default settings and no registry."""
    return start_broker()


@pytest.fixture
def raw_socket(running_broker: Broker) -> Iterator[socket.socket]:
    """A plain connection to `running_broker`."""
    with socket.create_connection(("127.0.0.1", running_broker.port), timeout=10) as sock:
        yield sock


def wait_until(condition: Callable[[], object], what: str, *, deadline_s: float = 20.0) -> None:
    """Wait for a condition that something else brings about, or fail saying what did not happen."""
    give_up_s = time.monotonic() + deadline_s
    while not condition():
        if time.monotonic() > give_up_s:
            pytest.fail(f"{what} did not happen within {deadline_s:g} s")
        time.sleep(0.01)
