from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from broker.protocol.checksum import crc32, crc32_crcmod
from broker.protocol.codec import Fault, boundaries, decode, encode, scan
from broker.protocol.compression import Codec, decompress
from broker.protocol.framing import encode_frame
from broker.protocol.message_set import build_set, iter_entries, iter_messages, wrap
from broker.protocol.requests import (
    ANY_PARTITION,
    EARLIEST_TIME,
    LATEST_TIME,
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    decode_request,
    encode_request,
)
from broker.protocol.responses import (
    decode_fetch_response,
    decode_multifetch_response,
    decode_offsets_response,
    encode_fetch_header,
    encode_multifetch_header,
    encode_offsets_response,
)
from tests.strategies import magic0_bytes
from tests.unit.broker.protocol.frames import frame_of
from tests.unit.broker.protocol.golden import VECTORS

THREE = [b"one", b"two", b"three"]
SET_OF_THREE = VECTORS["set-3-uncompressed"].data
HELLO_SET = VECTORS["entry-magic1-hello"].data
FIRST_FETCH = FetchRequest("test", 0, 0, 1048576)

SETS = {
    "entry-magic0-hello": [b"hello"],
    "entry-magic1-hello": [b"hello"],
    "entry-magic1-empty": [b""],
    "set-3-uncompressed": THREE,
    "set-mixed-magic": [b"old", b"new"],
    "set-gzip-3": THREE,
    "set-gzip-3-stored": THREE,
    "set-snappy-3": THREE,
    "set-snappy-3-raw": THREE,
    "set-snappy-3-jvm": THREE,
    "set-gzip-nested": [b"a", b"b", b"c"],
    "log-segment-example": [b"42"] * 9,
}

REQUESTS: dict[str, BaseRequest] = {
    "produce-request": ProduceRequest("test", 0, HELLO_SET),
    "produce-request-magic0": ProduceRequest("test", 0, VECTORS["entry-magic0-hello"].data),
    "produce-request-random-partition": ProduceRequest("test", ANY_PARTITION, SET_OF_THREE),
    "produce-request-gzip": ProduceRequest("test", 0, VECTORS["set-gzip-3-stored"].data),
    "produce-request-empty-set": ProduceRequest("test", 0, b""),
    "produce-request-utf8-topic": ProduceRequest("café", 0, HELLO_SET),
    "fetch-request": FIRST_FETCH,
    "fetch-request-large-offset": FetchRequest("test", 3, 5_000_000_000, 300),
    "multifetch-request": MultiFetchRequest((FIRST_FETCH, FetchRequest("other", 1, 26, 1024))),
    "multiproduce-request": MultiProduceRequest(
        (
            ProduceRequest("test", 0, HELLO_SET),
            ProduceRequest("other", ANY_PARTITION, SET_OF_THREE),
        )
    ),
    "offsets-request-latest": OffsetsRequest("test", 0, LATEST_TIME, 10),
    "offsets-request-earliest": OffsetsRequest("test", 0, EARLIEST_TIME, 1),
    "offsets-request-time": OffsetsRequest("test", 0, 1_325_376_000_000, 100),
}

FETCH_RESPONSES = {
    "fetch-response": (0, SET_OF_THREE),
    "fetch-response-empty": (0, b""),
    "fetch-response-offset-out-of-range": (1, b""),
    "fetch-response-wrong-partition": (3, b""),
    "fetch-response-unknown": (-1, b""),
}
MULTIFETCH_RESPONSES = {
    "multifetch-response": [(0, SET_OF_THREE), (1, b"")],
    "multifetch-response-zero": [],
}
OFFSETS_RESPONSES = {
    "offsets-response": [240, 216, 108, 0],
    "offsets-response-empty": [],
    "offsets-response-zero": [0],
}
BARE_MESSAGES = {"message-magic0-hello", "message-magic1-hello"}
TESTED_ALONE = {"set-partial-tail", "snappy-stream-header"}


