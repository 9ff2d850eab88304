"""Brokers of one cluster as processes, behind a network that can be cut."""

from __future__ import annotations

import json
import shutil
import signal
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.broker_process import BrokerProcess
from broker.client.connection import Connection
from broker.errors import BrokerError, RegistryNodeNotFoundError
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest, SettingText
from broker.protocol.replica_requests import PARTITIONS
from broker.protocol.responses import BrokerAddress
from broker.state_changes import LoggedChange, decode_changes
from broker.topic import (
    FORMAT_07,
    FORMAT_KAFKA,
    NO_HOME,
    TopicPartition,
    log_directory_name,
)
from broker.zk import paths
from broker.zk.paths import parse_connect_string, replicated_broker
from broker.zk.registry import Registry
from broker.zk.session import Session
from tests.integration.replication.network import Network
from tests.support.closed_cluster import cluster_access
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session_of

SESSION_TIMEOUT_MS = 5000  # a pause of the machine for 3 s ends none
LAG_TIME_MS = 1500
_SEGMENTS = {FORMAT_07: "*.pylog", FORMAT_KAFKA: "*.log"}


class KnownState(NamedTuple):
    """What ZooKeeper says of a partition."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]


class ReplicatedCluster:
    """Brokers with ids from 0 on, and what ZooKeeper knows of them.

    Args:
        zookeeper: connect string.
        directory: where everything is kept.
        broker_count: how many brokers.
        disk_count: data directories of each broker.
        racks: of the brokers, by id; none by default.
        is_closed: whether everything is on that keeps strangers out.
        properties: of all brokers; underscores in names stand for dots.
    """

    def __init__(
        self,
        zookeeper: str,
        directory: Path,
        *,
        broker_count: int = 3,
        disk_count: int = 1,
        racks: Sequence[str] = (),
        is_closed: bool = False,
        **properties: str,
    ) -> None:
        self.zookeeper = zookeeper
        self.access = cluster_access(zookeeper, directory, is_closed=is_closed)
        self.client = {"zk.connect": zookeeper, **self.access.client}
        """Properties of clients."""
        self.network = Network()
        self.session = Session(zookeeper)
        self.session.start()
        self.brokers: dict[int, BrokerProcess] = {}
        self._directory = directory
        self._disk_count = disk_count
        self._racks = racks
        self._lost_disks: set[Path] = set()
        self.properties = {name.replace("_", "."): one for name, one in properties.items()}
        self.start(0)  # first, so that it is the controller
        with ThreadPoolExecutor() as threads:
            list(threads.map(self.start, range(1, broker_count)))
        self.brokers = dict(sorted(self.brokers.items()))

    def close(self) -> None:
        """End all processes."""
        for broker in self.brokers.values():
            broker.signal(signal.SIGCONT)
            broker.kill()
        self.session.stop()
        self.network.close()

    def disks_of(self, broker_id: int) -> list[Path]:
        """Return the data directories of a broker, but for those that are lost."""
        data = self._directory / f"broker-{broker_id}" / "data"
        disks = [data, *(data.with_name(f"disk-{n}") for n in range(1, self._disk_count))]
        return [disk for disk in disks if disk not in self._lost_disks]

    def directory_of(self, broker_id: int, partition: TopicPartition) -> Path:
        """Return the directory of a log; of no log, where it would be."""
        name = log_directory_name(partition.topic, partition.index, partition.format)
        is_own = partition.home in (broker_id, NO_HOME)
        place = name if is_own else f"replicas/{partition.home}/{name}"
        found = [disk / place for disk in self.disks_of(broker_id)]
        return next((one for one in found if one.exists()), found[0])

    def lose_disk(self, broker_id: int, partition: TopicPartition) -> None:
        """Remove the data directory that has the log of a partition."""
        directory = self.directory_of(broker_id, partition)
        (disk,) = (one for one in self.disks_of(broker_id) if one in directory.parents)
        self._lost_disks.add(disk)
        gone = disk.with_name(f"{disk.name}-gone")
        disk.rename(gone)  # at once, however often the broker writes to it
        shutil.rmtree(gone, ignore_errors=True)

    def empty_disks(self, broker_id: int) -> None:
        """Remove all data of a broker that does not run."""
        for disk in self.disks_of(broker_id):
            shutil.rmtree(disk)

    def listed(self) -> str:
        """Return the addresses of the brokers that run, as options take them."""
        door = self.network.door_to_broker
        return ",".join(f"127.0.0.1:{door(one)}" for one in sorted(self.brokers))

    def changes(self) -> list[LoggedChange]:
        """Return what the state-change logs of all brokers have."""
        files = self._directory.glob("broker-*/*/state-changes-*.jsonl")
        found = []
        for file in sorted(files):
            found += decode_changes(file.read_bytes().splitlines())[0]
        return found

    def output_of(self, broker_id: int) -> str:
        """Return the log output of a broker."""
        return (self._directory / f"broker-{broker_id}" / "broker.log").read_text()

    def start(self, broker_id: int) -> None:
        """Start a broker, with the data it had before."""
        directory = self._directory / f"broker-{broker_id}"
        directory.mkdir(exist_ok=True)
        settings = {
            "brokerid": str(broker_id),
            "num.threads": "1",
            "zk.connect": self._zookeeper_for(broker_id),
            "zk.sessiontimeout.ms": str(SESSION_TIMEOUT_MS),
            "replica.lag.time.max.ms": str(LAG_TIME_MS),
            "log.dirs": ",".join(map(str, self.disks_of(broker_id))),
            **self.access.broker_properties(directory, self.network.door_to_broker(broker_id)),
            **({"broker.rack": self._racks[broker_id]} if self._racks else {}),
            **self.properties,
        }
        self.brokers[broker_id] = BrokerProcess(directory, **settings)
        self.network.open_door(broker_id, self.brokers[broker_id].port)

    def _zookeeper_for(self, broker_id: int) -> str:
        """Return where a broker finds ZooKeeper: through the network, if it is a single one."""
        connect = parse_connect_string(self.zookeeper)
        if len(connect.hosts) > 1:
            return self.zookeeper
        ((_, port),) = connect.hosts
        return f"127.0.0.1:{self.network.door_to_zookeeper(broker_id, port)}{connect.chroot}"

    def kill(self, broker_id: int, *, session_lives_on: bool = False) -> None:
        """End a broker as kill -9 does.

        Args:
            broker_id: any.
            session_lives_on: whether ZooKeeper keeps its session until it times out.
        """
        self.brokers.pop(broker_id).kill()
        if not session_lives_on:
            expire_session_of(self.session, paths.broker(broker_id))

    def kill_replaceable(
        self,
        broker_id: int,
        partitions: Iterable[TopicPartition],
        *,
        session_lives_on: bool = False,
    ) -> None:
        """End a broker as kill -9 does, at a moment when others can lead its partitions.

        A follower that was paused for longer than the lag time is not in sync for a while; if the
        leader dies then, nobody may replace it. Nor may a broker that was just started, until a
        controller has told it that what it may have lost is known.

        Args:
            broker_id: any.
            partitions: those that need a leader afterwards.
            session_lives_on: as for `kill`.
        """
        partitions = list(partitions)

        def others_can_lead(partition: TopicPartition) -> bool:
            state = self.state(partition)
            return state is not None and any(
                one != broker_id and one in self.brokers and self._is_trusted(one)
                for one in state.isr
            )

        while True:
            self.await_full_isr(partitions)
            wait_until(lambda: all(map(others_can_lead, partitions)), "brokers that can lead")
            self.freeze(broker_id)  # so that it removes no replica from now on
            time.sleep(0.2)  # a removal that it has sent to ZooKeeper takes effect
            if all(map(others_can_lead, partitions)):
                break
            self.thaw(broker_id)
        self.kill(broker_id, session_lives_on=session_lives_on)

    def _is_trusted(self, broker_id: int) -> bool:
        """Return whether a broker was told that what it may have lost is known; else not there."""
        found = self._json(replicated_broker(broker_id))
        return found is None or found["is_clean"]

    def kill_leader(self, partition: TopicPartition, *, session_lives_on: bool = False) -> int:
        """End the leader of a partition when another broker can lead it; return its id."""
        leader = self.await_leader(partition)
        self.kill_replaceable(leader, [partition], session_lives_on=session_lives_on)
        return leader

    def stop(self, broker_id: int) -> None:
        """Shut a broker down."""
        self.brokers.pop(broker_id).stop()

    def freeze(self, broker_id: int) -> None:
        """Stop a broker as a long pause of its machine would."""
        self.brokers[broker_id].signal(signal.SIGSTOP)

    def thaw(self, broker_id: int) -> None:
        """Let a frozen broker go on."""
        self.brokers[broker_id].signal(signal.SIGCONT)

    def connect(self, broker_id: int, *, timeout_s: float = 60) -> Connection:
        """Return a connection to a broker, through the network."""
        port = self.network.door_to_broker(broker_id)
        address = BrokerAddress(broker_id, "127.0.0.1", port)
        return self.connection(address, timeout_s=timeout_s, connect_timeout_s=1)

    def connection(
        self, address: BrokerAddress, *, timeout_s: float = 60, connect_timeout_s: float = 5
    ) -> Connection:
        """Return a connection to a broker by its address."""
        return Connection(
            address,
            timeout_s=timeout_s,
            connect_timeout_s=connect_timeout_s,
            security=self.access.security,
        )

    def open_registry(self) -> Registry:
        """Return the registry as a client knows it, to be stopped."""
        registry = Registry(self.zookeeper, speaks_tls=self.access.security is not None)
        registry.start(10)
        return registry

    def controller(self) -> int:
        """Return the id of the controller, -1 if there is none."""
        found = self._json("/controller")
        return int(found["brokerid"]) if found else -1

    def create_topic(
        self,
        topic: str,
        partition_count: int,
        replication_factor: int,
        *,
        format: str = "",
        **settings: str,
    ) -> list[TopicPartition]:
        """Create a topic, wait for its leaders, and return its partitions."""
        request = CreateReplicatedTopicRequest(
            topic,
            partition_count,
            replication_factor,
            tuple(SettingText(name.replace("_", "."), one) for name, one in settings.items()),
            format,
        )
        wait_until(lambda: self.controller() >= 0, "the election of a controller")
        # else the next controller takes the new brokers out of the in-sync replicas
        wait_until(lambda: all(map(self._is_trusted, self.brokers)), "first orders to all brokers")
        connection = self.connect(self.controller(), timeout_s=60)
        try:
            created = PARTITIONS.decode(connection.call(request))
        finally:
            connection.close()
        return sorted(one.partition for one in created)

    def has_topic(self, topic: str) -> bool:
        """Return whether ZooKeeper knows of a topic, as one with replicas or of a home broker."""
        homes = (f"/brokers/topics/{topic}/{broker_id}" for broker_id in self.brokers)
        paths = (f"/replicated/topics/{topic}", *homes)
        return any(self._json(path) is not None for path in paths)

    def state(self, partition: TopicPartition) -> KnownState | None:
        """Return what ZooKeeper says of a partition, None if nothing."""
        topic = self._json(f"/replicated/topics/{partition.topic}")
        path = f"/replicated/topics/{partition.topic}/partitions/{partition.name}/state"
        found = self._json(path)
        if topic is None or found is None:
            return None
        return KnownState(
            found["leader"],
            found["leader_epoch"],
            tuple(found["isr"]),
            tuple(topic["partitions"][partition.name]),
        )

    def leader(self, partition: TopicPartition) -> int:
        """Return the leader of a partition, -1 if it has none."""
        state = self.state(partition)
        return -1 if state is None else state.leader

    def await_leader(self, partition: TopicPartition, *, other_than: int = -1) -> int:
        """Wait until a broker that runs leads a partition, and return its id."""

        def has_leader() -> bool:
            return self.leader(partition) not in (-1, other_than)

        try:
            wait_until(has_leader, f"a leader of {partition}")
        except pytest.fail.Exception:
            print(f"{partition}: {self.state(partition)}; controller {self.controller()}")
            raise
        return self.leader(partition)

    def await_full_isr(self, partitions: Iterable[TopicPartition]) -> None:
        """Wait until all replicas of partitions are in sync."""

        def is_full(partition: TopicPartition) -> bool:
            state = self.state(partition)
            return state is not None and set(state.isr) == set(state.replicas)

        partitions = list(partitions)
        wait_until(
            lambda: all(map(is_full, partitions)),
            f"full in-sync replicas of {[str(one) for one in partitions]}",
        )

    def log_bytes(self, broker_id: int, partition: TopicPartition) -> tuple[int, bytes]:
        """Return the start offset and the bytes of a broker's replica, from its files."""
        directory = self.directory_of(broker_id, partition)
        segments = sorted(directory.glob(_SEGMENTS[partition.format]))
        start = int(segments[0].stem) if segments else 0
        return start, b"".join(one.read_bytes() for one in segments)

    def log_end(self, broker_id: int, partition: TopicPartition) -> int:
        """Return the offset at which a broker's replica ends, from the sizes of its files."""
        segments = self.directory_of(broker_id, partition).glob(_SEGMENTS[partition.format])
        last = max(segments, default=None)
        return 0 if last is None else int(last.stem) + last.stat().st_size

    def await_equal_logs(self, partition: TopicPartition) -> None:
        """Wait until the logs of all replicas have the same bytes."""
        state = self.state(partition)
        assert state is not None

        def are_equal() -> bool:
            if len({self.log_end(one, partition) for one in state.replicas}) > 1:
                return False
            logs = [self.log_bytes(one, partition) for one in state.replicas]
            start = max(one[0] for one in logs)
            return len({data[start - begin :] for begin, data in logs}) == 1

        wait_until(are_equal, f"equal logs of {partition}")

    def _json(self, path: str) -> Any:
        try:
            return json.loads(self.session.get(path)[0])
        except RegistryNodeNotFoundError:
            return None


def is_alive(cluster: ReplicatedCluster, broker_id: int) -> bool:
    """Return whether a broker answers."""
    connection = cluster.connect(broker_id)
    try:
        return connection.hello() is not None
    except (BrokerError, OSError):
        return False
    finally:
        connection.close()
