"""`pylogctl log replay`, and `log dump` into `produce`: the messages of files in a topic again."""

from __future__ import annotations

import json
import random
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from broker import Broker
from broker.log.archiving import archive_segment
from broker.protocol.codec import decode, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set, wrap
from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import REPOSITORY, Invoke, Spawn, process_environment
from tests.support.waiting import wait_until

ENTRY = len(encode([b"hello"]))


def at(broker: Broker) -> str:
    return f"127.0.0.1:{broker.port}"


def stored(broker: Broker, topic: str = "t") -> bytes:
    directory = broker.config.data_dir / f"{topic}_0"
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.pylog")))


def messages_of(data: bytes) -> list[bytes]:
    return [payload for _, _, payload in decode(data, 0).messages]


@pytest.fixture
def log(tmp_path: Path) -> list[Path]:
    """Three segments of a log: random bytes, plain and in gzip and snappy wrappers."""
    source = random.Random(23)
    paths = []
    base = 0
    for _ in range(3):
        parts = []
        for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY) * 10:
            parts.append(build_set([source.randbytes(n * 7) for n in range(60)], codec))
        data = b"".join(parts)
        path = tmp_path / "log" / "t_0" / f"{base:020}.pylog"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        paths.append(path)
        base += len(data)
    return paths


@pytest.fixture
def log_bytes(log: list[Path]) -> bytes:
    return b"".join(path.read_bytes() for path in log)


def test_replay_of_an_archive_when_consumed_then_has_the_bytes_of_the_log(
    run_process: Invoke, running_broker: Broker, tmp_path: Path, log: list[Path], log_bytes: bytes
) -> None:
    for path in log:
        archive_segment(tmp_path / "archive", TopicPartition("t", 0, 0), path)

    done = run_process(
        "log", "replay", str(tmp_path / "archive"), "-t", "t", "-b", at(running_broker)
    )

    count = len(messages_of(log_bytes))
    assert (done.status, done.stdout) == (0, b"")
    assert re.fullmatch(rf"{count} messages, .* of 3 files to t\[0-0\] in .*\n", done.stderr)
    assert stored(running_broker) == log_bytes  # compressed sets are as they were
    args = ("t", "-b", at(running_broker), "--from-beginning", "-e", "--hex")
    consumed = run_process("consume", *args).text.split("\n")[:-1]
    assert [bytes.fromhex(line) for line in consumed] == messages_of(log_bytes)


def test_replay_when_interrupted_then_says_how_to_go_on_and_nothing_is_lost_or_doubled(
    spawn: Spawn, invoke: Invoke, running_broker: Broker, log: list[Path], log_bytes: bytes
) -> None:
    args = ("-t", "t", "-b", at(running_broker))
    with spawn("log", "replay", *map(str, log), *args, "--rate", "100KiB/s") as process:
        wait_until(lambda: stored(running_broker), "the first set")
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == ExitStatus.SIGINT
    hint = re.search(
        r"interrupted; to send the rest: pylogctl (.*), then the 2 files after it", stderr.decode()
    )
    assert hint, stderr
    assert invoke(*shlex.split(hint[1]), "-b", at(running_broker)).status == 0
    assert invoke("log", "replay", *map(str, log[1:]), *args).status == 0
    assert stored(running_broker) == log_bytes


def test_replay_at_a_damaged_message_sends_those_before_and_names_file_and_offset(
    invoke: Invoke, running_broker: Broker, tmp_path: Path
) -> None:
    data = bytearray(encode([b"hello", b"world", b"again"]))
    data[2 * ENTRY - 1] ^= 1
    bad = tmp_path / "00000000000000000100.pylog"
    bad.write_bytes(data)

    result = invoke("log", "replay", str(bad), "-t", "t", "-b", at(running_broker))

    assert result.status == ExitStatus.CORRUPT
    assert f"{bad}:{100 + ENTRY}: " in result.stderr
    assert "1 message, 15 B confirmed" in result.stderr
    # the hints, run as they stand
    repair, rest = re.findall(r"pylogctl (log .*)", result.stderr)
    to = str(tmp_path / "repaired.pylog")
    assert invoke(*shlex.split(repair.replace("repaired.pylog", to))).status == 0
    again = shlex.split(rest.replace("repaired.pylog", to))
    assert invoke(*again, "-b", at(running_broker)).status == 0
    assert messages_of(stored(running_broker)) == [b"hello", b"again"]


