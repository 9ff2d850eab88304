"""`pylogctl consume` against real brokers."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from broker import Acks, Broker, Codec, Connection, Producer, StaticCluster, TopicPartition
from broker.producer.settings import ProducerSettings
from broker.protocol.message_set import build_set
from broker.protocol.responses import BrokerAddress
from pylogctl.format.framing import Framing, LengthCode, Shape
from pylogctl.format.framing_reader import read_messages
from tests.support.command_line import Invoke, Spawn
from tests.support.ports import port_of_its_own
from tests.support.waiting import wait_until

MAX = 1 << 30


def fill(
    broker: Broker,
    topic: str,
    payloads: list[bytes],
    *,
    codec: Codec = Codec.NONE,
    index: int = 0,
) -> None:
    """Publish payloads as one set and wait until consumers can read them."""
    cluster = StaticCluster([BrokerAddress(-1, "127.0.0.1", broker.port)], Connection)
    with Producer(cluster, Connection, ProducerSettings(acks=Acks.COMMITTED)) as producer:
        partition = TopicPartition(topic, broker.config.broker_id, index)
        delivery = producer.send_set(partition, build_set(payloads, codec))
    delivery.result()
    cluster.close()


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


@pytest.fixture
def consume(running_broker: Broker, invoke: Invoke) -> Invoke:
    """Run `consume` on `running_broker`, from the beginning to the end."""

    def run(*args: str) -> object:
        return invoke("consume", "-b", at(running_broker), "--from-beginning", "-e", *args)

    return run  # type: ignore[return-value]  # a callable with the same result


def test_consume_when_messages_are_plain_lines_writes_them_in_order(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"one", b"", b"\xff\x00\r", b"three"])
    result = consume("t")
    assert result.stdout == b"one\n\n\xff\x00\r\nthree\n"
    assert result.status == 0
    assert "end of 1 partition reached, 4 messages" in result.stderr


@pytest.mark.parametrize("codec", list(Codec))
def test_consume_when_compressed_writes_what_is_inside(
    running_broker: Broker, consume: Invoke, codec: Codec
) -> None:
    fill(running_broker, "t", [b"a", b"b"], codec=codec)
    fill(running_broker, "t", [b"c"])
    assert consume("t").stdout == b"a\nb\nc\n"


def test_consume_when_limited_inside_a_compressed_set_writes_exactly_so_many(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"a", b"b", b"c"], codec=Codec.GZIP)
    assert consume("t", "-n", "2").stdout == b"a\nb\n"


def test_consume_when_no_message_is_asked_for_writes_nothing(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"a"])
    assert consume("t", "-n", "0").stdout == b""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("start:end", b"a\nbb\nccc\nd\n"),
        ("-1", b"d\n"),
        ("+1:+3", b"bb\nccc\n"),
        ("11:23", b"bb\n"),
        ("~1", b"bb\nccc\nd\n"),
        ("end", b""),
        (":11", b"a\n"),
        ("23:11", b""),
    ],
)
def test_consume_when_given_an_offset_range_reads_just_that(
    running_broker: Broker, invoke: Invoke, spec: str, expected: bytes
) -> None:
    fill(running_broker, "t", [b"a", b"bb", b"ccc", b"d"])
    result = invoke("consume", "t", "-b", at(running_broker), "-e", "-o", spec)
    assert (result.status, result.stdout) == (0, expected)


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ("end:start", "it ends at 0, before its start at 11"),
        ("11:0", "it ends at 0, before its start at 11"),
        ("@2026-11-02:@2026-11-01", "it ends at a time before that of its start"),
    ],
)
@pytest.mark.parametrize("command", ["consume", "copy"])
def test_range_that_ends_before_it_starts_is_told_to_be_empty(
    running_broker: Broker, invoke: Invoke, command: str, spec: str, why: str
) -> None:
    fill(running_broker, "t", [b"a"])
    target = ("u",) if command == "copy" else ()
    result = invoke(command, "t", *target, "-b", at(running_broker), "-o", spec)
    assert (result.status, result.stdout) == (0, b"")
    assert result.stderr.count(f"t[0-0]: the range is empty: {why}") == 1


def test_consume_when_the_range_lies_inside_a_compressed_set_reads_just_that(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"a", b"b", b"c", b"d"], codec=Codec.SNAPPY)
    result = invoke("consume", "t", "-b", at(running_broker), "-o", "+1:+3")
    assert result.stdout == b"b\nc\n"


def test_consume_when_the_offset_is_no_boundary_names_the_neighbours(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"a" * 23, b"b"])
    result = invoke("consume", "t", "-b", at(running_broker), "-o", "17", "-e")
    assert result.status == 2
    assert "17 is not a message boundary in t[0-0]; nearest are 0 and 33" in result.stderr


def test_consume_when_the_offset_is_out_of_range_moves_it_and_says_so(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"a"])
    arguments = ("consume", "t", "-b", at(running_broker), "-o", "4096", "-e")
    result = invoke(*arguments)
    assert result.status == 0
    assert "warning: t[0-0]: 4096 is after the last offset 11; starting at 11" in result.stderr
    assert invoke(*arguments, "--strict-offset").status == 3


def test_consume_when_the_topic_is_unknown_names_similar_ones(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "orders", [b"a"])
    result = consume("ordres")
    assert result.status == 3
    assert "topic 'ordres' not found" in result.stderr
    assert "orders" in result.stderr


def test_consume_when_the_offset_file_is_no_text_then_says_so(
    invoke: Invoke, tmp_path: Path
) -> None:
    file = tmp_path / "offsets"
    file.write_bytes(b"\x94\xff")
    result = invoke("consume", "t", "-b", "127.0.0.1:1", "-o", f"file:{file}")
    assert result.status == 2
    assert f"'{file}' is not UTF-8 text" in result.stderr


def test_consume_when_neither_topic_nor_pattern_is_given_is_a_usage_error(
    invoke: Invoke,
) -> None:
    result = invoke("consume")
    assert result.status == 2
    assert "missing TOPIC" in result.stderr


def test_consume_when_topics_match_a_pattern_reads_all_but_the_excluded(
    running_broker: Broker, consume: Invoke
) -> None:
    for topic in ("a.x", "a.y", "a.z", "b"):
        fill(running_broker, topic, [topic.encode()])
    result = consume("--include", r"a\..*", "--exclude", ".*y", "--order", "partition")
    assert result.stdout == b"a.x\na.z\n"


def test_consume_when_partitions_are_chosen_reads_only_those(
    start_broker: Callable[..., Broker], invoke: Invoke
) -> None:
    broker = start_broker(num_partitions=3)
    for index in range(3):
        fill(broker, "t", [b"%d" % index], index=index)
    base = ("consume", "t", "-b", at(broker), "--from-beginning", "-e")
    assert invoke(*base, "-p", "1..2", "--order", "partition").stdout == b"1\n2\n"
    offset = ("consume", "t", "-b", at(broker), "-e", "-o", "11")
    given = "offset 11 is a position in bytes, in each of 2 partitions; -p names one"
    assert given in invoke(*offset, "-p", "1..2").stderr
    assert "is a position in bytes" not in invoke(*offset, "-p", "1").stderr
    assert sorted(invoke(*base).stdout.split()) == [b"0", b"1", b"2"]
    assert invoke(*base, "-p", "7").status == 3


def test_consume_when_topics_are_on_several_brokers_reads_them_all(
    start_broker: Callable[..., Broker], invoke: Invoke, tmp_path: Path
) -> None:
    brokers = [start_broker(broker_id=n, data_dir=tmp_path / f"data{n}") for n in (1, 2)]
    for broker in brokers:
        fill(broker, "t", [b"from %d" % broker.config.broker_id] * 3)
    addresses = ",".join(map(at, brokers))
    result = invoke("consume", "t", "-b", addresses, "--from-beginning", "-e")
    assert sorted(result.stdout.splitlines()) == [b"from 1"] * 3 + [b"from 2"] * 3


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("-0",), b"a\0b\0"),
        (("-D", r"\r\n--"), b"a\r\n--b\r\n--"),
        (("-D", ", ", "--no-final-delimiter"), b"a, b"),
        (("--raw",), b"ab"),
        (("-D", ""), b"ab"),
        (("-L",), b"\0\0\0\x01a\0\0\0\x01b"),
        (("-L", "varint"), b"\x01a\x01b"),
        (("--hex",), b"61\n62\n"),
        (("--base64",), b"YQ==\nYg==\n"),
        (("-F", r"%o %s{hex}\t"), b"0 61\t11 62\t"),
    ],
)
def test_consume_when_a_framing_is_chosen_writes_in_it(
    running_broker: Broker, consume: Invoke, options: tuple[str, ...], expected: bytes
) -> None:
    fill(running_broker, "t", [b"a", b"b"])
    assert consume("t", *options).stdout == expected


def test_consume_when_two_framings_are_chosen_is_a_usage_error(consume: Invoke) -> None:
    result = consume("t", "-0", "--hex")
    assert result.status == 2
    assert "only one framing is possible" in result.stderr


@settings(
    max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(payloads=st.lists(st.binary(max_size=300), min_size=1, max_size=20), data=st.data())
def test_consume_when_length_prefixed_gives_back_any_bytes(
    running_broker: Broker,
    invoke: Invoke,
    payloads: list[bytes],
    data: st.DataObject,
) -> None:
    codec = data.draw(st.sampled_from(Codec))
    topic = f"t{abs(hash((tuple(payloads), codec)))}"
    fill(running_broker, topic, payloads, codec=codec)
    arguments = ("consume", topic, "-b", at(running_broker), "-n", str(len(payloads)))
    result = invoke(*arguments, "--from-beginning", "-L")

    class Stream:
        def __init__(self, rest: bytes) -> None:
            self.rest = rest

        def read1(self, size: int, /) -> bytes:
            chunk, self.rest = self.rest[:size], self.rest[size:]
            return chunk

    framing = Framing(Shape.LENGTH, length_code=LengthCode.U32BE)
    found = read_messages(Stream(result.stdout), framing, max_message_bytes=MAX)
    assert [one.payload for one in found] == payloads


def test_consume_when_jsonl_gives_every_detail(running_broker: Broker, consume: Invoke) -> None:
    fill(running_broker, "t", [b"hello", b"\xff"], codec=Codec.GZIP)
    first, second = map(json.loads, consume("t", "--jsonl").stdout.splitlines())
    assert first == {
        "topic": "t",
        "broker": 0,
        "partition": 0,
        "offset": 0,
        "next_offset": 0,
        "inner": 0,
        "size": 5,
        "crc": "3610a686",
        "codec": "gzip",
        "payload": "hello",
    }
    assert (second["inner"], second["payload_b64"]) == (1, "/w==")


def test_consume_when_a_payload_holds_the_delimiter_warns_once(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"a", b"b\nc", b"d\ne"])
    result = consume("t")
    assert result.status == 0
    assert result.stderr.count("contains the delimiter") == 1
    assert "payload at offset 11 contains the delimiter" in result.stderr
    assert consume("t", "--strict-framing").status == 8


def test_consume_when_filtered_counts_only_matches(running_broker: Broker, consume: Invoke) -> None:
    fill(running_broker, "t", [b"ok 1", b"oom 1", b"ok 2", b"OOM 2", b"oom 3"])
    assert consume("t", "--grep", "oom", "-i", "-n", "2").stdout == b"oom 1\nOOM 2\n"
    assert consume("t", "--grep", "oom", "--invert").stdout == b"ok 1\nok 2\nOOM 2\n"
    assert consume("t", "--where", "size<5").stdout == b"ok 1\nok 2\n"
    assert consume("t", "--sample", "1/2", "--skip", "1").stdout == b"oom 1\nOOM 2\n"


def test_consume_when_writing_to_a_directory_makes_a_file_for_each_message(
    running_broker: Broker, consume: Invoke, tmp_path: Path
) -> None:
    fill(running_broker, "t", [b"a", b"b"], codec=Codec.GZIP)
    fill(running_broker, "t", [b"c"])
    assert consume("t", "--to-dir", str(tmp_path / "out")).stdout == b""
    files = sorted((tmp_path / "out").iterdir())
    assert [file.read_bytes() for file in files] == [b"a", b"b", b"c"]


def test_consume_when_on_a_terminal_shows_control_bytes_as_escapes(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", ["é\x1b[31m\t\xff".encode("latin-1"), "é\x1b".encode()])
    arguments = ("consume", "t", "-b", at(running_broker), "--from-beginning", "-e")
    result = invoke(*arguments, tty=True)
    assert result.stdout == b"\\xe9\\x1b[31m\t\\xff\n\xc3\xa9\\x1b\n"
    assert invoke(*arguments, "--raw", tty=True).stdout.endswith(b"\xc3\xa9\x1b")


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (["-F", "\\e[1m%s\\n"], b"\x1b[1ma\\x1b[2J\\u202e\\xff\n"),
        (["-F", "%s{upper} %R\\n"], b"A\\x1b[2J\\u202e\\xff \\x00\\x00\\x00\t\n"),
        (["-0"], b"a\\x1b[2J\\u202e\\xff\0"),
        (["-L"], b"\\x00\\x00\\x00\ta\\x1b[2J\\u202e\\xff"),
        (["--jsonl", "--payload-encoding", "hex"], b'"payload_hex":"611b5b324ae280aeff"'),
    ],
)
def test_consume_when_on_a_terminal_escapes_messages_in_every_form(
    running_broker: Broker, invoke: Invoke, form: list[str], expected: bytes
) -> None:
    payload = b"a\x1b[2J" + "\u202e".encode() + b"\xff"
    fill(running_broker, "t", [payload])
    arguments = ("consume", "t", "-b", at(running_broker), "--from-beginning", "-e", *form)
    assert expected in invoke(*arguments, tty=True).stdout
    is_raw_in_pipe = b"a\x1b[2j\xe2\x80\xae\xff" in invoke(*arguments).stdout.lower()
    assert is_raw_in_pipe == (form[0] != "--jsonl")


def damage(broker: Broker, position: int, bits: int = 1) -> None:
    """Flip bits of a byte of the first segment of topic t, under the broker's feet."""
    path = broker.config.data_dir / "t_0" / "00000000000000000000.pylog"
    data = bytearray(path.read_bytes())
    data[position] ^= bits
    path.write_bytes(bytes(data))


