"""The rows of `pylogctl broker`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pylogctl.cli.columns import (
    HIDDEN,
    Bytes,
    ColumnKind,
    Document,
    Flag,
    Integer,
    Millis,
    Number,
    Row,
    Seconds,
    Text,
)

if TYPE_CHECKING:
    from broker.errors import BrokerError
    from broker.protocol.responses import BrokerAddress

_Parts = Sequence[Mapping[str, Any]] | None


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


class ReadyRow(Row):
    """A broker that was started."""

    broker: Annotated[Integer, "id of the broker"]
    host: Annotated[str, "address for clients"]
    port: Annotated[Integer, "port listened on"]
    zookeeper: Annotated[Text, "connect string of ZooKeeper, if any"]
    pid: Annotated[Integer, "process id"]
    data: Annotated[str, "data directories, with commas in between"]


class StatusRow(Row):
    """The state of a broker; without its document nothing but address and phase is known."""

    broker: Annotated[Integer, "number in the cluster"]
    host: Annotated[str, "address for clients"]
    port: Annotated[Integer, "port for clients"]
    phase: Annotated[str, "starting, running, stopping, or down"]
    uptime: Annotated[Seconds, "since its start, in seconds"] = None
    topics: Annotated[Integer, "number of topics"] = None
    partitions: Annotated[Integer, "number of partitions"] = None
    bytes: Annotated[Bytes, "size of its logs"] = None
    connections: Annotated[Integer, "open connections"] = None
    produce_rate: Annotated[Number, "produce requests per second"] = None
    fetch_rate: Annotated[Number, "fetch requests per second"] = None
    last_flush: Annotated[Millis, "last flush of a log"] = None
    clean_start: Annotated[Flag, "whether it was stopped cleanly before"] = None
    session: Annotated[Text, "state of the session with ZooKeeper"] = None
    registered: Annotated[Flag, "whether all is registered"] = None
    failing: Annotated[Integer, "partitions that the disk fails"] = None
    storage: Annotated[
        Text, "ok, or what disks do to partitions: full, unreadable, damaged, failed, offline"
    ] = None
    pid: Annotated[Integer, "process id", HIDDEN] = None
    data: Annotated[Text, "data directory", HIDDEN] = None
    zookeeper: Annotated[Text, "connect string of ZooKeeper", HIDDEN] = None
    software: Annotated[Text, "program and version", HIDDEN] = None
    codec: Annotated[Text, "engine of its message codec", HIDDEN] = None
    directories: Annotated[_Parts, "path, partitions, room and error of each", HIDDEN] = None
    failures: Annotated[_Parts, "topic, partition, state and error of each of those", HIDDEN] = None
    retention_waits: Annotated[Text, "why old segments are kept for now", HIDDEN] = None
    settings_problems: Annotated[
        Mapping[str, str] | None, "nodes of settings that are not used, and why", HIDDEN
    ] = None
    metrics: Annotated[Mapping[str, Any] | None, "counters under Kafka 0.7's names", HIDDEN] = None


LIST = Document("broker.list/1", BrokerRow, empty="no brokers")
READY = Document("broker.start/1", ReadyRow, empty="not started")
STATUS = Document("broker.status/1", StatusRow, empty="no brokers")
STOP = Document("broker.stop/1", ShutdownStep, empty="")


def status_row(
    address: BrokerAddress, document: Mapping[str, Any] | None, error: BrokerError | None = None
) -> StatusRow:
    """Return the row of a broker's status, or of its absence; see `StatusResponse`."""
    where = (address.id, address.host, address.port)
    if document is None:
        return StatusRow(*where, "down" if error else "running (0.7)")
    session = document["session"] or {}
    sockets = document["metrics"]["SocketServerStats"]
    same = ("phase", "topics", "partitions", "bytes", "connections", "clean_start", "pid",
            "data", "directories", "zookeeper", "software", "codec", "failures", "retention_waits",
            "metrics")  # fmt: skip
    return StatusRow(
        *where,
        **{name: document[name] for name in same},
        settings_problems=document.get("settings_problems"),  # older brokers follow none
        uptime=document["uptime_ms"] / 1000,
        produce_rate=round(sockets["ProduceRequestsPerSecond"], 1),
        fetch_rate=round(sockets["FetchRequestsPerSecond"], 1),
        last_flush=document["last_flush_ms"],
        session=session.get("state"),
        registered=session.get("is_registered"),
        storage=", ".join(sorted({one["state"] for one in document["failures"]})) or "ok",
        failing=len({(one["topic"], one["partition"]) for one in document["failures"]}),
    )
