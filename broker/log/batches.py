"""Record batches in segment files: block scans, and good batches behind damage.

As `scan`, for Kafka's record batches and its message formats 0 and 1.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator

from broker.log.scan import (
    BLOCK_BYTES,
    FIRST_BLOCK_BYTES,
    ScannedBlock,
    crc_of_range,
    read_range,
    walk_blocks,
)
from broker.protocol import codec, record_batch
from broker.protocol.codec import BatchScan, Fault, RecordBatch
from broker.protocol.primitives import Buffer

# 48 bits of an offset, a size of at least 14 and less than 128 MiB, magic 0 to 2; at any position
_HEAD = re.compile(rb"(?=\0\0.{6}(?!\0\0\0[\0-\x0d])[\0-\x07].{3}.{4}[\0-\2])", re.DOTALL)
_MOST_ZEROS = 11  # at the start of a batch: offset 0, and a size of less than 256
_READ_FACTOR = 8
_FAULTS_BEHIND_CRC = frozenset(
    (Fault.CODEC, Fault.OFFSETS, Fault.RECORDS, Fault.COMPRESSED, Fault.TIMESTAMPS)
)
"""Those of batches that have a good CRC."""
_HEAD_COST_BYTES = 256  # a head takes as long as the CRC of so many


class SearchBudget:
    """How many bytes the searches of one run over a file may read.

    Heads that a file is full of, each with a size of its whole rest, cost no more.
    """

    def __init__(self, size_bytes: int) -> None:
        self.left_bytes = _READ_FACTOR * size_bytes + BLOCK_BYTES


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
    if head is None:  # a size that is damaged can also lead near the end
        return position == end
    if not is_plausible(head) or head.end > end:
        return False
    following = read_head(fd, head.end)
    return following is None or is_plausible(following)


def walk_heads(fd: int, position: int, end: int) -> Iterator[RecordBatch]:
    """Yield the heads of whole batches from a position on, up to one whose size may be wrong.

    A size is right if another head, or the end, is behind it, or by the CRC of the batch.
    """
    head = _whole_head(fd, position, end)
    while head is not None:
        following = _whole_head(fd, head.end, end)
        is_right = following is not None or head.end == end or crc_of_batch(fd, head) == head.crc
        if not is_right:
            return
        yield head
        head = following


def good_head(fd: int, position: int, end: int) -> RecordBatch | None:
    """Return the head of the whole batch with a good CRC at a position; None if there is none."""
    head = _whole_head(fd, position, end)
    return head if head is not None and crc_of_batch(fd, head) == head.crc else None


def _whole_head(fd: int, position: int, end: int) -> RecordBatch | None:
    head = read_head(fd, position)
    return head if head is not None and is_plausible(head) and head.end <= end else None


def _has_key_and_value(fd: int, head: RecordBatch) -> bool:
    """Return whether a message of format 0 or 1 is as large as its key and value tell."""
    at = head.position + record_batch.OLD_CHECKED_FROM + 2 + 8 * head.magic
    for _ in range(2):
        at += 4 + max(0, int.from_bytes(os.pread(fd, 4, at), "big", signed=True))
    return at == head.end


def find_batch(fd: int, position: int, end: int, budget: SearchBudget | None = None) -> int | None:
    """Return the position of the next whole batch with a good CRC, None if none is found."""
    budget = budget or SearchBudget(end - position)
    window_bytes = FIRST_BLOCK_BYTES
    while position + record_batch.LEAST_BYTES <= end:
        window = read_range(fd, position, min(window_bytes, end - position))
        zero_bytes = len(window) - len(window.lstrip(b"\0"))  # the search is slow in zeros
        for match in _HEAD.finditer(window, max(0, zero_bytes - _MOST_ZEROS)):
            head = read_head(fd, position + match.start())
            budget.left_bytes -= _HEAD_COST_BYTES
            if head is None or head.end > end or not is_plausible(head):
                continue
            # Numbers in heads and payloads often look like old messages: most end here.
            if head.magic < record_batch.MAGIC and not _has_key_and_value(fd, head):
                continue
            budget.left_bytes -= head.size
            if budget.left_bytes < 0:
                return None
            if crc_of_batch(fd, head) == head.crc:
                return head.position
        if len(window) < window_bytes:
            return None
        position += len(window) - record_batch.MAGIC_AT
        window_bytes = min(4 * window_bytes, BLOCK_BYTES)
    return None


def has_right_size(fd: int, head: RecordBatch, end: int, fault: Fault) -> bool:
    """Return whether the next batch is behind a damaged one, as its CRC or what follows tells."""
    if head.end > end:
        return False
    if fault in _FAULTS_BEHIND_CRC:
        return True
    return fault is Fault.CRC and looks_like_batch(fd, head.end, end)


def resume_behind(
    fd: int, position: int, end: int, fault: Fault, budget: SearchBudget | None = None
) -> int:
    """Return where to go on behind a damaged batch: at the next one, or at the end.

    Behind its size if that is right: a payload can hold batches, which are none of the file. Else
    at the next good batch. Calls of one run over a file share a budget, or else a file of damaged
    sizes may cost the square of its own; when it is used up, the end is next.
    """
    head = read_head(fd, position)
    if head is not None and has_right_size(fd, head, end, fault):
        return head.end
    if budget and head and fault is Fault.CRC:  # the scan has computed it, whatever the size
        budget.left_bytes -= head.size
        if budget.left_bytes < 0:
            return end
    return find_batch(fd, position + 1, end, budget) or end


def has_good_batch(fd: int) -> bool:
    """Return whether a file starts with a good batch, which no entry of 0.7 looks like."""
    return good_head(fd, 0, os.fstat(fd).st_size) is not None
