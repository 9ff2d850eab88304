"""Signals in streams and services."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from pylogctl.cli.environment import ExitStatus
from pylogctl.cli.process import graceful_stop
from tests.support.command_line import REPOSITORY, Invoke, Process, Spawn, process_environment


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


def ignored(process: subprocess.Popen[bytes]) -> set[int]:
    """Return the signals that a process ignores, as the kernel has it."""
    mask = next(
        int(line.split()[1], 16)
        for line in Path(f"/proc/{process.pid}/status").read_text().splitlines()
        if line.startswith("SigIgn:")
    )
    return {one for one in range(1, 32) if mask >> (one - 1) & 1}


def spawn_protected(spawn: Spawn, *args: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a command as `nohup` in the background of a script does."""

    def protect() -> None:
        for one in (signal.SIGHUP, signal.SIGINT):
            signal.signal(one, signal.SIG_IGN)

    return spawn(*args, preexec_fn=protect, **options)


def hang_up(process: subprocess.Popen[bytes]) -> None:
    for one in (signal.SIGHUP, signal.SIGINT):
        process.send_signal(one)


def line_of(process: subprocess.Popen[bytes]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().decode().rstrip("\n")


def test_consume_and_produce_when_protected_from_hangup_then_go_on_after_it(
    spawn: Spawn, invoke: Invoke, running_broker: Broker
) -> None:
    where = ("-b", f"127.0.0.1:{running_broker.port}")
    invoke("topic", "create", "t", *where)
    producer = spawn_protected(
        spawn, "produce", "t", "--linger", "0", *where, stdin=subprocess.PIPE
    )
    assert producer.stdin is not None
    producer.stdin.write(b"before\n")
    producer.stdin.flush()
    consumer = spawn_protected(spawn, "consume", "t", "--from-beginning", *where)
    assert line_of(consumer) == "before"
    hang_up(producer)
    hang_up(consumer)
    producer.communicate(b"after\n", timeout=60)
    assert producer.returncode == 0
    assert line_of(consumer) == "after"
    consumer.terminate()
    assert consumer.wait(60) == ExitStatus.SIGTERM


def test_broker_when_protected_from_hangup_then_serves_on_after_it(
    spawn: Spawn, run_process: Invoke, tmp_path: Path
) -> None:
    data = ("--data", str(tmp_path / "data"))
    broker = spawn_protected(spawn, "broker", "start", "--no-zookeeper", "--port", "0", *data)
    fields = dict(field.split("=", 1) for field in line_of(broker).split()[1:])
    hang_up(broker)
    assert run_process("topic", "list", "-b", f"127.0.0.1:{fields['port']}").status == 0
    broker.terminate()
    assert broker.wait(60) == 0


@pytest.mark.parametrize(
    "command",
    [
        ("web", "--listen", "127.0.0.1:0", "-b", "{broker}"),
        ("top", "--output", "jsonl", "-b", "{broker}"),
    ],
    ids=lambda command: command[0],
)
def test_service_when_protected_from_hangup_then_ignores_it(
    spawn: Spawn, running_broker: Broker, command: tuple[str, ...]
) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    process = spawn_protected(spawn, *(one.format(broker=address) for one in command))
    assert line_of(process)
    assert ignored(process) >= {signal.SIGHUP, signal.SIGINT}
    process.terminate()
    process.wait(60)
