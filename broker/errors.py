"""Every exception of the library, its wire code, and whether trying again may help.

`BrokerError` is the root. Two class attributes say what the type means to a caller:

- `is_retriable`: the same request may succeed later, on a new connection or once the broker has
  recovered. Producers, mirrors and fetchers decide by it; nobody keeps a list of types.
- `code` (`ServerError` only): the number on the wire. 0.7's five codes come from its
  `ErrorMapping`; the others are sent by extension requests only and use the number that later
  Kafka protocols give the same failure, or one from 128 up.
"""

from __future__ import annotations

from typing import ClassVar


class BrokerError(Exception):
    """Root of every error this library raises on purpose."""

    is_retriable: ClassVar[bool] = False


class ConfigError(BrokerError):
    """A setting is unknown, malformed or out of range, or the environment lacks something."""


class QueryError(BrokerError):
    """A query of a job is invalid: SQL, a column, a pattern, or a stream without bounds."""


class SparkFailedError(BrokerError):
    """A Spark job failed for a reason that is no error of this library."""


class ProtocolError(BrokerError):
    """Bytes from a peer do not parse; their connection is closed."""


class LogCorruptError(BrokerError):
    """A log on disk contradicts itself where no automatic repair is safe."""


class LogLockedError(BrokerError):
    """A data directory is in use by another process, or belongs to another broker."""


class CoordinationError(BrokerError):
    """ZooKeeper refused or failed a request."""


class RegistryUnreachableError(CoordinationError):
    """ZooKeeper cannot be connected to, or the session is lost."""

    is_retriable = True


class RegistryConflictError(CoordinationError):
    """A ZooKeeper node that must be created here exists already, or was changed by others."""


class RegistryNodeNotFoundError(CoordinationError):
    """A ZooKeeper node does not exist."""


class BrokerUnreachableError(BrokerError):
    """A broker could not be connected to, or the connection broke."""

    is_retriable = True


class RequestTimeoutError(BrokerError):
    """A response, or an acknowledgement, did not come in the client's time limit."""

    is_retriable = True


class ConsumerTimeoutError(BrokerError):
    """No message came to a stream of a group within its timeout."""


class QueueFullError(BrokerError):
    """The queue of an asynchronous producer had no room within the enqueue timeout."""


class ProducerClosedError(BrokerError):
    """A producer is closed: it takes no messages any more, or could not deliver one in time."""


class DeliveryFailedError(BrokerError):
    """Messages given to a producer were not delivered, and the program did not ask about them."""


class MessageDroppedError(BrokerError):
    """A callback of an asynchronous producer failed on a message, or never returned it."""


class OffsetStoreError(BrokerError):
    """A store of a group's offsets outside ZooKeeper could not be read or written."""


class RetryStoreError(BrokerError):
    """A store of messages to be handled again could not be read or written."""


class RetryStoreBusyError(RetryStoreError):
    """A store of messages to be handled again is in use by another process."""


class OutputConflictError(BrokerError):
    """An output directory is in use, or holds something other than this output."""


class TopicNotFoundError(BrokerError):
    """A topic exists on no broker."""


class ServerError(BrokerError):
    """A failure with a wire code: raised by a broker's handlers, and again by its clients."""

    code: ClassVar[int] = -1


class UnknownServerError(ServerError):
    """A failure that has no code of its own."""

    code = -1


class OffsetOutOfRangeError(ServerError):
    """An offset lies before the log start offset or past the high watermark."""

    code = 1


class DataLossError(OffsetOutOfRangeError):
    """A log lacks messages that a Spark job is to read. Raised by clients, never sent."""


class InvalidMessageError(ServerError):
    """A message fails its CRC, or its header or compression cannot be understood.

    Attributes:
        partition: the `TopicPartition` it was read from, if the text names it.
    """

    code = 2
    partition: object = None


class WrongPartitionError(ServerError):
    """A partition index is not one of the broker's for that topic."""

    code = 3


class InvalidFetchSizeError(ServerError):
    """A fetch was too small for the first message it met."""

    code = 4


class RequestTimedOutError(ServerError):
    """The broker could not finish a request within the time the request allowed."""

    code = 7
    is_retriable = True


class MessageSizeTooLargeError(ServerError):
    """A message's payload exceeds `max.message.size`."""

    code = 10


class InvalidTopicError(ServerError):
    """A topic name is empty, too long or holds a forbidden character."""

    code = 17


class UnsupportedVersionError(ServerError):
    """An extension request has a version, or a type, that the broker does not know."""

    code = 35


class TopicExistsError(ServerError):
    """A topic that should be created exists already."""

    code = 36


class StorageError(ServerError):
    """The broker's disk refused a write: full, read-only or failing."""

    code = 56
    is_retriable = True


class UnknownTopicError(ServerError):
    """A topic is not on this broker (extension requests only: 0.7's fetch calls it empty)."""

    code = 128


class ShuttingDownError(ServerError):
    """The broker refuses new data because it is shutting down."""

    code = 129
    is_retriable = True


class InvalidPatternError(ServerError):
    """The pattern of a filtered read is too long, or no regular expression."""

    code = 130


class PatternTooSlowError(ServerError):
    """The pattern of a filtered read takes too long over the messages it meets."""

    code = 131


NO_ERROR = 0

ERROR_OF_CODE: dict[int, type[ServerError]] = {
    one.code: one
    for one in (
        UnknownServerError,
        OffsetOutOfRangeError,
        InvalidMessageError,
        WrongPartitionError,
        InvalidFetchSizeError,
        RequestTimedOutError,
        MessageSizeTooLargeError,
        InvalidTopicError,
        UnsupportedVersionError,
        TopicExistsError,
        StorageError,
        UnknownTopicError,
        ShuttingDownError,
        InvalidPatternError,
        PatternTooSlowError,
    )
}


def error_for_code(code: int, message: str) -> ServerError:
    """Return the exception a client raises for a wire code other than `NO_ERROR`.

    A code that is not in the table becomes an `UnknownServerError`.

    Source: Kafka 0.7 `ErrorMapping.exceptionFor`.
    """
    return ERROR_OF_CODE.get(code, UnknownServerError)(message)
