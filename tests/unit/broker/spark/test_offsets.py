from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ConfigError
from broker.spark.options import (
    from_document,
    parse_assignment,
    parse_offsets,
    to_assignment,
    to_document,
    to_json,
)
from broker.topic import TopicPartition

partitions = st.builds(
    TopicPartition,
    st.sampled_from(["a", "b_1", "with space"]),
    st.integers(0, 99),
    st.integers(0, 9),
)


@given(st.dictionaries(partitions, st.integers(-2, 1 << 62)))
def test_offsets_when_written_and_read_then_are_the_same(
    offsets: dict[TopicPartition, int],
) -> None:
    assert parse_offsets(to_json(offsets), "startingOffsets") == offsets
    assert from_document(to_document(offsets)) == offsets


@given(st.sets(partitions))
def test_assignment_when_written_and_read_then_is_the_same(chosen: set[TopicPartition]) -> None:
    assert parse_assignment(to_assignment(chosen), "assign") == chosen


@pytest.mark.parametrize(
    "text",
    ["", "12", "[]", '"x"', '{"t": 3}', '{"t": ["0-0"]}', '{"t": {"0-": 1}}', '{"t": {"x-0": 1}}'],
)
def test_offsets_when_malformed_then_say_so(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_offsets(text, "startingOffsets")


@pytest.mark.parametrize("number", ["-3", "1.5", "true", '"7"', "null"])
def test_offsets_when_no_valid_number_then_name_the_partition(number: str) -> None:
    with pytest.raises(ConfigError, match=r"startingOffsets: t\[0-0\] has"):
        parse_offsets(f'{{"t": {{"0-0": {number}}}}}', "startingOffsets")


@pytest.mark.parametrize("text", ["", "[]", '{"t": "0-0"}', '{"t": [0.5]}', '{"t": ["0-"]}'])
def test_assignment_when_malformed_then_says_so(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_assignment(text, "assign")
