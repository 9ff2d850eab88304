from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import (
    BrokerError,
    LeaderNotAvailableError,
    OffsetOutOfRangeError,
    ProtocolError,
    StorageError,
    UnknownServerError,
)
from broker.protocol import layouts, responses
from broker.protocol.primitives import MAX_SHORT_STRING_BYTES, Reader
from broker.topic import FORMAT_07, TopicPartition
from tests.strategies import (
    CLUSTER_METADATA_RESPONSES,
    FILTERED_PARTS,
    HELLO_RESPONSES,
    INT16,
    INT32,
    INT64,
    LISTED_OFFSET,
    METADATA_RESPONSES,
    PUBLISHED,
    READ_PARTS,
    SET_BYTES,
)
from tests.unit.broker.protocol.frames import frame_of


def encode_filtered_parts(parts: list[responses.FilteredPart]) -> bytes:
    """The body of the answer to a read with a filter, as a broker puts it together."""
    return struct.pack(">i", len(parts)) + b"".join(
        responses.encode_filtered_part_header(part, len(part.runs))
        + b"".join(map(responses.encode_run, part.runs))
        for part in parts
    )


def encode_metadata(response: responses.MetadataResponse) -> bytes:
    """A response with replicas, which no broker sends yet."""
    (broker,) = response.brokers
    parts = [
        responses.encode_metadata_header(response.cluster_id, broker, len(response.topics)),
    ]
    for topic, error, partitions, *_ in response.topics:
        parts.append(responses.encode_topic_metadata_header(topic, error, len(partitions)))
        for partition, problem, leader, replicas, isr, *_ in partitions:
            parts.append(struct.pack(">iihi", partition.home, partition.index, problem, leader))
            for ids in (replicas, isr):
                parts.append(struct.pack(f">i{len(ids)}i", len(ids), *ids))
    return b"".join(parts)


def encode_cluster_metadata(response: responses.ClusterMetadataResponse) -> bytes:
    parts = [
        responses.encode_cluster_metadata_header(
            response.cluster_id,
            response.broker_id,
            response.controller_id,
            response.brokers,
            response.racks,
            len(response.topics),
        )
    ]
    for topic, error, partitions, ids, format in response.topics:
        parts.append(
            responses.encode_cluster_topic_header(topic, error, format, ids, len(partitions))
        )
        parts += map(responses.encode_cluster_partition, partitions)
    return b"".join(parts)


def encode_read_parts(parts: list[responses.ReadPart]) -> bytes:
    """What the broker sends, which takes the sets from files."""
    return struct.pack(">i", len(parts)) + b"".join(
        responses.encode_read_part_header(part, len(part.message_set)) + part.message_set
        for part in parts
    )


FEW_EXAMPLES = settings(max_examples=30)  # for each of many kinds, all of them small
Coding = tuple[st.SearchStrategy[Any], Callable[[Any], bytes], Callable[[Reader], Any]]
BODIES: dict[str, Coding] = {
    "hello": (
        HELLO_RESPONSES,
        responses.HELLO.encode,
        responses.HELLO.decode,
    ),
    "publish": (
        st.lists(PUBLISHED, max_size=3),
        responses.encode_publish_response,
        responses.decode_publish_response,
    ),
    "read": (st.lists(READ_PARTS, max_size=3), encode_read_parts, responses.decode_read_response),
    "filtered read": (
        st.lists(FILTERED_PARTS, max_size=3),
        encode_filtered_parts,
        responses.decode_filtered_read_response,
    ),
    "metadata": (
        METADATA_RESPONSES,
        encode_metadata,
        responses.MetadataResponse.decode,
    ),
    "cluster metadata": (
        CLUSTER_METADATA_RESPONSES,
        encode_cluster_metadata,
        responses.ClusterMetadataResponse.decode,
    ),
    "list offsets": (
        st.lists(LISTED_OFFSET, max_size=3),
        responses.LISTED_OFFSETS.encode,
        responses.LISTED_OFFSETS.decode,
    ),
    "document": (st.binary(max_size=40), layouts.DATA.encode, layouts.DATA.decode),
}
FRAMES: dict[str, Callable[[bytes], object]] = {
    "fetch": responses.decode_fetch_response,
    "multifetch": responses.decode_multifetch_response,
    "offsets": responses.decode_offsets_response,
    "extension": responses.decode_extension_response,
}


