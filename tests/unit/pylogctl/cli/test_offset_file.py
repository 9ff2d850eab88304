"""The file of `--offset file:PATH`."""

from __future__ import annotations

import pytest

from broker.topic import TopicPartition
from pylogctl.cli.environment import UsageError
from pylogctl.cli.offsets import parse_offset_file


def test_offset_file_given_both_forms_reads_them() -> None:
    lines = ["# comment", "t 2-0 33", '{"topic":"u","broker":1,"partition":3,"offset":7}', ""]
    first, second = parse_offset_file(lines, "f")
    assert (first.topic, first.offset) == ("t", 33)
    assert first.pattern.matches(TopicPartition("t", 2, 0))
    assert (second.topic, second.offset) == ("u", 7)
    assert second.pattern.matches(TopicPartition("u", 1, 3))


def test_offset_file_given_a_bad_line_names_its_number() -> None:
    with pytest.raises(UsageError, match="line 2 of 'f' is not an offset: 't 0'"):
        parse_offset_file(["t 0 1", "t 0"], "f")
