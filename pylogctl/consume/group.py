"""`pylogctl consume --group`: joins a group, reads the assigned partitions, commits, and leaves.

Only messages that were written and flushed are finished and committed. A run starts at the group's
stored offsets, or where `-o` says if the group has no other members.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace

from broker import errors
from broker.client.cluster import Connect
from broker.client.counts import ClientCounts
from broker.client.list_offsets import OffsetLister
from broker.client.metrics import consumer_readings
from broker.client.registry_cluster import RegistryCluster
from broker.client.selection import causes_of_absence, partitions_of
from broker.cluster_state import Creation
from broker.consumer.boundaries import BoundaryFinder
from broker.consumer.committer import AssignedPartition
from broker.consumer.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.membership import Whitelist
from broker.consumer.offset_store import OffsetStore, RegistryOffsets
from broker.consumer.stream import ConsumerStream
from broker.exposition import exposition_text
from broker.metrics_server import served_metrics
from broker.positions import Mark, resolve
from broker.topic import MessagePosition, TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from broker.zk.security import security_of
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.logs import library_warnings
from pylogctl.consume.output import Consumption
from pylogctl.consume.plan import GroupOptions, Request

_POLL_MS = 200


class StartElsewhere:
    """An offset store that replaces the stored position of each partition on its first load.

    A partition that is assigned again later in the same run continues where it was committed.

    Args:
        store: the group's offsets.
        start_of: returns the start of a partition; None for the stored position.
        is_kept: commit each start at once, so that the next run starts there even if this one
            finishes no message.
        warn: reports a partition whose start cannot be found, as its log cannot be read.
    """

    def __init__(
        self,
        store: OffsetStore,
        start_of: Callable[[TopicPartition], MessagePosition | None],
        *,
        is_kept: bool,
        warn: Callable[[str], object],
    ) -> None:
        self._store = store
        self._start_of = start_of
        self._is_kept = is_kept
        self._warn = warn
        self._started: set[TopicPartition] = set()
        self.failure: errors.BrokerError | None = None
        """A start that is not valid, found in the coordinator's thread; `GroupReader` raises it."""

    def void_former(self, creations: Mapping[TopicPartition, Creation]) -> None:
        """Have partitions start at 0 whose topic was created again."""
        self._store.void_former(creations)

    def load(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, MessagePosition]:
        """Return stored positions, replaced by the requested starts on the first load."""
        positions = self._store.load(partitions)
        fresh = set(partitions) - self._started
        starts = {}
        for partition in sorted(fresh):
            try:
                start = self._start_of(partition)
            except (errors.ArgumentError, errors.OffsetOutOfRangeError) as error:
                self.failure = error
                raise errors.BrokerError(str(error)) from error
            except errors.StorageError as error:
                # the fetcher retries this partition; the others can be read meanwhile
                self._warn(f"{error}; once it is readable, it is read from the group's own offset")
                continue
            if start is not None:
                starts[partition] = start
        if starts and self._is_kept:
            self._store.commit(starts)
        self._started |= fresh
        return positions | starts

    def restart(self, partition: TopicPartition, offset: int) -> None:
        """Continue a partition at another offset."""
        self._store.restart(partition, offset)

    def commit(self, positions: Mapping[TopicPartition, MessagePosition]) -> set[TopicPartition]:
        """Store positions."""
        return self._store.commit(positions)


