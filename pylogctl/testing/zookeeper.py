"""A ZooKeeper in the process of a test: groups and replicas without Java.

It speaks the protocol of ZooKeeper 3.4 on loopback, with sessions, ephemeral and sequential nodes,
watches and transactions, and keeps everything in memory. It has no access control, no quorum, and
none of the requests that pylogctl does not send.
"""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntEnum

from pylogctl.testing.loopback import LoopbackServer, shut_down

_INT = struct.Struct(">i")
_CONNECT = struct.Struct(">iqiq")
_REPLY = struct.Struct(">iqi")
_MULTI = struct.Struct(">i?i")
_PASSWORD = bytes(16)
_SWEEP_S = 0.1
_IS_CONNECTED = 3
_EPHEMERAL, _SEQUENTIAL = 1, 2
_CREATE, _DELETE, _EXISTS, _GET_DATA, _SET_DATA = 1, 2, 3, 4, 5
_GET_CHILDREN, _SYNC, _PING, _GET_CHILDREN_2, _CHECK, _TRANSACT = 8, 9, 11, 12, 13, 14
_CLOSE = -11
_WATCH_XID, _PING_XID = -1, -2


class MemoryZooKeeper(LoopbackServer):
    """A server for any number of clients; a context manager, which `connect` leads to."""

    def __init__(self) -> None:
        super().__init__("zookeeper")  # its lock is also for the order of what is sent
        self._tree = NodeTree()
        self._sessions: dict[int, _Session] = {}
        self._ids = itertools.count(1)
        self._watches: dict[bool, defaultdict[str, set[_Session]]] = {
            is_of_children: defaultdict(set) for is_of_children in (False, True)
        }
        self.connect: str = f"127.0.0.1:{self.port}"
        self._stopped = threading.Event()
        self._start(self._accept)
        self._start(self._expire)

    def close(self) -> None:
        """Break all connections, and forget everything."""
        self._stopped.set()
        super().close()

    def _serve(self, client: socket.socket) -> None:
        session = None
        with suppress(OSError, struct.error), client.makefile("rb") as file:
            while (head := file.read(4)) and len(head) == 4:
                request = _Reader(file.read(*_INT.unpack(head)))
                with self._lock:
                    if session is None:
                        session = self._open(client, request)
                    elif session.sock is client:  # else the client has another connection
                        self._handle(session, request)
        with self._lock:
            if session is not None and session.sock is client:
                session.sock = None
        self._forget(client)

    def _open(self, sock: socket.socket, request: _Reader) -> _Session | None:
        """Begin a session, or continue that of the request; None if it has expired."""
        _, _, timeout_ms, session_id = request.take(_CONNECT)
        if not session_id:
            session_id = next(self._ids)
            self._sessions[session_id] = _Session(session_id, timeout_ms / 1000)
        session = self._sessions.get(session_id)
        if session is not None:
            session.sock, session.heard_s = sock, time.monotonic()
        granted = (timeout_ms, session_id) if session else (0, 0)
        body = struct.pack(">iiq", 0, *granted) + _buffer(_PASSWORD) + b"\0"
        sock.sendall(_buffer(body))
        if session is None:
            shut_down(sock)
        return session

    def _expire(self) -> None:
        while not self._stopped.wait(_SWEEP_S):
            with self._lock:
                now_s = time.monotonic()
                for session in list(self._sessions.values()):
                    if now_s - session.heard_s > session.timeout_s:
                        self._end(session)

    def _end(self, session: _Session) -> None:
        self._sessions.pop(session.id, None)  # it may have expired before its client closed it
        for path in self._tree.owned_by(session.id):
            self._tree.delete(path)
        self._commit()
        if session.sock is not None:
            shut_down(session.sock)
            session.sock = None  # requests that have arrived are not of a session any more

    def _handle(self, session: _Session, request: _Reader) -> None:
        session.heard_s = time.monotonic()
        xid, kind = request.number(), request.number()
        if kind == _CLOSE:
            session.send(_REPLY.pack(xid, self._tree.change_id, 0))
            self._end(session)
            return
        code, body = 0, b""
        try:
            if kind == _TRANSACT:
                body = self._transact(session, request)
            elif kind != _PING:
                body = self._read(session, kind, request)
            self._commit()  # watches tell of the change before the response does
        except Refused as error:
            self._tree.roll_back()
            code = error.refusal
        xid = _PING_XID if kind == _PING else xid
        session.send(_REPLY.pack(xid, self._tree.change_id, code) + body)

    def _read(self, session: _Session, kind: int, request: _Reader) -> bytes:
        """Carry out a request for one node; return the body of its response."""
        if kind not in (_EXISTS, _GET_DATA, _GET_CHILDREN, _GET_CHILDREN_2, _SYNC):
            return self._change(session, kind, request)
        path = request.text()
        if kind == _SYNC:
            return _buffer(path.encode())
        of_children = kind in (_GET_CHILDREN, _GET_CHILDREN_2)
        is_watched = request.flag()
        try:
            node = self._tree.find(path)
        except Refused:
            if is_watched and kind == _EXISTS:  # it tells of the creation
                self._watches[False][path].add(session)
            raise
        if is_watched:
            self._watches[of_children][path].add(session)
        if kind == _EXISTS:
            return node.stat()
        if kind == _GET_DATA:
            return _buffer(node.value) + node.stat()
        names = [_buffer(name.encode()) for name in node.names]
        stat = node.stat() if kind == _GET_CHILDREN_2 else b""
        return _INT.pack(len(names)) + b"".join(names) + stat

    def _change(self, session: _Session, kind: int, request: _Reader) -> bytes:
        """Make one change, without a commit; return the body of its response."""
        path = request.text()
        if kind == _CREATE:
            value = request.buffer()
            for _ in range(request.number()):  # access control
                request.number(), request.text(), request.text()
            flags = request.number()
            owner = session.id if flags & _EPHEMERAL else 0
            made = self._tree.create(path, value, owner, is_sequential=bool(flags & _SEQUENTIAL))
            return _buffer(made.encode())
        if kind == _SET_DATA:
            value = request.buffer()
            return self._tree.set(path, value, request.number()).stat()
        if kind == _DELETE:
            self._tree.delete(path, request.number())
        elif kind == _CHECK:
            self._tree.find(path, request.number())
        else:
            raise Refused(RefusalCode.UNKNOWN_REQUEST)
        return b""

    def _transact(self, session: _Session, request: _Reader) -> bytes:
        """Make all changes of a transaction or none; return the body of its response."""
        parts: list[bytes] = []
        failure: RefusalCode | None = None
        while not (header := request.take(_MULTI))[1]:
            kind = header[0]
            try:
                body = self._change(session, kind, request)
            except Refused as error:
                failure = error.refusal
                break
            parts.append(_MULTI.pack(kind, False, 0) + body)
        if failure is not None:
            self._tree.roll_back()
            codes = [RefusalCode.ROLLED_BACK] * len(parts) + [failure]
            parts = [_MULTI.pack(-1, False, code) + _INT.pack(code) for code in codes]
        return b"".join(parts) + _MULTI.pack(-1, True, -1)

    def _commit(self) -> None:
        """Keep the changes, and tell those who watch; each watch tells once."""
        for change, path in self._tree.commit():
            told: set[_Session] = set()
            if change is not TreeChange.CHILDREN:
                told |= self._watches[False].pop(path, set())
            if change in (TreeChange.CHILDREN, TreeChange.DELETED):
                told |= self._watches[True].pop(path, set())
            event = struct.pack(">ii", change, _IS_CONNECTED) + _buffer(path.encode())
            for session in told:
                session.send(_REPLY.pack(_WATCH_XID, -1, 0) + event)


