"""Topics with replicas: the controller creates them, and adds partitions and replicas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from broker.admin import reassignment, topic_changes
from broker.admin.reassignment import Plan
from broker.admin.replicas import plan_election, raise_refused, replicas_of, request_election
from broker.client.side import Side
from broker.cluster_state import ReplicatedPartition
from broker.errors import NO_ERROR, ConfigError, NotReplicatedError, TopicExistsError
from broker.ids import NO_LEADER
from broker.properties import INT64_MAX
from broker.protocol.cluster_requests import ElectionKind, PartitionOutcome, ReplicateTopicRequest
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition
from broker.topic_settings import normalize
from broker.units import counted, format_size, parse_rate
from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.environment import Environment, UsageError
from pylogctl.cli.render import render
from pylogctl.topic import document


def create_replicated_topic(
    env: Environment, side: Side, wanted: topic_changes.NewTopic, *, if_not_exists: bool
) -> None:
    """Have the controller create a topic, and render its partitions."""
    request = topic_changes.plan_replicated(side, wanted)
    if env.settings.dry_run:
        env.note(
            f"the controller would spread {request.partition_count} partitions with "
            f"{request.replication_factor} replicas each over {len(side.brokers())} brokers; "
            "nothing changed, this was a dry run"
        )
        return
    try:
        _ask(env, side, request)
    except TopicExistsError:
        if not if_not_exists:
            raise
        env.note(f"topic '{wanted.name}' exists; it stays as it is")


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


def replicate_topic(env: Environment, side: Side, topic: str, replication_factor: int) -> None:
    """Have the controller add replicas to a topic without any, if confirmed; render them."""
    if env.settings.dry_run:
        count = len(side.cluster.partitions(topic))
        env.note(f"{count} partitions would get {replication_factor} replicas; nothing changed")
        return
    confirm(
        env,
        "topic alter",
        f"topic '{topic}' has no replicas; it gets some, and stays one with replicas. Go on?",
    )
    _ask(env, side, ReplicateTopicRequest(topic, replication_factor))


def has_replicas(side: Side, topic: str) -> bool:
    """Return whether a topic, which must exist, has replicas."""
    try:
        replicas_of(side, [topic])
    except NotReplicatedError:
        return False
    return True


def add_partitions(env: Environment, side: Side, topic: str, partition_count: int) -> None:
    """Have the controller add partitions up to `partition_count`, and render the new ones."""
    request = topic_changes.plan_partitions(side, topic, partition_count)
    if env.settings.dry_run:
        env.note(f"{request.partition_count} partitions would be added; nothing changed")
        return
    count = counted(request.partition_count, "partition")
    confirm(env, "topic alter", f"add {count} to topic '{topic}'? They cannot be removed")
    _ask(env, side, request)


def _ask(env: Environment, side: Side, request: topic_changes.PartitionsRequest) -> None:
    """Have the controller make partitions, and render them."""
    render(
        env, document.CREATE_REPLICATED, map(_row, topic_changes.ask_for_partitions(side, request))
    )


def _row(one: ReplicatedPartition) -> document.CreateReplicatedRow:
    leader = one.state.leader
    return document.CreateReplicatedRow(
        one.partition,
        None if leader == NO_LEADER else leader,
        one.replicas,
        one.state.isr,
        one.min_isr,
    )


def elect_leaders(
    env: Environment,
    side: Side,
    topics: Sequence[str],
    kind: ElectionKind,
    *,
    confirmed: str | None,
) -> None:
    """Have the controller elect leaders, and render the outcome for each partition."""
    wanted = plan_election(replicas_of(side, topics), kind)
    # An unclean election can lose messages: only without a leader, and confirmed by name.
    if kind is ElectionKind.UNCLEAN:
        env.warn(f"messages of {', '.join(map(str, wanted))} that were acknowledged may be lost")
        if not env.settings.dry_run:
            confirm_name(env, "topic elect --unclean", topics[0], confirmed)
    if not wanted or env.settings.dry_run:
        render(env, document.ELECT, [document.ElectRow(one, "elect") for one in wanted])
        return
    render_outcomes(env, request_election(side, wanted, kind), "elected")


def render_outcomes(env: Environment, outcomes: Sequence[PartitionOutcome], done: str) -> None:
    """Render the outcome of a request for each partition; fail if some were refused."""
    rows = [
        document.ElectRow(
            one.partition, done if one.error == NO_ERROR else "refused", one.text or None
        )
        for one in outcomes
    ]
    render(env, document.ELECT, rows)
    raise_refused(outcomes)


def show_plan(
    env: Environment, plan: Plan, known: Mapping[TopicPartition, PartitionMetadata]
) -> None:
    """Render a plan; `read_plan` reads its `--output json`."""
    render(env, document.REASSIGN_PLAN, reassignment.moves_of(plan, known))


def read_plan(env: Environment, path: Path) -> Plan:
    """Read a plan that `topic reassign plan --output json` has written; `-` is standard input."""
    if str(path) == "-":
        text = env.streams.stdin.read() if env.streams.stdin is not None else b""
    else:
        text = path.read_bytes()
    plan: Plan = {}
    try:
        for one in json.loads(text)["data"]:
            partition = TopicPartition.named(one["topic"], one["partition"])
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


def execute(env: Environment, side: Side, plan: Plan, *, throttle: int | None = None) -> None:
    """Have the controller begin to move partitions, and render the outcome for each."""
    if env.settings.dry_run:
        reassignment.validate_plan(side, plan)
        env.note(f"{len(plan)} partitions would get other replicas; nothing changed")
        return
    outcomes = reassignment.request_reassignment(side, plan, throttle=throttle)
    render_outcomes(env, outcomes, "begun")


def change_throttle(env: Environment, side: Side, throttle: int) -> None:
    """Change the throttle of the reassignments that are under way, and render these."""
    changes = reassignment.list_reassignments(side).changes
    limit = format_throttle(throttle)
    if not changes:
        env.note("no change of replicas is under way")
    elif env.settings.dry_run:
        env.note(f"the throttle would be {limit}; nothing changed")
        return
    else:
        reassignment.request_reassignment(side, {}, throttle=throttle)
        env.note(f"the throttle is {limit}")
    outcomes = [PartitionOutcome(one.partition, NO_ERROR, "") for one in sorted(changes)]
    render_outcomes(env, outcomes, "throttled" if throttle else "not throttled")


def parse_throttle(text: str | None) -> int | None:
    """Return the value of `--throttle` in bytes per second, 0 for `none`; None if not given."""
    if text is None or text == "none":
        return None if text is None else 0
    rate = parse_rate(text)
    if not rate.in_bytes or rate.per_second > INT64_MAX:
        raise UsageError(f"not a throttle: '{text}'", "valid: 50MB/s, 512KiB/s, none to lift it")
    return int(rate.per_second)


def format_throttle(bytes_per_s: int) -> str:
    """Return a throttle for people."""
    return f"{format_size(bytes_per_s)}/s" if bytes_per_s else "none"


def cancel(env: Environment, side: Side, topics: Sequence[str]) -> None:
    """Cancel the reassignments of some topics, or all that are under way."""
    changes = reassignment.list_reassignments(side).changes
    if plan := reassignment.plan_cancellation(changes, topics):
        execute(env, side, plan)
    else:
        env.note("no change of replicas is under way")


def show_status(env: Environment, side: Side, topics: Sequence[str]) -> None:
    """Render the reassignments under way, of `topics` or all, with the bytes left to copy."""
    found = reassignment.progress(side, topics)
    for error in found.failures:
        env.leave_out(str(error))
    render(env, document.REASSIGN_STATUS, found.moves)
    throttle = found.throttle_bytes_per_s
    if not throttle:
        return
    env.flush()
    for broker_id, bytes_per_s in reassignment.arriving(side, found).items():
        if bytes_per_s >= throttle:
            env.warn(
                f"broker {broker_id} cannot catch up: {format_size(bytes_per_s)}/s arrive in "
                f"the partitions that it copies with {format_throttle(throttle)}; raise that: "
                "pylogctl topic reassign throttle --throttle RATE"
            )
