"""Brokers, a producer and consumers of one cluster as processes, and what they delivered."""

from __future__ import annotations

import itertools
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from bench.broker_process import REPOSITORY, BrokerProcess
from broker.client.connection import Connection
from broker.client.registry_cluster import RegistryCluster
from broker.consumer.simple_consumer import SimpleConsumer
from broker.errors import RegistryNodeNotFoundError
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from tests.support.closed_cluster import cluster_access
from tests.support.waiting import wait_until
from tests.support.zookeeper import expire_session_of

SESSION_TIMEOUT_MS = 4000
"""Of members that a test kills or freezes: a pause of the machine for 2 s ends none."""
BROKER_SESSION_TIMEOUT_MS = 6000
"""A broker that is started again takes its node over, and waits for the end of no session."""
LONG_SESSION_TIMEOUT_MS = 10_000
"""Of all other members: a machine that is paused ends none of their sessions."""
VICTIM = {"zk_sessiontimeout_ms": str(SESSION_TIMEOUT_MS)}
"""Properties of a member that a test kills or freezes."""
COMMIT_INTERVAL_MS = 200


class Delivered(NamedTuple):
    """A message as a member wrote it down."""

    topic: str
    partition: str
    offset: int
    next_offset: int
    number: int


class Member:
    """A consumer process.

    Args:
        path: where it writes what it is given.
        topics: see `group_member`.
        properties: 0.7's, by name.
        program: the module that runs it, `group_member` or one that is called like it.
    """

    def __init__(
        self, path: Path, topics: str, properties: dict[str, str], program: str = "group_member"
    ) -> None:
        self.path = path
        self.log = path.with_suffix(".log")
        settings = [f"{name}={value}" for name, value in properties.items()]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    f"tests.integration.cluster.{program}",
                    path,
                    topics,
                    *settings,
                ],
                cwd=REPOSITORY,
                stdout=log,
                stderr=log,
            )

    def delivered(self) -> list[Delivered]:
        """Return what it has delivered so far, in order."""
        if not self.path.exists():
            return []
        *lines, _ = self.path.read_text().split("\n")  # the last one may be half written
        found = []
        for topic, partition, offset, next_offset, payload in map(str.split, lines):
            number = int(payload.rpartition(":")[2])
            found.append(Delivered(topic, partition, int(offset), int(next_offset), number))
        return found

    def freeze(self) -> None:
        """Stop it as a long pause of the machine would."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.process.wait()

    def leave(self) -> None:
        """Have it leave the group, and wait for its end."""
        self.process.terminate()
        try:
            status = self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGUSR1)  # it writes where its threads are
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(1)
            status = None
        assert status == 0, self.log.read_text()


class RunningBroker(Protocol):
    """A broker process, of whatever make."""

    port: int

    def kill(self) -> None:
        """End it at once."""


class Cluster:
    """Broker processes on one registry.

    Args:
        zookeeper: connect string.
        directory: where everything is kept.
        broker_count: how many brokers.
        partition_count: of each topic on each broker.
        is_closed: whether everything is on that keeps strangers out.
    """

    def __init__(
        self,
        zookeeper: str,
        directory: Path,
        *,
        broker_count: int = 2,
        partition_count: int = 4,
        is_closed: bool = False,
    ) -> None:
        self.zookeeper = zookeeper
        self.access = cluster_access(zookeeper, directory, is_closed=is_closed)
        self.client = {"zk.connect": zookeeper, **self.access.client}
        """Properties of clients."""
        self.partition_count = partition_count
        self.registry = Registry(zookeeper)
        self._directory = directory
        self._numbers = itertools.count()
        self.members: list[Member] = []
        self.brokers: dict[int, RunningBroker] = {}
        for broker_id in range(broker_count):
            self.start_broker(broker_id)

    def connect(self) -> None:
        """Connect to the registry, until `disconnect`."""
        self.registry = Registry(self.zookeeper, speaks_tls=self.access.security is not None)
        self.registry.start()

    def disconnect(self) -> None:
        """End all members, and the connection to the registry.

        Kazoo's thread draws random numbers, which Hypothesis takes for a fault of a test of its
        own that runs meanwhile.
        """
        for member in self.members:
            member.kill()
        self.members.clear()
        self.registry.stop()

    def start_broker(self, broker_id: int) -> None:
        """Start a broker, with the data it had before."""
        directory = self._directory / f"broker-{broker_id}"
        directory.mkdir(exist_ok=True)
        settings = {
            "brokerid": str(broker_id),
            "num.partitions": str(self.partition_count),
            "num.threads": "1",
            "log.default.flush.interval.ms": "20",
            "zk.connect": self.zookeeper,
            "zk.sessiontimeout.ms": str(BROKER_SESSION_TIMEOUT_MS),
            **self.access.broker_properties(directory),
        }
        self.brokers[broker_id] = BrokerProcess(directory, **settings)

    def connection(self, address: BrokerAddress) -> Connection:
        """Return a connection to a broker."""
        return Connection(address, connect_timeout_s=60, security=self.access.security)

    def consumer(self, address: BrokerAddress) -> SimpleConsumer:
        """Return a consumer of a broker."""
        return SimpleConsumer(address.host, address.port, security=self.access.security)

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return all partitions the topic has, or will have."""
        return [
            TopicPartition(topic, broker_id, index)
            for broker_id in self.brokers
            for index in range(self.partition_count)
        ]

    def join(self, group: str, topics: str, **properties: str) -> Member:
        """Start a consumer; underscores in property names stand for dots."""
        return self._join("group_member", group, topics, properties)

    def join_foreign(self, group: str, topics: str, **properties: str) -> Member:
        """Start a consumer that is none of ours, but as 0.7's are; see `foreign_member`."""
        return self._join("foreign_member", group, topics, properties)

    def _join(self, program: str, group: str, topics: str, properties: dict[str, str]) -> Member:
        settings = {
            **self.client,
            "zk.sessiontimeout.ms": str(LONG_SESSION_TIMEOUT_MS),
            "groupid": group,
            "autocommit.interval.ms": str(COMMIT_INTERVAL_MS),
            "rebalance.backoff.ms": "500",
            **{name.replace("_", "."): value for name, value in properties.items()},
        }
        path = self._directory / f"member-{next(self._numbers)}.txt"
        member = Member(path, topics, settings, program)
        self.members.append(member)
        return member

    def owners(self, group: str, topic: str) -> dict[str, str]:
        """Return the consumer thread that owns each partition, by the partition's name."""
        try:
            names = self.registry.session.children(paths.owners(group, topic))
        except RegistryNodeNotFoundError:
            return {}
        root = paths.owners(group, topic)
        found = self.registry.session.get_many(f"{root}/{name}" for name in names)
        return {path.rpartition("/")[2]: value.decode() for path, (value, _) in found.items()}

    def offsets(self, group: str, topic: str) -> dict[str, int]:
        """Return the committed offset of each partition, by the partition's name."""
        root = paths.offsets(group, topic)
        try:
            names = self.registry.session.children(root)
        except RegistryNodeNotFoundError:
            return {}
        found = self.registry.session.get_many(f"{root}/{name}" for name in names)
        return {path.rpartition("/")[2]: int(value) for path, (value, _) in found.items()}

    def settle(self, group: str, topic: str, thread_count: int, what: str) -> None:
        """Wait until every partition has an owner, spread evenly; print how long it took."""
        partition_count = len(self.partitions(topic))
        least = partition_count // thread_count

        def is_settled() -> bool:
            owners = self.owners(group, topic)
            shares = Counter(owners.values())
            is_even = all(least <= share <= least + 1 for share in shares.values())
            return len(owners) == partition_count and len(shares) == thread_count and is_even

        started_s = time.monotonic()
        wait_until(is_settled, f"settling after {what}")
        print(f"settled {time.monotonic() - started_s:.2f} s after {what}")

    def expire_members(self, group: str) -> None:
        """End the sessions of all members of a group, of which none runs."""
        session = self.registry.session
        for consumer_id in session.children(paths.consumer_ids(group)):
            expire_session_of(session, paths.consumer(group, consumer_id))

    def ends(self, topic: str) -> dict[str, int]:
        """Return where the delivered messages of each partition end, by the partition's name."""
        found: dict[str, int] = {one.name: 0 for one in self.partitions(topic)}
        for one in self.delivered():
            if one.topic == topic:
                found[one.partition] = max(found[one.partition], one.next_offset)
        return found

    def owned_by(self, member: Member, group: str, topic: str) -> set[str]:
        """Return the partitions that a member owns, by what it says in its log of itself."""

        def named() -> list[str]:  # a member writes the line after it has claimed its partitions
            return re.findall(r"(\S+) owns \d+ partitions", member.log.read_text())

        wait_until(named, "the member's word that it owns partitions", deadline_s=60)
        consumer_id = named()[-1]
        owners = self.owners(group, topic)
        return {one for one, thread in owners.items() if thread.startswith(f"{consumer_id}-")}

    def delivered(self) -> list[Delivered]:
        """Return what all members have delivered so far."""
        return [one for member in self.members for one in member.delivered()]

    def await_delivery(self, load: Load) -> None:
        """Wait until everything the load produced was delivered, by whomever."""

        def is_complete() -> bool:
            numbers: dict[str, set[int]] = defaultdict(set)
            for one in self.delivered():
                if one.topic == load.topic:
                    numbers[one.partition].add(one.number)
            return all(len(numbers[name]) >= count for name, count in load.counts().items())

        wait_until(is_complete, "delivery of every message")

    def stop(self) -> None:
        """End the brokers."""
        for broker in self.brokers.values():
            broker.kill()