@dataclass(eq=False)
class _Session:
    """A session of a client; `sock` is None while it is not connected."""

    id: int
    timeout_s: float
    heard_s: float = field(default_factory=time.monotonic)
    sock: socket.socket | None = None

    def send(self, frame: bytes) -> None:
        if self.sock is not None:
            with suppress(OSError):  # its thread sees the end
                self.sock.sendall(_buffer(frame))


@dataclass
class _Reader:
    """The fields of a request."""

    data: bytes
    _at: int = 0

    def take(self, layout: struct.Struct) -> tuple[int, ...]:
        found = layout.unpack_from(self.data, self._at)
        self._at += layout.size
        return found

    def number(self) -> int:
        return self.take(_INT)[0]

    def flag(self) -> bool:
        self._at += 1
        return bool(self.data[self._at - 1])

    def buffer(self) -> bytes:
        start = self._at + _INT.size
        self._at = start + max(0, self.number())
        return self.data[start : self._at]

    def text(self) -> str:
        return self.buffer().decode()


def _buffer(content: bytes) -> bytes:
    return _INT.pack(len(content)) + content


_STAT = struct.Struct(">qqqqiiiqiiq")
_ANY_VERSION = -1


class RefusalCode(IntEnum):
    """Why a request is refused; ZooKeeper's codes."""

    ROLLED_BACK = 0
    UNKNOWN_REQUEST = -6
    NO_NODE = -101
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111


