"""The document that `pylogctl web` writes once it serves."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.columns import Document, Row


class WebReadyRow(Row):
    """The server that has started."""

    url: Annotated[str, "address of the first page, with the token if a new one was made"]
    pid: Annotated[int, "process id"]
    changes: Annotated[bool, "whether changes are allowed"]


READY = Document("web/1", WebReadyRow, empty="not started")
