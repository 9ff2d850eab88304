"""The example of a producer does what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from broker import Broker, SimpleConsumer

REPOSITORY = Path(__file__).parents[3]


def run(*arguments: str, lines: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-W", "error", REPOSITORY / "examples" / "produce.py", *arguments],
        input=lines,
        capture_output=True,
        timeout=60,
        check=False,
    )


def test_example_when_given_lines_then_all_are_in_the_topic(running_broker: Broker) -> None:
    done = run("events", f"127.0.0.1:{running_broker.port}", lines=b"a one\nb two\na three\n")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"events[0-0]: 3 messages\n"
    with SimpleConsumer("127.0.0.1", running_broker.port) as consumer:
        found = [payload for _, _, payload in consumer.fetch("events", 0, 0, 1000)]
    assert found == [b"a one", b"b two", b"a three"]


@pytest.mark.parametrize("name", ["mirror.py", "audit.py", "produce.py"])
def test_example_when_started_without_arguments_then_shows_one_line_of_usage(name: str) -> None:
    done = subprocess.run(
        [sys.executable, REPOSITORY / "examples" / name],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"usage: %s " % name.encode())
    assert done.stderr.count(b"\n") == 1
