"""The partitions a user selects: `0`, `2-0`, `*-0`, `0,1`, `0..3`.

Pure text to values; what exists is for the caller to match.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from broker.topic import TopicPartition
from pylogctl.errors import UsageError

_ITEM = re.compile(r"(?:(\*|\d+)-)?(\d+)(?:\.\.(\d+))?")
_HINT = "valid: 0 (of every broker), 2-0 (broker-partition), *-0, 0,1, 0..3"


class PartitionPattern(NamedTuple):
    """Partitions of one home broker (None: of any) with an index from `first` to `last`."""

    home: int | None
    first: int
    last: int

    def matches(self, partition: TopicPartition) -> bool:
        """Say whether a partition is meant."""
        home_matches = self.home is None or self.home == partition.home
        return home_matches and self.first <= partition.index <= self.last


class PartitionList(NamedTuple):
    """What `--partition` selects: any of several patterns."""

    text: str
    patterns: tuple[PartitionPattern, ...]

    def matches(self, partition: TopicPartition) -> bool:
        """Say whether a partition is selected."""
        return any(pattern.matches(partition) for pattern in self.patterns)


def parse_partition_list(text: str) -> PartitionList:
    """Return the patterns of a `--partition` value.

    Raises:
        UsageError: an item is malformed, or a range runs backwards.
    """
    return PartitionList(text, tuple(parse_partition(item) for item in text.split(",")))


def parse_partition(text: str) -> PartitionPattern:
    """Return the pattern of one item.

    Raises:
        UsageError: the item is malformed, or its range runs backwards.
    """
    match = _ITEM.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"not a partition: '{text}'", hints=[_HINT])
    home, first, last = match.groups()
    pattern = PartitionPattern(
        None if home in (None, "*") else int(home), int(first), int(last or first)
    )
    if pattern.last < pattern.first:
        raise UsageError(f"not a partition: '{text}' runs backwards", hints=[_HINT])
    return pattern
