"""A topic under load in a cluster that is disturbed, and the verdict at the end."""

from __future__ import annotations

import time
from collections.abc import Collection
from functools import partial

from broker.errors import NO_ERROR, BrokerError, error_for_code
from broker.protocol.client_requests import (
    ClusterMetadataRequest,
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
)
from broker.protocol.responses import LISTED_OFFSETS, ClusterMetadataResponse
from broker.topic import TopicPartition
from tests.integration.replication.history import Outcome, Seen, contradictions, violations
from tests.integration.replication.load import Connections, LoggedProducer, LoggedReader
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.waiting import wait_until


class Trial:
    """A topic under load in a cluster, and the verdict at its end.

    Args:
        cluster: with at least as many brokers as replicas.
        partition_count: of the topic.
        factor: replicas of each partition.
        min_isr: below which nothing is committed.
        reads_back: whether producers read what was acknowledged.
        padding_bytes: at the end of each payload.
        name: tells its messages from those of another trial.
    """

    def __init__(
        self,
        cluster: ReplicatedCluster,
        *,
        partition_count: int = 3,
        factor: int = 3,
        min_isr: int = 2,
        reads_back: bool = False,
        padding_bytes: int = 0,
        name: str = "",
    ) -> None:
        self.cluster = cluster
        self._began_ms = int(time.time() * 1000)  # what was before is of a former topic
        self.partitions = cluster.create_topic(
            "t", partition_count, factor, min_insync_replicas=str(min_isr)
        )
        cluster.await_full_isr(self.partitions)
        self.producers = [
            LoggedProducer(
                *(cluster, self.partitions, f"{name}p{n}"),
                reads_back=reads_back,
                padding_bytes=padding_bytes,
            )
            for n in range(2)
        ]
        self.readers = [LoggedReader(cluster, self.partitions, "r0")]
        self.await_progress()

    def await_progress(
        self, count: int = 20, *, producers: Collection[LoggedProducer] | None = None
    ) -> None:
        """Wait until every producer, or each of some, has so many more messages acknowledged."""
        waited_for = self.producers if producers is None else producers
        goals = [(one, one.acknowledged_count + count) for one in waited_for]
        wait_until(
            lambda: all(one.acknowledged_count >= goal for one, goal in goals),
            "progress of the producers",
        )

    def verdict(self, *, stopped: Collection[LoggedProducer] = ()) -> None:
        """Heal, stop, read everything again, and check the history and the logs.

        Args:
            stopped: producers that send no more.
        """
        self.cluster.network.heal()
        self.cluster.await_full_isr(self.partitions)
        running = [one for one in self.producers if one not in stopped]
        self.await_progress(producers=running)
        for producer in running:
            producer.stop()
        for reader in self.readers:
            reader.stop()
        final = self.read_all()
        sent = [one for producer in self.producers for one in producer.sent]
        seen = [one for reader in self.readers for one in reader.seen]
        counts = {outcome: sum(one.outcome is outcome for one in sent) for outcome in Outcome}
        gap_s = max(one.longest_gap_s() for one in self.producers)
        print(f"{counts}, read {len(seen)} and {len(final)}, longest gap {gap_s:.1f} s")
        assert violations(sent, seen, final, log_starts={}) == []
        assert [text for one in self.producers for text in one.misread] == []
        assert [text for one in self.readers for text in one.lowered] == []
        for partition in self.partitions:
            self.cluster.await_equal_logs(partition)
        changes = [one for one in self.cluster.changes() if one.time_ms >= self._began_ms]
        assert contradictions(changes) == []
        self.await_one_view()

    def await_one_view(self) -> None:
        """Wait until every broker tells of the leaders and in-sync replicas in ZooKeeper (I21)."""

        def is_told_by_all() -> bool:
            truth = self._truth()
            return all(self._view_of(broker_id) == truth for broker_id in self.cluster.brokers)

        wait_until(is_told_by_all, "metadata as in ZooKeeper on all brokers")

    def _truth(self) -> dict[str, tuple[int, frozenset[int]]]:
        found = {}
        for partition in self.partitions:
            state = self.cluster.state(partition)
            assert state is not None
            found[partition.name] = (state.leader, frozenset(state.isr))
        return found

    def _view_of(self, broker_id: int) -> dict[str, tuple[int, frozenset[int]]]:
        topic = self.partitions[0].topic
        connection = self.cluster.connect(broker_id)
        try:
            body = connection.call(ClusterMetadataRequest((topic,)))
        except BrokerError:
            return {}
        finally:
            connection.close()
        (told,) = ClusterMetadataResponse.decode(body).topics
        return {one.partition.name: (one.leader, frozenset(one.isr)) for one in told.partitions}

    def read_all(self) -> list[Seen]:
        """Return what a new reader gets until the ends of all partitions."""
        ends = self._latest_offsets()
        reader = LoggedReader(self.cluster, self.partitions, "final")
        try:
            wait_until(
                lambda: all(reader.offsets[p] >= end for p, end in ends.items()), "a full read"
            )
        finally:
            reader.stop()
        return reader.seen

    def _latest_offsets(self) -> dict[TopicPartition, int]:
        """Return where each partition ends, which a new leader tells once it knows it."""
        found: dict[TopicPartition, int] = {}
        connections = Connections(self.cluster)

        def ask(partition: TopicPartition) -> bool:
            request = ListOffsetsRequest((OffsetQuery(partition, OffsetKind.LATEST, 0),))
            try:
                connection = connections.to_leader(partition)
                (listed,) = LISTED_OFFSETS.decode(connection.call(request))
                if listed.error != NO_ERROR:
                    raise error_for_code(listed.error, f"the latest offset of {partition}")
            except BrokerError as error:
                if not error.is_retriable:
                    raise
                connections.forget(partition)
                return False
            found[partition] = listed.offset
            return True

        try:
            for partition in self.partitions:
                wait_until(partial(ask, partition), f"the latest offset of {partition}")
        finally:
            connections.close()
        return found
