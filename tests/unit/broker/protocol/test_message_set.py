from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import InvalidFetchSizeError, InvalidMessageError
from broker.protocol.checksum import crc32
from broker.protocol.codec import Fault, boundaries, decode, encode, scan, unfold
from broker.protocol.compression import Codec, codec_of, decompress
from broker.protocol.message_set import (
    Message,
    build_set,
    count_messages,
    describe_fault,
    iter_entries,
    iter_messages,
    messages_of,
    raise_fault,
    wrap,
)
from tests.strategies import (
    ANY_SETS,
    MESSAGE_SETS,
    PAYLOADS,
    WRAPPER_CODECS,
    BuiltSet,
    magic0_bytes,
    magic1_bytes,
    wrapper_bytes,
)

GOOD = magic1_bytes(b"good")
OFFSETS = st.integers(0, 2**62)
CODECS = st.sampled_from(Codec)


def read_until_error(messages: Iterator[Message]) -> tuple[list[Message], Exception | None]:
    found = []
    try:
        for message in messages:
            found.append(message)
    except (InvalidMessageError, InvalidFetchSizeError) as error:
        return found, error
    return found, None


@given(MESSAGE_SETS, OFFSETS)
def test_messages_when_set_is_good_then_have_payloads_and_offsets_by_the_rule(
    built: BuiltSet, base_offset: int
) -> None:
    found = [(m.offset, m.next_offset, m.payload) for m in iter_messages(built.data, base_offset)]

    assert found == built.messages(base_offset)


@given(MESSAGE_SETS)
def test_messages_when_set_is_good_then_carry_the_crc_of_their_payload(built: BuiltSet) -> None:
    assert all(m.crc == crc32(m.payload) for m in iter_messages(built.data, 0))


@given(MESSAGE_SETS)
def test_messages_when_set_is_good_then_inner_is_the_index_in_the_outer_entry(
    built: BuiltSet,
) -> None:
    assert [m.inner for m in iter_messages(built.data, 0)] == [
        index for entry in built.entries for index in range(len(entry.payloads))
    ]


@given(ANY_SETS, OFFSETS)
def test_messages_when_buffer_is_anything_then_are_those_of_decode(
    buffer: bytes, base_offset: int
) -> None:
    messages, _ = read_until_error(iter_messages(buffer, base_offset))

    assert [(m.offset, m.next_offset, m.payload) for m in messages] == decode(
        buffer, base_offset
    ).messages


@given(ANY_SETS, OFFSETS)
def test_messages_when_buffer_is_anything_then_end_as_the_fault_of_decode_says(
    buffer: bytes, base_offset: int
) -> None:
    _, valid_bytes, fault = decode(buffer, base_offset)

    _, error = read_until_error(iter_messages(buffer, base_offset))

    if fault is Fault.NONE or (fault is Fault.PARTIAL and valid_bytes):
        assert error is None
    elif fault is Fault.PARTIAL:
        assert isinstance(error, InvalidFetchSizeError)
    else:
        assert isinstance(error, InvalidMessageError)


@given(ANY_SETS, OFFSETS)
def test_entries_when_buffer_is_anything_then_start_on_boundaries(
    buffer: bytes, base_offset: int
) -> None:
    entries = list(iter_entries(buffer, base_offset))
    starts = [base_offset + start for start in boundaries(buffer)]

    assert [entry.offset for entry in entries] == starts[: len(entries)]
    assert [entry.next_offset for entry in entries] == starts[1 : len(entries) + 1]


@given(ANY_SETS)
def test_entries_when_buffer_is_anything_then_scan_counts_those_before_the_first_invalid_one(
    buffer: bytes,
) -> None:
    entries = list(iter_entries(buffer, 0))
    first_invalid = next((n for n, e in enumerate(entries) if not e.is_valid), len(entries))

    found = scan(buffer)

    assert found.entry_count == first_invalid
    assert found.wrappers == [entry.offset for entry in entries[:first_invalid] if entry.codec]
    assert found.max_payload_bytes == max(
        (len(entry.payload) for entry in entries[:first_invalid]), default=0
    )


