"""An embedded ZooKeeper: a real server as a child process, from the jars that come with PySpark.

For development, tests and a single machine; production names its own ensemble. The server listens
on loopback, keeps its data over restarts, writes only to a log file and dies with this process. A
lock in its data directory is held by this process and by the server, so that it is free only when
both are gone; a note beside the lock holds the server's address.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import importlib.util
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path

from broker.endpoints import join_address
from broker.errors import ConfigError, CoordinationError, LogLockedError, RegistryUnreachableError
from broker.threads import start_once
from broker.zk import child as child_program
from broker.zk.health import four_letter_word
from broker.zk.java import Java, find_java
from broker.zk.nodes import MAX_REQUEST_BYTES
from broker.zk.security import NOTE_NAME, SECRET_NAME, ZooKeeperSecurity, make_credential
from broker.zk.session import Session

_HOST = "127.0.0.1"  # its protocol is plain: others could read the credential
_SNAPSHOT_DIRECTORY = "data"

# Relative paths, as the server runs in its data directory: not every path can be written in a
# properties file.
_CONFIG_FILE = "./zoo.cfg"
_LOGGING_FILE = "./log4j2.properties"

_MAIN_CLASS = "org.apache.zookeeper.server.quorum.QuorumPeerMain"

_JARS = (
    "zookeeper",
    "zookeeper-jute",
    "slf4j-api",
    "log4j-api",
    "log4j-core",
    "log4j-slf4j2-impl",
    "metrics-core",
    "snappy-java",
    "jackson-annotations",
    "jackson-core",
    "jackson-databind",
    "commons-io",
    "commons-cli",
    "netty-buffer",
    "netty-codec",
    "netty-codec-base",
    "netty-common",
    "netty-handler",
    "netty-resolver",
    "netty-transport",
)

# Holds what strangers can have under way: ZooKeeper keeps the last 500 requests (250 MB with their
# parts), receives one from each of 300 connections, and works on 100.
_HEAP_MB = 512
_MAX_HEAP_MB = 4096  # for nodes that fill it
_OUT_OF_MEMORY = 3  # the status of a JVM that has none left
_JVM_FLAGS = (
    f"-Djute.maxbuffer={MAX_REQUEST_BYTES}",
    "-Dzookeeper.jute.maxbuffer.extrasize=1048576",  # of logs and snapshots: earlier ones have more
    "-Xms16m",
    "-Xss256k",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:MaxMetaspaceSize=64m",
    "-XX:ReservedCodeCacheSize=24m",
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
)

_LOGGING = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n%throwable{short}
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
"""


def find_jars() -> list[Path]:
    """Return the ZooKeeper server's jars, which come with PySpark; `ConfigError` without it."""
    # Importing it would take a second.
    spec = importlib.util.find_spec("pyspark")
    if spec is None or not spec.submodule_search_locations:
        raise ConfigError(
            "the embedded ZooKeeper needs PySpark's jars: `pip install 'pylogctl[spark]'`, "
            "or name a ZooKeeper server to use (--zookeeper), or none (--no-zookeeper)"
        )
    directory = Path(spec.submodule_search_locations[0], "jars")
    return [_find_jar(directory, name) for name in _JARS]


def _find_jar(directory: Path, name: str) -> Path:
    found = sorted(directory.glob(f"{name}-[0-9]*.jar"))
    if not found:
        raise ConfigError(f"{directory} has no {name} jar, which the embedded ZooKeeper needs")
    return found[-1]


def _server_command(java: Java, jars: list[Path], heap_mb: int) -> list[str]:
    class_path = os.pathsep.join(str(jar) for jar in jars)
    logging_flag = f"-Dlog4j2.configurationFile={_LOGGING_FILE}"
    flags = [f"-Xmx{heap_mb}m", *_JVM_FLAGS, logging_flag, "-cp", class_path]
    return [str(java.executable), *flags, _MAIN_CLASS, _CONFIG_FILE]


