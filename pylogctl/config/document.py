"""The rows of `pylogctl config`, and the documents that show them."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import HIDDEN, Document, Fit, Integer, Rank, Row, Text


class SettingChangeRow(Row):
    """A setting in ZooKeeper that is, or would be, changed."""

    topic: Annotated[Text, "topic whose setting it is"]
    broker: Annotated[Integer, "or the broker"]
    setting: Annotated[Text, "name", Fit.WHOLE]
    before: Annotated[Text, "value before; empty if it was not set", Fit.WRAP]
    after: Annotated[Text, "value now; empty if it is not set any more", Fit.WRAP]
    node: Annotated[Text, "node in ZooKeeper", HIDDEN]


class OverrideRow(Row):
    """A setting in ZooKeeper."""

    topic: Annotated[Text, "topic whose setting it is"]
    broker: Annotated[Integer, "or the broker"]
    setting: Annotated[Text, "name"]
    value: Annotated[Text, "value", Fit.WRAP]
    node: Annotated[Text, "node in ZooKeeper", HIDDEN]


class TopicSettingRow(Row):
    """A setting of a topic, with a value that is in effect on some brokers."""

    setting: Annotated[Text, "name", Fit.WHOLE]
    value: Annotated[Text, "value in effect", Fit.WRAP]
    origin: Annotated[
        Text,
        "topic, broker (both in ZooKeeper), start (file, options), or default",
        Fit.WHOLE,
        Rank(1),
    ]
    brokers: Annotated[Text, "ids of the brokers on which it is in effect", Fit.WRAP, Rank(1)]
    default: Annotated[Text, "value when nothing else is said", Fit.WRAP, Rank(2)]
    applied: Annotated[Text, "when a change takes effect", Fit.WRAP, HIDDEN]
    doc: Annotated[Text, "meaning", Fit.WRAP, HIDDEN]


class InEffect(Row):
    """A setting of a broker with the value in effect."""

    setting: Annotated[str, "name", Fit.WHOLE]
    value: Annotated[str, "value in effect", Fit.WRAP]
    origin: Annotated[str, "broker (ZooKeeper), start (file, options), or default", Fit.WHOLE]


class BrokerSettingRow(Row):
    """A setting of a broker."""

    now: InEffect
    change: Annotated[Text, "running: applied while it runs; restart: at a start only", Fit.WHOLE]
    doc: Annotated[Text, "meaning", Fit.WRAP, HIDDEN]


class BrokerDiffRow(Row):
    """A setting of a broker that is not what it is elsewhere."""

    now: InEffect
    start: Annotated[
        Text, "value at the broker's start: of file, options or default", Fit.WRAP, Rank(1)
    ]
    default: Annotated[Text, "value when nothing else is said", Fit.WRAP, Rank(2)]
    others: Annotated[Text, "other brokers that have another value, with it", Fit.WRAP]


class BrokersDiffRow(Row):
    """A setting, with a value that is in effect on some brokers."""

    now: InEffect
    brokers: Annotated[Text, "ids of the brokers on which it is in effect", Fit.WRAP]


class OptionRow(Row):
    """A shared option of commands, with the value in effect here."""

    option: Annotated[str, "name", Fit.WHOLE]
    value: Annotated[Text, "value; empty if it has none", Fit.WRAP]
    origin: Annotated[str, "option, environment, context or default, and which", Fit.WRAP, HIDDEN]


OPTIONS = Document("config.show/1", OptionRow, empty="no options")
CHANGE = Document("config.change/1", SettingChangeRow, empty="nothing changed")
OVERRIDES = Document(
    "config.overrides/1", OverrideRow, empty="no topic and no broker has settings in ZooKeeper"
)
TOPIC = Document("config.topic/1", TopicSettingRow, empty="no difference")
BROKER = Document("config.broker/1", BrokerSettingRow, empty="no settings")
BROKER_DIFF = Document("config.broker-diff/1", BrokerDiffRow, empty="no difference")
BROKERS_DIFF = Document(
    "config.brokers-diff/1", BrokersDiffRow, empty="no difference between brokers"
)
