from __future__ import annotations

from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from broker.consumer.assignment import assign, assign_topics, java_order, split, thread_ids
from broker.topic import TopicPartition


def partitions(*names: str) -> list[TopicPartition]:
    return [TopicPartition("t", *map(int, name.split("-"))) for name in names]


PARTITIONS = st.sets(
    st.builds(TopicPartition, st.just("t"), st.integers(0, 120), st.integers(0, 12)), max_size=40
)
THREADS = st.sets(st.text(max_size=6), min_size=1, max_size=12)


def reference_split(partition_names: list[str], threads: list[str]) -> dict[str, str]:
    """The rule as 0.7's documents and code state it, written down a second time."""
    owners = {}
    each, extra = divmod(len(partition_names), len(threads))
    for place, thread in enumerate(threads):
        start = each * place + min(place, extra)
        for name in partition_names[start : start + each + (1 if place + 1 <= extra else 0)]:
            owners[name] = thread
    return owners


def test_assign_when_ten_partitions_meet_four_threads_then_splits_3_3_2_2() -> None:
    names = [f"0-{index}" for index in range(11) if index != 9]  # 0-10 sorts before 0-2

    owners = assign(partitions(*names), ["g_b-0", "g_a-0", "g_a-1", "g_c-0"])

    by_thread = {
        thread: [one.name for one in owners if owners[one] == thread]
        for thread in ("g_a-0", "g_a-1", "g_b-0", "g_c-0")
    }
    assert by_thread == {
        "g_a-0": ["0-0", "0-1", "0-10"],
        "g_a-1": ["0-2", "0-3", "0-4"],
        "g_b-0": ["0-5", "0-6"],
        "g_c-0": ["0-7", "0-8"],
    }


def test_assign_when_brokers_have_two_digits_then_sorts_them_as_text() -> None:
    owners = assign(partitions("2-0", "10-0", "1-0"), ["a", "b", "c"])

    assert {one.name: thread for one, thread in owners.items()} == {
        "1-0": "a",
        "10-0": "b",
        "2-0": "c",
    }


def test_assign_when_threads_outnumber_partitions_then_the_last_ones_idle() -> None:
    assert set(assign(partitions("0-0", "0-1"), ["c", "b", "a"]).values()) == {"a", "b"}


def test_assign_when_there_are_no_threads_then_nobody_owns_anything() -> None:
    assert assign(partitions("0-0"), []) == {}


def test_java_order_when_text_is_beyond_the_basic_plane_then_sorts_by_code_unit() -> None:
    assert sorted(["\uff5e", "\U0001f600"], key=java_order) == ["\U0001f600", "\uff5e"]


def test_thread_ids_when_made_then_are_the_consumer_id_and_a_number() -> None:
    assert thread_ids("g_host-1-a", 2) == ["g_host-1-a-0", "g_host-1-a-1"]


@given(PARTITIONS, THREADS)
def test_assign_when_given_anything_then_every_partition_has_one_owner(
    given_partitions: set[TopicPartition], threads: set[str]
) -> None:
    owners = assign(given_partitions, threads)

    assert owners.keys() == given_partitions
    assert set(owners.values()) <= threads


@given(PARTITIONS, THREADS)
def test_assign_when_given_anything_then_shares_differ_by_one_at_most(
    given_partitions: set[TopicPartition], threads: set[str]
) -> None:
    shares = Counter(assign(given_partitions, threads).values())

    sizes = [shares[thread] for thread in threads]
    assert max(sizes) - min(sizes) <= 1


@given(PARTITIONS, THREADS, st.integers(0, 1000))
def test_assign_when_the_order_of_arguments_changes_then_the_answer_does_not(
    given_partitions: set[TopicPartition], threads: set[str], seed: int
) -> None:
    in_order = sorted(given_partitions), sorted(threads)
    random = Random(seed)
    random.shuffle(in_order[0])
    random.shuffle(in_order[1])

    assert assign(*in_order) == assign(given_partitions, threads)


@given(PARTITIONS, THREADS)
def test_assign_when_given_anything_then_equals_the_reference_rule(
    given_partitions: set[TopicPartition], threads: set[str]
) -> None:
    names = sorted((one.name for one in given_partitions), key=java_order)

    owners = {one.name: thread for one, thread in assign(given_partitions, threads).items()}

    assert owners == reference_split(names, sorted(threads, key=java_order))


@given(st.integers(0, 50), THREADS)
def test_split_when_given_anything_then_stretches_cover_all_in_a_row(
    count: int, threads: set[str]
) -> None:
    stretches = split([TopicPartition("t", 0, index) for index in range(count)], threads).values()

    assert [index for stretch in stretches for index in stretch] == list(range(count))


def test_assign_topics_when_threads_read_different_topics_then_splits_each_for_itself() -> None:
    owners = assign_topics(
        {"t": partitions("0-0", "0-1"), "u": [TopicPartition("u", 0, 0)]},
        {"t": ["a", "b"], "u": ["b"]},
    )

    assert {str(one): thread for one, thread in owners.items()} == {
        "t[0-0]": "a",
        "t[0-1]": "b",
        "u[0-0]": "b",
    }
