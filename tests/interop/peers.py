"""Clients and brokers of other makes, each behind the command line that all peers have.

A peer is called with an action and its arguments, reads messages as lines from stdin and writes
what it finds as lines to stdout; `fetch` tells how they come to be in a directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from bench.broker_process import REPOSITORY

_FOLDER = os.environ.get("PYLOGCTL_PEERS")
_TIMEOUT_S = 40


def require_peers() -> None:
    """Skip the whole module that calls this, unless there is a directory of peers."""
    if not _FOLDER:
        pytest.skip(
            "PYLOGCTL_PEERS names no directory of peers; `make interop` sets it",
            allow_module_level=True,
        )


class Peer:
    """One client of another make.

    Args:
        name: how it is called in `find_peer`.
        command: what runs it, up to the action.
        variables: environment variables that it needs.
    """

    def __init__(
        self, name: str, command: Sequence[object], variables: Mapping[str, str] | None = None
    ) -> None:
        self.name = name
        self._command = [str(word) for word in command]
        self._variables = {**os.environ, **(variables or {})}

    def run(self, action: str, *arguments: object, lines: Iterable[str] = ()) -> list[str]:
        """Run an action to its end and return the lines that it prints.

        Args:
            action: as the peer's program has it.
            arguments: of the action.
            lines: its stdin.
        """
        ended = subprocess.run(
            [*self._command, action, *map(str, arguments)],
            input="".join(f"{line}\n" for line in lines).encode(),
            capture_output=True,
            env=self._variables,
            timeout=_TIMEOUT_S,
        )
        if ended.returncode:
            raise PeerError(f"{self.name} {action} failed:\n{ended.stderr.decode()}")
        return ended.stdout.decode("utf-8", "replace").splitlines()

    def start(self, output: Path, action: str, *arguments: object) -> PeerProcess:
        """Start an action that goes on until its stdin ends.

        Args:
            output: the file for its stdout; its stderr goes beside it.
            action: as the peer's program has it.
            arguments: of the action.
        """
        command = [*self._command, action, *map(str, arguments)]
        return PeerProcess(command, self._variables, output)


class PeerError(Exception):
    """A peer's action failed; the message has what it wrote to stderr."""


class PeerProcess:
    """A peer that goes on until it is told to stop.

    Args:
        command: what runs it.
        variables: its environment.
        output: the file for its stdout.
    """

    def __init__(self, command: Sequence[str], variables: Mapping[str, str], output: Path) -> None:
        self.output = output
        self.log = output.with_suffix(".log")
        with output.open("wb") as stdout, self.log.open("wb") as stderr:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=variables
            )

    def lines(self) -> list[str]:
        """Return the whole lines it has printed so far."""
        text, _, _ = self.output.read_text(errors="replace").rpartition("\n")
        return text.split("\n") if text else []

    def freeze(self) -> None:
        """Stop it as a long pause of the machine would."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def leave(self) -> None:
        """Tell it to stop, and wait until it has."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(_TIMEOUT_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it at once; nothing happens if it has ended."""
        self.process.kill()
        self.process.wait()
        if self.process.stdin is not None:
            with suppress(OSError):
                self.process.stdin.close()


def pylogctl(*words: object, stdin: str = "") -> str:
    """Run our command line to its end and return what it prints."""
    ended = subprocess.run(
        [sys.executable, "-m", "pylogctl", *map(str, words)],
        cwd=REPOSITORY,
        input=stdin.encode(),
        capture_output=True,
        timeout=_TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def numbers_of(payloads: Iterable[str]) -> dict[str, list[int]]:
    """Return the numbers of a `Load`'s messages by partition, in the order they came."""
    found: dict[str, list[int]] = defaultdict(list)
    for partition, number in (payload.split(":") for payload in payloads):
        found[partition].append(int(number))
    return found


def find_peer(name: str) -> Peer:
    """Return a peer by its name; a test that needs one that is not there is skipped."""
    peer, proof = _PEERS[name](name, Path(_FOLDER or "").absolute())
    if not proof.exists():
        pytest.skip(f"peer {name} could not be fetched: {proof} is not there")
    return peer


def _jafka(name: str, folder: Path) -> tuple[Peer, Path]:
    home = folder / "jafka"
    opened = "java.base/java.lang=ALL-UNNAMED"  # snappy-java of 2012 reaches into it
    words = ["java", "-Xmx256m", "--add-opens", opened, "-cp", f"{home}:{home}/lib/*", "Peer"]
    return Peer(name, words), home / "Peer.class"


def _kafka(name: str, folder: Path) -> tuple[Peer, Path]:
    home = folder / name
    return Peer(name, ["java", "-Xmx256m", "-cp", f"{home}/lib/*"]), home / "fetched"


def _python2(name: str, folder: Path) -> tuple[Peer, Path]:
    home = folder / "python2"
    package = {"pykafka": "kafka"}.get(name, name)
    return Peer(name, [home / "python", home / "peer.py", name]), home / "lib" / package


def _node(name: str, folder: Path) -> tuple[Peer, Path]:
    home = folder / "node"
    package = {"franz": "franz-kafka", "node-kafka": "kafka"}.get(name, name)
    command = ["node", "--no-deprecation", home / "peer.js", name]
    return Peer(name, command), home / "node_modules" / package


_PEERS = {
    "jafka": _jafka,
    "kafka": _kafka,
    "samsa": _python2,
    "pykafka": _python2,
    "brod": _python2,
    "prozess": _node,
    "node-kafka": _node,
    "franz": _node,
}


def find_tables(name: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the settings of Spark and the environment variables with which tables are written.

    A test that needs a package that is not there is skipped.
    """
    home = Path(_FOLDER or "").absolute() / name
    if not (home / "fetched").exists():
        pytest.skip(f"the package of {name} could not be fetched: {home} is not there")
    jars = ",".join(str(path) for path in sorted((home / "jars").glob("*.jar")))
    return {"spark.jars": jars}, {"PYTHONPATH": f"{home / 'lib'}{os.pathsep}{REPOSITORY}"}
