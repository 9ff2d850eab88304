"""Consuming with 0.7's fetch requests, one at a time; every message is decoded and validated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial

from bench.broker_process import BrokerProcess, running_broker
from bench.measure import Goal, Measurement, Plan, repeat_rate
from bench.workload import fill
from broker.consumer.simple_consumer import SimpleConsumer
from broker.topic import TopicPartition

_PARTITION = TopicPartition("fetched", 0, 0)


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure requests of 200 KB and of 1 MB."""
    count = plan.size(1_000_000, 300_000)
    with running_broker(plan.directory) as broker:
        connection = broker.connect()
        end = fill(connection, _PARTITION, count)
        connection.close()
        for name, fetch_bytes in (("200 KB", 200_000), ("1 MB", 1_000_000)):
            rates = repeat_rate(plan, count, partial(_consume, broker, end, fetch_bytes))
            yield Measurement(f"fetch {name}, decoded", "messages/s", rates, Goal(400_000))


def _consume(broker: BrokerProcess, end: int, fetch_bytes: int) -> float:
    """Return the seconds to read and decode the whole log."""
    message_count = offset = 0
    started_s = time.perf_counter()
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        while offset < end:
            found = consumer.fetch(_PARTITION.topic, _PARTITION.index, offset, fetch_bytes)
            message_count += len(found)
            offset = found.next_offset
    return time.perf_counter() - started_s
