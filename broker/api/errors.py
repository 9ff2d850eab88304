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
IncompatibleSchema = errors.IncompatibleSchemaError
InvalidName = errors.InvalidTopicError
InvalidSchema = errors.InvalidSchemaError
NotABoundary = errors.NotABoundaryError
NotEnoughReplicas = errors.NotEnoughReplicasError
NotSupported = errors.UnsupportedVersionError
OffsetOutOfRange = errors.OffsetOutOfRangeError
Partial = errors.PartialError
Refused = errors.ServerError
SchemaMismatch = errors.SchemaMismatchError
TooLarge = errors.MessageSizeTooLargeError
TopicExists = errors.TopicExistsError
UnknownSchema = errors.UnknownSchemaError


class Unreachable(errors.BrokerUnreachableError, ConnectionError, public="Unreachable"):
    """No broker, or no ZooKeeper, could be connected to; or the connection broke."""


class TlsFailed(errors.TlsError, Unreachable, public="TlsFailed"):
    """A connection cannot be secured: it names the certificate that does not fit, and why."""


class TimedOut(errors.RequestTimeoutError, TimeoutError, public="TimedOut"):
    """A call did not end in time.

    `outcome` is `"not_done"` if it changed nothing and will not, else `"unknown"`.
    """


class UnknownTopic(errors.TopicNotFoundError, LookupError, public="UnknownTopic"):
    """A topic exists on no broker."""


class UnknownGroup(errors.GroupNotFoundError, LookupError, public="UnknownGroup"):
    """There is no consumer group of a name."""


class UnknownBroker(errors.BrokerNotFoundError, LookupError, public="UnknownBroker"):
    """There is no live broker of an id."""


class Closed(errors.ProducerClosedError, public="Closed"):
    """A client, producer, reader or group was used after it was closed."""


class NoZooKeeper(errors.ConfigError, public="NoZooKeeper"):
    """A group needs the ZooKeeper of the cluster, which is not known or not reachable from here."""


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
