"""`pylogctl produce` while its brokers are stopped, or crash, and are started again."""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from broker import Broker, SimpleConsumer
from pylogctl.cli.environment import ExitStatus
from tests.integration.broker.factories import BrokerFactory
from tests.support.command_line import Invoke, Spawn
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

COUNT = 3000
LINES = b"".join(b"%d\n" % number for number in range(COUNT))
PACED = ("--rate", "3000/s", "--batch-messages", "10")
Run = Callable[..., subprocess.Popen[bytes]]


class Brokers:
    """Brokers that each have a partition of topic `t`, and keep their data when started again."""

    def __init__(self, start_broker: BrokerFactory, invoke: Invoke, directory: Path) -> None:
        self._start_broker = start_broker
        self._directory = directory
        self.running: dict[int, Broker] = {}
        for broker_id in (0, 1):
            self.start(broker_id)
        for broker_id in self.running:
            options = ("--partitions", "1", "-b", self.addresses(broker_id))
            created = invoke("topic", "create", "t", *options)
            assert created.status == 0, created.stderr

    def start(self, broker_id: int, port: int | None = None) -> None:
        self.running[broker_id] = self._start_broker(
            broker_id=broker_id,
            port=port or port_of_its_own(),
            data_dir=self._directory / f"{broker_id}",
        )

    def restart(self, broker_id: int) -> None:
        broker = self.running[broker_id]
        broker.stop()
        self.start(broker_id, broker.port)

    def addresses(self, *broker_ids: int) -> str:
        """Return the value of `--broker` that names these, or all."""
        chosen = [self.running[one] for one in broker_ids or self.running]
        return ",".join(f"127.0.0.1:{broker.port}" for broker in chosen)

    def stored(self, broker_id: int) -> list[int]:
        """Return the numbers that a broker has, in the order of its log."""
        with SimpleConsumer("127.0.0.1", self.running[broker_id].port) as consumer:
            return [int(payload) for _, _, payload in consumer.fetch("t", 0, 0, 1 << 26)]


@pytest.fixture
def brokers(start_broker: BrokerFactory, invoke: Invoke, tmp_path: Path) -> Brokers:
    """Brokers 0 and 1."""
    return Brokers(start_broker, invoke, tmp_path)


