"""Finds problems in the assignment of a group, and makes its members rebalance.

Members watch the children of the group's `ids` node. Creating a child and deleting it at once makes
each of them rebalance: they read the group, find the same members, and assign the partitions again.

The child is ephemeral, so that it goes with this process in any case. Its value is `{  }`, a valid
subscription to no topic for 0.7's parser as well as ours, so a member that reads the group while
the child exists assigns nothing to it. A 0.7 member that lists the child but finds it deleted when
it reads its value fails this attempt and retries after `rebalance.backoff.ms`, as it does when any
member leaves. Before they assign, 0.7 members commit and revoke all partitions; ours keep those
that stay assigned to them.

Source: Kafka 0.7 `ZookeeperConsumerConnector.ZKRebalancerListener`, `ZkUtils.getConsumersPerTopic`,
and `VerifyConsumerRebalance`, which looks for missing and dead owners only.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from broker.admin.groups import GroupSnapshot, Member, Owner
from broker.admin.lag import GroupObserver, consumer_of, partitions_of
from broker.consumer.assignment import assign_topics, thread_ids
from broker.consumer.membership import threads_by_topic
from broker.errors import ConflictError, RegistryNodeNotFoundError, RequestTimeoutError
from broker.topic import TopicPartition
from broker.units import counted
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import StaticSubscription, encode_subscription

_QUIET_S = 1.5  # members see a change within a second, and keep their partitions until then
_POLL_S = 0.1

LivePartitions = Mapping[str, Sequence[TopicPartition]]
"""The partitions of topics that members split: on live home brokers, or with replicas."""


class ProblemKind(StrEnum):
    """The kind of a problem."""

    NO_OWNER = "no-owner"
    DEAD_OWNER = "dead-owner"
    STALE_OWNER = "stale-owner"
    BAD_MEMBER = "bad-member"
    STRAY_NODE = "stray-node"


class GroupProblem(NamedTuple):
    """A problem of a partition, or of a node if `partition` is None."""

    kind: ProblemKind
    partition: TopicPartition | None
    owner: str | None
    detail: str


class OwnerChange(NamedTuple):
    """The owner of a partition, a consumer thread, before and after a rebalance."""

    partition: TopicPartition
    before: str | None
    after: str | None


def problems_of(snapshot: GroupSnapshot, live: LivePartitions) -> list[GroupProblem]:
    """Return the problems of a group, by partition."""
    members = {member.consumer_id: member for member in snapshot.members}
    # Every live partition of these topics must have a live owner.
    assigned_topics = set(snapshot.subscribed_topics if members else snapshot.topics)
    found: list[GroupProblem] = []
    for partition in partitions_of(snapshot, live):
        is_live = partition in live.get(partition.topic, ())
        owner = snapshot.owners.get(partition)
        if owner is not None:
            found += _owner_problems(partition, owner, members, is_live=is_live)
        elif is_live and partition.topic in assigned_topics:
            found.append(GroupProblem(ProblemKind.NO_OWNER, partition, None, "it has no owner"))
    found += (
        GroupProblem(
            ProblemKind.BAD_MEMBER, None, one.consumer_id, f"cannot be decoded: {one.text!r}"
        )
        for one in snapshot.members
        if one.subscription is None
    )
    found += (
        GroupProblem(ProblemKind.STRAY_NODE, None, None, f"{path} is not named after a partition")
        for path in snapshot.strays
    )
    return found


def _owner_problems(
    partition: TopicPartition, owner: Owner, members: Mapping[str, Member], *, is_live: bool
) -> Iterator[GroupProblem]:
    """Yield the worst problem of an owner node, if it has any."""
    member = members.get(consumer_of(owner.thread_id))
    kind = ProblemKind.STALE_OWNER
    if member is None:
        kind, detail = ProblemKind.DEAD_OWNER, "its owner is no live member of the group"
    elif owner.session_id != member.session_id:
        session = "no session" if not owner.session_id else "another session than its member"
        detail = f"its owner node belongs to {session}"
    elif not is_live:
        detail = "the partition is on no live broker"
    elif member.subscription is not None and owner.thread_id not in thread_ids(
        member.consumer_id, member.stream_counts.get(partition.topic, 0)
    ):
        detail = "its owner does not consume this topic"
    else:
        return
    yield GroupProblem(kind, partition, owner.thread_id, detail)


def read_assignment(observer: GroupObserver, group: str) -> tuple[GroupSnapshot, LivePartitions]:
    """Read a group and the partitions that its members split."""
    snapshot = observer.snapshot(group)
    return snapshot, observer.live_partitions(snapshot)


def trigger_rebalance(session: Session, group: str) -> None:
    """Create and delete a member without topics, so that all members rebalance."""
    consumer_id = f"{group}_pylogctl-rebalance-{uuid.uuid4().hex[:8]}"
    path = paths.consumer(group, consumer_id)
    session.create(path, encode_subscription(StaticSubscription({})), ephemeral=True)
    with suppress(RegistryNodeNotFoundError):
        session.delete(path)


def await_rebalance(
    read: Callable[[], tuple[GroupSnapshot, LivePartitions]], *, timeout_s: float
) -> tuple[GroupSnapshot, list[GroupProblem]]:
    """Wait until every partition has had the same live owner for a while, or the time is up."""
    started_s = time.monotonic()
    before: Mapping[TopicPartition, Owner] | None = None
    since_s = started_s
    while True:
        snapshot, live = read()
        now_s = time.monotonic()
        problems = problems_of(snapshot, live)
        if snapshot.owners != before:
            before, since_s = snapshot.owners, now_s
        is_quiet = now_s - since_s >= _QUIET_S
        if (is_quiet and not problems) or now_s - started_s >= timeout_s:
            return snapshot, problems
        time.sleep(_POLL_S)


def expected_owners(snapshot: GroupSnapshot, live: LivePartitions) -> dict[TopicPartition, str]:
    """Return the consumer thread that the assignment rule gives each partition to."""
    members = {
        one.consumer_id: one.subscription
        for one in snapshot.members
        if one.subscription is not None
    }
    topics = snapshot.subscribed_topics
    return assign_topics(
        {topic: live.get(topic, ()) for topic in topics}, threads_by_topic(members, topics)
    )


def owner_changes(
    before: Mapping[TopicPartition, str],
    after: Mapping[TopicPartition, str],
    problems: Iterable[GroupProblem] = (),
) -> list[OwnerChange]:
    """Return the owners of all partitions that have one, or have a problem."""
    partitions = {*before, *after, *(one.partition for one in problems if one.partition)}
    return [OwnerChange(one, before.get(one), after.get(one)) for one in sorted(partitions)]


def rebalance_group(
    observer: GroupObserver, group: str, *, wait_s: float, plan: bool = False
) -> list[OwnerChange]:
    """Make the members of a group rebalance, and return once each partition has a live owner."""
    before, live = read_assignment(observer, group)
    if not before.members:
        raise ConflictError(f"group '{group}' has no members that could rebalance", "GROUP_EMPTY")
    if plan:
        return owner_changes(before.owner_threads, expected_owners(before, live))
    trigger_rebalance(observer.session, group)
    after, problems = await_rebalance(lambda: read_assignment(observer, group), timeout_s=wait_s)
    if problems:
        first = problems[0]
        raise RequestTimeoutError(
            f"group '{group}' has not rebalanced within {wait_s:g}s: "
            f"{counted(len(problems), 'problem')}; {first.partition or first.owner}: {first.detail}"
        )
    return owner_changes(before.owner_threads, after.owner_threads)
