"""What a writing task does: rows in, message sets out, each acknowledged or staged.

Rows with a partition go there, rows with a key where the key's hash says, others to one partition
a batch of rows, chosen anew each time. Rows of one partition keep their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa

from broker.errors import ConfigError
from broker.producer.delivery import Delivery
from broker.producer.encoder import Packer
from broker.producer.producer import DEFAULT_MAX_MESSAGE_BYTES, Producer
from broker.protocol.primitives import Buffer
from broker.spark.offsets import partition_of
from broker.spark.options import WriteOptions
from broker.spark.plans import connector_of, open_cluster
from broker.spark.staging import StagingFile, staged_sets
from broker.topic import TopicPartition


class Sent(NamedTuple):
    """How many messages were delivered, and how large their payloads are together."""

    message_count: int
    payload_bytes: int

    def __str__(self) -> str:
        return f"{self.message_count} messages, {self.payload_bytes} bytes"


class _SetSink(Protocol):
    """Where message sets go."""

    def put(self, partition: TopicPartition, message_set: Buffer) -> None:
        """Take a set."""

    def finish(self) -> None:
        """Have all of them where they go."""


def send_rows(batches: Iterable[pa.RecordBatch], options: WriteOptions) -> Sent:
    """Send rows and wait until consumers can read all of them.

    Args:
        batches: of columns value, and maybe topic, partition and key.
        options: of the write.

    Raises:
        ConfigError: a row has no value, no topic, or a partition that is not there.
        MessageSizeTooLargeError: a value is too large.
        BrokerError: a broker is gone, also after retries, or refuses.
    """
    with _open_producer(options) as producer:
        return _put_rows(batches, options, producer, _Delivering(producer))


def stage_rows(
    batches: Iterable[pa.RecordBatch], options: WriteOptions, directory: Path
) -> tuple[Sent, Path]:
    """Do all but send rows: their message sets go to a file, for `send_staged`.

    Args:
        batches: of columns value, and maybe topic, partition and key.
        options: of the write.
        directory: where the file goes.

    Raises:
        ConfigError: a row has no value, no topic, or a partition that is not there.
        MessageSizeTooLargeError: a value is too large.
        StorageError: the file cannot be written.
        BrokerError: a broker cannot say which partitions there are.
    """
    file = StagingFile(directory)
    with _open_producer(options) as producer:
        return _put_rows(batches, options, producer, file), file.path


def send_staged(paths: Iterable[Path], options: WriteOptions) -> None:
    """Send what is in files, and wait until consumers can read all of it.

    Args:
        paths: files, in the order to send them.
        options: of the write.

    Raises:
        StorageError: a file cannot be read.
        BrokerError: a broker is gone, also after retries, or refuses.
    """
    with _open_producer(options) as producer:
        delivering = _Delivering(producer)
        for path in paths:
            for partition, message_set in staged_sets(path):
                delivering.put(partition, message_set)
        delivering.finish()


@contextmanager
def _open_producer(options: WriteOptions) -> Iterator[Producer]:
    with (
        open_cluster(options.where, options.connection) as opened,
        Producer(
            opened.cluster,
            connector_of(options.connection),
            retries=options.retries,
            timeout_s=options.connection.timeout_s,
        ) as producer,
    ):
        yield producer


def _put_rows(
    batches: Iterable[pa.RecordBatch], options: WriteOptions, producer: Producer, sink: _SetSink
) -> Sent:
    packing = _Packing(producer, options, sink)
    for batch in batches:
        packing.put(batch)
    packing.finish()
    return Sent(packing.message_count, packing.payload_bytes)


class _Delivering:
    """Sends sets, and finds out what became of them."""

    def __init__(self, producer: Producer) -> None:
        self._producer = producer
        self._deliveries: deque[Delivery] = deque()

    def put(self, partition: TopicPartition, message_set: Buffer) -> None:
        self._deliveries.append(self._producer.send_set(partition, message_set))
        self._check(only_done=True)

    def finish(self) -> None:
        self._producer.barrier()
        self._check(only_done=False)

    def _check(self, *, only_done: bool) -> None:
        """Raise what went wrong with sets sent before; forget those that are delivered."""
        while self._deliveries and (self._deliveries[0].is_done or not only_done):
            self._deliveries.popleft().result()


class _Packing:
    """Collects payloads by partition and makes sets of a size of them."""

    def __init__(self, producer: Producer, options: WriteOptions, sink: _SetSink) -> None:
        self._producer = producer
        self._sink = sink
        self._topic = options.topic
        self._batch_bytes = options.batch_bytes
        self._packer = Packer(codec=options.codec, max_message_bytes=DEFAULT_MAX_MESSAGE_BYTES)
        self._waiting: dict[TopicPartition, list[bytes]] = {}
        self._sizes: dict[TopicPartition, int] = {}
        self.message_count = 0
        self.payload_bytes = 0

    def put(self, batch: pa.RecordBatch) -> None:
        columns = {name: batch.column(name) for name in batch.schema.names}
        payloads = _without_nulls("value", columns["value"].cast(pa.binary()))
        is_alike = self._topic is not None and not {"key", "partition"} & columns.keys()
        if is_alike and payloads:
            self._add(self._producer.choose_partition(str(self._topic)), payloads)
        else:
            for partition, chosen in self._by_partition(columns, payloads).items():
                self._add(partition, chosen)
        self.message_count += len(payloads)

    def finish(self) -> None:
        for partition in [one for one, payloads in self._waiting.items() if payloads]:
            self._put_set(partition)
        self._sink.finish()

    def _by_partition(
        self, columns: dict[str, pa.Array], payloads: list[bytes]
    ) -> dict[TopicPartition, list[bytes]]:
        count = len(payloads)
        topics = [self._topic or ""] * count
        if self._topic is None:
            topics = _without_nulls("topic", columns["topic"])
        names = columns["partition"].to_pylist() if "partition" in columns else [None] * count
        keys = columns["key"].cast(pa.binary()).to_pylist() if "key" in columns else [None] * count
        without_key = {topic: self._producer.choose_partition(topic) for topic in set(topics)}
        found: dict[TopicPartition, list[bytes]] = {}
        for topic, name, key, payload in zip(topics, names, keys, payloads, strict=True):
            if name is not None:
                partition = self._named(topic, name)
            elif key is not None:
                partition = self._producer.choose_partition(topic, key)
            else:
                partition = without_key[topic]
            found.setdefault(partition, []).append(payload)
        return found

    def _named(self, topic: str, name: str) -> TopicPartition:
        partition = partition_of(topic, name)
        if partition not in self._producer.partitions(topic):
            raise ConfigError(f"a row is for {partition}, and there is no such partition")
        return partition

    def _add(self, partition: TopicPartition, payloads: list[bytes]) -> None:
        size = self._sizes.get(partition, 0)
        waiting = self._waiting.setdefault(partition, [])
        for payload in payloads:
            waiting.append(payload)
            size += len(payload)
            self.payload_bytes += len(payload)
            if size >= self._batch_bytes:
                self._put_set(partition)
                waiting, size = self._waiting.setdefault(partition, []), 0
        self._sizes[partition] = size

    def _put_set(self, partition: TopicPartition) -> None:
        payloads = self._packer.payloads(self._waiting.pop(partition))
        self._sink.put(partition, self._packer.pack(partition.topic, payloads).message_set)


def _without_nulls(name: str, column: pa.Array) -> list[Any]:
    """Return the values of a column that every row must have.

    Raises:
        ConfigError: one is null.
    """
    if column.null_count:
        raise ConfigError(f"{column.null_count} rows have no {name}: it is null")
    values: list[Any] = column.to_pylist()
    return values
