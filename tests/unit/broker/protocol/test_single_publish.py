from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.errors import UnknownTopicError
from broker.protocol import primitives
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import (
    Acks,
    PartitionSet,
    PublishRequest,
    SinglePublish,
    SinglePublishResponse,
)
from broker.protocol.framing import cut_frames
from broker.protocol.requests import RequestHeader
from broker.protocol.responses import (
    Published,
    encode_extension_error,
    encode_extension_response,
    encode_publish_response,
)
from broker.topic import TopicPartition
from tests.strategies import INT32, INT64, PARTITION

PLACE = TopicPartition("events", 0, 3)


def response_frame(*results: Published, correlation_id: int = 7) -> bytes:
    """A response without its size field, as any broker makes it."""
    return encode_extension_response(correlation_id, encode_publish_response(list(results)))[4:]


@given(
    st.text("abc", max_size=9),
    st.sampled_from(Acks),
    INT32,
    PARTITION,
    INT32,
    st.binary(max_size=50),
)
def test_request_when_made_in_one_step_then_as_any_publish(
    client_id: str,
    acks: Acks,
    timeout_ms: int,
    partition: TopicPartition,
    correlation_id: int,
    message_set: bytes,
) -> None:
    request = PublishRequest(acks, timeout_ms, (PartitionSet(partition, message_set),))
    header = RequestHeader(request.VERSION, correlation_id, client_id)
    single = SinglePublish(client_id, acks, timeout_ms, partition)
    expected = b"".join(encode_extension_parts(request, header))
    assert b"".join(single.encode_parts(correlation_id, message_set)) == expected


SIZE = st.integers(0, 2**31 - 1)


@given(PARTITION, st.lists(st.tuples(INT32, SIZE), max_size=5), st.integers(0, 2**62), INT64)
def test_responses_when_made_in_one_step_then_as_any_and_read_again(
    partition: TopicPartition, publishes: list[tuple[int, int]], base_offset: int, term: int
) -> None:
    good = SinglePublishResponse(partition)
    ids = b"".join(primitives.INT32.pack(one) for one, _ in publishes)
    sizes = b"".join(primitives.INT32.pack(size) for _, size in publishes)
    frames, _ = cut_frames(good.encode(ids, sizes, base_offset, term), max_frame_bytes=1 << 20)
    assert len(frames) == len(publishes)
    for frame, (correlation_id, size) in zip(frames, publishes, strict=True):
        result = Published(partition, 0, base_offset, "", term)
        assert frame == response_frame(result, correlation_id=correlation_id)
        assert good.decode(frame, correlation_id) == (base_offset, term)
        base_offset += size


@pytest.mark.parametrize(
    "frame",
    [
        response_frame(Published(PLACE, 0, 90, ""), correlation_id=8),
        response_frame(Published(PLACE, UnknownTopicError.code, -1, "")),
        response_frame(Published(PLACE, 0, 90, "a word")),
        response_frame(Published(TopicPartition("events", 0, 4), 0, 90, "")),
        response_frame(Published(PLACE, 0, 90, ""), Published(PLACE, 0, 120, "")),
        response_frame(),
        response_frame(Published(PLACE, 0, 90, ""))[:-1],
        encode_extension_error(7, UnknownTopicError.code, "x" * 28)[4:],
        b"",
    ],
    ids=["other request", "error", "text", "other place", "two", "none", "cut", "refused", "empty"],
)
def test_response_when_not_a_success_of_one_set_then_left_to_the_general_decoder(
    frame: bytes,
) -> None:
    assert SinglePublishResponse(PLACE).decode(frame, 7) is None