class GroupReader:
    """Reads the partitions that the group assigns to this member.

    Args:
        connector: has joined the group, with a timeout so that ends and signals are noticed.
        stream: the connector's only stream.
        ends: the end offset of each partition; None without `--exit-at-end`.
        starts: the offset store, which records a requested start that is not valid.
        patience_s: how long reading to `ends` continues while ZooKeeper is unreachable. Without
            ends the reader waits for ZooKeeper forever.
        unowned: returns which partitions are assigned to no member of the group.
        unowned_limit_s: how long reading to `ends` waits until all partitions are assigned. Those
            of a broker that is not registered are assigned to no member.
    """

    def __init__(
        self,
        connector: ConsumerConnector,
        stream: ConsumerStream,
        ends: Mapping[TopicPartition, int] | None,
        offsets: OffsetLister,
        starts: StartElsewhere,
        *,
        patience_s: float,
        unowned: Callable[[Collection[TopicPartition]], Collection[TopicPartition]],
        unowned_limit_s: float,
    ) -> None:
        self._connector = connector
        self._stream = stream
        self._ends = ends
        self._offsets = offsets
        self._starts = starts
        self._patience_s = patience_s
        self._certain_at_s = time.monotonic()
        self._unowned = unowned
        self._unowned_limit_s = unowned_limit_s
        self._unowned_since_s: float | None = None
        self.next_good_message = offsets.next_good_message
        self.seek = stream.seek

    @property
    def partition_count(self) -> int:
        """Return how many partitions this member reads."""
        return len(self._connector.positions)

    @property
    def left_bytes(self) -> int | None:
        """Return the bytes up to the ends of this member's partitions; None without ends."""
        if self._ends is None:
            return None
        positions = self._connector.positions
        return sum(
            max(0, self._ends.get(one, 0) - (0 if position is None else position.offset))
            for one, position in positions.items()
        )

    def polls(self) -> Iterator[Sequence[AssignedPartition]]:
        """Give a partition after each chunk, none after a timeout, until all are read.

        The data must be decoded, and `take` called, before the next poll.
        """
        chunks = self._stream.chunks()
        while not self._is_done():
            self._check_progress()
            try:
                assigned = next(chunks)
            except errors.ConsumerTimeoutError:
                chunks = self._stream.chunks()
                yield ()
                continue
            except StopIteration:
                return
            yield (assigned,)

    def _check_progress(self) -> None:
        """Raise the reason if no more chunks can arrive: see `patience_s` and `starts`."""
        if self._starts.failure is not None:
            raise self._starts.failure
        now_s = time.monotonic()
        if self._connector.is_certain or self._ends is None:
            self._certain_at_s = now_s
        elif now_s - self._certain_at_s > self._patience_s:
            raise errors.RegistryUnreachableError(
                f"the registry is away for {self._patience_s:g}s longer than the session lasts, "
                "and what this member owned may be read by others"
            )

    def _is_done(self) -> bool:
        """Return whether partitions are assigned, and all of them are read to their end."""
        if self._ends is None:
            return False
        if not self._connector.await_assignment(0):
            self._unowned_since_s = None
            return False
        beyond = []
        positions = self._connector.positions
        for partition, position in positions.items():
            offset, end = 0 if position is None else position.offset, self._ends.get(partition, 0)
            if offset < end:
                return False
            if offset > end:
                beyond.append((partition, offset))
        # Beyond the end: either the group has processed newer messages since, or its stored offset
        # is out of range, and the fetcher will reset it and read the whole partition.
        if not all(offset <= self._offsets.latest(partition) for partition, offset in beyond):
            return False
        others = [one for one, end in self._ends.items() if end and one not in positions]
        return not others or self._are_owned(others)

    def _are_owned(self, partitions: Collection[TopicPartition]) -> bool:
        """Return whether partitions are assigned to other members, which read them to their end.

        A partition is assigned to no member while its broker's session has expired.
        """
        try:
            unowned = self._unowned(partitions)
        except errors.RegistryUnreachableError:
            return False  # `_check_progress` ends the wait
        if not unowned:
            return True
        now_s = time.monotonic()
        if self._unowned_since_s is None:
            self._unowned_since_s = now_s
        elif now_s - self._unowned_since_s > self._unowned_limit_s:
            names = ", ".join(map(str, sorted(unowned)))
            raise errors.BrokerUnreachableError(
                f"no member of the group can read {names} to the end: the broker is not in the "
                "registry; start it, and run this again"
            )
        return False


