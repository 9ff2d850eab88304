"""The client library between a file of lines and a broker, without the command line.

The loops are those of `pylogctl produce` and `pylogctl consume` on plain lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

from bench.broker_process import BrokerProcess, running_broker, temporary_directory
from bench.measure import ChartPosition, Goal, Measurement, Plan, repeat_rate
from bench.workload import ENTRY_BYTES, LINE_BYTES, write_lines
from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.consumer.fetcher import Fetcher
from broker.consumer.partition_reader import PartitionReader
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol import codec
from broker.protocol.client_requests import Acks
from broker.security.client_security import ClientSecurity
from broker.topic import MessagePosition, TopicPartition

_PARTITION = TopicPartition("lines", 0, 0)
_CHUNK_BYTES = 1 << 20
_BATCH_BYTES = 512 << 10
_MB = 1e6
IN_MB_S = 2_500_000 * LINE_BYTES / _MB
OUT_MB_S = 4_000_000 * LINE_BYTES / _MB
"""The goals, 2.5 and 4 million messages a second."""
RATES = "lines of 200 bytes through one broker"


def run(plan: Plan) -> Iterator[Measurement]:
    """Measure producing a file of lines with each kind of acknowledgement, and consuming it."""
    with temporary_directory(plan.directory) as directory:
        source = directory / "lines"
        total = write_lines(source, plan.size(1 << 30, 128 << 20))
        for acks in (Acks.NONE, Acks.WRITTEN, Acks.COMMITTED):
            rates = repeat_rate(plan, total / _MB, partial(_produce_fresh, plan, source, acks))
            name = f"library produce, acks {acks.name.lower()}"
            yield Measurement(name, "MB/s", rates, Goal(IN_MB_S), ChartPosition(RATES, "", name))
        with running_broker(plan.directory) as broker:
            produce(broker, source, Acks.WRITTEN)
            end = total // LINE_BYTES * ENTRY_BYTES
            rates = repeat_rate(plan, total / _MB, partial(consume, broker, end))
            name = "library consume"
            yield Measurement(name, "MB/s", rates, Goal(OUT_MB_S), ChartPosition(RATES, "", name))


def _produce_fresh(plan: Plan, source: Path, acks: Acks) -> float:
    with running_broker(plan.directory) as broker:
        return produce(broker, source, acks)


def produce(
    broker: BrokerProcess, source: Path, acks: Acks, security: ClientSecurity | None = None
) -> float:
    """Return the seconds from the first line read until all are readable."""
    started_s = time.perf_counter()
    connect = partial(Connection, security=security)
    cluster = StaticCluster([broker.address], connect)
    with (
        Producer(cluster, connect, ProducerSettings(acks=acks)) as producer,
        source.open("rb") as file,
    ):
        partition = producer.choose_partition(_PARTITION.topic)
        rest = b""
        while data := file.read(_CHUNK_BYTES):
            text = rest + data
            made = codec.encode_delimited(
                text,
                b"\n",
                max_payload_bytes=1_000_000,
                batch_count=len(text),
                batch_bytes=_BATCH_BYTES,
            )
            rest = text[made.consumed :]
            message_set = memoryview(made.message_set)
            for start, end in pairwise((0, *made.cuts)):
                producer.send_set(partition, message_set[start:end])
        producer.wait_until_readable()
    cluster.close()
    return time.perf_counter() - started_s


def consume(broker: BrokerProcess, end: int, security: ClientSecurity | None = None) -> float:
    """Return the seconds to consume all lines and write them to /dev/null."""
    started_s = time.perf_counter()
    fetcher = Fetcher({_PARTITION: 0}, Connection(broker.address, security=security))
    reader = PartitionReader(_PARTITION, MessagePosition(0))
    with Path("/dev/null").open("wb", buffering=0) as output:
        while reader.offset < end:
            for chunk in fetcher.poll():
                reader.add(chunk)
                decoded = codec.decode_delimited(reader.data, b"\n")
                output.write(decoded.text)
                reader.take(decoded.valid_bytes)
    fetcher.close()
    return time.perf_counter() - started_s
