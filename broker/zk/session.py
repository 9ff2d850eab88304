"""A session with ZooKeeper: connecting, reading and writing nodes, states and errors.

Only this module, `handshakes` and `tls` use kazoo. Paths are relative to the chroot,
which is created with the first write below it.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from enum import StrEnum
from typing import Any, Self

from kazoo import exceptions as kazoo_errors
from kazoo.client import KazooClient
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol.states import KazooState
from kazoo.retry import ForceRetryError, KazooRetry
from kazoo.security import ACL, ANYONE_ID_UNSAFE, OPEN_ACL_UNSAFE, Permissions, make_digest_acl

from broker import deadlines, errors
from broker.stats import SharedHistogram
from broker.zk.handshakes import KazooHandler, KazooHandshakes
from broker.zk.nodes import (
    MAX_REQUEST_BYTES,
    CheckNode,
    CreateNode,
    DeleteNode,
    NodeChange,
    NodeStat,
    SetNode,
    TransactionOutcome,
    node_stat,
)
from broker.zk.paths import CLUSTER_ID, Protection, parse_connect_string, protection_of, resolve
from broker.zk.security import ZooKeeperCredential, ZooKeeperSecurity, found_security

FOREIGN = (kazoo_errors.KazooException, KazooTimeoutError, ForceRetryError)

# The request or its response was lost: it may or may not have been carried out.
LOST_REQUEST = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.OperationTimeoutError,
    kazoo_errors.SessionExpiredError,
)

_UNREACHABLE: dict[type[Exception], str] = {
    kazoo_errors.ConnectionLoss: "the connection was lost",
    kazoo_errors.OperationTimeoutError: "it took too long",
    kazoo_errors.SessionExpiredError: "the session expired",
    kazoo_errors.SessionMovedError: "the session moved to another server",
    KazooTimeoutError: "none came in time",
    ForceRetryError: "the connection was lost",
}
"""Why no response came, by kazoo's error."""

_CHANGED = (
    kazoo_errors.BadVersionError,
    kazoo_errors.RolledBackError,
    kazoo_errors.RuntimeInconsistency,
)


@contextmanager
def translated(servers: str, path: str, user: str | None = None) -> Iterator[None]:
    """Translate kazoo's errors into those of `broker.errors`, which name servers and node."""
    try:
        yield
    except FOREIGN as error:
        raise translated_error(error, servers, path, user) from error


_REFUSALS: tuple[tuple[Any, type[errors.CoordinationError], str], ...] = (
    (kazoo_errors.NoNodeError, errors.RegistryNodeNotFoundError, "no node {} in ZooKeeper"),
    (kazoo_errors.NodeExistsError, errors.RegistryConflictError, "node {} exists already"),
    (_CHANGED, errors.RegistryConflictError, "node {} was changed by another client"),
    (kazoo_errors.NotEmptyError, errors.CoordinationError, "node {} has children"),
    (
        kazoo_errors.NoChildrenForEphemeralsError,
        errors.CoordinationError,
        "the parent of node {} is ephemeral",
    ),
)


def translated_error(
    error: Exception, servers: str, path: str, user: str | None
) -> errors.CoordinationError:
    """Return the error of `broker.errors` for one of kazoo's, of a request for a node."""
    cause = next((text for kind, text in _UNREACHABLE.items() if isinstance(error, kind)), None)
    if cause is not None:
        return errors.RegistryUnreachableError(f"no answer from ZooKeeper at {servers}: {cause}")
    if isinstance(error, kazoo_errors.NoAuthError):
        return _no_right(servers, path, user)
    for kinds, kind, text in _REFUSALS:
        if isinstance(error, kinds):
            return kind(text.format(path))
    return errors.CoordinationError(f"ZooKeeper refused a request for {path}: {error!r}")


