"""`pylogctl perf` against real brokers; nothing here says how fast anything is."""

from __future__ import annotations

import csv
import json
import re
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker, Codec, Connection, Producer, StaticCluster, TopicPartition
from broker.client.connection import parse_broker_list
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES
from broker.protocol.message_set import build_set
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.proxies import BrokerOf07, at, record
from tests.support.command_line import Invoke, Result, Spawn, first_note

Stored = Callable[[], list[bytes]]

DATE_07 = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}"


def fill(broker: Broker, payloads: list[bytes], *, codec: Codec = Codec.NONE) -> None:
    """Publish payloads to topic t as one set, readable when this returns."""
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    with Producer(cluster, Connection) as producer:
        producer.send_set(TopicPartition("t", 0, 0), build_set(payloads, codec)).result()
    cluster.close()


@pytest.fixture
def stored(running_broker: Broker, invoke: Invoke) -> Stored:
    """Read topic t of `running_broker` as lines."""

    def run() -> list[bytes]:
        result: Result = invoke("consume", "t", "-b", at(running_broker), "-o", "start", "-e", "-q")
        return result.stdout.splitlines()

    return run


# produce


def test_produce_sends_exactly_so_many_messages_of_the_size(perf: Invoke, stored: Stored) -> None:
    result = record(perf("produce", "--messages", "1050", "--size", "30"))
    assert (result["messages"], result["bytes"]) == (1050, 31_500)
    assert [len(line) for line in stored()] == [30] * 1050


def test_produce_when_sizes_are_a_range_uses_all_of_it(perf: Invoke, stored: Stored) -> None:
    perf("produce", "--messages", "500", "--size", "5..8")
    assert {len(line) for line in stored()} == {5, 6, 7, 8}


def test_produce_from_a_file_sends_its_lines_over_and_over(
    perf: Invoke, stored: Stored, tmp_path: Path
) -> None:
    path = tmp_path / "lines"
    path.write_text("a\nb\nc\n")
    perf("produce", "--messages", "5", "--payload-file", str(path), "--batch", "2")
    assert stored() == [b"a", b"b", b"c", b"a", b"b"]


def test_produce_does_not_count_the_warm_up(perf: Invoke, stored: Stored) -> None:
    result = record(perf("produce", "--messages", "30", "--warmup", "20", "--batch", "7"))
    assert result["messages"] == 30
    assert len(stored()) == 50


@pytest.mark.parametrize(
    "options",
    [
        ["--threads", "3", "--batch", "7"],
        ["-X", "request.required.acks=0"],
        ["-X", "request.required.acks=1"],
        ["-X", "max.in.flight.requests=1", "--batch", "10"],
        ["--rate", "100000/s"],
        ["--rate", "100MiB/s", "--threads", "2"],
        ["--codec", "gzip"],
        ["-z", "snappy"],
        ["-X", "compression.codec=zstd"],
    ],
)
def test_produce_in_every_way_sends_each_message_once(
    perf: Invoke, stored: Stored, options: list[str]
) -> None:
    result = record(perf("produce", "--messages", "100", *options))
    assert result["messages"] == 100
    assert len(stored()) == 100


def test_produce_shows_latencies_of_acknowledged_batches_only(perf: Invoke) -> None:
    for acks, is_measured in (("1", True), ("0", False)):
        found = record(perf("produce", "--messages", "10", "-X", f"request.required.acks={acks}"))
        assert (found["max_ms"] is not None) == is_measured


def test_produce_shows_the_overhead_of_a_message_in_the_log(perf: Invoke) -> None:
    plain = record(perf("produce", "--messages", "100", "--warmup", "50", "--batch", "7"))
    assert plain["overhead_bytes"] == ENTRY_OVERHEAD_BYTES
    packed = record(perf("produce", "--messages", "100", "--size", "1000", "-z", "gzip"))
    assert packed["overhead_bytes"] < 0


def test_produce_to_a_broker_of_07_sends_all_and_waits_until_it_can_be_read(
    broker_of_07: BrokerOf07, invoke: Invoke, stored: Stored
) -> None:
    arguments = ["--messages", "100", "-b", broker_of_07.address, "--output", "json"]
    result = record(invoke("perf", "produce", "t", *arguments))
    assert (result["messages"], result["p50_ms"]) == (100, None)
    assert result["overhead_bytes"] == ENTRY_OVERHEAD_BYTES
    assert len(stored()) == 100


