"""The environment of a command: standard streams, environment variables, clock, shared options.

Every command function gets an `Environment`, and writes to standard output and standard error
through it. A command that fails raises a `CliError`; `pylogctl.cli.report` maps these and the
exceptions of `broker.errors` to an exit status. Connections are made by `pylogctl.cli.connections`.
"""

from __future__ import annotations

import errno
import json
import os
import select
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from io import UnsupportedOperation
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Literal, NamedTuple, TextIO

from broker.clock import Clock, SystemClock
from pylogctl.cli.escapes import printable

OutputFormat = Literal["table", "json", "jsonl", "csv", "tsv", "plain", "markdown", "name"]
When = Literal["auto", "always", "never"]
LogFormat = Literal["text", "json"]

DEFAULT_ZOOKEEPER = "localhost:2181"
DEFAULT_BROKER = "localhost:9092"

COLORS = {"red": 31, "green": 32, "yellow": 33, "blue": 34, "magenta": 35, "cyan": 36}
"""Of the names of contexts."""
ADDRESS_PROPERTIES = frozenset(("zk.connect", "zookeeper", "broker.list"))
"""The properties of `-X` that name a cluster."""
TRACE_VERBOSITY = 2
"""The number of `-v` that reports each request."""
ASKS_FOR_PROPERTIES = frozenset({"list", "dump"})
"""Words of `-X` that ask for the properties instead of setting one."""


class ExitStatus(IntEnum):
    """The exit status of a command, with its meaning."""

    meaning: str
    OK = 0, "the request was fulfilled; a plan was shown; the result is empty"
    FAILED = 1, "failure with no better code; `doctor` found a fail"
    USAGE = 2, "bad option, value, combination or expression"
    NOT_FOUND = 3, "topic, group, broker, path, file or segment not found"
    CONFLICT = 4, "exists already, group active, changed meanwhile, id or directory in use"
    DECLINED = 5, "answered no, or a prompt was needed with --no-input or no terminal"
    PARTIAL = 6, "some targets done, some failed; the list is on stderr"
    TIMEOUT = 7, "a time limit passed before completion"
    CORRUPT = 8, "crc, framing, truncation, decoding or verification mismatch"
    CONFIG = 9, "configuration or environment wrong, optional part missing"
    UNREACHABLE = 10, "connection to broker or ZooKeeper refused or lost"
    REMOTE = 11, "broker or ZooKeeper responded with an error"
    THRESHOLD = 12, "a limit given on the command line was exceeded"
    UNSUPPORTED = 13, "not possible with this log format or this peer"
    LOGIN = 14, "a broker does not accept the user or the password"
    NOT_ALLOWED = 15, "the user may not do this with the topic, group or cluster"
    BUG = 70, "unexpected error; the traceback is in the crash file"
    SIGINT = 130, "interrupted (SIGINT)"
    SIGPIPE = 141, "the reader of the output ended (SIGPIPE)"
    SIGTERM = 143, "terminated (SIGTERM)"

    def __new__(cls, value: int, meaning: str) -> ExitStatus:
        """Make the member of a status."""
        member = int.__new__(cls, value)
        member._value_, member.meaning = value, meaning
        return member


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
        *hints: str,
        code: str = "",
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.hints = hints
        self.code = code or status.name
        self.details = dict(details or {})


class UsageError(CliError):
    """An option, value, combination or expression is invalid: exit status 2."""

    def __init__(self, message: str, *hints: str) -> None:
        super().__init__(ExitStatus.USAGE, message, *hints)


class MissingCommandError(UsageError):
    """A command group was named without a command; its help is printed instead."""

    def __init__(self, path: str, help_text: str) -> None:
        super().__init__(f"missing command after '{path}'", f"try: {path} --help")
        self.help_text = help_text


class Streams(NamedTuple):
    """The standard streams, None for a closed one, and which of them are terminals."""

    stdin: BinaryIO | None
    stdout: BinaryIO | None
    stderr: TextIO | None
    stdin_is_tty: bool = False
    stdout_is_tty: bool = False
    stderr_is_tty: bool = False
    encoding: str = "utf-8"

    @classmethod
    def of_process(cls) -> Streams:
        """Return the streams of this process."""
        stdin, stdout, stderr = sys.stdin, sys.stdout, sys.stderr
        return cls(
            stdin=None if stdin is None else stdin.buffer,
            stdout=None if stdout is None else stdout.buffer,
            stderr=stderr,
            stdin_is_tty=stdin is not None and stdin.isatty(),
            stdout_is_tty=stdout is not None and stdout.isatty(),
            stderr_is_tty=stderr is not None and stderr.isatty(),
            encoding=getattr(stdout, "encoding", None) or "utf-8",
        )