def test_consume_when_a_message_is_corrupt_stops_after_the_good_ones(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"one", b"two", b"three"])
    damage(running_broker, 13 + 10)
    result = consume("t")
    assert (result.status, result.stdout) == (8, b"one\n")
    assert "t[0-0]: the message at 13 is invalid" in result.stderr


def test_consume_when_corrupt_messages_are_skipped_ends_as_partial(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"one", b"two", b"three"])
    damage(running_broker, 13 + 10)
    result = consume("t", "--on-corrupt", "skip")
    assert (result.status, result.stdout) == (6, b"one\nthree\n")
    assert consume("t", "--on-corrupt", "raw").stdout == b"one\nuwo\nthree\n"


@pytest.mark.parametrize("position", [13, 17])
def test_consume_when_a_length_or_magic_byte_is_corrupt_says_so_and_where_the_next_message_is(
    running_broker: Broker, consume: Invoke, position: int
) -> None:
    fill(running_broker, "t", [b"one", b"two", b"three"])
    damage(running_broker, position, 0x70)
    result = consume("t")
    assert (result.status, result.stdout) == (8, b"one\n")
    assert "t[0-0]: the message at 13 has an impossible length or magic byte" in result.stderr
    assert "--on-corrupt skip goes on at 26" in result.stderr