class Load(threading.Thread):
    """Produces numbered messages to all partitions of a topic, until it is stopped.

    Args:
        cluster: whose brokers get them.
        topic: any.
        codec: how each send's messages are compressed.
    """

    def __init__(self, cluster: Cluster, topic: str, codec: Codec = Codec.NONE) -> None:
        super().__init__(name="load")
        self.topic = topic
        self._codec = codec
        self._cluster = RegistryCluster(cluster.registry, cluster.connection)
        self._connect = cluster.connection
        self._partitions = cluster.partitions(topic)
        self._counts = dict.fromkeys((one.name for one in self._partitions), 0)
        self._stop_event = threading.Event()
        self.error: Exception | None = None

    def counts(self) -> dict[str, int]:
        """Return how many messages each partition has, by its name."""
        return dict(self._counts)

    def produce(self, count: int) -> None:
        """Send so many messages to each partition, and wait until they are acknowledged."""
        with Producer(self._cluster, self._connect) as producer:
            for partition in self._partitions:
                self._send(producer, partition, count)

    def run(self) -> None:
        """Send small batches to one partition after another."""
        try:
            with Producer(self._cluster, self._connect, ProducerSettings(retries=20)) as producer:
                for partition in itertools.cycle(self._partitions):
                    if self._stop_event.wait(0.002):
                        break
                    self._send(producer, partition, 5)
        except Exception as error:  # noqa: BLE001  # handed to the test, which fails with it
            self.error = error

    def _send(self, producer: Producer, partition: TopicPartition, count: int) -> None:
        first = self._counts[partition.name]
        numbers = range(first, first + count)
        payloads = [f"{partition.name}:{number}".encode() for number in numbers]
        delivery = producer.send_set(partition, build_set(payloads, self._codec))
        producer.flush()
        delivery.result()
        self._counts[partition.name] = first + count

    def finish(self) -> None:
        """Stop, and wait until all is acknowledged."""
        self._stop_event.set()
        self.join()
        if self.error is not None:
            raise self.error


