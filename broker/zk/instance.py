"""Which ZooKeeper server, if any, runs on a data directory: the lock and the note beside the data.

The lock is held by the process that started the server and by the server itself, so it is free
only when both are gone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from pathlib import Path

from broker.errors import LogLockedError
from broker.zk.paths import join_address
from broker.zk.server_files import SNAPSHOT_DIRECTORY

_LOCK_FILE = "lock"
_NOTE_FILE = "server.json"

# A server whose parent was killed is told so by the kernel and needs a moment to end.
_ORPHAN_GRACE_S = 10.0


class DirectoryLock:
    """The right to run a ZooKeeper server on a data directory, from `acquire` to `release`.

    Args:
        data_dir: the server's data directory, which exists.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._fd = -1

    @property
    def fd(self) -> int:
        """Return the descriptor to hand to the server, so that it holds the lock as well."""
        return self._fd

    def acquire(self) -> None:
        """Take the lock; wait if only an orphaned server, about to end, holds it.

        Raises:
            LogLockedError: another process runs a server on the directory.
        """
        fd = os.open(self._data_dir / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
        deadline_s = time.monotonic() + _ORPHAN_GRACE_S
        while not _try_lock(fd):
            owner = _read_pid(fd)
            if _is_alive(owner) or time.monotonic() >= deadline_s:
                os.close(fd)
                raise LogLockedError(
                    f"a ZooKeeper server of process {owner} already runs on {self._data_dir}"
                )
            time.sleep(0.05)
        os.ftruncate(fd, 0)
        os.pwrite(fd, b"%d\n" % os.getpid(), 0)
        self._fd = fd

    def release(self) -> None:
        """Give up this process's share of the lock; a second call does nothing."""
        if self._fd >= 0:
            os.ftruncate(self._fd, 0)
            os.close(self._fd)
            self._fd = -1


def is_locked(data_dir: Path) -> bool:
    """Return whether a server runs, or is being started, on a data directory."""
    try:
        fd = os.open(data_dir / _LOCK_FILE, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        return not _try_lock(fd)
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_pid(fd: int) -> int:
    text = os.pread(fd, 20, 0).strip()
    return int(text) if text.isdigit() else 0


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def write_note(data_dir: Path, *, host: str, port: int, pid: int) -> None:
    """Note where the server that was started on a data directory listens."""
    temporary = data_dir / f"{_NOTE_FILE}.new"
    temporary.write_text(json.dumps({"host": host, "port": port, "pid": pid}) + "\n")
    temporary.replace(data_dir / _NOTE_FILE)


def remove_note(data_dir: Path) -> None:
    """Remove the note, as no server listens any more or none does yet."""
    (data_dir / _NOTE_FILE).unlink(missing_ok=True)


def running_server(data_dir: Path) -> str | None:
    """Return `host:port` of the server that runs on a data directory and answers, if there is one.

    Args:
        data_dir: the server's data directory; need not exist.
    """
    if not is_locked(data_dir):
        return None
    try:
        note = json.loads((data_dir / _NOTE_FILE).read_text())
        host, port = str(note["host"]), int(note["port"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return join_address(host, port) if serves_directory(host, port, data_dir) else None


def serves_directory(host: str, port: int, data_dir: Path, *, timeout_s: float = 5.0) -> bool:
    """Return whether the server at an address is the one of a data directory.

    Ask only a server that has finished starting: before, it logs the question as an error.

    Args:
        host: where it listens.
        port: where it listens.
        data_dir: the server's data directory.
        timeout_s: how long to wait for it.
    """
    expected = (data_dir / SNAPSHOT_DIRECTORY / "version-2").resolve()
    with contextlib.suppress(OSError):
        for line in _four_letter_word(host, port, b"conf", timeout_s).splitlines():
            name, _, value = line.partition("=")
            if name == "dataDir":
                return Path(value).resolve() == expected
    return False


def _four_letter_word(host: str, port: int, word: bytes, timeout_s: float) -> str:
    with socket.create_connection((host, port), timeout=timeout_s) as connection:
        connection.sendall(word)
        with connection.makefile("rb") as answer:
            return answer.read().decode(errors="replace")
