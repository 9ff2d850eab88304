"""Many partitions of one topic, and many topics of one partition."""

from __future__ import annotations

from collections.abc import Iterator

from bench.broker_process import BrokerProcess, running_broker
from bench.latency import end_to_end
from bench.measure import Measurement, Plan
from bench.scale import load
from bench.scale.point import Axis, seconds, watch
from bench.workload import ENTRY_BYTES
from broker.topic import TopicPartition

_COUNTS = (1, 10, 100, 1000)
_RATE = 1000


def run_partitions(plan: Plan) -> Iterator[Measurement]:
    """Measure producing, consuming and latency with 1 to 1,000 partitions of a topic."""
    axis = Axis("partitions")
    for count in _COUNTS:
        with running_broker(plan.directory) as broker:
            yield from _in_and_out(plan, axis, broker, load.create(broker, "wide", count), count)
            _make_logs(broker, load.create(broker, "latency", count))
            record = end_to_end([broker], _RATE, seconds(plan), size=200)
            yield from axis.latency("", count, record)


def run_topics(plan: Plan) -> Iterator[Measurement]:
    """Measure producing and consuming with 1 to 1,000 topics."""
    axis = Axis("topics")
    for count in _COUNTS:
        with running_broker(plan.directory) as broker:
            partitions = [load.create(broker, f"topic-{n}", 1)[0] for n in range(count)]
            yield from _in_and_out(plan, axis, broker, partitions, count)


def _in_and_out(
    plan: Plan, axis: Axis, broker: BrokerProcess, partitions: list[TopicPartition], count: int
) -> Iterator[Measurement]:
    _make_logs(broker, partitions)
    connection = broker.connect()
    frames = load.requests(partitions)
    with watch([broker]) as watched:
        sent = load.send_for([connection], frames, seconds(plan))
        load.log_ends(connection, partitions[-1:])
    yield from axis.throughput("in", count, watched, message_count=sent * load.BATCH)
    ends = load.wait_until_readable(connection, partitions)
    connection.close()
    with watch([broker]) as watched:
        received = load.fetch_all(broker, partitions, ends)
    yield from axis.throughput("out", count, watched, message_count=received / ENTRY_BYTES)
    yield axis.figure("broker memory", "", count, broker.memory_mb("VmHWM"), "MB")


def _make_logs(broker: BrokerProcess, partitions: list[TopicPartition]) -> None:
    """Send to each partition: a log is created by its first message."""
    connection = broker.connect()
    for frame in load.requests(partitions):
        connection.send(frame)
    load.wait_until_readable(connection, partitions)
    connection.close()
