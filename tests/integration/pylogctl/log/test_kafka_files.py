"""`pylogctl log recover`, `repair`, `replay` and others on the files of real Kafka brokers."""

from __future__ import annotations

import base64
import json
import re
import shlex
import signal
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from broker import Broker
from broker.log.offline.rewrite import plan_repair
from broker.protocol.codec import Record, RecordBatch, crc32c, decode, decode_records, encode_batch
from broker.protocol.record_batch import CHECKED_FROM, CRC_AT
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke, Spawn
from tests.support.kafka_files import (
    ABORT,
    CONTROL,
    TRANSACTIONAL,
    CopyPartition,
    batch,
    records,
    write_log,
)
from tests.support.waiting import wait_until

FIRST = f"{0:020}.log"
ABORTED = {*range(11, 21), *range(44, 54)}  # offsets of v2-txn


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def values_in(broker: Broker, topic: str = "t") -> list[bytes]:
    directory = broker.config.data_dir / f"{topic}_0"
    data = b"".join(path.read_bytes() for path in sorted(directory.glob("*.pylog")))
    return [payload for _, _, payload in decode(data, 0).messages]


def expected(kafka_logs: Path, topic: str) -> dict[int, bytes | None]:
    """Return the values of a topic by offset."""
    path = kafka_logs / "expected" / f"{topic}.jsonl"
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_bytes().splitlines()]
    return {
        row["offset"]: None if row["value"] is None else base64.b64decode(row["value"])
        for row in rows
    }


def offsets_in(path: Path) -> list[int]:
    found = decode_records(path.read_bytes(), with_control=True)
    assert not found.fault
    return [one.offset for one in found.records]


