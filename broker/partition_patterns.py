"""Which partitions a text means: `0`, `2-0`, `*-0`, `0,1`, `0..3`, `orders[2-0]`, `orders[0]`.

It is for options of commands too, and so loads little.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from broker.errors import ArgumentError
from broker.topic import TopicPartition

# compiled where it is used: commands import this at each start
_ITEM = r"\s*(?:(\*|\d+)-)?(\d+)(?:\.\.(\d+))?\s*"
_NAMED = r"(.+)\[((?:[0-9]+-)?[0-9]+)\]"  # `str` of a partition
_HINT = (
    "valid: 0 (of every broker, and Kafka's), 2-0 (broker-partition), *-0, 0,1, 0..3, TOPIC[2-0]"
)


class PartitionPattern(NamedTuple):
    """Partitions of a home broker and a topic (None for any), with indices `first` to `last`."""

    home: int | None
    first: int
    last: int
    topic: str | None = None

    def matches(self, partition: TopicPartition) -> bool:
        """Whether the pattern selects a partition."""
        return (
            self.first <= partition.index <= self.last
            and self.home in (None, partition.home)
            and self.topic in (None, partition.topic)
        )


class PartitionList(NamedTuple):
    """The value of `--partition`: a partition is selected if any pattern matches."""

    text: str
    patterns: tuple[PartitionPattern, ...]

    def matches(self, partition: TopicPartition) -> bool:
        """Whether a partition is selected."""
        return any(pattern.matches(partition) for pattern in self.patterns)


def parse_partition_list(text: str) -> PartitionList:
    """Return the patterns of a `--partition` value."""
    return PartitionList(text, tuple(parse_partition(item.strip()) for item in text.split(",")))


def parse_partition(text: str) -> PartitionPattern:
    """Return the pattern of one item."""
    if named := re.fullmatch(_NAMED, text):
        one = TopicPartition.named(named[1], named[2])
        return PartitionPattern(one.home, one.index, one.index, one.topic)
    match = re.fullmatch(_ITEM, text)
    if match is None:
        raise ArgumentError(f"not a partition: '{text}'", hints=[_HINT])
    home, first, last = match.groups()
    pattern = PartitionPattern(
        None if home in (None, "*") else int(home), int(first), int(last or first)
    )
    if pattern.last < pattern.first:
        raise ArgumentError(f"not a partition: '{text}' runs backwards", hints=[_HINT])
    return pattern
