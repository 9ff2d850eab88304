"""A consumer group as it stands in the registry, read as plain values.

Owns reading, and what a node that makes no sense becomes: a value that says so, never a failure.
Knows no broker and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from broker.consumer.membership import topics_of
from broker.errors import ConfigError, CoordinationError, RegistryNodeNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import NodeStat, Session
from broker.zk.values import (
    Subscription,
    decode_number,
    decode_partition_name,
    decode_subscription,
)
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.selection import validate_group_name
from pylogctl.format.framing import escape


class StoredOffset(NamedTuple):
    """An offset node: its number, or None if its text is none.

    `text` is the value as it is, with escapes where it is no text; `commit_ms` is when it was last
    written, milliseconds since 1970; `version` counts the writes.
    """

    offset: int | None
    text: str
    commit_ms: int
    version: int


class Owner(NamedTuple):
    """An owner node: the thread it names, and the session it goes with (0 for none).

    `czxid` changes when the node is made anew.
    """

    thread_id: str
    session_id: int
    czxid: int


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the group: its node, and what it reads.

    `subscription` is None if the node makes no sense; `text` is the node's value. `stream_counts`
    has the topics it reads, those of a filter found among the topics there are.
    """

    consumer_id: str
    text: str
    subscription: Subscription | None
    stream_counts: Mapping[str, int]
    session_id: int
    since_ms: int

    @property
    def thread_count(self) -> int:
        """Return how many threads it has; they are shared by its topics."""
        return max(self.stream_counts.values(), default=0)


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """All that the registry knows of a group.

    `strays` are nodes among offsets and owners whose names are no partitions.
    """

    name: str
    members: tuple[Member, ...]
    owners: Mapping[TopicPartition, Owner]
    offsets: Mapping[TopicPartition, StoredOffset]
    strays: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Return `active` with members, `empty` with offsets only, `dead` with neither."""
        if self.members:
            return "active"
        return "empty" if self.offsets else "dead"

    @property
    def owner_threads(self) -> dict[TopicPartition, str]:
        """Return the thread that owns each partition that is owned."""
        return {partition: owner.thread_id for partition, owner in self.owners.items()}

    @property
    def subscribed_topics(self) -> list[str]:
        """Return the topics its members read."""
        return sorted({topic for member in self.members for topic in member.stream_counts})

    @property
    def topics(self) -> list[str]:
        """Return the topics it reads or has read: of members, offsets and owners."""
        noted = {one.topic for one in (*self.offsets, *self.owners)}
        return sorted(noted.union(self.subscribed_topics))

    @property
    def oldest_commit_ms(self) -> int | None:
        """Return when the offset that was not written for longest was written."""
        return min((one.commit_ms for one in self.offsets.values()), default=None)


def list_groups(session: Session) -> list[str]:
    """Return the names of all groups, sorted.

    Raises:
        CoordinationError: the registry does not answer.
    """
    return _children(session, paths.CONSUMERS)


def require_group(session: Session, group: str) -> None:
    """Check that a group exists.

    Raises:
        UsageError: there can be no such group.
        CliError: there is none; the error names those that come near.
        CoordinationError: the registry does not answer.
    """
    validate_group_name(group)
    if session.exists(paths.group(group)) is None:
        raise group_not_found(group, list_groups(session))


def group_not_found(group: str, known: Iterable[str]) -> CliError:
    """Return the error for an unknown group, with the names that come near."""
    near = get_close_matches(group, list(known), n=3)
    hints = [f"known groups with a similar name: {', '.join(near)}"] if near else []
    return CliError(
        ExitStatus.NOT_FOUND,
        f"group '{group}' not found",
        hints=[*hints, "try: pylogctl group list"],
        code="GROUP_NOT_FOUND",
        details={"group": group, "similar": near},
    )


def read_group(session: Session, group: str, *, all_topics: Iterable[str]) -> GroupSnapshot:
    """Read a group; one that does not exist has nothing.

    Args:
        session: started.
        group: its name.
        all_topics: the topics there are, from which filters take theirs.

    Raises:
        CoordinationError: the registry does not answer.
    """
    strays: list[str] = []
    owners = {
        partition: Owner(_text(value), stat.ephemeral_owner, stat.czxid)
        for partition, value, stat in _partition_nodes(session, group, "owners", strays)
    }
    offsets = {
        partition: _stored_offset(value, stat)
        for partition, value, stat in _partition_nodes(session, group, "offsets", strays)
    }
    members = read_members(session, group, all_topics=all_topics)
    return GroupSnapshot(group, members, owners, offsets, tuple(strays))


def read_members(
    session: Session, group: str, *, all_topics: Iterable[str] = ()
) -> tuple[Member, ...]:
    """Read the members of a group, by id.

    Args:
        session: started.
        group: its name.
        all_topics: the topics there are, from which filters take theirs.

    Raises:
        CoordinationError: the registry does not answer.
    """
    topics = list(all_topics)
    nodes = {
        paths.consumer(group, name): name for name in _children(session, paths.consumer_ids(group))
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
        stream_counts = topics_of(decoded, topics)
        subscription = decoded
    return Member(
        consumer_id,
        _text(value),
        subscription,
        stream_counts,
        stat.ephemeral_owner,
        stat.ctime_ms,
    )


def _partition_nodes(
    session: Session, group: str, kind: str, strays: list[str]
) -> Iterator[tuple[TopicPartition, bytes, NodeStat]]:
    """Yield the nodes named after partitions below `kind`; note the others."""
    found: dict[str, TopicPartition] = {}
    parent = f"{paths.group(group)}/{kind}"
    for topic in _children(session, parent):
        for name in _children(session, f"{parent}/{topic}"):
            path = f"{parent}/{topic}/{name}"
            try:
                found[path] = TopicPartition(topic, *decode_partition_name(name))
            except CoordinationError:
                strays.append(path)
    values = session.get_many(found)
    for path, partition in sorted(found.items(), key=lambda item: item[1]):
        if path in values:
            yield partition, *values[path]


def _stored_offset(value: bytes, stat: NodeStat) -> StoredOffset:
    try:
        offset = decode_number(value, "offset")
    except CoordinationError:
        return StoredOffset(None, _text(value), stat.mtime_ms, stat.version)
    return StoredOffset(offset, _text(value), stat.mtime_ms, stat.version)


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return escape(value)


def _children(session: Session, path: str) -> list[str]:
    try:
        return session.children(path)
    except RegistryNodeNotFoundError:
        return []
