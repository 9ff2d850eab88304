"""Compares topics of two clusters, message by message but in any order.

Both sides are read at the same time, so that little need be remembered of what one has and the
other not yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from broker.consumer.cluster_reader import ClusterReader
from broker.protocol.codec import Scan, scan
from broker.tools.compare import Difference
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.render import Record

Ranges = Mapping[TopicPartition, ReadRange]


def compare_topics(
    source: Side,
    source_ranges: Ranges,
    target: Side,
    target_ranges: Ranges,
    advance: Callable[[int], None],
) -> Difference:
    """Return what a topic and its copy do not have in common.

    Args:
        source: one cluster.
        source_ranges: what to read there, to boundaries of entries.
        target: the other cluster.
        target_ranges: what to read there.
        advance: told of bytes as they are read.

    Raises:
        CliError: a message is corrupt.
        BrokerError: a broker is gone.
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
    """Add what is read to a side of the comparison, and give the number of bytes each time."""
    for readers in cluster_reader.polls():
        for reader in readers:
            found = scan(reader.data)
            add(reader.data, found)
            reader.take_valid(found.valid_bytes, found.fault)
            yield found.valid_bytes


def verify_record(topic: str, renamed: str, found: Difference) -> Record:
    """Return the row of a topic."""
    missing, surplus = found.missing_count, found.surplus_count
    return {
        "topic": topic,
        "target": renamed,
        "messages": found.source.message_count,
        "target_messages": found.target.message_count,
        "missing": missing,
        "surplus": surplus,
        "digest": f"{found.source.checksum:016x}",
        "target_digest": f"{found.target.checksum:016x}",
        "status": "missing" if missing else "surplus" if surplus else "ok",
    }
