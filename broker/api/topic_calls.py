"""The calls of a client on topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from random import Random
from types import MappingProxyType
from typing import TYPE_CHECKING

from broker.api import values
from broker.api.access import Access, AnyClient, limit_of
from broker.api.errors import Closed, NoZooKeeper, translated
from broker.api.reader import ranges_of, readable, reading_of, select
from broker.api.values import UNSET, PartitionLike, Start, Stop, Timeout, TopicFormat
from broker.client.cluster import are_same
from broker.consumer.cluster_reader import ClusterReader
from broker.errors import ArgumentError
from broker.topic import (
    FORMAT_KAFKA,
    FORMATS,
    MAX_PARTITIONS,
    TopicPartition,
    validate_topic_name,
)

if TYPE_CHECKING:  # what does the work is imported by the calls, as most programs make none of them
    from broker.admin.copies import CopyReport
    from broker.admin.topic_deletion import Deletion
    from broker.admin.topics import PartitionInfo, TopicInfo
    from broker.client.side import Side
    from broker.protocol.codec import Message
    from broker.topic import ReadRange
    from broker.zk.session import Session

_Partitions = PartitionLike | Collection[PartitionLike] | None


class TopicCalls(Access):
    """The calls of a client on topics.

    `timeout` is in seconds, by default the client's: from the call until it returns or raises; of a
    change, with the wait until brokers show it.
    """

    def topics(self, *, timeout: Timeout = UNSET) -> list[TopicInfo]:
        """Return all topics, by name. A broker is asked once or twice, however many there are.

        Raises:
            Unreachable, TimedOut: no broker responds.
            NotSupported: the brokers speak only Kafka 0.7, and there is no ZooKeeper.
        """
        from broker.admin.topics import list_topics

        return self._ask(list_topics, timeout)

    def describe(self, topic: str, *, timeout: Timeout = UNSET) -> list[PartitionInfo]:
        """Return the partitions of a topic: leaders, replicas, offsets; by home broker and index.

        A broker that does not respond leaves None where it is asked, and a `problem`.

        Raises:
            UnknownTopic: no broker has the topic.
            Unreachable, TimedOut: no broker of the topic responds.
        """
        from broker.admin.topics import describe_topic

        values.topic_of(topic)
        return self._ask(partial(describe_topic, topic=topic), timeout)

    def create_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        partitions_per_broker: int | None = None,
        replicas: int | None = None,
        brokers: Collection[int] | None = None,
        format: TopicFormat | None = None,
        settings: Mapping[str, str | int | bool] = MappingProxyType({}),
        exist_ok: bool = False,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> TopicInfo:
        """Create a topic, and return it once all brokers show it.

        Args:
            name: of the topic.
            partitions: 1 to 10,000, of all brokers together, over which they are spread. By default
                1; or, where the topic's `partition.count` is set already, that on each broker.
            partitions_per_broker: on each broker, instead of `partitions`; without `replicas`.
            replicas: copies of each partition, which the controller spreads over the brokers; they
                need ZooKeeper. None for a topic without.
            brokers: ids of those to create it on; by default all that are live. Without `replicas`.
            format: for life: `"0.7"` or `"kafka"`; by default `log.format` of the brokers. With
                ZooKeeper, topics of the format kafka have replicas, by default as many as
                `default.replication.factor` says. Without, they are on one broker.
            settings: where not those of brokers, such as `{"min.insync.replicas": 2}`; with
                `replicas`.
            exist_ok: leave a topic that exists as it is, and return it.
            plan: change nothing; return the topic as it would be.
            timeout: seconds; by default the client's.

        Raises:
            TopicExists: it exists, and not `exist_ok`; or it exists with another `format`.
            Conflict: there are fewer live brokers than `replicas`; or a `partition.count` that was
                set before is larger.
            UnknownBroker: no live broker has one of the ids.
            NoZooKeeper: `replicas` are given, and the brokers have none.
            NotSupported: a broker speaks only Kafka 0.7.
            TimedOut: it is not created, or not shown by all brokers, in time.
            InvalidName, ArgumentError, Unreachable: as elsewhere. Of several brokers some may have
                the topic then: the same call with `exist_ok` does the rest.
        """
        from broker.admin.topic_changes import NewTopic, create

        values.topic_of(name)
        count = _partition_count(partitions, partitions_per_broker)
        chosen = values.broker_ids_of(brokers)
        texts = values.setting_texts_of(settings)
        if replicas is not None:
            values.whole_of("replicas", replicas, 1)
            if chosen:
                raise ArgumentError("the controller places replicas: leave out `brokers`")
            if partitions_per_broker is not None:
                raise ArgumentError("the controller places replicas: give the total, `partitions`")
        elif texts and format != FORMAT_KAFKA:
            raise ArgumentError("`settings` are for topics with `replicas`")
        if format not in (None, *FORMATS):
            raise ArgumentError(f"format is one of {', '.join(map(repr, FORMATS))}, not {format!r}")
        with self._asking(timeout) as side:
            is_alone = replicas == 1 and format == FORMAT_KAFKA
            if replicas is not None and not is_alone and not self._cluster_id():
                raise NoZooKeeper("these brokers have no ZooKeeper, which replicas need")
            is_per_broker = partitions_per_broker is not None
            wanted = NewTopic(name, count, is_per_broker, replicas, chosen, texts, format or "")
            return create(side, wanted, exist_ok=exist_ok, is_plan=plan)

    def alter_topic(
        self,
        name: str,
        *,
        partitions: int | None = None,
        partitions_per_broker: int | None = None,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> TopicInfo:
        """Add partitions to a topic, and return it once all brokers show them.

        Args:
            name: of the topic.
            partitions: how many it is to have. Without replicas one number holds for each of its
                brokers, which ZooKeeper tells them: a total that this cannot give is a `Conflict`.
            partitions_per_broker: how many each of its brokers is to have; without replicas.
            plan: change nothing; return the topic as it would be.
            timeout: seconds; by default the client's.

        Raises:
            UnknownTopic: no broker has the topic.
            Conflict: it has as many partitions, or more.
            NoZooKeeper: the topic has no replicas, and ZooKeeper cannot be reached.
            TimedOut, Unreachable: the partitions may be added later.
        """
        from broker.admin.topic_changes import alter

        values.topic_of(name)
        count = _partition_count(partitions, partitions_per_broker)
        if count is None:
            raise ArgumentError("either `partitions` or `partitions_per_broker` is needed")
        with self._asking(timeout) as side:
            return alter(
                side,
                lambda: self._zookeeper().session,
                name,
                partitions=count,
                is_per_broker=partitions_per_broker is not None,
                is_plan=plan,
            )

    def delete_topic(
        self,
        name: str,
        *,
        missing_ok: bool = False,
        with_offsets: bool = False,
        plan: bool = False,
        timeout: Timeout = UNSET,
    ) -> Deletion:
        """Delete a topic with all its messages, and return what was deleted once none is left.

        Brokers that are away delete a topic with replicas when they are back; another one they
        bring back. A producer that goes on sending makes the topic again.

        Args:
            name: of the topic.
            missing_ok: a topic that does not exist is no error.
            with_offsets: delete the offsets that groups have stored, too. Else they stay, and are
                void once the topic is created again.
            plan: change nothing; return what would be deleted.
            timeout: seconds; by default the client's.

        Raises:
            UnknownTopic: there is none of the name, and not `missing_ok`.
            NoZooKeeper: `with_offsets` needs ZooKeeper, which cannot be reached.
            NotSupported: a broker does not know the request.
            TimedOut, Unreachable: the topic may be deleted in part, or later.
        """
        from broker.admin.topic_deletion import delete

        values.topic_of(name)
        with self._asking(timeout) as side:
            session, note = self._session_for_deletion(is_needed=with_offsets)
            return delete(
                side,
                session,
                name,
                missing_ok=missing_ok,
                with_offsets=with_offsets,
                is_plan=plan,
                note=note,
            )

    def _session_for_deletion(self, *, is_needed: bool) -> tuple[Session | None, str]:
        """Return the session with ZooKeeper, None with a note if that cannot be reached."""
        if self._registry is None and not is_needed and not self._cluster_id():
            return None, ""
        try:
            return self._zookeeper().session, ""
        except NoZooKeeper as error:
            if is_needed:
                raise
            return None, f"what ZooKeeper has of the topic stays there: {error}"

    def count(
        self,
        topic: str,
        *,
        partition: _Partitions = None,
        start: Start = "earliest",
        stop: Start = "end",
        allow_missing: bool = False,
        timeout: Timeout = UNSET,
    ) -> int:
        """Return the number of messages from `start` to `stop`, by reading them.

        Args:
            topic: its name.
            partition: as for `read`.
            start: as for `read`.
            stop: as for `read`, but there is one.
            allow_missing: as for `read`.
            timeout: seconds that a broker may be silent; by default the client's. To count takes as
                long as it takes.

        Raises:
            CorruptMessage: a message cannot be counted.
            UnknownTopic, NotABoundary, OffsetOutOfRange, ArgumentError: as for `read`.
            Unreachable, TimedOut: a broker of the topic does not respond.
        """
        from broker.admin.topics import count_messages

        with self._asking(timeout) as side:
            ranges = self._ranges(side, topic, partition, start, stop, allow_missing)
        with translated():  # without a limit: it takes as long as it takes
            return sum(count_messages(side, ranges, lambda _: None).values())

    def offsets(
        self,
        topic: str,
        at: Start,
        *,
        partition: _Partitions = None,
        allow_missing: bool = False,
        timeout: Timeout = UNSET,
    ) -> dict[TopicPartition, int]:
        """Return the offset that a place means in each partition now, such as `"end"` or `"@-1h"`.

        A time is as precise as segments are: at most one segment too early. Errors are those of
        `count`.
        """
        with self._asking(timeout) as side:
            ranges = self._ranges(side, topic, partition, at, "end", allow_missing)
            return {one: found.start.offset for one, found in ranges.items()}

    def sample(
        self,
        topic: str,
        n: int = 5,
        *,
        partition: _Partitions = None,
        start: Start = "earliest",
        stop: Start = "end",
        at_random: bool = False,
        allow_missing: bool = False,
        timeout: Timeout = UNSET,
    ) -> list[Message]:
        """Return up to `n` messages of each partition, by offset, without reading all.

        They are evenly spaced from the first, or chosen `at_random`. Where there is more than 1 MiB
        positions are chosen: a large message is likelier than a small one. Errors are those of
        `count`.
        """
        from broker.admin.topics import sample_of

        values.whole_of("n", n, 1)
        with self._asking(timeout) as side:
            ranges = self._ranges(side, topic, partition, start, stop, allow_missing)
            random = Random() if at_random else None
            return self._repeated(lambda: sample_of(side, ranges, n, random))

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

        validate_topic_name(values.topic_of(target))
        if to is not None and not isinstance(to, AnyClient):
            raise TypeError(f"give `to` as a client, not {type(to).__name__}")
        if limit is not None:
            values.whole_of("limit", limit, 0)
        if stop is None:
            raise ArgumentError("a copy ends: give `stop` as a place")
        other = self if to is None else to._blocking
        limit_s = limit_of(self._seconds(timeout))
        with self._asking(limit_s) as side, other._asking(limit_s) as other_side:
            partitions = select(self._cluster, values.topic_of(source), None)
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

    def _ranges(
        self,
        side: Side,
        topic: str,
        partition: _Partitions,
        start: Start,
        stop: Start,
        allow_missing: bool,
    ) -> dict[TopicPartition, ReadRange]:
        if stop is None:
            raise TypeError("give stop as a place, such as 'end', not None: there is no end then")

        def find() -> dict[TopicPartition, ReadRange]:
            cluster, connect, _ = side
            name = values.topic_of(topic)
            return reading_of(
                cluster, connect, name, partition, start, stop, allow_missing=allow_missing
            )[0]

        return self._repeated(find)


def _partition_count(total: int | None, per_broker: int | None) -> int | None:
    """Return the number that is given, if valid."""
    if total is not None and per_broker is not None:
        raise ArgumentError("either `partitions` or `partitions_per_broker`, not both")
    name, count = (
        ("partitions", total) if per_broker is None else ("partitions_per_broker", per_broker)
    )
    if count is None:
        return None
    values.whole_of(name, count, 1)
    if count > MAX_PARTITIONS:
        raise ArgumentError(f"{name} is at most {MAX_PARTITIONS}, not {count}")
    return count
