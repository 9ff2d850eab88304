"""Reading one partition as 0.7's simple consumer does: one fetch request at a time, none ahead.

Knows a connection and offsets; what becomes of the messages is for others.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from broker.client.cluster import Cluster, Connect
from broker.client.connection import Connection
from broker.errors import NO_ERROR, error_for_code
from broker.protocol.requests import FetchRequest
from broker.protocol.responses import decode_fetch_response
from broker.topic import TopicPartition
from pylogctl.cli.errors import UsageError
from pylogctl.cli.offset_resolution import MessagePosition, ResolvedRange
from pylogctl.consume.reading import Stretch
from pylogctl.perf.consume import ConsumePlan, Polled

_PAUSE_S = 0.1
"""After an empty answer: a 0.7 broker does not wait for messages."""


@contextmanager
def single_reading(
    plan: ConsumePlan,
    ranges: Mapping[TopicPartition, ResolvedRange],
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


class _Place:
    """How far the partition has been read."""

    def __init__(self, partition: TopicPartition, wanted: ResolvedRange) -> None:
        self.partition = partition
        self.offset = wanted.start.offset
        self.end: MessagePosition | None = wanted.end
        self.skip = wanted.start.inner
        self._is_stuck = False

    def take(self, valid_bytes: int) -> None:
        """Note that entries of so many more bytes have been dealt with."""
        self.offset += valid_bytes
        self._is_stuck = not valid_bytes
        if valid_bytes:
            self.skip = 0

    def is_cut_for_good(self) -> bool:
        """Say whether the next answer would end inside the same entry: it is above the limit."""
        return self._is_stuck


class SimpleReading:
    """Reads one partition.

    Args:
        connection: to its broker; owned by the reading from now on.
        partition: which.
        wanted: where to start and to end.
        fetch_bytes: the most to ask for in one request; at least the size of the largest message.
    """

    def __init__(
        self,
        connection: Connection,
        partition: TopicPartition,
        wanted: ResolvedRange,
        *,
        fetch_bytes: int,
    ) -> None:
        self._connection = connection
        self._place = _Place(partition, wanted)
        self._fetch_bytes = fetch_bytes

    def __enter__(self) -> SimpleReading:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._connection.close()

    def polls(self) -> Iterator[list[Stretch]]:
        """Give what has come, an empty list after a wait for nothing, until all is read.

        Every stretch must be dealt with, and `take` called on its cursor, before the next poll.

        Raises:
            OffsetOutOfRangeError: retention was faster than we are.
            BrokerError: the broker is gone, or answers with another error.
        """
        place = self._place
        while place.end is None or place.offset < place.end.offset:
            data = self._fetch()
            if place.end is not None:
                data = data[: place.end.offset - place.offset]
            if data:
                yield [Stretch(place, place.offset, data, place.skip)]
            else:
                yield []
                time.sleep(_PAUSE_S)

    def _fetch(self) -> memoryview:
        topic, index = self._place.partition.topic, self._place.partition.index
        request = FetchRequest(topic, index, self._place.offset, self._fetch_bytes)
        answer = self._connection.repeat_if_lost(lambda: self._connection.ask(request))
        code, data = decode_fetch_response(answer)
        if code != NO_ERROR:
            raise error_for_code(code, f"cannot read {self._place.partition} at {request.offset}")
        return data