@contextmanager
def running_load(cluster: Cluster, topic: str, codec: Codec = Codec.NONE) -> Iterator[Load]:
    """Give a load that has produced something to every partition."""
    load = Load(cluster, topic, codec)
    load.start()
    try:
        wait_until(lambda: load.error or all(load.counts().values()), "first messages everywhere")
        if load.error is not None:
            raise load.error
        yield load
    finally:
        load.finish()


def count_duplicates(delivered: list[Delivered]) -> int:
    """Return how many deliveries were not the first of their message."""
    return len(delivered) - len({(one.topic, one.partition, one.offset) for one in delivered})


def check_order(member: Member, *, max_jumps: int = 0) -> None:
    """Check that a member was given each partition's messages in their order.

    The message in a stream's hand may come twice, where a rebalance leaves its partition there.

    Args:
        member: whose deliveries are looked at.
        max_jumps: how often a partition may have been taken up anew, at another place.
    """
    numbers: dict[tuple[str, str], list[int]] = defaultdict(list)
    for one in member.delivered():
        numbers[one.topic, one.partition].append(one.number)
    for partition, found in numbers.items():
        jumps = sum(
            after not in (before, before + 1) for before, after in itertools.pairwise(found)
        )
        assert jumps <= max_jumps, f"{partition}: {found}"
