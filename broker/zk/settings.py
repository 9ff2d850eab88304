"""The settings of topics, brokers and users in ZooKeeper, which brokers apply while they run.

A node has the overrides of one topic, broker or user, as texts by name. It is written by version,
that of a topic or broker together with a node that announces the change, as Kafka 0.8 does for its
tools. Brokers watch the nodes themselves, so that they notice one that was edited by hand as well.

All rules of access are the value of one node, so that each change of them is atomic and has a
version.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import NamedTuple, TypeVar

from broker import errors
from broker.security.rules import NO_VERSION
from broker.topic import validate_topic_name
from broker.zk import paths, values
from broker.zk.nodes import CreateNode, DeleteNode, NodeChange, NodeStat, SetNode
from broker.zk.session import Session
from broker.zk.watched_reads import WatchedReads

_T = TypeVar("_T")
_ATTEMPTS = 10
_CHANGES_KEPT_MS = 15 * 60_000
_CHANGE_PREFIX = f"{paths.SETTINGS_CHANGES}/config_change_"
_PARENTS = (paths.TOPIC_SETTINGS, paths.BROKER_SETTINGS, paths.USERS)
_ROOTS = (*_PARENTS, paths.SETTINGS_CHANGES, paths.MOCK_SECRET)


class SettingsNode(NamedTuple):
    """The node of one topic, broker or user, and the value that announces a change of it."""

    path: str
    announcement: bytes | None  # all may read it: none for a user, whose name they may not know


def node_of_topic(topic: str) -> SettingsNode:
    """Return the node with the settings of a topic; `InvalidTopicError` for an invalid name."""
    validate_topic_name(topic)
    return SettingsNode(paths.topic_settings(topic), values.encode_topic_change(topic))


def node_of_broker(broker_id: int) -> SettingsNode:
    """Return the node with the settings of a broker."""
    return SettingsNode(paths.broker_settings(broker_id), values.encode_broker_change(broker_id))


def node_of_user(name: str) -> SettingsNode:
    """Return the node with the quotas and keys of a user."""
    return SettingsNode(paths.user(name), None)


class SettingsChange(NamedTuple):
    """The texts in a node before and after a change; equal if nothing was to be changed."""

    before: Mapping[str, str]
    after: Mapping[str, str]


class SettingsRegistry:
    """The settings of topics, brokers and users in ZooKeeper.

    All methods raise `CoordinationError` for a malformed node, and `RegistryUnreachableError` if no
    response comes in time: a change may have been made then.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def read(self, node: SettingsNode) -> dict[str, str]:
        """Return the overrides of a topic or broker; none if there is no node."""
        return self._read(node)[0]

    def _read(self, node: SettingsNode) -> tuple[dict[str, str], int | None]:
        """Return overrides and version of a node; None for the version of a missing one."""
        try:
            value, stat = self._session.get(node.path)
        except errors.RegistryNodeNotFoundError:
            return {}, None
        return values.decode_settings(node.path, value), stat.version

    def change(
        self, node: SettingsNode, edit: Callable[[Mapping[str, str]], Mapping[str, str]]
    ) -> SettingsChange:
        """Change the overrides of a topic or broker; a node without any is deleted.

        `edit` returns the new texts for the present ones. It is called again if another client has
        changed the node meanwhile, so that neither change is lost; `RegistryConflictError` after
        ten times. The text of a `RegistryUnreachableError` says whether the change may have been
        made.
        """

        def attempt() -> SettingsChange:
            before, version = self._read(node)
            after = edit(before)
            if after != before:
                self._write(node, after, version)
            return SettingsChange(before, after)

        return _until_it_fits(node.path, attempt)

    def delete(self, node: SettingsNode) -> bool:
        """Delete the node of a topic or broker, malformed or not; return whether there was one."""
        if self._session.exists(node.path) is None:
            return False
        self._create_roots()
        with suppress(errors.RegistryConflictError):  # another client has deleted it
            self._session.transact([DeleteNode(node.path, -1), *_announce(node)])
        self._forget_old_changes()
        return True

    def _write(self, node: SettingsNode, texts: Mapping[str, str], version: int | None) -> None:
        change: NodeChange
        if version is None:
            change = CreateNode(node.path, values.encode_settings(texts))
        elif texts:
            change = SetNode(node.path, values.encode_settings(texts), version)
        else:
            change = DeleteNode(node.path, version)
        self._create_roots()
        with _explained("settings"):
            self._session.transact([change, *_announce(node)])
        self._forget_old_changes()

    def read_all(self, broker_id: int, watched: WatchedReads) -> dict[str, bytes]:
        """Return the values of the nodes of all topics and users, and of one broker, by path.

        With them comes the secret of users that are not there. Nodes and parents are watched.
        """
        self._create_roots()  # so that they can be watched
        children = watched.children(_PARENTS)
        nodes = [paths.MOCK_SECRET]
        nodes += [paths.topic_settings(name) for name in children[paths.TOPIC_SETTINGS]]
        if str(broker_id) in children[paths.BROKER_SETTINGS]:
            nodes.append(paths.broker_settings(broker_id))
        nodes += [f"{paths.USERS}/{name}" for name in children[paths.USERS]]
        return {path: value for path, (value, _) in watched.values(nodes).items()}

    def topics(self) -> list[str]:
        """Return the topics that have settings of their own, sorted."""
        return self._session.children_if_any(paths.TOPIC_SETTINGS)

    def users(self) -> dict[str, dict[str, str]]:
        """Return the settings of all users by name, sorted."""
        nodes = [f"{paths.USERS}/{name}" for name in self._session.children_if_any(paths.USERS)]
        return {
            paths.user_of(path): values.decode_settings(path, value)
            for path, (value, _) in sorted(self._session.get_many(nodes).items())
        }

    def brokers(self) -> list[int]:
        """Return the brokers that have settings of their own here, sorted."""
        return values.broker_ids(self._session.children_if_any(paths.BROKER_SETTINGS))

    def _create_roots(self) -> None:
        """Create the parents of all nodes, which a transaction does not do."""
        missing = set(_ROOTS) - self._session.get_many(_ROOTS).keys()
        if missing:
            nodes = dict.fromkeys(missing, b"")
            if paths.MOCK_SECRET in nodes:
                nodes[paths.MOCK_SECRET] = secrets.token_hex().encode()
            self._session.create_many(nodes, ephemeral=False)

    def _forget_old_changes(self) -> None:
        """Delete announcements that are older than others by more than clients need."""
        names = self._session.children_if_any(paths.SETTINGS_CHANGES)
        stats = {
            path: stat
            for path, (_, stat) in self._session.get_many(
                f"{paths.SETTINGS_CHANGES}/{name}" for name in names
            ).items()
        }
        newest_ms = max((stat.ctime_ms for stat in stats.values()), default=0)
        self._session.delete_many(
            path for path, stat in stats.items() if newest_ms - stat.ctime_ms > _CHANGES_KEPT_MS
        )