@pytest.mark.parametrize(
    ("position", "bits"), [(13, 0x70), (16, 0x18), (17, 0x70)], ids=["long", "short", "magic"]
)
@pytest.mark.parametrize("how", [("-X", "fetch.size=8"), ("-p", "0-0"), ("--hex",)])
def test_consume_when_damage_that_hides_what_follows_is_skipped_goes_on_at_the_next_message(
    running_broker: Broker, consume: Invoke, position: int, bits: int, how: tuple[str, ...]
) -> None:
    fill(running_broker, "t", [b"one", b"two", b"three", b"four"])
    damage(running_broker, position, bits)
    result = consume("t", "--on-corrupt", "skip", *how)
    lines = [
        line.hex().encode() if "--hex" in how else line for line in (b"one", b"three", b"four")
    ]
    assert (result.status, result.stdout.split()) == (6, lines)
    assert "1 corrupt" in result.stderr


def test_consume_when_damage_is_skipped_on_one_of_several_brokers_reads_all_else(
    start_broker: Callable[..., Broker], tmp_path: Path, invoke: Invoke
) -> None:
    brokers = [start_broker(broker_id=n, data_dir=tmp_path / str(n)) for n in range(2)]
    for number, broker in enumerate(brokers):
        fill(broker, "t", [b"%d-%d" % (number, place) for place in range(5)])
        damage(broker, 13, 0x70)
    addresses = ",".join(map(at, brokers))
    result = invoke(
        *("consume", "t", "-b", addresses, "--from-beginning", "-e"),
        *("--on-corrupt", "skip", "-X", "fetch.size=20"),
    )
    wanted = [b"%d-%d" % (number, place) for number in range(2) for place in (0, 2, 3, 4)]
    assert (result.status, sorted(result.stdout.split())) == (6, wanted)


