"""A consumer group compared with the simple consumer in one run, and the time of a rebalance.

Run it alone: `python -m bench.group [MESSAGES]`. It needs Java for its own ZooKeeper.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.broker_process import running_broker
from bench.workload import fill
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.simple_consumer import SimpleConsumer
from broker.consumer.stream import ConsumerStream
from broker.protocol.codec import decode
from broker.topic import TopicPartition
from broker.zk.embedded import EmbeddedZooKeeper

Read = Callable[[ConsumerStream, int], None]

_PARTITION = TopicPartition("fetched", 0, 0)
_ROUNDS = 3
_MEMBERS = 20
_PARTITIONS = 1000


def main() -> None:
    """Print the figures."""
    logging.disable(logging.WARNING)  # the brokers of the rebalance are down on purpose
    message_count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with EmbeddedZooKeeper(directory / "zookeeper", is_durable=False, tick_ms=500) as server:
            compare(directory, server.connect, message_count)
            rebalance(server.connect)


def compare(directory: Path, zookeeper: str, message_count: int) -> None:
    """Read one log with the simple consumer and with a group, in turns."""
    with running_broker(directory, **{"zk.connect": zookeeper}) as broker:
        connection = broker.connect()
        fill(connection, _PARTITION, message_count)
        connection.close()
        for number in range(_ROUNDS):
            simple = message_count / read_simply(broker.port, message_count)
            print(f"simple {simple:,.0f}/s")
            for what, read in (("one by one", read_one_by_one), ("in chunks", read_in_chunks)):
                seconds = read_as_group(
                    zookeeper, f"g{number}-{what.partition(' ')[0]}", message_count, read
                )
                rate = message_count / seconds
                print(f"group, {what}, {rate:,.0f}/s  ratio {rate / simple:.2f}")


def read_simply(port: int, message_count: int) -> float:
    """Return the seconds until the application has every message, with the simple consumer."""
    count = offset = 0
    started_s = time.perf_counter()
    with SimpleConsumer("127.0.0.1", port) as consumer:
        while count < message_count:
            found = consumer.fetch(_PARTITION.topic, _PARTITION.index, offset, 1 << 20)
            for _offset, _next_offset, _payload in found:
                count += 1
            offset = found.next_offset
    return time.perf_counter() - started_s


def read_as_group(zookeeper: str, group: str, message_count: int, read: Read) -> float:
    """Return the same for a group with one member, from the first message on."""
    with ConsumerConnector(
        ConsumerConfig(zookeeper=zookeeper, group=group, fetch_bytes=1 << 20)
    ) as connector:
        (stream,) = connector.create_message_streams({_PARTITION.topic: 1})[_PARTITION.topic]
        connector.await_assignment()
        started_s = time.perf_counter()
        read(stream, message_count)
        return time.perf_counter() - started_s


def read_one_by_one(stream: ConsumerStream, message_count: int) -> None:
    """Take messages one by one: each is finished, and the lease validated, before the next."""
    for count, (_topic, _partition, _offset, _next_offset, _payload) in enumerate(stream, 1):
        if count == message_count:
            break


def read_in_chunks(stream: ConsumerStream, message_count: int) -> None:
    """Take whole chunks, as `pylogctl consume --group` does, and their messages out of them."""
    count = 0
    for reader in stream.chunks():
        decoded = decode(reader.data, reader.offset)
        for _offset, _next_offset, _payload in decoded.messages:
            count += 1
        reader.take(decoded.valid_bytes)
        reader.finish(reader.offset)
        if count == message_count:
            break


def rebalance(zookeeper: str) -> None:
    """Let members join one after another, then one leave; the partitions' broker is down.

    All members live in this process, so its one interpreter does the work of all of them.
    """
    connectors = [
        ConsumerConnector(
            ConsumerConfig(zookeeper=zookeeper, group="many", fetch_backoff_ms=60_000)
        )
        for _ in range(_MEMBERS)
    ]
    registry = connectors[0]._registry
    registry.session.create("/brokers/topics/wide/99", b"%d" % _PARTITIONS, ephemeral=True)
    started_s = time.perf_counter()
    for connector in connectors:
        connector.create_message_streams({"wide": 1})
    await_shares(connectors)
    print(f"{_MEMBERS} members joined: {time.perf_counter() - started_s:.2f} s to settle")
    started_s = time.perf_counter()
    connectors.pop().shutdown()
    await_shares(connectors)
    print(f"one member left: {time.perf_counter() - started_s:.2f} s to settle")
    for connector in reversed(connectors):
        connector.shutdown()


def await_shares(connectors: list[ConsumerConnector]) -> None:
    """Wait until the partitions are assigned to all members evenly."""
    least = _PARTITIONS // len(connectors)
    while True:
        shares = [len(connector.positions) for connector in connectors]
        if sum(shares) == _PARTITIONS and min(shares) >= least:
            return
        time.sleep(0.02)


if __name__ == "__main__":
    main()
