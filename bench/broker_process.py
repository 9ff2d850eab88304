"""A broker as a child process: start, observe, stop and remove it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.client.connection import Connection
from broker.protocol.responses import BrokerAddress
from broker.security.client_security import ClientSecurity

REPOSITORY = Path(__file__).parents[1]
PYLOGCTL = Path(sys.executable).with_name("pylogctl")
"""The command as it is installed beside this interpreter."""
_STOP_TIMEOUT_S = 60.0
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class BrokerProcess:
    """A running broker without ZooKeeper, with broker id 0 unless the properties set another.

    Args:
        directory: where its data, settings and log output are.
        security: how to connect to it; None for plain connections.
        properties: settings by their names.
    """

    def __init__(
        self, directory: Path, security: ClientSecurity | None = None, /, **properties: str
    ) -> None:
        self._security = security
        self.data = directory / "data"
        self.id = int(properties.get("brokerid", "0"))
        settings = {
            "port": "0",
            "log.dir": str(self.data),
            "zk.connectiontimeout.ms": "60000",  # a machine that stalls at the start is no failure
            **properties,
        }
        path = directory / "broker.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        with (directory / "broker.log").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "bench.serve", path],
                cwd=REPOSITORY,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
            )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            log = directory / "broker.log"
            raise RuntimeError(f"the broker did not start; {log} ends\n{log.read_text()[-2000:]}")
        self.port = int(json.loads(line)["port"])

    @property
    def pid(self) -> int:
        """Return the id of its process."""
        return self._process.pid

    @property
    def address(self) -> BrokerAddress:
        """Return the address it listens on."""
        return BrokerAddress(-1, "127.0.0.1", self.port)

    def connect(self) -> Connection:
        """Return a connection to it."""
        return Connection(self.address, timeout_s=60, security=self._security)

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal; one that stops the process has done so on return."""
        self._process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def memory_mb(self, field: str) -> float:
        """Return a memory figure in MB.

        Args:
            field: as in /proc/PID/status: `VmRSS` for the present, `VmHWM` for the peak.
        """
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1]) * 1024 / 1e6
        raise RuntimeError(f"the system does not tell {field}")

    def cpu_s(self) -> float:
        """Return the processor time it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S

    def stop(self) -> None:
        """Shut it down cleanly."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_TIMEOUT_S)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill it with SIGKILL; no effect if it has ended."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


@contextmanager
def temporary_directory(parent: Path) -> Iterator[Path]:
    """Yield a new directory, and remove it afterwards."""
    directory = Path(tempfile.mkdtemp(prefix="pylogctl-bench-", dir=parent))
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


@contextmanager
def running_broker(
    parent: Path, security: ClientSecurity | None = None, /, **properties: str
) -> Iterator[BrokerProcess]:
    """Yield a broker with a new data directory; stop and remove both afterwards."""
    with temporary_directory(parent) as directory:
        broker = BrokerProcess(directory, security, **properties)
        try:
            yield broker
        finally:
            broker.stop()
