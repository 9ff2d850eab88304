"""`pylogctl perf e2e`; nothing here says how fast anything is."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable

import pytest

from broker import Broker
from pylogctl.cli.environment import ExitStatus
from pylogctl.perf.open_loop import STAMP
from tests.integration.pylogctl.proxies import BrokerOf07, at, record
from tests.support.command_line import Invoke, Spawn, first_note

StartBroker = Callable[..., Broker]


def test_e2e_counts_each_message_but_the_warm_up_once(perf: Invoke, invoke: Invoke) -> None:
    result = record(perf("e2e", "--rate", "2000", "--messages", "300", "--warmup", "100"))
    assert (result["messages"], result["missing"], result["rate"]) == (300, 0, 2000)
    assert result["bytes"] == 300 * 100
    assert 0 < result["p50_ms"] <= result["p90_ms"] <= result["p99_9_ms"] <= result["max_ms"]
    assert record(perf("consume"))["messages"] == 401  # one made the topic


def test_e2e_sends_at_the_rate_for_the_time(perf: Invoke) -> None:
    result = record(perf("e2e", "--rate", "500/s", "--duration", "400ms", "--warmup", "0"))
    assert result["messages"] == 200
    assert result["seconds"] >= 199 / 500


@pytest.mark.parametrize(
    "options",
    [
        ["-X", "request.required.acks=0"],
        ["-X", "request.required.acks=1"],
        ["--codec", "gzip"],
        ["--size", "16"],
        ["--size", "20..3000"],
        ["--rate", "1MiB/s"],
        ["-X", "max.in.flight.requests=1"],
    ],
)
def test_e2e_in_every_way_gets_each_message(perf: Invoke, options: list[str]) -> None:
    rate = [] if "--rate" in options else ["--rate", "5000"]
    result = record(perf("e2e", "--messages", "200", "--warmup", "10", *rate, *options))
    assert (result["messages"], result["missing"]) == (200, 0)


@pytest.mark.parametrize(
    ("acks", "flush"),
    [("-1", "before each acknowledgement"), ("1", "after 10000 messages or 20ms")],
)
def test_e2e_says_when_the_broker_flushes(
    start_broker: StartBroker, invoke: Invoke, acks: str, flush: str
) -> None:
    broker = start_broker(topic_flush_interval_ms={"t": 20})
    result = invoke(
        "perf", "e2e", "t", "-b", at(broker), "--messages", "5", "--warmup", "0",
        "-X", f"request.required.acks={acks}", "--output", "json",
    )  # fmt: skip
    assert (record(result)["acks"], record(result)["flush"]) == (acks, flush)


def test_e2e_reads_all_partitions_and_leaves_out_messages_of_others(
    running_broker: Broker, invoke: Invoke, perf: Invoke
) -> None:
    create = ["topic", "create", "t", "--partitions", "3", "-b", at(running_broker)]
    assert invoke(*create).status == 0
    perf("produce", "--messages", "50")
    result = record(perf("e2e", "--rate", "5000", "--messages", "100", "--warmup", "0"))
    assert (result["messages"], result["missing"]) == (100, 0)


def test_e2e_with_a_broker_of_07_gets_each_message(
    broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    result = invoke(
        "perf", "e2e", "t", "-b", broker_of_07.address, "--rate", "500", "--messages", "100",
        "--warmup", "0", "--output", "json",
    )  # fmt: skip
    assert (record(result)["messages"], record(result)["flush"]) == (100, None)


def test_e2e_when_interrupted_reports_the_part_done(running_broker: Broker, spawn: Spawn) -> None:
    process = spawn(
        "perf", "e2e", "t", "-b", at(running_broker), "--duration", "1h", "--rate", "1000/s",
        "--warmup", "0", "--interval", "100ms", "--output", "json",
    )  # fmt: skip
    while ": 0 messages" in first_note(process):
        pass
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == ExitStatus.SIGINT
    found = json.loads(stdout)["data"][0]
    assert found["messages"] > 0
    assert found["missing"] == 0


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (["--size", "15"], ExitStatus.USAGE, "--size must be at least 16"),
        (["--rate", "0"], ExitStatus.USAGE, "a rate must be above zero"),
        (["--rate", "1/s", "--duration", "100ms"], ExitStatus.USAGE, "no message is due"),
        (["-X", "fetch.size=1"], ExitStatus.USAGE, "fetch.size"),
    ],
)
def test_e2e_when_an_option_is_wrong_says_which(
    perf: Invoke, options: list[str], status: ExitStatus, text: str
) -> None:
    result = perf("e2e", *options)
    assert result.status == status
    assert text in result.stderr


def test_e2e_when_no_broker_listens_is_unreachable(invoke: Invoke) -> None:
    result = invoke("perf", "e2e", "t", "-b", "127.0.0.1:1", "--timeout", "50ms")
    assert result.status == ExitStatus.UNREACHABLE


def test_e2e_when_the_broker_refuses_ends_with_its_error(
    start_broker: StartBroker, invoke: Invoke
) -> None:
    broker = start_broker(max_message_bytes=50)
    result = invoke("perf", "e2e", "t", "-b", at(broker), "--messages", "5", "--warmup", "0")
    assert result.status == ExitStatus.USAGE
    assert "above max.message.size=50" in result.stderr


def test_e2e_when_messages_do_not_come_says_how_many(
    start_broker: StartBroker, invoke: Invoke
) -> None:
    broker = start_broker(max_message_bytes=50)
    result = invoke(
        "perf", "e2e", "t", "-b", at(broker), "--messages", "5", "--warmup", "0",
        "-X", "request.required.acks=0", "--output", "json",
    )  # fmt: skip
    assert result.status == ExitStatus.TIMEOUT
    assert (record(result)["messages"], record(result)["missing"]) == (0, 5)
    assert "5 messages were sent but not received" in result.stderr


def test_e2e_sizes_have_room_for_the_stamp_that_is_documented() -> None:
    assert STAMP.size == 16
