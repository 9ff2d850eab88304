"""Decides which requested messages are lost, and whether a read continues without them.

Messages are lost if retention deleted them, if no segment file has them, or if their topic was
deleted and created again. Nothing is lost if the leader of the same topic is behind an offset that
was reached: that is an `OffsetNotAvailableError`, and readers wait until it has caught up.

Opens no connection and no file. A task finds out about losses since the plan when it reads: see
`fetching`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.client.list_offsets import Watermarks
from broker.errors import DataLossError, OffsetNotAvailableError
from broker.spark.options import ReadOptions
from broker.spark.reading.ranges import ByteRange, CreationIds, Reached
from broker.spark.reading.report import Cause, Omission
from broker.topic import NO_HOME, TopicPartition


def refuse(omissions: Iterable[Omission], options: ReadOptions) -> None:
    """Raise a `DataLossError` for the first lost messages, if `failOnDataLoss` is set."""
    lost = next((one for one in omissions if one.cause is Cause.LOST), None)
    if lost is not None and options.fail_on_data_loss:
        raise DataLossError(f"{lost.message}; failOnDataLoss=false reads what is left")


def check_reached(partition: TopicPartition, offset: int, found: Watermarks) -> None:
    """Raise an `OffsetNotAvailableError` if a log is shorter than an offset of the same topic."""
    if found.high_watermark < offset:
        raise OffsetNotAvailableError(
            f"{partition}: offset {offset} was reached, and its leader has a high watermark of "
            f"{found.high_watermark} in the same topic. A new leader catches up as soon as its "
            "followers fetch; if messages are lost for good, as by an unclean election, read on "
            "with a new checkpoint or output and a start that you choose"
        )


class Resolved(NamedTuple):
    """The part of a requested range that the log has, and the parts that it lacks."""

    range: ByteRange
    omissions: tuple[Omission, ...] = ()


def clip(wanted: ByteRange, found: Watermarks) -> Resolved:
    """Return the part of a range between the log start offset and the high watermark."""
    partition, start, end = wanted.partition, wanted.start, wanted.end
    first, last, _ = found
    unit = "offsets" if partition.home == NO_HOME else "bytes"
    omissions = []
    if start < first:
        lost_end = min(first, end)
        text = (
            f"offset {start} was asked for, and the log starts at {first}: "
            f"{lost_end - start} {unit} are gone"
        )
        omissions.append(Omission(Cause.LOST, partition, start, lost_end, text))
    if end > last:
        lost_start = max(last, start)
        text = (
            f"offset {end} was asked for, and the log ends at {last}: "
            f"{end - lost_start} {unit} are not there"
        )
        omissions.append(Omission(Cause.LOST, partition, lost_start, end, text))
    low = min(max(start, first), last)
    return Resolved(ByteRange(partition, low, max(low, min(end, last))), tuple(omissions))


def since_reached(
    partition: TopicPartition, reached: Reached, found: Watermarks, present: CreationIds
) -> Omission | None:
    """Return the loss if a log no longer has the offset reached in it; it is read from its start.

    A log that may be of the same topic is shorter only if it was truncated or recreated by a broker
    of Kafka 0.7, which tells no creation ids.
    """
    if partition not in reached.offsets:
        return None
    offset, (first, last, _) = reached.offsets[partition], found
    if reached.of_former_topics(present, [partition]):
        return of_former_topic(partition, offset, first)
    if reached.is_known(partition):
        check_reached(partition, offset, found)
    if offset <= last:
        return None
    text = (
        f"offset {offset} was reached, and the log ends at {last} now: it was truncated or "
        f"recreated, and starts at {first}"
    )
    return Omission(Cause.LOST, partition, first, first, text)


def of_former_topic(partition: TopicPartition, offset: int, first: int) -> Omission:
    """Return the loss after an offset reached in a former topic; the new one is read from `first`.

    The number of messages lost is unknown.
    """
    text = (
        f"offset {offset} was reached, and the topic was deleted and created again since; it "
        f"starts at {first} now"
    )
    return Omission(Cause.LOST, partition, first, first, text)


def range_of_former_topic(one: ByteRange) -> Omission:
    """Return the loss of a planned range whose topic was deleted and created again."""
    text = (
        f"offsets {one.start} to {one.end} are of a former topic, which was deleted and created "
        "again before they were read"
    )
    return Omission(Cause.LOST, one.partition, one.start, one.end, text)


def vanished(partition: TopicPartition, offset: int) -> Omission:
    """Return the loss after an offset reached in a partition that its broker no longer has."""
    text = f"offset {offset} was reached, and broker {partition.home} no longer has the partition"
    return Omission(Cause.LOST, partition, offset, offset, text)


def gap(partition: TopicPartition, start: int, end: int) -> Omission:
    """Return the loss of offsets between segment files."""
    return Omission(Cause.LOST, partition, start, end, f"no file has offsets {start} to {end}")


def deleted_before_read(partition: TopicPartition, start: int, end: int) -> Omission:
    """Return the loss of offsets that were there when the read was planned."""
    text = f"offsets {start} to {end} were deleted before they could be read"
    return Omission(Cause.LOST, partition, start, end, text)
