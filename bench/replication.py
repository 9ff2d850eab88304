"""Three brokers of one cluster on this machine: publish, failover, shutdown, catch-up, idle cost.

Apache Kafka is measured in the same way where its jars are (`make bench-setup`).
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby

from bench import kafka_cluster
from bench.broker_process import temporary_directory
from bench.cluster import BenchCluster, await_condition, running_cluster
from bench.measure import ChartPosition, Goal, Measurement, Plan, repeat, repeat_rate
from bench.workload import ENTRY_BYTES, payloads
from broker.client.connection import Connection
from broker.errors import NO_ERROR, BrokerError, error_for_code
from broker.protocol import codec
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.extension_requests import (
    StatusRequest,
)
from broker.protocol.layouts import DATA
from broker.protocol.responses import decode_publish_response
from broker.security.client_security import ClientSecurity
from broker.topic import TopicPartition

_MB = 1e6
_SET_COUNT = 2500
"""Messages in a set: half a megabyte."""
_WINDOW = 4
"""Sets without a response, of each partition."""
_TIMEOUT_MS = 30_000
_PARTITIONS = 3
_MANY_PARTITIONS = 1000
_PUBLISH = "publish with acks -1 to three brokers"
_PUBLISHES = f"{_PUBLISH} over replication factor"
_LOST = "A broker of three is lost"
_CATCH_UP = "Catch-up of an empty follower"


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure a cluster of three."""
    yield from _publishes(plan)
    for count in (1, _MANY_PARTITIONS):
        times = repeat(plan, partial(_failover_s, plan, count))
        partitions = "1 partition" if count == 1 else f"{count:,} partitions"
        name = f"kill -9 of a leader to a publish, {partitions}"
        yield Measurement(name, "s", times, position=ChartPosition(_LOST, "", name))
    times = repeat(plan, partial(_shutdown_s, plan))
    name = f"shutdown of a broker that leads {_MANY_PARTITIONS:,} partitions"
    yield Measurement(name, "s", times, position=ChartPosition(_LOST, "", name))
    yield from _catch_up(plan)
    yield from _idle(plan)


def _publishes(plan: Plan) -> Iterator[Measurement]:
    message_count = plan.size(2_000_000, 200_000)
    amount = message_count * 200 / _MB
    found: dict[tuple[str, int], list[float]] = {}
    for factor in (1, 3):
        ours = repeat_rate(plan, amount, partial(publish_s, plan, factor, message_count))
        found["pylogctl", factor] = ours
        if kafka_cluster.is_there():
            run_kafka = partial(_publish_kafka_s, plan, factor, message_count)
            found["Apache Kafka", factor] = repeat_rate(plan, amount, run_kafka)
    for (name, factor), rates in found.items():
        title = f"{_PUBLISH}, factor {factor}: {name}"
        yield Measurement(title, "MB/s", rates, position=ChartPosition(_PUBLISHES, name, factor))
    for factor in (1, 3):
        if theirs := found.get(("Apache Kafka", factor)):
            ratios = [a / b for a, b in zip(found["pylogctl", factor], theirs, strict=False)]
            yield Measurement(f"{_PUBLISH}, factor {factor}: ours / Kafka's", "x", ratios, Goal(1))


