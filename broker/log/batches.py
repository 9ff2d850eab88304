"""Record batches in segment files: block scans, and good batches behind damage.

As `scan`, for Kafka's record batches and its message formats 0 and 1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from broker.log.scan import BLOCK_BYTES, ScannedBlock, crc_of_range, read_range, walk_blocks
from broker.protocol import codec, record_batch
from broker.protocol.codec import BatchScan, Fault, RecordBatch
from broker.protocol.primitives import Buffer

# 48 bits of an offset, a size of at least 14 and less than 128 MiB, magic 0 to 2; at any position
_HEAD = re.compile(rb"(?=\0\0.{6}(?!\0\0\0[\0-\x0d])[\0-\x07].{3}.{4}[\0-\2])", re.DOTALL)
_READ_FACTOR = 8
"""How many bytes a search may read for each byte of the file: heads that a file is full of, each
with a size of its whole rest, cost no more."""
_HEAD_COST_BYTES = 256  # a head takes as long as the CRC of so many


def scan_batch_blocks(
    fd: int,
    start: int,
    end: int,
    *,
    block_bytes: int = BLOCK_BYTES,
    scan: Callable[[Buffer], BatchScan] = codec.scan_batches,
) -> Iterator[ScannedBlock[BatchScan]]:
    """Scan a range of a file of batches in blocks; see `walk_blocks`.

    Positions of the batches are those in the block.
    """
    return walk_blocks(fd, start, end, block_bytes=block_bytes, scan=scan, judge_large=_judge_large)


def _judge_large(fd: int, block: memoryview, position: int, end: int) -> tuple[int, Fault]:
    head = record_batch.parse_head(block, position)
    if head is None or head.end > end:
        return 0, Fault.PARTIAL
    return head.size, Fault.NONE if crc_of_batch(fd, head) == head.crc else Fault.CRC


def read_head(fd: int, position: int) -> RecordBatch | None:
    """Return what the head of the batch at a position tells, valid or not; None at the end."""
    return record_batch.parse_head(os.pread(fd, record_batch.HEADER_BYTES, position), position)


def crc_of_batch(fd: int, head: RecordBatch) -> int:
    """Return the CRC that a batch with this head should have; less of it where the file ends."""
    if head.magic < record_batch.MAGIC:
        return crc_of_range(fd, head.position + record_batch.OLD_CHECKED_FROM, head.end)
    start = head.position + record_batch.CHECKED_FROM
    return crc_of_range(fd, start, head.end, crc_of=codec.crc32c)


def is_plausible(head: RecordBatch) -> bool:
    """Return whether a head may be that of a batch, judging by its fields and no CRC."""
    if head.base_offset < 0 or head.magic > record_batch.MAGIC or head.codec is None:
        return False
    if head.magic < record_batch.MAGIC:
        return head.size >= record_batch.LEAST_BYTES
    count, delta = head.record_count, head.last_offset_delta
    return head.size >= record_batch.HEADER_BYTES and 0 <= count <= delta + 1 and delta >= 0


def looks_like_batch(fd: int, position: int, end: int) -> bool:
    """Return whether a batch may start at a position, judging by two heads and no CRC."""
    if position > end:
        return False
    head = read_head(fd, position)
    if head is None:  # a tail too short for a head
        return True
    if not is_plausible(head) or head.end > end:
        return False
    following = read_head(fd, head.end)
    return following is None or is_plausible(following)


def find_batch(fd: int, position: int, end: int) -> int | None:
    """Return the position of the next whole batch with a good CRC, None if none is found."""
    left_bytes = _READ_FACTOR * (end - position) + BLOCK_BYTES
    while position + record_batch.LEAST_BYTES <= end:
        window = read_range(fd, position, min(BLOCK_BYTES, end - position))
        for match in _HEAD.finditer(window):
            head = read_head(fd, position + match.start())
            left_bytes -= _HEAD_COST_BYTES
            if head is None or head.end > end or not is_plausible(head):
                continue
            left_bytes -= head.size
            if left_bytes < 0:
                return None
            if crc_of_batch(fd, head) == head.crc:
                return head.position
        if len(window) < BLOCK_BYTES:
            return None
        position += len(window) - record_batch.MAGIC_AT
    return None


def has_good_batch(fd: int) -> bool:
    """Return whether a file starts with a good batch, which no entry of 0.7 looks like."""
    head = read_head(fd, 0)
    if head is None or not is_plausible(head) or head.end > os.fstat(fd).st_size:
        return False
    return crc_of_batch(fd, head) == head.crc
