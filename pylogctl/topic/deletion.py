"""Deleting a topic: what there is of it, its logs on brokers, its node in the registry.

Everything is checked before anything is changed. Knows no command and writes nothing.
"""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.errors import CoordinationError, RegistryNodeNotFoundError, UnknownTopicError
from broker.protocol.extension_requests import DeleteTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import check_topic_name
from broker.zk import paths
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.selection import topic_not_found

if TYPE_CHECKING:
    from broker.zk.session import Session

_POLL_S = 0.05


class Deletion(NamedTuple):
    """What there is to delete: in the registry if `broker` is None, else logs on that broker."""

    topic: str
    broker: BrokerAddress | None
    partition_count: int


def plan_deletion(
    cluster: Cluster, connect: Connect, session: Session | None, topic: str, *, with_data: bool
) -> list[Deletion]:
    """Return what there is of a topic, its logs first; nothing is changed.

    Args:
        cluster: what exists.
        connect: makes connections to brokers.
        session: with the registry; None without one.
        topic: the topic.
        with_data: whether the logs on brokers are to go too.

    Raises:
        InvalidTopicError: no topic may have that name.
        CliError: there is no such topic, or one of its brokers stands in the way.
        BrokerError: a broker or the registry does not answer.
    """
    check_topic_name(topic)
    counts = Counter(partition.home for partition in cluster.partitions(topic))
    plan = [
        Deletion(topic, broker, counts[broker.id])
        for broker in cluster.brokers()
        if broker.id in counts
    ]
    if plan and not with_data:
        homes = ", ".join(str(one.broker.id) for one in plan if one.broker is not None)
        raise CliError(
            ExitStatus.CONFLICT,
            f"topic '{topic}' is on broker {homes}, which would register it again",
            hints=["--data deletes its logs there, too"],
            code="TOPIC_ON_BROKER",
        )
    for one in plan:
        if one.broker is not None:
            _check_can_delete(connect, one.broker)
    if session is not None and session.exists(paths.topic(topic)):
        plan.append(Deletion(topic, None, 0))
    if not plan:
        raise topic_not_found(topic, cluster.topics())
    return plan


def _check_can_delete(connect: Connect, broker: BrokerAddress) -> None:
    connection = connect(broker)
    try:
        hello = connection.hello()
        if hello is None or DeleteTopicRequest.TYPE not in hello.versions:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"{connection.name} cannot delete a topic: it does not know the request for that",
                hints=["stop the broker and remove the directories of the topic from its data"],
            )
    finally:
        connection.close()


def carry_out(
    connect: Connect, session: Session | None, one: Deletion, *, timeout_s: float
) -> None:
    """Do one step of a plan; what somebody else has deleted meanwhile is fine.

    Args:
        connect: makes connections to brokers.
        session: with the registry, if the plan was made with one.
        one: the step.
        timeout_s: how long brokers may take to leave the topic's node in the registry.

    Raises:
        CliError: the topic is registered by a broker all the time.
        BrokerError: the broker or the registry refuses, or is gone.
    """
    if one.broker is not None:
        connection = connect(one.broker)
        try:
            connection.call(DeleteTopicRequest(one.topic))
        except UnknownTopicError:
            return
        finally:
            connection.close()
    elif session is not None:
        _delete_node(session, one.topic, timeout_s)


def _delete_node(session: Session, topic: str, timeout_s: float) -> None:
    """Delete the node of a topic once no broker has one below it."""
    path = paths.topic(topic)
    give_up_s = time.monotonic() + timeout_s
    while True:
        try:
            holders = session.children(path)
            if not holders:
                session.delete(path)
                return
        except RegistryNodeNotFoundError:
            return
        except CoordinationError:
            holders = session.children(path)  # a broker has come between the look and the leap
            if not holders:
                raise
        if time.monotonic() >= give_up_s:
            raise CliError(
                ExitStatus.TIMEOUT,
                f"topic '{topic}' is still registered by broker {', '.join(sorted(holders))} "
                f"after {timeout_s:g}s",
                hints=["a producer that goes on sending brings a topic back"],
            )
        time.sleep(_POLL_S)
