from __future__ import annotations

import struct
import tracemalloc
import weakref

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import InvalidTopicError, ProtocolError
from broker.protocol import layouts, requests
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import (
    Acks,
    FilteredReadRequest,
    HelloRequest,
    ListOffsetsRequest,
    MetadataRequest,
    PartitionSet,
    PayloadFilter,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.cluster_requests import CreateReplicatedTopicRequest, ReassignRequest
from broker.protocol.extension_requests import StatusRequest
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import Reader
from broker.protocol.replica_requests import ChangeIsrRequest, PushStatesRequest
from broker.protocol.requests import (
    FIRST_EXTENSION_TYPE,
    MAX_ITEMS,
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    ProduceRequest,
    RequestHeader,
    RequestType,
    decode_partition,
    decode_request,
    encode_partition,
    encode_request,
)
from broker.topic import MAX_TOPIC_NAME_LENGTH, TopicPartition
from tests.strategies import BASE_REQUESTS, EXTENSION_REQUESTS, REQUEST_HEADERS
from tests.unit.broker.protocol.frames import frame_of

FEW_EXAMPLES = settings(max_examples=30)  # for each of many kinds, all of them small
EMPTY_BODIES = (HelloRequest, StatusRequest)
WITH_BODIES = [kind for kind in EXTENSION_REQUESTS if kind not in EMPTY_BODIES]
TOPIC = b"\x00\x01t"
ONE = struct.pack(">i", 1)
ONE_PARTITION = TOPIC + bytes(8)


def test_requests_when_listed_then_there_is_a_strategy_for_each() -> None:
    assert set(requests.BASE_REQUESTS.values()) == BASE_REQUESTS.keys()
    assert set(layouts.EXTENSION_REQUESTS.values()) == EXTENSION_REQUESTS.keys()


def test_request_types_when_listed_then_each_is_decoded_by_the_class_that_carries_it() -> None:
    assert {kind.TYPE: kind for kind in requests.BASE_REQUESTS.values()} == requests.BASE_REQUESTS
    assert {
        (kind.TYPE, kind.VERSION): kind for kind in layouts.EXTENSION_REQUESTS.values()
    } == layouts.EXTENSION_REQUESTS
    types = {number for number, _ in layouts.EXTENSION_REQUESTS}
    assert types | requests.BASE_REQUESTS.keys() == set(RequestType)


def test_request_types_when_ours_then_start_where_07_cannot_reach() -> None:
    assert min(layouts.EXTENSION_REQUESTS)[0] == FIRST_EXTENSION_TYPE == 64


@pytest.mark.parametrize("kind", BASE_REQUESTS)
@FEW_EXAMPLES
@given(data=st.data())
def test_request_when_encoded_and_decoded_then_is_the_same(
    kind: type[BaseRequest], data: st.DataObject
) -> None:
    request = data.draw(BASE_REQUESTS[kind])

    assert decode_request(frame_of(encode_request(request))) == request


@pytest.mark.parametrize("kind", EXTENSION_REQUESTS)
@FEW_EXAMPLES
@given(data=st.data(), header=REQUEST_HEADERS)
def test_extension_request_when_encoded_and_decoded_then_header_and_body_are_the_same(
    kind: type[ExtensionRequest], data: st.DataObject, header: RequestHeader
) -> None:
    request = data.draw(EXTENSION_REQUESTS[kind])

    reader = Reader(frame_of(b"".join(encode_extension_parts(request, header))))

    assert reader.int16() == kind.TYPE
    assert RequestHeader.decode(reader) == header
    assert kind.decode(reader) == request
    assert reader.remaining == 0


@pytest.mark.parametrize("kind", BASE_REQUESTS)
@FEW_EXAMPLES
@given(data=st.data())
def test_request_when_cut_anywhere_then_raises_protocol_error(
    kind: type[BaseRequest], data: st.DataObject
) -> None:
    frame = frame_of(encode_request(data.draw(BASE_REQUESTS[kind])))
    for end in range(len(frame)):
        with pytest.raises(ProtocolError):
            decode_request(frame[:end])


@pytest.mark.parametrize("kind", WITH_BODIES)
@FEW_EXAMPLES
@given(data=st.data())
def test_extension_request_when_cut_anywhere_then_raises_protocol_error(
    kind: type[ExtensionRequest], data: st.DataObject
) -> None:
    body = data.draw(EXTENSION_REQUESTS[kind]).encode()
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            kind.decode(Reader(body[:end]))


@given(REQUEST_HEADERS)
def test_header_when_cut_anywhere_then_raises_protocol_error(header: RequestHeader) -> None:
    encoded = header.encode()
    for end in range(len(encoded)):
        with pytest.raises(ProtocolError):
            RequestHeader.decode(Reader(encoded[:end]))


@pytest.mark.parametrize("kind", BASE_REQUESTS)
@FEW_EXAMPLES
@given(data=st.data(), rest=st.binary(min_size=1, max_size=8))
def test_request_when_bytes_follow_it_then_they_are_ignored(
    kind: type[BaseRequest], data: st.DataObject, rest: bytes
) -> None:
    request = data.draw(BASE_REQUESTS[kind])

    assert decode_request(frame_of(encode_request(request)) + rest) == request


@pytest.mark.parametrize("kind", BASE_REQUESTS)
@FEW_EXAMPLES
@given(body=st.binary(max_size=60))
def test_request_when_body_is_random_then_only_protocol_error_is_raised(
    kind: type[BaseRequest], body: bytes
) -> None:
    try:
        decode_request(struct.pack(">h", kind.TYPE) + body)
    except ProtocolError:
        return


@pytest.mark.parametrize("kind", EXTENSION_REQUESTS)
@FEW_EXAMPLES
@given(body=st.binary(max_size=60))
def test_extension_request_when_body_is_random_then_only_errors_of_requests_are_raised(
    kind: type[ExtensionRequest], body: bytes
) -> None:
    try:
        kind.decode(Reader(body))
    except (ProtocolError, InvalidTopicError):  # the handlers answer either
        return


@given(st.binary(max_size=60))
def test_frame_when_random_then_only_protocol_error_is_raised(frame: bytes) -> None:
    try:
        decode_request(frame)
    except ProtocolError:
        return


@pytest.mark.parametrize("request_type", [5, 63, 64, -1, 32767])
def test_frame_when_type_is_none_of_07s_then_raises_protocol_error(request_type: int) -> None:
    with pytest.raises(ProtocolError, match=f"request type {request_type} is unknown"):
        decode_request(struct.pack(">h", request_type) + bytes(40))


def test_frame_when_it_has_one_byte_then_raises_protocol_error() -> None:
    with pytest.raises(ProtocolError):
        decode_request(b"\x00")


@pytest.mark.parametrize(
    ("kind", "head", "layout"),
    [
        (MultiProduceRequest, b"", ">h"),
        (MultiFetchRequest, b"", ">h"),
        (PublishRequest, bytes(6), ">i"),
        (ReadRequest, bytes(12), ">i"),
        (MetadataRequest, b"", ">i"),
        (ListOffsetsRequest, b"", ">i"),
    ],
)
@pytest.mark.parametrize("is_negative", [False, True])
def test_count_when_huge_or_negative_then_is_refused_without_allocating(
    kind: type[BaseRequest | ExtensionRequest], head: bytes, layout: str, is_negative: bool
) -> None:
    greatest: int = 2 ** (8 * struct.calcsize(layout) - 1) - 1
    count = -2 if is_negative else greatest
    body = head + struct.pack(layout, count) + bytes(40)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            kind.decode(Reader(body))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 1 << 20


@pytest.mark.parametrize(
    ("kind", "head", "item"),
    [
        (PublishRequest, bytes(6), bytes(14)),
        (ReadRequest, bytes(12), bytes(22)),
        (MetadataRequest, b"", bytes(2)),
        (ListOffsetsRequest, b"", bytes(19)),
        (PushStatesRequest, bytes(25), bytes(21)),
        (ChangeIsrRequest, bytes(12) + ONE + ONE_PARTITION + bytes(12), bytes(12)),
        (CreateReplicatedTopicRequest, TOPIC + bytes(8), bytes(4)),
        (ReassignRequest, bytes(8) + ONE + ONE_PARTITION, bytes(4)),
    ],
)
def test_count_when_above_the_most_then_is_refused_although_the_items_are_there(
    kind: type[ExtensionRequest], head: bytes, item: bytes
) -> None:
    def decode(count: int) -> ExtensionRequest:
        return kind.decode(Reader(head + struct.pack(">i", count) + item * count + bytes(8)))

    decode(MAX_ITEMS)
    with pytest.raises(ProtocolError, match="32768 items are too many"):
        decode(MAX_ITEMS + 1)


@pytest.mark.parametrize("size", [-1, 10, 2**31 - 1, -(2**31)])
def test_set_size_when_negative_or_more_than_is_left_then_raises_protocol_error(size: int) -> None:
    body = TOPIC + bytes(4) + struct.pack(">i", size) + bytes(9)

    with pytest.raises(ProtocolError):
        ProduceRequest.decode(Reader(body))


@pytest.mark.parametrize("kind", [ProduceRequest, FetchRequest])
def test_topic_when_null_then_raises_protocol_error(
    kind: type[ProduceRequest | FetchRequest],
) -> None:
    with pytest.raises(ProtocolError, match="null"):
        kind.decode(Reader(b"\xff\xff" + bytes(40)))


def test_topic_when_not_utf8_then_raises_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="not UTF-8"):
        FetchRequest.decode(Reader(b"\x00\x01\xff" + bytes(40)))


