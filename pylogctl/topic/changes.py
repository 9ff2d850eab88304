"""Creates and deletes topics: on brokers, and in ZooKeeper.

A plan is made and validated on all brokers before anything is changed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from broker import errors
from broker.client.cluster import Cluster, Connect
from broker.client.controller_client import ask_controller, cluster_metadata
from broker.client.selection import topic_not_found
from broker.protocol.cluster_requests import DeleteReplicatedTopicRequest
from broker.protocol.extension_requests import CreateTopicRequest, DeleteTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import validate_topic_name
from broker.zk import paths
from pylogctl.cli.confirmation import confirm_name
from pylogctl.cli.connections import REQUEST_TIMEOUT_S, connector
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.failures import for_each, raise_failures
from pylogctl.cli.render import render
from pylogctl.topic.document import CREATE, DELETE, CreateRow, DeleteRow

if TYPE_CHECKING:
    from broker.zk.session import Session

_POLL_S = 0.05
_PARTITION_COUNT = "partition.count"


class TopicCreation(NamedTuple):
    """A topic to create on one broker; `before` is the number of partitions it has there now."""

    broker: BrokerAddress
    before: int
    partition_count: int

    @property
    def is_needed(self) -> bool:
        """Return whether the topic is missing on the broker."""
        return not self.before


class Deletion(NamedTuple):
    """A step of a deletion; without broker, group and replicas it is of the topic's node."""

    topic: str
    broker: BrokerAddress | None  # whose logs are deleted
    partition_count: int
    group: str | None = None  # whose offsets are deleted
    is_replicated: bool = False  # the topic is deleted on all brokers


def create_topic(
    env: Environment,
    cluster: Cluster,
    topic: str,
    *,
    partition_count: int,
    broker_ids: Sequence[int],
    if_not_exists: bool,
) -> None:
    """Create a topic and render what was done; with `--dry-run`, only the plan."""
    connect = connector(env)
    plan = plan_creation(
        cluster, connect, topic, partition_count=partition_count, broker_ids=broker_ids
    )
    if not if_not_exists:
        check_absent(topic, plan)
    for one in plan:
        if one.before not in (0, partition_count):
            env.warn(f"{_describe_existing(topic, one)}, not {partition_count}")
    if env.settings.dry_run:
        actions = ((one, "create" if one.is_needed else "exists") for one in plan)
        render(env, CREATE, [_create_row(topic, one, action) for one, action in actions])
        env.note("nothing changed; this was a dry run")
        return

    def create_one(one: TopicCreation) -> CreateRow:
        is_new = one.is_needed and _create_on(connect, topic, one)
        return _create_row(topic, one, "created" if is_new else "exists")

    rows, done = for_each(env, "brokers", plan, create_one)
    homes = {row.broker for row in rows}
    await_topic(cluster, topic, homes, timeout_s=env.timeout_s(REQUEST_TIMEOUT_S))
    render(env, CREATE, rows)
    raise_failures(env, done)


def _create_row(topic: str, creation: TopicCreation, action: str) -> CreateRow:
    count = creation.before or creation.partition_count
    return CreateRow(topic, creation.broker.id, creation.before, count, action)


def plan_creation(
    cluster: Cluster,
    connect: Connect,
    topic: str,
    *,
    partition_count: int,
    broker_ids: Sequence[int] = (),
) -> list[TopicCreation]:
    """Return a step for each broker of `broker_ids`, or for each live one if empty."""
    validate_topic_name(topic)
    live = {broker.id: broker for broker in cluster.brokers()}
    if not live:
        raise CliError(
            ExitStatus.NOT_FOUND,
            "no live broker to create a topic on",
            hints=["try: pylogctl broker list"],
        )
    for broker_id in broker_ids:
        if broker_id not in live:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"broker '{broker_id}' not found",
                hints=[f"live brokers: {', '.join(map(str, live))}"],
                code="BROKER_NOT_FOUND",
            )
    brokers = [live[broker_id] for broker_id in sorted(set(broker_ids) or live)]
    for broker in brokers:
        connection = connect(broker)
        try:
            if connection.hello() is None:
                raise CliError(
                    ExitStatus.UNSUPPORTED,
                    f"{connection.name} knows only the requests of Kafka 0.7, which cannot create "
                    "a topic",
                    hints=["such a broker creates a topic with the first message sent to it"],
                )
        finally:
            connection.close()
    homes = [partition.home for partition in cluster.partitions(topic)]
    return [TopicCreation(broker, homes.count(broker.id), partition_count) for broker in brokers]


