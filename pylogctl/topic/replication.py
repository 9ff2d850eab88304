"""Topics with replicas: the controller creates them, and adds partitions and replicas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.admin import reassignment
from broker.admin.reassignment import Plan
from broker.admin.replicas import plan_election, raise_refused, replicas_of, request_election
from broker.admin.topic_changes import (
    PartitionsRequest,
    ask_for_partitions,
    plan_partitions,
    plan_replicated,
)
from broker.client.cluster import Cluster
from broker.cluster_state import ReplicatedPartition
from broker.errors import NO_ERROR, ConfigError, NotReplicatedError, TopicExistsError
from broker.ids import NO_LEADER
from broker.properties import INT64_MAX
from broker.protocol.cluster_requests import (
    THROTTLE_STAYS,
    ElectionKind,
    PartitionOutcome,
    ReplicateTopicRequest,
)
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition
from broker.topic_settings import normalize
from broker.units import counted, format_size, parse_rate
from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import (
    CREATE_REPLICATED,
    ELECT,
    REASSIGN_PLAN,
    REASSIGN_STATUS,
    CreateReplicatedRow,
    ElectRow,
)


def create_replicated_topic(
    env: Environment,
    cluster: Cluster,
    topic: str,
    *,
    partition_count: int,
    replication_factor: int,
    settings: Mapping[str, str],
    if_not_exists: bool,
) -> None:
    """Have the controller create a topic, and render its partitions."""
    request = plan_replicated(
        cluster,
        topic,
        partition_count=partition_count,
        replication_factor=replication_factor,
        settings=settings,
    )
    if env.settings.dry_run:
        env.note(
            f"the controller would spread {partition_count} partitions with {replication_factor} "
            f"replicas each over {len(cluster.brokers())} brokers; nothing changed, this was a dry "
            "run"
        )
        return
    try:
        _ask(env, cluster, request)
    except TopicExistsError:
        if not if_not_exists:
            raise
        env.note(f"topic '{topic}' exists; it stays as it is")


def parse_settings(texts: Sequence[str]) -> dict[str, str]:
    """Return the values of `--set` by name."""
    given = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set '{text}' is not NAME=VALUE")
        given[name.strip()] = value
    try:
        return normalize(given)
    except ConfigError as error:
        raise UsageError(f"--set: {error}") from error


def replicate_topic(
    env: Environment, cluster: Cluster, topic: str, replication_factor: int
) -> None:
    """Have the controller add replicas to a topic without any, if confirmed; render them."""
    if env.settings.dry_run:
        count = len(cluster.partitions(topic))
        env.note(f"{count} partitions would get {replication_factor} replicas; nothing changed")
        return
    confirm(
        env,
        "topic alter",
        f"topic '{topic}' has no replicas; it gets some, and stays one with replicas. Go on?",
    )
    _ask(env, cluster, ReplicateTopicRequest(topic, replication_factor))


def has_replicas(env: Environment, cluster: Cluster, topic: str) -> bool:
    """Return whether a topic, which must exist, has replicas."""
    try:
        replicas_of(cluster, connector(env), [topic])
    except NotReplicatedError:
        return False
    return True


def add_partitions(env: Environment, cluster: Cluster, topic: str, partition_count: int) -> None:
    """Have the controller add partitions up to `partition_count`, and render the new ones."""
    request = plan_partitions(cluster, connector(env), topic, partition_count)
    if env.settings.dry_run:
        env.note(f"{request.partition_count} partitions would be added; nothing changed")
        return
    count = counted(request.partition_count, "partition")
    confirm(env, "topic alter", f"add {count} to topic '{topic}'? They cannot be removed")
    _ask(env, cluster, request)


def _ask(env: Environment, cluster: Cluster, request: PartitionsRequest) -> None:
    """Have the controller make partitions, and render them."""
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    made = ask_for_partitions(cluster, connector(env), request, timeout_s=timeout_s)
    render(env, CREATE_REPLICATED, map(_row, made))


def _row(one: ReplicatedPartition) -> CreateReplicatedRow:
    leader = one.state.leader
    return CreateReplicatedRow(
        one.partition,
        None if leader == NO_LEADER else leader,
        one.replicas,
        one.state.isr,
        one.min_isr,
    )


def elect_leaders(
    env: Environment,
    cluster: Cluster,
    topics: Sequence[str],
    kind: ElectionKind,
    *,
    confirmed: str | None,
) -> None:
    """Have the controller elect leaders, and render the outcome for each partition."""
    connect = connector(env)
    known = replicas_of(cluster, connect, topics)
    wanted = plan_election(known, kind)
    # An unclean election can lose messages: only without a leader, and confirmed by name.
    if kind is ElectionKind.UNCLEAN:
        env.warn(f"messages of {', '.join(map(str, wanted))} that were acknowledged may be lost")
        if not env.settings.dry_run:
            confirm_name(env, "topic elect --unclean", topics[0], confirmed)
    if not wanted or env.settings.dry_run:
        render(env, ELECT, [ElectRow(one, "elect") for one in wanted])
        return
    outcomes = request_election(
        cluster, connect, wanted, kind, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    )
    render_outcomes(env, outcomes, "elected")


def render_outcomes(env: Environment, outcomes: Sequence[PartitionOutcome], done: str) -> None:
    """Render the outcome of a request for each partition; fail if some were refused."""
    rows = [
        ElectRow(one.partition, done if one.error == NO_ERROR else "refused", one.text or None)
        for one in outcomes
    ]
    render(env, ELECT, rows)
    raise_refused(outcomes)


def show_plan(
    env: Environment, plan: Plan, known: Mapping[TopicPartition, PartitionMetadata]
) -> None:
    """Render a plan; `read_plan` reads its `--output json`."""
    moves = [reassignment.Move(one, known[one].replicas, plan[one]) for one in sorted(plan)]
    render(env, REASSIGN_PLAN, moves)


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
            if not isinstance(one["target"], list):
                raise ValueError(
                    f"target {one['target']!r} of {partition} is no list of broker ids"
                )
            plan[partition] = tuple(map(int, one["target"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        reason = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"'{path}' is no plan: {reason}",
            "try: pylogctl topic reassign plan --output json > FILE",
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
        cluster, connector(env), plan, throttle=throttle, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
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
        raise UsageError(f"not a throttle: '{text}'", "valid: 50MB/s, 512KiB/s, none to lift it")
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


def show_status(env: Environment, cluster: Cluster, topics: Sequence[str]) -> None:
    """Render the reassignments under way, of `topics` or all, with the bytes left to copy."""
    connect = connector(env)
    found = reassignment.progress(
        cluster, connect, topics, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    )
    for error in found.failures:
        env.leave_out(str(error))
    render(env, REASSIGN_STATUS, found.moves)
    throttle = found.throttle_bytes_per_s
    if not throttle:
        return
    env.flush()
    for broker_id, bytes_per_s in reassignment.arriving(cluster, connect, found).items():
        if bytes_per_s >= throttle:
            env.warn(
                f"broker {broker_id} cannot catch up: {format_size(bytes_per_s)}/s arrive in "
                f"the partitions that it copies with {format_throttle(throttle)}; raise that: "
                "pylogctl topic reassign throttle --throttle RATE"
            )
