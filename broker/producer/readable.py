"""Waiting until what a producer sent can be read by consumers, whatever was acknowledged."""

from __future__ import annotations

import time

from broker.client.connection import Connection
from broker.errors import (
    NO_ERROR,
    LogCorruptError,
    ProtocolError,
    RequestTimedOutError,
    error_for_code,
)
from broker.producer.link import Link
from broker.protocol.extension_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.primitives import Reader
from broker.protocol.requests import LATEST_TIME, OffsetsRequest
from broker.protocol.responses import (
    Published,
    decode_offsets_response,
    decode_publish_response,
)
from broker.topic import TopicPartition

PAUSE_S = 0.02
"""Between two questions whether something is there by now."""
_BROKER_SHARE_OF_TIMEOUT = 0.9


def commit_timeout_ms(timeout_s: float) -> int:
    """Return how long a broker may take to commit, if the client waits so long for its answer.

    It is less, so that the broker can say that time is up.
    """
    return int(timeout_s * 1000 * _BROKER_SHARE_OF_TIMEOUT)


def only_one(body: Reader) -> Published:
    """Return what became of the one set of a publish."""
    results = decode_publish_response(body)
    if len(results) != 1:
        raise ProtocolError(f"{len(results)} results came for the one set of a publish")
    return results[0]


def latest_07(connection: Connection, partition: TopicPartition) -> int:
    """Return up to where a partition can be read, asked as 0.7's clients ask."""
    connection.send_request(OffsetsRequest(partition.topic, partition.index, LATEST_TIME, 1))
    return next(iter(decode_offsets_response(connection.receive())), 0)


class Readability:
    """Waits until partitions can be read up to some offset.

    Args:
        acks: what was sent was acknowledged so; committed sets can be read already.
        timeout_s: how long to wait for each partition.
    """

    def __init__(self, acks: Acks, timeout_s: float) -> None:
        self._acks = acks
        self._timeout_s = timeout_s

    def wait(self, link: Link, partition: TopicPartition, end: int) -> None:
        """Wait until a partition can be read up to `end`.

        Raises:
            RequestTimedOutError: it takes longer than the timeout; the text says what is missing.
            LogCorruptError: the broker no longer has what it acknowledged.
            BrokerError: the broker fails.
        """
        connection = link.open()
        if connection.hello() is None:
            self._wait_07(connection, partition, end)
        elif self._acks is not Acks.COMMITTED:
            self._commit(connection, partition, end)

    def _commit(self, connection: Connection, partition: TopicPartition, end: int) -> None:
        """Have all that was written before committed: so does an empty committed publish."""
        request = PublishRequest(
            Acks.COMMITTED, commit_timeout_ms(self._timeout_s), (PartitionSet(partition, b""),)
        )
        published = only_one(connection.call(request))
        if published.error == RequestTimedOutError.code:
            raise self._not_readable(partition, end, latest_07(connection, partition))
        if published.error != NO_ERROR:
            raise error_for_code(published.error, published.text)
        if published.base_offset < end:
            raise LogCorruptError(
                f"{partition} ends at {published.base_offset} and not at {end}: the broker "
                "has lost what it acknowledged as written"
            )

    def _wait_07(self, connection: Connection, partition: TopicPartition, end: int) -> None:
        give_up_s = time.monotonic() + self._timeout_s
        while (latest := latest_07(connection, partition)) < end:
            if time.monotonic() >= give_up_s:
                raise self._not_readable(partition, end, latest)
            time.sleep(PAUSE_S)

    def _not_readable(
        self, partition: TopicPartition, end: int, latest: int
    ) -> RequestTimedOutError:
        missing = f"{end - latest} bytes" if end > latest else "some"
        return RequestTimedOutError(
            f"{missing} of {partition} cannot be read yet, "
            f"{self._timeout_s:g}s after they were sent"
        )
