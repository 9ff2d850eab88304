"""`doctor` on the security of brokers: strangers, clocks and the rights of key files."""

from __future__ import annotations

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.server.broker import Broker
from pylogctl.cli.environment import ExitStatus
from pylogctl.doctor.checks import (
    CLUSTER_KEY,
    ClockReading,
    Verdict,
    check_certificate,
    check_clocks,
    check_exposure,
    check_key_files,
)
from tests.support.certificates import Certificates
from tests.support.command_line import Invoke


def findings(invoke: Invoke, broker: Broker) -> tuple[int, dict[str, tuple[str, str]]]:
    result = invoke("doctor", "-b", f"127.0.0.1:{broker.port}", "--output", "json")
    rows: list[dict[str, Any]] = json.loads(result.text)["data"]
    return result.status, {row["check"]: (row["status"], row["detail"]) for row in rows}


def test_doctor_when_a_broker_is_on_loopback_and_its_clock_is_right_then_ok(
    running_broker: Broker, invoke: Invoke
) -> None:
    _, found = findings(invoke, running_broker)
    assert found["exposure"] == ("ok", "broker 0 serves strangers on loopback only")
    assert found["clocks"][0] == "ok"


def test_doctor_when_others_can_read_the_cluster_key_then_fails_and_says_what_to_do(
    running_broker: Broker, invoke: Invoke
) -> None:
    key = running_broker.config.data_dir / CLUSTER_KEY
    key.touch()
    key.chmod(0o644)
    status, found = findings(invoke, running_broker)
    assert status == ExitStatus.FAILED
    assert found["key file"] == (
        "fail",
        f"{key} of broker 0 can be read or changed by others: mode 0644",
    )
    key.chmod(0o600)
    _, found = findings(invoke, running_broker)
    assert found["key file"][0] == "ok"


@pytest.mark.parametrize(
    ("settings", "verdict"),
    [
        ({"host": "127.0.0.1"}, Verdict.OK),
        ({"host": "::1"}, Verdict.OK),
        ({"host": "localhost"}, Verdict.OK),
        ({"host": ""}, Verdict.WARN),
        ({"host": "0.0.0.0"}, Verdict.WARN),
        ({"host": "10.0.0.7", "acl.enable": "false"}, Verdict.WARN),
        ({"host": "10.0.0.7", "acl.enable": "true"}, Verdict.WARN),  # ZooKeeper is open
        (
            {"host": "10.0.0.7", "acl.enable": "true", "zookeeper.set.acl": "true"},
            Verdict.OK,
        ),
        ({"host": "10.0.0.7", "authentication.required": "true"}, Verdict.OK),
        (
            {
                "host": "10.0.0.7",
                "authentication.required": "true",
                "authentication.optional.listeners": "PLAIN",
            },
            Verdict.WARN,
        ),
        ({"host": "127.0.0.1", "listeners": "OUT=tls://0.0.0.0:9093"}, Verdict.WARN),
        ({"host": "", "port": "-1", "listeners": "IN=tls://[::1]:9093"}, Verdict.OK),
    ],
)
def test_exposure_when_strangers_may_do_everything_then_warned_of(
    settings: dict[str, str], verdict: Verdict
) -> None:
    assert check_exposure("broker 0", settings).status is verdict


@pytest.mark.parametrize(
    ("ahead_ms", "verdict", "words"),
    [
        (900, Verdict.OK, "agree"),
        (-1400, Verdict.OK, "agree"),  # it may be the response that took so long
        (5500, Verdict.WARN, "broker 1 is 5.000s ahead of this machine's"),
        (-90_500, Verdict.WARN, "broker 1 is 1m30s behind this machine's"),
    ],
)
def test_clocks_when_one_differs_then_named_with_its_difference(
    ahead_ms: float, verdict: Verdict, words: str
) -> None:
    readings = [ClockReading("broker 0", 3, 500), ClockReading("broker 1", ahead_ms, 500)]
    (found,) = check_clocks(readings)
    assert found.status is verdict
    assert words in found.detail


def test_doctor_when_a_broker_has_a_certificate_then_says_how_long_it_is_valid(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    secret = tmp_path / "zk.secret"
    secret.touch(mode=0o600)
    broker = start_broker(**Certificates(tmp_path).settings(), zk_credential_file=secret)
    _, found = findings(invoke, broker)
    assert found["certificate"][0] == "ok"
    assert "broker.pem of broker 0 is valid for " in found["certificate"][1]
    private = "broker.key, zk.secret of broker 0: for its user"
    assert found["key file"] == ("ok", private)


@pytest.mark.parametrize(
    ("left_days", "verdict", "words"),
    [
        (90, Verdict.OK, "a.pem of broker 0 is valid for 90 days"),
        (29, Verdict.WARN, "a.pem of broker 0 is valid for 29 days"),
        (-2, Verdict.FAIL, "a.pem of broker 0 expired 2 days ago"),
    ],
)
def test_certificate_when_it_expires_soon_or_has_then_said(
    left_days: int, verdict: Verdict, words: str
) -> None:
    not_after_ms = 1_000_000 + left_days * 86_400_000
    certificate = {"path": "a.pem", "not_after_ms": not_after_ms}
    found = check_certificate("broker 0", certificate, 1_000_000)
    assert (found.status, found.detail) == (verdict, words)


def test_key_files_when_absent_then_skipped_and_when_private_then_ok(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    assert list(check_key_files("broker 0", [key])) == []
    key.touch(stat.S_IRUSR)
    (found,) = check_key_files("broker 0", [key])
    assert found.status is Verdict.OK
