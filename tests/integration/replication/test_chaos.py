"""Brokers, disks, clocks and ZooKeeper fail in turn under load of commands: nothing is lost.

A longer run: `make chaos ROUNDS=20`.
"""

from __future__ import annotations

import random
import signal
import sqlite3
import ssl
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.offset_store import SqliteOffsets
from broker.errors import ConsumerTimeoutError
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from tests.integration.replication.conftest import StartCluster
from tests.integration.replication.load import LoadThread
from tests.integration.replication.pipes import Pipe, Way
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.integration.replication.test_faults import full_disk
from tests.integration.replication.test_storage_faults import no_descriptors
from tests.integration.replication.trial import Trial
from tests.support.closed_cluster import ClosedCluster
from tests.support.command_line import Invoke, Spawn
from tests.support.jumping_clock import JumpingClock
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

TOPIC = "piped"
_TEN_DAYS_S = 864_000


@pytest.fixture
def server(java: Java, tmp_path: Path) -> Iterator[EmbeddedZooKeeper]:
    directory = tmp_path / "zookeeper"
    with EmbeddedZooKeeper(
        directory, java=java, port=port_of_its_own(), is_durable=False, tick_ms=500
    ) as started:
        yield started


@pytest.fixture
def zookeeper(server: EmbeddedZooKeeper) -> str:
    return server.connect


class Member:
    """A member of a group in this process, which keeps messages and its offsets in one database."""

    def __init__(self, cluster: ReplicatedCluster, database: Path) -> None:
        self._stack = ExitStack()
        config = ConsumerConfig(
            zookeeper=cluster.zookeeper,
            group="library",
            auto_commit=False,
            consumer_timeout_ms=100,
            leader_wait_ms=60_000,
        )
        self._store = self._stack.enter_context(SqliteOffsets(database, config.group))
        with self._store.transaction() as open_database:
            open_database.execute(
                "CREATE TABLE IF NOT EXISTS seen (partition, offset, number, "
                "PRIMARY KEY (partition, offset))"
            )
        connector = ConsumerConnector(cluster.access.secured(config), offsets=self._store)
        self._stack.enter_context(connector)
        (self._stream,) = connector.create_message_streams({TOPIC: 1})[TOPIC]
        self._reading = LoadThread("member", self._read)

    def _read(self) -> None:
        with suppress(ConsumerTimeoutError):
            message = next(self._stream)
            with self._store.transaction() as database:
                if self._store.finish(message):
                    _, partition, offset, _, payload = message
                    row = partition.name, offset, int(payload)
                    database.execute("INSERT INTO seen VALUES (?, ?, ?)", row)

    def leave(self) -> None:
        self._reading.stop()
        self._stack.close()


def kill_leader(cluster: ReplicatedCluster, trial: Trial) -> None:
    leader = cluster.await_leader(trial.partitions[0])
    cluster.kill_replaceable(leader, trial.partitions, session_lives_on=True)
    trial.await_progress()
    cluster.start(leader)


def kill_controller(cluster: ReplicatedCluster, trial: Trial) -> None:
    wait_until(lambda: cluster.controller() >= 0, "a controller")
    controller = cluster.controller()
    cluster.kill_replaceable(controller, trial.partitions)
    trial.await_progress()
    cluster.start(controller)


def freeze(cluster: ReplicatedCluster, trial: Trial) -> None:
    cluster.await_full_isr(trial.partitions)
    leader = cluster.await_leader(trial.partitions[1])
    cluster.freeze(leader)
    cluster.await_leader(trial.partitions[1], other_than=leader)
    trial.await_progress()
    cluster.thaw(leader)


def stop(cluster: ReplicatedCluster, trial: Trial) -> None:
    cluster.await_full_isr(trial.partitions)
    leader = cluster.await_leader(trial.partitions[2])
    cluster.stop(leader)
    trial.await_progress()
    cluster.start(leader)


def lack_of(
    lacking: Callable[[ReplicatedCluster, int], AbstractContextManager[None]],
    cluster: ReplicatedCluster,
    trial: Trial,
) -> None:
    """Take room or descriptors from a follower, and from the leader of another partition."""
    cluster.await_full_isr(trial.partitions)
    follower = next(one for one in cluster.brokers if one != cluster.leader(trial.partitions[0]))
    for broker_id in (follower, cluster.await_leader(trial.partitions[1])):
        with lacking(cluster, broker_id):
            trial.await_progress()
        cluster.await_full_isr(trial.partitions)


def set_clock(clock: JumpingClock, cluster: ReplicatedCluster, trial: Trial) -> None:
    """Set a leader's clock ten days ahead, and then behind."""
    leader = cluster.await_leader(trial.partitions[2])
    for ahead_s in (_TEN_DAYS_S, -_TEN_DAYS_S, 0):
        clock.set(cluster.brokers[leader].pid, ahead_s)
        trial.await_progress()


