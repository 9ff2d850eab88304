"""`pylogctl topic offsets`, `sample` and `count` against real brokers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker import Broker, BrokerConfig, Codec
from broker.protocol.codec import encode
from broker.protocol.requests import ProduceRequest
from pylogctl.cli.environment import ExitStatus
from tests.integration.broker.server.peer import Peer
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.integration.pylogctl.topic.test_topic import at, fill, rows
from tests.integration.pylogctl.topic.test_topic import topic as topic
from tests.integration.pylogctl.topic.test_topic import two_brokers as two_brokers
from tests.support.command_line import Invoke

DIGITS = [b"%d" % n for n in range(10)]


def damage_last_byte(broker: Broker) -> None:
    (segment,) = broker.config.data_dir.glob("t*/*.pylog")
    with segment.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"\xff")


# offsets


def test_offsets_when_messages_are_unflushed_end_before_them(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000)
    fill(broker, "t", [b"1", b"2"])
    with Peer(broker.port) as peer:
        peer.send(ProduceRequest("t", 0, encode([b"3"])))
        assert peer.status()["bytes"] == 33
    result = invoke("topic", "offsets", "t", "-b", at(broker), "--output", "json")
    assert (rows(result)[0]["start"], rows(result)[0]["end"]) == (0, 22)


def test_offsets_when_the_oldest_segment_is_gone_start_at_the_next(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    earlier = Broker(BrokerConfig(port=0, data_dirs=(tmp_path / "data",), segment_bytes=20))
    earlier.start()
    for payload in DIGITS[:6]:
        fill(earlier, "t", [payload])
    earlier.stop()
    first, *_ = sorted(earlier.config.data_dir.glob("t*/*.pylog"))
    first.unlink()
    result = invoke("topic", "offsets", "t", "-b", at(start_broker()), "--output", "json")
    assert (rows(result)[0]["start"], rows(result)[0]["end"]) == (22, 66)


def test_offsets_when_the_broker_knows_only_07_are_shown(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"1"])
    result = invoke("topic", "offsets", "t", "-b", broker_of_07.address, "--output", "csv")
    assert result.text.splitlines()[1] == "t,0-0,0,11,11"


def test_offsets_of_unknown_topics_does_the_rest_or_is_not_found(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"1"])
    result = topic("offsets", "nope", "t")
    assert result.status == ExitStatus.PARTIAL
    assert "error: topic 'nope' not found" in result.stderr
    assert "0-0" in result.text
    assert topic("offsets", "nope").status == ExitStatus.NOT_FOUND


# count


def test_count_shows_each_partition_and_the_total(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(num_partitions=2)
    fill(broker, "t", DIGITS)
    fill(broker, "t", DIGITS[:3], codec=Codec.GZIP, index=1)
    fill(broker, "t", DIGITS[:1], index=1)
    result = invoke("topic", "count", "t", "-b", at(broker))
    lines = [line.split() for line in result.text.splitlines()]
    assert [(line[0], line[1], line[-1]) for line in lines[1:]] == [
        ("t", "0-0", "10"), ("t", "0-1", "4"), ("total", "-", "14"),
    ]  # fmt: skip


def test_count_for_programs_has_no_total(running_broker: Broker, topic: Invoke) -> None:
    fill(running_broker, "t", DIGITS)
    fill(running_broker, "u", DIGITS[:2])
    assert [row["messages"] for row in rows(topic("count", "t", "u", "--output", "json"))] == [
        10,
        2,
    ]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.SNAPPY])
@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (["-o", "start"], 10),
        (["-o", "end"], 0),
        (["-o", "+3"], 7),
        (["-o", "-3"], 3),
        (["-o", "+3:-3"], 4),
        (["-o", ":-9"], 1),
        (["-o", ":+4"], 4),
        (["-o", "-3:+3"], 0),
        (["-o", "@-1h"], 10),
        (["-p", "0-0"], 10),
    ],
)
def test_count_between_two_offsets_counts_messages_inside_compressed_sets(
    running_broker: Broker, topic: Invoke, codec: Codec, spec: list[str], expected: int
) -> None:
    fill(running_broker, "t", DIGITS, codec=codec)
    (record,) = rows(topic("count", "t", *spec, "--output", "json"))
    assert record["messages"] == expected


def test_count_when_the_range_lies_in_several_compressed_sets(
    running_broker: Broker, topic: Invoke
) -> None:
    for codec in (Codec.GZIP, Codec.NONE, Codec.SNAPPY):
        fill(running_broker, "t", DIGITS, codec=codec)
    (record,) = rows(topic("count", "t", "-o", "+5:-5", "--output", "json"))
    assert (record["messages"], record["inner"], record["end_inner"]) == (20, 5, 5)


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_count_when_a_message_is_damaged_ends_as_corrupt_and_names_the_place(
    running_broker: Broker, topic: Invoke, codec: Codec
) -> None:
    fill(running_broker, "t", [b"good"])
    fill(running_broker, "t", [b"bad"], codec=codec)
    damage_last_byte(running_broker)
    result = topic("count", "t")
    assert (result.status, result.stdout) == (ExitStatus.CORRUPT, b"")
    assert "t[0-0]: the message at 14 is invalid" in result.stderr
    assert "pylogctl log verify" in result.stderr
    assert topic("count", "t", "-o", ":14").status == ExitStatus.OK


def test_count_when_a_length_is_damaged_ends_as_corrupt(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"good"])
    fill(running_broker, "t", [b"bad"])
    (segment,) = running_broker.config.data_dir.glob("t*/*.pylog")
    with segment.open("r+b") as file:
        file.seek(14)
        file.write((1 << 20).to_bytes(4, "big"))
    result = topic("count", "t")
    assert result.status == ExitStatus.CORRUPT
    assert "t[0-0]: the message at 14" in result.stderr


def test_count_when_an_offset_is_inside_a_message_names_those_around(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", DIGITS)
    result = topic("count", "t", "-o", "12")
    assert result.status == ExitStatus.USAGE
    assert "12 is not a message boundary in t[0-0]; nearest are 11 and 22" in result.stderr


def test_count_when_an_offset_is_out_of_range_warns_or_fails_if_strict(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", DIGITS)
    result = topic("count", "t", "-o", "0:4096")
    assert result.status == ExitStatus.OK
    assert "warning: t[0-0]: 4096 is after the last offset 110; ending at 110" in result.stderr
    strict = topic("count", "t", "-o", "0:4096", "--strict-offset")
    assert strict.status == ExitStatus.NOT_FOUND


def test_count_from_a_broker_that_knows_only_07(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    fill(running_broker, "t", DIGITS, codec=Codec.GZIP)
    result = invoke("topic", "count", "t", "-b", broker_of_07.address, "--output", "json")
    assert rows(result)[0]["messages"] == 10


def test_count_when_no_broker_answers_is_unreachable(invoke: Invoke) -> None:
    result = invoke("topic", "count", "t", "-b", "127.0.0.1:1", "--timeout", "50ms")
    assert result.status == ExitStatus.UNREACHABLE


def test_count_from_a_file_of_offsets_takes_the_line_of_the_topic(
    running_broker: Broker, topic: Invoke, tmp_path: Path
) -> None:
    fill(running_broker, "t", DIGITS)
    path = tmp_path / "offsets"
    path.write_text("t 0 99\n")
    (record,) = rows(topic("count", "t", "-o", f"file:{path}", "--output", "json"))
    assert (record["start"], record["messages"]) == (99, 1)


# sample


def test_sample_shows_messages_evenly_spaced_with_their_offsets(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", DIGITS)
    found = rows(topic("sample", "t", "-n", "5", "--output", "json"))
    assert [(row["offset"], row["payload"]) for row in found] == [
        (0, "0"), (22, "2"), (44, "4"), (66, "6"), (88, "8"),
    ]  # fmt: skip
    assert found[0] == {
        "topic": "t", "partition": "0-0", "offset": 0, "next_offset": 11, "inner": 0, "size": 1,
        "codec": "none", "crc": "f4dbdf21", "payload": "0",
    }  # fmt: skip


def test_sample_when_there_are_fewer_messages_shows_all(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"a" * 1000, b"b", b"c"], codec=Codec.SNAPPY)
    found = rows(topic("sample", "t", "--output", "json"))
    assert [(row["inner"], row["payload"][0]) for row in found] == [(0, "a"), (1, "b"), (2, "c")]


def test_sample_of_a_large_partition_reads_only_the_messages_shown(
    running_broker: Broker, topic: Invoke
) -> None:
    fill(running_broker, "t", [b"%d" % n + b"x" * 600_000 for n in range(4)])
    fill(running_broker, "t", [b"damaged"])
    damage_last_byte(running_broker)
    result = topic("sample", "t", "-n", "4", "-o", ":-1", "--output", "json")
    assert result.status == ExitStatus.CORRUPT  # -1 must look at the last message
    found = rows(topic("sample", "t", "-n", "4", "--output", "json"))
    assert [row["payload"][0] for row in found] == ["0", "1", "2", "3"]


def test_sample_from_a_broker_that_knows_only_07(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"%d" % n + b"x" * 600_000 for n in range(4)])
    result = invoke(
        "topic", "sample", "t", "-n", "2", "-b", broker_of_07.address, "--output", "csv"
    )
    assert [line.split(",")[2] for line in result.text.splitlines()[1:]] == ["0", "1200022"]


@pytest.mark.parametrize(
    ("form", "text"),
    [("utf8", "\\xff\x00"), ("hex", "ff00"), ("base64", "/wA="), ("escape", "\\xff\\0")],
)
def test_sample_shows_payloads_in_the_form_asked_for(
    running_broker: Broker, topic: Invoke, form: str, text: str
) -> None:
    fill(running_broker, "t", [b"\xff\x00"])
    (record,) = rows(topic("sample", "t", "--payload", form, "--output", "json"))
    assert record["payload"] == text


def test_sample_of_an_empty_topic_says_so_on_stderr_only(topic: Invoke) -> None:
    topic("create", "t", "--partitions", "2")
    result = topic("sample", "t")
    assert (result.status, result.stdout, result.stderr) == (0, b"", "no messages\n")


def test_sample_of_topics_on_several_brokers_shows_each_partition(
    two_brokers: tuple[Broker, Broker], invoke: Invoke
) -> None:
    for broker in two_brokers:
        fill(broker, "t", DIGITS)
    result = invoke("topic", "sample", "t", "-n", "1", "-b", at(*two_brokers), "--output", "json")
    assert [row["partition"] for row in rows(result)] == ["1-0", "2-0"]


@pytest.mark.parametrize("words", [["-n", "0"], ["-p", "x"], ["-o", "foo"], ["--payload", "rot13"]])
def test_sample_when_an_option_makes_no_sense_is_a_usage_error(
    running_broker: Broker, topic: Invoke, words: list[str]
) -> None:
    fill(running_broker, "t", DIGITS)
    result = topic("sample", "t", *words)
    assert (result.status, result.stdout) == (ExitStatus.USAGE, b"")


@pytest.mark.parametrize("command", ["offsets", "sample", "count"])
def test_reads_write_the_topic_in_every_format(
    running_broker: Broker, topic: Invoke, command: str
) -> None:
    fill(running_broker, "orders", DIGITS)
    for form in ("table", "plain", "tsv", "csv", "jsonl", "markdown", "name"):
        result = topic(command, "orders", "--output", form)
        assert (result.status, "orders" in result.text) == (0, True)
