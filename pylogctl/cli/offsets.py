"""`--offset` of commands: its values, its file, and what they mean for each partition."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from broker import errors
from broker.client.selection import Selected, causes_of_absence, partitions_away, unreadable_text
from broker.client.side import Side
from broker.consumer.boundaries import BoundaryFinder
from broker.partition_patterns import PartitionPattern, parse_partition
from broker.positions import Absolute, Mark, OffsetRange, OffsetSpec, parse_offset_spec, resolve
from broker.topic import ReadRange, TopicPartition
from pylogctl.cli.environment import Environment, UsageError


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
                "valid: TOPIC PARTITION OFFSET, or a JSON object with these names",
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


def resolve_ranges(
    env: Environment,
    side: Side,
    selected: Selected,
    span: Span,
    *,
    default_start: Mark = Mark.EARLIEST,
    strict: bool = False,
    leader_wait_s: float = 0.0,
    on_missing: Callable[[str], object] | None = None,
) -> dict[TopicPartition, ReadRange]:
    """Resolve `span` on each partition; a lost leader is awaited for `leader_wait_s`.

    Partitions that cannot be read raise `PartitionsAwayError`, or are left out if `on_missing` is
    given, which is called with a sentence for each cause.
    """
    partitions, away = selected
    if away and (on_missing is None or not partitions):
        raise partitions_away(side.cluster, away)
    causes = causes_of_absence(side.cluster, away)
    start = span.spec.default.start
    offset = start.position if isinstance(start, Absolute) and not span.from_file else 0
    if offset and len(partitions) > 1:
        env.note(
            f"offset {offset} is a position in bytes, in each of {len(partitions)} "
            "partitions; -p names one, -o -10 reads the last ten messages"
        )
    ranges = {}
    lost: dict[int, tuple[errors.BrokerError, list[TopicPartition]]] = {}  # by broker
    with BoundaryFinder(side.cluster, side.connect, leader_wait_s=leader_wait_s) as positions:
        for partition in partitions:
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or default_start)
            leader = side.cluster.leader_id(partition)
            if leader in lost:
                lost[leader][1].append(partition)
                continue
            try:
                found = resolve(wanted, partition, positions, strict=strict, warn=env.warn)
            except (errors.BrokerUnreachableError, errors.RequestTimeoutError) as error:
                if not error.is_retriable:
                    raise
                lost[leader] = error, [partition]
                continue
            end = "" if found.end is None else f" to {found.end.offset}"
            env.trace(1, f"{partition}: reading from {found.start.offset}{end}")
            ranges[partition] = found
    if lost and not ranges:
        raise next(iter(lost.values()))[0]
    causes += [unreadable_text(side.cluster, *one) for one in lost.values()]
    if on_missing is not None:
        for cause in causes:
            on_missing(cause)
    elif causes:
        raise errors.PartitionsAwayError("\n".join(causes))
    return ranges


def total_bytes(ranges: Mapping[TopicPartition, ReadRange]) -> int:
    """Return the number of bytes in the ranges that have an end."""
    return sum(
        max(0, one.end.offset - one.start.offset) for one in ranges.values() if one.end is not None
    )
