"""Reads of nodes that are watched: each node once, however often it is read, until it changes.

`TreeWatch` tells the changes below a node by them.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Literal, NamedTuple, TypeVar

from broker.errors import CoordinationError
from broker.zk.nodes import NodeStat
from broker.zk.session import Session, Watch, WatchOf

_T = TypeVar("_T")


class WatchedReads:
    """Reads nodes and watches them; for any number of threads.

    `on_change` is called with the path of a node that may have changed since it was read. It runs
    in the session's thread: it must return at once and not call the session.
    """

    def __init__(self, session: Session, on_change: Callable[[str], None]) -> None:
        self._session = session
        self._on_change = on_change
        self._lock = threading.Lock()  # guards _armed
        self._armed: set[tuple[str, str]] = set()  # watches that were not called yet

    def values(self, node_paths: Collection[str]) -> dict[str, tuple[bytes, NodeStat]]:
        """Return values and metadata of nodes; missing ones are left out, and not watched."""
        return self._read("value", partial(self._session.get_many, node_paths))

    def children(self, node_paths: Collection[str]) -> dict[str, list[str]]:
        """Return the names of the children of nodes; missing nodes have none, and are watched."""
        found: dict[str, list[str]] = {}
        missing = node_paths
        while missing:
            found |= self._read("children", partial(self._session.children_many, missing))
            # one that was created meanwhile is read again
            missing = [one for one in missing if one not in found and self.exists(one)]
        return {path: found.get(path, []) for path in node_paths}

    def exists(self, path: str) -> bool:
        """Return whether a node exists, and watch it in either case."""

        def read(watch: WatchOf) -> dict[str, NodeStat | None]:
            return {path: self._session.exists(path, watch=watch(path))}

        return self._read("exists", read)[path] is not None

    def _read(self, kind: str, read: Callable[..., dict[str, _T]]) -> dict[str, _T]:
        new: set[tuple[str, str]] = set()

        def watch_of(path: str) -> Watch | None:
            key = kind, path
            with self._lock:
                if key in self._armed:
                    return None
                self._armed.add(key)
            new.add(key)
            return partial(self._fire, key)

        try:
            found = read(watch=watch_of)
        except CoordinationError:
            self._disarm(new)  # a read that fails may set no watch
            raise
        self._disarm({key for key in new if key[1] not in found})
        return found

    def _fire(self, key: tuple[str, str]) -> None:
        self._disarm({key})
        self._on_change(key[1])

    def _disarm(self, keys: set[tuple[str, str]]) -> None:
        with self._lock:
            self._armed -= keys


_NODES_AT_ONCE = 256


class NodeEvent(NamedTuple):
    """A change of a node; a deleted one has no value and its last metadata."""

    action: Literal["created", "changed", "deleted"]
    path: str
    value: bytes | None
    stat: NodeStat


class TreeWatch:
    """Watches a node and those below it, down to `max_depth` levels; for one thread.

    ZooKeeper tells that a node changed, not how often: changes in quick succession are one event.
    What changes while the connection is lost is told once it is there again. Opening it raises
    `RegistryNodeNotFoundError` for a missing node; one that is deleted later may come again.
    """

    def __init__(self, session: Session, path: str, *, max_depth: int | None) -> None:
        self._session = session
        self._path = path
        self._max_depth = max_depth
        self._known: dict[str, NodeStat] = {}
        self._changed: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._reads = WatchedReads(session, self._changed.put)
        session.get(path)
        for _ in self._refresh([path]):  # what is there at the start is no event
            pass

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._known)

    def events(self, timeout_s: float) -> Iterator[NodeEvent]:
        """Yield what changed since the last call; wait for the first change, if there is none."""
        changed = set()
        with suppress(queue.Empty):
            changed.add(self._changed.get(timeout=timeout_s))
            while True:
                changed.add(self._changed.get_nowait())
        return self._refresh(sorted(changed))

    def _refresh(self, paths: Iterable[str]) -> Iterator[NodeEvent]:
        """Read nodes and those below them that are new, and watch them; yield their changes."""
        pending = list(paths)
        while pending:
            chosen, pending = pending[:_NODES_AT_ONCE], pending[_NODES_AT_ONCE:]
            found = self._reads.values(chosen)
            parents = [path for path in found if self._has_children_watched(path)]
            names = self._reads.children(parents)
            for path in chosen:
                before = self._known.pop(path, None)
                if path not in found:
                    if before is not None:
                        yield NodeEvent("deleted", path, None, before)
                    if path == self._path and self._reads.exists(path):
                        pending.append(path)
                    continue
                value, stat = found[path]
                self._known[path] = stat
                if before is None or before.czxid != stat.czxid:
                    if before is not None:
                        yield NodeEvent("deleted", path, None, before)
                    yield NodeEvent("created", path, value, stat)
                elif before.mzxid != stat.mzxid:
                    yield NodeEvent("changed", path, value, stat)
                below = (f"{path.rstrip('/')}/{name}" for name in names.get(path, ()))
                pending += (one for one in below if one not in self._known)

    def _has_children_watched(self, path: str) -> bool:
        depth = path.rstrip("/").count("/") - self._path.rstrip("/").count("/")
        return self._max_depth is None or depth < self._max_depth
