"""Moving partitions to other brokers: plans shown and read, their execution, and its throttle.

A plan can be edited before it is executed. `throttle` is in bytes per second that each broker may
copy, 0 for no limit.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.admin import reassignment
from broker.admin.reassignment_plan import Plan
from broker.client.cluster import Cluster
from broker.errors import NO_ERROR
from broker.properties import INT64_MAX
from broker.protocol.cluster_requests import THROTTLE_STAYS, PartitionOutcome
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition
from broker.units import format_size, parse_rate
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import REASSIGN_PLAN, ReassignPlanRow
from pylogctl.topic.elect import render_outcomes


def show_plan(
    env: Environment, plan: Plan, known: Mapping[TopicPartition, PartitionMetadata]
) -> None:
    """Render a plan; `read_plan` reads its `--output json`."""
    rows = [
        ReassignPlanRow(
            one,
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
        reassignment.validate_plan(cluster, connector(env), plan)
        env.note(f"{len(plan)} partitions would get other replicas; nothing changed")
        return
    outcomes = reassignment.request_reassignment(
        cluster,
        connector(env),
        plan,
        throttle=throttle,
        timeout_s=env.timeout_s(REQUEST_TIMEOUT_S),
    )
    render_outcomes(env, outcomes, "begun")


def change_throttle(env: Environment, cluster: Cluster, throttle: int) -> None:
    """Change the throttle of the reassignments that are under way, and render these."""
    connect, timeout_s = connector(env), env.timeout_s(REQUEST_TIMEOUT_S)
    changes = reassignment.list_reassignments(cluster, connect, timeout_s=timeout_s).changes
    limit = format_throttle(throttle)
    if not changes:
        env.note("no change of replicas is under way")
    elif env.settings.dry_run:
        env.note(f"the throttle would be {limit}; nothing changed")
        return
    else:
        reassignment.request_reassignment(
            cluster, connect, {}, throttle=throttle, timeout_s=timeout_s
        )
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
    changes = reassignment.list_reassignments(
        cluster, connector(env), timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    ).changes
    plan = reassignment.plan_cancellation(changes, topics)
    if not plan:
        env.note("no change of replicas is under way")
        return
    execute(env, cluster, plan)
