"""`pylogctl audit` on counts that real producers have published."""

from __future__ import annotations

import json
from typing import Any

import pytest

from broker import Broker, Connection, Producer, StaticCluster
from broker.client.connection import parse_broker_list
from broker.producer.settings import ProducerSettings
from broker.protocol.compression import Codec
from broker.tools.audit import AuditCounter, AuditedProducer, Auditor, json_time
from pylogctl.cli.environment import ExitStatus
from tests.doubles import FakeClock
from tests.support.command_line import Invoke, Result

FORMATS = ("table", "json", "jsonl", "csv", "tsv", "plain", "markdown", "name")
START_MS = 1_700_000_040_000


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def produce(broker: Broker, tier: str, times_ms: list[int], topic: str = "t") -> None:
    """Send a message for each time, counted in windows of a minute."""
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    counter = AuditCounter(tier, window_ms=60_000, clock=FakeClock(START_MS))
    with (
        Producer(cluster, Connection) as producer,
        AuditedProducer(
            producer, Auditor(counter, producer, "audit"), time_of=json_time("ts")
        ) as p,
    ):
        p.send(topic, [b'{"ts":%d}' % time_ms for time_ms in times_ms])
    cluster.close()


def report(
    broker: Broker,
    tier: str,
    counts: dict[int, int],
    topic: str = "t",
    codec: Codec = Codec.NONE,
) -> None:
    """Publish counts without sending messages, by start of the window."""
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    counter = AuditCounter(tier, window_ms=60_000, clock=FakeClock(START_MS))
    with Producer(cluster, Connection, ProducerSettings(codec=codec)) as producer:
        for start_ms, count in counts.items():
            counter.note(topic, count, 3 * count, start_ms)
        Auditor(counter, producer, "audit").publish(with_open=True)
    cluster.close()


def publish(broker: Broker, payload: bytes) -> None:
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    with Producer(cluster, Connection) as producer:
        producer.send("audit", [payload])
    cluster.close()


@pytest.fixture
def audit(running_broker: Broker, invoke: Invoke) -> Invoke:
    """Run `audit` on `running_broker`."""

    def run(command: str, *args: str) -> Result:
        result: Result = invoke("audit", command, "audit", "-b", at(running_broker), *args)
        return result

    return run


def rows(result: Result) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(result.text)["data"]
    return data


def test_show_when_tiers_have_counted_then_adds_up_by_window(
    running_broker: Broker, audit: Invoke
) -> None:
    produce(running_broker, "producer", [START_MS, START_MS + 1, START_MS + 60_000])
    produce(running_broker, "producer", [START_MS])
    report(running_broker, "consumer", {START_MS: 2})

    found = rows(audit("show", "--output", "json"))

    assert [(row["start"], row["tier"], row["messages"]) for row in found] == [
        ("2023-11-14T22:14:00.000Z", "consumer", 2),
        ("2023-11-14T22:14:00.000Z", "producer", 3),
        ("2023-11-14T22:15:00.000Z", "producer", 1),
    ]


def test_show_when_filtered_then_shows_only_that(running_broker: Broker, audit: Invoke) -> None:
    report(running_broker, "producer", {START_MS: 1}, topic="a")
    report(running_broker, "producer", {START_MS: 1}, topic="b")
    report(running_broker, "consumer", {START_MS: 1}, topic="a")

    found = rows(audit("show", "--output", "json", "--exclude", "b", "--tier", "consumer"))

    assert [(row["topic"], row["tier"]) for row in found] == [("a", "consumer")]


@pytest.mark.parametrize(
    ("offset", "numbers"),
    [("-1", [5]), ("-4", [2, 3, 4, 5]), ("start:+1", [0]), ("+1:+5", [1, 2, 3, 4]), ("+4:-1", [4])],
)
def test_show_when_a_range_cuts_compressed_counts_then_only_those_in_it_count(
    running_broker: Broker, audit: Invoke, offset: str, numbers: list[int]
) -> None:
    for first in (0, 3):
        counts = {START_MS + 60_000 * number: 1 for number in range(first, first + 3)}
        report(running_broker, "producer", counts, codec=Codec.GZIP)

    found = rows(audit("show", "--output", "json", "-o", offset))

    assert [row["start"] for row in found] == [
        f"2023-11-14T22:{14 + number}:00.000Z" for number in numbers
    ]


@pytest.mark.parametrize("output", FORMATS)
@pytest.mark.parametrize("command", ["show", "check"])
def test_document_when_asked_for_in_any_format_then_has_the_topic(
    running_broker: Broker, audit: Invoke, command: str, output: str
) -> None:
    report(running_broker, "producer", {START_MS: 2}, topic="orders")
    report(running_broker, "consumer", {START_MS: 1}, topic="orders")

    result = audit(command, "--output", output)

    assert result.status == ExitStatus.OK
    assert "orders" in result.text