def _no_right(servers: str, path: str, user: str | None) -> errors.RegistryAccessError:
    if user is None:
        who, hint = "a client without a credential", "give that of the brokers"
    else:
        # a wrong password makes another identity, which the server tells nobody
        who, hint = (
            f"the credential of user '{user}'",
            "compare user and password with the brokers'",
        )
    return errors.RegistryAccessError(
        f"ZooKeeper at {servers} does not allow this with node {path} to {who}",
        hints=[f"{hint}: --zk-credential FILE, or zookeeper.credential.file"],
        details={"path": path, "user": user},
    )


_NOT_AT_FAULT = (kazoo_errors.RolledBackError, kazoo_errors.RuntimeInconsistency)
"""Results of the changes of a transaction that were not made because another one failed."""

# Kazoo logs every failed attempt to connect; `Registry` logs each change of state once.
_kazoo_logger = logging.getLogger(f"{__name__}.kazoo")
_kazoo_logger.setLevel(logging.ERROR)

DEFAULT_SESSION_TIMEOUT_MS = 6000
DEFAULT_REQUEST_TIMEOUT_S = 10.0
_REFUSED_AFTER_S = 0.3
"""After so long without a session `start` looks whether all servers refuse connections."""
_STATUS_WORD = b"srvr\n"  # every ZooKeeper answers it, if only by why it does not
_FRAME_BYTES = 256  # of a request, around path and value, at most
_USUAL_LIMIT_BYTES = 1_048_575
_STATUS_TEXT = b"zookeeper"
_STATUS_BYTES = 4096
_TLS_ALERT = b"\x15\x03"
_PROBE_S = 1.0
_NODES_AT_ONCE = 256
_RIGHTS = {
    Permissions.READ: "read",
    Permissions.WRITE: "write",
    Permissions.CREATE: "create",
    Permissions.DELETE: "delete",
    Permissions.ADMIN: "admin",
}
_RIGHTS_OF_ALL = {
    Protection.OPEN: Permissions.ALL,
    Protection.SHARED: Permissions.ALL & ~Permissions.ADMIN,
    Protection.READABLE: Permissions.READ,
    Protection.SECRET: 0,
}


Watch = Callable[[], None]
WatchOf = Callable[[str], Watch | None]
"""Returns the watch of a path, None for none."""


def _unwatched(_path: str) -> None:
    """Watch no node."""


class SessionState(StrEnum):
    """Whether the session is connected, disconnected for now, or expired."""

    CONNECTED = "connected"
    SUSPENDED = "suspended"
    LOST = "lost"


