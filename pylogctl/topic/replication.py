"""Topics with replicas: requests to the controller, and its decisions.

If no controller responds, or it refuses, that is a BrokerError.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.admin.replicas import replicas_of
from broker.client.cluster import Cluster
from broker.client.controller_client import ask_controller
from broker.cluster_state import NO_LEADER, ReplicatedPartition
from broker.errors import ConfigError, NotReplicatedError, TopicExistsError
from broker.protocol import cluster_requests
from broker.protocol.extension_requests import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import PARTITIONS
from broker.topic import validate_topic_name
from broker.topic_settings import normalize
from pylogctl.cli.confirmation import confirm
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import CREATE_REPLICATED, CreateReplicatedRow, name_of


def create_replicated_topic(
    env: Environment,
    cluster: Cluster,
    topic: str,
    *,
    partition_count: int,
    replication_factor: int,
    settings: Sequence[cluster_requests.Setting],
    if_not_exists: bool,
) -> None:
    """Have the controller create a topic, and render its partitions."""
    validate_topic_name(topic)
    brokers = cluster.brokers()
    if replication_factor > len(brokers):
        raise CliError(
            ExitStatus.CONFLICT,
            f"{replication_factor} replicas need as many live brokers, not {len(brokers)}",
            hints=("try: pylogctl broker list",),
        )
    if env.settings.dry_run:
        env.note(
            f"the controller would spread {partition_count} partitions with {replication_factor} "
            f"replicas each over {len(brokers)} brokers; nothing changed, this was a dry run"
        )
        return
    request = cluster_requests.CreateReplicatedTopicRequest(
        topic, partition_count, replication_factor, tuple(settings)
    )
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    try:
        body = ask_controller(brokers, connector(env), request, timeout_s=timeout_s)
    except TopicExistsError:
        if not if_not_exists:
            raise
        env.note(f"topic '{topic}' exists; it stays as it is")
        return
    render(env, CREATE_REPLICATED, map(_row, PARTITIONS.decode(body)))


def parse_settings(texts: Sequence[str]) -> list[cluster_requests.Setting]:
    """Parse values of `--set`."""
    given = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--set '{text}' is not NAME=VALUE")
        given[name.strip()] = value
    try:
        return [cluster_requests.Setting(name, value) for name, value in normalize(given).items()]
    except ConfigError as error:
        raise UsageError(f"--set: {error}") from error


def _row(one: ReplicatedPartition) -> CreateReplicatedRow:
    leader = one.state.leader
    return CreateReplicatedRow(
        name_of(one.partition),
        None if leader == NO_LEADER else leader,
        ",".join(map(str, one.replicas)),
        ",".join(map(str, one.state.isr)),
        one.min_isr,
    )


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
    body = _ask(env, cluster, cluster_requests.ReplicateTopicRequest(topic, replication_factor))
    render(env, CREATE_REPLICATED, map(_row, PARTITIONS.decode(body)))


def has_replicas(env: Environment, cluster: Cluster, topic: str) -> bool:
    """Return whether a topic, which must exist, has replicas."""
    try:
        replicas_of(cluster, connector(env), [topic])
    except NotReplicatedError:
        return False
    return True


def add_partitions(env: Environment, cluster: Cluster, topic: str, partition_count: int) -> None:
    """Have the controller add partitions up to `partition_count`, and render the new ones."""
    present = len(replicas_of(cluster, connector(env), [topic]))
    if present >= partition_count:
        raise CliError(
            ExitStatus.CONFLICT,
            f"topic '{topic}' has {present} partitions; they cannot become fewer or be replaced",
        )
    if env.settings.dry_run:
        env.note(f"{partition_count - present} partitions would be added; nothing changed")
        return
    request = cluster_requests.AddPartitionsRequest(topic, partition_count - present)
    body = _ask(env, cluster, request)
    render(env, CREATE_REPLICATED, map(_row, PARTITIONS.decode(body)))


def _ask(env: Environment, cluster: Cluster, request: ExtensionRequest) -> Reader:
    return ask_controller(
        cluster.brokers(), connector(env), request, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    )
