"""The errors of the API: those of `broker.errors` under their public names, and a few of its own.

An error of the library that has a kin among Python's own is raised as a subclass of both, so that
`except ConnectionError` and `except BrokerUnreachableError` find the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from broker import errors

Error = errors.BrokerError
BufferFull = errors.QueueFullError
Conflict = errors.ConflictError
CorruptMessage = errors.InvalidMessageError
DeliveryFailed = errors.DeliveryFailedError
GroupActive = errors.GroupActiveError
InvalidName = errors.InvalidTopicError
NotABoundary = errors.NotABoundaryError
NotEnoughReplicas = errors.NotEnoughReplicasError
NotSupported = errors.UnsupportedVersionError
OffsetOutOfRange = errors.OffsetOutOfRangeError
Partial = errors.PartialError
Refused = errors.ServerError
TooLarge = errors.MessageSizeTooLargeError
TopicExists = errors.TopicExistsError


class Unreachable(errors.BrokerUnreachableError, ConnectionError):
    """No broker, or no ZooKeeper, could be connected to; or the connection broke."""

    __module__ = "pylogctl"


class TlsFailed(errors.TlsError, Unreachable):
    """A connection cannot be secured: it names the certificate that does not fit, and why."""

    __module__ = "pylogctl"


class TimedOut(errors.RequestTimeoutError, TimeoutError):
    """A call did not end in time.

    `outcome` is `"not_done"` if it changed nothing and will not, else `"unknown"`.
    """

    __module__ = "pylogctl"


class UnknownTopic(errors.TopicNotFoundError, LookupError):
    """A topic exists on no broker."""

    __module__ = "pylogctl"


class UnknownGroup(errors.GroupNotFoundError, LookupError):
    """There is no consumer group of a name."""

    __module__ = "pylogctl"


class UnknownBroker(errors.BrokerNotFoundError, LookupError):
    """There is no live broker of an id."""

    __module__ = "pylogctl"


class Closed(errors.ProducerClosedError):
    """A client, producer, reader or group was used after it was closed."""

    __module__ = "pylogctl"


class NoZooKeeper(errors.ConfigError):
    """A group needs the ZooKeeper of the cluster, which is not known or not reachable from here."""

    __module__ = "pylogctl"


_PUBLIC: tuple[tuple[type[errors.BrokerError], type[errors.BrokerError]], ...] = (
    (errors.TlsError, TlsFailed),
    (errors.BrokerUnreachableError, Unreachable),
    (errors.RegistryUnreachableError, Unreachable),
    (errors.RequestTimeoutError, TimedOut),
    (errors.RequestTimedOutError, TimedOut),
    (errors.TopicNotFoundError, UnknownTopic),
    (errors.UnknownTopicError, UnknownTopic),
    (errors.GroupNotFoundError, UnknownGroup),
    (errors.BrokerNotFoundError, UnknownBroker),
    (errors.ProducerClosedError, Closed),
)


def public(error: errors.BrokerError) -> errors.BrokerError:
    """Return the error that the API raises for one of the library."""
    if isinstance(error, errors.PartialError):
        error.failed = {name: public(one) for name, one in error.failed.items()}
    for kind, public_kind in _PUBLIC:
        if isinstance(error, kind):
            if isinstance(error, public_kind):
                return error
            found = public_kind(str(error), hints=error.hints, details=error.details)
            if isinstance(found, TimedOut) and isinstance(error, errors.RequestTimeoutError):
                found.outcome = error.outcome
            return found
    return error


@contextmanager
def translated() -> Iterator[None]:
    """Raise errors of the library as those of the API."""
    try:
        yield
    except errors.BrokerError as error:
        if (found := public(error)) is error:
            raise
        raise found from error
