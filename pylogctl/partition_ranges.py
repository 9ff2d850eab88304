"""Ranges of several partitions: how a user's offsets become them. Reads nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from broker.client.positions import Positions
from broker.topic import TopicPartition
from pylogctl.cluster_pair import Side
from pylogctl.consume_options import Span
from pylogctl.context import Environment
from pylogctl.offset_resolution import ResolvedRange, resolve
from pylogctl.offset_spec import Mark


def resolve_ranges(
    env: Environment,
    side: Side,
    partitions: Iterable[TopicPartition],
    span: Span,
    *,
    default_start: Mark = Mark.EARLIEST,
    strict: bool = False,
) -> dict[TopicPartition, ResolvedRange]:
    """Return from where to where to read in each partition.

    Args:
        env: told of what had to be moved.
        side: the cluster.
        partitions: which.
        span: what the user asked for.
        default_start: where to start if the user named no start.
        strict: an offset out of range is an error.

    Raises:
        CliError: an offset is not possible there.
        BrokerError: a broker does not answer.
    """
    ranges = {}
    with Positions(side.cluster, side.connect) as positions:
        for partition in partitions:
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or default_start)
            found = resolve(wanted, partition, positions, strict=strict)
            for warning in found.warnings:
                env.warn(warning)
            end = "" if found.end is None else f" to {found.end.offset}"
            env.trace(1, f"{partition}: reading from {found.start.offset}{end}")
            ranges[partition] = found
    return ranges


def total_bytes(ranges: Mapping[TopicPartition, ResolvedRange]) -> int:
    """Return how many bytes lie in some ranges that have ends."""
    return sum(
        max(0, one.end.offset - one.start.offset) for one in ranges.values() if one.end is not None
    )
