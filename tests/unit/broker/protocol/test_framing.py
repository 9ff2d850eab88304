from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ProtocolError
from broker.protocol.framing import SIZE_BYTES, FrameSizeError, cut_frames, encode_frame
from broker.protocol.primitives import INT32
from tests.support.framing import FrameDecoder

FRAMES = st.lists(st.binary(min_size=1, max_size=20), max_size=6)
LIMIT = 100


def frames_in(decoder: FrameDecoder) -> list[bytes]:
    frames = []
    while (frame := decoder.next_frame()) is not None:
        frames.append(frame)
    return frames


def chunks_of(data: bytes, cuts: list[int]) -> list[bytes]:
    places = sorted({min(cut, len(data)) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in pairwise(places)]


def test_frame_when_encoded_of_parts_then_size_counts_them_all() -> None:
    assert encode_frame(b"ab", memoryview(b"c"), bytearray(b"de")) == b"\x00\x00\x00\x05abcde"


@given(FRAMES, st.lists(st.integers(0, 200)))
def test_decoder_when_stream_is_split_anywhere_then_gives_the_same_frames(
    frames: list[bytes], cuts: list[int]
) -> None:
    decoder = FrameDecoder(max_frame_bytes=LIMIT)
    found = []
    for chunk in chunks_of(b"".join(map(encode_frame, frames)), cuts):
        decoder.receive_data(chunk)
        found += frames_in(decoder)

    assert found == frames


@given(FRAMES, st.lists(st.integers(0, 200)))
def test_cut_when_stream_is_split_anywhere_then_gives_the_same_frames(
    frames: list[bytes], cuts: list[int]
) -> None:
    found = []
    rest = b""
    for chunk in chunks_of(b"".join(map(encode_frame, frames)), cuts):
        rest += chunk
        cut, _ = cut_frames(rest, max_frame_bytes=LIMIT)
        found += [bytes(frame) for frame in cut]
        rest = rest[cut.bounds[-1] :]

    assert found == frames
    assert rest == b""


@given(st.binary(min_size=1, max_size=30))
def test_decoder_when_given_any_proper_prefix_then_needs_more(body: bytes) -> None:
    frame = encode_frame(body)
    for end in range(len(frame)):
        decoder = FrameDecoder(max_frame_bytes=LIMIT)
        decoder.receive_data(frame[:end])
        assert decoder.next_frame() is None


@given(FRAMES, st.binary(min_size=1, max_size=30))
def test_cut_when_last_frame_is_any_proper_prefix_then_says_how_large_it_will_be(
    frames: list[bytes], body: bytes
) -> None:
    whole = b"".join(map(encode_frame, frames))
    last = encode_frame(body)
    for end in range(len(last)):
        cut, needed = cut_frames(whole + last[:end], max_frame_bytes=LIMIT)
        assert list(cut) == frames
        assert cut.bounds[-1] == len(whole)
        assert needed == (0 if end < SIZE_BYTES else len(last))


def test_cut_when_buffer_is_only_whole_frames_then_nothing_is_needed() -> None:
    assert cut_frames(encode_frame(b"a"), max_frame_bytes=LIMIT)[1] == 0


@given(FRAMES, st.integers(1, 6))
def test_cut_when_there_are_more_frames_than_wanted_then_they_are_left(
    frames: list[bytes], count: int
) -> None:
    data = b"".join(map(encode_frame, frames))
    cut, needed = cut_frames(data, max_frame_bytes=LIMIT, max_count=count)
    assert list(cut) == frames[:count]
    assert needed == 0


@given(FRAMES.filter(bool), st.data())
def test_frames_when_some_are_taken_then_they_are_those(
    frames: list[bytes], data: st.DataObject
) -> None:
    cut, _ = cut_frames(b"".join(map(encode_frame, frames)), max_frame_bytes=LIMIT)
    number = data.draw(st.integers(0, len(frames) - 1))
    assert len(cut) == len(frames)
    assert list(cut.since(number)) == list(cut.since(number).copy()) == frames[number:]
    assert list(cut.only(number)) == frames[number : number + 1]


@pytest.mark.parametrize("size", [0, -1, LIMIT + 1, 2**31 - 1, -(2**31)])
def test_decoder_when_size_is_out_of_range_then_raises_protocol_error(size: int) -> None:
    decoder = FrameDecoder(max_frame_bytes=LIMIT)
    decoder.receive_data(INT32.pack(size))

    with pytest.raises(ProtocolError, match=f"frame size {size} is not within 1..{LIMIT}"):
        decoder.next_frame()


@pytest.mark.parametrize("size", [1, LIMIT])
def test_decoder_when_size_is_at_a_limit_then_gives_the_frame(size: int) -> None:
    decoder = FrameDecoder(max_frame_bytes=LIMIT)
    decoder.receive_data(encode_frame(bytes(size)))

    assert decoder.next_frame() == bytes(size)


def test_decoder_when_a_good_frame_precedes_a_bad_size_then_is_given_first() -> None:
    decoder = FrameDecoder(max_frame_bytes=LIMIT)
    decoder.receive_data(encode_frame(b"good") + INT32.pack(0))

    assert decoder.next_frame() == b"good"
    with pytest.raises(FrameSizeError):
        decoder.next_frame()


@pytest.mark.parametrize("size", [0, -1, LIMIT + 1])
def test_cut_when_size_is_out_of_range_then_error_says_how_far_the_buffer_is_good(
    size: int,
) -> None:
    good = encode_frame(b"good") + encode_frame(b"too")
    buffer = good + INT32.pack(size) + b"rest"

    with pytest.raises(FrameSizeError) as caught:
        cut_frames(buffer, max_frame_bytes=LIMIT)

    assert caught.value.position == len(good)
    cut, _ = cut_frames(buffer[: caught.value.position], max_frame_bytes=LIMIT)
    assert list(cut) == [b"good", b"too"]


@given(st.binary(max_size=40))
def test_cut_and_decoder_when_bytes_are_random_then_agree(data: bytes) -> None:
    decoder = FrameDecoder(max_frame_bytes=LIMIT)
    decoder.receive_data(data)
    try:
        cut, _ = cut_frames(data, max_frame_bytes=LIMIT)
    except FrameSizeError as error:
        cut, _ = cut_frames(data[: error.position], max_frame_bytes=LIMIT)
        assert [decoder.next_frame() for _ in cut] == [bytes(frame) for frame in cut]
        with pytest.raises(ProtocolError):
            decoder.next_frame()
    else:
        assert frames_in(decoder) == list(cut)


def test_cut_when_frames_are_cut_then_they_are_views_on_the_buffer() -> None:
    buffer = bytearray(encode_frame(b"abc"))

    ((frame,), _) = cut_frames(buffer, max_frame_bytes=LIMIT)
    buffer[4] = ord("x")

    assert bytes(frame) == b"xbc"
