"""Changes below a node, as they happen."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Literal, NamedTuple

from broker.zk.nodes import NodeStat
from broker.zk.session import Session
from broker.zk.watched_reads import WatchedReads

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
