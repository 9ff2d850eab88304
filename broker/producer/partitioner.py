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

from broker.client.cluster import Cluster, with_assigned
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    ConfigError,
    RequestTimeoutError,
)
from broker.producer.broker_sender import POLL_S
from broker.topic import TopicPartition, validate_topic_name

_GONE_S = 1.0
_MAX_GONE_S = 30.0

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
    """The partitions of a topic, by home and index, and until when they are used.

    `led` are those that have a leader.
    """

    partitions: list[TopicPartition]
    led: list[TopicPartition]
    until_s: float


class _Gone(NamedTuple):
    """A broker that could not be connected to: until when it is left alone, and for how long."""

    until_s: float
    period_s: float


class _Present(NamedTuple):
    """The partitions of a topic without those of brokers that are gone."""

    of: list[TopicPartition]
    gone: set[int]
    partitions: list[TopicPartition]


class TopicPartitions:
    """The partitions of a producer's topics: asked for once, and again when the cluster changes.

    Of a topic that is nowhere these are partitions 0 of all brokers, as in 0.7. Messages without a
    key leave out partitions without a leader, and brokers that could not be connected to, for a
    second or, if they fail again, up to half a minute; where all are like that, none. Safe for
    several threads if the cluster is.

    Args:
        cluster: where topics are.
        partitioner: chooses one.
        refresh_s: after so long the cluster is asked again for a topic that was nowhere; never,
            if `forget_all` is called when the cluster has changed.
        max_age_s: after so long it is asked again for any topic.
    """

    def __init__(
        self,
        cluster: Cluster,
        partitioner: Partitioner,
        *,
        refresh_s: float = math.inf,
        max_age_s: float = math.inf,
    ) -> None:
        self._cluster = cluster
        self._partitioner = partitioner
        self._refresh_s = refresh_s
        self._max_age_s = max_age_s
        self._known: dict[str, _Known] = {}
        self._last_known: dict[str, list[TopicPartition]] = {}
        self._new_topics: set[str] = set()
        self._gone: dict[int, _Gone] = {}
        self._found_present: dict[str, _Present] = {}

    def choose(self, topic: str, key: bytes | None) -> TopicPartition:
        """Return the partition that the next message with this key goes to.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
            ConfigError: the partitioner returns an index out of range.
        """
        known = self._find(topic)
        if key is not None:
            return self._choose_of(known.partitions, topic, key)
        partitions = known.led or known.partitions
        if self._gone:
            partitions = self._present(partitions) or partitions
        return self._choose_of(partitions, topic, key)

    def _choose_of(
        self, partitions: list[TopicPartition], topic: str, key: bytes | None
    ) -> TopicPartition:
        index = self._partitioner(key, len(partitions))
        if not 0 <= index < len(partitions):
            raise ConfigError(
                f"the partitioner picks place {index} of the {len(partitions)} partitions of "
                f"topic '{topic}'"
            )
        return partitions[index]

    def replacement(self, topic: str, broker_id: int) -> TopicPartition | None:
        """Return a partition on another broker, for messages without a key; None without one.

        Args:
            topic: of the messages.
            broker_id: that could not be connected to.
        """
        others = [
            one
            for one in self._present(self.refresh(topic))
            if self._cluster.leader_id(one) != broker_id
        ]
        return self._choose_of(others, topic, None) if others else None

    def _present(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
        """Return the partitions of a topic whose brokers are not gone."""
        now_s = time.monotonic()
        gone = {broker_id for broker_id, one in self._gone.items() if now_s < one.until_s}
        if not gone or not partitions:
            return partitions
        topic = partitions[0].topic
        found = self._found_present.get(topic)
        if found is None or found.of is not partitions or found.gone != gone:
            present = [one for one in partitions if self._cluster.leader_id(one) not in gone]
            found = self._found_present[topic] = _Present(partitions, gone, present)
        return found.partitions

    def note_presence(self, broker_id: int, is_there: bool) -> None:
        """Note whether a broker could be connected to."""
        if is_there:
            self._gone.pop(broker_id, None)
            return
        now_s = time.monotonic()
        former = self._gone.get(broker_id)
        period_s = _GONE_S
        if former is not None:
            if now_s < former.until_s:
                return
            period_s = min(2 * former.period_s, _MAX_GONE_S)
        self._gone = {**self._gone, broker_id: _Gone(now_s + period_s, period_s)}

    def partitions(self, topic: str) -> list[TopicPartition]:
        """Return the partitions of a topic, or those it can come into being with.

        If all brokers are away they are those it had last: its messages wait for them.

        Raises:
            InvalidTopicError: there can be no such topic.
            BrokerUnreachableError: no broker can be reached.
        """
        return self._find(topic).partitions

    def _find(self, topic: str) -> _Known:
        known = self._known.get(topic)
        if known is None or (known.until_s != math.inf and time.monotonic() > known.until_s):
            known = self._ask(topic, self._known)
        return known

    def _ask(self, topic: str, known: dict[str, _Known]) -> _Known:
        """Ask the cluster, for `known`: `forget_all` may replace that meanwhile."""
        validate_topic_name(topic)
        try:
            led = self._cluster.partitions(topic)
            partitions = with_assigned(self._cluster, topic, led)
        except BrokerError as error:
            if not error.is_retriable or topic not in self._last_known:
                raise
            partitions = self._last_known[topic]  # its brokers may be back soon
            found = known[topic] = _Known(partitions, partitions, time.monotonic() + _GONE_S)
            return found
        until_s = time.monotonic() + self._max_age_s
        if not partitions:
            partitions = led = self._of_new_topic(topic)
            until_s = time.monotonic() + self._refresh_s
            if topic not in self._last_known:
                self._new_topics.add(topic)
        self._last_known[topic] = partitions
        found = known[topic] = _Known(partitions, led, until_s)
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

    def refresh(self, topic: str) -> list[TopicPartition]:
        """Ask the cluster again, and return the partitions of a topic that live brokers have.

        None if no live broker has any: unlike `partitions`, this makes up new ones for a topic
        only if that was nowhere before the producer, then on each broker that has none.
        """
        led = self._cluster.partitions(topic)
        if topic in self._new_topics:
            homes = {one.home for one in led}
            others = [one for one in self._of_new_topic(topic) if one.home not in homes]
            led = sorted([*led, *others])
        if led:
            partitions = with_assigned(self._cluster, topic, led)
            self._known = {topic: _Known(partitions, led, time.monotonic() + self._max_age_s)}
            self._last_known[topic] = partitions
        return led

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
