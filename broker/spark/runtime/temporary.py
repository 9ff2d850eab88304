"""Temporary directories and logs of killed processes, which the next process removes.

A process keeps a file in its directory locked; if the file is not locked, the process has ended. A
directory that several processes of a Spark application write has the driver in its name.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

_LOCK = ".lock"


@contextmanager
def temporary_directory(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Create a directory until the block ends; remove those of killed processes before."""
    parent = parent or Path(tempfile.gettempdir())
    _remove_abandoned(prefix, parent)
    path, lock = _create(prefix, parent)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        lock.close()


def _create(prefix: str, parent: Path) -> tuple[Path, BinaryIO]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        lock = (path / _LOCK).open("xb")
        fcntl.flock(lock, fcntl.LOCK_EX)
        if path.is_dir():
            return path, lock
        lock.close()  # another process found it before it was locked, and removed it


def _remove_abandoned(prefix: str, parent: Path) -> None:
    ours = re.compile(f"{re.escape(prefix)}[a-z0-9_]{{8}}")
    for path in parent.iterdir():
        if not ours.fullmatch(path.name):
            continue
        with suppress(OSError):  # another user's, in use, or removed meanwhile
            fd = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
            with open(fd, "r+b") as lock:  # noqa: PTH123 - of a descriptor
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path)


class _Process(NamedTuple):
    """A process of this machine; its start time tells it from a later one with its id."""

    name: str
    parent: int
    started: int  # clock ticks since boot


def _process(pid: int) -> _Process | None:
    """Return a running process; None if there is none, or this system does not tell."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    head, _, tail = text.rpartition(")")
    fields = tail.split()
    if fields[0] == "Z":
        return None
    return _Process(head.partition("(")[2], int(fields[1]), int(fields[19]))


def application_directory(parent: Path) -> Path:
    """Return the path of a new directory for a Spark application, which is not created.

    Called on the driver. Removes those of applications of this machine that have ended. `parent`
    may also be used by other machines, or not exist.
    """
    host = socket.gethostname()
    with suppress(FileNotFoundError):
        for path in list(parent.iterdir()):
            found = _OF_APPLICATION.fullmatch(path.name)
            if found is None or found[1] != host:
                continue
            owner = _process(int(found[2]))
            if owner is None or owner.started != int(found[3]):
                shutil.rmtree(path, ignore_errors=True)
    driver = _driver()
    owner_name = "" if driver is None else f"{host}-{driver[0]}-{driver[1]}-"
    return parent / f"{owner_name}{uuid.uuid4().hex}"


_OF_APPLICATION = re.compile(r"(.+)-([0-9]+)-([0-9]+)-[0-9a-f]{32}", re.ASCII)


def _driver() -> tuple[int, int] | None:
    """Return id and start of the JVM that this process is a worker of, or of this process."""
    own = _process(os.getpid())
    pid, found = os.getpid(), own
    while found is not None and found.name != "java":
        pid = found.parent
        found = _process(pid)
    if found is None:
        pid, found = os.getpid(), own
    return found and (pid, found.started)


def remove_old_logs(pattern: re.Pattern[str], parent: Path, kept_s: float) -> None:
    """Remove logs of ended processes (ids: group 1 of `pattern`) that are older than `kept_s`."""
    for path in parent.iterdir():
        found = pattern.fullmatch(path.name)
        if found is None or _runs(int(found[1])):
            continue
        with suppress(OSError):  # another user's, or removed meanwhile
            if time.time() - path.lstat().st_mtime > kept_s:
                path.unlink()


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's
    return True
