"""Reading one partition as 0.7's simple consumer does: one fetch request at a time, none ahead.

Knows a connection and offsets; what becomes of the messages is for others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.consumer.chunk import Chunk
from broker.consumer.partition_reader import PartitionReader
from broker.errors import NO_ERROR
from broker.protocol.codec import Fault
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import decode_fetch_response
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.errors import UsageError
from pylogctl.perf.consume import ConsumePlan, Polled

_PAUSE_S = 0.1
"""After an empty answer: a 0.7 broker does not wait for messages."""


@contextmanager
def single_reading(
    plan: ConsumePlan,
    ranges: Mapping[TopicPartition, ReadRange],
    cluster: Cluster,
    connect: Connect,
) -> Iterator[list[Polled]]:
    """Open a simple reading for a block.

    Args:
        plan: how to read.
        ranges: from where to where in the only partition.
        cluster: tells which broker has it.
        connect: makes the connection.

    Raises:
        UsageError: there are several partitions.
    """
    if len(ranges) > 1:
        names = ", ".join(partition.name for partition in ranges)
        raise UsageError(
            f"one partition at a time, not {names}", hints=["try: -p with one of them"]
        )
    ((partition, wanted),) = ranges.items()
    with SimpleReading(
        connect(cluster.leader(partition)), partition, wanted, fetch_bytes=plan.fetch_bytes
    ) as reading:
        yield [reading]


class SimpleReading:
    """Reads one partition.

    Args:
        connection: to its broker; closed by the reading.
        partition: which.
        wanted: where to start and to end.
        fetch_bytes: the most to ask for in one request; at least the size of the largest message.
    """

    def __init__(
        self,
        connection: Connection,
        partition: TopicPartition,
        wanted: ReadRange,
        *,
        fetch_bytes: int,
    ) -> None:
        self._connection = connection
        self._reader = PartitionReader(partition, wanted.start, wanted.end)
        self._fetch_bytes = fetch_bytes

    def __enter__(self) -> SimpleReading:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def polls(self) -> Iterator[list[PartitionReader]]:
        """Give the partition after each fetch, an empty list after an empty one, until all is read.

        Raises:
            OffsetOutOfRangeError: retention removed messages that were to be read.
            InvalidMessageError: a message is larger than a fetch.
            BrokerError: the broker is gone, or responds with another error.
        """
        reader = self._reader
        while reader.end is None or reader.offset < reader.end.offset:
            offset = reader.offset
            reader.drop_data()  # the start of a message, which is fetched again
            if reader.add(self._fetch(offset)):
                yield [reader]
                if reader.offset == offset:
                    raise reader.corrupt(Fault.PARTIAL)
            else:
                yield []
                time.sleep(_PAUSE_S)

    def _fetch(self, offset: int) -> Chunk:
        partition = self._reader.partition
        request = FetchRequest(partition.topic, partition.index, offset, self._fetch_bytes)
        response = self._connection.repeat_if_lost(lambda: self._connection.ask(request))
        code, data = decode_fetch_response(response)
        chunk = Chunk(partition, offset, data, code)
        if code != NO_ERROR:
            raise chunk.failure()
        return chunk
