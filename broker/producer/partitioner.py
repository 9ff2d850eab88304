"""Which partition a message goes to: partitioners, and the partitions they choose from.

A partitioner returns an index into the list of a topic's partitions, sorted by home and index as
0.7's producers sort them; not a partition id.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

from broker.client.cluster import Cluster
from broker.errors import BrokerUnreachableError, ConfigError, RequestTimeoutError
from broker.producer.broker_sender import POLL_S
from broker.topic import TopicPartition, validate_topic_name

Partitioner = Callable[[bytes | None, int], int]
"""Takes the key, if there is one, and the number of partitions; returns an index in 0..n-1."""


def java_string_hash(text: str) -> int:
    """Return Java's `String.hashCode`: 31*h + unit over UTF-16 units, 32 bits signed.

    0.7's default partitioner hashes keys with it.
    """
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def hash_partitioner(key: bytes | None, count: int) -> int:
    """Choose by the hash of the key as 0.7 does, at random without a key.

    Args:
        key: bytes; as text they hash like 0.7's string keys, other bytes as Latin-1.
        count: how many partitions there are, at least 1.

    Returns:
        An index in 0..count-1. 0.7 takes the absolute value of the hash and fails on the one hash
        that has none (KAFKA-1469); we take that one as 0.
    """
    if key is None:
        return int(random.random() * count)  # half the time of `randrange`
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = key.decode("latin-1")
    value = java_string_hash(text)
    return 0 if value == -(1 << 31) else abs(value) % count


def random_partitioner(key: bytes | None, count: int) -> int:
    """Choose at random; ignore keys."""
    return int(random.random() * count)


def round_robin_partitioner() -> Partitioner:
    """Return a partitioner that takes all partitions in turn."""
    turn = itertools.count()

    def choose(key: bytes | None, count: int) -> int:
        return next(turn) % count

    return choose


def sticky_partitioner() -> Partitioner:
    """Return a partitioner that picks one partition at random and stays there.

    One pipe into a topic keeps its order that way. Should there be fewer partitions later, the
    choice moves to one of those.
    """
    chosen = random.random()

    def choose(key: bytes | None, count: int) -> int:
        return int(chosen * count)

    return choose


PARTITIONERS: dict[str, Callable[[], Partitioner]] = {
    "sticky": sticky_partitioner,
    "random": lambda: random_partitioner,
    "round-robin": round_robin_partitioner,
    "hash": lambda: hash_partitioner,
}
"""Makes the partitioner of each name that an option takes."""


class _Known(NamedTuple):
    """The partitions of a topic, by home and index, and until when they are used."""

    partitions: list[TopicPartition]
    until_s: float


class TopicPartitions:
    """The partitions of a producer's topics: asked for once, and again when the cluster changes.

    Of a topic that is nowhere these are partitions 0 of all brokers, as in 0.7. Safe for several
    threads if the cluster is.

    Args:
        cluster: where topics are.
        partitioner: chooses one.
        refresh_s: after so long the cluster is asked again for a topic that was nowhere; never,
            if `forget_all` is called when the cluster has changed.
    """

    def __init__(
        self, cluster: Cluster, partitioner: Partitioner, *, refresh_s: float = math.inf
    ) -> None:
        self._cluster = cluster
        self._partitioner = partitioner
        self._refresh_s = refresh_s
        self._known: dict[str, _Known] = {}
        self._last_known: dict[str, list[TopicPartition]] = {}
        self._new_topics: set[str] = set()

    def choose(self, topic: str, key: bytes | None) -> TopicPartition:
        """Return the partition that the next message with this key goes to.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
            ConfigError: the partitioner returns an index out of range.
        """
        partitions = self.partitions(topic)
        index = self._partitioner(key, len(partitions))
        if not 0 <= index < len(partitions):
            raise ConfigError(
                f"the partitioner picks place {index} of the {len(partitions)} partitions of "
                f"topic '{topic}'"
            )
        return partitions[index]

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic, or those it can come into being with.

        If all brokers are away they are those it had last: its messages wait for them.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        known = self._known.get(topic)
        if known is None or (known.until_s != math.inf and time.monotonic() > known.until_s):
            known = self._ask(topic, self._known)
        return known.partitions

    def _ask(self, topic: str, known: dict[str, _Known]) -> _Known:
        """Ask the cluster, for `known`: `forget_all` may replace that meanwhile."""
        validate_topic_name(topic)
        partitions = self._cluster.partitions(topic)
        until_s = math.inf
        if not partitions:
            partitions = self._of_new_topic(topic)
            until_s = time.monotonic() + self._refresh_s
            if topic not in self._last_known:
                self._new_topics.add(topic)
        self._last_known[topic] = partitions
        found = known[topic] = _Known(partitions, until_s)
        return found

    def _of_new_topic(self, topic: str) -> list[TopicPartition]:
        """Return the partitions for a topic that no live broker has, as in 0.7's producers.

        Without any live broker these are the last known ones: their messages wait.
        """
        brokers = self._cluster.brokers()
        partitions = [TopicPartition(topic, one.id, 0) for one in brokers]
        partitions = partitions or self._last_known.get(topic, [])
        if not partitions:
            raise BrokerUnreachableError(f"there is no live broker to create topic '{topic}' on")
        return partitions

    def forget_all(self) -> None:
        """Ask for every topic again, as the cluster has changed."""
        self._known = {}

    def is_new(self, topic: str) -> bool:
        """Return whether a topic did not exist when the cluster was asked first."""
        return topic in self._new_topics

    def await_known(self, topics: Iterable[str], timeout_s: float) -> None:
        """Wait until consumers can find those of the topics that were new.

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
                time.sleep(POLL_S)
            self._new_topics.discard(topic)
