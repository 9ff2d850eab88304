"""Columns and records of `pylogctl broker`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pylogctl.cli.render import Column, Document, Kind

if TYPE_CHECKING:
    from pylogctl.broker.control import RegisteredBroker, ShutdownStep, StatusResponse

LIST = Document(
    "broker.list/1",
    (
        Column("id", "number in the cluster", Kind.INTEGER),
        Column("host", "address for clients"),
        Column("port", "port for clients", Kind.INTEGER),
        Column("creator", "token of its data directory"),
        Column("since", "registered, or started, at", Kind.TIME),
        Column("session", "session with ZooKeeper"),
        Column("topics", "number of topics", Kind.INTEGER),
    ),
    empty="no brokers",
)
STATUS = Document(
    "broker.status/1",
    (
        Column("broker", "number in the cluster", Kind.INTEGER),
        Column("host", "address for clients"),
        Column("port", "port for clients", Kind.INTEGER),
        Column("phase", "starting, running, stopping, or down"),
        Column("uptime", "since its start, in seconds", Kind.SECONDS),
        Column("topics", "number of topics", Kind.INTEGER),
        Column("partitions", "number of partitions", Kind.INTEGER),
        Column("bytes", "size of its logs", Kind.BYTES),
        Column("connections", "open connections", Kind.INTEGER),
        Column("produce_rate", "produce requests per second", Kind.NUMBER),
        Column("fetch_rate", "fetch requests per second", Kind.NUMBER),
        Column("last_flush", "last flush of a log", Kind.TIME),
        Column("clean_start", "whether it was stopped cleanly before", Kind.BOOLEAN),
        Column("session", "state of the session with ZooKeeper"),
        Column("registered", "whether all is registered", Kind.BOOLEAN),
        Column("pid", "process id", Kind.INTEGER, shown=False),
        Column("data", "data directory", shown=False),
        Column("zookeeper", "connect string of ZooKeeper", shown=False),
        Column("software", "program and version", shown=False),
        Column("codec", "engine of its message codec", shown=False),
        Column("metrics", "counters under Kafka 0.7's names", shown=False),
    ),
    empty="no brokers",
)
STOP = Document(
    "broker.stop/1",
    (
        Column("step", "what was done"),
        Column("seconds", "how long it took", Kind.SECONDS),
        Column("done", "whether it succeeded", Kind.BOOLEAN),
        Column("note", "reason of a failure, or a remark"),
    ),
    empty="",
)


def status_record(response: StatusResponse) -> dict[str, Any]:
    """Return the record of a broker's status, or of its absence."""
    address, document = response.address, response.document
    record: dict[str, Any] = {"broker": address.id, "host": address.host, "port": address.port}
    if document is None:
        return {**record, "phase": "down" if response.error else "running (0.7)"}
    session = document["session"] or {}
    sockets = document["metrics"]["SocketServerStats"]
    same = ("phase", "topics", "partitions", "bytes", "connections", "clean_start", "pid",
            "data", "zookeeper", "software", "codec", "metrics")  # fmt: skip
    return {
        **record,
        **{name: document[name] for name in same},
        "uptime": document["uptime_ms"] / 1000,
        "produce_rate": round(sockets["ProduceRequestsPerSecond"], 1),
        "fetch_rate": round(sockets["FetchRequestsPerSecond"], 1),
        "last_flush": document["last_flush_ms"],
        "session": session.get("state"),
        "registered": session.get("is_registered"),
    }


def stop_record(step: ShutdownStep) -> dict[str, Any]:
    """Return the record of a step of a shutdown."""
    return {"step": step.name, "seconds": step.seconds, "done": step.is_done, "note": step.note}


def registered_record(broker: RegisteredBroker) -> dict[str, Any]:
    """Return the record of a registered broker."""
    return {
        "id": broker.id,
        "host": broker.host,
        "port": broker.port,
        "creator": broker.creator,
        "since": broker.since_ms,
        "session": broker.session,
        "topics": broker.topic_count,
    }
