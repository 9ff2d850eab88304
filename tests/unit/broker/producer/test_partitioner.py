from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from broker.producer.partitioner import (
    PARTITIONERS,
    TopicPartitions,
    hash_partitioner,
    java_string_hash,
    random_partitioner,
    round_robin_partitioner,
    sticky_partitioner,
)
from broker.producer.settings import ProducerSettings

_NO_CLUSTER: Any = None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("kafka", 101807910),
        ("a", 97),
        ("polygenelubricants", -(2**31)),
        ("\U0001f600", 31 * 0xD83D + 0xDE00),
    ],
)
def test_java_string_hash_when_of_known_text_then_as_java_has_it(text: str, value: int) -> None:
    assert java_string_hash(text) == value


def test_hash_partitioner_when_key_is_given_then_always_the_same_place() -> None:
    assert hash_partitioner(b"hello", 7) == 99162322 % 7
    assert hash_partitioner(b"kafka", 4) == 101807910 % 4


def test_hash_partitioner_when_hash_is_negative_then_its_absolute_value() -> None:
    value = java_string_hash("zzzzzzzz")
    assert value < 0
    assert hash_partitioner(b"zzzzzzzz", 1000) == -value % 1000


def test_hash_partitioner_when_hash_is_the_least_int_then_place_0() -> None:
    assert hash_partitioner(b"polygenelubricants", 7) == 0


def test_hash_partitioner_when_key_is_no_text_then_bytes_count_as_latin_1() -> None:
    assert hash_partitioner(b"\xff\xfe", 1 << 20) == (31 * 0xFF + 0xFE) % (1 << 20)


def test_hash_partitioner_when_there_is_no_key_then_every_place_comes_up() -> None:
    assert {hash_partitioner(None, 3) for _ in range(300)} == {0, 1, 2}


def test_random_partitioner_when_key_is_given_then_ignores_it() -> None:
    assert {random_partitioner(b"same", 3) for _ in range(300)} == {0, 1, 2}


def test_round_robin_partitioner_when_used_then_goes_round() -> None:
    partitioner = round_robin_partitioner()
    assert [partitioner(None, 3) for _ in range(7)] == [0, 1, 2, 0, 1, 2, 0]


def test_sticky_partitioner_when_used_then_stays_in_one_place() -> None:
    partitioner = sticky_partitioner()
    assert len({partitioner(None, 10) for _ in range(100)}) == 1


def test_sticky_partitioner_when_there_are_fewer_partitions_then_still_in_range() -> None:
    for _ in range(50):
        partitioner = sticky_partitioner()
        assert all(0 <= partitioner(b"key", count) < count for count in (100, 3, 1))


def test_sticky_partitioners_when_there_are_many_then_spread() -> None:
    places = Counter(sticky_partitioner()(None, 4) for _ in range(400))
    assert set(places) == {0, 1, 2, 3}


def test_partitioners_when_named_then_each_is_made_anew() -> None:
    assert set(PARTITIONERS) == {"sticky", "random", "round-robin", "hash"}
    first, second = PARTITIONERS["round-robin"](), PARTITIONERS["round-robin"]()
    assert (first(None, 5), first(None, 5), second(None, 5)) == (0, 1, 0)


def test_topic_partitions_when_a_broker_is_back_then_what_another_thread_iterates_over_stays() -> (
    None
):
    found = TopicPartitions(_NO_CLUSTER, ProducerSettings(), random_partitioner)
    found.note_presence(1, is_there=False)
    seen_by_another = found._gone
    found.note_presence(1, is_there=True)
    assert list(seen_by_another) == [1]
    assert not found._gone
