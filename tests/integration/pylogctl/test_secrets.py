"""Passwords and keys are where they must be, and nowhere else that can be looked into.

Each process is real, as its arguments, environment, log and tracebacks are searched.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from broker.errors import ServerError
from broker.protocol.codec import encode
from broker.protocol.extension_requests import CreateTopicRequest
from broker.zk.session import Session
from pylogctl.doctor.checks import CLUSTER_KEY
from tests.integration.broker.server.peer import Peer
from tests.support.certificates import Certificates
from tests.support.command_line import Spawn
from tests.support.waiting import wait_until

pytestmark = pytest.mark.zookeeper

PASSWORD = "correct-horse-battery"
WRONG = "wrong-pony-battery"
OF_ZOOKEEPER = "staple-of-zookeeper"
FORGED = "FORGED LINE"


class Room:
    """A secured broker, and the commands that are used with it; all they say is kept."""

    def __init__(self, directory: Path, spawn: Spawn, zookeeper: str) -> None:
        self.directory = directory
        self.zookeeper = zookeeper
        self.said: dict[str, str] = {}
        self._spawn = spawn
        self.certificates = Certificates(directory)
        self.log, self.audit = directory / "broker.log", directory / "audit.jsonl"
        self.password = self.private("password", PASSWORD)
        self.wrong = self.private("wrong", WRONG)
        config = self.private(
            "server.properties",
            f"""
            acl.enable=true
            super.users=User:alice
            audit.log={self.audit}
            listeners=SECURE=tls://127.0.0.1:0
            ssl.certificate.location={self.certificates.certificate}
            ssl.key.location={self.certificates.key}
            zookeeper.credential.file={self.private("zookeeper", f"broker:{OF_ZOOKEEPER}")}
            """,
        )
        self.run("user", "add", "alice", "--password-file", str(self.password), "-Z", zookeeper)
        self.broker = spawn(
            *("broker", "start", "--config", str(config), "--data", str(directory / "data")),
            *("--port", "0", "--log-file", str(self.log), "-Z", zookeeper, "--debug", "-vvv"),
        )
        assert self.broker.stdout is not None
        ready = self.broker.stdout.readline().decode()
        self.address = f"127.0.0.1:{ready.split('port=')[1].split()[0]}"

    def private(self, name: str, text: str) -> Path:
        path = self.directory / name
        path.write_text(text)
        path.chmod(0o600)
        return path

    def run(self, *command: str, stdin: bytes = b"", **env: str) -> subprocess.Popen[bytes]:
        """Run a command with all that it can tell; return it after its end."""
        process = self._spawn(*command, "--debug", "-vvv", stdin=subprocess.PIPE, env=env)
        out, err = process.communicate(stdin)
        self.said[" ".join(command)] = (out + err).decode()
        return process

    def as_alice(self, *command: str, password: Path | None = None) -> Sequence[str]:
        return (*command, "-b", self.address, *self.login(password))

    def login(self, password: Path | None = None) -> Sequence[str]:
        return ("--user", "alice", "--password-file", str(password or self.password))


@pytest.fixture
def room(tmp_path: Path, spawn: Spawn, zookeeper: str) -> Iterator[Room]:
    made = Room(tmp_path, spawn, zookeeper)
    yield made
    made.broker.terminate()
    made.broker.communicate()


def of_process(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace")


def secrets_of(room: Room, session: Session) -> dict[str, str]:
    """Return what must not be found, by what it is."""
    texts = json.loads(session.get("/config/users/alice")[0])["config"]["SCRAM-SHA-256"]
    scram = dict(one.split("=", 1) for one in texts.split(","))
    key_lines = room.certificates.key.read_text().splitlines()
    return {
        "the password": PASSWORD,
        "the wrong password": WRONG,
        "ZooKeeper's password": OF_ZOOKEEPER,
        "the stored key": scram["stored_key"],
        "the server key": scram["server_key"],
        "the certificate's key": key_lines[1],
        "the cluster's key": json.loads(session.get("/cluster/keys")[0])["keys"][0]["key"],
    }


def test_secrets_when_all_is_used_and_fails_then_are_in_no_log_argument_or_output(
    room: Room, session: Session
) -> None:
    expected = {
        room.as_alice("topic", "create", "orders", "--partitions", "1"): 0,
        room.as_alice("produce", "orders"): 0,
        room.as_alice("consume", "orders", "--from-beginning", "-e"): 0,
        room.as_alice("consume", "orders", "-X", "dump"): 0,
        room.as_alice("broker", "status", "--output", "json"): 0,
        ("config", "list", "--broker", "0", "-Z", room.zookeeper, *room.login()): 0,
        room.as_alice("topic", "list", password=room.wrong): None,
        room.as_alice("context", "add", "prod"): 0,
        ("context", "show", "prod"): 0,
        ("topic", "list", "-c", "prod"): 0,
        ("user", "list", "-Z", room.zookeeper): 0,
        ("topic", "delete", "orders", "-b", room.address, "--yes"): None,
    }
    for command, status in expected.items():
        done = room.run(*command, stdin=b"message\n")
        if status is not None:
            assert done.returncode == status, room.said
    from_environment = ("topic", "list", "-b", room.address, "--user", "alice")
    assert room.run(*from_environment, PYLOGCTL_PASSWORD=WRONG).returncode != 0
    assert "Traceback" in "".join(room.said.values()), "nothing failed with a traceback"

    found = dict(room.said)
    found["arguments"] = of_process(room.broker.pid, "cmdline")
    found["environment"] = of_process(room.broker.pid, "environ")
    core = next(
        line for line in of_process(room.broker.pid, "limits").splitlines() if "core file" in line
    )
    assert core.split()[4] == "0"
    room.broker.terminate()
    _, err = room.broker.communicate()
    found["standard error of the broker"] = err.decode()
    for path in room.directory.rglob("*"):
        is_for_keys = path.parent == room.directory or path.name == CLUSTER_KEY
        if path.is_file() and not is_for_keys:
            found[str(path)] = path.read_bytes().decode(errors="replace")
    found["log"], found["audit"] = room.log.read_text(), room.audit.read_text()

    for what, secret in secrets_of(room, session).items():
        assert [where for where, text in found.items() if secret in text] == [], what
    audited = [json.loads(line) for line in found["audit"].splitlines()]
    operations = {(one["principal"], one["operation"], one["decision"]) for one in audited}
    assert ("User:alice", "create", "allowed") in operations
    assert ("User:ANONYMOUS", "authenticate", "denied") in operations


def test_log_when_names_have_newlines_then_nobody_writes_lines_of_it(room: Room) -> None:
    port = int(room.address.rpartition(":")[2])
    name = f"x\n{FORGED}\r{FORGED}\u2028{FORGED}"
    with Peer(port) as peer:
        peer.produce(name, encode([b"message"]))
        assert peer.is_closed()
    with Peer(port) as peer:
        with pytest.raises(ServerError):
            peer.call(CreateTopicRequest(name, 1))
        peer.publish(name, encode([b"message"]))
    wait_until(lambda: room.audit.read_text().count("\n") >= 2, "the audit")
    room.broker.terminate()
    room.broker.communicate()
    for path in (room.log, room.audit):
        text = path.read_text()
        assert not [line for line in text.splitlines() if line.startswith(FORGED)], text
    assert FORGED in room.audit.read_text()