def run_in_group(
    env: Environment,
    request: Request,
    group: GroupOptions,
    connect: Connect,
    consumption: Consumption,
) -> ExitStatus:
    """Join the group and write the messages of the partitions assigned to this member.

    The first SIGINT or SIGTERM ends the reading: written messages are committed, and this member
    leaves the group.
    """
    patience_s = request.config.zk_connection_timeout_ms / 1000
    registry = Registry(
        env.zookeeper,
        session_timeout_ms=request.config.zk_session_timeout_ms,
        request_timeout_s=patience_s,
        security=security_of(request.config),
        speaks_tls=request.config.has_tls,
    )
    registry.start(env.timeout_s(patience_s))
    with ExitStack() as stack:
        stack.enter_context(library_warnings(env))
        stack.callback(registry.stop)
        cluster = RegistryCluster(registry, connect)
        leader_wait_s = request.config.leader_wait_ms / 1000
        offsets = stack.enter_context(OffsetLister(cluster, connect, leader_wait_s=leader_wait_s))
        # The coordinator's thread uses the offset store, which so needs connections of its own.
        finder = stack.enter_context(BoundaryFinder(cluster, connect, leader_wait_s=leader_wait_s))
        starts = _starts(
            env, request, group, registry, finder, came_later=lambda one: connector.came_later(one)
        )
        ends = None
        if request.span.exit_at_end:
            chosen = Whitelist(group.pattern)
            topics = request.topics or [one for one in cluster.topics() if chosen.allows(one)]
            away = [one for topic in topics for one in partitions_of(cluster, topic).away]
            for cause in causes_of_absence(cluster, away):
                (env.warn if request.allow_missing else env.leave_out)(cause)
            ends = {one: offsets.latest(one) for one in cluster.partitions_of(topics)}
        counts = ClientCounts()
        if group.metrics_port is not None:
            serving = served_metrics(
                lambda: exposition_text(consumer_readings(counts.consumers(group.group))),
                group.metrics_port,
            )
            env.note(f"metrics at {stack.enter_context(serving)}")
        connector = stack.enter_context(
            ConsumerConnector(
                _group_config(request, group),
                offsets=starts,
                registry=registry,
                connect=connect,
                payload_filter=request.plan.payload_filter,
                counts=counts,
            )
        )
        if request.topics:
            stream = connector.create_shared_stream(request.topics)
        else:
            (stream,) = connector.create_message_streams_by_filter(Whitelist(group.pattern), 1)
        if group.commit == "exit":
            stack.callback(connector.commit_offsets)
        reader = GroupReader(
            connector,
            stream,
            ends,
            offsets,
            starts,
            patience_s=patience_s,
            unowned=lambda partitions: _unowned(registry, group.group, partitions),
            unowned_limit_s=registry.session.session_timeout_s + patience_s,
        )
        try:
            return consumption.run(reader)
        except errors.OffsetOutOfRangeError as error:
            raise CliError(
                ExitStatus.NOT_FOUND,
                str(error),
                hints=[
                    f"pylogctl group reset {group.group} moves the group's offsets",
                    "without --strict-offset it goes on at the first message there is",
                ],
                code="OFFSET_OUT_OF_RANGE",
            ) from error


def _starts(
    env: Environment,
    request: Request,
    group: GroupOptions,
    registry: Registry,
    finder: BoundaryFinder,
    *,
    came_later: Callable[[TopicPartition], bool],
) -> StartElsewhere:
    """Return the group's offset store, with the requested starts if there are no other members.

    The starts are for partitions that exist already; those created later are read from their start.
    """
    wanted = request.span.starts_elsewhere
    if wanted and (members := _members(registry, group.group)):
        env.note(f"group '{group.group}' has {len(members)} other members: going on where it is")
        wanted = False
    return StartElsewhere(
        RegistryOffsets(registry.session, group.group),
        lambda one: (
            _start_of(env, request, one, finder) if wanted and not came_later(one) else None
        ),
        is_kept=group.commit != "none",
        warn=env.warn,
    )


def _group_config(request: Request, group: GroupOptions) -> ConsumerConfig:
    return replace(
        request.config,
        group=group.group,
        auto_commit=group.commit == "auto",
        offset_reset="smallest" if group.default_offset == "start" else "largest",
        out_of_range_reset="fail" if request.strict_offset else "smallest",
        consumer_timeout_ms=_POLL_MS,
    )


def _members(registry: Registry, group: str) -> list[str]:
    try:
        return registry.session.children(paths.consumer_ids(group))
    except errors.RegistryNodeNotFoundError:
        return []


def _unowned(
    registry: Registry, group: str, partitions: Collection[TopicPartition]
) -> set[TopicPartition]:
    nodes = {paths.owner(group, partition): partition for partition in partitions}
    return {nodes[path] for path in nodes.keys() - registry.session.get_many(nodes).keys()}


def _start_of(
    env: Environment, request: Request, partition: TopicPartition, finder: BoundaryFinder
) -> MessagePosition | None:
    """Return the requested start of a partition; None for the group's stored position."""
    wanted = request.span.range_for(partition)._replace(end=None)
    if wanted.start in (None, Mark.STORED):
        return None
    found = resolve(wanted, partition, finder, strict=request.strict_offset, warn=env.warn)
    return found.start
