"""The nodes by which others know one broker: its id node, and that for replication.

Source: Kafka 0.7 `ZkUtils.createEphemeralPathExpectConflict`.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress

from broker import errors
from broker.endpoints import Endpoint
from broker.errors import RegistryAccessError
from broker.zk import paths, values
from broker.zk.nodes import NodeStat
from broker.zk.replicated_values import encode_replicated_broker
from broker.zk.session import Session

logger = logging.getLogger(__name__)


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

    def create_nodes(self, info: values.BrokerInfo) -> None:
        """Create both nodes; `RegistryConflictError` if another broker has the id."""
        deadline_s = time.monotonic() + self.wait_limit_s
        while not self._try_to_create(info, deadline_s):
            pass
        self._was_registered_clean = self.is_clean
        # The id node is ours, so a node of another session is from an earlier run. It is never
        # kept: the new one tells the controller that the broker is another run, or was away.
        path, value = self._replication_node(info)
        create_own(self._session, {path: value})

    def update_nodes(self, info: values.BrokerInfo) -> None:
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

    def _replication_node(self, info: values.BrokerInfo) -> tuple[str, bytes]:
        peer = self.endpoints[0] if self.endpoints else info
        return paths.replicated_broker(info.id), encode_replicated_broker(
            *(peer.host, peer.port, self.rack),
            is_clean=self.is_clean,
            has_replicas=self.has_replicas(),
            endpoints=self.endpoints,
        )

    def _try_to_create(self, info: values.BrokerInfo, deadline_s: float) -> bool:
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

    def _await_end_of(self, path: str, holder: values.BrokerInfo, timeout_s: float) -> None:
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