def _write_settings(data_dir: Path, *, port: int, tick_ms: int, is_durable: bool) -> None:
    settings = {
        "dataDir": f"./{_SNAPSHOT_DIRECTORY}",
        "clientPort": port,
        "clientPortAddress": _HOST,
        "tickTime": tick_ms,
        "maxClientCnxns": 60,  # of one address
        "maxCnxns": 300,  # a machine has any number of loopback addresses
        "globalOutstandingLimit": 100,
        "admin.enableServer": "false",
        "4lw.commands.whitelist": "ruok,srvr,conf",  # `conf` tells it from others at its port
        "autopurge.snapRetainCount": 3,
        "autopurge.purgeInterval": 1,
        # KB by which its log files grow, by holes. More than a request: into a larger one that is
        # not flushed yet ZooKeeper writes a zero, and then it cannot read its log any more.
        "preAllocSize": 1024,
        "forceSync": "yes" if is_durable else "no",
    }
    lines = (f"{name}={value}\n" for name, value in settings.items())
    (data_dir / _CONFIG_FILE).write_text("".join(lines))
    (data_dir / _LOGGING_FILE).write_text(_LOGGING)


_LOCK_FILE = "lock"

# A server whose parent was killed gets a signal from the kernel and takes a moment to end.
_ORPHAN_GRACE_S = 10.0


