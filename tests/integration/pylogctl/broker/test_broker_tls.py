"""`broker start` with a TLS listener, and the commands as its clients."""

from __future__ import annotations

import datetime
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.security import client_tls
from broker.server.broker import Broker
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.broker.test_broker import Served
from tests.support.certificates import Certificates
from tests.support.command_line import Invoke, Spawn
from tests.support.waiting import wait_until


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates(tmp_path)


@pytest.fixture
def secure_broker(spawn: Spawn, certificates: Certificates) -> Iterator[Served]:
    """A broker that listens by TLS only."""
    files = {"certificate": certificates.certificate, "key": certificates.key}
    process = spawn(
        *("broker", "start", "--ephemeral", "--port", "-1"),
        *("--listen", "SECURE=tls://127.0.0.1:0"),
        *(part for name, path in files.items() for part in ("-X", f"ssl.{name}.location={path}")),
    )
    broker = Served(process)
    yield broker
    if process.poll() is None:
        broker.end()


def test_commands_when_the_broker_listens_by_tls_only_then_messages_go_to_and_fro(
    secure_broker: Served, certificates: Certificates, run_process: Invoke
) -> None:
    where = ("-b", secure_broker.address, "--tls-ca", str(certificates.ca_file))

    assert run_process("produce", "events", *where, stdin=b"one\ntwo\n").status == 0
    found = run_process("consume", "events", *where, "--from-beginning", "-e")
    assert (found.status, found.text) == (0, "one\ntwo\n")

    plain = run_process("topic", "list", "-b", secure_broker.address)
    assert plain.status != 0
    assert "--tls" in plain.stderr


@pytest.mark.zookeeper
def test_produce_when_the_brokers_in_zookeeper_listen_by_tls_only_then_says_so_at_once(
    start_broker: Callable[..., Broker],
    zookeeper: str,
    certificates: Certificates,
    run_process: Invoke,
) -> None:
    start_broker(zookeeper=zookeeper, **(certificates.settings() | {"port": -1}))
    for words in ([], ["--sync"], ["-p", "0-0"]):
        result = run_process("produce", "events", *words, "-Z", zookeeper, stdin=b"one\n")
        assert result.status == ExitStatus.UNREACHABLE, result.stderr
        assert "waiting" not in result.stderr
        assert "speaks TLS" in result.stderr
        assert "--tls" in result.stderr


def test_sighup_when_the_certificate_was_replaced_then_it_is_loaded_and_the_broker_goes_on(
    secure_broker: Served, certificates: Certificates, run_process: Invoke
) -> None:
    def expiry() -> str:
        where = ("-b", secure_broker.address, "--tls-ca", str(certificates.ca_file))
        status = run_process("broker", "status", *where, "--output", "json")
        return str(json.loads(status.text)["data"][0]["certificate_expires"])

    before = expiry()
    end = datetime.datetime.now(datetime.UTC) + datetime.timedelta(days=40)
    certificates.write(certificates.ca.issue_cert("localhost", "127.0.0.1", not_after=end))
    secure_broker.process.send_signal(signal.SIGHUP)

    wait_until(lambda: expiry() != before, "the new certificate being in use")


def test_check_config_reads_certificates_keys_and_credentials_and_names_each_that_is_wrong(
    certificates: Certificates, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "zk.secret"
    secret.write_text("brokers:s3cret\n")
    secret.chmod(0o600)
    settings = {
        "listeners": "SECURE=tls://127.0.0.1:0",
        "ssl.certificate.location": certificates.certificate,
        "ssl.key.location": certificates.key,
        "ssl.ca.location": certificates.ca_file,
        "zookeeper.credential.file": secret,
        "zookeeper.ssl.client.enable": "true",
        "zookeeper.ssl.ca.location": certificates.ca_file,
        "zookeeper.ssl.certificate.location": certificates.certificate,
        "zookeeper.ssl.key.location": certificates.key,
        "super.users": "User:CN=ops",
    }
    given = [part for name, one in settings.items() for part in ("-X", f"{name}={one}")]

    def check(*more: str) -> tuple[int, str]:
        monkeypatch.setattr(client_tls, "_contexts", {})  # each run is a process of its own
        result = invoke("broker", "start", "--check-config", "--port", "-1", *given, *more)
        return result.status, result.stderr

    status, text = check()
    assert (status, "the configuration is valid" in text) == (0, True), text
    assert "warning: super.users: no client can be User:CN=ops" in text

    now = datetime.datetime.now(datetime.UTC)
    certificates.write(
        certificates.ca.issue_cert("localhost", not_after=now - datetime.timedelta(days=1))
    )
    status, text = check()
    expired = f"the certificate of {certificates.certificate} expired at "
    assert (status, text.count(expired)) == (ExitStatus.CONFIG, 2)

    certificates.write_key(certificates.ca.issue_cert("localhost"))
    secret.chmod(0o640)
    status, text = check()
    assert status == ExitStatus.CONFIG
    assert "they are of two key pairs" in text
    assert f"{secret} has a credential, and other users may read it" in text
    assert f"the key in '{certificates.key}' is not that of" in text

    status, text = check("-X", f"zookeeper.ssl.ca.location={tmp_path / 'no.pem'}")
    assert f"cannot read '{tmp_path / 'no.pem'}'" in text
