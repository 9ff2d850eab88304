"""Kazoo's errors, translated into this library's at the one place where they appear.

Kazoo's tree has holes: its time-out and its forced retry do not derive from its root.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import ForceRetryError

from broker.errors import (
    CoordinationError,
    RegistryConflictError,
    RegistryNodeNotFoundError,
    RegistryUnreachableError,
)

_FOREIGN = (kazoo_errors.KazooException, KazooTimeoutError, ForceRetryError)

# The request was lost on the way there or back: it may or may not have been carried out.
LOST_REQUEST = (
    kazoo_errors.ConnectionLoss,
    kazoo_errors.OperationTimeoutError,
    kazoo_errors.SessionExpiredError,
)

_UNREACHABLE: dict[type[Exception], str] = {
    kazoo_errors.ConnectionLoss: "the connection was lost",
    kazoo_errors.OperationTimeoutError: "it took too long",
    kazoo_errors.SessionExpiredError: "the session expired",
    kazoo_errors.SessionMovedError: "the session moved to another server",
    KazooTimeoutError: "none came in time",
    ForceRetryError: "the connection was lost",
}
"""Why there was no answer, by the error that tells of it."""

_CHANGED = (
    kazoo_errors.BadVersionError,
    kazoo_errors.RolledBackError,
    kazoo_errors.RuntimeInconsistency,
)


@contextmanager
def translated(servers: str, path: str) -> Iterator[None]:
    """Turn kazoo's errors into this library's.

    Args:
        servers: the registry's servers, for the message.
        path: the node in question, for the message.

    Raises:
        RegistryUnreachableError: the connection or the session is lost, or time is up.
        RegistryNodeNotFoundError: there is no such node.
        RegistryConflictError: the node exists, or has another version.
        CoordinationError: the server refused for another reason.
    """
    try:
        yield
    except _FOREIGN as error:
        raise _translate(error, servers, path) from error


def _translate(error: Exception, servers: str, path: str) -> CoordinationError:
    cause = next((text for kind, text in _UNREACHABLE.items() if isinstance(error, kind)), None)
    if cause is not None:
        return RegistryUnreachableError(f"no answer from ZooKeeper at {servers}: {cause}")
    if isinstance(error, kazoo_errors.NoNodeError):
        return RegistryNodeNotFoundError(f"no node {path} in ZooKeeper")
    if isinstance(error, kazoo_errors.NodeExistsError):
        return RegistryConflictError(f"node {path} exists already")
    if isinstance(error, _CHANGED):
        return RegistryConflictError(f"node {path} was changed by somebody else")
    if isinstance(error, kazoo_errors.NotEmptyError):
        return CoordinationError(f"node {path} has children")
    if isinstance(error, kazoo_errors.NoChildrenForEphemeralsError):
        return CoordinationError(f"the parent of node {path} is ephemeral")
    return CoordinationError(f"ZooKeeper refused a request for {path}: {error!r}")
