"""`pylogctl produce` against real brokers: what ends up in the log, and what is said."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pylogctl
from broker import Broker, SimpleConsumer
from broker.protocol.checksum import crc32
from broker.protocol.compression import Codec
from broker.protocol.message_set import iter_messages
from pylogctl.cli.environment import ExitStatus
from pylogctl.format.framing import Framing, LengthCode, Shape, write_message
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import Invoke

MAX = 1 << 26


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def stored(broker: Broker, topic: str = "t", index: int = 0) -> list[bytes]:
    """Return what a consumer can read now."""
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        return [payload for _, _, payload in consumer.fetch(topic, index, 0, MAX)]


def stored_codecs(broker: Broker, topic: str = "t") -> set[Codec]:
    with SimpleConsumer("127.0.0.1", broker.port) as consumer:
        fetched = consumer.fetch(topic, 0, 0, MAX)
        return {message.codec for message in iter_messages(fetched.data, 0)}


@pytest.fixture
def produce(running_broker: Broker, invoke: Invoke) -> Invoke:
    """Run `produce t` on `running_broker`."""

    def run(*args: str, stdin: bytes = b"") -> object:
        return invoke("produce", "-b", at(running_broker), "t", *args, stdin=stdin)

    return run  # type: ignore[return-value]  # a callable with the same result


@pytest.fixture
def broker_of_three(start_broker: Callable[..., Broker]) -> Broker:
    """A broker whose topics have three partitions."""
    return start_broker(num_partitions=3)


# --- the contract: bytes in, the same bytes out ---------------------------------------------


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (b"a\nb\n", [b"a", b"b"]),
        (b"a\nb", [b"a", b"b"]),
        (b"a\r\nb\r\n", [b"a\r", b"b\r"]),
        (b"a\rb\n", [b"a\rb"]),
        (b"\0\n\0\0\n", [b"\0", b"\0\0"]),
        (b"\xff\xfe\n\x80\n", [b"\xff\xfe", b"\x80"]),
        (b"\n\n\n", [b"", b"", b""]),
        (b"\n", [b""]),
    ],
)
def test_produce_when_given_lines_stores_their_bytes(
    running_broker: Broker, produce: Invoke, text: bytes, messages: list[bytes]
) -> None:
    assert produce(stdin=text).status == 0
    assert stored(running_broker) == messages


@pytest.mark.parametrize("name", ["Apache_2k.log", "OpenSSH_2k.log"])
def test_produce_when_given_real_logs_keeps_every_byte(
    running_broker: Broker, produce: Invoke, shared_data: Path, name: str
) -> None:
    text = (shared_data / "logs" / name).read_bytes()
    produce(stdin=text)
    assert (
        b"".join(message + b"\n" for message in stored(running_broker))
        == text.removesuffix(b"\n") + b"\n"
    )


def test_produce_when_a_line_has_ten_mebibytes_sends_it_if_allowed(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(max_message_bytes=16 << 20)
    line = os.urandom(10 << 20).replace(b"\n", b"x")
    args = ("produce", "t", "-b", at(broker), "--max-size", "16MiB")
    assert invoke(*args, stdin=b"before\n" + line + b"\nafter\n").status == 0
    assert stored(broker) == [b"before", line, b"after"]


def test_produce_when_lines_exceed_a_batch_sends_all_in_order(
    running_broker: Broker, produce: Invoke
) -> None:
    messages = [b"%d" % number for number in range(5000)]
    produce(stdin=b"\n".join(messages))
    assert stored(running_broker) == messages


def test_produce_when_batches_are_limited_in_bytes_sends_all_in_order(
    running_broker: Broker, produce: Invoke
) -> None:
    messages = [b"x" * (number % 50) for number in range(500)]
    produce("--batch-bytes", "100", stdin=b"\n".join([*messages, b""]))
    assert stored(running_broker) == messages


FRAMINGS: list[tuple[list[str], Framing]] = [
    (["-L"], Framing(Shape.LENGTH)),
    (["-L", "u32le"], Framing(Shape.LENGTH, length_code=LengthCode.U32LE)),
    (["-L", "u64be"], Framing(Shape.LENGTH, length_code=LengthCode.U64BE)),
    (["--length-prefixed", "varint"], Framing(Shape.LENGTH, length_code=LengthCode.VARINT)),
    (["--hex"], Framing(Shape.HEX)),
    (["--base64"], Framing(Shape.BASE64)),
]


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.sampled_from(FRAMINGS),
    st.lists(st.binary(max_size=300), max_size=20),
    st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"]),
)
def test_produce_when_framed_for_any_bytes_stores_them(
    running_broker: Broker,
    invoke: Invoke,
    framing: tuple[list[str], Framing],
    payloads: list[bytes],
    codec: str,
) -> None:
    topic = f"t{os.urandom(8).hex()}"
    text = b"".join(write_message(payload, framing[1]) for payload in payloads)
    args = ("-b", at(running_broker), "produce", topic, *framing[0], "-z", codec)
    assert invoke(*args, stdin=text).status == 0
    assert not payloads or stored(running_broker, topic) == payloads


def test_produce_when_random_bytes_are_length_prefixed_stores_them(
    running_broker: Broker, produce: Invoke
) -> None:
    payload = os.urandom(900_000)
    produce("-L", stdin=write_message(payload, Framing(Shape.LENGTH)))
    assert stored(running_broker) == [payload]


@pytest.mark.parametrize(
    ("args", "text", "messages"),
    [
        (["-0"], b"a\0b\n\0c", [b"a", b"b\n", b"c"]),
        (["-D", "--"], b"a--b-c--", [b"a", b"b-c"]),
        (["-D", r"\r\n"], b"a\r\nb\nc\r\n", [b"a", b"b\nc"]),
        (["-D", ""], b"a\nb\n", [b"a\nb\n"]),
        (["--whole"], b"a\nb\n", [b"a\nb\n"]),
        (["--whole"], b"", [b""]),
    ],
)
def test_produce_when_delimited_otherwise_splits_there_only(
    running_broker: Broker, produce: Invoke, args: list[str], text: bytes, messages: list[bytes]
) -> None:
    assert produce(*args, stdin=text).status == 0
    assert stored(running_broker) == messages


def test_produce_when_given_its_own_json_stores_the_payloads(
    running_broker: Broker, produce: Invoke, invoke: Invoke
) -> None:
    payloads = [b"text", b"\xff\0", b"", "grün\n".encode()]
    produce("-L", stdin=b"".join(write_message(p, Framing(Shape.LENGTH)) for p in payloads))
    consumed = invoke("consume", "t", "-b", at(running_broker), "--from-beginning", "-e", "--jsonl")
    invoke("produce", "u", "-b", at(running_broker), "--jsonl", stdin=consumed.stdout)
    assert stored(running_broker, "u") == payloads


@pytest.mark.parametrize("codec", list(Codec))
def test_produce_when_given_a_codec_stores_what_it_compressed(
    running_broker: Broker, produce: Invoke, codec: Codec
) -> None:
    assert produce("-z", codec.name.lower(), stdin=b"a\nb\n").status == 0
    assert stored(running_broker) == [b"a", b"b"]
    assert stored_codecs(running_broker) == {codec}


def test_produce_when_a_batch_does_not_compress_below_the_limit_sends_it_plain(
    running_broker: Broker, produce: Invoke
) -> None:
    payload = os.urandom(1_000_000).replace(b"\n", b"x")
    assert produce("-z", "gzip", stdin=payload).status == 0
    assert stored_codecs(running_broker) == {Codec.NONE}


def test_produce_when_it_ends_everything_can_be_read(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000, flush_interval_messages=1_000_000)
    invoke("produce", "t", "-b", at(broker), stdin=b"a\n")
    assert stored(broker) == [b"a"]


def test_produce_when_told_not_to_wait_does_not_ask_for_a_flush(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000, flush_interval_messages=1_000_000)
    assert invoke("produce", "t", "-b", at(broker), "--no-barrier", stdin=b"a\n").status == 0
    assert stored(broker) == []


@pytest.mark.parametrize("acks", ["0", "1", "-1"])
def test_produce_when_given_any_acknowledgement_ends_with_all_readable(
    start_broker: Callable[..., Broker], invoke: Invoke, acks: str
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000, flush_interval_messages=1_000_000)
    args = ("-b", at(broker), "-X", f"request.required.acks={acks}")
    assert invoke("produce", "t", *args, stdin=b"a\nb\n").status == 0
    assert stored(broker) == [b"a", b"b"]


def test_produce_when_the_broker_knows_only_07_ends_with_all_readable(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    result = invoke("produce", "t", "-b", broker_of_07.address, stdin=b"a\nb\n")
    assert (result.status, stored(running_broker)) == (0, [b"a", b"b"])


# --- inputs -----------------------------------------------------------------------------------


def test_produce_when_given_files_reads_them_in_order(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1\n2")
    (tmp_path / "b").write_bytes(b"4\n")
    produce(str(tmp_path / "a"), "-", str(tmp_path / "b"), stdin=b"3\n")
    assert stored(running_broker) == [b"1", b"2", b"3", b"4"]


def test_produce_when_each_file_is_a_message_stores_their_bytes(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    contents = [b"a\nb\n", b"", b"\0\xff"]
    names = []
    for number, content in enumerate(contents):
        names.append(str(tmp_path / str(number)))
        Path(names[-1]).write_bytes(content)
    produce("--whole", *names)
    assert stored(running_broker) == contents


def test_produce_when_a_file_is_missing_sends_nothing(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1\n")
    result = produce(str(tmp_path / "a"), str(tmp_path / "nothing"))
    assert result.status == ExitStatus.NOT_FOUND
    assert "nothing': no such file or directory" in result.stderr
    assert not (running_broker.config.data_dir / "t_0").exists()


def test_produce_when_told_to_skip_a_missing_file_sends_the_others(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"1\n")
    result = produce(str(tmp_path / "nothing"), str(tmp_path / "a"), "--on-error", "skip")
    assert (result.status, stored(running_broker)) == (ExitStatus.PARTIAL, [b"1"])


def test_produce_when_a_file_is_a_directory_says_so(produce: Invoke, tmp_path: Path) -> None:
    assert f"'{tmp_path}': is a directory" in produce(str(tmp_path)).stderr


def test_produce_when_the_input_is_empty_says_so_and_succeeds(produce: Invoke) -> None:
    result = produce()
    assert (result.status, result.stdout) == (0, b"")
    assert result.stderr.splitlines()[0] == "nothing to send: the input is empty"


@pytest.mark.parametrize("args", [["-n", "2"], ["-n", "2", "--skip-empty"]])
def test_produce_when_limited_sends_exactly_so_many(
    running_broker: Broker, produce: Invoke, args: list[str]
) -> None:
    produce(*args, stdin=b"a\nb\nc\nd\n")
    assert stored(running_broker) == [b"a", b"b"]


def test_produce_when_no_message_is_wanted_sends_none(produce: Invoke) -> None:
    assert "0 messages" in produce("-n", "0", stdin=b"a\n").stderr


def test_produce_when_the_limit_is_above_the_input_sends_the_unfinished_line_too(
    running_broker: Broker, produce: Invoke
) -> None:
    produce("-n", "2", stdin=b"a\nb")
    assert stored(running_broker) == [b"a", b"b"]


def test_produce_when_told_to_skip_empty_lines_leaves_them_out(
    running_broker: Broker, produce: Invoke
) -> None:
    produce("--skip-empty", stdin=b"\na\n\n\nb\n\n")
    assert stored(running_broker) == [b"a", b"b"]


def test_produce_when_given_a_template_replaces_its_placeholders(
    running_broker: Broker, produce: Invoke
) -> None:
    produce("--template", stdin=b'{"n":{i},"x":"{rand:5}"}\n{i} {other} {now} {uuid}\n')
    first, second = stored(running_broker)
    assert re.fullmatch(rb'\{"n":1,"x":"[A-Za-z0-9]{5}"\}', first)
    pattern = rb"2 \{other\} \d{4}-\d\d-\d\dT[\d:.]+Z [0-9a-f]{8}-[0-9a-f-]{27}"
    assert re.fullmatch(pattern, second)


def test_produce_when_given_a_csv_column_sends_its_fields(
    running_broker: Broker, produce: Invoke
) -> None:
    text = b'id,name\r\n1,"a, ""b"""\r\n2,"two\nlines"\r\n3,\xff\r\n'
    assert produce("--csv-column", "name", stdin=text).status == 0
    assert stored(running_broker) == [b'a, "b"', b"two\nlines", b"\xff"]


