"""Environment: streams, colour, diagnostics."""

from __future__ import annotations

import errno
import io
import json
from pathlib import Path

import pytest

from pylogctl.cli.environment import Environment, SharedOptions, Streams, When, xdg_dir


def _env(
    settings: SharedOptions | None = None,
    environ: dict[str, str] | None = None,
    *,
    tty: bool = False,
) -> tuple[Environment, io.StringIO]:
    stderr = io.StringIO()
    streams = Streams(None, io.BytesIO(), stderr, stdout_is_tty=tty, stderr_is_tty=tty)
    return Environment(streams, environ or {}, settings or SharedOptions()), stderr


@pytest.mark.parametrize(
    ("color", "environ", "tty", "expected"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
        ("always", {"NO_COLOR": "1"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_color_follows_option_then_no_color_then_force_color(
    color: When, environ: dict[str, str], tty: bool, expected: bool
) -> None:
    env, _ = _env(SharedOptions(color=color), environ, tty=tty)
    assert env.use_color() is expected
    assert env.use_color(stderr=True) is expected


def test_output_is_a_table_on_a_terminal_and_plain_in_a_pipe() -> None:
    assert _env(tty=True)[0].output == "table"
    assert _env(tty=False)[0].output == "plain"
    assert _env(SharedOptions(output="csv"), tty=True)[0].output == "csv"


def test_quiet_hides_notes_but_not_complaints() -> None:
    env, stderr = _env(SharedOptions(quiet=True, verbosity=3))
    env.note("note")
    env.warn("warning")
    env.trace(1, "trace")
    env.error("complaint")
    assert stderr.getvalue() == "error: complaint\n"


def test_trace_is_told_from_its_level_on() -> None:
    env, stderr = _env(SharedOptions(verbosity=1))
    env.trace(1, "one")
    env.trace(2, "two")
    assert stderr.getvalue() == "one\n"


def test_json_diagnostics_are_one_object_a_line() -> None:
    env, stderr = _env(SharedOptions(log_format="json"))
    env.warn("a\nb")
    assert json.loads(stderr.getvalue()) == {"level": "warning", "message": "a\nb"}


def test_diagnostics_are_one_line_each() -> None:
    env, stderr = _env()
    env.note("a\nb")
    assert stderr.getvalue() == "a\\nb\n"


class _FullDisk(io.StringIO):
    """A standard error whose every write fails."""

    def __init__(self) -> None:
        super().__init__()
        self.attempts: list[str] = []

    def write(self, text: str) -> int:
        self.attempts.append(text)
        raise OSError(errno.ENOSPC, "no space left on device")


def test_warn_when_standard_error_cannot_be_written_then_continues() -> None:
    stderr = _FullDisk()
    Environment(Streams(None, None, stderr), {}).warn("lost")
    assert stderr.attempts == ["warning: lost\n"]


def test_warn_when_standard_error_is_closed_then_continues_and_leaves_stdout_alone() -> None:
    stdout = io.BytesIO()
    env = Environment(Streams(None, stdout, None), {})
    env.warn("lost")
    env.leave_out("also lost")
    assert env.left_out == ["also lost"]
    assert stdout.getvalue() == b""


def test_closed_standard_output_is_an_error() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        Environment(Streams(None, None, None), {}).write(b"x")


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_STATE_HOME": "/s", "HOME": "/h"}, "/s/pylogctl"),
        ({"XDG_STATE_HOME": "relative", "HOME": "/h"}, "/h/.local/state/pylogctl"),
        ({"HOME": "/h"}, "/h/.local/state/pylogctl"),
    ],
)
def test_xdg_dir_follows_its_variable_if_absolute(environ: dict[str, str], expected: str) -> None:
    assert xdg_dir(environ, "XDG_STATE_HOME", ".local/state") == Path(expected)