class Session:
    """One client session, kept alive and replaced after expiry until it is stopped.

    Methods may be called from any thread but kazoo's own, that is, not from a `watch`. Paths are
    absolute, below the chroot; a version of -1 stands for any. The methods for many nodes have all
    requests in flight at once, and pass over nodes that are missing or have another version. Reads
    are repeated after a lost connection; writes are made once, as a repetition could mistake its
    own effect for another client's.

    A watch is called once, in kazoo's thread, when the node changes, is deleted, or the connection
    is lost; it must return at once and not call the session.

    Errors of all methods: `RegistryUnreachableError` if no response came in time: a write may then
    have been made; `RegistryNodeNotFoundError` for a missing node, `RegistryConflictError` for one
    that exists already or has another version, `CoordinationError` if the server refuses for
    another reason.

    Args:
        connect: `host:port,host:port[/chroot]`; `ConfigError` if it is malformed.
        session_timeout_ms: the server ends the session, and deletes its ephemeral nodes, after so
            long without a heartbeat; servers clamp it to 2..20 of their ticks.
        request_timeout_s: how long a request waits for the connection and the response.
        on_state_change: called in kazoo's thread with the new state; must return at once and not
            call the session.
        security: what it proves itself with; by default, the credential of an embedded server there
            that runs as this user.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        request_timeout_s: float = DEFAULT_REQUEST_TIMEOUT_S,
        on_state_change: Callable[[SessionState], None] | None = None,
        security: ZooKeeperSecurity | None = None,
    ) -> None:
        self._address = parse_connect_string(connect)
        security = found_security(self._address.hosts) if security is None else security
        self._credential = own = security.credential
        self._proved = () if own is None else (own, *own.others)
        self._user = None if own is None else own.user
        self._sets_acls = security.sets_acls
        self.connect: str = str(self._address)
        self._on_state_change = on_state_change
        self._request_timeout_s = request_timeout_s
        self.read_times: SharedHistogram = SharedHistogram()
        self.write_times: SharedHistogram = SharedHistogram()
        """Requests since the start, with those made again, and without the wait to be connected."""
        self._connected = threading.Event()
        self._awaits_connection = True
        self._is_stopped = False
        self._handler = KazooHandler()
        self._speaks_tls = security.tls is not None
        if security.tls is not None:
            from broker.zk.tls import TlsHandler  # late: most sessions are plain

            self._handler = TlsHandler(security.tls)
        self._client: Any = KazooClient(
            hosts=self._address.servers,
            timeout=session_timeout_ms / 1000,
            # as ZooKeeper's own client, which waits for up to a second: sessions outlive a restart
            connection_retry=KazooRetry(max_tries=-1, delay=0.1, backoff=2, max_delay=1.0),
            logger=_kazoo_logger,
            handler=self._handler,
            auth_data=[("digest", f"{one.user}:{one.password}") for one in self._proved],
        )
        self._client.add_listener(self._on_state)
        self._handshakes = KazooHandshakes(
            self._client, self._address.servers, session_timeout_ms / 1000, self._handler
        )

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def state(self) -> SessionState:
        """Return the present state."""
        return SessionState(str(self._client.state).lower())

    @property
    def session_id(self) -> int | None:
        """Return the id of the session, None while there is no connection."""
        client_id = self._client.client_id
        return client_id[0] if client_id else None

    @property
    def session_timeout_s(self) -> float:
        """Return the session timeout the server granted, after clamping the requested one."""
        return self._handshakes.session_timeout_s

    def start(self, timeout_s: float = 10.0, *, retries_refused: bool = True) -> None:
        """Connect, and wait until the session is established.

        Without `retries_refused` it does not wait while every server refuses connections.
        """
        # kazoo's own start() warns about a missing chroot and raises a foreign error.
        connected = self._client.start_async()
        reason = f" within {timeout_s:g}s"
        hosts, left_s = self._address.hosts, timeout_s
        refusal = None
        if not retries_refused and not connected.wait(min(_REFUSED_AFTER_S, timeout_s)):
            refusal = _refusal(hosts, timeout_s, speaks_tls=self._speaks_tls)
            left_s = max(0.0, timeout_s - _REFUSED_AFTER_S)
        if refusal is None:
            self._handler.await_first(
                connected, left_s, servers=len(hosts), retries=retries_refused
            )
        else:
            reason = f": {refusal}"
        if not self._client.connected:
            failure = self._handler.failure
            self.stop()
            raise errors.RegistryUnreachableError(
                f"cannot reach ZooKeeper at {self._address.servers}"
                + (reason if failure is None else f": {failure}"),
                hints=[] if failure is None else failure.hints,
            )
        self._handshakes.granted.wait(timeout_s)

    def prepare_stop(self, wait_s: float) -> bool:
        """Wait for a connection; from then on, let requests that find none fail at once.

        Pending ones fail too. Returns whether there is a connection.
        """
        is_connected = self._connected.wait(wait_s)
        self._awaits_connection = False
        self._connected.set()  # wakes pending requests
        return is_connected

    def stop(self) -> None:
        """End the session, which deletes its ephemeral nodes; a second call does nothing."""
        self._client.remove_listener(self._on_state)
        self._is_stopped = True
        self._connected.set()  # wakes requests that wait for the connection
        try:
            with self._handshakes.broken_off():
                self._client.stop()
        except kazoo_errors.WriterNotClosedException as error:
            raise errors.CoordinationError("the ZooKeeper session did not close in time") from error
        finally:
            self._client.close()

    def get(self, path: str, *, watch: Watch | None = None) -> tuple[bytes, NodeStat]:
        """Return a node's value and metadata."""
        value, stat = self._read(self._client.get_async, {path: watch}, must_exist=True)[path]
        return value, node_stat(stat)

    def get_many(
        self, node_paths: Iterable[str], *, watch: WatchOf = _unwatched
    ) -> dict[str, tuple[bytes, NodeStat]]:
        """Return values and metadata of nodes; missing ones are left out, and not watched."""
        found = self._read(self._client.get_async, {path: watch(path) for path in node_paths})
        return {path: (value, node_stat(stat)) for path, (value, stat) in found.items()}

    def sync(self) -> None:
        """Have reads see what any client has changed until now."""
        self._read(lambda path, watch: self._client.sync_async(path), {"/": None})

    def exists(self, path: str, *, watch: Watch | None = None) -> NodeStat | None:
        """Return a node's metadata, None if it is missing; the watch reports its creation, too."""
        stat = self._read(self._client.exists_async, {path: watch}).get(path)
        return None if stat is None else node_stat(stat)

    def children(self, path: str, *, watch: Watch | None = None) -> list[str]:
        """Return the names of a node's children, sorted; the watch reports new and deleted ones."""
        start = self._client.get_children_async
        return sorted(self._read(start, {path: watch}, must_exist=True)[path])

    def children_if_any(self, path: str) -> list[str]:
        """Return the names of a node's children, sorted; a missing node has none."""
        return self.children_many([path]).get(path, [])

    def children_many(
        self, node_paths: Iterable[str], *, watch: WatchOf = _unwatched
    ) -> dict[str, list[str]]:
        """Return the names of the children of nodes, each sorted; see `get_many` and `children`."""
        watches = {path: watch(path) for path in node_paths}
        found = self._read(self._client.get_children_async, watches)
        return {path: sorted(names) for path, names in found.items()}

    def _read(
        self,
        start: Callable[..., Any],
        watches: Mapping[str, Watch | None],
        *,
        must_exist: bool = False,
    ) -> dict[str, Any]:
        """Return the results of requests for nodes, by path, without missing ones."""
        deadline_s = self._await_connection()
        with _timed(self.read_times):
            path = "/"
            while True:
                try:
                    pending = {}
                    for one, watch in watches.items():
                        try:
                            full = resolve(self._address.chroot, one)
                        except errors.InvalidNodeNameError:
                            if must_exist:
                                raise
                            continue  # no such node exists
                        pending[one] = start(full, watch=_as_watcher(watch))
                    found = {}
                    for path, result in pending.items():
                        try:
                            found[path] = _result_of(result, deadline_s)
                        except kazoo_errors.NoNodeError:
                            if must_exist:
                                raise
                    return found
                except LOST_REQUEST:
                    self._await_connection(deadline_s)
                except FOREIGN as error:
                    raise translated_error(
                        error, self._address.servers, path, self._user
                    ) from error

    def walk(self, path: str = "/", *, max_depth: int | None = None) -> Iterator[tuple[int, str]]:
        """Yield depth and path of a node and all nodes below it, parents first, in order of name.

        The depth is 0 for `path` and `max_depth` at most. A node deleted meanwhile is left out; the
        first must exist. Names are read for many siblings at a time; memory holds those of one node
        on each level.
        """
        return ((depth, one) for depth, one, _ in self.branches(path, max_depth=max_depth))

    def branches(
        self, path: str = "/", *, max_depth: int | None = None
    ) -> Iterator[tuple[int, str, bool]]:
        """Yield what `walk` does, and of each node whether it is the last of its siblings."""
        return self._branches((0, path, True), self.children(path), max_depth)

    def _branches(
        self, node: tuple[int, str, bool], names: Sequence[str], max_depth: int | None
    ) -> Iterator[tuple[int, str, bool]]:
        yield node
        depth, path, _ = node
        if depth == max_depth:
            return
        for start in range(0, len(names), _NODES_AT_ONCE):
            chosen = names[start : start + _NODES_AT_ONCE]
            paths = [f"{path.rstrip('/')}/{name}" for name in chosen]
            # the last level may have nodes that only others may read
            is_last_level = depth + 1 == max_depth
            below = {one: [] for one in paths} if is_last_level else self.children_many(paths)
            for child, found in below.items():
                is_last = child.rpartition("/")[2] == names[-1]
                yield from self._branches((depth + 1, child, is_last), found, max_depth)

    def create(self, path: str, value: bytes = b"", *, ephemeral: bool = False) -> None:
        """Create a node, and its parents (persistent and empty) where they are missing."""
        if self.create_many({path: value}, ephemeral=ephemeral):
            raise errors.RegistryConflictError(f"node {path} exists already")

    def create_many(self, nodes: Mapping[str, bytes], *, ephemeral: bool = True) -> list[str]:
        """Create nodes and missing parents; return the paths of those that exist already."""
        deadline_s = self._await_connection()
        acls = {path: self._acl_of_new(path) for path in nodes}
        wanted = {path: (value, acls[path], ephemeral) for path, value in nodes.items()}
        outcomes = self._write(self._client.create_async, wanted, deadline_s)
        orphans = _paths_with(errors.RegistryNodeNotFoundError, outcomes)
        if orphans:
            # The server takes requests in their order: no need to wait for the parents. An error
            # matters only if it leaves a node without its parent.
            parents = [
                self._client.create_async(full, b"", acl)
                for full, acl in self._missing_parents(orphans)
            ]
            again = {path: wanted[path] for path in orphans}
            outcomes |= self._write(self._client.create_async, again, deadline_s)
            for path in _paths_with(errors.RegistryNodeNotFoundError, outcomes):
                with self._translated(path):
                    for parent in parents:
                        # a parent that may not be created can be there nevertheless
                        with suppress(kazoo_errors.NodeExistsError, kazoo_errors.NoAuthError):
                            _result_of(parent, deadline_s)
                raise errors.RegistryNodeNotFoundError(f"no parent of node {path} in ZooKeeper")
        return _paths_with(errors.RegistryConflictError, outcomes)

    def _missing_parents(self, node_paths: Iterable[str]) -> Iterator[tuple[str, list[ACL]]]:
        """Yield the full paths of all nodes above some, highest first, and their ACLs."""
        chroot = self._address.chroot
        for full in _ancestors(resolve(chroot, path) for path in node_paths):
            is_above = len(full) < len(chroot)  # these are not the cluster's
            path = full.removeprefix(chroot) or "/"
            yield full, list(OPEN_ACL_UNSAFE) if is_above else self._acl_of_new(path)

    @property
    def user(self) -> str | None:
        """Return the user of the session's credential, None if it has none."""
        return self._user

    @property
    def sets_acls(self) -> bool:
        """Whether nodes are created with the ACLs of a secured cluster."""
        if self._sets_acls is None:
            looks = (
                self.have_acls([CLUSTER_ID, "/"], is_secured=True, owner=one)
                for one in self._proved
            )
            # before the first broker by the chroot, which `zk secure` closes
            self._sets_acls = any(found.get(CLUSTER_ID, found.get("/")) for found in looks)
        return self._sets_acls

    def _acl_of_new(self, path: str) -> list[ACL]:
        if protection_of(path) is Protection.OPEN or not self.sets_acls:
            return list(OPEN_ACL_UNSAFE)
        return self._acl(path, is_secured=True)

    def _acl(
        self, path: str, *, is_secured: bool, owner: ZooKeeperCredential | None = None
    ) -> list[ACL]:
        """Return the ACL of a node in a cluster that is secured, or open."""
        protection = protection_of(path)
        if protection is Protection.OPEN or not is_secured:
            return list(OPEN_ACL_UNSAFE)
        owner = owner or self._credential
        if owner is None:
            raise errors.ConfigError("to protect nodes of ZooKeeper takes a credential")
        own = make_digest_acl(owner.user, owner.password, all=True)
        rights = _RIGHTS_OF_ALL[protection]
        return [own, ACL(rights, ANYONE_ID_UNSAFE)] if rights else [own]

    def excess_rights(self, node_paths: Collection[str]) -> dict[str, str]:
        """Return the nodes with which others may do more than their protection says: what, each.

        Others are all that this session has not proved to be.
        """
        get_acls = self._client.get_acls_async
        try:
            found = self._read(lambda full, watch: get_acls(full), dict.fromkeys(node_paths))
        except errors.RegistryAccessError:
            if len(node_paths) == 1:
                return dict.fromkeys(node_paths, "brokers may not look at its ACL")
            some = [self.excess_rights([path]) for path in node_paths]
            return {path: text for one in some for path, text in one.items()}
        own = {make_digest_acl(one.user, one.password, all=True).id for one in self._proved}
        excess = {}
        for path, (acl, _) in found.items():
            forbidden = ~_RIGHTS_OF_ALL[protection_of(path)]
            others = [
                f"{one.id.scheme}:{one.id.id} may {', '.join(names)}"
                for one in acl
                if one.id not in own
                and (
                    names := [name for bit, name in _RIGHTS.items() if one.perms & forbidden & bit]
                )
            ]
            if others:
                excess[path] = "; ".join(others)
        return excess

    def have_acls(
        self,
        node_paths: Iterable[str],
        *,
        is_secured: bool,
        owner: ZooKeeperCredential | None = None,
    ) -> dict[str, bool]:
        """Return of each node whether it has the ACL of its path in a secured, or open, cluster.

        `owner` is the credential of that ACL, by default the session's.
        """
        watches = dict.fromkeys(node_paths)
        found = self._read(lambda full, watch: self._client.get_acls_async(full), watches)
        return {
            path: set(acl) == set(self._acl(path, is_secured=is_secured, owner=owner))
            for path, (acl, _) in found.items()
        }

    def set_acls(self, node_paths: Iterable[str], *, is_secured: bool) -> int:
        """Give nodes the ACL that they have in a secured, or open, cluster; return how many got it.

        Those that are deleted meanwhile are left out.
        """
        wanted = {path: (self._acl(path, is_secured=is_secured),) for path in node_paths}
        outcomes = self._write(self._client.set_acls_async, wanted)
        return len(outcomes) - len(_paths_with(errors.RegistryNodeNotFoundError, outcomes))

    def set(self, path: str, value: bytes, *, version: int = -1) -> None:
        """Replace a node's value, of 1 MB at most."""
        self._write(self._client.set_async, {path: (value, version)}, must_fit=True)

    def set_many(self, nodes: Mapping[str, tuple[bytes, int]]) -> dict[str, int]:
        """Replace values of nodes, each given with its version; return the new versions."""
        outcomes = self._write(self._client.set_async, nodes)
        return {
            path: stat.version
            for path, stat in outcomes.items()
            if not isinstance(stat, errors.CoordinationError)
        }

    def delete(self, path: str, *, version: int = -1) -> None:
        """Delete a node; `CoordinationError` if it has children."""
        self._write(self._client.delete_async, {path: (version,)}, must_fit=True)

    def delete_many(self, node_paths: Iterable[str]) -> None:
        """Delete nodes of any version."""
        self._write(self._client.delete_async, dict.fromkeys(node_paths, ()))

    def _write(
        self,
        start: Callable[..., Any],
        arguments: Mapping[str, tuple[object, ...]],
        deadline_s: float | None = None,
        *,
        must_fit: bool = False,
    ) -> dict[str, Any]:
        """Return the results of requests by path, or the errors of those that do not fit."""
        if deadline_s is None:
            deadline_s = self._await_connection()
        deadlines.note_change()
        pending = {
            path: start(resolve(self._address.chroot, path), *some)
            for path, some in arguments.items()
        }
        outcomes = {}
        with _timed(self.write_times):
            for path, result in pending.items():
                try:
                    with self._translated(path):
                        outcomes[path] = _result_of(result, deadline_s)
                except errors.RegistryUnreachableError as error:
                    if isinstance(error.__cause__, kazoo_errors.ConnectionLoss):
                        self._blame_size(error, arguments)
                    raise
                except (errors.RegistryNodeNotFoundError, errors.RegistryConflictError) as error:
                    if must_fit:
                        raise
                    outcomes[path] = error
        return outcomes

    def _blame_size(
        self, error: errors.RegistryUnreachableError, arguments: Mapping[str, tuple[object, ...]]
    ) -> None:
        """Have the error of a lost connection name a value that may be the reason.

        A `CoordinationError` is raised for one above ZooKeeper's usual limit.
        """
        sizes = {path: len(some[0]) for path, some in arguments.items()
                 if some and isinstance(some[0], bytes)}  # fmt: skip
        path = max(sizes, key=lambda one: sizes[one], default="")
        size_bytes = sizes.get(path, 0) + len(path) + _FRAME_BYTES
        limits = (
            f"of a request, jute.maxbuffer, is {_USUAL_LIMIT_BYTES} bytes if nothing else is set, "
            f"and {MAX_REQUEST_BYTES} in a ZooKeeper that a broker or 'zk start' has started"
        )
        if size_bytes > _USUAL_LIMIT_BYTES:
            raise errors.CoordinationError(
                f"ZooKeeper at {self._address.servers} closed the connection at the value of node "
                f"{path}, of {sizes[path]} bytes, which is above its limit",
                hints=[f"the limit {limits}"],
            ) from error
        if size_bytes > MAX_REQUEST_BYTES:
            error.hints += (f"if it happens again at node {path}, of {sizes[path]} bytes: "
                            f"the limit {limits}",)  # fmt: skip

    def replace_ephemeral(self, path: str, value: bytes, *, version: int) -> None:
        """Replace a node of a version by an ephemeral one of this session, in one step."""
        self.transact([DeleteNode(path, version), CreateNode(path, value, ephemeral=True)])

    def transact(self, changes: Sequence[NodeChange]) -> None:
        """Make several changes in one step, or none of them if one does not fit.

        The parents of nodes to be created must exist.
        """
        path = changes[0].path
        deadline_s = self._await_connection()
        with self._translated(path), _timed(self.write_times):
            failed = _failed_at(_result_of(self._start_transaction(changes), deadline_s))
        if failed >= 0:
            raise errors.RegistryConflictError(f"node {path} was changed by another client")

    def transact_many(
        self, transactions: Iterable[Sequence[NodeChange | CheckNode]]
    ) -> list[TransactionOutcome]:
        """Make transactions, each of one change at least; return their outcomes in order."""
        deadline_s = self._await_connection()
        outcomes = []
        with self._translated("/"), _timed(self.write_times):
            started = [(some, self._start_transaction(some)) for some in transactions]
            for changes, pending in started:
                try:
                    results = _result_of(pending, deadline_s)
                except kazoo_errors.ConnectionLoss:
                    outcomes.append(TransactionOutcome(None))
                    continue
                with self._translated(changes[-1].path):
                    failed = _failed_at(results)
                outcomes.append(TransactionOutcome(failed < 0, failed))
        return outcomes

    def _start_transaction(self, changes: Iterable[NodeChange | CheckNode]) -> Any:
        deadlines.note_change()
        transaction = self._client.transaction()
        for change in changes:
            full = resolve(self._address.chroot, change.path)
            match change:
                case CreateNode(_, value, ephemeral, sequence):
                    acl = self._acl_of_new(change.path)
                    transaction.create(full, value, acl, ephemeral=ephemeral, sequence=sequence)
                case SetNode(_, value, version):
                    transaction.set_data(full, value, version)
                case DeleteNode(_, version):
                    transaction.delete(full, version)
                case CheckNode(_, version):
                    transaction.check(full, version)
        return transaction.commit_async()

    def _translated(self, path: str) -> AbstractContextManager[None]:
        return translated(self._address.servers, path, self._user)

    @property
    def is_stopped(self) -> bool:
        """Whether the session was stopped here."""
        return self._is_stopped

    def _on_state(self, state: str) -> None:
        """Handle a change of state, in kazoo's connection thread."""
        if state == KazooState.CONNECTED:
            self._connected.set()
        else:
            self._connected.clear()
        if self._on_state_change is not None:
            self._on_state_change(self.state)

    def _await_connection(self, deadline_s: float | None = None) -> float:
        """Wait for the connection before a request is made; return the deadline of the request."""
        if deadline_s is None:
            deadline_s = time.monotonic() + deadlines.wait_s(self._request_timeout_s)
        with self._translated("/"):
            # Kazoo would queue the request and send it once there is a connection, long after the
            # caller got an error.
            if self._awaits_connection and not self._connected.wait(deadline_s - time.monotonic()):
                if (failure := self._handler.failure) is not None:
                    raise errors.RegistryUnreachableError(
                        f"no connection to ZooKeeper: {failure}", hints=failure.hints
                    )
                raise KazooTimeoutError("no connection")
            if not self._awaits_connection and self.state is not SessionState.CONNECTED:
                raise kazoo_errors.ConnectionLoss("no connection")
            if self._is_stopped:
                raise kazoo_errors.ConnectionClosedError("the session was stopped")
        return deadline_s


