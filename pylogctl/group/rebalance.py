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

What is wrong with who owns what in a group: a pure judgement of a snapshot.

Source: Kafka 0.7 `VerifyConsumerRebalance`, which looks at missing and dead owners only and ends
with the same status whatever it found.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from broker.consumer.assignment import assign_topics, thread_ids
from broker.consumer.membership import threads_by_topic
from broker.errors import RegistryNodeNotFoundError
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import StaticSubscription, encode_subscription
from pylogctl.group.lag import GroupObserver, consumer_of, partitions_of, partitions_there
from pylogctl.group.snapshot import GroupSnapshot, Member, Owner


class Kind(StrEnum):
    """What kind of problem it is."""

    NO_OWNER = "no-owner"
    DEAD_OWNER = "dead-owner"
    STALE_OWNER = "stale-owner"
    BAD_MEMBER = "bad-member"
    STRAY_NODE = "stray-node"


class Problem(NamedTuple):
    """One thing that is wrong; `partition` or `owner` is None where there is none."""

    kind: Kind
    partition: TopicPartition | None
    owner: str | None
    detail: str


def problems_of(
    snapshot: GroupSnapshot, there: Mapping[str, Sequence[TopicPartition]]
) -> list[Problem]:
    """Return what is wrong with a group.

    Args:
        snapshot: the group.
        there: the partitions of each of its topics on live brokers.

    Returns:
        Problems by partition. Every partition of the topics that members read must have a live
        owner; without members, of the topics it has offsets in.
    """
    members = {member.consumer_id: member for member in snapshot.members}
    must_be_owned = set(snapshot.subscribed_topics if members else snapshot.topics)
    found: list[Problem] = []
    for partition in partitions_of(snapshot, there):
        is_there = partition in there.get(partition.topic, ())
        owner = snapshot.owners.get(partition)
        if owner is not None:
            found += _owner_problems(partition, owner, members, is_there=is_there)
        elif is_there and partition.topic in must_be_owned:
            found.append(Problem(Kind.NO_OWNER, partition, None, "nobody owns it"))
    found += (
        Problem(Kind.BAD_MEMBER, None, one.consumer_id, f"cannot be read: {one.text!r}")
        for one in snapshot.members
        if one.subscription is None
    )
    found += (
        Problem(Kind.STRAY_NODE, None, None, f"{path} is not named after a partition")
        for path in snapshot.strays
    )
    return found


def _owner_problems(
    partition: TopicPartition, owner: Owner, members: Mapping[str, Member], *, is_there: bool
) -> Iterator[Problem]:
    """Yield the worst problem of an owner node, if it has any."""
    member = members.get(consumer_of(owner.thread_id))
    if member is None:
        yield Problem(
            Kind.DEAD_OWNER, partition, owner.thread_id, "its owner is no live member of the group"
        )
    elif owner.session_id != member.session_id:
        session = "no session" if not owner.session_id else "another session than its member"
        yield Problem(
            Kind.STALE_OWNER, partition, owner.thread_id, f"its owner node goes with {session}"
        )
    elif not is_there:
        yield Problem(
            Kind.STALE_OWNER, partition, owner.thread_id, "the partition is on no live broker"
        )
    elif member.subscription is not None and owner.thread_id not in thread_ids(
        member.consumer_id, member.stream_counts.get(partition.topic, 0)
    ):
        yield Problem(
            Kind.STALE_OWNER, partition, owner.thread_id, "its owner does not read this topic"
        )


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
