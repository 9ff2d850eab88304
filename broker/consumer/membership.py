"""A consumer group in ZooKeeper: subscriptions, members, partition owners, and the session's lease.

Paths and values are those of Kafka 0.7. When to act on them is the coordinator's subject.

A process can be frozen for longer than its ZooKeeper session lasts, and then continues without
knowing it. So the lease is valid only until the last sign of life is one session timeout old, by a
clock that runs while the process is frozen.
"""

from __future__ import annotations

import logging
import re
import socket
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple, TypeVar

from broker.clock import Clock
from broker.consumer.assignment import thread_ids
from broker.errors import (
    BrokerError,
    ConfigError,
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
    RegistryUnreachableError,
)
from broker.topic import TopicPartition, validate_topic_name
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import (
    FilterKind,
    FilterSubscription,
    StaticSubscription,
    Subscription,
    decode_number,
    decode_owner,
    decode_subscription,
    encode_owner,
    encode_subscription,
    normalize_filter_regex,
)


class TopicFilter:
    """Chooses topics by a regular expression on the whole name.

    Args:
        kind: whether the expression names the topics to take, or those to leave out.
        text: the expression; a comma means "or", blanks and outer quotes do not count. 0.7's
            members of a group read it as a Java expression, so keep to what both understand.

    Raises:
        ConfigError: it is no regular expression.

    Source: Kafka 0.7 `TopicFilter`.
    """

    def __init__(self, kind: FilterKind, text: str) -> None:
        self.kind = kind
        self.regex = normalize_filter_regex(text)
        try:
            self._pattern = re.compile(self.regex)
        except re.error as error:
            raise ConfigError(f"illegal topic filter '{text}': {error}") from error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"

    def allows(self, topic: str) -> bool:
        """Say whether the filter takes a topic."""
        return bool(self._pattern.fullmatch(topic)) is (self.kind is FilterKind.WHITELIST)


class Whitelist(TopicFilter):
    """Takes the topics whose whole name matches.

    Args:
        text: see `TopicFilter`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(FilterKind.WHITELIST, text)


class Blacklist(TopicFilter):
    """Takes the topics whose whole name does not match.

    Args:
        text: see `TopicFilter`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(FilterKind.BLACKLIST, text)


def make_consumer_id(group: str, name: str, clock: Clock) -> str:
    """Return the id of a member.

    Args:
        group: the group's name.
        name: 0.7's `consumerid`; empty to have one made of host name, time and chance.
        clock: tells the time.

    Source: Kafka 0.7 `ZookeeperConsumerConnector`, `consumerIdString`.
    """
    if name:
        return f"{group}_{name}"
    digits = f"{uuid.uuid4().int >> 64:x}"[:8]
    return f"{group}_{socket.gethostname()}-{clock.time_ms()}-{digits}"


def check_group_name(group: str) -> None:
    """Check that a group, or a member of one, may have this name: it is a step of a path.

    Raises:
        ConfigError: it may not.
    """
    if not group or "/" in group or group in {".", "..", "zookeeper"} or not group.isprintable():
        raise ConfigError(f"'{group}' cannot be the name of a consumer group or of a member")


def static_subscription(stream_counts: Mapping[str, int]) -> StaticSubscription:
    """Return the subscription of a member that names its topics.

    Args:
        stream_counts: how many streams of each topic, at least 1.

    Raises:
        ConfigError: no topic, or no stream of one.
        InvalidTopicError: there can be no such topic.
    """
    if not stream_counts:
        raise ConfigError("no topic to consume")
    for topic, count in stream_counts.items():
        validate_topic_name(topic)
        _check_count(count, f"topic '{topic}'")
    return StaticSubscription(dict(stream_counts))


def filter_subscription(topic_filter: TopicFilter, stream_count: int) -> FilterSubscription:
    """Return the subscription of a member that takes topics by a filter.

    Raises:
        ConfigError: there is no stream.
    """
    _check_count(stream_count, f"filter '{topic_filter.regex}'")
    return FilterSubscription(topic_filter.kind, stream_count, topic_filter.regex)


def _check_count(count: int, what: str) -> None:
    if count < 1:
        raise ConfigError(f"{what} needs at least 1 stream, not {count}")


