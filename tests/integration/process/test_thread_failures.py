"""A broker without one of its threads ends, so that its supervisor starts it again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from pylogctl.cli.environment import ExitStatus

FAILING_ACCEPTOR = """
import sys
from broker import threads
from broker.server.network.acceptor import Acceptor
from pylogctl.__main__ import main

def fail(*_):
    raise RuntimeError("planted")

threads.MAX_FAILURES = 1
Acceptor._accept_all = fail
main()
"""
HANGING = """
import threading
from pylogctl.cli import process

def fail():
    raise RuntimeError("planted")

process._LONGEST_END_S = 1
with process.graceful_stop() as stop:
    threading.Thread(target=fail).start()
    stop.wait()
    threading.Event().wait()
"""


def test_broker_when_its_acceptor_fails_for_good_then_ends_with_a_status(tmp_path: Path) -> None:
    start = ("broker", "start", "--no-zookeeper", "--port", "0", "--data", str(tmp_path / "data"))
    with subprocess.Popen(
        [sys.executable, "-c", FAILING_ACCEPTOR, *start],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOME": str(tmp_path)},
    ) as process:
        assert process.stdout is not None
        words = process.stdout.readline().decode().split()
        port = next(int(one.removeprefix("port=")) for one in words if one.startswith("port="))
        with socket.create_connection(("127.0.0.1", port)):
            _, log = process.communicate(timeout=60)
    assert process.returncode == ExitStatus.BUG
    text = log.decode()
    assert "the process ends, as thread acceptor has failed" in text
    assert "RuntimeError: planted" in text


def test_process_when_its_end_waits_for_a_failed_thread_then_ends_by_a_signal() -> None:
    done = subprocess.run([sys.executable, "-c", HANGING], capture_output=True, timeout=60)
    assert done.returncode == -signal.SIGALRM
    assert b"RuntimeError: planted" in done.stderr
