from __future__ import annotations

import mmap
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidMessageError, MessageSizeTooLargeError
from broker.protocol.codec import ENTRY_OVERHEAD_BYTES, MAX_NESTING, Fault
from broker.protocol.compression import MAX_DECOMPRESSED_BYTES, Codec, compress
from broker.protocol.message import MAX_PAYLOAD_BYTES
from broker.protocol.primitives import Buffer
from tests.strategies import (
    ANY_SETS,
    ENTRIES,
    FILLED_SETS,
    MESSAGE_SETS,
    PAYLOADS,
    PLAIN_SETS,
    WRAPPER_CODECS,
    BuiltEntry,
    BuiltSet,
    magic0_bytes,
    magic1_bytes,
    wrapper_bytes,
)
from tests.support.codec_engines import Engine

MEBIBYTE = 1 << 20
GOOD = magic1_bytes(b"good")
OFFSETS = st.integers(0, 2**62)

FAULTY = [
    (Fault.PARTIAL, b"\x00"),
    (Fault.PARTIAL, b"\x00\x00\x00"),
    (Fault.PARTIAL, GOOD[:4]),
    (Fault.PARTIAL, GOOD[:-1]),
    (Fault.PARTIAL, magic0_bytes(b"good")[:-1]),
    (Fault.PARTIAL, struct.pack(">i", 2**31 - 1) + GOOD[4:]),
    (Fault.SIZE, struct.pack(">i", -1)),
    (Fault.SIZE, struct.pack(">i", -(2**31)) + GOOD[4:]),
    (Fault.SIZE, struct.pack(">i", 0) + GOOD[4:]),
    (Fault.SIZE, struct.pack(">i", 4) + GOOD[4:]),
    (Fault.SIZE, struct.pack(">iB", 5, 1)),
    (Fault.SIZE, struct.pack(">i", 5) + GOOD[4:]),
    (Fault.MAGIC, struct.pack(">iB", 9, 2)),
    (Fault.MAGIC, GOOD[:4] + b"\xff" + GOOD[5:]),
    (Fault.CODEC, magic1_bytes(b"good", 3)),
    (Fault.CODEC, magic1_bytes(b"good", 15)),
    (Fault.CODEC, magic1_bytes(b"good", 0xF3)),
    (Fault.CODEC, magic1_bytes(b"good", 3)[:-1] + b"D"),
    (Fault.CRC, GOOD[:-1] + b"D"),
    (Fault.CRC, magic0_bytes(b"good")[:-1] + b"D"),
    (Fault.CRC, wrapper_bytes(Codec.GZIP, GOOD)[:-1] + b"D"),
]


@given(st.lists(PAYLOADS, max_size=8))
def test_payloads_when_encoded_then_are_the_entries_of_the_format(
    engine: Engine, found: list[bytes]
) -> None:
    assert engine.encode(found) == b"".join(map(magic1_bytes, found))


def test_payloads_when_of_any_buffer_kind_then_are_encoded_alike(engine: Engine) -> None:
    assert engine.encode([b"a", bytearray(b"a"), memoryview(b"a")]) == magic1_bytes(b"a") * 3


def test_payload_when_too_large_for_its_length_field_then_is_refused(engine: Engine) -> None:
    with (
        mmap.mmap(-1, MAX_PAYLOAD_BYTES + 1) as never_touched,
        memoryview(never_touched) as payload,
        pytest.raises(MessageSizeTooLargeError, match=str(MAX_PAYLOAD_BYTES)),
    ):
        engine.encode([b"good", payload])


@given(MESSAGE_SETS, OFFSETS)
def test_set_when_decoded_then_gives_payloads_and_offsets_by_the_rule(
    engine: Engine, built: BuiltSet, base_offset: int
) -> None:
    assert engine.decode(built.data, base_offset) == (
        built.messages(base_offset),
        len(built.data),
        Fault.NONE,
    )


@given(MESSAGE_SETS)
def test_set_when_scanned_then_counts_outer_entries(engine: Engine, built: BuiltSet) -> None:
    found = engine.scan(built.data)

    assert found.valid_bytes == len(built.data)
    assert found.entry_count == len(built.entries)
    assert found.fault is Fault.NONE


