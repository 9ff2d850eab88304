"""What is measured of us in the way that peers are measured: the same modes, the same clock.

One producer sends N messages of 200 bytes, one or several a send unit; the clock stops when the
broker itself says that it has them all. Then one consumer reads them 200 KB at a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from broker.client.cluster import StaticCluster
from broker.client.connection import Connection
from broker.client.fetcher import Fetcher
from broker.client.partitioner import sticky_partitioner
from broker.client.pieces import MessageStream
from broker.client.producer import Producer
from broker.protocol import codec
from broker.protocol.requests import Acks, Lookup
from broker.topic import TopicPartition
from tests.bench.broker_process import BrokerProcess, running_broker
from tests.bench.wire import publish, publish_frames
from tests.bench.workload import (
    ENTRY_BYTES,
    GATHER_BYTES,
    gather,
    offset_of,
    payloads,
    produce_frames,
    wait_until_visible,
)

FETCH_BYTES = 200_000
_PARTITION = TopicPartition("compared", 0, 0)
_WINDOW_MESSAGES = 1000


class Row(NamedTuple):
    """What one mode gave; `disk_bytes` are those of a message, payload and all."""

    mode: str
    messages_per_s: float
    broker_us: float
    broker_mb: float
    disk_bytes: float | None


def measure(directory: Path, message_count: int) -> list[Row]:
    """Run every mode once, each with a broker of its own.

    Args:
        directory: where data goes.
        message_count: in batches; single messages are a fifth of it.
    """
    single = message_count // 5
    rows = [
        _produce(directory, "b1-noack", single, lambda b: _send_07(b, single, 1, 1)),
        _produce(directory, "b1-piped", single, lambda b: _send_07(b, single, 1, GATHER_BYTES)),
        _produce(directory, "b1-ack", single, lambda b: _publish(b, single, 1)),
        _produce(directory, "b1-ready", single, lambda b: _publish_ready(b, single, 1)),
        _produce(
            directory, "b50-noack", message_count, lambda b: _send_07(b, message_count, 50, 1)
        ),
        _produce(directory, "b50-ack", message_count, lambda b: _publish(b, message_count, 50)),
        _produce(
            directory, "b50-ready", message_count, lambda b: _publish_ready(b, message_count, 50)
        ),
        _produce(directory, "b1000-ack", message_count, lambda b: _publish(b, message_count, 1000)),
    ]
    with running_broker(directory) as broker:
        _send_07(broker, message_count, 50, GATHER_BYTES)
        connection = broker.connect()
        wait_until_visible(connection, _PARTITION, message_count * ENTRY_BYTES)
        connection.close()
        rows.append(_timed(broker, "consume", message_count, lambda b: _consume(b, message_count)))
        rows.append(_timed(broker, "fetch", message_count, lambda b: _fetch(b, message_count)))
    return rows


def _produce(directory: Path, mode: str, count: int, send: Callable[[BrokerProcess], None]) -> Row:
    with running_broker(directory) as broker:
        row = _timed(broker, mode, count, send)
        stored = sum(path.stat().st_size for path in broker.data.glob("*/*.pylog"))
    return row._replace(disk_bytes=stored / count)


def _timed(
    broker: BrokerProcess, mode: str, count: int, work: Callable[[BrokerProcess], None]
) -> Row:
    before_s, started_s = broker.cpu_s(), time.perf_counter()
    work(broker)
    elapsed_s = time.perf_counter() - started_s
    broker_us = (broker.cpu_s() - before_s) / count * 1e6
    return Row(mode, count / elapsed_s, broker_us, broker.memory_mb("VmHWM"), None)


def _send_07(broker: BrokerProcess, count: int, batch: int, gather_bytes: int) -> None:
    connection = broker.connect()
    for data in gather(produce_frames(_PARTITION, count, batch), gather_bytes):
        connection.send(data)
    _check_end(connection, count)


def _check_end(connection: Connection, count: int) -> None:
    end = offset_of(connection, _PARTITION, Lookup.LOG_END)
    connection.close()
    if end != count * ENTRY_BYTES:
        raise RuntimeError(f"the broker has {end} bytes of {count * ENTRY_BYTES}")


def _publish_ready(broker: BrokerProcess, count: int, batch: int) -> None:
    frames = publish_frames(_PARTITION, payloads(), batch)
    publish(broker.address, frames, count // batch, max(2, _WINDOW_MESSAGES // batch))
    _check_end(broker.connect(), count)


def _publish(broker: BrokerProcess, count: int, batch: int) -> None:
    messages = payloads()
    batches = [messages[at : at + batch] for at in range(0, len(messages), batch)]
    cluster = StaticCluster([broker.address], Connection)
    with Producer(
        cluster,
        Connection,
        partitioner=sticky_partitioner(),
        acks=Acks.WRITTEN,
        max_in_flight=max(2, _WINDOW_MESSAGES // batch),
    ) as producer:
        for payload_batch in islice(cycle(batches), count // batch):
            producer.send(_PARTITION.topic, payload_batch)
    cluster.close()


def _consume(broker: BrokerProcess, count: int) -> None:
    fetcher = Fetcher(Connection(broker.address), {_PARTITION: 0}, fetch_bytes=FETCH_BYTES)
    stream = MessageStream(0)
    found = 0
    while found < count:
        for piece in fetcher.poll():
            decoded = codec.decode(stream.add(piece.data), stream.offset)
            found += len(decoded.messages)
            stream.take(decoded.valid_bytes)
    fetcher.close()


def _fetch(broker: BrokerProcess, count: int) -> None:
    """Take the bytes and look at none of them."""
    fetcher = Fetcher(Connection(broker.address), {_PARTITION: 0}, fetch_bytes=FETCH_BYTES)
    missing_bytes = count * ENTRY_BYTES
    while missing_bytes:
        missing_bytes -= sum(len(piece.data) for piece in fetcher.poll())
    fetcher.close()