def rotate_key(cluster: ReplicatedCluster, trial: Trial, invoke: Invoke) -> None:
    """Replace the key of the cluster twice, while a broker is down that knows neither."""
    absent = cluster.await_leader(trial.partitions[0])
    cluster.kill_replaceable(absent, trial.partitions)
    for how in ([], ["--now"]):
        words = ("cluster", "rotate-key", *how, "--yes", "-Z", cluster.zookeeper)
        assert invoke(*words, "--timeout", "60s").status == 0
        trial.await_progress()
    cluster.start(absent)


def renew_certificate(cluster: ReplicatedCluster, _trial: Trial) -> None:
    access = cluster.access
    assert isinstance(access, ClosedCluster)
    access.certificates.renew()
    new = access.certificates.certificate.read_text()
    for broker_id, broker in cluster.brokers.items():
        broker.signal(signal.SIGHUP)
        address = ("127.0.0.1", cluster.network.door_to_broker(broker_id))
        wait_until(lambda: ssl.get_server_certificate(address) in new, "the new certificate")  # noqa: B023


def seen_in(database: Path) -> dict[str, list[int]]:
    """Return the numbers of each partition in the order in which they were kept."""
    found = defaultdict(list)
    with sqlite3.connect(database) as connection:
        for partition, number in connection.execute(
            "SELECT partition, number FROM seen ORDER BY rowid"
        ):
            found[partition].append(number)
    return found


def consumed(file: Path) -> dict[str, list[int]]:
    """Return the numbers of each partition that a command has written, without those come again."""
    found: dict[str, dict[int, None]] = defaultdict(dict)
    for line in file.read_text().splitlines():
        partition, offset = line.split()
        found[partition][int(offset)] = None
    return {partition: list(offsets) for partition, offsets in found.items()}


@pytest.mark.closed_only
def test_cluster_when_everything_fails_in_turn_then_nothing_is_lost_and_all_is_in_order(
    server: EmbeddedZooKeeper,
    start_cluster: StartCluster,
    spawn: Spawn,
    invoke: Invoke,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    pytestconfig: pytest.Config,
) -> None:
    def restart_zookeeper(_cluster: ReplicatedCluster, _trial: Trial) -> None:
        server.stop()
        server.start()

    clock = JumpingClock(tmp_path, monkeypatch)
    cluster = start_cluster()
    trial = Trial(cluster, padding_bytes=3000)
    idempotent = ("-X", "enable.idempotence=true")
    way = Way(TOPIC, 3, ("--partitioner", "round-robin", *idempotent), lot=2)
    pipe = Pipe(cluster, spawn, way, tmp_path, cluster.zookeeper)
    database, written = tmp_path / "seen.db", tmp_path / "written"
    words = ("--group", "command", "-Z", cluster.zookeeper, "--from-beginning", "-F", "%p %o\n")
    with written.open("wb") as file:
        group = spawn("consume", TOPIC, *words, stdout=file)
    members = [Member(cluster, database) for _ in range(2)]
    steps: list[Callable[[ReplicatedCluster, Trial], None]] = [
        *(kill_leader, freeze, restart_zookeeper, stop, kill_controller),
        *(partial(rotate_key, invoke=invoke), renew_certificate),
        *(
            partial(lack_of, partial(full_disk, counts_all=False)),
            partial(lack_of, no_descriptors),
            partial(set_clock, clock),
        ),
    ]
    order = random.Random(pytestconfig.getoption("rounds"))
    for _ in range(pytestconfig.getoption("rounds")):
        for step in steps:
            step(cluster, trial)
            trial.await_progress()
            assert pipe.process.poll() is None, pipe.said
            pipe.await_progress()
        order.shuffle(steps)

    trial.verdict()
    pipe.finish()
    stored = {one.name: numbers for one, numbers in pipe.stored().items()}
    doubled = sum(len(numbers) - len(set(numbers)) for numbers in stored.values())
    print(f"{pipe.fed} messages of an idempotent producer, {doubled} doubled")
    assert not doubled
    wait_until(lambda: seen_in(database) == stored, "all messages once, in order, by the members")
    ends = {name: len(numbers) for name, numbers in stored.items()}
    wait_until(
        lambda: {one: len(some) for one, some in consumed(written).items()} == ends,
        "all messages by the command",
    )
    for offsets in consumed(written).values():
        assert offsets == sorted(offsets)
    for member in members:
        member.leave()
    group.terminate()
    assert group.wait(60) == 128 + signal.SIGTERM
