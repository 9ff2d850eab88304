from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.topic import TopicPartition
from pylogctl.cli.environment import UsageError
from pylogctl.format.envelope import MessageFacts
from pylogctl.format.filters import SampleFilter, grep, parse_sample, parse_where


def message(payload: bytes = b"", *, offset: int = 0, codec: str = "none") -> MessageFacts:
    next_offset = offset + 10 + len(payload)
    return MessageFacts(TopicPartition("t", 2, 1), offset, next_offset, 0, 0xAB, codec, 1, payload)


@pytest.mark.parametrize(
    ("text", "payload", "passes"),
    [
        ("size>1000", b"x" * 1001, True),
        ("size>1000", b"x" * 1000, False),
        ("offset<4096", b"", True),
        ("codec==none", b"", True),
        ("codec==gzip", b"", False),
        ("topic == t", b"", True),
        ("broker==2", b"", True),
        ("partition!=1", b"", False),
        ("crc==000000ab", b"", True),
        ('json:.level=="ERROR"', b'{"level": "ERROR"}', True),
        ("json:.level==ERROR", b'{"level": "ERROR"}', True),
        ("json:.a.b>=2", b'{"a": {"b": 2}}', True),
        ("json:.a.1==7", b'{"a": [5, 7]}', True),
        ("json:.a==[5, 7]", b'{"a": [5, 7]}', True),
        ('json:.a=={"b": 1.0}', b'{"a": {"b": 1}}', True),
        ("json:.a==1", b"not json", False),
        ("json:.a!=1", b"not json", True),
        ("json:.a<1", b'{"a": "text"}', False),
    ],
)
def test_where_when_compared_says_whether_the_message_passes(
    text: str, payload: bytes, passes: bool
) -> None:
    assert parse_where(text)(message(payload)) is passes


@pytest.mark.parametrize("text", ["size", "size>", ">3", "", "size ~ 3", "json:>3"])
def test_where_when_it_is_no_comparison_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a comparison"):
        parse_where(text)


def test_where_when_the_field_is_misspelt_suggests_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'offset'"):
        parse_where("ofset>3")


@given(st.text())
def test_where_when_given_any_text_gives_a_filter_or_a_usage_error(text: str) -> None:
    try:
        passes = parse_where(text)
    except UsageError:
        return
    assert passes(message(b"{}")) in (True, False)


def test_grep_when_inverted_passes_what_does_not_match() -> None:
    assert grep("oom", ignore_case=True, invert=False)(message(b"OOM killer"))
    assert not grep("oom", ignore_case=True, invert=True)(message(b"OOM killer"))


def test_grep_when_the_pattern_is_malformed_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match=re.escape("'('")):
        grep("(", ignore_case=False, invert=False)


@given(st.integers(0, 20), st.integers(1, 10), st.integers(0, 60))
def test_sample_when_counted_takes_its_share_after_the_skipped(
    skip: int, of: int, total: int
) -> None:
    sample = SampleFilter(skip=skip, take=1, of=of)
    taken = [place for place in range(total) if sample(message())]
    assert taken == list(range(skip, total, of))


@pytest.mark.parametrize("text", ["1", "a/b", "3/2", "1/0", "-1/2", "/"])
def test_sample_when_it_is_no_fraction_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="not a sample"):
        parse_sample(text)
