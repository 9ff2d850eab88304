"""Reads audit events out of a topic, and counts messages in the log as one more tier."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple

from broker.errors import InvalidMessageError
from broker.protocol.codec import decode
from broker.tools.audit import AuditEvent, Count, TimeOf, Window
from broker.topic import TopicPartition
from pylogctl.cli.connections import Side
from pylogctl.cli.offset_resolution import ResolvedRange
from pylogctl.consume.reading import Reading, take_whole

LOG_TIER = "log"
_FETCH_BYTES = 1 << 20
_MAX_WAIT_MS = 500

Ranges = Mapping[TopicPartition, ResolvedRange]
Advance = Callable[[int], None]


class Events(NamedTuple):
    """The events of an audit topic, and what is wrong with messages that are none."""

    events: list[AuditEvent]
    problems: list[str]


def read_events(side: Side, ranges: Ranges, advance: Advance) -> Events:
    """Return the audit events in some ranges.

    Args:
        side: the cluster.
        ranges: partitions of the audit topic, each with an end.
        advance: told of bytes as they are read.

    Raises:
        CliError: a message is corrupt.
        BrokerError: a broker is gone.
    """
    found = Events([], [])
    for partition, offset, payload in _messages(side, ranges, advance):
        try:
            found.events.append(AuditEvent.decode(payload))
        except InvalidMessageError as error:
            found.problems.append(f"{partition}: the message at {offset} is left out: {error}")
    return found


class LogCount(NamedTuple):
    """What is in the log by window, and how many messages have no time to tell the window by."""

    counts: dict[Window, Count]
    timeless_count: int


def count_log(
    side: Side,
    ranges: Ranges,
    windows: Collection[Window],
    time_of: TimeOf | None,
    advance: Advance,
) -> LogCount:
    """Count the messages of topics in the windows that tiers have reported.

    Args:
        side: the cluster.
        ranges: partitions of the topics, each with an end.
        windows: what was reported; all windows of a topic are of one length.
        time_of: a message's own time; None if there is one window for each topic.
        advance: told of bytes as they are read.

    Raises:
        CliError: a message is corrupt.
        BrokerError: a broker is gone.
    """
    first = {one.topic: one for one in sorted(windows, reverse=True)}
    counts: dict[Window, Count] = {}
    timeless_count = 0
    for partition, _, payload in _messages(side, ranges, advance):
        window = first[partition.topic]
        if time_of is not None:
            time_ms = time_of(payload)
            if time_ms is None:
                timeless_count += 1
                continue
            if time_ms < window.start_ms:
                continue  # from before the audit began
            length_ms = window.end_ms - window.start_ms
            start_ms = time_ms - time_ms % length_ms
            window = Window(partition.topic, start_ms, start_ms + length_ms)
        before = counts.get(window, Count())
        counts[window] = Count(before.message_count + 1, before.payload_bytes + len(payload))
    return LogCount(counts, timeless_count)


def _messages(
    side: Side, ranges: Ranges, advance: Advance
) -> Iterator[tuple[TopicPartition, int, bytes]]:
    """Give partition, offset and payload of every message in some ranges."""
    with Reading(
        side.cluster, side.connect, ranges, fetch_bytes=_FETCH_BYTES, max_wait_ms=_MAX_WAIT_MS
    ) as reading:
        for stretches in reading.polls():
            for stretch in stretches:
                found = decode(stretch.view, stretch.offset)
                partition = stretch.cursor.partition
                for offset, _, payload in found.messages:
                    yield partition, offset, payload
                take_whole(stretch, found.valid_bytes, found.fault)
                advance(found.valid_bytes)
