"""Compares topics of two clusters, message by message but in any order.

Both sides are read at the same time, so that little need be remembered of what one has and the
other not yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack

from broker.protocol.codec import Scan, scan
from broker.tools.compare import Difference
from broker.topic import TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.offset_resolution import ResolvedRange
from pylogctl.cli.render import Record
from pylogctl.consume.reading import Reading, Stretch, take_whole

_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 500

Ranges = Mapping[TopicPartition, ResolvedRange]


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
        ways = [
            (stack.enter_context(_reading(source, source_ranges)), difference.add_source),
            (stack.enter_context(_reading(target, target_ranges)), difference.add_target),
        ]
        turns = [_pieces(reading, take, advance) for reading, take in ways]
        read_bytes = [0, 0]
        while turns:
            behind = min(range(len(turns)), key=read_bytes.__getitem__)
            size = next(turns[behind], None)
            if size is None:
                del turns[behind], read_bytes[behind]
            else:
                read_bytes[behind] += size
    return difference


def _reading(side: Side, ranges: Ranges) -> Reading:
    return Reading(
        side.cluster, side.connect, ranges, fetch_bytes=_FETCH_BYTES, max_wait_ms=_MAX_WAIT_MS
    )


def _pieces(
    reading: Reading, take: Callable[[memoryview, Scan], None], advance: Callable[[int], None]
) -> Iterator[int]:
    """Take what comes, and give the number of bytes after each stretch."""
    for stretches in reading.polls():
        for stretch in stretches:
            yield _take(stretch, take, advance)


def _take(
    stretch: Stretch, take: Callable[[memoryview, Scan], None], advance: Callable[[int], None]
) -> int:
    found = scan(stretch.view)
    take(stretch.view, found)
    take_whole(stretch, found.valid_bytes, found.fault)
    advance(found.valid_bytes)
    return found.valid_bytes


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
