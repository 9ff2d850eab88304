"""Columns and records of `pylogctl zk`, and the values of known nodes as text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from broker.errors import CoordinationError
from broker.zk import values
from pylogctl.cli.columns import Column, ColumnKind, Document
from pylogctl.format.framing import escape

if TYPE_CHECKING:
    from broker.zk.session import NodeStat

STAT_COLUMNS = (
    Column("version", "changes of the value", ColumnKind.INTEGER),
    Column("bytes", "size of the value", ColumnKind.BYTES),
    Column("children", "number of children", ColumnKind.INTEGER),
    Column("ephemeral", "goes with its session", ColumnKind.BOOLEAN),
    Column("modified", "last change of the value", ColumnKind.TIME),
)
LS = Document(
    "zk.ls/1",
    (
        Column("name", "name of the child; its path with --recursive"),
        *(column._replace(shown=False) for column in STAT_COLUMNS),
    ),
    empty="no children",
)
LS_LONG = LS.showing(*(column.name for column in STAT_COLUMNS))
TREE = Document(
    "zk.tree/1",
    (
        Column("path", "path of the node"),
        Column("depth", "levels below the start", ColumnKind.INTEGER),
        Column("value", "decoded where the node is known, else with escapes"),
        *STAT_COLUMNS,
    ),
    empty="no nodes",
)
GET = Document(
    "zk.get/1",
    (
        Column("path", "path of the node"),
        Column("value", "the value as text with escapes"),
        Column("hex", "the value in hexadecimal", shown=False),
        *STAT_COLUMNS,
    ),
    empty="no node",
)
STAT = Document(
    "zk.stat/1",
    (
        Column("path", "path of the node"),
        *STAT_COLUMNS,
        Column("owner", "session that owns an ephemeral node"),
        Column("created", "when the node was made", ColumnKind.TIME),
        Column("czxid", "transaction that made it"),
        Column("mzxid", "transaction that last changed it"),
        Column("cversion", "changes of its children", ColumnKind.INTEGER),
        Column("aversion", "changes of its access list", ColumnKind.INTEGER),
    ),
    empty="no node",
)
READY = Document(
    "zk.start/1",
    (
        Column("zookeeper", "where it listens"),
        Column("pid", "process id of this command", ColumnKind.INTEGER),
        Column("data", "data directory"),
        Column("log_file", "the server's log"),
    ),
    empty="not started",
)


def stat_record(stat: NodeStat) -> dict[str, Any]:
    """Return the common columns of a node."""
    return {
        "version": stat.version,
        "bytes": stat.data_length,
        "children": stat.children_count,
        "ephemeral": stat.ephemeral_owner != 0,
        "modified": stat.mtime_ms,
    }


def full_record(path: str, stat: NodeStat) -> dict[str, Any]:
    """Return all columns of a node except its value."""
    return {
        "path": path,
        **stat_record(stat),
        "owner": f"0x{stat.ephemeral_owner:x}" if stat.ephemeral_owner else None,
        "created": stat.ctime_ms,
        "czxid": f"0x{stat.czxid:x}",
        "mzxid": f"0x{stat.mzxid:x}",
        "cversion": stat.cversion,
        "aversion": stat.aversion,
    }


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
