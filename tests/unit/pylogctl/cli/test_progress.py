"""Progress on standard error."""

from __future__ import annotations

import io
import os
import re
import signal
from typing import Any

import pytest

from pylogctl.cli.environment import Environment, SharedOptions, Streams
from pylogctl.cli.progress import Progress, Silence, announced_wait, progress
from tests.doubles import FakeClock
from tests.support.waiting import wait_until


def _env(*, tty: bool, **settings: Any) -> tuple[Environment, io.StringIO, FakeClock]:
    stderr, clock = io.StringIO(), FakeClock()
    streams = Streams(None, io.BytesIO(), stderr, stderr_is_tty=tty)
    return Environment(streams, {}, SharedOptions(**settings), clock), stderr, clock


def test_progress_on_a_terminal_shows_only_after_half_a_second() -> None:
    env, stderr, clock = _env(tty=True)
    with progress(env, "verify", 100) as meter:
        meter.advance(10)
        assert stderr.getvalue() == ""
        clock.advance(0.6)
        meter.advance(10)
        assert "verify" in stderr.getvalue()


@pytest.mark.parametrize(
    ("tty", "settings"),
    [(False, {}), (True, {"quiet": True}), (True, {"progress": "never"}), (False, {"quiet": True})],
)
def test_progress_elsewhere_shows_nothing(tty: bool, settings: dict[str, Any]) -> None:
    env, stderr, clock = _env(tty=tty, **settings)
    with progress(env, "verify", 100) as meter:
        clock.advance(60)
        meter.advance(50)
    assert stderr.getvalue() == ""


def test_progress_in_a_pipe_with_verbose_is_a_line_every_five_seconds() -> None:
    env, stderr, clock = _env(tty=False, verbosity=1)
    with progress(env, "verify", 4096) as meter:
        for _ in range(11):
            clock.advance(1)
            meter.advance(1024)
    lines = stderr.getvalue().splitlines()
    assert len(lines) == 2
    assert lines[0] == "verify: 5.0 KiB of 4.0 KiB, 1.0 KiB/s"


def test_signal_asks_for_a_line_at_once() -> None:
    env, stderr, clock = _env(tty=False)
    with progress(env, "produce", None, unit="messages") as meter:
        clock.advance(1)
        meter.advance(5)
        os.kill(os.getpid(), signal.SIGUSR1)
        meter.advance(5)
    assert stderr.getvalue() == "produce: 10 messages, 10/s\n"


def test_meter_without_a_total_counts_only() -> None:
    env, _, clock = _env(tty=False)
    meter = Progress(env, "read", None)
    clock.advance(2)
    meter.advance(2048)
    assert meter.line() == "read: 2.0 KiB, 1.0 KiB/s"


def test_line_of_a_known_total_has_part_and_time_left() -> None:
    env, _, clock = _env(tty=False)
    meter = Progress(env, "read", 8192)
    clock.advance(2)
    meter.advance(2048, message_count=1_200)
    expected = "read: 1.2k messages, 2.0 KiB of 8.0 KiB, 1.0 KiB/s, 25 %, 6s left"
    assert meter.line() == expected


def test_wait_that_lasts_is_announced() -> None:
    env, stderr, _ = _env(tty=False)
    with announced_wait(env, "ZooKeeper at h:1", after_s=0.01):
        wait_until(stderr.getvalue, "the announcement")
    assert stderr.getvalue() == "waiting for ZooKeeper at h:1\n"


def test_wait_that_lasts_is_announced_again_and_again() -> None:
    env, stderr, _ = _env(tty=False)
    with announced_wait(env, "Spark to start", after_s=0.01, every_s=0.01):
        wait_until(lambda: stderr.getvalue().count("\n") > 2, "three lines")
    line = r"waiting for Spark to start, \d+ s so far"
    assert all(re.fullmatch(line, one) for one in stderr.getvalue().splitlines())


def test_wait_that_is_over_at_once_is_not_announced() -> None:
    env, stderr, _ = _env(tty=False)
    with announced_wait(env, "ZooKeeper at h:1"):
        pass
    assert stderr.getvalue() == ""


def test_silence_when_none_was_silent_for_a_minute_then_brokers_may_be_so_as_at_first() -> None:
    clock = FakeClock()
    silence = Silence(10.0, clock)
    silence.note(10.0)
    clock.advance(59)
    assert silence.left_s == 0.0
    clock.advance(2)
    assert silence.left_s == 10.0