def test_produce_for_a_time_shows_a_row_for_each_interval(perf: Invoke) -> None:
    result = perf(
        "produce", "--duration", "400ms", "--interval", "50ms", "--rate", "1000/s",
        "--batch", "1",
    )  # fmt: skip
    rows = result.stderr.splitlines()
    assert rows
    assert all(re.match(r"\d+\.\d+s: \d+ messages, .* msg/s, .* MiB/s, p50 ", row) for row in rows)
    assert record(result)["messages"] >= sum(int(row.split()[1]) for row in rows)


def test_produce_when_quiet_shows_nothing_but_the_result(perf: Invoke) -> None:
    result = perf("produce", "--duration", "300ms", "--interval", "50ms", "-q")
    assert result.stderr == ""


def test_produce_compat07_writes_a_row_as_07_does(perf: Invoke) -> None:
    result = perf("produce", "--messages", "50", "--compat07", "-z", "gzip", output="")
    header, row = result.text.splitlines()
    assert header.startswith("start.time, end.time, compression, message.size, batch.size, ")
    pattern = rf"{DATE_07}, {DATE_07}, 1, 100, 200, \d+\.\d\d, \d+\.\d{{4}}, 50, \d+\.\d{{4}}"
    assert re.fullmatch(pattern, row)


def test_produce_compat07_without_header_writes_the_row_only(perf: Invoke) -> None:
    result = perf("produce", "--messages", "5", "--compat07", "--no-header", output="csv")
    assert len(result.text.splitlines()) == 1


def test_produce_when_it_is_a_dry_run_sends_nothing(perf: Invoke, invoke: Invoke) -> None:
    result = perf("produce", "--messages", "5", "--size", "10", "--batch", "3", "--dry-run")
    plan = record(result)
    assert (plan["partitions"], plan["messages"], plan["bytes"]) == (None, 5, 30)
    assert "nothing sent" in result.stderr
    assert perf("consume").status == ExitStatus.NOT_FOUND


def test_produce_writes_its_result_in_every_format(perf: Invoke) -> None:
    for form in ("table", "plain", "tsv", "csv", "jsonl", "markdown", "name"):
        result = perf("produce", "--messages", "123", output=form)
        assert result.status == 0
        assert "123" in result.text


def test_produce_on_a_terminal_writes_a_line_for_each_figure(
    running_broker: Broker, invoke: Invoke
) -> None:
    result = invoke(
        "perf", "produce", "t", "-b", at(running_broker), "--messages", "1500", "--size", "2KiB",
        "--color", "never", tty=True,
    )  # fmt: skip
    figures = dict(line.split(maxsplit=1) for line in result.text.splitlines())
    assert (figures["MESSAGES"], figures["BYTES"]) == ("1500", "2.9 MiB")


def test_produce_in_csv_has_the_columns_by_name(perf: Invoke) -> None:
    header, row = csv.reader(perf("produce", "--messages", "5", output="csv").text.splitlines())
    assert header == [
        "messages", "bytes", "seconds", "msg_per_s", "mib_per_s", "p50_ms", "p90_ms", "p95_ms",
        "p99_ms", "p99_9_ms", "max_ms", "cpu_s", "rss_bytes", "overhead_bytes",
    ]  # fmt: skip
    assert len(row) == len(header)


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (["--size", "x"], ExitStatus.USAGE, "not a size: 'x'"),
        (["--duration", "x"], ExitStatus.USAGE, "not a duration: 'x'"),
        (["--rate", "0"], ExitStatus.USAGE, "a rate must be above zero"),
        (["--codec", "lzo"], ExitStatus.USAGE, "--codec"),
        (["--messages", "0"], ExitStatus.USAGE, "--messages"),
        (["--size", "2MB", "--messages", "1"], ExitStatus.USAGE, "the limit is 1000000"),
        (["-X", "nope=1"], ExitStatus.USAGE, "nope"),
        (["--payload-file", "/no/such"], ExitStatus.NOT_FOUND, "/no/such"),
    ],
)
def test_produce_when_an_option_is_wrong_says_which(
    perf: Invoke, options: list[str], status: ExitStatus, text: str
) -> None:
    result = perf("produce", *options)
    assert result.status == status
    assert text in result.stderr
    assert result.stdout == b""


def test_produce_finds_brokers_by_property(running_broker: Broker, invoke: Invoke) -> None:
    address = f"broker.list={at(running_broker)}"
    result = invoke("perf", "produce", "t", "-X", address, "--messages", "5", "--output", "json")
    assert record(result)["messages"] == 5


def test_produce_when_verbose_shows_the_requests(perf: Invoke) -> None:
    assert "-> " in perf("produce", "--messages", "5", "-vv").stderr


def test_produce_when_no_broker_listens_is_unreachable(invoke: Invoke) -> None:
    result = invoke("perf", "produce", "t", "-b", "127.0.0.1:1", "--timeout", "50ms")
    assert result.status == ExitStatus.UNREACHABLE


