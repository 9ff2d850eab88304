"""Fetches a range from its leader, and from the next leader if that one is lost."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from functools import partial

from broker import errors
from broker.client import backoff
from broker.client.connection import Connection
from broker.client.list_offsets import OffsetLister
from broker.client.static_cluster import StaticCluster
from broker.consumer.chunk import Chunk
from broker.consumer.cluster_reader import ClusterReader
from broker.protocol.responses import BrokerAddress
from broker.spark.options import ConnectionOptions
from broker.spark.reading.ranges import ByteRange, LeaderAddress
from broker.topic import MessagePosition, ReadRange, TopicPartition

_MAX_WAIT_MS = 500
_LOSSES = (
    errors.BrokerUnreachableError,
    errors.LeaderNotAvailableError,
    errors.NotLeaderError,
    errors.RequestTimeoutError,
    errors.ShuttingDownError,
)
"""Errors of a read whose leader is lost, or has resigned."""


def fetch_chunks(leader: LeaderAddress, whole: ByteRange, fetch_bytes: int) -> Iterator[Chunk]:
    """Fetch a range from its planned leader, or from the broker that leads the partition by now.

    Bytes deleted since the plan are a `DataLossError`. If no leader returns data for as long as a
    response may take, the last error is raised.
    """
    partition, timeout_s = whole.partition, leader.connection.timeout_s
    offset = whole.start
    progress_s = time.monotonic()
    waits_s = backoff.waits_s()
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
                            if one.offset > offset:
                                raise errors.DataLossError(
                                    f"{partition}: its broker has lost the messages from offset "
                                    f"{offset} to {one.offset}",
                                    one.offset,
                                )
                            chunk = Chunk(partition, one.offset, one.data)
                            one.take(len(chunk.data))  # the caller joins partial messages
                            offset = one.offset
                            yield chunk
                            progress_s, waits_s = time.monotonic(), backoff.waits_s()
                        if not ready and time.monotonic() - progress_s >= timeout_s:
                            raise _without_progress(cluster, whole)
            except errors.DataLossError:
                raise
            except errors.OffsetOutOfRangeError as error:
                raise errors.DataLossError(
                    f"{partition}: offset {offset} is gone since the read was planned: "
                    f"the log starts at {_first_offset(cluster, partition)}"
                ) from error
            except _LOSSES as error:
                if time.monotonic() - progress_s >= timeout_s:
                    raise type(error)(f"{whole}: stopped at offset {offset}: {error}") from error
                time.sleep(next(waits_s))
                with suppress(*_LOSSES):  # else the known leader is tried again
                    cluster.find_leaders([partition.topic])


def log_start(leader: LeaderAddress, partition: TopicPartition) -> int:
    """Return the present log start offset of a partition."""
    with closing(_PlannedCluster(leader)) as cluster:
        return _first_offset(cluster, partition)


def _first_offset(cluster: _PlannedCluster, partition: TopicPartition) -> int:
    with OffsetLister(cluster, cluster.connect) as offsets:
        return offsets.earliest(partition)


def _without_progress(cluster: _PlannedCluster, whole: ByteRange) -> errors.BrokerError:
    """Return the error for a range whose leader returned no data in time for a response.

    A new leader learns from its followers how much is committed, which takes a while.
    """
    with OffsetLister(cluster, cluster.connect) as offsets:
        end = offsets.latest(whole.partition)
    if end >= whole.end:
        return errors.RequestTimeoutError(f"{whole}: its leader gives nothing")
    return errors.DataLossError(
        f"{whole.partition} ends at {end} now, before the planned end of the range, {whole.end}"
    )


class _PlannedCluster(StaticCluster):
    """The planned leader of a partition; once that is lost, the cluster as its brokers know it."""

    def __init__(self, planned: LeaderAddress) -> None:
        super().__init__(planned.brokers, partial(_connect, planned.connection))
        self._planned: BrokerAddress | None = planned.address

    def leader(self, partition: TopicPartition) -> BrokerAddress:
        return self._planned or super().leader(partition)

    def leader_id(self, partition: TopicPartition) -> int:
        return super().leader_id(partition) if self._planned is None else self._planned.id

    def has_replicas(self, partition: TopicPartition) -> bool:
        return False  # the caller waits for another leader

    def find_leaders(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        self._planned = None
        return super().find_leaders(topics)

    def note_leader(self, partition: TopicPartition, broker_id: int) -> None:
        self._planned = None
        super().note_leader(partition, broker_id)


def _connect(options: ConnectionOptions, address: BrokerAddress) -> Connection:
    connection = options.connect(address)
    connection.client_id = "pylogctl-spark"
    return connection
