"""A broker in its cluster: its registration, its topics and settings in ZooKeeper, its controller.

A broker without ZooKeeper has none of them, and only tells its clients of its topics.
"""

from __future__ import annotations

import base64
import logging
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from broker.clock import Clock
from broker.config import BrokerConfig
from broker.endpoints import PLAIN_LISTENER, Endpoint
from broker.errors import ConfigError, RegistryUnreachableError, ServerError, TopicExistsError
from broker.log.manager import LogManager
from broker.protocol.responses import BrokerAddress
from broker.security.rules import StoredRules
from broker.server.cluster import cluster_keys, cluster_view, replica_manager, state_change_log
from broker.threads import StoppableThread
from broker.topic import FORMAT_KAFKA, unregistrable_in

if TYPE_CHECKING:
    from broker.server.cluster import controller_requests, controller_thread, followed
    from broker.zk.registry import Registry, WatchedRegistry
    from broker.zk.session import Session

logger = logging.getLogger(__name__)

_SESSION_WAIT_S = 2.0
"""How long a shutdown waits for a lost ZooKeeper: its servers may be about to elect."""


@dataclass(eq=False)
class ClusterMembership:
    """What stands in ZooKeeper of one broker; `view` is what its clients are told."""

    logs: LogManager
    replicas: replica_manager.ReplicaManager
    view: cluster_view.ClusterView
    changes: state_change_log.StateChangeLog
    clock: Clock
    keys: cluster_keys.ClusterKeyStore
    _feed: WatchedRegistry | None = field(default=None, init=False)
    # without replicas, created here, and not here any more
    _lost_topics: set[str] = field(default_factory=set, init=False)
    # None without ZooKeeper, and before the start
    registry: Registry | None = field(default=None, init=False)
    settings: followed.SettingsFollower | None = field(default=None, init=False)
    rules: followed.RulesFollower | None = field(default=None, init=False)  # also without rules
    open_nodes: followed.OpenNodesFollower | None = field(default=None, init=False)
    controller: controller_thread.ControllerThread | None = field(default=None, init=False)

    @property
    def has_session(self) -> bool:
        """Whether there is a session with ZooKeeper now."""
        return self.registry is not None and self.registry.session.state == "connected"

    def open(
        self,
        config: BrokerConfig,
        apply: Callable[[followed.Overrides], None],
        apply_rules: Callable[[StoredRules, int], None],
    ) -> None:
        """Connect to ZooKeeper, join its cluster, and apply the settings and rules there."""
        directories = self.logs.directories
        if not config.zookeeper_connect:
            if config.enforces_rules:
                raise ConfigError("acl.enable needs zk.connect: the rules are in ZooKeeper")
            if (factor := config.default_replication_factor) > 1:
                raise ConfigError(
                    f"default.replication.factor={factor} needs zk.connect: replicas are on other "
                    "brokers of a cluster"
                )
            self.keys.open(directories.first_path(), directories.cluster_id() or "", None)
            return
        # late: kazoo, which a broker may do without
        from broker.server.cluster import followed
        from broker.zk.registry import Registry
        from broker.zk.security import security_of

        self.registry = Registry(
            config.zookeeper_connect,
            session_timeout_ms=config.zk_session_timeout_ms,
            security=security_of(config, sets_acls=config.zk_set_acl),
        )
        self.registry.start(timeout_s=config.zk_connection_timeout_ms / 1000)
        proposed_id = directories.cluster_id() or _new_cluster_id()
        cluster_id = self.registry.join_cluster(proposed_id)
        directories.join_cluster(cluster_id)
        self.keys.stored_epoch = self._stored_epoch
        self.keys.open(directories.first_path(), cluster_id, self.registry.session)
        self.settings = followed.SettingsFollower(
            self.registry.session, config.broker_id, directories.first_path(), apply
        )
        self.replicas.records.settings_of = self.settings.last_good
        self.settings.load()
        if config.enforces_rules:
            self.rules = followed.RulesFollower(self.registry.session, self.clock, apply_rules)
            self.rules.load()
        if config.zk_set_acl:
            self.open_nodes = followed.OpenNodesFollower(self.registry.session)

    def _stored_epoch(self, broker_id: int) -> int | None:
        from broker.zk import paths  # late: kazoo

        stat = self._present_registry().session.exists(paths.replicated_broker(broker_id))
        return None if stat is None else stat.czxid

    def live_ids(self) -> list[int]:
        """Return the live brokers that can be homes of a new topic."""
        from broker.zk import paths, values  # late: kazoo

        # brokers of 0.7 are not there: they create their part when a message comes
        session = self._present_registry().session
        others = values.broker_ids(session.children_if_any(paths.REPLICATED_BROKERS))
        return sorted({*others, self.logs.table.home})

    def create_topic(self, topic: str, homes: Mapping[int, int], timeout_s: float) -> None:
        """Record all partitions of a topic without replicas; wait until live homes have them.

        Raises:
            TopicExistsError: a home has the topic.
            RegistryUnreachableError: there is no session with ZooKeeper.
        """
        self._present_registry().create_topic(topic, homes, timeout_s)

    def is_home(self, topic: str) -> bool:
        """Return whether the registry has partitions of a topic on this broker."""
        registry = self._present_registry()
        return self.logs.table.home in registry.homes_of([topic])[topic]

    def _present_registry(self) -> Registry:
        if self.registry is None or not self.has_session:
            raise RegistryUnreachableError("there is no session with ZooKeeper at present")
        return self.registry

    def session(self) -> Session:
        """Return the session with ZooKeeper; `RegistryUnreachableError` if there is none now."""
        return self._present_registry().session

    def settings_of(self, topic: str) -> Mapping[str, str]:
        """Return the settings of a topic in ZooKeeper, by name."""
        return {} if self.settings is None else self.settings.last_good(topic)

    def register(
        self, config: BrokerConfig, address: BrokerAddress, endpoints: tuple[Endpoint, ...]
    ) -> controller_requests.ControllerRequests | None:
        """Register the broker and its topics, and follow those of others.

        Return who handles requests to the controller.
        """
        topics = self.logs.topics
        topics.on_new = self.note_topic
        topics.on_deleted = self._note_deleted_topic
        topics.on_removed = self._note_removed_topic
        for topic in topics.names():
            self._show_topic(topic)
        registry = self.registry
        if registry is None:
            return None
        from broker.zk.registration import recorded_topics  # late: kazoo

        self.replicas.table.registered_epoch = lambda: registry.broker_epoch
        self.replicas.orders.registry_id = lambda: registry.registry_id

        def note_loss_known() -> None:
            self.logs.is_loss_known = True
            for directory in self.logs.directories.online:
                directory.note_orders()
            registry.mark_clean()

        self.replicas.orders.on_first_orders = note_loss_known
        recorded = recorded_topics(registry.session, address.id)
        self._lost_topics = recorded - set(topics.names())
        creator = f"{address.host}-{self.clock.time_ms()}"
        registry.register_broker(
            address.id,
            address.host,
            address.port,
            creator=self.logs.directories.creator_token(creator),
            rack=config.rack,
            is_clean=self.logs.loaded.was_clean,
            has_replicas=lambda: self.logs.table.has_replicas,
            on_assigned=self._create_assigned,
            endpoints=_for_brokers_first(endpoints, config.inter_broker_listener),
        )
        for topic in topics.names():
            self._register_topic(registry, topic, is_new=False)
        registry.await_registered(config.zk_connection_timeout_ms / 1000)
        self._feed = cluster_view.follow_registry(registry, self.view)
        self._feed.start()
        return self._join_controllers(config, registry)

    def _join_controllers(
        self, config: BrokerConfig, registry: Registry
    ) -> controller_requests.ControllerRequests:
        """Prepare to stand for election as the controller, and accept its pushes."""
        assert self.settings is not None
        from broker.server.cluster import controller_requests, controller_thread  # late: kazoo
        from broker.zk.controller_election import stored_epoch  # late: kazoo
        from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo

        topics = ReplicatedTopics(registry.session, self.settings.last_good)
        names = topics.topics()
        expected = topics.partitions(
            names, lambda topic: self.logs.settings.of(topic).min_insync_replicas
        )
        self.replicas.orders.expect_topics(names, (one.partition for one in expected))
        self.view.apply_partition_states(expected)
        self.replicas.orders.stored_controller_epoch = lambda: stored_epoch(
            self._present_registry().session
        )
        self.controller = controller_thread.ControllerThread(
            *(registry, topics, config, self.clock, self._note_controller, self.changes),
            self.replicas.brokers,
        )
        self.replicas.brokers.on_noted.append(self.controller.note_live)
        return controller_requests.ControllerRequests(self.controller, registry, topics)

    @property
    def _followers(self) -> list[StoppableThread]:
        every = (self.settings, self.rules, self.open_nodes, self.keys.follower, self._feed)
        return [one for one in every if one is not None]

    def start(self) -> None:
        """Stand for election as the controller, and follow changes of settings and rules."""
        if self.controller is not None:
            self.controller.start()
        for one in self._followers:
            if one is not self._feed:  # that runs since the broker has registered
                one.start()

    def _note_controller(self, broker_id: int) -> None:
        self.view.set_controller(broker_id)
        self.replicas.brokers.controller_id = broker_id

    def note_topic(self, topic: str, *, is_new: bool = True) -> None:
        """Tell of a topic that is new, or has another number of partitions."""
        if topic in self._lost_topics:
            self._lost_topics.discard(topic)
            logger.error("topic '%s' is new here: messages on a former disk are lost", topic)
            for index in range(self.logs.topics.partition_count(topic)):
                with suppress(ServerError):  # whoever uses the partition gets the error
                    self.logs.creation.get_or_create(topic, index).note_lost_former()
        self._show_topic(topic)
        if self.registry is not None:
            self._register_topic(self.registry, topic, is_new=is_new)

    def _create_assigned(self, topic: str, partition_count: int) -> None:
        """Create this broker's part of a topic that another one has recorded as a whole."""
        with suppress(TopicExistsError):
            self.logs.creation.create_topic(topic, partition_count)

    def _note_deleted_topic(self, topic: str) -> None:
        self.view.set_own_topic(topic, 0)
        if self.registry is not None:
            self.registry.deregister_topic(topic)

    def _note_removed_topic(self, topic: str) -> None:
        if self.registry is not None:
            self.registry.note_assigned([topic])  # recorded again, perhaps, in the meantime

    def _show_topic(self, topic: str) -> None:
        topics = self.logs.topics
        count, creation_id = topics.partition_count(topic), topics.creation_id(topic)
        self.view.set_own_topic(topic, count, creation_id, format=topics.format_of(topic))

    def _register_topic(self, registry: Registry, topic: str, *, is_new: bool) -> None:
        if found := unregistrable_in(topic):  # made before there was a registry
            logger.error("topic %r is not registered: ZooKeeper takes no %s", topic, found)
            return
        topics = self.logs.topics
        if topics.format_of(topic) == FORMAT_KAFKA:
            logger.error(
                "topic '%s' is not registered: this broker made it without ZooKeeper, where topics "
                "of the format kafka are created with replicas; copy its messages to such a topic",
                topic,
            )
            return
        count, creation_id = topics.partition_count(topic), topics.creation_id(topic)
        registry.register_topic(topic, count, creation_id=creation_id, is_new=is_new)

    # The end, in this order.

    def await_session(self) -> str | None:
        """Wait for a lost session to return; return that it is away if it does not."""
        assert self.registry is not None
        return None if self.registry.prepare_stop(_SESSION_WAIT_S) else "it is away"

    def leave_office(self) -> None:
        """Have another broker become the controller."""
        if self.controller is not None:
            self.controller.request_stop()
            self.controller.join()

    def deregister(self) -> None:
        """Tell clients, by the registry, that the broker leaves."""
        if self.registry is not None:
            self.registry.deregister_broker()

    def request_stop(self) -> None:
        """Follow settings and topics no longer."""
        for one in self._followers:
            one.stop()
        self.view.close()

    def join(self) -> None:
        """Wait for the threads, which end at the latest with the session."""
        for one in self._followers:
            one.join()


def _for_brokers_first(endpoints: tuple[Endpoint, ...], listener: str) -> tuple[Endpoint, ...]:
    """Return the endpoints to register, none if there is only the one that 0.7 knows."""
    if [one.listener for one in endpoints] == [PLAIN_LISTENER]:
        return ()
    return tuple(sorted(endpoints, key=lambda one: one.listener != listener))


def _new_cluster_id() -> str:
    """Return an id for a cluster that has none, in the form of later Kafka."""
    return base64.urlsafe_b64encode(os.urandom(16)).rstrip(b"=").decode()
