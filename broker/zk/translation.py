"""Kazoo's errors, as those of `broker.errors`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kazoo import exceptions as kazoo_errors
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.retry import ForceRetryError

from broker import errors

FOREIGN = (kazoo_errors.KazooException, KazooTimeoutError, ForceRetryError)

# The request or its response was lost: it may or may not have been carried out.
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
"""Why no response came, by kazoo's error."""

_CHANGED = (
    kazoo_errors.BadVersionError,
    kazoo_errors.RolledBackError,
    kazoo_errors.RuntimeInconsistency,
)


@contextmanager
def translated(servers: str, path: str, user: str | None = None) -> Iterator[None]:
    """Translate kazoo's errors into those of `broker.errors`, which name servers and node."""
    try:
        yield
    except FOREIGN as error:
        raise translated_error(error, servers, path, user) from error


def translated_error(
    error: Exception, servers: str, path: str, user: str | None
) -> errors.CoordinationError:
    """Return the error of `broker.errors` for one of kazoo's, of a request for a node."""
    cause = next((text for kind, text in _UNREACHABLE.items() if isinstance(error, kind)), None)
    if cause is not None:
        return errors.RegistryUnreachableError(f"no answer from ZooKeeper at {servers}: {cause}")
    if isinstance(error, kazoo_errors.NoNodeError):
        return errors.RegistryNodeNotFoundError(f"no node {path} in ZooKeeper")
    if isinstance(error, kazoo_errors.NodeExistsError):
        return errors.RegistryConflictError(f"node {path} exists already")
    if isinstance(error, _CHANGED):
        return errors.RegistryConflictError(f"node {path} was changed by another client")
    if isinstance(error, kazoo_errors.NoAuthError):
        return _no_right(servers, path, user)
    if isinstance(error, kazoo_errors.NotEmptyError):
        return errors.CoordinationError(f"node {path} has children")
    if isinstance(error, kazoo_errors.NoChildrenForEphemeralsError):
        return errors.CoordinationError(f"the parent of node {path} is ephemeral")
    return errors.CoordinationError(f"ZooKeeper refused a request for {path}: {error!r}")


def _no_right(servers: str, path: str, user: str | None) -> errors.RegistryAccessError:
    if user is None:
        who, hint = "a client without a credential", "give that of the brokers"
    else:
        # a wrong password makes another identity, which the server tells nobody
        who, hint = (
            f"the credential of user '{user}'",
            "compare user and password with the brokers'",
        )
    return errors.RegistryAccessError(
        f"ZooKeeper at {servers} does not allow this with node {path} to {who}",
        hints=[f"{hint}: --zk-credential FILE, or zookeeper.credential.file"],
        details={"path": path, "user": user},
    )
