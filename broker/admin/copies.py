"""Copies of a topic's messages to another topic, byte for byte."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from broker.client.cluster import with_assigned
from broker.client.side import Side
from broker.consumer.cluster_reader import ClusterReader
from broker.errors import BrokerError, InvalidMessageError, UnsupportedVersionError
from broker.producer.producer import Producer
from broker.producer.settings import ProducerSettings
from broker.tools.copying import Copied, Copy, CopyLimits, FindBehind
from broker.tools.mirror_producer import MirrorProducer
from broker.tools.mirror_routes import (
    counts_by_name,
    counts_like,
    create_topic,
    place_by_name,
    place_by_order,
)
from broker.topic import FORMAT_KAFKA, ReadRange, TopicPartition

MAX_IN_FLIGHT = 8  # keeps a broker busy; at an error, so many sets may be written unconfirmed

Ranges = Mapping[TopicPartition, ReadRange]
Placement = Mapping[TopicPartition, TopicPartition]

logger = logging.getLogger("pylogctl")


@dataclass(frozen=True, slots=True)
class CopiedPartition:
    """What was copied of a partition; of a plan, what would be."""

    source: TopicPartition
    target: TopicPartition
    start: int  # offset in the source
    end: int | None  # offset in the source where the copy ends
    next_offset: int  # offset in the source after what is copied
    message_count: int
    size_bytes: int  # in the target's log


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied of a topic."""

    partitions: tuple[CopiedPartition, ...]
    corrupt_count: int  # of messages that were left out
    duration_s: float

    @property
    def message_count(self) -> int:
        """Return how many messages the target has acknowledged."""
        return sum(one.message_count for one in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Return what they take in its logs."""
        return sum(one.size_bytes for one in self.partitions)


def place(
    sources: Sequence[TopicPartition],
    side: Side,
    topic: str,
    *,
    keeps_names: bool,
    is_dry_run: bool,
) -> Placement:
    """Return the target of each source partition; create the target topic if it is missing.

    Targets have the same names as their sources, or else the same place in order.
    `UnsupportedVersionError` if one of the topics is of the format kafka.
    """
    targets = with_assigned(side.cluster, topic, side.cluster.partitions(topic))
    for one in (*sources, *targets):
        if one.format == FORMAT_KAFKA:
            raise UnsupportedVersionError(
                f"topic '{one.topic}' is of the format kafka, which is not copied",
                hints=[f"pylogctl consume {one.topic} reads its messages"],
            )
    if not targets:
        broker_ids = [broker.id for broker in side.brokers()]
        counts = counts_by_name(sources) if keeps_names else counts_like(sources, broker_ids)
        if is_dry_run:
            targets = [TopicPartition(topic, h, i) for h, n in counts.items() for i in range(n)]
        else:
            targets = create_topic(
                side.cluster, side.connect, topic, counts, timeout_s=side.timeout_s
            )
    return (place_by_name if keeps_names else place_by_order)(sources, targets)


def plan_copy(ranges: Ranges, placement: Placement) -> dict[TopicPartition, Copied]:
    """Return where each source partition is copied to, and that nothing is yet."""
    return {one: Copied(placement[one], found.start.offset) for one, found in ranges.items()}


def report_of(
    ranges: Ranges,
    copied: Mapping[TopicPartition, Copied],
    *,
    corrupt_count: int = 0,
    seconds: float = 0.0,
) -> CopyReport:
    """Return what is copied."""
    partitions = [
        CopiedPartition(
            source,
            done.target,
            ranges[source].start.offset,
            None if (end := ranges[source].end) is None else end.offset,
            done.next_offset,
            done.message_count,
            done.size_bytes,
        )
        for source, done in copied.items()
    ]
    return CopyReport(tuple(partitions), corrupt_count, seconds)


def copy_ranges(
    reader: ClusterReader,
    side: Side,
    ranges: Ranges,
    placement: Placement,
    *,
    max_messages: int | None,
    skips_corrupt: bool,
    should_stop: Callable[[], bool],
) -> CopyReport:
    """Copy what a reader gives; wait until consumers of the target cluster can read all of it.

    The details of an error say how many messages are `confirmed`, and the `next_offsets` in the
    source partitions, by name.
    """
    copied = plan_copy(ranges, placement)
    corrupt_count = 0

    def pass_over(
        partition: TopicPartition,
        offset: int,
        problem: str,
        find_behind: FindBehind,
        next_offset: int | None,
    ) -> int:
        """Raise for a corrupt message, or skip and count it."""
        nonlocal corrupt_count
        with suppress(BrokerError):  # must not hide the corrupt message
            behind = find_behind(partition, offset)
            if behind == offset:
                return offset  # it is read again, at another replica
            next_offset = next_offset if behind is None else behind
        if skips_corrupt and next_offset is not None:
            corrupt_count += 1
            logger.warning("%s: %s; going on at %d", partition, problem, next_offset)
            return next_offset
        raise InvalidMessageError(
            f"{partition}: {problem}", details={"offset": offset, "next_offset": next_offset}
        )

    settings = ProducerSettings(
        delivery_timeout_s=side.timeout_s, max_in_flight=MAX_IN_FLIGHT, timeout_s=side.timeout_s
    )
    target = Producer(side.cluster, side.connect, settings)
    with closing(MirrorProducer(target)) as producer:
        copy = Copy(
            producer,
            copied,
            CopyLimits(max_messages, None),
            should_stop,
            lambda _: None,
            pass_over,
        )
        try:
            copy.run(reader)
        except BrokerError as error:
            error.details["confirmed"] = copy.message_count
            error.details["next_offsets"] = {
                one.name: done.next_offset for one, done in copied.items()
            }
            raise
    return report_of(ranges, copied, corrupt_count=corrupt_count, seconds=copy.seconds)
