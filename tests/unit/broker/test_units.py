"""Durations, sizes and rates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ArgumentError
from broker.units import (
    Rate,
    format_count,
    format_duration,
    format_rate,
    format_size,
    format_time,
    parse_duration_ms,
    parse_listen_address,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250ms", 250),
        ("10s", 10_000),
        ("5m", 300_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("1h30m", 5_400_000),
        ("1.5s", 1500),
        ("3", 3000),
        ("0", 0),
    ],
)
def test_parse_duration_given_a_valid_text_returns_milliseconds(
    text: str, milliseconds: int
) -> None:
    assert parse_duration_ms(text) == milliseconds


@pytest.mark.parametrize("text", ["", "s", "-1s", "10 s", "10x", "1h 30m", "1e3", "ms250", "1hms"])
def test_parse_duration_given_anything_else_shows_three_examples(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a duration") as caught:
        parse_duration_ms(text)
    assert caught.value.hints == ("valid: 250ms, 10s, 1h30m (a bare number is seconds)",)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("512", 512),
        ("64KiB", 65536),
        ("1MiB", 1 << 20),
        ("2GB", 2_000_000_000),
        ("3kB", 3000),
        ("1.5KiB", 1536),
    ],
)
def test_parse_size_given_a_valid_text_returns_bytes(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "-1", "1 K B", "1Ki", "10x", "0x10"])
def test_parse_size_given_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a size"):
        parse_size(text)


def test_parse_rate_given_messages_or_bytes_tells_them_apart() -> None:
    assert parse_rate("1000/s") == Rate(1000, in_bytes=False)
    assert parse_rate("250") == Rate(250, in_bytes=False)
    assert parse_rate("5MiB/s") == Rate(5 << 20, in_bytes=True)


@pytest.mark.parametrize("text", ["", "/s", "0", "5MiB", "fast", "-1/s"])
def test_parse_rate_given_anything_else_is_a_usage_error(text: str) -> None:
    with pytest.raises(ArgumentError, match="rate"):
        parse_rate(text)


@given(st.text())
def test_parsers_given_any_text_return_or_raise_usage_error(text: str) -> None:
    for parse in (parse_duration_ms, parse_size, parse_rate):
        try:
            parse(text)
        except ArgumentError:
            continue


def test_formatters_given_numbers_choose_a_readable_unit() -> None:
    assert [format_size(n) for n in (0, 1023, 1024, 102_000, 1 << 30)] == [
        "0 B",
        "1023 B",
        "1.0 KiB",
        "99.6 KiB",
        "1.0 GiB",
    ]
    assert [format_duration(n) for n in (0.021, 12.34, 307, 7500, 273_600)] == [
        "0.021s",
        "12.3s",
        "5m07s",
        "2h05m",
        "3d04h",
    ]
    assert [format_count(n) for n in (12, 47_100, 1_200_000)] == ["12", "47.1k", "1.2M"]
    rates = [format_rate(n) for n in (0, 0.42, 12.6, 3217.4, 1_200_000)]
    assert rates == ["0.0/s", "0.4/s", "13/s", "3.2 k/s", "1.2 M/s"]


@given(st.integers(min_value=0, max_value=1 << 49))
def test_format_size_given_any_size_never_shows_four_digits_above_bytes(size: int) -> None:
    number, unit = format_size(size).split()
    assert unit == "B" or float(number) < 1024


def test_format_time_given_milliseconds_is_rfc_3339_in_utc() -> None:
    assert format_time(1_763_625_600_250) == "2025-11-20T08:00:00.250Z"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("9308", "127.0.0.1", 9308),
        ("0", "127.0.0.1", 0),
        ("0.0.0.0:9308", "0.0.0.0", 9308),
        ("[::]:1", "::", 1),
    ],
)
def test_parse_listen_address_given_a_valid_text_returns_host_and_port(
    text: str, host: str, port: int
) -> None:
    assert parse_listen_address(text) == (host, port)


@pytest.mark.parametrize("text", ["", "localhost", ":9308", "a:b", "1.2.3.4:65536", "-1", "1 2"])
def test_parse_listen_address_given_anything_else_shows_examples(text: str) -> None:
    with pytest.raises(ArgumentError, match="not a port or an address") as raised:
        parse_listen_address(text)
    assert len(raised.value.hints) == 1
