"""The one mapping from an exception to exit status, code word and sentence.

Knows the exceptions of the library, of the command line and of the operating system; knows no
command and prints nothing. Loaded only when something failed.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from broker import errors as library
from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus


class Failure(NamedTuple):
    """A failure as it is told: to people as text, to programs as one object."""

    status: ExitStatus
    code: str
    message: str
    hints: tuple[str, ...] = ()
    details: Mapping[str, object] = MappingProxyType({})


class _Rule(NamedTuple):
    status: ExitStatus
    code: str
    hint: str = ""


_LIBRARY: dict[type[library.BrokerError], _Rule] = {
    library.BrokerError: _Rule(ExitStatus.FAILED, "FAILED"),
    library.ConfigError: _Rule(ExitStatus.CONFIG, "CONFIG"),
    library.QueryError: _Rule(ExitStatus.USAGE, "QUERY"),
    library.ProtocolError: _Rule(ExitStatus.REMOTE, "PROTOCOL"),
    library.LogCorruptError: _Rule(
        ExitStatus.CORRUPT, "LOG_CORRUPT", "try: pylogctl log verify FILE"
    ),
    library.LogLockedError: _Rule(ExitStatus.CONFLICT, "LOG_LOCKED"),
    library.RetryStoreBusyError: _Rule(ExitStatus.CONFLICT, "RETRY_STORE_BUSY"),
    library.OutputConflictError: _Rule(ExitStatus.CONFLICT, "OUTPUT_CONFLICT"),
    library.CoordinationError: _Rule(ExitStatus.REMOTE, "REGISTRY"),
    library.RegistryUnreachableError: _Rule(
        ExitStatus.UNREACHABLE,
        "REGISTRY_UNREACHABLE",
        "try: pylogctl doctor; where a command takes --broker HOST:PORT it needs no registry",
    ),
    library.RegistryConflictError: _Rule(ExitStatus.CONFLICT, "REGISTRY_CONFLICT"),
    library.RegistryNodeNotFoundError: _Rule(ExitStatus.NOT_FOUND, "NODE_NOT_FOUND"),
    library.BrokerUnreachableError: _Rule(ExitStatus.UNREACHABLE, "BROKER_UNREACHABLE"),
    library.RequestTimeoutError: _Rule(ExitStatus.TIMEOUT, "TIMEOUT"),
    library.TopicNotFoundError: _Rule(
        ExitStatus.NOT_FOUND, "TOPIC_NOT_FOUND", "try: pylogctl topic list"
    ),
    library.ServerError: _Rule(ExitStatus.REMOTE, "BROKER_ERROR"),
    library.OffsetOutOfRangeError: _Rule(ExitStatus.NOT_FOUND, "OFFSET_OUT_OF_RANGE"),
    library.InvalidMessageError: _Rule(ExitStatus.CORRUPT, "INVALID_MESSAGE"),
    library.WrongPartitionError: _Rule(ExitStatus.NOT_FOUND, "PARTITION_NOT_FOUND"),
    library.RequestTimedOutError: _Rule(ExitStatus.TIMEOUT, "TIMEOUT"),
    library.MessageSizeTooLargeError: _Rule(ExitStatus.USAGE, "MESSAGE_TOO_LARGE"),
    library.InvalidTopicError: _Rule(ExitStatus.USAGE, "INVALID_TOPIC"),
    library.UnsupportedVersionError: _Rule(ExitStatus.UNSUPPORTED, "UNSUPPORTED_VERSION"),
    library.InvalidPatternError: _Rule(ExitStatus.USAGE, "INVALID_PATTERN"),
    library.PatternTooSlowError: _Rule(
        ExitStatus.REMOTE, "PATTERN_TOO_SLOW", "--grep-at consumer has no limit of time"
    ),
    library.TopicExistsError: _Rule(ExitStatus.CONFLICT, "TOPIC_EXISTS"),
    library.UnknownTopicError: _Rule(
        ExitStatus.NOT_FOUND, "TOPIC_NOT_FOUND", "try: pylogctl topic list"
    ),
}

_SYSTEM: dict[int, ExitStatus] = {
    errno.ENOENT: ExitStatus.NOT_FOUND,
    errno.EEXIST: ExitStatus.CONFLICT,
    errno.EADDRINUSE: ExitStatus.CONFLICT,
    errno.ECONNREFUSED: ExitStatus.UNREACHABLE,
    errno.ETIMEDOUT: ExitStatus.TIMEOUT,
}

# Errors of a write that carry no file name: only standard output is written that way.
_OUTPUT_ERRORS = {errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT}


def failure_of(error: BaseException) -> Failure | None:
    """Return how an exception is told, or None if it is a bug in this program.

    Args:
        error: what ended the command.
    """
    if isinstance(error, CliError):
        return Failure(error.status, error.code, error.message, error.hints[:3], error.details)
    if isinstance(error, library.BrokerError):
        rule = next(_LIBRARY[kind] for kind in type(error).__mro__ if kind in _LIBRARY)
        return Failure(rule.status, rule.code, str(error), (rule.hint,) if rule.hint else ())
    if isinstance(error, OSError):
        return _failure_of_system(error)
    return None


def _failure_of_system(error: OSError) -> Failure:
    number = error.errno or 0
    reason = os.strerror(number).lower() if number else str(error)
    code = errno.errorcode.get(number, "FAILED")
    if error.filename is None and number in _OUTPUT_ERRORS:
        return Failure(ExitStatus.FAILED, code, f"cannot write output: {reason}")
    status = _SYSTEM.get(number, ExitStatus.FAILED)
    if error.filename is None:
        return Failure(status, code, reason)
    return Failure(status, code, f"'{os.fspath(error.filename)}': {reason}")