def test_produce_when_asked_to_tee_copies_what_it_accepts(produce: Invoke) -> None:
    result = produce("--tee", "-n", "3", stdin=b"a\r\n\n\xff\nd\n")
    assert (result.status, result.stdout) == (0, b"a\r\n\n\xff\n")


def test_produce_when_asked_to_tee_a_framing_copies_the_bytes_as_they_came(
    produce: Invoke,
) -> None:
    text = b"6 1\n \nzz\nFF"
    result = produce("--tee", "--hex", "--on-error", "skip", stdin=text)
    assert result.stdout == b"6 1\n \nFF"


# --- where messages go ------------------------------------------------------------------------


def test_produce_when_nothing_else_is_said_uses_one_partition(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    invoke("produce", "t", "-b", at(broker_of_three), stdin=b"x\n")
    invoke("produce", "t", "-b", at(broker_of_three), stdin=b"1\n2\n3\n4\n5\n6\n")
    filled = [index for index in range(3) if b"1" in stored(broker_of_three, index=index)]
    assert len(filled) == 1
    assert stored(broker_of_three, index=filled[0])[-6:] == [b"1", b"2", b"3", b"4", b"5", b"6"]


@pytest.mark.parametrize("partition", ["1", "0-1", "*-1"])
def test_produce_when_given_a_partition_uses_that(
    broker_of_three: Broker, invoke: Invoke, partition: str
) -> None:
    result = invoke("produce", "t", "-b", at(broker_of_three), "-p", partition, stdin=b"a\n")
    assert (result.status, stored(broker_of_three, index=1)) == (0, [b"a"])
    assert "to t[0-1] in" in result.stderr


@pytest.mark.parametrize("partition", ["3", "1-0"])
def test_produce_when_the_partition_does_not_exist_says_which_do(
    broker_of_three: Broker, invoke: Invoke, partition: str
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, stdin=b"a\n")
    result = invoke(*args, "-p", partition, stdin=b"a\n")
    assert result.status == ExitStatus.NOT_FOUND
    assert result.stderr == (
        f"error: topic 't' has no partition '{partition}'\n  partitions: 0-0, 0-1, 0-2\n"
    )


def test_produce_when_the_partition_fits_several_asks_which(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, stdin=b"a\n")
    result = invoke(*args, "-p", "0..1", stdin=b"a\n")
    assert result.status == ExitStatus.USAGE
    assert result.stderr == (
        "error: '0..1' fits 2 partitions of topic 't'\n  choose one: 0-0, 0-1\n"
    )


def test_produce_when_going_round_robin_puts_each_message_on_the_next_partition(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, stdin=b"x\n")
    before = [len(stored(broker_of_three, index=index)) for index in range(3)]
    invoke(*args, "--partitioner", "round-robin", stdin=b"1\n2\n3\n4\n5\n6\n7\n8\n9\n")
    after = [len(stored(broker_of_three, index=index)) for index in range(3)]
    assert [b - a for a, b in zip(before, after, strict=True)] == [3, 3, 3]


def test_produce_when_keys_differ_only_their_hash_decides(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, stdin=b"first\n")
    lines = [b"%c:%d" % (key, number) for number in range(4) for key in b"abcdef"]
    assert invoke(*args, "-K", ":", stdin=b"\n".join(lines)).status == 0
    # String.hashCode of one letter is its code; 'a' is 97
    for index in range(3):
        expected = [line[2:] for line in lines if line[0] % 3 == index]
        assert [m for m in stored(broker_of_three, index=index) if m != b"first"] == expected


def test_produce_when_a_line_has_no_key_names_it(produce: Invoke) -> None:
    result = produce("-K", r"\t", stdin=b"a\tb\nc\n")
    assert result.status == ExitStatus.USAGE
    assert result.stderr.startswith(r"error: line 2: no key delimiter '\t' in it" + "\n")


def test_produce_when_given_one_key_sends_all_to_its_partition(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, "-p", "0", stdin=b"x\n")
    invoke(*args, "-k", "b", stdin=b"1\n2\n")
    assert stored(broker_of_three, index=98 % 3) == [b"1", b"2"]


def test_produce_when_told_to_keep_partitions_uses_those_of_the_json(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, "-p", "0", stdin=b"x\n")
    text = b'{"partition":2,"broker":0,"payload":"a"}\n{"partition":1,"payload":"b"}\n'
    assert invoke(*args, "--jsonl", "--keep-partition", stdin=text).status == 0
    assert stored(broker_of_three, index=1) == [b"b"]
    assert stored(broker_of_three, index=2) == [b"a"]


# --- messages that cannot be sent -------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "text", "error"),
    [
        (["--hex"], b"00\n\n0a\nzz\n", "line 4: 'z' is not a hex digit"),
        (["--base64"], b"YQ==\n*\n", "line 2: '*' is not a base64 digit"),
        (["--jsonl"], b'{"payload":"a"}\n{}\n', "line 2: exactly one payload field is needed"),
        (["--jsonl"], b"[1]\n", "line 1: not a JSON object"),
        (["--jsonl", "--strict"], b'{"payload":"","ofset":1}\n', "line 1: unknown field 'ofset'"),
        (["--jsonl", "--keep-partition"], b'{"payload":"a"}\n', "line 1: no partition, which"),
        (
            ["--max-size", "5"],
            b"12345\n1\n123456\n1\n",
            "message 3 (input byte 8) has 6 bytes; the limit is 5 (--max-size)",
        ),
        (
            ["--max-size", "5", "--skip-empty"],
            b"12345\n\n123456\n",
            "message 3 (input byte 7) has 6 bytes; the limit is 5 (--max-size)",
        ),
        (
            ["--max-size", "5"],
            b"1\n" + b"x" * 3_000_000 + b"\n2\n",
            "message 2 (input byte 2) has 3000000 bytes; the limit is 5 (--max-size)",
        ),
        (
            ["-L", "--max-size", "5"],
            b"\0\0\0\1a\0\0\0\6abcdef",
            "message 2 (input byte 5) has 6 bytes; the limit is 5 (--max-size)",
        ),
        (
            ["--whole", "--max-size", "5"],
            b"123456",
            "message 1 (input byte 0) has 6 bytes; the limit is 5 (--max-size)",
        ),
        (["--csv-column", "nam"], b"id,name\n", "no column 'nam' in line 1; did you mean 'name'?"),
        (["--csv-column", "b"], b"a,b\n1,2\n3\n", "line 3: 1 fields, none for column 'b'"),
        (["--csv-column", "b"], b'a,b\n1,"2"x\n', "line 2: "),
        (["--csv-column", "b"], b'a,b\n1,"2\n3,4\n5,6\n', "line 2: unexpected end of data"),
    ],
)
def test_produce_when_a_message_is_bad_says_which_and_ends_with_a_usage_error(
    produce: Invoke, args: list[str], text: bytes, error: str
) -> None:
    result = produce(*args, stdin=text)
    assert result.status == ExitStatus.USAGE
    assert result.stderr.startswith(f"error: {error}")


