"""`pipeline verify` as a command; what it finds is for `test_verify.py` of `broker.spark`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.log.archiving import archive_segment
from broker.protocol.message_set import build_set
from broker.spark.local import LocalProcesses
from broker.topic import TopicPartition
from pylogctl.cli.environment import ExitStatus
from tests.support.command_line import Invoke

pytest.importorskip("pyspark")


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check in this process."""

    @contextmanager
    def opened(*_: object) -> Iterator[object]:
        yield LocalProcesses(1)

    monkeypatch.setattr("pylogctl.pipeline.options.SparkChoice.check", lambda *_: None)
    monkeypatch.setattr("pylogctl.pipeline.jobs.open_spark", opened)


@pytest.mark.parametrize(("cut", "status"), [(0, ExitStatus.OK), (1, ExitStatus.CORRUPT)])
def test_report_when_written_then_is_that_of_log_verify(
    invoke: Invoke, tmp_path: Path, cut: int, status: ExitStatus
) -> None:
    content = build_set([b"message %d" % number for number in range(50)])
    (tmp_path / f"{0:020d}.pylog").write_bytes(content[: len(content) - cut])

    expected = invoke("log", "verify", str(tmp_path))
    found = invoke("pipeline", "verify", str(tmp_path))

    assert found.status == expected.status == status
    assert found.stdout == expected.stdout


def test_files_when_no_segments_then_are_left_out_and_counted(
    invoke: Invoke, tmp_path: Path
) -> None:
    segment = tmp_path / f"{0:020d}.pylog"
    segment.write_bytes(build_set([b"message"]))
    archived = archive_segment(tmp_path, TopicPartition("events", 0, 0), segment)
    notes = tmp_path / "notes.txt"
    notes.touch()

    found = invoke("pipeline", "verify", str(segment), str(archived), str(notes))

    assert found.status == ExitStatus.OK
    assert "1 file left out, which is no segment" in found.stderr
    assert "2 files, " in found.stderr


def test_file_when_missing_then_status_says_so(invoke: Invoke, tmp_path: Path) -> None:
    result = invoke("pipeline", "verify", str(tmp_path / "none.pylog"))
    assert result.status == ExitStatus.NOT_FOUND
