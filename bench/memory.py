"""The broker's memory while a log much larger than it is written and read."""

from __future__ import annotations

from collections.abc import Iterator

from bench.broker_process import BrokerProcess, running_broker
from bench.measure import Goal, Measurement, Plan
from bench.workload import (
    ENTRY_BYTES,
    GATHER_BYTES,
    gather,
    offset_of,
    produce_frames,
    wait_until_visible,
)
from broker.client.connection import Connection
from broker.consumer.fetcher import Fetcher
from broker.protocol.client_requests import OffsetKind
from broker.topic import TopicPartition

_PARTITION = TopicPartition("large", 0, 0)
_STEPS = 8
_STEP_BATCH = 200


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure the memory after each eighth of 4 GiB is written, and then read."""
    total = plan.size(4 << 30, 512 << 20)
    step_count = total // _STEPS // ENTRY_BYTES // _STEP_BATCH * _STEP_BATCH
    with running_broker(plan.directory) as broker:
        started = broker.memory_mb("VmRSS")
        written = _write(broker, step_count)
        read = _read(broker, _STEPS * step_count * ENTRY_BYTES)
        most = broker.memory_mb("VmHWM")
    size = f"{total / (1 << 30):g} GiB"
    limit = Goal(150, is_most=True)
    yield Measurement("broker memory, idle", "MB", [started], limit)
    yield Measurement(f"broker memory, eighths of {size} written", "MB", written, limit)
    yield Measurement(f"broker memory, eighths of {size} read", "MB", read, limit)
    yield Measurement("broker memory, at most", "MB", [most], limit)


def _write(broker: BrokerProcess, step_count: int) -> list[float]:
    connection = broker.connect()
    memory_mb = []
    for step in range(1, _STEPS + 1):
        for data in gather(produce_frames(_PARTITION, step_count, _STEP_BATCH), GATHER_BYTES):
            connection.send(data)
        offset_of(connection, _PARTITION, OffsetKind.LOG_END)
        wait_until_visible(connection, _PARTITION, step * step_count * ENTRY_BYTES)
        memory_mb.append(broker.memory_mb("VmRSS"))
    connection.close()
    return memory_mb


def _read(broker: BrokerProcess, end: int) -> list[float]:
    fetcher = Fetcher({_PARTITION: 0}, Connection(broker.address))
    memory_mb: list[float] = []
    offset = 0
    while offset < end:
        offset += sum(len(piece.data) for piece in fetcher.poll())
        if offset >= end * (len(memory_mb) + 1) // _STEPS:
            memory_mb.append(broker.memory_mb("VmRSS"))
    fetcher.close()
    return memory_mb
