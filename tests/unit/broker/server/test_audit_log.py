"""The audit log: one line for each event, whatever the names in it are."""

from __future__ import annotations

import functools
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from broker import files
from broker.errors import ConfigError
from broker.files import write_all
from broker.protocol.client_requests import MetadataRequest
from broker.security.rules import Operation, RuleSet
from broker.server.requests.audit_log import MAX_REFUSALS, REPEAT_S, AuditedDecision, AuditLog
from broker.server.requests.client import ConnectedClient
from broker.server.requests.judge import Judge, Rights
from tests.doubles import FakeClock
from tests.support.waiting import wait_until

DENIED = AuditedDecision(
    listener="plain",
    address="10.0.0.7",
    port=50123,
    principal="User:alice",
    mechanism="SCRAM-SHA-256",
    tls=True,
    client_id="app",
    request="delete_topic",
    operation="delete",
    resource="topic:orders",
    decision="denied",
    reason="User:alice may not delete topic:orders",
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log(path: Path, clock: FakeClock) -> Iterator[AuditLog]:
    made = AuditLog(path, 3, clock)
    made.start()
    yield made
    stop(made)


def stop(log: AuditLog) -> None:
    log.stop()
    log.join()


def lines_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="ascii").splitlines()]


def test_note_when_an_event_comes_then_a_line_has_all_of_it(log: AuditLog, path: Path) -> None:
    rule = "deny User:alice delete topic:orders"
    log.note(DENIED._replace(rule=rule, snapshot=7, topics=("orders",), topic_count=1))
    stop(log)
    assert lines_in(path) == [
        {
            "time": "2023-11-14T22:13:20.000Z",
            "broker": 3,
            "listener": "plain",
            "address": "10.0.0.7",
            "port": 50123,
            "principal": "User:alice",
            "mechanism": "SCRAM-SHA-256",
            "tls": True,
            "client_id": "app",
            "request": "delete_topic",
            "operation": "delete",
            "resource": "topic:orders",
            "decision": "denied",
            "rule": "deny User:alice delete topic:orders",
            "snapshot": 7,
            "topics": ["orders"],
            "topic_count": 1,
            "reason": "User:alice may not delete topic:orders",
            "count": 1,
        }
    ]


def test_note_when_an_event_repeats_then_counted_and_written_once_more_at_the_end(
    log: AuditLog, path: Path, clock: FakeClock
) -> None:
    for _ in range(1000):
        log.note(DENIED)
    log.note(DENIED._replace(decision="allowed"))
    wait_until(lambda: len(lines_in(path)) == 2, "the first lines")
    clock.advance(REPEAT_S)
    wait_until(lambda: len(lines_in(path)) == 3, "the count")
    assert [(one["decision"], one["count"]) for one in lines_in(path)] == [
        ("denied", 1),
        ("allowed", 1),
        ("denied", 999),
    ]
    log.note(DENIED)
    wait_until(lambda: len(lines_in(path)) == 4, "the next line")


@pytest.mark.parametrize(
    "name",
    [
        'a\n{"decision":"allowed"}',
        "a\r\n",
        "\x1b[2J",
        "a\u2028b",
        "\u202eesrever",
        "\x00",
        "\ud800",
    ],
)
def test_note_when_a_name_has_control_characters_then_still_one_line_of_ascii(
    name: str, log: AuditLog, path: Path
) -> None:
    log.note(DENIED._replace(principal=f"User:{name}", resource=name, client_id=name))
    stop(log)
    data = path.read_bytes()
    assert data.count(b"\n") == 1
    assert all(byte >= ord(" ") for byte in data[:-1])
    assert lines_in(path)[0]["resource"] == name


def test_note_when_a_name_is_very_long_then_cut(log: AuditLog, path: Path) -> None:
    log.note(DENIED._replace(client_id="x" * 32_767))
    stop(log)
    assert path.stat().st_size < 2500


def test_file_when_others_could_read_it_then_made_for_user_and_group(path: Path) -> None:
    path.touch(0o666)
    before = os.umask(0)
    try:
        AuditLog(path, 3, FakeClock())
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_file_when_full_then_rotated_and_the_oldest_goes(
    path: Path,
) -> None:
    log = AuditLog(path, 3, FakeClock(), max_file_bytes=2_000)
    for number in range(100):
        log.note(DENIED._replace(resource=f"topic:{number}"))
    log.start()
    stop(log)
    files = sorted(path.parent.iterdir(), key=lambda one: -int(one.suffix.strip(".jsonl") or 0))
    assert [one.name for one in files] == [
        *(f"{path.name}.{number}" for number in range(7, 0, -1)),
        path.name,
    ]
    assert {stat.S_IMODE(one.stat().st_mode) for one in files} == {0o640}
    assert all(one.stat().st_size <= 2_000 for one in files)
    kept = [line["resource"] for one in files for line in lines_in(one)]
    assert kept == [f"topic:{number}" for number in range(100 - len(kept), 100)]


