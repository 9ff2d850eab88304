"""The fast decoder of requests of one set agrees with the general one, or leaves them to it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import ProtocolError
from broker.protocol import append_request as module
from broker.protocol.append_request import (
    AppendRequest,
    AppendRequests,
    append_request,
    decode_single_appends,
)
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import Acks, PartitionSet, PublishRequest
from broker.protocol.primitives import INT32, Reader
from broker.protocol.requests import (
    MultiProduceRequest,
    ProduceRequest,
    RequestHeader,
    decode_request,
    encode_request,
)
from broker.topic import TopicPartition
from tests.strategies import PARTITION
from tests.support.frames import frames_of

SETS = st.binary(max_size=20)


def publish_frame(request: PublishRequest, correlation_id: int = 1, client: str = "c") -> bytes:
    header = RequestHeader(request.VERSION, correlation_id, client)
    return b"".join(encode_extension_parts(request, header))[4:]


def flat(request: AppendRequest) -> list[tuple[TopicPartition, bytes]]:
    return [(partition, bytes(one)) for partition, one, _ in request.sets]


def decoded(frames: list[bytes]) -> AppendRequests | None:
    return decode_single_appends(frames_of(frames), 0)


def ids_of(found: AppendRequests) -> list[int]:
    return [one for _, run in found.runs for (one,) in INT32.iter_unpack(run[2])]


def flat_together(found: AppendRequests) -> list[tuple[TopicPartition, bytes]]:
    pairs = []
    for partition, (_, _, _, sizes, sets, _) in found.runs:
        rest = bytes(sets)
        for (size,) in INT32.iter_unpack(sizes):
            pairs.append((partition, rest[:size]))
            rest = rest[size:]
        assert not rest
    return pairs


def decoded_in_general(frame: bytes) -> AppendRequest:
    """The request of a frame, by the general decoder."""
    if frame[1] == 0:
        request = decode_request(frame)
        assert isinstance(request, ProduceRequest)
        return append_request(request, 0)
    reader = Reader(frame)
    reader.int16()
    header = RequestHeader.decode(reader)
    return append_request(PublishRequest.decode(reader), header.correlation_id)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(-1, 2), SETS), min_size=1))
def test_produces_when_decoded_together_then_as_one_by_one(
    produces: list[tuple[str, int, bytes]],
) -> None:
    frames = [encode_request(ProduceRequest(*one))[4:] for one in produces]
    found = decoded(frames)
    assert found is not None
    assert (found.end, found.is_publish, found.acks) == (len(frames), False, Acks.NONE)
    each = [one for frame in frames for one in flat(decoded_in_general(frame))]
    assert flat_together(found) == each


@given(
    st.sampled_from(Acks),
    st.lists(st.tuples(PARTITION, SETS, st.integers(0, 99)), min_size=1, max_size=6),
)
def test_publishes_when_decoded_together_then_as_one_by_one(
    acks: Acks, publishes: list[tuple[TopicPartition, bytes, int]]
) -> None:
    frames = [
        publish_frame(PublishRequest(acks, 7, (PartitionSet(partition, one),)), number)
        for partition, one, number in publishes
    ]
    found = decoded(frames)
    assert found is not None
    assert (found.end, found.is_publish) == (len(frames), True)
    each = [decoded_in_general(frame) for frame in frames]
    assert ids_of(found) == [one.correlation_id for one in each]
    assert {(one.acks, one.timeout_ms) for one in each} == {(found.acks, found.timeout_ms)}
    assert flat_together(found) == [pair for one in each for pair in flat(one)]


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=3), st.sampled_from([b"\0\0", b"\0A"]))
def test_frames_when_random_then_left_to_the_general_decoder_or_decoded_alike(
    rests: list[bytes], request_type: bytes
) -> None:
    frames = [request_type + rest for rest in rests]
    found = decoded(frames)
    if found is not None:
        taken = frames[: found.end]
        each = [pair for one in taken for pair in flat(decoded_in_general(one))]
        assert flat_together(found) == each


PLACE = TopicPartition("events", -1, 0)
ONE = PartitionSet(PLACE, b"set")


@pytest.mark.parametrize(
    "frames",
    [
        [publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE, ONE)))],
        [publish_frame(PublishRequest(Acks.WRITTEN, 7, ()))],
        [publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,))) + b"x"],
        [publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,)))[:-1]],
        [publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,)), client="c" * 5000)],
        [b"\0A\0\1" + publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,)))[4:]],
    ],
    ids=["two sets", "no set", "trailing", "cut", "long name", "version"],
)
def test_requests_when_unusual_then_left_to_the_general_decoder(frames: list[bytes]) -> None:
    assert decoded(frames) is None
    usual = publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,)))
    found = decoded([usual, *frames])
    assert found is not None
    assert found.end == 1


@pytest.mark.parametrize(
    "other",
    [
        publish_frame(PublishRequest(Acks.NONE, 7, (ONE,))),
        publish_frame(PublishRequest(Acks.WRITTEN, 8, (ONE,))),
        encode_request(ProduceRequest("events", 0, b"set"))[4:],
    ],
    ids=["acks", "timeout", "produce"],
)
def test_requests_when_one_asks_for_something_else_then_it_is_left(other: bytes) -> None:
    usual = publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,)))
    found = decoded([usual, usual, other, usual])
    assert found is not None
    assert found.end == 2


def test_request_when_large_and_alone_then_not_even_its_set_is_walked() -> None:
    large = publish_frame(PublishRequest(Acks.WRITTEN, 7, (PartitionSet(PLACE, bytes(1 << 17)),)))
    usual = publish_frame(PublishRequest(Acks.WRITTEN, 7, (ONE,)))
    assert decoded([large]) is None
    assert decode_single_appends(frames_of([usual, large]), 1) is None
    assert decoded([usual, usual]) is not None


def test_head_when_malformed_then_cached_as_such_and_refused_by_the_general_decoder() -> None:
    frame = b"\0\0" + b"\xff\xff" + bytes(8)
    assert decoded([frame]) is None
    with pytest.raises(ProtocolError):
        decode_request(frame)


def test_multiproduce_when_converted_then_its_sets_are_in_order() -> None:
    produces = (ProduceRequest("a", 0, b"1"), ProduceRequest("b", -1, b"2"))
    found = append_request(MultiProduceRequest(produces), 0)
    assert found.correlation_id is None
    assert flat(found) == [
        (TopicPartition("a", -1, 0), b"1"),
        (TopicPartition("b", -1, -1), b"2"),
    ]


def test_heads_when_many_then_the_caches_are_bounded() -> None:
    for number in range(9000):
        frame = encode_request(ProduceRequest(f"topic-{number}", 0, b""))[4:]
        assert decoded([frame]) is not None
    assert module._decode_produce_head.cache_info().currsize <= 8192
