"""Archiving and restoring that a kill interrupts: no message is lost, and the next run does it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from broker.log.archiving import archive_segment
from broker.log.offline.archives import list_archive
from broker.log.offline.segments import segments_of
from broker.protocol.codec import encode
from broker.protocol.requests import EARLIEST_TIME
from broker.topic import TopicPartition
from tests.integration.process.conftest import ProcessFactory
from tests.support.command_line import Invoke, Spawn
from tests.support.command_line import run_process as run_process
from tests.support.command_line import spawn as spawn
from tests.support.waiting import wait_until

SEGMENT_BYTES = 8 << 20  # packing takes long enough to be interrupted


def segment(directory: Path, number: int, old_s: float) -> int:
    """Write a segment of messages that do not compress; return the offset behind it."""
    content = b"".join(encode([os.urandom(1 << 18)]) for _ in range(SEGMENT_BYTES >> 18))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{number * len(content):020d}.pylog"
    path.write_bytes(content)
    os.utime(path, (old_s, old_s))
    return (number + 1) * len(content)


def content_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in segments_of(directory)}


def test_archiving_when_killed_then_the_next_start_archives_what_is_left(
    start_process: ProcessFactory, tmp_path: Path, run_process: Invoke
) -> None:
    log, archive = tmp_path / "data" / "t_0", tmp_path / "archive"
    ends = [segment(log, number, 1000.0) for number in range(2)]
    before = content_of(log)
    settings = (
        *("-X", "log.cleanup.policy=archive", "-X", f"log.archive.dir={archive}"),
        *("-X", "log.retention.check.interval.ms=100"),
    )
    first = start_process(*settings)
    wait_until(lambda: list(archive.glob("t_0-0/*.tmp")), "a file that is being archived")
    first.kill()
    for one in list_archive([archive]):  # what has its name is whole
        assert one.end - one.start == ends[0]
    assert {path.name for path in segments_of(log)} | {
        path.name.removesuffix(".gz") for path in archive.rglob("*.gz")
    } >= before.keys()

    second = start_process(*settings)
    with second.peer() as peer:
        wait_until(lambda: peer.offsets("t", EARLIEST_TIME) == [ends[1]], "all to be archived")
    second.kill()

    assert [one.end for one in list_archive([archive])] == ends
    assert not list(archive.rglob("*.tmp"))
    result = run_process("archive", "restore", str(archive), "--to", str(tmp_path / "data"))
    assert result.status == 0, result.stderr
    restored = content_of(log)
    assert {name: restored[name] for name in before} == before


def test_restore_when_killed_then_the_log_has_no_gap_and_the_same_command_does_the_rest(
    tmp_path: Path, spawn: Spawn, run_process: Invoke, start_process: ProcessFactory
) -> None:
    source, archive, data = tmp_path / "t_0", tmp_path / "archive", tmp_path / "data"
    for number in range(3):
        segment(source, number, 1000.0)
    before = content_of(source)
    for path in segments_of(source):
        archive_segment(archive, TopicPartition("t", 0, 0), path)
    command = ("archive", "restore", str(archive), "--to", str(data), "--output", "jsonl")

    with spawn(*command) as killed:
        wait_until(lambda: list(data.glob("t_0/*.tmp")), "a segment that is being restored")
        killed.kill()
    there = list(content_of(data / "t_0"))
    assert there == list(before)[3 - len(there) :]

    result = run_process(*command)

    assert result.status == 0, result.stderr
    assert len([json.loads(line) for line in result.text.splitlines()]) == 3 - len(there)
    assert content_of(data / "t_0") == before
    assert not list(data.rglob("*.tmp"))
    with start_process(data=data).peer() as peer:
        assert peer.offsets("t", EARLIEST_TIME) == [0]