@pytest.mark.parametrize("acks", [2, -3, 32767])
def test_acks_when_undefined_then_raises_protocol_error(acks: int) -> None:
    with pytest.raises(ProtocolError, match=f"acks is {acks}"):
        PublishRequest.decode(Reader(struct.pack(">hii", acks, 0, 0)))


@pytest.mark.parametrize("kind", [-1, 7, 127])
def test_list_offsets_when_kind_is_undefined_then_raises_protocol_error(kind: int) -> None:
    body = struct.pack(">i", 1) + TOPIC + bytes(8) + struct.pack(">bq", kind, 0)

    with pytest.raises(ProtocolError, match=f"{kind} is no kind of offset"):
        ListOffsetsRequest.decode(Reader(body))


@pytest.mark.parametrize("topics", [None, ()])
def test_metadata_when_all_or_no_topics_are_asked_then_the_two_stay_apart(
    topics: tuple[str, ...] | None,
) -> None:
    assert MetadataRequest.decode(Reader(MetadataRequest(topics).encode())).topics == topics


def test_produce_when_decoded_then_its_set_is_a_view_on_the_frame() -> None:
    frame = bytearray(frame_of(encode_request(ProduceRequest("t", 0, b"set"))))

    request = decode_request(frame)
    frame[-1] = ord("e")

    assert isinstance(request, ProduceRequest)
    assert bytes(request.message_set) == b"see"


