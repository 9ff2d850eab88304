"""Delimited text to message set and back."""

from __future__ import annotations

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from broker.errors import MessageSizeTooLargeError
from broker.protocol.codec import EncodedText, Fault, OversizePieceError, encode
from broker.protocol.compression import Codec
from broker.protocol.message_set import build_set
from tests.strategies import ANY_SETS, MESSAGE_SETS, WRAPPER_CODECS, BuiltSet, magic1_bytes
from tests.support.codec_engines import Engine

FEW_BYTES = st.sampled_from(b"ab\n\x00").map(lambda byte: bytes((byte,)))
TEXTS = st.lists(FEW_BYTES, max_size=40).map(b"".join) | st.binary(max_size=60)
DELIMITERS = st.lists(FEW_BYTES, min_size=1, max_size=4).map(b"".join) | st.binary(
    min_size=1, max_size=5
)
THREE = encode([b"one", b"two", b"three"])


def encode_text(
    engine: Engine, buffer: bytes, delimiter: bytes = b"\n", *, batch_count: int = 10
) -> EncodedText:
    return engine.encode_delimited(
        buffer, delimiter, max_payload_bytes=1000, batch_count=batch_count
    )


def payloads_of(engine: Engine, message_set: bytes) -> list[bytes]:
    return [payload for _, _, payload in engine.decode(message_set, 0).messages]


@given(TEXTS, DELIMITERS)
@example(b"aaa", b"aa")
def test_text_when_encoded_and_decoded_then_is_what_was_consumed(
    engine: Engine, text: bytes, delimiter: bytes
) -> None:
    encoded = encode_text(engine, text, delimiter)

    decoded = engine.decode_delimited(encoded.message_set, delimiter)

    assert decoded.text == text[: encoded.consumed]
    assert decoded.message_count == encoded.message_count
    assert (decoded.valid_bytes, decoded.fault) == (len(encoded.message_set), Fault.NONE)


