"""`pylogctl consume --group`: joins a group, reads the assigned partitions, commits, and leaves.

Only messages that were written and flushed are finished and committed.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import KW_ONLY, dataclass, field, replace
from itertools import chain

from broker import errors
from broker.client.cluster import Connect
from broker.client.counts import ClientCounts
from broker.client.list_offsets import OffsetLister
from broker.client.metrics import consumer_readings
from broker.client.registry_cluster import RegistryCluster
from broker.client.selection import causes_of_absence, partitions_of
from broker.consumer.committer import AheadCommits, AssignedPartition
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector, start_registry
from broker.consumer.membership import Whitelist
from broker.consumer.partition_reader import PartitionReader
from broker.consumer.stream import ConsumerStream
from broker.exposition import exposition_text
from broker.metrics_server import served_metrics
from broker.positions import Mark, Position
from broker.protocol.message_set import Entry
from broker.topic import MessagePosition, TopicPartition
from broker.units import counted
from broker.zk import paths
from broker.zk.registry import Registry
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.offsets import Span
from pylogctl.cli.process import graceful_stop
from pylogctl.consume.output import Consumption
from pylogctl.consume.plan import Request
from pylogctl.format.envelope import MessageFacts

_POLL_MS = 200
_NEVER_MS = 1 << 40


@dataclass(eq=False)
class GroupReader:
    """Reads the partitions that the group assigns to this member.

    Attributes:
        connector: has joined the group, with a timeout so that ends and signals are noticed.
        stream: the connector's only stream.
        ends: the end offset of each partition; None without `--exit-at-end`.
        patience_s: how long reading to `ends` continues while ZooKeeper is unreachable. Without
            ends the reader waits for ZooKeeper forever.
        unowned_limit_s: how long reading to `ends` waits until all partitions are assigned. Those
            of a broker that is not registered are assigned to no member.
    """

    connector: ConsumerConnector
    stream: ConsumerStream
    ends: Mapping[TopicPartition, int] | None
    offsets: OffsetLister
    _: KW_ONLY
    patience_s: float
    unowned_limit_s: float
    _certain_at_s: float = field(default_factory=time.monotonic, init=False)
    _unowned_since_s: float | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.next_good_message = self.offsets.next_good_message
        self.seek = self.stream.seek

    @property
    def partition_count(self) -> int:
        """Return how many partitions this member reads."""
        return len(self.connector.positions)

    @property
    def left_bytes(self) -> int | None:
        """Return the bytes up to the ends of this member's partitions; None without ends."""
        if self.ends is None:
            return None
        positions = self.connector.positions
        return sum(
            max(0, self.ends.get(one, 0) - (0 if position is None else position.offset))
            for one, position in positions.items()
        )

    def polls(self) -> Iterator[Sequence[AssignedPartition]]:
        """Give a partition after each chunk, none after a timeout, until all are read.

        The data must be decoded, and `take` called, before the next poll.
        """
        chunks = self.stream.chunks()
        while not self._is_done():
            self._check_progress()
            try:
                assigned = next(chunks)
            except errors.ConsumerTimeoutError:
                chunks = self.stream.chunks()
                yield ()
                continue
            except StopIteration:
                return
            yield (assigned,)

    def _check_progress(self) -> None:
        """Raise the reason if no more chunks can arrive: see `patience_s`."""
        now_s = time.monotonic()
        if self.connector.is_certain or self.ends is None:
            self._certain_at_s = now_s
        elif now_s - self._certain_at_s > self.patience_s:
            raise errors.RegistryUnreachableError(
                f"the registry is away for {self.patience_s:g}s longer than the session lasts, "
                "and what this member owned may be read by others"
            )

    def _is_done(self) -> bool:
        """Return whether partitions are assigned, and all of them are read to their end."""
        if self.ends is None:
            return False
        if not self.connector.await_assignment(0):
            self._unowned_since_s = None
            return False
        beyond = []
        positions = self.connector.positions
        for partition, position in positions.items():
            if position is None and partition in self.ends:
                return False  # even an empty partition: where the group begins is committed
            offset, end = 0 if position is None else position.offset, self.ends.get(partition, 0)
            if offset < end:
                return False
            if offset > end:
                beyond.append((partition, offset))
        # Beyond the end: either the group has processed newer messages since, or its stored offset
        # is out of range, and the fetcher will reset it and read the whole partition.
        if not all(offset <= self.offsets.latest(partition) for partition, offset in beyond):
            return False
        others = [one for one, end in self.ends.items() if end and one not in positions]
        return not others or self._are_owned(others)

    def _are_owned(self, partitions: Collection[TopicPartition]) -> bool:
        """Return whether partitions are assigned to other members, which read them to their end.

        A partition is assigned to no member while its broker's session has expired.
        """
        try:
            unowned = self.connector.unowned(partitions)
        except errors.RegistryUnreachableError:
            return False  # `_check_progress` ends the wait
        if not unowned:
            return True
        now_s = time.monotonic()
        if self._unowned_since_s is None:
            self._unowned_since_s = now_s
        elif now_s - self._unowned_since_s > self.unowned_limit_s:
            names = ", ".join(map(str, sorted(unowned)))
            raise errors.BrokerUnreachableError(
                f"no member of the group can read {names} to the end: the broker is not in the "
                "registry; start it, and run this again"
            )
        return False


