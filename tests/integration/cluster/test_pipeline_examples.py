"""The examples of a mirror and an audit."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import broker
from bench.broker_process import REPOSITORY
from broker.client.connection import Connection
from broker.client.registry_cluster import RegistryCluster
from broker.producer.producer import Producer
from broker.zk.registry import Registry
from tests.integration.cluster.group_harness import Cluster
from tests.support.command_line import Process
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.open_only("the examples do not log in")]

EXAMPLES = REPOSITORY / "examples"


def run_example(name: str, *arguments: str, lines: bytes = b"") -> bytes:
    """Run an example to its end; return what it wrote."""
    done = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name, *arguments],
        input=lines,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


def handle(cluster: Cluster, topic: str, count: int) -> list[bytes]:
    """Have so many messages handled; the example ends when none has come for a while."""
    handled: list[bytes] = []

    def is_done() -> bool:
        handled.extend(run_example("audit.py", "handle", cluster.zookeeper, topic).splitlines())
        return len(handled) >= count

    wait_until(is_done, f"{count} messages", deadline_s=120)
    return handled


def audit_check(cluster: Cluster, topic: str, *arguments: str) -> tuple[int, bytes]:
    """Run `pylogctl audit check`; return status and document."""
    command = ["audit", "check", "audit", "-Z", cluster.zookeeper, "--include", topic, "--all"]
    done = subprocess.run(
        [sys.executable, "-m", "pylogctl", *command, "--fail-above", "0", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def test_audit_example_when_all_is_handled_then_agrees_and_else_tells(
    cluster: Cluster, topic: str
) -> None:
    lines = [b'{"ts": %d, "n": %d}' % (1_700_000_000 + number, number) for number in range(20)]
    run_example("audit.py", "send", cluster.zookeeper, topic, lines=b"\n".join(lines))

    assert sorted(handle(cluster, topic, len(lines))) == sorted(lines)
    assert audit_check(cluster, topic, "--tier", "billing")[0] == 0
    assert audit_check(cluster, topic, "--count", "--time-field", ".ts")[0] == 0
    with Producer(RegistryCluster(cluster.registry), Connection) as producer:
        producer.send(topic, [lines[0]])  # by somebody who does not count
    assert handle(cluster, topic, 1) == lines[:1]
    status, document = audit_check(cluster, topic, "--tier", "billing")
    assert status == 12
    assert b"surplus" in document


def test_mirror_example_when_terminated_then_has_mirrored_all(
    cluster: Cluster, topic: str, work_dir: Path
) -> None:
    with Producer(RegistryCluster(cluster.registry), Connection) as producer:
        for number in range(100):
            producer.send(topic, [b"%d" % number])
    target = Cluster(f"{cluster.zookeeper}-{topic}", work_dir, broker_count=1)
    try:
        mirror = Process(
            [sys.executable, EXAMPLES / "mirror.py", cluster.zookeeper, target.zookeeper, topic,
             "s/^/dc1./"],
            stdout=subprocess.PIPE,
        )  # fmt: skip
        with mirror, Registry(target.zookeeper) as registry:
            count = count_of(RegistryCluster(registry), f"dc1.{topic}")
            wait_until(lambda: count() == 100, "all messages arriving")
            mirror.send_signal(signal.SIGTERM)
            output, _ = mirror.communicate(timeout=120)
    finally:
        target.stop()
    assert (mirror.returncode, output) == (0, b"100 messages mirrored\n")


def count_of(there: RegistryCluster, topic: str) -> Callable[[], int]:
    """Return what counts the messages of a topic."""

    def count() -> int:
        total = 0
        for partition in there.partitions(topic):
            leader = there.leader(partition)
            with broker.SimpleConsumer(leader.host, leader.port) as consumer:
                total += len(list(consumer.fetch(topic, partition.index, 0, 1 << 20)))
        return total

    return count
