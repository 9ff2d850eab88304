from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.patterns import PayloadTest
from broker.protocol.codec import Fault, boundaries, decode, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import FilteredEntries, filter_entries
from tests.strategies import (
    ANY_SETS,
    MESSAGE_SETS,
    BuiltSet,
    magic0_bytes,
    magic1_bytes,
    wrapper_bytes,
)

ROOMY = 1 << 30
YES, NO = magic1_bytes(b"yes"), magic1_bytes(b"no")


is_yes = PayloadTest(r"\Ayes\z")
nothing = PayloadTest("", invert=True)
everything = PayloadTest("")


def of_sizes(remainders: set[int]) -> PayloadTest:
    """Return the test of payloads whose size has one of these remainders by 16."""
    if not remainders:
        return nothing
    rest = "|".join(rf"\C{{{one}}}" for one in remainders)
    return PayloadTest(rf"\A(?:\C{{16}})*(?:{rest})\z")


def kept(buffer: bytes, spans: list[tuple[int, int]]) -> bytes:
    return b"".join(buffer[start:end] for start, end in spans)


@given(MESSAGE_SETS, st.sets(st.integers(0, 15)))
def test_set_when_filtered_then_keeps_entries_with_a_wanted_payload(
    built: BuiltSet, wanted_lengths: set[int]
) -> None:
    wanted = [
        entry
        for entry in built.entries
        if any(len(payload) % 16 in wanted_lengths for payload in entry.payloads)
    ]
    found = filter_entries(built.data, of_sizes(wanted_lengths), ROOMY)

    assert kept(built.data, found.spans) == b"".join(entry.data for entry in wanted)
    assert found.left_out_count == len(built.payloads) - sum(len(one.payloads) for one in wanted)
    assert (found.end, found.fault) == (len(built.data), Fault.NONE)


@given(MESSAGE_SETS, st.data())
def test_set_when_cut_anywhere_then_whole_entries_are_looked_at_and_the_rest_is_partial(
    built: BuiltSet, data: st.DataObject
) -> None:
    end = data.draw(st.integers(0, len(built.data)))
    whole = max(one for one in built.boundaries if one <= end)
    found = filter_entries(built.data[:end], nothing, ROOMY)

    assert found.end == whole
    assert found.fault is (Fault.NONE if whole == end else Fault.PARTIAL)


@given(ANY_SETS, st.integers(1, 80))
def test_buffer_when_it_is_anything_then_spans_are_in_order_and_apart(
    buffer: bytes, room_bytes: int
) -> None:
    found = filter_entries(buffer, nothing, room_bytes)

    edges = [edge for span in found.spans for edge in span]
    assert edges == sorted(set(edges))
    assert 0 <= found.end <= len(buffer)
    assert all(start >= 0 and end <= found.end for start, end in found.spans)


def gaps(found: FilteredEntries) -> list[tuple[int, int]]:
    """What was left out, as start and end."""
    edges = [0, *(edge for span in found.spans for edge in span), found.end]
    return list(zip(edges[::2], edges[1::2], strict=True))


@given(ANY_SETS)
def test_buffer_when_everything_is_unwanted_then_what_is_left_out_is_without_fault(
    buffer: bytes,
) -> None:
    found = filter_entries(buffer, nothing, ROOMY)

    decoded = [decode(buffer[start:end], 0) for start, end in gaps(found)]
    assert {one.fault for one in decoded} <= {Fault.NONE}
    assert sum(len(one.messages) for one in decoded) == found.left_out_count


@given(ANY_SETS)
def test_buffer_when_everything_is_wanted_then_all_of_it_but_a_partial_tail_is_kept(
    buffer: bytes,
) -> None:
    found = filter_entries(buffer, everything, ROOMY)

    # all that can be left out is a wrapper with nothing in it
    left_out = [decode(buffer[start:end], 0) for start, end in gaps(found)]
    assert all(one == ([], one.valid_bytes, Fault.NONE) for one in left_out)
    assert found.end == len(buffer) or found.fault is Fault.PARTIAL
    assert found.left_out_count == 0


