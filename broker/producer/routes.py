"""Which partitions a producer's messages can go to: looked up once, and again when that changes.

Of a topic that is nowhere these are partitions 0 of all brokers, as in 0.7. May be asked from
several threads if the cluster may.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import NamedTuple

from broker.client.cluster import Cluster
from broker.errors import BrokerUnreachableError, ConfigError, RequestTimeoutError
from broker.producer.partitioner import Partitioner
from broker.producer.readable import PAUSE_S
from broker.topic import TopicPartition, check_topic_name


class Route(NamedTuple):
    """The partitions of a topic, by home and index, and until when they count."""

    partitions: list[TopicPartition]
    until_s: float


class Routes:
    """The partitions of the topics that a producer has to do with.

    Args:
        cluster: where topics are.
        partitioner: picks a partition.
        look_again_s: after so long the partitions of a topic that was nowhere are looked up
            again; never, if `forget_all` says when something has changed.
    """

    def __init__(
        self, cluster: Cluster, partitioner: Partitioner, *, look_again_s: float = math.inf
    ) -> None:
        self._cluster = cluster
        self._partitioner = partitioner
        self._look_again_s = look_again_s
        self._routes: dict[str, Route] = {}
        self._last_known: dict[str, list[TopicPartition]] = {}
        self._new_topics: set[str] = set()

    def choose(self, topic: str, key: bytes | None) -> TopicPartition:
        """Return the partition that the next message with this key goes to.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
            ConfigError: the partitioner picks a place that is not there.
        """
        partitions = self.partitions(topic)
        place = self._partitioner(key, len(partitions))
        if not 0 <= place < len(partitions):
            raise ConfigError(
                f"the partitioner picks place {place} of the {len(partitions)} partitions of "
                f"topic '{topic}'"
            )
        return partitions[place]

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic, or those it can come into being with.

        If all brokers are away they are those it had last: its messages wait for them.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        route = self._routes.get(topic)
        if route is None or (route.until_s != math.inf and time.monotonic() > route.until_s):
            route = self._look_up(topic, self._routes)
        return route.partitions

    def _look_up(self, topic: str, routes: dict[str, Route]) -> Route:
        """Look a topic up, for `routes`: what is forgotten meanwhile must not come back."""
        check_topic_name(topic)
        partitions = self._cluster.partitions(topic)
        until_s = math.inf
        if not partitions:
            partitions = self._of_new_topic(topic)
            until_s = time.monotonic() + self._look_again_s
            if topic not in self._last_known:
                self._new_topics.add(topic)
        self._last_known[topic] = partitions
        route = routes[topic] = Route(partitions, until_s)
        return route

    def _of_new_topic(self, topic: str) -> list[TopicPartition]:
        """Return where a topic goes that no live broker has, as 0.7's producers have it.

        Without any live broker that is where it went last: its messages wait there.
        """
        brokers = self._cluster.brokers()
        partitions = [TopicPartition(topic, one.id, 0) for one in brokers]
        partitions = partitions or self._last_known.get(topic, [])
        if not partitions:
            raise BrokerUnreachableError(f"there is no live broker to create topic '{topic}' on")
        return partitions

    def forget_all(self) -> None:
        """Have everything looked up anew, as something has changed."""
        self._routes = {}

    def is_new(self, topic: str) -> bool:
        """Say whether a topic did not exist when its partitions were first looked up."""
        return topic in self._new_topics

    def await_known(self, topics: Iterable[str], timeout_s: float) -> None:
        """Wait until those of the topics that were new are there for others.

        Raises:
            RequestTimeoutError: one is not, after the timeout.
        """
        for topic in self._new_topics.intersection(topics):
            give_up_s = time.monotonic() + timeout_s
            while not self._cluster.partitions(topic):
                if time.monotonic() >= give_up_s:
                    raise RequestTimeoutError(
                        f"topic '{topic}' is written but not registered after {timeout_s:g}s"
                    )
                time.sleep(PAUSE_S)
            self._new_topics.discard(topic)
