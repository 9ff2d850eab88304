from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ProtocolError
from broker.protocol.primitives import (
    INT16,
    INT32,
    MAX_SHORT_STRING_BYTES,
    Reader,
    encode_short_string,
)

READS: dict[str, Callable[[Reader], object]] = {
    "int8": Reader.int8,
    "int16": Reader.int16,
    "int32": Reader.int32,
    "int64": Reader.int64,
    "short string": Reader.short_string,
    "count": lambda reader: reader.count(INT32, 4),
    "data": lambda reader: reader.data(5),
}


def test_reader_when_integers_follow_one_another_then_gives_them_big_endian_and_signed() -> None:
    reader = Reader(bytes.fromhex("ff fffe fffffffd fffffffffffffffc 01"))

    assert (reader.int8(), reader.int16(), reader.int32(), reader.int64()) == (-1, -2, -3, -4)
    assert reader.remaining == 1


@pytest.mark.parametrize("name", READS)
def test_reader_when_nothing_is_left_then_raises_protocol_error(name: str) -> None:
    with pytest.raises(ProtocolError):
        READS[name](Reader(b""))


@given(st.binary(max_size=24), st.lists(st.sampled_from(sorted(READS)), max_size=6))
def test_reader_when_bytes_are_random_then_only_protocol_error_is_raised(
    data: bytes, names: list[str]
) -> None:
    reader = Reader(data)
    try:
        for name in names:
            READS[name](reader)
    except ProtocolError:
        pass
    assert 0 <= reader.remaining <= len(data)


@pytest.mark.parametrize("size", [-1, 4])
def test_data_when_size_is_negative_or_too_large_then_raises_protocol_error(size: int) -> None:
    with pytest.raises(ProtocolError, match=f"{size} bytes are due at byte 0, 3 are left"):
        Reader(b"abc").data(size)


def test_data_when_read_then_is_a_view_on_the_buffer() -> None:
    buffer = bytearray(b"abc")

    view = Reader(buffer).data(2)
    buffer[0] = ord("x")

    assert bytes(view) == b"xb"


@pytest.mark.parametrize(
    ("count", "item_bytes", "rest"), [(-1, 1, 9), (3, 4, 11), (2**31 - 1, 1, 100)]
)
def test_count_when_items_cannot_follow_then_raises_protocol_error(
    count: int, item_bytes: int, rest: int
) -> None:
    with pytest.raises(ProtocolError, match=f"{count} items cannot follow in {rest} bytes"):
        Reader(INT32.pack(count) + bytes(rest)).count(INT32, item_bytes)


def test_count_when_items_just_fit_then_is_given() -> None:
    assert Reader(INT16.pack(3) + bytes(12)).count(INT16, 4) == 3


def test_short_string_when_null_then_raises_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="null"):
        Reader(INT16.pack(-1)).short_string()


@pytest.mark.parametrize("data", [b"\xff", b"\xc3", b"\xed\xa0\x80"])
def test_short_string_when_not_utf8_then_raises_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError, match="not UTF-8"):
        Reader(INT16.pack(len(data)) + data).short_string()


@given(st.text())
def test_short_string_when_encoded_and_decoded_then_is_the_same(text: str) -> None:
    assert Reader(encode_short_string(text)).short_string() == text


def test_short_string_when_encoded_then_length_counts_bytes() -> None:
    assert encode_short_string("café") == b"\x00\x05caf\xc3\xa9"


def test_short_string_when_at_the_longest_then_is_encoded() -> None:
    assert encode_short_string("x" * MAX_SHORT_STRING_BYTES)[:2] == b"\x7f\xff"


def test_short_string_when_too_long_then_raises_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="not 32768"):
        encode_short_string("é" * 16384)


def test_short_string_when_text_is_half_a_surrogate_pair_then_raises_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="surrogates"):
        encode_short_string("\ud800")
