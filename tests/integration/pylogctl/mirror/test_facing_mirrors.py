"""Mirrors that face each other: from one cluster to another, and from there back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pylogctl
from broker import Broker
from broker.errors import BrokerError
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

COUNT = 100


class Side:
    """A cluster of one broker with its own ZooKeeper path."""

    def __init__(self, broker: Broker, zookeeper: str) -> None:
        self.zookeeper = zookeeper
        self.by_brokers = f"brokers=127.0.0.1:{broker.port}"
        self.client = pylogctl.connect(f"127.0.0.1:{broker.port}", timeout=60)

    def count(self, topic: str) -> int:
        """Return how many messages a topic has; 0 if it is not there yet."""
        try:
            return self.client.count(topic)
        except BrokerError:
            return 0


@pytest.fixture
def sides(
    start_broker: Callable[..., Broker], zookeeper: str, tmp_path: Path
) -> Iterator[tuple[Side, Side]]:
    found = []
    for number, name in enumerate(("east", "west")):
        address = f"{zookeeper}/{name}"
        broker = start_broker(broker_id=number, zookeeper=address, data_dir=tmp_path / name)
        found.append(Side(broker, address))
    yield found[0], found[1]
    for side in found:
        side.client.close()


Mirror = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def mirror(spawn: Spawn) -> Mirror:
    """Start a mirror of all topics, or of those of more options."""

    def start(source: Side, target: str, *more: str) -> subprocess.Popen[bytes]:
        where = ("--from", source.zookeeper, "--to", target)
        options = ("--yes", "-X", "zk.sessiontimeout.ms=4000", *more)
        return spawn("mirror", "run", *where, *options)

    return start


def refused(process: subprocess.Popen[bytes]) -> str:
    """Wait for a mirror's end in conflict; return what it said."""
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == ExitStatus.CONFLICT, stderr
    return stderr.decode()


def await_mirroring(process: subprocess.Popen[bytes]) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(b"mirroring from "):
            return
    pytest.fail("the mirror has ended")


@pytest.mark.parametrize("by_brokers", [False, True])
def test_mirror_when_another_one_copies_back_then_is_refused_and_nothing_multiplies(
    sides: tuple[Side, Side], mirror: Mirror, *, by_brokers: bool
) -> None:
    east, west = sides
    east.client.send_many("t", ["x"] * COUNT)
    first = mirror(east, west.by_brokers if by_brokers else west.zookeeper)
    await_mirroring(first)
    second = mirror(west, east.by_brokers if by_brokers else east.zookeeper)

    assert "each message would be copied for ever" in refused(second)
    wait_until(lambda: west.count("t") == COUNT, "all in the target")
    assert east.count("t") == COUNT
    first.terminate()
    assert first.wait(60) == 0


def test_mirrors_when_started_at_once_then_one_goes_on(
    sides: tuple[Side, Side], mirror: Mirror
) -> None:
    east, west = sides
    east.client.send_many("t", ["x"] * COUNT)
    west.client.send_many("t", ["y"] * COUNT)
    both = [mirror(east, west.zookeeper), mirror(west, east.zookeeper)]

    wait_until(lambda: any(one.poll() is not None for one in both), "the end of one")
    (lost,) = (one for one in both if one.poll() is not None)
    (kept,) = (one for one in both if one is not lost)
    assert "would be copied for ever" in refused(lost)
    wait_until(lambda: east.count("t") + west.count("t") == 3 * COUNT, "one direction mirrored")
    kept.terminate()
    assert kept.wait(60) == 0


def test_mirror_when_the_one_back_has_died_then_begins(
    sides: tuple[Side, Side], mirror: Mirror
) -> None:
    east, west = sides
    east.client.send_many("t", ["x"] * COUNT)
    died = mirror(west, east.zookeeper)
    await_mirroring(died)
    died.kill()

    after = mirror(east, west.zookeeper)
    await_mirroring(after)
    wait_until(lambda: west.count("t") == COUNT, "all in the target")
    after.terminate()
    assert after.wait(60) == 0


def test_mirrors_when_the_topics_come_later_then_one_of_them_ends(
    sides: tuple[Side, Side], mirror: Mirror
) -> None:
    east, west = sides
    both = [
        mirror(*pair, "--include", r"app\..*")
        for pair in ((east, west.zookeeper), (west, east.zookeeper))
    ]
    for one in both:
        await_mirroring(one)
    east.client.send_many("app.t", ["x"] * COUNT)

    wait_until(lambda: any(one.poll() is not None for one in both), "the end of one")
    (lost,) = (one for one in both if one.poll() is not None)
    assert "topic 'app.t'" in refused(lost)


def test_mirror_when_anybody_writes_what_is_no_mirror_then_goes_on(
    sides: tuple[Side, Side], mirror: Mirror
) -> None:
    east, west = sides
    address = east.by_brokers.removeprefix("brokers=")
    good = {"claimed": True, "brokers": [address], "selection": [[], [], []]}
    values = [
        {**good, "selection": [["("], [], []]},
        {**good, "brokers": 5},
        {**good, "brokers": [[]]},
        {**good, "selection": [[], [], [r"s/a/\x/"]]},
    ]
    nodes = [json.dumps(one).encode() for one in values]
    nodes += [b"[" * 100_000, b"\xff", b"5"]
    session = Session(west.zookeeper)
    session.start(30)
    paths_of = [f"/mirrors/g/running/{number}" for number in range(len(nodes))]
    session.create_many(dict(zip(paths_of, nodes, strict=True)), ephemeral=False)
    east.client.send_many("t", ["x"] * COUNT)

    running = mirror(east, west.zookeeper)
    await_mirroring(running)
    wait_until(lambda: west.count("t") == COUNT, "all in the target")
    forged = {**good, "brokers": [address]}
    session.create_many({"/mirrors/g/running/0a": json.dumps(forged).encode()}, ephemeral=False)
    assert "would be copied for ever" in refused(running)  # it still looks
    session.stop()


def test_mirrors_when_each_leaves_out_what_the_other_brings_then_both_run(
    sides: tuple[Side, Side], mirror: Mirror
) -> None:
    east, west = sides
    east.client.send_many("t", ["x"] * COUNT)
    west.client.send_many("t", ["y"] * COUNT)
    names = ("east", "west")
    both = [
        mirror(
            source,
            target.zookeeper,
            "--exclude",
            r"(east|west)\..*",
            "--topic-map",
            f"s/^/{name}./",
        )
        for source, target, name in zip(sides, reversed(sides), names, strict=True)
    ]

    wait_until(lambda: west.count("east.t") == COUNT == east.count("west.t"), "both directions")
    for one in both:
        one.terminate()
        assert one.wait(60) == 0
