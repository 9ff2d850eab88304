"""The nodes of a ZooKeeper in memory: what requests do to them, and who watches which."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from enum import IntEnum

_STAT = struct.Struct(">qqqqiiiqiiq")
_ANY_VERSION = -1


class Refusal(IntEnum):
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

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.name)
        self.refusal = refusal


class Change(IntEnum):
    """What a watch tells; ZooKeeper's codes."""

    CREATED = 1
    DELETED = 2
    VALUE = 3
    CHILDREN = 4


class Node:
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
        self._nodes = {"/": Node(b"", 0, 0)}
        self._undo: list[Callable[[], None]] = []
        self._changes: list[tuple[Change, str]] = []

    def commit(self) -> list[tuple[Change, str]]:
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

    def find(self, path: str, version: int = _ANY_VERSION) -> Node:
        """Return a node of a version."""
        node = self._nodes.get(path)
        if node is None:
            raise Refused(Refusal.NO_NODE)
        if version not in (_ANY_VERSION, node.version):
            raise Refused(Refusal.BAD_VERSION)
        return node

    def owned_by(self, session_id: int) -> list[str]:
        """Return the paths of the ephemeral nodes of a session."""
        return [path for path, node in self._nodes.items() if node.owner == session_id]

    def create(self, path: str, value: bytes, owner: int, *, is_sequential: bool) -> str:
        """Create a node and return its path; `owner` is 0 for a persistent one."""
        parent_path, name = _split(path)
        parent = self.find(parent_path)
        if parent.owner:
            raise Refused(Refusal.NO_CHILDREN_FOR_EPHEMERALS)
        if is_sequential:
            name = f"{name}{parent.child_version:010}"
            path = f"{parent_path.rstrip('/')}/{name}"
        if path in self._nodes:
            raise Refused(Refusal.NODE_EXISTS)
        self._nodes[path] = Node(value, owner, self.change_id + 1)
        self._undo.append(lambda: self._nodes.__delitem__(path))
        self._note_child(parent)
        parent.names.add(name)
        self._changes += [(Change.CREATED, path), (Change.CHILDREN, parent_path)]
        return path

    def set(self, path: str, value: bytes, version: int) -> Node:
        """Replace a node's value; return the node."""
        node = self.find(path, version)
        before = dict(vars(node))
        self._undo.append(lambda: vars(node).update(before))
        node.value = value
        node.version += 1
        node.changed_id = self.change_id + 1
        node.changed_ms = time.time_ns() // 1_000_000
        self._changes.append((Change.VALUE, path))
        return node

    def delete(self, path: str, version: int = _ANY_VERSION) -> None:
        """Delete a node without children."""
        node = self.find(path, version)
        if node.names:
            raise Refused(Refusal.NOT_EMPTY)
        parent_path, name = _split(path)
        parent = self.find(parent_path)
        del self._nodes[path]
        self._undo.append(lambda: self._nodes.__setitem__(path, node))
        self._note_child(parent)
        parent.names.discard(name)
        self._changes += [(Change.DELETED, path), (Change.CHILDREN, parent_path)]

    def _note_child(self, parent: Node) -> None:
        before = {**vars(parent), "names": set(parent.names)}
        self._undo.append(lambda: vars(parent).update(before))
        parent.child_version += 1
        parent.child_changed_id = self.change_id + 1


def _split(path: str) -> tuple[str, str]:
    parent, _, name = path.rpartition("/")
    return parent or "/", name
