"""Signals in streams and services."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pylogctl.cli.errors import ExitStatus
from pylogctl.cli.process import graceful_stop
from tests.support.command_line import REPOSITORY, Process, process_environment


@pytest.mark.parametrize(
    ("signum", "status"),
    [
        (signal.SIGINT, ExitStatus.SIGINT),
        (signal.SIGTERM, ExitStatus.SIGTERM),
        (signal.SIGHUP, ExitStatus.SIGTERM),
    ],
)
def test_first_signal_is_noted_and_not_raised(signum: signal.Signals, status: ExitStatus) -> None:
    with graceful_stop() as stop:
        assert stop.status is ExitStatus.OK
        os.kill(os.getpid(), signum)
        assert stop.wait(60)
        assert stop.is_set
        assert stop.status is status


def test_handlers_are_put_back_afterwards() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with graceful_stop():
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


_STUBBORN = """
import time
from pylogctl.cli.process import graceful_stop
with graceful_stop() as stop:
    print("ready", flush=True)
    stop.wait()
    print("noted", flush=True)
    while True:
        time.sleep(1)
"""


def test_second_interrupt_ends_at_once(tmp_path: Path) -> None:
    with Process(
        [sys.executable, "-c", _STUBBORN],
        cwd=REPOSITORY,
        env=process_environment(tmp_path, {}),
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        for word in (b"ready\n", b"noted\n"):
            assert process.stdout.readline() == word
            process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
