"""The offset grammar."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ArgumentError
from broker.positions import (
    Absolute,
    ByBytes,
    ByMessages,
    ByTime,
    Mark,
    OffsetRange,
    Position,
    parse_offset_spec,
    parse_range,
)
from broker.topic import TopicPartition

NOW_MS = 1_763_640_000_000
MOMENT_MS = 1_763_625_600_000


def _range(text: str) -> OffsetRange:
    return parse_range(text, now_ms=NOW_MS)


@pytest.mark.parametrize("word", ["start", "beginning", "earliest", "oldest", "smallest"])
def test_range_given_a_word_for_the_start_is_the_earliest(word: str) -> None:
    assert _range(word) == OffsetRange(Mark.EARLIEST, None)


@pytest.mark.parametrize("word", ["end", "latest", "newest", "largest"])
def test_range_given_a_word_for_the_end_is_the_latest(word: str) -> None:
    assert _range(word) == OffsetRange(Mark.LATEST, None)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("stored", Mark.STORED),
        ("4096", Absolute(4096, nearest=False)),
        ("~4096", Absolute(4096, nearest=True)),
        ("-10", ByMessages(10, from_end=True)),
        ("+10", ByMessages(10, from_end=False)),
        ("-64KiB", ByBytes(65536, from_end=True)),
        ("+1MiB", ByBytes(1 << 20, from_end=False)),
        ("@-10m", ByTime(NOW_MS - 600_000)),
        ("@2025-11-20T08:00Z", ByTime(MOMENT_MS)),
        ("s@2025-11-20T08:00Z", ByTime(MOMENT_MS)),
    ],
)
def test_range_given_a_start_alone_has_no_end(text: str, position: Position) -> None:
    assert _range(text) == OffsetRange(position, None)


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        (":end", Mark.EARLIEST, Mark.LATEST),
        ("start:4096", Mark.EARLIEST, Absolute(4096, nearest=False)),
        ("10:20", Absolute(10, nearest=False), Absolute(20, nearest=False)),
        ("@2025-11-20T08:00Z:end", ByTime(MOMENT_MS), Mark.LATEST),
        ("@2025-11-20T08:00:00Z:@+1h", ByTime(MOMENT_MS), ByTime(MOMENT_MS + 3_600_000)),
        ("@-10m:@2025-11-20T08:00Z", ByTime(NOW_MS - 600_000), ByTime(MOMENT_MS)),
        ("-5:-2", ByMessages(5, from_end=True), ByMessages(2, from_end=True)),
    ],
)
def test_range_given_two_sides_is_cut_where_both_make_sense(
    text: str, start: Position, end: Position
) -> None:
    assert _range(text) == OffsetRange(start, end)


def test_range_given_an_e_sets_the_end_only() -> None:
    assert _range("e@2025-11-20T08:00Z") == OffsetRange(None, ByTime(MOMENT_MS))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yestrday", "not an offset: 'yestrday'; did you mean '@yesterday'?"),
        ("foo", "not an offset: 'foo' (did you mean 'follow'? that is an option: --follow)"),
        ("start:bar", "not an offset: 'bar'"),
        ("", "not an offset: it is empty"),
        (":", "not an offset: it is empty"),
        ("@+1h", "not a time: '+1h'"),
        ("+-3", "not an offset: '+-3'"),
        ("-64Kib3", "not an offset: '-64Kib3'"),
    ],
)
def test_range_given_anything_else_names_the_part_and_a_guess(text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        _range(text)
    assert str(caught.value).startswith(message)


@given(st.text(alphabet="@:+-~0123456789seTZend,.KiB=* ", max_size=24))
def test_spec_given_any_text_returns_or_raises_usage_error(text: str) -> None:
    try:
        parse_offset_spec([text], now_ms=NOW_MS)
    except ArgumentError as error:
        assert str(error)


def test_spec_given_partitions_uses_the_default_for_the_rest() -> None:
    spec = parse_offset_spec(["start", "0=33,2-1=end"], now_ms=NOW_MS)
    assert spec.range_for(TopicPartition("t", 0, 0)).start == Absolute(33, nearest=False)
    assert spec.range_for(TopicPartition("t", 2, 1)).start is Mark.LATEST
    assert spec.range_for(TopicPartition("t", 0, 1)).start is Mark.EARLIEST


def test_spec_given_start_and_end_apart_joins_them() -> None:
    spec = parse_offset_spec(["s@-10m", "e@now"], now_ms=NOW_MS)
    assert spec.default == OffsetRange(ByTime(NOW_MS - 600_000), ByTime(NOW_MS))
