from __future__ import annotations

from pathlib import Path

import pytest

from broker.log.data_directory import (
    CHECKPOINT_NAME,
    RecoveryPoint,
    read_recovery_points,
    write_recovery_points,
)
from broker.topic import NO_HOME, TopicPartition


def test_checkpoint_when_written_then_read_back(tmp_path: Path) -> None:
    points = {
        TopicPartition("access log", 2, 0): RecoveryPoint(108, 1_700_000_000_000),
        TopicPartition("größe_1", 2, 12): RecoveryPoint(0, None),
        TopicPartition("orders", NO_HOME, 0): RecoveryPoint(7, 1_700_000_000_000),
        TopicPartition("orders", 2, 0): RecoveryPoint(9, None),
        TopicPartition("orders 0 7", 2, 1): RecoveryPoint(None, None),
        TopicPartition("kafka", 2, 0): RecoveryPoint(1, None),
        TopicPartition("kafka", NO_HOME, 1): RecoveryPoint(None, None),
    }
    write_recovery_points(tmp_path, points)
    assert read_recovery_points(tmp_path, 2) == points
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT_NAME]


def test_checkpoint_when_missing_then_none(tmp_path: Path) -> None:
    assert read_recovery_points(tmp_path, 0) is None


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"other format 1\n",
        b"pylogctl-recovery-points 2\n",
        b"pylogctl-recovery-points 1\nevents 0 12",
        b"pylogctl-recovery-points 1\nevents 0 12 x\n",
        b"pylogctl-recovery-points 1\nevents 0\n",
        b"pylogctl-recovery-points 1\nevents 0 12 kafka\n",
        b"\xff\xfe",
    ],
)
def test_checkpoint_when_damaged_then_none_with_a_warning(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / CHECKPOINT_NAME).write_bytes(content)
    assert read_recovery_points(tmp_path, 0) is None
    assert "ignoring checkpoint" in caplog.text
