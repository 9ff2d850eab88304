"""Logs and their managers, for tests of what they do to files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.config import BrokerConfig
from broker.log.directories import DataDirectories
from broker.log.format import format_of
from broker.log.log import Log, LogParts
from broker.log.manager import LogManager
from broker.log.recovery import list_segments
from broker.log.segment import Disk, SegmentFiles
from broker.stats import WindowedStats
from broker.topic import TopicPartition
from broker.topic_settings import TopicConfig
from tests.doubles import FakeClock
from tests.support.log_doubles import FaultyDisk, RecordingSchedule
from tests.support.log_formats import EXAMPLES, FormatExample

LogFactory = Callable[..., Log]
ManagerFactory = Callable[..., LogManager]


def content(log: Log) -> bytes:
    found, offset = b"", log.log_start_offset
    while (part := log.read(offset, 1 << 20)) is not None:
        found += os.pread(part.file.fd, part.length, part.position)
        offset += part.length
    return found


def directories_at(*paths: Path) -> DataDirectories:
    """The data directories of a broker, locked only while they are opened."""
    directories = DataDirectories(paths, 0)
    directories.lock()
    directories.unlock()
    return directories


def abandon(manager: LogManager) -> None:
    """Let go of the data directory as a killed process does: nothing is flushed or marked."""
    manager.directories.unlock()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def schedule() -> RecordingSchedule:
    return RecordingSchedule()


@pytest.fixture
def faulty_disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def log_format(request: pytest.FixtureRequest) -> FormatExample:
    """The format of the test's logs: a test that takes it runs for both, others for 0.7's."""
    return EXAMPLES[getattr(request, "param", "0.7")]


@pytest.fixture
def make_log(
    tmp_path: Path, clock: FakeClock, schedule: RecordingSchedule, log_format: FormatExample
) -> LogFactory:
    """Open the log in `tmp_path/log`; keyword arguments override its settings."""

    def make(
        *,
        disk: Disk | None = None,
        files: SegmentFiles | None = None,
        active_since_ms: int | None = None,
        home: int = log_format.partition.home,
        **settings: Any,
    ) -> Log:
        partition = TopicPartition("events", home, 0)
        directory, format = tmp_path / "log", format_of(partition)
        directory.mkdir(exist_ok=True)
        segments = list_segments(directory, format)
        if not segments:
            (directory / format.segment_name(0)).touch()
            segments = list_segments(directory, format)
            segments[0].modified_ms = clock.time_ms()
        defaults: dict[str, Any] = {
            "segment_bytes": 1 << 30,
            "roll_ms": 1 << 40,
            "retention_ms": 1 << 40,
            "retention_bytes": -1,
            "flush_interval_messages": 10_000,
            "flush_interval_ms": 100,
        }
        return Log(
            partition,
            directory,
            TopicConfig(**{**defaults, **settings}),
            segments,
            LogParts(
                clock=clock,
                files=SegmentFiles() if files is None else files,
                schedule_flush=schedule.schedule,
                flush_stats=WindowedStats(clock, 60.0),
                disk=disk or FaultyDisk().as_disk(),
            ),
            active_since_ms=active_since_ms,
        )

    return make


@pytest.fixture
def make_manager(tmp_path: Path, clock: FakeClock) -> Iterator[ManagerFactory]:
    """Make a manager of `tmp_path/data`, closed after the test; arguments override settings."""
    made: list[LogManager] = []

    def make(*, disk: Disk | None = None, **settings: Any) -> LogManager:
        config = BrokerConfig(**{"data_dirs": (tmp_path / "data",), **settings})
        manager = LogManager(config, clock, disk=disk or FaultyDisk().as_disk())
        made.append(manager)
        return manager

    yield make
    for manager in made:
        manager.close()
