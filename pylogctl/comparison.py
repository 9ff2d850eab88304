"""Reads messages of clusters, and pairs them with others: one engine below several reports.

`mirror verify` pairs the messages of two topics in any order, `produce --verify` and `copy
--verify` pair what is read back with what was sent, `audit check --count` counts what is read.
`log compare` reads no message: brokers compute the digests of their logs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import NamedTuple

from broker.client.side import Side
from broker.consumer.cluster_reader import ClusterReader
from broker.consumer.fetch_session import DEFAULT_MAX_WAIT_MS
from broker.consumer.partition_reader import PartitionReader
from broker.errors import RequestTimeoutError
from broker.protocol.checksum import crc32
from broker.protocol.codec import Fault, scan
from broker.protocol.message_set import iter_payload_crcs
from broker.protocol.primitives import Buffer
from broker.topic import MessagePosition, ReadRange, TopicPartition

Ranges = Mapping[TopicPartition, ReadRange]
_MASK_64 = (1 << 64) - 1


def read_chunks(
    side: Side,
    ranges: Ranges,
    advance: Callable[[int], object] = lambda _: None,
    *,
    max_wait_ms: int = DEFAULT_MAX_WAIT_MS,
    silence_s: float = math.inf,
) -> Generator[PartitionReader, None, None]:
    """Give the reader of a partition for each chunk, until all ranges are read.

    `advance` is called with the bytes that were taken of the chunk. No data for `silence_s` raises
    `RequestTimeoutError`.
    """
    with ClusterReader(*side[:2], ranges, max_wait_ms=max_wait_ms) as cluster_reader:
        last_s = time.monotonic()
        for readers in cluster_reader.polls():
            for reader in readers:
                before = reader.offset
                yield reader
                advance(reader.offset - before)
            now_s = time.monotonic()
            last_s = now_s if readers else last_s
            if now_s - last_s > silence_s:
                raise RequestTimeoutError(f"nothing came to verify for {silence_s:g}s")


class Expected(NamedTuple):
    """The range of a message set in the log, its checksum, and its first and last message."""

    offset: int
    end: int
    crc: int
    numbers: tuple[int, int]


class MismatchError(Exception):
    """What was read back is not what was expected."""

    def __init__(self, partition: TopicPartition, expected: Expected) -> None:
        super().__init__(partition, expected)
        self.partition, self.expected = partition, expected


def read_back(
    side: Side,
    expected: Mapping[TopicPartition, Sequence[Expected]],
    *,
    max_wait_ms: int,
    silence_s: float,
) -> None:
    """Read message sets back and compare their checksums; raise `MismatchError` at the first.

    What others wrote between them does not matter.
    """
    checks = {partition: _Check(sorted(sets)) for partition, sets in expected.items()}
    ranges = {partition: check.range for partition, check in checks.items()}
    chunks = read_chunks(side, ranges, max_wait_ms=max_wait_ms, silence_s=silence_s)
    with closing(chunks):
        for reader in chunks:
            found, check = scan(reader.data), checks[reader.partition]
            mismatch = check.take(reader.offset, reader.data[: found.valid_bytes])
            reader.take(found.valid_bytes)
            if mismatch is None and found.fault not in (Fault.NONE, Fault.PARTIAL):
                mismatch = check.next
            if mismatch is not None:
                raise MismatchError(reader.partition, mismatch)


@dataclass(slots=True)
class _Check:
    """Compares chunks of one partition with the sets expected there."""

    sets: Sequence[Expected]
    place: int = 0
    crc: int = 0

    @property
    def range(self) -> ReadRange:
        """Return the range that contains all sets."""
        return ReadRange(MessagePosition(self.sets[0].offset), MessagePosition(self.sets[-1].end))

    @property
    def next(self) -> Expected:
        """Return the set that is compared next."""
        return self.sets[self.place]

    def take(self, offset: int, data: memoryview) -> Expected | None:
        """Compare the valid data at an offset; return the first set that differs, if one does."""
        end = offset + len(data)
        while self.place < len(self.sets):
            one = self.next
            start = max(offset, one.offset)
            if start >= end:
                return None
            self.crc = crc32(data[start - offset : one.end - offset], self.crc)
            if end < one.end:
                return None
            if self.crc != one.crc:
                return one
            self.place, self.crc = self.place + 1, 0
        return None


@dataclass(slots=True)
class TopicRead:
    """What was read of one of the topics."""

    message_count: int = 0
    read_bytes: int = 0
    checksum: int = 0  # the sum of the CRCs, in 64 bits, which is the same in any order


@dataclass(slots=True)
class Difference:
    """Compares the messages of a source and of its copy, as multisets by CRC and length."""

    source: TopicRead = field(default_factory=TopicRead)
    target: TopicRead = field(default_factory=TopicRead)
    # how often a message was read from the source more than from the copy
    _surplus_in_source: dict[tuple[int, int], int] = field(default_factory=dict, init=False)

    def add(self, topic: TopicRead, message_set: Buffer) -> None:
        """Count messages of the source or of the target: a set of valid entries."""
        counts = self._surplus_in_source
        step = 1 if topic is self.source else -1
        topic.read_bytes += len(message_set)
        for key in iter_payload_crcs(message_set):
            topic.message_count += 1
            topic.checksum = (topic.checksum + key[0]) & _MASK_64
            count = counts.get(key, 0) + step
            if count:
                counts[key] = count
            else:
                del counts[key]

    @property
    def missing_count(self) -> int:
        """Return the number of messages of the source that are missing in the copy."""
        return sum(count for count in self._surplus_in_source.values() if count > 0)

    @property
    def surplus_count(self) -> int:
        """Return the number of messages of the copy that are not in the source."""
        return -sum(count for count in self._surplus_in_source.values() if count < 0)


def compare_topics(
    source: tuple[Side, Ranges], target: tuple[Side, Ranges], advance: Callable[[int], object]
) -> Difference:
    """Return the difference of two topics in ranges that end between entries.

    Both are read in step, so that few messages of one side are remembered until they are read from
    the other. `advance` is called with the number of bytes read.
    """
    difference = Difference()
    chunks = [
        (topic, read_chunks(*side, advance))
        for topic, side in ((difference.source, source), (difference.target, target))
    ]
    with ExitStack() as stack:
        for _, one in chunks:
            stack.enter_context(closing(one))
        while chunks:
            behind = min(chunks, key=lambda one: one[0].read_bytes)
            reader = next(behind[1], None)
            if reader is None:
                chunks.remove(behind)
                continue
            found = scan(reader.data)
            difference.add(behind[0], reader.data[: found.valid_bytes])
            reader.take_valid(found.valid_bytes, found.fault)
    return difference
