"""Three ZooKeepers that elect a leader among them, each a process that a test can kill."""

from __future__ import annotations

import os
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from broker.zk.embedded import find_jars
from broker.zk.java import Java
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

SERVERS = (1, 2, 3)
_TICK_MS = 500
_START_DEADLINE_S = 90.0
_FLAGS = ("-Xmx64m", "-Xms16m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%throwable{short}
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


class ZooKeeperEnsemble:
    """The servers, started by `start`; a context manager.

    Args:
        directory: where their data is.
        java: the runtime.
    """

    def __init__(self, directory: Path, java: Java) -> None:
        self._directory = directory
        self._java = java
        self._ports: dict[int, tuple[int, int, int]] = {}  # for clients, the quorum, elections
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ZooKeeperEnsemble:
        for number in SERVERS:
            self._ports[number] = port_of_its_own(), port_of_its_own(), port_of_its_own()
        try:
            for number in SERVERS:
                self.start(number)
            self.await_quorum()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Kill all servers."""
        for number in list(self._processes):
            self.kill(number)

    @property
    def connect(self) -> str:
        """Return the addresses of all servers, as `host:port,..`."""
        return ",".join(f"127.0.0.1:{client}" for client, _, _ in self._ports.values())

    def start(self, number: int) -> None:
        """Start a server, with the data it had before."""
        directory = self._directory / f"zookeeper-{number}"
        (directory / "data").mkdir(parents=True, exist_ok=True)
        (directory / "data" / "myid").write_text(f"{number}\n")
        settings: dict[str, object] = {
            "dataDir": "./data",
            "clientPort": self._ports[number][0],
            "clientPortAddress": "127.0.0.1",
            "tickTime": _TICK_MS,
            "initLimit": 60,
            "syncLimit": 20,
            "maxClientCnxns": 0,
            "admin.enableServer": "false",
            "4lw.commands.whitelist": "srvr",
            "preAllocSize": 64,
            "forceSync": "no",
            **{
                f"server.{one}": f"127.0.0.1:{quorum}:{election}"
                for one, (_, quorum, election) in self._ports.items()
            },
        }
        lines = (f"{name}={value}\n" for name, value in settings.items())
        (directory / "zoo.cfg").write_text("".join(lines))
        (directory / "log4j2.properties").write_text(_LOGGING)
        class_path = os.pathsep.join(map(str, find_jars()))
        with (directory / "zookeeper.log").open("ab") as log:
            self._processes[number] = subprocess.Popen(
                [
                    str(self._java.executable),
                    *_FLAGS,
                    "-Dlog4j2.configurationFile=./log4j2.properties",
                    *("-cp", class_path),
                    "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    "zoo.cfg",
                ],
                cwd=directory,
                stdout=log,
                stderr=log,
            )

    def start_killed(self) -> None:
        """Start the servers that were killed, and wait until all serve."""
        for number in sorted(set(SERVERS) - self._processes.keys()):
            self.start(number)
        self.await_quorum()

    def kill(self, number: int) -> None:
        """End a server as kill -9 does."""
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def modes(self) -> dict[int, str]:
        """Return what each server that answers is: `leader` or `follower`."""
        found = {}
        for number in self._processes:
            with suppress(OSError):
                text = self._ask(self._ports[number][0])
                for line in text.splitlines():
                    if line.startswith("Mode: "):
                        found[number] = line.removeprefix("Mode: ")
        return found

    def number_of(self, mode: str) -> int:
        """Return the number of a server that is the leader, or of one that is a follower."""
        wait_until(lambda: mode in self.modes().values(), f"a {mode}", deadline_s=60)
        return next(number for number, one in self.modes().items() if one == mode)

    def await_quorum(self) -> None:
        """Wait until the servers that run have a leader and serve."""

        def have_leader() -> bool:
            modes = self.modes()
            return modes.keys() == self._processes.keys() and "leader" in modes.values()

        try:
            wait_until(have_leader, "a quorum of ZooKeepers", deadline_s=_START_DEADLINE_S)
        except BaseException:
            for log in sorted(self._directory.glob("zookeeper-*/zookeeper.log")):
                print(f"---- {log.parent.name}\n{log.read_text()[-4000:]}")
            raise

    @staticmethod
    def _ask(port: int) -> str:
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(b"srvr")
            with connection.makefile("rb") as response:
                return response.read().decode(errors="replace")
