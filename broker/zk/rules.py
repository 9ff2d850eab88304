"""The node with all rules: one value, so that each change of them is atomic and has a version."""

from __future__ import annotations

from collections.abc import Callable

from broker import errors
from broker.zk import paths
from broker.zk.nodes import NodeStat
from broker.zk.session import Session
from broker.zk.watched_reads import WatchedReads

NO_VERSION = -1
_ATTEMPTS = 10


def read_rules(session: Session) -> tuple[bytes | None, int]:
    """Return the value with all rules, and its version; None and -1 without the node."""
    try:
        value, stat = session.get(paths.RULES)
    except errors.RegistryNodeNotFoundError:
        return None, NO_VERSION
    return value, stat.version


def watch_rules(watched: WatchedReads) -> tuple[bytes, NodeStat] | None:
    """Return the value with all rules and its node's metadata, None without one; and watch it."""
    found = None
    while found is None:
        if not watched.exists(paths.RULES):
            return None
        found = watched.values([paths.RULES]).get(paths.RULES)  # None if it was just deleted
    return found


def change_rules(session: Session, edit: Callable[[bytes | None], bytes | None]) -> int:
    """Change the value by version, and return the new one.

    `edit` returns the new value, or None to leave it; it is called again if another client has
    changed the node meanwhile. `RegistryConflictError` after ten times.
    """
    for _ in range(_ATTEMPTS):
        value, version = read_rules(session)
        new = edit(value)
        if new is None:
            return version
        try:
            if version == NO_VERSION:
                session.create(paths.RULES, new)
                return 0
            session.set(paths.RULES, new, version=version)
        except errors.RegistryConflictError:
            continue
        except errors.RegistryUnreachableError as error:
            raise errors.RegistryUnreachableError(
                f"{error}; whether the rules were changed is not known"
            ) from error
        return version + 1
    raise errors.RegistryConflictError(
        f"node {paths.RULES} is changed by other clients all the time"
    )
