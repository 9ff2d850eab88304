"""What is wrong with who owns what in a group: a pure judgement of a snapshot.

Source: Kafka 0.7 `VerifyConsumerRebalance`, which looks at missing and dead owners only and ends
with the same status whatever it found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from broker.client.rebalance import thread_ids
from broker.topic import TopicPartition
from pylogctl.groups.snapshot import GroupSnapshot, Member, Owner
from pylogctl.groups.standing import consumer_of, partitions_of


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
