"""The call of a client that copies a topic to another one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.api.access import Access, AnyClient, limit_of
from broker.api.errors import Closed
from broker.api.reader import ranges_of, readable, select
from broker.api.values import UNSET, Start, Stop, Timeout, topic_of, whole_of
from broker.client.cluster import are_same
from broker.consumer.cluster_reader import ClusterReader
from broker.errors import ArgumentError
from broker.topic import validate_topic_name

if TYPE_CHECKING:  # what does the work is imported by the call, as most programs do not make it
    from broker.admin.copies import CopyReport


class CopyCalls(Access):
    """The call of a client that copies a topic to another one."""

    def copy(
        self,
        source: str,
        target: str,
        *,
        to: AnyClient | None = None,
        start: Start = "earliest",
        stop: Stop = "end",
        limit: int | None = None,
        keep_partitions: bool = False,
        skip_corrupt: bool = False,
        allow_missing: bool = False,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> CopyReport:
        """Copy messages to another topic byte for byte, and return once consumers can read them.

        Compressed sets stay as they are, and the messages of a partition keep their order.

        Args:
            source: the topic to read.
            target: the topic to write to; created like the source if it is missing.
            to: the client of another cluster, which has the target.
            start: where to begin, as for `read`.
            stop: where to end; the ends are taken when the copy begins.
            limit: at most this many messages.
            keep_partitions: to partitions of the same names, or not at all; else to those in the
                same place in order.
            skip_corrupt: leave corrupt messages out, and count them.
            allow_missing: as for `read`.
            plan: whether to return what would be copied where, and change nothing.
            timeout: seconds that a broker may be silent or away; by default the client's. A copy
                takes as long as it takes.

        Raises:
            UnknownTopic: there is no source.
            CorruptMessage: all messages before it are copied.
            Unreachable, TimedOut: a broker was lost, and some messages may be copied without an
                acknowledgement. `details` has the number of those `confirmed`, and the
                `next_offsets` to start at for the rest.
            Closed: one of the two clients was closed meanwhile.
        """
        from broker.admin.copies import copy_ranges, place, plan_copy, report_of

        validate_topic_name(topic_of(target))
        if to is not None and not isinstance(to, AnyClient):
            raise TypeError(f"give `to` as a client, not {type(to).__name__}")
        if limit is not None:
            whole_of("limit", limit, 0)
        if stop is None:
            raise ArgumentError("a copy ends: give `stop` as a place")
        other = self if to is None else to._blocking
        limit_s = limit_of(self._seconds(timeout))
        with self._asking(limit_s) as side, other._asking(limit_s) as other_side:
            partitions = select(self._cluster, topic_of(source), None)
            if source == target and are_same(self._cluster, other._cluster):
                raise ArgumentError(f"cannot copy topic '{source}' to itself")
            led = readable(self._cluster, partitions, allow_missing=allow_missing)
            ranges = ranges_of(self._cluster, side.connect, led, start, stop)
            placement = place(
                sorted([*partitions.led, *partitions.away]),
                other_side,
                target,
                keeps_names=keep_partitions,
                is_dry_run=plan,
            )
            if plan:
                return report_of(ranges, plan_copy(ranges, placement))
        with (
            self._call(None),
            ClusterReader(self._cluster, side.connect, ranges, leader_wait_s=limit_s) as reader,
        ):
            report = copy_ranges(
                reader,
                other_side._replace(timeout_s=limit_s),
                ranges,
                placement,
                max_messages=limit,
                skips_corrupt=skip_corrupt,
                should_stop=lambda: self.closed or other.closed,
            )
        if self.closed or other.closed:
            raise Closed(f"the client was closed after {report.message_count} messages")
        return report
