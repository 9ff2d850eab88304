"""The recovery-point checkpoint: how far each log of a data directory is known to be flushed.

Owns the file's format. A lost or damaged checkpoint costs time at the next start, never data.

    pylogctl-recovery-points 1
    TOPIC INDEX RECOVERY_POINT ACTIVE_SINCE_MS      (one line a log; -1 for an empty active segment)
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from broker.log.durable import write_atomically

CHECKPOINT_NAME = "recovery-point-checkpoint"
_FIRST_LINE = "pylogctl-recovery-points 1"

logger = logging.getLogger(__name__)


class RecoveryPoint(NamedTuple):
    """What is remembered of a log: flushed up to `offset`, and its active segment's age.

    `active_since_ms` is when the segment that held `offset` got its first message, None for an
    empty one.
    """

    offset: int
    active_since_ms: int | None


LogKey = tuple[str, int]
"""Topic and index of a log within its data directory."""


def write_checkpoint(data_dir: Path, points: Mapping[LogKey, RecoveryPoint]) -> None:
    """Replace a data directory's checkpoint.

    Args:
        data_dir: the data directory.
        points: one for every log.

    Raises:
        OSError: it cannot be written; the old one is still there.
    """
    lines = [_FIRST_LINE]
    for (topic, index), point in sorted(points.items()):
        since_ms = -1 if point.active_since_ms is None else point.active_since_ms
        lines.append(f"{topic} {index} {point.offset} {since_ms}")
    write_atomically(data_dir / CHECKPOINT_NAME, ("\n".join(lines) + "\n").encode())


def read_checkpoint(data_dir: Path) -> dict[LogKey, RecoveryPoint] | None:
    """Return a data directory's checkpoint.

    Args:
        data_dir: the data directory.

    Returns:
        Recovery points by log, or None when there is no readable checkpoint.
    """
    path = data_dir / CHECKPOINT_NAME
    try:
        lines = path.read_bytes().decode().split("\n")
        if lines[0] != _FIRST_LINE or lines[-1] != "":
            raise ValueError("its first line or its end is wrong")
        return dict(_parse_line(line) for line in lines[1:-1])
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        logger.warning("ignoring checkpoint %s, all logs will be scanned: %s", path, error)
        return None


def _parse_line(line: str) -> tuple[LogKey, RecoveryPoint]:
    topic, index, offset, since_ms = line.rsplit(" ", 3)
    since = int(since_ms)
    return (topic, int(index)), RecoveryPoint(int(offset), None if since < 0 else since)