class CommitAhead:
    """Commits entries of a partition before they are handled; see `Consumption.may_handle`."""

    def __init__(self, connector: ConsumerConnector, stream: ConsumerStream) -> None:
        self._ahead = AheadCommits(connector.commit_ahead)
        self._stream = stream

    def __call__(self, reader: PartitionReader, entries: Iterator[Entry | MessageFacts]) -> bool:
        """Commit and finish the next entry; return False if the partition is lost."""
        if not isinstance(reader, AssignedPartition) or (entry := next(entries, None)) is None:
            return False
        if entry.offset >= reader.committed_ahead:
            bounds = ((one.offset, one.next_offset) for one in chain([entry], entries))
            if not self._ahead.commit(reader, bounds):
                return False
        return self._stream.hand_out(reader, MessagePosition(entry.next_offset))


def run_in_group(
    request: Request, pattern: str, connect: Connect, consumption: Consumption
) -> ExitStatus:
    """Join the group and write the messages of the partitions assigned to this member.

    If no topic is named, the group consumes those that match `pattern`.
    The first SIGINT or SIGTERM ends the reading: written messages are committed, and this member
    leaves the group.
    """
    env, given = request.env, request.options.membership
    group, commits_ahead = given.group or "", given.commit == "before"
    patience_s = request.config.zk_connection_timeout_ms / 1000
    config = replace(request.config, zookeeper=env.zookeeper)
    registry = start_registry(config, env.timeout_s(patience_s))
    with ExitStack() as stack:
        stack.callback(registry.stop)
        cluster = RegistryCluster(registry, connect)
        leader_wait_s = request.config.leader_wait_ms / 1000
        offsets = stack.enter_context(OffsetLister(cluster, connect, leader_wait_s=leader_wait_s))
        chosen = Whitelist(pattern)
        topics = request.topics or [one for one in cluster.topics() if chosen.allows(one)]
        if request.span.starts_elsewhere:
            _note_stored(env, registry, group, cluster.partitions_of(topics))
        ends = None
        if request.span.exit_at_end:
            away = [one for topic in topics for one in partitions_of(cluster, topic).away]
            for cause in causes_of_absence(cluster, away):
                (env.warn if request.options.reading.allow_missing else env.leave_out)(cause)
            ends = {one: offsets.latest(one) for one in cluster.partitions_of(topics)}
        counts = ClientCounts()
        if given.metrics_port is not None:
            serving = served_metrics(
                lambda: exposition_text(consumer_readings(counts.consumers(group))),
                given.metrics_port,
            )
            env.note(f"metrics at {stack.enter_context(serving)}")
        stack.enter_context(graceful_stop(consumption.stop))
        connector = stack.enter_context(
            ConsumerConnector(
                _group_config(request),
                registry=registry,
                connect=connect,
                payload_filter=request.plan.payload_filter,
                counts=counts,
                commits_ahead=commits_ahead,
                start_of=lambda one: _start_of(request.span, one),
            )
        )
        if request.topics:
            stream = connector.create_shared_stream(request.topics)
        else:
            (stream,) = connector.create_message_streams_by_filter(chosen, 1)
        if commits_ahead:
            consumption.may_handle = CommitAhead(connector, stream)
        reader = GroupReader(
            connector,
            stream,
            ends,
            offsets,
            patience_s=patience_s,
            unowned_limit_s=registry.session.session_timeout_s + patience_s,
        )
        try:
            return consumption.run(reader)
        except errors.OffsetOutOfRangeError as error:
            raise CliError(
                ExitStatus.NOT_FOUND,
                str(error),
                f"pylogctl group reset {group} moves the group's offsets",
                "without --strict-offset it goes on at the first message there is",
                code="OFFSET_OUT_OF_RANGE",
            ) from error


def _start_of(span: Span, partition: TopicPartition) -> Position:
    """Return where a partition starts that the group has no offset of."""
    start = span.range_for(partition).start
    return Mark.LATEST if start in (None, Mark.STORED) else start


def _note_stored(
    env: Environment, registry: Registry, group: str, partitions: Collection[TopicPartition]
) -> None:
    """Say that a start is not for partitions that the group has read before."""
    stored = registry.session.get_many(paths.offset(group, one) for one in partitions)
    if stored:
        env.note(
            f"group '{group}' continues at its stored offsets in {len(stored)} of "
            f"{counted(len(partitions), 'partition')}; pylogctl group reset {group} moves them"
        )


def _group_config(request: Request) -> ConsumerConfig:
    given, config = request.options.membership, request.config
    interval_ms = _NEVER_MS if given.commit == "exit" else config.auto_commit_interval_ms
    return replace(
        config,
        group=given.group or "",
        auto_commit=given.commit != "none",
        auto_commit_interval_ms=interval_ms,
        out_of_range_reset="fail" if request.options.reading.strict_offset else "smallest",
        consumer_timeout_ms=_POLL_MS,
    )
