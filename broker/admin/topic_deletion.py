"""Deletes topics: their logs on brokers, and what ZooKeeper has of them.

Steps are planned and validated on all brokers before anything is deleted. `delete` does all of it,
and returns once brokers show the topic no more.
"""

from __future__ import annotations

import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from broker import deadlines, errors
from broker.admin.replicas import ask_until_answered
from broker.admin.topics import await_shown, until_answered
from broker.client.cluster import absence_of
from broker.client.controller_client import cluster_metadata
from broker.client.selection import topic_not_found
from broker.client.side import Side
from broker.protocol.cluster_requests import DeleteReplicatedTopicRequest
from broker.protocol.extension_requests import DeleteTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import unregistrable_in, validate_topic_name
from broker.zk import paths

if TYPE_CHECKING:
    from broker.zk.session import Session

_POLL_S = 0.05


class DeletionStep(NamedTuple):
    """A step of a deletion; without broker, group and replicas it is of the topic's node."""

    topic: str
    broker: BrokerAddress | None  # whose logs are deleted
    partition_count: int
    group: str | None = None  # whose offsets are deleted
    replicas: tuple[int, ...] | None = None  # ids of all its brokers, of a topic with replicas


@dataclass(frozen=True, slots=True)
class Deletion:
    """What was deleted, or with `plan` would be.

    Attributes:
        topic: its name.
        partitions: how many were there; 0 for a topic that no broker had.
        brokers: ids of the brokers that had logs of it.
        groups: consumer groups whose offsets of the topic are deleted.
        kept_groups: consumer groups whose offsets of it stay stored.
        notes: what is left behind, a sentence each.
    """

    topic: str
    partitions: int
    brokers: tuple[int, ...]
    groups: tuple[str, ...]
    kept_groups: tuple[str, ...]
    notes: tuple[str, ...]


def plan_deletion(
    side: Side, session: Session | None, topic: str, *, with_data: bool
) -> list[DeletionStep]:
    """Return the steps to delete a topic: logs first, the ZooKeeper node last.

    Without a session only brokers are changed.
    """
    validate_topic_name(topic)
    if (replicated := _plan_replicated(side, session, topic)) is not None:
        if not with_data:
            raise errors.ConflictError(
                f"topic '{topic}' has replicas, on which it would stay",
                "TOPIC_ON_BROKER",
                hints=["--data deletes it on all brokers"],
            )
        node = [] if session is None else [DeletionStep(topic, None, 0)]
        return [replicated, *node]
    partitions = side.cluster.partitions(topic)
    if unregistrable_in(topic):  # only the brokers that have it know it
        partitions = [
            one.partition
            for broker in side.brokers()
            for one in cluster_metadata([broker], side.connect, (topic,)).partitions
        ]
    counts = Counter(map(side.cluster.leader_id, partitions))  # as they have no replicas
    brokers = [broker for broker in side.brokers() if broker.id in counts]
    if brokers and not with_data:
        homes = ", ".join(str(broker.id) for broker in brokers)
        raise errors.ConflictError(
            f"topic '{topic}' is on broker {homes}, which would register it again",
            "TOPIC_ON_BROKER",
            hints=["--data deletes its logs there, too"],
        )
    for broker in brokers:
        with closing(side.connect(broker)) as connection:
            hello = connection.hello()
            if hello is None or DeleteTopicRequest.TYPE not in hello.versions:
                raise errors.UnsupportedVersionError(
                    f"{connection.name} cannot delete a topic: it does not know the request for "
                    "that",
                    hints=["stop the broker and remove the topic's directories from its data"],
                )
    plan = [DeletionStep(topic, broker, counts[broker.id]) for broker in brokers]
    if session is not None and session.exists(paths.topic(topic)):
        plan.append(DeletionStep(topic, None, 0))
    if not plan:
        raise topic_not_found(topic, side.cluster.topics())
    return plan


