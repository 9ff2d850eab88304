"""The rows of `pylogctl zk` and their documents, and the values of known nodes as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from broker.errors import CoordinationError
from broker.zk import values
from pylogctl.cli.columns import (
    HIDDEN,
    Bytes,
    Document,
    Fit,
    Flag,
    Integer,
    Millis,
    Rank,
    Row,
    Text,
)
from pylogctl.format.framing import escape

if TYPE_CHECKING:
    from broker.zk.session import NodeStat

_Path = Annotated[str, "path of the node"]


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
    value: Annotated[str, "decoded where the node is known, else with escapes", Fit.WRAP]
    node: NodeColumns


class ValueRow(Row):
    """A node and its value."""

    path: _Path
    value: Annotated[str, "the value as text with escapes", Fit.WRAP]
    hex: Annotated[str, "the value in hexadecimal", Fit.WRAP, HIDDEN]
    node: NodeColumns


class StatRow(Row):
    """All of a node but its value."""

    path: _Path
    node: NodeColumns
    owner: Annotated[Text, "session that owns an ephemeral node", Fit.WHOLE]
    created: Annotated[Millis, "when the node was made"]
    czxid: Annotated[str, "transaction that made it", Fit.WHOLE]
    mzxid: Annotated[str, "transaction that last changed it", Fit.WHOLE]
    cversion: Annotated[Integer, "changes of its children"]
    aversion: Annotated[Integer, "changes of its access list"]


class ReadyRow(Row):
    """A ZooKeeper server that was started."""

    zookeeper: Annotated[str, "where it listens", Fit.WHOLE]
    pid: Annotated[Integer, "process id of this command"]
    data: Annotated[str, "data directory"]
    log_file: Annotated[str, "the server's log"]


LS = Document("zk.ls/1", ChildRow, empty="no children")
LS_LONG = LS.showing(*NodeColumns._fields)
TREE = Document("zk.tree/1", TreeRow, empty="no nodes")
GET = Document("zk.get/1", ValueRow, empty="no node")
STAT = Document("zk.stat/1", StatRow, empty="no node")
READY = Document("zk.start/1", ReadyRow, empty="not started")


def node_columns(stat: NodeStat) -> NodeColumns:
    """Return the common columns of a node."""
    return NodeColumns(
        stat.version,
        stat.data_length,
        stat.children_count,
        stat.ephemeral_owner != 0,
        stat.mtime_ms,
    )


def stat_row(path: str, stat: NodeStat) -> StatRow:
    """Return the row of `STAT`."""
    return StatRow(
        path,
        node_columns(stat),
        f"0x{stat.ephemeral_owner:x}" if stat.ephemeral_owner else None,
        stat.ctime_ms,
        f"0x{stat.czxid:x}",
        f"0x{stat.mzxid:x}",
        stat.cversion,
        stat.aversion,
    )


def _broker(path: str, value: bytes) -> str:
    info = values.decode_broker(int(path.rpartition("/")[2]), value)
    return f"{info.address} (creator {info.creator})"


def _partition_count(path: str, value: bytes) -> str:
    count = values.decode_number(value, path)
    return f"{count} partition{'' if count == 1 else 's'}"


def _offset(path: str, value: bytes) -> str:
    return f"offset {values.decode_number(value, path)}"


def _owner(path: str, value: bytes) -> str:
    return f"owned by {values.decode_owner(value)}"


def _subscription(path: str, value: bytes) -> str:
    subscription = values.decode_subscription(value)
    if isinstance(subscription, values.FilterSubscription):
        verb = "all but" if subscription.kind is values.FilterKind.BLACKLIST else "topics"
        return f"{verb} /{subscription.regex}/, {subscription.stream_count} streams"
    counts = subscription.stream_counts.items()
    return ", ".join(f"{topic}: {count} streams" for topic, count in counts)


_KNOWN: tuple[tuple[re.Pattern[str], Callable[[str, bytes], str]], ...] = (
    (re.compile(r"/brokers/ids/\d+"), _broker),
    (re.compile(r"/brokers/topics/[^/]+/\d+"), _partition_count),
    (re.compile(r"/consumers/[^/]+/offsets/[^/]+/\d+-\d+"), _offset),
    (re.compile(r"/consumers/[^/]+/owners/[^/]+/\d+-\d+"), _owner),
    (re.compile(r"/consumers/[^/]+/ids/[^/]+"), _subscription),
)


def describe_value(path: str, value: bytes, *, raw: bool = False) -> str:
    """Return the value of a node as text: decoded where the node is known and not `raw`."""
    for pattern, decode in _KNOWN:
        if not raw and value and pattern.fullmatch(path):
            try:
                return decode(path, value)
            except (CoordinationError, ValueError):
                break
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        return escape(value)
    return text if text.isprintable() else escape(value)