def _describe_existing(topic: str, creation: TopicCreation) -> str:
    plural = "" if creation.before == 1 else "s"
    return (
        f"topic '{topic}' exists on broker {creation.broker.id} "
        f"with {creation.before} partition{plural}"
    )


def check_absent(topic: str, plan: Sequence[TopicCreation]) -> None:
    """Raise CliError if the topic exists on a broker of the plan."""
    for one in plan:
        if not one.is_needed:
            raise CliError(
                ExitStatus.CONFLICT,
                _describe_existing(topic, one),
                hints=["--if-not-exists leaves it as it is"],
                code="TOPIC_EXISTS",
            )


def _create_on(connect: Connect, topic: str, creation: TopicCreation) -> bool:
    """Create a topic on one broker; return False if it was created concurrently."""
    connection = connect(creation.broker)
    try:
        connection.call(CreateTopicRequest(topic, creation.partition_count))
    except errors.TopicExistsError:
        return False
    finally:
        connection.close()
    return True


def await_topic(cluster: Cluster, topic: str, homes: set[int], *, timeout_s: float) -> None:
    """Wait until the brokers in `homes` have registered a topic that they have just created."""
    give_up_s = time.monotonic() + timeout_s
    while missing := homes - {partition.home for partition in cluster.partitions(topic)}:
        if time.monotonic() >= give_up_s:
            where = ", ".join(map(str, sorted(missing)))
            raise CliError(
                ExitStatus.TIMEOUT,
                f"topic '{topic}' is created but not registered by broker {where} "
                f"after {timeout_s:g}s",
            )
        time.sleep(_POLL_S)


def set_partition_count(
    env: Environment, cluster: Cluster, session: Session, topic: str, partition_count: int
) -> None:
    """Have each broker add partitions to a topic without replicas, and render what was done."""
    from broker.zk.settings import SettingsRegistry, node_of_topic  # late: kazoo

    counts = Counter(one.home for one in cluster.partitions(topic))
    if max(counts.values()) > partition_count or min(counts.values()) == partition_count:
        raise CliError(
            ExitStatus.CONFLICT,
            f"topic '{topic}' has {max(counts.values())} partitions on a broker; they cannot "
            "become fewer or be replaced",
        )
    plan = [
        TopicCreation(one, counts[one.id], partition_count)
        for one in cluster.brokers()
        if one.id in counts
    ]

    def show(action: str) -> None:
        rows = [
            CreateRow(topic, one.broker.id, one.before, partition_count, action) for one in plan
        ]
        render(env, CREATE, rows)

    if env.settings.dry_run:
        show("add")
        env.note("nothing changed; this was a dry run")
        return
    # A setting of the topic: a broker that is down, or gets the topic later, applies it too.
    SettingsRegistry(session).change(
        node_of_topic(topic), lambda before: {**before, _PARTITION_COUNT: str(partition_count)}
    )
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)
    give_up_s = time.monotonic() + timeout_s
    while any(n < partition_count for n in _counts_on(cluster, topic, plan)):
        if time.monotonic() >= give_up_s:
            raise CliError(
                ExitStatus.TIMEOUT,
                f"topic '{topic}' is to have {partition_count} partitions on each broker, and some "
                f"broker does not have them after {timeout_s:g}s",
                hints=[f"try: pylogctl topic describe {topic}"],
            )
        time.sleep(_POLL_S)
    show("added")


def _counts_on(cluster: Cluster, topic: str, plan: Sequence[TopicCreation]) -> list[int]:
    counts = Counter(one.home for one in cluster.partitions(topic))
    return [counts[one.broker.id] for one in plan]


