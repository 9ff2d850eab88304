"""Start-up time of a broker with many logs, from its command until it serves."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from bench.broker_process import BrokerProcess, temporary_directory
from bench.measure import Goal, Measurement, Plan
from bench.workload import offset_of, payloads, produce_frames
from broker.log.format import segment_name
from broker.protocol import codec
from broker.protocol.client_requests import OffsetKind
from broker.topic import TopicPartition, log_directory_name

_PARTITIONS_PER_TOPIC = 100
_SEGMENT_COUNT = 10
_MESSAGES_PER_SEGMENT = 50


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure starts over a thousand partitions of ten segments."""
    partition_count = plan.size(1000, 200)
    name = f"start, {partition_count} x {_SEGMENT_COUNT} segments"
    clean: list[float] = []
    killed: list[float] = []
    with temporary_directory(plan.directory) as directory:
        _write_logs(directory / "data", partition_count)
        # these logs have no checkpoint, so that all of them are scanned and synced
        first, broker = _start(directory)
        broker.stop()
        for _ in range(plan.repetitions):
            elapsed_s, broker = _start(directory)
            clean.append(elapsed_s)
            _append_everywhere(broker, partition_count)
            broker.kill()
            elapsed_s, broker = _start(directory)
            killed.append(elapsed_s)
            broker.stop()
    goal = Goal(5, is_most=True)
    yield Measurement(f"{name}, no checkpoint", "s", [first])
    yield Measurement(f"{name}, clean", "s", clean, goal)
    yield Measurement(f"{name}, after kill", "s", killed, goal)


def _partitions(partition_count: int) -> Iterator[TopicPartition]:
    for number in range(partition_count):
        topic, index = divmod(number, _PARTITIONS_PER_TOPIC)
        yield TopicPartition(f"topic-{topic}", 0, index)


def _write_logs(data: Path, partition_count: int) -> None:
    segment = codec.encode(payloads()[:_MESSAGES_PER_SEGMENT])
    for partition in _partitions(partition_count):
        directory = data / log_directory_name(partition.topic, partition.index)
        directory.mkdir(parents=True)
        for index in range(_SEGMENT_COUNT):
            (directory / segment_name(index * len(segment))).write_bytes(segment)


def _start(directory: Path) -> tuple[float, BrokerProcess]:
    """Return the seconds until a broker serves, and the broker."""
    started_s = time.perf_counter()
    broker = BrokerProcess(directory)
    return time.perf_counter() - started_s, broker


def _append_everywhere(broker: BrokerProcess, partition_count: int) -> None:
    """Append messages to every log that the last checkpoint may not cover."""
    connection = broker.connect()
    for partition in _partitions(partition_count):
        for data in produce_frames(partition, _MESSAGES_PER_SEGMENT, _MESSAGES_PER_SEGMENT):
            connection.send(data)
    offset_of(connection, partition, OffsetKind.LOG_END)
    connection.close()