@pytest.fixture
def produce(brokers: Brokers, spawn: Spawn) -> Iterator[Run]:
    """Start `produce t`."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*args: str, to: tuple[int, ...] = ()) -> subprocess.Popen[bytes]:
        command = ("produce", "t", "-b", brokers.addresses(*to), *args)
        started.append(spawn(*command, stdin=subprocess.PIPE))
        return started[-1]

    yield run
    for process in started:
        with process:
            process.kill()


def feed(process: subprocess.Popen[bytes], data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)
    process.stdin.flush()


def finish(process: subprocess.Popen[bytes]) -> tuple[int, str]:
    _, stderr = process.communicate(timeout=60)
    return process.returncode, stderr.decode()


def test_produce_when_a_broker_is_stopped_then_the_others_get_the_rest_and_all_is_stored_once(
    brokers: Brokers, produce: Run
) -> None:
    process = produce("--partitioner", "round-robin", *PACED)
    half = LINES.index(b"%d\n" % (COUNT // 2))
    feed(process, LINES[:half])
    wait_until(lambda: brokers.stored(1), "the first messages")
    brokers.running[1].stop()
    feed(process, LINES[half:])  # however late the stop was, there is something left to send
    status, errors = finish(process)
    assert status == 0, errors
    assert "broker 1 at" in errors
    assert "was stopped; going on with" in errors
    brokers.start(1)
    assert sorted(brokers.stored(0) + brokers.stored(1)) == list(range(COUNT))


def test_produce_when_its_broker_is_restarted_then_waits_and_all_is_stored_once_in_order(
    brokers: Brokers, produce: Run
) -> None:
    process = produce("-p", "1-0", *PACED, to=(1,))
    feed(process, LINES)
    wait_until(lambda: brokers.stored(1), "the first messages")
    brokers.restart(1)
    status, errors = finish(process)
    assert status == 0, errors
    assert brokers.stored(1) == list(range(COUNT))
    assert brokers.stored(0) == []


def test_produce_when_restarted_at_full_speed_then_all_is_stored_once(
    brokers: Brokers, produce: Run
) -> None:
    process = produce("-p", "1-0", "--batch-messages", "10", to=(1,))
    numbers = itertools.count()
    is_over = threading.Event()

    def feed_on() -> None:
        while not is_over.is_set():
            feed(process, b"".join(b"%d\n" % next(numbers) for _ in range(1000)))

    feeding = threading.Thread(target=feed_on)
    feeding.start()
    wait_until(lambda: brokers.stored(1), "the first messages")
    brokers.restart(1)
    count = len(brokers.stored(1))
    wait_until(lambda: len(brokers.stored(1)) > count, "messages after the restart")
    is_over.set()
    feeding.join()
    status, errors = finish(process)
    assert status == 0, errors
    assert brokers.stored(1) == list(range(next(numbers)))


def test_produce_when_the_broker_of_a_slow_feed_is_stopped_then_the_next_line_goes_elsewhere(
    brokers: Brokers, produce: Run
) -> None:
    process = produce()
    feed(process, b"1\n")
    wait_until(lambda: brokers.stored(0) + brokers.stored(1), "the first line")
    (home,) = [broker_id for broker_id in (0, 1) if brokers.stored(broker_id)]
    brokers.running[home].stop()
    feed(process, b"2\n")
    wait_until(lambda: brokers.stored(1 - home) == [2], "the second line")
    assert finish(process)[0] == 0
    brokers.start(home)
    assert brokers.stored(home) == [1]


def test_produce_when_its_broker_is_stopped_before_the_end_then_what_it_confirmed_counts_as_safe(
    brokers: Brokers, produce: Run
) -> None:
    process = produce("-p", "1-0")
    feed(process, b"1\n")
    wait_until(lambda: brokers.stored(1), "the line")
    brokers.running[1].stop()
    status, errors = finish(process)
    assert status == 0, errors


def test_produce_when_told_to_fail_at_a_loss_then_says_what_is_confirmed(
    brokers: Brokers, produce: Run
) -> None:
    process = produce("--on-broker-loss", "fail", "-p", "1-0")
    feed(process, b"1\n")
    wait_until(lambda: brokers.stored(1), "the line")
    brokers.running[1].stop()
    feed(process, b"2\n")
    status, errors = finish(process)
    assert status == ExitStatus.UNREACHABLE
    assert "was stopped; 1 message confirmed, 1 sent and not confirmed, from message 2" in errors


def test_produce_when_its_broker_stays_away_then_fails_after_the_limit(
    brokers: Brokers, produce: Run
) -> None:
    process = produce("--on-broker-loss", "wait:300ms", "-p", "1-0")
    feed(process, b"1\n")
    wait_until(lambda: brokers.stored(1), "the line")
    brokers.running[1].stop()
    feed(process, b"2\n")
    status, errors = finish(process)
    assert status == ExitStatus.UNREACHABLE
    assert "1 sent and not confirmed" in errors


def test_produce_when_a_paced_run_has_acknowledgements_then_they_are_taken_as_they_come(
    brokers: Brokers, produce: Run, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt"
    process = produce("--rate", "1/s", "--receipt", str(receipt), "-p", "1-0")
    feed(process, b"1\n" * 100)
    wait_until(lambda: receipt.exists() and b'"seq":1,' in receipt.read_bytes(), "the receipt")
    assert len(brokers.stored(1)) < 100  # the run goes on
    process.kill()


class Crashing:
    """Brokers as processes of a cluster, each with a partition of topic `t`."""

    def __init__(self, spawn: Spawn, zookeeper: str, directory: Path) -> None:
        self._spawn = spawn
        self.zookeeper = zookeeper
        self._directory = directory
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.ports = {0: port_of_its_own(), 1: port_of_its_own()}
        for broker_id in self.ports:
            self.start(broker_id)

    def start(self, broker_id: int) -> None:
        """Start a broker, at the port that it had before."""
        words = ("--id", f"{broker_id}", "--port", f"{self.ports[broker_id]}")
        where = ("--data", f"{self._directory / f'{broker_id}'}", "--zookeeper", self.zookeeper)
        output = self._directory / f"{broker_id}.log"
        with output.open("ab") as log:
            process = self._spawn("broker", "start", *words, *where, stderr=log)
        self._processes[broker_id] = process
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert line, output.read_text()
        ready = dict(word.split("=") for word in line.split()[1:])
        self.ports[broker_id] = int(ready["port"])

    def crash(self, broker_id: int) -> None:
        """End a broker as kill -9 does."""
        process = self._processes.pop(broker_id)
        process.kill()
        process.communicate()

    def crash_all(self) -> None:
        for broker_id in list(self._processes):
            self.crash(broker_id)

    def stored(self, broker_id: int) -> list[int]:
        """Return the numbers that a broker has, in the order of its log."""
        with SimpleConsumer("127.0.0.1", self.ports[broker_id]) as consumer:
            return [int(payload) for _, _, payload in consumer.fetch("t", 0, 0, 1 << 26)]

    def homes(self, topic: str) -> set[int]:
        """Return which of the brokers that run have messages of a topic."""
        return {
            broker_id
            for broker_id in self._processes
            if (self._directory / f"{broker_id}" / f"{topic}_0").is_dir()
        }

    def where(self, how: str) -> tuple[str, ...]:
        """Return the option that names the cluster: by ZooKeeper, or by its brokers."""
        listed = ",".join(f"127.0.0.1:{port}" for port in self.ports.values())
        return ("-Z", self.zookeeper) if how == "-Z" else ("-b", listed)


class Feed:
    """A `produce` that is fed a number every few milliseconds."""

    def __init__(self, spawn: Spawn, *args: str, topic: str = "t") -> None:
        self._said: list[bytes] = []
        self.process = spawn("produce", topic, *args, stdin=subprocess.PIPE)
        self.fed = 0
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=one) for one in (self._feed, self._listen)]
        for thread in self._threads:
            thread.start()

    def _feed(self) -> None:
        assert self.process.stdin is not None
        with suppress(BrokenPipeError), self.process.stdin as stdin:
            while not self._is_over.wait(0.005):
                stdin.write(b"%d\n" % self.fed)
                stdin.flush()
                self.fed += 1

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self._said.extend(iter(self.process.stderr.readline, b""))

    @property
    def said(self) -> str:
        return b"".join(self._said).decode()

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def finish(self) -> int:
        """End the input; return the exit status."""
        self._is_over.set()
        status = self.process.wait(60)
        for thread in self._threads:
            thread.join()
        return status

    def end(self) -> None:
        self._is_over.set()
        self.process.kill()
        for thread in self._threads:
            thread.join()
        with self.process:
            pass


@pytest.fixture
def cluster(spawn: Spawn, zookeeper: str, invoke: Invoke, tmp_path: Path) -> Iterator[Crashing]:
    """Brokers 0 and 1 as processes, which can crash."""
    crashing = Crashing(spawn, zookeeper, tmp_path)
    try:
        created = invoke("topic", "create", "t", "--partitions", "2", "-Z", zookeeper)
        assert created.status == 0, created.stderr
        yield crashing
    finally:
        crashing.crash_all()


@pytest.fixture
def feed_crashing(cluster: Crashing, spawn: Spawn) -> Iterator[Callable[..., Feed]]:
    """Start a feed whose cluster is named by `-Z` or `-b`."""
    feeds: list[Feed] = []

    def start(how: str, *args: str) -> Feed:
        feeds.append(Feed(spawn, *cluster.where(how), *args))
        wait_until(lambda: cluster.stored(0) + cluster.stored(1), "the first messages")
        return feeds[-1]

    yield start
    for one in feeds:
        one.end()


@pytest.mark.parametrize("how", ["-Z", "-b"])
def test_produce_when_its_broker_crashes_and_told_to_fail_then_fails_at_once(
    cluster: Crashing, feed_crashing: Callable[..., Feed], how: str
) -> None:
    fed = feed_crashing(how, "--on-broker-loss", "fail", "-p", "0-0")
    cluster.crash(0)
    wait_until(fed.has_ended, "the end of the command")
    assert fed.finish() == ExitStatus.UNREACHABLE
    assert "sent and not confirmed" in fed.said
    assert "waiting up to" not in fed.said


@pytest.mark.parametrize("how", ["-Z", "-b"])
def test_produce_when_its_broker_crashes_then_waits_as_long_as_told(
    cluster: Crashing, feed_crashing: Callable[..., Feed], how: str
) -> None:
    fed = feed_crashing(how, "--on-broker-loss", "wait:5s", "-p", "0-0")
    cluster.crash(0)
    wait_until(fed.has_ended, "the end of the command")
    assert fed.finish() == ExitStatus.UNREACHABLE
    assert fed.said.count("waiting up to 5.000s for the leader of t[0-0]") == 1


@pytest.mark.parametrize("how", ["-Z", "-b"])
def test_produce_when_its_broker_crashes_then_says_that_it_waits_and_goes_on_when_it_is_back(
    cluster: Crashing, feed_crashing: Callable[..., Feed], how: str
) -> None:
    fed = feed_crashing(how, "-p", "0-0")
    cluster.crash(0)
    wait_until(lambda: "waiting up to 2m00s for the leader of t[0-0]" in fed.said, "the warning")
    cluster.start(0)
    had = len(cluster.stored(0))
    wait_until(lambda: len(cluster.stored(0)) > had, "messages after the crash")
    assert fed.finish() == 0, fed.said
    assert sorted(set(cluster.stored(0))) == list(range(fed.fed))
    assert cluster.stored(1) == []


@pytest.mark.parametrize("how", ["-Z", "-b"])
def test_produce_when_a_broker_crashes_then_moves_soon_and_says_how_many_can_be_twice(
    cluster: Crashing, feed_crashing: Callable[..., Feed], how: str
) -> None:
    fed = feed_crashing(how)
    (home,) = [broker_id for broker_id in (0, 1) if cluster.stored(broker_id)]
    cluster.crash(home)
    wait_until(lambda: cluster.stored(1 - home), "messages elsewhere")
    cluster.start(home)
    assert fed.finish() == 0, fed.said
    assert f"going on with t[{1 - home}-0]; " in fed.said
    assert "can be stored twice" in fed.said
    assert "waiting up to" not in fed.said
    stored = cluster.stored(0) + cluster.stored(1)
    assert sorted(set(stored)) == list(range(fed.fed))


def test_produce_when_the_broker_of_a_new_topic_crashes_then_it_is_made_on_another(
    cluster: Crashing, spawn: Spawn
) -> None:
    fed = Feed(spawn, *cluster.where("-Z"), topic="new")
    try:
        wait_until(lambda: cluster.homes("new"), "the first messages")
        (home,) = cluster.homes("new")
        cluster.crash(home)
        wait_until(lambda: cluster.homes("new") == {1 - home}, "messages elsewhere")
    finally:
        fed.end()
