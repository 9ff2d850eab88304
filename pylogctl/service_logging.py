"""The log of a long-running command: the library's log records as lines on standard error.

Only services set this up; for other commands the library's records would be noise.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from pathlib import Path

from pylogctl.context import Environment
from pylogctl.units import format_time

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


def set_up_logging(env: Environment, log_file: Path | None) -> None:
    """Send log records to a file, or to standard error.

    Args:
        env: `-v` and `--quiet` choose the level, `--log-format` the form.
        log_file: appended to; a file gets INFO too without `-v`.

    Raises:
        OSError: the file cannot be opened.
    """
    handler: logging.Handler
    if log_file is None:
        handler = logging.StreamHandler(sys.stderr)
    else:
        handler = logging.FileHandler(log_file, encoding="utf-8")
    is_json = env.settings.log_format == "json"
    handler.setFormatter(_JsonFormatter() if is_json else _TextFormatter())
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(_level(env, has_file=log_file is not None))


def _level(env: Environment, *, has_file: bool) -> int:
    if env.settings.quiet:
        return logging.ERROR
    return _LEVELS[min(env.settings.verbosity + has_file, len(_LEVELS) - 1)]


class _TextFormatter(logging.Formatter):
    """`2026-11-20T08:00:00.250Z WARNING broker.log.recovery: ...`."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(  # noqa: N802 - the name is logging's
        self, record: logging.LogRecord, datefmt: str | None = None
    ) -> str:
        """Return the record's time in UTC."""
        return format_time(int(record.created * 1000))


class _JsonFormatter(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as JSON."""
        fields = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)