def topics_of(subscription: Subscription, all_topics: Iterable[str]) -> dict[str, int]:
    """Return how many streams a member has of each topic it reads.

    Args:
        subscription: of the member.
        all_topics: the topics there are; a filter takes from these.

    Raises:
        ConfigError: the filter is no regular expression here.
    """
    if isinstance(subscription, StaticSubscription):
        return dict(subscription.stream_counts)
    chosen = TopicFilter(subscription.kind, subscription.regex)
    return {topic: subscription.stream_count for topic in all_topics if chosen.allows(topic)}


def threads_by_topic(
    members: Mapping[str, Subscription], all_topics: Iterable[str]
) -> dict[str, list[str]]:
    """Return the thread ids that read each topic, over all members of a group.

    Args:
        members: subscription of each consumer id.
        all_topics: the topics there are.

    Raises:
        ConfigError: a member's filter is no regular expression here.
    """
    threads: dict[str, list[str]] = {}
    topics = list(all_topics)
    for consumer_id, subscription in members.items():
        for topic, count in topics_of(subscription, topics).items():
            threads.setdefault(topic, []).extend(thread_ids(consumer_id, count))
    return threads


logger = logging.getLogger(__name__)

_T = TypeVar("_T")


class Membership:
    """This process's own node among the members of a group.

    Args:
        session: started.
        group: the group's name.
        consumer_id: this member's.
        subscription: what it reads.
    """

    def __init__(
        self, session: Session, group: str, consumer_id: str, subscription: Subscription
    ) -> None:
        self._session = session
        self._group = group
        self._path = paths.consumer(group, consumer_id)
        self._value = encode_subscription(subscription)
        self.consumer_id = consumer_id
        self.session_id: int | None = None
        """The session in which the node was registered; None before, and after it is known lost."""

    def register(self) -> None:
        """Put the node there.

        Raises:
            RegistryConflictError: another process is a member under this id.
            RegistryUnreachableError: no answer came in time.

        Source: Kafka 0.7 `ZookeeperConsumerConnector.registerConsumerInZK`.
        """
        session_id = self._session.session_id
        try:
            self._session.create(self._path, self._value, ephemeral=True)
        except RegistryConflictError as error:
            stat = self._session.exists(self._path)
            if stat is None or stat.ephemeral_owner != session_id:
                raise RegistryConflictError(
                    f"consumer id '{self.consumer_id}' is already registered in group "
                    f"'{self._group}': choose another consumerid, or if that process is gone, "
                    "wait until its session has ended"
                ) from error
        if self._session.session_id != session_id:
            raise RegistryUnreachableError("the registry session expired while registering")
        self.session_id = session_id

    def stands(self) -> bool:
        """Return whether the node is there, in the session it was registered in.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        stat = self._session.exists(self._path)
        return stat is not None and stat.ephemeral_owner == self.session_id

    def deregister(self) -> None:
        """Take the node away, if it is ours.

        Raises:
            CoordinationError: it may be left; it goes with the session.
        """
        if self.session_id is not None and self.stands():
            with suppress(RegistryNodeNotFoundError):
                self._session.delete(self._path)
        self.session_id = None


class Ownership:
    """The nodes that say which consumer thread owns which partition.

    Args:
        session: started.
        membership: of the process whose threads own them; its session is the one that counts.
        group: the group's name.
    """

    def __init__(self, session: Session, membership: Membership, group: str) -> None:
        self._session = session
        self._membership = membership
        self._group = group

    def claim(
        self, threads: Mapping[TopicPartition, str], *, on_release: Callable[[], None]
    ) -> set[TopicPartition]:
        """Make threads of this process owners of partitions.

        Args:
            threads: the thread that is to own each partition.
            on_release: called when a partition that somebody else still owns may be free.

        Returns:
            The partitions that are owned now; the others belong to somebody else.

        Raises:
            RegistryUnreachableError: no answer came in time; some may be owned.
        """
        nodes = {paths.owner(self._group, partition): partition for partition in threads}
        existing = self._session.create_many(
            {path: encode_owner(threads[partition]) for path, partition in nodes.items()}
        )
        found = self._session.get_many(existing)
        unclaimed = set(existing) - found.keys()  # they went away meanwhile
        for path, (value, stat) in found.items():
            if stat.ephemeral_owner != self._membership.session_id:
                unclaimed.add(path)
                logger.info("%s is still owned by %s", nodes[path], decode_owner(value))
            elif value != encode_owner(threads[nodes[path]]):
                self._session.set(path, encode_owner(threads[nodes[path]]))
        for path in unclaimed:
            if self._session.exists(path, watch=on_release) is None:
                on_release()
        return {nodes[path] for path in nodes.keys() - unclaimed}

    def held(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return which partitions this process owns according to the registry.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        nodes = {paths.owner(self._group, partition): partition for partition in partitions}
        session_id = self._membership.session_id
        return {
            nodes[path]
            for path, (_, stat) in self._session.get_many(nodes).items()
            if stat.ephemeral_owner == session_id
        }

    def unowned(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Return which partitions nobody owns.

        Raises:
            RegistryUnreachableError: no answer came in time.
        """
        nodes = {paths.owner(self._group, partition): partition for partition in partitions}
        return {nodes[path] for path in nodes.keys() - self._session.get_many(nodes).keys()}

    def release(self, partitions: Collection[TopicPartition]) -> None:
        """Give up partitions, as far as this process owns them.

        Raises:
            RegistryUnreachableError: no answer came in time; some may be owned still.
        """
        held = self.held(partitions)
        self._session.delete_many(paths.owner(self._group, partition) for partition in held)


