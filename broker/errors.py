"""Every exception of the library, and the wire code each one has.

`BrokerError` is the root. What a peer can be told is a `ServerError` with a wire `code`;
0.7's five codes come from its `ErrorMapping`, the others are sent by extension requests only
and use the number that later Kafka protocols give the same failure, or one from 128 up.
"""

from __future__ import annotations


class BrokerError(Exception):
    """Root of every error this library raises on purpose."""


class ConfigError(BrokerError):
    """A setting is unknown, malformed or out of range, or the environment lacks something."""


class QueryError(BrokerError):
    """What a job was asked for cannot be: SQL, a column, a pattern, or a stream without bounds."""


class ProtocolError(BrokerError):
    """Bytes from a peer do not parse; the connection they came on is of no further use."""


class LogCorruptError(BrokerError):
    """A log on disk contradicts itself where no automatic repair is safe."""


class LogLockedError(BrokerError):
    """A data directory is in use by another process, or belongs to another broker."""


class CoordinationError(BrokerError):
    """The registry (ZooKeeper) refused or failed a request."""


class RegistryUnreachableError(CoordinationError):
    """No connection to the registry could be had, or the one there was is lost."""


class RegistryConflictError(CoordinationError):
    """A registry node that must be ours is held by somebody else."""


class RegistryNodeNotFoundError(CoordinationError):
    """A registry node that was asked for does not exist."""


class BrokerUnreachableError(BrokerError):
    """A broker could not be connected to, or the connection broke."""


class RequestTimeoutError(BrokerError):
    """An answer, or an acknowledgement, did not come in the time given for it."""


class ConsumerTimeoutError(BrokerError):
    """Nothing came to a stream of a group within the time its reader was willing to wait."""


class QueueFullError(BrokerError):
    """The queue of an asynchronous producer had no room within the time to wait for it."""


class ProducerClosedError(BrokerError):
    """A producer was closed: it takes no messages any more, or could not deliver one in time."""


class DeliveryFailedError(BrokerError):
    """Messages given to a producer were not delivered, and the program had not asked."""


class MessageDroppedError(BrokerError):
    """A callback of an asynchronous producer failed over a message, or kept it to itself."""


class OffsetStoreError(BrokerError):
    """A store of a group's offsets, other than the registry, could not be read or written."""


class RetryStoreError(BrokerError):
    """A store of messages to be handled again could not be read or written."""


class RetryStoreBusyError(RetryStoreError):
    """A store of messages to be handled again is in use by another process."""


class OutputConflictError(BrokerError):
    """An output directory is in use, or holds something else than what is to be put there."""


class TopicNotFoundError(BrokerError):
    """A topic that was asked for exists on no broker."""


class ServerError(BrokerError):
    """A failure with a wire code: raised by a broker's handlers, and again by its clients."""

    code: int = -1


class UnknownServerError(ServerError):
    """A failure that has no code of its own."""

    code = -1


class OffsetOutOfRangeError(ServerError):
    """An offset lies before the log start offset or past what consumers may see."""

    code = 1


class InvalidMessageError(ServerError):
    """A message fails its CRC, or its header or compression cannot be understood."""

    code = 2


class WrongPartitionError(ServerError):
    """A partition index is not one of the broker's for that topic."""

    code = 3


class InvalidFetchSizeError(ServerError):
    """A fetch was too small for the first message it met."""

    code = 4


class RequestTimedOutError(ServerError):
    """The broker could not do what was asked within the time the request allowed."""

    code = 7


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


class UnknownTopicError(ServerError):
    """A topic is not on this broker (extension requests only: 0.7's fetch calls it empty)."""

    code = 128


class ShuttingDownError(ServerError):
    """The broker refuses new data because it is shutting down."""

    code = 129


class InvalidPatternError(ServerError):
    """The pattern of a filtered read is too long, or no regular expression."""

    code = 130


class PatternTooSlowError(ServerError):
    """The pattern of a filtered read takes too long over the messages it meets."""

    code = 131


NO_ERROR = 0

ERROR_OF_CODE: dict[int, type[ServerError]] = {
    -1: UnknownServerError,
    1: OffsetOutOfRangeError,
    2: InvalidMessageError,
    3: WrongPartitionError,
    4: InvalidFetchSizeError,
    7: RequestTimedOutError,
    10: MessageSizeTooLargeError,
    17: InvalidTopicError,
    35: UnsupportedVersionError,
    36: TopicExistsError,
    56: StorageError,
    128: UnknownTopicError,
    129: ShuttingDownError,
    130: InvalidPatternError,
    131: PatternTooSlowError,
}


def error_for_code(code: int, message: str) -> ServerError:
    """Return the exception a client raises for a wire code.

    Args:
        code: a code from an answer, not `NO_ERROR`.
        message: what was asked, naming topic, partition and offset.

    Returns:
        An instance of the class of that code; `UnknownServerError` for a code not in the table.

    Source: Kafka 0.7 `ErrorMapping.exceptionFor`.
    """
    return ERROR_OF_CODE.get(code, UnknownServerError)(message)
