"""Compares topics of two clusters, message by message but in any order.

Both sides are read in step, so that few messages of one side are remembered until they are read
from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from broker.consumer.cluster_reader import ClusterReader
from broker.protocol.codec import Scan, scan
from broker.tools.compare import Difference
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.mirror.document import VerifyRow

Ranges = Mapping[TopicPartition, ReadRange]


def compare_topics(
    source: Side,
    source_ranges: Ranges,
    target: Side,
    target_ranges: Ranges,
    advance: Callable[[int], None],
) -> Difference:
    """Return the messages that only one of two topics has.

    Args:
        source: one cluster.
        source_ranges: to read there; they end between entries.
        target: the other cluster.
        target_ranges: to read there.
        advance: called with the number of bytes read.
    """
    difference = Difference()
    with ExitStack() as stack:
        sides = [
            _sizes_read(stack.enter_context(ClusterReader(side.cluster, side.connect, ranges)), add)
            for side, ranges, add in (
                (source, source_ranges, difference.add_source),
                (target, target_ranges, difference.add_target),
            )
        ]
        read_bytes = [0, 0]
        while sides:
            behind = min(range(len(sides)), key=read_bytes.__getitem__)
            size = next(sides[behind], None)
            if size is None:
                del sides[behind], read_bytes[behind]
            else:
                advance(size)
                read_bytes[behind] += size
    return difference


def _sizes_read(
    cluster_reader: ClusterReader, add: Callable[[memoryview, Scan], None]
) -> Iterator[int]:
    """Add the messages read to a side of the comparison, and give the bytes of each chunk."""
    for readers in cluster_reader.polls():
        for reader in readers:
            found = scan(reader.data)
            add(reader.data, found)
            reader.take_valid(found.valid_bytes, found.fault)
            yield found.valid_bytes


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