def publish_s(
    plan: Plan,
    factor: int,
    message_count: int,
    security: ClientSecurity | None = None,
    /,
    **properties: str,
) -> float:
    """Return the seconds to publish messages to a new cluster until all are committed."""
    with running_cluster(plan.directory, 3, security, **properties) as cluster:
        created = cluster.create_topic("t", _PARTITIONS, factor)
        for one in created:
            _publish_until_taken(cluster, one.state.leader, [one.partition], codec.encode([b""]))
        threads = []
        failures: list[BrokerError] = []
        started_s = time.perf_counter()
        for one in created:
            arguments = (cluster, one.partition, message_count // len(created), failures)
            threads.append(threading.Thread(target=_publish_all, args=arguments))
            threads[-1].start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        return time.perf_counter() - started_s


def _publish_all(
    cluster: BenchCluster,
    partition: TopicPartition,
    message_count: int,
    failures: list[BrokerError],
) -> None:
    """Publish messages to the leader of a partition, with a few sets in flight."""
    messages = payloads()
    messages = (messages * (_SET_COUNT // len(messages) + 1))[:_SET_COUNT]
    connection = cluster.connect(cluster.states([partition])[0].leader)
    in_flight: deque[int] = deque()
    try:
        for _ in range(max(1, message_count // _SET_COUNT)):
            request = _publish(partition, codec.encode(messages))
            in_flight.append(connection.send_extension(request))
            if len(in_flight) == _WINDOW:
                _check(connection, in_flight.popleft())
        while in_flight:
            _check(connection, in_flight.popleft())
    except BrokerError as error:
        failures.append(error)
    finally:
        connection.close()


def _publish(partition: TopicPartition, message_set: bytes) -> PublishRequest:
    return PublishRequest(Acks.COMMITTED, _TIMEOUT_MS, (PartitionSet(partition, message_set),))


def _check(connection: Connection, correlation_id: int) -> None:
    for one in decode_publish_response(connection.receive_extension(correlation_id)):
        if one.error != NO_ERROR:
            raise error_for_code(one.error, one.text)


def _publish_kafka_s(plan: Plan, factor: int, message_count: int) -> float:
    with kafka_cluster.running(plan.directory, broker_count=3) as cluster:
        cluster.create_topic("t", _PARTITIONS, factor)
        return cluster.publish_s("t", message_count)


def _failover_s(plan: Plan, partition_count: int) -> float:
    """Return the seconds from the death of a leader until all partitions take publishes again."""
    with running_cluster(plan.directory) as cluster:
        created = cluster.create_topic("t", partition_count, 3)
        victim = created[0].state.leader
        partitions = [one.partition for one in created if one.state.leader == victim]
        message_set = codec.encode([b"x" * 200])
        started_s = time.perf_counter()
        cluster.kill(victim)
        await_condition(
            lambda: all(one.leader not in (victim, -1) for one in cluster.states(partitions))
        )
        leaders = [one.leader for one in cluster.states(partitions)]
        by_leader = sorted(zip(leaders, partitions, strict=True))
        for leader, group in groupby(by_leader, key=lambda one: one[0]):
            _publish_until_taken(cluster, leader, [one[1] for one in group], message_set)
        return time.perf_counter() - started_s


def _publish_until_taken(
    cluster: BenchCluster, leader: int, partitions: Sequence[TopicPartition], message_set: bytes
) -> None:
    left = list(partitions)

    def are_all_taken() -> bool:
        connection = cluster.connect(leader)
        try:
            sets = tuple(PartitionSet(one, message_set) for one in left)
            request = PublishRequest(Acks.COMMITTED, _TIMEOUT_MS, sets)
            results = decode_publish_response(connection.call(request))
        finally:
            connection.close()
        left[:] = [one.partition for one in results if one.error != NO_ERROR]
        return not left

    await_condition(are_all_taken)


def _shutdown_s(plan: Plan) -> float:
    """Return how long the shutdown of a broker takes that leads many partitions."""
    with running_cluster(plan.directory) as cluster:
        created = cluster.create_topic("t", _MANY_PARTITIONS * 3, 3)
        victim = created[0].state.leader
        count = sum(one.state.leader == victim for one in created)
        assert count == _MANY_PARTITIONS, count
        started_s = time.perf_counter()
        cluster.stop(victim)
        return time.perf_counter() - started_s


def _catch_up(plan: Plan) -> Iterator[Measurement]:
    size_bytes = plan.size(1 << 30, 64 << 20)
    totals, rates, copies = [], [], []
    for _ in range(plan.repetitions):
        total_s, copying_s = _catch_up_s(plan, size_bytes)
        totals.append(size_bytes / _MB / total_s)
        rates.append(size_bytes / _MB / copying_s)
        copies.append(size_bytes / _MB / _copy_s(plan, size_bytes))
    found = {
        "its start included": totals,
        "from its first message on": rates,
        "a file copied through loopback": copies,
    }
    for name, values in found.items():
        position = ChartPosition(_CATCH_UP, "", name)
        yield Measurement(f"{_CATCH_UP.lower()}: {name}", "MB/s", values, position=position)


def _catch_up_s(plan: Plan, size_bytes: int) -> tuple[float, float]:
    """Return the seconds from an empty follower's start, and first message, until it is in sync."""
    failures: list[BrokerError] = []
    with running_cluster(plan.directory) as cluster:
        (created,) = cluster.create_topic("t", 1, 3)
        leader = created.state.leader
        _publish_until_taken(cluster, leader, [created.partition], codec.encode([b""]))
        _publish_all(cluster, created.partition, size_bytes // ENTRY_BYTES, failures)
        if failures:
            raise failures[0]
        follower = created.replicas[-1]
        cluster.stop(follower)
        shutil.rmtree(cluster.data(follower))
        cluster.await_isr([created.partition], 2)
        started_s = time.perf_counter()
        cluster.start(follower)
        replicas = cluster.data(follower) / "replicas"
        await_condition(lambda: any(one.stat().st_size for one in replicas.rglob("*.pylog")))
        copying_s = time.perf_counter()
        cluster.await_isr([created.partition], 3)
        return time.perf_counter() - started_s, time.perf_counter() - copying_s


def _copy_s(plan: Plan, size_bytes: int) -> float:
    """Return the seconds to send a file through loopback and write it at the other side."""
    with temporary_directory(plan.directory) as directory:
        source = directory / "source"
        with source.open("wb") as file:
            for _ in range(size_bytes >> 20):
                file.write(bytes(1 << 20))
        listener = socket.create_server(("127.0.0.1", 0))

        def send() -> None:
            accepted, _ = listener.accept()
            with accepted, source.open("rb") as file:
                accepted.sendfile(file)

        thread = threading.Thread(target=send)
        thread.start()
        started_s = time.perf_counter()
        with (
            socket.create_connection(listener.getsockname()) as connection,
            (directory / "copy").open("wb") as copy,
        ):
            while data := connection.recv(1 << 20):
                copy.write(data)
            copy.flush()
            os.fsync(copy.fileno())
        elapsed_s = time.perf_counter() - started_s
        thread.join()
        listener.close()
        return elapsed_s


def _idle(plan: Plan) -> Iterator[Measurement]:
    seconds = plan.size(30, 5)
    with running_cluster(plan.directory) as cluster:
        cluster.create_topic("t", _MANY_PARTITIONS, 3)
        time.sleep(5)  # what follows the creation
        brokers = list(cluster.brokers.values())
        before_s, before = sum(one.cpu_s() for one in brokers), _fetch_count(cluster)
        time.sleep(seconds)
        used_s = sum(one.cpu_s() for one in brokers) - before_s
        fetches = _fetch_count(cluster) - before
    name = f"idle cluster of three with {_MANY_PARTITIONS} replicated partitions"
    yield Measurement(f"{name}: processor time", "% of a core", [100 * used_s / seconds])
    yield Measurement(f"{name}: fetches of followers", "requests/s", [fetches / seconds])


def _fetch_count(cluster: BenchCluster) -> int:
    """Return how many fetches of followers all brokers have answered."""
    count = 0
    for broker_id in cluster.brokers:
        connection = cluster.connect(broker_id)
        status = json.loads(DATA.decode(connection.call(StatusRequest())))
        count += status["metrics"]["SocketServerStats"]["NumFollowerFetchRequests"]
        connection.close()
    return count
