"""Messages from 10 bytes to a megabyte."""

from __future__ import annotations

from collections.abc import Iterator

from bench.broker_process import running_broker
from bench.latency import end_to_end
from bench.measure import Measurement, Plan
from bench.scale import load
from bench.scale.point import MB, Axis, seconds, watch

_SIZES = (10, 100, 1_000, 10_000, 100_000, 1_000_000)
_BATCH_BYTES = 100_000
_RATE = 100
_STAMP_BYTES = 16


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure producing and consuming in batches of 100 KB or one message, and latency at 100/s."""
    axis = Axis("bytes a message")
    for size in _SIZES:
        batch = max(1, _BATCH_BYTES // size)
        with running_broker(plan.directory) as broker:
            partitions = load.create(broker, "sized", 1)
            connection = broker.connect()
            frames = load.requests(partitions, [b"x" * size] * batch)
            with watch([broker]) as watched:
                sent = load.send_for([connection], frames, seconds(plan)) * batch
                load.log_ends(connection, partitions)
            yield axis.figure("bytes", "in", size, sent * size / watched.seconds / MB, "MB/s")
            yield from axis.throughput("in", size, watched, message_count=sent)
            ends = load.wait_until_readable(connection, partitions)
            connection.close()
            with watch([broker]) as watched:
                load.fetch_all(broker, partitions, ends)
            yield axis.figure("bytes", "out", size, sent * size / watched.seconds / MB, "MB/s")
            yield from axis.throughput("out", size, watched, message_count=sent)
            if size >= _STAMP_BYTES:
                record = end_to_end([broker], _RATE, seconds(plan), size=size)
                yield from axis.latency("", size, record)