def test_consume_when_nothing_comes_for_the_idle_time_ends(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"a"])
    waits = ("-X", "fetch.wait.max.ms=20")
    base = ("consume", "t", "-b", at(running_broker), "--from-beginning", *waits)
    result = invoke(*base, "--idle-timeout", "3s")  # longer than the message needs to come
    assert (result.status, result.stdout) == (0, b"a\n")
    assert invoke(*base, "--idle-timeout", "50ms", "-n", "2").status == 7
    assert invoke(*base, "--timeout", "100ms").status == 7


def test_consume_when_the_message_is_larger_than_a_fetch_reads_it_all(
    running_broker: Broker, consume: Invoke
) -> None:
    fill(running_broker, "t", [b"x" * 900_000, b"y"])
    assert consume("t", "-X", "fetch.size=1024").stdout == b"x" * 900_000 + b"\ny\n"


def test_consume_when_following_sees_what_is_produced_later(
    running_broker: Broker, spawn: Spawn
) -> None:
    fill(running_broker, "t", [b"first"])
    with spawn("consume", "t", "-b", at(running_broker), "-o", "start") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        fill(running_broker, "t", [b"second"])
        assert process.stdout.readline() == b"second\n"
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"stopped: interrupted, 2 messages" in stderr


def test_consume_when_terminated_ends_with_143(running_broker: Broker, spawn: Spawn) -> None:
    fill(running_broker, "t", [b"first"])
    with spawn("consume", "t", "-b", at(running_broker), "-o", "start") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"first\n"
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 143