class Refused(Exception):  # noqa: N818  # not an error of the double, but an answer
    """A request that does not fit."""

    def __init__(self, refusal: RefusalCode) -> None:
        super().__init__(refusal.name)
        self.refusal = refusal


class TreeChange(IntEnum):
    """What a watch tells; ZooKeeper's codes."""

    CREATED = 1
    DELETED = 2
    VALUE = 3
    CHILDREN = 4


class TreeNode:
    """A node; times are milliseconds since 1970, `owner` is the session of an ephemeral one."""

    def __init__(self, value: bytes, owner: int, change_id: int) -> None:
        self.value = value
        self.owner = owner
        self.names: set[str] = set()  # of children
        self.version = self.child_version = 0
        self.created_id = self.changed_id = self.child_changed_id = change_id
        self.created_ms = self.changed_ms = time.time_ns() // 1_000_000

    def stat(self) -> bytes:
        """Return the metadata in ZooKeeper's layout."""
        return _STAT.pack(
            *(self.created_id, self.changed_id, self.created_ms, self.changed_ms),
            *(self.version, self.child_version, 0, self.owner, len(self.value), len(self.names)),
            self.child_changed_id,
        )


class NodeTree:
    """All nodes by path. Changes are collected until `commit` or `roll_back`.

    Methods raise `Refused`.
    """

    def __init__(self) -> None:
        self.change_id = 0
        """Of the last committed changes; each commit has a new one."""
        self._nodes = {"/": TreeNode(b"", 0, 0)}
        self._undo: list[Callable[[], None]] = []
        self._changes: list[tuple[TreeChange, str]] = []

    def commit(self) -> list[tuple[TreeChange, str]]:
        """Keep what was changed, and return it for watches."""
        made, self._changes = self._changes, []
        self._undo.clear()
        self.change_id += bool(made)
        return made

    def roll_back(self) -> None:
        """Undo what was changed since the last commit."""
        while self._undo:
            self._undo.pop()()
        self._changes.clear()

    def find(self, path: str, version: int = _ANY_VERSION) -> TreeNode:
        """Return a node of a version."""
        node = self._nodes.get(path)
        if node is None:
            raise Refused(RefusalCode.NO_NODE)
        if version not in (_ANY_VERSION, node.version):
            raise Refused(RefusalCode.BAD_VERSION)
        return node

    def owned_by(self, session_id: int) -> list[str]:
        """Return the paths of the ephemeral nodes of a session."""
        return [path for path, node in self._nodes.items() if node.owner == session_id]

    def create(self, path: str, value: bytes, owner: int, *, is_sequential: bool) -> str:
        """Create a node and return its path; `owner` is 0 for a persistent one."""
        parent_path, name = _split(path)
        parent = self.find(parent_path)
        if parent.owner:
            raise Refused(RefusalCode.NO_CHILDREN_FOR_EPHEMERALS)
        if is_sequential:
            name = f"{name}{parent.child_version:010}"
            path = f"{parent_path.rstrip('/')}/{name}"
        if path in self._nodes:
            raise Refused(RefusalCode.NODE_EXISTS)
        self._nodes[path] = TreeNode(value, owner, self.change_id + 1)
        self._undo.append(lambda: self._nodes.__delitem__(path))
        self._note_child(parent)
        parent.names.add(name)
        self._changes += [(TreeChange.CREATED, path), (TreeChange.CHILDREN, parent_path)]
        return path

    def set(self, path: str, value: bytes, version: int) -> TreeNode:
        """Replace a node's value; return the node."""
        node = self.find(path, version)
        before = dict(vars(node))
        self._undo.append(lambda: vars(node).update(before))
        node.value = value
        node.version += 1
        node.changed_id = self.change_id + 1
        node.changed_ms = time.time_ns() // 1_000_000
        self._changes.append((TreeChange.VALUE, path))
        return node

    def delete(self, path: str, version: int = _ANY_VERSION) -> None:
        """Delete a node without children."""
        node = self.find(path, version)
        if node.names:
            raise Refused(RefusalCode.NOT_EMPTY)
        parent_path, name = _split(path)
        parent = self.find(parent_path)
        del self._nodes[path]
        self._undo.append(lambda: self._nodes.__setitem__(path, node))
        self._note_child(parent)
        parent.names.discard(name)
        self._changes += [(TreeChange.DELETED, path), (TreeChange.CHILDREN, parent_path)]

    def _note_child(self, parent: TreeNode) -> None:
        before = {**vars(parent), "names": set(parent.names)}
        self._undo.append(lambda: vars(parent).update(before))
        parent.child_version += 1
        parent.child_changed_id = self.change_id + 1


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rpartition("/")
    return parent or "/", name
