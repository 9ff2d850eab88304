"""The example that counts words: killed at any time, it counts each message exactly once."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from bench.broker_process import REPOSITORY
from broker.client.connection import Connection
from broker.client.registry_cluster import RegistryCluster
from broker.producer.producer import Producer
from broker.protocol.codec import encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from tests.integration.cluster.group_harness import Cluster
from tests.support.command_line import Process
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.zookeeper,
    pytest.mark.slow,
    pytest.mark.open_only("the example does not log in"),
]

LINE_COUNT = 150
"""In each partition, before each start."""
SESSION_TIMEOUT_MS = 1500


def produce(cluster: Cluster, topic: str) -> Counter[str]:
    """Send lines, every second set of them compressed; return the words in them."""
    words: Counter[str] = Counter()
    with Producer(RegistryCluster(cluster.registry), Connection) as producer:
        for place, partition in enumerate(cluster.partitions(topic)):
            lines = [f"every line{number} {partition.name}" for number in range(LINE_COUNT)]
            words.update(word for line in lines for word in line.split())
            for start in range(0, LINE_COUNT, 50):
                payloads = [line.encode() for line in lines[start : start + 50]]
                is_compressed = (place + start // 50) % 2
                message_set = build_set(payloads, Codec.GZIP) if is_compressed else encode(payloads)
                producer.send_set(partition, message_set)
    return words


def start(cluster: Cluster, topic: str, database: Path, *, idle_ms: int) -> subprocess.Popen[bytes]:
    return Process(
        [
            sys.executable,
            REPOSITORY / "examples" / "exactly_once.py",
            database,
            *("--zookeeper", cluster.zookeeper, "--group", topic, "--topic", topic),
            *("--idle-ms", str(idle_ms), "--session-timeout-ms", str(SESSION_TIMEOUT_MS)),
        ],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
    )


def counted(database: Path) -> Counter[str]:
    if not database.exists():
        return Counter()
    connection = sqlite3.connect(database, timeout=60)
    try:
        return Counter(dict(connection.execute("SELECT word, count FROM words")))
    except sqlite3.OperationalError:  # the table is not there yet
        return Counter()
    finally:
        connection.close()


def await_count(database: Path, count: int) -> None:
    wait_until(
        lambda: counted(database)["every"] >= count, f"count of {count} messages", deadline_s=120
    )


def test_exactly_once_when_killed_in_between_then_every_message_counts_once(
    cluster: Cluster, topic: str, work_dir: Path
) -> None:
    database = work_dir / "words.db"
    expected: Counter[str] = Counter()

    for share in (0.3, 0.7, 1.0):
        before = expected["every"]
        expected += produce(cluster, topic)
        victim = start(cluster, topic, database, idle_ms=600_000)
        try:
            await_count(database, before + int((expected["every"] - before) * share))
        finally:
            victim.kill()
            victim.wait()
    # what the last one was killed over comes again, and must not count again
    with start(cluster, topic, database, idle_ms=3 * SESSION_TIMEOUT_MS) as last:
        assert last.wait(120) == 0

    assert counted(database) == expected