def test_consume_when_the_reader_goes_away_ends_by_sigpipe_in_silence(
    running_broker: Broker, spawn: Spawn
) -> None:
    fill(running_broker, "t", [b"x" * 1000] * 900)
    with spawn("consume", "t", "-b", at(running_broker), "-o", "start", "-q") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(10) == b"x" * 10
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)
    assert process.returncode == -signal.SIGPIPE


def test_consume_when_the_reader_goes_away_while_nothing_comes_ends_by_sigpipe_in_silence(
    running_broker: Broker, spawn: Spawn
) -> None:
    fill(running_broker, "t", [b"only"])
    with spawn("consume", "t", "-b", at(running_broker), "-o", "start", "-q") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"only\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(timeout=60)
    assert process.returncode == -signal.SIGPIPE


def test_consume_when_the_disk_behind_stdout_is_full_says_so(
    running_broker: Broker, run_process: Invoke
) -> None:
    fill(running_broker, "t", [b"x"])
    with Path("/dev/full").open("wb") as full:
        result = run_process(
            "consume", "t", "-b", at(running_broker), "-o", "start", "-e", stdout=full
        )
    assert result.status == 1
    assert "error: cannot write output: no space left on device" in result.stderr


def test_consume_when_it_waits_for_a_topic_starts_with_it(
    running_broker: Broker, spawn: Spawn
) -> None:
    options = ("--wait-for-topic", "-o", "start", "-n", "1")
    with spawn("consume", "later", "-b", at(running_broker), *options) as process:
        connections = running_broker.status
        wait_until(lambda: connections()["connections"], "the consumer's connection")
        fill(running_broker, "later", [b"here"])
        stdout, _ = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (0, b"here\n")


def test_consume_when_interrupted_while_it_waits_for_a_topic_ends_with_130(
    running_broker: Broker, spawn: Spawn
) -> None:
    with spawn("consume", "later", "-b", at(running_broker), "--wait-for-topic") as process:
        assert process.stderr is not None
        assert b"waiting for topic later to appear\n" in iter(process.stderr.readline, b"")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, b"")


def test_consume_when_the_broker_is_down_ends_with_status_10(invoke: Invoke) -> None:
    port = port_of_its_own()
    result = invoke("consume", "t", "-b", f"127.0.0.1:{port}", "--timeout", "300ms")
    assert result.status == 10
    assert f"cannot reach 127.0.0.1:{port}: connection refused" in result.stderr


def test_consume_when_the_registry_is_down_says_how_to_do_without(invoke: Invoke) -> None:
    result = invoke("consume", "t", "-Z", "127.0.0.1:1", "--timeout", "200ms")
    assert result.status == 10
    assert "cannot reach ZooKeeper at 127.0.0.1:1: connection refused" in result.stderr


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (("-o", "foo"), "not an offset: 'foo'"),
        (("--from-beginning", "-o", "5"), "only one of them"),
        (("-F", "%q"), "unknown token '%q'"),
        (("--order", "partition"), "--order partition needs an end"),
        (("-p", "x"), "not a partition: 'x'"),
        (("--where", "size"), "not a comparison"),
        (("-i",), "--grep"),
        (("--include", "("), "--include: '(' is no regular expression"),
        (("-X", "fetch.size=big"), "big"),
    ],
)
def test_consume_when_an_option_is_wrong_is_a_usage_error_before_any_connection(
    invoke: Invoke, options: tuple[str, ...], text: str
) -> None:
    result = invoke("consume", "t", "-b", "127.0.0.1:1", *options)
    assert result.status == 2
    assert text in result.stderr


def test_consume_to_the_end_without_a_start_says_why_there_is_nothing(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"x"])
    where = ("t", "-b", at(running_broker), "-e")
    why = "it began at the end; --from-beginning for all\n"
    assert why in invoke("consume", *where).stderr
    assert why not in invoke("consume", *where, "-o", "end").stderr