def test_produce_when_the_input_ends_inside_a_message_is_corrupt(produce: Invoke) -> None:
    result = produce("-L", stdin=b"\0\0\0\5abc")
    assert result.status == ExitStatus.CORRUPT
    assert "the input ends inside message 1, which starts at input byte 0" in result.stderr


def test_produce_when_a_json_names_no_partition_there_is_names_the_line(
    broker_of_three: Broker, invoke: Invoke
) -> None:
    args = ("produce", "t", "-b", at(broker_of_three))
    invoke(*args, stdin=b"x\n")
    text = b'{"partition":1,"payload":"a"}\n{"partition":7,"payload":"b"}\n'
    result = invoke(*args, "--jsonl", "--keep-partition", stdin=text)
    assert result.status == ExitStatus.NOT_FOUND
    assert result.stderr.startswith("error: line 2: topic 't' has no partition '7'\n")
    assert stored(broker_of_three, index=1)[-1:] == [b"a"]


def test_produce_when_a_file_ends_inside_a_message_has_sent_those_before(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "f").write_bytes(b"\0\0\0\1a\0\0\0\5abc")
    result = produce("-L", str(tmp_path / "f"))
    assert result.status == ExitStatus.CORRUPT
    assert result.stderr.startswith(f"error: {tmp_path / 'f'}: the input ends inside message 2")
    assert stored(running_broker) == [b"a"]


