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
from functools import partial

from broker.threads import start_once
from pylogctl.testing.node_tree import Change, NodeTree, Refusal, Refused

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


class MemoryZooKeeper:
    """A server for any number of clients; a context manager, which `connect` leads to."""

    def __init__(self) -> None:
        self._tree = NodeTree()
        self._lock = threading.RLock()  # for all state, and the order of what is sent
        self._sessions: dict[int, _Session] = {}
        self._ids = itertools.count(1)
        self._watches: dict[bool, defaultdict[str, set[_Session]]] = {
            is_of_children: defaultdict(set) for is_of_children in (False, True)
        }
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connect: str = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._stopped = threading.Event()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._start(self._accept)
        self._start(self._expire)

    def __enter__(self) -> MemoryZooKeeper:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Break all connections, and forget everything."""
        self._stopped.set()
        _shut_down(self._listener)
        self._threads[0].join()  # accepts nobody any more
        with self._lock:
            for sock in self._sockets:
                _shut_down(sock)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _start(self, run: Callable[..., None], *arguments: object) -> None:
        self._threads.append(start_once(partial(run, *arguments), name="zookeeper"))

    def _accept(self) -> None:
        with suppress(OSError):  # the listener was shut down
            while True:
                sock, _ = self._listener.accept()
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                with self._lock:
                    self._sockets.add(sock)
                self._start(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        session = None
        with suppress(OSError, struct.error), sock.makefile("rb") as file:
            while (head := file.read(4)) and len(head) == 4:
                request = _Reader(file.read(*_INT.unpack(head)))
                with self._lock:
                    if session is None:
                        session = self._open(sock, request)
                    elif session.sock is sock:  # else the client has another connection
                        self._handle(session, request)
        with self._lock:
            self._sockets.discard(sock)
            if session is not None and session.sock is sock:
                session.sock = None
        sock.close()

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
            _shut_down(sock)
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
            _shut_down(session.sock)
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
            raise Refused(Refusal.UNKNOWN_REQUEST)
        return b""

    def _transact(self, session: _Session, request: _Reader) -> bytes:
        """Make all changes of a transaction or none; return the body of its response."""
        parts: list[bytes] = []
        failure: Refusal | None = None
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
            codes = [Refusal.ROLLED_BACK] * len(parts) + [failure]
            parts = [_MULTI.pack(-1, False, code) + _INT.pack(code) for code in codes]
        return b"".join(parts) + _MULTI.pack(-1, True, -1)

    def _commit(self) -> None:
        """Keep the changes, and tell those who watch; each watch tells once."""
        for change, path in self._tree.commit():
            told: set[_Session] = set()
            if change is not Change.CHILDREN:
                told |= self._watches[False].pop(path, set())
            if change in (Change.CHILDREN, Change.DELETED):
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


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
