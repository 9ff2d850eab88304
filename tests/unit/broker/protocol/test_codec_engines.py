"""The two engines of the codec held against each other, function by function."""

from __future__ import annotations

import random
from collections.abc import Callable
from operator import methodcaller
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import CrcCheck
from broker.protocol.compression import Codec, codec_of, compress
from broker.protocol.primitives import Buffer
from broker.topic import TopicPartition
from tests.strategies import ANY_SETS, APPEND_FRAMES, PAYLOADS, WRAPPER_CODECS, magic1_bytes
from tests.support.codec_engines import Engine, assert_alike, load_engine

APPENDS = st.lists(APPEND_FRAMES, max_size=8).map(b"".join)
OFFSETS = st.integers(-(2**63), 2**63 - 1)
KINDS = st.sampled_from((bytes, bytearray, memoryview))
DELIMITERS = st.sampled_from((b"\n", b"aa", b"aab", b"\r\n", b"\x00", b""))
TEXTS = st.lists(
    st.sampled_from((b"a", b"aa", b"b", b"\n", b"\r\n", b"\x00")) | st.binary(max_size=80),
    max_size=12,
).map(b"".join)
LIMITS = st.integers(-1, 200)
EVEN_LARGE_SETS = ANY_SETS | st.builds(
    lambda data, count, tail: data * count + tail, ANY_SETS, st.integers(1, 3000), ANY_SETS
)
"""Also sets so large that a engine lets go of the interpreter's lock."""


T = TopicPartition("t", 0, 0)


def fields_of(found: tuple[list[Any], int, Any]) -> tuple[list[tuple[Any, ...]], int, Any]:
    """Return what `decode_messages` has found with the fields of each message."""
    messages, valid_bytes, fault = found
    fields = ("topic", "partition", "offset", "next_offset", "value", "inner")
    return [tuple(getattr(one, name) for name in fields) for one in messages], valid_bytes, fault


@pytest.fixture(scope="module")
def engines() -> tuple[Engine, Engine]:
    return load_engine("python"), load_engine("compiled")


@given(EVEN_LARGE_SETS, KINDS, OFFSETS)
def test_engines_when_given_any_bytes_then_find_the_same_in_them(
    engines: tuple[Engine, Engine], data: bytes, kind: Callable[[bytes], Buffer], base_offset: int
) -> None:
    buffer = kind(data)

    assert_alike(engines, lambda engine: engine.scan(buffer))
    assert_alike(engines, lambda engine: engine.boundaries(buffer))
    assert_alike(engines, lambda engine: engine.decode(buffer, base_offset))
    assert_alike(
        engines, lambda engine: fields_of(engine.decode_messages(buffer, base_offset, "t", T))
    )


CANDIDATES = st.sampled_from(
    (b"\0\0\0\1", b"\0\0\2\0\1", b"\0\xff\xff\0\0", b"\0\0\0\6\0", bytes(70), b"\0\1" * 300)
)
"""Bytes that look like entries, also inside each other."""


@given(
    st.lists(CANDIDATES | ANY_SETS | PAYLOADS.map(magic1_bytes), max_size=12).map(b"".join),
    KINDS,
    st.integers(0, 2000),
    st.integers(-1, 2000),
)
def test_engines_when_given_any_bytes_then_find_the_same_entry_in_them(
    engines: tuple[Engine, Engine],
    data: bytes,
    kind: Callable[[bytes], Buffer],
    stop: int,
    more: int,
) -> None:
    buffer = kind(data)
    for most in (stop, len(data)):
        assert_alike(engines, methodcaller("find_entry", buffer, most, len(data) + more))


def test_find_entry_when_one_is_large_then_its_crc_is_that_of_its_parts(
    engines: tuple[Engine, Engine],
) -> None:
    for size in (511, 512, 513, 70_000, 3_000_001):
        entry = magic1_bytes(random.Random(size).randbytes(size))
        data = b"some text" * 20 + entry + b"more"
        bad = data[:-100] + bytes((data[-100] ^ 1,)) + data[-99:]
        for engine in engines:
            assert engine.find_entry(data, len(data), len(data)) == (180, True)
            assert engine.find_entry(bad, 181, len(data)) == (181, False)


@given(APPENDS | ANY_SETS, KINDS, *[st.integers(0, 300)] * 2, st.integers(0, 9))
def test_engines_when_given_any_bytes_then_find_the_same_requests_in_them(
    engines: tuple[Engine, Engine],
    data: bytes,
    kind: Callable[[bytes], Buffer],
    least_bytes: int,
    most_bytes: int,
    most_count: int,
) -> None:
    buffer = kind(data)
    assert_alike(
        engines, lambda engine: engine.boundaries(buffer, least_bytes, most_bytes, most_count)
    )
    bounds = engines[0].boundaries(buffer, 1)
    for first in range(-1, len(bounds)):
        assert_alike(engines, methodcaller("single_appends", buffer, bounds, first))


