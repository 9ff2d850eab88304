"""Brokers for the tests of programs: in the process of the test, with data that go with them.

With pytest the fixtures of `pylogctl.pytest_plugin` need no import; see there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pylogctl
from broker.config import BrokerConfig
from broker.server.broker import Broker as Server
from broker.zk.embedded import EmbeddedZooKeeper


class Broker:
    """A broker in this process, on loopback and a free port; a context manager.

    Args:
        settings: of the broker, by their names in a properties file, such as `{"num.partitions":
            "3"}`; the port, the id and the data directory have values of their own.
        data_dir: where messages are kept; by default a temporary directory, deleted at the end.
    """

    def __init__(
        self, settings: Mapping[str, str] | None = None, *, data_dir: Path | None = None
    ) -> None:
        with ExitStack() as closing:
            if data_dir is None:
                made = closing.enter_context(tempfile.TemporaryDirectory(prefix="pylogctl-"))
                data_dir = Path(made)
            self.data_dir = data_dir
            defaults = {"brokerid": "0", "host": "127.0.0.1", "port": "0", "log.dir": str(data_dir)}
            server = Server(BrokerConfig.from_properties({**defaults, **(settings or {})}))
            server.start()
            closing.callback(server.stop)
            self._closing = closing.pop_all()
        self.port = server.port
        self.address = f"127.0.0.1:{server.port}"
        """Where it listens, for `pylogctl.connect` and for programs under test."""

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def connect(self, *, timeout: float | None = 30.0) -> pylogctl.Client:
        """Return a client of this broker."""
        return pylogctl.connect(self.address, timeout=timeout)

    def close(self) -> None:
        """Stop the broker, and delete its data unless `data_dir` was given."""
        self._closing.close()


class Cluster:
    """Brokers in this process and the ZooKeeper that they share; made by `ephemeral_cluster`."""

    def __init__(self, zookeeper: str, brokers: list[Broker]) -> None:
        self.zookeeper = zookeeper
        self.brokers = brokers
        self.address = ",".join(one.address for one in brokers)

    def connect(self, *, timeout: float | None = 30.0) -> pylogctl.Client:
        """Return a client of this cluster."""
        return pylogctl.connect(self.address, timeout=timeout)


@contextmanager
def ephemeral_cluster(
    count: int = 3, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Run brokers with a ZooKeeper of their own, for groups and replicas.

    It takes a second, a JVM and the jars of PySpark (`pip install pylogctl[spark]`).

    Args:
        count: of brokers, which have the ids from 0.
        settings: of all brokers; see `Broker`.

    Raises:
        ConfigError: there is no JVM, or there are no jars.
    """
    with ExitStack() as closing:
        made = closing.enter_context(tempfile.TemporaryDirectory(prefix="pylogctl-"))
        zookeeper = closing.enter_context(EmbeddedZooKeeper(Path(made), is_durable=False))
        brokers = [
            closing.enter_context(
                Broker({**(settings or {}), "brokerid": str(id), "zk.connect": zookeeper.connect})
            )
            for id in range(count)
        ]
        yield Cluster(zookeeper.connect, brokers)
