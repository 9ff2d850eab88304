"""Compaction without a JVM: the same rows in fewer files, whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from broker.errors import ConfigError, LogCorruptError, OutputConflictError
from broker.protocol.message_set import build_set
from broker.spark import load as load_module
from broker.spark.compaction import compact
from broker.spark.load import LoadRequest, run_load
from broker.spark.loading import output as output_module
from broker.spark.loading.dates import DateRule
from broker.spark.loading.files import join_files
from broker.spark.loading.output import LoadOutput
from broker.spark.local import LocalProcesses
from tests.support.segments import WriteSegments
from tests.support.spark_rows import parse

ENGINE = LocalProcesses(1)
SIZE = len(build_set([b"0000"]))
DAY = DateRule("2026-11-22")

LoadTimes = Callable[..., LoadOutput]


def numbered(first: int, last: int) -> list[bytes]:
    return [b"%04d" % number for number in range(first, last)]


def values(output: LoadOutput) -> list[bytes]:
    """All values that readers see, sorted."""
    paths = output.loads_path.glob("load=*/**/*.parquet")
    return sorted(row["value"] for path in paths for row in pq.ParquetFile(path).read().to_pylist())


def smallest_file_bytes(output: LoadOutput) -> int:
    return min(file.size_bytes for n in output.numbers() for file in output.manifest(n).files)


@pytest.fixture
def load_times(write_segments: WriteSegments, tmp_path: Path) -> LoadTimes:
    """Load ten messages several times, in two files each."""

    def load(count: int, name: str = "lake", **fields: Any) -> LoadOutput:
        output = LoadOutput(tmp_path / name)
        for _ in range(count):
            last = output.last()
            start = last.partitions[-1].end if last else 0
            first = start // SIZE
            data = write_segments(numbered(first, first + 10), start=start)
            ends = json.dumps({"events": {"0-0": start + 10 * SIZE}})
            options = {"path": str(data), "endingOffsets": ends}
            bounded = parse(options | {"maxBytesPerPartition": str(6 * SIZE)})
            request = LoadRequest(output.path, bounded, dates=DAY, file_bytes=0)
            run_load(ENGINE, replace(request, **fields))
        return output

    return load


def test_compact_when_there_are_many_small_loads_then_one_has_the_rows_of_all(
    load_times: LoadTimes,
) -> None:
    output = load_times(5)
    before = [output.manifest(number) for number in output.numbers()]

    made = compact(ENGINE, output.path)

    assert made is not None and output.last() == made
    assert output.numbers() == [5]
    assert values(output) == numbered(0, 50)
    (path,) = output.loads_path.glob("load=*/**/*.parquet")
    assert pq.read_table(path).column("value").to_pylist() == numbered(0, 50)
    (part,) = made.partitions
    assert (part.start, part.end, part.message_count) == (0, 50 * SIZE, 50)
    assert part.crc_sum == sum(one.partitions[0].crc_sum for one in before)
    assert made.offsets == before[-1].offsets
    assert sorted(one.name for one in output.path.iterdir()) == ["_lock", "loads"]
    assert compact(ENGINE, output.path) is None


def test_load_when_loads_were_compacted_then_goes_on_and_they_can_be_compacted_again(
    load_times: LoadTimes,
) -> None:
    output = load_times(3)
    for count in (4, 5, 6):
        compact(ENGINE, output.path)
        (name,) = [path.name for path in output.loads_path.iterdir()]
        load_times(1)
        assert output.numbers() == [count - 1, count]
        assert values(output) == numbered(0, count * 10)
        compact(ENGINE, output.path)
        assert not (output.loads_path / name).exists(), "a name listed before has no new data"
        assert (output.numbers(), values(output)) == ([count], numbered(0, count * 10))


def test_compact_when_new_loads_are_kept_then_only_older_ones_become_one(
    load_times: LoadTimes,
) -> None:
    output = load_times(5)
    kept = {path.stat().st_ino for path in output.load_path(5).glob("**/*.parquet")}

    made = compact(ENGINE, output.path, keep=2)

    assert made and made.number == 3
    assert output.numbers() == [3, 4, 5]
    assert values(output) == numbered(0, 50)
    assert {path.stat().st_ino for path in output.load_path(5).glob("**/*.parquet")} == kept
    assert compact(ENGINE, output.path, keep=2) is None


def test_compact_when_more_loads_are_to_be_kept_than_there_are_then_replaces_none(
    load_times: LoadTimes,
) -> None:
    output = load_times(3)

    assert compact(ENGINE, output.path, keep=4) is None


def test_compact_when_files_are_large_already_then_their_loads_stay(load_times: LoadTimes) -> None:
    output = load_times(4, file_bytes=1 << 20)
    target_bytes = 2 * smallest_file_bytes(output)
    load_times(2)

    made = compact(ENGINE, output.path, file_bytes=target_bytes)

    assert made and output.numbers() == [1, 2, 3, 4, 6]
    assert values(output) == numbered(0, 60)


@pytest.mark.parametrize("file_format", ["json", "text"])
def test_compact_when_files_are_lines_then_has_all_lines_in_order(
    load_times: LoadTimes, file_format: str
) -> None:
    output = load_times(3, file_format=file_format)
    lines = b"".join(
        path.read_bytes() for path in sorted(output.loads_path.glob("load=*/topic=*/**/part-*"))
    )

    compact(ENGINE, output.path)

    (path,) = output.loads_path.glob("load=*/topic=*/**/part-*")
    assert path.read_bytes() == lines


def test_compact_when_a_log_was_created_again_then_keeps_both_of_its_ranges(
    load_times: LoadTimes, write_segments: WriteSegments
) -> None:
    output = load_times(2)
    for path in output.path.parent.glob("logs/events_0/*"):
        path.unlink()
    data = write_segments(numbered(50, 55))
    options = parse({"path": str(data), "failOnDataLoss": "false"})
    run_load(ENGINE, LoadRequest(output.path, options, dates=DAY))

    made = compact(ENGINE, output.path)

    assert made
    assert [(one.start, one.end) for one in made.partitions] == [(0, 20 * SIZE), (0, 5 * SIZE)]
    assert output.last() == made


def test_compact_when_a_file_was_changed_then_replaces_nothing(load_times: LoadTimes) -> None:
    output = load_times(2, file_format="text")
    path = min(output.load_path(2).glob("**/*.txt"))
    path.write_bytes(path.read_bytes().replace(b"0011", b"1111"))

    with pytest.raises(LogCorruptError, match=rf"{path} was changed since it was loaded"):
        compact(ENGINE, output.path)

    assert output.numbers() == [1, 2]
    assert not output.staging_path.exists()


def test_compact_when_the_file_system_cannot_exchange_then_is_refused_and_changes_nothing(
    load_times: LoadTimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = load_times(2)

    def refuse(first: Path, second: Path) -> None:
        raise OSError(22, os.strerror(22))

    monkeypatch.setattr(output_module, "exchange", refuse)

    with pytest.raises(OutputConflictError, match="cannot exchange two directories in one step"):
        compact(ENGINE, output.path)

    assert output.numbers() == [1, 2]


def test_compact_when_arguments_are_wrong_then_says_so_and_creates_nothing(
    load_times: LoadTimes, tmp_path: Path
) -> None:
    output = load_times(1)
    with pytest.raises(ConfigError, match="target size"):
        compact(ENGINE, output.path, file_bytes=0)
    with pytest.raises(FileNotFoundError, match="there are no loads"):
        compact(ENGINE, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_rewind_when_loads_were_compacted_then_loads_all_of_them_again(
    load_times: LoadTimes, tmp_path: Path
) -> None:
    output = load_times(3)
    compact(ENGINE, output.path)
    wanted = f'{{"events": {{"0-0": {25 * SIZE}}}}}'
    options = parse({"path": str(tmp_path / "logs"), "startingOffsets": wanted})

    made = run_load(ENGINE, LoadRequest(output.path, options, dates=DAY, rewinds=True))

    assert made and (made.number, made.partitions[0].start) == (1, 0)
    assert values(output) == numbered(0, 30)


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_at(step: int, patch: pytest.MonkeyPatch) -> list[str]:
    """End the process before the given durable step; returns the steps that were taken."""
    steps: list[str] = []

    def dying(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            if len(steps) == step:
                raise Killed
            steps.append(name)
            return function(*args, **kwargs)

        return call

    patch.setattr(load_module, "join_files", dying("task", join_files))
    for name in ("write_atomically", "sync_directory", "_remove_unnamed", "exchange"):
        patch.setattr(output_module, name, dying(name, getattr(output_module, name)))
    patch.setattr(Path, "rename", dying("rename", Path.rename))
    patch.setattr(os, "link", dying("link", os.link))
    patch.setattr("shutil.rmtree", lambda *_, **__: None)
    return steps


def test_compact_when_killed_at_any_step_then_readers_see_all_rows_once(
    load_times: LoadTimes,
) -> None:
    counts = set()
    for step in range(100):
        output = load_times(2, f"lake-{step}", file_bytes=1 << 20)  # one file, to be linked
        target_bytes = 2 * smallest_file_bytes(output)
        load_times(4, f"lake-{step}")
        with pytest.MonkeyPatch.context() as patch:
            taken = kill_at(step, patch)
            try:
                compact(ENGINE, output.path, file_bytes=target_bytes, keep=1)
            except Killed:
                pass
            else:
                assert len(taken) == step > 10
                assert {"task", "link", "exchange", "rename"} < set(taken)
                break
        counts.add(len(output.numbers()))
        assert values(output) == numbered(0, 60)
        load_times(1, f"lake-{step}")
        assert values(output) == numbered(0, 70)
        assert sorted(one.name for one in output.path.iterdir()) == ["_lock", "loads"]
    else:
        pytest.fail("there is no end of steps")
    assert counts == {6, 4}
