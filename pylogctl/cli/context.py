"""What a command runs in: streams, environment variables, clock and the options all commands share.

`Environment` is the one argument every command gets. It owns the way to the outside (bytes to
standard output, diagnostics to standard error, paths of state and cache) and knows neither Typer
nor any command. Connections are made by `pylogctl.cli.connections`.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import UnsupportedOperation
from pathlib import Path
from typing import BinaryIO, Literal, TextIO

from broker.clock import Clock, SystemClock
from pylogctl.cli.errors import UsageError

OutputFormat = Literal["table", "json", "jsonl", "csv", "tsv", "plain", "markdown", "name"]
When = Literal["auto", "always", "never"]
LogFormat = Literal["text", "json"]

DEFAULT_ZOOKEEPER = "localhost:2181"
_LINE_ENDS = str.maketrans({"\n": "\\n", "\r": "\\r"})

TRACE_VERBOSITY = 2
"""How many `-v` ask for a line for each request."""
ASKS_FOR_PROPERTIES = frozenset({"list", "dump"})
"""Words of `-X` that ask for the properties instead of setting one."""


@dataclass(frozen=True, slots=True)
class Streams:
    """The three standard streams, and which of them are terminals; None for a closed one."""

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


@dataclass(frozen=True, slots=True)
class Settings:
    """The options shared by many commands, after parsing.

    `timeout_s` is None when the user gave none: each command has its own default.
    """

    zookeeper: str | None = None
    brokers: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)
    output: OutputFormat | None = None
    columns: tuple[str, ...] = ()
    sort: str = ""
    header: bool = True
    raw_numbers: bool = False
    timeout_s: float | None = None
    color: When = "auto"
    progress: When = "auto"
    quiet: bool = False
    verbosity: int = 0
    log_format: LogFormat = "text"
    assume_yes: bool = False
    no_input: bool = False
    dry_run: bool = False
    debug: bool = False
    pager: bool = True


@dataclass(frozen=True, slots=True)
class Environment:
    """Streams, environment variables, clock and shared options of one run of one command."""

    streams: Streams
    environ: Mapping[str, str]
    settings: Settings = field(default_factory=Settings)
    clock: Clock = field(default_factory=SystemClock)
    left_out: list[str] = field(default_factory=list)
    """What the result lacks; see `leave_out`."""

    @property
    def output(self) -> OutputFormat:
        """Return the document format: as asked, else `table` on a terminal or `plain`."""
        return self.settings.output or ("table" if self.streams.stdout_is_tty else "plain")

    @property
    def zookeeper(self) -> str:
        """Return the registry's connect string."""
        return self.settings.zookeeper or DEFAULT_ZOOKEEPER

    def timeout_s(self, default: float) -> float:
        """Return the limit of the whole request in seconds, `default` if the user gave none."""
        return default if self.settings.timeout_s is None else self.settings.timeout_s

    def write(self, data: bytes) -> None:
        """Write bytes to standard output, as they are.

        Raises:
            OSError: standard output is closed, or the write failed.
        """
        if self.streams.stdout is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.streams.stdout.write(data)

    def write_line(self, text: str) -> None:
        """Write a line of text to standard output; what its encoding lacks is escaped."""
        errors = "surrogateescape" if self.unicode_output else "backslashreplace"
        self.write((text + "\n").encode(self.streams.encoding, errors))

    def flush(self) -> None:
        """Flush standard output."""
        if self.streams.stdout is not None:
            self.streams.stdout.flush()

    def check_reader(self) -> None:
        """Find out whether standard output still has a reader, where nothing is to be written.

        A write would tell; a stream that waits for its next message would wait on for nobody.

        Raises:
            BrokenPipeError: it is a pipe whose other end is closed.
        """
        try:
            descriptor = -1 if self.streams.stdout is None else self.streams.stdout.fileno()
        except UnsupportedOperation:
            return
        if descriptor >= 0 and _is_abandoned_pipe(descriptor):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    @property
    def unicode_output(self) -> bool:
        """Say whether standard output takes any character."""
        return self.streams.encoding.lower().replace("-", "") in {"utf8", "utf8sig"}

    def note(self, message: str) -> None:
        """Tell something about the run on standard error, unless `--quiet`."""
        if not self.settings.quiet:
            self._diagnose("note", message, prefix="")

    def warn(self, message: str) -> None:
        """Tell a warning on standard error, unless `--quiet`."""
        if not self.settings.quiet:
            self._diagnose("warning", message, prefix="warning: ")

    def report(self, message: str) -> None:
        """Tell what was asked for, on standard error, even with `--quiet`."""
        self._diagnose("note", message, prefix="")

    def error(self, message: str) -> None:
        """Tell an error of one of several targets on standard error, always."""
        self._diagnose("error", message, prefix="error: ")

    def leave_out(self, message: str) -> None:
        """Tell an error that leaves something out of the result: the command ends with 6, not 0."""
        self.left_out.append(message)
        self.error(message)

    def trace(self, level: int, message: str) -> None:
        """Tell a detail on standard error if `-v` was given at least `level` times."""
        if self.settings.verbosity >= level and not self.settings.quiet:
            self._diagnose("debug" if level > 1 else "info", message, prefix="")

    def _diagnose(self, level: str, message: str, *, prefix: str) -> None:
        if self.settings.log_format == "json":
            import json

            write_diagnostic(self.streams.stderr, json.dumps({"level": level, "message": message}))
        else:
            write_diagnostic(self.streams.stderr, prefix + message.translate(_LINE_ENDS))

    def use_color(self, *, stderr: bool = False) -> bool:
        """Say whether a stream gets colour: the option first, then NO_COLOR, then FORCE_COLOR."""
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
        """Say whether a question may be asked: a terminal on both sides, and no `--no-input`."""
        streams = self.streams
        return streams.stdin_is_tty and streams.stderr_is_tty and not self.settings.no_input

    @property
    def state_dir(self) -> Path:
        """Return the directory for crash files and pid files; it need not exist."""
        return xdg_dir(self.environ, "XDG_STATE_HOME", ".local/state")

    @property
    def cache_dir(self) -> Path:
        """Return the directory for completion caches; it need not exist."""
        return xdg_dir(self.environ, "XDG_CACHE_HOME", ".cache")


