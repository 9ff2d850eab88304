"""A run of `pylogctl consume --group`: joining, reading, committing, leaving."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace

from broker.client.cluster import Connect, RegistryCluster
from broker.client.connector import ConsumerConnector
from broker.client.offsets import OffsetStore, Position, RegistryOffsets
from broker.client.positions import Positions
from broker.client.subscription import Whitelist
from broker.config import ConsumerConfig
from broker.errors import RegistryNodeNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.registry import Registry
from pylogctl.consume_options import GroupOptions
from pylogctl.consume_run import Request
from pylogctl.consuming import Consumption
from pylogctl.context import Environment
from pylogctl.exit_status import ExitStatus
from pylogctl.group_reading import GroupReading, StartElsewhere
from pylogctl.offset_resolution import resolve
from pylogctl.offset_spec import Mark

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
    registry = Registry(env.zookeeper, session_timeout_ms=request.config.zk_session_timeout_ms)
    registry.start(env.timeout_s(request.config.zk_connection_timeout_ms / 1000))
    with ExitStack() as stack:
        stack.callback(registry.stop)
        cluster = RegistryCluster(registry)
        positions = stack.enter_context(Positions(cluster, connect))
        offsets: OffsetStore = RegistryOffsets(registry, group.group)
        if request.span.starts_elsewhere:
            if members := _members(registry, group.group):
                env.note(
                    f"group '{group.group}' has {len(members)} other members: going on where it is"
                )
            else:
                offsets = StartElsewhere(
                    offsets,
                    lambda one: _start_of(env, request, one, positions),
                    is_kept=group.commit != "none",
                )
        ends = None
        if request.span.exit_at_end:
            topics = request.topics or cluster.topics()
            everything = [one for topic in topics for one in cluster.partitions(topic)]
            ends = {partition: positions.latest(partition) for partition in everything}
        connector = stack.enter_context(
            ConsumerConnector(
                _group_config(request, group),
                offsets=offsets,
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
        return consumption.run(GroupReading(connector, stream, ends, positions))


def _group_config(request: Request, group: GroupOptions) -> ConsumerConfig:
    return replace(
        request.config,
        group=group.group,
        auto_commit=group.commit == "auto",
        auto_commit_interval_ms=group.commit_interval_ms,
        offset_reset="smallest" if group.default_offset == "start" else "largest",
        consumer_timeout_ms=_POLL_MS,
    )


def _members(registry: Registry, group: str) -> list[str]:
    try:
        return registry.children(paths.consumer_ids(group))
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
