"""Several brokers on this machine, which share its cores and its disk."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from bench.broker_process import running_broker
from bench.latency import end_to_end
from bench.measure import Measurement, Plan
from bench.scale import load
from bench.scale.point import Axis, seconds, watch
from bench.workload import ENTRY_BYTES

_COUNTS = (1, 2, 3, 4)
_RATE = 1000


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure producing, consuming and latency with a partition on each of 1 to 4 brokers."""
    axis = Axis("brokers")
    for count in _COUNTS:
        with ExitStack() as stack:
            brokers = [
                stack.enter_context(running_broker(plan.directory, brokerid=str(number)))
                for number in range(count)
            ]
            partitions = [load.create(one, "spread", 1) for one in brokers]
            connections = [one.connect() for one in brokers]
            with watch(brokers) as watched:
                frames = load.requests(partitions[0])
                sent = load.send_for(connections, frames, seconds(plan))
                for connection, there in zip(connections, partitions, strict=True):
                    load.log_ends(connection, there)
            yield from axis.throughput("in", count, watched, message_count=sent * load.BATCH)
            reads = []
            total = 0
            for broker, connection, there in zip(brokers, connections, partitions, strict=True):
                ends = load.wait_until_readable(connection, there)
                connection.close()
                total += sum(ends)
                reads.append(partial(load.fetch_all, broker, there, ends))
            with watch(brokers) as watched, load.threads(reads):
                pass
            yield from axis.throughput("out", count, watched, message_count=total / ENTRY_BYTES)
            for broker in brokers:
                load.create(broker, "latency", 1)
            record = end_to_end(brokers, _RATE, seconds(plan), size=200)
            yield from axis.latency("", count, record)
