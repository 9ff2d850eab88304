"""The columns of `pylogctl config`."""

from __future__ import annotations

from pylogctl.cli.render import Column, ColumnKind, Document

CHANGE = Document(
    "config.change/1",
    (
        Column("topic", "topic whose setting it is"),
        Column("broker", "or the broker", ColumnKind.INTEGER),
        Column("setting", "name"),
        Column("before", "value before; empty if it was not set"),
        Column("after", "value now; empty if it is not set any more"),
        Column("node", "node in ZooKeeper", shown=False),
    ),
    empty="nothing changed",
)
OVERRIDES = Document(
    "config.overrides/1",
    (
        Column("topic", "topic whose setting it is"),
        Column("broker", "or the broker", ColumnKind.INTEGER),
        Column("setting", "name"),
        Column("value", "value"),
        Column("node", "node in ZooKeeper", shown=False),
    ),
    empty="no topic and no broker has settings in ZooKeeper",
)
TOPIC = Document(
    "config.topic/1",
    (
        Column("setting", "name"),
        Column("value", "value in effect"),
        Column("origin", "topic, broker (both in ZooKeeper), start (file, options), or default"),
        Column("brokers", "ids of the brokers on which it is in effect"),
        Column("default", "value when nothing else is said"),
        Column("applied", "when a change takes effect", shown=False),
        Column("doc", "meaning", shown=False),
    ),
    empty="no difference",
)
BROKER = Document(
    "config.broker/1",
    (
        Column("setting", "name"),
        Column("value", "value in effect"),
        Column("origin", "broker (ZooKeeper), start (file, options), or default"),
        Column("change", "running: applied while it runs; restart: at a start only"),
        Column("doc", "meaning", shown=False),
    ),
    empty="no settings",
)
BROKER_DIFF = Document(
    "config.broker-diff/1",
    (
        Column("setting", "name"),
        Column("value", "value in effect"),
        Column("origin", "broker (ZooKeeper), start (file, options), or default"),
        Column("start", "value at the broker's start: of file, options or default"),
        Column("default", "value when nothing else is said"),
        Column("others", "other brokers that have another value, with it"),
    ),
    empty="no difference",
)
BROKERS_DIFF = Document(
    "config.brokers-diff/1",
    (
        Column("setting", "name"),
        Column("value", "value in effect"),
        Column("origin", "broker (ZooKeeper), start (file, options), or default"),
        Column("brokers", "ids of the brokers on which it is in effect"),
    ),
    empty="no difference between brokers",
)