class SharedOptions(NamedTuple):
    """The shared options, parsed; a command has its own default for a `timeout_s` of None."""

    zookeeper: str | None = None
    zk_credential: str | None = None
    zk_tls_config: str | None = None
    brokers: tuple[str, ...] = ()
    properties: Mapping[str, str] = MappingProxyType({})
    output: OutputFormat | None = None
    columns: tuple[str, ...] = ()
    sort: str = ""
    no_header: bool = False
    raw_numbers: bool = False
    wide: bool = False
    help_fields: bool = False
    timeout_s: float | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    user: str | None = None
    password_file: str | None = None
    password_fd: int | None = None
    color: When = "auto"
    progress: When = "auto"
    quiet: bool = False
    verbosity: int = 0
    log_format: LogFormat = "text"
    assume_yes: bool = False
    no_input: bool = False
    dry_run: bool = False
    debug: bool = False
    no_pager: bool = False


class Context(NamedTuple):
    """A named cluster; it has `zookeeper` or `brokers`, as their options have them."""

    name: str
    file: Path
    zookeeper: str | None = None
    zk_credential: str | None = None
    zk_tls_config: str | None = None
    brokers: tuple[str, ...] = ()
    timeout: str | None = None
    tls: bool = False
    tls_ca: str | None = None
    tls_cert: str | None = None
    tls_key: str | None = None
    user: str | None = None
    password_file: str | None = None
    color: str | None = None
    protected: bool = False
    read_only: bool = False
    is_named: bool = False  # by `--context`, in this run

    def prompt(self, *, is_colored: bool) -> str:
        """Return its name as it stands before questions."""
        code = COLORS.get(self.color or "") if is_colored else None
        return f"[{self.name}] " if code is None else f"\x1b[1;{code}m[{self.name}]\x1b[0m "


@dataclass(frozen=True, eq=False)
class Environment:
    """Streams, environment variables, clock and shared options of one run of one command.

    Args:
        given: the names of shared options that the command line has.
        context: the named cluster of the run; None if it has none or options name another one.
        left_out: messages of `leave_out`.
    """

    streams: Streams
    environ: Mapping[str, str]
    settings: SharedOptions = field(default_factory=SharedOptions)
    clock: Clock = field(default_factory=SystemClock)
    given: frozenset[str] = frozenset()
    context: Context | None = None
    left_out: list[str] = field(default_factory=list)

    def changed(self, **values: Any) -> Environment:
        """Return the same environment with other values."""
        return replace(self, **values)

    @property
    def output(self) -> OutputFormat:
        """The document format: `--output`, else `table` on a terminal and `plain` elsewhere."""
        return self.settings.output or ("table" if self.streams.stdout_is_tty else "plain")

    @property
    def zookeeper(self) -> str:
        """The connect string of ZooKeeper."""
        return self.settings.zookeeper or DEFAULT_ZOOKEEPER

    def timeout_s(self, default: float) -> float:
        """Return `--timeout` in seconds, `default` if it was not given."""
        return default if self.settings.timeout_s is None else self.settings.timeout_s

    def write(self, data: bytes) -> None:
        """Write bytes to standard output; OSError if that is closed."""
        if self.streams.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.streams.stdout.write(data)

    def write_line(self, text: str) -> None:
        """Write a line to standard output; on a terminal without control characters."""
        self.write_styled(printable(text) if self.streams.stdout_is_tty else text)

    def write_styled(self, text: str) -> None:
        """Write text with our own control sequences; characters without an encoding are escaped."""
        errors = "surrogateescape" if self.unicode_output else "backslashreplace"
        self.write((text + "\n").encode(self.streams.encoding, errors))

    def flush(self) -> None:
        """Flush standard output."""
        if self.streams.stdout is not None:
            self.streams.stdout.flush()

    def check_reader(self) -> None:
        """Raise BrokenPipeError if standard output is a pipe without a reader; write nothing."""
        # A stream without new messages writes nothing, so no write would fail.
        try:
            descriptor = -1 if self.streams.stdout is None else self.streams.stdout.fileno()
        except UnsupportedOperation:
            return
        if descriptor < 0:
            return
        poll = select.poll()
        poll.register(descriptor, 0)
        if any(event & select.POLLERR for _, event in poll.poll(0)):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    @property
    def unicode_output(self) -> bool:
        """Whether standard output can encode every character."""
        return self.streams.encoding.lower().replace("-", "") in {"utf8", "utf8sig"}

    def note(self, message: str) -> None:
        """Write information about the run to standard error, unless `--quiet`."""
        if not self.settings.quiet:
            self._diagnose("note", message, prefix="")

    def warn(self, message: str) -> None:
        """Write a warning to standard error, unless `--quiet`."""
        if not self.settings.quiet:
            self._diagnose("warning", message, prefix="warning: ")

    def report(self, message: str) -> None:
        """Write information that the user asked for to standard error, even with `--quiet`."""
        self._diagnose("note", message, prefix="")

    def error(self, message: str) -> None:
        """Write an error of one of several targets to standard error, even with `--quiet`."""
        self._diagnose("error", message, prefix="error: ")

    def leave_out(self, message: str) -> None:
        """Write an error that makes the result incomplete: the command ends with PARTIAL."""
        self.left_out.append(message)
        self.error(message)

    def trace(self, level: int, message: str) -> None:
        """Write a detail to standard error if `-v` was given at least `level` times."""
        if self.settings.verbosity >= level and not self.settings.quiet:
            self._diagnose("debug" if level > 1 else "info", message, prefix="")

    def _diagnose(self, level: str, message: str, *, prefix: str) -> None:
        if self.settings.log_format == "json":
            write_diagnostic(self.streams.stderr, json.dumps({"level": level, "message": message}))
        else:
            text = prefix + printable(message)
            if self.streams.stderr_is_tty:
                text = "\n".join(folded(text, terminal_width(self.environ), indent="  "))
            write_diagnostic(self.streams.stderr, text)

    def use_color(self, *, stderr: bool = False) -> bool:
        """Whether a stream is coloured, by `--color`, else NO_COLOR, else FORCE_COLOR."""
        if self.settings.color != "auto":
            return self.settings.color == "always"
        if self.environ.get("NO_COLOR"):
            return False
        if self.environ.get("FORCE_COLOR"):
            return True
        is_tty = self.streams.stderr_is_tty if stderr else self.streams.stdout_is_tty
        return is_tty and self.environ.get("TERM") != "dumb"

    @property
    def can_ask(self) -> bool:
        """Whether a question can be asked: on terminals, without `--no-input`."""
        streams = self.streams
        return streams.stdin_is_tty and streams.stderr_is_tty and not self.settings.no_input

    @property
    def state_dir(self) -> Path:
        """The directory of crash files and pid files; it may not exist."""
        return xdg_dir(self.environ, "XDG_STATE_HOME", ".local/state")


