"""Tasks on processes of this machine: results, failures, and processes that end."""

from __future__ import annotations

import os
import platform
import resource
import signal
import time
from pathlib import Path

import pytest

from broker.errors import InvalidMessageError, TaskProcessError
from broker.spark.local import LocalProcesses
from tests.support.waiting import wait_until


def process_of(number: int) -> tuple[int, int]:
    """Return a number, and the process that has it."""
    return number, os.getpid()


def meet(directory: Path) -> int:
    """Wait until another process is here, too."""
    (directory / str(os.getpid())).touch()
    wait_until(lambda: len(list(directory.iterdir())) == 2, "the other process")
    return os.getpid()


def fail_or_sleep(text: str) -> None:
    """Fail, or write the process id to a file and sleep for long."""
    if text == "fail":
        raise InvalidMessageError("web[0-0]: bad")
    if text == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    Path(text).write_text(str(os.getpid()))
    time.sleep(600)


def fail_when(directory: Path) -> None:
    """Fail if the other task sleeps already, and be that one otherwise."""
    path = directory / "first"
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        wait_until(lambda: bool((directory / "pid").exists()), "the other task")
        fail_or_sleep("fail")
    fail_or_sleep(str(directory / "pid"))


def faults_of_freed_memory(_: int) -> int:
    """Return the page faults of taking memory that was freed just before, as batches are."""

    def faults() -> int:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        blocks = [b"x" * (1 << 20) for _ in range(32)]
        del blocks
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults()
    return faults()


def is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_tasks_when_there_is_one_process_then_run_in_this_one() -> None:
    parts: list[float] = []

    with LocalProcesses(1) as engine:
        results = engine.run(process_of, [1, 2], parts.append)

    assert results == [(1, os.getpid()), (2, os.getpid())]
    assert parts == [0.5, 1.0]


def test_tasks_when_there_are_processes_then_run_at_once_and_in_the_same_ones_later(
    tmp_path: Path,
) -> None:
    with LocalProcesses(2) as engine:
        first = engine.run(meet, [tmp_path, tmp_path])
        parts: list[float] = []
        later = engine.run(process_of, list(range(20)), parts.append)

    assert len(set(first)) == 2 and os.getpid() not in first
    assert [number for number, _ in later] == list(range(20))
    assert {pid for _, pid in later} <= set(first)
    assert parts == sorted(parts) and parts[-1] == 1.0
    assert not any(map(is_running, first))


def test_task_when_it_fails_then_its_error_is_raised_and_the_others_end(tmp_path: Path) -> None:
    with LocalProcesses(2) as engine, pytest.raises(InvalidMessageError) as caught:
        engine.run(fail_when, [tmp_path, tmp_path])

    assert str(caught.value) == "web[0-0]: bad"
    assert not is_running(int((tmp_path / "pid").read_text()))


def test_process_when_killed_then_the_job_fails_and_says_so() -> None:
    with LocalProcesses(2) as engine:
        with pytest.raises(TaskProcessError, match="status -9; it may have been killed"):
            engine.run(fail_or_sleep, ["die", "die"])
        assert len(engine.run(process_of, [1, 2])) == 2


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told to")
def test_memory_when_a_task_frees_it_then_its_process_keeps_it() -> None:
    with LocalProcesses(2) as engine:
        faults = engine.run(faults_of_freed_memory, [1, 2])

    assert max(faults) < 1000, "the system gives 8192 pages anew"