@given(ANY_SETS)
def test_entries_when_buffer_is_anything_then_fields_are_those_stored(buffer: bytes) -> None:
    for entry in iter_entries(buffer, 0):
        header = buffer[entry.offset : entry.next_offset - len(entry.payload)]
        attributes = bytes((entry.attributes,)) if entry.magic else b""
        assert header == (
            entry.length.to_bytes(4, "big")
            + bytes((entry.magic,))
            + attributes
            + entry.crc.to_bytes(4, "big")
        )
        assert entry.codec == codec_of(entry.attributes)


@given(ANY_SETS)
def test_count_when_buffer_is_anything_then_is_that_of_decode_or_an_error(buffer: bytes) -> None:
    found = scan(buffer)
    decoded = decode(buffer, 0)

    if decoded.fault is Fault.COMPRESSED:
        with pytest.raises(InvalidMessageError):
            count_messages(buffer, found)
    else:
        assert count_messages(buffer, found).message_count == len(decoded.messages)


def test_entry_when_its_crc_is_wrong_then_is_given_and_not_valid() -> None:
    (entry,) = iter_entries(GOOD[:-1] + b"D", 7)

    assert not entry.is_valid
    assert (entry.offset, entry.next_offset, bytes(entry.payload)) == (7, 21, b"gooD")


def test_entry_when_its_codec_is_unknown_then_is_given_and_not_valid() -> None:
    (entry,) = iter_entries(magic1_bytes(b"x", 3), 0)

    assert entry.codec is None
    assert not entry.is_valid


def test_message_when_plain_then_has_every_detail() -> None:
    assert list(iter_messages(magic0_bytes(b"old"), 100)) == [
        Message(100, 112, 0, 0, Codec.NONE, crc32(b"old"), b"old")
    ]


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
def test_message_when_in_a_wrapper_then_has_the_codec_of_the_outer_entry(codec: Codec) -> None:
    wrapper = wrapper_bytes(codec, magic0_bytes(b"a") + wrapper_bytes(Codec.GZIP, GOOD))
    end = 50 + len(wrapper)

    assert list(iter_messages(wrapper, 50)) == [
        Message(50, 50, 0, 1, codec, crc32(b"a"), b"a"),
        Message(50, end, 1, 1, codec, crc32(b"good"), b"good"),
    ]


@pytest.mark.parametrize("tail", [GOOD[:1], GOOD[:4], GOOD[:-1]])
def test_messages_when_the_tail_is_partial_then_end_without_error(tail: bytes) -> None:
    assert [m.payload for m in iter_messages(GOOD + tail, 0)] == [b"good"]


@pytest.mark.parametrize("tail", [GOOD[:1], GOOD[:4], GOOD[:-1]])
def test_messages_when_the_very_first_is_partial_then_the_fetch_was_too_small(tail: bytes) -> None:
    with pytest.raises(InvalidFetchSizeError, match="message at 40 is larger than the fetch"):
        list(iter_messages(tail, 40))


def test_messages_when_set_is_empty_then_are_none() -> None:
    assert list(iter_messages(b"", 0)) == []


@pytest.mark.parametrize(
    ("entry", "text"),
    [
        (GOOD[:-1] + b"D", "its payload does not match its CRC"),
        (magic1_bytes(b"x", 3), "its codec is unknown"),
        (GOOD[:4] + b"\x02" + GOOD[5:], "its magic byte is unknown"),
        (b"\xff" * 20, "its length field is impossible"),
    ],
)
def test_messages_when_one_is_bad_then_those_before_it_are_given_and_the_error_says_where(
    entry: bytes, text: str
) -> None:
    messages, error = read_until_error(iter_messages(GOOD + entry, 1000))

    assert [m.payload for m in messages] == [b"good"]
    assert isinstance(error, InvalidMessageError)
    assert str(error) == f"the message at 1014 is invalid: {text}"


UNREADABLE = GOOD + wrapper_bytes(Codec.GZIP, GOOD + GOOD[:-1] + b"D")
UNREADABLE_TEXT = (
    "the message at {} is invalid: its compressed content cannot be read "
    "(a compressed set has a bad message at byte 14: CRC)"
)


def test_messages_when_a_wrapper_is_unreadable_then_the_error_says_where_and_why() -> None:
    messages, error = read_until_error(iter_messages(UNREADABLE, 1000))

    assert [m.payload for m in messages] == [b"good"]
    assert str(error) == UNREADABLE_TEXT.format(1014)


