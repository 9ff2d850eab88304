from __future__ import annotations

import importlib
import random
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.checksum import crc32, crc32_crcmod
from broker.protocol.primitives import Buffer
from tests.support.codec_engines import ENGINE_NAMES, load_engine

ENGINES: list[Callable[[Buffer], int]] = [crc32, crc32_crcmod]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xCBF43926),  # the check value that catalogues give for CRC-32
        (b"hello", 0x3610A686),
        (b"ale", 1120192889),  # this and the next stand in the tests of 0.7's Ruby client
        (b"alejandro", 2865078607),
    ],
)
def test_crc_when_data_is_known_then_is_the_published_value(
    engine: Callable[[Buffer], int], data: bytes, crc: int
) -> None:
    assert engine(data) == crc


@given(st.binary(max_size=300))
def test_engines_when_data_is_random_then_agree(data: bytes) -> None:
    assert crc32(data) == crc32_crcmod(data)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_engine_when_given_any_buffer_then_reads_it(
    engine: Callable[[Buffer], int], kind: Callable[[bytes], Buffer]
) -> None:
    assert engine(kind(b"hello")) == 0x3610A686


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("crc32", zlib.crc32),
        ("crc32_by_slicing", zlib.crc32),
        ("crc32c", load_engine("python").crc32c),
        ("crc32c_by_slicing", load_engine("python").crc32c),
    ],
)
def test_compiled_engine_when_data_has_any_length_and_place_then_agrees_with_another(
    name: str, other: Callable[[Buffer, int], int]
) -> None:
    load_engine("compiled")
    engine = getattr(importlib.import_module("broker.protocol._codec"), name)
    data = random.Random(0).randbytes(1 << 17)
    view = memoryview(data)

    for size in (*range(400), 4096, 70_000, 1 << 17):
        start = size % 16 if size < 70_000 else 0
        piece = view[start : start + size]
        assert engine(piece) == other(piece, 0)
        before = size * 0x9E3779B1 & 0xFFFFFFFF
        assert engine(piece, before) == other(piece, before)


def test_crc_when_data_comes_in_pieces_then_is_that_of_the_whole() -> None:
    assert crc32(b"lo", crc32(b"hel")) == crc32(b"hello")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_crc32c_when_data_is_known_then_is_the_published_value(
    kind: Callable[[bytes], Buffer],
) -> None:
    for name in ENGINE_NAMES:
        engine = load_engine(name)
        assert engine.crc32c(kind(b"123456789")) == 0xE3069283  # that of the catalogues
        assert engine.crc32c(kind(bytes(32))) == 0x8A9136AA  # RFC 3720, B.4
        assert engine.crc32c(kind(b"456789"), engine.crc32c(kind(b"123"))) == 0xE3069283
