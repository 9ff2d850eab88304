"""Moving partitions to other brokers: plans, their execution, progress and end.

A plan can be edited before it is executed; the controller validates all of it before it begins.
`throttle` is in bytes per second that each broker may copy, 0 for no limit. If no controller
responds, or it refuses, that is a BrokerError.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.client.cluster import Cluster
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.controller.assignment import validate_target
from broker.errors import NO_ERROR, InvalidRequestError
from broker.properties import INT64_MAX
from broker.protocol.cluster_requests import (
    OUTCOMES,
    REASSIGNMENTS,
    THROTTLE_STAYS,
    ListedReassignments,
    ListReassignmentsRequest,
    PartitionOutcome,
    ReassignRequest,
    ReplicaTarget,
)
from broker.protocol.responses import PartitionMetadata
from broker.tools.reassignment import Plan, plan_replicas
from broker.topic import TopicPartition
from broker.units import format_size, parse_rate
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import REASSIGN_PLAN, ReassignPlanRow, name_of
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

    Brokers in `broker_ids` may have replicas (all live ones if empty), those in `without` none. A
    `replication_factor` of None keeps that of each partition.
    """
    known = {one: found.replicas for one, found in replicas_of(env, cluster, topics).items()}
    for partition, change in list_reassignments(env, cluster).changes:
        if partition in known:  # until the change ends, it has the original replicas, too
            known[partition] = change.target
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
    """Render a plan; `read_plan` reads its `--output json`."""
    rows = [
        ReassignPlanRow(
            name_of(one),
            ",".join(map(str, known[one].replicas)),
            ",".join(map(str, plan[one])),
        )
        for one in sorted(plan)
    ]
    render(env, REASSIGN_PLAN, rows)


def read_plan(env: Environment, path: Path) -> Plan:
    """Read a plan that `topic reassign plan --output json` has written; `-` is standard input."""
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


def execute(
    env: Environment, cluster: Cluster, plan: Plan, *, throttle: int = THROTTLE_STAYS
) -> None:
    """Have the controller begin to move partitions, and render the outcome for each."""
    if env.settings.dry_run:
        _validate(env, cluster, plan)
        env.note(f"{len(plan)} partitions would get other replicas; nothing changed")
        return
    render_outcomes(env, request(env, cluster, plan, throttle=throttle), "begun")


def request(
    env: Environment, cluster: Cluster, plan: Plan, *, throttle: int = THROTTLE_STAYS
) -> list[PartitionOutcome]:
    """Have the controller begin to move partitions; return the outcome for each."""
    targets = tuple(ReplicaTarget(one, plan[one]) for one in sorted(plan))
    body = ask_controller(
        cluster.brokers(),
        connector(env),
        ReassignRequest(targets, throttle),
        timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
    )
    return OUTCOMES.decode(body)


def _validate(env: Environment, cluster: Cluster, plan: Plan) -> None:
    """Validate a plan as the controller would, for a dry run."""
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


def list_reassignments(env: Environment, cluster: Cluster) -> ListedReassignments:
    """Return the reassignments that are under way, and their throttle."""
    body = ask_controller(
        cluster.brokers(),
        connector(env),
        ListReassignmentsRequest(),
        timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
    )
    return REASSIGNMENTS.decode(body)


def change_throttle(env: Environment, cluster: Cluster, throttle: int) -> None:
    """Change the throttle of the reassignments that are under way, and render these."""
    changes = list_reassignments(env, cluster).changes
    limit = format_throttle(throttle)
    if not changes:
        env.note("no change of replicas is under way")
    elif env.settings.dry_run:
        env.note(f"the throttle would be {limit}; nothing changed")
        return
    else:
        request(env, cluster, {}, throttle=throttle)
        env.note(f"the throttle is {limit}")
    outcomes = [PartitionOutcome(one.partition, NO_ERROR, "") for one in sorted(changes)]
    render_outcomes(env, outcomes, "throttled" if throttle else "not throttled")


def parse_throttle(text: str) -> int:
    """Return the value of `--throttle` in bytes per second, 0 for `none`."""
    if text == "none":
        return 0
    rate = parse_rate(text)
    if not rate.in_bytes or rate.per_second > INT64_MAX:
        raise UsageError(
            f"not a throttle: '{text}'", hints=["valid: 50MB/s, 512KiB/s, none to lift it"]
        )
    return int(rate.per_second)


def format_throttle(bytes_per_s: int) -> str:
    """Return a throttle for people."""
    return f"{format_size(bytes_per_s)}/s" if bytes_per_s else "none"


def cancel(env: Environment, cluster: Cluster, topics: Sequence[str]) -> None:
    """Cancel the reassignments of some topics, or all that are under way."""
    plan: Plan = {
        one.partition: ()
        for one in list_reassignments(env, cluster).changes
        if not topics or one.partition.topic in topics
    }
    if not plan:
        env.note("no change of replicas is under way")
        return
    execute(env, cluster, plan)
