"""`--offset` of commands: its values, its file, and what they mean for each partition."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from broker.partition_patterns import PartitionPattern, parse_partition
from broker.positions import Absolute, Mark, OffsetRange, OffsetSpec, parse_offset_spec
from broker.topic import TopicPartition
from pylogctl.cli.environment import Environment
from pylogctl.cli.errors import UsageError


class _FileOffset(NamedTuple):
    """One line of an offset file."""

    topic: str
    pattern: PartitionPattern
    offset: int


def parse_offset_file(lines: Iterable[str], name: str) -> list[_FileOffset]:
    """Parse an offset file; empty lines and those that start with `#` are skipped.

    A line is `TOPIC PARTITION OFFSET`, or a JSON object with `topic`, `partition` (and `broker`)
    and `offset`. `name` is the file's, for errors.
    """
    offsets = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            offsets.append(_parse_json_line(text) if text[0] == "{" else _parse_words(text))
        except (ValueError, KeyError, TypeError) as error:
            raise UsageError(
                f"line {number} of '{name}' is not an offset: '{text[:80]}'",
                hints=["valid: TOPIC PARTITION OFFSET, or a JSON object with these names"],
            ) from error
    return offsets


def _parse_words(text: str) -> _FileOffset:
    topic, partition, offset = text.split()
    return _FileOffset(topic, parse_partition(partition), int(offset))


def _parse_json_line(text: str) -> _FileOffset:
    fields = json.loads(text)
    partition = str(fields["partition"])
    if "broker" in fields:
        partition = f"{int(fields['broker'])}-{partition}"
    return _FileOffset(str(fields["topic"]), parse_partition(partition), int(fields["offset"]))


class Span(NamedTuple):
    """The ranges to read, by `--offset`, its file, and `--exit-at-end`."""

    spec: OffsetSpec
    from_file: Sequence[_FileOffset]
    exit_at_end: bool

    @property
    def starts_elsewhere(self) -> bool:
        """Whether a start other than the committed offset of the group is given."""
        ranges = [self.spec.default, *(offsets for _, offsets in self.spec.partitions)]
        named = any(offsets.start not in (None, Mark.STORED) for offsets in ranges)
        return bool(self.from_file) or named

    def range_for(self, partition: TopicPartition) -> OffsetRange:
        """Return the range of one partition; without an end it is read until the command stops."""
        wanted = self.spec.range_for(partition)
        for line in self.from_file:
            if line.topic == partition.topic and line.pattern.matches(partition):
                wanted = OffsetRange(Absolute(line.offset, nearest=False), None)
        if self.exit_at_end and wanted.end is None:
            return wanted._replace(end=Mark.LATEST)
        return wanted


def make_span(
    env: Environment, offsets: Sequence[str], *, from_beginning: bool, exit_at_end: bool
) -> Span:
    """Return the ranges to read; only one of `--offset` and `--from-beginning` may be given."""
    if from_beginning and offsets:
        raise UsageError("--from-beginning is --offset start; only one of them is possible")
    texts = ["start"] if from_beginning else list(offsets)
    spec = parse_offset_spec(texts, now_ms=env.clock.time_ms())
    from_file: Sequence[_FileOffset] = ()
    if spec.file is not None:
        try:
            with spec.file.open(encoding="utf-8") as lines:
                from_file = parse_offset_file(lines, str(spec.file))
        except UnicodeDecodeError as error:
            raise UsageError(f"'{spec.file}' is not UTF-8 text") from error
    return Span(spec, from_file, exit_at_end)


def validate_order(order: str, span: Span) -> None:
    """Validate that partitions that are read one after another have an end."""
    ranges = [span.spec.default, *(offsets for _, offsets in span.spec.partitions)]
    if order == "partition" and not span.exit_at_end and any(r.end is None for r in ranges):
        raise UsageError("--order partition needs an end: -e, or an offset range START:END")
