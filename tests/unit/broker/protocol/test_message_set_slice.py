from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.protocol.codec import decode, scan
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set, iter_entries, slice_messages

BASE = 1000

entries = st.lists(
    st.tuples(
        st.sampled_from([Codec.NONE, Codec.GZIP, Codec.SNAPPY]),
        st.lists(st.binary(max_size=20), min_size=1, max_size=5),
    ),
    max_size=5,
)


def message_set_of(groups: list[tuple[Codec, list[bytes]]]) -> bytes:
    return b"".join(build_set(payloads, codec) for codec, payloads in groups)


def payloads_in(message_set: bytes | bytearray | memoryview) -> list[bytes]:
    return [payload for _, _, payload in decode(message_set, 0).messages]


@given(entries, st.none() | st.integers(0, 30))
def test_excerpt_when_limited_then_has_that_many_of_the_first_messages(
    groups: list[tuple[Codec, list[bytes]]], limit: int | None
) -> None:
    data = message_set_of(groups)

    cut = slice_messages(data, scan(data), BASE, limit=limit)

    assert payloads_in(cut.message_set) == payloads_in(data)[:limit]
    assert cut.message_count == len(payloads_in(data)[:limit])


@given(entries, st.integers(0, 30))
def test_excerpt_when_gone_on_with_then_no_whole_entry_is_lost_or_doubled(
    groups: list[tuple[Codec, list[bytes]]], limit: int
) -> None:
    data = message_set_of(groups)

    cut = slice_messages(data, scan(data), BASE, limit=limit)

    rest = payloads_in(data[cut.taken_bytes :])
    whole = payloads_in(data[: cut.taken_bytes])
    assert whole + rest == payloads_in(data)
    assert payloads_in(cut.message_set)[: len(whole)] == whole


def test_excerpt_when_nothing_is_cut_then_is_the_set_itself_without_a_copy() -> None:
    data = message_set_of([(Codec.GZIP, [b"a", b"b"]), (Codec.NONE, [b"c"])])

    cut = slice_messages(data, scan(data), BASE)

    assert isinstance(cut.message_set, memoryview)
    assert cut == (data, 3, len(data))


def test_excerpt_when_the_start_lies_in_a_compressed_set_then_the_rest_is_compressed_again() -> (
    None
):
    data = message_set_of([(Codec.GZIP, [b"a", b"b", b"c"]), (Codec.GZIP, [b"d"])])

    cut = slice_messages(data, scan(data), BASE, skip=2)

    assert payloads_in(cut.message_set) == [b"c", b"d"]
    assert [entry.codec for entry in iter_entries(cut.message_set, 0)] == [Codec.GZIP, Codec.GZIP]


def test_excerpt_when_the_end_lies_in_a_compressed_set_then_takes_its_first_messages() -> None:
    first = build_set([b"a", b"b", b"c"], Codec.SNAPPY)
    data = first + build_set([b"d", b"e"], Codec.SNAPPY) + build_set([b"f"])

    cut = slice_messages(data, scan(data), BASE, end=(BASE + len(first), 1))

    assert payloads_in(cut.message_set) == [b"a", b"b", b"c", b"d"]
    assert cut.taken_bytes == len(data)


def test_excerpt_when_the_end_is_an_entry_then_stops_before_it() -> None:
    first = build_set([b"a"])
    data = first + build_set([b"b"])

    cut = slice_messages(data, scan(data), BASE, skip=0, end=(BASE + len(first), 0), limit=9)

    assert payloads_in(cut.message_set) == [b"a"]


@pytest.mark.parametrize("tail", [b"\x00", build_set([b"x" * 9])[:-1], b"\xff" * 30])
def test_excerpt_when_the_set_ends_badly_then_takes_what_is_good(tail: bytes) -> None:
    good = build_set([b"a", b"b"])

    cut = slice_messages(good + tail, scan(good + tail), BASE)

    assert cut == (good, 2, len(good))
