"""Every exception of the library, its wire code, and whether a retry may help.

`BrokerError` is the root. Two class attributes:

- `is_retriable`: the same request may succeed later, on a new connection or once the broker has
  recovered. Producers, mirrors and fetchers decide by it; there are no lists of types elsewhere.
- `code` (`ServerError` only): the number on the wire. 0.7's five codes come from its
  `ErrorMapping`; the others are sent by extension requests only and use the number that later
  Kafka protocols give the same failure, or one from 128 up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Literal


def _publish(kind: type, name: str) -> None:
    """Give a class the name by which programs catch it, which tracebacks and pickles have."""
    kind.__module__, kind.__name__, kind.__qualname__ = "pylogctl", name, name


class BrokerError(Exception):
    """Root of every error this library raises on purpose.

    `hints` name the expected form, the likely cause, or what to try next, a line each. `details`
    are what the text is about, by name, for programs.
    """

    is_retriable: ClassVar[bool] = False
    is_cut_short = False  # the attempt to connect had less time than a broker may take

    def __init_subclass__(cls, *, public: str = "") -> None:
        super().__init_subclass__()
        if public:
            _publish(cls, public)

    def __init__(
        self, *args: object, hints: Iterable[str] = (), details: Mapping[str, object] | None = None
    ) -> None:
        super().__init__(*args)
        self.hints: tuple[str, ...] = tuple(hints)
        self.details: dict[str, object] = dict(details or {})


_publish(BrokerError, "Error")


class ConfigError(BrokerError):
    """A setting is unknown, malformed or out of range, or the environment lacks something."""


class ArgumentError(BrokerError, ValueError):
    """A value is malformed: a position, time, duration, size, rate or partition."""


class NotABoundaryError(ArgumentError, public="NotABoundary"):
    """An offset is inside a message; the boundaries around it are `before` and `after`."""

    def __init__(
        self, message: str, before: int = -1, after: int = -1, *, hints: Iterable[str] = ()
    ) -> None:
        super().__init__(message, hints=hints)
        self.before = before
        self.after = after


class QueryError(BrokerError):
    """A query of a job is invalid: SQL, a column, a pattern, or a stream without bounds."""


class SparkFailedError(BrokerError):
    """A Spark job failed for a reason that is no error of this library."""


class TaskProcessError(BrokerError):
    """A process that ran a task of a job on this machine ended unexpectedly."""


class ProtocolError(BrokerError):
    """Bytes from a peer do not parse; their connection is closed."""


class LogCorruptError(BrokerError):
    """A log on disk contradicts itself where no automatic repair is safe."""


class AddressInUseError(BrokerError):
    """The address cannot be listened on."""


class LogLockedError(BrokerError):
    """A data directory is in use by another process, or belongs to another broker or cluster."""


class CoordinationError(BrokerError):
    """ZooKeeper refused or failed a request."""


class RegistryUnreachableError(CoordinationError):
    """ZooKeeper cannot be connected to, or the session is lost."""

    is_retriable = True


class RegistryConflictError(CoordinationError):
    """A ZooKeeper node that must be created here exists already, or was changed by others."""


class ControllerFencedError(CoordinationError):
    """Another broker became the controller: the write of this one was not done."""


class RegistryNodeNotFoundError(CoordinationError):
    """A ZooKeeper node does not exist."""


class InvalidNodeNameError(CoordinationError):
    """No ZooKeeper node can have such a name."""


class RegistryAccessError(CoordinationError):
    """ZooKeeper does not allow a request: the node's ACL is for another credential."""


class BrokerUnreachableError(BrokerError):
    """A broker could not be connected to, or the connection broke."""

    is_retriable = True


class PartitionsAwayError(BrokerUnreachableError):
    """Partitions of a topic cannot be read now, as brokers are away; a line for each cause."""


class TlsError(BrokerUnreachableError):
    """A connection cannot be secured: a certificate is not accepted, or one side speaks no TLS."""

    is_retriable = False


class BrokerStoppedError(BrokerUnreachableError):
    """A broker that shuts down has ended the connection.

    All messages that it acknowledged are flushed. Requests without a response have stored nothing,
    so they can be sent again, to any broker, without a duplicate.
    """


class RequestTimeoutError(BrokerError):
    """A response, or an acknowledgement, did not come in the client's time limit."""

    is_retriable = True
    outcome: Literal["not_done", "unknown"] = "unknown"
    """Whether what was asked for can be done nevertheless, or be done later."""