def test_publishes_when_each_has_not_one_set_then_no_run_of_them_is_sought(
    engines: tuple[Engine, Engine],
) -> None:
    one = b"\0A\0\0" + bytes(4) + b"\0\1c" + bytes(6) + b"\0\0\0\1" + b"\0\1t" + bytes(12)
    count_at = one.index(b"\0\0\0\1\0\1t")
    for count, is_found in ((0, False), (1, True), (2, False)):
        body = one[:count_at] + count.to_bytes(4) + one[count_at + 4 :]
        frames = (len(body).to_bytes(4) + body) * 3
        bounds = engines[0].boundaries(frames, 1)
        for engine in engines:
            found = engine.single_appends(frames, bounds, 0)
            assert (found is not None and found[0] == 3) == is_found


@given(
    st.binary(min_size=26, max_size=40),
    st.lists(st.tuples(*[st.binary(min_size=4, max_size=4)] * 2), max_size=4),
    st.binary(max_size=1),
    OFFSETS,
)
def test_engines_when_given_publishes_then_respond_the_same(
    engines: tuple[Engine, Engine],
    template: bytes,
    publishes: list[tuple[bytes, bytes]],
    rest: bytes,
    base_offset: int,
) -> None:
    ids = b"".join(one for one, _ in publishes) + rest
    sizes = b"".join(size for _, size in publishes) + rest
    for given_sizes in (sizes, sizes[4:]):
        call = methodcaller("publish_responses", template, ids, given_sizes, base_offset)
        assert_alike(engines, call)


@given(EVEN_LARGE_SETS, DELIMITERS, LIMITS)
def test_engines_when_given_any_bytes_then_write_the_same_text(
    engines: tuple[Engine, Engine], data: bytes, delimiter: bytes, limit: int
) -> None:
    assert_alike(engines, lambda engine: engine.decode_delimited(data, delimiter, limit))


@given(EVEN_LARGE_SETS, OFFSETS, st.sampled_from(CrcCheck), st.just(2**31 - 1) | LIMITS)
def test_engines_when_given_any_bytes_then_make_the_same_columns(
    engines: tuple[Engine, Engine],
    data: bytes,
    base_offset: int,
    crc_check: CrcCheck,
    max_value_bytes: int,
) -> None:
    assert_alike(
        engines,
        lambda engine: engine.decode_columns(
            data, base_offset, crc_check=crc_check, max_value_bytes=max_value_bytes
        ),
    )


@given(TEXTS, KINDS, DELIMITERS, LIMITS, LIMITS, st.none() | LIMITS, st.sampled_from((1, 5000)))
def test_engines_when_given_any_text_then_make_the_same_set_and_batches(
    engines: tuple[Engine, Engine],
    text: bytes,
    kind: Callable[[bytes], Buffer],
    delimiter: bytes,
    max_payload_bytes: int,
    batch_count: int,
    batch_bytes: int | None,
    repeat: int,
) -> None:
    buffer = kind(text * repeat)

    assert_alike(
        engines,
        lambda engine: engine.encode_delimited(
            buffer,
            delimiter,
            max_payload_bytes=max_payload_bytes,
            batch_count=batch_count,
            batch_bytes=batch_bytes,
        ),
    )


@given(st.lists(st.tuples(PAYLOADS, KINDS), max_size=6), st.sampled_from((1, 2000)))
def test_engines_when_given_payloads_then_make_the_same_set(
    engines: tuple[Engine, Engine],
    found: list[tuple[bytes, Callable[[bytes], Buffer]]],
    repeat: int,
) -> None:
    payloads = [kind(payload) for payload, kind in found] * repeat

    assert_alike(engines, lambda engine: engine.encode(payloads))
    assert_alike(engines, lambda engine: engine.encode(iter(payloads)))


@given(st.sampled_from(WRAPPER_CODECS), ANY_SETS)
def test_engines_when_given_what_a_wrapper_holds_then_unfold_it_alike(
    engines: tuple[Engine, Engine], codec: Codec, inner: bytes
) -> None:
    payload = compress(codec, inner)

    assert_alike(engines, lambda engine: engine.unfold(codec, payload))
    assert_alike(engines, lambda engine: engine.count_unfolded(codec, payload))
    assert_alike(
        engines, lambda engine: engine.count_unfolded(codec, payload, max_bytes=len(inner) // 2)
    )


@pytest.mark.parametrize("attributes", range(256))
def test_engines_when_given_any_attributes_then_see_the_same_codec(
    engines: tuple[Engine, Engine], attributes: int
) -> None:
    entry = magic1_bytes(b"payload", attributes)

    assert_alike(engines, lambda engine: engine.scan(entry))
    assert [bool(engine.scan(entry).wrappers) for engine in engines] == [
        bool(codec_of(attributes))
    ] * 2


@pytest.mark.parametrize("bad", ["text", 5, None, [1]])
def test_compiled_engine_when_given_no_buffer_then_raises_type_error(
    engines: tuple[Engine, Engine], bad: Any
) -> None:
    compiled = engines[1]
    calls: list[Callable[[Any], object]] = [
        compiled.scan,
        compiled.boundaries,
        lambda data: compiled.decode(data, 0),
        lambda data: compiled.decode_delimited(data, b"", 0),
        lambda data: compiled.decode_columns(data, 0),
        lambda data: compiled.encode([b"good", data]),
        lambda data: compiled.encode_delimited(data, b"x", max_payload_bytes=1, batch_count=1),
    ]

    for call in calls:
        with pytest.raises(TypeError):
            call(bad)
