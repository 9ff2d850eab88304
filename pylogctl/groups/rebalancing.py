"""Making the members of a group rebalance, and waiting until they have.

Members watch the children of the group's `ids` node. A child that comes and goes at once is a
change to each of them: they read the group anew, find the same members, and divide the partitions
again.

The node is ephemeral, so that it goes with this process in any case, and reads `{  }`: a valid
subscription to no topic, for 0.7's reader as well as ours. A member that reads the group while the
node is there therefore gives it nothing. One of 0.7 that finds the node listed, but gone when it
reads its value, fails this attempt and makes another after `rebalance.backoff.ms`, as it does when
any member leaves. Members of 0.7 commit and give up all they own before they divide; ours keep what
stays theirs.

Source: Kafka 0.7 `ZookeeperConsumerConnector.ZKRebalancerListener`, `ZkUtils.getConsumersPerTopic`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from broker.client.rebalance import assign_topics
from broker.client.subscription import threads_by_topic
from broker.errors import RegistryNodeNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import StaticSubscription, encode_subscription
from pylogctl.groups.snapshot import GroupSnapshot, Owner
from pylogctl.groups.standing import GroupObserver, partitions_there
from pylogctl.groups.verify import Problem, problems_of

MARK = "pylogctl-rebalance"
QUIET_S = 1.5
_POLL_S = 0.1

There = Mapping[str, Sequence[TopicPartition]]
"""The partitions of topics on live brokers."""


class Outcome(NamedTuple):
    """How a group is after a rebalance: settled if there are no `problems`."""

    snapshot: GroupSnapshot
    problems: list[Problem]


def look(observer: GroupObserver, group: str) -> tuple[GroupSnapshot, There]:
    """Read a group, and the partitions of its topics on live brokers.

    Raises:
        CoordinationError: the registry does not answer.
    """
    snapshot = observer.snapshot(group)
    return snapshot, partitions_there(observer.registry, snapshot)


def touch(session: Session, group: str) -> None:
    """Have a member come and go that owns nothing.

    Raises:
        CoordinationError: the registry does not answer.
    """
    consumer_id = f"{group}_{MARK}-{uuid.uuid4().hex[:8]}"
    path = paths.consumer(group, consumer_id)
    session.create(path, encode_subscription(StaticSubscription({})), ephemeral=True)
    with suppress(RegistryNodeNotFoundError):
        session.delete(path)


def await_settled(
    look: Callable[[], tuple[GroupSnapshot, There]],
    *,
    timeout_s: float,
    quiet_s: float = QUIET_S,
    clock_s: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Outcome:
    """Wait until every partition has one live owner, and has kept it for a while.

    Args:
        look: reads the group, and the partitions of its topics on live brokers.
        timeout_s: how long to wait at most.
        quiet_s: how long nothing must change. Members notice a change within a second at most,
            and a member keeps its partitions until then.
        clock_s: tells the time in seconds.
        sleep: waits between two looks.

    Returns:
        The last look, with what is wrong with it if time was up.

    Raises:
        CoordinationError: the registry does not answer.
    """
    started_s = clock_s()
    before: Mapping[TopicPartition, Owner] | None = None
    since_s = started_s
    while True:
        snapshot, there = look()
        now_s = clock_s()
        problems = problems_of(snapshot, there)
        if snapshot.owners != before:
            before, since_s = snapshot.owners, now_s
        is_quiet = now_s - since_s >= quiet_s
        if (is_quiet and not problems) or now_s - started_s >= timeout_s:
            return Outcome(snapshot, problems)
        sleep(_POLL_S)


def expected_owners(snapshot: GroupSnapshot, there: There) -> dict[TopicPartition, str]:
    """Return the thread that is to own each partition, by the rule all members follow."""
    members = {
        one.consumer_id: one.subscription
        for one in snapshot.members
        if one.subscription is not None
    }
    topics = snapshot.subscribed_topics
    return assign_topics(
        {topic: there.get(topic, ()) for topic in topics}, threads_by_topic(members, topics)
    )
