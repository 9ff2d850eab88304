"""What ZooKeeper knows about a node."""

from __future__ import annotations

from typing import Any, NamedTuple


class NodeStat(NamedTuple):
    """What ZooKeeper knows about a node, apart from its value.

    Times are milliseconds since 1970; `ephemeral_owner` is a session id, 0 for a persistent node.
    """

    czxid: int
    mzxid: int
    ctime_ms: int
    mtime_ms: int
    version: int
    cversion: int
    aversion: int
    ephemeral_owner: int
    data_length: int
    children_count: int


def node_stat(stat: Any) -> NodeStat:
    """Return kazoo's figures under our names."""
    return NodeStat(
        czxid=stat.czxid,
        mzxid=stat.mzxid,
        ctime_ms=stat.ctime,
        mtime_ms=stat.mtime,
        version=stat.version,
        cversion=stat.cversion,
        aversion=stat.aversion,
        ephemeral_owner=stat.ephemeralOwner,
        data_length=stat.dataLength,
        children_count=stat.numChildren,
    )
