"""Topics with replicas: the controller creates them, and adds partitions and replicas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.admin.replicas import replicas_of
from broker.admin.topic_changes import (
    PartitionsRequest,
    ask_for_partitions,
    plan_partitions,
    plan_replicated,
)
from broker.client.cluster import Cluster
from broker.cluster_state import ReplicatedPartition
from broker.errors import ConfigError, NotReplicatedError, TopicExistsError
from broker.ids import NO_LEADER
from broker.protocol.cluster_requests import ReplicateTopicRequest
from broker.topic_settings import normalize
from broker.units import counted
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import CREATE_REPLICATED, CreateReplicatedRow


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
        ",".join(map(str, one.replicas)),
        ",".join(map(str, one.state.isr)),
        one.min_isr,
    )
