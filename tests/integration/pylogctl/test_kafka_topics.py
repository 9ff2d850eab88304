"""`pylogctl produce` and `consume` on topics of format `kafka`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import pylogctl
from pylogctl.cli.environment import ExitStatus
from pylogctl.testing import Broker, ephemeral_cluster
from tests.support.command_line import Invoke, Result

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"log.format": "kafka", "num.partitions": "2"}) as found:
        yield found


@pytest.fixture
def produce(broker: Broker, pylog_topic: str, invoke: Invoke) -> Run:
    return lambda *args, stdin=b"": invoke(
        "produce", "-b", broker.address, pylog_topic, *args, stdin=stdin
    )


@pytest.fixture
def consume(broker: Broker, pylog_topic: str, invoke: Invoke) -> Run:
    return lambda *args: invoke(
        "consume", "-b", broker.address, pylog_topic, "--from-beginning", "-e", *args
    )


def test_produce_when_lines_have_keys_then_consume_shows_them(produce: Run, consume: Run) -> None:
    assert produce("-K", "=", stdin=b"k=a\nk=b\n").status == 0
    assert consume("-F", "%o %n %k %K %s %h\\n").stdout == b"0 1 k 1 a -\n1 2 k 1 b -\n"


def test_produce_when_a_key_and_headers_are_given_then_all_messages_have_them(
    produce: Run, consume: Run
) -> None:
    produce("-k", "k", "-H", "trace=a=1", "-H", "empty=", stdin=b"a\nb\n")
    assert consume("-F", "%k %s %h\\n").stdout == b"k a trace=a=1,empty=\nk b trace=a=1,empty=\n"


def test_produce_when_a_header_has_no_name_then_it_is_a_usage_error(produce: Run) -> None:
    result = produce("-H", "trace", stdin=b"a\n")
    assert result.status == ExitStatus.USAGE
    assert "--header takes NAME=VALUE, not 'trace'" in result.stderr


def test_consume_when_there_are_many_lines_then_they_are_as_they_were_sent(
    produce: Run, consume: Run
) -> None:
    lines = b"".join(b"%d\n" % one for one in range(20_000))
    assert produce("-p", "1", stdin=lines).status == 0
    assert consume().stdout == lines
    assert consume("-n", "15000").stdout == lines[: lines.index(b"\n15000\n") + 1]


def test_consume_when_a_value_has_the_delimiter_then_it_warns(
    broker: Broker, pylog_topic: str, consume: Run
) -> None:
    with broker.connect() as client:
        client.send_many(pylog_topic, ["a", "b\nc"], partition=0)
    result = consume()
    assert result.stdout == b"a\nb\nc\n"
    assert "payload at offset 1 contains the delimiter" in result.stderr


def test_jsonl_when_it_is_produced_again_then_nothing_is_lost(
    broker: Broker, pylog_topic: str, invoke: Invoke, produce: Run, consume: Run
) -> None:
    with broker.connect() as client:
        client.send(pylog_topic, "x", key=b"\xff", headers={"a": b"\xfe", "b": None}, partition=0)
        client.send(pylog_topic, None, key="gone", timestamp=1_700_000_000_123, partition=0)
    lines = consume("--jsonl").stdout
    first, second = map(json.loads, lines.splitlines())
    assert "broker" not in first
    assert first["key_b64"] == "/w=="
    assert first["headers"] == [{"key": "a", "value_b64": "/g=="}, {"key": "b", "value": None}]
    assert (second["key"], second["payload"], second["size"]) == ("gone", None, None)
    assert second["timestamp"] == "2023-11-14T22:13:20.123Z"
    copy = f"{pylog_topic}-copy"
    assert invoke("produce", "-b", broker.address, copy, "--jsonl", stdin=lines).status == 0
    with broker.connect() as client:
        found = list(client.read(copy))
        assert [one.record for one in found] == [one.record for one in client.read(pylog_topic)]


@pytest.mark.parametrize(
    "line",
    [
        b'{"payload":"a","key":5}',
        b'{"payload":"a","timestamp":"soon"}',
        b'{"payload":"a","headers":{"a":"b"}}',
        b'{"payload":"a","headers":[{"value":"b"}]}',
    ],
)
def test_produce_when_a_json_line_has_wrong_fields_then_names_it(produce: Run, line: bytes) -> None:
    result = produce("--jsonl", stdin=line)
    assert result.status == ExitStatus.USAGE
    assert "line 1: " in result.stderr


@pytest.mark.parametrize("option", ["--verify", "--envelope"])
def test_produce_when_an_option_is_for_format_07_then_it_is_refused_before_the_first_message(
    produce: Run, consume: Run, option: str
) -> None:
    result = produce(option, stdin=b"a\n")
    assert result.status == ExitStatus.UNSUPPORTED
    assert f"{option} is for topics of format 0.7" in result.stderr
    assert consume().stdout == b""


def test_produce_when_headers_are_for_a_topic_of_format_07_then_it_is_refused(
    broker: Broker, pylog_topic: str, produce: Run
) -> None:
    with broker.connect() as client:
        client.create_topic(pylog_topic, format="0.7")
    result = produce("-H", "a=b", stdin=b"a\n")
    assert result.status == ExitStatus.UNSUPPORTED
    assert "--header is for topics of format kafka" in result.stderr


def test_receipt_when_a_run_is_resumed_then_messages_are_sent_once(
    produce: Run, consume: Run, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt"
    produce("-p", "0", "--receipt", str(receipt), stdin=b"a\nb\n")
    lines = [json.loads(one) for one in receipt.read_text().splitlines()]
    assert [(one["partition"], one["offset"], one["size"]) for one in lines] == [
        ("0", 0, 1),
        ("0", 1, 1),
    ]
    produce("-p", "0", "--resume", str(receipt), stdin=b"a\nb\nc\n")
    assert consume().stdout == b"a\nb\nc\n"


def test_produce_when_a_message_is_above_the_limit_of_the_broker_then_others_are_sent(
    pylog_topic: str, invoke: Invoke
) -> None:
    with Broker({"log.format": "kafka", "max.message.size": "1000"}) as broker:
        args = ("produce", "-b", broker.address, pylog_topic, "--on-error", "skip")
        result = invoke(*args, stdin=b"a\n" + b"x" * 990 + b"\n" + b"y" * 600 + b"\nb\n")
        assert result.status == ExitStatus.PARTIAL
        with broker.connect() as client:
            assert [one.value[:1] for one in client.read(pylog_topic)] == [b"a", b"y", b"b"]


@pytest.mark.zookeeper
@pytest.mark.parametrize("commit", ["after", "before"])
def test_consume_when_a_group_comes_back_then_it_goes_on_at_the_next_record(
    invoke: Invoke, commit: str
) -> None:
    with ephemeral_cluster(1) as cluster, cluster.connect() as client:
        client.create_topic("orders", partitions=1, format="kafka")
        with client.producer(linger=0.02) as producer:
            producer.send_many("orders", [b"%d" % one for one in range(100)], key="k")

        def run(*more: str) -> list[int]:
            args = ("consume", "-Z", cluster.zookeeper, "orders", "--group", "g")
            result = invoke(*args, "--from-beginning", "--commit", commit, *more)
            assert result.status == 0, result.stderr
            return [int(one) for one in result.stdout.split()]

        assert run("-n", "30") == list(range(30))
        assert run("-e") == list(range(30, 100))
        assert run("-e") == []


def test_consume_when_a_command_is_run_for_each_then_it_gets_the_values(
    produce: Run, consume: Run, tmp_path: Path
) -> None:
    produce("-p", "0", stdin=b"a\nb\n")
    found = tmp_path / "found"
    assert consume("--exec", f"sh -c 'cat >> {found}'").status == 0
    assert found.read_bytes() == b"ab"


def test_batches_when_one_is_damaged_then_consume_goes_on_behind_it(
    pylog_topic: str, invoke: Invoke, tmp_path: Path
) -> None:
    with Broker({"log.format": "kafka"}, data_dir=tmp_path / "data") as broker:
        with broker.connect() as client:
            for one in range(3):
                client.send_many(pylog_topic, [b"%d%d" % (one, two) for two in range(3)])
        broker.stop()
        (segment,) = (tmp_path / "data" / f"{pylog_topic}-0").glob("*.log")
        data = bytearray(segment.read_bytes())
        data[data.index(b"11")] ^= 1
        segment.write_bytes(data)
        broker.restart()
        args = ("consume", "-b", broker.address, pylog_topic, "--from-beginning", "-e")
        result = invoke(*args)
        assert result.status == ExitStatus.CORRUPT
        assert f"{pylog_topic}[0]: the message at 3 is invalid" in result.stderr
        assert result.stdout == b"00\n01\n02\n"
        result = invoke(*args, "--on-corrupt", "skip")
        assert result.status == ExitStatus.PARTIAL
        assert result.stdout == b"00\n01\n02\n20\n21\n22\n"
        with broker.connect() as client, pytest.raises(pylogctl.CorruptMessage) as caught:
            list(client.read(pylog_topic))
        assert f"{pylog_topic}[0]" in str(caught.value)