def damage(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def test_recover_of_a_data_directory_cuts_what_is_damaged_and_then_verify_is_content(
    invoke: Invoke, copy_partition: CopyPartition
) -> None:
    paths = [copy_partition(topic) for topic in ("v2-none", "v2-txn", "v1-gzip")]
    data = str(paths[0].parent)
    torn = paths[0] / FIRST
    torn.write_bytes(torn.read_bytes()[:5000])

    plan = invoke("log", "recover", data, "--columns", "cut_at,cut_bytes,fault", "--no-header")
    assert plan.text.split() == ["4562", "438", "partial"]
    assert torn.stat().st_size == 5000
    done = invoke("log", "recover", data, "--execute", "--yes", "--confirm", FIRST)
    assert done.status == 0, done.stderr
    assert offsets_in(torn) == list(range(50))
    assert invoke("log", "verify", data).status == 0
    again = invoke("log", "recover", data, "--execute")
    assert again.stderr == "nothing to recover\n"


def test_repair_of_a_damaged_middle_keeps_the_offsets_of_all_other_batches(
    invoke: Invoke, copy_partition: CopyPartition, tmp_path: Path
) -> None:
    path = copy_partition("v2-none") / FIRST
    damage(path, 5000)
    source = path.read_bytes()
    copy = tmp_path / "copy" / FIRST

    planned = invoke("log", "repair", str(path), "--to", str(copy), "--dry-run")
    assert not copy.exists()
    result = invoke("log", "repair", str(path), "--to", str(copy), "--output", "jsonl")

    assert "275 messages" in planned.stderr
    (row,) = (json.loads(line) for line in result.text.splitlines())
    assert (row["pos"], row["kind"], row["left_out_bytes"]) == (4562, "crc", 2316)
    assert offsets_in(copy) == [*range(50), *range(75, 300)]
    assert path.read_bytes() == source
    assert invoke("log", "verify", str(copy)).status == 0


def test_repair_leaves_out_batches_with_broken_records_or_out_of_order(
    invoke: Invoke, tmp_path: Path
) -> None:
    def batch(offset: int) -> bytes:
        records = [Record(offset + n, 0, b"key", b"value") for n in range(3)]
        return encode_batch(records, RecordBatch(base_offset=offset))

    broken = bytearray(batch(3))
    broken[-1] = 9  # headers that are not there
    broken[CRC_AT:CHECKED_FROM] = crc32c(broken[CHECKED_FROM:]).to_bytes(4, "big")
    parts = [batch(0), bytes(broken), batch(900), batch(6), batch(2), batch(9), b"torn"]
    path = tmp_path / FIRST
    path.write_bytes(b"".join(parts))
    copy = tmp_path / "copy.log"

    result = invoke("log", "repair", str(path), "--to", str(copy), "--output", "jsonl")

    size = len(parts[0])
    rows = [json.loads(line) for line in result.text.splitlines()]
    assert [(row["pos"] // size, row["kind"]) for row in rows] == [
        (1, "records"),
        (2, "offset"),
        (4, "offset"),
        (6, "partial"),
    ]
    assert copy.read_bytes() == batch(0) + batch(6) + batch(9)
    assert "9 messages" in result.stderr


def test_repair_of_many_batches_out_of_order_keeps_only_their_places_in_memory(
    tmp_path: Path,
) -> None:
    good, again = batch(records(9, 10)), batch([Record(1, 0, None, bytes(100_000))])
    path = write_log(tmp_path, good, *[again] * 200)
    tracemalloc.start()
    plan = plan_repair(path, tmp_path / "copy.log")
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert (len(plan.left_out), plan.message_count, plan.size_bytes) == (200, 1, len(again))
    assert peak_bytes < 5_000_000


def test_repair_counts_the_messages_of_a_batch_whose_time_is_wrong(
    invoke: Invoke, tmp_path: Path
) -> None:
    data = bytearray(batch(records(0, 3)))
    data[35:43] = (10**6).to_bytes(8, "big")  # the largest timestamp
    data[CRC_AT:CHECKED_FROM] = crc32c(data[CHECKED_FROM:]).to_bytes(4, "big")
    path = write_log(tmp_path, bytes(data), batch(records(3, 5)))

    done = invoke("log", "repair", str(path), "--to", str(tmp_path / "copy.log"))

    assert "5 messages" in done.stderr
    assert (tmp_path / "copy.log").read_bytes() == path.read_bytes()


def test_replay_sends_what_a_consumer_of_committed_records_gets(
    invoke: Invoke, running_broker: Broker, copy_partition: CopyPartition, kafka_logs: Path
) -> None:
    directory = str(copy_partition("v2-txn"))
    records = expected(kafka_logs, "v2-txn")

    dry = invoke("log", "replay", directory, "-t", "t", "-b", at(running_broker), "--dry-run")
    assert "40 messages" in dry.stderr
    done = invoke("log", "replay", directory, "-t", "t", "-b", at(running_broker))

    assert (done.status, done.stdout) == (0, b"")
    assert values_in(running_broker) == [
        value for offset, value in records.items() if offset not in ABORTED
    ]
    assert "left out: 6 control records, 20 aborted records\n" in done.stderr
    assert (
        done.stderr.count(
            "not kept, as 0.7's format has no place for them: timestamps, 26 keys, 8 headers\n"
        )
        == 1
    )


def test_replay_of_a_file_without_its_index_of_transactions_warns(
    invoke: Invoke, running_broker: Broker, copy_partition: CopyPartition
) -> None:
    directory = copy_partition("v2-txn")
    (directory / f"{10:020}.txnindex").unlink()

    done = invoke("log", "replay", str(directory), "-t", "t", "-b", at(running_broker))

    assert done.status == 0
    assert "2 aborted transactions sent" in done.stderr
    assert "ends at offset 21" in done.stderr


def test_replay_of_two_partitions_keeps_the_transactions_of_their_producers_apart(
    invoke: Invoke, running_broker: Broker, tmp_path: Path
) -> None:
    head = RecordBatch(attributes=TRANSACTIONAL, producer_id=7)
    mark = head._replace(attributes=CONTROL)
    one, other, before_it = tmp_path / "t-0", tmp_path / "t-1", tmp_path / "t-2"
    write_log(one, batch(records(0, 3), head))  # the transaction is open
    write_log(other, batch([ABORT], mark))  # the records before it were deleted by retention
    write_log(before_it, batch(records(0, 3), head), batch([ABORT._replace(offset=3)], mark))
    args = ("-t", "t", "-b", at(running_broker), "--dry-run")

    assert "aborted" not in invoke("log", "replay", str(one), str(other), *args).stderr
    found = invoke("log", "replay", str(before_it), str(one), *args).stderr
    assert "1 aborted transaction sent, as no .txnindex lists them" in found


@pytest.mark.parametrize("topic", ["v0-none", "v1-gzip", "v2-compacted"])
def test_replay_of_a_part_starts_and_ends_at_offsets_of_records(
    invoke: Invoke,
    running_broker: Broker,
    copy_partition: CopyPartition,
    kafka_logs: Path,
    topic: str,
) -> None:
    path = copy_partition(topic) / FIRST
    args = ("-t", "t", "-b", at(running_broker), "-o", "33:65")

    done = invoke("log", "replay", str(path), *args, "--output", "json")

    assert done.status == 0, done.stderr
    assert values_in(running_broker) == [
        value
        for offset, value in expected(kafka_logs, topic).items()
        if 33 <= offset < 65 and value is not None
    ]
    (row,) = json.loads(done.text)["data"]
    assert row["messages"] == len(values_in(running_broker))


def test_replay_at_a_damaged_batch_sends_those_before_and_tells_how_to_go_on(
    invoke: Invoke, running_broker: Broker, copy_partition: CopyPartition, tmp_path: Path
) -> None:
    path = copy_partition("v2-none") / FIRST
    whole = [one.value for one in decode_records(path.read_bytes()).records]
    damage(path, 5000)

    result = invoke("log", "replay", str(path), "-t", "t", "-b", at(running_broker))

    assert result.status == ExitStatus.CORRUPT
    assert f"{path}: the message at 4562 is invalid" in result.stderr
    assert "offset 49 is the first that is not sent; 49 messages, " in result.stderr
    # the hints, run as they stand
    repair, rest = re.findall(r"pylogctl (log .*)", result.stderr)
    to = str(tmp_path / "repaired.log")
    assert invoke(*shlex.split(repair.replace("repaired.log", to))).status == 0
    again = shlex.split(rest.replace("repaired.log", to))
    assert invoke(*again, "-b", at(running_broker)).status == 0
    kept = [*whole[:50], *whole[75:]]
    assert values_in(running_broker) == [value for value in kept if value is not None]


def test_replay_when_interrupted_then_the_hint_sends_the_rest(
    invoke: Invoke, spawn: Spawn, running_broker: Broker, copy_partition: CopyPartition
) -> None:
    path = copy_partition("v2-none") / FIRST
    values = [one.value for one in decode_records(path.read_bytes()).records]
    args = ("-t", "t", "-b", at(running_broker))
    with spawn("log", "replay", str(path), *args, "--rate", "10KiB/s") as process:
        wait_until(lambda: values_in(running_broker), "the first set")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == ExitStatus.SIGINT
    hint = re.search(r"interrupted; to send the rest: pylogctl (.*)", stderr.decode())
    assert hint, stderr
    assert len(values_in(running_broker)) < 294
    assert invoke(*shlex.split(hint[1]), "-b", at(running_broker)).status == 0
    assert values_in(running_broker) == [value for value in values if value is not None]


@pytest.mark.parametrize(
    "args",
    [
        ["split", "{log}", "--at", "2291", "--to", "{to}"],
        ["merge", "{dir}", "--to", "{to}"],
        ["compare", "--path", "{dir}", "--path", "{dir}"],
        ["compare", "--path", "{data}", "--path", "{data}"],
        ["compare", "--path", "{log}", "--path", "{log}"],
    ],
)
def test_what_only_the_older_format_has_is_refused_in_one_sentence(
    invoke: Invoke, copy_partition: CopyPartition, tmp_path: Path, args: list[str]
) -> None:
    directory = copy_partition("v2-none")
    places = {"log": directory / FIRST, "dir": directory, "data": directory.parent}
    to = tmp_path / "to"

    result = invoke("log", *(one.format(**places, to=to) for one in args))

    assert result.status == ExitStatus.USAGE
    assert "is in Kafka's format" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not to.exists()


@pytest.mark.parametrize("command", ["recover", "repair", "replay"])
@pytest.mark.parametrize("content", [b"", bytes(5000), b"\xf3random" * 700])
def test_files_that_have_no_batch_are_told_from_good_ones(
    invoke: Invoke, running_broker: Broker, tmp_path: Path, command: str, content: bytes
) -> None:
    path = tmp_path / "kafka" / "with space.and-dash-3" / FIRST
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    args = {
        "recover": ["--execute", "--yes", "--confirm", FIRST],
        "repair": ["--to", str(tmp_path / "copy.log")],
        "replay": ["-t", "t", "-b", at(running_broker)],
    }[command]

    result = invoke("log", command, str(path), *args)

    is_damaged = command == "replay" and content
    assert result.status == (ExitStatus.CORRUPT if is_damaged else 0), result.stderr
    if command == "recover":
        assert path.read_bytes() == b""
    if command == "repair":
        assert (tmp_path / "copy.log").read_bytes() == b""


def test_verify_when_a_partition_is_a_link_then_it_is_looked_at_once(
    invoke: Invoke, copy_partition: CopyPartition, tmp_path: Path
) -> None:
    partition = copy_partition("v2-none")
    damage(partition / FIRST, 100)
    data = tmp_path / "data"
    data.mkdir()
    (data / partition.name).symlink_to(partition)
    (data / "again").symlink_to(data)

    result = invoke("log", "verify", str(data))

    assert result.status == ExitStatus.CORRUPT
    assert "1 file," in result.stderr


def test_stat_when_records_cannot_be_unfolded_then_names_the_fault(
    invoke: Invoke, copy_partition: CopyPartition
) -> None:
    path = copy_partition("v2-gzip") / FIRST
    data = bytearray(path.read_bytes())
    data[61] ^= 0xFF
    size = 12 + int.from_bytes(data[8:12], "big")
    data[CRC_AT : CRC_AT + 4] = crc32c(bytes(data[CHECKED_FROM:size])).to_bytes(4, "big")
    path.write_bytes(data)

    result = invoke("log", "stat", str(path), "--output", "json")

    assert result.status == ExitStatus.CORRUPT
    assert json.loads(result.stdout)["data"][0]["fault"] == "compressed"


def test_recover_when_a_later_file_fails_then_shows_what_was_cut(
    invoke: Invoke, copy_partition: CopyPartition
) -> None:
    first, second = copy_partition("v2-gzip") / FIRST, copy_partition("v2-none") / FIRST
    for path in (first, second):
        path.write_bytes(path.read_bytes()[:-1])
    elsewhere = second.with_suffix(".other")
    second.rename(elsewhere)
    second.symlink_to(elsewhere)  # which no tool cuts through

    options = ("--execute", "--yes", "--confirm", "all", "--output", "jsonl")
    result = invoke("log", "recover", str(first.parents[1]), *options)

    assert result.status == ExitStatus.FAILED
    assert [json.loads(line)["file"] for line in result.stdout.splitlines()] == [str(first)]
    assert str(second) in result.stderr


@pytest.mark.parametrize("command", ["verify", "dump", "stat", "recover"])
def test_a_file_beside_segments_is_told_from_one(
    invoke: Invoke, copy_partition: CopyPartition, command: str
) -> None:
    index = (copy_partition("v2-none") / FIRST).with_suffix(".index")
    result = invoke("log", command, str(index))
    assert result.status == ExitStatus.USAGE
    assert "is no segment" in result.stderr
    assert f"try: pylogctl log verify {index.parent}" in result.stderr
