"""A broker in a process of its own, as an operator starts it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from broker.client.connection import Connection
from broker.client.static_cluster import StaticCluster
from broker.protocol.responses import BrokerAddress
from tests.integration.broker.server.peer import Peer

REPOSITORY = Path(__file__).parents[3]
WAIT_S = 60.0


class BrokerProcess:
    """A running `pylogctl broker start` without a registry.

    Args:
        data: the data directory.
        arguments: further ones of the command.
        prefix: a command that runs it, with its own arguments.

    Raises:
        StartError: it ended before it was ready.
    """

    def __init__(self, data: Path, *arguments: str, prefix: Sequence[str] = ()) -> None:
        self.data = data
        self.log = data.with_name(f"{data.name}.log")
        command = [sys.executable, "-m", "pylogctl", "broker", "start", "--no-zookeeper"]
        if "--port" not in arguments:
            command += ["--port", "0"]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*prefix, *command, "--data", str(data), *arguments],
                cwd=REPOSITORY,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        assert self._process.stdout is not None
        words = self._process.stdout.readline().decode().split()
        if not words:
            status = self.wait()
            raise StartError(status, self.log.read_text())
        assert words[0] == "READY"
        facts = dict(word.split("=", 1) for word in words[1:])
        self.port = int(facts["port"])

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def address(self) -> BrokerAddress:
        return BrokerAddress(-1, "127.0.0.1", self.port)

    def connect(self) -> Connection:
        return Connection(self.address, timeout_s=WAIT_S, connect_timeout_s=2.0)

    def cluster(self) -> StaticCluster:
        return StaticCluster([self.address], lambda address: Connection(address))

    def peer(self) -> Peer:
        return Peer(self.port)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal; one that stops the process has done so on return."""
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def limit_file_size(self, size: int) -> None:
        """Let no file of the broker grow above a size; -1 lifts the limit."""
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def descriptor_count(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/fd"))  # noqa: PTH208  # nothing but a count

    def wait(self) -> int:
        """Wait for its end and return its exit status."""
        try:
            return self._process.wait(WAIT_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """End it as kill -9 does; nothing happens if it has ended."""
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


class StartError(Exception):
    """A broker ended before it was ready.

    Args:
        status: its exit status.
        output: what it said on stderr.
    """

    def __init__(self, status: int, output: str) -> None:
        super().__init__(f"exit status {status}: {output}")
        self.status = status
        self.output = output
