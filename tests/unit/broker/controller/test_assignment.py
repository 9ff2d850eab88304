from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cluster_state import LiveBroker
from broker.controller.assignment import place_partitions
from broker.errors import (
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
)
from broker.topic import FORMAT_KAFKA, FORMATS, MAX_PARTITIONS, NO_HOME, TopicPartition


def brokers(*racks: str) -> list[LiveBroker]:
    return [LiveBroker(i, "h", 9092, 1, True, rack) for i, rack in enumerate(racks)]


def test_place_when_brokers_have_no_racks_then_homes_go_round_and_replicas_shift() -> None:
    placed = place_partitions("t", 6, 3, brokers("", "", ""))

    assert {one.name: replicas for one, replicas in placed.items()} == {
        "0-0": (0, 1, 2),
        "1-0": (1, 2, 0),
        "2-0": (2, 0, 1),
        "0-1": (0, 2, 1),
        "1-1": (1, 0, 2),
        "2-1": (2, 1, 0),
    }


def test_place_when_the_format_is_kafka_then_leaders_go_round_and_numbers_are_in_a_row() -> None:
    placed = place_partitions("t", 4, 3, brokers("", "", ""), format=FORMAT_KAFKA)

    assert {one.name: replicas for one, replicas in placed.items()} == {
        "0": (0, 1, 2),
        "1": (1, 2, 0),
        "2": (2, 0, 1),
        "3": (0, 2, 1),
    }


def test_place_when_a_topic_of_format_kafka_has_partitions_then_numbers_follow_theirs() -> None:
    existing = place_partitions("t", 3, 1, brokers("", ""), format=FORMAT_KAFKA)
    added = place_partitions(
        "t", 2, 1, brokers("", ""), format=FORMAT_KAFKA, start=1, existing=existing
    )

    assert {one.name: replicas for one, replicas in added.items()} == {"3": (1,), "4": (0,)}


def test_place_when_start_is_given_then_first_home_is_there() -> None:
    placed = place_partitions("t", 2, 1, brokers("", "", ""), start=5)

    assert list(placed.values()) == [(2,), (0,)]


def test_place_when_racks_are_named_then_neighbours_alternate_and_replicas_cover_racks() -> None:
    racks = ("a", "a", "b", "b", "c", "c")
    placed = place_partitions("t", 12, 3, brokers(*racks))

    assert {len({racks[one] for one in replicas}) for replicas in placed.values()} == {3}
    assert set(Counter(replicas[0] for replicas in placed.values()).values()) == {2}
    homes = [racks[replicas[0]] for replicas in placed.values()]
    assert all(one != after for one, after in itertools.pairwise(homes))


def test_place_when_one_broker_names_no_rack_then_racks_do_not_count() -> None:
    placed = place_partitions("t", 1, 2, brokers("a", "a", ""))

    assert list(placed.values()) == [(0, 1)]


def test_place_when_topic_has_partitions_then_indexes_follow_theirs() -> None:
    existing = [TopicPartition("t", 0, 0), TopicPartition("t", 0, 3)]

    placed = place_partitions("t", 2, 1, brokers("", ""), existing=existing)

    assert [one.name for one in placed] == ["0-4", "1-0"]


@pytest.mark.parametrize("factor", [0, 3])
def test_place_when_factor_is_out_of_range_then_error_says_how_many_brokers_live(
    factor: int,
) -> None:
    with pytest.raises(InvalidReplicationFactorError, match="2 brokers are live"):
        place_partitions("t", 1, factor, brokers("", ""))


def test_place_when_no_partitions_are_asked_for_then_error() -> None:
    with pytest.raises(InvalidRequestError, match="ask for 1 or more"):
        place_partitions("t", 0, 1, brokers(""))


def test_place_when_the_topic_would_have_too_many_partitions_then_error() -> None:
    existing = place_partitions("t", 7, 1, brokers(""))
    with pytest.raises(InvalidRequestError, match="at most 10000, this one has 7"):
        place_partitions("t", 2**31 - 1, 1, brokers(""), existing=existing)
    most = MAX_PARTITIONS - len(existing)
    assert len(place_partitions("t", most, 1, brokers(""), existing=existing)) == most


def test_place_when_a_directory_could_not_have_the_name_then_error() -> None:
    name = "x" * 253
    assert len(place_partitions(name, 10, 1, brokers(""))) == 10
    with pytest.raises(InvalidTopicError, match="its directory name would exceed 255 bytes"):
        place_partitions(name, 11, 1, brokers(""))


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=8),
    count=st.integers(1, 40),
    start=st.integers(0, 100),
    data=st.data(),
)
def test_place_when_any_cluster_then_homes_and_replicas_are_even_and_distinct(
    racks: list[str], count: int, start: int, data: st.DataObject
) -> None:
    format = data.draw(st.sampled_from(FORMATS))
    factor = data.draw(st.integers(1, len(racks)))

    placed = place_partitions("t", count, factor, brokers(*racks), format=format, start=start)

    assert len(placed) == count
    if format == FORMAT_KAFKA:
        assert [one.name for one in placed] == [str(number) for number in range(count)]
    for partition, replicas in placed.items():
        assert partition.home in (replicas[0], NO_HOME)
        assert len(set(replicas)) == factor
        used = Counter(racks[one] for one in replicas)
        assert len(used) == min(factor, len(set(racks)))
    homes = Counter(replicas[0] for replicas in placed.values())
    counts = [homes[one] for one in range(len(racks))]
    assert max(counts) - min(counts) <= 1
