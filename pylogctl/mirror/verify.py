"""Compares topics of two clusters, message by message but in any order.

Messages are identified by CRC and length. Both sides are read in step, so that few messages of one
side are remembered until they are read from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from broker.consumer.cluster_reader import ClusterReader
from broker.protocol.codec import scan
from broker.protocol.message_set import iter_payload_crcs
from broker.protocol.primitives import Buffer
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.mirror.document import VerifyRow

_MASK_64 = (1 << 64) - 1

Ranges = Mapping[TopicPartition, ReadRange]


class TopicRead:
    """What was read of one of the topics."""

    def __init__(self) -> None:
        self.message_count = 0
        self.read_bytes = 0
        self.checksum = 0  # the sum of the CRCs, in 64 bits, which is the same in any order


class Difference:
    """Compares the messages of a source and of its copy, as multisets."""

    def __init__(self) -> None:
        self.source = TopicRead()
        self.target = TopicRead()
        # how often a message, by CRC and length, was read from the source more than from the copy
        self._surplus_in_source: dict[tuple[int, int], int] = {}

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
    source: Side,
    source_ranges: Ranges,
    target: Side,
    target_ranges: Ranges,
    advance: Callable[[int], None],
) -> Difference:
    """Return the difference of two topics in ranges that end between entries.

    `advance` is called with the number of bytes read.
    """
    difference = Difference()
    with ExitStack() as stack:
        sets = {
            topic: _message_sets(
                stack.enter_context(ClusterReader(side.cluster, side.connect, ranges))
            )
            for topic, side, ranges in (
                (difference.source, source, source_ranges),
                (difference.target, target, target_ranges),
            )
        }
        while sets:
            behind = min(sets, key=lambda topic: topic.read_bytes)
            message_set = next(sets[behind], None)
            if message_set is None:
                del sets[behind]
            else:
                difference.add(behind, message_set)
                advance(len(message_set))
    return difference


def _message_sets(cluster_reader: ClusterReader) -> Iterator[memoryview]:
    """Give the valid entries of each chunk; raise at a corrupt one."""
    for readers in cluster_reader.polls():
        for reader in readers:
            found = scan(reader.data)
            yield reader.data[: found.valid_bytes]
            reader.take_valid(found.valid_bytes, found.fault)


def verify_row(topic: str, renamed: str, found: Difference) -> VerifyRow:
    """Return the row of a topic."""
    missing, surplus = found.missing_count, found.surplus_count
    return VerifyRow(
        topic,
        renamed,
        found.source.message_count,
        found.target.message_count,
        missing,
        surplus,
        f"{found.source.checksum:016x}",
        f"{found.target.checksum:016x}",
        "missing" if missing else "surplus" if surplus else "ok",
    )