@given(MESSAGE_SETS)
def test_set_when_scanned_then_lists_where_wrappers_start(engine: Engine, built: BuiltSet) -> None:
    starts = [
        start
        for start, entry in zip(built.boundaries, built.entries, strict=False)
        if entry.is_wrapper
    ]

    assert engine.scan(built.data).wrappers == starts


@given(PLAIN_SETS)
def test_set_when_scanned_then_tells_the_largest_payload(engine: Engine, built: BuiltSet) -> None:
    assert engine.scan(built.data).max_payload_bytes == max(map(len, built.payloads), default=0)


def test_wrapper_when_scanned_then_its_compressed_size_is_the_payload(engine: Engine) -> None:
    wrapper = wrapper_bytes(Codec.GZIP, magic1_bytes(bytes(1000)))

    assert engine.scan(wrapper).max_payload_bytes == len(wrapper) - ENTRY_OVERHEAD_BYTES


@given(MESSAGE_SETS)
def test_set_when_boundaries_are_asked_then_are_all_starts_and_the_end(
    engine: Engine, built: BuiltSet
) -> None:
    assert engine.boundaries(built.data) == built.boundaries


@given(FILLED_SETS)
def test_set_when_cut_anywhere_then_whole_entries_remain_and_the_rest_is_partial(
    engine: Engine,
    built: BuiltSet,
) -> None:
    for end in range(len(built.data)):
        prefix = built.data[:end]
        good = max(boundary for boundary in built.boundaries if boundary <= end)
        fault = Fault.NONE if end == good else Fault.PARTIAL
        assert (engine.scan(prefix).valid_bytes, engine.scan(prefix).fault) == (good, fault)
        assert engine.boundaries(prefix)[-1] == good


@given(FILLED_SETS, st.data())
def test_set_when_cut_anywhere_then_decodes_the_messages_of_its_whole_entries(
    engine: Engine, built: BuiltSet, data: st.DataObject
) -> None:
    end = data.draw(st.integers(0, len(built.data) - 1))

    messages, valid_bytes, fault = engine.decode(built.data[:end], 0)

    assert messages == [found for found in built.messages(0) if found[0] < valid_bytes]
    assert valid_bytes == max(boundary for boundary in built.boundaries if boundary <= end)
    assert fault is (Fault.NONE if end == valid_bytes else Fault.PARTIAL)


@given(MESSAGE_SETS, ENTRIES, MESSAGE_SETS, st.data())
def test_bit_when_flipped_in_payload_or_crc_then_the_entry_is_found_invalid(
    engine: Engine, before: BuiltSet, entry: BuiltEntry, after: BuiltSet, data: st.DataObject
) -> None:
    damaged = bytearray(entry.data)
    crc_position = 5 + damaged[4]
    position = data.draw(st.integers(crc_position, len(damaged) - 1))
    damaged[position] ^= 1 << data.draw(st.integers(0, 7))
    buffer = before.data + damaged + after.data

    assert engine.scan(buffer)[:3] == (len(before.data), len(before.entries), Fault.CRC)
    assert engine.decode(buffer, 0) == (before.messages(0), len(before.data), Fault.CRC)


@pytest.mark.parametrize(("fault", "entry"), FAULTY)
@pytest.mark.parametrize("before", [b"", GOOD, magic0_bytes(b""), GOOD * 2])
def test_entry_when_faulty_then_scan_and_decode_name_the_fault_and_where(
    engine: Engine, fault: Fault, entry: bytes, before: bytes
) -> None:
    buffer = before + entry

    assert engine.scan(buffer)[0::2][:2] == (len(before), fault)
    assert engine.decode(buffer, 0)[1:] == (len(before), fault)


