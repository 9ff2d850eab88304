"""`pylogctl consume --group` three times at once, again after its end, and with a broker away."""

from __future__ import annotations

import signal
import subprocess
import threading
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pylogctl
from pylogctl.testing import Cluster, ephemeral_cluster
from tests.support.command_line import Spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

PARTITIONS = ("0-0", "0-1", "1-0", "1-1", "2-0", "2-1")
START = "--from-beginning"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with ephemeral_cluster(3) as running:
        yield running


@pytest.fixture
def client(cluster: Cluster) -> Iterator[pylogctl.Client]:
    with cluster.connect() as client:
        yield client


def fill(client: pylogctl.Client, topic: str, first: int, count: int) -> list[bytes]:
    """Send messages to each partition of a topic; return their payloads."""
    with client.producer() as producer:
        for name in PARTITIONS:
            for number in range(first, first + count):
                producer.send(topic, f"{name} {number}", partition=name)
    return [b"%s %d" % (p.encode(), n) for p in PARTITIONS for n in range(first, first + count)]


@pytest.fixture
def topic(client: pylogctl.Client) -> str:
    name = f"t{uuid.uuid4().hex[:8]}"
    client.create_topic(name, partitions=6, replicas=3)
    return name


class Members:
    """Processes of one group; each writes to a file of its own."""

    def __init__(self, spawn: Spawn, directory: Path, *command: str) -> None:
        self._spawn = spawn
        self._directory = directory
        self._command = command
        self._processes: list[subprocess.Popen[bytes]] = []
        self._files: list[Path] = []

    def start(self, count: int = 3) -> None:
        for _ in range(count):
            path = self._directory / f"member-{len(self._files)}"
            self._files.append(path)
            with path.open("wb") as file:
                self._processes.append(self._spawn(*self._command, stdout=file))

    def lines(self) -> list[bytes]:
        return [line for path in self._files for line in path.read_bytes().splitlines()]

    def await_count(self, count: int) -> None:
        wait_until(lambda: len(self.lines()) >= count, f"{count} messages")

    def interrupt(self) -> None:
        for process in self._processes:
            process.send_signal(signal.SIGINT)

    def await_end(self) -> list[str]:
        """Return the standard error of each member."""
        return [process.communicate(timeout=120)[1].decode() for process in self._processes]


@pytest.fixture
def join(spawn: Spawn, tmp_path: Path, cluster: Cluster, topic: str) -> Callable[..., Members]:
    def run(*options: str) -> Members:
        directory = tmp_path / uuid.uuid4().hex
        directory.mkdir()
        command = ("consume", "-Z", cluster.zookeeper, "-g", f"of-{topic}", topic, *options)
        return Members(spawn, directory, *command)

    return run


def test_consume_when_three_join_a_new_group_at_once_then_each_message_comes_once(
    client: pylogctl.Client, topic: str, join: Callable[..., Members]
) -> None:
    sent = fill(client, topic, 0, 500)

    members = join(START)
    members.start()
    members.await_count(len(sent))
    members.interrupt()
    members.await_end()

    assert Counter(members.lines()) == Counter(sent)


@pytest.mark.parametrize("commit", ["after", "exit"])
def test_consume_when_three_read_to_the_end_then_each_message_comes_once_and_none_again(
    client: pylogctl.Client, topic: str, join: Callable[..., Members], commit: str
) -> None:
    sent = fill(client, topic, 0, 500)

    members = join(START, "-e", "--commit", commit)
    members.start()
    notes = members.await_end()
    again = join(START, "-e", "--commit", commit)
    again.start()
    notes_again = again.await_end()

    assert Counter(members.lines()) == Counter(sent), notes
    assert again.lines() == []
    for text in notes_again:
        assert f"group 'of-{topic}' continues at its stored offsets in 6 of 6 partitions" in text


def test_consume_when_members_join_while_others_read_then_each_message_comes_once(
    client: pylogctl.Client, topic: str, join: Callable[..., Members]
) -> None:
    sent = fill(client, topic, 0, 100)
    members, is_over = join(START), threading.Event()

    def send() -> None:
        while not is_over.is_set():
            sent.extend(fill(client, topic, len(sent), 50))

    members.start(1)
    members.await_count(len(sent))
    sender = threading.Thread(target=send)
    sender.start()
    try:
        for _ in range(2):
            members.start(1)
            seen = len(members.lines())
            members.await_count(seen + 20_000)
    finally:
        is_over.set()
        sender.join()
    members.await_count(len(sent))
    members.interrupt()
    members.await_end()

    assert Counter(members.lines()) == Counter(sent)


def test_consume_when_one_of_three_brokers_is_dead_then_each_message_comes_once(
    cluster: Cluster, client: pylogctl.Client, topic: str, join: Callable[..., Members]
) -> None:
    sent = fill(client, topic, 0, 500)
    cluster.broker(2).kill()
    try:
        members = join(START, "-e")
        members.start()
        notes = members.await_end()
    finally:
        cluster.broker(2).restart()

    assert Counter(members.lines()) == Counter(sent), notes
