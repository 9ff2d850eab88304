"""Maps an exception to exit status, code word and sentence, and prints it.

Text for people, a JSON object for programs, a crash file for bugs. Imported only after a failure.
Options are searched in the raw command line, since parsing it may be what failed.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from broker import errors as library
from broker.topic import TopicPartition
from pylogctl.cli import environment
from pylogctl.cli.environment import CliError, ExitStatus, MissingCommandError
from pylogctl.cli.escapes import printable

_VERIFY_HINT = "try: pylogctl log verify on the broker's segment files"

_RULES: dict[type[library.BrokerError], tuple[ExitStatus, str]] = {
    library.BrokerError: (ExitStatus.FAILED, "FAILED"),
    library.ConfigError: (ExitStatus.CONFIG, "CONFIG"),
    library.ArgumentError: (ExitStatus.USAGE, "USAGE"),
    library.QueryError: (ExitStatus.USAGE, "QUERY"),
    library.ProtocolError: (ExitStatus.REMOTE, "PROTOCOL"),
    library.LogCorruptError: (ExitStatus.CORRUPT, "LOG_CORRUPT"),
    library.AddressInUseError: (ExitStatus.CONFLICT, "ADDRESS_IN_USE"),
    library.LogLockedError: (ExitStatus.CONFLICT, "LOG_LOCKED"),
    library.RetryStoreBusyError: (ExitStatus.CONFLICT, "RETRY_STORE_BUSY"),
    library.OutputConflictError: (ExitStatus.CONFLICT, "OUTPUT_CONFLICT"),
    library.CoordinationError: (ExitStatus.REMOTE, "REGISTRY"),
    library.RegistryUnreachableError: (ExitStatus.UNREACHABLE, "REGISTRY_UNREACHABLE"),
    library.RegistryConflictError: (ExitStatus.CONFLICT, "REGISTRY_CONFLICT"),
    library.RegistryAccessError: (ExitStatus.REMOTE, "REGISTRY_ACCESS"),
    library.RegistryNodeNotFoundError: (ExitStatus.NOT_FOUND, "NODE_NOT_FOUND"),
    library.BrokerUnreachableError: (ExitStatus.UNREACHABLE, "BROKER_UNREACHABLE"),
    library.PartitionsAwayError: (ExitStatus.PARTIAL, "PARTITIONS_AWAY"),
    library.TlsError: (ExitStatus.UNREACHABLE, "TLS"),
    library.AcknowledgedLossError: (ExitStatus.UNREACHABLE, "ACKNOWLEDGED_LOSS"),
    library.RequestTimeoutError: (ExitStatus.TIMEOUT, "TIMEOUT"),
    library.TopicNotFoundError: (ExitStatus.NOT_FOUND, "TOPIC_NOT_FOUND"),
    library.GroupNotFoundError: (ExitStatus.NOT_FOUND, "GROUP_NOT_FOUND"),
    library.GroupActiveError: (ExitStatus.CONFLICT, "GROUP_ACTIVE"),
    library.BrokerNotFoundError: (ExitStatus.NOT_FOUND, "BROKER_NOT_FOUND"),
    library.ConflictError: (ExitStatus.CONFLICT, "CONFLICT"),
    library.NotReplicatedError: (ExitStatus.UNSUPPORTED, "NOT_REPLICATED"),
    library.PartialError: (ExitStatus.PARTIAL, "PARTIAL"),
    library.ServerError: (ExitStatus.REMOTE, "BROKER_ERROR"),
    library.AuthenticationError: (ExitStatus.LOGIN, "LOGIN"),
    library.TopicAuthorizationError: (ExitStatus.NOT_ALLOWED, "NOT_ALLOWED"),
    library.GroupAuthorizationError: (ExitStatus.NOT_ALLOWED, "NOT_ALLOWED"),
    library.ClusterAuthorizationError: (ExitStatus.NOT_ALLOWED, "NOT_ALLOWED"),
    library.OffsetOutOfRangeError: (ExitStatus.NOT_FOUND, "OFFSET_OUT_OF_RANGE"),
    library.InvalidMessageError: (ExitStatus.CORRUPT, "INVALID_MESSAGE"),
    library.WrongPartitionError: (ExitStatus.NOT_FOUND, "PARTITION_NOT_FOUND"),
    library.LeaderNotAvailableError: (ExitStatus.UNREACHABLE, "LEADER_NOT_AVAILABLE"),
    library.NotLeaderError: (ExitStatus.UNREACHABLE, "NOT_LEADER"),
    library.OffsetNotAvailableError: (ExitStatus.UNREACHABLE, "OFFSET_NOT_AVAILABLE"),
    library.RequestTimedOutError: (ExitStatus.TIMEOUT, "TIMEOUT"),
    library.MessageSizeTooLargeError: (ExitStatus.USAGE, "MESSAGE_TOO_LARGE"),
    library.InvalidTopicError: (ExitStatus.USAGE, "INVALID_TOPIC"),
    library.UnsupportedVersionError: (ExitStatus.UNSUPPORTED, "UNSUPPORTED_VERSION"),
    library.InvalidPatternError: (ExitStatus.USAGE, "INVALID_PATTERN"),
    library.InvalidReplicationFactorError: (ExitStatus.CONFLICT, "REPLICATION_FACTOR"),
    library.NotControllerError: (ExitStatus.UNREACHABLE, "NO_CONTROLLER"),
    library.InvalidRequestError: (ExitStatus.CONFLICT, "INVALID_REQUEST"),
    library.TopicExistsError: (ExitStatus.CONFLICT, "TOPIC_EXISTS"),
    library.UnknownSchemaError: (ExitStatus.NOT_FOUND, "SCHEMA_NOT_FOUND"),
    library.InvalidSchemaError: (ExitStatus.USAGE, "INVALID_SCHEMA"),
    library.IncompatibleSchemaError: (ExitStatus.CONFLICT, "INCOMPATIBLE_SCHEMA"),
    library.SchemaMismatchError: (ExitStatus.CORRUPT, "SCHEMA_MISMATCH"),
    library.SchemasUnavailableError: (ExitStatus.UNREACHABLE, "SCHEMAS_UNAVAILABLE"),
    library.SchemaAuthorizationError: (ExitStatus.NOT_ALLOWED, "NOT_ALLOWED"),
    library.UnknownTopicError: (ExitStatus.NOT_FOUND, "TOPIC_NOT_FOUND"),
}
_HINTS = {
    "LOG_CORRUPT": "try: pylogctl log verify FILE",
    "REGISTRY_UNREACHABLE": "try: pylogctl broker start, or doctor; "
    "-b HOST:PORT needs no ZooKeeper",
    "TOPIC_NOT_FOUND": "try: pylogctl topic list",
    "GROUP_NOT_FOUND": "try: pylogctl group list",
    "BROKER_NOT_FOUND": "try: pylogctl broker list",
    "SCHEMA_NOT_FOUND": "try: pylogctl schema list",
    "SCHEMA_MISMATCH": "try: produce --schema auto, which makes such messages of JSON",
    "OFFSET_OUT_OF_RANGE": "try: -o start, or a longer retention",
    "OFFSET_NOT_AVAILABLE": "try: pylogctl topic describe TOPIC",
    "REPLICATION_FACTOR": "try: pylogctl broker list",
    "NO_CONTROLLER": "try: pylogctl broker list",
}
"""By code, where an error has no hints of its own."""

_SYSTEM: dict[int, ExitStatus] = {
    errno.ENOENT: ExitStatus.NOT_FOUND,
    errno.EEXIST: ExitStatus.CONFLICT,
    errno.EADDRINUSE: ExitStatus.CONFLICT,
    errno.ECONNREFUSED: ExitStatus.UNREACHABLE,
    errno.ETIMEDOUT: ExitStatus.TIMEOUT,
}

# Without a file name these are errors of standard output: all else is written to named files.
_OUTPUT_ERRORS = {errno.ENOSPC, errno.EBADF, errno.EIO, errno.EFBIG, errno.EDQUOT}


def failure_of(error: BaseException) -> CliError | None:
    """Return the failure for an exception that ended the command, or None if that is a bug."""
    if isinstance(error, CliError):
        return error
    if isinstance(error, library.BrokerError):
        status, code = next(_RULES[kind] for kind in type(error).__mro__ if kind in _RULES)
        hints = error.hints[:3] or ((_HINTS[code],) if code in _HINTS else ())
        details = error.details
        if isinstance(error, library.ConflictError):
            code = error.reason
        elif isinstance(error, library.InvalidMessageError) and isinstance(
            error.partition, TopicPartition
        ):
            hints = (_VERIFY_HINT,)
            details = {"topic": error.partition.topic, "partition": error.partition.name}
        return CliError(status, str(error), *hints, code=code, details=details)
    if isinstance(error, OSError):
        return _failure_of_system(error)
    return None


def _failure_of_system(error: OSError) -> CliError:
    number = error.errno or 0
    reason = (error.strerror or os.strerror(number)).lower() if number else str(error)
    code = errno.errorcode.get(number, "FAILED")
    if error.filename is None and number in _OUTPUT_ERRORS:
        return CliError(ExitStatus.FAILED, f"cannot write output: {reason}", code=code)
    status = _SYSTEM.get(number, ExitStatus.FAILED)
    where = "" if error.filename is None else f"'{os.fspath(error.filename)}': "
    return CliError(status, f"{where}{reason}", code=code)


def report(error: Exception, args: list[str]) -> int:
    """Print the exception that ended the command line `args`; return the exit status."""
    failure = failure_of(error) or _bug(error, args)
    if "--debug" in args or os.environ.get("PYLOGCTL_DEBUG") not in (None, "", "0"):
        environment.write_diagnostic(
            sys.stderr, "".join(traceback.format_exception(error)).rstrip()
        )
    as_json = _value_of(args, "--log-format", "") == "json"
    if not as_json:
        text = error.help_text if isinstance(error, MissingCommandError) else as_text(failure)
        environment.write_diagnostic(sys.stderr, text)
    if as_json or _value_of(args, "--output", "PYLOGCTL_OUTPUT") in ("json", "jsonl"):
        environment.write_diagnostic(sys.stderr, as_object(failure))
    return failure.status


def as_text(failure: CliError) -> str:
    """Return a failure as `error:` and a sentence, then its hints, indented.

    On a terminal both are folded at blanks; other lines of the message are text with positions.
    """
    first, *rest = failure.message.split("\n")
    is_tty = sys.stderr is not None and sys.stderr.isatty()
    width = environment.terminal_width(os.environ) if is_tty else sys.maxsize
    lines = environment.folded(f"error: {printable(first)}", width, indent="  ")
    lines += [printable(line, keep="\t") for line in rest]
    for hint in failure.hints[:3]:
        lines += environment.folded(printable(hint), width, first="  ", indent="    ")
    return "\n".join(lines)


def as_object(failure: CliError) -> str:
    """Return a failure as one line of JSON."""
    body = {
        "code": failure.code,
        "exit": int(failure.status),
        "message": failure.message,
        "hint": "\n".join(failure.hints[:3]),
        "details": failure.details,
    }
    return json.dumps({"error": body}, default=str)


def _value_of(args: list[str], flag: str, variable: str) -> str:
    """Return the last value of a long option, else that of an environment variable."""
    value = os.environ.get(variable, "") if variable else ""
    for position, word in enumerate(args):
        if word == "--":
            break
        if word.startswith(f"{flag}="):
            value = word.partition("=")[2]
        elif word == flag and position + 1 < len(args):
            value = args[position + 1]
    return value


def _bug(error: Exception, args: list[str]) -> CliError:
    """Write the traceback of an unexpected exception to a crash file, and return its failure."""
    text = "".join(traceback.format_exception(error))
    path = _write_crash_file(text, args, os.environ)
    what = str(error) or type(error).__name__
    where = f"the traceback is in {path}" if path else "run again with --debug for the traceback"
    message = f"unexpected failure, a bug in pylogctl: '{what}'"
    return CliError(ExitStatus.BUG, message, where)


def _write_crash_file(text: str, args: list[str], environ: Mapping[str, str]) -> Path | None:
    directory = environment.xdg_dir(environ, "XDG_STATE_HOME", ".local/state")
    path = directory / f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{[*args]}\n{text}", encoding="utf-8", errors="backslashreplace")
    except OSError:
        return None
    return path
