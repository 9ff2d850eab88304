"""The rows of `pylogctl zk` and their documents, and the values of known nodes as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from broker.endpoints import join_address
from broker.records import HIDDEN, Bytes, Count, Fit, Flag, Integer, Millis, Rank, Text
from broker.units import counted
from pylogctl.cli.columns import Document, Row

if TYPE_CHECKING:
    from broker.admin.registry_nodes import NodeChange, NodeDifference
    from broker.zk.nodes import NodeStat

_SHOWN_BYTES = 256

_Path = Annotated[str, "path of the node"]
_Value = Annotated[str, "decoded where the node is known, else with escapes", Fit.WRAP]
_Decoded = Annotated[
    Mapping[str, Any] | None, "fields of a node that brokers or consumers write", HIDDEN
]


class NodeColumns(Row):
    """The common columns of nodes."""

    version: Annotated[Integer, "changes of the value", Rank(3)] = None
    bytes: Annotated[Bytes, "size of the value", Rank(1)] = None
    children: Annotated[Integer, "number of children", Rank(1)] = None
    ephemeral: Annotated[Flag, "goes with its session", Rank(2)] = None
    modified: Annotated[Millis, "last change of the value", Rank(3)] = None


class ChildRow(Row):
    """A child of a node."""

    name: Annotated[str, "name of the child; its path with --recursive"]
    node: Annotated[NodeColumns, HIDDEN] = NodeColumns()


class TreeRow(Row):
    """A node below another."""

    path: _Path
    depth: Annotated[Integer, "levels below the start", Rank(4)]
    value: _Value
    node: NodeColumns
    decoded: _Decoded = None


class FoundRow(Row):
    """A node that matches."""

    path: _Path
    value: _Value
    node: Annotated[NodeColumns, HIDDEN]
    decoded: _Decoded = None


class EventRow(Row):
    """A change of a node that is watched."""

    time: Annotated[Millis, "when it was seen"]
    event: Annotated[str, "created, changed or deleted", Fit.STATE]
    path: _Path
    version: Annotated[Integer, "changes of the value; before its deletion", Rank(3)]
    value: Annotated[Text, "decoded where the node is known, else with escapes", Fit.WRAP]
    decoded: _Decoded = None


class ChangeRow(Row):
    """What becomes of a node."""

    path: _Path
    action: Annotated[str, "create, set, delete, keep, or skip for an ephemeral node", Fit.STATE]
    bytes: Annotated[Bytes, "size of the value", Rank(1)]
    ephemeral: Annotated[Flag, "goes with its session", Rank(2)]
    before: Annotated[Text, "the value there is, or its first 256 bytes", Fit.WRAP, HIDDEN] = None
    after: Annotated[Text, "the value there will be, likewise", Fit.WRAP, HIDDEN] = None


class DifferenceRow(Row):
    """A node that ZooKeeper and the other tree have in different forms."""

    path: _Path
    difference: Annotated[
        str, "new or missing in ZooKeeper; value; kind: ephemeral or not", Fit.STATE
    ]
    here: Annotated[Text, "the value in ZooKeeper", Fit.WRAP]
    other: Annotated[Text, "the value in the other tree", Fit.WRAP]


class SessionRow(Row):
    """A session with ephemeral nodes."""

    session: Annotated[str, "id of the session", Fit.WHOLE]
    nodes: Annotated[Count, "its ephemeral nodes"]
    brokers: Annotated[list[str], "ids of brokers that it registers", Fit.WRAP]
    members: Annotated[list[str], "members of groups, as GROUP/ID", Fit.WRAP]
    paths: Annotated[list[str], "all of its nodes", Fit.WRAP, HIDDEN]


class HealthRow(Row):
    """A server of ZooKeeper."""

    server: Annotated[str, "its address", Fit.WHOLE]
    state: Annotated[str, "ok or down", Fit.STATE]
    mode: Annotated[Text, "standalone, leader, follower or observer", Fit.WHOLE]
    answered_by: Annotated[list[str], "four-letter words that were answered, or the admin server"]
    connections: Annotated[Integer, "open connections of clients"]
    outstanding: Annotated[Integer, "requests that wait"]
    nodes: Annotated[Integer, "nodes"]
    ephemeral: Annotated[Integer, "ephemeral nodes", Rank(2)]
    watches: Annotated[Integer, "watches", Rank(2)]
    version: Annotated[Text, "of the server", Rank(3)]
    problem: Annotated[Text, "why it does not serve", Fit.WRAP]
    facts: Annotated[Mapping[str, str], "all that it says of itself", HIDDEN]


class ValueRow(Row):
    """A node and its value."""

    path: _Path
    value: Annotated[str, "the value as text with escapes", Fit.WRAP]
    hex: Annotated[str, "the value in hexadecimal", Fit.WRAP, HIDDEN]
    node: NodeColumns
    owner: Annotated[Text, "session that owns an ephemeral node", Fit.WHOLE, HIDDEN]
    created: Annotated[Millis, "when the node was made", HIDDEN]
    czxid: Annotated[str, "transaction that made it", Fit.WHOLE, HIDDEN]
    mzxid: Annotated[str, "transaction that last changed it", Fit.WHOLE, HIDDEN]
    decoded: _Decoded = None


class ZooKeeperReadyRow(Row):
    """A ZooKeeper server that was started."""

    zookeeper: Annotated[str, "where it listens", Fit.WHOLE]
    pid: Annotated[Integer, "process id of this command"]
    data: Annotated[str, "data directory"]
    log_file: Annotated[str, "the server's log"]


LS = Document("zk.ls/1", ChildRow, empty="no children")
LS_LONG = LS.showing(*NodeColumns._fields)
TREE = Document("zk.tree/1", TreeRow, empty="no nodes")
GET = Document("zk.get/1", ValueRow, empty="no node")
GET_STAT = GET.showing("owner", "created", "czxid", "mzxid")
FIND = Document("zk.find/1", FoundRow, empty="no node matches")
WATCH = Document("zk.watch/1", EventRow, empty="")
CHANGES = Document("zk.change/1", ChangeRow, empty="nothing to change")
CHANGES_OF_VALUES = CHANGES.showing("before", "after")
DIFF = Document("zk.diff/1", DifferenceRow, empty="no differences")
SESSIONS = Document("zk.sessions/1", SessionRow, empty="no session has ephemeral nodes")
HEALTH = Document("zk.health/1", HealthRow, empty="no server")
READY = Document("zk.start/1", ZooKeeperReadyRow, empty="not started")


def node_columns(stat: NodeStat) -> NodeColumns:
    """Return the common columns of a node."""
    return NodeColumns(
        stat.version,
        stat.data_length,
        stat.children_count,
        stat.ephemeral_owner != 0,
        stat.mtime_ms,
    )


def fields_of(path: str, value: bytes) -> Mapping[str, object] | None:
    """Return the fields of a known node's value."""
    from broker.zk.known_nodes import decode_node  # late: the values of all kinds of nodes

    return decode_node(path, value)


