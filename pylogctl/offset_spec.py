"""The offset grammar: where reading starts and ends, as values.

`SPEC = START [":" END]`, or `P=SPEC,..` by partition, or `file:PATH`. Pure text to values: what
they mean on a broker is found by `pylogctl.offset_resolution`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from broker.topic import TopicPartition
from pylogctl.errors import UsageError, did_you_mean
from pylogctl.partition_list import PartitionPattern, parse_partition
from pylogctl.time_spec import WORDS, parse_time_ms
from pylogctl.units import parse_size


class Mark(Enum):
    """A position with a name: the first valid one, the end, or what the group committed."""

    EARLIEST = "start"
    LATEST = "end"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class Absolute:
    """A byte position; with `nearest` the first boundary at or after it, else it must be one."""

    position: int
    nearest: bool


@dataclass(frozen=True, slots=True)
class ByMessages:
    """A number of messages before the end, or after the start."""

    count: int
    from_end: bool


@dataclass(frozen=True, slots=True)
class ByBytes:
    """A number of bytes before the end, or after the start, moved to the next boundary."""

    size: int
    from_end: bool


@dataclass(frozen=True, slots=True)
class ByTime:
    """A point in time in milliseconds since 1970; as precise as segments are."""

    time_ms: int


Position = Mark | Absolute | ByMessages | ByBytes | ByTime


class OffsetRange(NamedTuple):
    """Where reading starts, and where it ends (exclusive); None where nothing was said."""

    start: Position | None
    end: Position | None


NO_RANGE = OffsetRange(None, None)


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """A whole `--offset` value: a range for every partition, and others for some of them."""

    default: OffsetRange = NO_RANGE
    partitions: tuple[tuple[PartitionPattern, OffsetRange], ...] = ()
    file: Path | None = None

    def range_for(self, partition: TopicPartition) -> OffsetRange:
        """Return the range of one partition: the last item that names it, else the default."""
        for pattern, offsets in reversed(self.partitions):
            if pattern.matches(partition):
                return offsets
        return self.default


_WORDS: dict[str, Position] = {
    **dict.fromkeys(("start", "beginning", "earliest", "oldest", "smallest"), Mark.EARLIEST),
    **dict.fromkeys(("end", "latest", "newest", "largest"), Mark.LATEST),
    "stored": Mark.STORED,
}
_HINT = "valid: start, end, 4096, -100, -64KiB, @-10m, @2026-11-20T08:00, A:B"
_BY_PARTITION = re.compile(r"(?:\*|\d)[\d.\-*]*=")


def parse_offset_spec(texts: Sequence[str], *, now_ms: int) -> OffsetSpec:
    """Return the meaning of one or more `--offset` values.

    Args:
        texts: values in the order given; later ones override the sides they set.
        now_ms: the present moment, in milliseconds since 1970.

    Raises:
        UsageError: a value is not in the grammar.
    """
    spec = OffsetSpec()
    for text in texts:
        if text.startswith("file:"):
            spec = OffsetSpec(spec.default, spec.partitions, Path(text[5:]))
        elif _BY_PARTITION.match(text):
            spec = OffsetSpec(
                spec.default, (*spec.partitions, *_parse_by_partition(text, now_ms)), spec.file
            )
        else:
            new = parse_range(text, now_ms=now_ms)
            merged = OffsetRange(new.start or spec.default.start, new.end or spec.default.end)
            spec = OffsetSpec(merged, spec.partitions, spec.file)
    return spec


def _parse_by_partition(text: str, now_ms: int) -> Iterable[tuple[PartitionPattern, OffsetRange]]:
    for item in text.split(","):
        partition, equals, offsets = item.partition("=")
        if not equals:
            raise UsageError(f"not PARTITION=OFFSET: '{item}'", hints=["valid: 0=4096,1=end"])
        yield parse_partition(partition), parse_range(offsets, now_ms=now_ms)


def parse_range(text: str, *, now_ms: int) -> OffsetRange:
    """Return the meaning of `START[:END]`; the longest START that makes sense is taken.

    Args:
        text: either side may be empty.
        now_ms: the present moment, in milliseconds since 1970.

    Raises:
        UsageError: no cut gives two valid sides.
    """
    if text.startswith("e@"):
        return OffsetRange(None, _parse_position(text[1:], now_ms=now_ms, base=None))
    if text.startswith("s@"):
        text = text[1:]
    cuts = [len(text), *(i for i in range(len(text) - 1, -1, -1) if text[i] == ":")]
    failures = []
    for cut in cuts:
        try:
            start = _parse_start(text[:cut], is_alone=cut >= len(text) - 1, now_ms=now_ms)
        except UsageError as error:
            failures.append(error)
            continue
        if not text[cut + 1 :]:
            return OffsetRange(start, None)
        return OffsetRange(start, _parse_position(text[cut + 1 :], now_ms=now_ms, base=start))
    # A time has colons of its own, so there the whole text is what is wrong; else the first part.
    raise failures[0] if text.startswith("@") else failures[-1]


def _parse_start(text: str, *, is_alone: bool, now_ms: int) -> Position:
    if not text and is_alone:
        raise UsageError("not an offset: it is empty", hints=[_HINT])
    return _parse_position(text, now_ms=now_ms, base=None) if text else Mark.EARLIEST


def _parse_position(text: str, *, now_ms: int, base: Position | None) -> Position:
    if text in _WORDS:
        return _WORDS[text]
    if text.startswith("@"):
        base_ms = base.time_ms if isinstance(base, ByTime) else None
        return ByTime(parse_time_ms(text[1:], now_ms=now_ms, base_ms=base_ms))
    number = text.lstrip("+-~")
    sign = text[: len(text) - len(number)]
    if number.isascii() and number.isdigit() and len(sign) < 2:
        if sign in ("", "~"):
            return Absolute(int(number), nearest=sign == "~")
        return ByMessages(int(number), from_end=sign == "-")
    if sign in ("+", "-") and number[:1].isdigit():
        return ByBytes(_parse_bytes(number, text), from_end=sign == "-")
    raise UsageError(f"not an offset: '{text}'{_suggestion(text)}", hints=[_HINT])


def _parse_bytes(number: str, text: str) -> int:
    try:
        return parse_size(number)
    except UsageError as error:
        raise UsageError(f"not an offset: '{text}'", hints=[_HINT]) from error


def _suggestion(text: str) -> str:
    guess = did_you_mean(text, [*_WORDS, "follow", *(f"@{word}" for word in WORDS)])
    if "'follow'" in guess:
        return " (did you mean 'follow'? that is an option: --follow)"
    return guess


class FileOffset(NamedTuple):
    """One line of an offset file."""

    topic: str
    pattern: PartitionPattern
    offset: int


def parse_offset_file(lines: Iterable[str], name: str) -> list[FileOffset]:
    """Return the offsets of a file.

    Args:
        lines: each `TOPIC PARTITION OFFSET`, or a JSON object with `topic`, `partition` (and
            `broker`) and `offset`; empty lines and those that start with `#` are skipped.
        name: what the file is called in errors.

    Raises:
        UsageError: a line is malformed; the text names its number.
    """
    offsets = []
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        try:
            offsets.append(_parse_json_line(text) if text[0] == "{" else _parse_words(text))
        except (ValueError, KeyError, TypeError, UsageError) as error:
            raise UsageError(
                f"line {number} of '{name}' is not an offset: '{text[:80]}'",
                hints=["valid: TOPIC PARTITION OFFSET, or a JSON object with these names"],
            ) from error
    return offsets


def _parse_words(text: str) -> FileOffset:
    topic, partition, offset = text.split()
    return FileOffset(topic, parse_partition(partition), int(offset))


def _parse_json_line(text: str) -> FileOffset:
    fields = json.loads(text)
    partition = str(fields["partition"])
    if "broker" in fields:
        partition = f"{int(fields['broker'])}-{partition}"
    return FileOffset(str(fields["topic"]), parse_partition(partition), int(fields["offset"]))
