"""Keeping one broker registered: its id node, that for replication, and one for each of its topics.

`OwnBroker` creates the first two, in place of those of earlier runs. `Registration` holds the
wanted nodes and creates them, again after each new session. `Registry` decides when, and on which
thread. Source: Kafka 0.7 `KafkaZooKeeper`, `ZkUtils.createEphemeralPathExpectConflict`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from enum import Enum, auto
from functools import partial
from typing import NamedTuple, TypeVar

from broker import errors
from broker.cluster_state import UNKNOWN_BROKER_EPOCH, LiveBroker
from broker.endpoints import Endpoint
from broker.errors import RegistryAccessError
from broker.zk import paths, values
from broker.zk.creations import change_homes, read_homes, record_creations, record_deletions
from broker.zk.nodes import NodeStat
from broker.zk.replicated_values import encode_replicated_broker
from broker.zk.session import Session, SessionState


class OwnBroker:
    """Creates the nodes of one broker in the present session, in place of those of earlier runs.

    For one thread at a time; others may call `close` and set `is_clean`.
    """

    def __init__(self, session: Session, *, wait_limit_s: float) -> None:
        self._session = session
        self.wait_limit_s = wait_limit_s  # for the end of a session that may be a live broker's
        self.rack = ""
        self.endpoints: tuple[Endpoint, ...] = ()
        """Of its listeners, that for other brokers first; empty if there is the plain one only."""
        self.is_clean = False
        self._was_registered_clean = False
        self.has_replicas: Callable[[], bool] = lambda: False
        # when the cluster id's node was created: another time once ZooKeeper has lost its data
        self.registry_id: int = 0
        self._cluster_id: str | None = None
        self._cluster_session: int | None = None  # in which it was found to be this one
        self._wakeup = threading.Event()
        self.is_closed: bool = False

    def join_cluster(self, proposed_id: str) -> str:
        """Return the id of the cluster; see `Registry.join_cluster`."""
        session_id = self._session.session_id
        if self._session.sets_acls:
            close_parents(self._session)
        try:
            value, stat = self._session.get(paths.CLUSTER_ID)
        except errors.RegistryNodeNotFoundError:
            if self._session.sets_acls:
                check_new_cluster(self._session)
            with contextlib.suppress(errors.RegistryConflictError):
                self._session.create(paths.CLUSTER_ID, values.encode_cluster_id(proposed_id))
            value, stat = self._session.get(paths.CLUSTER_ID)
        self.registry_id = stat.ctime_ms
        found = values.decode_cluster_id(value)
        if self._cluster_id not in (None, found):
            raise errors.RegistryConflictError(
                f"ZooKeeper is now of cluster {found}, and this broker of cluster {proposed_id}"
            )
        self._cluster_id, self._cluster_session = found, session_id
        return found

    def create_nodes(self, info: values.BrokerNode) -> None:
        """Create both nodes; `RegistryConflictError` if another broker has the id."""
        deadline_s = time.monotonic() + self.wait_limit_s
        while not self._try_to_create(info, deadline_s):
            pass
        self._was_registered_clean = self.is_clean
        # The id node is ours, so a node of another session is from an earlier run. It is never
        # kept: the new one tells the controller that the broker is another run, or was away.
        path, value = self._replication_node(info)
        create_own(self._session, {path: value})

    def update_nodes(self, info: values.BrokerNode) -> None:
        """Record that the broker is clean, if it was not when its nodes were created."""
        if self.is_clean and not self._was_registered_clean:
            self._session.set(*self._replication_node(info))
            self._was_registered_clean = True

    def delete_id_node(self, broker_id: int) -> None:
        """Delete the id node, if it is of this session."""
        path = paths.broker(broker_id)
        with contextlib.suppress(errors.RegistryNodeNotFoundError):
            if self._session.get(path)[1].ephemeral_owner == self._session.session_id:
                self._session.delete(path)

    def close(self) -> None:
        """End a wait in progress, and create nothing from now on."""
        self.is_closed = True
        self._wakeup.set()

    def _replication_node(self, info: values.BrokerNode) -> tuple[str, bytes]:
        peer = self.endpoints[0] if self.endpoints else info
        broker = LiveBroker(
            *(info.id, peer.host, peer.port, UNKNOWN_BROKER_EPOCH, self.is_clean, self.rack),
            *(self.has_replicas(), self.endpoints),
        )
        return paths.replicated_broker(info.id), encode_replicated_broker(broker)

    def _try_to_create(self, info: values.BrokerNode, deadline_s: float) -> bool:
        """Create the id node, or find that it is ours; return False to try again."""
        if self.is_closed:
            raise errors.RegistryUnreachableError("the registry was stopped")
        session_id = self._session.session_id
        if self._cluster_id and (session_id is None or session_id != self._cluster_session):
            self.join_cluster(self._cluster_id)
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
        self, info: values.BrokerNode, value: bytes, stat: NodeStat, deadline_s: float
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
        # Port, host and data directory of a broker that replaces a dead one may all be new: only
        # the end of the holder's session tells that it is dead.
        remaining_s = deadline_s - time.monotonic()
        if remaining_s > 0:
            self._await_end_of(path, holder, remaining_s)
            return False
        raise errors.RegistryConflictError(
            f"broker id {info.id} is already registered by {holder.address}"
            f" (creator {holder.creator})"
        )

    def _await_end_of(self, path: str, holder: values.BrokerNode, timeout_s: float) -> None:
        logger.info(
            "waiting up to %.0f s for the former registration of broker %d (%s) to expire",
            *(timeout_s, holder.id, holder.address),
        )
        self._wakeup.clear()
        if not self.is_closed and self._session.exists(path, watch=self._wakeup.set):
            self._wakeup.wait(timeout_s)


def recorded_topics(session: Session, broker_id: int) -> set[str]:
    """Return the topics without replicas that a broker has created, and has not deleted."""
    topics = set(session.children_if_any(paths.TOPICS))
    topics -= set(session.children_if_any(paths.REPLICATED_TOPICS))
    nodes = {paths.creation_id(topic, broker_id): topic for topic in topics}
    found = session.get_many(nodes)
    return {nodes[one] for one, (value, _) in found.items() if value != values.DELETED_CREATION}


def create_own(session: Session, nodes: Mapping[str, bytes]) -> None:
    """Create ephemeral nodes of a session, in place of existing ones, whosever those are."""
    for path in session.create_many(nodes):
        try:
            stat = session.get(path)[1]
        except errors.RegistryNodeNotFoundError:
            session.create(path, nodes[path], ephemeral=True)
            continue
        if stat.ephemeral_owner == session.session_id:
            session.set(path, nodes[path])
        else:
            session.replace_ephemeral(path, nodes[path], version=stat.version)


_PARENTS = ("/", *paths.OPEN_TREES)


def close_parents(session: Session) -> None:
    """Close the chroot's own node, without a chroot the root, and keep the open trees below it.

    The nodes above a chroot may stay open: it has children that nobody else can delete, and a node
    with children cannot be deleted.

    Raises:
        RegistryAccessError: others may create or delete nodes there, and the session may not
            change that.
    """
    # An empty chroot can be replaced by others until it has children: the last look decides.
    for _ in range(2):
        with suppress(RegistryAccessError):
            session.set_acls(session.excess_rights(_PARENTS), is_secured=True)
        session.create_many(dict.fromkeys(paths.OPEN_TREES, b""), ephemeral=False)
    found = session.excess_rights(["/"]).get("/", "")
    if found:
        raise RegistryAccessError(
            f"others could replace the brokers' nodes in ZooKeeper {session.connect}: of the node "
            f"above them {found}, and the user '{session.user}' may not change its ACL",
            hints=[
                f"give '{session.user}' all rights on that node, or add a path to zk.connect: a "
                "node that brokers make for themselves"
            ],
        )


def open_nodes(session: Session) -> list[str]:
    """Return by which nodes others could change what is the brokers', as clauses."""
    try:
        users = [f"{paths.USERS}/{name}" for name in session.children_if_any(paths.USERS)]
    except RegistryAccessError:
        users = []  # their parent is found below
    found = session.excess_rights([*paths.OWN_NODES, *users])
    return [f"node {path}: {excess}" for path, excess in found.items()]