@given(MESSAGE_SETS, st.integers(1, 200))
def test_set_when_room_is_little_then_each_part_ends_with_the_entry_that_reaches_it(
    built: BuiltSet, room_bytes: int
) -> None:
    whole = filter_entries(built.data, everything, ROOMY)
    parts = []
    position = 0
    while position < len(built.data):
        found = filter_entries(built.data[position:], everything, room_bytes)
        sizes = [end - start for start, end in found.spans]
        assert sum(sizes) >= room_bytes or position + found.end == len(built.data)
        last_bytes = boundaries(built.data[position:][: found.end])[-2:]
        assert sum(sizes) - (last_bytes[-1] - last_bytes[0]) < room_bytes
        parts.append(kept(built.data[position:], found.spans))
        position += found.end
        assert position in built.boundaries
    assert b"".join(parts) == kept(built.data, whole.spans)


def test_wanted_when_behind_unwanted_then_spans_tell_where_they_were() -> None:
    buffer = NO + YES + YES + NO + NO + YES + NO
    found = filter_entries(buffer, is_yes, ROOMY)

    assert kept(buffer, found.spans) == YES * 3
    assert found.spans[0] == (len(NO), len(NO) + 2 * len(YES))
    assert len(found.spans) == 2
    assert found.left_out_count == 4


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD])
def test_wrapper_when_one_inner_message_is_wanted_then_is_kept_whole(codec: Codec) -> None:
    mixed = wrapper_bytes(codec, encode([b"no", b"yes", b"no"]))
    unwanted = wrapper_bytes(codec, encode([b"no", b"no"]))
    found = filter_entries(unwanted + mixed + unwanted, is_yes, ROOMY)

    assert found.spans == [(len(unwanted), len(unwanted) + len(mixed))]
    assert found.left_out_count == 4


@pytest.mark.parametrize(
    "damaged",
    [
        pytest.param(magic1_bytes(b"bad")[:-1] + b"?", id="crc"),
        pytest.param(magic0_bytes(b"bad")[:-1] + b"?", id="crc of magic 0"),
        pytest.param(magic1_bytes(b"bad", 3), id="codec"),
        pytest.param(magic1_bytes(b"bad", 1), id="compressed"),
    ],
)
def test_entry_when_damaged_then_is_kept_and_those_behind_it_are_looked_at(damaged: bytes) -> None:
    found = filter_entries(NO + damaged + NO, is_yes, ROOMY)

    assert found.spans == [(len(NO), len(NO) + len(damaged))]
    assert (found.end, found.fault) == (2 * len(NO) + len(damaged), Fault.NONE)
    assert found.left_out_count == 2


@pytest.mark.parametrize(
    ("fault", "damaged"),
    [
        (Fault.SIZE, struct.pack(">i", -1) + b"x" * 50),
        (Fault.SIZE, struct.pack(">i", 4) + b"x" * 50),
        (Fault.MAGIC, struct.pack(">ib", 20, 9) + b"x" * 50),
    ],
)
def test_entry_when_none_can_follow_it_then_the_rest_is_kept_as_far_as_there_is_room(
    fault: Fault, damaged: bytes
) -> None:
    everything_behind = filter_entries(NO + damaged, is_yes, ROOMY)
    assert everything_behind.spans == [(len(NO), len(NO) + len(damaged))]
    assert everything_behind.fault is fault

    found = filter_entries(NO + damaged, is_yes, 20)
    assert (found.spans, found.end) == ([(len(NO), len(NO) + 20)], len(NO) + 20)

    stopped_before = filter_entries(YES + damaged, is_yes, len(YES))
    assert (stopped_before.spans, stopped_before.end) == ([(0, len(YES))], len(YES))
    assert stopped_before.fault is Fault.NONE