def delete_topics(
    env: Environment,
    cluster: Cluster,
    session: Session | None,  # None if brokers are given by address
    topics: Iterable[str],
    *,
    with_data: bool,
    with_offsets: bool,
    if_exists: bool,
    confirmed: Sequence[str],
) -> None:
    """Delete topics after each name is confirmed; with `--dry-run`, only render the plan."""
    connect = connector(env)
    timeout_s = env.timeout_s(REQUEST_TIMEOUT_S)

    def plan_one(topic: str) -> list[Deletion]:
        try:
            plan = _plan_deletion(cluster, connect, session, topic, with_data=with_data)
        except errors.TopicNotFoundError:
            if if_exists:
                return []
            raise
        groups = {} if session is None else _groups_with_offsets(session, topic)
        if groups and not with_offsets:
            env.note(
                f"topic '{topic}': its offsets stay stored for group {', '.join(groups)}; "
                "--group-offsets deletes them too"
            )
            return plan
        return plan + [Deletion(topic, None, count, group) for group, count in groups.items()]

    def delete_one(plan: Sequence[Deletion]) -> Sequence[Deletion]:
        for step in plan:
            _delete(cluster, connect, session, step, timeout_s)
        return plan

    plans, planned = for_each(env, "topics", topics, plan_one)
    if env.settings.dry_run:
        render(env, DELETE, [_delete_row(step, "delete") for plan in plans for step in plan])
        env.note("nothing changed; this was a dry run")
        raise_failures(env, planned)
        return
    for plan in filter(None, plans):
        name = plan[0].topic
        given = name if name in confirmed else next(iter(confirmed), None)
        confirm_name(env, "topic delete", name, given)
    deleted, done = for_each(env, "topics", map(tuple, plans), delete_one)
    render(env, DELETE, [_delete_row(step, "deleted") for plan in deleted for step in plan])
    raise_failures(env, planned, done)


def _delete_row(deletion: Deletion, action: str) -> DeleteRow:
    broker_id = None if deletion.broker is None else deletion.broker.id
    partition_count = deletion.partition_count or None
    return DeleteRow(deletion.topic, broker_id, partition_count, deletion.group, action)


def _plan_deletion(
    cluster: Cluster, connect: Connect, session: Session | None, topic: str, *, with_data: bool
) -> list[Deletion]:
    """Return the steps to delete a topic: logs first, the ZooKeeper node last."""
    validate_topic_name(topic)
    if (replicated := _plan_replicated(cluster, connect, session, topic)) is not None:
        if not with_data:
            raise CliError(
                ExitStatus.CONFLICT,
                f"topic '{topic}' has replicas, on which it would stay",
                hints=["--data deletes it on all brokers"],
                code="TOPIC_ON_BROKER",
            )
        node = [] if session is None else [Deletion(topic, None, 0)]
        return [replicated, *node]
    counts = Counter(partition.home for partition in cluster.partitions(topic))
    brokers = [broker for broker in cluster.brokers() if broker.id in counts]
    if brokers and not with_data:
        homes = ", ".join(str(broker.id) for broker in brokers)
        raise CliError(
            ExitStatus.CONFLICT,
            f"topic '{topic}' is on broker {homes}, which would register it again",
            hints=["--data deletes its logs there, too"],
            code="TOPIC_ON_BROKER",
        )
    for broker in brokers:
        connection = connect(broker)
        try:
            hello = connection.hello()
            if hello is None or DeleteTopicRequest.TYPE not in hello.versions:
                raise CliError(
                    ExitStatus.UNSUPPORTED,
                    f"{connection.name} cannot delete a topic: it does not know the request for "
                    "that",
                    hints=["stop the broker and remove the topic's directories from its data"],
                )
        finally:
            connection.close()
    plan = [Deletion(topic, broker, counts[broker.id]) for broker in brokers]
    if session is not None and session.exists(paths.topic(topic)):
        plan.append(Deletion(topic, None, 0))
    if not plan:
        raise topic_not_found(topic, cluster.topics())
    return plan


