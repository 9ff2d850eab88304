"""Services: the READY line, pid files, and running in the background.

Scripts wait for the READY line: it is written once, as a whole, and flushed.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pylogctl.cli.columns import Document, Row
from pylogctl.cli.environment import Environment
from pylogctl.cli.render import render


def announce_ready(
    env: Environment,
    document: Document,
    row: Row,
    file: Path | None = None,
    descriptor: int | None = None,
) -> None:
    """Write the READY line to standard output, in the format of `--output`.

    A file and an open descriptor get it first, if they are given. systemd is told too, if it runs
    this service with `Type=notify`.
    """
    line = _ready_line(env, row.by_column())
    if file is not None:
        temporary = file.with_name(f"{file.name}.{os.getpid()}")
        temporary.write_text(line + "\n", encoding="utf-8")
        temporary.replace(file)
    if descriptor is not None:
        os.write(descriptor, f"{line}\n".encode())
        os.close(descriptor)
    if env.settings.output in (None, "json", "jsonl"):
        env.write_line(line)
    else:
        render(env, document, [row])
    env.flush()
    notify_manager(env, "READY=1")


def notify_manager(env: Environment, state: str) -> None:
    """Tell systemd the state of this service, where it asks for that; see sd_notify(3)."""
    address = env.environ.get("NOTIFY_SOCKET", "")
    if address[:1] not in ("/", "@"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager, suppress(OSError):
        manager.sendto(state.encode(), address.replace("@", "\0", 1))


def _ready_line(env: Environment, record: dict[str, Any]) -> str:
    if env.settings.output in ("json", "jsonl"):
        return json.dumps(record)
    fields = (f"{key}={'-' if value is None else value}" for key, value in record.items())
    return f"READY {' '.join(fields)}"


@contextmanager
def pid_file(path: Path | None) -> Iterator[None]:
    """Keep the process id in a file for the duration of a block."""
    if path is None:
        yield
        return
    path.write_text(f"{os.getpid()}\n", encoding="ascii")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def go_to_background(log_file: Path | None) -> int | None:
    """Continue in a child process with a session of its own.

    The child keeps the standard streams until `leave_terminal`, so its READY line and its errors at
    start-up still appear on the terminal. Returns None in the child, and in the parent the exit
    status, once the child is ready or has ended.
    """
    if log_file is not None:
        log_file.open("ab").close()  # here an error can still be printed
    reader, writer = os.pipe()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        os.setsid()
        os.environ[_READY_FD] = str(writer)
        return None
    os.close(writer)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with os.fdopen(reader, "rb") as pipe:
        is_ready = pipe.read(1) == b"+"
    if is_ready:
        return 0
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


_READY_FD = "PYLOGCTL_BACKGROUND_FD"


def leave_terminal(log_file: Path | None) -> None:
    """In the ready child: end the parent, close stdin and stdout, send stderr to `log_file`."""
    writer = int(os.environ.pop(_READY_FD))
    null = os.open(os.devnull, os.O_RDWR)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    errors = null if log_file is None else os.open(log_file, flags, 0o644)
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    os.write(writer, b"+")
    os.close(writer)