def value_row(path: str, value: bytes, stat: NodeStat) -> ValueRow:
    """Return the row of `GET`."""
    return ValueRow(
        path,
        value.decode("utf-8", "backslashreplace"),
        value.hex(),
        node_columns(stat),
        f"0x{stat.ephemeral_owner:x}" if stat.ephemeral_owner else None,
        stat.ctime_ms,
        f"0x{stat.czxid:x}",
        f"0x{stat.mzxid:x}",
        fields_of(path, value),
    )


def change_row(change: NodeChange) -> ChangeRow:
    """Return the row of `CHANGES`."""
    before, after = (
        None if one is None else describe_value(change.path, one[:_SHOWN_BYTES])
        for one in (change.before, change.after)
    )
    value = change.before if change.after is None else change.after
    return ChangeRow(
        change.path, change.action, len(value or b""), change.is_ephemeral, before, after
    )


def difference_row(difference: NodeDifference) -> DifferenceRow:
    """Return the row of `DIFF`."""
    path, left, right = difference
    if left is None or right is None:
        what = "missing" if left is None else "new"
    else:
        what = "value" if left.value != right.value else "kind"
    texts = (None if one is None else describe_value(path, one.value) for one in (left, right))
    return DifferenceRow(path, what, *texts)


def _text_of(fields: Mapping[str, object]) -> str:
    """Return the fields of a known node as text."""
    match dict(fields):
        case {"kind": "broker", "host": str(host), "port": int(port), "creator": creator}:
            return f"{join_address(host, port)} (creator {creator})"
        case {"kind": "partition count", "partitions": int(count)}:
            return counted(count, "partition")
        case {"kind": "owner", "owner": owner}:
            return f"owned by {owner}"
        case {"kind": "member", "topics": dict(topics)}:
            return ", ".join(f"{topic}: {count} streams" for topic, count in topics.items())
        case {"kind": "member", "streams": count, **others}:
            verb = "topics" if "include" in others else "all but"
            return f"{verb} /{others.get('include', others.get('exclude'))}/, {count} streams"
        case {"kind": _, **others}:
            return ", ".join(
                f"{name} {one if isinstance(one, str) else json.dumps(one)}"
                for name, one in others.items()
            )
    raise AssertionError(fields)


def describe_value(path: str, value: bytes, *, raw: bool = False) -> str:
    """Return the value of a node as text: decoded where the node is known and not `raw`."""
    from pylogctl.format.framing import escape  # late, as what help needs not

    fields = None if raw else fields_of(path, value)
    try:
        text = value.decode("utf-8") if fields is None else _text_of(fields)
    except UnicodeDecodeError:
        return escape(value)
    return text if text.isprintable() else escape(text.encode())