def _refusal(hosts: Sequence[tuple[str, int]], timeout_s: float, *, speaks_tls: bool) -> str | None:
    """Return why no server can be connected to, None if one may respond yet."""
    reason = None
    for address in hosts:
        try:
            with socket.create_connection(address, timeout_s) as connection:
                if speaks_tls:  # the handshake tells what is there
                    return None
                connection.settimeout(min(_PROBE_S, timeout_s))
                connection.sendall(_STATUS_WORD)
                response = connection.recv(_STATUS_BYTES)
                if _STATUS_TEXT in response.lower():
                    return None
                reason = "what listens there is no ZooKeeper"
                if not response or response.startswith(_TLS_ALERT):
                    reason += ", or one for TLS (zookeeper.ssl.client.enable=true)"
        except (ConnectionRefusedError, ConnectionResetError, socket.gaierror) as error:
            reason = (error.strerror or str(error)).lower()
        except OSError:
            return None
    return reason


def _ancestors(full_paths: Iterable[str]) -> list[str]:
    """Return the paths of all nodes above some, highest first."""
    found: set[str] = set()
    for path in full_paths:
        parent = path.rpartition("/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition("/")[0]
    return sorted(found)


def _paths_with(kind: type[Exception], outcomes: Mapping[str, object]) -> list[str]:
    return [path for path, one in outcomes.items() if isinstance(one, kind)]


@contextmanager
def _timed(times: SharedHistogram) -> Iterator[None]:
    began_s = time.perf_counter()
    try:
        yield
    finally:
        times.record(time.perf_counter() - began_s)


def _result_of(result: Any, deadline_s: float) -> Any:
    return result.get(timeout=max(0.0, deadline_s - time.monotonic()))


def _failed_at(results: Sequence[object]) -> int:
    """Return which change of a transaction did not fit, -1 if all were made."""
    for position, result in enumerate(results):
        # those before the one that failed were rolled back, those after it not tried
        if isinstance(result, kazoo_errors.NoAuthError):
            raise result  # another attempt does not help
        if isinstance(result, Exception) and not isinstance(result, _NOT_AT_FAULT):
            return position
    return -1


def _as_watcher(watch: Watch | None) -> Callable[[object], None] | None:
    return None if watch is None else lambda _event: watch()