def xdg_dir(environ: Mapping[str, str], variable: str, fallback: str) -> Path:
    """Return this program's directory under an XDG base directory.

    Args:
        environ: environment variables.
        variable: for example `XDG_STATE_HOME`; relative values are ignored as its rules demand.
        fallback: path under the home directory when the variable is not set.
    """
    base = environ.get(variable, "")
    if not base.startswith("/"):
        base = str(Path(environ.get("HOME") or "/") / fallback)
    return Path(base) / "pylogctl"


def _is_abandoned_pipe(descriptor: int) -> bool:
    """Say whether a descriptor is the end to write to of a pipe whose other end is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poll.poll(0))


def write_diagnostic(stderr: TextIO | None, text: str) -> None:
    """Write a line to standard error; a closed or broken standard error is not an error."""
    if stderr is None:
        return
    try:
        stderr.write(text + "\n")
        stderr.flush()
    except (OSError, ValueError):
        return


def parse_properties(given: list[str] | None) -> dict[str, str]:
    """Return `-X` properties by name: the environment's first, then the options in order.

    The words `list` and `dump` are kept under their own name with an empty value.

    Raises:
        UsageError: an item has no `=`.
    """
    items = [line for line in os.environ.get("PYLOGCTL_X", "").splitlines() if line.strip()]
    properties = {}
    for item in [*items, *(given or [])]:
        key, equals, value = item.partition("=")
        if not equals and item not in ASKS_FOR_PROPERTIES:
            raise UsageError(
                f"not a property: '{item}'", hints=["valid: -X KEY=VALUE, -X list, -X dump"]
            )
        properties[key.strip()] = value
    return properties