def test_replay_of_a_wrapper_with_damaged_content_is_damage(
    invoke: Invoke, running_broker: Broker, tmp_path: Path
) -> None:
    good, inner = encode([b"hello"]), bytearray(encode([b"again"]))
    inner[-1] ^= 1
    path = tmp_path / "00000000000000000000.pylog"
    path.write_bytes(good + wrap(bytes(inner), Codec.GZIP))

    result = invoke("log", "replay", str(path), "-t", "t", "-b", at(running_broker))

    assert result.status == ExitStatus.CORRUPT
    assert f"{path}:{len(good)}: " in result.stderr
    assert stored(running_broker) == good


def test_replay_of_a_part_sends_what_lies_in_it_of_each_file(
    invoke: Invoke, running_broker: Broker, log: list[Path], log_bytes: bytes
) -> None:
    first = len(log[0].read_bytes())
    args = ("-t", "t", "-p", "0", "-b", at(running_broker), "--output", "json")
    result = invoke("log", "replay", str(log[0].parent), *args, "-o", f"{first}")
    assert result.status == 0
    assert stored(running_broker) == log_bytes[first:]
    rows = json.loads(result.text)["data"]
    assert [row["messages"] for row in rows] == [0, 1800, 1800]
    assert rows[2]["next_offset"] == len(log_bytes)


def test_replay_to_a_partition_that_a_new_topic_does_not_get_says_so_at_once(
    invoke: Invoke, running_broker: Broker, log: list[Path]
) -> None:
    started_s = time.monotonic()
    result = invoke("log", "replay", str(log[0]), "-t", "new", "-p", "7", "-b", at(running_broker))
    assert result.status == ExitStatus.NOT_FOUND
    assert "topic 'new' has no partition '7'" in result.stderr
    assert time.monotonic() - started_s < 15  # not the 30 s in which what was sent can be read


def test_replay_with_dry_run_sends_nothing(
    invoke: Invoke, running_broker: Broker, log: list[Path]
) -> None:
    args = ("-t", "t", "-b", at(running_broker), "--dry-run")
    result = invoke("log", "replay", str(log[0]), *args)
    assert "1800 messages" in result.stderr
    assert "nothing was sent" in result.stderr
    assert not (running_broker.config.data_dir / "t_0").exists()


@pytest.mark.parametrize(
    ("args", "status", "text"),
    [
        (["/no/such", "-t", "t"], ExitStatus.NOT_FOUND, "'/no/such': no such file or directory"),
        (["{log}", "-t", ".."], ExitStatus.USAGE, ".."),
        (["{log}", "-t", "t", "-p", "x"], ExitStatus.USAGE, "'x'"),
        (["{log}", "-t", "t", "-o", "17"], ExitStatus.USAGE, "17 is not a message boundary"),
    ],
)
def test_replay_of_what_cannot_be_sent_says_why_and_sends_nothing(
    invoke: Invoke,
    running_broker: Broker,
    log: list[Path],
    args: list[str],
    status: ExitStatus,
    text: str,
) -> None:
    given = [one.format(log=log[0]) for one in args]
    result = invoke("log", "replay", *given, "-b", at(running_broker))
    assert result.status == status
    assert text in result.stderr
    assert not (running_broker.config.data_dir / "t_0").exists() or not stored(running_broker)


def test_dump_as_json_lines_when_piped_into_produce_then_carries_any_bytes(
    running_broker: Broker, tmp_path: Path, log: list[Path], log_bytes: bytes
) -> None:
    command = f"{shlex.quote(sys.executable)} -m pylogctl"
    pipe = (
        f"{command} log dump {log[0].parent} --output jsonl | "
        f"{command} produce t -b {at(running_broker)} --jsonl"
    )

    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", pipe],
        cwd=REPOSITORY,
        env=process_environment(tmp_path / "home", {}),
        capture_output=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert messages_of(stored(running_broker)) == messages_of(log_bytes)