@given(st.integers(0, 40_000), st.binary(max_size=200), DELIMITERS)
def test_text_when_delimiters_are_counted_then_as_many_as_pieces_less_one(
    engine: Engine, size: int, pattern: bytes, delimiter: bytes
) -> None:
    text = (pattern * (size // max(len(pattern), 1) + 1))[:size]

    assert engine.count_delimiters(text, delimiter) == len(text.split(delimiter)) - 1


@given(TEXTS, DELIMITERS)
def test_text_when_encoded_then_rest_holds_no_delimiter(
    engine: Engine, text: bytes, delimiter: bytes
) -> None:
    encoded = encode_text(engine, text, delimiter)

    assert delimiter not in text[encoded.consumed :]
    assert text[: encoded.consumed].endswith(delimiter) or encoded.consumed == 0


@given(TEXTS, DELIMITERS)
def test_text_when_encoded_then_is_split_at_the_leftmost_delimiters(
    engine: Engine, text: bytes, delimiter: bytes
) -> None:
    pieces = []
    rest = text
    while (place := rest.find(delimiter)) >= 0:
        pieces.append(rest[:place])
        rest = rest[place + len(delimiter) :]

    encoded = encode_text(engine, text, delimiter)

    assert encoded.message_set == b"".join(map(magic1_bytes, pieces))
    assert encoded.message_count == len(pieces)
    assert text[encoded.consumed :] == rest


@given(TEXTS, DELIMITERS, st.lists(st.integers(0, 60), max_size=6))
def test_text_when_it_comes_in_chunks_then_messages_are_those_of_the_whole(
    engine: Engine, text: bytes, delimiter: bytes, cuts: list[int]
) -> None:
    sets = b""
    rest = b""
    start = 0
    for end in [*sorted(cuts), len(text)]:
        rest += text[start:end]
        start = max(start, end)
        encoded = encode_text(engine, rest, delimiter)
        sets += encoded.message_set
        rest = rest[encoded.consumed :]

    whole = encode_text(engine, text, delimiter)
    assert sets == whole.message_set
    assert rest == text[whole.consumed :]


@given(st.lists(st.binary(max_size=8), max_size=6), DELIMITERS)
def test_payloads_when_none_runs_into_its_delimiter_then_come_back_from_text(
    engine: Engine, found: list[bytes], delimiter: bytes
) -> None:
    assume(all((payload + delimiter).find(delimiter) == len(payload) for payload in found))

    text = engine.decode_delimited(engine.encode(found), delimiter).text

    assert encode_text(engine, text, delimiter).message_set == engine.encode(found)


def test_payload_when_it_ends_like_its_delimiter_begins_then_the_leftmost_match_wins(
    engine: Engine,
) -> None:
    text = engine.decode_delimited(engine.encode([b"xa", b"y"]), b"aa").text

    encoded = encode_text(engine, text, b"aa")

    assert text == b"xaaayaa"
    assert payloads_of(engine, encoded.message_set) == [b"x", b"ay"]


@given(TEXTS, DELIMITERS, st.integers(1, 7))
def test_batches_when_cut_then_each_but_the_last_has_its_full_count(
    engine: Engine, text: bytes, delimiter: bytes, batch_count: int
) -> None:
    encoded = encode_text(engine, text, delimiter, batch_count=batch_count)

    starts = engine.boundaries(encoded.message_set)
    counts = [
        starts.index(end) - starts.index(start)
        for start, end in zip([0, *encoded.cuts], encoded.cuts, strict=False)
    ]
    assert sum(counts) == encoded.message_count
    assert all(count == batch_count for count in counts[:-1])
    assert all(0 < count <= batch_count for count in counts)
    assert encoded.cuts[-1:] == ([len(encoded.message_set)] if encoded.message_count else [])


@given(TEXTS, DELIMITERS, st.integers(1, 4), st.integers(0, 60))
def test_batches_when_limited_by_bytes_too_then_only_a_single_message_exceeds_it(
    engine: Engine, text: bytes, delimiter: bytes, batch_count: int, batch_bytes: int
) -> None:
    encoded = engine.encode_delimited(
        text,
        delimiter,
        max_payload_bytes=1000,
        batch_count=batch_count,
        batch_bytes=batch_bytes,
    )

    starts = [0, *encoded.cuts[:-1]]
    batches = [
        encoded.message_set[start:end] for start, end in zip(starts, encoded.cuts, strict=False)
    ]
    assert b"".join(batches) == encoded.message_set
    assert encoded.counts == [engine.scan(batch).entry_count for batch in batches]
    for batch, count, following in zip(batches, encoded.counts, [*batches[1:], b""], strict=False):
        assert 1 <= count <= batch_count
        assert len(batch) <= batch_bytes or count == 1
        first_bytes = engine.boundaries(following)[:2][-1]
        assert not following or count == batch_count or len(batch) + first_bytes > batch_bytes


@pytest.mark.parametrize(
    ("delimiter", "limits"),
    [
        (b"", (1, 1, None)),
        (b"\n", (-1, 1, None)),
        (b"\n", (1, 0, None)),
        (b"\n", (1, 1, -1)),
    ],
)
def test_text_when_a_limit_makes_no_sense_then_is_refused(
    engine: Engine, delimiter: bytes, limits: tuple[int, int, int | None]
) -> None:
    max_payload_bytes, batch_count, batch_bytes = limits

    with pytest.raises(ValueError, match="out of range"):
        engine.encode_delimited(
            b"a\n",
            delimiter,
            max_payload_bytes=max_payload_bytes,
            batch_count=batch_count,
            batch_bytes=batch_bytes,
        )


@pytest.mark.parametrize("text", [b"", b"no end"])
def test_text_when_it_has_no_delimiter_then_nothing_is_consumed(
    engine: Engine, text: bytes
) -> None:
    assert encode_text(engine, text) == (b"", 0, 0, [], [])


def test_text_when_pieces_are_empty_then_are_empty_messages(engine: Engine) -> None:
    assert payloads_of(engine, encode_text(engine, b"\n\nx\n").message_set) == [b"", b"", b"x"]


@pytest.mark.parametrize("kind", [bytearray, memoryview])
def test_text_when_of_another_buffer_kind_then_is_encoded_alike(
    engine: Engine,
    kind: type[bytearray] | type[memoryview],
) -> None:
    text = b"one\ntwo\nrest"

    encoded = engine.encode_delimited(kind(text), b"\n", max_payload_bytes=10, batch_count=1)

    assert encoded == encode_text(engine, text, batch_count=1)


def test_piece_when_at_the_limit_then_is_taken(engine: Engine) -> None:
    assert engine.encode_delimited(b"1234\n", b"\n", max_payload_bytes=4, batch_count=1)[1:3] == (
        5,
        1,
    )


def test_piece_when_too_large_then_error_says_which_and_where(engine: Engine) -> None:
    with pytest.raises(OversizePieceError) as caught:
        engine.encode_delimited(b"1::22::55555::1::", b"::", max_payload_bytes=4, batch_count=1)

    error = caught.value
    assert (error.index, error.position, error.size, error.limit) == (2, 7, 5, 4)
    assert str(error) == "message 2 (byte 7) has 5 bytes; the limit is 4"
    assert isinstance(error, MessageSizeTooLargeError)


def test_rest_when_longer_than_the_limit_then_is_left_to_the_next_call(engine: Engine) -> None:
    assert engine.encode_delimited(b"1\n55555", b"\n", max_payload_bytes=4, batch_count=1)[1:3] == (
        2,
        1,
    )


@given(MESSAGE_SETS, st.binary(max_size=3))
def test_set_when_written_out_then_each_payload_is_followed_by_the_delimiter(
    engine: Engine, built: BuiltSet, delimiter: bytes
) -> None:
    assert engine.decode_delimited(built.data, delimiter) == (
        b"".join(payload + delimiter for payload in built.payloads),
        len(built.data),
        len(built.payloads),
        Fault.NONE,
    )


@given(ANY_SETS, st.binary(max_size=3))
def test_buffer_when_it_is_anything_then_text_is_that_of_decode(
    engine: Engine, buffer: bytes, delimiter: bytes
) -> None:
    messages, valid_bytes, fault = engine.decode(buffer, 0)
    text = b"".join(payload + delimiter for _, _, payload in messages)

    for kind in (buffer, bytearray(buffer), memoryview(buffer)):
        assert engine.decode_delimited(kind, delimiter) == (text, valid_bytes, len(messages), fault)


@given(ANY_SETS, st.integers(0, 12))
def test_buffer_when_written_out_with_a_limit_then_is_a_prefix_of_the_whole(
    engine: Engine, buffer: bytes, limit: int
) -> None:
    messages = engine.decode(buffer, 0).messages

    limited = engine.decode_delimited(buffer, b"|", limit)

    assert limited.message_count == min(limit, len(messages))
    assert limited.text == b"".join(message[2] + b"|" for message in messages[:limit])


@given(ANY_SETS, st.integers(0, 12))
def test_buffer_when_written_out_with_a_limit_then_the_rest_resumes_where_it_says(
    engine: Engine, buffer: bytes, limit: int
) -> None:
    messages = engine.decode(buffer, 0).messages

    limited = engine.decode_delimited(buffer, b"|", limit)

    rest = engine.decode(buffer[limited.valid_bytes :], limited.valid_bytes).messages
    written_out = len(messages) - len(rest)
    assert rest == messages[written_out:]
    assert written_out <= limited.message_count


@pytest.mark.parametrize("codec", WRAPPER_CODECS)
@pytest.mark.parametrize(
    ("limit", "count", "wrappers_done"), [(0, 0, 0), (2, 2, 0), (3, 3, 1), (4, 4, 1), (6, 6, 2)]
)
def test_limit_when_it_ends_inside_a_wrapper_then_the_wrapper_is_not_done(
    engine: Engine, codec: Codec, limit: int, count: int, wrappers_done: int
) -> None:
    wrapper = build_set([b"one", b"two", b"three"], codec)

    limited = engine.decode_delimited(wrapper * 2, b",", limit)

    assert (limited.message_count, limited.valid_bytes) == (count, wrappers_done * len(wrapper))


def test_limit_when_reached_before_a_fault_then_there_is_no_fault(engine: Engine) -> None:
    assert engine.decode_delimited(THREE + b"\xff" * 20, b",", 3) == (
        b"one,two,three,",
        len(THREE),
        3,
        Fault.NONE,
    )


def test_limit_when_zero_then_nothing_is_written(engine: Engine) -> None:
    assert engine.decode_delimited(THREE, b",", 0) == (b"", 0, 0, Fault.NONE)


@pytest.mark.parametrize("limit", [3, 4, -1])
def test_limit_when_all_are_written_then_position_is_at_the_end(engine: Engine, limit: int) -> None:
    assert engine.decode_delimited(THREE, b",", limit) == (b"one,two,three,", 41, 3, Fault.NONE)
