"""Our tools, clients and groups on Jafka's broker, which knows 0.7's requests and no others."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from bench.broker_process import REPOSITORY, BrokerProcess
from broker.consumer.simple_consumer import SimpleConsumer
from broker.log.offline.verify import verify_paths
from broker.producer.config import ProducerConfig
from broker.producer.producer import Producer
from broker.protocol.requests import EARLIEST_TIME, LATEST_TIME
from broker.zk.embedded import EmbeddedZooKeeper
from tests.integration.cluster.group_harness import Cluster, Load
from tests.interop.peers import Peer, PeerProcess, find_peer, pylogctl, require_peers
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.slow]

require_peers()

HOST = "127.0.0.1"
LINES = ["one", "two", "three", "four", "five"]
MAX_BYTES = 1 << 20


@pytest.fixture(scope="module")
def jafka() -> Peer:
    return find_peer("jafka")


class JafkaBroker:
    """Jafka's broker as a process, with two partitions of every topic.

    Args:
        peer: what runs it.
        directory: where its data, settings and log output are.
        broker_id: its id.
        zookeeper: connect string.
    """

    def __init__(self, peer: Peer, directory: Path, broker_id: int, zookeeper: str) -> None:
        self.data = directory / "data"
        self.port = _free_port()
        settings = {
            "brokerid": broker_id,
            "hostname": HOST,
            "port": self.port,
            "log.dir": self.data,
            "num.partitions": 2,
            "log.flush.interval": 1,
            "log.default.flush.interval.ms": 50,
            "log.default.flush.scheduler.interval.ms": 50,
            "enable.zookeeper": "true",
            "zk.connect": zookeeper,
            "zk.sessiontimeout.ms": 1500,
        }
        path = directory / "jafka.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self.process: PeerProcess = peer.start(directory / "jafka.txt", "broker", path)
        wait_until(self.process.lines, "the start of Jafka's broker")

    def stop(self) -> None:
        """Shut it down cleanly."""
        self.process.leave()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()

    def segments(self, topic: str) -> list[Path]:
        """Return its segment files of a topic that have something."""
        found = sorted(self.data.glob(f"{topic}-*/*.jafka"))
        return [path for path in found if path.stat().st_size]


def _free_port() -> int:
    with socket.create_server((HOST, 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.fixture
def chroot(zookeeper_server: EmbeddedZooKeeper) -> str:
    """A connect string with a chroot that is there already: Jafka does not make it."""
    name = uuid.uuid4().hex
    client = KazooClient(zookeeper_server.connect)
    client.start()
    client.create(f"/{name}")
    client.stop()
    client.close()
    return f"{zookeeper_server.connect}/{name}"


@pytest.fixture
def cluster(chroot: str, jafka: Peer, tmp_path: Path) -> Iterator[Cluster]:
    """Jafka's broker 1, with members and loads of ours."""
    cluster = Cluster(chroot, tmp_path, broker_count=0, partition_count=2)
    cluster.connect()
    cluster.brokers[1] = JafkaBroker(jafka, tmp_path, 1, chroot)
    yield cluster
    cluster.disconnect()
    cluster.stop()


@pytest.fixture
def broker(cluster: Cluster) -> JafkaBroker:
    """Jafka's broker of the cluster."""
    found = cluster.brokers[1]
    assert isinstance(found, JafkaBroker)
    return found


def test_commands_when_the_broker_is_jafkas_then_they_work(cluster: Cluster, topic: str) -> None:
    where = ("--zookeeper", cluster.zookeeper)

    pylogctl("produce", topic, *where, stdin="".join(f"{line}\n" for line in LINES))

    assert pylogctl("consume", topic, "-o", "start", "-e", *where).split() == LINES
    assert pylogctl("consume", topic, "--group", "g", "-o", "start", "-e", *where).split() == LINES
    assert pylogctl("topic", "list", "--output", "name", *where).split() == [topic]
    lag = pylogctl("group", "lag", "g", "--output", "jsonl", *where).splitlines()
    assert [json.loads(line)["lag_bytes"] for line in lag] == [0, 0]


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_producer_when_the_broker_is_jafkas_then_its_clients_read_what_we_sent(
    cluster: Cluster, broker: JafkaBroker, jafka: Peer, topic: str, codec: str
) -> None:
    config = ProducerConfig(
        broker_list=f"1:{HOST}:{broker.port}", producer_type="async", codec=codec
    )
    with Producer.from_config(config) as producer:
        producer.send(topic, [line.encode() for line in LINES])

    def found() -> list[str]:
        return jafka.run("multifetch", HOST, broker.port, topic, 0, 0, 1, 0)

    wait_until(lambda: len(found()) == len(LINES) + 2, "the flush of what was sent")
    with SimpleConsumer(HOST, broker.port) as consumer:
        fetched = [consumer.fetch(topic, partition, 0, MAX_BYTES) for partition in range(2)]
        ours = [f"{after} {payload.decode()}" for one in fetched for _, after, payload in one]
    assert [line for line in found() if line != "--"] == ours
    assert len(ours) == len(LINES)


def test_simple_consumer_when_the_broker_is_jafkas_then_offsets_are_the_segments_ends(
    cluster: Cluster, broker: JafkaBroker, jafka: Peer, topic: str
) -> None:
    jafka.run("produce", HOST, broker.port, topic, 0, lines=LINES)

    with SimpleConsumer(HOST, broker.port) as consumer:
        wait_until(lambda: consumer.fetch(topic, 0, 0, MAX_BYTES), "the flush")
        size = broker.segments(topic)[0].stat().st_size
        assert consumer.get_offsets_before(topic, 0, LATEST_TIME, 9) == [size, 0]
        assert consumer.get_offsets_before(topic, 0, EARLIEST_TIME, 9) == [0]


