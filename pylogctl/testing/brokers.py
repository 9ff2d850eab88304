"""Brokers in the process of a test, alone or as a cluster."""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pylogctl
from broker.clock import Clock
from broker.closing import SelfClosing
from broker.config import BrokerConfig
from broker.server.broker import Broker as Server
from broker.zk.embedded import EmbeddedZooKeeper
from pylogctl.testing.zookeeper import MemoryZooKeeper

_HOST = "127.0.0.1"
_START_S = 30.0
_POLL_S = 0.005
_SHARED_MEMORY = Path("/dev/shm")
_LEAST_MEMORY_BYTES = 1 << 30  # containers often have 64 MiB there, which a test can fill


class Broker(SelfClosing):
    """A broker in this process, on loopback and a free port; a context manager.

    It is ready when the constructor returns. The port stays its own until `close`.

    Args:
        settings: of the broker, by their names in a properties file, such as `{"num.partitions":
            "3"}`; port and id have values of their own unless they are given.
        data_dir: where messages are kept; by default a temporary directory, deleted at the end: in
            memory, if the system has a file system there with room.
        clock: for ages and deadlines of the broker; see `pylogctl.testing.Clock`.
    """

    def __init__(
        self,
        settings: Mapping[str, str] | None = None,
        *,
        data_dir: Path | None = None,
        clock: Clock | None = None,
    ) -> None:
        with ExitStack() as closing:
            if data_dir is None:
                data_dir = closing.enter_context(_temporary_directory()) / "data"
            self.data_dir = data_dir
            held = closing.enter_context(_held_port())
            self._settings = {
                "brokerid": "0",
                "host": _HOST,
                "port": str(held),
                **(settings or {}),
                "log.dir": str(data_dir),
            }
            self._clock = clock
            self._server: Server | None = None
            closing.callback(self.stop)
            self.restart()
            self._closing = closing.pop_all()

    @property
    def address(self) -> str:
        """Where it listens, for `pylogctl.connect` and for programs under test."""
        return f"{_HOST}:{self.port}"

    def connect(self, *, timeout: float | None = 30.0) -> pylogctl.Client:
        """Return a client of this broker."""
        return pylogctl.connect(self.address, timeout=timeout)

    def stop(self) -> None:
        """Stop in order, and keep port and data for `restart`; nothing if it does not run."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def kill(self) -> None:
        """End as after `kill -9`, as far as a part of a process can; nothing if it does not run.

        The port closes and connections break, without a response to what is under way. The data
        directory becomes what it was at that moment: without the flush and the marker of an orderly
        stop, so that `restart` recovers the logs. What a crash of the machine takes, the system's
        unwritten buffers, stays. With ZooKeeper the session ends at once, as if its timeout had
        passed, and no leadership is handed over before.
        """
        if self._server is not None:
            left = self.data_dir.with_name(f"{self.data_dir.name}.killed")
            self._server.kill(lambda: shutil.copytree(self.data_dir, left, copy_function=_copy))
            self._server = None
            shutil.rmtree(self.data_dir)
            left.rename(self.data_dir)

    def restart(self) -> None:
        """Start on the same port and data, after a stop in order if it runs."""
        self.stop()
        server = Server(BrokerConfig.from_properties(self._settings), self._clock)
        server.start()
        self._server = server
        self.port: int = server.port

    def apply_retention(self) -> None:
        """Delete what is too old now, by the broker's clock, instead of at the next cleanup."""
        if self._server is None:
            raise RuntimeError("the broker does not run")
        self._server.apply_retention()

    def close(self) -> None:
        """Stop the broker, and delete its data unless `data_dir` was given."""
        self._closing.close()


@contextmanager
def _temporary_directory() -> Iterator[Path]:
    """Make a directory, in memory if there is room, and delete it at the end."""
    parent = None
    with suppress(OSError):
        if shutil.disk_usage(_SHARED_MEMORY).free >= _LEAST_MEMORY_BYTES:
            parent = _SHARED_MEMORY if os.access(_SHARED_MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="pylogctl-", dir=parent) as made:
        yield Path(made)


@contextmanager
def _held_port() -> Iterator[int]:
    """Keep a free port from other programs; a broker can listen on it nevertheless."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind((_HOST, 0))
        yield holder.getsockname()[1]


def _copy(source: str, target: str) -> None:
    with suppress(FileNotFoundError):  # a temporary file that was renamed meanwhile
        shutil.copy2(source, target)


class Cluster:
    """Brokers in this process and the ZooKeeper that they share; made by `ephemeral_cluster`."""

    def __init__(self, zookeeper: str, brokers: list[Broker]) -> None:
        self.zookeeper = zookeeper
        self.brokers = brokers
        self.address: str = ",".join(one.address for one in brokers)

    def broker(self, id: int) -> Broker:
        """Return the broker with an id, which count from 0."""
        return self.brokers[id]

    def connect(self, *, timeout: float | None = 30.0) -> pylogctl.Client:
        """Return a client of this cluster."""
        return pylogctl.connect(self.address, timeout=timeout)


@contextmanager
def ephemeral_cluster(
    count: int = 3, settings: Mapping[str, str] | None = None
) -> Iterator[Cluster]:
    """Run brokers with a real ZooKeeper of their own, for groups and replicas.

    It takes a second, a JVM and the jars of PySpark (`pip install pylogctl[spark]`).

    Args:
        count: of brokers, which have the ids from 0.
        settings: of all brokers; see `Broker`.

    Raises:
        ConfigError: there is no JVM, or there are no jars.
    """
    with ExitStack() as closing:
        made = closing.enter_context(_temporary_directory())
        zookeeper = closing.enter_context(EmbeddedZooKeeper(made, is_durable=False))
        yield closing.enter_context(_cluster(zookeeper.connect, count, settings))


@contextmanager
def memory_cluster(count: int = 1, settings: Mapping[str, str] | None = None) -> Iterator[Cluster]:
    """Run brokers with a double of ZooKeeper in this process, without Java; as `ephemeral_cluster`.

    It is for groups and replicas of programs under test; see `pylogctl.testing.zookeeper` for what
    the double lacks.
    """
    with MemoryZooKeeper() as zookeeper, _cluster(zookeeper.connect, count, settings) as cluster:
        yield cluster


@contextmanager
def _cluster(zookeeper: str, count: int, settings: Mapping[str, str] | None) -> Iterator[Cluster]:
    with ExitStack() as closing:
        common = {**(settings or {}), "zk.connect": zookeeper}
        brokers = [
            closing.enter_context(Broker({**common, "brokerid": str(id)})) for id in range(count)
        ]
        for one in brokers:
            _await_others(one, count)
        yield Cluster(zookeeper, brokers)


def _await_others(broker: Broker, count: int) -> None:
    """Wait until a broker knows all of its cluster, and which of them is the controller."""
    give_up_s = time.monotonic() + _START_S
    with broker.connect() as client:
        while True:
            found = client.brokers()
            if len(found) == count and any(one.is_controller for one in found):
                return
            if time.monotonic() > give_up_s:
                raise pylogctl.TimedOut(f"the brokers do not know one another after {_START_S:g}s")
            time.sleep(_POLL_S)
