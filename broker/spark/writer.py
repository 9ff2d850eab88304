"""The writer: rows to topics, batch and stream.

Delivery is at least once: a row is delivered when the broker has acknowledged it as flushed, and a
task succeeds when all of its rows are delivered. So the rows of a task or micro-batch that is run
again can be duplicated. With a staging directory, tasks write their message sets to files, and the
driver sends the files of the attempts that succeeded. Rows are then duplicated only if the driver
ends while it sends, but a single process sends all of them. The next write from the machine of a
driver that was killed removes its files.

A row with a partition goes to that, a row with a key to the partition of the key's hash; the other
rows of a batch go to one partition, chosen per batch. Rows of one partition keep their order.
"""

from __future__ import annotations

import json
import logging
import shutil
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.types import BinaryType, StringType, StructType

from broker.errors import ConfigError, LogCorruptError, StorageError
from broker.producer.delivery import Delivery
from broker.producer.encoder import Packer
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.protocol.codec import scan
from broker.protocol.primitives import Buffer
from broker.spark.options import WriteOptions, partition_of
from broker.spark.reading.cluster import open_cluster
from broker.spark.runtime.temporary import application_directory
from broker.spark.schema import TYPES
from broker.topic import TopicPartition

logger = logging.getLogger(__name__)

_TEXT = (StringType(), BinaryType())
_ACCEPTED = {"value": _TEXT, "key": _TEXT, "topic": (StringType(),), "partition": (StringType(),)}


class SentMessages(NamedTuple):
    """How many messages were sent, and the size of their payloads."""

    message_count: int
    payload_bytes: int


@dataclass(frozen=True)
class _Written(datasource.WriterCommitMessage):
    """Commit message of a task: the messages it sent, or staged in the file `path`."""

    sent: SentMessages
    path: Path | None


