"""How an error reaches the user: one shape as text, one object for programs, a crash file for bugs.

Loaded only when something failed. Works on the words of the command line, as the error may be that
they do not parse.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path

from pylogctl.context import write_diagnostic, xdg_dir
from pylogctl.errors import MissingCommandError
from pylogctl.exit_status import ExitStatus
from pylogctl.failure import Failure, failure_of


def report(error: Exception, args: list[str]) -> int:
    """Tell an error on standard error.

    Args:
        error: what ended the command.
        args: the words after the program's name.

    Returns:
        The exit status.
    """
    failure = failure_of(error) or _bug(error, args)
    if "--debug" in args or os.environ.get("PYLOGCTL_DEBUG") not in (None, "", "0"):
        write_diagnostic(sys.stderr, "".join(traceback.format_exception(error)).rstrip())
    as_json = _value_of(args, "--log-format", "") == "json"
    if not as_json:
        text = error.help_text if isinstance(error, MissingCommandError) else as_text(failure)
        write_diagnostic(sys.stderr, text)
    if as_json or _value_of(args, "--output", "PYLOGCTL_OUTPUT") in ("json", "jsonl"):
        write_diagnostic(sys.stderr, as_object(failure))
    return failure.status


def as_text(failure: Failure) -> str:
    """Return a failure for people: `error:` and a sentence, then at most three indented lines."""
    first, *rest = failure.message.split("\n")
    lines = [f"error: {_printable(first)}", *rest]
    return "\n".join([*lines, *(f"  {_printable(hint)}" for hint in failure.hints)])


def as_object(failure: Failure) -> str:
    """Return a failure for programs: one JSON object on one line."""
    body = {
        "code": failure.code,
        "exit": int(failure.status),
        "message": failure.message,
        "hint": "\n".join(failure.hints),
        "details": dict(failure.details),
    }
    return json.dumps({"error": body}, default=str)


def _printable(text: str) -> str:
    """Escape control characters, which a name from outside may hold."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def _value_of(args: list[str], flag: str, variable: str) -> str:
    """Return the last value of a long option without parsing, as parsing may be what failed."""
    value = os.environ.get(variable, "") if variable else ""
    for position, word in enumerate(args):
        if word == "--":
            break
        if word.startswith(f"{flag}="):
            value = word.partition("=")[2]
        elif word == flag and position + 1 < len(args):
            value = args[position + 1]
    return value


def _bug(error: Exception, args: list[str]) -> Failure:
    """Return the failure of an unexpected exception, its traceback saved in the crash file."""
    text = "".join(traceback.format_exception(error))
    path = _write_crash_file(text, args, os.environ)
    what = str(error) or type(error).__name__
    where = f"the traceback is in {path}" if path else "run again with --debug for the traceback"
    return Failure(
        ExitStatus.BUG, "BUG", f"unexpected failure, a bug in pylogctl: '{what}'", (where,)
    )


def _write_crash_file(text: str, args: list[str], environ: Mapping[str, str]) -> Path | None:
    directory = xdg_dir(environ, "XDG_STATE_HOME", ".local/state")
    path = directory / f"crash-{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{[*args]}\n{text}", encoding="utf-8", errors="backslashreplace")
    except OSError:
        return None
    return path