def test_file_when_a_crash_left_part_of_a_line_then_goes_on_with_the_next(path: Path) -> None:
    path.write_text('{"time": "2023')
    log = AuditLog(path, 3, FakeClock())
    log.note(DENIED)
    log.start()
    stop(log)
    torn, whole = path.read_text().splitlines()
    assert json.loads(whole)["resource"] == "topic:orders"
    assert torn == '{"time": "2023'


@pytest.mark.parametrize("flooded", ["read", "delete", "authenticate"])
def test_note_when_refusals_of_one_kind_are_very_many_then_all_else_is_written(
    flooded: str, path: Path
) -> None:
    log = AuditLog(path, 3, FakeClock())
    for number in range(MAX_REFUSALS + 5):
        client, resource = f"User:{number // 100}", f"topic:{number}"
        log.note(DENIED._replace(operation=flooded, principal=client, resource=resource))
    others = [
        DENIED._replace(decision="allowed", reason="", resource="topic:kept"),
        *(
            DENIED._replace(operation=one, resource="kept")
            for one in ("read", "delete", "authenticate")
            if one != flooded
        ),
    ]
    for one in others:
        log.note(one)
    log.start()
    stop(log)
    assert log.dropped_count == 5
    lines = lines_in(path)
    assert [one.get("dropped") for one in lines] == [None] * (MAX_REFUSALS + 3) + [5]
    assert [one["resource"] for one in lines[MAX_REFUSALS:-1]] == ["topic:kept", "kept", "kept"]


@pytest.mark.parametrize("principal", ["User:alice", "User:ANONYMOUS"])
def test_note_when_one_client_is_refused_very_often_then_hides_no_other(
    principal: str, path: Path
) -> None:
    log = AuditLog(path, 3, FakeClock())
    for number in range(2 * MAX_REFUSALS):
        log.note(DENIED._replace(principal=principal, resource=f"topic:{number}"))
    log.note(DENIED._replace(principal="User:bob", resource="kept"))
    log.note(DENIED._replace(principal="User:ANONYMOUS", address="10.0.0.8", resource="kept"))
    log.start()
    stop(log)
    assert [one.get("resource") for one in lines_in(path)][-3:] == ["kept", "kept", None]


def test_event_when_its_names_are_very_long_then_has_no_more_of_them_than_its_line() -> None:
    noted: list[AuditedDecision] = []
    judge = Judge(3)
    judge.audit = cast(AuditLog, SimpleNamespace(note=noted.append))
    judge.rules = RuleSet()
    name = "x" * 32_767
    client = ConnectedClient("10.0.0.7")
    rights = Rights(judge, client, MetadataRequest((name,)), Operation.DESCRIBE)
    rights.hidden([name], are_named=True)
    rights.audit()
    judge.note(client, MetadataRequest, "describe", f"topic:{name}", name, [name] * 10, 10)
    assert len(noted) == 2
    assert max(len(one) for event in noted for one in event.topics) == 255
    assert max(len(one) for event in noted for one in event if isinstance(one, str)) <= 1024


def test_note_when_refusals_go_on_then_a_few_a_second_are_written(
    path: Path, clock: FakeClock
) -> None:
    log = AuditLog(path, 3, clock)
    for second in range(3):
        for number in range(2 * MAX_REFUSALS):
            client, resource = f"User:{number // 50}", f"topic:{second}-{number}"
            log.note(DENIED._replace(principal=client, resource=resource))
        clock.advance(1.0)
    log.start()
    stop(log)
    written = sum("resource" in one for one in lines_in(path))
    assert MAX_REFUSALS < written < 1.1 * MAX_REFUSALS


def test_write_when_the_disk_refuses_then_dropped_and_tried_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    log = AuditLog(path, 3, FakeClock())
    is_full = True

    def write(fd: int, content: bytes) -> None:
        if is_full:
            os.write(fd, content[:5])
            raise OSError(28, "No space left on device")
        write_all(fd, content)

    monkeypatch.setattr(files, "write_all", write)
    log.start()
    for number in range(3):
        log.note(DENIED._replace(resource=f"topic:{number}"))
        dropped = functools.partial(lambda count: log.dropped_count == count, number + 1)
        wait_until(dropped, "the drop")
    is_full = False
    log.note(DENIED)
    stop(log)
    assert [one.get("resource") for one in lines_in(path)] == ["topic:orders", None]
    assert lines_in(path)[1]["dropped"] == 3
    assert caplog.text.count("cannot be written") == 1


@pytest.mark.parametrize("kind", ["missing directory", "link"])
def test_log_when_its_file_cannot_be_opened_then_the_start_fails(kind: str, path: Path) -> None:
    if kind == "link":
        path.symlink_to(path.with_name("other"))
    else:
        path = path.parent / "missing" / "audit.jsonl"
    with pytest.raises(ConfigError, match=r"cannot open audit.log=.*audit.jsonl"):
        AuditLog(path, 3, FakeClock())
