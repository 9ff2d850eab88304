"""Rows that a measurement shows while it runs."""

from __future__ import annotations

import io
import os
import re
import signal
from collections.abc import Callable

import pytest

from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.perf.measure import Tally, show_intervals
from tests.doubles import FakeClock


@pytest.fixture
def stderr() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def make_env(stderr: io.StringIO, clock: FakeClock) -> Callable[..., Environment]:
    def make(*, is_tty: bool = False, **settings: object) -> Environment:
        streams = Streams(None, None, stderr, stderr_is_tty=is_tty)
        return Environment(streams, {}, SharedOptions(**settings), clock)  # type: ignore[arg-type]  # test settings by name

    return make


def test_rows_come_when_an_interval_is_over_and_not_before(
    make_env: Callable[..., Environment], clock: FakeClock, stderr: io.StringIO
) -> None:
    tally = Tally()
    with show_intervals(make_env(), 1.0) as shown:
        shown.tick([tally])
        tally.add(500, 1 << 20)
        clock.advance(0.9)
        shown.tick([tally])
        assert stderr.getvalue() == ""
        clock.advance(0.1)
        shown.tick([tally])
    assert stderr.getvalue() == (
        "1.000s: 500 messages, 500 msg/s, 1.0 MiB/s, p50 -, p99 -, max -\n"
    )


def test_rows_have_the_counts_since_the_last_row(
    make_env: Callable[..., Environment], clock: FakeClock, stderr: io.StringIO
) -> None:
    tally = Tally()
    with show_intervals(make_env(), 1.0) as shown:
        shown.tick([tally])
        for count, milliseconds in ((10, 5), (20, 9)):
            tally.add(count, count)
            tally.latencies.add(milliseconds / 1000)
            clock.advance(2.0)
            shown.tick([tally])
    assert re.findall(r": (\d+) messages, (\d+) msg/s, .*, p50 (\d)", stderr.getvalue()) == [
        ("10", "5", "5"),
        ("20", "10", "9"),
    ]


@pytest.mark.parametrize("settings", [{"quiet": True}, {"progress": "never"}])
def test_rows_are_not_shown_when_progress_is_off(
    make_env: Callable[..., Environment],
    clock: FakeClock,
    stderr: io.StringIO,
    settings: dict[str, object],
) -> None:
    with show_intervals(make_env(**settings), 1.0) as shown:
        shown.tick([Tally()])
        clock.advance(1.0)
        shown.tick([Tally()])
    assert stderr.getvalue() == ""


def test_rows_on_a_terminal_are_a_table_that_is_taken_away(
    make_env: Callable[..., Environment], clock: FakeClock, stderr: io.StringIO
) -> None:
    with show_intervals(make_env(is_tty=True), 1.0) as shown:
        shown.tick([Tally()])
        clock.advance(1.0)
        shown.tick([Tally()])
        assert "MSG/S" in stderr.getvalue()
    assert stderr.getvalue().rstrip().endswith("\x1b[2K")


def test_sigusr1_asks_for_the_total_so_far(
    make_env: Callable[..., Environment], clock: FakeClock, stderr: io.StringIO
) -> None:
    tally = Tally()
    with show_intervals(make_env(quiet=True), 100.0) as shown:
        shown.tick([tally])
        tally.add(30, 30)
        clock.advance(3.0)
        os.kill(os.getpid(), signal.SIGUSR1)
        shown.tick([tally])
    assert stderr.getvalue().startswith("3.000s: 30 messages, 10 msg/s")