def check_new_cluster(session: Session) -> None:
    """Raise `RegistryAccessError` if there are open nodes of brokers before the first broker."""
    if found := open_nodes(session):
        raise RegistryAccessError(
            "ZooKeeper has nodes from before this cluster, which others can have written: "
            + "; ".join(found),
            hints=[
                "delete them (pylogctl zk rm), or if they are yours, keep them: pylogctl zk secure"
            ],
        )


logger = logging.getLogger(__name__)

# Servers expire sessions at the next tick after the timeout, and only while they have a leader.
_EXPIRY_SLACK = 1.5
_NAMED_MAX = 5

_T = TypeVar("_T")


def _listed(node_paths: list[str]) -> str:
    rest = len(node_paths) - _NAMED_MAX
    return ", ".join(node_paths[:_NAMED_MAX]) + (f" and {rest} more" if rest > 0 else "")


class Wake(Enum):
    """Why `synchronize` is due, besides changes of the session's state."""

    TOPIC = auto()
    NODES = auto()  # of this broker, which may be gone
    STOP = auto()  # not due any more


class _Topic(NamedTuple):
    """A topic of the broker: its partition count, and its creation id if it has one."""

    partition_count: int
    creation_id: str | None


class Registration:
    """The nodes one broker wants in the registry, and those it has created.

    Args:
        session_timeout_ms: after so long the nodes of an earlier run expire.
        on_change: called when `synchronize` is due, also in the session's thread; must not block.

    Attributes:
        session: the session with ZooKeeper, for other nodes too.
        broker_epoch: the change of ZooKeeper that made the last registration of the broker for
            replication; None before the first.
    """

    def __init__(
        self, session: Session, *, session_timeout_ms: int, on_change: Callable[[Wake], None]
    ) -> None:
        self.session = session
        self.own: OwnBroker = OwnBroker(
            session, wait_limit_s=session_timeout_ms / 1000 * _EXPIRY_SLACK
        )
        self._start_limit_s = self.own.wait_limit_s
        self._writing = threading.Lock()  # one writer of nodes at a time
        self._changed = threading.Condition()  # guards the fields below
        self._info: values.BrokerNode | None = None  # that is, or should be, registered
        self.broker_epoch: int | None = None
        self._topics: dict[str, _Topic] = {}
        self._assigned: set[str] = set()  # recorded as topics of this broker, perhaps not here yet
        self.on_assigned: Callable[[str, int], object] = lambda _topic, _count: None
        self._new_topics: set[str] = set()  # created, and not registered since
        self._registered_topics: dict[str, _Topic] = {}
        self._registered_session: int | None = None
        self._topics_session: int | None = None  # of the nodes in _registered_topics
        self._changed_nodes: set[str] = set()  # whose watches have fired
        self._on_change = on_change
        self._error: errors.CoordinationError | None = None  # of the last attempt

    def _is_complete(self) -> bool:
        """Return whether all wanted nodes were created in this session; caller holds `_changed`."""
        if self._info is None:
            return True
        is_current = self._registered_session is not None
        return is_current and self._topics == self._registered_topics

    def extend_start(self, limit_s: float) -> None:
        """Retry the first registration of a broker for `limit_s` after lost connections."""
        self._start_limit_s = max(self.own.wait_limit_s, limit_s)

    def join_cluster(self, proposed_id: str) -> str:
        """Return the id of the cluster; one without an id gets the proposed one.

        The broker is registered with this cluster only, also after an expired session. If ZooKeeper
        has lost the id by then, it gets it again.
        """
        return self._repeated(partial(self.own.join_cluster, proposed_id), self._start_limit_s)

    @property
    def registry_id(self) -> int:
        """Return a number that changes if ZooKeeper loses its data; 0 before `join_cluster`."""
        return self.own.registry_id

    def register_broker(
        self,
        broker_id: int,
        host: str,
        port: int,
        *,
        creator: str,
        rack: str = "",
        is_clean: bool = False,
        has_replicas: Callable[[], bool] = lambda: False,
        on_assigned: Callable[[str, int], object] = lambda _topic, _count: None,
        endpoints: tuple[Endpoint, ...] = (),
    ) -> None:
        """Register this process's broker, and again after each expired session.

        A node left by an earlier run of the same broker is replaced. If it may belong to a live
        broker (same creator at another address, or the reverse), its session gets time to expire.

        Args:
            broker_id: 0 or more.
            host: the address clients connect to.
            port: the port clients connect to.
            creator: `<host>-<milliseconds>`, made once for a data directory and kept in it.
            rack: the broker's rack, empty if unknown.
            is_clean: whether the logs are as they were when the broker was last registered; if not,
                it leaves the in-sync replicas of its partitions. See `mark_clean`.
            has_replicas: returns whether it has logs of replicas. The controller asks such a broker
                about them even if it knows of no topic with replicas.
            on_assigned: called with a topic recorded as of this broker that it does not have, and
                the number of its partitions here; in the worker's thread.
            endpoints: of all its listeners, that for other brokers first; empty if there is only
                the plain one of `host` and `port`.

        Raises:
            RegistryConflictError: another broker has the id; the message names it.

        Source: Kafka 0.7 `ZkUtils.registerBrokerInZk`, which refuses a fast restart as well.
        """
        info = values.BrokerNode(broker_id, host, port, creator)
        own = self.own
        self.on_assigned, own.has_replicas, own.endpoints = on_assigned, has_replicas, endpoints
        with self._writing:
            own.rack, own.is_clean = rack, is_clean
            self._repeated(partial(self._register_in_session, info), self._start_limit_s)
            with self._changed:
                self._info = info
                self._changed.notify_all()
        self._on_change(Wake.TOPIC)  # topics may have been added before the broker

    def mark_clean(self) -> None:
        """Record that the controller knows of an unclean start: the process has lost nothing since.

        Returns at once. Called when the controller's first states have come.
        """
        self.own.is_clean = True
        self._on_change(Wake.TOPIC)

    def register_topic(
        self,
        topic: str,
        partition_count: int,
        *,
        creation_id: str | None = None,
        is_new: bool = False,
    ) -> None:
        """Have the worker register a topic of this broker, now and after each expired session.

        Returns at once; `await_registered` waits for it. Takes effect after `register_broker`.

        Args:
            topic: its name.
            partition_count: how many partitions of it this broker has.
            creation_id: differs from that of former topics of the same name; None if unknown.
            is_new: it has just been created: offsets stored until now are not of this topic.
        """
        with self._changed:
            self._topics[topic] = _Topic(partition_count, creation_id)
            if is_new:
                self._new_topics.add(topic)
        self._on_change(Wake.TOPIC)

    def deregister_topic(self, topic: str) -> None:
        """Have the worker remove a topic of this broker, if it is registered; returns at once.

        The topic's own node stays: other brokers may have it.
        """
        with self._changed:
            self._topics.pop(topic, None)
            self._new_topics.discard(topic)
        self._on_change(Wake.TOPIC)

    def note_assigned(self, topics: Collection[str]) -> None:
        """Have the worker create topics recorded as of this broker that it does not have.

        Returns at once.
        """
        self._assign(topics)
        self._on_change(Wake.TOPIC)

    def _assign(self, topics: Collection[str]) -> None:
        with self._changed:
            self._assigned.update(topics)

    def synchronize(self) -> None:
        """Create the wanted nodes missing in the present session, and delete unwanted ones."""
        with self._writing:
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
        """Caller holds `_writing`."""
        broker = self._info
        if broker is None:
            return
        gone = self._forget_gone(broker.id)
        if self.session.session_id != self._registered_session:
            if self._registered_session is not None:
                self.forget_session()
            self._repeated(partial(self._register_in_session, broker), self.own.wait_limit_s)
        self.own.update_nodes(broker)
        with self._changed:
            if self._info is None:
                return  # `deregister_broker` waits for `_writing`; the broker keeps its topics
            missing = dict(self._topics.items() - self._registered_topics.items())
            surplus = self._registered_topics.keys() - self._topics.keys()
        if surplus:
            self._forget_home(broker.id, surplus)
            self.session.delete_many(paths.topic_broker(topic, broker.id) for topic in surplus)
            record_deletions(self.session, broker.id, surplus)
            with self._changed:
                for topic in surplus:
                    self._registered_topics.pop(topic, None)
        if missing:
            self._register_topics(broker.id, missing)
        self._create_assigned(broker.id)
        if gone:
            logger.warning(
                "nodes of broker %d were missing in ZooKeeper, deleted by another client or with "
                "its history, and are registered again: %s",
                broker.id,
                _listed(gone),
            )

    def _forget_home(self, broker_id: int, topics: Collection[str]) -> None:
        """Remove this broker from the homes of topics that it has deleted."""
        live = set(values.broker_ids(self.session.children_if_any(paths.BROKER_IDS)))

        def without(homes: dict[int, int]) -> dict[int, int]:
            homes.pop(broker_id, None)
            # the last live home takes those along that are away: else the topic would seem to exist
            return homes if live & homes.keys() else {}

        change_homes(self.session, dict.fromkeys(topics, without))

    def _create_assigned(self, broker_id: int) -> None:
        """Have topics created that another broker has recorded as this one's."""
        # read again here, after the deletions: what was noted may be of a topic deleted since
        with self._changed:
            noted = self._assigned - self._topics.keys()
            # the record of one that was deleted during this pass is removed by the next one
            self._assigned = noted & self._registered_topics.keys()
            assigned = noted - self._assigned
        for topic, homes in read_homes(self.session, assigned).items():
            if broker_id not in homes:
                continue
            try:
                self.on_assigned(topic, homes[broker_id])
            except errors.StorageError as error:
                logger.error("topic '%s' is not created here: %s", topic, error)
                self._assign([topic])  # tried again with the next change
            except errors.UnknownTopicError:  # a former one's deletion: its end is a change
                self._assign([topic])

    def _forget_gone(self, broker_id: int) -> list[str]:
        """Read the nodes whose watches have fired; return those to be created again."""
        with self._changed:
            fired, self._changed_nodes = self._changed_nodes, set()
            nodes = {
                paths.topic_broker(topic, broker_id): topic for topic in self._registered_topics
            }
        own = {paths.broker(broker_id), paths.replicated_broker(broker_id)}
        suspects = fired & {*own, *nodes}
        found = self._watch_nodes(suspects)
        session_id = self.session.session_id
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
        try:
            found = self.session.get_many(node_paths, watch=lambda path: partial(self._note, path))
        except errors.CoordinationError:
            with self._changed:
                self._changed_nodes.update(node_paths)  # the next attempt watches them
            raise
        for path, (_, stat) in found.items():
            if path.startswith(paths.REPLICATED_BROKERS):
                self.broker_epoch = stat.czxid
        return {path: stat for path, (_, stat) in found.items()}

    def _watch_created(self, node_paths: Collection[str]) -> None:
        """Watch nodes that were created; some may be gone again."""
        for path in set(node_paths) - self._watch_nodes(node_paths).keys():
            self._note(path)

    def _note(self, path: str) -> None:
        with self._changed:
            is_first = not self._changed_nodes
            self._changed_nodes.add(path)
        if is_first:
            self._on_change(Wake.NODES)

    def forget_session(self) -> None:
        """Record that the session, and with it all nodes, has expired."""
        with self._changed:
            self._registered_session = None
            self._registered_topics = {}

    def await_registered(self, timeout_s: float = 10.0) -> None:
        """Wait until the broker and all its topics are registered.

        Raises the `CoordinationError` of the last attempt, or one about the time limit.
        """
        with self._changed:
            is_complete = self._changed.wait_for(self._is_complete, timeout_s)
        if not is_complete:
            raise self._error or errors.RegistryUnreachableError(
                f"registration at {self.session.connect} is not complete after {timeout_s:g}s"
            )

    def deregister_broker(self) -> None:
        """Remove this broker and its topics from the registry for good.

        The first step of a controlled shutdown: clients turn to other brokers while this one still
        serves. Topics are removed first, as 0.7's consumers watch only those. On a
        `CoordinationError` some node may remain until the session ends.
        """
        with self._changed:
            broker, self._info = self._info, None
            self._topics = {}
        if broker is None:
            return
        # Without a connection the session expires soon, and the nodes with it.
        if self.session.state is not SessionState.CONNECTED:
            raise errors.RegistryUnreachableError(
                f"no connection to ZooKeeper at {self.session.connect}: the registration of "
                f"broker {broker.id} vanishes with its session, up to "
                f"{self.session.session_timeout_s:g}s after ZooKeeper is back"
            )
        with self._writing:
            nodes = [paths.topic_broker(topic, broker.id) for topic in self._registered_topics]
            self.session.delete_many(nodes)
            self.own.delete_id_node(broker.id)
            self.forget_session()

    def _register_in_session(self, info: values.BrokerNode) -> None:
        """Create the id node, and that for replication, in the present session."""
        session_id = self.session.session_id
        self.own.create_nodes(info)
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
                if self.own.is_closed or time.monotonic() >= deadline_s:
                    raise

    def _register_topics(self, broker_id: int, topics: Mapping[str, _Topic]) -> None:
        """Create topic nodes; caller holds `_writing`."""
        with self._changed:
            new = self._new_topics & topics.keys()
        # before the counts: a client that sees the topic then knows its creation and its homes
        creation_ids = {name: topic.creation_id for name, topic in topics.items()}
        plain = record_creations(self.session, broker_id, creation_ids, new)

        def with_own(count: int, homes: dict[int, int]) -> dict[int, int]:
            return {**homes, broker_id: count}

        change_homes(
            self.session, {one: partial(with_own, topics[one].partition_count) for one in plain}
        )
        nodes = {
            paths.topic_broker(name, broker_id): values.encode_number(topic.partition_count)
            for name, topic in topics.items()
        }
        # The id node is ours, so a node of another session is from an earlier run. It is replaced
        # even if its value is right, as it would expire with that session.
        create_own(self.session, nodes)
        with self._changed:
            self._registered_topics.update(topics)
            self._new_topics -= {one for one in new if self._topics.get(one) == topics[one]}
            # a start with thousands of topics is not delayed by the watches
            self._changed.notify_all()
        self._watch_created(nodes)
