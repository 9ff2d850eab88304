"""Resolves the values of `--offset` on partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.positions import Absolute, Mark, resolve
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.environment import Environment
from pylogctl.cli.offsets import Span


def resolve_ranges(
    env: Environment,
    side: Side,
    partitions: Iterable[TopicPartition],
    span: Span,
    *,
    default_start: Mark = Mark.EARLIEST,
    strict: bool = False,
    leader_wait_s: float = 0.0,
) -> dict[TopicPartition, ReadRange]:
    """Resolve `span` on each partition; a lost leader is awaited for `leader_wait_s`."""
    from broker.consumer.boundaries import BoundaryFinder  # late: log commands know no broker

    partitions = list(partitions)
    start = span.spec.default.start
    offset = start.position if isinstance(start, Absolute) and not span.from_file else 0
    if offset and len(partitions) > 1:
        env.note(
            f"offset {offset} is a position in bytes, in each of {len(partitions)} "
            "partitions; -p names one, -o -10 reads the last ten messages"
        )
    ranges = {}
    with BoundaryFinder(side.cluster, side.connect, leader_wait_s=leader_wait_s) as positions:
        for partition in partitions:
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or default_start)
            found = resolve(wanted, partition, positions, strict=strict, warn=env.warn)
            end = "" if found.end is None else f" to {found.end.offset}"
            env.trace(1, f"{partition}: reading from {found.start.offset}{end}")
            ranges[partition] = found
    return ranges


def total_bytes(ranges: Mapping[TopicPartition, ReadRange]) -> int:
    """Return the number of bytes in the ranges that have an end."""
    return sum(
        max(0, one.end.offset - one.start.offset) for one in ranges.values() if one.end is not None
    )
