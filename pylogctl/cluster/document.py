"""Rows of `pylogctl cluster`, and the documents that show them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from broker.admin.cluster import BrokerInfo, HealthCheck
from broker.state_changes import LoggedChange
from broker.units import format_time
from pylogctl.cli.columns import HIDDEN, Document, Fit, Integer, Millis, Rank, Row, Text

if TYPE_CHECKING:
    from broker.admin.cluster_keys import KeyInfo


class StateChangeRow(Row):
    """A row of `cluster changes`."""

    at: Annotated[Text, "day and time by the clock of the broker, UTC", Fit.WHOLE]
    time: Annotated[Millis, "the same with the year", HIDDEN]
    broker: Annotated[Integer, "id of the broker that wrote it down"]
    epochs: Annotated[
        Text, "controller epoch, and leader epoch of the partition", Fit.WHOLE, Rank(2)
    ]
    partition: Annotated[Text, "topic and partition; empty for the whole broker"]
    change: Annotated[Text, "what happened, for people", Fit.WRAP]
    kind: Annotated[Text, "what happened, as a word", Fit.WHOLE, HIDDEN]
    topic: Annotated[Text, "name of the topic", HIDDEN]
    name: Annotated[
        Text, "partition: home broker and index; a number in the format kafka", Fit.WHOLE, HIDDEN
    ]
    controller_epoch: Annotated[Integer, "of the controller", HIDDEN]
    leader_epoch: Annotated[Integer, "of the partition", HIDDEN]
    leader: Annotated[Integer, "id of the leader, -1 for none", HIDDEN]
    isr: Annotated[tuple[int, ...] | None, "ids of the in-sync replicas", Fit.WRAP, HIDDEN]
    version: Annotated[Integer, "of the partition's node", HIDDEN]
    offset: Annotated[Integer, "end of the log", HIDDEN]
    text: Annotated[Text, "reason", Fit.WRAP, HIDDEN]


class KeyRow(Row):
    """A row of `cluster keys`."""

    key: Annotated[Text, "id of the key, which does not tell it", Fit.WHOLE]
    state: Annotated[Text, "chosen by brokers, accepted, or next: not yet chosen", Fit.WHOLE]
    made: Annotated[Millis, "when it was made"]
    until: Annotated[Millis, "when it ends; missing if no other one has replaced it"]
    brokers: Annotated[tuple[int, ...], "live brokers that accept it", Fit.WRAP]


KEYS = Document("cluster.keys/1", KeyRow, empty="no keys")
DESCRIBE = Document("cluster.describe/2", BrokerInfo, empty="no brokers")
HEALTH = Document("cluster.health/2", HealthCheck, empty="no checks")
CHANGES = Document("cluster.changes/1", StateChangeRow, empty="no changes")


def key_row(one: KeyInfo) -> KeyRow:
    """Return a row of `KEYS`."""
    state = "chosen" if one.is_chosen else "accepted" if one.until_ms else "next"
    return KeyRow(one.id, state, one.made_ms, one.until_ms or None, one.brokers)


def change_row(one: LoggedChange) -> StateChangeRow:
    """Return a row of `CHANGES`."""
    epochs = ["-" if epoch is None else epoch for epoch in (one.controller_epoch, one.leader_epoch)]
    partition = one.partition
    return StateChangeRow.of(
        one,
        at=format_time(one.time_ms)[5:-1].replace("T", " "),
        time=one.time_ms,
        epochs="/".join(map(str, epochs if one.leader_epoch is not None else epochs[:1])),
        partition=None if partition is None else str(partition),
        change=one.what,
        topic=None if partition is None else partition.topic,
        name=None if partition is None else partition.name,
        text=one.text or None,
    )