def test_produce_when_a_message_in_a_file_is_bad_names_the_file(
    produce: Invoke, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"00\n")
    (tmp_path / "b").write_bytes(b"00\nx\n")
    result = produce("--hex", str(tmp_path / "a"), str(tmp_path / "b"))
    assert result.stderr == (
        f"error: {tmp_path / 'b'}: line 2: 'x' is not a hex digit\n  messages sent before: 2\n"
    )


def test_produce_when_it_stops_at_a_message_has_sent_those_before(
    running_broker: Broker, produce: Invoke
) -> None:
    produce("--max-size", "3", stdin=b"a\nbb\ntoo long\nc\n")
    produce("--hex", stdin=b"61\nx\n")
    assert stored(running_broker) == [b"a", b"bb", b"a"]


@pytest.mark.parametrize(
    ("args", "text", "messages"),
    [
        (["--max-size", "3"], b"a\nlonger\nb\nlonger\nc", [b"a", b"b", b"c"]),
        (["--max-size", "3"], b"a\n" + b"x" * 3_000_000 + b"\nb\n", [b"a", b"b"]),
        (["--max-size", "3"], b"a\n" + b"x" * 3_000_000, [b"a"]),
        (["--max-size", "3", "-n", "2"], b"longer\na\nlonger\nb\nc\n", [b"a", b"b"]),
        (["-L", "--max-size", "3"], b"\0\0\0\5abcde\0\0\0\1x", [b"x"]),
        (["--hex"], b"61\nzz\n62\n", [b"a", b"b"]),
        (["--jsonl"], b'{"payload":"a"}\n{\n{"payload":"b"}\n', [b"a", b"b"]),
        (["-K", ":"], b"k:a\nb\nk:c\n", [b"a", b"c"]),
        (["--csv-column", "b"], b'a,b\n1,2\n3\n4,"5"x\n6,7\n', [b"2", b"7"]),
    ],
)
def test_produce_when_told_to_skip_leaves_bad_messages_out_and_ends_partly_done(
    running_broker: Broker, produce: Invoke, args: list[str], text: bytes, messages: list[bytes]
) -> None:
    result = produce("--on-error", "skip", *args, stdin=text)
    assert result.status == ExitStatus.PARTIAL
    assert stored(running_broker) == messages
    assert "left out" in result.stderr.splitlines()[-1]


