"""Reads of nodes that are watched: each node once, however often it is read, until it changes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from functools import partial
from typing import TypeVar

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