def _plan_replicated(
    cluster: Cluster, connect: Connect, session: Session | None, topic: str
) -> Deletion | None:
    """Return the step that deletes a topic with replicas, None for any other topic."""
    brokers = cluster.brokers()  # outside `try`: an absent broker may forbid the deletion
    try:
        metadata = cluster_metadata(brokers, connect, (topic,))
        partitions = [one for found in metadata.topics for one in found.partitions]
    except (errors.UnsupportedVersionError, errors.BrokerUnreachableError):
        partitions = []
    count = sum(one.is_replicated for one in partitions)
    if not count and session is not None and not session.exists(paths.replicated_topic(topic)):
        return None
    if not count and session is None:
        return None
    return Deletion(topic, None, count, is_replicated=True)


def _delete_replicated(
    cluster: Cluster, connect: Connect, session: Session | None, topic: str, timeout_s: float
) -> None:
    """Have the controller delete a topic, and wait until it is gone."""
    give_up_s = time.monotonic() + timeout_s
    with suppress(errors.UnknownTopicError):  # it is being deleted
        request = DeleteReplicatedTopicRequest(topic)
        ask_controller(cluster.brokers(), connect, request, timeout_s=timeout_s)
    while _is_there(cluster, connect, session, topic):
        if time.monotonic() >= give_up_s:
            raise CliError(
                ExitStatus.TIMEOUT,
                f"topic '{topic}' is not deleted on all live brokers after {timeout_s:g}s; the "
                "controller goes on",
                hints=["try: pylogctl cluster health"],
            )
        time.sleep(_POLL_S)


def _is_there(cluster: Cluster, connect: Connect, session: Session | None, topic: str) -> bool:
    """Return whether the registry, or without a session any broker, has a topic with replicas."""
    if session is not None:
        return session.exists(paths.replicated_topic(topic)) is not None
    known = [cluster_metadata([one], connect, (topic,)) for one in cluster.brokers()]
    return any(
        one.is_replicated
        for metadata in known
        for found in metadata.topics
        for one in found.partitions
    )


def _delete(
    cluster: Cluster,
    connect: Connect,
    session: Session | None,
    step: Deletion,
    timeout_s: float,
) -> None:
    """Carry out one step; logs and nodes that are gone already are no error."""
    if step.is_replicated:
        _delete_replicated(cluster, connect, session, step.topic, timeout_s)
    elif step.broker is not None:
        connection = connect(step.broker)
        try:
            connection.call(DeleteTopicRequest(step.topic))
        except errors.UnknownTopicError:
            return
        finally:
            connection.close()
    elif session is not None and step.group is not None:
        _delete_offsets(session, step.group, step.topic)
    elif session is not None:
        _delete_node(session, step.topic, timeout_s)


def _groups_with_offsets(session: Session, topic: str) -> dict[str, int]:
    """Return the groups that have stored offsets of a topic, with the number of partitions."""
    groups = session.children_if_any(paths.CONSUMERS)
    nodes = {paths.offsets(group, topic): group for group in groups}
    return {nodes[path]: len(names) for path, names in session.children_many(nodes).items()}


def _delete_offsets(session: Session, group: str, topic: str) -> None:
    """Delete the offsets of a topic that a group has stored."""
    root = paths.offsets(group, topic)
    with suppress(errors.RegistryNodeNotFoundError):
        session.delete_many(f"{root}/{name}" for name in session.children(root))
        session.delete(root)  # fails if a member has stored an offset meanwhile


def _delete_node(session: Session, topic: str, timeout_s: float) -> None:
    """Delete a topic's ZooKeeper node once all brokers have removed their nodes below it."""
    from broker.zk.settings import SettingsRegistry, node_of_topic  # late: kazoo

    path = paths.topic(topic)
    give_up_s = time.monotonic() + timeout_s
    while True:
        try:
            holders = session.children(path)
            if not holders:
                session.delete(path)
                # Its settings are not meant for a later topic of the name.
                SettingsRegistry(session).delete(node_of_topic(topic))
                return
        except errors.RegistryNodeNotFoundError:
            return
        except errors.CoordinationError:
            holders = session.children(path)  # a broker registered between the read and the delete
            if not holders:
                raise
        if time.monotonic() >= give_up_s:
            raise CliError(
                ExitStatus.TIMEOUT,
                f"topic '{topic}' is still registered by broker {', '.join(sorted(holders))} "
                f"after {timeout_s:g}s",
                hints=["a producer that keeps sending to the topic creates it again"],
            )
        time.sleep(_POLL_S)