def test_vectors_when_counted_then_each_is_covered_here() -> None:
    responses = FETCH_RESPONSES.keys() | MULTIFETCH_RESPONSES.keys() | OFFSETS_RESPONSES.keys()

    assert SETS.keys() | REQUESTS.keys() | responses | BARE_MESSAGES | TESTED_ALONE == set(VECTORS)


@pytest.mark.parametrize("name", VECTORS)
def test_vector_when_loaded_then_has_the_length_it_states(name: str) -> None:
    assert len(VECTORS[name].data) == VECTORS[name].length


@pytest.mark.parametrize("name", SETS)
def test_set_when_scanned_then_is_valid_to_its_end(name: str) -> None:
    data = VECTORS[name].data

    found = scan(data)

    assert (found.valid_bytes, found.fault) == (len(data), Fault.NONE)
    assert boundaries(data)[-1] == len(data)


@pytest.mark.parametrize("name", SETS)
def test_set_when_decoded_then_gives_the_payloads(name: str) -> None:
    assert [message[2] for message in decode(VECTORS[name].data, 0).messages] == SETS[name]


@pytest.mark.parametrize("name", [name for name in SETS if VECTORS[name].next_offsets])
def test_set_when_decoded_then_gives_the_next_offsets(name: str) -> None:
    vector = VECTORS[name]

    assert [message[1] for message in decode(vector.data, 0).messages] == vector.next_offsets
    assert [m.next_offset for m in iter_messages(vector.data, 0)] == vector.next_offsets


@pytest.mark.parametrize("name", [name for name in SETS if VECTORS[name].payloads])
def test_set_when_vector_lists_payloads_then_they_are_what_is_expected_here(name: str) -> None:
    assert VECTORS[name].payloads == SETS[name]


@pytest.mark.parametrize("name", [name for name in SETS if VECTORS[name].inner])
def test_wrapper_when_decompressed_then_holds_the_inner_set(name: str) -> None:
    (entry,) = iter_entries(VECTORS[name].data, 0)

    assert entry.codec in (Codec.GZIP, Codec.SNAPPY)
    assert decompress(entry.codec, entry.payload) == VECTORS[name].inner


@pytest.mark.parametrize(
    "name",
    ["entry-magic1-hello", "entry-magic1-empty", "set-3-uncompressed", "log-segment-example"],
)
def test_set_when_encoded_then_equals_the_vector(name: str) -> None:
    assert encode(SETS[name]) == VECTORS[name].data


def test_set_when_magic_is_mixed_then_entries_keep_their_own() -> None:
    entries = list(iter_entries(VECTORS["set-mixed-magic"].data, 0))

    assert [entry.magic for entry in entries] == [0, 1]
    assert VECTORS["set-mixed-magic"].data == magic0_bytes(b"old") + encode([b"new"])


@pytest.mark.parametrize("name", sorted(BARE_MESSAGES))
def test_bare_message_when_its_length_is_put_before_it_then_is_the_entry(name: str) -> None:
    entry = VECTORS[name.replace("message", "entry")].data

    assert encode_frame(VECTORS[name].data) == entry


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_set_when_wrapped_by_us_then_holds_the_same_inner_set(codec: Codec) -> None:
    (entry,) = iter_entries(build_set(THREE, codec), 0)

    assert (entry.magic, entry.attributes) == (1, codec)
    assert decompress(codec, entry.payload) == SET_OF_THREE


def test_gzip_wrapper_when_written_by_us_then_has_the_header_of_the_jdk() -> None:
    (entry,) = iter_entries(wrap(SET_OF_THREE, Codec.GZIP), 0)

    assert bytes(entry.payload[:8]) == bytes.fromhex("1f8b080000000000")


def test_snappy_wrapper_when_written_by_us_then_starts_with_the_stream_header() -> None:
    (entry,) = iter_entries(wrap(SET_OF_THREE, Codec.SNAPPY), 0)

    assert bytes(entry.payload[:16]) == VECTORS["snappy-stream-header"].data


