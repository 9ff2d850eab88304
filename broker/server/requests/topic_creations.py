"""Topics created by their first message, if the settings forbid that or ask for replicas."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from broker import errors
from broker.config import BrokerConfig
from broker.log.manager import LogManager
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest, Setting
from broker.server.cluster.cluster_view import ClusterMetadata
from broker.server.cluster.live_brokers import LiveBrokers
from broker.server.cluster.replica_table import ReplicaTable
from broker.server.requests.judge import Rights

logger = logging.getLogger(__name__)

_TIMEOUT_S = 10.0
_MAX_REFUSALS = 1000


class TopicCreations:
    """Decides about first messages, and has the controller create topics in the background.

    Meanwhile producers are told that the topic has no leader, so that they try again.
    """

    def __init__(
        self,
        config: BrokerConfig,
        logs: LogManager,
        replicas: ReplicaTable,
        brokers: LiveBrokers,
        snapshot: Callable[[], ClusterMetadata],
        settings_of: Callable[[str], Mapping[str, str]],
    ) -> None:
        self._me = config.broker_id
        self._is_allowed = config.auto_create_topics
        self._factor = config.default_replication_factor
        self._logs = logs
        self._replicas = replicas
        self._brokers = brokers
        self._snapshot = snapshot
        self._settings_of = settings_of  # in ZooKeeper, for a topic to be created
        self._lock = threading.Lock()  # guards the next two
        self._under_way: set[str] = set()
        self._refusals: dict[str, errors.ServerError] = {}  # of the controller, each raised once
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="topic-creations")

    def stop(self) -> None:
        """Ask for no more topics."""
        self._worker.shutdown(wait=False, cancel_futures=True)

    def needs_controller(self, topic: str) -> bool:
        """Return whether a first message has to wait for the controller to create the topic."""
        if self._factor == 1 or not self._is_allowed:
            return False
        if topic in self._logs.topics or topic in self._replicas.topics:
            return False
        # a topic that other brokers have without replicas gets none here
        return self._snapshot().topic(topic) is None

    def refusal(self, topic: str, rights: Rights) -> errors.ServerError | None:
        """Return why a client may not make a topic by its first message; None if that is off."""
        return rights.creation_refusal(topic) if self._is_allowed else None

    def validate(self, topic: str) -> None:
        """Validate that a message may be appended to a topic here, though it may be its first."""
        if topic in self._logs.topics:
            return
        if not self._is_allowed:
            raise errors.UnknownTopicError(
                f"there is no topic '{topic}' on broker {self._me}, and its "
                "auto.create.topics.enable is false: create the topic first (pylogctl topic create)"
            )
        if not self.needs_controller(topic):
            return
        with self._lock:
            if (refusal := self._refusals.pop(topic, None)) is not None:
                raise refusal
            if topic not in self._under_way:
                self._under_way.add(topic)
                self._worker.submit(self._create, topic)
        raise errors.LeaderNotAvailableError(
            f"topic '{topic}' is being created with {self._factor} replicas; try again"
        )

    def _create(self, topic: str) -> None:
        refusal: errors.ServerError | None = None
        about: dict[str, object] = {"topic": topic}
        try:
            # as many partitions at each home as a topic without replicas gets
            count = self._logs.topics.partition_count(topic) * len(self._snapshot().brokers)
            settings = tuple(Setting(*item) for item in self._settings_of(topic).items())
            request = CreateReplicatedTopicRequest(topic, count, self._factor, settings)
            connection = self._brokers.connect(self._brokers.controller_id, timeout_s=_TIMEOUT_S)
            if connection is None:
                raise errors.NotControllerError("no controller is known at present")
            with closing(connection):
                connection.call(request)
            logger.info("topic '%(topic)s' was created by its first message", about)
        except errors.TopicExistsError as error:  # this broker hears of it soon
            about["error"] = error
            logger.info("topic '%(topic)s' was not created by its first message: %(error)s", about)
        except errors.ServerError as error:
            about["error"] = error
            if error.is_retriable:  # by the next message
                logger.warning("topic '%(topic)s' is not created yet: %(error)s", about)
            else:
                logger.error(
                    "topic '%(topic)s' is not created by its first message: %(error)s", about
                )
                refusal = error
        except errors.BrokerError as error:
            about["error"] = error
            logger.warning("whether topic '%(topic)s' was created is not known: %(error)s", about)
        with self._lock:
            self._under_way.discard(topic)
            if refusal is not None and len(self._refusals) < _MAX_REFUSALS:
                self._refusals[topic] = refusal
