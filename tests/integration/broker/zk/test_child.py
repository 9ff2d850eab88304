from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from broker.zk import child
from broker.zk.embedded import ChildProcess

DEADLINE_S = 60
MODES = [
    child.PIPE,
    pytest.param(
        child.SIGNAL,
        marks=pytest.mark.skipif(sys.platform != "linux", reason="a feature of Linux"),
    ),
]
SLEEP = [sys.executable, "-c", "import time; print('up', flush=True); time.sleep(600)"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    " print('up', flush=True); time.sleep(600)",
]

# Starts a sleeper, says which process it is, and waits to be killed.
PARENT = """
import sys, time
from pathlib import Path
from broker.zk.embedded import ChildProcess
mode, directory, *command = sys.argv[1:]
process = ChildProcess(
    command, directory=Path(directory), log_file=Path(directory, "log"), environ={},
    kept_fd=2, on_exit=lambda status: None, mode=mode,
)
process.start()
print(process.pid, flush=True)
time.sleep(600)
"""


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline_s, "time is up"
        time.sleep(0.01)


def make_child(
    tmp_path: Path, command: list[str], mode: str, exits: list[int] | None = None
) -> ChildProcess:
    return ChildProcess(
        command,
        directory=tmp_path,
        log_file=tmp_path / "log",
        environ=os.environ,
        kept_fd=2,
        on_exit=(exits if exits is not None else []).append,
        mode=mode,
    )


def is_up(tmp_path: Path) -> bool:
    return (tmp_path / "log").exists() and b"up" in (tmp_path / "log").read_bytes()


@pytest.mark.parametrize("mode", MODES)
def test_child_when_stopped_then_ends_and_reports_its_exit(tmp_path: Path, mode: str) -> None:
    exits: list[int] = []
    process = make_child(tmp_path, SLEEP, mode, exits)
    process.start()
    wait_until(lambda: is_up(tmp_path))

    process.stop(timeout_s=DEADLINE_S)

    assert exits == [process.exit_status]
    assert process.exit_status in {-signal.SIGTERM, 128 + signal.SIGTERM}


@pytest.mark.parametrize("mode", MODES)
def test_child_when_it_ignores_sigterm_then_is_killed(tmp_path: Path, mode: str) -> None:
    process = make_child(tmp_path, DEAF, mode)
    process.start()
    wait_until(lambda: is_up(tmp_path))

    process.stop(timeout_s=0.1)

    assert process.exit_status == -signal.SIGKILL


@pytest.mark.parametrize("mode", MODES)
def test_child_when_it_ends_by_itself_then_status_is_its_own(tmp_path: Path, mode: str) -> None:
    process = make_child(tmp_path, [sys.executable, "-c", "raise SystemExit(7)"], mode)
    process.start()

    assert process.wait(DEADLINE_S)
    process.stop(timeout_s=0)
    assert process.exit_status == 7


@pytest.mark.parametrize("mode", MODES)
def test_child_when_parent_is_killed_then_ends(tmp_path: Path, mode: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, mode, str(tmp_path), *SLEEP],
        stdout=subprocess.PIPE,
        text=True,
    )
    with parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        wait_until(lambda: is_up(tmp_path))

        parent.kill()

    wait_until(lambda: not is_group_alive(group))


def is_group_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="a feature of Linux")
def test_tether_when_parent_is_another_process_then_runs_nothing() -> None:
    done = subprocess.run(
        [sys.executable, child.__file__, child.SIGNAL, "1", "/bin/echo", "ran"],
        capture_output=True,
        text=True,
    )

    assert done.returncode == 1
    assert done.stdout == ""
    assert "the parent has died already" in done.stderr


def test_child_when_log_file_cannot_be_opened_then_start_raises(tmp_path: Path) -> None:
    process = ChildProcess(
        SLEEP,
        directory=tmp_path,
        log_file=tmp_path / "missing" / "log",
        environ={},
        kept_fd=2,
        on_exit=lambda status: None,
    )

    with pytest.raises(FileNotFoundError):
        process.start()
