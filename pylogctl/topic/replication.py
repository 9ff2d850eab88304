"""Topics with replicas: requests to the controller, and its decisions.

If no controller responds, or it refuses, that is a BrokerError.
"""

from __future__ import annotations

from collections.abc import Sequence

from broker.client.cluster import Cluster
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.cluster_state import NO_LEADER, ReplicatedPartition
from broker.errors import NO_ERROR, ConfigError, TopicExistsError
from broker.protocol import cluster_requests
from broker.protocol.extension_requests import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import PARTITIONS
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition, validate_topic_name
from broker.topic_settings import normalize
from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.topic.document import CREATE_REPLICATED, ELECT, CreateReplicatedRow, ElectRow, name_of


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
        replicas_of(env, cluster, [topic])
    except CliError as error:
        if error.code != "NOT_REPLICATED":
            raise
        return False
    return True


def add_partitions(env: Environment, cluster: Cluster, topic: str, partition_count: int) -> None:
    """Have the controller add partitions up to `partition_count`, and render the new ones."""
    present = len(replicas_of(env, cluster, [topic]))
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


def replicas_of(
    env: Environment, cluster: Cluster, topics: Sequence[str]
) -> dict[TopicPartition, PartitionMetadata]:
    """Return the partitions of topics with replicas, of all such topics if none is named."""
    metadata = cluster_metadata(cluster.brokers(), connector(env), tuple(topics) or None)
    found = {
        one.partition: one
        for topic in metadata.topics
        for one in topic.partitions
        if one.is_replicated
    }
    for topic in metadata.topics:
        if topics and not any(one.partition.topic == topic.topic for one in found.values()):
            known = bool(topic.partitions)
            raise CliError(
                ExitStatus.UNSUPPORTED if known else ExitStatus.NOT_FOUND,
                f"topic '{topic.topic}' "
                + ("was created without replicas" if known else "not found"),
                hints=[
                    f"give it replicas: pylogctl topic alter {topic.topic} --replication-factor N"
                    if known
                    else "topics with replicas: pylogctl topic create --replication-factor N"
                ],
                code="NOT_REPLICATED" if known else "TOPIC_NOT_FOUND",
            )
    return found


def elect_leaders(
    env: Environment,
    cluster: Cluster,
    topics: Sequence[str],
    kind: cluster_requests.ElectionKind,
    *,
    confirmed: str | None,
) -> None:
    """Have the controller elect leaders, and render the outcome for each partition."""
    known = replicas_of(env, cluster, topics)
    # An unclean election can lose messages: only without a leader, and confirmed by name.
    if kind is cluster_requests.ElectionKind.UNCLEAN:
        (topic,) = topics
        wanted = [one for one, found in known.items() if found.leader == NO_LEADER]
        if not wanted:
            raise CliError(
                ExitStatus.CONFLICT,
                f"every partition of topic '{topic}' has a leader: nothing needs to be given up",
                hints=[f"try: pylogctl topic describe {topic}"],
                code="NOT_OFFLINE",
            )
        env.warn(f"messages of {', '.join(map(str, wanted))} that were acknowledged may be lost")
        if not env.settings.dry_run:
            confirm_name(env, "topic elect --unclean", topic, confirmed)
    else:
        wanted = [one for one, found in known.items() if found.leader != found.replicas[0]]
    if not wanted or env.settings.dry_run:
        render(env, ELECT, [ElectRow(name_of(one), "elect") for one in wanted])
        return
    body = _ask(env, cluster, cluster_requests.ElectLeadersRequest(kind, tuple(sorted(wanted))))
    render_outcomes(env, cluster_requests.OUTCOMES.decode(body), "elected")


def render_outcomes(
    env: Environment, outcomes: Sequence[cluster_requests.PartitionOutcome], done: str
) -> None:
    """Render the outcome of a request for each partition; fail if some were refused."""
    refused = [one for one in outcomes if one.error != NO_ERROR]
    rows = [
        ElectRow(
            name_of(one.partition), done if one.error == NO_ERROR else "refused", one.text or None
        )
        for one in outcomes
    ]
    render(env, ELECT, rows)
    if refused:
        raise CliError(
            ExitStatus.PARTIAL if len(refused) < len(outcomes) else ExitStatus.CONFLICT,
            f"{len(refused)} of {len(outcomes)} partitions were refused: {refused[0].text}",
        )


def _ask(env: Environment, cluster: Cluster, request: ExtensionRequest) -> Reader:
    return ask_controller(
        cluster.brokers(), connector(env), request, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S)
    )