@pytest.mark.parametrize("name", BODIES)
@FEW_EXAMPLES
@given(data=st.data())
def test_body_when_encoded_and_decoded_then_is_the_same(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = BODIES[name]
    value = data.draw(strategy)
    reader = Reader(encode(value))

    assert decode(reader) == value
    assert reader.remaining == 0


@pytest.mark.parametrize("name", BODIES)
@FEW_EXAMPLES
@given(data=st.data())
def test_body_when_cut_anywhere_then_raises_protocol_error(name: str, data: st.DataObject) -> None:
    strategy, encode, decode = BODIES[name]
    body = encode(data.draw(strategy))
    for end in range(len(body)):
        with pytest.raises(ProtocolError):
            decode(Reader(body[:end]))


@pytest.mark.parametrize("name", BODIES)
@FEW_EXAMPLES
@given(body=st.binary(max_size=80))
def test_body_when_random_then_only_protocol_error_is_raised(name: str, body: bytes) -> None:
    try:
        BODIES[name][2](Reader(body))
    except ProtocolError:
        return


@pytest.mark.parametrize("name", FRAMES)
@FEW_EXAMPLES
@given(frame=st.binary(max_size=60))
def test_frame_when_random_then_only_broker_errors_are_raised(name: str, frame: bytes) -> None:
    try:
        FRAMES[name](frame)
    except BrokerError:
        return


@pytest.mark.parametrize(
    ("decode", "head"),
    [
        (responses.HELLO.decode, bytes(16)),
        (responses.decode_publish_response, b""),
        (responses.decode_read_response, b""),
        (responses.decode_filtered_read_response, b""),
        (responses.decode_filtered_read_response, b"\x00\x00\x00\x01" + bytes(38)),
        (responses.MetadataResponse.decode, bytes(2)),
        (responses.MetadataResponse.decode, bytes(6)),
        (responses.ClusterMetadataResponse.decode, bytes(10)),
        (responses.ClusterMetadataResponse.decode, bytes(14)),
        (responses.LISTED_OFFSETS.decode, b""),
        (layouts.DATA.decode, b""),
    ],
)
@pytest.mark.parametrize("count", [2**31 - 1, -1, -(2**31)])
def test_count_when_huge_or_negative_then_is_refused_without_allocating(
    decode: Callable[[Reader], object], head: bytes, count: int
) -> None:
    body = head + struct.pack(">i", count) + bytes(80)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError):
            decode(Reader(body))
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak_bytes < 1 << 20


@pytest.mark.parametrize("name", ["publish", "read", "filtered read", "list offsets"])
def test_count_when_one_more_item_is_promised_than_fits_then_the_count_is_refused(
    name: str,
) -> None:
    partition = TopicPartition("", 0, 0)
    empty_items: dict[str, tuple[object, ...]] = {
        "publish": responses.Published(partition, 0, 0, ""),
        "read": responses.ReadPart(partition, 0, 0, 0, b""),
        "filtered read": responses.FilteredPart(partition, 0, 0, 0, 0, "", ()),
        "list offsets": responses.ListedOffset(partition, 0, 0, 0, 0),
    }
    _, encode, decode = BODIES[name]
    body = encode([empty_items[name]] * 2)

    assert len(decode(Reader(body))) == 2
    with pytest.raises(ProtocolError, match="2 items cannot follow"):
        decode(Reader(body[:-1]))


@given(INT16, SET_BYTES)
def test_fetch_when_encoded_and_decoded_then_is_the_same(error: int, message_set: bytes) -> None:
    frame = frame_of(responses.encode_fetch_header(error, len(message_set)) + message_set)

    found, data = responses.decode_fetch_response(frame)

    assert (found, bytes(data)) == (error, message_set)


@given(st.lists(st.tuples(INT16, SET_BYTES), max_size=4))
def test_multifetch_when_encoded_and_decoded_then_is_the_same(
    parts: list[tuple[int, bytes]],
) -> None:
    body = b"".join(responses.encode_fetch_header(error, len(s)) + s for error, s in parts)

    frame = frame_of(responses.encode_multifetch_header(len(body)) + body)

    found = responses.decode_multifetch_response(frame)

    assert [(error, bytes(data)) for error, data in found] == parts


@pytest.mark.parametrize("part_size", [-1, 0, 1, 6, 2**31 - 1])
def test_multifetch_when_a_part_does_not_fit_then_raises_protocol_error(part_size: int) -> None:
    with pytest.raises(ProtocolError):
        responses.decode_multifetch_response(struct.pack(">hi", 0, part_size) + bytes(5))


@given(st.lists(INT64, max_size=6))
def test_offsets_when_encoded_and_decoded_then_are_the_same(offsets: list[int]) -> None:
    frame = frame_of(responses.encode_offsets_response(offsets))

    assert responses.decode_offsets_response(frame) == offsets


def test_offsets_when_response_carries_a_code_then_its_error_is_raised() -> None:
    with pytest.raises(OffsetOutOfRangeError):
        responses.decode_offsets_response(struct.pack(">hi", 1, 0))


@pytest.mark.parametrize("count", [3, 2**31 - 1, -1])
def test_offsets_when_count_does_not_fit_then_raises_protocol_error(count: int) -> None:
    with pytest.raises(ProtocolError):
        responses.decode_offsets_response(struct.pack(">hi", 0, count) + bytes(16))


