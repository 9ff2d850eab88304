"""`pylogctl user`, as processes, against a real ZooKeeper."""

from __future__ import annotations

import json
import re
import stat
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pexpect
import pytest

from broker import Broker
from broker.client.connection import Connection
from broker.errors import AuthenticationFailedError
from broker.properties import Secret
from broker.security.scram import ScramClient
from broker.security.users import CHOSEN_ITERATIONS, GENERATED_ITERATIONS, Credential
from broker.zk.session import Session
from pylogctl.cli.environment import ExitStatus
from tests.integration.broker.factories import address_of
from tests.support.certificates import Certificates
from tests.support.command_line import REPOSITORY, Invoke, Result, process_environment

pytestmark = pytest.mark.zookeeper

User = Callable[..., Result]


@pytest.fixture
def user(zookeeper: str, invoke: Invoke) -> User:
    """Run a command of `pylogctl user`."""
    return lambda *args, **more: invoke("user", *args, "-Z", zookeeper, **more)


def stored(session: Session, name: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(session.get(f"/config/users/{name}")[0])["config"]
    return found


def test_user_when_added_then_is_kept_as_kafka_does_without_the_password(
    session: Session, user: User, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("correct horse\nnot this\n")
    file.chmod(stat.S_IRUSR)

    result = user("add", "a,b=\uff43", "--password-file", str(file))  # a wide c

    assert result.status == ExitStatus.OK, result.stderr
    assert "correct" not in result.text + result.stderr
    kept = stored(session, "a%2Cb%3Dc")["SCRAM-SHA-256"]
    assert Credential.decode(kept).iterations == CHOSEN_ITERATIONS
    assert "correct" not in kept

    result = user("list", "--output", "json")

    assert json.loads(result.stdout)["data"] == [
        {
            "user": "a,b=c",
            "mechanism": "SCRAM-SHA-256",
            "iterations": CHOSEN_ITERATIONS,
            "settings": None,
        }
    ]
    assert Credential.decode(kept).salt.hex() not in result.text


def test_user_when_generated_then_the_password_is_the_only_line_of_stdout(
    session: Session, user: User
) -> None:
    result = user("add", "billing", "--generate")

    assert re.fullmatch(r"[\w-]{24}\n", result.text)
    kept = Credential.decode(stored(session, "billing")["SCRAM-SHA-256"])
    assert kept.iterations == GENERATED_ITERATIONS

    changed = user("password", "billing", "--generate")

    assert changed.stdout != result.stdout
    assert Credential.decode(stored(session, "billing")["SCRAM-SHA-256"]).salt != kept.salt
    assert user("add", "billing", "--generate").status == ExitStatus.CONFLICT


def test_user_when_removed_then_other_settings_of_it_stay(session: Session, user: User) -> None:
    user("add", "bob", "--generate")
    node = "/config/users/bob"
    value = json.loads(session.get(node)[0])
    value["config"] |= {"producer_byte_rate": "1024", "SCRAM-SHA-512": "of Kafka"}
    session.set(node, json.dumps(value).encode())

    assert user("remove", "bob", "eve", "--yes").status == ExitStatus.NOT_FOUND
    assert user("remove", "bob").status == ExitStatus.DECLINED
    assert user("remove", "bob", "--dry-run").status == ExitStatus.OK
    assert "SCRAM-SHA-256" in stored(session, "bob")
    result = user("remove", "bob", "--yes")

    assert result.status == ExitStatus.OK
    assert result.stderr.endswith("1 user removed: 'bob'\n")
    assert stored(session, "bob") == {"producer_byte_rate": "1024"}
    assert user("password", "bob", "--generate").status == ExitStatus.NOT_FOUND


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["add", "", "--generate"], "no name of a user"),
        (["add", "ANONYMOUS", "--generate"], "is reserved"),
        (["add", "x" * 256, "--generate"], "255 are possible"),
        (["add", "alice"], "--password-fd N"),
        (["add", "alice", "--generate", "--password-fd", "9"], "give one of"),
        (["add", "alice", "--password-fd", "99"], "--password-fd 99"),
    ],
)
def test_user_when_the_input_is_bad_then_says_what_is_right(
    user: User, args: list[str], says: str
) -> None:
    result = user(*args)

    assert result.status == ExitStatus.USAGE
    assert says in result.stderr


