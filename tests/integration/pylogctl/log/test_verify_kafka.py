"""`pylogctl log verify` on directories that Kafka brokers left behind."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.command_line import Invoke


@pytest.fixture
def data(kafka_logs: Path, tmp_path: Path) -> Path:
    """A data directory as a stopped broker left it."""
    for directory in kafka_logs.glob("v*-0"):
        copy = tmp_path / directory.name
        copy.mkdir()
        for file in directory.iterdir():
            shutil.copyfile(file, copy / file.name)
    return tmp_path


def _jsonl(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("options", [(), ("--jobs", "2"), ("--engine", "crcmod"), ("--shallow",)])
def test_verify_when_a_data_directory_is_whole_then_has_no_problems(
    invoke: Invoke, data: Path, options: tuple[str, ...]
) -> None:
    result = invoke("log", "verify", str(data), *options)
    assert (result.status, result.text) == (0, "")
    assert "23 files, " in result.stderr
    assert " 0 problems" in result.stderr
    for directory in data.iterdir():
        assert invoke("log", "verify", str(directory), *options).status == 0, directory


def test_verify_when_all_is_whole_then_counts_the_records_of_producers(
    invoke: Invoke, data: Path
) -> None:
    result = invoke("log", "verify", str(data / "v2-txn-0"))
    assert "2 files, 2.6 KiB, 60 messages, 0 problems" in result.stderr


def test_verify_when_a_log_and_files_beside_are_damaged_then_names_file_position_and_offset(
    invoke: Invoke, data: Path
) -> None:
    directory = (data / "v2-rolled-0").rename(data / "my.topic with-dash-7")
    for name, at in (
        (f"{75:020d}.log", 1300),
        (f"{150:020d}.index", 19),
        (f"{300:020d}.snapshot", 20),
        ("leader-epoch-checkpoint", 0),
    ):
        content = bytearray((directory / name).read_bytes())
        content[at] ^= 1
        (directory / name).write_bytes(content)
    (directory / f"{75:020d}.timeindex").unlink()

    result = invoke("log", "verify", str(directory), "--output", "jsonl")

    assert result.status == 8
    assert [
        (str(one["file"]).removeprefix(f"{directory}/"), one["pos"], one["kind"], one["offset"])
        for one in _jsonl(result.text)
    ] == [
        (f"{75:020d}.log", 1074, "crc", 85),
        (f"{150:020d}.index", 16, "index", None),
        ("leader-epoch-checkpoint", 0, "epochs", None),
        (f"{300:020d}.snapshot", 2, "snapshot", None),
    ]


def test_verify_when_a_segment_in_the_middle_is_missing_then_a_gap(
    invoke: Invoke, data: Path
) -> None:
    (data / "v2-rolled-0" / f"{75:020d}.log").unlink()
    result = invoke("log", "verify", str(data / "v2-rolled-0"), "--output", "jsonl")
    (problem,) = _jsonl(result.text)
    assert (problem["kind"], problem["offset"], problem["found"]) == ("gap", 75, "150")

    # a cleaner may drop all batches of a segment, and leave no gap inside of another
    (data / "cleaner-offset-checkpoint").write_text("0\n2\nv2-roll 0 9\nv2-rolled 0 300\n")
    assert invoke("log", "verify", str(data / "v2-rolled-0")).status == 0


@pytest.mark.parametrize("filler", [b"", b"\0" * 5000, b"\xa5\x02" * 2500])
def test_verify_when_a_log_is_cut_or_overwritten_then_is_damage(
    invoke: Invoke, data: Path, filler: bytes
) -> None:
    path = data / "v2-none-0" / f"{0:020d}.log"
    path.write_bytes(path.read_bytes()[:10_000] + filler)
    result = invoke("log", "verify", str(path), "--output", "jsonl")
    assert result.status == 8
    (problem,) = _jsonl(result.text)
    assert (problem["pos"], problem["offset"]) == (9133, 100)
