"""What is wrong with a group, judged from a snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from broker.admin.groups import GroupSnapshot, Member, Owner, StoredOffset
from broker.admin.rebalance import ProblemKind, problems_of
from broker.consumer.assignment import assign, thread_ids
from broker.topic import TopicPartition
from broker.zk.values import StaticSubscription

ZERO, ONE = TopicPartition("t", 0, 0), TopicPartition("t", 0, 1)
THERE = {"t": [ZERO, ONE]}


def member(name: str, *, session_id: int = 7, streams: int = 1) -> Member:
    counts = {"t": streams}
    return Member(name, "", StaticSubscription(counts), counts, session_id, 0)


def group(
    owners: Mapping[TopicPartition, Owner], *members: Member, stored: bool = False
) -> GroupSnapshot:
    offsets = {ZERO: StoredOffset(0, "0", 0, 0)} if stored else {}
    return GroupSnapshot("g", members, owners, offsets)


SOUND = group({ZERO: Owner("g_a-0", 7, 1), ONE: Owner("g_a-0", 7, 2)}, member("g_a"))


def kinds(snapshot: GroupSnapshot) -> list[tuple[ProblemKind, TopicPartition | None]]:
    return [(one.kind, one.partition) for one in problems_of(snapshot, THERE)]


@given(st.integers(0, 20), st.integers(1, 5), st.integers(1, 3))
def test_a_group_that_has_divided_its_partitions_is_sound(
    partition_count: int, member_count: int, streams: int
) -> None:
    partitions = [TopicPartition("t", 0, index) for index in range(partition_count)]
    members = [member(f"g_{name}", streams=streams) for name in range(member_count)]
    threads = [thread for one in members for thread in thread_ids(one.consumer_id, streams)]
    owners = {one: Owner(thread, 7, 0) for one, thread in assign(partitions, threads).items()}
    assert problems_of(group(owners, *members), {"t": partitions}) == []


def test_a_partition_without_owner_is_a_problem() -> None:
    assert kinds(replace(SOUND, owners={ZERO: SOUND.owners[ZERO]})) == [(ProblemKind.NO_OWNER, ONE)]


def test_without_members_the_partitions_it_has_read_have_no_owner() -> None:
    assert kinds(group({}, stored=True)) == [
        (ProblemKind.NO_OWNER, ZERO),
        (ProblemKind.NO_OWNER, ONE),
    ]


def test_an_owner_that_is_no_member_is_dead() -> None:
    owners = {**SOUND.owners, ONE: Owner("g_gone-0", 9, 2)}
    assert kinds(replace(SOUND, owners=owners)) == [(ProblemKind.DEAD_OWNER, ONE)]


def test_an_owner_node_of_another_session_is_stale() -> None:
    for session_id in (0, 8):
        owners = {**SOUND.owners, ONE: Owner("g_a-0", session_id, 2)}
        assert kinds(replace(SOUND, owners=owners)) == [(ProblemKind.STALE_OWNER, ONE)]


def test_an_owner_node_of_a_partition_that_is_gone_is_stale() -> None:
    gone = TopicPartition("t", 5, 0)
    owners = {**SOUND.owners, gone: Owner("g_a-0", 7, 3)}
    assert kinds(replace(SOUND, owners=owners)) == [(ProblemKind.STALE_OWNER, gone)]


def test_an_owner_with_a_thread_that_does_not_read_the_topic_is_stale() -> None:
    owners = {**SOUND.owners, ONE: Owner("g_a-1", 7, 2)}
    assert kinds(replace(SOUND, owners=owners)) == [(ProblemKind.STALE_OWNER, ONE)]


def test_members_and_nodes_that_make_no_sense_are_problems() -> None:
    broken = Member("g_b", "{", None, {}, 8, 0)
    snapshot = replace(SOUND, members=(*SOUND.members, broken), strays=("/consumers/g/owners/t/x",))
    assert kinds(snapshot) == [(ProblemKind.BAD_MEMBER, None), (ProblemKind.STRAY_NODE, None)]
