"""The rows of `pylogctl broker`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pylogctl.cli.columns import Column, ColumnKind, Document, Flag, Integer, Millis, Row, Text

if TYPE_CHECKING:
    from broker.errors import BrokerError
    from broker.protocol.responses import BrokerAddress


class BrokerRow(Row):
    """A broker by its registration, or by its response."""

    id: Annotated[Integer, "number in the cluster"]
    host: Annotated[str, "address for clients"]
    port: Annotated[Integer, "port for clients"]
    creator: Annotated[Text, "token of its data directory"]
    since: Annotated[Millis, "registered, or started, at"]
    session: Annotated[Text, "session with ZooKeeper"]
    topics: Annotated[Integer, "number of topics"]


class ShutdownStep(Row):
    """A step of a broker's shutdown."""

    step: Annotated[str, "what was done"]
    seconds: Annotated[float, ColumnKind.SECONDS, "how long it took"]
    done: Annotated[Flag, "whether it succeeded"] = True
    note: Annotated[Text, "reason of a failure, or a remark"] = None


LIST = Document("broker.list/1", BrokerRow, empty="no brokers")
STATUS = Document(
    "broker.status/1",
    (
        Column("broker", "number in the cluster", ColumnKind.INTEGER),
        Column("host", "address for clients"),
        Column("port", "port for clients", ColumnKind.INTEGER),
        Column("phase", "starting, running, stopping, or down"),
        Column("uptime", "since its start, in seconds", ColumnKind.SECONDS),
        Column("topics", "number of topics", ColumnKind.INTEGER),
        Column("partitions", "number of partitions", ColumnKind.INTEGER),
        Column("bytes", "size of its logs", ColumnKind.BYTES),
        Column("connections", "open connections", ColumnKind.INTEGER),
        Column("produce_rate", "produce requests per second", ColumnKind.NUMBER),
        Column("fetch_rate", "fetch requests per second", ColumnKind.NUMBER),
        Column("last_flush", "last flush of a log", ColumnKind.TIME),
        Column("clean_start", "whether it was stopped cleanly before", ColumnKind.BOOLEAN),
        Column("session", "state of the session with ZooKeeper"),
        Column("registered", "whether all is registered", ColumnKind.BOOLEAN),
        Column("failing", "partitions that the disk fails", ColumnKind.INTEGER),
        Column(
            "storage",
            "ok, or what disks do to partitions: full, unreadable, damaged, failed, offline",
        ),
        Column("pid", "process id", ColumnKind.INTEGER, shown=False),
        Column("data", "data directory", shown=False),
        Column("zookeeper", "connect string of ZooKeeper", shown=False),
        Column("software", "program and version", shown=False),
        Column("codec", "engine of its message codec", shown=False),
        Column("directories", "path, partitions, room and error of each", shown=False),
        Column("failures", "topic, partition, state and error of each of those", shown=False),
        Column("retention_waits", "why old segments are kept for now", shown=False),
        Column("settings_problems", "nodes of settings that are not used, and why", shown=False),
        Column("metrics", "counters under Kafka 0.7's names", shown=False),
    ),
    empty="no brokers",
)
STOP = Document("broker.stop/1", ShutdownStep, empty="")


def status_record(
    address: BrokerAddress, document: Mapping[str, Any] | None, error: BrokerError | None = None
) -> dict[str, Any]:
    """Return the record of a broker's status, or of its absence; see `control.StatusResponse`."""
    record: dict[str, Any] = {"broker": address.id, "host": address.host, "port": address.port}
    if document is None:
        return {**record, "phase": "down" if error else "running (0.7)"}
    session = document["session"] or {}
    sockets = document["metrics"]["SocketServerStats"]
    same = ("phase", "topics", "partitions", "bytes", "connections", "clean_start", "pid",
            "data", "directories", "zookeeper", "software", "codec", "failures", "retention_waits",
            "metrics")  # fmt: skip
    return {
        **record,
        **{name: document[name] for name in same},
        "settings_problems": document.get("settings_problems"),  # older brokers follow none
        "uptime": document["uptime_ms"] / 1000,
        "produce_rate": round(sockets["ProduceRequestsPerSecond"], 1),
        "fetch_rate": round(sockets["FetchRequestsPerSecond"], 1),
        "last_flush": document["last_flush_ms"],
        "session": session.get("state"),
        "registered": session.get("is_registered"),
        "storage": ", ".join(sorted({one["state"] for one in document["failures"]})) or "ok",
        "failing": len({(one["topic"], one["partition"]) for one in document["failures"]}),
    }
