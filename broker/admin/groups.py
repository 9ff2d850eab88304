"""A consumer group as ZooKeeper has it, read into plain values.

A node that cannot be decoded becomes a value that says so, never an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Literal, NamedTuple

from broker.cluster_state import Creation
from broker.consumer import membership
from broker.errors import ArgumentError, ConfigError, CoordinationError, GroupNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.creations import read_creations
from broker.zk.nodes import NodeStat
from broker.zk.session import Session
from broker.zk.values import Subscription, decode_number, decode_subscription


class StoredOffset(NamedTuple):
    """A committed offset."""

    offset: int | None  # None if it is void, or the node does not hold a number
    text: str  # the node's value, escaped if it is not UTF-8
    commit_ms: int  # time of the last write, since 1970
    version: int  # number of writes
    is_void: bool = False  # stored before the topic was created again

    @property
    def problem(self) -> str:
        """Return why there is no offset, for messages; empty if there is one."""
        if self.is_void:
            return f"is void, as it was stored before the topic was created again: {self.text}"
        return f"is no number: {self.text!r}" if self.offset is None else ""


class Owner(NamedTuple):
    """An owner node."""

    thread_id: str  # of the consumer thread
    session_id: int  # session of the node; 0 for none
    czxid: int  # changes when the node is created again


@dataclass(frozen=True, slots=True)
class Member:
    """A member node."""

    consumer_id: str
    text: str  # the node's value
    subscription: Subscription | None  # None if it cannot be decoded
    stream_counts: Mapping[str, int]  # by topic; filters are matched against the existing topics
    session_id: int
    since_ms: int

    @property
    def thread_count(self) -> int:
        """Return the number of consumer threads, which are shared by all topics."""
        return max(self.stream_counts.values(), default=0)


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """All nodes of a group."""

    name: str
    members: tuple[Member, ...]
    owners: Mapping[TopicPartition, Owner]
    offsets: Mapping[TopicPartition, StoredOffset]
    strays: tuple[str, ...] = ()  # paths of `offsets` and `owners` not named after a partition

    @property
    def state(self) -> Literal["active", "empty", "dead"]:
        """Return `active` with members, `empty` with offsets only, `dead` with neither."""
        if self.members:
            return "active"
        return "empty" if self.offsets else "dead"

    @property
    def owner_threads(self) -> dict[TopicPartition, str]:
        """Return the consumer thread of each assigned partition."""
        return {partition: owner.thread_id for partition, owner in self.owners.items()}

    @property
    def subscribed_topics(self) -> list[str]:
        """Return the topics that members consume."""
        return sorted({topic for member in self.members for topic in member.stream_counts})

    @property
    def topics(self) -> list[str]:
        """Return the topics of members, offsets and owners."""
        noted = {one.topic for one in (*self.offsets, *self.owners)}
        return sorted(noted.union(self.subscribed_topics))

    @property
    def oldest_commit_ms(self) -> int | None:
        """Return the commit time of the offset that was committed least recently."""
        return min((one.commit_ms for one in self.offsets.values()), default=None)


def list_groups(session: Session) -> list[str]:
    """Return the names of all groups, sorted."""
    return session.children_if_any(paths.CONSUMERS)


def validate_group_name(group: str) -> None:
    """Validate that a consumer group's name can be part of a ZooKeeper path."""
    try:
        membership.validate_group_name(group)
    except ConfigError as error:
        if not group:
            reason = "it is empty"
        elif "/" in group:
            reason = "'/' is not allowed"
        else:
            reason = "it cannot be part of a ZooKeeper path"
        raise ArgumentError(f"invalid group name '{group}': {reason}") from error


def require_group(session: Session, group: str) -> None:
    """Validate that a group exists."""
    validate_group_name(group)
    if session.exists(paths.group(group)) is not None:
        return
    near = get_close_matches(group, list_groups(session), n=3)
    hints = [f"known groups with a similar name: {', '.join(near)}"] if near else []
    raise GroupNotFoundError(
        f"group '{group}' not found",
        hints=[*hints, "try: pylogctl group list"],
        details={"group": group, "similar": near},
    )


def read_group(session: Session, group: str, *, all_topics: Iterable[str]) -> GroupSnapshot:
    """Read a group; the snapshot of one that does not exist is empty."""
    strays: list[str] = []
    owners = {
        partition: Owner(_text(value), stat.ephemeral_owner, stat.czxid)
        for partition, value, stat in _partition_nodes(session, group, "owners", strays)
    }
    nodes = list(_partition_nodes(session, group, "offsets", strays))
    creations = read_creations(session, (partition for partition, _, _ in nodes))
    offsets = {
        partition: _stored_offset(value, stat, creations.of(partition))
        for partition, value, stat in nodes
    }
    members = read_members(session, group, all_topics=all_topics)
    return GroupSnapshot(group, members, owners, offsets, tuple(strays))


def read_members(
    session: Session, group: str, *, all_topics: Iterable[str] = ()
) -> tuple[Member, ...]:
    """Read the members of a group; see `read_group`."""
    topics = list(all_topics)
    nodes = {
        paths.consumer(group, name): name
        for name in session.children_if_any(paths.consumer_ids(group))
    }
    return tuple(
        _member(nodes[path], value, stat, topics)
        for path, (value, stat) in session.get_many(nodes).items()
    )


def _member(consumer_id: str, value: bytes, stat: NodeStat, topics: list[str]) -> Member:
    subscription: Subscription | None = None
    stream_counts: Mapping[str, int] = {}
    with suppress(CoordinationError, ConfigError):
        decoded = decode_subscription(value)
        stream_counts = membership.topics_of(decoded, topics)
        subscription = decoded
    return Member(
        consumer_id, _text(value), subscription, stream_counts, stat.ephemeral_owner, stat.ctime_ms
    )


def _partition_nodes(
    session: Session, group: str, kind: str, strays: list[str]
) -> Iterator[tuple[TopicPartition, bytes, NodeStat]]:
    """Yield the nodes below `kind` that are named after partitions; add the others to `strays`."""
    found: dict[str, TopicPartition] = {}
    parent = f"{paths.group(group)}/{kind}"
    for topic in session.children_if_any(parent):
        for name in session.children_if_any(f"{parent}/{topic}"):
            path = f"{parent}/{topic}/{name}"
            try:
                found[path] = TopicPartition.named(topic, name)
            except ValueError:
                strays.append(path)
    values = session.get_many(found)
    for path, partition in sorted(found.items(), key=lambda item: item[1]):
        if path in values:
            yield partition, *values[path]


def _stored_offset(value: bytes, stat: NodeStat, creation: Creation | None) -> StoredOffset:
    is_void = creation is not None and creation.voids(stat.mzxid)
    offset = None
    with suppress(CoordinationError):
        offset = None if is_void else decode_number(value, "offset")
    return StoredOffset(offset, _text(value), stat.mtime_ms, stat.version, is_void)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1").encode("unicode_escape").decode()