def test_publish_when_encoded_then_has_the_layout_of_its_field_table() -> None:
    partition = TopicPartition("t", 2, 1)
    request = PublishRequest(Acks.COMMITTED, 500, (PartitionSet(partition, b"set"),))

    assert b"".join(encode_extension_parts(request, RequestHeader(0, 7, "me"))) == bytes.fromhex(
        "00000028"  # size
        "0041"  # type 65
        "0000 00000007 0002 6d65"  # version, correlation id, client id
        "ffff 000001f4"  # acks, timeout
        "00000001"  # one set
        "0001 74 00000002 00000001"  # topic, home, index
        "00000003 736574"  # set
    )


def test_filtered_read_when_encoded_then_is_the_read_and_the_filter_behind_it() -> None:
    read = ReadRequest(1, 2, 3, ())
    header = RequestHeader(FilteredReadRequest.VERSION, 5, "")
    request = FilteredReadRequest(read, PayloadFilter(b"a.b", ignore_case=True, invert=True))

    assert frame_of(b"".join(encode_extension_parts(request, header))) == (
        struct.pack(">hhih", 66, 1, 5, 0) + struct.pack(">iiii", 1, 2, 3, 0) + b"\x03\0\0\0\x03a.b"
    )


class Name(str):
    """A name that tells when it is gone."""


def test_partition_when_no_topic_can_have_its_name_then_is_not_remembered() -> None:
    name = Name("x" * (MAX_TOPIC_NAME_LENGTH + 1))
    gone = weakref.ref(name)
    place = TopicPartition(name, -1, 0)
    assert decode_partition(Reader(encode_partition(place))) == place
    del name, place
    assert gone() is None


def test_partition_when_decoded_then_nothing_keeps_its_name() -> None:
    """Python 3.12 keeps interned names for good, and a client can send any number of them."""
    encoded = encode_partition(TopicPartition("named-by-a-client", 0, 0))
    first, second = decode_partition(Reader(encoded)), decode_partition(Reader(encoded))
    assert first.topic is not second.topic
