"""Mirrors as processes between two clusters: killed, shared, with brokers that go away."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bench.broker_process import REPOSITORY, BrokerProcess
from broker.client.registry_cluster import RegistryCluster
from broker.protocol.codec import decode
from broker.protocol.message_set import iter_entries
from broker.zk.embedded import EmbeddedZooKeeper
from tests.integration.cluster.group_harness import Cluster, Load, running_load
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper


class Mirror:
    """A `pylogctl mirror run` process."""

    def __init__(
        self, source: str, target: str, group: str, topic: str, log: Path, *more: str
    ) -> None:
        self.log = log
        words = ["mirror", "run", "--from", source, "--to", target, "-v", *more]
        options = ["--group", group, "--include", topic, "--yes", "--streams", "2"]
        properties = ["-X", "zk.sessiontimeout.ms=4000", "-X", "autocommit.interval.ms=100"]
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "pylogctl", *words, *options, *properties],
                cwd=REPOSITORY,
                stdout=output,
                stderr=output,
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it as a service manager does; it must end well."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(60)
        assert status == 0, self.log.read_text()


@pytest.fixture(scope="module")
def target(
    zookeeper_server: EmbeddedZooKeeper,
    tmp_path_factory: pytest.TempPathFactory,
    *,
    is_closed: bool,
) -> Iterator[Cluster]:
    """A second cluster, with one broker, in the same ZooKeeper under another path."""
    chroot = f"{zookeeper_server.connect}/{uuid.uuid4().hex}"
    cluster = Cluster(
        chroot, tmp_path_factory.mktemp("target"), broker_count=1, is_closed=is_closed
    )
    cluster.connect()
    yield cluster
    cluster.disconnect()
    cluster.stop()


StartMirror = Callable[..., Mirror]


@pytest.fixture(autouse=True)
def contexts(
    cluster: Cluster, target: Cluster, work_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`source` and `target` are the clusters by their names."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(work_dir))
    file = work_dir / "pylogctl" / "config.toml"
    file.parent.mkdir()
    found = {"source": cluster, "target": target}
    file.write_text("".join(one.access.context(name, one.zookeeper) for name, one in found.items()))


@pytest.fixture
def start_mirror(contexts: None, topic: str, work_dir: Path) -> Iterator[StartMirror]:
    """Start mirrors of the test's topic, in a group of its name."""
    started: list[Mirror] = []

    def start(*more: str) -> Mirror:
        log = work_dir / f"mirror-{len(started)}.log"
        started.append(Mirror("source", "target", topic, topic, log, *more))
        return started[-1]

    yield start
    for mirror in started:
        if mirror.process.poll() is None:
            mirror.kill()


def mirrored(target: Cluster, topic: str) -> dict[str, list[int]]:
    """Return the numbers in the target by partition of the source, each as it came first."""
    found: dict[str, dict[int, None]] = defaultdict(dict)
    known = RegistryCluster(target.registry)
    for partition in known.partitions(topic):
        address = known.leader(partition)
        with target.consumer(address) as consumer:
            data, offset = bytearray(), 0
            while piece := bytes(consumer.fetch(topic, partition.index, offset, 1 << 20).data):
                valid = decode(piece, 0).valid_bytes
                data += piece[:valid]
                offset += valid
        for _, _, payload in decode(data, 0).messages:
            name, _, number = payload.decode().rpartition(":")
            found[name].setdefault(int(number))
    return {name: list(numbers) for name, numbers in found.items()}


def await_mirrored(target: Cluster, load: Load) -> None:
    def is_complete() -> bool:
        found = mirrored(target, load.topic)
        return all(len(found.get(name, [])) >= count for name, count in load.counts().items())

    wait_until(is_complete, "all of it in the target")


def await_commits(cluster: Cluster, topic: str) -> None:
    """Wait until the mirror has committed more than there is committed now."""
    before = sum(cluster.offsets(topic, topic).values())

    def has_more() -> bool:
        return sum(cluster.offsets(topic, topic).values()) > before

    wait_until(has_more, "a commit")


def check_complete_and_ordered(target: Cluster, load: Load) -> None:
    found = mirrored(target, load.topic)
    assert found == {name: list(range(count)) for name, count in load.counts().items()}


