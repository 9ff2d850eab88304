"""What ZooKeeper says of a node, and changes of nodes that are made in one step."""

from __future__ import annotations

from typing import Any, NamedTuple

MAX_REQUEST_BYTES = 256 << 10  # to a ZooKeeper that a broker starts; others take about 1 MB


class NodeStat(NamedTuple):
    """ZooKeeper's metadata of a node.

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
    """Return what a result of kazoo says."""
    return NodeStat(*stat[: len(NodeStat._fields)])  # kazoo's begins with the same fields


class CreateNode(NamedTuple):
    """A change of a transaction: create a node; `is_sequential` appends a growing number."""

    path: str
    value: bytes
    ephemeral: bool = False
    is_sequential: bool = False


class SetNode(NamedTuple):
    """A change of a transaction: give a node of a version (-1 for any) another value."""

    path: str
    value: bytes
    version: int


class DeleteNode(NamedTuple):
    """A change of a transaction: delete a node of a version (-1 for any)."""

    path: str
    version: int


class CheckNode(NamedTuple):
    """A condition of a transaction: a node has this version."""

    path: str
    version: int


NodeChange = CreateNode | SetNode | DeleteNode


class TransactionOutcome(NamedTuple):
    """Whether a transaction was made; None if the connection was lost meanwhile.

    `failed` is the position of the change or condition that does not fit; -1 if none.
    """

    is_done: bool | None
    failed: int = -1
