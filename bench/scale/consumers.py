"""Many consumers, each of which reads all of one topic."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from bench.broker_process import BrokerProcess, running_broker
from bench.latency import end_to_end
from bench.measure import Measurement, Plan
from bench.scale import load
from bench.scale.point import MB, Axis, seconds, watch
from bench.workload import ENTRY_BYTES, fill
from broker.consumer.fetcher import Fetcher
from broker.topic import TopicPartition

_COUNTS = (1, 5, 10, 25, 50)
_RATE = 1000
_LATENCY = TopicPartition("latency", 0, 0)


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure the throughput of 1 to 50 consumers together, and the latency of one of them."""
    axis = Axis("consumers")
    partition = TopicPartition("shared", 0, 0)
    with running_broker(plan.directory) as broker:
        connection = broker.connect()
        end = fill(connection, partition, plan.size(64 << 20, 16 << 20) // ENTRY_BYTES // 50 * 50)
        connection.close()
        load.create(broker, _LATENCY.topic, 1)
        for count in _COUNTS:
            read = partial(load.fetch_all, broker, [partition], [end])
            with watch([broker]) as watched, load.threads([read] * count):
                pass
            rate = count * end / watched.seconds / MB
            yield axis.figure("bytes", "all consumers together", count, rate, "MB/s")
            yield from axis.cores("out", count, watched)
            with _listening(broker, count - 1):
                record = end_to_end([broker], _RATE, seconds(plan), size=200)
            yield from axis.latency("", count, record)


@contextmanager
def _listening(broker: BrokerProcess, count: int) -> Iterator[None]:
    """Run consumers that read new messages with long polls during the block."""
    connection = broker.connect()
    (end,) = load.log_ends(connection, [_LATENCY])
    connection.close()
    stopped = threading.Event()

    def listen() -> None:
        fetcher = Fetcher({_LATENCY: end}, broker.connect(), max_wait_ms=100)
        while not stopped.is_set():
            fetcher.poll()
        fetcher.close()

    with load.threads([listen] * count):
        try:
            yield
        finally:
            stopped.set()
