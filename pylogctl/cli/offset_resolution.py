"""Resolves the values of `--offset` on partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from broker.client.selection import Selected, causes_of_absence, partitions_away, unreadable_text
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    PartitionsAwayError,
    RequestTimeoutError,
)
from broker.positions import Absolute, Mark, resolve
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.environment import Environment
from pylogctl.cli.offsets import Span


def resolve_ranges(
    env: Environment,
    side: Side,
    selected: Selected,
    span: Span,
    *,
    default_start: Mark = Mark.EARLIEST,
    strict: bool = False,
    leader_wait_s: float = 0.0,
    on_missing: Callable[[str], object] | None = None,
) -> dict[TopicPartition, ReadRange]:
    """Resolve `span` on each partition; a lost leader is awaited for `leader_wait_s`.

    Partitions that cannot be read raise `PartitionsAwayError`, or are left out if `on_missing` is
    given, which is called with a sentence for each cause.
    """
    from broker.consumer.boundaries import BoundaryFinder  # late: log commands know no broker

    partitions, away = selected
    if away and (on_missing is None or not partitions):
        raise partitions_away(side.cluster, away)
    causes = causes_of_absence(side.cluster, away)
    start = span.spec.default.start
    offset = start.position if isinstance(start, Absolute) and not span.from_file else 0
    if offset and len(partitions) > 1:
        env.note(
            f"offset {offset} is a position in bytes, in each of {len(partitions)} "
            "partitions; -p names one, -o -10 reads the last ten messages"
        )
    ranges = {}
    lost: dict[int, tuple[BrokerError, list[TopicPartition]]] = {}  # by broker
    with BoundaryFinder(side.cluster, side.connect, leader_wait_s=leader_wait_s) as positions:
        for partition in partitions:
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or default_start)
            leader = side.cluster.leader_id(partition)
            if leader in lost:
                lost[leader][1].append(partition)
                continue
            try:
                found = resolve(wanted, partition, positions, strict=strict, warn=env.warn)
            except (BrokerUnreachableError, RequestTimeoutError) as error:
                if not error.is_retriable:
                    raise
                lost[leader] = error, [partition]
                continue
            end = "" if found.end is None else f" to {found.end.offset}"
            env.trace(1, f"{partition}: reading from {found.start.offset}{end}")
            ranges[partition] = found
    if lost and not ranges:
        raise next(iter(lost.values()))[0]
    causes += [unreadable_text(side.cluster, *one) for one in lost.values()]
    if on_missing is not None:
        for cause in causes:
            on_missing(cause)
    elif causes:
        raise PartitionsAwayError("\n".join(causes))
    return ranges


def total_bytes(ranges: Mapping[TopicPartition, ReadRange]) -> int:
    """Return the number of bytes in the ranges that have an end."""
    return sum(
        max(0, one.end.offset - one.start.offset) for one in ranges.values() if one.end is not None
    )
