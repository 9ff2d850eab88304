from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

import pytest

from broker.errors import ProtocolError
from broker.protocol import layouts
from broker.protocol.primitives import Reader
from broker.protocol.requests import MAX_ITEMS


class Colour(IntEnum):
    RED = 1
    BLUE = 4


class Shape(NamedTuple):
    name: str
    width: int
    height: int
    is_filled: bool
    colour: Colour | None = None


SHAPE = layouts.record(
    Shape,
    width=layouts.INT32,
    height=layouts.INT64,
    name=layouts.STRING,
    is_filled=layouts.BOOL,
    colour=layouts.optional(layouts.enum(Colour, layouts.INT8, "colour")),
)
BOX = Shape("box", 3, 1 << 40, is_filled=True, colour=Colour.BLUE)
BOX_BYTES = struct.pack(">iqh3s?hb", 3, 1 << 40, 3, b"box", True, 1, 4)


def test_record_when_encoded_then_fields_follow_each_other_in_the_order_of_its_layout() -> None:
    assert SHAPE.encode(BOX) == BOX_BYTES
    assert SHAPE.decode(Reader(BOX_BYTES)) == BOX


def test_optional_when_missing_then_only_its_flag_is_there() -> None:
    without = BOX._replace(colour=None)
    assert SHAPE.encode(without) == BOX_BYTES[:-3] + b"\0\0"
    assert SHAPE.decode(Reader(BOX_BYTES[:-3] + b"\0\0")) == without


def test_enum_when_its_number_means_nothing_then_protocol_error_says_so() -> None:
    with pytest.raises(ProtocolError, match=r"^2 is no colour$"):
        SHAPE.decode(Reader(BOX_BYTES[:-1] + b"\2"))


def test_record_when_cut_anywhere_then_raises_protocol_error() -> None:
    for end in range(len(BOX_BYTES)):
        with pytest.raises(ProtocolError):
            SHAPE.decode(Reader(BOX_BYTES[:end]))


def test_array_when_more_items_are_promised_than_can_follow_then_none_is_read() -> None:
    assert layouts.array(SHAPE).decode(Reader(struct.pack(">i", 1) + BOX_BYTES)) == (BOX,)
    for count in (2, -1, 1 << 30):
        with pytest.raises(ProtocolError):
            layouts.array(SHAPE).decode(Reader(struct.pack(">i", count) + BOX_BYTES))


def test_array_when_in_a_request_then_has_a_limit_that_a_response_has_not() -> None:
    body = struct.pack(">i", MAX_ITEMS + 1) + bytes(4 * (MAX_ITEMS + 1))
    with pytest.raises(ProtocolError, match="too many for one request"):
        layouts.array(layouts.INT32).decode(Reader(body))
    assert len(layouts.response_list(layouts.INT32).decode(Reader(body))) == MAX_ITEMS + 1
