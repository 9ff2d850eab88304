"""Paths of nodes on command lines."""

from __future__ import annotations

from broker.errors import CoordinationError
from pylogctl.cli.environment import UsageError


def checked_path(text: str) -> str:
    """Return an absolute path; UsageError if it is none."""
    from broker.zk.paths import resolve

    try:
        return resolve("", text)
    except CoordinationError as error:
        raise UsageError(str(error)) from error