UNANSWERED = (BrokerUnreachableError, RegistryUnreachableError, RequestTimeoutError)
"""No response from a broker or from ZooKeeper: what is known of the cluster stays in use."""


class ConsumerTimeoutError(BrokerError):
    """No message came to a stream of a group within its timeout."""


class QueueFullError(BrokerError, public="BufferFull"):
    """The queue of an asynchronous producer had no room within the enqueue timeout."""

    is_retriable = True


class ProducerClosedError(BrokerError):
    """A producer is closed: it takes no messages any more, or could not deliver one in time."""


class DeliveryFailedError(BrokerError, public="DeliveryFailed"):
    """Messages of a producer were not delivered, and the program did not ask for their result."""


class AcknowledgedLossError(BrokerError):
    """Messages that a broker acknowledged before they were committed are not in the log."""


class MessageDroppedError(BrokerError):
    """A callback of an asynchronous producer failed on a message, or never returned it."""


class PluginError(BrokerError):
    """A plug-in failed on a message, or returned a value of another type."""

    def about(self, subject: str) -> PluginError:
        """Return the error with what the plug-in was called for, such as a topic and a message."""
        return PluginError(f"{subject}: {self}", hints=self.hints)


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


class GroupNotFoundError(BrokerError):
    """There is no consumer group of a name."""


class BrokerNotFoundError(BrokerError):
    """There is no live broker of an id."""


class GroupActiveError(BrokerError, public="GroupActive"):
    """A consumer group has members, which would write over a change of its offsets."""

    def __init__(
        self,
        message: str,
        members: Iterable[str] = (),
        *,
        hints: Iterable[str] = (),
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, hints=hints, details=details)
        self.members: tuple[str, ...] = tuple(members)


class ConflictError(BrokerError, public="Conflict"):
    """What is there does not fit the call, or has changed meanwhile; nothing was changed.

    `reason` is a word for programs, such as `OFFSET_CHANGED`.
    """

    def __init__(
        self,
        message: str,
        reason: str = "CONFLICT",
        *,
        hints: Iterable[str] = (),
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, hints=hints, details=details)
        self.reason = reason


class NotReplicatedError(ConflictError):
    """A topic has no replicas, and the call is about replicas."""

    def __init__(self, message: str, *, hints: Iterable[str] = ()) -> None:
        super().__init__(message, "NOT_REPLICATED", hints=hints)


class PartialError(BrokerError, public="Partial"):
    """A call about several targets has failed for some of them; the others are done.

    `done` has the results of these, `failed` an error for each other target by its name.
    """

    def __init__(
        self,
        message: str,
        done: Iterable[object] = (),
        failed: Mapping[str, BrokerError] | None = None,
        *,
        hints: Iterable[str] = (),
    ) -> None:
        super().__init__(message, hints=hints)
        self.done: tuple[Any, ...] = tuple(done)
        self.failed: dict[str, BrokerError] = dict(failed or {})


ERROR_OF_CODE: dict[int, type[ServerError]] = {}
"""The errors that have a wire code of their own."""
NAME_OF_CODE: dict[int, str] = {}
"""The names of errors in the protocol's documents and in metrics."""


class ServerError(BrokerError, public="Refused"):
    """A failure with a wire code: raised by a broker's handlers, and again by its clients."""

    code: ClassVar[int] = -1

    def __init_subclass__(cls, *, public: str = "") -> None:
        if "code" in cls.__dict__ and cls.__module__ == __name__:  # not a program's own class
            ERROR_OF_CODE[cls.code] = cls
            NAME_OF_CODE[cls.code] = cls.__name__
        super().__init_subclass__(public=public)


class UnknownServerError(ServerError):
    """A failure that has no code of its own."""

    code = -1


class OffsetOutOfRangeError(ServerError, public="OffsetOutOfRange"):
    """An offset lies before the log start offset or past the high watermark."""

    code = 1


class DataLossError(OffsetOutOfRangeError):
    """A log lacks messages that a Spark job is to read; never sent.

    `next_offset` is that of the next message, -1 if it is the log start offset.
    """

    def __init__(self, message: str, next_offset: int = -1) -> None:
        super().__init__(message)
        self.next_offset = next_offset


