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
from contextlib import suppress
from typing import NamedTuple

from broker import deadlines, errors
from broker.client.cluster import Cluster, with_assigned
from broker.producer.settings import ProducerSettings
from broker.topic import TopicPartition, validate_topic_name

_GONE_S = 1.0
_MAX_GONE_S = 30.0
_REFRESH_S = 1.0  # until brokers of 0.7 have a topic
_RENEWAL_S = 1.0  # for a look at partitions that are known already
POLL_S = 0.02  # between two requests for whether sets, or a topic, are visible yet

# takes the key, if there is one, and the number of partitions; returns an index in 0..n-1
Partitioner = Callable[[bytes | None, int], int]


def java_string_hash(text: str) -> int:
    """Return Java's `String.hashCode`: 31*h + unit over UTF-16 units, 32 bits signed."""
    # 0.7's default partitioner hashes keys with it
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def hash_partitioner(key: bytes | None, count: int) -> int:
    """Choose by the hash of the key as 0.7 does, at random without a key."""
    # keys hash as text, like 0.7's string keys; bytes that are not UTF-8, as Latin-1
    if key is None:
        return int(random.random() * count)  # half the time of `randrange`
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = key.decode("latin-1")
    value = java_string_hash(text)
    # 0.7 takes the absolute value and fails on the one hash that has none (KAFKA-1469); here 0
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
    """Return a partitioner that picks one partition at random and keeps to it."""
    # A pipe into a topic keeps its order that way. If there are fewer partitions later, the choice
    # moves to one of those.
    chosen = random.random()

    def choose(key: bytes | None, count: int) -> int:
        return int(chosen * count)

    return choose


# by the name that options take
PARTITIONERS: dict[str, Callable[[], Partitioner]] = {
    "sticky": sticky_partitioner,
    "random": lambda: random_partitioner,
    "round-robin": round_robin_partitioner,
    "hash": lambda: hash_partitioner,
}


class Known(NamedTuple):
    """A topic's partitions by home and index, all and those with a leader; when they expire."""

    partitions: list[TopicPartition]
    led: list[TopicPartition]
    until_s: float


class _Gone(NamedTuple):
    """A broker that could not be connected to: until when it is left out, and for how long."""

    until_s: float
    period_s: float


class _Present(NamedTuple):
    """The partitions of a topic without those of brokers that are gone."""

    of: list[TopicPartition]
    gone: set[int]
    partitions: list[TopicPartition]


