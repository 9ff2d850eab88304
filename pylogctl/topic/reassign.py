"""Moving partitions to other brokers: plans, their execution, progress and end.

A plan can be edited before it is executed; the controller checks all of it before it begins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.client.cluster import Cluster
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.controller.assignment import validate_target
from broker.errors import InvalidRequestError
from broker.protocol.cluster_requests import (
    ListReassignmentsRequest,
    PartitionOutcome,
    PartitionReassignment,
    ReassignRequest,
    ReplicaTarget,
    decode_outcomes,
    decode_reassignments,
)
from broker.protocol.responses import PartitionMetadata
from broker.tools.reassignment import Plan, plan_replicas
from broker.topic import TopicPartition
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import REASSIGN_PLAN, REASSIGN_STATUS
from pylogctl.topic.replication import render_outcomes, replicas_of


def make_plan(
    env: Environment,
    cluster: Cluster,
    topics: Sequence[str],
    *,
    broker_ids: Sequence[int] = (),
    without: Sequence[int] = (),
    replication_factor: int | None = None,
) -> Plan:
    """Return the replicas that partitions would get, where these change.

    Args:
        env: of the command.
        cluster: says who has them now.
        topics: those with replicas; all if empty.
        broker_ids: which brokers may have replicas; all live ones if empty.
        without: brokers that may have none.
        replication_factor: of all partitions; None to keep that of each.

    Raises:
        CliError: a topic does not exist or has no replicas, or a broker is not live.
        InvalidReplicationFactorError: there are fewer brokers than replicas.
        BrokerError: no broker responds.
    """
    known = {one: found.replicas for one, found in replicas_of(env, cluster, topics).items()}
    metadata = cluster_metadata(cluster.brokers(), connector(env), ())
    live = {one.id for one in metadata.brokers}
    for broker_id in broker_ids:
        if broker_id not in live:
            raise CliError(
                ExitStatus.CONFLICT,
                f"broker {broker_id} is not live: it cannot get replicas",
                hints=[f"live brokers: {', '.join(map(str, sorted(live)))}"],
                code="BROKER_NOT_LIVE",
            )
    allowed = (set(broker_ids) or live) - set(without)
    racks = {one: metadata.racks.get(one, "") for one in sorted(allowed)}
    plan = plan_replicas(known, racks, replication_factor=replication_factor)
    return {partition: target for partition, target in plan.items() if target != known[partition]}


def show_plan(
    env: Environment, plan: Plan, known: Mapping[TopicPartition, PartitionMetadata]
) -> None:
    """Render a plan; `--output json` is what `read_plan` reads."""
    records = [
        {
            "topic": one.topic,
            "partition": one.name,
            "replicas": ",".join(map(str, known[one].replicas)),
            "target": ",".join(map(str, plan[one])),
        }
        for one in sorted(plan)
    ]
    render(env, REASSIGN_PLAN, records)


def read_plan(env: Environment, path: Path) -> Plan:
    """Read a plan that `topic reassign plan --output json` has written.

    Args:
        env: its standard input stands for `-`.
        path: of the file.

    Raises:
        UsageError: it is no plan.
        OSError: the file cannot be read.
    """
    if str(path) == "-":
        text = env.streams.stdin.read() if env.streams.stdin is not None else b""
    else:
        text = path.read_bytes()
    plan: Plan = {}
    try:
        for one in json.loads(text)["data"]:
            home, index = map(int, one["partition"].split("-"))
            partition = TopicPartition(one["topic"], home, index)
            plan[partition] = tuple(map(int, one["target"].split(",")))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"'{path}' is no plan: {reason}",
            hints=["try: pylogctl topic reassign plan --output json > FILE"],
        ) from error
    return plan


def execute(env: Environment, cluster: Cluster, plan: Plan) -> None:
    """Have the controller begin to move partitions, and render what became of each.

    Raises:
        CliError: the plan was refused.
        BrokerError: no controller responds.
    """
    if env.settings.dry_run:
        _validate(env, cluster, plan)
        env.note(f"{len(plan)} partitions would get other replicas; nothing changed")
        return
    render_outcomes(env, request(env, cluster, plan), "begun")


def request(env: Environment, cluster: Cluster, plan: Plan) -> list[PartitionOutcome]:
    """Have the controller begin to move partitions; return what became of each.

    Raises:
        BrokerError: no controller responds, or it refuses the whole plan.
    """
    targets = tuple(ReplicaTarget(one, plan[one]) for one in sorted(plan))
    body = ask_controller(
        cluster.brokers(),
        connector(env),
        ReassignRequest(targets),
        timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
    )
    return decode_outcomes(body)


def _validate(env: Environment, cluster: Cluster, plan: Plan) -> None:
    """Refuse what the controller would refuse, for a dry run.

    Raises:
        CliError: a partition does not exist, or cannot have the replicas that it is to get.
        BrokerError: no broker responds.
    """
    metadata = cluster_metadata(cluster.brokers(), connector(env), ())
    live = {one.id for one in metadata.brokers}
    known = replicas_of(env, cluster, sorted({one.topic for one in plan}))
    for partition, target in sorted(plan.items()):
        found = known.get(partition)
        if found is None:
            raise CliError(
                ExitStatus.NOT_FOUND, f"{partition} not found", code="PARTITION_NOT_FOUND"
            )
        if target:  # else it is a cancellation
            try:
                validate_target(partition, target, live, len(found.replicas), found.min_isr)
            except InvalidRequestError as error:
                raise CliError(ExitStatus.CONFLICT, str(error)) from error


def list_reassignments(env: Environment, cluster: Cluster) -> list[PartitionReassignment]:
    """Return the changes of replicas that are under way.

    Raises:
        BrokerError: no controller responds.
    """
    body = ask_controller(
        cluster.brokers(),
        connector(env),
        ListReassignmentsRequest(),
        timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
    )
    return sorted(decode_reassignments(body))


def show_status(env: Environment, cluster: Cluster) -> None:
    """Render the changes of replicas that are under way, with the replicas that still copy."""
    changes = list_reassignments(env, cluster)
    known = replicas_of(env, cluster, sorted({one.partition.topic for one in changes}))
    records = []
    for partition, (original, target) in changes:
        found = known.get(partition)
        missing = [one for one in target if found is None or one not in found.isr]
        records.append(
            {
                "topic": partition.topic,
                "partition": partition.name,
                "original": ",".join(map(str, original)),
                "target": ",".join(map(str, target)),
                "copying": ",".join(map(str, missing)),
            }
        )
    render(env, REASSIGN_STATUS, records)


def cancel(env: Environment, cluster: Cluster, topics: Sequence[str]) -> None:
    """Cancel the changes of replicas of some topics, or all that are under way.

    Raises:
        CliError: some were refused.
        BrokerError: no controller responds.
    """
    plan: Plan = {
        one.partition: ()
        for one in list_reassignments(env, cluster)
        if not topics or one.partition.topic in topics
    }
    if not plan:
        env.note("no change of replicas is under way")
        return
    execute(env, cluster, plan)