def _acquire_lock(data_dir: Path) -> int:
    """Acquire a directory's lock; wait while only an orphaned server, about to end, holds it.

    Returns the descriptor, which the server inherits, so that it holds the lock as well.
    """
    fd = os.open(data_dir / _LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    deadline_s = time.monotonic() + _ORPHAN_GRACE_S
    while not _try_lock(fd):
        owner = _read_pid(fd)
        if _is_alive(owner) or time.monotonic() >= deadline_s:
            os.close(fd)
            raise LogLockedError(
                f"a ZooKeeper server of process {owner} already runs on {data_dir}"
            )
        time.sleep(0.05)
    os.ftruncate(fd, 0)
    os.pwrite(fd, b"%d\n" % os.getpid(), 0)
    return fd


def is_locked(data_dir: Path) -> bool:
    """Return whether a server runs or starts on a data directory."""
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


def _locked_by(pid: int) -> Iterator[Path]:
    """Yield the directories whose lock a process has acquired."""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                target = link.readlink()
                if target.name == _LOCK_FILE and target.read_text().strip() == str(pid):
                    yield target.parent


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


def _write_note(data_dir: Path, *, port: int, pid: int) -> None:
    temporary = data_dir / f"{NOTE_NAME}.new"
    temporary.write_text(json.dumps({"host": _HOST, "port": port, "pid": pid}) + "\n")
    temporary.replace(data_dir / NOTE_NAME)


def _remove_note(data_dir: Path) -> None:
    (data_dir / NOTE_NAME).unlink(missing_ok=True)


def _running_server(data_dir: Path) -> str | None:
    if not is_locked(data_dir):
        return None
    try:
        note = json.loads((data_dir / NOTE_NAME).read_text())
        host, port = str(note["host"]), int(note["port"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    return join_address(host, port) if _serves_directory(host, port, data_dir) else None


def _serves_directory(host: str, port: int, data_dir: Path, *, timeout_s: float = 5.0) -> bool:
    """Return whether the server at an address is the one of a data directory."""
    # a server that is still starting logs this request as an error
    expected = (data_dir / _SNAPSHOT_DIRECTORY / "version-2").resolve()
    with contextlib.suppress(OSError):
        for line in four_letter_word(host, port, "conf", timeout_s).splitlines():
            name, _, value = line.partition("=")
            if name == "dataDir":
                return Path(value).resolve() == expected
    return False


logger = logging.getLogger(__name__)

_PORT_ATTEMPTS = 5
_POLL_S = 0.05
_SESSION_CHECK_S = 1.0
_SHOWN_LOG_LINES = 5
_STOP_S = 10.0

# Pause before a server that ended by itself is started again; doubled after each failure.
_FIRST_PAUSE_S = 0.5
_MAX_PAUSE_S = 30.0
_RESTART_LIMIT_S = 30.0


@dataclass(eq=False)
class ChildProcess:
    """A child process that is terminated when this process dies.

    A thread of its own starts it and waits for it: Linux sends the death signal when the *thread*
    that forked the child ends, so that thread must live as long as the child.

    Args:
        log_file: all output is appended to it.
        environ: the whole environment.
        kept_fd: a descriptor the child inherits and keeps open.
        on_exit: called in the thread with the exit status (negative: the signal) when the process
            has ended, also after `stop`.
        mode: how the child is tied to this process, `SIGNAL` or `PIPE`.
    """

    command: Sequence[str]
    _: KW_ONLY
    directory: Path
    log_file: Path
    environ: Mapping[str, str]
    kept_fd: int
    on_exit: Callable[[int], None]
    mode: str = child_program.DEFAULT_MODE

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._start_error: OSError | None = None
        self._started = threading.Event()
        self._ended = threading.Event()

    @property
    def pid(self) -> int:
        """Return the id of the process, which has been started."""
        assert self._process is not None
        return self._process.pid

    @property
    def exit_status(self) -> int | None:
        """Return how the process ended (negative: the signal), None while it runs."""
        return self._process.returncode if self._process and self._ended.is_set() else None

    def start(self) -> None:
        """Start the process; `OSError` if the log file or the program cannot be opened."""
        self._thread = start_once(self._run, name="child-process")
        self._started.wait()
        if self._start_error:
            self._thread.join()
            raise self._start_error

    def wait(self, timeout_s: float) -> bool:
        """Wait for the process to end; return whether it has."""
        return self._ended.wait(timeout_s)

    def stop(self, timeout_s: float) -> None:
        """End the process and wait for it; SIGTERM is followed by SIGKILL after `timeout_s`."""
        self._signal(signal.SIGTERM)
        if not self._ended.wait(timeout_s):
            self._signal(signal.SIGKILL)
        self._thread.join()

    def _signal(self, number: signal.Signals) -> None:
        # The child leads a process group, which in pipe mode has two members.
        with contextlib.suppress(ProcessLookupError):
            if not self._ended.is_set():
                os.killpg(self.pid, number)

    def _run(self) -> None:
        try:
            self._process = self._spawn()
        except OSError as error:
            self._start_error = error
            return
        finally:
            self._started.set()
        with self._process as process:
            status = process.wait()
        self._ended.set()
        self.on_exit(status)

    def _spawn(self) -> subprocess.Popen[bytes]:
        script = [sys.executable, "-I", "-S", child_program.__file__]
        with self.log_file.open("ab") as output:
            return subprocess.Popen(
                [*script, self.mode, str(os.getpid()), *self.command],
                cwd=self.directory,
                env=dict(self.environ),
                stdin=subprocess.PIPE if self.mode == child_program.PIPE else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(self.kept_fd,),
                start_new_session=True,  # Ctrl-C on the terminal is for the parent alone
            )


@dataclass(eq=False)
class EmbeddedZooKeeper:
    """A ZooKeeper server on a data directory of its own.

    Args:
        data_dir: created when missing; a path inside the broker's.
        port: 0 picks a free one at each start.
        log_file: the server's warnings; `zookeeper.log` in the data directory by default.
        java: `find_java` by default.
        is_durable: fsync each write before it is acknowledged. Off for tests only.
        tick_ms: ZooKeeper's unit of time; session timeouts are clamped to 2 to 20 of them.
        is_kept_up: restart the server, on the same port, when it ends by itself.
        heap_mb: the server's memory for nodes and requests; doubled when it does not suffice.
    """

    data_dir: Path
    _: KW_ONLY
    port: int = 0
    log_file: Path | None = None
    java: Java | None = None
    is_durable: bool = True
    tick_ms: int = 2000
    is_kept_up: bool = False
    heap_mb: int = _HEAP_MB

    def __post_init__(self) -> None:
        self._data_dir = self.data_dir.absolute()
        self._port = self.port
        self._log_file = (self.log_file or self.data_dir / "zookeeper.log").absolute()
        self._lock_fd = -1  # of the lock on the data directory
        self._child: ChildProcess | None = None
        self._jars: list[Path] = []
        self._is_up = False
        self._stopped = threading.Event()

    def __enter__(self) -> EmbeddedZooKeeper:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @staticmethod
    def running(data_dir: Path) -> str | None:
        """Return `host:port` of the server that runs on a data directory, None if none responds."""
        return _running_server(data_dir.absolute())

    @staticmethod
    def run_by(pid: int) -> str | None:
        """Return `host:port` of the server that a process of this machine runs, None if none."""
        for data_dir in _locked_by(pid):  # none without /proc, or of another user's process
            if (address := _running_server(data_dir)) is not None:
                return address
        return None

    @property
    def connect(self) -> str:
        """Return the address of the started server, as `host:port`."""
        return join_address(_HOST, self._port)

    @property
    def credential_file(self) -> Path:
        """Return the file of the credential that the server's own clients have."""
        return self._data_dir / SECRET_NAME

    @property
    def pid(self) -> int | None:
        """Return the server's process id, None when it does not run."""
        child = self._child
        return child.pid if child and child.exit_status is None else None

    def start(self, timeout_s: float = 60.0) -> None:
        """Start the server, and wait until it grants a session.

        Raises `ConfigError` if Java or PySpark is missing, `LogLockedError` if another process runs
        a server on the data directory, and `CoordinationError` if the port is in use, the server
        ended (with the end of its log), or it did not serve in time.
        """
        self._jars = find_jars()
        self.java = self.java or find_java()
        self._data_dir.mkdir(parents=True, exist_ok=True)
        self._data_dir.chmod(0o700)  # snapshots have what the nodes' ACLs keep from others
        self._lock_fd = _acquire_lock(self._data_dir)
        self._stopped.clear()
        try:
            _remove_note(self._data_dir)
            make_credential(self.credential_file)
            self._set_up(self._start_on_some_port(time.monotonic() + timeout_s))
        except BaseException:
            self.stop()
            raise

    def stop(self, timeout_s: float = _STOP_S) -> None:
        """Stop the server, killed after a timeout; does nothing when it does not run."""
        self._is_up = False
        self._stopped.set()
        while (child := self._child) is not None:
            child.stop(timeout_s)  # also joins its thread, which may be starting another one
            if self._child is child:
                self._child = None
                _remove_note(self._data_dir)
        if self._lock_fd >= 0:
            os.ftruncate(self._lock_fd, 0)
            os.close(self._lock_fd)
            self._lock_fd = -1

    def _set_up(self, child: ChildProcess) -> None:
        _write_note(self._data_dir, port=self._port, pid=child.pid)
        self._is_up = True

    def _start_on_some_port(self, deadline_s: float) -> ChildProcess:
        for _ in range(_PORT_ATTEMPTS - 1):
            try:
                return self._start_on(self._pick_port(), deadline_s)
            except _PortTakenError:
                if self.port != 0:
                    raise
        return self._start_on(self._pick_port(), deadline_s)

    def _pick_port(self) -> int:
        with socket.socket() as probe:
            # As Java does: a port whose last connections linger is not in use.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((_HOST, self.port))
            except OSError as error:
                raise self._bind_error(error) from error
            port: int = probe.getsockname()[1]
            return port

    def _bind_error(self, error: OSError) -> CoordinationError:
        address = join_address(_HOST, self.port)
        if error.errno == errno.EADDRINUSE:
            return _PortTakenError(f"cannot start ZooKeeper at {address}: the port is in use")
        return CoordinationError(f"cannot start ZooKeeper at {address}: {error.strerror}")

    def _start_on(self, port: int, deadline_s: float) -> ChildProcess:
        self._port = port
        _write_settings(self._data_dir, port=port, tick_ms=self.tick_ms, is_durable=self.is_durable)
        log_position = self._log_file.stat().st_size if self._log_file.exists() else 0
        assert self.java is not None
        child = ChildProcess(
            _server_command(self.java, self._jars, self.heap_mb),
            directory=self._data_dir,
            log_file=self._log_file,
            # Without a UTF-8 locale Java cannot name files outside ASCII.
            environ={**os.environ, "LC_ALL": "C.UTF-8"},
            kept_fd=self._lock_fd,
            on_exit=self._on_exit,
        )
        child.start()
        self._child = child
        while not self._is_serving():
            if child.wait(_POLL_S):
                if self._grow_heap(child.exit_status):
                    return self._start_on(port, deadline_s)
                raise self._ended_error(child.exit_status, log_position)
            if time.monotonic() >= deadline_s or self._stopped.is_set():
                child.stop(_STOP_S)
                raise CoordinationError(
                    f"ZooKeeper at {self.connect} did not serve in time; see {self._log_file}"
                )
        return child

    def _grow_heap(self, status: int | None) -> bool:
        """Return whether a server that ended has more memory when it is started again."""
        if status != _OUT_OF_MEMORY or 2 * self.heap_mb > _MAX_HEAP_MB:
            return False
        self.heap_mb *= 2
        logger.warning("the embedded ZooKeeper needs more memory: %d MB now", self.heap_mb)
        return True

    def _is_serving(self) -> bool:
        """Return whether our server, and not another on the same port, grants sessions."""
        try:
            socket.create_connection((_HOST, self._port), timeout=1.0).close()
        except OSError:
            return False
        # The timeout also bounds the wait for a listener that accepts and sends nothing.
        session = Session(
            self.connect,
            session_timeout_ms=int(_SESSION_CHECK_S * 1000),
            request_timeout_s=_SESSION_CHECK_S,
            security=ZooKeeperSecurity(),
        )
        try:
            session.start(_SESSION_CHECK_S)
            session.exists("/")
        except RegistryUnreachableError:
            return False
        finally:
            session.stop()
        return _serves_directory(_HOST, self._port, self._data_dir)

    def _ended_error(self, status: int | None, log_position: int) -> CoordinationError:
        with self._log_file.open("rb") as log:
            log.seek(log_position)
            lines = log.read().decode(errors="replace").split("\n")
        shown = "\n".join([line for line in lines if line.strip()][-_SHOWN_LOG_LINES:])
        message = f"ZooKeeper at {self.connect} ended with status {status}; {self._log_file}:"
        kind = _PortTakenError if "BindException" in shown else CoordinationError
        return kind(f"{message}\n{shown}")

    def _on_exit(self, status: int) -> None:
        """Log the end of the server and restart it if wanted; runs in the thread of the child."""
        if not self._is_up or self._stopped.is_set():
            return
        self._is_up = False
        logger.error(
            "embedded ZooKeeper at %s ended with status %d; see %s",
            self.connect,
            status,
            self._log_file,
        )
        self._grow_heap(status)
        if self.is_kept_up:
            self._restart()

    def _restart(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopped.wait(pause_s):
            try:
                self._set_up(self._start_on(self._port, time.monotonic() + _RESTART_LIMIT_S))
            except (CoordinationError, OSError) as error:
                if not self._stopped.is_set():
                    logger.error("cannot restart the embedded ZooKeeper: %s", error)
                pause_s = min(2 * pause_s, _MAX_PAUSE_S)
            else:
                logger.warning("embedded ZooKeeper at %s is up again", self.connect)
                return


class _PortTakenError(CoordinationError):
    """Another process listens on the port."""
