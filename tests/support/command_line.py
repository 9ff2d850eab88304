"""Running the command line in tests: in this process for texts, as a process for the rest."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pylogctl.cli import progress, tree
from pylogctl.cli.app import root
from pylogctl.cli.environment import CliError, Streams
from pylogctl.cli.report import as_text, failure_of
from tests.support.json_schemas import check_output

REPOSITORY = Path(__file__).parents[2]
_OWN = ("PYLOGCTL_", "XDG_")
"""How the names of variables begin that the program reads."""
_NOTES_OF_A_SLOW_MACHINE = re.compile(r"^waiting for .*\n", re.M)


def without_waits(stderr: bytes) -> str:
    """Return what a command said without its notes about waits, which a slow machine makes."""
    return _NOTES_OF_A_SLOW_MACHINE.sub("", stderr.decode())


def first_note(process: subprocess.Popen[bytes]) -> str:
    """Return the first line of a process's standard error that is no note about a wait."""
    assert process.stderr is not None
    return next(filter(None, map(without_waits, iter(process.stderr.readline, b""))), "")


class Result(NamedTuple):
    """How a command ended and what it wrote."""

    status: int
    stdout: bytes
    stderr: str
    failure: CliError | None = None

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode()


arguments: Callable[[Sequence[str]], list[str]] = list
"""Returns the arguments of each command, with those that let it into a closed cluster."""
Invoke = Callable[..., Result]
Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No settings of the developer's machine, and no files in the home directory."""
    for name in list(os.environ):
        if name.startswith(_OWN) or name in ("NO_COLOR", "FORCE_COLOR", "PAGER"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch) -> Invoke:
    """Run a command line in this process; standard input is a file with a descriptor."""
    # notes about waits would say how busy the machine is
    monkeypatch.setattr(progress, "ANNOUNCE_WAIT_AFTER_S", 60.0)

    def run(*args: str, stdin: bytes = b"", tty: bool = False) -> Result:
        stdout, stderr, echoed = io.BytesIO(), io.StringIO(), io.StringIO()
        failure = None
        with redirect_stdout(echoed), tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            streams = Streams(file, stdout, stderr, stdout_is_tty=tty)
            try:
                status = tree.run(root(), arguments(args), streams)
            except Exception as error:
                failure = failure_of(error)
                if failure is None:
                    raise
                status = failure.status
                stderr.write(as_text(failure) + "\n")
        written = stdout.getvalue() + echoed.getvalue().encode()
        check_output(args, written)
        return Result(int(status), written, stderr.getvalue(), failure)

    return run


def process_environment(home: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """An environment for a process with nothing in it that is not asked for."""
    own = {name: text for name, text in os.environ.items() if name.startswith(_OWN)}
    return {"PATH": os.environ["PATH"], "HOME": str(home), **own, **extra}


class Process(subprocess.Popen[bytes]):
    """A process that a test that fails kills at the end of its `with`, and does not wait for."""

    def __exit__(self, *failure: Any) -> None:
        if failure[0] is not None:
            self.kill()
        super().__exit__(*failure)


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawn]:
    """Start the program as a process; keyword arguments are those of Popen, `env` adds to it.

    Those that still run at the end of the test are killed.
    """
    started: list[Process] = []

    def start(*args: str, env: Mapping[str, str] | None = None, **options: Any) -> Process:
        defaults: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "cwd": REPOSITORY,
        }
        process = Process(
            [sys.executable, "-m", "pylogctl", *arguments(args)],
            env=process_environment(tmp_path / "home", env or {}),
            **(defaults | options),
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        with suppress(BrokenPipeError), process:
            pass


@pytest.fixture
def run_process(spawn: Spawn) -> Invoke:
    """Run the program as a process to its end."""

    def run(*args: str, stdin: bytes | None = None, **options: object) -> Result:
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        with spawn(*args, **options) as process:
            stdout, stderr = process.communicate(stdin, timeout=240)
        check_output(args, stdout or b"")
        return Result(process.returncode, stdout or b"", without_waits(stderr or b""))

    return run
