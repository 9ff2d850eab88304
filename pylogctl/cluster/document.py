"""Columns and records of `pylogctl cluster`."""

from __future__ import annotations

from pylogctl.cli.render import Column, ColumnKind, Document, Record
from pylogctl.cluster.facts import BrokerFacts, Check

DESCRIBE = Document(
    "cluster.describe/1",
    (
        Column("broker", "number in the cluster", ColumnKind.INTEGER),
        Column("address", "address for clients"),
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


def broker_record(one: BrokerFacts) -> Record:
    """Return a row of `DESCRIBE`."""
    return {
        "broker": one.id,
        "address": one.address,
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
