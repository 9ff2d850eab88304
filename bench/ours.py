"""Our broker measured as the peers are: the same modes, the same clock.

One producer sends N messages of 200 bytes, one or several per request; the clock stops when the
broker reports that it has them all. Then one consumer reads them 200 KB at a time.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import NamedTuple

from bench.broker_process import BrokerProcess, running_broker
from bench.wire import Replay, publish_frames
from bench.workload import (
    ENTRY_BYTES,
    GATHER_BYTES,
    fill,
    gather,
    offset_of,
    payloads,
    produce_frames,
)
from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.fetcher import Fetcher
from broker.consumer.partition_reader import PartitionReader
from broker.producer.config import ProducerConfig
from broker.producer.partitioner import sticky_partitioner
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol import codec
from broker.protocol.client_requests import (
    Acks,
    OffsetKind,
)
from broker.protocol.extension_requests import CreateTopicRequest
from broker.topic import MessagePosition, TopicPartition

FETCH_BYTES = 200_000
_PARTITION = TopicPartition("compared", 0, 0)
_WINDOW_MESSAGES = 1000


Load = Callable[[BrokerProcess, int], None]


class Row(NamedTuple):
    """The result of one mode; `disk_bytes` are those of a whole message."""

    mode: str
    messages_per_s: float
    broker_us: float
    broker_mb: float
    disk_bytes: float | None


def measure(directory: Path, message_count: int) -> list[Row]:
    """Run every mode once, each with a new broker.

    Args:
        directory: for data.
        message_count: in batches; single messages are a fifth of it.
    """
    single = message_count // 5
    with tempfile.TemporaryDirectory(dir=directory) as own:
        replay = Replay(Path(own))
        rows = [
            _replayed(directory, replay, single, 1, Acks.NONE),
            _replayed(directory, replay, single, 1, Acks.WRITTEN),
            _replayed(directory, replay, message_count, 50, Acks.NONE),
            _replayed(directory, replay, message_count, 50, Acks.WRITTEN),
        ]
    rows += [
        _produce(directory, "piped", single, _pipe),
        _produce(directory, "windowed", single, partial(_publish, batch=1)),
        _produce(directory, "queued", single, _publish_queued),
        _produce(directory, "b50", message_count, partial(_publish, batch=50)),
        _produce(directory, "b1000", message_count, partial(_publish, batch=1000)),
    ]
    with running_broker(directory) as broker:
        connection = broker.connect()
        fill(connection, _PARTITION, message_count)
        connection.close()
        rows.append(_timed(broker, "consume", message_count, _consume))
        rows.append(_timed(broker, "fetch", message_count, _fetch))
    return rows


def _replayed(directory: Path, replay: Replay, count: int, batch: int, acks: Acks) -> Row:
    """Measure requests that a C program sends, one per write."""
    if acks is Acks.NONE:
        replay.prepare(produce_frames(_PARTITION, len(payloads()), batch))
        window = 0
    else:
        replay.prepare(publish_frames(_PARTITION, payloads(), batch, acks))
        window = max(2, _WINDOW_MESSAGES // batch)

    def send(broker: BrokerProcess, count: int) -> None:
        replay.run(broker.port, count // batch, window)
        _check_end(broker.connect(), count)

    return _produce(directory, f"c{batch}-{'noack' if acks is Acks.NONE else 'ack'}", count, send)


def _produce(directory: Path, mode: str, count: int, send: Load) -> Row:
    with running_broker(directory) as broker:
        with closing(broker.connect()) as connection:
            connection.call(CreateTopicRequest(_PARTITION.topic))
        row = _timed(broker, mode, count, send)
        stored = sum(path.stat().st_size for path in broker.data.glob("*/*.pylog"))
    return row._replace(disk_bytes=stored / count)


def _timed(broker: BrokerProcess, mode: str, count: int, work: Load) -> Row:
    before_s, started_s = broker.cpu_s(), time.perf_counter()
    work(broker, count)
    elapsed_s = time.perf_counter() - started_s
    broker_us = (broker.cpu_s() - before_s) / count * 1e6
    return Row(mode, count / elapsed_s, broker_us, broker.memory_mb("VmHWM"), None)


def _pipe(broker: BrokerProcess, count: int) -> None:
    """Send a 0.7 request for each message, many requests per write."""
    connection = broker.connect()
    for data in gather(produce_frames(_PARTITION, count, 1), GATHER_BYTES):
        connection.send(data)
    _check_end(connection, count)


def _check_end(connection: Connection, count: int) -> None:
    end = offset_of(connection, _PARTITION, OffsetKind.LOG_END)
    connection.close()
    if end != count * ENTRY_BYTES:
        raise RuntimeError(f"the broker has {end} bytes of {count * ENTRY_BYTES}")


def _publish(broker: BrokerProcess, count: int, *, batch: int) -> None:
    messages = payloads()
    batches = [messages[at : at + batch] for at in range(0, len(messages), batch)]
    cluster = StaticCluster([broker.address], Connection)
    with Producer(
        cluster,
        Connection,
        ProducerSettings(acks=Acks.WRITTEN, max_in_flight=max(2, _WINDOW_MESSAGES // batch)),
        partitioner=sticky_partitioner(),
    ) as producer:
        for payload_batch in islice(cycle(batches), count // batch):
            producer.send(_PARTITION.topic, payload_batch)
    cluster.close()


def _publish_queued(broker: BrokerProcess, count: int) -> None:
    """Pass the producer one message at a time; it builds the batches."""
    config = ProducerConfig.from_properties(
        {
            "broker.list": f"0:{broker.address.host}:{broker.address.port}",
            "producer.type": "async",
            "request.required.acks": "1",
        }
    )
    with Producer.from_config(config) as producer:
        for payload in islice(cycle(payloads()), count):
            producer.send(_PARTITION.topic, [payload])


def _consume(broker: BrokerProcess, count: int) -> None:
    fetcher = Fetcher({_PARTITION: 0}, Connection(broker.address), fetch_bytes=FETCH_BYTES)
    reader = PartitionReader(_PARTITION, MessagePosition(0))
    found = 0
    while found < count:
        for chunk in fetcher.poll():
            reader.add(chunk)
            decoded = codec.decode(reader.data, reader.offset)
            found += len(decoded.messages)
            reader.take(decoded.valid_bytes)
    fetcher.close()


def _fetch(broker: BrokerProcess, count: int) -> None:
    """Receive the bytes without decoding them."""
    fetcher = Fetcher({_PARTITION: 0}, Connection(broker.address), fetch_bytes=FETCH_BYTES)
    missing_bytes = count * ENTRY_BYTES
    while missing_bytes:
        missing_bytes -= sum(len(piece.data) for piece in fetcher.poll())
    fetcher.close()
