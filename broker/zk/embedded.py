"""A real ZooKeeper server as a child of this process, from the jars that come with PySpark.

For development, tests and a single machine; production names its own ensemble. The server listens
on loopback, keeps its data over restarts, writes to a log file only and dies with this process.
"""

from __future__ import annotations

import errno
import logging
import os
import socket
import threading
import time
from pathlib import Path

from broker.errors import CoordinationError, RegistryUnreachableError
from broker.zk.child import ChildProcess
from broker.zk.instance import (
    DirectoryLock,
    remove_note,
    running_server,
    serves_directory,
    write_note,
)
from broker.zk.java import Java, find_java
from broker.zk.paths import join_address
from broker.zk.server_files import find_jars, server_command, write_settings
from broker.zk.session import Session

logger = logging.getLogger(__name__)

_PORT_ATTEMPTS = 5
_POLL_S = 0.05
_SESSION_CHECK_S = 1.0
_SHOWN_LOG_LINES = 5
_STOP_S = 10.0

# Before a server that ended by itself is started again, doubled while that fails.
_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 30.0
_RESTART_LIMIT_S = 30.0


class EmbeddedZooKeeper:
    """A ZooKeeper server on a data directory of its own.

    Args:
        data_dir: its data directory, created when missing; a path inside the broker's.
        host: the address to listen on.
        port: the port to listen on; 0 picks a free one at each start.
        log_file: gets the server's warnings; `zookeeper.log` in the data directory by default.
        java: the runtime to use; looked for by default.
        is_durable: fsync each write before it is acknowledged. Off for tests only.
        tick_ms: ZooKeeper's unit of time; session timeouts are clamped to 2 to 20 of them.
        is_kept_up: start the server again, on the same port, when it ends by itself.
    """

    def __init__(
        self,
        data_dir: Path,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        log_file: Path | None = None,
        java: Java | None = None,
        is_durable: bool = True,
        tick_ms: int = 2000,
        is_kept_up: bool = False,
    ) -> None:
        self._data_dir = data_dir.absolute()
        self._host = host
        self._wanted_port = port
        self._port = port
        self._log_file = (log_file or data_dir / "zookeeper.log").absolute()
        self._java = java
        self._is_durable = is_durable
        self._tick_ms = tick_ms
        self._is_kept_up = is_kept_up
        self._lock = DirectoryLock(self._data_dir)
        self._child: ChildProcess | None = None
        self._command: list[str] = []
        self._is_up = False
        self._stopped = threading.Event()

    def __enter__(self) -> EmbeddedZooKeeper:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @staticmethod
    def running(data_dir: Path) -> str | None:
        """Return `host:port` of the server that runs on a data directory, `None` if none does.

        Args:
            data_dir: as given to the constructor; need not exist.
        """
        return running_server(data_dir.absolute())

    @property
    def connect(self) -> str:
        """Return where the server listens, as `host:port`; it has been started."""
        return join_address(self._host, self._port)

    @property
    def pid(self) -> int | None:
        """Return the server's process id, `None` when it does not run."""
        child = self._child
        return child.pid if child and child.exit_status is None else None

    def start(self, timeout_s: float = 30.0) -> None:
        """Start the server, and wait until it serves a session.

        Args:
            timeout_s: how long it may take.

        Raises:
            ConfigError: there is no Java or no PySpark.
            LogLockedError: another process runs a server on the data directory.
            CoordinationError: the port is in use, the server ended (the message has the end of its
                log), or it did not serve in time.
            OSError: the data directory or the log file cannot be written.
        """
        self._command = server_command(self._java or find_java(), find_jars())
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._lock.acquire()
        self._stopped.clear()
        try:
            remove_note(self._data_dir)
            self._note_up(self._start_on_some_port(time.monotonic() + timeout_s))
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """Stop the server and wait for its end; does nothing when it does not run.

        Args:
            timeout_s: how long it may take before it is killed.
        """
        self._is_up = False
        self._stopped.set()
        while (child := self._child) is not None:
            child.stop(timeout_s)  # also waits for its thread, which may be starting another one
            if self._child is child:
                self._child = None
                remove_note(self._data_dir)
        self._lock.release()

    def _note_up(self, child: ChildProcess) -> None:
        write_note(self._data_dir, host=self._host, port=self._port, pid=child.pid)
        self._is_up = True

    def _start_on_some_port(self, deadline_s: float) -> ChildProcess:
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return self._start_on(self._pick_port(), deadline_s)
            except _PortTakenError:
                if self._wanted_port != 0:
                    raise
        return self._start_on(self._pick_port(), deadline_s)

    def _pick_port(self) -> int:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            # As Java does: a port whose last connections linger is not in use.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self._host, self._wanted_port))
            except OSError as error:
                raise self._bind_error(error) from error
            port: int = probe.getsockname()[1]
            return port

    def _bind_error(self, error: OSError) -> CoordinationError:
        address = join_address(self._host, self._wanted_port)
        if error.errno == errno.EADDRINUSE:
            return _PortTakenError(f"cannot start ZooKeeper at {address}: the port is in use")
        return CoordinationError(f"cannot start ZooKeeper at {address}: {error.strerror}")

    def _start_on(self, port: int, deadline_s: float) -> ChildProcess:
        self._port = port
        write_settings(
            self._data_dir,
            host=self._host,
            port=port,
            tick_ms=self._tick_ms,
            is_durable=self._is_durable,
        )
        log_position = self._log_file.stat().st_size if self._log_file.exists() else 0
        child = ChildProcess(
            self._command,
            directory=self._data_dir,
            log_file=self._log_file,
            # Without a UTF-8 locale Java cannot name files outside ASCII.
            environ={**os.environ, "LC_ALL": "C.UTF-8"},
            kept_fd=self._lock.fd,
            on_exit=self._on_exit,
        )
        child.start()
        self._child = child
        while not self._is_serving():
            if child.wait(_POLL_S):
                raise self._ended_error(child.exit_status, log_position)
            if time.monotonic() >= deadline_s or self._stopped.is_set():
                child.stop(_STOP_S)
                raise CoordinationError(
                    f"ZooKeeper at {self.connect} did not serve in time; see {self._log_file}"
                )
        return child

    def _is_serving(self) -> bool:
        """Return whether our server, and not another on the same port, gives out sessions."""
        try:
            socket.create_connection((self._host, self._port), timeout=1.0).close()
        except OSError:
            return False
        # The time-out also bounds the wait for a listener that accepts and says nothing.
        session = Session(
            self.connect,
            session_timeout_ms=int(_SESSION_CHECK_S * 1000),
            request_timeout_s=_SESSION_CHECK_S,
        )
        try:
            session.start(_SESSION_CHECK_S)
            session.exists("/")
        except RegistryUnreachableError:
            return False
        finally:
            session.stop()
        return serves_directory(self._host, self._port, self._data_dir)

    def _ended_error(self, status: int | None, log_position: int) -> CoordinationError:
        with self._log_file.open("rb") as log:
            log.seek(log_position)
            lines = log.read().decode(errors="replace").split("\n")
        shown = "\n".join([line for line in lines if line.strip()][-_SHOWN_LOG_LINES:])
        message = f"ZooKeeper at {self.connect} ended with status {status}; {self._log_file}:"
        kind = _PortTakenError if "BindException" in shown else CoordinationError
        return kind(f"{message}\n{shown}")

    def _on_exit(self, status: int) -> None:
        """Tell that the server ended, and see to the next one; runs in the thread of the child."""
        if not self._is_up or self._stopped.is_set():
            return
        self._is_up = False
        logger.error(
            "embedded ZooKeeper at %s ended with status %d; see %s",
            self.connect,
            status,
            self._log_file,
        )
        if self._is_kept_up:
            self._start_again()

    def _start_again(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopped.wait(pause_s):
            try:
                self._note_up(self._start_on(self._port, time.monotonic() + _RESTART_LIMIT_S))
            except (CoordinationError, OSError) as error:
                if not self._stopped.is_set():
                    logger.error("cannot start the embedded ZooKeeper again: %s", error)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            else:
                logger.warning("embedded ZooKeeper at %s is up again", self.connect)
                return


class _PortTakenError(CoordinationError):
    """Somebody else listens on the port."""