class View(NamedTuple):
    """What a member needs to know to compute its share: for each topic it reads."""

    partitions: dict[str, list[TopicPartition]]
    threads: dict[str, list[str]]


class GroupView:
    """Reads a group's members and topics, and watches them.

    Args:
        session: started.
        group: the group's name.
        subscription: of the member whose topics are looked at.
        on_change: called when something may have changed since it was read last, in a thread of
            the registry that must not be held up.
    """

    def __init__(
        self,
        session: Session,
        group: str,
        subscription: Subscription,
        on_change: Callable[[], None],
    ) -> None:
        self._session = session
        self._group = group
        self._subscription = subscription
        self._on_change = on_change
        self._lock = threading.Lock()  # guards _armed
        self._armed: set[tuple[str, str]] = set()

    def read(self) -> View:
        """Read all of it.

        Raises:
            ConfigError: a member's filter is no regular expression here.
            CoordinationError: the registry cannot be reached, or what it holds makes no sense.

        Source: Kafka 0.7 `ZookeeperConsumerConnector.rebalance`, `ZkUtils.getConsumersPerTopic`.
        """
        members = self._members()
        if isinstance(self._subscription, FilterSubscription):
            topics = list(topics_of(self._subscription, self._children(paths.TOPICS)))
        else:
            topics = list(self._subscription.stream_counts)
        threads = threads_by_topic(members, topics)
        return View(self._partitions(topics), {topic: threads.get(topic, []) for topic in topics})

    def _members(self) -> dict[str, Subscription]:
        ids = self._children(paths.consumer_ids(self._group))
        nodes = {paths.consumer(self._group, one): one for one in ids}
        members = {}
        for path, (value, _) in self._session.get_many(nodes).items():
            try:
                subscription = decode_subscription(value)
                threads_by_topic({nodes[path]: subscription}, ())
            except (CoordinationError, ConfigError) as error:
                logger.warning("member %s of %s left out: %s", nodes[path], self._group, error)
                subscription = StaticSubscription({})
            members[nodes[path]] = subscription
        return members

    def _partitions(self, topics: Collection[str]) -> dict[str, list[TopicPartition]]:
        """Return the partitions of topics on all brokers that have registered them, live or not.

        A broker's nodes go with its session, all of them; looking at its id node as well could
        only make members disagree that read at different times.
        """
        homes = self._children_of_each([paths.topic(topic) for topic in topics])
        nodes = {
            f"{paths.topic(topic)}/{name}": (topic, name)
            for topic in topics
            for name in homes[paths.topic(topic)]
        }
        # one that went away meanwhile is missing, of which the watch on its parent tells
        counts = self._read_watched("data", nodes, self._session.get_many)
        partitions: dict[str, list[TopicPartition]] = {topic: [] for topic in topics}
        for path, (topic, name) in nodes.items():
            if path not in counts:
                continue
            try:
                count = decode_number(counts[path][0], f"partition count in {path}")
                home = decode_number(name.encode(), f"broker id in {path}")
            except CoordinationError as error:
                logger.warning("%s; left out", error)
                continue
            partitions[topic] += [TopicPartition(topic, home, index) for index in range(count)]
        return partitions

    def _children_of_each(self, node_paths: Collection[str]) -> dict[str, list[str]]:
        """Return the children of nodes, and watch them; a node that is missing has none."""
        found = self._read_watched("children", node_paths, self._session.children_many)
        return {path: found[path] if path in found else self._children(path) for path in node_paths}

    def _read_watched(
        self, kind: str, node_paths: Collection[str], read: Callable[..., dict[str, _T]]
    ) -> dict[str, _T]:
        """Read nodes all at once, and watch those there are."""
        try:
            found = read(node_paths, watch=lambda path: self._watch(kind, path))
        except CoordinationError:
            self._disarm(kind, node_paths)
            raise
        self._disarm(kind, set(node_paths) - found.keys())
        return found

    def _children(self, path: str) -> list[str]:
        """Return a node's children, and watch them, or else the node's coming into being."""
        for kind, read in (("children", self._session.children), ("exists", self._session.exists)):
            try:
                found = read(path, watch=self._watch(kind, path))
            except CoordinationError as error:
                self._disarm(kind, [path])
                if not isinstance(error, RegistryNodeNotFoundError):
                    raise
            else:
                if isinstance(found, list):
                    return found
                if found is not None:
                    self._on_change()  # it came into being between the two reads
        return []

    def _watch(self, kind: str, path: str) -> Callable[[], None] | None:
        """Return what to call on a change, None if an earlier read left such a watch."""
        with self._lock:
            if (kind, path) in self._armed:
                return None
            self._armed.add((kind, path))
        return lambda: self._fire(kind, path)

    def _fire(self, kind: str, path: str) -> None:
        self._disarm(kind, [path])
        self._on_change()

    def _disarm(self, kind: str, node_paths: Collection[str]) -> None:
        with self._lock:
            self._armed.difference_update((kind, path) for path in node_paths)


