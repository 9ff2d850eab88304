"""Logs: lines for people or JSON with fields, and the library's warnings as those of a command.

Services log the library's records; other commands print its warnings as their own.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from broker.errors import BrokerError
from broker.state_changes import LoggedChange
from broker.topic import TopicPartition
from broker.units import format_time
from pylogctl.cli.environment import Environment
from pylogctl.cli.escapes import printable

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def set_up_logging(env: Environment, log_file: Path | None, **fields: object) -> None:
    """Log to a file (INFO even without `-v`) or to standard error, as `-v` and `--quiet` say.

    Each line of JSON has `fields`.
    """
    handler: logging.Handler
    if log_file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.FileHandler(log_file, encoding="utf-8")
    is_json = env.settings.log_format == "json"
    handler.setFormatter(JsonFormatter(fields) if is_json else TextFormatter())
    handler.addFilter(OncePerSecond())
    root = logging.getLogger()
    root.addHandler(handler)
    verbosity = env.settings.verbosity + (log_file is not None)
    level = _LEVELS[min(verbosity, len(_LEVELS) - 1)]
    root.setLevel(logging.ERROR if env.settings.quiet else level)


class OncePerSecond(logging.Filter):
    """Drops a line that was logged within the last second; the next one says how many times."""

    MAX_LINES = 1000  # that are remembered

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[tuple[str, str], tuple[float, int]] = {}  # when, and how many since

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is to be logged."""
        line = (record.name, record.getMessage())
        now_s = self._clock()
        with self._lock:
            logged_s, count = self._seen.get(line, (now_s - 1, 0))
            if now_s - logged_s < 1:
                self._seen[line] = (logged_s, count + 1)
                return False
            self._seen.pop(line, None)  # to the end: the oldest one is the first
            if len(self._seen) == self.MAX_LINES:
                del self._seen[next(iter(self._seen))]
            self._seen[line] = (now_s, 0)
        if count:
            record.repeats = count
        return True


class TextFormatter(logging.Formatter):
    """`2026-11-20T08:00:00.250Z WARNING broker.log.recovery: ...`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - as below
        """Return the line without a traceback."""
        # Names from clients may have control characters.
        repeats = getattr(record, "repeats", 0)
        more = f" (left out before: {repeats})" if repeats else ""
        return printable(super().formatMessage(record)) + more

    def formatTime(  # noqa: N802 - the name is logging's
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """Return when it was logged, UTC."""
        return format_time(int(record.created * 1000))


class JsonFormatter(logging.Formatter):
    """One object for each line: time, level, logger, message, and what the message is about.

    The latter are the record's arguments: those that it names (`%(topic)s`), and the fields of
    partitions, changes and errors.
    """

    def __init__(self, fields: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self._fields = dict(fields or {})

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, object] = {
            "time": format_time(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            **self._fields,
            **_fields_of(record.args),
            "message": record.getMessage(),
        }
        if repeats := getattr(record, "repeats", 0):
            line["repeats"] = repeats
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def _fields_of(arguments: Any) -> dict[str, object]:
    fields: dict[str, object] = {}
    named = arguments if isinstance(arguments, Mapping) else {}
    for one in named.values() if named else arguments or ():
        if isinstance(one, TopicPartition):
            fields |= {"topic": one.topic, "partition": one.name}
        elif isinstance(one, LoggedChange):
            fields |= one.fields()
        elif isinstance(one, BrokerError):
            fields |= {"error": type(one).__name__, **one.details}
    plain = (str, int, float, bool, Path)
    return fields | {name: one for name, one in named.items() if isinstance(one, plain)}


@contextmanager
def library_warnings(env: Environment) -> Iterator[None]:
    """Print the library's warnings as those of the command; with `-v` its INFO records too."""
    handler = _EnvironmentHandler(env)
    library = logging.getLogger("broker")
    former_level = library.level
    library.addHandler(handler)
    library.setLevel(logging.INFO if env.settings.verbosity else logging.WARNING)
    try:
        yield
    finally:
        library.setLevel(former_level)
        library.removeHandler(handler)


class _EnvironmentHandler(logging.Handler):
    def __init__(self, env: Environment) -> None:
        super().__init__()
        self._env = env

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.WARNING:
            self._env.warn(record.getMessage())
        else:
            self._env.trace(1, record.getMessage())
