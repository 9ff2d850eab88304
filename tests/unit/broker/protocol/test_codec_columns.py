"""Message sets as columns for Arrow."""

from __future__ import annotations

import itertools
import struct
from typing import Any, NamedTuple
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import Columns, CrcCheck, Fault
from broker.protocol.compression import Codec
from broker.protocol.message import COLUMN_NAMES
from broker.protocol.message_set import build_set
from tests.strategies import (
    ANY_SETS,
    MESSAGE_SETS,
    PLAIN_SETS,
    BuiltSet,
    magic0_bytes,
    magic1_bytes,
    wrapper_bytes,
)
from tests.support.codec_engines import Engine

GOOD = magic1_bytes(b"good")
BAD_CRC = GOOD[:-1] + b"D"
BAD_CODEC = magic1_bytes(b"good", 3)
BAD_WRAPPER = magic1_bytes(b"no gzip", Codec.GZIP)
BAD_MAGIC = GOOD[:4] + b"\x02" + GOOD[5:]


class Row(NamedTuple):
    """One message, read back from the columns."""

    offset: int
    next_offset: int
    inner: int
    attributes: int
    crc: int
    value: bytes


def rows_of(columns: Columns) -> list[Row]:
    """Take columns apart again, by the layout their docstring promises."""
    count = columns.message_count

    def numbers(letter: str, data: bytes, count: int = count) -> tuple[int, ...]:
        return struct.unpack(f"={count}{letter}", data)

    bounds = numbers("i", columns.value_offsets, count + 1)
    assert (bounds[0], bounds[-1]) == (0, len(columns.values))
    values = [columns.values[start:end] for start, end in itertools.pairwise(bounds)]
    return list(
        map(
            Row,
            numbers("q", columns.offsets),
            numbers("q", columns.next_offsets),
            numbers("i", columns.inners),
            numbers("B", columns.attributes),
            numbers("I", columns.crcs),
            values,
        )
    )


def marks_of(columns: Columns) -> list[bool]:
    assert len(columns.crc_ok) == (columns.message_count + 7) // 8
    bits = int.from_bytes(columns.crc_ok, "little")
    assert bits < 1 << columns.message_count
    return [bool(bits >> row & 1) for row in range(columns.message_count)]


@given(MESSAGE_SETS, st.integers(0, 2**62))
def test_set_when_made_columns_then_rows_are_its_messages(
    engine: Engine, built: BuiltSet, base_offset: int
) -> None:
    columns = engine.decode_columns(built.data, base_offset)

    rows = rows_of(columns)
    assert [(row.offset, row.next_offset, row.value) for row in rows] == built.messages(base_offset)
    assert all(row.crc == crc32(row.value) for row in rows)
    assert columns.crc_ok == b""


@given(ANY_SETS)
def test_buffer_when_it_is_anything_then_columns_are_what_decode_gives(
    engine: Engine, buffer: bytes
) -> None:
    columns = engine.decode_columns(buffer, 0)

    messages = [(row.offset, row.next_offset, row.value) for row in rows_of(columns)]
    assert (messages, columns.valid_bytes, columns.fault) == engine.decode(buffer, 0)


def test_rows_when_in_a_wrapper_then_are_numbered_and_have_its_attributes(engine: Engine) -> None:
    data = GOOD + build_set([b"a", b"bc"], Codec.SNAPPY) + magic0_bytes(b"old")

    rows = rows_of(engine.decode_columns(data, 0))

    assert [(row.inner, row.attributes, row.value) for row in rows] == [
        (0, 0, b"good"),
        (0, Codec.SNAPPY, b"a"),
        (1, Codec.SNAPPY, b"bc"),
        (0, 0, b"old"),
    ]


