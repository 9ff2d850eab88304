"""`broker start` with a TLS listener, and the commands as its clients."""

from __future__ import annotations

import datetime
import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

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
