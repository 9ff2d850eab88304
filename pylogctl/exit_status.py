"""Every exit status and what it means.

`pylogctl.failure` says which exception ends in which of them.
"""

from __future__ import annotations

from enum import IntEnum


class ExitStatus(IntEnum):
    """How a command ends."""

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
    ExitStatus.UNREACHABLE: "connection to broker or registry refused or lost",
    ExitStatus.REMOTE: "broker or registry answered with an error",
    ExitStatus.THRESHOLD: "a limit given on the command line was exceeded",
    ExitStatus.UNSUPPORTED: "not possible with this log format or this peer",
    ExitStatus.BUG: "unexpected error; the traceback is in the crash file",
    ExitStatus.SIGINT: "interrupted (SIGINT)",
    ExitStatus.SIGPIPE: "the reader of the output went away (SIGPIPE)",
    ExitStatus.SIGTERM: "terminated (SIGTERM)",
}
