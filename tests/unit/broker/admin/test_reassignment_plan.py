"""Plans keep what may stay, spread what must move, and fit the brokers there are."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.admin.reassignment import plan_replicas
from broker.errors import InvalidReplicationFactorError
from broker.topic import TopicPartition


def partitions(*replicas: tuple[int, ...]) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", 0, index): one for index, one in enumerate(replicas)}


def no_racks(*ids: int) -> dict[int, str]:
    return dict.fromkeys(ids, "")


def test_plan_when_all_is_well_then_nothing_moves() -> None:
    present = partitions((0, 1), (1, 2), (2, 0))

    assert plan_replicas(present, no_racks(0, 1, 2)) == present


def test_plan_when_a_broker_goes_then_only_its_replicas_move() -> None:
    present = partitions((0, 1), (1, 2), (2, 0))

    plan = plan_replicas(present, no_racks(0, 1, 3))

    for partition, replicas in plan.items():
        assert set(present[partition]) - {2} <= set(replicas)
        assert 2 not in replicas


def test_plan_when_a_broker_comes_then_it_gets_its_share() -> None:
    present = partitions(*[(0, 1)] * 6)

    plan = plan_replicas(present, no_racks(0, 1, 2))

    assert Counter(one for replicas in plan.values() for one in replicas) == {0: 4, 1: 4, 2: 4}


def test_plan_when_factor_grows_then_racks_are_spread() -> None:
    present = partitions((0,))

    plan = plan_replicas(present, {0: "a", 1: "a", 2: "b", 3: "b"}, replication_factor=2)

    (replicas,) = plan.values()
    assert replicas[0] == 0
    assert replicas[1] in (2, 3)


def test_plan_when_there_are_too_few_brokers_then_is_refused() -> None:
    with pytest.raises(InvalidReplicationFactorError, match="need as many brokers; there are 2"):
        plan_replicas(partitions((0,)), no_racks(0, 1), replication_factor=3)


@given(st.data())
def test_plan_when_anything_then_each_partition_has_as_many_brokers_as_wanted(
    data: st.DataObject,
) -> None:
    ids = data.draw(st.sets(st.integers(0, 7), min_size=1))
    racks = {one: data.draw(st.sampled_from("ab")) for one in ids}
    old = st.lists(st.integers(0, 9), min_size=1, max_size=len(ids), unique=True).map(tuple)
    present = partitions(*data.draw(st.lists(old, max_size=12)))
    factor = data.draw(st.none() | st.integers(1, len(ids)))

    plan = plan_replicas(present, racks, replication_factor=factor)

    assert plan.keys() == present.keys()
    for partition, replicas in plan.items():
        assert len(replicas) == (factor or len(present[partition]))
        assert len(set(replicas)) == len(replicas)
        assert set(replicas) <= ids
    loads = Counter(dict.fromkeys(ids, 0))
    loads.update(one for replicas in plan.values() for one in replicas)
    if len(set(racks.values())) == 1:
        assert max(loads.values()) - min(loads.values()) <= 1
