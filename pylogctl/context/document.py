"""The rows of `pylogctl context`, and the document that shows them."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import Document, Fit, Rank, Row, Text


class ContextRow(Row):
    """A named cluster."""

    name: Annotated[str, "name", Fit.WHOLE]
    current: Annotated[bool, "whether commands use it that name no cluster"]
    zookeeper: Annotated[Text, "its ZooKeeper", Rank(1)]
    brokers: Annotated[Text, "or its brokers", Rank(1)]
    timeout: Annotated[Text, "limit of a request", Rank(2)]
    tls: Annotated[bool, "whether brokers are spoken to over TLS", Rank(2)]
    user: Annotated[Text, "who logs in at brokers", Rank(2)]
    protected: Annotated[bool, "whether changes ask for its name", Rank(2)]
    read_only: Annotated[bool, "whether changes are refused", Rank(2)]
    color: Annotated[Text, "of its name before questions", Rank(3)]
    file: Annotated[str, "where it is", Rank(3)]


CONTEXTS = Document(
    "context.list/1", ContextRow, "no contexts; add one: pylogctl context add NAME -Z HOST:PORT"
)
