"""Producing with 0.7's produce requests, which have no response.

The clock runs from the first byte sent until the broker reports that it has every message.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from bench.broker_process import BrokerProcess, running_broker
from bench.measure import ChartPosition, Goal, Measurement, Plan, repeat
from bench.workload import (
    ENTRY_BYTES,
    GATHER_BYTES,
    PAYLOAD_BYTES,
    gather,
    offset_of,
    produce_frames,
    wait_until_visible,
)
from broker.protocol.client_requests import OffsetKind
from broker.topic import TopicPartition

_PARTITION = TopicPartition("produced", 0, 0)


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure batches of 50 and of 1, with many requests per write, and with one."""
    count_50, count_1 = plan.size(2_000_000, 400_000), plan.size(500_000, 100_000)
    yield from _measure(plan, "batch 50", count_50, 50, GATHER_BYTES, Goal(400_000))
    yield from _measure(plan, "batch 1", count_1, 1, GATHER_BYTES, Goal(250_000))
    yield from _measure(plan, "batch 1, a write each", count_1, 1, 1, Goal(50_000))


def _measure(
    plan: Plan, what: str, count: int, batch: int, gather_bytes: int, goal: Goal
) -> Iterator[Measurement]:
    visible: list[float] = []
    broker_us: list[float] = []
    overhead: list[float] = []

    def produce() -> float:
        with running_broker(plan.directory) as broker:
            before_s = broker.cpu_s()
            written_s, visible_s = _produce(broker, count, batch, gather_bytes)
            visible.append(count / visible_s)
            broker_us.append((broker.cpu_s() - before_s) / count * 1e6)
            overhead.append(_stored_bytes(broker) / count - PAYLOAD_BYTES)
            return count / written_s

    written = repeat(plan, produce)
    position = ChartPosition("produce requests of 0.7", "", what)
    yield Measurement(f"produce {what}, written", "messages/s", written, goal, position)
    yield Measurement(f"produce {what}, readable", "messages/s", visible)
    yield Measurement(f"produce {what}, broker time", "us/message", broker_us)
    if batch > 1:
        most = Goal(10, is_most=True)
        yield Measurement("overhead on disk", "bytes/message", overhead, most)


def _produce(
    broker: BrokerProcess, count: int, batch: int, gather_bytes: int
) -> tuple[float, float]:
    """Return the seconds until all messages are written, and until all are readable."""
    connection = broker.connect()
    offset_of(connection, _PARTITION, OffsetKind.LOG_END)
    started_s = time.perf_counter()
    for data in gather(produce_frames(_PARTITION, count, batch), gather_bytes):
        connection.send(data)
    end = offset_of(connection, _PARTITION, OffsetKind.LOG_END)
    written_s = time.perf_counter() - started_s
    if end != count * ENTRY_BYTES:
        raise RuntimeError(f"the broker has {end} bytes of {count * ENTRY_BYTES}")
    wait_until_visible(connection, _PARTITION, end)
    visible_s = time.perf_counter() - started_s
    connection.close()
    return written_s, visible_s


def _stored_bytes(broker: BrokerProcess) -> int:
    return sum(path.stat().st_size for path in broker.data.glob("*/*.pylog"))
