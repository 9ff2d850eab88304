"""Apache Kafka as a cluster of processes, from the jars that `make bench-setup` fetches."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.broker_process import temporary_directory
from bench.peers import SETUP

_CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qg"
_START_S = 120.0
_PRODUCER = "org.apache.kafka.tools.ProducerPerformance"


def is_there() -> bool:
    """Return whether the jars and a Java are there."""
    return shutil.which("java") is not None and any((SETUP / "kafka").glob("kafka_2.1*.jar"))


class KafkaCluster:
    """Brokers that are controllers as well, with node ids from 1 on.

    Args:
        directory: where everything is kept.
        broker_count: how many.
    """

    def __init__(self, directory: Path, broker_count: int) -> None:
        self._directory = directory
        self._processes: list[subprocess.Popen[bytes]] = []
        ports = _free_ports(2 * broker_count)
        self._ports, controllers = ports[:broker_count], ports[broker_count:]
        voters = ",".join(
            f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1)
        )
        settings = [
            self._write_settings(number, port, controller, voters)
            for number, (port, controller) in enumerate(
                zip(self._ports, controllers, strict=True), 1
            )
        ]
        for path in settings:
            self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", str(path))
        for path in settings:
            with path.with_suffix(".log").open("wb") as log:
                self._processes.append(
                    subprocess.Popen(
                        self._command("kafka.Kafka", str(path)),
                        stdout=log,
                        stderr=log,
                        cwd=directory,
                    )
                )
        for port in self._ports:
            _await_port(port)

    def _write_settings(self, number: int, port: int, controller: int, voters: str) -> Path:
        path = self._directory / f"node-{number}.properties"
        listeners = f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}"
        path.write_text(
            "process.roles=broker,controller\n"
            f"node.id={number}\n"
            f"controller.quorum.voters={voters}\n"
            f"listeners={listeners}\n"
            f"advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n"
            "controller.listener.names=CONTROLLER\n"
            "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
            f"log.dirs={self._directory / f'data-{number}'}\n"
            "offsets.topic.replication.factor=1\n"
            "auto.create.topics.enable=false\n"
        )
        return path

    @property
    def _servers(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def create_topic(self, topic: str, partition_count: int, factor: int) -> None:
        """Create a topic."""
        deadline_s = time.monotonic() + _START_S
        while True:
            try:
                self._run(
                    "org.apache.kafka.tools.TopicCommand",
                    *("--bootstrap-server", self._servers),
                    *("--create", "--topic", topic),
                    *("--partitions", str(partition_count)),
                    *("--replication-factor", str(factor)),
                )
            except subprocess.CalledProcessError:  # not all brokers have registered yet
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(1)
            else:
                return

    def publish_s(self, topic: str, message_count: int) -> float:
        """Return the seconds in which Kafka's own tool publishes messages of 200 bytes."""
        output = self._run(
            _PRODUCER,
            *("--topic", topic, "--num-records", str(message_count), "--record-size", "200"),
            *("--throughput", "-1", "--producer-props", f"bootstrap.servers={self._servers}"),
            *("acks=all", "batch.size=524288", "linger.ms=5", "buffer.memory=67108864"),
            "enable.idempotence=false",
        )
        found = re.findall(r"records sent, ([\d.]+) records/sec", output)
        return message_count / float(found[-1])

    def failover_s(self, topic: str) -> float:
        """Kill the leader of a topic's first partition; return how long a record waited at most."""
        described = self._run(
            "org.apache.kafka.tools.TopicCommand",
            *("--bootstrap-server", self._servers, "--describe", "--topic", topic),
        )
        (leader,) = re.findall(r"Partition: 0\s+Leader: (\d+)", described)
        command = self._command(
            _PRODUCER,
            *("--topic", topic, "--num-records", "4000", "--record-size", "200"),
            *("--throughput", "100", "--producer-props", f"bootstrap.servers={self._servers}"),
            *("acks=all", "linger.ms=0"),
        )
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as producer:
            assert producer.stdout is not None
            producer.stdout.readline()  # the first seconds, in which it connects, are over
            self._processes[int(leader) - 1].kill()
            after = producer.stdout.read()
        # not the summary, which has the time to connect
        found = re.findall(r"([\d.]+) ms max latency\.$", after, re.MULTILINE)
        return max(map(float, found)) / 1000

    def close(self) -> None:
        """End all processes."""
        for process in self._processes:
            process.kill()
            process.wait()

    def _command(self, main: str, *arguments: str) -> list[str]:
        classes = str(SETUP / "kafka" / "*")
        return ["java", "-Xmx1g", "-cp", classes, main, *arguments]

    def _run(self, main: str, *arguments: str) -> str:
        done = subprocess.run(
            self._command(main, *arguments), check=True, capture_output=True, text=True
        )
        return done.stdout


def _free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _await_port(port: int) -> None:
    deadline_s = time.monotonic() + _START_S
    while time.monotonic() < deadline_s:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.2)
    raise RuntimeError(f"Apache Kafka does not listen on port {port}")


@contextmanager
def running(parent: Path, *, broker_count: int) -> Iterator[KafkaCluster]:
    """Yield a cluster with new data; stop and remove it afterwards."""
    with temporary_directory(parent) as directory:
        cluster = KafkaCluster(directory, broker_count)
        try:
            yield cluster
        finally:
            cluster.close()