def test_user_when_the_file_can_be_read_by_others_then_refuses_it(
    user: User, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")
    file.chmod(0o644)

    result = user("add", "alice", "--password-file", str(file))

    assert result.status == ExitStatus.USAGE
    assert "chmod 600" in result.stderr


def test_user_when_the_password_is_typed_then_is_asked_twice_and_not_echoed(
    zookeeper: str, session: Session, tmp_path: Path
) -> None:
    terminal = pexpect.spawn(
        sys.executable,
        ["-m", "pylogctl", "user", "add", "alice", "-Z", zookeeper],
        cwd=str(REPOSITORY),
        env=process_environment(tmp_path, {"TERM": "xterm"}),
        encoding="utf-8",
        timeout=60,
    )
    terminal.expect("new password of 'alice'")
    terminal.sendline("pencil")
    terminal.expect("the same again")
    terminal.sendline("pencil")
    terminal.expect(pexpect.EOF)

    assert "pencil" not in str(terminal.before)
    assert "user 'alice' can log in" in str(terminal.before)
    kept = Credential.decode(stored(session, "alice")["SCRAM-SHA-256"])
    assert kept.iterations == CHOSEN_ITERATIONS


def test_user_when_added_changed_or_removed_then_brokers_know_it_at_once(
    zookeeper: str, invoke: Invoke, start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    broker = start_broker(zookeeper=zookeeper)
    file = tmp_path / "password"
    for number in range(10):
        file.write_text(f"password {number}")
        file.chmod(0o600)
        words = ("add", f"user,{number}=") if number < 5 else ("password", f"user,{number - 5}=")
        result = invoke("user", *words, "--password-file", str(file), "-Z", zookeeper)
        assert (result.status, "warning" in result.stderr) == (ExitStatus.OK, False), result.stderr
        mechanism = ScramClient(words[1], Secret(f"password {number}"))
        with closing(Connection(address_of(broker), mechanism=mechanism)) as connection:
            assert connection.hello() is not None
        if number >= 5:
            result = invoke("user", "remove", words[1], "--yes", "-Z", zookeeper)
            assert (result.status, "warning" in result.stderr) == (ExitStatus.OK, False)
            connection = Connection(address_of(broker), mechanism=mechanism)
            with closing(connection), pytest.raises(AuthenticationFailedError):
                connection.hello()


def test_user_when_a_broker_cannot_be_asked_then_is_added_and_warned_of(
    zookeeper: str, invoke: Invoke, start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    broker = start_broker(zookeeper=zookeeper, sasl_mechanisms="")
    generated = invoke("user", "add", "alice", "--generate", "-Z", zookeeper)
    assert (generated.status, "warning" in generated.stderr) == (ExitStatus.OK, False)
    broker.server.cut_off()
    result = invoke("user", "add", "bob", "--generate", "-Z", zookeeper)
    assert result.status == ExitStatus.OK
    assert "broker 0 may not know the password yet" in result.stderr
    result = invoke("user", "remove", "bob", "--yes", "-Z", zookeeper)
    assert result.status == ExitStatus.OK
    assert "broker 0 may still take the password of 'bob'" in result.stderr


def test_user_when_brokers_are_asked_over_tls_then_they_know_it(
    zookeeper: str, invoke: Invoke, start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    certificates = Certificates(tmp_path)
    start_broker(zookeeper=zookeeper, **certificates.settings())
    for words in (("add", "eve", "--generate"), ("remove", "eve", "--yes")):
        result = invoke("user", *words, "-Z", zookeeper, "--tls-ca", str(certificates.ca_file))
        assert (result.status, "warning" in result.stderr) == (ExitStatus.OK, False), result.stderr
    result = invoke("user", "add", "eve", "--generate", "-Z", zookeeper, "--tls")
    assert "broker 0 may not know the password yet: " in result.stderr  # its CA is unknown