def test_produce_when_the_topic_cannot_be_is_a_usage_error(
    running_broker: Broker, invoke: Invoke
) -> None:
    result = invoke("perf", "produce", "a/b", "-b", at(running_broker), "--messages", "1")
    assert result.status == ExitStatus.USAGE
    assert "invalid topic name 'a/b'" in result.stderr


def _interrupt_after_a_row(process: subprocess.Popen[bytes], signum: int) -> tuple[int, bytes]:
    assert "messages" in first_note(process)
    process.send_signal(signum)
    stdout, _ = process.communicate(timeout=60)
    return process.returncode, stdout


@pytest.mark.parametrize(("signum", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_produce_when_interrupted_reports_the_part_done(
    running_broker: Broker, spawn: Spawn, stored: Stored, signum: int, status: int
) -> None:
    process = spawn(
        "perf", "produce", "t", "-b", at(running_broker), "--duration", "1h",
        "--interval", "100ms", "--rate", "1000/s", "--batch", "1", "--output", "json",
    )  # fmt: skip
    found, stdout = _interrupt_after_a_row(process, signum)
    assert found == status
    assert json.loads(stdout)["data"][0]["messages"] == len(stored())


# consume


def test_consume_without_limits_reads_the_existing_messages(
    running_broker: Broker, perf: Invoke
) -> None:
    fill(running_broker, [b"abc"] * 10)
    fill(running_broker, [b"de"] * 5, codec=Codec.GZIP)
    result = record(perf("consume"))
    assert (result["messages"], result["bytes"]) == (15, 40)


def test_consume_when_the_topic_is_empty_reads_nothing(perf: Invoke, invoke: Invoke) -> None:
    perf("produce", "--messages", "1")
    assert record(perf("consume", "-o", "end"))["messages"] == 0


def test_consume_stops_after_exactly_so_many(running_broker: Broker, perf: Invoke) -> None:
    fill(running_broker, [b"abc"] * 10)
    result = record(perf("consume", "--messages", "7"))
    assert (result["messages"], result["bytes"]) == (7, 21)


@pytest.mark.parametrize(
    ("spec", "count"), [("-3", 3), ("+2:-2", 6), ("start:39", 3), ("0=-1", 1), ("39", 7)]
)
def test_consume_reads_the_range_asked_for(
    running_broker: Broker, perf: Invoke, spec: str, count: int
) -> None:
    fill(running_broker, [b"abc"] * 10)
    assert record(perf("consume", "-o", spec))["messages"] == count


def test_consume_with_threads_reads_every_partition_once(
    running_broker: Broker, invoke: Invoke, perf: Invoke
) -> None:
    create = ["topic", "create", "t", "--partitions", "3", "-b", at(running_broker)]
    assert invoke(*create).status == 0
    perf("produce", "--messages", "90", "--batch", "10")
    for threads in ("1", "2", "8"):
        assert record(perf("consume", "--threads", threads))["messages"] == 90
    assert record(perf("consume", "-p", "1"))["messages"] == 30


def test_consume_with_small_fetches_puts_messages_together(
    running_broker: Broker, perf: Invoke
) -> None:
    fill(running_broker, [b"x" * 100] * 20)
    assert record(perf("consume", "-X", "fetch.size=7"))["messages"] == 20


def test_consume_when_fewer_messages_come_than_asked_for_times_out(
    running_broker: Broker, perf: Invoke
) -> None:
    fill(running_broker, [b"abc"] * 10)
    result = perf("consume", "--messages", "11", "-X", "consumer.timeout.ms=2000")
    assert result.status == ExitStatus.TIMEOUT
    assert record(result)["messages"] == 10
    assert "no message came for 2s" in result.stderr


def test_consume_for_a_time_ends_without_messages_too(running_broker: Broker, perf: Invoke) -> None:
    fill(running_broker, [b"abc"] * 10)
    result = perf("consume", "--duration", "2s")
    assert result.status == 0
    assert record(result)["messages"] == 10


def test_consume_when_a_message_is_corrupt_ends_as_corrupt(
    running_broker: Broker, perf: Invoke
) -> None:
    fill(running_broker, [b"hello"])
    (segment,) = running_broker.config.data_dir.glob("t*/*.pylog")
    with segment.open("r+b") as file:
        file.seek(12)
        file.write(b"X")
    result = perf("consume")
    assert result.status == ExitStatus.CORRUPT
    assert "does not match its CRC" in result.stderr


def test_consume_when_the_topic_is_unknown_is_not_found(perf: Invoke) -> None:
    result = perf("consume")
    assert result.status == ExitStatus.NOT_FOUND
    assert "topic 't' not found" in result.stderr


def test_consume_compat07_writes_a_row_as_07_does(running_broker: Broker, perf: Invoke) -> None:
    fill(running_broker, [b"abc"] * 10)
    header, row = perf("consume", "--compat07", output="").text.splitlines()
    assert header.startswith("start.time, end.time, fetch.size, data.consumed.in.MB, ")
    pattern = rf"{DATE_07}, {DATE_07}, 1048576, 0\.0000, \d+\.\d{{4}}, 10, \d+\.\d{{4}}"
    assert re.fullmatch(pattern, row)


def test_consume_when_interrupted_reports_the_part_done(
    running_broker: Broker, spawn: Spawn
) -> None:
    fill(running_broker, [b"abc"] * 10)
    process = spawn(
        "perf", "consume", "t", "-b", at(running_broker), "--duration", "1h",
        "--interval", "100ms", "--output", "json",
    )  # fmt: skip
    status, stdout = _interrupt_after_a_row(process, signal.SIGINT)
    assert status == 130
    assert json.loads(stdout)["data"][0]["messages"] == 10


def test_consume_from_a_broker_of_07_reads_the_existing_messages(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    fill(running_broker, [b"abc"] * 10)
    result = invoke("perf", "consume", "t", "-b", broker_of_07.address, "--output", "json")
    assert record(result)["messages"] == 10


# simple


def test_simple_reads_the_existing_messages(running_broker: Broker, perf: Invoke) -> None:
    fill(running_broker, [b"abc"] * 10)
    fill(running_broker, [b"de"] * 5, codec=Codec.GZIP)
    result = record(perf("consume", "--simple"))
    assert (result["messages"], result["bytes"]) == (15, 40)
    assert result["max_ms"] > 0


@pytest.mark.parametrize(("spec", "count"), [("-3", 3), ("+2:-2", 6), ("39", 7), ("end", 0)])
def test_simple_reads_the_range_asked_for(
    running_broker: Broker, perf: Invoke, spec: str, count: int
) -> None:
    fill(running_broker, [b"abc"] * 10)
    assert record(perf("consume", "--simple", "-o", spec))["messages"] == count


def test_simple_fetches_a_message_that_was_cut_again(running_broker: Broker, perf: Invoke) -> None:
    fill(running_broker, [b"x" * 100] * 20)
    assert record(perf("consume", "--simple", "-X", "fetch.size=250"))["messages"] == 20


def test_simple_when_a_message_is_larger_than_a_fetch_says_so(
    running_broker: Broker, perf: Invoke
) -> None:
    fill(running_broker, [b"x" * 100] * 20)
    result = perf("consume", "--simple", "-X", "fetch.size=50")
    assert result.status != ExitStatus.OK
    assert "larger than the fetch" in result.stderr


def test_simple_waits_for_messages_that_were_asked_for(
    running_broker: Broker, perf: Invoke
) -> None:
    fill(running_broker, [b"abc"] * 10)
    result = perf("consume", "--simple", "--messages", "11", "-X", "consumer.timeout.ms=2000")
    assert result.status == ExitStatus.TIMEOUT
    assert record(result)["messages"] == 10


def test_simple_reads_one_partition_only(
    running_broker: Broker, invoke: Invoke, perf: Invoke
) -> None:
    create = ["topic", "create", "t", "--partitions", "3", "-b", at(running_broker)]
    assert invoke(*create).status == 0
    perf("produce", "--messages", "90", "--batch", "10")
    assert record(perf("consume", "--simple", "-p", "2"))["messages"] == 30
    result = perf("consume", "--simple", "-p", "1,2")
    assert result.status == ExitStatus.USAGE
    assert "one partition at a time, not 0-1, 0-2" in result.stderr
    result = perf("consume", "--simple", "--threads", "2")
    assert result.status == ExitStatus.USAGE
    assert "--simple reads with one thread" in result.stderr


def test_simple_compat07_writes_a_row_as_07_does(running_broker: Broker, perf: Invoke) -> None:
    fill(running_broker, [b"abc"] * 10)
    header, row = perf("consume", "--simple", "--compat07", output="").text.splitlines()
    assert header.startswith("start.time, end.time, fetch.size, ")
    assert re.fullmatch(rf"{DATE_07}, {DATE_07}, 1048576, .*, 10, .*", row)


def test_simple_from_a_broker_of_07_reads_the_existing_messages(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    fill(running_broker, [b"abc"] * 10)
    args = ("-b", broker_of_07.address, "--output", "json")
    result = invoke("perf", "consume", "--simple", "t", *args)
    assert record(result)["messages"] == 10
