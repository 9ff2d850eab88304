"""How a service says that it is ready: a line on standard output, a file, a descriptor.

It is the only start-up synchronisation that scripts need, so it is written once, whole, and
flushed. Also the way of a service into the background, which ends when it is ready.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pylogctl.context import Environment
from pylogctl.render import Document, render


@dataclass(frozen=True, slots=True)
class ReadyTargets:
    """Where readiness is told besides standard output."""

    file: Path | None = None
    fd: int | None = None


def announce_ready(
    env: Environment,
    document: Document,
    record: Mapping[str, Any],
    targets: ReadyTargets = ReadyTargets(),
) -> None:
    """Say that a service is ready.

    Args:
        env: where its line goes; `--output json` makes it one object.
        document: the fields, for the other formats.
        record: their values; None for what there is not.
        targets: where else to say it.

    Raises:
        OSError: a target cannot be written.
    """
    line = _ready_line(env, record)
    if targets.file is not None:
        temporary = targets.file.with_name(f"{targets.file.name}.{os.getpid()}")
        temporary.write_text(line + "\n", encoding="utf-8")
        temporary.replace(targets.file)
    if targets.fd is not None:
        os.write(targets.fd, f"{line}\n".encode())
        os.close(targets.fd)
    if env.settings.output in (None, "json", "jsonl"):
        env.write_line(line)
    else:
        render(env, document, [record])
    env.flush()


def _ready_line(env: Environment, record: Mapping[str, Any]) -> str:
    if env.settings.output in ("json", "jsonl"):
        return json.dumps(dict(record))
    fields = (f"{key}={'-' if value is None else value}" for key, value in record.items())
    return f"READY {' '.join(fields)}"


@contextmanager
def pid_file(path: Path | None) -> Iterator[None]:
    """Keep this process's id in a file for the duration of a block."""
    if path is None:
        yield
        return
    path.write_text(f"{os.getpid()}\n", encoding="ascii")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def go_to_background(log_file: Path | None) -> int | None:
    """Continue in a child process of its own session.

    The child keeps the standard streams until `leave_terminal`, so that its line and its errors
    still reach whoever started it.

    Args:
        log_file: checked here, as an error could not be told later.

    Returns:
        None in the child; in the parent, once the child is ready or has ended, the exit status.
    """
    if log_file is not None:
        log_file.open("ab").close()
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
    """In the child, once it is ready: let the parent end, and drop its streams.

    Args:
        log_file: gets standard error from now on; None drops it.
    """
    writer = int(os.environ.pop(_READY_FD))
    null = os.open(os.devnull, os.O_RDWR)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    errors = null if log_file is None else os.open(log_file, flags, 0o644)
    for source, target in ((null, 0), (null, 1), (errors, 2)):
        os.dup2(source, target)
    os.write(writer, b"+")
    os.close(writer)