def test_produce_when_the_broker_has_a_smaller_limit_says_which_messages_it_refused(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(max_message_bytes=100)
    text = b"a\n" + b"x" * 101 + b"\nb\n"
    result = invoke("produce", "t", "-b", at(broker), "--sync", stdin=text)
    assert result.status == ExitStatus.USAGE
    assert result.stderr.startswith("error: message 2 refused: a message of 101 bytes")
    args = ("produce", "u", "-b", at(broker), "--sync", "--on-error", "skip")
    assert invoke(*args, stdin=text).status == ExitStatus.PARTIAL
    assert stored(broker, "u") == [b"a", b"b"]


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["--batch-messages", "10"],
        ["--batch-messages", "7", "-z", "gzip"],
        ["-p", "0"],
        ["-K", "|"],
        ["--partitioner", "round-robin", "--template"],
        ["-X", "request.required.acks=-1"],
        ["--on-broker-loss", "wait"],
    ],
    ids=" ".join,
)
@pytest.mark.parametrize("is_new", [False, True])
def test_produce_when_a_message_is_above_the_brokers_limit_then_stores_none_behind_it(
    start_broker: Callable[..., Broker], invoke: Invoke, args: list[str], is_new: bool
) -> None:
    broker = start_broker(max_message_bytes=100, num_partitions=3)
    if not is_new:
        invoke("produce", "t", "-b", at(broker), "-p", "0", stdin=b"first\n")
    lines = [b"%d|%d" % (number, number) for number in range(1, 30_000)]
    # with gzip, what does not become smaller
    lines[10] = bytes(range(11, 211)) if "gzip" in args else b"k|" + b"x" * 101

    result = invoke("produce", "t", "-b", at(broker), *args, stdin=b"\n".join(lines))

    assert result.status == ExitStatus.USAGE
    size = len(lines[10]) - ("-K" in args) * len("k|")
    assert result.stderr.splitlines() == [
        f"error: message 11 refused: a message of {size} bytes for topic 't' is above "
        "max.message.size=100",
        "  messages sent before: 10",
    ]
    with pylogctl.connect(at(broker)) as client:
        found = {one.value.rpartition(b"|")[2] for one in client.read("t")}
    assert found - {b"first"} == {b"%d" % number for number in range(1, 11)}