def test_set_when_its_tail_is_partial_then_whole_messages_are_read_and_the_tail_is_left() -> None:
    vector = VECTORS["set-partial-tail"]

    decoded = decode(vector.data, 0)

    assert (decoded.valid_bytes, decoded.fault) == (26, Fault.PARTIAL)
    assert [message[1] for message in decoded.messages] == vector.next_offsets
    assert [m.next_offset for m in iter_messages(vector.data, 0)] == vector.next_offsets
    assert scan(vector.data)[:3] == (26, 2, Fault.PARTIAL)
    assert boundaries(vector.data) == [0, 13, 26]


@pytest.mark.parametrize("name", REQUESTS)
def test_request_when_encoded_then_equals_the_vector(name: str) -> None:
    assert encode_request(REQUESTS[name]) == VECTORS[name].data


@pytest.mark.parametrize("name", REQUESTS)
def test_request_when_decoded_then_has_the_fields_of_the_vector(name: str) -> None:
    assert decode_request(frame_of(VECTORS[name].data)) == REQUESTS[name]


@pytest.mark.parametrize("name", FETCH_RESPONSES)
def test_fetch_response_when_encoded_then_equals_the_vector(name: str) -> None:
    error, message_set = FETCH_RESPONSES[name]

    assert encode_fetch_header(error, len(message_set)) + message_set == VECTORS[name].data


@pytest.mark.parametrize("name", FETCH_RESPONSES)
def test_fetch_response_when_decoded_then_has_error_and_set_of_the_vector(name: str) -> None:
    error, message_set = decode_fetch_response(frame_of(VECTORS[name].data))

    assert (error, bytes(message_set)) == FETCH_RESPONSES[name]


@pytest.mark.parametrize("name", MULTIFETCH_RESPONSES)
def test_multifetch_response_when_encoded_then_equals_the_vector(name: str) -> None:
    parts = b"".join(
        encode_fetch_header(error, len(message_set)) + message_set
        for error, message_set in MULTIFETCH_RESPONSES[name]
    )

    assert encode_multifetch_header(len(parts)) + parts == VECTORS[name].data


@pytest.mark.parametrize("name", MULTIFETCH_RESPONSES)
def test_multifetch_response_when_decoded_then_has_the_parts_of_the_vector(name: str) -> None:
    parts = decode_multifetch_response(frame_of(VECTORS[name].data))

    assert [(error, bytes(data)) for error, data in parts] == MULTIFETCH_RESPONSES[name]


@pytest.mark.parametrize("name", OFFSETS_RESPONSES)
def test_offsets_response_when_encoded_then_equals_the_vector(name: str) -> None:
    assert encode_offsets_response(OFFSETS_RESPONSES[name]) == VECTORS[name].data


@pytest.mark.parametrize("name", OFFSETS_RESPONSES)
def test_offsets_response_when_decoded_then_has_the_offsets_of_the_vector(name: str) -> None:
    assert decode_offsets_response(frame_of(VECTORS[name].data)) == OFFSETS_RESPONSES[name]


def test_segment_when_written_by_a_real_broker_then_every_message_is_read(
    shared_data: Path,
) -> None:
    data = (shared_data / "kafka-magic0" / "00000000000000000000.kafka").read_bytes()
    payload = b"x" * 100

    messages = list(iter_messages(data, 0))

    assert scan(data) == (10900, 100, Fault.NONE, [], 100)
    assert [m.payload for m in messages] == [payload] * 100
    assert {(m.magic, m.codec, m.crc) for m in messages} == {(0, Codec.NONE, 0x5E0E5D8F)}
    assert decode(data, 0).messages == [(n * 109, n * 109 + 109, payload) for n in range(100)]
    assert data == magic0_bytes(payload) * 100


@pytest.mark.parametrize("engine", [crc32, crc32_crcmod])
def test_crc_when_payload_is_that_of_the_real_segment_then_is_its_crc(
    engine: Callable[[bytes], int],
) -> None:
    assert engine(b"x" * 100) == 0x5E0E5D8F
