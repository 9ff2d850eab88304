"""Segment files checked in parts: the report is the one of a single process."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from broker.log.offline.verify import Verification, verify_paths
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from broker.spark.local import LocalProcesses
from broker.spark.reading.ranges import grouped
from broker.spark.verify import FilePart, report_of, verify_on_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINE = LocalProcesses(1)
NAME = f"{0:020d}.pylog"


def some_set(seed: int) -> bytes:
    """Messages of many sizes: empty, compressed, and with messages inside."""
    source = random.Random(seed)
    parts = []
    for _ in range(source.randint(0, 25)):
        payloads = [source.randbytes(source.choice((0, 1, 20, 300))) for _ in range(3)]
        kind = source.randrange(4)
        if kind == 0:
            payloads = [build_set(payloads) + source.randbytes(3)]
        parts.append(build_set(payloads, Codec.GZIP if kind == 1 else Codec.NONE))
    return b"".join(parts)


@pytest.mark.parametrize("part_bytes", [1, 13, 100, 1000, 1 << 20])
def test_report_when_files_are_cut_then_is_that_of_one_process(
    tmp_path: Path, part_bytes: int
) -> None:
    for seed in range(6):
        content = bytearray(some_set(seed))
        source = random.Random(seed)
        if seed % 2 and content:
            content[source.randrange(len(content))] ^= 0xFF
        if seed % 3 == 2:
            content = content[: -source.randint(1, 9)]
        log = tmp_path / f"events_{seed}"
        log.mkdir()
        (log / NAME).write_bytes(content)
        (log / f"{len(content) + 5 * (seed == 4):020d}.pylog").write_bytes(some_set(seed + 100))
    missing = tmp_path / "none.pylog"

    for deep in (True, False):
        expected = verify_paths([tmp_path, missing], deep=deep)
        found = verify_on_spark(ENGINE, [tmp_path, missing], deep=deep, part_bytes=part_bytes)
        assert found == expected
        assert expected.problems and expected.unreadable and expected.joints


def test_file_when_good_then_is_not_looked_at_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / NAME
    path.write_bytes(build_set([b"y" * 200] * 20) + build_set([b"z" * 50] * 30, Codec.GZIP))
    monkeypatch.setattr("broker.log.offline.verify.verify_file", None)

    summary = verify_on_spark(ENGINE, [path], part_bytes=700)

    assert (summary.message_count, summary.size_bytes) == (50, path.stat().st_size)


def test_guess_when_wrong_then_parts_do_not_meet(tmp_path: Path) -> None:
    inner = build_set([b"x" * 30] * 5)
    path = tmp_path / NAME
    path.write_bytes(build_set([b"y" * 10, inner, b"z" * 10]))
    inside = len(build_set([b"y" * 10])) + 10

    parts = [
        Verification(path).run_range(0, inside),
        Verification(path).run_range(inside, path.stat().st_size),
    ]

    assert all(part.is_good for part in parts)
    assert report_of(path, parts) is None


def test_parts_when_small_then_are_put_together() -> None:
    parts = [FilePart(Path("a"), 0, size) for size in (5, 5, 1, 10, 30, 0, 0)]

    def sizes(groups: Sequence[Sequence[FilePart]]) -> list[list[int]]:
        return [[part.stop for part in group] for group in groups]

    assert sizes(list(grouped(parts, lambda part: part.stop - part.start, 11))) == [
        [5, 5, 1],
        [10],
        [30],
        [0, 0],
    ]


def test_paths_when_relative_then_are_reported_as_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / NAME).write_bytes(build_set([b"a"])[:-1])
    monkeypatch.chdir(tmp_path)

    (problem,) = verify_on_spark(ENGINE, [Path(NAME)]).problems

    assert (problem.file, problem.kind) == (NAME, "partial")


@pytest.mark.spark
def test_report_when_made_by_spark_then_is_that_of_one_process(
    spark: SparkSession, tmp_path: Path
) -> None:
    content = bytearray(some_set(7) * 50)
    (tmp_path / NAME).write_bytes(content)
    content[len(content) // 2] ^= 1
    (tmp_path / f"{len(content):020d}.pylog").write_bytes(content)

    found = verify_on_spark(spark, [tmp_path], part_bytes=10_000)

    assert found == verify_paths([tmp_path])
    assert found.problems