def test_produce_when_told_to_skip_one_above_the_brokers_limit_then_sends_all_others_in_order(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(max_message_bytes=100)
    lines = [b"%d" % number for number in range(10_000)]
    large = b"x" * 101
    text = b"\n".join([*lines[:5], large, *lines[5:], large])

    result = invoke("produce", "t", "-b", at(broker), "--on-error", "skip", "--tee", stdin=text)

    assert result.status == ExitStatus.PARTIAL
    assert [line.split()[:3] for line in result.stderr.splitlines()[:2]] == [
        ["error:", "message", "6"],
        ["error:", "message", "10002"],
    ]
    assert stored(broker) == lines
    assert result.stdout == b"\n".join(lines) + b"\n"


def test_produce_when_a_compressed_batch_is_above_the_brokers_limit_then_sends_it_plain(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(max_message_bytes=100)
    lines = [b"%d" % number for number in range(10_000)]
    text = b"\n".join(lines)
    assert invoke("produce", "t", "-b", at(broker), "-z", "gzip", stdin=text).status == 0
    assert stored(broker) == lines
    assert Codec.NONE in stored_codecs(broker)


# --- receipts, verification, summary -------------------------------------------------------------


def test_produce_when_asked_for_a_receipt_writes_a_line_for_each_message(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt"
    assert produce("--receipt", str(receipt), stdin=b"a\n\nccc\n").status == 0
    lines = [json.loads(line) for line in receipt.read_text().splitlines()]
    expected = [(1, 0, b"a"), (2, 11, b""), (3, 21, b"ccc")]
    assert lines == [
        {
            "seq": seq,
            "topic": "t",
            "partition": "0-0",
            "offset": offset,
            "size": len(payload),
            "crc": f"{crc32(payload):08x}",
        }
        for seq, offset, payload in expected
    ]


def test_produce_when_resumed_sends_only_what_is_not_confirmed(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    receipt = tmp_path / "receipt"
    args = ("--receipt", str(receipt), "--resume", str(receipt))
    produce(*args, "-n", "2", stdin=b"a\nb\nc\nd\n")
    receipt.write_bytes(receipt.read_bytes() + b'{"seq":3,"top')
    result = produce(*args, stdin=b"a\nb\nc\nd\n")
    assert stored(running_broker) == [b"a", b"b", b"c", b"d"]
    assert "2 messages confirmed before" in result.stderr
    assert [json.loads(line)["seq"] for line in receipt.read_text().splitlines()] == [1, 2, 3, 4]


def test_produce_when_resumed_with_other_input_is_corrupt(
    running_broker: Broker, produce: Invoke, tmp_path: Path
) -> None:
    receipt = str(tmp_path / "receipt")
    produce("--receipt", receipt, stdin=b"a\nb\n")
    result = produce("--resume", receipt, stdin=b"a\nX\nc\n")
    assert result.status == ExitStatus.CORRUPT
    assert "message 2 is not the one the receipt confirms" in result.stderr
    assert stored(running_broker) == [b"a", b"b"]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"hello\n", "line 1 is no line of a receipt"),
        (b'{"seq":0,"topic":"t","crc":"00"}\n', "line 1 is no line of a receipt"),
        (b'{"seq":1,"topic":"u","crc":"00"}\n', "line 1 is a receipt for topic 'u', not 't'"),
    ],
)
def test_produce_when_the_receipt_is_none_says_so(
    produce: Invoke, tmp_path: Path, content: bytes, error: str
) -> None:
    (tmp_path / "receipt").write_bytes(content)
    result = produce("--resume", str(tmp_path / "receipt"), stdin=b"a\n")
    assert result.status == ExitStatus.USAGE
    assert error in result.stderr


def test_produce_when_the_receipt_to_resume_is_missing_is_not_found(
    produce: Invoke, tmp_path: Path
) -> None:
    result = produce("--resume", str(tmp_path / "receipt"), stdin=b"a\n")
    assert result.status == ExitStatus.NOT_FOUND


@pytest.mark.parametrize("option", [["--receipt", "r"], ["--verify"]])
def test_produce_when_offsets_are_needed_of_a_07_broker_is_unsupported(
    broker_of_07: BrokerOf07, invoke: Invoke, tmp_path: Path, option: list[str]
) -> None:
    args = [str(tmp_path / word) if word == "r" else word for word in option]
    result = invoke("produce", "t", "-b", broker_of_07.address, *args, stdin=b"a\n")
    assert result.status == ExitStatus.UNSUPPORTED
    assert "does not tell offsets" in result.stderr


@pytest.mark.parametrize("args", [[], ["-z", "gzip"], ["--partitioner", "round-robin"]])
def test_produce_when_asked_to_verify_reads_everything_back(
    broker_of_three: Broker, invoke: Invoke, args: list[str]
) -> None:
    command = ("produce", "t", "-b", at(broker_of_three), "--verify", *args)
    invoke(*command, stdin=b"before\n")
    result = invoke(*command, stdin=b"\n".join(b"%d" % n for n in range(3000)))
    assert result.status == 0
    assert result.stderr.rstrip().endswith("; all read back and compared")


def test_produce_when_done_sums_up_on_stderr(produce: Invoke) -> None:
    result = produce(stdin=b"hello\nworld\n")
    assert result.stdout == b""
    pattern = r"2 messages, 10 B to t\[0-0\] in \d+\.\d{3}s \(\d+(\.\d)?k? msg/s\)\n"
    assert re.fullmatch(pattern, result.stderr)


def test_produce_when_quiet_says_nothing(produce: Invoke) -> None:
    assert produce("-q", stdin=b"a\n").stderr == ""


def test_produce_when_asked_for_json_writes_the_summary_to_stdout(produce: Invoke) -> None:
    result = produce("--output", "json", "--verify", stdin=b"hello\nworld\n")
    document = json.loads(result.stdout)
    assert document["schema"] == "pylogctl.produce/1"
    (record,) = document["data"]
    del record["seconds"], record["messages_per_second"]
    assert record == {
        "topic": "t",
        "partitions": ["0-0"],
        "messages": 2,
        "bytes": 10,
        "refused": 0,
        "resumed": 0,
        "verified": True,
        "dry_run": False,
    }


def test_produce_when_run_dry_checks_everything_and_sends_nothing(
    running_broker: Broker, produce: Invoke
) -> None:
    result = produce("--dry-run", stdin=b"a\nbb\n")
    assert result.status == 0
    assert result.stderr == "2 messages, 3 B would go to t[0-0]; nothing was sent\n"
    assert produce("--dry-run", "--hex", stdin=b"zz\n").status == ExitStatus.USAGE
    produce(stdin=b"x\n")
    assert stored(running_broker) == [b"x"]


# --- options ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (["-0", "--hex"], "only one framing is possible: --null and --hex"),
        (["-D", ",", "-L"], "only one framing is possible: --delimiter and --length-prefixed"),
        (["--whole", "--hex", "f"], "only one framing is possible: --hex and --whole or --raw"),
        (["--csv-column", "a", "--jsonl"], "only one framing is possible: --csv-column and"),
        (["-z", "lzo"], "--codec: 'lzo' is not one of 'none', 'gzip', 'snappy', 'lz4', 'zstd'"),
        (["-p", "x"], "not a partition: 'x'"),
        (["-p", "0,1"], "not a partition: '0,1'"),
        (["-p", "0", "-k", "a"], "--partition cannot be used with --key"),
        (["-k", "a", "-K", ":"], "--key cannot be used with --key-delimiter"),
        (["-K", ""], "--key-delimiter is empty"),
        (["-k", "a", "--partitioner", "random"], "--key cannot be used with --partitioner random"),
        (
            ["-p", "0", "--partitioner", "hash"],
            "--partition cannot be used with --partitioner hash",
        ),
        (["--keep-partition"], "--keep-partition needs --jsonl"),
        (["--strict"], "--strict needs --jsonl"),
        (["--tee", "--output", "json"], "--tee cannot be used with --output"),
        (["--verify", "--no-barrier"], "--verify cannot be used with --no-barrier"),
        (["--template", "--resume", "f"], "--template cannot be used with --resume"),
        (["--linger", "soon"], "not a duration: 'soon'"),
        (["--rate", "fast"], "not a rate: 'fast'"),
        (["--max-size", "big"], "not a size: 'big'"),
        (["--batch-bytes", "big"], "not a size: 'big'"),
        (["--batch-messages", "0"], "--batch-messages: "),
        (["-X", "request.required.acks=2"], "-X: request.required.acks is '2'; it must be one of"),
        (["-X", "num.retrys=2"], "-X: no property 'num.retrys'; did you mean 'num.retries'?"),
        (
            ["--receipt", "f", "-X", "request.required.acks=1"],
            "--receipt cannot be used with request.required.acks=1",
        ),
        (
            ["--verify", "-X", "request.required.acks=0"],
            "--verify cannot be used with request.required.acks=0",
        ),
        (["--ofset", "1"], "no option '--ofset'"),
    ],
)
def test_produce_when_options_do_not_make_sense_says_so_before_connecting(
    invoke: Invoke, args: list[str], error: str
) -> None:
    result = invoke("produce", "-b", "127.0.0.1:1", "t", *args)
    assert result.status == ExitStatus.USAGE
    assert result.stderr.startswith(f"error: {error}")


