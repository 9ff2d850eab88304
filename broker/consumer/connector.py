"""The consumer connector: a member of a consumer group, and its streams of messages.

Creates, starts and stops the parts of a member; each part has a module of its own.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from broker import deadlines
from broker.client.cluster import BRIEFLY_S, Connect
from broker.client.connection import Connection
from broker.client.counts import ClientCounts, ConsumerCounts, MetricsRegistry
from broker.client.damage import DamagedReads
from broker.client.list_offsets import OffsetLister
from broker.client.read_replicas import ReadReplicas
from broker.client.registry_cluster import RegistryCluster
from broker.clock import SystemClock
from broker.consumer.committer import AssignedPartition, AutoCommit
from broker.consumer.config import ConsumerConfig
from broker.consumer.coordinator import ChooseStream, Coordinator
from broker.consumer.fetcher_thread import FetcherPool, FetcherThread, FetchSettings, StartOf
from broker.consumer.membership import (
    Lease,
    Membership,
    TopicFilter,
    filter_subscription,
    make_consumer_id,
    static_subscription,
    validate_group_name,
)
from broker.consumer.offset_store import OffsetStore, RegistryOffsets
from broker.consumer.stream import ConsumerStream
from broker.errors import UNANSWERED, BrokerError, ConfigError
from broker.ids import NO_LEADER
from broker.positions import Mark
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.envelope import open_envelope
from broker.protocol.responses import BrokerAddress
from broker.threads import start_once
from broker.topic import MessagePosition, TopicPartition
from broker.zk.creations import is_current
from broker.zk.registry import Registry
from broker.zk.security import security_of
from broker.zk.session import SessionState
from broker.zk.values import Subscription

logger = logging.getLogger(__name__)

_WITHDRAW_PAUSE_S = 0.5
_RESETS: Mapping[str, StartOf | None] = {
    "smallest": lambda _: Mark.EARLIEST,
    "largest": lambda _: Mark.LATEST,
    "fail": None,
}


class ConsumerConnector:
    """A member of a consumer group.

    Delivery is at least once: positions of finished messages are committed at intervals, and before
    a partition is revoked. A message is finished when the next one is requested from its stream.
    Other members of the group may be 0.7 clients.

    Args:
        config: `group` and `zookeeper` must be set.
        offsets: the store of the group's offsets; ZooKeeper by default.
        registry: started, and left running; by default one is started and stopped here.
        connect: makes connections to brokers; by default with the timeouts of `config`.
        payload_filter: chooses messages to deliver; all by default. Brokers that support it do not
            send the others, which count as finished.
        counts: of the client that this member is a part of; else it has its own.
        commits_ahead: the application calls `commit_ahead`. Finished positions are committed when
            a partition is revoked and at the end, not at intervals.
        start_of: where partitions without an offset start, whichever member reads them first; by
            default as `autooffset.reset` says. Partitions that are created while the group reads
            their topic start at their beginning.

    Raises:
        ConfigError: no group, a group name that is not valid, or no ZooKeeper address.
        InvalidPatternError: the filter's pattern is not valid.
        RegistryUnreachableError: ZooKeeper did not respond in time.

    Source: Kafka 0.7 `ZookeeperConsumerConnector`.
    """

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        offsets: OffsetStore | None = None,
        registry: Registry | None = None,
        connect: Connect | None = None,
        payload_filter: PayloadFilter | None = None,
        counts: ClientCounts | None = None,
        commits_ahead: bool = False,
        start_of: StartOf | None = None,
    ) -> None:
        validate_group_name(config.group)
        self._own_counts = ClientCounts()
        self._ledger = (counts or self._own_counts).consumers(config.group)
        self._counts: list[ConsumerCounts] = []  # of streams, and of this member's work
        if config.consumer_name:
            validate_group_name(config.consumer_name)
        self._config = config
        self._commits_on_revoke = config.auto_commit or commits_ahead
        self._commits_at_intervals = config.auto_commit and not commits_ahead
        self._filter = payload_filter
        self._is_wanted: Callable[[bytes], bool] | None = None
        if payload_filter is not None:
            matches = payload_filter.compile()
            self._is_wanted = lambda stored: matches(open_envelope(stored)[1])
        self._start_of = start_of or _RESETS[config.offset_reset]
        self._connect = connect or self._default_connect
        self._owns_registry = registry is None
        self._registry = registry or start_registry(config)
        self._offsets = offsets or RegistryOffsets(self._registry.session, config.group)
        self.consumer_id = make_consumer_id(config.group, config.consumer_name, SystemClock())
        """The member's id in ZooKeeper."""
        self._lease = Lease()
        self._member: Coordinator | None = None
        self._auto_commit = AutoCommit(self.commit_offsets, config.auto_commit_interval_ms / 1000)
        self._streams: list[ConsumerStream] = []
        self._damaged_reads = DamagedReads(config.leader_wait_ms / 1000)
        self._is_shut_down = False
        self._ledger.places.append(self._places)

    def __enter__(self) -> ConsumerConnector:
        return self

    def __exit__(self, exc_type: object, *exc_info: object) -> None:
        try:
            self.shutdown()
        except BrokerError as error:
            if exc_type is None:
                raise
            logger.error("while shutting down: %s", error)

    def create_message_streams(
        self, stream_counts: Mapping[str, int]
    ) -> dict[str, list[ConsumerStream]]:
        """Join the group and subscribe to topics.

        Args:
            stream_counts: the number of streams for each topic; topics need not exist yet.

        Returns:
            The streams of each topic, each for one thread of the application.

        Raises:
            ConfigError: no topic or stream is requested, or streams were created already.
            InvalidTopicError: a topic's name is not valid.
            RegistryConflictError: another process is a member under the same consumer id.
            RegistryUnreachableError: ZooKeeper did not respond in time.
        """
        subscription = static_subscription(stream_counts)
        by_thread = {
            (topic, f"{self.consumer_id}-{number}"): self._make_stream(f"{topic}-{number}")
            for topic, count in stream_counts.items()
            for number in range(count)
        }
        self._join(subscription, lambda one, thread, _: by_thread[one.topic, thread])
        return {
            topic: [stream for (one, _), stream in by_thread.items() if one == topic]
            for topic in stream_counts
        }

    def create_message_streams_by_filter(
        self, topic_filter: TopicFilter, stream_count: int = 1
    ) -> list[ConsumerStream]:
        """Join the group and subscribe to all topics, existing and future, that a filter includes.

        Args:
            topic_filter: a `Whitelist` or a `Blacklist`.
            stream_count: the number of streams, over which the partitions are spread.

        Raises:
            ConfigError, RegistryConflictError, RegistryUnreachableError: as for topics.
        """
        subscription = filter_subscription(topic_filter, stream_count)
        streams = [self._make_stream(f"filter-{number}") for number in range(stream_count)]
        # The split of each topic begins with the same threads: with many topics of few partitions,
        # a stream for each thread would leave most streams idle.
        self._join(
            subscription, lambda _one, _thread, loads: min(streams, key=lambda s: loads.get(s, 0))
        )
        return streams

    def create_shared_stream(self, topics: Collection[str]) -> ConsumerStream:
        """Join the group and subscribe to topics with one stream for all.

        Raises:
            ConfigError, InvalidTopicError, RegistryConflictError, RegistryUnreachableError: as for
                `create_message_streams`.
        """
        subscription = static_subscription(dict.fromkeys(topics, 1))
        stream = self._make_stream("shared")
        self._join(subscription, lambda _one, _thread, _loads: stream)
        return stream

    def commit_offsets(self) -> set[TopicPartition]:
        """Commit the finished positions that are not committed yet.

        Returns:
            The partitions whose positions were not committed, as they are not this member's now.

        Raises:
            BrokerError: ZooKeeper or the store failed; some may have been committed.
        """
        if self._member is None:
            return set()
        return self._member.committer.commit(self._member.assigned)

    def commit_at(self, assigned: AssignedPartition, position: MessagePosition) -> bool:
        """Commit a position of a partition, whatever is finished; see `Committer`."""
        return self._member is not None and self._member.committer.commit_at(assigned, position)

    def commit_ahead(self, assigned: AssignedPartition, offset: int) -> bool:
        """Commit an offset before the messages in front of it are handed out; see `Committer`."""
        return self._member is not None and self._member.committer.commit_ahead(assigned, offset)

    def unowned(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return which partitions are assigned to no member of the group."""
        if self._member is None:
            return set(partitions)
        return self._member.ownership.unowned(partitions)

    def await_assignment(self, timeout_s: float | None = None) -> bool:
        """Wait until a rebalance has succeeded after the last change; return False on a timeout."""
        return self._member is not None and self._member.await_balanced(timeout_s)

    def assigned(self, partition: TopicPartition) -> AssignedPartition | None:
        """Return a partition whose positions this member may commit, else None."""
        return next((one for one in self._places() if one.partition == partition), None)

    @property
    def is_certain(self) -> bool:
        """Return whether the ZooKeeper session is certain to exist; else the streams wait."""
        return self._lease.is_valid

    @property
    def positions(self) -> dict[TopicPartition, MessagePosition | None]:
        """Return the assigned partitions and their finished positions, None where unknown."""
        assigned = sorted(self._places(), key=lambda one: one.partition)
        return {one.partition: one.position for one in assigned}

    def register_metrics(self, registry: MetricsRegistry, **labels: str) -> None:
        """Have a registry of `prometheus_client` collect this member's metrics until `shutdown`.

        Args:
            registry: such as `prometheus_client.REGISTRY`.
            labels: of all series; they tell clients in one registry apart.

        Raises:
            ArgumentError: a label is malformed, or another client there has the same labels.
        """
        from broker.client.metrics import register  # late: few programs want it

        register(registry, self._own_counts, labels)

    def shutdown(self) -> None:
        """End the streams, commit finished positions, and leave the group; only the first time.

        Raises:
            BrokerError: the commit failed; everything is shut down nevertheless.
        """
        if self._is_shut_down:
            return
        self._is_shut_down = True
        try:
            if self._member is not None:
                self._leave(self._member)
        finally:
            for stream in self._streams:
                stream.end()
            self._ledger.places.remove(self._places)
            for counts in self._counts:
                self._ledger.end(counts)
            self._own_counts.end()
            if self._owns_registry:
                self._registry.stop()

    def _join(self, subscription: Subscription, choose_stream: ChooseStream) -> None:
        if self._member is not None or self._is_shut_down:
            raise ConfigError("a connector creates its streams once")
        config, registry = self._config, self._registry
        membership = Membership(registry.session, config.group, self.consumer_id, subscription)
        cluster = RegistryCluster(registry, self._connect)
        replicas = ReadReplicas(cluster, config.read_from)
        fetch_settings = FetchSettings(
            config.fetch_bytes,
            config.max_wait_ms,
            config.fetch_backoff_ms / 1000,
            self._start_of,
            config.out_of_range_reset or config.offset_reset,
            self._filter,
            config.fetch_min_bytes,
        )

        def broker_of(partition: TopicPartition) -> int:
            if replicas.broker_of(partition) == NO_LEADER:  # there is no home to begin with
                with suppress(*UNANSWERED), deadlines.Limit(BRIEFLY_S):
                    cluster.find_leaders([partition.topic])
            return replicas.broker_of(partition)

        pool = FetcherPool(
            lambda broker_id: FetcherThread(
                broker_id,
                cluster,
                self._connect,
                fetch_settings,
                lambda assigned: is_current(
                    registry.session, assigned.partition, assigned.creation
                ),
                lambda partitions: pool.regroup(partitions),
                replicas,
                self._ledger,
            ),
            broker_of,
            count=config.num_fetchers,
        )
        self._member = Coordinator(
            membership=membership,
            store=self._offsets,
            pool=pool,
            lease=self._lease,
            choose_stream=choose_stream,
            attempts=config.rebalance_retries,
            backoff_s=config.rebalance_backoff_ms / 1000,
            commits_on_revoke=self._commits_on_revoke,
            counts=self._open_counts(),
            commit_counts=self._open_counts(),
        )
        try:
            self._member.register()
        except BrokerError:
            self._withdraw_later(self._member)
            self._member = None
            raise
        self._member.lease_keeper.start()
        if self._commits_at_intervals:
            self._auto_commit.start()
        self._member.start()

    def _leave(self, member: Coordinator) -> None:
        """Stop the threads, commit, and delete the member's nodes or leave them to expire."""
        for stream in self._streams:
            stream.end()
        threads = (member, self._auto_commit, member.lease_keeper)
        for one in threads:
            one.stop()
        for one in threads:  # stopped together, as each may be waiting for ZooKeeper
            one.join(deadlines.join_s())
        member.pool.stop()
        try:
            assigned = member.drop_all()
            if self._commits_on_revoke:
                member.committer.commit(assigned)
        finally:
            try:
                if self._registry.state is SessionState.CONNECTED:
                    _withdraw(member)
                else:
                    self._withdraw_later(member)
            except BrokerError as error:
                if self._owns_registry:
                    logger.warning("registry nodes left to expire: %s", error)
                self._withdraw_later(member)

    def _withdraw_later(self, member: Coordinator) -> None:
        """Delete the nodes of a member once ZooKeeper can be reached, unless they expire."""
        if self._owns_registry:
            return  # its session ends
        session = self._registry.session

        def withdraw() -> None:
            member.join()  # returns at once if it was never started, or has ended
            while not session.is_stopped:
                with suppress(BrokerError):
                    _withdraw(member)
                    return
                time.sleep(_WITHDRAW_PAUSE_S)

        start_once(withdraw, name="group-leaver")

    def _note_restart(self, partition: TopicPartition, offset: int) -> None:
        self._offsets.restart(partition, offset)
        self._auto_commit.note_start()

    def _make_stream(self, name: str) -> ConsumerStream:
        timeout_ms = self._config.consumer_timeout_ms
        stream = ConsumerStream(
            name,
            self._lease,
            max_chunks=self._config.max_queued_chunks,
            timeout_s=None if timeout_ms < 0 else timeout_ms / 1000,
            on_room=self._wake_fetchers,
            on_restart=self._note_restart,
            is_wanted=self._is_wanted,
            next_good_message=self._next_good_message,
            counts=self._open_counts(),
        )
        self._streams.append(stream)
        return stream

    def _open_counts(self) -> ConsumerCounts:
        counts = self._ledger.open()
        self._counts.append(counts)
        return counts

    def _places(self) -> list[AssignedPartition]:
        return [] if self._member is None else self._member.assigned

    def _next_good_message(self, partition: TopicPartition, offset: int) -> int | None:
        with OffsetLister(
            RegistryCluster(self._registry, self._connect),
            self._connect,
            damaged_reads=self._damaged_reads,
        ) as offsets:
            return offsets.next_good_message(partition, offset)

    def _wake_fetchers(self) -> None:
        if self._member is not None:
            self._member.pool.wake()

    def _default_connect(self, address: BrokerAddress) -> Connection:
        return Connection(
            address,
            timeout_s=self._config.socket_timeout_ms / 1000,
            connect_timeout_s=self._config.connect_timeout_ms / 1000,
            receive_bytes=self._config.socket_receive_bytes,
            security=self._config,
        )


def _withdraw(member: Coordinator) -> None:
    """Delete the nodes of a member, so that the others divide its partitions."""
    member.drop_all()
    member.release_all()
    member.membership.deregister()


def start_registry(config: ConsumerConfig, limit_s: float | None = None) -> Registry:
    """Connect to the ZooKeeper of a consumer, within `limit_s` if that is given."""
    if not config.zookeeper:
        raise ConfigError("a consumer group needs a registry: zk.connect is not set")
    timeout_s = config.zk_connection_timeout_ms / 1000
    registry = Registry(
        config.zookeeper,
        session_timeout_ms=config.zk_session_timeout_ms,
        request_timeout_s=timeout_s,
        security=security_of(config),
        speaks_tls=config.has_tls,
    )
    registry.start(timeout_s if limit_s is None else limit_s)
    return registry
