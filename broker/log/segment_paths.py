"""Segment files as offline tools find them: by path, of this broker or of a real Kafka 0.7.

Owns which files a path stands for and in which order. Opens none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from broker.log.data_directory import DELETED_NAME
from broker.log.segment import KAFKA_SUFFIX, SEGMENT_SUFFIX

_NAME = re.compile(
    rf"([0-9]{{20}})(?:{re.escape(SEGMENT_SUFFIX)}|{re.escape(KAFKA_SUFFIX)})", re.ASCII
)
_DIGITS = re.compile(r"([0-9]+)", re.ASCII)


def base_offset_of(path: Path) -> int | None:
    """Return the offset a segment's name says it starts at, None for another file's name.

    Args:
        path: any path; `.pylog` and `.kafka` names count.
    """
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def expand_paths(paths: Iterable[Path]) -> list[Path]:
    """Return files as given, and the segments of directories and the directories below.

    Logs of deleted topics that wait in a data directory to be removed are none of them.

    Args:
        paths: files and directories; what does not exist is passed on as it is.

    Returns:
        Each file once: in the order given, inside a directory in natural order (`t_2` before
        `t_10`).
    """
    found: list[Path] = []
    for path in paths:
        found += _segments_below(path) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def segments_of(directory: Path) -> list[Path]:
    """Return the segments directly in a directory, by base offset.

    Args:
        directory: an existing directory.
    """
    return sorted(path for path in directory.iterdir() if base_offset_of(path) is not None)


def _segments_below(directory: Path) -> list[Path]:
    found = [
        path
        for path in directory.rglob("*")
        if base_offset_of(path) is not None
        and DELETED_NAME not in path.relative_to(directory).parts
    ]
    return sorted(found, key=_natural_key)


def _natural_key(path: Path) -> list[list[tuple[int, str]]]:
    return [
        [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in _DIGITS.split(part)]
        for part in path.parts
    ]
