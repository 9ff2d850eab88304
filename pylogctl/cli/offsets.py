"""The grammar of `--offset` and of times: text to values; a malformed text is a UsageError.

`SPEC = START [":" END]`, or `P=SPEC,..` by partition, or `file:PATH`. The offsets that a value
means on a partition are resolved by `pylogctl.cli.offset_resolution`. `now_ms` is the present
time in milliseconds since 1970.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from broker.topic import TopicPartition
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import UsageError, did_you_mean
from pylogctl.cli.selection import PartitionPattern, parse_partition
from pylogctl.cli.units import parse_duration_ms, parse_size

WORDS = ("now", "today", "yesterday")
HINT = "valid times: now, -10m, 2026-11-20, 2026-11-20T08:00, 08:15, today, 1763625600 (seconds)"
_DIGITS_PER_UNIT_MS = {10: 1000.0, 13: 1.0, 16: 0.001}
_CLOCK = re.compile(r"(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?")
_MOMENT = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,6})?)?))?"
                     r"(Z|[+-]\d{2}:\d{2})?")  # fmt: skip


def parse_time_ms(text: str, *, now_ms: int, base_ms: int | None = None) -> int:
    """Return a time in milliseconds since 1970, UTC.

    `text` is `now`, `-10m`, `2026-11-20`, `2026-11-20T08:00:05.250Z`, `today`, `yesterday`,
    `08:15`, or seconds (10 digits), milliseconds (13) or microseconds (16) since 1970; local time
    without a zone. `base_ms` is the base of `+1h`, None where that is not allowed.
    """
    try:
        moment_ms = _parse(text, now_ms, base_ms)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"not a time: '{text}' ({error})", hints=[HINT]) from error
    if moment_ms is None:
        raise UsageError(f"not a time: '{text}'", hints=[HINT])
    return moment_ms


def _parse(text: str, now_ms: int, base_ms: int | None) -> int | None:
    if text == "now":
        return now_ms
    if text.isascii() and text.isdigit():
        return _parse_digits(text)
    if text.startswith("-"):
        return now_ms - parse_duration_ms(text[1:])
    if text.startswith("+"):
        return None if base_ms is None else base_ms + parse_duration_ms(text[1:])
    today = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone().date()
    if text in ("today", "yesterday"):
        return _local_ms(today - timedelta(days=text == "yesterday"), time())
    if match := _CLOCK.fullmatch(text):
        return _local_ms(today, _clock_time(*match.groups()))
    return _parse_moment(text)


def _parse_digits(text: str) -> int:
    factor = _DIGITS_PER_UNIT_MS.get(len(text))
    if factor is None:
        raise ValueError(
            f"{len(text)} digits; 10 are seconds, 13 milliseconds, 16 microseconds since 1970"
        )
    return int(int(text) * factor)


def _parse_moment(text: str) -> int | None:
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    day, clock, zone = match.groups()
    clock_match = _CLOCK.fullmatch(clock or "00:00")
    if clock_match is None:
        return None
    at = _clock_time(*clock_match.groups())
    if zone is None:
        return _local_ms(date.fromisoformat(day), at)
    moment = datetime.combine(date.fromisoformat(day), at)
    offset = datetime.fromisoformat(f"2000-01-01T00:00{'+00:00' if zone == 'Z' else zone}")
    return _epoch_ms(moment.replace(tzinfo=offset.tzinfo))


def _clock_time(hour: str, minute: str, second: str | None, fraction: str | None) -> time:
    return time(int(hour), int(minute), int(second or 0), int((fraction or "").ljust(6, "0")))


def _local_ms(day: date, at: time) -> int:
    return _epoch_ms(datetime.combine(day, at).astimezone())


def _epoch_ms(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


class Mark(Enum):
    """An offset with a name: the first of the log, its end, or the committed one of the group."""

    EARLIEST = "start"
    LATEST = "end"
    STORED = "stored"


@dataclass(frozen=True, slots=True)
class Absolute:
    """A byte offset on a message boundary; with `nearest` moved to the next one."""

    position: int
    nearest: bool


@dataclass(frozen=True, slots=True)
class ByMessages:
    """A number of messages before the end, or after the start."""

    count: int
    from_end: bool


@dataclass(frozen=True, slots=True)
class ByBytes:
    """A number of bytes before the end, or after the start, moved to the next message boundary."""

    size: int
    from_end: bool


@dataclass(frozen=True, slots=True)
class ByTime:
    """A time in milliseconds since 1970; resolved to the start of a segment."""

    time_ms: int


Position = Mark | Absolute | ByMessages | ByBytes | ByTime


class OffsetRange(NamedTuple):
    """The start, and the exclusive end; None for a side that is not given."""

    start: Position | None
    end: Position | None


NO_RANGE = OffsetRange(None, None)


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """All `--offset` values: the default range, ranges by partition, an offset file."""

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
    """Parse `--offset` values; a later one overrides the sides that it sets."""
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
    """Parse `[START][:END]`; of several colons the last that leaves a valid START separates."""
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
    # A time has colons of its own: then the error names the whole text, else its first part.
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
        except (ValueError, KeyError, TypeError, UsageError) as error:
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


@dataclass(frozen=True, slots=True)
class Span:
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
    env: Environment,
    offsets: Sequence[str],
    *,
    from_beginning: bool,
    exit_at_end: bool,
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