def _announce(node: SettingsNode) -> list[CreateNode]:
    if node.announcement is None:
        return []
    return [CreateNode(_CHANGE_PREFIX, node.announcement, is_sequential=True)]


def _until_it_fits(node_path: str, attempt: Callable[[], _T]) -> _T:
    """Repeat an attempt to change a node while other clients change it meanwhile."""
    for _ in range(_ATTEMPTS):
        with suppress(errors.RegistryConflictError):
            return attempt()
    raise errors.RegistryConflictError(f"node {node_path} is changed by other clients all the time")


@contextmanager
def _explained(subject: str) -> Iterator[None]:
    """Have the error of a change without a response say that it may have been made."""
    try:
        yield
    except errors.RegistryUnreachableError as error:
        raise errors.RegistryUnreachableError(
            f"{error}; whether the {subject} were changed is not known"
        ) from error


def read_rules(session: Session) -> tuple[bytes | None, int]:
    """Return the value with all rules, and its version; None and -1 without the node."""
    try:
        value, stat = session.get(paths.RULES)
    except errors.RegistryNodeNotFoundError:
        return None, NO_VERSION
    return value, stat.version


def watch_rules(watched: WatchedReads) -> tuple[bytes, NodeStat] | None:
    """Return the value with all rules and its node's metadata, None without one; and watch it."""
    found = None
    while found is None:
        if not watched.exists(paths.RULES):
            return None
        found = watched.values([paths.RULES]).get(paths.RULES)  # None if it was just deleted
    return found


def change_rules(session: Session, edit: Callable[[bytes | None], bytes | None]) -> int:
    """Change the value by version, and return the new one.

    `edit` returns the new value, or None to leave it; it is called again if another client has
    changed the node meanwhile. `RegistryConflictError` after ten times.
    """

    def attempt() -> int:
        value, version = read_rules(session)
        new = edit(value)
        if new is None:
            return version
        with _explained("rules"):
            if version == NO_VERSION:
                session.create(paths.RULES, new)
                return 0
            session.set(paths.RULES, new, version=version)
        return version + 1

    return _until_it_fits(paths.RULES, attempt)