def run_mirror(command: str, *args: str) -> dict[str, object]:
    """Run `mirror status` or `verify`, and return its only row."""
    result = subprocess.run(
        [sys.executable, "-m", "pylogctl", "mirror", command, *args, "--output", "json"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    (row,) = json.loads(result.stdout)["data"]
    found: dict[str, object] = row
    return found


def test_mirror_when_killed_in_the_middle_then_another_one_goes_on_without_loss(
    cluster: Cluster, target: Cluster, topic: str, start_mirror: StartMirror
) -> None:
    with running_load(cluster, topic) as load:
        for is_soon_known in (True, True, False):
            mirror = start_mirror()
            await_commits(cluster, topic)
            mirror.kill()
            if is_soon_known:
                cluster.expire_members(topic)
        last = start_mirror()
    await_mirrored(target, load)

    last.stop()

    check_complete_and_ordered(target, load)
    sides = ("--from", "source", "--to", "target")
    compared = run_mirror("verify", *sides, "--include", topic)
    assert compared["missing"] == 0
    print(f"{compared['surplus']} of {compared['messages']} messages came twice after three kills")


def test_mirror_when_stopped_then_all_that_is_mirrored_is_committed(
    cluster: Cluster, target: Cluster, topic: str, start_mirror: StartMirror
) -> None:
    load = Load(cluster, topic)
    load.produce(200)
    mirror = start_mirror()
    await_mirrored(target, load)

    mirror.stop()
    again = start_mirror()
    wait_until(lambda: "owns 8 partitions" in again.log.read_text(), "the next one to start")
    load.produce(10)
    await_mirrored(target, load)
    again.stop()

    state = run_mirror("status", "--from", "source", "--include", topic, "--group", topic)
    assert (state["lag_bytes"], state["mirrors"]) == (0, 0)
    sides = ("--from", "source", "--to", "target")
    compared = run_mirror("verify", *sides, "--include", topic, "--exact")
    assert compared["messages"] == sum(load.counts().values())


def test_mirror_when_brokers_of_both_sides_go_away_then_goes_on_when_they_are_back(
    cluster: Cluster, target: Cluster, topic: str, start_mirror: StartMirror
) -> None:
    mirror = start_mirror()
    with running_load(cluster, topic) as load:
        wait_until(lambda: mirrored(target, topic), "something mirrored")
        target.brokers[0].kill()
        wait_until(
            lambda: "does not take messages" in mirror.log.read_text(), "the mirror to notice"
        )
        target.start_broker(0)
        wait_until(lambda: "takes messages again" in mirror.log.read_text(), "the mirror to go on")
    await_mirrored(target, load)
    cluster.brokers[1].kill()
    cluster.start_broker(1)
    load.produce(50)
    await_mirrored(target, load)

    mirror.stop()

    check_complete_and_ordered(target, load)


def figures(mirror: Mirror) -> dict[str, float]:
    """Return the sum over all routes of each of the figures that a mirror serves."""
    (address,) = re.findall(r"metrics at (http://\S+)", mirror.log.read_text())
    with urllib.request.urlopen(address, timeout=60) as answer:
        text = answer.read().decode()
    sums: dict[str, float] = defaultdict(float)
    for name, value in re.findall(r"^(\w+)\{.*\} (\S+)$", text, re.MULTILINE):
        sums[name.removeprefix("pylogctl_mirror_")] += float(value)
    return sums


def test_mirror_when_the_target_is_away_then_status_and_metrics_tell_why(
    cluster: Cluster, target: Cluster, topic: str, start_mirror: StartMirror
) -> None:
    def status() -> dict[str, object]:
        return run_mirror("status", "--from", "source", "--include", topic, "--group", topic)

    load = Load(cluster, topic)
    load.produce(20)
    mirror = start_mirror("--metrics-port", "0")
    await_mirrored(target, load)
    wait_until(lambda: figures(mirror)["lag_bytes"] == 0, "the acknowledgement of everything")
    fine = figures(mirror)
    assert (fine["messages_total"], fine["errors_total"]) == (8 * 20, 0)
    assert (status()["failing"], status()["last_error"]) == (False, None)

    target.brokers[0].kill()
    load.produce(5)
    wait_until(lambda: status()["failing"], "the failure in the status")
    assert "broker 0" in str(status()["last_error"])
    # scrapes within a second of one another get the same page
    wait_until(lambda: figures(mirror)["failing"] >= 1, "the failure in the metrics")
    assert figures(mirror)["lag_bytes"] > 0
    assert fine["lag_seconds"] == 0
    wait_until(lambda: figures(mirror)["lag_seconds"] > 0, "the age of what is not mirrored")

    target.start_broker(0)
    await_mirrored(target, load)
    wait_until(lambda: not status()["failing"], "the recovery in the status")
    mirror.stop()
    assert "broker 0" in str(status()["last_error"])  # it is told still
    assert "last error, of " in mirror.log.read_text()


def test_mirror_when_a_message_is_corrupt_then_is_failing_until_one_that_skips_gets_past(
    cluster: Cluster, target: Cluster, topic: str, start_mirror: StartMirror
) -> None:
    def status() -> dict[str, object]:
        return run_mirror("status", "--from", "source", "--include", topic, "--group", topic)

    Load(cluster, topic).produce(20)
    broker = cluster.brokers[0]
    assert isinstance(broker, BrokerProcess)
    segment = next(broker.data.glob(f"{topic}_*/*.pylog"))
    entries = list(iter_entries(segment.read_bytes(), 0))
    with segment.open("r+b") as file:
        file.seek(entries[len(entries) // 2].next_offset - 1)
        file.write(b"\xff")

    stopped = start_mirror()
    assert stopped.process.wait(60) == 8
    assert "--on-corrupt skip" in stopped.log.read_text()
    assert (status()["failing"], status()["corrupt"]) == (True, 0)
    skipping = start_mirror("--on-corrupt", "skip", "--metrics-port", "0")
    wait_until(lambda: status()["lag_bytes"] == 0, "all of it mirrored")
    assert figures(skipping)["corrupt_messages_total"] == 1
    skipping.process.send_signal(signal.SIGTERM)
    assert skipping.process.wait(60) == 6
    assert "1 corrupt" in skipping.log.read_text()
    assert (status()["failing"], status()["corrupt"]) == (False, 1)


def test_mirrors_when_two_share_a_group_then_order_and_messages_are_kept(
    cluster: Cluster, target: Cluster, topic: str, start_mirror: StartMirror
) -> None:
    first = start_mirror()
    with running_load(cluster, topic) as load:
        wait_until(lambda: mirrored(target, topic), "something mirrored")
        second = start_mirror()
        wait_until(
            lambda: "owns 4 partitions" in second.log.read_text(),
            "a share of it",
        )
    await_mirrored(target, load)

    first.stop()
    second.stop()

    check_complete_and_ordered(target, load)
