"""Paths of nodes on command lines: absolute ones, and relative ones in a shell."""

from __future__ import annotations

import posixpath
from contextvars import ContextVar

from broker.errors import CoordinationError
from pylogctl.cli.errors import UsageError

current_node: ContextVar[str] = ContextVar("current_node", default="")
"""The node of a shell to which paths are relative; empty outside of one."""
HERE = "."
"""The current node; the root outside of a shell."""


def checked_path(text: str) -> str:
    """Return a path as an absolute one; UsageError if it is none."""
    from broker.zk.paths import resolve

    here = current_node.get()
    if here or text == HERE:
        text = posixpath.normpath(posixpath.join(here or "/", text))
    try:
        return resolve("", text)
    except CoordinationError as error:
        raise UsageError(str(error)) from error