_CHECKS_PER_TIMEOUT = 4


class Lease:
    """The time until which the session is certain to stand.

    Attributes:
        until_s: on the monotonic clock; read it without a lock, before anything is handed out.
    """

    __slots__ = ("_changed", "_is_closed", "until_s")

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._is_closed = False
        self.until_s = 0.0

    @property
    def is_valid(self) -> bool:
        """Return whether the session is certain to stand now."""
        return time.monotonic() < self.until_s

    def renew(self, until_s: float) -> None:
        """Note that the session stands until a time, if nothing more is heard of it."""
        with self._changed:
            self.until_s = until_s
            self._changed.notify_all()

    def lose(self) -> None:
        """Note that the session, or what stood in it, is gone."""
        self.until_s = 0.0

    def close(self) -> None:
        """End all waits."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def wait(self, timeout_s: float | None) -> bool:
        """Wait until the lease is valid or closed; return whether it is one of them.

        Args:
            timeout_s: how long to wait; None for ever.
        """
        with self._changed:
            return self._changed.wait_for(lambda: self._is_closed or self.is_valid, timeout_s)


class LeaseKeeper:
    """A thread that keeps a lease up by looking at this member's own node.

    Args:
        lease: what it keeps up.
        check: looks at the node in the registry; returns whether it stands in our session.
        session_timeout_s: how long a session lasts without a sign of life.
        on_lost: called when the node does not stand.
    """

    def __init__(
        self,
        lease: Lease,
        check: Callable[[], bool],
        session_timeout_s: Callable[[], float],
        on_lost: Callable[[], None],
    ) -> None:
        self._lease = lease
        self._check = check
        self._session_timeout_s = session_timeout_s
        self._on_lost = on_lost
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="group-lease", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Tell the thread to stop, and end all waits for the lease."""
        self._stop.set()
        self._lease.close()

    def join(self) -> None:
        """Wait for the thread's end."""
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.wait(self._session_timeout_s() / _CHECKS_PER_TIMEOUT):
            # the server has seen us at this time or later
            asked_s = time.monotonic()
            try:
                stands = self._check()
            except BrokerError as error:
                if not self._stop.is_set():
                    logger.warning("registry session not confirmed: %s", error)
                continue
            if stands:
                self._lease.renew(asked_s + self._session_timeout_s())
            else:
                self._lease.lose()
                self._on_lost()
