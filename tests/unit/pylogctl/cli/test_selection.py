"""The grammars of partitions and of patterns of topics."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ArgumentError
from broker.partition_patterns import parse_partition, parse_partition_list
from broker.topic import NO_HOME, TopicPartition
from pylogctl.cli.selection import split_patterns

ALL = [TopicPartition("t", home, index) for home in range(3) for index in range(5)]


def _selected(text: str) -> set[str]:
    partitions = parse_partition_list(text)
    return {partition.name for partition in ALL if partitions.matches(partition)}


@pytest.mark.parametrize(
    ("text", "patterns"),
    [
        ("a", ["a"]),
        ("a, b,c", ["a", "b", "c"]),
        ("a{2,5},b", ["a{2,5}", "b"]),
        ("web(1,2),[a,b]", ["web(1,2)", "[a,b]"]),
        (r"a\,b", [r"a\,b"]),
        (r"\(a,b", [r"\(a", "b"]),
        ("[(],(b", ["[(]", "(b"]),
        ("[[:alpha:],],[],],[^],]", ["[[:alpha:],]", "[],]", "[^],]"]),
        (r"\Qa,(b\E,c", [r"\Qa,(b\E", "c"]),
        ("a,b\\", ["a", "b\\"]),
    ],
)
def test_patterns_when_split_then_at_commas_outside_of_brackets(
    text: str, patterns: list[str]
) -> None:
    assert list(split_patterns([text])) == patterns


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("0", {"0-0", "1-0", "2-0"}),
        ("2-0", {"2-0"}),
        ("*-1", {"0-1", "1-1", "2-1"}),
        ("2-0,2-1", {"2-0", "2-1"}),
        ("0-3", {"0-3"}),
        ("1-0..3", {"1-0", "1-1", "1-2", "1-3"}),
        ("t[2-0], t[1-1]", {"2-0", "1-1"}),
        ("u[2-0]", set()),
    ],
)
def test_partition_list_given_a_valid_text_selects(text: str, names: set[str]) -> None:
    assert _selected(text) == names


@pytest.mark.parametrize(
    "text", ["", "a", "0,", "-1", "0..", "3..1", "0--1", "*", "0-0-0", "t[*-0]", "[0-0]", "[0]"]
)
def test_partition_list_given_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a partition"):
        parse_partition_list(text)


@pytest.mark.parametrize(
    "topic", ["t", "web.log-1_x", "größe", "a b", " a", "a,b", "a[0-0]", "a=b:c"]
)
@pytest.mark.parametrize("home", [2, NO_HOME])
def test_partition_when_printed_then_the_text_means_this_one(topic: str, home: int) -> None:
    partition = TopicPartition(topic, home, 13)
    pattern = parse_partition(str(partition))

    assert pattern.matches(partition)
    others = [
        partition._replace(topic="u"),
        partition._replace(home=1),
        partition._replace(index=1),
    ]
    assert not any(map(pattern.matches, others))


@given(st.text(alphabet="0123*-.,x ", max_size=12))
def test_partition_list_given_any_text_returns_or_raises_usage_error(text: str) -> None:
    try:
        parse_partition_list(text)
    except ArgumentError as error:
        assert error.hints