class LostOffsetsError(OffsetOutOfRangeError):
    """The messages at an offset were lost by the broker's disk; there are others behind them.

    `next_offset` is where these begin. A response has it in the place of the high watermark.
    """

    code = 133

    def __init__(self, message: str, next_offset: int = -1) -> None:
        super().__init__(message)
        self.next_offset = next_offset


class InvalidMessageError(ServerError, public="CorruptMessage"):
    """A message fails its CRC, or its header or compression is invalid.

    `partition` is the `TopicPartition` it was read from, if the text names it.
    """

    code = 2
    partition: object = None


class WrongPartitionError(ServerError):
    """A partition index is not one of the broker's for that topic."""

    code = 3


class InvalidFetchSizeError(ServerError):
    """A fetch was too small for the first message it met."""

    code = 4


class LeaderNotAvailableError(ServerError):
    """A partition has no leader at present, as no broker that may lead it is live."""

    code = 5
    is_retriable = True


class NotLeaderError(ServerError):
    """The broker asked does not lead the partition; the same request goes to the leader.

    Nothing was read or appended; but a publish that waited for its commit can be in the log.
    `leader` is the id of the leader, -1 if the broker does not know it.
    """

    code = 6
    is_retriable = True

    def __init__(self, message: str, leader: int = -1) -> None:
        super().__init__(message)
        self.leader = leader


class RequestTimedOutError(ServerError):
    """The broker could not finish a request within the time the request allowed."""

    code = 7
    is_retriable = True


class MessageSizeTooLargeError(ServerError, public="TooLarge"):
    """A message's payload exceeds `max.message.size`.

    `limit` is that of the broker that refuses it, -1 if it is not known.
    """

    code = 10

    def __init__(self, message: str, limit: int = -1) -> None:
        super().__init__(message)
        self.limit = limit


class StaleControllerEpochError(ServerError):
    """A request comes from a broker that is no longer the controller."""

    code = 11


class InvalidTopicError(ServerError, public="InvalidName"):
    """A topic name is empty, too long or holds a forbidden character."""

    code = 17


class NotEnoughReplicasError(ServerError, public="NotEnoughReplicas"):
    """Fewer replicas are in sync than the topic requires; the request has appended nothing."""

    code = 19
    is_retriable = True


class NotEnoughReplicasAfterAppendError(ServerError):
    """Messages are in the leader's log, but too few replicas are in sync to commit them.

    They may be committed later, or be cut off: to the producer the outcome is unknown.
    """

    code = 20
    is_retriable = True


class TopicAuthorizationError(ServerError):
    """The client may not do this with a topic."""

    code = 29


class GroupAuthorizationError(ServerError):
    """The client may not do this with a consumer group."""

    code = 30


class ClusterAuthorizationError(ServerError):
    """The client may not do this with the cluster, or only its brokers may."""

    code = 31


class AuthenticationError(ServerError):
    """A client did not prove who it is; the broker ends the connection."""


class UnsupportedMechanismError(AuthenticationError):
    """The listener does not offer the mechanism with which a client wants to prove who it is."""

    code = 33


class AuthenticationStateError(AuthenticationError):
    """A step of an exchange came out of turn, or another request before the client is known."""

    code = 34


class UnsupportedVersionError(ServerError, public="NotSupported"):
    """An extension request has a version, or a type, that the broker does not know."""

    code = 35


class TopicExistsError(ServerError, public="TopicExists"):
    """A topic that should be created exists already."""

    code = 36


class InvalidReplicationFactorError(ServerError):
    """A topic is to have more replicas than there are live brokers, or fewer than one."""

    code = 38


class NotControllerError(ServerError):
    """The broker asked is not the controller of the cluster; the text names the one that is."""

    code = 41
    is_retriable = True


class InvalidRequestError(ServerError):
    """The fields of a request contradict each other, or the state of the cluster."""

    code = 42


class WrongFormatError(ServerError):
    """Messages, or a request, are not of the format that the topic has."""

    code = 43  # Kafka's UNSUPPORTED_FOR_MESSAGE_FORMAT


class OutOfOrderSequenceError(ServerError):
    """A batch of an idempotent producer does not follow the last one of it that a log has."""

    code = 45


class InvalidProducerEpochError(ServerError):
    """A batch is of a producer that another one with the same id has replaced."""

    code = 47


class StorageError(ServerError):
    """The broker's disk refused a write: full, read-only or failing.

    `state` is the resulting state of the log, in one word, for status documents.
    """

    code = 56
    is_retriable = True
    state: ClassVar[str] = "failed"


