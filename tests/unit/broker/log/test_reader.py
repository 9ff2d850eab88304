from __future__ import annotations

import pytest

from broker.errors import OffsetOutOfRangeError, StorageError
from broker.log.log import LogReader
from broker.log.segment import SegmentFiles
from broker.protocol.codec import encode
from tests.support.log_fixtures import LogFactory

TWELVE_BYTES = encode([b"ab"])


def test_read_when_retention_removes_the_segment_meanwhile_then_out_of_range(
    make_log: LogFactory,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(TWELVE_BYTES, 1)
    log.append(TWELVE_BYTES, 1)
    log.flush()
    snapshot = log.segments
    log.remove(snapshot[0])
    with pytest.raises(OffsetOutOfRangeError, match="was just removed"):
        LogReader(log.partition, SegmentFiles()).read(snapshot, 24, 0, 100)


def test_read_when_somebody_else_removed_the_file_then_storage_error(
    make_log: LogFactory,
) -> None:
    log = make_log(segment_bytes=10)
    log.append(TWELVE_BYTES, 1)
    log.close()
    log.segments[0].path.unlink()
    with pytest.raises(StorageError, match=r"cannot read events\[0-0\]: .*No such file"):
        log.read(0, 100)
