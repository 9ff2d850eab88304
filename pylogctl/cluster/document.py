"""Columns and records of `pylogctl cluster`."""

from __future__ import annotations

from broker.state_changes import LoggedChange
from pylogctl.cli.render import Column, ColumnKind, Document, Record
from pylogctl.cli.units import format_time
from pylogctl.cluster.facts import BrokerFacts, Check

DESCRIBE = Document(
    "cluster.describe/1",
    (
        Column("broker", "number in the cluster", ColumnKind.INTEGER),
        Column("live", "whether it is registered", ColumnKind.BOOLEAN),
        Column("address", "address for clients; empty if it is not registered"),
        Column("rack", "where it stands; empty if not set"),
        Column("controller", "whether it is the controller", ColumnKind.BOOLEAN),
        Column("leads", "partitions that it leads", ColumnKind.INTEGER),
        Column("preferred", "partitions that it should lead", ColumnKind.INTEGER),
        Column("replicas", "partitions of which it has a replica", ColumnKind.INTEGER),
        Column("in_sync", "those in which it is in sync", ColumnKind.INTEGER),
    ),
    empty="no brokers",
)
HEALTH = Document(
    "cluster.health/1",
    (
        Column("check", "what is counted"),
        Column("result", "ok, warn or fail"),
        Column("count", "how many there are", ColumnKind.INTEGER),
        Column("detail", "the first of them"),
        Column("all", "all of them", shown=False),
    ),
    empty="no checks",
)
CHANGES = Document(
    "cluster.changes/1",
    (
        Column("at", "day and time by the clock of the broker, UTC"),
        Column("time", "the same with the year", ColumnKind.TIME, shown=False),
        Column("broker", "id of the broker that wrote it down", ColumnKind.INTEGER),
        Column("epochs", "controller epoch, and leader epoch of the partition"),
        Column("partition", "topic and partition; empty for the whole broker"),
        Column("change", "what happened, for people"),
        Column("kind", "what happened, as a word", shown=False),
        Column("topic", "name of the topic", shown=False),
        Column("name", "partition as home broker and index", shown=False),
        Column("controller_epoch", "of the controller", ColumnKind.INTEGER, shown=False),
        Column("leader_epoch", "of the partition", ColumnKind.INTEGER, shown=False),
        Column("leader", "id of the leader, -1 for none", ColumnKind.INTEGER, shown=False),
        Column("isr", "ids of the in-sync replicas", shown=False),
        Column("version", "of the partition's node", ColumnKind.INTEGER, shown=False),
        Column("offset", "end of the log", ColumnKind.INTEGER, shown=False),
        Column("text", "reason", shown=False),
    ),
    empty="no changes",
)


def broker_record(one: BrokerFacts) -> Record:
    """Return a row of `DESCRIBE`."""
    return {
        "broker": one.id,
        "live": one.is_live,
        "address": one.address or None,
        "rack": one.rack,
        "controller": one.is_controller,
        "leads": one.leads,
        "preferred": one.preferred,
        "replicas": one.replicas,
        "in_sync": one.in_sync,
    }


def check_record(check: Check) -> Record:
    """Return a row of `HEALTH`."""
    shown = ", ".join(check.found[:3])
    return {
        "check": check.name,
        "result": check.result,
        "count": len(check.found),
        "detail": f"{shown}, ..." if len(check.found) > 3 else shown,
        "all": list(check.found),
    }


def change_record(one: LoggedChange) -> Record:
    """Return a row of `CHANGES`."""
    epochs = ["-" if epoch is None else epoch for epoch in (one.controller_epoch, one.leader_epoch)]
    partition = one.partition
    return {
        "at": format_time(one.time_ms)[5:-1].replace("T", " "),
        "time": one.time_ms,
        "broker": one.broker,
        "epochs": "/".join(map(str, epochs if one.leader_epoch is not None else epochs[:1])),
        "partition": None if partition is None else str(partition),
        "change": one.what,
        "kind": one.kind,
        "topic": None if partition is None else partition.topic,
        "name": None if partition is None else partition.name,
        "controller_epoch": one.controller_epoch,
        "leader_epoch": one.leader_epoch,
        "leader": one.leader,
        "isr": None if one.isr is None else list(one.isr),
        "version": one.version,
        "offset": one.offset,
        "text": one.text or None,
    }
