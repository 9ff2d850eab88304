"""`pylogctl perf e2e`, `compare` and `report`; nothing here says how fast anything is."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker
from pylogctl.cli.errors import ExitStatus
from pylogctl.perf.open_loop import STAMP
from tests.integration.pylogctl.proxies import BrokerOf07, at, record
from tests.support.command_line import Invoke, Spawn

StartBroker = Callable[..., Broker]


# e2e


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
    assert process.stderr is not None
    while b": 0 messages" in process.stderr.readline():
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
        (["--save", "/no/such/dir.json"], ExitStatus.NOT_FOUND, "/no/such"),
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


# compare, report


@pytest.fixture
def saved(perf: Invoke, tmp_path: Path) -> tuple[Path, Path]:
    """Two runs of `perf produce`."""
    paths = tmp_path / "before.json", tmp_path / "after.json"
    for path in paths:
        perf("produce", "--messages", "100", "--save", str(path))
    return paths


def _edit(path: Path, **figures: float) -> None:
    document = json.loads(path.read_text())
    document["result"].update(figures)
    path.write_text(json.dumps(document))


def test_compare_when_slower_than_the_limit_ends_with_status_12(
    saved: tuple[Path, Path], invoke: Invoke
) -> None:
    before, after = saved
    _edit(before, msg_per_s=1000.0)
    _edit(after, msg_per_s=940.0)
    arguments = ["perf", "compare", str(before), str(after), "--output", "json"]
    assert invoke(*arguments, "--fail-below", "10%").status == 0
    result = invoke(*arguments, "--fail-below", "5%")
    assert result.status == ExitStatus.THRESHOLD
    rate = next(one for one in json.loads(result.text)["data"] if one["figure"] == "msg_per_s")
    assert (rate["change_percent"], rate["verdict"], rate["decides"]) == (-6.0, "worse", True)


def test_compare_without_a_limit_never_fails(saved: tuple[Path, Path], invoke: Invoke) -> None:
    _edit(saved[1], msg_per_s=1.0)
    assert invoke("perf", "compare", *map(str, saved)).status == 0


def test_compare_warns_of_other_differences(
    saved: tuple[Path, Path], perf: Invoke, invoke: Invoke
) -> None:
    perf(
        "produce",
        "--messages",
        "100",
        "--batch",
        "7",
        "-X",
        "request.required.acks=1",
        "--save",
        str(saved[1]),
    )
    result = invoke("perf", "compare", *map(str, saved))
    assert "the runs differ in batch: 200 and 7" in result.stderr
    assert "request.required.acks: -1 and 1" in result.stderr


def test_compare_of_different_commands_is_a_usage_error(
    saved: tuple[Path, Path], perf: Invoke, invoke: Invoke
) -> None:
    perf("consume", "--save", str(saved[1]))
    result = invoke("perf", "compare", *map(str, saved))
    assert result.status == ExitStatus.USAGE
    assert "'perf produce' and 'perf consume' cannot be compared" in result.stderr


@pytest.mark.parametrize("text", ["x", "-1", "101%", ""])
def test_compare_when_the_limit_is_no_percentage_is_a_usage_error(
    saved: tuple[Path, Path], invoke: Invoke, text: str
) -> None:
    result = invoke("perf", "compare", *map(str, saved), "--fail-below", text)
    assert result.status == ExitStatus.USAGE
    assert "not a percentage" in result.stderr


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "else/1"}'])
def test_report_of_a_file_that_is_no_run_is_a_usage_error(
    tmp_path: Path, invoke: Invoke, text: str
) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    result = invoke("perf", "report", str(path))
    assert result.status == ExitStatus.USAGE
    assert "is no saved run" in result.stderr


def test_report_lists_runs_of_all_kinds(
    saved: tuple[Path, Path], perf: Invoke, invoke: Invoke, tmp_path: Path
) -> None:
    other = tmp_path / "latency.json"
    perf("e2e", "--messages", "10", "--warmup", "0", "--save", str(other))
    result = invoke("perf", "report", *map(str, [*saved, other]), "--output", "json")
    rows = json.loads(result.text)["data"]
    assert [row["command"] for row in rows] == ["perf produce", "perf produce", "perf e2e"]
    assert [row["messages"] for row in rows] == [100, 100, 10]
    assert rows[2]["flush"] == "before each acknowledgement"
    assert rows[0]["options"]["batch"] == 200
