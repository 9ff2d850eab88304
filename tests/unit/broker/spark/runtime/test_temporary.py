"""Temporary directories: removed at the end, or by the next process."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from broker.spark.runtime.temporary import (
    application_directory,
    remove_old_logs,
    temporary_directory,
)

_HOLDER = """
import sys
from pathlib import Path
from broker.spark.runtime.temporary import temporary_directory
with temporary_directory("job-", Path(sys.argv[1])) as path:
    (path / "data").mkdir()
    print(path, flush=True)
    sys.stdin.read()
"""


def test_directory_when_its_process_was_killed_then_the_next_one_removes_it(tmp_path: Path) -> None:
    other = tmp_path / "job-of-a-user"
    other.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        with temporary_directory("job-", tmp_path) as path:
            assert sorted(tmp_path.iterdir()) == sorted([other, held, path])
        holder.send_signal(signal.SIGKILL)
    assert held.is_dir()

    with temporary_directory("job-", tmp_path) as path:
        assert sorted(tmp_path.iterdir()) == sorted([other, path])

    assert list(tmp_path.iterdir()) == [other]


_APPLICATION = """
import sys
from pathlib import Path
from broker.spark.runtime.temporary import application_directory
path = application_directory(Path(sys.argv[1]))
path.mkdir()
(path / "x.sets").touch()
print(path, flush=True)
sys.stdin.read()
"""


def test_application_directory_when_its_process_was_killed_then_the_next_one_removes_it(
    tmp_path: Path,
) -> None:
    of_another_machine = tmp_path / f"elsewhere-1-1-{'0' * 32}"
    others = [of_another_machine, tmp_path / "mine"]
    for path in others:
        path.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", _APPLICATION, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None
        held = Path(holder.stdout.readline().strip())
        application_directory(tmp_path)
        assert (held / "x.sets").exists()
        holder.send_signal(signal.SIGKILL)
    assert held.is_dir()

    made = application_directory(tmp_path)

    assert sorted(tmp_path.iterdir()) == sorted(others)
    assert made.parent == tmp_path
    assert not made.exists()


def test_log_when_its_process_has_ended_then_is_removed_once_it_is_old(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    mine, old, fresh = (
        tmp_path / f"job-{name}.log" for name in (os.getpid(), ended.pid, f"0{ended.pid}")
    )
    for path in (mine, old, fresh, tmp_path / "job-old.log"):
        path.touch()
        if path != fresh:
            os.utime(path, (0, 0))

    remove_old_logs(re.compile(r"job-([0-9]+)\.log"), tmp_path, 3600)

    assert sorted(tmp_path.iterdir()) == sorted([mine, fresh, tmp_path / "job-old.log"])
