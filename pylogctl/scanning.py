"""Whole messages out of the stretches that a reading gives, and what counts as damage.

Knows the codec and cursors; what the messages are wanted for is for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from broker.client.cluster import Cluster, Connect
from broker.client.excerpt import excerpt
from broker.errors import InvalidFetchSizeError, InvalidMessageError
from broker.protocol.codec import Fault, scan
from broker.protocol.message_set import raise_fault
from broker.topic import TopicPartition
from pylogctl.errors import CliError
from pylogctl.exit_status import ExitStatus
from pylogctl.offset_resolution import ResolvedRange
from pylogctl.reading import Reading, Stretch

_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 500


@contextmanager
def damage_of(partition: TopicPartition) -> Iterator[None]:
    """Have errors about corrupt messages name their partition, and say what to do.

    Raises:
        CliError: a message was found to be corrupt.
    """
    try:
        yield
    except (InvalidMessageError, InvalidFetchSizeError) as error:
        raise CliError(
            ExitStatus.CORRUPT,
            f"{partition}: {error}",
            hints=["try: pylogctl log verify on the broker's segment files"],
            code="INVALID_MESSAGE",
            details={"topic": partition.topic, "partition": partition.name},
        ) from error


def take_whole(stretch: Stretch, valid_bytes: int, fault: Fault) -> None:
    """Move a stretch's cursor on past its good messages.

    Args:
        stretch: what was looked at.
        valid_bytes: how far it is good.
        fault: why not further; `PARTIAL` is normal, as the rest is under way.

    Raises:
        CliError: a message is corrupt, or seems to go on behind the end of all there is.
    """
    stretch.cursor.take(valid_bytes)
    if fault is not Fault.PARTIAL or stretch.cursor.is_cut_for_good():
        with damage_of(stretch.cursor.partition):
            raise_fault(fault, stretch.offset + valid_bytes)


def count_messages(
    cluster: Cluster,
    connect: Connect,
    ranges: Mapping[TopicPartition, ResolvedRange],
    advance: Callable[[int], None],
) -> dict[TopicPartition, int]:
    """Return how many messages partitions have in some ranges, by reading all of them.

    Compressed sets are unfolded.

    Args:
        cluster: tells which broker has which partition.
        connect: makes connections.
        ranges: each with an end.
        advance: called with the number of bytes read, again and again.

    Raises:
        CliError: a message is corrupt.
        BrokerError: a broker is gone for good.
    """
    counts = dict.fromkeys(ranges, 0)
    with Reading(
        cluster, connect, ranges, fetch_bytes=_FETCH_BYTES, max_wait_ms=_MAX_WAIT_MS
    ) as reading:
        for stretches in reading.polls():
            for stretch in stretches:
                counts[stretch.cursor.partition] += _count(stretch, advance)
    return counts


def _count(stretch: Stretch, advance: Callable[[int], None]) -> int:
    found = scan(stretch.view)
    with damage_of(stretch.cursor.partition):
        wanted = excerpt(
            stretch.view, found, stretch.offset, skip=stretch.skip, end=stretch.cursor.end
        )
    take_whole(stretch, found.valid_bytes, found.fault)
    advance(found.valid_bytes)
    return wanted.message_count