@given(INT32, st.binary(max_size=30))
def test_extension_response_when_good_then_gives_correlation_id_and_body(
    correlation_id: int, body: bytes
) -> None:
    frame = frame_of(responses.encode_extension_response(correlation_id, body))

    found, reader = responses.decode_extension_response(frame)

    assert found == correlation_id
    assert reader.data(reader.remaining) == body


@pytest.mark.parametrize(("code", "kind"), [(56, StorageError), (999, UnknownServerError)])
def test_extension_response_when_refused_then_the_error_of_its_code_is_raised(
    code: int, kind: type[BrokerError]
) -> None:
    frame = frame_of(responses.encode_extension_error(5, code, "disk full"))

    with pytest.raises(kind, match=r"^disk full$"):
        responses.decode_extension_response(frame)


@pytest.mark.parametrize("text", ["x" * 100_000, "é" * 20_000, "\U0001f600" * 9000])
def test_error_text_when_too_long_for_a_short_string_then_is_cut(text: str) -> None:
    with pytest.raises(StorageError) as caught:
        responses.decode_extension_response(frame_of(responses.encode_extension_error(1, 56, text)))

    assert text.startswith(str(caught.value))
    assert len(str(caught.value)) >= MAX_SHORT_STRING_BYTES // 4


def test_error_text_when_it_names_a_file_outside_unicode_then_is_spelt_out() -> None:
    frame = frame_of(responses.encode_extension_error(1, 56, "cannot write /data/\udcff.pylog"))

    with pytest.raises(StorageError, match=r"cannot write /data/\\udcff.pylog"):
        responses.decode_extension_response(frame)


def test_correlation_id_when_another_is_found_then_raises_protocol_error() -> None:
    with pytest.raises(ProtocolError, match="request 4 came where 3 was due"):
        responses.check_correlation_id(3, 4)


def test_correlation_id_when_as_expected_then_nothing_is_raised() -> None:
    responses.check_correlation_id(3, 3)


def test_read_when_encoded_then_has_the_layout_of_its_field_table() -> None:
    partition = TopicPartition("t", 2, 1)

    header = responses.encode_read_part_header(
        responses.ReadPart(partition, 1, 300, 100, b""), set_bytes=5
    )

    assert header == bytes.fromhex(
        "0001 74 00000002 00000001"  # topic, home, index
        "0001"  # error
        "000000000000012c 0000000000000064"  # high watermark, log start offset
        "00000005"  # set size
    )


def test_filtered_part_when_encoded_then_runs_follow_its_header() -> None:
    partition = TopicPartition("t", 2, 1)
    part = responses.FilteredPart(partition, 7, 900, 100, 500, "why", ())
    run = responses.Run(300, b"entries")

    assert responses.encode_filtered_part_header(part, 1) + responses.encode_run(run) == (
        b"\0\x01t"
        + struct.pack(">iihqqq", 2, 1, 7, 900, 100, 500)
        + b"\0\x03why"
        + struct.pack(">iqi", 1, 300, 7)
        + b"entries"
    )


def test_led_partitions_when_decoded_then_one_broker_has_them_alone() -> None:
    broker = responses.BrokerAddress(4, "host", 9092)
    body = responses.encode_metadata_header("zk", broker, 1)
    body += responses.encode_topic_metadata_header("events", 0, 3)
    partitions = responses.encode_led_partitions(4, range(3))
    assert len(partitions) == 3 * responses.LED_PARTITION_BYTES

    decoded = responses.MetadataResponse.decode(Reader(body + partitions))

    assert (decoded.cluster_id, decoded.brokers) == ("zk", (broker,))
    assert decoded.topics == (
        responses.TopicMetadata(
            "events",
            0,
            tuple(
                responses.PartitionMetadata(TopicPartition("events", 4, index), 0, 4, (4,), (4,))
                for index in range(3)
            ),
        ),
    )


@pytest.mark.parametrize("is_led", [True, False])
def test_home_partitions_when_decoded_then_the_home_alone_has_them(is_led: bool) -> None:
    body = responses.encode_cluster_metadata_header("zk", 9, 4, (), {}, 1)
    body += responses.encode_cluster_topic_header("events", 0, FORMAT_07, {4: "id"}, 2)
    partitions = responses.encode_home_partitions(4, range(2), broker_id=4, is_led=is_led)
    assert len(partitions) == 2 * responses.HOME_PARTITION_BYTES

    decoded = responses.ClusterMetadataResponse.decode(Reader(body + partitions))

    assert [one.partition for one in decoded.topics[0].partitions] == [
        TopicPartition("events", 4, index) for index in range(2)
    ]
    assert decoded.topics[0].creation_ids == {4: "id"}
    leader, error = (4, 0) if is_led else (-1, LeaderNotAvailableError.code)
    assert {one[1:] for one in decoded.topics[0].partitions} == {(error, leader, (4,), (4,), -1, 1)}
