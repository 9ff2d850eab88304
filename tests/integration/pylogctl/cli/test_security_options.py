"""Commands over TLS: options, properties and contexts, and an error for each mistake."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trustme

import pylogctl
from broker import Broker
from pylogctl.cli.environment import ExitStatus
from tests.support.certificates import Certificates as BrokerCertificates
from tests.support.command_line import Invoke
from tests.support.logins import PASSWORD
from tests.support.logins import alice as alice
from tests.support.ports import port_of_its_own
from tests.support.tls_front import Certificates, tls_front
from tests.support.tls_front import certificates as certificates


class Secured(NamedTuple):
    """A broker that is reached over TLS, at the address that it advertises, too."""

    address: str
    ca: str


@pytest.fixture
def secured(start_broker: Callable[..., Broker], certificates: Certificates) -> Iterator[Secured]:
    port = port_of_its_own()
    front = tls_front(certificates.server(), port)
    start_broker(port=port, hostname="localhost", advertised_port=front.port)
    yield Secured(f"localhost:{front.port}", str(certificates.ca))
    front.stop()


def test_messages_go_and_come_over_tls(invoke: Invoke, secured: Secured) -> None:
    options = ["-b", secured.address, "--tls-ca", secured.ca]
    payloads = [b"%d" % n + b"x" * 5000 for n in range(100)]  # many records of TLS
    sent = invoke("produce", "events", *options, stdin=b"\n".join(payloads))
    assert sent.status == 0, sent.stderr
    read = invoke("consume", "events", "--from-beginning", "-e", *options)
    assert read.stdout.splitlines() == payloads
    listed = invoke("topic", "list", *options, "--output", "name")
    assert listed.text == "events\n"


def test_properties_and_contexts_say_the_same_as_options(
    invoke: Invoke, secured: Secured, tmp_path: Path
) -> None:
    properties = ["-X", "security.protocol=SSL", "-X", f"ssl.ca.location={secured.ca}"]
    sent = invoke("produce", "events", "-b", secured.address, *properties, stdin=b"a\n")
    assert sent.status == 0, sent.stderr
    added = invoke("context", "add", "prod", "-b", secured.address, "--tls-ca", secured.ca)
    assert added.status == 0, added.stderr
    read = invoke("consume", "events", "--from-beginning", "-e", "-c", "prod")
    assert (read.stdout, read.stderr) == (b"a\n", read.stderr)
    dumped = invoke("consume", "events", "-c", "prod", "-X", "dump")
    assert f"ssl.ca.location consumer {secured.ca} context" in " ".join(dumped.text.split())
    shown = invoke("context", "show", "prod", "--output", "json", "--columns", "tls,user")
    assert '"tls":true' in shown.text.replace(" ", "")


OF_OTHERS = trustme.CA(organization_name="Theirs")
OLD = datetime(2021, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("command", ["produce", "consume", "topic list", "broker list"])
def test_broker_of_an_unknown_ca_ends_each_command_at_once(
    invoke: Invoke, certificates: Certificates, running_broker: Broker, command: str
) -> None:
    front = tls_front(certificates.server(authority=OF_OTHERS), running_broker.port)
    words = command.split()
    topic = [] if len(words) > 1 else ["events"]
    try:
        options = ["-b", f"localhost:{front.port}", "--tls-ca", str(certificates.ca)]
        result = invoke(*words, *topic, *options, stdin=b"a\n")
    finally:
        front.stop()
    assert result.status == ExitStatus.UNREACHABLE
    assert "shows a certificate of no CA that is trusted here" in result.stderr
    assert f"the CA file is {certificates.ca}" in result.stderr


def test_wrong_uses_are_usage_errors_or_name_the_option(
    invoke: Invoke, secured: Secured, tmp_path: Path
) -> None:
    at = ["-b", secured.address]
    plain = invoke("topic", "list", *at)
    assert plain.status == ExitStatus.UNREACHABLE
    assert "one that speaks TLS wants --tls" in plain.stderr
    missing = invoke("topic", "list", *at, "--tls-ca", str(tmp_path / "missing.pem"))
    assert missing.status == ExitStatus.CONFIG
    assert f"cannot read '{tmp_path}/missing.pem': no such file" in missing.stderr
    argv = invoke("produce", "t", *at, "-X", "sasl.password=secret")
    assert argv.status == ExitStatus.USAGE
    assert "can be read by all users of the machine" in argv.stderr
    without = invoke("topic", "list", *at, "--user", "alice")
    assert without.status == ExitStatus.USAGE
    assert "the user needs a password" in without.stderr
    secret = tmp_path / "secret"
    secret.write_text("x\n")
    secret.chmod(0o644)
    shown = invoke("topic", "list", *at, "--user", "alice", "--password-file", str(secret))
    assert shown.status == ExitStatus.USAGE
    assert f"chmod 600 {secret}" in shown.stderr
    secret.write_text("")
    secret.chmod(0o600)
    empty = invoke("topic", "list", *at, "--user", "alice", "--password-file", str(secret))
    assert empty.stderr == f"error: the first line of '{secret}' has no password\n"


def test_password_when_it_is_no_utf_8_then_is_refused_and_not_shown(
    invoke: Invoke, tmp_path: Path
) -> None:
    secret = tmp_path / "secret"
    secret.touch(0o600)
    secret.write_bytes(b"caf\xe9\n")
    reader, writer = os.pipe()
    os.write(writer, secret.read_bytes())
    os.close(writer)

    for given in (("--password-file", str(secret)), ("--password-fd", str(reader))):
        result = invoke("topic", "list", "-b", "127.0.0.1:1", "--user", "alice", *given)
        assert result.status == ExitStatus.USAGE
        assert "is no UTF-8 text" in result.stderr
        assert "caf" not in result.stderr


def test_password_of_a_descriptor_or_the_environment_is_never_shown(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"hunter2\n")
    os.close(writer)
    options = ["--user", "alice", "-X", "dump"]
    dumped = invoke("consume", "t", "--password-fd", str(reader), *options)
    assert "sasl.password consumer *** option" in " ".join(dumped.text.split())
    monkeypatch.setenv("PYLOGCTL_PASSWORD", "hunter2")
    named = ["-X", "security.protocol=SASL_PLAINTEXT", "-X", "sasl.username=alice", "-X", "dump"]
    for words in (options, named):
        dumped = invoke("consume", "t", *words)
        assert "sasl.password consumer *** option" in " ".join(dumped.text.split())
    assert "hunter2" not in dumped.text + dumped.stderr


@pytest.mark.parametrize("command", ["produce t", "consume t -e", "topic list", "broker status"])
def test_login_that_a_broker_refuses_has_its_own_status(
    invoke: Invoke, running_broker: Broker, alice: str, tmp_path: Path, command: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o600)
    options = ["-b", f"localhost:{running_broker.port}", "--user", alice]
    options += ["--password-file", str(secret)]
    words = command.split()
    right = invoke("produce", "t", *options, stdin=b"a\n")
    assert right.status == 0, right.stderr
    assert invoke(*words, *options, stdin=b"a\n").status == 0
    secret.write_text("wrong\n")
    wrong = invoke(*words, *options, stdin=b"a\n")
    assert wrong.status == ExitStatus.LOGIN
    assert "does not log in user 'alice'" in wrong.stderr
    assert "check the name and where the password comes from" in wrong.stderr


@pytest.fixture
def tls_only(
    start_broker: Callable[..., Broker], zookeeper: str, tmp_path: Path
) -> tuple[Broker, list[str]]:
    """A broker that listens by TLS alone, in ZooKeeper, and the options to reach it there."""
    made = BrokerCertificates(tmp_path)
    broker = start_broker(zookeeper=zookeeper, **made.settings(port=-1))
    return broker, ["-Z", zookeeper, "--tls-ca", str(made.ca_file)]


def test_commands_with_zookeeper_find_the_listeners_for_tls(
    invoke: Invoke, tls_only: tuple[Broker, list[str]], tmp_path: Path
) -> None:
    _, options = tls_only
    sent = invoke("produce", "events", *options, stdin=b"a\nb\n")
    assert sent.status == 0, sent.stderr
    joined = invoke("consume", "events", "-g", "readers", "-e", "-o", "start", *options)
    assert (joined.stdout, joined.status) == (b"a\nb\n", 0), joined.stderr
    for command in ("group lag readers", "cluster health", "broker list", "top --batch 1"):
        result = invoke(*command.split(), *options)
        assert result.status == 0, result.stderr
    copied = invoke("copy", "events", "copies", *options)
    assert copied.status == 0, copied.stderr
    (password := tmp_path / "password").touch(0o600)
    password.write_text("secret")
    for words in (("-e",), ("-e", "--user", "bob", "--password-file", str(password))):
        plain = invoke("consume", "copies", *words, *options[:2])
        assert plain.status == ExitStatus.UNREACHABLE
        assert "speaks TLS\n  give --tls" in plain.stderr
    login = ("--user", "bob", "--password-file", str(password))
    plain = invoke("produce", "copies", *login, *options[:2], stdin=b"c\n")
    assert plain.status == ExitStatus.UNREACHABLE, plain.stderr
    assert "give --tls" in plain.stderr


def test_python_clients_read_and_join_groups_over_tls(
    tls_only: tuple[Broker, list[str]],
) -> None:
    broker, options = tls_only
    (port,) = (one["port"] for one in broker.status()["listeners"])
    places: list[dict[str, Any]] = [{"address": f"localhost:{port}"}, {"zookeeper": options[1]}]
    for where in places:
        with pylogctl.connect(**where, tls_ca=options[-1]) as client:
            client.send("events", b"x")
            with client.group("readers", ["events"], start="earliest") as group:
                assert next(iter(group)).value == b"x"

    async def read() -> bytes:
        async with pylogctl.aconnect(f"localhost:{port}", tls_ca=options[-1]) as client:
            await client.send("others", b"y")
            async for message in client.read("others", start="earliest"):
                return message.value
        raise AssertionError

    assert asyncio.run(read()) == b"y"


def test_copy_from_a_context_over_tls_to_a_plain_broker_secures_each_side_as_it_is(
    invoke: Invoke,
    tls_only: tuple[Broker, list[str]],
    start_broker: Callable[..., Broker],
    tmp_path: Path,
) -> None:
    _, options = tls_only
    target = f"brokers=127.0.0.1:{start_broker(broker_id=7, data_dir=tmp_path / 'other').port}"
    assert invoke("context", "add", "source", *options).status == 0
    assert invoke("produce", "events", "-c", "source", stdin=b"a\n").status == 0
    copied = invoke("copy", "events", "copies", "--from", "source", "--to", target)
    assert copied.status == 0, copied.stderr
    read = invoke("consume", "copies", "--from-beginning", "-e", "-b", target.partition("=")[2])
    assert read.stdout == b"a\n"