@pytest.mark.parametrize(
    ("fault", "entry"), [(fault, entry) for fault, entry in FAULTY if fault is not Fault.PARTIAL]
)
def test_entry_when_faulty_then_good_ones_behind_it_change_nothing(
    engine: Engine, fault: Fault, entry: bytes
) -> None:
    buffer = GOOD + entry + GOOD

    assert (engine.scan(buffer).valid_bytes, engine.scan(buffer).fault) == (len(GOOD), fault)
    assert engine.decode(buffer, 0)[1:] == (len(GOOD), fault)


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param(GOOD[:-1], id="first message incomplete"),
        pytest.param(GOOD + GOOD[:-1] + b"D", id="crc"),
        pytest.param(GOOD + struct.pack(">i", -1), id="length"),
        pytest.param(GOOD + magic1_bytes(b"", 3), id="codec"),
        pytest.param(GOOD + struct.pack(">iB", 9, 2) + bytes(8), id="magic"),
        pytest.param(GOOD + magic1_bytes(b"no gzip", Codec.GZIP), id="inner wrapper"),
    ],
)
@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_wrapper_when_its_content_is_bad_then_scan_passes_it_and_decode_does_not(
    engine: Engine, codec: Codec, inner: bytes
) -> None:
    buffer = GOOD + wrapper_bytes(codec, inner)

    assert engine.scan(buffer).fault is Fault.NONE
    assert engine.decode(buffer, 0)[1:] == (len(GOOD), Fault.COMPRESSED)


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_wrapper_when_its_payload_is_no_container_then_fault_is_compressed(
    engine: Engine, codec: Codec
) -> None:
    buffer = magic1_bytes(b"\x7f no container", codec)

    assert engine.decode(buffer, 0) == ([], 0, Fault.COMPRESSED)


@pytest.mark.parametrize("tail", [GOOD[:3], GOOD[:4], GOOD[:-1]])
def test_wrapper_when_its_inner_tail_is_partial_then_the_tail_is_ignored(
    engine: Engine, tail: bytes
) -> None:
    assert engine.unfold(Codec.GZIP, compress(Codec.GZIP, GOOD + tail)) == [b"good"]


@pytest.mark.parametrize("inner", [b"", b"\x00", b"\x00\x00\x00"])
def test_wrapper_when_it_holds_no_message_then_position_moves_past_it(
    engine: Engine, inner: bytes
) -> None:
    buffer = wrapper_bytes(Codec.SNAPPY, inner) + GOOD

    assert engine.decode(buffer, 100).messages == [
        (100 + len(buffer) - len(GOOD), 100 + len(buffer), b"good")
    ]


def test_wrapper_when_nested_then_only_the_outermost_counts_for_offsets(engine: Engine) -> None:
    innermost = wrapper_bytes(Codec.ZSTD, engine.encode([b"a", b"b"]))
    wrapper = wrapper_bytes(Codec.GZIP, innermost + GOOD)
    end = 1000 + len(wrapper)

    assert engine.decode(wrapper, 1000).messages == [
        (1000, 1000, b"a"),
        (1000, 1000, b"b"),
        (1000, end, b"good"),
    ]


def nested(depth: int) -> bytes:
    data = GOOD
    for level in range(depth):
        data = wrapper_bytes(WRAPPER_CODECS[level % len(WRAPPER_CODECS)], data)
    return data


def test_wrappers_when_nested_as_deep_as_allowed_then_are_unfolded(engine: Engine) -> None:
    assert [message[2] for message in engine.decode(nested(MAX_NESTING), 0).messages] == [b"good"]


@pytest.mark.parametrize("depth", [MAX_NESTING + 1, 50])
def test_wrappers_when_nested_deeper_then_fault_is_compressed(engine: Engine, depth: int) -> None:
    assert engine.decode(nested(depth), 0) == ([], 0, Fault.COMPRESSED)


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_bomb_when_it_unfolds_to_more_than_the_limit_then_fault_is_compressed(
    engine: Engine,
    codec: Codec,
) -> None:
    bomb = magic1_bytes(_compressed_zeros(codec, MAX_DECOMPRESSED_BYTES + 1), codec)

    assert engine.decode(GOOD + bomb, 0)[1:] == (len(GOOD), Fault.COMPRESSED)