class TopicPartitions:
    """The partitions of a producer's topics: read once, and again when the cluster changes.

    A topic that does not exist is created first, so that its partitions are known. Brokers of 0.7
    create it with its first message: of such a topic these are partitions 0 of all brokers, as in
    0.7, until it is there. Messages without a key skip partitions without a leader, and brokers
    that could not be connected to: for a second or, if they fail again, up to half a minute; but
    not if that leaves none. Safe for several threads if the cluster is.

    Partitions of any topic are read again after the `max_age_s` of the settings; never, if
    `forget_all` is called when the cluster has changed.
    """

    def __init__(
        self, cluster: Cluster, settings: ProducerSettings, partitioner: Partitioner
    ) -> None:
        self._cluster = cluster
        self._partitioner = partitioner
        self._creates = settings.creates_topics
        self._max_age_s = settings.max_age_s
        self._known: dict[str, Known] = {}
        self._last_known: dict[str, list[TopicPartition]] = {}
        self._asked_s: dict[str, float] = {}  # when the partitions of each topic were read
        self._new_topics: set[str] = set()
        self._first_leaders: dict[TopicPartition, int] = {}
        self._gone: dict[int, _Gone] = {}  # replaced, never changed: others iterate over it
        self._found_present: dict[str, _Present] = {}

    def choose(self, topic: str, key: bytes | None, known: Known | None = None) -> TopicPartition:
        """Return the partition that the next message with this key goes to.

        With `known`, the partitions of the topic, it never waits.
        """
        if known is None:
            known = self.find(topic)
        if key is not None:
            return self._choose_of(known.partitions, topic, key)
        partitions = known.led or known.partitions
        if self._gone:
            partitions = self._present(partitions) or partitions
        return self._choose_of(partitions, topic, key)

    def _choose_of(
        self, partitions: list[TopicPartition], topic: str, key: bytes | None
    ) -> TopicPartition:
        count = len(partitions)
        try:
            index = self._partitioner(key, count)
            if not 0 <= index < count:
                name = getattr(self._partitioner, "title", "the partitioner")
                raise errors.PluginError(f"{name} picks place {index} of the {count} partitions")
        except errors.PluginError as error:
            shown = (
                "a message without a key" if key is None else f"the message with key {key!r:.80}"
            )
            raise error.about(f"{shown} for topic '{topic}'") from error
        return partitions[index]

    def replacement(self, topic: str, broker_id: int) -> TopicPartition | None:
        """Return a partition on another broker, for messages without a key; None without one."""
        others = [
            one
            for one in self._present(self.refresh(topic))
            if self._cluster.leader_id(one) != broker_id
        ]
        return self._choose_of(others, topic, None) if others else None

    def _present(self, partitions: list[TopicPartition]) -> list[TopicPartition]:
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

    def first_leader(self, partition: TopicPartition) -> int:
        """Return the broker that led a partition when it was first asked for, whoever leads now.

        It takes the place of a home: what queues messages by it keeps their order.
        """
        found = self._first_leaders.get(partition)
        if found is None:
            leader = self._cluster.leader_id(partition)
            found = self._first_leaders.setdefault(partition, leader)
        return found

    def note_presence(self, broker_id: int, is_there: bool) -> None:
        """Note whether a broker could be connected to."""
        if is_there:
            if broker_id in self._gone:
                self._gone = {one: gone for one, gone in self._gone.items() if one != broker_id}
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
        """Return the partitions of a topic, or those it can be created with."""
        # while all brokers are away they are the last known ones: its messages wait for them
        return self.find(topic).partitions

    def find(self, topic: str) -> Known:
        """Return the partitions of a topic, read if they are not in memory."""
        return self.in_memory(topic) or self._ask(topic, self._known)

    def in_memory(self, topic: str) -> Known | None:
        """Return the partitions of a topic, without a request; None if they are to be read."""
        known = self._known.get(topic)
        if known is None or (known.until_s != math.inf and time.monotonic() > known.until_s):
            return None
        return known

    def have_records(self, topic: str) -> bool:
        """Return whether a topic, whose partitions are in memory, is of format `kafka`."""
        known = self._known.get(topic)
        return known is not None and known.partitions[0].has_records

    def expired(self, topic: str) -> Known | None:
        """Return the partitions of a topic as they were last known, if they ever were."""
        if (partitions := self._last_known.get(topic)) is None:
            return None
        return self._known.get(topic) or Known(partitions, partitions, 0.0)

    def _ask(self, topic: str, known: dict[str, Known]) -> Known:
        """Read a topic's partitions into `known`, which `forget_all` may replace meanwhile."""
        validate_topic_name(topic)
        self._asked_s[topic] = time.monotonic()
        last_known = self._last_known.get(topic, [])
        partitions: list[TopicPartition] = []
        led: list[TopicPartition] = []
        try:
            led, partitions = self._read(topic)
            if not partitions and not last_known and self._creates:
                self._cluster.create(topic)
                led, partitions = self._read(topic)
        except errors.BrokerError as error:
            if not error.is_retriable or not last_known:
                raise
        until_s = time.monotonic() + self._max_age_s
        if not partitions and last_known:
            # its brokers may be back soon; they refuse messages to a topic that was deleted
            partitions = led = last_known
            until_s = time.monotonic() + _GONE_S
        elif not partitions:
            partitions = led = self._of_new_topic(topic)
            until_s = time.monotonic() + _REFRESH_S
            self._new_topics.add(topic)
        self._last_known[topic] = partitions
        found = known[topic] = Known(partitions, led, until_s)
        return found

    def _read(self, topic: str) -> tuple[list[TopicPartition], list[TopicPartition]]:
        """Return the partitions of a topic that have a leader, and all of them."""
        led = self._cluster.partitions(topic)
        return led, with_assigned(self._cluster, topic, led)

    def _of_new_topic(self, topic: str) -> list[TopicPartition]:
        # brokers of 0.7 create it with its first message
        partitions = [TopicPartition(topic, one.id, 0) for one in self._cluster.brokers()]
        partitions = partitions or self._last_known.get(topic, [])
        if not partitions:
            raise errors.BrokerUnreachableError(
                f"there is no live broker to create topic '{topic}' on"
            )
        return partitions

    def refresh(self, topic: str) -> list[TopicPartition]:
        """Read the partitions of a topic again, and return those that live brokers have.

        Empty if no live broker has any: unlike `partitions`, this adds new ones only for a topic
        that was on no broker before the producer, then on each broker that has none.
        """
        led, partitions = self._read(topic)
        if topic in self._new_topics:
            homes = {one.home for one in led}
            others = [one for one in self._of_new_topic(topic) if one.home not in homes]
            led, partitions = sorted([*led, *others]), sorted({*partitions, *others})
        if led:
            self._known = {topic: Known(partitions, led, time.monotonic() + self._max_age_s)}
            self._last_known[topic] = partitions
        return led

    def has_age(self, topic: str, age_s: float) -> bool:
        """Return whether the partitions of a topic were read so long ago."""
        now_s = time.monotonic()
        return age_s != math.inf and now_s - self._asked_s.get(topic, now_s) >= age_s

    def renew(self, topic: str, age_s: float) -> None:
        """Read the partitions of a topic again once those known have this age, or keep them."""
        if not self.has_age(topic, age_s):
            return
        now_s = self._asked_s[topic] = time.monotonic()
        with suppress(errors.BrokerError), deadlines.Limit(_RENEWAL_S):
            led, partitions = self._read(topic)
            if partitions:
                self._known[topic] = Known(partitions, led, now_s + self._max_age_s)
                self._last_known[topic] = partitions

    def forget_all(self) -> None:
        """Read every topic again, as the cluster has changed."""
        self._known = {}

    def is_new(self, topic: str) -> bool:
        """Return whether brokers of 0.7 create a topic with the first message of this producer."""
        return topic in self._new_topics

    def await_known(self, topics: Iterable[str], timeout_s: float) -> None:
        """Wait, up to the timeout for each, until consumers can find the topics that were new."""
        for topic in self._new_topics.intersection(topics):
            give_up_s = time.monotonic() + timeout_s
            while not self._cluster.partitions(topic):
                if time.monotonic() >= give_up_s:
                    raise errors.RequestTimeoutError(
                        f"topic '{topic}' is written but not registered after {timeout_s:g}s"
                    )
                time.sleep(POLL_S)
            self._new_topics.discard(topic)