def _plan_replicated(side: Side, session: Session | None, topic: str) -> DeletionStep | None:
    """Return the step that deletes a topic with replicas, None for any other topic."""
    brokers = side.brokers()  # outside `try`: an absent broker may forbid the deletion
    try:
        partitions = cluster_metadata(brokers, side.connect, (topic,)).partitions
    except (errors.UnsupportedVersionError, errors.BrokerUnreachableError):
        partitions = []
    replicated = [one for one in partitions if one.is_replicated]
    if not replicated and (session is None or not session.exists(paths.replicated_topic(topic))):
        return None
    ids = {broker_id for one in replicated for broker_id in one.replicas}
    return DeletionStep(topic, None, len(replicated), replicas=tuple(sorted(ids)))


def plan_offsets(session: Session, topic: str) -> list[DeletionStep]:
    """Return a step for each group that has stored offsets of a topic."""
    groups = session.children_if_any(paths.CONSUMERS)
    nodes = {paths.offsets(group, topic): group for group in groups}
    found = {nodes[path]: len(names) for path, names in session.children_many(nodes).items()}
    return [DeletionStep(topic, None, count, group) for group, count in found.items()]


def carry_out(side: Side, session: Session | None, step: DeletionStep) -> None:
    """Carry out one step; logs and nodes that are gone already are no error."""
    if step.replicas is not None:
        _delete_replicated(side, session, step.topic)
    elif step.broker is not None:
        with closing(side.connect(step.broker)) as connection, suppress(errors.UnknownTopicError):
            connection.call(DeleteTopicRequest(step.topic))
    elif session is not None and step.group is not None:
        _delete_offsets(session, step.group, step.topic)
    elif session is not None:
        _delete_node(session, step.topic, side.timeout_s)


def _delete_replicated(side: Side, session: Session | None, topic: str) -> None:
    """Have the controller delete a topic, and wait until it is gone."""
    give_up_s = side.give_up_s
    with suppress(errors.UnknownTopicError):  # it is being deleted
        ask_until_answered(side, DeleteReplicatedTopicRequest(topic))
    if deadlines.remaining(lambda: _is_there(side, session, topic), give_up_s):
        raise errors.RequestTimeoutError(
            f"topic '{topic}' is not deleted on all live brokers after {side.timeout_s:g}s; the "
            "controller goes on",
            hints=["try: pylogctl cluster health"],
        )


def _is_there(side: Side, session: Session | None, topic: str) -> bool:
    """Return whether the registry, or without a session any broker, has a topic with replicas."""
    if session is not None:
        return session.exists(paths.replicated_topic(topic)) is not None
    known = [cluster_metadata([one], side.connect, (topic,)) for one in side.brokers()]
    return any(one.is_replicated for found in known for one in found.partitions)


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
            raise errors.RequestTimeoutError(
                f"topic '{topic}' is still registered by broker {', '.join(sorted(holders))} "
                f"after {timeout_s:g}s",
                hints=["a producer that keeps sending to the topic creates it again"],
            )
        time.sleep(_POLL_S)


def delete(
    side: Side,
    session: Session | None,
    topic: str,
    *,
    missing_ok: bool,
    with_offsets: bool,
    is_plan: bool,
    note: str = "",
) -> Deletion:
    """Delete a topic with its messages, and return what was deleted once brokers show it no more.

    A step whose response is lost is repeated. Without a session only brokers are changed; `note`
    says why, if that leaves something behind.
    """
    give_up_s = side.give_up_s
    try:
        steps = plan_deletion(side, session, topic, with_data=True)
    except errors.TopicNotFoundError:
        if not missing_ok:
            raise
        return Deletion(topic, 0, (), (), (), ())
    is_replicated = steps[0].replicas is not None
    away = "" if is_replicated else absence_of(side.cluster, topic)
    offsets = [] if session is None else plan_offsets(session, topic)
    if not is_plan:
        for step in [*steps, *(offsets if with_offsets else ())]:

            def attempt(_: bool, step: DeletionStep = step) -> None:
                carry_out(side.until(give_up_s), session, step)

            until_answered(attempt, give_up_s)
        await_shown(side, topic, lambda found: not found, give_up_s=give_up_s)
    brokers = [one.broker.id for one in steps if one.broker is not None]
    groups = tuple(str(one.group) for one in offsets)
    return Deletion(
        topic,
        sum(one.partition_count for one in steps),
        steps[0].replicas or tuple(brokers),
        groups if with_offsets else (),
        () if with_offsets else groups,
        tuple(filter(None, (note, away))),
    )