class DiskFullError(StorageError):
    """A disk has no room for messages. On the wire a `StorageError`."""

    state = "full"


class UnreadableError(StorageError):
    """A segment cannot be read, from some position on. On the wire a `StorageError`."""

    state = "unreadable"


class DamagedError(StorageError):
    """A message in a segment is damaged on the disk. On the wire a `StorageError`."""

    state = "damaged"


class OutOfDescriptorsError(StorageError):
    """A segment could not be opened as too many files are open. On the wire a `StorageError`."""


class SecurityDisabledError(AuthenticationError):
    """The listener asks for no identity."""

    code = 54


class AuthenticationFailedError(AuthenticationError):
    """The client did not prove who it is; the text is the same for every cause."""

    code = 58


class UnknownFetchSessionError(ServerError):
    """A follower's fetch does not continue a fetch session: it has to begin another one."""

    code = 70
    is_retriable = True


class FencedEpochError(ServerError):
    """A request is of a leader epoch that is over; its sender waits for a new state."""

    code = 74


class UnknownEpochError(ServerError):
    """A request is of an epoch of a leader, controller or broker that is not known here yet."""

    code = 75
    is_retriable = True


class StaleBrokerEpochError(ServerError):
    """A request is for, or of, another registration of a broker than its present one."""

    code = 77


class OffsetNotAvailableError(ServerError):
    """A replica does not know yet what is committed, or has no offset that others have.

    A follower is behind its leader; a new leader waits for its followers.
    """

    code = 78
    is_retriable = True


class TooManyTopicsError(ServerError):
    """A client creates topics faster, or has more partitions, than one client may."""

    code = 89  # Kafka's for an exceeded quota
    is_retriable = True


class KeptMessagesError(ServerError):
    """A follower keeps messages that its leader has removed; no peer is told."""


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


class ResponseTooLargeError(ServerError):
    """The response would be larger than the broker allows; request less at a time."""

    code = 132


class UnknownSchemaError(ServerError, public="UnknownSchema"):
    """There is no schema of an id, or no such subject or version."""

    code = 134


class InvalidSchemaError(ServerError, public="InvalidSchema"):
    """A text is no schema of its type, or exceeds the bounds of schemas."""

    code = 135


class IncompatibleSchemaError(ServerError, public="IncompatibleSchema"):
    """A schema does not fit earlier versions of its subject, as its compatibility demands."""

    code = 136

    @property
    def reasons(self) -> list[str]:
        """Return why it does not fit: the lines of the text behind the first."""
        return str(self).splitlines()[1:]


class SchemaMismatchError(ServerError, public="SchemaMismatch"):
    """A payload, or a value, does not fit its schema, or names no known one."""

    code = 137


class SchemaIdTakenError(ServerError, ConflictError):
    """A schema is to keep an id that another schema has, or it has another id itself."""

    code = 138


class SchemasUnavailableError(ServerError):
    """A broker cannot reach the registry of schemas at present."""

    code = 139
    is_retriable = True


class SchemaAuthorizationError(ServerError):
    """A client may not do this to a subject of schemas."""

    code = 140


NO_ERROR = 0


def error_for_code(code: int, message: str, detail: int = -1) -> ServerError:
    """Return the exception for a wire code other than `NO_ERROR`; `UnknownServerError` if unknown.

    `detail` is the number in the response that belongs to the error; see `detail_of`.
    Source: Kafka 0.7 `ErrorMapping.exceptionFor`.
    """
    kind = ERROR_OF_CODE.get(code, UnknownServerError)
    if issubclass(kind, NotLeaderError | MessageSizeTooLargeError | LostOffsetsError):
        return kind(message, detail)
    return kind(message)


def detail_of(error: ServerError) -> int:
    """Return the number that a response has beside the code: the leader's id, or the limit."""
    if isinstance(error, NotLeaderError):
        return error.leader
    return error.limit if isinstance(error, MessageSizeTooLargeError) else -1


def did_you_mean(value: str, candidates: Iterable[str]) -> str:
    """Return `; did you mean 'x'?` for the most similar candidate, or an empty text."""
    from difflib import get_close_matches  # late: few programs make mistakes

    matches = get_close_matches(value, list(candidates), n=1, cutoff=0.6)
    return f"; did you mean '{matches[0]}'?" if matches else ""
