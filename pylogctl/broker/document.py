"""The rows of `pylogctl broker`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from broker.errors import AuthenticationError, ClusterAuthorizationError
from pylogctl.cli.columns import (
    HIDDEN,
    UNKNOWN,
    Bytes,
    ColumnKind,
    Document,
    Fit,
    Flag,
    Integer,
    Millis,
    Rank,
    Rate,
    Row,
    Seconds,
    Text,
)

if TYPE_CHECKING:
    from broker.errors import BrokerError
    from broker.protocol.responses import BrokerAddress

_Parts = Sequence[Mapping[str, Any]] | None


class BrokerRow(Row):
    """A broker by its registration, or by its response; one that is DOWN by its topics."""

    id: Annotated[Integer, "number in the cluster"]
    host: Annotated[Text, "address for clients", Fit.WHOLE]
    port: Annotated[Integer, "port for clients"]
    creator: Annotated[Text, "token of its data directory", Rank(3)]
    since: Annotated[Millis, "registered, or started, at", Rank(2)]
    session: Annotated[Text, "session with ZooKeeper", Rank(4)]
    topics: Annotated[Integer, "number of topics"]
    state: Annotated[str, "up, or DOWN: not registered", Fit.STATE] = "up"
    first_topics: Annotated[Text, "some of them, if it is DOWN", Fit.WRAP, Rank(1)] = None
    all_topics: Annotated[tuple[str, ...], "all of them, if it is DOWN", Fit.WRAP, HIDDEN] = ()


class ShutdownStep(Row):
    """A step of a broker's shutdown."""

    step: Annotated[str, "what was done", Fit.WRAP]
    seconds: Annotated[float, ColumnKind.SECONDS, "how long it took"]
    done: Annotated[Flag, "whether it succeeded"] = True
    note: Annotated[Text, "reason of a failure, or a remark", Fit.WRAP] = None


class ReadyRow(Row):
    """A broker that was started."""

    broker: Annotated[Integer, "id of the broker"]
    host: Annotated[str, "address for clients", Fit.WHOLE]
    port: Annotated[Integer, "port listened on"]
    zookeeper: Annotated[Text, "connect string of ZooKeeper, if any", Fit.WRAP]
    pid: Annotated[Integer, "process id"]
    data: Annotated[str, "data directories, with commas in between", Fit.WRAP]


class StatusRow(Row):
    """The state of a broker; without its document nothing but address and phase is known."""

    broker: Annotated[Integer, "number in the cluster"]
    host: Annotated[Text, "address for clients; empty if it is not registered", Fit.WHOLE]
    port: Annotated[Integer, "port for clients"]
    phase: Annotated[str, "starting, running, stopping, or down", Fit.STATE]
    uptime: Annotated[Seconds, "since its start, in seconds"] = UNKNOWN
    topics: Annotated[Integer, "number of topics", Rank(3)] = UNKNOWN
    partitions: Annotated[Integer, "number of partitions", Rank(1)] = UNKNOWN
    bytes: Annotated[Bytes, "size of its logs", Rank(1)] = UNKNOWN
    connections: Annotated[Integer, "open connections", Rank(2)] = UNKNOWN
    produce_rate: Annotated[Rate, "produce requests per second", Rank(1)] = UNKNOWN
    fetch_rate: Annotated[Rate, "fetch requests per second", Rank(1)] = UNKNOWN
    last_flush: Annotated[Millis, "last flush of a log", Rank(4)] = UNKNOWN
    clean_start: Annotated[Flag, "whether it was stopped cleanly before", Rank(4)] = UNKNOWN
    session: Annotated[Text, "state of the session with ZooKeeper", Fit.STATE, Rank(3)] = UNKNOWN
    registered: Annotated[Flag, "whether all is registered", Rank(4)] = UNKNOWN
    failing: Annotated[Integer, "partitions that the disk fails", Rank(1)] = UNKNOWN
    storage: Annotated[
        Text,
        "ok, or the worst of partitions: full, unreadable, damaged, failed, offline, unregistered",
        Fit.STATE,
    ] = UNKNOWN
    pid: Annotated[Integer, "process id", HIDDEN] = UNKNOWN
    data: Annotated[Text, "data directory", Fit.WRAP, HIDDEN] = UNKNOWN
    zookeeper: Annotated[Text, "connect string of ZooKeeper", Fit.WRAP, HIDDEN] = UNKNOWN
    software: Annotated[Text, "program and version", Fit.WRAP, HIDDEN] = UNKNOWN
    codec: Annotated[Text, "engine of its message codec", HIDDEN] = UNKNOWN
    listeners: Annotated[_Parts, "name, tls, host and port of each", HIDDEN] = UNKNOWN
    certificate_expires: Annotated[Millis, "end of the certificate of tls listeners", HIDDEN] = (
        UNKNOWN
    )
    directories: Annotated[_Parts, "path, partitions, room and error of each", HIDDEN] = UNKNOWN
    failures: Annotated[_Parts, "topic, partition, state and error of each of those", HIDDEN] = (
        UNKNOWN
    )
    retention_waits: Annotated[Text, "why old segments are kept for now", Fit.WRAP, HIDDEN] = (
        UNKNOWN
    )
    settings_problems: Annotated[
        Mapping[str, str] | None, "nodes of settings that are not used, and why", HIDDEN
    ] = UNKNOWN
    metrics: Annotated[Mapping[str, Any] | None, "counters under Kafka 0.7's names", HIDDEN] = (
        UNKNOWN
    )


LIST = Document("broker.list/1", BrokerRow, empty="no brokers")
READY = Document("broker.start/1", ReadyRow, empty="not started")
STATUS = Document("broker.status/1", StatusRow, empty="no brokers")
STOP = Document("broker.stop/1", ShutdownStep, empty="")


def down_row(id: int, topics: Sequence[str]) -> BrokerRow:
    """Return the row of a broker that is not registered, and has logs of topics."""
    first = ", ".join(topics[:3]) + ", ..." * (len(topics) > 3)
    nothing = (None,) * 5
    return BrokerRow(id, *nothing, len(topics), "DOWN", first, tuple(topics))


def status_row(
    address: BrokerAddress, document: Mapping[str, Any] | None, error: BrokerError | None = None
) -> StatusRow:
    """Return the row of a broker's status, or of its absence; see `StatusResponse`."""
    where = (address.id, address.host or None, address.port or None)
    if document is None:
        if isinstance(error, AuthenticationError | ClusterAuthorizationError):
            return StatusRow(*where, UNKNOWN)  # it runs, and does not say more to this user
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
        listeners=document.get("listeners"),  # older brokers have one
        certificate_expires=(document.get("certificate") or {}).get("not_after_ms"),
        uptime=document["uptime_ms"] / 1000,
        produce_rate=round(sockets["ProduceRequestsPerSecond"], 1),
        fetch_rate=round(sockets["FetchRequestsPerSecond"], 1),
        last_flush=document["last_flush_ms"],
        session=session.get("state"),
        registered=session.get("is_registered"),
        storage=", ".join(sorted({one["state"] for one in document["failures"]})) or "ok",
        failing=len({(one["topic"], one["partition"]) for one in document["failures"]}),
    )