def test_segment_when_jafka_wrote_it_then_our_tools_find_no_fault_in_it(
    cluster: Cluster, broker: JafkaBroker, jafka: Peer, topic: str
) -> None:
    jafka.run("produce", HOST, broker.port, topic, 0, lines=LINES)
    jafka.run("produce-gzip", HOST, broker.port, topic, 1, lines=LINES)
    wait_until(lambda: len(broker.segments(topic)) == 2, "both segments")

    summary = verify_paths(broker.segments(topic))

    assert (summary.problems, summary.message_count) == ([], 2 * len(LINES))
    dumped = pylogctl("log", "dump", "--output", "jsonl", *broker.segments(topic))
    assert [json.loads(line)["payload"] for line in dumped.splitlines()] == 2 * LINES


def test_log_when_ours_is_put_where_jafka_looks_then_its_broker_serves_it(
    cluster: Cluster, broker: JafkaBroker, jafka: Peer, topic: str, tmp_path: Path
) -> None:
    (tmp_path / "ours").mkdir()
    ours = BrokerProcess(tmp_path / "ours", **{"log.file.size": "100", "brokerid": "1"})
    for _ in range(3):
        jafka.run("produce", HOST, ours.port, topic, 0, lines=LINES)
    jafka.run("produce-gzip", HOST, ours.port, topic, 0, lines=LINES)
    ours.stop()
    segments = sorted((ours.data / f"{topic}_0").glob("*.pylog"))
    assert len(segments) > 1

    broker.stop()
    folder = broker.data / f"{topic}-0"
    folder.mkdir()
    for path in segments:
        shutil.copy(path, folder / f"{path.stem}.jafka")
    cluster.brokers[1] = again = JafkaBroker(jafka, tmp_path, 1, cluster.zookeeper)

    found = []
    offset = 0
    while lines := jafka.run("fetch", HOST, again.port, topic, 0, offset):
        found += [line.partition(" ")[2] for line in lines]
        offset = int(lines[-1].partition(" ")[0])
    assert found == LINES * 4


def test_group_when_a_topic_is_on_jafkas_broker_and_ours_then_it_reads_both(
    cluster: Cluster, topic: str, broker: JafkaBroker, jafka: Peer, tmp_path: Path
) -> None:
    cluster.start_broker(2)
    load = Load(cluster, topic)
    load.produce(20)
    ours = [cluster.join(topic, f"{topic}:1") for _ in range(2)]
    cluster.settle(topic, topic, 2, "our start")
    cluster.await_delivery(load)

    settings = ("autooffset.reset=smallest", "autocommit.interval.ms=200")
    arguments = (cluster.zookeeper, "theirs", topic, 1, *settings)
    theirs = jafka.start(tmp_path / "theirs.txt", "join", *arguments)
    # not by lines: it may read anew, as it does not commit what it gives up in a rebalance
    wait_until(
        lambda: cluster.offsets("theirs", topic) == cluster.ends(topic), "Jafka's reading of both"
    )
    theirs.leave()
    for member in ours:
        member.leave()
    assert len(set(theirs.lines())) == 80
    assert cluster.offsets(topic, topic) == cluster.ends(topic)


def test_group_when_jafkas_broker_is_killed_and_comes_back_then_its_partitions_are_read_on(
    cluster: Cluster, topic: str, broker: JafkaBroker, jafka: Peer, tmp_path: Path
) -> None:
    load = Load(cluster, topic)
    load.produce(20)
    ours = cluster.join(topic, f"{topic}:1")
    cluster.await_delivery(load)

    broker.kill()
    wait_until(lambda: not cluster.registry.brokers(), "the end of its session")
    cluster.brokers[1] = JafkaBroker(jafka, tmp_path, 1, cluster.zookeeper)  # at another port
    load.produce(20)
    cluster.await_delivery(load)
    ours.leave()


@pytest.mark.parametrize("direction", ["from", "to"])
def test_mirror_when_one_end_is_jafkas_then_all_arrives(
    cluster: Cluster,
    topic: str,
    zookeeper_server: EmbeddedZooKeeper,
    tmp_path: Path,
    direction: str,
) -> None:
    (tmp_path / "other").mkdir()
    other = Cluster(
        f"{zookeeper_server.connect}/{uuid.uuid4().hex}", tmp_path / "other", broker_count=1
    )
    other.connect()
    source, target = (cluster, other) if direction == "from" else (other, cluster)
    load = Load(source, topic)
    load.produce(20)
    command = [
        sys.executable,
        "-m",
        "pylogctl",
        "mirror",
        "run",
        "--from",
        source.zookeeper,
        "--to",
        target.zookeeper,
        "--include",
        topic,
        "--yes",
    ]
    with (tmp_path / "mirror.log").open("wb") as log:
        mirror = subprocess.Popen(command, cwd=REPOSITORY, stdout=log, stderr=log)
    try:
        count = sum(load.counts().values())
        reader = target.join(topic, f"{topic}:1")
        wait_until(lambda: len(reader.delivered()) == count, "the mirrored messages")
        mirror.terminate()
        assert mirror.wait(30) == 0, (tmp_path / "mirror.log").read_text()
        reader.leave()
        assert sum(source.offsets("mirror", topic).values()) == sum(target.ends(topic).values())
    finally:
        mirror.kill()
        mirror.wait()
        other.disconnect()
        other.stop()
