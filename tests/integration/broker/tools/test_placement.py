from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker import Broker, Connection, StaticCluster, TopicPartition
from broker.errors import BrokerUnreachableError, WrongPartitionError
from broker.tools.mirror_routes import (
    counts_by_name,
    counts_like,
    create_topic,
    place_by_name,
    place_by_order,
)
from tests.integration.broker.factories import address_of
from tests.integration.broker.peers import Server

partitions = st.sets(st.tuples(st.integers(0, 4), st.integers(0, 6)), min_size=1)


def of(topic: str, names: set[tuple[int, int]]) -> list[TopicPartition]:
    return [TopicPartition(topic, home, index) for home, index in names]


@given(partitions, partitions)
def test_place_by_order_when_repeated_then_is_even_and_the_same(
    sources: set[tuple[int, int]], targets: set[tuple[int, int]]
) -> None:
    placed = place_by_order(of("a", sources), of("b", targets))

    assert placed == place_by_order(of("a", sources)[::-1], of("b", targets)[::-1])
    assert placed.keys() == set(of("a", sources))
    loads = [list(placed.values()).count(one) for one in of("b", targets)]
    assert max(loads) - min(loads) <= 1


@given(partitions)
def test_place_by_order_when_there_are_as_many_then_indexes_stay(
    sources: set[tuple[int, int]],
) -> None:
    placed = place_by_order(of("a", sources), of("b", sources))

    assert all(one.name == target.name for one, target in placed.items())


def test_place_by_name_when_a_name_is_missing_then_says_which() -> None:
    with pytest.raises(WrongPartitionError, match=r"'b' has no partition 1-2 for a\[1-2\]"):
        place_by_name(of("a", {(1, 2)}), of("b", {(1, 1), (2, 1)}))


@given(partitions, st.integers(1, 5))
def test_counts_like_when_created_so_then_no_two_sources_share_a_target(
    sources: set[tuple[int, int]], broker_count: int
) -> None:
    counts = counts_like(of("a", sources), range(broker_count))

    assert sum(counts.values()) >= len(sources)
    assert sum(counts.values()) < len(sources) + broker_count


@given(partitions)
def test_counts_by_name_when_created_so_then_every_source_finds_its_name(
    sources: set[tuple[int, int]],
) -> None:
    counts = counts_by_name(of("a", sources))

    made = {(home, index) for home, count in counts.items() for index in range(count)}
    assert place_by_name(of("a", sources), of("b", made)).keys() == set(of("a", sources))


def test_create_topic_when_missing_then_can_be_found_with_its_partitions(
    start_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    brokers = [start_broker(broker_id=n, data_dir=tmp_path / str(n)) for n in (1, 2)]
    cluster = StaticCluster([address_of(one) for one in brokers], Connection)

    made = create_topic(cluster, Connection, "t", {1: 2, 2: 1})

    assert [one.name for one in made] == ["1-0", "1-1", "2-0"]
    assert create_topic(cluster, Connection, "t", {1: 5}) == made, "it exists by then"
    cluster.close()


def test_create_topic_when_a_broker_is_missing_then_says_which(running_broker: Broker) -> None:
    cluster = StaticCluster([address_of(running_broker)], Connection)

    with pytest.raises(BrokerUnreachableError, match="no live broker 4"):
        create_topic(cluster, Connection, "t", {4: 1})
    cluster.close()


def test_create_topic_when_the_broker_is_of_07_then_leaves_it_to_the_first_message(
    old_broker: Server,
) -> None:
    cluster = StaticCluster([address_of(old_broker)], Connection)

    assert create_topic(cluster, Connection, "t", {0: 3}) == [TopicPartition("t", 0, 0)]
    cluster.close()