def test_count_when_a_wrapper_is_unreadable_then_the_error_says_where_and_why() -> None:
    with pytest.raises(InvalidMessageError) as caught:
        count_messages(UNREADABLE, scan(UNREADABLE))

    assert str(caught.value) == UNREADABLE_TEXT.format(14)


@given(st.lists(PAYLOADS, max_size=6), CODECS)
def test_set_when_built_then_unfolds_to_its_payloads(found: list[bytes], codec: Codec) -> None:
    message_set = build_set(found, codec)

    assert [m.payload for m in iter_messages(message_set, 0)] == found
    assert scan(message_set).entry_count == (min(len(found), 1) if codec else len(found))


@pytest.mark.parametrize("codec", Codec)
def test_set_when_built_of_nothing_then_is_empty(codec: Codec) -> None:
    assert build_set([], codec) == b""


@given(MESSAGE_SETS, st.sampled_from(WRAPPER_CODECS))
def test_set_when_wrapped_then_the_wrapper_holds_its_bytes(built: BuiltSet, codec: Codec) -> None:
    for entry in iter_entries(wrap(built.data, codec), 0):
        assert (entry.magic, entry.codec, entry.is_valid) == (1, codec, True)
        assert decompress(codec, entry.payload) == built.data


def test_set_when_wrapped_without_codec_then_is_unchanged() -> None:
    assert wrap(memoryview(GOOD), Codec.NONE) == GOOD


@pytest.mark.parametrize("codec", [Codec.LZ4, Codec.ZSTD])
def test_extension_wrapper_when_read_by_the_rules_of_07_then_its_codec_is_the_invalid_one(
    codec: Codec,
) -> None:
    (entry,) = iter_entries(build_set([b"a"], codec), 0)

    assert entry.attributes & 3 == 3


def test_set_when_built_without_codec_then_is_encoded_plain() -> None:
    assert build_set([b"a", b"b"]) == encode([b"a", b"b"])


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault])
def test_fault_when_described_then_text_names_the_position(fault: Fault) -> None:
    assert describe_fault(fault, 33).startswith("the message at 33 is invalid: it")


def test_fault_when_raised_then_error_is_that_of_kafka_07_and_none_for_no_fault() -> None:
    def error_for(fault: Fault) -> type[Exception] | None:
        try:
            raise_fault(fault, 0)
        except (InvalidMessageError, InvalidFetchSizeError) as error:
            return type(error)
        return None

    invalid = dict.fromkeys(
        (fault for fault in Fault if fault > Fault.PARTIAL), InvalidMessageError
    )

    assert {fault: error_for(fault) for fault in Fault} == {
        Fault.NONE: None,
        Fault.PARTIAL: InvalidFetchSizeError,
        **invalid,
    }


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault > Fault.PARTIAL])
def test_fault_when_raised_then_is_an_invalid_message(fault: Fault) -> None:
    with pytest.raises(InvalidMessageError, match="message at 5"):
        raise_fault(fault, 5)


def test_messages_of_a_large_wrapper_when_unfolded_in_blocks_then_are_those_of_unfold() -> None:
    payloads = [b"%d" % number for number in range(60_000)]
    nested = build_set([b"deep"] * 3, Codec.SNAPPY)
    inner_set = encode(payloads) + encode([b"large" * 300_000]) + nested + encode([b"end"])
    (entry,) = iter_entries(wrap(inner_set + inner_set[:7], Codec.GZIP), 40)

    found = list(messages_of(entry))

    assert [one.payload for one in found] == unfold(Codec.GZIP, entry.payload)
    assert [one.inner for one in found] == list(range(60_005))
    assert {one.next_offset for one in found[:-1]} == {40}
    assert found[-1].next_offset == entry.next_offset


def test_messages_of_a_large_wrapper_when_one_is_damaged_then_none_is_given() -> None:
    inner_set = bytearray(encode([b"%d" % number for number in range(120_000)]))
    inner_set[-1] ^= 1
    (entry,) = iter_entries(wrap(bytes(inner_set), Codec.GZIP), 0)

    with pytest.raises(InvalidMessageError):
        messages_of(entry)
