"""Creating a topic on brokers: everything is checked before anything is changed.

Knows no command and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

from broker.client.cluster import Cluster, Connect
from broker.errors import TopicExistsError
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import check_topic_name
from pylogctl.cli.errors import CliError, ExitStatus

_POLL_S = 0.05


class Creation(NamedTuple):
    """What is to be done on one broker; `before` is how many partitions it has already."""

    broker: BrokerAddress
    before: int
    partition_count: int

    @property
    def is_needed(self) -> bool:
        """Say whether the topic is not there yet."""
        return not self.before


def plan_creation(
    cluster: Cluster,
    connect: Connect,
    topic: str,
    *,
    partition_count: int,
    broker_ids: Sequence[int] = (),
) -> list[Creation]:
    """Return what creating a topic means on each broker; nothing is changed.

    Args:
        cluster: what exists.
        connect: makes connections to brokers.
        topic: the topic.
        partition_count: how many partitions each broker gets, at least 1.
        broker_ids: on which brokers; all live ones if none are named.

    Raises:
        InvalidTopicError: no topic may have that name.
        CliError: a broker is not there, or knows only 0.7's requests.
        BrokerError: a broker or the registry does not answer.
    """
    check_topic_name(topic)
    brokers = _chosen_brokers(cluster, broker_ids)
    for broker in brokers:
        _check_extensions(connect, broker)
    homes = [partition.home for partition in cluster.partitions(topic)]
    return [Creation(broker, homes.count(broker.id), partition_count) for broker in brokers]


def _chosen_brokers(cluster: Cluster, broker_ids: Sequence[int]) -> list[BrokerAddress]:
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
    return [live[broker_id] for broker_id in sorted(set(broker_ids) or live)]


def _check_extensions(connect: Connect, broker: BrokerAddress) -> None:
    connection = connect(broker)
    try:
        if connection.hello() is None:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"{connection.name} knows only the requests of Kafka 0.7, which cannot create a "
                "topic",
                hints=["such a broker creates a topic with the first message sent to it"],
            )
    finally:
        connection.close()


def describe_existing(topic: str, creation: Creation) -> str:
    """Return that a topic exists on a broker, as a sentence."""
    plural = "" if creation.before == 1 else "s"
    return (
        f"topic '{topic}' exists on broker {creation.broker.id} "
        f"with {creation.before} partition{plural}"
    )


def check_absent(topic: str, plan: Sequence[Creation]) -> None:
    """Check that a topic is on none of the brokers of a plan.

    Raises:
        CliError: it is.
    """
    for one in plan:
        if not one.is_needed:
            raise CliError(
                ExitStatus.CONFLICT,
                describe_existing(topic, one),
                hints=["--if-not-exists leaves it as it is"],
                code="TOPIC_EXISTS",
            )


def create_on(connect: Connect, topic: str, creation: Creation) -> bool:
    """Create a topic on one broker, if it is not there.

    Args:
        connect: makes connections to brokers.
        topic: the topic.
        creation: a step of the plan.

    Returns:
        Whether it was created; somebody else may have been faster.

    Raises:
        BrokerError: the broker refuses, or is gone.
    """
    if not creation.is_needed:
        return False
    connection = connect(creation.broker)
    try:
        connection.call(CreateTopicRequest(topic, creation.partition_count))
    except TopicExistsError:
        return False
    finally:
        connection.close()
    return True


def await_topic(cluster: Cluster, topic: str, homes: set[int], *, timeout_s: float) -> None:
    """Wait until clients can find a topic on brokers that have just created it.

    Args:
        cluster: asked again and again; a registry learns of a new topic a moment later.
        topic: the topic.
        homes: ids of the brokers.
        timeout_s: how long at most.

    Raises:
        CliError: it is not there in time.
    """
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