def xdg_dir(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Return this program's directory in an XDG base directory, `fallback` below home if unset."""
    base = environ.get(variable, "")
    if not base.startswith("/"):  # XDG: a relative value is ignored
        base = str(Path(environ.get("HOME") or "/") / fallback)
    return Path(base) / "pylogctl"


def terminal_width(environ: Mapping[str, str]) -> int:
    """Return the width of the terminal in columns; COLUMNS overrides it, at least 20."""
    columns = environ.get("COLUMNS", "")
    wanted = int(columns) if columns.isdecimal() else shutil.get_terminal_size().columns
    return max(wanted, 20)


def folded(text: str, width: int, *, first: str = "", indent: str = "") -> list[str]:
    """Return the lines of text folded at blanks: words, and so options and paths, remain whole.

    `first` stands before the first line, `indent` before the others.
    """
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    ) or [first.rstrip()]


def write_diagnostic(stderr: TextIO | None, text: str) -> None:
    """Write a line to standard error; one that is closed or fails is ignored."""
    if stderr is None:
        return
    try:
        stderr.write(text + "\n")
        stderr.flush()
    except (OSError, ValueError):
        return


def parse_properties(given: list[str] | None) -> dict[str, str]:
    """Return the properties of PYLOGCTL_X and `-X`; a later one of the same name wins."""
    items = [line for line in os.environ.get("PYLOGCTL_X", "").splitlines() if line.strip()]
    properties = {}
    for item in [*items, *(given or [])]:
        key, equals, value = item.partition("=")
        # `list` and `dump` are returned as names with an empty value.
        if not equals and item not in ASKS_FOR_PROPERTIES:
            raise UsageError(f"not a property: '{item}'", "valid: -X KEY=VALUE, -X list, -X dump")
        if key.strip() == "sasl.password" and item in (given or ()):
            raise UsageError(
                "a password on the command line can be read by all users of the machine",
                "give --password-file FILE, --password-fd N or PYLOGCTL_PASSWORD",
            )
        properties[key.strip()] = value
    return properties
