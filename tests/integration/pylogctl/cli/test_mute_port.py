"""Commands at a port that accepts connections and says nothing: a broker that hangs, or none."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.protocol.codec import encode
from broker.zk import paths
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import REPOSITORY, Process, process_environment

LIMIT_S = 10.0
GRACE_S = 12.0  # for a machine that does other things; a second attempt would take as long again
AT_BROKER = ("-b", "{mute}")
AT_ZOOKEEPER = ("-Z", "{mute}")
COMMANDS = [
    ("produce", "t", *AT_BROKER),
    ("produce", "t", *AT_ZOOKEEPER),
    ("produce", "t", "--audit", "audit", "--time-field", ".ts", *AT_BROKER),
    ("consume", "t", "--from-beginning", "--exit-at-end", *AT_BROKER),
    ("consume", "t", "-o", "@-10m:", "-e", "--grep", "x", *AT_BROKER),
    ("consume", "t", "--from-beginning", "-b", "{mute},{mute2}"),
    ("consume", "--group", "billing", "orders", *AT_ZOOKEEPER),
    ("tail", "t", *AT_BROKER),
    ("copy", "t", "u", "--verify", *AT_BROKER),
    ("log", "replay", "{segment}", "-t", "t", *AT_BROKER),
    ("topic", "list", *AT_BROKER),
    ("topic", "list", "-b", "{mute},{mute2}"),
    ("topic", "describe", "t", *AT_BROKER),
    ("topic", "create", "orders", "--partitions", "6", *AT_BROKER),
    ("broker", "stop", "0", "--yes", *AT_BROKER),
    ("broker", "status", *AT_BROKER),
    ("cluster", "health", *AT_BROKER),
    ("cluster", "changes", "--follow", *AT_BROKER),
    ("group", "describe", "billing", *AT_ZOOKEEPER),
    ("group", "reset", "billing", "--topic", "t", "--to", "@-2h", *AT_ZOOKEEPER),
    ("mirror", "run", "--from", "{mute}", "--to", "{mute2}", "--yes"),
    ("mirror", "status", "--from", "{mute}"),
    ("audit", "check", "audit", "--count", "--time-field", ".ts", *AT_BROKER),
    ("config", "set", "--topic", "t", "retention.ms=1000", *AT_ZOOKEEPER),
    ("top", "--output", "jsonl", *AT_BROKER),
    ("perf", "produce", "t", "--messages", "1", *AT_BROKER),
    ("web", "--listen", "127.0.0.1:0", *AT_BROKER),
]


class Ended(NamedTuple):
    """How a command ended: seconds from the note that it waits, status, the rest of stderr."""

    after_s: float
    status: int
    stderr: str


Outcomes = dict[tuple[str, ...], Ended]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Two ports that accept and say nothing, and a segment file."""
    segment = tmp_path_factory.mktemp("segment") / "00000000000000000000.pylog"
    segment.write_bytes(encode([b"x"]))
    with (
        socket.create_server(("127.0.0.1", 0), backlog=512) as one,
        socket.create_server(("127.0.0.1", 0), backlog=512) as other,
    ):
        mute, mute2 = (f"127.0.0.1:{listener.getsockname()[1]}" for listener in (one, other))
        yield {"mute": mute, "mute2": mute2, "segment": str(segment)}


def run(command: Sequence[str], home: Path, signum: signal.Signals | None) -> Ended:
    """Run a command to its end; send it a signal once it says that it waits."""
    with Process(
        [sys.executable, "-m", "pylogctl", *command],
        cwd=REPOSITORY,
        env=process_environment(home, {}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None and process.stderr is not None
        note = process.stderr.readline().decode()
        began_s = time.monotonic()
        if signum is not None and note.startswith("waiting for "):
            process.send_signal(signum)
        _, stderr = process.communicate(timeout=240)
        return Ended(time.monotonic() - began_s, process.returncode, note + stderr.decode())


def run_all(places: dict[str, str], home: Path, signum: signal.Signals | None) -> Outcomes:
    """Run all commands at once."""
    given = [[one.format(**places) for one in command] for command in COMMANDS]
    with ThreadPoolExecutor(len(given)) as pool:
        return dict(zip(COMMANDS, pool.map(lambda one: run(one, home, signum), given), strict=True))


@pytest.fixture(scope="module")
def ended(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """How each command ends by itself."""
    return run_all(places, tmp_path_factory.mktemp("home"), None)


@pytest.fixture(scope="module")
def interrupted(places: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Outcomes:
    """How each command ends by Ctrl-C."""
    return run_all(places, tmp_path_factory.mktemp("home"), signal.SIGINT)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_when_the_port_says_nothing_then_ends_within_ten_seconds(
    ended: Outcomes, command: tuple[str, ...]
) -> None:
    after_s, status, stderr = ended[command]
    assert stderr.startswith("waiting for "), stderr
    assert status in (ExitStatus.TIMEOUT, ExitStatus.UNREACHABLE), stderr
    assert after_s < LIMIT_S + GRACE_S


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_command_when_interrupted_while_the_port_says_nothing_then_ends_at_once(
    interrupted: Outcomes, command: tuple[str, ...]
) -> None:
    after_s, status, stderr = interrupted[command]
    assert (status, stderr.count("\n")) == (130, 1), stderr
    assert after_s < GRACE_S / 2


@pytest.mark.zookeeper
@pytest.mark.parametrize("command", [("broker", "status"), ("cluster", "describe")])
def test_command_when_all_registered_brokers_hang_then_waits_for_them_as_long_as_for_one(
    zookeeper: str,
    session: Session,
    places: dict[str, str],
    tmp_path: Path,
    command: tuple[str, ...],
) -> None:
    host, _, port = places["mute"].rpartition(":")
    for number in range(4):
        session.create(paths.broker(number), f"creator-{number}:{host}:{port}".encode())
    after_s, status, stderr = run([*command, "-Z", zookeeper], tmp_path, None)
    assert status in (ExitStatus.TIMEOUT, ExitStatus.UNREACHABLE), stderr
    assert after_s < LIMIT_S + GRACE_S
