"""Which files are segments, for tools: of this broker, of Kafka 0.7, and archived ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from broker.log.data_directory import DELETED_NAME, MOVING_NAME

_NAME = re.compile(r"([0-9]{1,20})\.(?:pylog|kafka)", re.ASCII)  # of any width, as Kafka before 0.7
_DIGITS = re.compile(r"([0-9]+)", re.ASCII)
_NOT_SERVED = frozenset((DELETED_NAME, MOVING_NAME))
"""Parts of a data directory with logs that no broker serves."""
ARCHIVE_SUFFIX = ".gz"
"""Follows the name of a segment in the archive."""


def base_offset_of(path: Path) -> int | None:
    """Return the base offset in the name of a `.pylog` or `.kafka` segment, else None."""
    found = _NAME.fullmatch(path.name)
    return int(found[1]) if found else None


def expand_paths(paths: Iterable[Path], *, archives: bool = False) -> list[Path]:
    """Return the given files, and the segments in and below the given directories, each once.

    Files inside a directory come in natural order (`t_2` before `t_10`); missing paths are returned
    as given. Left out are, of a data directory, the logs of deleted topics and copies under
    construction, and archived segments unless asked for. A directory that cannot be listed, as it
    was removed meanwhile, is returned itself.
    """
    found: list[Path] = []
    for path in paths:
        found += _segments_below(path, archives) if path.is_dir() else [path]
    return list(dict.fromkeys(found))


def segments_of(directory: Path, *, archives: bool = False) -> list[Path]:
    """Return the segments directly in a directory, with archived ones if asked, by base offset."""
    found = (path for path in directory.iterdir() if is_segment(path, archives=archives))
    return sorted(found, key=_natural_key)


def is_segment(path: Path, *, archives: bool) -> bool:
    """Return whether a path has the name of a segment, and is a file or a link to one."""
    name = path.name.removesuffix(ARCHIVE_SUFFIX) if archives else path.name
    return _NAME.fullmatch(name) is not None and path.is_file()


def _segments_below(directory: Path, archives: bool) -> list[Path]:
    found: list[Path] = []
    failed: list[OSError] = []
    for parent, names, files in os.walk(directory, onerror=failed.append):
        names[:] = [one for one in names if one not in _NOT_SERVED]
        paths = (Path(parent, one) for one in files)
        found += (path for path in paths if is_segment(path, archives=archives))
    found += (Path(one.filename) for one in failed)
    return sorted(found, key=_natural_key)


def _natural_key(path: Path) -> list[list[tuple[int, str]]]:
    return [
        [(int(text), "") if text.isdecimal() else (-1, text) for text in _DIGITS.split(part)]
        for part in path.parts
    ]