def test_bombs_when_only_together_above_the_limit_then_fault_is_compressed(engine: Engine) -> None:
    unread_tail = struct.pack(">i", 2**31 - 1) + bytes(MAX_DECOMPRESSED_BYTES // 4)
    inner = wrapper_bytes(Codec.ZSTD, GOOD + unread_tail)

    assert engine.unfold(Codec.SNAPPY, compress(Codec.SNAPPY, inner * 3)) == [b"good"] * 3
    with pytest.raises(InvalidMessageError, match="unfolds to more than"):
        engine.unfold(Codec.SNAPPY, compress(Codec.SNAPPY, inner * 4))


def _compressed_zeros(codec: Codec, size: int) -> bytes:
    """Return a container of `size` zeros, gzip's and snappy's put together from small ones."""
    if codec in (Codec.LZ4, Codec.ZSTD):
        return compress(codec, bytes(size))
    piece = compress(codec, bytes(MEBIBYTE))
    count = -(-size // MEBIBYTE)
    return piece * count if codec is Codec.GZIP else piece[:16] + piece[16:] * count


SIZES = {
    "long first": [5000, 3, 0, 5000],
    "short first": [3, 5000, 0],
    "at the border": [489, 490, 491, 494],
    "many": [200] * 25_000,
    "many after a long one": [5000, *[200] * 25_000],
}


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_set_when_long_or_of_long_messages_then_every_walk_sees_the_same(
    engine: Engine, name: str, kind: Callable[[bytes], Buffer]
) -> None:
    built = BuiltSet(
        tuple(
            BuiltEntry(magic1_bytes(bytes((n % 251,)) * size), (bytes((n % 251,)) * size,))
            for n, size in enumerate(SIZES[name])
        )
    )
    good = built.data
    buffer = kind(good + GOOD[:-1] + b"D")

    assert engine.scan(buffer) == (len(good), len(built.entries), Fault.CRC, [], max(SIZES[name]))
    assert engine.decode(buffer, 9) == (built.messages(9), len(good), Fault.CRC)
    assert engine.boundaries(buffer)[:-1] == built.boundaries
    assert engine.decode_delimited(buffer, b"\n") == (
        b"".join(payload + b"\n" for payload in built.payloads),
        len(good),
        len(built.entries),
        Fault.CRC,
    )


@given(ANY_SETS, OFFSETS)
def test_buffer_when_it_is_anything_then_scan_and_decode_agree(
    engine: Engine, buffer: bytes, base_offset: int
) -> None:
    found = engine.scan(buffer)
    decoded = engine.decode(buffer, base_offset)

    if decoded.fault is Fault.COMPRESSED:
        assert decoded.valid_bytes in found.wrappers
    else:
        assert (decoded.valid_bytes, decoded.fault) == (found.valid_bytes, found.fault)


@given(ANY_SETS)
def test_buffer_when_it_is_anything_then_scan_stops_on_a_boundary(
    engine: Engine, buffer: bytes
) -> None:
    found = engine.scan(buffer)
    starts = engine.boundaries(buffer)

    assert starts[found.entry_count] == found.valid_bytes
    assert set(found.wrappers) <= set(starts[: found.entry_count])
    assert starts == sorted(set(starts))
    assert starts[-1] <= len(buffer)


@given(ANY_SETS)
def test_buffer_when_its_good_part_is_scanned_again_then_nothing_is_wrong_with_it(
    engine: Engine,
    buffer: bytes,
) -> None:
    found = engine.scan(buffer)

    assert engine.scan(buffer[: found.valid_bytes]) == found._replace(fault=Fault.NONE)
    assert engine.boundaries(buffer[: found.valid_bytes])[-1] == found.valid_bytes


@given(ANY_SETS, OFFSETS)
def test_buffer_when_given_as_another_kind_then_result_is_the_same(
    engine: Engine, buffer: bytes, base_offset: int
) -> None:
    for other in (bytearray(buffer), memoryview(b"x" + buffer)[1:]):
        assert engine.scan(other) == engine.scan(buffer)
        assert engine.boundaries(other) == engine.boundaries(buffer)
        assert engine.decode(other, base_offset) == engine.decode(buffer, base_offset)