def test_check_when_tiers_differ_then_shows_only_that(
    running_broker: Broker, audit: Invoke
) -> None:
    minute = 60_000
    report(
        running_broker, "producer", {START_MS: 5, START_MS + minute: 5, START_MS + 2 * minute: 5}
    )
    report(running_broker, "mirror", {START_MS: 4, START_MS + minute: 6})

    result = audit("check", "--output", "json")

    assert result.status == ExitStatus.OK
    assert [(row["difference"], row["status"]) for row in rows(result)] == [
        (-1, "missing"),
        (1, "surplus"),
        (-5, "late"),
    ]
    assert "3 windows compared: 1 missing, 1 late, 1 surplus" in result.stderr


@pytest.mark.parametrize(("limit", "status"), [("1", ExitStatus.THRESHOLD), ("2", ExitStatus.OK)])
def test_check_when_more_differ_than_allowed_then_fails(
    running_broker: Broker, audit: Invoke, limit: str, status: ExitStatus
) -> None:
    report(running_broker, "producer", {START_MS: 5})
    report(running_broker, "mirror", {START_MS: 3})

    assert audit("check", "--fail-above", limit).status == status


def test_check_when_all_agree_then_shows_nothing_unless_asked(
    running_broker: Broker, audit: Invoke
) -> None:
    report(running_broker, "producer", {START_MS: 5})
    report(running_broker, "mirror", {START_MS: 5})

    brief, full = audit("check", "--fail-above", "0"), audit("check", "--all", "--output", "json")

    assert (brief.status, brief.text) == (ExitStatus.OK, "")
    assert [row["status"] for row in rows(full)] == ["ok"]


def test_check_when_counting_the_log_then_finds_the_messages_on_the_broker(
    running_broker: Broker, audit: Invoke
) -> None:
    produce(running_broker, "producer", [START_MS, START_MS + 60_000, START_MS + 60_001])
    report(running_broker, "producer", {START_MS: 1})

    totals = audit("check", "--count", "--output", "json")
    windows = audit("check", "--count", "--time-field", ".ts", "--output", "json", "--all")

    assert [(r["expected"], r["found"], r["status"]) for r in rows(totals)] == [(4, 3, "missing")]
    assert [(r["expected"], r["found"], r["status"]) for r in rows(windows)] == [
        (2, 1, "missing"),
        (2, 2, "ok"),
    ]


@pytest.mark.parametrize("payload", [b"hello", b"7", b'{"user": 1}', b'{"v": 1, "id": 5}'])
def test_show_when_the_topic_holds_no_events_then_says_so_in_one_line(
    running_broker: Broker, audit: Invoke, payload: bytes
) -> None:
    publish(running_broker, payload)

    result = audit("show")

    assert (result.status, result.stdout) == (ExitStatus.PARTIAL, b"")
    first, *_ = result.stderr.splitlines()
    assert first == "error: 'audit' is no audit topic: none of 1 message is an audit event"
    assert "Error" not in result.stderr


def test_check_when_a_message_is_no_event_then_is_done_in_part(
    running_broker: Broker, audit: Invoke
) -> None:
    report(running_broker, "producer", {START_MS: 5})
    report(running_broker, "mirror", {START_MS: 5})
    publish(running_broker, b"hello")

    result = audit("check", "--all", "--output", "json")

    assert result.status == ExitStatus.PARTIAL
    assert len(rows(result)) == 1
    assert "no audit events in 'audit': 1 message" in result.stderr


@pytest.mark.parametrize(
    ("args", "status", "text"),
    [
        (("--reference", "web"), ExitStatus.NOT_FOUND, "tier 'web' has not reported"),
        ((), ExitStatus.NOT_FOUND, "only tier 'producer' has reported"),
        (("--time-field", "ts"), ExitStatus.USAGE, "--count"),
        (("--include", "("), ExitStatus.USAGE, "--include: '(' is no regular"),
        (("--grace", "soon"), ExitStatus.USAGE, "not a duration: 'soon'"),
    ],
)
def test_check_when_the_request_is_wrong_then_says_why(
    running_broker: Broker, audit: Invoke, args: tuple[str, ...], status: int, text: str
) -> None:
    report(running_broker, "producer", {START_MS: 5})

    result = audit("check", *args)

    assert result.status == status
    assert text in result.stderr


def test_show_when_there_is_no_audit_topic_then_says_so(audit: Invoke) -> None:
    assert audit("show").status == ExitStatus.NOT_FOUND
