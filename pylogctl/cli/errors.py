"""Exceptions of the command line, and the exit statuses.

`pylogctl.cli.report` maps these exceptions and those of `broker.errors` to an exit status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum


class ExitStatus(IntEnum):
    """The exit status of a command; `MEANINGS` documents each."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    CONFLICT = 4
    DECLINED = 5
    PARTIAL = 6
    TIMEOUT = 7
    CORRUPT = 8
    CONFIG = 9
    UNREACHABLE = 10
    REMOTE = 11
    THRESHOLD = 12
    UNSUPPORTED = 13
    LOGIN = 14
    NOT_ALLOWED = 15
    BUG = 70
    SIGINT = 130
    SIGPIPE = 141
    SIGTERM = 143


MEANINGS: dict[ExitStatus, str] = {
    ExitStatus.OK: "the request was fulfilled; a plan was shown; the result is empty",
    ExitStatus.FAILED: "failure with no better code; `doctor` found a fail",
    ExitStatus.USAGE: "bad option, value, combination or expression",
    ExitStatus.NOT_FOUND: "topic, group, broker, path, file or segment not found",
    ExitStatus.CONFLICT: "exists already, group active, changed meanwhile, id or directory in use",
    ExitStatus.DECLINED: "answered no, or a prompt was needed with --no-input or no terminal",
    ExitStatus.PARTIAL: "some targets done, some failed; the list is on stderr",
    ExitStatus.TIMEOUT: "a time limit passed before completion",
    ExitStatus.CORRUPT: "crc, framing, truncation, decoding or verification mismatch",
    ExitStatus.CONFIG: "configuration or environment wrong, optional part missing",
    ExitStatus.UNREACHABLE: "connection to broker or ZooKeeper refused or lost",
    ExitStatus.REMOTE: "broker or ZooKeeper responded with an error",
    ExitStatus.THRESHOLD: "a limit given on the command line was exceeded",
    ExitStatus.UNSUPPORTED: "not possible with this log format or this peer",
    ExitStatus.LOGIN: "a broker does not accept the user or the password",
    ExitStatus.NOT_ALLOWED: "the user may not do this with the topic, group or cluster",
    ExitStatus.BUG: "unexpected error; the traceback is in the crash file",
    ExitStatus.SIGINT: "interrupted (SIGINT)",
    ExitStatus.SIGPIPE: "the reader of the output ended (SIGPIPE)",
    ExitStatus.SIGTERM: "terminated (SIGTERM)",
}


class CliError(Exception):
    """A failure that ends the command; printed as one sentence and at most three hints.

    `message` has the offending value in quotes and no full stop. `hints` are the expected form, the
    likely cause, the next command, a line each. `code` (a word such as `TOPIC_NOT_FOUND`; the
    status's name if empty) and `details` are for programs.
    """

    def __init__(
        self,
        status: ExitStatus,
        message: str,
        *,
        hints: Iterable[str] = (),
        code: str = "",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hints = tuple(hints)
        self.code = code or status.name
        self.details = dict(details or {})


class UsageError(CliError):
    """An option, value, combination or expression is invalid: exit status 2."""

    def __init__(self, message: str, *, hints: Iterable[str] = ()) -> None:
        super().__init__(ExitStatus.USAGE, message, hints=hints)


class MissingCommandError(UsageError):
    """A command group was named without a command; its help is printed instead."""

    def __init__(self, path: str, help_text: str) -> None:
        super().__init__(f"missing command after '{path}'", hints=[f"try: {path} --help"])
        self.help_text = help_text
