"""Decommissions a broker: moves its replicas to other brokers, and reports partitions that stay."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Set

from broker import errors
from broker.admin import reassignment
from broker.admin.reassignment_plan import Plan
from broker.client.cluster import Cluster
from broker.client.controller_client import cluster_metadata
from broker.cluster_state import NO_LEADER
from broker.protocol.cluster_requests import THROTTLE_STAYS
from broker.protocol.responses import ClusterMetadataResponse, PartitionMetadata
from broker.topic import TopicPartition
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, Absence, connector, open_cluster
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.progress import announced_wait, progress
from pylogctl.topic import reassign

_POLL_S = 0.5
_PATIENCE_S = 60.0
"""How long the cluster may fail to respond while replicas move, as during an election."""


def decommission(env: Environment, broker_id: int, throttle: str | None) -> None:
    """Move all replicas away from a broker, which may be dead, and wait until that is done."""
    limit = THROTTLE_STAYS if throttle is None else reassign.parse_throttle(throttle)
    with open_cluster(env, absence=Absence.WARN) as cluster:
        metadata = cluster_metadata(cluster.brokers(), connector(env), None)
        partitions = [one for topic in metadata.topics for one in topic.partitions]
        live = {one.id for one in metadata.brokers}
        _validate_known(broker_id, live, partitions)
        known = _replicas_on(broker_id, partitions)
        plan = _plan(env, cluster, broker_id, known)
        plain = _plain_topics(broker_id, partitions)
        reassign.show_plan(env, plan, known)
        env.flush()
        if env.settings.dry_run:
            _name_plain(env, broker_id, plain)
            env.note("nothing changed; this was a dry run")
            return
        if plan:
            count = f"{len(plan)} partition{'' if len(plan) == 1 else 's'}"
            confirm(env, "broker decommission", f"move {count} away from broker {broker_id}?")
        began_s = time.monotonic()
        while known:
            if plan:  # otherwise the reassignments under way move all
                _begin(env, cluster, plan, limit)
            for partition in sorted(known):
                if known[partition].leader == NO_LEADER:
                    env.warn(
                        f"{partition} has no leader and cannot be copied: start a broker of "
                        f"{list(known[partition].isr)}, or give messages up with `pylogctl topic "
                        f"elect {partition.topic} --unclean`"
                    )
            _wait(env, cluster, broker_id, known.keys(), began_s)
            # A topic may have been created before the change began.
            metadata = cluster_metadata(cluster.brokers(), connector(env), None)
            partitions = [one for topic in metadata.topics for one in topic.partitions]
            known = _replicas_on(broker_id, partitions)
            plan = _plan(env, cluster, broker_id, known)
            plain = _plain_topics(broker_id, partitions)
    env.note(f"broker {broker_id} has no replicas")
    if plain:
        _name_plain(env, broker_id, plain)
        raise CliError(
            ExitStatus.PARTIAL,
            f"{sum(plain.values())} partitions without replicas stay on broker {broker_id}",
        )
    if broker_id in live:
        env.note(f"stop it before other topics are created: pylogctl broker stop {broker_id}")


def _replicas_on(
    broker_id: int, partitions: Collection[PartitionMetadata]
) -> dict[TopicPartition, PartitionMetadata]:
    return {
        one.partition: one for one in partitions if one.is_replicated and broker_id in one.replicas
    }


def _validate_known(
    broker_id: int, live: Collection[int], partitions: Collection[PartitionMetadata]
) -> None:
    known = {id for one in partitions for id in (*one.replicas, one.partition.home)}
    if broker_id not in known and broker_id not in live:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"broker {broker_id} not found: it is not live, and no partition is on it",
            hints=[f"live brokers: {', '.join(map(str, sorted(live)))}"],
            code="BROKER_NOT_FOUND",
        )


def _plan(
    env: Environment,
    cluster: Cluster,
    broker_id: int,
    known: Collection[TopicPartition],
) -> Plan:
    """Return the replicas that the partitions on a broker are to have."""
    if not known:
        return {}
    topics = sorted({one.topic for one in known})
    try:
        plan = reassignment.make_plan(
            cluster,
            connector(env),
            topics,
            without=[broker_id],
            timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
        )
    except errors.InvalidReplicationFactorError as error:
        raise CliError(
            ExitStatus.CONFLICT,
            f"broker {broker_id} cannot be taken away: {error}",
            hints=[
                "start another broker, or give topics fewer replicas: pylogctl topic alter TOPIC "
                "--replication-factor N"
            ],
            code="TOO_FEW_BROKERS",
        ) from error
    return {partition: target for partition, target in plan.items() if partition in known}


def _plain_topics(broker_id: int, partitions: Collection[PartitionMetadata]) -> Counter[str]:
    """Return how many partitions without replicas topics have on a broker."""
    return Counter(
        one.partition.topic
        for one in partitions
        if not one.is_replicated and one.partition.home == broker_id
    )


def _name_plain(env: Environment, broker_id: int, plain: Counter[str]) -> None:
    for topic, count in sorted(plain.items()):
        env.warn(
            f"topic '{topic}' has {count} partition{'' if count == 1 else 's'} without replicas on "
            f"broker {broker_id}: `pylogctl topic alter {topic} --replication-factor N` gives it "
            "replicas, which the next decommission moves"
        )


def _begin(env: Environment, cluster: Cluster, plan: Plan, throttle: int) -> None:
    outcomes = reassignment.request_reassignment(
        cluster,
        connector(env),
        plan,
        throttle=throttle,
        timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
    )
    refused = [one for one in outcomes if one.error != errors.NO_ERROR]
    if refused:
        raise CliError(ExitStatus.CONFLICT, f"{refused[0].partition}: {refused[0].text}")


def _wait(
    env: Environment,
    cluster: Cluster,
    broker_id: int,
    moving: Set[TopicPartition],
    began_s: float,  # when the first of them began to move: `--timeout` counts from there
) -> None:
    """Wait until no `moving` partition has a replica on a broker, and their changes have ended."""
    started_s = answered_s = time.monotonic()
    with (
        announced_wait(env, f"{len(moving)} partitions to be copied"),
        progress(env, "move", len(moving), unit="tasks") as meter,
    ):
        moved = 0
        while True:
            now_s = time.monotonic()
            try:
                changes = reassignment.list_reassignments(
                    cluster, connector(env), timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
                ).changes
                under_way = {one.partition for one in changes}
                left = _left(env, cluster, broker_id, moving)
                answered_s = now_s
            except errors.BrokerError as error:
                is_refusal = isinstance(error, errors.ServerError) and not isinstance(
                    error, (errors.NotControllerError, errors.RequestTimedOutError)
                )
                if is_refusal or now_s - answered_s > _PATIENCE_S:
                    raise
            else:
                waiting = (under_way & moving) | left
                meter.advance(len(moving) - len(waiting) - moved)
                moved = len(moving) - len(waiting)
                if not waiting:
                    return
                if not under_way & moving and now_s - started_s > _PATIENCE_S:
                    raise CliError(
                        ExitStatus.CONFLICT,
                        f"{len(left)} partitions stay on broker {broker_id}: their change was "
                        "cancelled, or replaced by another one",
                        hints=["try: pylogctl topic reassign status"],
                    )
            limit_s = env.settings.timeout_s
            if limit_s is not None and now_s - began_s > limit_s:
                raise CliError(
                    ExitStatus.TIMEOUT,
                    f"{len(moving) - moved} of {len(moving)} partitions are still being copied "
                    f"after {limit_s:g}s; that goes on",
                    hints=["try: pylogctl topic reassign status"],
                )
            time.sleep(_POLL_S)


def _left(
    env: Environment, cluster: Cluster, broker_id: int, moving: Set[TopicPartition]
) -> set[TopicPartition]:
    """Return those of some partitions that have a replica on a broker."""
    topics = tuple(sorted({one.topic for one in moving}))
    metadata: ClusterMetadataResponse = cluster_metadata(cluster.brokers(), connector(env), topics)
    return {
        one.partition
        for topic in metadata.topics
        for one in topic.partitions
        if one.partition in moving and broker_id in one.replicas
    }
