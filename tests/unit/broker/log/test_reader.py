from __future__ import annotations

import pytest

from broker.errors import OffsetOutOfRangeError, StorageError
from broker.log.segment import Segment, SegmentFile, SegmentFiles
from broker.protocol.codec import encode
from tests.support.log_fixtures import LogFactory

TWELVE_BYTES = encode([b"ab"])


def test_read_when_retention_removes_the_segment_meanwhile_then_out_of_range(
    make_log: LogFactory,
) -> None:
    class FilesOfRemovedSegments(SegmentFiles):
        """Removes each segment just before its file is opened."""

        def get(self, segment: Segment) -> SegmentFile:
            log.remove(segment)
            return super().get(segment)

    log = make_log(segment_bytes=10, files=FilesOfRemovedSegments())
    log.append(TWELVE_BYTES, 1)
    log.append(TWELVE_BYTES, 1)
    log.flush()

    with pytest.raises(OffsetOutOfRangeError, match="was just removed"):
        log.read(0, 100)


def test_read_when_the_file_was_removed_by_another_program_then_storage_error(
    make_log: LogFactory,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(TWELVE_BYTES, 1)
    log.close()
    log.segments[0].path.unlink()
    with pytest.raises(StorageError, match=r"cannot read events\[0-0\]: .*No such file"):
        log.read(0, 100)