class _TopicWriter:
    """The common part of the writers of batches and streams."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(options, schema)
        self._options = options
        self._staging: Path | None = None
        if options.staging_path is not None:
            self._staging = application_directory(options.staging_path)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> datasource.WriterCommitMessage:
        """Send the rows of a task and wait until they are delivered, or stage them."""
        if self._staging is None:
            return _Written(send_rows(iterator, self._options), None)
        return _Written(*_stage_rows(iterator, self._options, self._staging))

    def commit(
        self, messages: list[datasource.WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        """Send staged message sets, on the driver; without staging all are delivered already."""
        written = [one for one in messages if isinstance(one, _Written)]
        if self._staging is not None:
            _send_staged([one.path for one in written if one.path is not None], self._options)
            shutil.rmtree(self._staging, ignore_errors=True)
        count = sum(one.sent.message_count for one in written)
        logger.info("delivered %d messages", count)

    def abort(
        self, messages: list[datasource.WriterCommitMessage | None], batchId: int | None = None
    ) -> None:
        """Drop staged message sets; a log cannot take back what was sent."""
        if self._staging is not None:
            shutil.rmtree(self._staging, ignore_errors=True)
        else:
            logger.warning("the write failed; some of its messages may have been delivered")


class BatchWriter(_TopicWriter, datasource.DataSourceArrowWriter):
    """Writes the rows of a table to topics."""


class StreamWriter(_TopicWriter, datasource.DataSourceStreamArrowWriter):
    """Writes the rows of a stream to topics."""


def check_columns(options: WriteOptions, schema: StructType) -> None:
    """Validate the columns of rows to send; columns that only a read has are ignored."""
    types = {field.name: field.dataType for field in schema}
    for name, kind in types.items():
        if name in _ACCEPTED and kind not in _ACCEPTED[name]:
            wanted = " or ".join(one.simpleString() for one in _ACCEPTED[name])
            raise ConfigError(f"column '{name}' is {kind.simpleString()}; cast it to {wanted}")
        if name not in _ACCEPTED and name not in TYPES:
            raise ConfigError(f"column '{name}' cannot be sent; select {', '.join(_ACCEPTED)}")
    if "value" not in types:
        raise ConfigError("rows to send have a column 'value', of type string or binary")
    if options.topic is None and "topic" not in types:
        raise ConfigError("no topic: set the option topic, or give rows a column 'topic'")


def send_rows(batches: Iterable[pa.RecordBatch], options: WriteOptions) -> SentMessages:
    """Send rows, and wait until consumers can read all of them."""
    with _open_producer(options) as producer, _sending(producer) as send:
        return _SetBuilder(producer, options, send).build(batches)


def _stage_rows(
    batches: Iterable[pa.RecordBatch], options: WriteOptions, directory: Path
) -> tuple[SentMessages, Path]:
    """Write the message sets of rows to a file, for `_send_staged`."""
    file = StagingFile(directory)
    with _open_producer(options) as producer:
        sent = _SetBuilder(producer, options, file.add).build(batches)
        file.close()
        return sent, file.path


def _send_staged(paths: Iterable[Path], options: WriteOptions) -> None:
    """Send the message sets in files, and wait until consumers can read all of them."""
    with _open_producer(options) as producer, _sending(producer) as send:
        for path in paths:
            for partition, message_set in staged_sets(path):
                send(partition, message_set)


@contextmanager
def _open_producer(options: WriteOptions) -> Iterator[Producer]:
    with (
        open_cluster(options.where, options.connection) as opened,
        Producer(
            opened.cluster,
            options.connection.connect,
            ProducerSettings(retries=options.retries, timeout_s=options.connection.timeout_s),
        ) as producer,
    ):
        yield producer


_SetSink = Callable[[TopicPartition, Buffer], None]
"""Sends or stages a message set of a partition."""


@contextmanager
def _sending(producer: Producer) -> Iterator[_SetSink]:
    """Give what sends message sets in the block; all are delivered then, or an error is raised."""
    deliveries: deque[Delivery] = deque()

    def send(partition: TopicPartition, message_set: Buffer) -> None:
        deliveries.append(producer.send_set(partition, message_set))
        limit = producer.message_limit(partition)
        if len(message_set) > limit and scan(message_set).max_payload_bytes > limit:
            producer.flush()  # none is stored behind one that is refused
        while deliveries and deliveries[0].is_done:
            deliveries.popleft().result()

    yield send
    producer.wait_until_readable()
    for one in deliveries:
        one.result()


@dataclass(eq=False)
class _SetBuilder:
    """Collects payloads by partition, and builds message sets of the configured size."""

    producer: Producer
    options: WriteOptions
    sink: _SetSink
    batches: dict[TopicPartition, list[bytes]] = field(default_factory=dict, init=False)
    sizes: dict[TopicPartition, int] = field(default_factory=dict, init=False)
    message_count: int = field(default=0, init=False)
    payload_bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.topic = self.options.topic
        self.packer = Packer(ProducerSettings(codec=self.options.codec))

    def build(self, rows: Iterable[pa.RecordBatch]) -> SentMessages:
        """Give the message sets of all rows to the sink."""
        for batch in rows:
            self._add(batch)
        for partition in [one for one, payloads in self.batches.items() if payloads]:
            self._complete(partition)
        return SentMessages(self.message_count, self.payload_bytes)

    def _add(self, rows: pa.RecordBatch) -> None:
        columns = {name: rows.column(name) for name in rows.schema.names}
        payloads = _without_nulls("value", columns["value"].cast(pa.binary()))
        is_one_topic = self.topic is not None and not {"key", "partition"} & columns.keys()
        if is_one_topic and payloads:
            self._append(self.producer.choose_partition(str(self.topic)), payloads)
        else:
            for partition, chosen in self._by_partition(columns, payloads).items():
                self._append(partition, chosen)
        self.message_count += len(payloads)

    def _by_partition(
        self, columns: dict[str, pa.Array], payloads: list[bytes]
    ) -> dict[TopicPartition, list[bytes]]:
        count = len(payloads)
        topics = [self.topic or ""] * count
        if self.topic is None:
            topics = _without_nulls("topic", columns["topic"])
        names = columns["partition"].to_pylist() if "partition" in columns else [None] * count
        keys = columns["key"].cast(pa.binary()).to_pylist() if "key" in columns else [None] * count
        without_key = {topic: self.producer.choose_partition(topic) for topic in set(topics)}
        found: dict[TopicPartition, list[bytes]] = {}
        for topic, name, key, payload in zip(topics, names, keys, payloads, strict=True):
            if name is not None:
                partition = partition_of(topic, name)
                if partition not in self.producer.partitions(topic):
                    raise ConfigError(f"a row names {partition}, which does not exist")
            elif key is not None:
                partition = self.producer.choose_partition(topic, key)
            else:
                partition = without_key[topic]
            found.setdefault(partition, []).append(payload)
        return found

    def _append(self, partition: TopicPartition, payloads: list[bytes]) -> None:
        size = self.sizes.get(partition, 0)
        batch = self.batches.setdefault(partition, [])
        for payload in payloads:
            batch.append(payload)
            size += len(payload)
            self.payload_bytes += len(payload)
            if size >= self.options.batch_bytes:
                self._complete(partition)
                batch, size = self.batches.setdefault(partition, []), 0
        self.sizes[partition] = size

    def _complete(self, partition: TopicPartition) -> None:
        payloads = self.packer.payloads(self.batches.pop(partition))
        self.sink(partition, self.packer.pack(partition.topic, payloads)[0])


def _without_nulls(name: str, column: pa.Array) -> list[Any]:
    if column.null_count:
        raise ConfigError(f"{column.null_count} rows have no {name}: it is null")
    values: list[Any] = column.to_pylist()
    return values


class StagingFile:
    """A file of the message sets of one task attempt, in a directory that all machines share.

    Each set follows a line of JSON with its partition and size: `["topic",0,3,SIZE]`.
    """

    def __init__(self, directory: Path) -> None:
        self.path = directory / f"{uuid.uuid4().hex}.sets"
        with _storage_errors(f"cannot write {self.path}"):
            directory.mkdir(parents=True, exist_ok=True)
            self._file: BinaryIO = self.path.open("xb")

    def add(self, partition: TopicPartition, message_set: Buffer) -> None:
        """Append a message set."""
        head = [partition.topic, partition.home, partition.index, len(message_set)]
        with _storage_errors(f"cannot write {self.path}"):
            self._file.write(json.dumps(head).encode() + b"\n")
            self._file.write(message_set)

    def close(self) -> None:
        """Flush and close the file."""
        with _storage_errors(f"cannot write {self.path}"):
            self._file.close()


@contextmanager
def _storage_errors(failure: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"{failure}: {error.strerror}") from error


def staged_sets(path: Path) -> Iterator[tuple[TopicPartition, bytes]]:
    """Read the message sets of a closed staging file, in order."""
    # the machines may not share the directory
    with _storage_errors(f"cannot read {path}"), path.open("rb") as file:
        while line := file.readline():
            topic, home, index, size = json.loads(line)
            message_set = file.read(size)
            if len(message_set) != size:
                raise LogCorruptError(f"{path} was truncated")
            yield TopicPartition(topic, home, index), message_set
