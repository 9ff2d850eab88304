"""`pylogctl copy` between real brokers."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker import Broker, Codec, Connection, Producer, StaticCluster, TopicPartition
from broker.client.connection import parse_broker_list
from broker.protocol.checksum import crc32
from broker.protocol.codec import decode
from broker.protocol.message_set import build_set, iter_entries
from pylogctl.cli.environment import ExitStatus
from tests.integration.pylogctl.proxies import BrokerOf07
from tests.support.command_line import Invoke, Result, Spawn
from tests.support.waiting import wait_until


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def fill(
    broker: Broker, topic: str, payloads: list[bytes], index: int = 0, codec: Codec = Codec.NONE
) -> None:
    cluster = StaticCluster(parse_broker_list(at(broker)), Connection)
    with Producer(cluster, Connection) as producer:
        partition = TopicPartition(topic, broker.config.broker_id, index)
        delivery = producer.send_set(partition, build_set(payloads, codec))
    delivery.result()
    cluster.close()


def stored(broker: Broker, topic: str, index: int = 0) -> bytes:
    directory = broker.config.data_dir / f"{topic}_{index}"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.pylog")))


def payloads(broker: Broker, topic: str, index: int = 0) -> list[bytes]:
    return [payload for _, _, payload in decode(stored(broker, topic, index), 0).messages]


def numbers(first: int, last: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, last)]


@pytest.fixture
def pair(start_broker: Callable[..., Broker], tmp_path: Path) -> tuple[Broker, Broker]:
    """A source, broker 0 with two partitions a topic, and a target, broker 7."""
    return (
        start_broker(num_partitions=2, data_dir=tmp_path / "source"),
        start_broker(broker_id=7, data_dir=tmp_path / "target"),
    )


@pytest.fixture
def copy(pair: tuple[Broker, Broker], invoke: Invoke) -> Invoke:
    """Run `copy` from the source to the target."""

    def run(*args: str) -> Result:
        source, target = pair
        result: Result = invoke(
            "copy", *args, "--from", f"brokers={at(source)}", "--to", f"brokers={at(target)}"
        )
        return result

    return run


def rows(result: Result) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(result.text)["data"]
    return data


def test_copy_when_the_target_is_new_then_has_all_partitions_in_order(
    pair: tuple[Broker, Broker], copy: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 500), index=0)
    fill(source, "t", numbers(500, 900), index=1)

    result = copy("t", "u", "--verify", "--output", "json")

    assert result.status == ExitStatus.OK, result.stderr
    assert payloads(target, "u", 0) == numbers(0, 500)
    assert payloads(target, "u", 1) == numbers(500, 900)
    assert [(row["target"], row["messages"]) for row in rows(result)] == [
        ("u[7-0]", 500),
        ("u[7-1]", 400),
    ]
    assert all(row["verified"] for row in rows(result))


def test_copy_when_the_target_has_fewer_partitions_then_each_source_keeps_its_order(
    pair: tuple[Broker, Broker], copy: Invoke
) -> None:
    source, target = pair
    fill(target, "u", [b"there"])
    fill(source, "t", numbers(0, 50), index=0)
    fill(source, "t", numbers(50, 90), index=1)

    result = copy("t", "u")

    found = payloads(target, "u")[1:]
    assert result.status == ExitStatus.OK
    assert [one for one in found if int(one) < 50] == numbers(0, 50)
    assert [one for one in found if int(one) >= 50] == numbers(50, 90)
    assert result.stderr.startswith("90 messages, ")


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_copy_when_sets_are_compressed_then_travel_unchanged(
    pair: tuple[Broker, Broker], copy: Invoke, codec: Codec
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 1000), codec=codec)
    fill(source, "t", [b"\x00\xff\r\n", b""])

    result = copy("t", "u", "--verify")

    assert result.status == ExitStatus.OK
    assert stored(target, "u") == stored(source, "t")
    assert "1002 messages" in result.stderr


def test_copy_when_a_range_cuts_compressed_sets_then_copies_exactly_that(
    pair: tuple[Broker, Broker], copy: Invoke
) -> None:
    source, target = pair
    for first in range(0, 100, 10):
        fill(source, "t", numbers(first, first + 10), codec=Codec.GZIP)

    result = copy("t", "u", "-o", "0=+15:-15", "-n", "52")

    assert result.status == ExitStatus.OK
    assert payloads(target, "u") == numbers(15, 67)
    assert {entry.codec for entry in iter_entries(stored(target, "u"), 0)} == {Codec.GZIP}


def test_copy_when_the_end_cuts_a_compressed_set_then_copies_exactly_that(
    pair: tuple[Broker, Broker], copy: Invoke
) -> None:
    source, target = pair
    for first in range(0, 30, 10):
        fill(source, "t", numbers(first, first + 10), codec=Codec.GZIP)

    assert copy("t", "u", "-o", "+5:-7").status == ExitStatus.OK

    assert payloads(target, "u") == numbers(5, 23)


def test_copy_when_nothing_is_there_then_is_done(pair: tuple[Broker, Broker], copy: Invoke) -> None:
    fill(pair[0], "t", [b"x"])

    result = copy("t", "u", "-o", "end")

    assert result.status == ExitStatus.OK
    assert result.stderr.startswith("0 messages")


def test_copy_when_dry_run_then_shows_the_plan_and_changes_nothing(
    pair: tuple[Broker, Broker], copy: Invoke, invoke: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 10), index=1)

    result = copy("t", "u", "--dry-run", "--output", "json")

    assert [(row["source"], row["target"], row["end"]) for row in rows(result)] == [
        ("t[0-0]", "u[7-0]", 0),
        ("t[0-1]", "u[7-1]", 110),
    ]
    assert invoke("topic", "list", "-b", at(target), "--output", "name").text == ""


def test_copy_when_keeping_partitions_then_needs_the_same_names(
    pair: tuple[Broker, Broker], copy: Invoke, invoke: Invoke
) -> None:
    source, _ = pair
    fill(source, "t", numbers(0, 10), index=1)

    elsewhere = copy("t", "u", "--keep-partition")
    here = invoke("copy", "t", "u", "--keep-partition", "-b", at(source))

    assert elsewhere.status == ExitStatus.UNREACHABLE
    assert "no live broker 0" in elsewhere.stderr
    assert here.status == ExitStatus.OK
    assert payloads(source, "u", 1) == numbers(0, 10)


def test_copy_when_paced_then_copies_all_in_parts(
    pair: tuple[Broker, Broker], copy: Invoke
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 1000))

    assert copy("t", "u", "--rate", "20000/s").status == ExitStatus.OK
    assert copy("t", "v", "--rate", "1MiB/s", "-n", "999").status == ExitStatus.OK

    assert payloads(target, "u") == numbers(0, 1000)
    assert payloads(target, "v") == numbers(0, 999)


def test_copy_when_a_message_is_damaged_then_copies_what_is_before_it_and_says_where(
    pair: tuple[Broker, Broker], copy: Invoke
) -> None:
    source, target = pair
    fill(source, "t", [b"good", b"damaged"])
    (path,) = (source.config.data_dir / "t_0").glob("*.pylog")
    with path.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"!")

    result = copy("t", "u")

    assert result.status == ExitStatus.CORRUPT
    assert "14" in result.stderr
    assert payloads(target, "u") == [b"good"]


def test_copy_when_the_target_is_of_07_then_copies_but_cannot_verify(
    running_broker: Broker, broker_of_07: BrokerOf07, invoke: Invoke
) -> None:
    fill(running_broker, "t", numbers(0, 100))
    sides = ("--from", f"brokers={at(running_broker)}", "--to", f"brokers={broker_of_07.address}")

    copied = invoke("copy", "t", "u", *sides)
    verified = invoke("copy", "t", "v", "--verify", *sides)

    assert copied.status == ExitStatus.OK, copied.stderr
    assert payloads(running_broker, "u") == numbers(0, 100)
    assert verified.status == ExitStatus.UNSUPPORTED


@pytest.mark.parametrize(
    ("args", "status", "text"),
    [
        (("no", "u"), ExitStatus.NOT_FOUND, "topic 'no' not found"),
        (("t", "a/b"), ExitStatus.USAGE, "invalid topic name 'a/b'"),
        (("t", "u", "-o", "5"), ExitStatus.USAGE, "not a message boundary"),
        (("t", "u", "--rate", "fast"), ExitStatus.USAGE, "not a rate: 'fast'"),
        (("t", "u", "-o", "99", "--strict-offset"), ExitStatus.NOT_FOUND, "99 is after"),
    ],
)
def test_copy_when_the_request_is_wrong_then_says_why(
    pair: tuple[Broker, Broker], copy: Invoke, args: tuple[str, ...], status: int, text: str
) -> None:
    fill(pair[0], "t", [b"x" * 20])

    result = copy(*args)

    assert result.status == status
    assert text in result.stderr


def test_copy_when_source_and_target_are_one_topic_then_is_refused(
    running_broker: Broker, invoke: Invoke
) -> None:
    fill(running_broker, "t", [b"x"])

    result = invoke("copy", "t", "t", "-b", at(running_broker))

    assert result.status == ExitStatus.USAGE
    assert "to itself" in result.stderr


def test_copy_when_interrupted_then_tells_where_to_go_on(
    pair: tuple[Broker, Broker], copy: Invoke, spawn: Spawn
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 20_000))
    sides = ("--from", f"brokers={at(source)}", "--to", f"brokers={at(target)}")

    with spawn("copy", "t", "u", "--rate", "2000/s", *sides) as process:
        wait_until(lambda: len(stored(target, "u")) > 0, "the copy to begin")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == ExitStatus.SIGINT
    found = re.search(r"to copy the rest: -o (\S+)", stderr.decode())
    assert found is not None

    assert copy("t", "u", "-o", found[1]).status == ExitStatus.OK

    assert payloads(target, "u") == numbers(0, 20_000)


def test_copy_when_the_target_goes_away_then_tells_what_is_confirmed(
    pair: tuple[Broker, Broker], copy: Invoke, spawn: Spawn
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 20_000))
    sides = ("--from", f"brokers={at(source)}", "--to", f"brokers={at(target)}")

    with spawn("copy", "t", "u", "--rate", "1000/s", "--timeout", "5s", *sides) as process:
        wait_until(lambda: len(payloads(target, "u")) > 2500, "more than the window to arrive")
        target.stop()
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == ExitStatus.UNREACHABLE
    found = re.search(rb"; (\d+) messages confirmed in the target", stderr)
    assert found is not None
    assert 0 < int(found[1]) <= len(payloads(target, "u"))
    assert b"to copy the rest: -o 0-0=" in stderr


def test_copy_when_a_message_is_too_large_for_the_target_then_says_which(
    start_broker: Callable[..., Broker], tmp_path: Path, invoke: Invoke
) -> None:
    source = start_broker(data_dir=tmp_path / "source")
    target = start_broker(broker_id=7, data_dir=tmp_path / "target", max_message_bytes=100)
    fill(source, "t", [b"x" * 101])

    result = invoke(
        "copy", "t", "u", "--from", f"brokers={at(source)}", "--to", f"brokers={at(target)}"
    )

    assert result.status == ExitStatus.USAGE
    assert "u[7-0] does not take messages of t[0-0] before 111" in result.stderr


def test_copy_when_a_message_is_too_large_for_the_target_then_none_behind_it_is_stored(
    start_broker: Callable[..., Broker], tmp_path: Path, invoke: Invoke
) -> None:
    source = start_broker(data_dir=tmp_path / "source")
    target = start_broker(broker_id=7, data_dir=tmp_path / "target", max_message_bytes=100)
    lines = [b"%099d" % number for number in range(30_000)]
    lines[15_000] = b"x" * 101
    for first in range(0, len(lines), 5_000):  # what is read at once becomes one set
        fill(source, "t", lines[first : first + 5_000])

    result = invoke(
        "copy", "t", "u", "--from", f"brokers={at(source)}", "--to", f"brokers={at(target)}"
    )

    assert result.status == ExitStatus.USAGE
    confirmed = re.search(r"; (\d+) messages confirmed in the target", result.stderr)
    assert confirmed is not None
    assert 0 < int(confirmed[1]) < 15_000
    assert payloads(target, "u") == lines[: int(confirmed[1])]


def crc_of_another(entry: bytes) -> bytes:
    return entry[:-1] + bytes([entry[-1] ^ 1])


def impossible_length(entry: bytes) -> bytes:
    return bytes([entry[0] ^ 0x70]) + entry[1:]


def unreadable_content(entry: bytes) -> bytes:
    payload = bytes(len(entry) - 10)
    return entry[:6] + crc32(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize("spoil", [crc_of_another, impossible_length, unreadable_content])
def test_copy_when_corrupt_messages_are_skipped_then_copies_all_others_and_ends_as_partial(
    pair: tuple[Broker, Broker], copy: Invoke, spoil: Callable[[bytes], bytes]
) -> None:
    source, target = pair
    fill(source, "t", numbers(0, 3))
    start = len(stored(source, "t"))
    fill(source, "t", numbers(3, 9), codec=Codec.GZIP)
    end = len(stored(source, "t"))
    fill(source, "t", numbers(9, 12))
    (segment,) = (source.config.data_dir / "t_0").glob("*.pylog")
    with segment.open("r+b") as file:
        entry = stored(source, "t")[start:end]
        file.seek(start)
        file.write(spoil(entry))

    stopped = copy("t", "stopped")
    skipped = copy("t", "skipped", "--on-corrupt", "skip", "--verify")

    assert stopped.status == ExitStatus.CORRUPT
    assert f"t[0-0]: the message at {start} is invalid" in stopped.stderr
    assert f"--on-corrupt skip goes on at {end}" in stopped.stderr
    assert payloads(target, "stopped") == numbers(0, 3)
    assert skipped.status == ExitStatus.PARTIAL
    assert payloads(target, "skipped") == numbers(0, 3) + numbers(9, 12)
    assert "6 messages" in skipped.stderr
    assert "1 corrupt" in skipped.stderr
