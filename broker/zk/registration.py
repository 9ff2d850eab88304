"""Keeping one broker registered: its id node and a node for each of its topics.

Holds the wanted nodes and creates them, again after each new session. `registry` decides when, and
on which thread. Source: Kafka 0.7 `KafkaZooKeeper`, `ZkUtils.createEphemeralPathExpectConflict`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import NamedTuple, TypeVar

from broker import errors
from broker.zk import paths, values
from broker.zk.session import NodeStat, Session, SessionState

logger = logging.getLogger(__name__)

# Servers expire sessions at the next tick after the timeout, and only while they have a leader.
_EXPIRY_SLACK = 1.5
_NAMED_MAX = 5

_T = TypeVar("_T")


def _listed(node_paths: list[str]) -> str:
    rest = len(node_paths) - _NAMED_MAX
    return ", ".join(node_paths[:_NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")


class _Topic(NamedTuple):
    """A topic of the broker: its partition count, and its creation id if it has one."""

    partition_count: int
    creation_id: str | None


class Registration:
    """The nodes one broker wants in the registry, and those it has created.

    Args:
        session_timeout_ms: after so long the nodes of an earlier run expire.
        on_change: called when a node that was created may be gone, so that `synchronize` is due;
            runs in the session's thread and must not block.
    """

    def __init__(
        self, session: Session, *, session_timeout_ms: int, on_change: Callable[[], None]
    ) -> None:
        self._session = session
        self._wait_limit_s = session_timeout_ms / 1000 * _EXPIRY_SLACK
        self._start_limit_s = self._wait_limit_s
        self._work = threading.Lock()  # one writer of nodes at a time
        self._changed = threading.Condition()  # guards the fields below
        self._broker: values.BrokerInfo | None = None
        self._rack = ""
        self._is_clean = False
        self._was_registered_clean = False
        self.broker_epoch: int | None = None
        """The change of ZooKeeper that made the last registration for replication."""
        self.has_replicas: Callable[[], bool] = lambda: False
        self.registry_id = 0
        """When the cluster id's node was created: another time once ZooKeeper has lost its data."""
        self._cluster_id: str | None = None
        self._cluster_session: int | None = None  # in which it was found to be this one
        self._topics: dict[str, _Topic] = {}
        self._new_topics: set[str] = set()  # created, and not registered since
        self._registered_topics: dict[str, _Topic] = {}
        self._registered_session: int | None = None
        self._topics_session: int | None = None  # of the nodes in _registered_topics
        self._changed_nodes: set[str] = set()  # whose watches have fired
        self._on_change = on_change
        self._error: errors.CoordinationError | None = None
        self._wakeup = threading.Event()
        self._is_closed = False

    @property
    def broker(self) -> values.BrokerInfo | None:
        """Return the broker that is, or should be, registered."""
        return self._broker

    @property
    def error(self) -> errors.CoordinationError | None:
        """Return the error of the last attempt, None if it succeeded."""
        return self._error

    @property
    def is_complete(self) -> bool:
        """Return whether all wanted nodes were created in this session."""
        with self._changed:
            return self._is_complete()

    def _is_complete(self) -> bool:
        """Caller holds `_changed`."""
        if self._broker is None:
            return True
        is_current = self._registered_session is not None
        return is_current and self._topics == self._registered_topics

    def extend_start(self, limit_s: float) -> None:
        """Retry the first registration of a broker for `limit_s` after lost connections."""
        self._start_limit_s = max(self._wait_limit_s, limit_s)

    def register_broker(self, info: values.BrokerInfo, *, rack: str, is_clean: bool) -> None:
        """Register a broker; see `Registry.register_broker`."""
        with self._work:
            self._rack, self._is_clean = rack, is_clean
            self._register_broker(info, self._start_limit_s)
            with self._changed:
                self._broker = info
                self._changed.notify_all()

    def join_cluster(self, proposed_id: str) -> str:
        """Return the id of the cluster; see `Registry.join_cluster`."""
        session_id = self._session.session_id
        cluster_id = self._repeated(
            partial(self._registered_cluster_id, proposed_id), self._start_limit_s
        )
        self._cluster_id, self._cluster_session = cluster_id, session_id
        return cluster_id

    def _registered_cluster_id(self, proposed_id: str) -> str:
        try:
            value, stat = self._session.get(paths.CLUSTER_ID)
        except errors.RegistryNodeNotFoundError:
            with contextlib.suppress(errors.RegistryConflictError):
                self._session.create(paths.CLUSTER_ID, values.encode_cluster_id(proposed_id))
            value, stat = self._session.get(paths.CLUSTER_ID)
        self.registry_id = stat.ctime_ms
        return values.decode_cluster_id(value)

    def _validate_cluster(self) -> None:
        known, session_id = self._cluster_id, self._session.session_id
        if known is None or (session_id is not None and session_id == self._cluster_session):
            return
        found = self._registered_cluster_id(known)
        if found != known:
            raise errors.RegistryConflictError(
                f"ZooKeeper is now of cluster {found}, and this broker of cluster {known}"
            )
        self._cluster_session = session_id

    def mark_clean(self) -> None:
        """Have the next `synchronize` register the broker as one that has lost nothing."""
        self._is_clean = True

    def add_topic(
        self, topic: str, count: int, *, creation_id: str | None = None, is_new: bool = False
    ) -> None:
        """Add a topic to the wanted ones; `synchronize` registers it."""
        with self._changed:
            self._topics[topic] = _Topic(count, creation_id)
            if is_new:
                self._new_topics.add(topic)

    def remove_topic(self, topic: str) -> None:
        """Remove a topic from the wanted ones; `synchronize` deregisters it."""
        with self._changed:
            self._topics.pop(topic, None)
            self._new_topics.discard(topic)

    def synchronize(self) -> None:
        """Create the wanted nodes missing in the present session, and delete unwanted ones."""
        with self._work:
            try:
                self._synchronize()
            except errors.CoordinationError as error:
                with self._changed:
                    self._error = error
                raise
            with self._changed:
                self._error = None
                self._changed.notify_all()

    def _synchronize(self) -> None:
        """Caller holds `_work`."""
        broker = self._broker
        if broker is None:
            return
        gone = self._forget_gone(broker.id)
        if self._session.session_id != self._registered_session:
            if self._registered_session is not None:
                self.forget_session()
            self._register_broker(broker, self._wait_limit_s)
        if self._is_clean and not self._was_registered_clean:
            self._session.set(*self._replication_node(broker))
            self._was_registered_clean = True
        with self._changed:
            if self._broker is None:
                return  # `deregister` waits for `_work`; the broker keeps its topics
            missing = dict(self._topics.items() - self._registered_topics.items())
            surplus = self._registered_topics.keys() - self._topics.keys()
        if surplus:
            self._session.delete_many(paths.topic_broker(topic, broker.id) for topic in surplus)
            nodes = [paths.creation_id(topic, broker.id) for topic in surplus]
            self._session.set_many(dict.fromkeys(nodes, (values.DELETED_CREATION, -1)))
            with self._changed:
                for topic in surplus:
                    self._registered_topics.pop(topic, None)
        if missing:
            self._register_topics(broker.id, missing)
        if gone:
            logger.warning(
                "nodes of broker %d were missing in ZooKeeper, deleted by another client or with "
                "its history, and are registered again: %s",
                broker.id,
                _listed(gone),
            )

    def _forget_gone(self, broker_id: int) -> list[str]:
        """Read the nodes whose watches have fired; return those to be created again."""
        with self._changed:
            fired, self._changed_nodes = self._changed_nodes, set()
            nodes = {
                paths.topic_broker(topic, broker_id): topic for topic in self._registered_topics
            }
        own = {paths.broker(broker_id), paths.replicated_broker(broker_id)}
        suspects = fired & {*own, *nodes}
        try:
            found = self._watch_nodes(suspects)
        except errors.CoordinationError:
            with self._changed:
                self._changed_nodes |= suspects
            raise
        session_id = self._session.session_id
        with self._changed:
            if self._registered_session != session_id:
                return []  # all of them are created again
            gone = sorted(
                path
                for path in suspects
                if path not in found or found[path].ephemeral_owner != session_id
            )
            for path in gone:
                if path in own:
                    self._registered_session = None
                else:
                    self._registered_topics.pop(nodes[path], None)
        return gone

    def _watch_nodes(self, node_paths: Collection[str]) -> dict[str, NodeStat]:
        """Watch nodes, and return their metadata without missing ones."""
        found = self._session.get_many(node_paths, watch=lambda path: partial(self._note, path))
        for path, (_, stat) in found.items():
            if path.startswith(paths.REPLICATED_BROKERS):
                self.broker_epoch = stat.czxid
        return {path: stat for path, (_, stat) in found.items()}

    def _watch_created(self, node_paths: Collection[str]) -> None:
        """Watch nodes that were created; some may be gone again."""
        try:
            watched = self._watch_nodes(node_paths).keys()
        except errors.CoordinationError:
            with self._changed:
                self._changed_nodes.update(node_paths)  # the next attempt watches them
            raise
        for path in set(node_paths) - watched:
            self._note(path)

    def _note(self, path: str) -> None:
        with self._changed:
            is_first = not self._changed_nodes
            self._changed_nodes.add(path)
        if is_first:
            self._on_change()

    def forget_session(self) -> None:
        """Record that the session, and with it all nodes, has expired."""
        with self._changed:
            self._registered_session = None
            self._registered_topics = {}

    def await_complete(self, timeout_s: float) -> bool:
        """Wait until all wanted nodes exist; return whether they do."""
        with self._changed:
            return self._changed.wait_for(self._is_complete, timeout_s)

    def deregister(self) -> None:
        """Delete the topic nodes, then the id node, for good."""
        with self._changed:
            broker, self._broker = self._broker, None
            self._topics = {}
        if broker is None:
            return
        # Without a connection the session expires soon, and the nodes with it.
        if self._session.state is not SessionState.CONNECTED:
            raise errors.RegistryUnreachableError(
                f"no connection to ZooKeeper at {self._session.connect}: the registration of "
                f"broker {broker.id} vanishes with its session, up to "
                f"{self._session.session_timeout_s:g}s after ZooKeeper is back"
            )
        with self._work:
            nodes = [paths.topic_broker(topic, broker.id) for topic in self._registered_topics]
            self._session.delete_many(nodes)
            self._delete_own(paths.broker(broker.id))
            self.forget_session()

    def close(self) -> None:
        """End a wait in progress, and register nothing from now on."""
        self._is_closed = True
        self._wakeup.set()

    def _register_broker(self, info: values.BrokerInfo, limit_s: float) -> None:
        """Create the id node; caller holds `_work`."""
        self._repeated(partial(self._register_in_session, info), limit_s)

    def _register_in_session(self, info: values.BrokerInfo) -> None:
        """Create the id node, and that for replication, in the present session."""
        deadline_s = time.monotonic() + self._wait_limit_s
        session_id = self._session.session_id
        while not self._try_register_broker(info, deadline_s):
            pass
        self._register_for_replication(info)
        with self._changed:
            self._registered_session = session_id
            if self._topics_session != session_id:
                self._registered_topics = {}
                self._topics_session = session_id
        self._watch_created([paths.broker(info.id), paths.replicated_broker(info.id)])

    def _repeated(self, action: Callable[[], _T], limit_s: float) -> _T:
        """Repeat an idempotent action for `limit_s` until it ends without a lost connection."""
        deadline_s = time.monotonic() + limit_s
        while True:
            try:
                return action()
            except errors.RegistryUnreachableError:
                if self._is_closed or time.monotonic() >= deadline_s:
                    raise

    def _register_for_replication(self, info: values.BrokerInfo) -> None:
        """Create the node by which controllers know the broker; caller holds `_work`."""
        self._was_registered_clean = self._is_clean
        path, value = self._replication_node(info)
        # The id node is ours, so a node of another session is from an earlier run. It is never
        # kept: the new one tells the controller that the broker is another run, or was away.
        if self._session.create_many({path: value}):
            self._take_over(path, value)

    def _replication_node(self, info: values.BrokerInfo) -> tuple[str, bytes]:
        value = values.encode_replicated_broker(
            info.host,
            info.port,
            self._rack,
            is_clean=self._is_clean,
            has_replicas=self.has_replicas(),
        )
        return paths.replicated_broker(info.id), value

    def _try_register_broker(self, info: values.BrokerInfo, deadline_s: float) -> bool:
        """Create the id node, or find that it is ours; return False to try again."""
        if self._is_closed:
            raise errors.RegistryUnreachableError("the registry was stopped")
        self._validate_cluster()
        path = paths.broker(info.id)
        try:
            self._session.create(path, values.encode_broker(info), ephemeral=True)
        except errors.RegistryConflictError:
            # after a lost connection, the node may be our own from the first attempt
            with contextlib.suppress(errors.RegistryNodeNotFoundError):
                return self._resolve_conflict(info, *self._session.get(path), deadline_s)
            return False
        return True

    def _resolve_conflict(
        self, info: values.BrokerInfo, value: bytes, stat: NodeStat, deadline_s: float
    ) -> bool:
        """Handle an existing id node; return whether it is ours now."""
        path = paths.broker(info.id)
        if stat.ephemeral_owner == self._session.session_id:
            if value != values.encode_broker(info):
                self._session.set(path, values.encode_broker(info))
            return True
        holder = values.decode_broker(info.id, value)
        if holder == info:  # an earlier run of this broker
            with contextlib.suppress(errors.RegistryConflictError):
                self._session.replace_ephemeral(path, value, version=stat.version)
                return True
            return False
        # If only creator or address is equal (the port was changed, or the data directory is new
        # or a copy), the holder may be alive, so its session gets time to expire.
        if holder.creator == info.creator or holder.address == info.address:
            remaining_s = deadline_s - time.monotonic()
            if remaining_s > 0:
                self._await_end_of(path, holder, remaining_s)
                return False
        raise errors.RegistryConflictError(
            f"broker id {info.id} is already registered by {holder.address}"
            f" (creator {holder.creator})"
        )

    def _await_end_of(self, path: str, holder: values.BrokerInfo, timeout_s: float) -> None:
        logger.info(
            "waiting up to %.0f s for the former registration of broker %d (%s) to expire",
            timeout_s,
            holder.id,
            holder.address,
        )
        self._wakeup.clear()
        if not self._is_closed and self._session.exists(path, watch=self._wakeup.set):
            self._wakeup.wait(timeout_s)

    def _register_topics(self, broker_id: int, topics: Mapping[str, _Topic]) -> None:
        """Create topic nodes; caller holds `_work`."""
        with self._changed:
            new = self._new_topics & topics.keys()
        # before the counts: a client that sees the topic then knows its creation
        self._record_creations(broker_id, topics, new)
        nodes = {
            paths.topic_broker(name, broker_id): values.encode_number(topic.partition_count)
            for name, topic in topics.items()
        }
        # The id node is ours, so a node of another session is from an earlier run. It is replaced
        # even if its value is right, as it would expire with that session.
        for path in self._session.create_many(nodes):
            self._take_over(path, nodes[path])
        with self._changed:
            self._registered_topics.update(topics)
            self._new_topics -= {one for one in new if self._topics.get(one) == topics[one]}
            # a start with thousands of topics is not delayed by the watches
            self._changed.notify_all()
        self._watch_created(nodes)

    def _record_creations(
        self, broker_id: int, topics: Mapping[str, _Topic], new: Collection[str]
    ) -> None:
        """Replace the creation ids of topics that were created again, and add missing ones."""
        # a topic with replicas has the id that the controller gives
        with_replicas = self._session.get_many(map(paths.replicated_topic, topics))
        nodes = {
            paths.creation_id(topic, broker_id): topic
            for topic in topics
            if paths.replicated_topic(topic) not in with_replicas
        }
        found = self._session.get_many(nodes)
        # The moment at which a node was created tells which offsets are older than the topic. That
        # of an existing topic whose node is missing, as ZooKeeper has lost its data, is unknown, so
        # no id is written for it.
        missing = {
            path: topics[topic].creation_id if topic in new else None
            for path, topic in nodes.items()
            if path not in found
        }
        replaced: dict[str, str | None] = {}
        for path, (value, _) in found.items():
            creation_id, known = topics[nodes[path]].creation_id, values.decode_creation_id(value)
            is_surely_another = known is not None or nodes[path] in new
            if creation_id not in (None, known) and is_surely_another:
                replaced[path] = creation_id
        self._session.delete_many(replaced)
        wanted = {
            path: values.encode_creation_id(one) for path, one in (missing | replaced).items()
        }
        self._session.create_many(wanted, ephemeral=False)

    def _take_over(self, path: str, value: bytes) -> None:
        try:
            stat = self._session.get(path)[1]
        except errors.RegistryNodeNotFoundError:
            self._session.create(path, value, ephemeral=True)
            return
        if stat.ephemeral_owner == self._session.session_id:
            self._session.set(path, value)
        else:
            self._session.replace_ephemeral(path, value, version=stat.version)

    def _delete_own(self, path: str) -> None:
        with contextlib.suppress(errors.RegistryNodeNotFoundError):
            if self._session.get(path)[1].ephemeral_owner == self._session.session_id:
                self._session.delete(path)
