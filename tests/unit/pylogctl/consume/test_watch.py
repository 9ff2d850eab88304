"""What is shown while messages are read."""

from __future__ import annotations

import io
import tempfile
from typing import IO, Any

import pytest

from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.consume.watch import watched
from tests.doubles import FakeClock

MIB = 1 << 20
HINT = "new messages only; --from-beginning for all\n"


class Reading:
    """A source of which some bytes are left to read."""

    def __init__(self, left_bytes: int | None) -> None:
        self.left_bytes = left_bytes


def _env(
    stdout: IO[bytes], *, out_tty: bool = False, err_tty: bool = True, **settings: Any
) -> tuple[Environment, io.StringIO, FakeClock]:
    stderr, clock = io.StringIO(), FakeClock()
    streams = Streams(None, stdout, stderr, stdout_is_tty=out_tty, stderr_is_tty=err_tty)  # type: ignore[arg-type]
    return Environment(streams, {}, SharedOptions(**settings), clock), stderr, clock


def test_reading_to_an_end_into_a_file_shows_messages_bytes_part_and_rate() -> None:
    with tempfile.TemporaryFile() as file:
        env, stderr, clock = _env(file, color="never")
        source = Reading(8 * MIB)
        with watched(env, source, has_no_start=False) as watch:
            clock.advance(2)
            source.left_bytes = 6 * MIB
            watch.look(12_400)
        text = stderr.getvalue()
    assert "consume: 12.4k messages" in text
    assert "25%" in text
    assert "2.0 MiB of 8.0 MiB, 1.0 MiB/s" in text


@pytest.mark.parametrize(("out_tty", "settings"), [(True, {}), (False, {"quiet": True})])
def test_reading_shows_no_bar_where_messages_are_shown_or_nothing_is_wanted(
    out_tty: bool, settings: dict[str, Any]
) -> None:
    env, stderr, clock = _env(io.BytesIO(), out_tty=out_tty, **settings)
    with watched(env, Reading(MIB), has_no_start=False) as watch:
        clock.advance(5)
        watch.look(1)
    assert stderr.getvalue() == ""


def test_reading_in_a_pipe_with_verbose_is_a_line_with_the_time_that_is_left() -> None:
    env, stderr, clock = _env(io.BytesIO(), err_tty=False, verbosity=1)
    source = Reading(8 * MIB)
    with watched(env, source, has_no_start=False) as watch:
        clock.advance(6)
        source.left_bytes = 2 * MIB
        watch.look(1_000)
    assert stderr.getvalue() == (
        "consume: 1.0k messages, 6.0 MiB of 8.0 MiB, 1.0 MiB/s, 75 %, 2s left\n"
    )


def test_total_grows_by_partitions_that_a_group_assigns_later() -> None:
    env, stderr, clock = _env(io.BytesIO(), err_tty=False, verbosity=1)
    source = Reading(0)
    with watched(env, source, has_no_start=False) as watch:
        for left in (4, 2, 6, 5):
            clock.advance(2)
            source.left_bytes = left * MIB
            watch.look(10)
    assert "2.0 MiB of 8.0 MiB" in stderr.getvalue()


def test_silence_on_a_terminal_is_explained_once_where_no_start_is_given() -> None:
    env, stderr, clock = _env(io.BytesIO(), out_tty=True)
    with watched(env, Reading(None), has_no_start=True) as watch:
        watch.look(0)
        assert stderr.getvalue() == ""
        clock.advance(2.1)
        watch.look(0)
        watch.look(0)
    assert stderr.getvalue() == HINT


@pytest.mark.parametrize(
    ("has_no_start", "out_tty", "count"), [(False, True, 0), (True, False, 0), (True, True, 1)]
)
def test_silence_is_not_explained_where_it_is_none_or_has_another_reason(
    has_no_start: bool, out_tty: bool, count: int
) -> None:
    env, stderr, clock = _env(io.BytesIO(), out_tty=out_tty)
    with watched(env, Reading(None), has_no_start=has_no_start) as watch:
        watch.look(count)
        clock.advance(3)
        watch.look(count)
    assert stderr.getvalue() == ""
