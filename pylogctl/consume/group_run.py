"""A run of `pylogctl consume --group`: joining, reading, committing, leaving."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from broker.client.cluster import Connect, RegistryCluster
from broker.config import ConsumerConfig
from broker.consumer.connector import ConsumerConnector
from broker.consumer.list_offsets import Positions
from broker.consumer.membership import Whitelist
from broker.consumer.offset_store import Position, RegistryOffsets
from broker.errors import OffsetOutOfRangeError, RegistryNodeNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.offset_resolution import resolve
from pylogctl.cli.offsets import Mark
from pylogctl.cli.service import library_warnings
from pylogctl.consume.group_reading import GroupReading, StartElsewhere
from pylogctl.consume.output import Consumption
from pylogctl.consume.plan import GroupOptions, Request

_POLL_MS = 200


def run_in_group(
    env: Environment,
    request: Request,
    group: GroupOptions,
    connect: Connect,
    consumption: Consumption,
) -> ExitStatus:
    """Join the group and write what it assigns to this member.

    A first SIGINT or SIGTERM ends the reading; what was written is committed, and the group left.

    Args:
        env: names the registry.
        request: what to read.
        group: how to take part.
        connect: makes connections to brokers.
        consumption: writes what is read.

    Raises:
        CliError: a message is corrupt, or an offset is not valid.
        BrokerError: the registry or a broker fails.
    """
    patience_s = request.config.zk_connection_timeout_ms / 1000
    registry = Registry(
        env.zookeeper,
        session_timeout_ms=request.config.zk_session_timeout_ms,
        request_timeout_s=patience_s,
    )
    registry.start(env.timeout_s(patience_s))
    with ExitStack() as stack:
        stack.enter_context(library_warnings(env))
        stack.callback(registry.stop)
        cluster = RegistryCluster(registry)
        positions = stack.enter_context(Positions(cluster, connect))
        start_positions = stack.enter_context(Positions(cluster, connect))  # for another thread
        starts = _starts(env, request, group, registry, start_positions)
        ends = _ends(cluster, positions, request.topics) if request.span.exit_at_end else None
        connector = stack.enter_context(
            ConsumerConnector(
                _group_config(request, group),
                offsets=starts,
                registry=registry,
                connect=connect,
                payload_filter=request.plan.payload_filter,
            )
        )
        if request.topics:
            stream = connector.create_shared_stream(request.topics)
        else:
            chosen = Whitelist(group.pattern)
            (stream,) = connector.create_message_streams_by_filter(chosen, 1)
        if group.commit == "exit":
            stack.callback(connector.commit_offsets)
        reading = GroupReading(connector, stream, ends, positions, starts, patience_s=patience_s)
        stack.enter_context(_explained(group.group))
        return consumption.run(reading)


@contextmanager
def _explained(group: str) -> Iterator[None]:
    """Have the error about a stored offset say what to do."""
    try:
        yield
    except OffsetOutOfRangeError as error:
        raise CliError(
            ExitStatus.NOT_FOUND,
            str(error),
            hints=[
                f"pylogctl group reset {group} moves the group's offsets",
                "without --strict-offset it goes on at the first message there is",
            ],
            code="OFFSET_OUT_OF_RANGE",
        ) from error


def _ends(
    cluster: RegistryCluster, positions: Positions, topics: Sequence[str]
) -> dict[TopicPartition, int]:
    """Return where all partitions of topics end now; of all topics if none is named."""
    everything = cluster.partitions_of(topics or cluster.topics())
    return {partition: positions.latest(partition) for partition in everything}


def _starts(
    env: Environment,
    request: Request,
    group: GroupOptions,
    registry: Registry,
    positions: Positions,
) -> StartElsewhere:
    """Return the group's offsets, behind what the user wants instead where nobody else reads."""
    wanted = request.span.starts_elsewhere
    if wanted and (members := _members(registry, group.group)):
        env.note(f"group '{group.group}' has {len(members)} other members: going on where it is")
        wanted = False
    return StartElsewhere(
        RegistryOffsets(registry.session, group.group),
        lambda one: _start_of(env, request, one, positions) if wanted else None,
        is_kept=group.commit != "none",
    )


def _group_config(request: Request, group: GroupOptions) -> ConsumerConfig:
    return replace(
        request.config,
        group=group.group,
        auto_commit=group.commit == "auto",
        auto_commit_interval_ms=group.commit_interval_ms,
        offset_reset="smallest" if group.default_offset == "start" else "largest",
        out_of_range_reset="fail" if request.strict_offset else "smallest",
        consumer_timeout_ms=_POLL_MS,
    )


def _members(registry: Registry, group: str) -> list[str]:
    try:
        return registry.session.children(paths.consumer_ids(group))
    except RegistryNodeNotFoundError:
        return []


def _start_of(
    env: Environment, request: Request, partition: TopicPartition, positions: Positions
) -> Position | None:
    """Return where the user wants this member to start; None for where the group is."""
    wanted = request.span.range_for(partition)._replace(end=None)
    if wanted.start in (None, Mark.STORED):
        return None
    found = resolve(wanted, partition, positions, strict=request.strict_offset)
    for warning in found.warnings:
        env.warn(warning)
    return Position(found.start.offset, found.start.inner)
