"""A consumer group in ZooKeeper: subscriptions, members, owner nodes, and the session's lease.

Paths and values are those of Kafka 0.7. `broker.consumer.coordinator` decides when to use them.
All that reads or writes ZooKeeper raises `RegistryUnreachableError` without a response in time; a
request for several nodes may have changed some of them.

A process can be frozen for longer than its ZooKeeper session lasts, and then continues without
knowing it. So the lease is valid only until one session timeout after the last confirmation that
the session exists, by a clock that runs while the process is frozen.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from broker import errors
from broker.clock import Clock
from broker.consumer.assignment import thread_ids
from broker.patterns import Pattern
from broker.threads import StoppableThread
from broker.topic import TopicPartition, unregistrable_in, validate_topic_name
from broker.zk import paths, values
from broker.zk.creations import Creations, read_creations
from broker.zk.nodes import NodeStat
from broker.zk.replicated_values import decode_assignment
from broker.zk.session import Session
from broker.zk.watched_reads import WatchedReads

# what `joined_filter` writes, which RE2 has not, but 0.7's members read
_UNLESS, _BUT, _END = "(?!(?:", ")$)(?:", ")"


class TopicFilter:
    """Chooses topics by a regular expression on the whole name.

    Args:
        kind: whether the expression names the topics to include or to exclude.
        text: the expression; a comma means "or", blanks and outer quotes are ignored. 0.7's
            members of a group read it as a Java expression: use syntax common to both.

    Raises:
        ConfigError: the text is not a regular expression.

    Source: Kafka 0.7 `TopicFilter`.
    """

    def __init__(self, kind: values.FilterKind, text: str) -> None:
        self.kind = kind
        self.regex = values.normalize_filter_regex(text)
        try:
            self._pattern, self._unless = _compile(self.regex)
        except re.error as error:
            raise errors.ConfigError(f"illegal topic filter '{text}': {error}") from error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"

    def allows(self, topic: str) -> bool:
        """Return whether the filter includes a topic."""
        is_found = self._pattern.fullmatch(topic) and not (
            self._unless and self._unless.fullmatch(topic)
        )
        return bool(is_found) is (self.kind is values.FilterKind.WHITELIST)


def joined_filter(include: Sequence[str], exclude: Sequence[str]) -> str:
    """Return the expression of topics that any of `include` matches, if given, and no other one."""
    wanted = "|".join(f"(?:{one})" for one in include) or ".*"
    if not exclude:
        return wanted
    return _UNLESS + "|".join(f"(?:{one})" for one in exclude) + _BUT + wanted + _END


def _compile(text: str) -> tuple[Pattern | re.Pattern[str], Pattern | None]:
    """Return the pattern of wanted topics, and that of those among them that are not."""
    with suppress(errors.InvalidPatternError):
        return Pattern(text), None
    if text.startswith(_UNLESS) and text.endswith(_END):
        parts = text.removeprefix(_UNLESS).removesuffix(_END).split(_BUT)
        for index in range(1, len(parts)):  # a bracket in a pattern may look the same
            with suppress(errors.InvalidPatternError):
                unwanted = Pattern(_BUT.join(parts[:index]))
                return Pattern(_BUT.join(parts[index:])), unwanted
    return re.compile(text), None  # of 0.7's members


class Whitelist(TopicFilter):
    """Includes the topics whose whole name matches."""

    def __init__(self, text: str) -> None:
        super().__init__(values.FilterKind.WHITELIST, text)


class Blacklist(TopicFilter):
    """Excludes the topics whose whole name matches."""

    def __init__(self, text: str) -> None:
        super().__init__(values.FilterKind.BLACKLIST, text)


def make_consumer_id(group: str, name: str, clock: Clock) -> str:
    """Return the id of a member: named by `consumerid`, or by host, time and a random number."""
    # source: Kafka 0.7 `ZookeeperConsumerConnector`, `consumerIdString`
    if name:
        return f"{group}_{name}"
    digits = f"{uuid.uuid4().int >> 64:x}"[:8]
    return f"{group}_{socket.gethostname()}-{clock.time_ms()}-{digits}"


def validate_group_name(group: str) -> None:
    """Validate the name of a group or of a member, which becomes part of a ZooKeeper path."""
    is_node = group and "/" not in group and group not in {".", "..", "zookeeper"}
    if not is_node or not group.isprintable() or unregistrable_in(group):
        raise errors.ConfigError(f"{group!r} cannot be the name of a consumer group or of a member")


def static_subscription(stream_counts: Mapping[str, int]) -> values.StaticSubscription:
    """Return the subscription of a member that names its topics, at least one."""
    if not stream_counts:
        raise errors.ConfigError("no topic to consume")
    for topic, count in stream_counts.items():
        validate_topic_name(topic)
        _validate_stream_count(count, f"topic '{topic}'")
    return values.StaticSubscription(dict(stream_counts))


def filter_subscription(topic_filter: TopicFilter, stream_count: int) -> values.FilterSubscription:
    """Return the subscription of a member that chooses topics by a filter."""
    _validate_stream_count(stream_count, f"filter '{topic_filter.regex}'")
    return values.FilterSubscription(topic_filter.kind, stream_count, topic_filter.regex)


def _validate_stream_count(count: int, subject: str) -> None:
    if count < 1:
        raise errors.ConfigError(f"{subject} needs at least 1 stream, not {count}")


def topics_of(subscription: values.Subscription, all_topics: Iterable[str]) -> dict[str, int]:
    """Return how many streams a member has of each topic; filters choose from `all_topics`.

    The filter of a 0.7 member may be a Java expression that is not valid in Python: a
    `ConfigError`.
    """
    if isinstance(subscription, values.StaticSubscription):
        return dict(subscription.stream_counts)
    chosen = TopicFilter(subscription.kind, subscription.regex)
    return {topic: subscription.stream_count for topic in all_topics if chosen.allows(topic)}


def threads_by_topic(
    members: Mapping[str, values.Subscription], all_topics: Iterable[str]
) -> dict[str, list[str]]:
    """Return the ids of all threads of a group that read each topic; see `topics_of`."""
    threads: dict[str, list[str]] = {}
    topics = list(all_topics)
    for consumer_id, subscription in members.items():
        for topic, count in topics_of(subscription, topics).items():
            threads.setdefault(topic, []).extend(thread_ids(consumer_id, count))
    return threads


def topics_of_kafka07(
    members: Iterable[values.Subscription], all_topics: Iterable[str]
) -> set[str]:
    """Return the topics that members of Kafka 0.7 read, who find partitions of live homes only."""
    topics = list(all_topics)
    return {topic for one in members if one.is_kafka07 for topic in topics_of(one, topics)}


logger = logging.getLogger(__name__)

_REGISTER_ATTEMPTS = 3


@dataclass(eq=False, repr=False)
class Membership:
    """The node that registers this process as a member of a group; `session` must be started."""

    session: Session
    group: str
    consumer_id: str
    subscription: values.Subscription

    def __post_init__(self) -> None:
        self._path = paths.consumer(self.group, self.consumer_id)
        self._value = values.encode_subscription(self.subscription)
        # the session in which the node was created; None before, and after `deregister`
        self.session_id: int | None = None

    def register(self) -> None:
        """Create the node, again if the session expires meanwhile."""
        # source: Kafka 0.7 `ZookeeperConsumerConnector.registerConsumerInZK`
        for _ in range(_REGISTER_ATTEMPTS):
            if self._try_register():
                return
        raise errors.RegistryUnreachableError("the registry session expired while registering")

    def _try_register(self) -> bool:
        """Return whether the node is of the current session."""
        session_id = self.session.session_id
        self.session_id = session_id  # also if no response comes: the node may be made later
        try:
            self.session.create(self._path, self._value, ephemeral=True)
        except errors.RegistryConflictError as error:
            stat = self.session.exists(self._path)
            if self.session.session_id != session_id:
                return False
            if stat is None or stat.ephemeral_owner != session_id:
                raise errors.RegistryConflictError(
                    f"consumer id '{self.consumer_id}' is already registered in group "
                    f"'{self.group}': choose another consumerid, or if that process is gone, "
                    "wait until its session has ended"
                ) from error
        return self.session.session_id == session_id

    def is_registered(self) -> bool:
        """Return whether the node exists, in the session in which it was created."""
        stat = self.session.exists(self._path)
        return stat is not None and stat.ephemeral_owner == self.session_id

    def deregister(self) -> None:
        """Delete the node, if this process created it; else it expires with the session."""
        if self.session_id is not None and self.is_registered():
            with suppress(errors.RegistryNodeNotFoundError):
                self.session.delete(self._path)
        self.session_id = None


@dataclass(eq=False, repr=False)
class Ownership:
    """The owner nodes of a group, which name the consumer thread of each partition.

    Nodes of the session of `membership` that name one of its threads are this member's: other
    members of the process may share the session.
    """

    membership: Membership

    def __post_init__(self) -> None:
        self.session, self.group = self.membership.session, self.membership.group

    def claim(
        self, threads: Mapping[TopicPartition, str], *, on_release: Callable[[], None]
    ) -> set[TopicPartition]:
        """Create owner nodes for threads of this member; return the partitions that have one now.

        The others are still assigned to other members: `on_release` is called when their nodes go.
        """
        nodes = {paths.owner(self.group, partition): partition for partition in threads}
        existing = self.session.create_many(
            {path: values.encode_owner(threads[partition]) for path, partition in nodes.items()}
        )
        found = self.session.get_many(existing)
        unclaimed = set(existing) - found.keys()  # deleted meanwhile
        for path, (value, stat) in found.items():
            if not self._is_own(value, stat):
                unclaimed.add(path)
                logger.info("%s is still owned by %s", nodes[path], values.decode_owner(value))
            elif value != values.encode_owner(threads[nodes[path]]):
                self.session.set(path, values.encode_owner(threads[nodes[path]]))
        for path in unclaimed:
            if self.session.exists(path, watch=on_release) is None:
                on_release()
        return {nodes[path] for path in nodes.keys() - unclaimed}

    def owned(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return which partitions have an owner node of this member."""
        nodes = {paths.owner(self.group, partition): partition for partition in partitions}
        found = self.session.get_many(nodes)
        return {nodes[path] for path, (value, stat) in found.items() if self._is_own(value, stat)}

    def _is_own(self, value: bytes, stat: NodeStat) -> bool:
        member = self.membership
        if stat.ephemeral_owner != member.session_id:
            return False
        return values.decode_owner(value).rpartition("-")[0] == member.consumer_id

    def unowned(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return which partitions have no owner node."""
        nodes = {paths.owner(self.group, partition): partition for partition in partitions}
        return {nodes[path] for path in nodes.keys() - self.session.get_many(nodes).keys()}

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Delete the owner nodes of this member among those of some partitions."""
        owned = self.owned(partitions)
        self.session.delete_many(paths.owner(self.group, partition) for partition in owned)


class MemberView(NamedTuple):
    """A group and its topics, as one member sees them."""

    partitions: dict[str, list[TopicPartition]]  # of each topic that the member reads
    threads: dict[str, list[str]]  # of the whole group, by topic
    creations: Creations
    new: set[TopicPartition]  # created while the group was reading their topic


class _Member(NamedTuple):
    """A member as its node says; `zxid` is the number of the change that created the node."""

    subscription: values.Subscription
    zxid: int


@dataclass(eq=False, repr=False)
class GroupView:
    """Reads a group's members and topics, and watches them.

    `subscription` is that of the member whose topics are read. `on_change` is called when something
    may have changed since the last read; it runs in the session's thread and must not block.
    """

    session: Session
    group: str
    subscription: values.Subscription
    on_change: Callable[[], None]

    def __post_init__(self) -> None:
        self._watched = WatchedReads(self.session, lambda _path: self.on_change())
        # by topic, the zxid of the first member that read it
        self._read_since: dict[str, int] = {}

    def read(self) -> MemberView:
        """Read the partitions and threads of the member's topics."""
        # source: Kafka 0.7 `ZookeeperConsumerConnector.rebalance`, `ZkUtils.getConsumersPerTopic`
        members = self._members()
        if isinstance(self.subscription, values.FilterSubscription):
            # as members of 0.7 find them: those of the format kafka, which have no homes, are named
            names = self._watched.children([paths.TOPICS])[paths.TOPICS]
            topics = list(topics_of(self.subscription, names))
        else:
            topics = list(self.subscription.stream_counts)
        subscriptions = {one: member.subscription for one, member in members.items()}
        threads = threads_by_topic(subscriptions, topics)
        self._note_readers(members.values(), topics)
        of_live_homes = topics_of_kafka07(subscriptions.values(), topics)
        partitions = self._partitions(topics, of_live_homes)
        creations = read_creations(self.session, chain.from_iterable(partitions.values()))
        return MemberView(
            partitions,
            {topic: threads.get(topic, []) for topic in topics},
            creations,
            self._new_among(partitions, creations),
        )

    def _note_readers(self, members: Iterable[_Member], topics: Collection[str]) -> None:
        """Record since when topics are read; the records of former members stay."""
        for subscription, zxid in members:
            for topic in topics_of(subscription, topics):
                self._read_since[topic] = min(zxid, self._read_since.get(topic, zxid))

    def _new_among(
        self, partitions: Mapping[str, Collection[TopicPartition]], creations: Creations
    ) -> set[TopicPartition]:
        """Return the partitions that were created after a member began to read their topic."""
        # The controller creates a node for each partition with replicas. For brokers of Kafka 0.7
        # only the node of a whole new topic tells when it was created.
        read = {topic: found for topic, found in partitions.items() if topic in self._read_since}
        nodes = {
            one: paths.replicated_partition(one)
            if creations.is_of_controller(one)
            else paths.topic(one.topic)
            for found in read.values()
            for one in found
            if creations.is_of_controller(one) or not creations.is_recorded(one)
        }
        stats = self.session.get_many(set(nodes.values()))

        def created_zxid(one: TopicPartition) -> int:
            if one in nodes:
                return stats[nodes[one]][1].czxid if nodes[one] in stats else 0
            creation = creations.of(one)
            return 0 if creation is None else creation.zxid

        return {
            one
            for topic, found in read.items()
            for one in found
            if created_zxid(one) > self._read_since[topic]
        }

    def _members(self) -> dict[str, _Member]:
        parent = paths.consumer_ids(self.group)
        ids = self._watched.children([parent])[parent]
        nodes = {paths.consumer(self.group, one): one for one in ids}
        members = {}
        for path, (value, stat) in self.session.get_many(nodes).items():
            try:
                subscription = values.decode_subscription(value)
                threads_by_topic({nodes[path]: subscription}, ())
            except (errors.CoordinationError, errors.ConfigError) as error:
                logger.warning("member %s of %s left out: %s", nodes[path], self.group, error)
                subscription = values.StaticSubscription({})
            members[nodes[path]] = _Member(subscription, stat.czxid)
        return members

    def _partitions(
        self, topics: Collection[str], of_live_homes: Collection[str]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of topics that the group splits."""
        # Those with replicas are the group's whether their home broker is live or not, and
        # whichever broker leads them: no change of a leader makes a group rebalance. Members of
        # Kafka 0.7, who also read `of_live_homes`, find the partitions of live homes only, and all
        # members must split the same.
        partitions = self._registered(topics)
        for topic, replicated in self._replicated(topics, partitions).items():
            if topic not in of_live_homes:
                partitions[topic] = sorted({*partitions[topic], *replicated})
        return partitions

    def _replicated(
        self, topics: Collection[str], registered: Mapping[str, Collection[TopicPartition]]
    ) -> dict[str, list[TopicPartition]]:
        """Return the partitions of topics with replicas, and watch these."""
        nodes = {paths.replicated_topic(topic): topic for topic in topics}
        found = self._watched.values(nodes)
        for path in nodes.keys() - found.keys():
            # A topic gets replicas before a home broker registers it, and keeps them while it
            # exists: only one that no broker registers is watched for replicas that are added.
            if not registered[nodes[path]] and self._watched.exists(path):
                self.on_change()  # it was created between the two reads
        partitions = {}
        for path, (value, stat) in found.items():
            try:
                assignment = decode_assignment(nodes[path], value, stat.version)
            except errors.CoordinationError as error:
                logger.warning("%s; left out", error)
                continue
            partitions[nodes[path]] = list(assignment.replicas)
        return partitions

    def _registered(self, topics: Collection[str]) -> dict[str, list[TopicPartition]]:
        """Return the partitions of topics on all brokers that have registered them, live or not."""
        # All nodes of a broker expire with its session. Reading its id node as well could only make
        # members disagree that read at different times.
        homes = self._watched.children([paths.topic(topic) for topic in topics])
        nodes = {
            f"{paths.topic(topic)}/{name}": (topic, name)
            for topic in topics
            for name in homes[paths.topic(topic)]
        }
        # a node deleted meanwhile is missing; the watch on its parent fires
        counts = self._watched.values(nodes)
        partitions: dict[str, list[TopicPartition]] = {topic: [] for topic in topics}
        for path, (topic, name) in nodes.items():
            if path not in counts:
                continue
            try:
                count = values.decode_number(counts[path][0], f"partition count in {path}")
                home = values.decode_number(name.encode(), f"broker id in {path}")
            except errors.CoordinationError as error:
                logger.warning("%s; left out", error)
                continue
            partitions[topic] += [TopicPartition(topic, home, index) for index in range(count)]
        return partitions


_CHECKS_PER_TIMEOUT = 4


class Lease:
    """The time until which this process's ZooKeeper session is certain to exist."""

    __slots__ = ("_changed", "_is_closed", "until_s")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_closed = False
        self.until_s = 0.0  # monotonic; read without a lock before each message is handed out

    @property
    def is_valid(self) -> bool:
        """Return whether the session is certain to exist now."""
        return time.monotonic() < self.until_s

    def renew(self, until_s: float) -> None:
        """Extend the lease, after the session was confirmed."""
        with self._changed:
            self.until_s = until_s
            self._changed.notify_all()

    def lose(self) -> None:
        """End the lease at once: the session or the member's node is gone."""
        self.until_s = 0.0

    def close(self) -> None:
        """End all waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until the lease is valid or closed; return False on a timeout."""
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed or self.is_valid, timeout_s)


@dataclass(eq=False, repr=False)
class LeaseKeeper(StoppableThread):
    """Renews a lease while the node of a member is registered, else calls `on_lost`; a thread."""

    lease: Lease
    membership: Membership
    on_lost: Callable[[], None]

    def __post_init__(self) -> None:
        super().__init__("group-lease")

    def stop(self) -> None:
        """Ask the thread to stop, and end all waits for the lease."""
        super().stop()
        self.lease.close()

    def _loop(self) -> None:
        """Renew the lease until the thread is stopped."""
        session = self.membership.session
        while not self._stopping.wait(session.session_timeout_s / _CHECKS_PER_TIMEOUT):
            # ZooKeeper handles the request at this time or later
            asked_s = time.monotonic()
            try:
                is_registered = self.membership.is_registered()
            except errors.BrokerError as error:
                if not self._stopping.is_set():
                    logger.warning("registry session not confirmed: %s", error)
                continue
            if is_registered:
                self.lease.renew(asked_s + session.session_timeout_s)
            else:
                self.lease.lose()
                self.on_lost()
