"""From `kill -9` of a leader to what its clients notice: the library, a pipe, and a group.

Apache Kafka, where its jars are (`make bench-setup`), has its default session timeouts; its row is
the longest that a record of its own producer waited for its acknowledgement (acks=all).
"""

from __future__ import annotations

import subprocess
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial

import pylogctl
from bench import kafka_cluster
from bench.broker_process import PYLOGCTL
from bench.cluster import BenchCluster, await_condition, running_cluster
from bench.measure import ChartPosition, Measurement, Plan, repeat
from broker.topic import TopicPartition

_COUNTS = (1, 1000)
_PAUSE_S = 0.01  # between two messages
_FIRST_MESSAGES = 50  # before the leader is killed
_ENDS = {
    "election": "a leader in ZooKeeper",
    "library": "an acknowledged `send`",
    "pipe": "a line that `pylogctl produce` acknowledges",
    "group": "a message in `pylogctl consume` of a group",
}


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure with 1 and with 1,000 partitions; the clients are there at the same time."""
    for count in _COUNTS:
        found: dict[str, list[float]] = defaultdict(list)

        def failover_s(count: int = count, found: dict[str, list[float]] = found) -> float:
            seconds = _failover_s(plan, count)
            for name, value in seconds.items():
                found[name].append(value)
            return max(seconds.values())

        repeat(plan, failover_s)
        for name, values in found.items():
            yield _measured(_ENDS[name], count, values)
    if kafka_cluster.is_there():
        times = repeat(plan, partial(_kafka_failover_s, plan))
        yield _measured("an acknowledgement of Apache Kafka", 1, times)


def _measured(end: str, count: int, values: list[float]) -> Measurement:
    partitions = "1 partition" if count == 1 else f"{count:,} partitions"
    position = ChartPosition("From kill -9 of a leader", partitions, end)
    title = f"kill -9 of a leader to {end}, {partitions}"
    return Measurement(title, "s", values, position=position)


def _kafka_failover_s(plan: Plan) -> float:
    with kafka_cluster.running(plan.directory, broker_count=3) as cluster:
        cluster.create_topic("t", 1, 3)
        return cluster.failover_s("t")


class _Numbers:
    """Numbers of messages that a client has handled, and when; `sent` is the last one sent."""

    def __init__(self) -> None:
        self.sent = 0
        self.seen: dict[int, float] = {}

    def note(self, number: int) -> None:
        """Note that a message was handled."""
        self.seen.setdefault(number, time.perf_counter())

    def await_later(self, number: int) -> float:
        """Return when the first message after a number was handled, once one was."""
        later: list[float] = []

        def is_there() -> bool:
            later.extend(at for one, at in list(self.seen.items()) if one > number)
            return bool(later)

        await_condition(is_there)
        return min(later)


def _failover_s(plan: Plan, partition_count: int) -> dict[str, float]:
    with running_cluster(plan.directory) as cluster, ExitStack() as stack:
        created = cluster.create_topic("t", partition_count, 3)[0]
        victim, partition = created.state.leader, created.partition
        is_over = threading.Event()
        library = _library(stack, is_over, cluster, partition)
        pipe = _pipe(stack, is_over, cluster, partition)
        group = _group(stack, cluster)
        stack.callback(is_over.set)
        all_numbers = (library, pipe, group)
        await_condition(lambda: all(len(one.seen) > _FIRST_MESSAGES for one in all_numbers))
        cluster.kill(victim)
        killed_s = time.perf_counter()
        of_library, of_pipe = library.sent, pipe.sent
        await_condition(lambda: cluster.states([partition])[0].leader not in (victim, -1))
        ends = {
            "election": time.perf_counter(),
            "library": library.await_later(of_library),
            "pipe": pipe.await_later(of_pipe),
            "group": group.await_later(of_library),
        }
        return {name: end_s - killed_s for name, end_s in ends.items()}


def _library(
    stack: ExitStack, is_over: threading.Event, cluster: BenchCluster, partition: TopicPartition
) -> _Numbers:
    numbers = _Numbers()
    client = pylogctl.connect(zookeeper=cluster.session.connect)

    def close() -> None:
        with suppress(pylogctl.Error):  # what is on its way has no use any more
            client.close(0)

    stack.callback(close)
    producer = client.producer(linger=0)

    def send(number: int) -> None:
        delivery = producer.send("t", b"%d" % number, partition=partition.name)
        delivery.add_done_callback(lambda _: numbers.note(number))

    _feed(is_over, numbers, send)
    return numbers


def _pipe(
    stack: ExitStack, is_over: threading.Event, cluster: BenchCluster, partition: TopicPartition
) -> _Numbers:
    numbers = _Numbers()
    where = ("-Z", cluster.session.connect, "-p", partition.name)
    # the receipt has a line for each acknowledged message
    process = _spawn(stack, "produce", "t", *where, "--receipt", "/dev/stdout")
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def send(number: int) -> None:
        stdin.write(b"x%d\n" % number)
        stdin.flush()

    def listen() -> None:
        for number, _ in enumerate(stdout, 1):
            numbers.note(number)

    _feed(is_over, numbers, send)
    _in_thread(listen)
    return numbers


def _group(stack: ExitStack, cluster: BenchCluster) -> _Numbers:
    numbers = _Numbers()
    process = _spawn(stack, "consume", "t", "-Z", cluster.session.connect, "--group", "g")
    stdout = process.stdout
    assert stdout is not None

    def listen() -> None:
        for line in stdout:
            if not line.startswith(b"x"):  # those of the library
                numbers.note(int(line))

    _in_thread(listen)
    return numbers


def _feed(is_over: threading.Event, numbers: _Numbers, send: Callable[[int], object]) -> None:
    def feed() -> None:
        while not is_over.wait(_PAUSE_S):
            numbers.sent += 1
            send(numbers.sent)

    _in_thread(feed)


def _in_thread(target: Callable[[], object]) -> None:
    """Run a function in a thread until it fails, as its client has ended."""

    def run() -> None:
        with suppress(OSError, ValueError, pylogctl.Error):
            target()

    threading.Thread(target=run, daemon=True).start()


def _spawn(stack: ExitStack, *words: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [str(PYLOGCTL), *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    stack.callback(process.wait)
    stack.callback(process.kill)
    return process
