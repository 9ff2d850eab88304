"""The rows of `pylogctl broker`, and the documents that show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from broker.admin.brokers import BrokerStatus
from broker.records import HIDDEN, ColumnKind, Fit, Flag, Integer, Millis, Rank, Text
from pylogctl.cli.columns import Document, Row


class BrokerRow(Row):
    """A broker by its registration, or by its response; one that is down by its topics."""

    id: Annotated[Integer, "number in the cluster"]
    host: Annotated[Text, "address for clients", Fit.WHOLE]
    port: Annotated[Integer, "port for clients"]
    creator: Annotated[Text, "token of its data directory", Rank(3)]
    since: Annotated[Millis, "registered, or started, at", Rank(2)]
    session: Annotated[Text, "session with ZooKeeper", Rank(4)]
    topics: Annotated[Integer, "number of topics"]
    state: Annotated[str, "up, or down: not registered", Fit.ALARM] = "up"
    first_topics: Annotated[Text, "some of them, if it is down", Fit.WRAP, Rank(1)] = None
    all_topics: Annotated[tuple[str, ...], "all of them, if it is down", Fit.WRAP, HIDDEN] = ()


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


LIST = Document("broker.list/2", BrokerRow, empty="no brokers")
READY = Document("broker.start/1", ReadyRow, empty="not started")
STATUS = Document("broker.status/2", BrokerStatus, empty="no brokers")
STOP = Document("broker.stop/1", ShutdownStep, empty="")


def down_row(id: int, topics: Sequence[str]) -> BrokerRow:
    """Return the row of a broker that is not registered, and has logs of topics."""
    first = ", ".join(topics[:3]) + ", ..." * (len(topics) > 3)
    nothing = (None,) * 5
    return BrokerRow(id, *nothing, len(topics), "down", first, tuple(topics))
