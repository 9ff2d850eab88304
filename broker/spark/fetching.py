"""The chunks of a range from brokers: from its leader, or whoever leads it after that one."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress

from broker.client.cluster import Cluster
from broker.client.connection import Connection
from broker.client.list_offsets import OffsetLister
from broker.client.static_cluster import StaticCluster
from broker.consumer.chunk import Chunk
from broker.consumer.cluster_reader import ClusterReader
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    DataLossError,
    LeaderNotAvailableError,
    NotLeaderError,
    OffsetOutOfRangeError,
    RequestTimeoutError,
    ShuttingDownError,
)
from broker.protocol.responses import BrokerAddress
from broker.spark.ranges import ByteRange, LeaderAddress
from broker.topic import MessagePosition, ReadRange, TopicPartition

_MAX_WAIT_MS = 500
_RETRY_WAIT_S = 0.2
_LOSSES = (
    BrokerUnreachableError,
    LeaderNotAvailableError,
    NotLeaderError,
    RequestTimeoutError,
    ShuttingDownError,
)
"""What a read gets whose leader is gone, or has handed over."""


def fetch_chunks(leader: LeaderAddress, whole: ByteRange, fetch_bytes: int) -> Iterator[Chunk]:
    """Fetch a range from its leader; if another broker leads it meanwhile, from that one.

    Args:
        leader: the one that was planned, and brokers that know who leads after it.
        whole: the range.
        fetch_bytes: how much to request at a time.

    Raises:
        DataLossError: some of it is gone since it was planned.
        BrokerUnreachableError, RequestTimeoutError, ServerError: no leader gives anything for as
            long as a response may take, or it refuses.
    """
    partition, timeout_s = whole.partition, leader.connection.timeout_s
    offset = whole.start
    progress_s = time.monotonic()
    with closing(_PlannedCluster(leader)) as cluster:
        while offset < whole.end:
            rest = ReadRange(MessagePosition(offset), MessagePosition(whole.end))
            try:
                with ClusterReader(
                    cluster,
                    cluster.connect,
                    {partition: rest},
                    fetch_bytes=fetch_bytes,
                    max_wait_ms=_MAX_WAIT_MS,
                    leader_wait_s=timeout_s,
                ) as reader:
                    for ready in reader.polls():
                        for one in ready:
                            chunk = Chunk(partition, one.offset, one.data)
                            one.take(len(chunk.data))  # whoever gets the chunk joins the messages
                            offset = one.offset
                            yield chunk
                            progress_s = time.monotonic()
                        if not ready and time.monotonic() - progress_s >= timeout_s:
                            raise _without_progress(cluster, whole)
            except DataLossError:
                raise
            except OffsetOutOfRangeError as error:
                raise DataLossError(
                    f"{partition}: offset {offset} is gone since the read was planned: "
                    f"the log starts at {_first_offset(cluster, partition)}"
                ) from error
            except _LOSSES as error:
                if time.monotonic() - progress_s >= timeout_s:
                    raise _stopped(whole, offset, error) from error
                time.sleep(_RETRY_WAIT_S)
                with suppress(*_LOSSES):  # then the leader known is tried again
                    cluster.find_leaders([partition.topic])


def log_start(leader: LeaderAddress, partition: TopicPartition) -> int:
    """Return the present log start offset of a partition.

    Raises:
        BrokerError: its leader fails.
    """
    with closing(_PlannedCluster(leader)) as cluster:
        return _first_offset(cluster, partition)


def _first_offset(cluster: _PlannedCluster, partition: TopicPartition) -> int:
    with OffsetLister(cluster, cluster.connect) as offsets:
        return offsets.earliest(partition)


def _without_progress(cluster: _PlannedCluster, whole: ByteRange) -> BrokerError:
    """Return the error for a range of which nothing has come for as long as a leader may take.

    A new leader learns from its followers how much is committed, which takes it a while.

    Raises:
        BrokerError: the leader fails.
    """
    with OffsetLister(cluster, cluster.connect) as offsets:
        end = offsets.latest(whole.partition)
    if end >= whole.end:
        return RequestTimeoutError(f"{whole}: its leader gives nothing")
    return DataLossError(
        f"{whole.partition} ends at {end} now, before the planned end of the range, {whole.end}"
    )


def _stopped(whole: ByteRange, offset: int, error: BrokerError) -> BrokerError:
    return type(error)(f"{whole}: stopped at offset {offset}: {error}")


class _PlannedCluster(Cluster):
    """The leader of a partition as it was planned; once that is lost, as brokers say.

    Args:
        planned: the leader, and brokers to ask.
    """

    def __init__(self, planned: LeaderAddress) -> None:
        self._planned = planned
        self._asked: StaticCluster | None = None
        self._has_moved = False

    def close(self) -> None:
        """Close the connections that were used to ask."""
        if self._asked is not None:
            self._asked.close()

    def connect(self, address: BrokerAddress) -> Connection:
        """Return a connection to a broker, opened with the first request."""
        connection = self._planned.connection.connect(address)
        connection.client_id = "pylogctl-spark"
        return connection

    def _brokers(self) -> StaticCluster:
        self._has_moved = True
        if self._asked is None:
            self._asked = StaticCluster(self._planned.brokers, self.connect)
        return self._asked

    def brokers(self) -> list[BrokerAddress]:
        """Return the live brokers, by id."""
        return self._brokers().brokers()

    def topics(self) -> list[str]:
        """Return the topics, by name."""
        return self._brokers().topics()

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return a topic's partitions."""
        return self._brokers().partitions(topic)

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        """Return the broker that serves the partition."""
        return self._brokers().leader(partition) if self._has_moved else self._planned.address

    def leader_id(self, partition: TopicPartition) -> int:
        """Return the id of the leader as far as is known, without asking."""
        if self._asked is None:
            return self._planned.address.id
        return self._asked.leader_id(partition)

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """Ask who leads the partitions of topics."""
        return self._brokers().find_leaders(topics)

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        """Note that the broker called the leader until now is not."""
        self._brokers().note_leader(partition, broker_id)