def test_produce_without_topic_says_what_is_missing(invoke: Invoke) -> None:
    result = invoke("produce")
    assert result.stderr.startswith("error: missing TOPIC\n")


def test_produce_when_the_topic_name_is_illegal_says_why(invoke: Invoke) -> None:
    result = invoke("produce", "-b", "127.0.0.1:1", "a/b")
    assert result.status == ExitStatus.USAGE
    assert result.stderr == "error: invalid topic name 'a/b': '/' is not allowed\n"


def test_produce_when_the_broker_is_down_says_so_once(invoke: Invoke) -> None:
    result = invoke("produce", "-b", "127.0.0.1:1", "--timeout", "200ms", "t", stdin=b"a\n")
    assert result.status == ExitStatus.UNREACHABLE
    assert re.fullmatch(
        r"error: cannot reach 127\.0\.0\.1:1: connection refused \(\d+ attempts? in \d+\.\ds\)\n",
        result.stderr,
    )


def test_produce_when_what_it_sent_cannot_be_read_in_time_tells_the_missing_bytes(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(flush_interval_ms=3_600_000, flush_interval_messages=1_000_000)
    of_07 = BrokerOf07(broker)
    try:
        args = ("produce", "-b", of_07.address, "t", "--timeout", "6s")
        result = invoke(*args, stdin=b"abc\n\n")
    finally:
        of_07.stop()
    assert result.status == ExitStatus.TIMEOUT
    assert result.stderr.endswith(  # it says before that it waits, if that takes long
        "error: 23 bytes of t[0-0] cannot be read yet, 6s after they were sent; "
        "2 messages confirmed, and not known to be readable yet\n"
    )


@pytest.mark.parametrize("args", [("--partitioner", "round-robin"), ("-K", ":")])
def test_produce_when_the_topic_is_new_then_messages_are_placed_among_all_its_partitions(
    start_broker: Callable[..., Broker], invoke: Invoke, args: tuple[str, ...]
) -> None:
    broker = start_broker(num_partitions=4)
    lines = b"".join(b"%d:%d\n" % (number, number) for number in range(40))
    where = f"127.0.0.1:{broker.port}"
    result = invoke("produce", "new", "-b", where, "--output", "json", *args, stdin=lines)
    assert result.status == 0, result.stderr
    (record,) = json.loads(result.stdout)["data"]
    assert record["partitions"] == [f"0-{index}" for index in range(4)]
