"""Reading archived segments: gzip files that retention made, beside plain segments.

Positions are those in the unpacked segment, a temporary file that exists while it is read.
"""

from __future__ import annotations

import gzip
import os
import shutil
import tempfile
import zlib
from pathlib import Path

from broker.errors import LogCorruptError
from broker.log.segment import ARCHIVE_SUFFIX, SegmentFile, base_offset_of

_BLOCK_BYTES = 1 << 20


def is_archive(path: Path) -> bool:
    """Return whether a file is an archived segment, by its name."""
    return path.name.endswith(ARCHIVE_SUFFIX)


def archived_base_offset_of(path: Path) -> int | None:
    """Return the base offset in the name of a segment, archived or not, else None."""
    return base_offset_of(path.with_name(path.name.removesuffix(ARCHIVE_SUFFIX)))


def open_segment(path: Path) -> SegmentFile:
    """Open a segment for reading, an archived one unpacked (`LogCorruptError` if damaged)."""
    if not is_archive(path):
        return SegmentFile(path)
    with tempfile.NamedTemporaryFile(prefix="pylogctl-", suffix=".segment") as unpacked:
        try:
            with gzip.open(path) as packed:
                shutil.copyfileobj(packed, unpacked, _BLOCK_BYTES)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise LogCorruptError(f"{path}: the archive is damaged: {error}") from error
        unpacked.flush()
        return SegmentFile(Path(unpacked.name))  # its descriptor outlives the name


def segment_bytes(path: Path) -> int:
    """Return the size of a segment, of an archived one unpacked; errors as `open_segment`."""
    file = open_segment(path)  # kept, as its descriptor closes with it
    return os.fstat(file.fd).st_size
