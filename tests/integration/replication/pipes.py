"""Pipes into topics with replicas: `pylogctl produce` in all its ways, each fed with numbers."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from broker.protocol.codec import decode
from broker.topic import TopicPartition
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.command_line import Spawn
from tests.support.waiting import wait_until


class Way(NamedTuple):
    """One way to produce.

    Attributes:
        name: of the topic.
        partition_count: of the topic.
        args: of the command.
        pause_s: between two lots of lines.
        lot: how many lines are fed at once.
        is_listed: whether one broker is named, not ZooKeeper.
    """

    name: str
    partition_count: int
    args: Sequence[str] = ()
    pause_s: float = 0.1
    lot: int = 10
    is_listed: bool = False


WAYS = (
    Way("plain", 1),
    Way("bulk", 1, pause_s=0.4, lot=1000),
    Way("slow", 3, pause_s=0.4, lot=1),
    Way("chosen", 3, ("-p", "1-0")),
    Way("turns", 3, ("--partitioner", "round-robin")),
    Way("keyed", 3, ("-K", ":")),
    Way("listed", 1, is_listed=True),
    Way("paced", 1, ("--rate", "500/s", "--receipt", "paced.receipt")),
    Way("sync", 3, ("--sync",), lot=1),
)
FEW_WAYS = tuple(way for way in WAYS if way.name in ("bulk", "keyed", "listed", "sync"))


class Pipe:
    """A `produce` into a topic, by default a new one with three replicas, fed with numbers.

    Args:
        cluster: gets the topic.
        spawn: starts the command.
        way: how.
        directory: for files of the command.
        zookeeper: where the command finds ZooKeeper.
        partitions: of the topic, if it exists already.
    """

    def __init__(
        self,
        cluster: ReplicatedCluster,
        spawn: Spawn,
        way: Way,
        directory: Path,
        zookeeper: str,
        partitions: Sequence[TopicPartition] = (),
    ) -> None:
        self.way = way
        self.fed = 0
        self.partitions = partitions or cluster.create_topic(
            way.name, way.partition_count, 3, min_insync_replicas="2"
        )
        self.receipt = directory / f"{way.name}.receipt"
        self._cluster = cluster
        self._said: list[bytes] = []
        self._is_over = threading.Event()
        where = ("-Z", zookeeper)
        if way.is_listed:
            where = ("-b", f"127.0.0.1:{cluster.network.door_to_broker(0)}")
        args = [str(self.receipt) if one.endswith(".receipt") else one for one in way.args]
        self.process = spawn(
            "produce",
            way.name,
            *where,
            *args,
            stdin=subprocess.PIPE,
            env={"PYTHONFAULTHANDLER": "1"},
        )
        self._threads = [threading.Thread(target=one) for one in (self._feed, self._listen)]
        for thread in self._threads:
            thread.start()

    def _feed(self) -> None:
        assert self.process.stdin is not None
        key = b"k%d:" if "-K" in self.way.args else b""
        with suppress(BrokenPipeError), self.process.stdin as stdin:
            while not self._is_over.is_set():
                for number in range(self.fed, self.fed + self.way.lot):
                    stdin.write((key and key % (number % 7)) + b"%d\n" % number)
                stdin.flush()
                self.fed += self.way.lot
                self._is_over.wait(self.way.pause_s)

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._said.extend(iter(self.process.stderr.readline, b""))

    @property
    def said(self) -> str:
        return b"".join(self._said).decode()

    def stored(self) -> dict[TopicPartition, list[int]]:
        """Return the numbers that all replicas have, once these are equal."""
        found = {}
        for partition in self.partitions:
            self._cluster.await_equal_logs(partition)
            _, data = self._cluster.log_bytes(self._cluster.leader(partition), partition)
            found[partition] = [int(payload) for _, _, payload in decode(data, 0).messages]
        return found

    def await_progress(self, line_count: int = 3) -> None:
        """Wait until the leaders have so many lines more than now."""
        goal = self._written() + line_count * 10
        wait_until(lambda: self._written() >= goal, f"messages of {self.way.name}")

    def _written(self) -> int:
        end = self._cluster.log_end
        return sum(
            max(end(one, partition) for one in self._cluster.brokers)
            for partition in self.partitions
        )

    def finish(self) -> None:
        """End the input, and check that the command ends well and all lines are there in order."""
        self._is_over.set()
        try:
            status = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.send_signal(signal.SIGABRT)  # it says where its threads are
            status = self.process.wait(60)
        for thread in self._threads:
            thread.join()
        assert status == 0, f"{self.way.name}: status {status}: {self.said}"
        stored = self.stored()
        numbers = {number for some in stored.values() for number in some}
        missing = set(range(self.fed)) - numbers
        assert not missing, f"{self.way.name}: {sorted(missing)[:20]} are missing: {self.said}"
        for partition, some in stored.items():
            first_copies = list(dict.fromkeys(some))
            assert first_copies == sorted(first_copies), f"{partition} is out of order"

    def end(self) -> None:
        self._is_over.set()
        self.process.kill()
        for thread in self._threads:
            thread.join()
        with self.process:
            pass
