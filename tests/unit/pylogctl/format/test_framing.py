"""Framings: what `consume` writes, `produce` reads back."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pylogctl.cli.environment import CliError, ExitStatus, UsageError
from pylogctl.format.framing import (
    NO_FRAMING,
    Framing,
    FramingChoice,
    LengthCode,
    Shape,
    choose_framing,
    encode_length,
    write_message,
)
from pylogctl.format.framing_reader import read_messages

LIMIT = 1 << 20
SAFE_FOR_ALL = [
    *(Framing(Shape.LENGTH, length_code=code) for code in LengthCode),
    Framing(Shape.HEX),
    Framing(Shape.BASE64),
]


class Dribble:
    """A stream that returns its bytes in pieces of the given sizes, over and over."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self._stream = io.BytesIO(data)
        self._sizes = sizes or [1]
        self._turn = 0

    def read1(self, size: int, /) -> bytes:
        self._turn += 1
        return self._stream.read(self._sizes[self._turn % len(self._sizes)])


def _read(data: bytes, framing: Framing, sizes: list[int] | None = None) -> list[bytes]:
    stream = Dribble(data, sizes or [1 << 16])
    return [one.payload for one in read_messages(stream, framing, max_message_bytes=LIMIT)]


@given(
    st.sampled_from(SAFE_FOR_ALL),
    st.lists(st.binary(max_size=300), max_size=20),
    st.lists(st.integers(1, 50), max_size=5),
)
def test_framing_safe_for_all_given_any_bytes_gives_them_back(
    framing: Framing, payloads: list[bytes], sizes: list[int]
) -> None:
    data = b"".join(write_message(payload, framing) for payload in payloads)
    assert _read(data, framing, sizes) == payloads


@given(
    st.binary(min_size=1, max_size=4),
    st.lists(st.binary(max_size=30), max_size=20),
    st.lists(st.integers(1, 7), max_size=5),
)
def test_delimited_given_payloads_free_of_the_delimiter_gives_them_back(
    delimiter: bytes, payloads: list[bytes], sizes: list[int]
) -> None:
    free = [p for p in payloads if (p + delimiter).find(delimiter) == len(p)]
    framing = Framing(Shape.DELIMITED, delimiter=delimiter)
    data = b"".join(write_message(payload, framing) for payload in free)
    assert _read(data, framing, sizes) == free


@given(st.binary(min_size=1, max_size=3), st.binary(max_size=200), st.lists(st.integers(1, 9)))
def test_delimited_given_any_input_splits_as_if_read_at_once(
    delimiter: bytes, data: bytes, sizes: list[int]
) -> None:
    expected = data.split(delimiter)
    if not expected[-1]:
        expected.pop()
    assert _read(data, Framing(Shape.DELIMITED, delimiter=delimiter), sizes) == expected


def test_delimited_given_a_last_line_without_newline_keeps_it() -> None:
    assert _read(b"a\n\r\nb\r\n\nc", Framing(Shape.DELIMITED)) == [b"a", b"\r", b"b\r", b"", b"c"]


def test_whole_given_any_input_is_one_message() -> None:
    assert _read(b"a\nb", Framing(Shape.WHOLE)) == [b"a\nb"]
    assert _read(b"", Framing(Shape.WHOLE)) == [b""]


def test_hex_given_blanks_and_capitals_reads_them() -> None:
    assert _read(b" 00 Ff\t\r\n\n", Framing(Shape.HEX)) == [b"\x00\xff", b""]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"00\n00\n00\nzz\n", "line 4: 'z' is not a hex digit"),
        (b"0\n", "line 1: 1 digits do not make whole bytes"),
    ],
)
def test_hex_given_other_characters_names_the_line(data: bytes, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        _read(data, Framing(Shape.HEX))
    assert caught.value.message == message


def test_base64_given_other_characters_names_the_line() -> None:
    with pytest.raises(UsageError, match=r"line 2: '\$' is not a base64 digit"):
        _read(b"YQ==\n$$$$\n", Framing(Shape.BASE64))


def test_length_given_a_cut_input_names_the_message() -> None:
    framing = Framing(Shape.LENGTH)
    data = write_message(b"abc", framing) + write_message(b"defg", framing)[:-1]
    with pytest.raises(CliError, match="inside message 2, which starts at input byte 7") as caught:
        _read(data, framing)
    assert caught.value.status is ExitStatus.CORRUPT


@pytest.mark.parametrize("framing", [Framing(Shape.LENGTH), Framing(Shape.DELIMITED)])
def test_reader_given_a_message_above_the_limit_names_index_and_position(
    framing: Framing,
) -> None:
    data = write_message(b"abc", framing) + write_message(b"x" * 11, framing)
    position = len(write_message(b"abc", framing))
    with pytest.raises(UsageError) as caught:
        list(read_messages(io.BytesIO(data), framing, max_message_bytes=10))
    assert caught.value.message == (
        f"message 2 (input byte {position}) has 11 bytes; the limit is 10 (--max-size)"
    )


def test_reader_given_input_without_any_delimiter_stops_at_the_limit() -> None:
    with pytest.raises(UsageError, match="the limit is 10"):
        list(read_messages(Dribble(b"x" * 99, [5]), Framing(Shape.DELIMITED), max_message_bytes=10))


def test_delimited_when_lines_follow_one_that_is_too_long_then_each_is_a_message() -> None:
    told: list[int] = []
    messages = read_messages(
        Dribble(b"x" * 20 + b"\na\nb\n", [9, 18]),
        Framing(Shape.DELIMITED),
        max_message_bytes=10,
        refuse=lambda number, error: told.append(number),
    )
    assert [(one.number, one.position, one.payload) for one in messages] == [
        (2, 21, b"a"),
        (3, 23, b"b"),
    ]
    assert told == [1]


def test_encode_length_given_each_code_is_written_as_named() -> None:
    assert encode_length(1, LengthCode.U32BE) == b"\0\0\0\1"
    assert encode_length(1, LengthCode.U32LE) == b"\1\0\0\0"
    assert encode_length(1, LengthCode.U64BE) == b"\0\0\0\0\0\0\0\1"
    assert encode_length(300, LengthCode.VARINT) == b"\xac\x02"


def test_choose_framing_given_two_options_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="only one framing is possible: --null and --hex"):
        choose_framing(FramingChoice(null=True, hex_lines=True))


@pytest.mark.parametrize(
    ("framing", "expected"),
    [
        (choose_framing(NO_FRAMING), Framing(Shape.DELIMITED, b"\n")),
        (choose_framing(FramingChoice(delimiter=r"\r\n")), Framing(Shape.DELIMITED, b"\r\n")),
        (choose_framing(FramingChoice(delimiter="")), Framing(Shape.WHOLE, b"")),
        (choose_framing(FramingChoice(null=True)), Framing(Shape.DELIMITED, b"\0")),
        (
            choose_framing(FramingChoice(length_prefixed="varint")),
            Framing(Shape.LENGTH, length_code=LengthCode.VARINT),
        ),
    ],
)
def test_choose_framing_given_one_option_returns_its_framing(
    framing: Framing, expected: Framing
) -> None:
    assert framing == expected
