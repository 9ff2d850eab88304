"""Topics created by their first message, or by a client that is about to send it.

Without ZooKeeper this broker creates the topic. In a cluster it is created as a whole: all its
partitions are in the registry before a client can find any of them, so that all clients spread
keys over the same ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from broker import errors
from broker.config import BrokerConfig
from broker.log.creation import validate_new_topic
from broker.log.manager import LogManager
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest, SettingText
from broker.protocol.extension_requests import CreateTopicRequest
from broker.security.principal import Principal
from broker.server.cluster.cluster_view import ClusterMetadata
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.requests.creation_limits import CreationLimits
from broker.server.requests.judge import Rights
from broker.threads import logged
from broker.topic import FORMAT_KAFKA, validate_new_topic_name

logger = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_POLL_S = 0.005
_RETRY_S = 0.05
_WORKERS = 4
_ABSENT_S = 1.0
_MAX_ASKING = 100
_CHARGED_S = 5.0
"""How long further first messages of a topic cost nothing: it is about to be created."""
_MAX_CHARGED = 10_000


class Membership(Protocol):
    """This broker in its cluster; see `ClusterMembership`."""

    def live_ids(self) -> list[int]:
        """Return the live brokers that can be homes of a new topic."""

    def create_topic(self, topic: str, homes: Mapping[int, int], timeout_s: float) -> None:
        """Record all partitions of a topic without replicas; wait until live homes have them."""

    def is_home(self, topic: str) -> bool:
        """Return whether the registry has partitions of a topic on this broker."""

    def settings_of(self, topic: str) -> Mapping[str, str]:
        """Return the settings in ZooKeeper, for a topic to be created."""


@dataclass(eq=False)
class TopicCreations:
    """Decides about first messages, and creates topics in the background."""

    config: BrokerConfig
    logs: LogManager
    replicas: ReplicaTable
    brokers: LiveBrokers
    snapshot: Callable[[], ClusterMetadata]
    membership: Membership
    limits: CreationLimits

    def __post_init__(self) -> None:
        self._me = self.config.broker_id
        self._is_clustered = bool(self.config.zookeeper_connect)
        self._lock = threading.Lock()  # guards the next three
        self._charged_until_s: dict[str, float] = {}
        self._asking: set[str] = set()
        self._absent_until_s: dict[str, float] = {}
        self.workers = ThreadPoolExecutor(_WORKERS, thread_name_prefix="topic-creations")
        """For what waits until other brokers have a topic."""

    def stop(self) -> None:
        """Create no more topics."""
        self.workers.shutdown(wait=False, cancel_futures=True)

    def needs_cluster(self, topic: str) -> bool:
        """Return whether a first message has to wait until the cluster has the topic."""
        if not self._is_clustered or not self.config.auto_create_topics:
            return False
        if topic in self.logs.topics or topic in self.replicas.topics:
            return False
        # a topic that other brokers have gets another home here, as in 0.7
        return self.snapshot().topic(topic) is None

    def refusal(self, topic: str, rights: Rights) -> errors.ServerError | None:
        """Return why a client may not make a topic by its first message; None if that is off."""
        return rights.creation_refusal(topic) if self.config.auto_create_topics else None

    def excess(self, topic: str, who: Principal | None) -> errors.ServerError | None:
        """Return why a first message may not create a topic now; None if it may."""
        if not self.config.auto_create_topics:
            return None
        with self._lock:
            now_s = time.monotonic()
            if now_s < self._charged_until_s.get(topic, 0.0):
                return None  # by another connection's first message, or this one's attempt before
            try:
                self.limits.take(who, topic, self.logs.topics.partition_count(topic))
            except errors.TooManyTopicsError as error:
                return error
            if len(self._charged_until_s) >= _MAX_CHARGED:
                self._charged_until_s.clear()
            self._charged_until_s[topic] = now_s + _CHARGED_S
        return None

    def validate_allowed(self, topic: str) -> None:
        """Validate that a first message of 0.7 may create the topic here."""
        if not self.config.auto_create_topics:
            raise errors.UnknownTopicError(
                f"there is no topic '{topic}' on broker {self._me}, and its "
                "auto.create.topics.enable is false: create the topic first (pylogctl topic create)"
            )

    def absence(self, topic: str) -> errors.ServerError:
        """Return the error for a publish to a topic that this broker does not have.

        Another broker may have shown the topic to the client before this one has heard of it: so
        the registry is asked, and meanwhile the client is told to try again.
        """
        now_s = time.monotonic()
        with self._lock:
            is_absent = now_s < self._absent_until_s.get(topic, 0.0)
            if self._is_clustered and not is_absent:
                if topic not in self._asking and len(self._asking) < _MAX_ASKING:
                    self._asking.add(topic)
                    self.workers.submit(logged(partial(self._ask_registry, topic)))
                return errors.LeaderNotAvailableError(
                    f"topic '{topic}' is not on broker {self._me}, perhaps not yet; try again"
                )
        return errors.UnknownTopicError(
            f"there is no topic '{topic}' on broker {self._me}: it was deleted, or never created"
        )

    def _ask_registry(self, topic: str) -> None:
        """Note for a while that the registry has no partition of a topic on this broker."""
        is_assigned = True
        try:
            is_assigned = self.membership.is_home(topic)
        except errors.BrokerError as error:
            logger.warning("whether topic '%s' exists is not known: %s", topic, error)
        finally:
            now_s = time.monotonic()
            with self._lock:
                self._asking.discard(topic)
                if not is_assigned:
                    kept = self._absent_until_s.items()
                    self._absent_until_s = {one: end_s for one, end_s in kept if end_s > now_s}
                    self._absent_until_s[topic] = now_s + _ABSENT_S

    def carry_out(self, request: CreateTopicRequest, who: Principal | None) -> tuple[int, ...]:
        """Create a topic as a client asks; return the brokers that have it by that.

        Args:
            who: whose limits count; None without any.

        Raises:
            ServerError: it is refused, or cannot be created now.
        """
        try:
            return self._carry_out(request, who)
        except errors.ServerError:
            raise
        except errors.CoordinationError as error:  # it names servers and nodes of ZooKeeper
            logger.warning("topic '%s' was not created: %s", request.topic, error)
            raise errors.LeaderNotAvailableError(
                f"topic '{request.topic}' cannot be created now, try again: ZooKeeper does not "
                f"carry it out, as the log of broker {self._me} says"
            ) from error
        except errors.BrokerError as error:  # of the controller
            raise errors.LeaderNotAvailableError(
                f"topic '{request.topic}' cannot be created now, try again: {error}"
            ) from error

    def _carry_out(self, request: CreateTopicRequest, who: Principal | None) -> tuple[int, ...]:
        topic, count = request.topic, request.partition_count
        if not count and not request.homes:
            self.create(topic, who, request.format)
            self._validate_format(request)
            return ()
        if topic in self.replicas.topics:
            raise errors.TopicExistsError(
                f"topic '{topic}' exists with replicas: the controller adds partitions"
            )
        format = request.format or self.config.log_format
        homes = dict(request.homes)
        here = homes.get(self._me, count)
        is_only_here = not homes or not self._is_clustered
        for one in (here,) if is_only_here else homes.values():
            validate_new_topic(topic, one, self.config.max_topic_name_length, format)
        if format == FORMAT_KAFKA and self._is_clustered:
            if homes:
                raise errors.InvalidRequestError(
                    f"topic '{topic}' of the format {format} has no partitions at chosen brokers: "
                    "ask the controller for replicas (version 1 of the request, or `pylogctl topic "
                    "create --replication-factor`)"
                )
            with self.limits.charged(who, topic, count):
                self._have_replicated(topic, count, format)
            return ()
        if not is_only_here:
            here = max(homes.values())  # so that homes on other brokers count as well
        with self.limits.charged(None if topic in self.logs.topics else who, topic, here):
            if is_only_here:
                self.logs.creation.create_topic(topic, here, format=format)
                return (self._me,)
            self._create_in_cluster(topic, homes)
        return tuple(sorted(homes))

    def _validate_format(self, request: CreateTopicRequest) -> None:
        """Validate that a topic has the format that a client has asked for, if it has asked."""
        found = self.snapshot().topic(request.topic)
        if request.format and found is not None and found.format != request.format:
            raise errors.TopicExistsError(
                f"topic '{request.topic}' exists with the format {found.format}, which it has for "
                "life"
            )

    def create(self, topic: str, who: Principal | None = None, format: str = "") -> None:
        """Create a topic as its first message would, unless it exists; wait for all live brokers.

        Without a format it gets that of the broker's settings.

        Raises:
            BrokerError: it is refused, or cannot be created now.
        """
        if topic in self.logs.topics or self.snapshot().has(topic):
            return
        format = format or self.config.log_format
        validate_new_topic_name(topic, self.config.max_topic_name_length, format)
        self.validate_allowed(topic)
        # as many partitions at each home as its settings say here
        count = self.logs.topics.partition_count(topic)
        # another client asked for it, too
        with suppress(errors.TopicExistsError), self.limits.charged(who, topic, count):
            if not self._is_clustered:
                self.logs.creation.create_topic(topic, count, format=format)
            elif format == FORMAT_KAFKA:
                self._have_replicated(topic, count, format)
            elif self.config.default_replication_factor == 1:
                self._create_in_cluster(topic, dict.fromkeys(self.membership.live_ids(), count))
            else:
                self._have_replicated(topic, count * len(self.snapshot().brokers), format)
            logger.info("topic '%s' was created by its first message", topic)

    def _create_in_cluster(self, topic: str, homes: Mapping[int, int]) -> None:
        """Create a topic without replicas, also right behind the deletion of a former one."""
        give_up_s = time.monotonic() + _TIMEOUT_S
        while True:
            try:
                self.membership.create_topic(topic, homes, _TIMEOUT_S)
            except errors.TopicExistsError:
                if self.snapshot().has(topic) or time.monotonic() > give_up_s:
                    raise
                time.sleep(_RETRY_S)  # its homes are about to remove the former one's record
            else:
                break
        self._await_shown(topic)

    def _have_replicated(self, topic: str, count: int, format: str) -> None:
        """Have the controller create a topic with so many partitions."""
        settings = tuple(SettingText(*item) for item in self.membership.settings_of(topic).items())
        request = CreateReplicatedTopicRequest(
            topic, count, self.config.default_replication_factor, settings, format
        )
        connection = self.brokers.connect(self.brokers.controller_id, timeout_s=_TIMEOUT_S)
        if connection is None:
            raise errors.NotControllerError("no controller is known at present")
        with closing(connection):
            connection.call(request)
        self._await_shown(topic)

    def _await_shown(self, topic: str) -> None:
        """Wait until the clients of this broker find a topic that was created."""
        give_up_s = time.monotonic() + _TIMEOUT_S
        while not self.snapshot().has(topic):
            if time.monotonic() > give_up_s:
                raise errors.LeaderNotAvailableError(
                    f"broker {self._me} has not yet got its part of topic '{topic}'; try again"
                )
            time.sleep(_POLL_S)