@pytest.mark.parametrize("bad", [BAD_CRC, BAD_CODEC, BAD_WRAPPER])
def test_entry_when_bad_and_marked_then_is_a_row_with_what_is_stored(
    engine: Engine, bad: bytes
) -> None:
    columns = engine.decode_columns(GOOD + bad + GOOD, 100, crc_check=CrcCheck.MARK)

    rows = rows_of(columns)
    assert marks_of(columns) == [True, False, True]
    assert rows[1].value == bad[10:]
    assert rows[1].crc == int.from_bytes(bad[6:10], "big")
    assert rows[1].attributes == bad[5]
    assert (rows[1].offset, rows[1].next_offset) == (100 + len(GOOD), 100 + len(GOOD + bad))
    assert (columns.valid_bytes, columns.fault) == (len(GOOD + bad + GOOD), Fault.NONE)


def test_wrapper_when_its_crc_is_bad_and_marked_then_it_is_not_opened(engine: Engine) -> None:
    wrapper = bytearray(wrapper_bytes(Codec.GZIP, GOOD + GOOD))
    wrapper[9] ^= 1

    columns = engine.decode_columns(wrapper, 0, crc_check=CrcCheck.MARK)

    assert [row.value for row in rows_of(columns)] == [bytes(wrapper[10:])]
    assert marks_of(columns) == [False]


@pytest.mark.parametrize(("bad", "fault"), [(BAD_MAGIC, Fault.MAGIC), (GOOD[:-1], Fault.PARTIAL)])
@pytest.mark.parametrize("crc_check", CrcCheck)
def test_entry_when_its_end_cannot_be_told_then_ends_the_walk_in_any_case(
    engine: Engine, bad: bytes, fault: Fault, crc_check: CrcCheck
) -> None:
    columns = engine.decode_columns(GOOD + bad, 0, crc_check=crc_check)

    assert (columns.message_count, columns.valid_bytes, columns.fault) == (1, len(GOOD), fault)


def test_crc_when_not_checked_then_bad_payloads_are_rows(engine: Engine) -> None:
    columns = engine.decode_columns(BAD_CRC + GOOD, 0, crc_check=CrcCheck.OFF)

    assert [row.value for row in rows_of(columns)] == [b"gooD", b"good"]
    assert columns.crc_ok == b""


@given(PLAIN_SETS, st.integers(0, 200))
def test_values_when_limited_then_reading_on_gives_the_same_rows(
    engine: Engine, built: BuiltSet, max_value_bytes: int
) -> None:
    rows: list[Row] = []
    position = 0
    while position < len(built.data):
        columns = engine.decode_columns(
            built.data[position:], position, max_value_bytes=max_value_bytes
        )
        assert columns.message_count == 1 or len(columns.values) <= max_value_bytes
        assert columns.valid_bytes
        rows += rows_of(columns)
        position += columns.valid_bytes

    assert rows == rows_of(engine.decode_columns(built.data, 0))


@given(ANY_SETS, st.sampled_from(CrcCheck), st.sets(st.sampled_from(COLUMN_NAMES)))
def test_columns_when_some_are_requested_then_the_others_are_empty_and_no_check_is_less(
    engine: Engine, buffer: bytes, crc_check: CrcCheck, names: set[str]
) -> None:
    whole = engine.decode_columns(buffer, 0, crc_check=crc_check)

    some = engine.decode_columns(buffer, 0, crc_check=crc_check, columns=names)

    others: dict[str, Any] = dict.fromkeys(set(COLUMN_NAMES) - names, b"")
    assert some == whole._replace(**others)


def test_limit_on_values_when_negative_then_is_refused(engine: Engine) -> None:
    with pytest.raises(ValueError, match="at least 0"):
        engine.decode_columns(GOOD, 0, max_value_bytes=-1)


def test_offsets_when_beyond_64_bits_then_are_refused(engine: Engine) -> None:
    last = 2**63 - 1 - len(GOOD)

    assert rows_of(engine.decode_columns(GOOD, last))[0].next_offset == 2**63 - 1
    assert engine.decode(GOOD, last).messages[0][1] == 2**63 - 1
    for decode in (engine.decode, engine.decode_columns):
        with pytest.raises(OverflowError, match="exceeds 64 bits"):
            decode(GOOD, last + 1)
