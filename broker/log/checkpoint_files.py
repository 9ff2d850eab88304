"""The checkpoints of one data directory: recovery points of its logs, and high watermarks.

A lost or damaged one costs time at the next start, never data. The file of recovery points:

    pylogctl-recovery-points 1
    TOPIC INDEX RECOVERY_POINT ACTIVE_SINCE_MS      (one line a log)

The last two are -1 for a recovery point that is unknown, and for an empty active segment. The file
of high watermarks has the form of later Kafka: a version, their number, and lines
`TOPIC HOME-INDEX OFFSET`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from broker.files import write_atomically
from broker.log.data_directory import CHECKPOINT_NAME, HIGH_WATERMARKS_NAME, LogKey
from broker.topic import TopicPartition

_FIRST_LINE = "pylogctl-recovery-points 1"
_HIGH_WATERMARKS_VERSION = "0"

logger = logging.getLogger(__name__)


class RecoveryPoint(NamedTuple):
    """The offset up to which a log is flushed, None if unknown, and the age of its active segment.

    `active_since_ms` is when that segment got its first message, None if it is empty.
    """

    offset: int | None
    active_since_ms: int | None


NOTHING_FLUSHED = RecoveryPoint(0, None)
UNKNOWN = RecoveryPoint(None, None)


def write_recovery_points(directory: Path, points: Mapping[LogKey, RecoveryPoint]) -> None:
    """Replace the recovery points in a directory of logs; on an `OSError` the old ones remain."""
    lines = [_FIRST_LINE]
    for (topic, index), point in sorted(points.items()):
        offset, since_ms = (-1 if number is None else number for number in point)
        lines.append(f"{topic} {index} {offset} {since_ms}")
    write_atomically(directory / CHECKPOINT_NAME, ("\n".join(lines) + "\n").encode())


def read_recovery_points(directory: Path) -> dict[LogKey, RecoveryPoint] | None:
    """Return the recovery points in a directory of logs, None without a readable checkpoint."""
    path = directory / CHECKPOINT_NAME
    try:
        lines = path.read_bytes().decode().split("\n")
        if lines[0] != _FIRST_LINE or lines[-1] != "":
            raise ValueError("its first line or its end is wrong")
        return dict(map(_parse_recovery_point, lines[1:-1]))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("ignoring checkpoint %s, all logs will be scanned: %s", path, error)
        return None


def _parse_recovery_point(line: str) -> tuple[LogKey, RecoveryPoint]:
    topic, index, *numbers = line.rsplit(" ", 3)
    offset, since_ms = (None if int(one) < 0 else int(one) for one in numbers)
    return (topic, int(index)), RecoveryPoint(offset, since_ms)


def write_high_watermarks(data_dir: Path, offsets: Mapping[TopicPartition, int]) -> None:
    """Replace the stored high watermarks; on an `OSError` the old ones remain."""
    lines = [
        _HIGH_WATERMARKS_VERSION,
        str(len(offsets)),
        *(f"{one.topic} {one.name} {offset}" for one, offset in sorted(offsets.items())),
    ]
    write_atomically(data_dir / HIGH_WATERMARKS_NAME, ("\n".join(lines) + "\n").encode())


def read_high_watermarks(data_dir: Path) -> dict[TopicPartition, int]:
    """Return the stored high watermarks, none if unreadable: leaders send present ones."""
    path = data_dir / HIGH_WATERMARKS_NAME
    try:
        version, count, *lines, end = path.read_bytes().decode().split("\n")
        if version != _HIGH_WATERMARKS_VERSION or end or int(count) != len(lines):
            raise ValueError("its version, its length or its end is wrong")
        return dict(map(_parse_high_watermark, lines))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        logger.warning("ignoring the high watermarks in %s: %s", path, error)
        return {}


def _parse_high_watermark(line: str) -> tuple[TopicPartition, int]:
    topic, name, offset = line.rsplit(" ", 2)
    home, _, index = name.partition("-")
    return TopicPartition(topic, int(home), int(index)), int(offset)
