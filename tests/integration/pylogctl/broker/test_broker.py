"""`pylogctl broker`."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from broker import Broker
from broker.client.connection import Connection
from broker.log.data_directory import ZOOKEEPER_NAME
from broker.log.format import segment_name
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition
from broker.zk.embedded import EmbeddedZooKeeper
from broker.zk.java import Java
from broker.zk.session import Session
from pylogctl.broker.stop import is_running
from pylogctl.cli.environment import ExitStatus
from tests.integration.broker.server.peer import Peer
from tests.support.command_line import Invoke, Process, Spawn
from tests.support.waiting import wait_until

_NOTES_OF_A_SLOW_START = re.compile(
    r"^waiting for (the embedded ZooKeeper to start|the broker to open .* and register)\n", re.M
)


class Served:
    """A broker that runs as a process, and the fields of its READY line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        if not line:
            _, errors = process.communicate(timeout=60)
            pytest.fail(f"the broker did not start: {errors.decode()}")
        if line.startswith("{"):
            self.fields = {name: str(value) for name, value in json.loads(line).items()}
        else:
            word, *fields = line.split()
            assert word == "READY"
            self.fields = dict(field.split("=", 1) for field in fields)
        self.address = f"{self.fields['host']}:{self.fields['port']}"

    def end(self, signum: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Stop it by a signal; return its exit status and what it said."""
        self.process.send_signal(signum)
        return self.ended()

    def ended(self) -> tuple[int, str]:
        """Wait for its end; return its exit status and what it said, but for slowness."""
        _, stderr = self.process.communicate(timeout=60)
        return self.process.returncode, _NOTES_OF_A_SLOW_START.sub("", stderr.decode())


@pytest.fixture
def serve(spawn: Spawn) -> Iterator[Callable[..., Served]]:
    """Run `broker start` with some options; stopped at the end."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*args: str, **options: object) -> Served:
        process = spawn("broker", "start", "--port", "0", *args, **options)
        started.append(process)
        return Served(process)

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


@pytest.mark.parametrize("signum", [signal.SIGTERM, signal.SIGINT])
def test_start_when_told_to_stop_by_a_signal_ends_cleanly(
    serve: Callable[..., Served], tmp_path: Path, signum: signal.Signals
) -> None:
    broker = serve("--no-zookeeper", "--data", str(tmp_path / "data"))
    assert broker.fields["broker"] == "0"
    assert broker.fields["zookeeper"] == "-"
    assert broker.fields["pid"] == str(broker.process.pid)
    assert broker.fields["data"] == str(tmp_path / "data")
    assert broker.end(signum) == (0, "")
    assert (tmp_path / "data" / ".pylog_clean_shutdown").exists()


@pytest.fixture
def without_jars(tmp_path: Path) -> dict[str, str]:
    """An environment in which the jars of ZooKeeper are not found."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "pyspark.py").write_text("")
    return {"PYTHONPATH": str(tmp_path / "plain")}


def test_start_where_no_zookeeper_can_run_then_stands_alone_and_says_so(
    serve: Callable[..., Served], tmp_path: Path, without_jars: dict[str, str]
) -> None:
    broker = serve("--data", str(tmp_path / "data"), env=without_jars)
    assert broker.fields["zookeeper"] == "-"
    status, stderr = broker.end()
    assert status == 0
    assert re.match(r"no ZooKeeper, so no groups.*pip install 'pylogctl\[spark\]'.*\n$", stderr)


@pytest.mark.parametrize("is_asked_for", [True, False])
def test_start_where_no_zookeeper_can_run_and_one_is_needed_then_fails(
    run_process: Invoke, tmp_path: Path, without_jars: dict[str, str], is_asked_for: bool
) -> None:
    data = tmp_path / "data"
    args = ["--zookeeper-port", "0"] if is_asked_for else []
    if not is_asked_for:  # the registry of topics and groups, which a start without it would lose
        (data / ZOOKEEPER_NAME).mkdir(parents=True)
    result = run_process(
        "broker", "start", "--port", "0", "--data", str(data), *args, env=without_jars
    )
    assert result.status == ExitStatus.CONFIG
    assert "needs PySpark's jars" in result.stderr


def test_start_ephemeral_leaves_nothing_behind(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    broker = serve("--ephemeral", "--output", "json", env={"TMPDIR": str(tmp_path)})
    assert broker.fields["zookeeper"] == "None"
    assert Path(broker.fields["data"]).is_relative_to(tmp_path)
    assert broker.end()[0] == 0
    assert not list(tmp_path.glob("pylogctl-*"))


def test_start_ephemeral_does_not_heed_the_registry_of_the_environment(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    environment = {"TMPDIR": str(tmp_path), "PYLOGCTL_ZOOKEEPER": "127.0.0.1:1"}
    assert serve("--ephemeral", env=environment).fields["zookeeper"] == "-"


@pytest.mark.parametrize(
    ("options", "zookeeper", "credential"),
    [
        (["--ephemeral"], "", ""),
        (["--no-zookeeper"], "", ""),
        (["--zookeeper-port", "0"], "embedded", ""),
        ([], "127.0.0.1:1", "/zk.secret"),
        (["-Z", "zk1:2181", "--zk-credential", "/other"], "zk1:2181", "/other"),
    ],
)
def test_start_heeds_the_current_context_only_if_no_option_says_which_registry(
    invoke: Invoke, options: list[str], zookeeper: str, credential: str
) -> None:
    invoke("context", "add", "prod", "-Z", "127.0.0.1:1", "--zk-credential", "/zk.secret")
    invoke("context", "use", "prod")

    dumped = invoke("broker", "start", *options, "-X", "dump", "--output", "json")

    found = {row["property"]: row["value"] for row in json.loads(dumped.stdout)["data"]}
    assert found["zk.connect"] == zookeeper
    assert (found["zookeeper.credential.file"] or "") == credential


def test_start_tells_readiness_to_a_file_and_a_descriptor(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    broker = serve(
        "--ephemeral", "--ready-file", str(tmp_path / "ready"), "--ready-fd", str(writer),
        pass_fds=[writer],
    )  # fmt: skip
    os.close(writer)
    with os.fdopen(reader) as pipe:
        line = pipe.read()
    assert line == (tmp_path / "ready").read_text()
    assert f"port={broker.fields['port']} " in line


def test_start_when_systemd_asks_for_it_then_is_told_of_readiness_and_of_the_stop(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        manager.settimeout(60)
        broker = serve("--ephemeral", env={"NOTIFY_SOCKET": str(tmp_path / "notify")})
        assert manager.recv(100) == b"READY=1"
        assert broker.end()[0] == 0
        assert manager.recv(100) == b"STOPPING=1"


def test_start_in_the_background_returns_when_ready(run_process: Invoke, tmp_path: Path) -> None:
    pid_file, log_file = tmp_path / "pid", tmp_path / "log"
    result = run_process(
        "broker", "start", "--ephemeral", "--daemon", "--pid-file", str(pid_file),
        "--log-file", str(log_file), env={"TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert (result.status, result.stderr) == (0, "")
    assert result.text.startswith("READY broker=0 ")
    pid = int(pid_file.read_text())
    assert is_running(pid)
    stopped = run_process("broker", "stop", "--pid-file", str(pid_file), "--yes")
    assert stopped.status == 0
    assert f"stopped process {pid} in " in stopped.stderr
    assert not is_running(pid)
    assert not pid_file.exists()
    assert "broker 0 is down" in log_file.read_text()


def test_start_in_the_background_that_fails_says_why(
    run_process: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    serve("--no-zookeeper", "--data", str(tmp_path / "data"))
    args = ("--no-zookeeper", "--port", "0", "--data", str(tmp_path / "data"), "--daemon")
    result = run_process("broker", "start", *args)
    assert result.status == ExitStatus.CONFLICT
    assert "is in use by process" in result.stderr


def test_start_on_a_directory_in_use_names_the_holder(
    run_process: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    broker = serve("--no-zookeeper", "--data", str(tmp_path / "data"))
    args = ("--no-zookeeper", "--port", "0", "--data", str(tmp_path / "data"))
    result = run_process("broker", "start", *args)
    assert (result.status, result.stdout) == (ExitStatus.CONFLICT, b"")
    assert f"in use by process {broker.process.pid} (broker 0)" in result.stderr


def test_start_on_a_port_in_use_is_a_conflict(run_process: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = run_process("broker", "start", "--ephemeral", "--port", port)
    assert result.status == ExitStatus.CONFLICT
    assert f"cannot listen on 127.0.0.1:{port}" in result.stderr


def test_start_without_its_registry_is_unreachable(run_process: Invoke, tmp_path: Path) -> None:
    args = ("-Z", "127.0.0.1:1", "-X", "zk.connectiontimeout.ms=300", "--port", "0")
    result = run_process("broker", "start", *args, "--data", str(tmp_path / "data"))
    assert result.status == ExitStatus.UNREACHABLE
    assert "cannot reach ZooKeeper at 127.0.0.1:1" in result.stderr


def test_start_ephemeral_when_a_file_names_directories_then_warns_that_they_are_not_used(
    invoke: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "server.properties"
    file.write_text("log.dirs=/data\n")

    result = invoke("broker", "start", "--ephemeral", "--config", str(file), "--check-config")

    assert result.status == 0
    assert f"{file}: log.dirs is not used" in result.stderr


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["-X", "num.partition=3"], ExitStatus.CONFIG, "did you mean 'num.partitions'?"),
        (["-X", "num.partitions=x"], ExitStatus.CONFIG, "must be a whole number"),
        (["-X", "nope=1"], ExitStatus.CONFIG, "try: pylogctl broker start -X list"),
        (["--config", "/no/such"], ExitStatus.CONFIG, "/no/such"),
        (["--ephemeral", "--data", "d"], ExitStatus.USAGE, "--data cannot be used"),
        (["--ephemeral", "-X", "log.dirs=d"], ExitStatus.USAGE, "-X log.dirs cannot be used"),
        (["--no-zookeeper", "-Z", "h:1"], ExitStatus.USAGE, "--zookeeper cannot be used"),
        (["--port", "70000"], ExitStatus.USAGE, "--port"),
        (["--zookeeper-port", "0", "-Z", "h:1"], ExitStatus.USAGE, "is for the embedded ZooKeeper"),
        (["--zookeeper-port", "0", "--no-zookeeper"], ExitStatus.USAGE, "which is not used here"),
    ],
)
def test_start_with_wrong_settings_says_what_is_wrong(
    invoke: Invoke, args: list[str], status: ExitStatus, message: str
) -> None:
    result = invoke("broker", "start", *args)
    assert result.status == status
    assert message in result.stderr


def test_start_with_a_port_for_its_registry_does_not_heed_the_registry_of_the_environment(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYLOGCTL_ZOOKEEPER", "127.0.0.1:1")
    text = invoke("broker", "start", "--zookeeper-port", "0", "-X", "dump").text
    (row,) = (line.split() for line in text.splitlines() if line.startswith("zk.connect "))
    assert row[-2:] == ["embedded", "option"]


def test_check_config_starts_nothing(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_text("num.partitions=4\n")
    result = invoke("broker", "start", "--config", str(path), "--check-config")
    assert (result.status, result.stderr) == (0, "the configuration is valid\n")


def test_settings_go_from_option_over_property_over_file(invoke: Invoke, tmp_path: Path) -> None:
    path = tmp_path / "server.toml"
    path.write_text('port = 1\nnum.partitions = 4\nbrokerid = 5\n[log]\ndir = "/d"\n')
    args = ("--config", str(path), "-X", "port=2", "-X", "brokerid=6", "--id", "7", "-X", "dump")
    text = invoke("broker", "start", *args).text
    rows = {line.split()[0]: line.split()[2:] for line in text.splitlines()}
    assert rows["brokerid"] == ["7", "option"]
    assert rows["port"] == ["2", "-X"]
    assert rows["num.partitions"] == ["4", str(path)]
    assert rows["num.threads"][-1] == "default"


def test_status_names_what_is_wrong_with_a_partition(
    invoke: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    directory = tmp_path / "data" / "events_0"
    directory.mkdir(parents=True)
    for base in (0, 5):
        (directory / segment_name(base)).write_bytes(b"x")
    broker = serve("--no-zookeeper", "--data", str(tmp_path / "data"))
    result = invoke("broker", "status", "-b", broker.address, "--output", "json")
    (record,) = json.loads(result.text)["data"]
    assert (result.status, record["failing"]) == (0, 1)
    (failure,) = record["failures"]
    assert (failure["topic"], failure["partition"]) == ("events", "0-0")
    assert "events[0-0] is offline: a gap" in failure["error"]
    assert failure["error"] in result.stderr


STEPS = [
    "deregister",
    "wait for clients",
    "refuse appends",
    "flush",
    "close connections",
    "close logs",
    "checkpoint",
    "marker",
    "exit",
]


def test_stop_asks_the_broker_and_tells_its_steps(
    invoke: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    broker = serve("--no-zookeeper", "--data", str(tmp_path / "data"))
    result = invoke("broker", "stop", "0", "-b", broker.address, "--yes", "--output", "jsonl")
    assert result.status == 0
    assert not is_running(broker.process.pid)
    found = [json.loads(line) for line in result.text.splitlines()]
    assert [one["step"] for one in found] == STEPS
    assert {(one["done"], one["note"]) for one in found} == {(True, None)}
    told = result.stderr.splitlines()
    assert [line.split(":")[0] for line in told[:-1]] == STEPS
    assert told[-1].startswith(f"stopped broker 0 at {broker.address} in ")
    assert broker.ended() == (0, "")
    assert (tmp_path / "data" / ".pylog_clean_shutdown").exists()


@pytest.mark.parametrize("form", ["table", "json"])
def test_stop_tells_its_steps_in_the_format_asked_for(
    invoke: Invoke, serve: Callable[..., Served], form: str
) -> None:
    broker = serve("--ephemeral")
    words = ("-b", broker.address, "--yes", "--force", "--output", form)
    assert "checkpoint" in invoke("broker", "stop", *words).text


def test_stop_of_the_broker_with_the_registry_ends_both_and_leaves_nothing_behind(
    invoke: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    options = ("--zookeeper-port", "0", "--data", str(tmp_path / "data"))
    broker = serve(*options)
    result = invoke("broker", "stop", "-Z", broker.fields["zookeeper"], "--yes")
    assert result.status == 0
    assert "leave the registry: " in result.stderr
    again = serve(*options)  # at once: nothing of the first one is in the way
    assert invoke("broker", "list", "-Z", again.fields["zookeeper"]).status == 0
    assert again.end()[0] == 0


@pytest.fixture
def two_brokers(serve: Callable[..., Served], tmp_path: Path) -> tuple[Served, Served]:
    """A broker with an embedded ZooKeeper, and one that uses that."""
    pid_file = str(tmp_path / "pid")
    first = serve(
        "--zookeeper-port", "0", "--data", str(tmp_path / "d0"), "--pid-file", pid_file
    )  # fmt: skip
    zookeeper = first.fields["zookeeper"]
    return first, serve("--id", "1", "-Z", zookeeper, "--data", str(tmp_path / "d1"))


@pytest.mark.zookeeper
def test_stop_of_the_broker_with_the_registry_while_others_use_it_is_refused(
    invoke: Invoke, two_brokers: tuple[Served, Served], tmp_path: Path
) -> None:
    zookeeper = two_brokers[0].fields["zookeeper"]
    with Session(zookeeper) as session:
        session.create("/consumers/g/ids/m", b"{}", ephemeral=True)
        for place in (["0", "-Z", zookeeper], ["-b", two_brokers[0].address]):
            result = invoke("broker", "stop", *place, "--yes")
            assert result.status == ExitStatus.CONFLICT
            users = "used by broker 1, 1 member of group 'g'"
            assert f"runs the ZooKeeper of the cluster, {zookeeper}, {users}" in result.stderr
        assert invoke("broker", "stop", *place, "--dry-run").status == ExitStatus.CONFLICT
        by_process = invoke("broker", "stop", "--pid-file", str(tmp_path / "pid"), "--yes")
        assert by_process.status == ExitStatus.CONFLICT
        assert "used by brokers 0, 1, 1 member of group 'g'" in by_process.stderr
    assert two_brokers[0].process.poll() is None


@pytest.mark.zookeeper
def test_stop_of_the_broker_with_the_registry_when_told_to_or_unused_says_that_it_ends(
    invoke: Invoke, two_brokers: tuple[Served, Served]
) -> None:
    first, second = two_brokers
    zookeeper = first.fields["zookeeper"]
    arguments = ("broker", "stop", "0", "-Z", zookeeper)
    assert invoke("broker", "stop", "1", "-Z", zookeeper, "--yes").status == 0
    assert second.ended()[0] == 0
    what = f"broker 0 at {first.address} and the ZooKeeper that it runs, {zookeeper}"
    assert invoke(*arguments, "--dry-run").stderr == f"would stop {what}\n"
    with Session(zookeeper) as session:
        session.create("/consumers/g/ids/m", b"{}", ephemeral=True)
        result = invoke(*arguments, "--yes", "--with-zookeeper")
    assert (result.status, f"stopped {what} in " in result.stderr) == (0, True)
    assert "warning: broker 0" in result.stderr


def test_stop_when_a_step_fails_is_partial_and_says_which(
    invoke: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    data = tmp_path / "data"
    broker = serve("--no-zookeeper", "--data", str(data))
    (data / ".pylog_clean_shutdown").mkdir()  # so that no such file can be written
    result = invoke("broker", "stop", "-b", broker.address, "--yes", "--force")
    assert result.status == ExitStatus.PARTIAL
    assert "marker: failed after " in result.stderr
    assert f"cannot mark {data} clean" in result.stderr
    assert "has stopped, but these steps failed: marker" in result.stderr
    assert "its next start recovers the logs" in result.stderr


@pytest.mark.zookeeper
def test_stop_when_zookeeper_is_away_then_says_that_the_registration_vanishes_and_logs_are_safe(
    invoke: Invoke, serve: Callable[..., Served], java: Java, tmp_path: Path
) -> None:
    with EmbeddedZooKeeper(tmp_path / "zookeeper", java=java, is_durable=False) as zookeeper:
        registry = zookeeper.connect
        broker = serve("--data", str(tmp_path / "data"), "-Z", registry)
        created = invoke(
            "topic", "create", "t", "--partitions", "1", "--replication-factor", "1", "-Z", registry
        )
        assert created.status == 0, created.stderr
    result = invoke("broker", "stop", "-b", broker.address, "--yes", "--timeout", "2m")
    assert result.status == ExitStatus.PARTIAL
    assert "registration of broker 0 vanishes with its session" in result.stderr
    assert "these steps failed: move leaderships, deregister\n" in result.stderr
    assert "recovers" not in result.stderr
    assert broker.ended()[0] == 0


def test_stop_with_force_does_not_wait_for_clients(
    invoke: Invoke, serve: Callable[..., Served]
) -> None:
    broker = serve("--ephemeral")
    result = invoke("broker", "stop", "-b", broker.address, "--yes", "--force")
    assert result.status == 0
    assert "wait for clients" not in result.stderr
    assert "flush: " in result.stderr


def test_stop_without_confirmation_declines(invoke: Invoke, running_broker: Broker) -> None:
    result = invoke("broker", "stop", "-b", f"127.0.0.1:{running_broker.port}")
    assert result.status == ExitStatus.DECLINED
    assert "add --yes" in result.stderr


def test_stop_with_dry_run_changes_nothing(invoke: Invoke, running_broker: Broker) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    result = invoke("broker", "stop", "-b", address, "--dry-run")
    assert (result.status, result.stderr) == (0, f"would stop broker 0 at {address}\n")
    assert not running_broker.wait_for_shutdown_request(0)


def test_stop_of_an_unknown_broker_is_not_found(invoke: Invoke, running_broker: Broker) -> None:
    result = invoke("broker", "stop", "3", "-b", f"127.0.0.1:{running_broker.port}", "--yes")
    assert result.status == ExitStatus.NOT_FOUND
    assert "broker '3' not found" in result.stderr
    assert "known brokers: 0" in result.stderr


def test_stop_that_takes_too_long_kills_nothing(invoke: Invoke, running_broker: Broker) -> None:
    # Nobody in this process acts on the request, so the broker never stops.
    address = f"127.0.0.1:{running_broker.port}"
    result = invoke("broker", "stop", "-b", address, "--yes", "--timeout", "2s")
    assert result.status == ExitStatus.TIMEOUT
    assert f"broker 0 at {address} did not stop within 2.000s" in result.stderr
    assert "nothing was killed; it may still be stopping" in result.stderr
    assert "try: pylogctl broker stop 0 --force" in result.stderr
    assert invoke("broker", "status", "-b", address).status == 0


@contextmanager
def busy_client(port: int) -> Iterator[None]:
    """A producer of 0.7 that does not move on while a broker wants to stop."""
    is_over = threading.Event()
    peer = Peer(port)

    def send() -> None:
        peer.produce("events", encode([b"one message"]))

    def send_on() -> None:
        with suppress(OSError), peer:
            while not is_over.wait(0.02):
                send()

    send()
    with Peer(port) as other:
        wait_until(lambda: other.status()["bytes"], "the append")
    thread = threading.Thread(target=send_on)
    thread.start()
    yield
    is_over.set()
    thread.join()


def test_stop_with_kill_ends_a_process_of_this_machine_that_takes_too_long(
    invoke: Invoke, serve: Callable[..., Served], tmp_path: Path
) -> None:
    broker = serve("--no-zookeeper", "--data", str(tmp_path / "data"))
    words = ("broker", "stop", "-b", broker.address, "--yes", "--timeout", "2s", "--kill")
    with busy_client(int(broker.fields["port"])):
        result = invoke(*words)
    assert result.status == 0
    pid = broker.process.pid
    assert f"warning: killed process {pid}; the next start recovers its logs" in result.stderr
    assert broker.ended()[0] == -signal.SIGKILL


def test_stop_with_kill_of_a_process_that_is_not_known_here_kills_nothing(
    invoke: Invoke, running_broker: Broker
) -> None:
    (running_broker.config.data_dir / ".lock").unlink()  # as if it were on another machine
    address = f"127.0.0.1:{running_broker.port}"
    result = invoke("broker", "stop", "-b", address, "--yes", "--timeout", "2s", "--kill")
    assert result.status == ExitStatus.TIMEOUT
    assert "nothing was killed" in result.stderr
    assert "try: --pid-file FILE" in result.stderr


def test_stop_by_pid_file_that_takes_too_long_kills_only_when_told(
    invoke: Invoke, tmp_path: Path
) -> None:
    pid_file = tmp_path / "pid"
    with Process(
        ["sh", "-c", "trap '' TERM; echo ready; while :; do sleep 1; done"], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        pid_file.write_text(f"{process.pid}\n")
        args = ("broker", "stop", "--pid-file", str(pid_file), "--yes", "--timeout", "100ms")
        result = invoke(*args)
        assert result.status == ExitStatus.TIMEOUT
        assert "nothing was killed" in result.stderr
        assert process.poll() is None
        assert invoke(*args, "--kill").status == 0
        assert process.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("text", "status"), [("x", ExitStatus.CONFIG), ("999999999", ExitStatus.NOT_FOUND)]
)
def test_stop_by_a_pid_file_of_nobody_fails(
    invoke: Invoke, tmp_path: Path, text: str, status: ExitStatus
) -> None:
    (tmp_path / "pid").write_text(text)
    result = invoke("broker", "stop", "--pid-file", str(tmp_path / "pid"), "--yes")
    assert result.status == status


def test_status_shows_what_the_broker_says(invoke: Invoke, running_broker: Broker) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    result = invoke("broker", "status", "-b", address, "--output", "json")
    (record,) = json.loads(result.text)["data"]
    assert (record["id"], record["address"], record["phase"]) == (0, address, "running")
    assert record["pid"] == os.getpid()
    assert record["is_clean_start"] is True
    assert "SocketServerStats" in record["metrics"]


def test_status_of_a_topic_without_messages_counts_its_partitions(
    invoke: Invoke, running_broker: Broker
) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    invoke("topic", "create", "t", "-b", address, "--partitions", "3")
    result = invoke("broker", "status", "-b", address, "--output", "json")
    (record,) = json.loads(result.text)["data"]
    assert (record["topics"], record["partitions"]) == (1, 3)


@pytest.mark.zookeeper
def test_status_of_several_brokers_shows_those_that_are_there(
    invoke: Invoke, two_brokers: tuple[Served, Served]
) -> None:
    names = ("-Z", two_brokers[0].fields["zookeeper"], "--output", "name")
    both = invoke("broker", "status", "1", "0", "1", *names)
    assert (both.status, both.text.split()) == (0, ["1", "0"])
    one = invoke("broker", "status", "1", "7", *names)
    assert (one.status, one.text.split()) == (ExitStatus.PARTIAL, ["1"])
    assert one.stderr == "error: broker '7' not found\n"
    none = invoke("broker", "status", "7", *names)
    assert (none.status, none.text) == (ExitStatus.NOT_FOUND, "")


def test_status_of_a_broker_that_is_down_is_unreachable(invoke: Invoke) -> None:
    result = invoke("broker", "status", "-b", "0:127.0.0.1:1", "--timeout", "300ms")
    assert result.status == ExitStatus.UNREACHABLE
    assert "cannot reach" in result.stderr


def test_status_of_something_else_says_that_it_is_no_broker(invoke: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(1)

        thread = threading.Thread(target=answer)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = invoke("broker", "status", "-b", address)
        thread.join(timeout=60)
    assert result.status == ExitStatus.REMOTE
    assert "does not speak the log protocol (first bytes: 'HTTP')" in result.stderr


def test_status_of_what_closes_its_connections_asks_whether_it_is_a_broker(invoke: Invoke) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_all() -> None:  # as ZooKeeper does, after what is no request of its own
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1 << 16)

        thread = threading.Thread(target=close_all)
        thread.start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        result = invoke("broker", "status", "-b", address)
        server.shutdown(socket.SHUT_RDWR)
        thread.join(timeout=60)
    assert result.status == ExitStatus.UNREACHABLE
    hint = "is it a broker's port? one that speaks TLS wants --tls; a ZooKeeper's is given with -Z"
    assert f"  {hint}\n" in result.stderr


def test_list_of_given_brokers_shows_them(invoke: Invoke, running_broker: Broker) -> None:
    address = f"127.0.0.1:{running_broker.port}"
    text = invoke("broker", "list", "-b", address, "--output", "csv").text
    header, row = text.splitlines()
    assert header == "id,host,port,creator,since,session,topics,state,first_topics"
    assert row.startswith(f"0,127.0.0.1,{running_broker.port},,20")


@pytest.mark.zookeeper
def test_start_brings_a_registry_along_and_keeps_it_over_restarts(
    serve: Callable[..., Served], invoke: Invoke, tmp_path: Path
) -> None:
    args = ("--zookeeper-port", "0", "--data", str(tmp_path / "data"))
    broker = serve(*args)
    zookeeper = broker.fields["zookeeper"]
    (listed,) = json.loads(invoke("broker", "list", "-Z", zookeeper, "--output", "json").text)[
        "data"
    ]
    assert (listed["id"], listed["port"]) == (0, int(broker.fields["port"]))
    status = invoke("broker", "status", "-Z", zookeeper, "--columns", "session,is_registered")
    assert status.text.splitlines()[1].split() == ["connected", "yes"]
    assert invoke("broker", "stop", "-Z", zookeeper, "--yes").status == 0
    assert broker.ended()[0] == 0
    assert EmbeddedZooKeeper.running(tmp_path / "data" / "zookeeper") is None
    again = serve(*args)
    assert invoke("broker", "list", "-Z", again.fields["zookeeper"], "-q").status == 0


@pytest.mark.zookeeper
def test_second_broker_with_the_same_id_is_a_conflict(
    serve: Callable[..., Served], run_process: Invoke, tmp_path: Path
) -> None:
    first = serve("--zookeeper-port", "0", "--data", str(tmp_path / "a"))
    args = ("-Z", first.fields["zookeeper"], "--port", "0", "--data", str(tmp_path / "b"))
    result = run_process("broker", "start", *args, "-X", "zk.sessiontimeout.ms=3000")
    assert result.status == ExitStatus.CONFLICT
    assert first.address in result.stderr


@pytest.mark.zookeeper
def test_registry_port_in_use_is_a_conflict_with_a_way_out(
    run_process: Invoke, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        args = ("--zookeeper-port", port, "--port", "0", "--data", str(tmp_path / "data"))
        result = run_process("broker", "start", *args)
    assert result.status == ExitStatus.CONFLICT
    assert "--zookeeper-port 0 picks a free port" in result.stderr


def metrics_address(broker: Served) -> str:
    """Return where a broker says that its metrics are; other lines may be before it."""
    assert broker.process.stderr is not None
    lines = iter(broker.process.stderr.readline, b"")
    found = (re.search(r"metrics at (\S+)", one.decode()) for one in lines)
    return next(filter(None, found))[1]


def test_start_with_a_port_for_metrics_serves_what_happened_to_the_messages(
    serve: Callable[..., Served], run_process: Invoke
) -> None:
    broker = serve("--ephemeral", "--metrics-port", "0", "--output", "json")
    assert run_process("produce", "t", "--broker", broker.address, stdin=b"a\nb\n").status == 0
    text = urllib.request.urlopen(metrics_address(broker), timeout=60).read().decode()
    samples = {
        (sample.name, tuple(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["pylogctl_broker_messages_received_total", ("t",)] == 2
    assert samples["pylogctl_log_end_offset_bytes", ("t", "0-0")] > 0
    assert samples["pylogctl_broker_request_local_seconds_count", ("produce",)] >= 1
    assert samples["pylogctl_broker_requests_total", ("publish",)] >= 1
    assert samples["pylogctl_broker_connections_accepted_total", ()] >= 1
    assert samples["pylogctl_broker_state", ()] == 3
    assert samples["pylogctl_scrape_errors_total", ()] == 0


@pytest.mark.zookeeper
def test_start_with_rules_and_logins_serves_metrics_to_all_and_nothing_else(
    serve: Callable[..., Served], run_process: Invoke, zookeeper: str
) -> None:
    closed = ("acl.enable=true", "super.users=User:root", "authentication.required=true")
    settings = (word for one in closed for word in ("-X", one))
    broker = serve("--ephemeral", "--metrics-port", "0", "-Z", zookeeper, *settings)
    text = urllib.request.urlopen(metrics_address(broker), timeout=60).read()
    assert b"pylogctl_broker_state" in text
    listed = run_process("topic", "list", "--broker", broker.address)
    assert listed.status == ExitStatus.LOGIN


def test_start_with_no_metrics_of_partitions_serves_the_others(
    serve: Callable[..., Served], run_process: Invoke
) -> None:
    broker = serve("--ephemeral", "--metrics-port", "0", "--metrics-no-partitions")
    assert run_process("produce", "t", "--broker", broker.address, stdin=b"a\nb\n").status == 0
    text = urllib.request.urlopen(metrics_address(broker), timeout=60).read().decode()
    assert 'pylogctl_broker_messages_received_total{topic="t"} 2' in text
    assert "pylogctl_log_directory_free_bytes" in text
    assert "pylogctl_log_end_offset_bytes" not in text
    assert "partition=" not in text


def test_started_broker_shows_its_log_when_told_to(
    serve: Callable[..., Served], run_process: Invoke
) -> None:
    broker = serve("--ephemeral", "-v", "--log-format", "json", "-X", "brokerid=5")
    address = ("-b", broker.address)
    assert run_process("produce", "t", *address, stdin=b"a\n").status == 0
    assert (
        run_process("topic", "delete", "t", "--data", "--yes", "--confirm", "t", *address).status
        == 0
    )
    _, errors = broker.end()
    lines = [json.loads(line) for line in errors.splitlines()]
    assert {line["broker"] for line in lines if "time" in line} == {5}
    assert any(line["message"] == "broker 5 is down" for line in lines)
    assert [line["topic"] for line in lines if line["message"] == "deleted topic 't'"] == ["t"]


def test_status_when_a_disk_fails_then_warns_of_its_directory_once_and_lists_all(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    dirs = (tmp_path / "a", tmp_path / "b")
    broker = start_broker(data_dirs=dirs, num_partitions=4, checkpoint_interval_ms=20)
    with closing(Connection(BrokerAddress(-1, "127.0.0.1", broker.port))) as connection:
        connection.call(CreateTopicRequest("t"))
        for index in range(4):
            sets = (PartitionSet(TopicPartition("t", 0, index), encode([b"x"])),)
            connection.call(PublishRequest(Acks.COMMITTED, 10_000, sets))
    dirs[1].rename(tmp_path / "gone")
    wait_until(
        lambda: broker.status()["metrics"]["LogManager"]["OfflineLogDirectoryCount"], "the failure"
    )

    result = invoke("broker", "status", "-b", f"127.0.0.1:{broker.port}", "--output", "json")

    (record,) = json.loads(result.stdout)["data"]
    assert [one["partitions"] for one in record["directories"]] == [2, 2]
    assert [bool(one["error"]) for one in record["directories"]] == [False, True]
    assert (record["failing"], record["partitions"]) == (2, 4)
    assert result.stderr.count(str(dirs[1])) == 1
