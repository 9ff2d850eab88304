"""Hypothesis strategies for payloads, message sets, requests and answers.

Message sets are put together here from `struct` and `zlib`, not by the code under test, and each
comes with what a reader must find in it. Only the compressed containers are the library's own;
golden vectors hold those against other writers.
"""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple, TypeVar

from hypothesis import strategies as st

from broker.protocol import responses
from broker.protocol.compression import Codec, compress
from broker.protocol.requests import (
    Acks,
    BaseRequest,
    CreateTopicRequest,
    ExtensionRequest,
    FetchRequest,
    HelloRequest,
    Lookup,
    LookupRequest,
    MetadataRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    PartitionLookup,
    PartitionPosition,
    PartitionSet,
    ProduceRequest,
    PublishRequest,
    ReadRequest,
    RequestHeader,
    ShutdownRequest,
    StatusRequest,
)
from broker.topic import TopicPartition

WRAPPER_CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


class BuiltEntry(NamedTuple):
    """An entry's bytes and the payloads a reader must find in it."""

    data: bytes
    payloads: tuple[bytes, ...]
    is_wrapper: bool = False


class BuiltSet(NamedTuple):
    """A message set of whole, valid entries."""

    entries: tuple[BuiltEntry, ...]

    @property
    def data(self) -> bytes:
        return b"".join(entry.data for entry in self.entries)

    @property
    def payloads(self) -> list[bytes]:
        return [payload for entry in self.entries for payload in entry.payloads]

    @property
    def boundaries(self) -> list[int]:
        ends = [0]
        for entry in self.entries:
            ends.append(ends[-1] + len(entry.data))
        return ends

    def messages(self, base_offset: int) -> list[tuple[int, int, bytes]]:
        """Offset, next offset and payload of every message, by the rule for wrappers."""
        found = []
        for start, end, entry in zip(
            self.boundaries, self.boundaries[1:], self.entries, strict=False
        ):
            for place, payload in enumerate(entry.payloads, start=1):
                resume = end if place == len(entry.payloads) else start
                found.append((base_offset + start, base_offset + resume, payload))
        return found


def magic0_bytes(payload: bytes) -> bytes:
    """One entry as the oldest clients write it."""
    return struct.pack(">iBI", 5 + len(payload), 0, zlib.crc32(payload)) + payload


def magic1_bytes(payload: bytes, attributes: int = 0) -> bytes:
    """One entry with attributes."""
    header = struct.pack(">iBBI", 6 + len(payload), 1, attributes, zlib.crc32(payload))
    return header + payload


def wrapper_bytes(codec: Codec, inner: bytes, high_bits: int = 0) -> bytes:
    """One entry whose payload is a compressed message set."""
    return magic1_bytes(compress(codec, inner), codec | high_bits)


def payloads() -> st.SearchStrategy[bytes]:
    """Payloads: short, empty, and long enough to compress."""
    repeated = st.builds(lambda piece, n: piece * n, st.binary(max_size=4), st.integers(0, 60))
    return st.binary(max_size=40) | repeated


def plain_entries() -> st.SearchStrategy[BuiltEntry]:
    """Entries without compression, of both magics, with any meaningless attribute bits."""
    magic0 = payloads().map(lambda payload: BuiltEntry(magic0_bytes(payload), (payload,)))
    magic1 = st.builds(
        lambda payload, high: BuiltEntry(magic1_bytes(payload, high << 2), (payload,)),
        payloads(),
        st.just(0) | st.integers(0, 63),
    )
    return magic1 | magic0


@st.composite
def wrappers(
    draw: st.DrawFn, inner_entries: st.SearchStrategy[BuiltEntry] | None = None
) -> BuiltEntry:
    """Wrappers of every codec, also empty ones and ones with a partial inner tail."""
    codec = draw(st.sampled_from(WRAPPER_CODECS))
    inner = draw(st.lists(inner_entries or plain_entries(), max_size=4))
    data = b"".join(entry.data for entry in inner)
    tail = draw(st.just(b"") | plain_entries().map(lambda entry: entry.data[:-1]))
    meaningless_bits = 2 if codec in (Codec.GZIP, Codec.SNAPPY) else 4
    high_bits = draw(st.integers(0, 255 >> meaningless_bits)) << meaningless_bits
    return BuiltEntry(
        wrapper_bytes(codec, data + (tail if inner else tail[:3]), high_bits),
        tuple(payload for entry in inner for payload in entry.payloads),
        is_wrapper=True,
    )


def entries() -> st.SearchStrategy[BuiltEntry]:
    """Entries of every kind, wrappers in wrappers included."""
    return st.recursive(plain_entries(), wrappers, max_leaves=4)


def message_sets(
    each: st.SearchStrategy[BuiltEntry] | None = None, *, min_size: int = 0
) -> st.SearchStrategy[BuiltSet]:
    """Valid message sets of at least `min_size` entries."""
    lists = st.lists(each or entries(), min_size=min_size, max_size=5)
    return lists.map(lambda found: BuiltSet(tuple(found)))


@st.composite
def damaged_sets(draw: st.DrawFn) -> bytes:
    """Message sets with a few bits flipped, lengths overwritten, bytes cut out or put in."""
    built = draw(message_sets(min_size=1))
    data = bytearray(built.data)
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.sampled_from(built.boundaries) | st.integers(0, len(data)))
        match draw(st.sampled_from(("flip", "length", "cut", "insert", "end"))):
            case "flip" if position < len(data):
                data[position] ^= 1 << draw(st.integers(0, 7))
            case "length":
                length = draw(st.sampled_from((-(2**31), -1, 0, 4, 5, 6, 2**31 - 1)))
                data[position : position + 4] = struct.pack(">i", length)
            case "cut":
                del data[position : position + draw(st.integers(1, 12))]
            case "insert":
                data[position:position] = draw(st.binary(min_size=1, max_size=12))
            case _:
                del data[position:]
    return bytes(data)


@st.composite
def odd_entries(draw: st.DrawFn) -> bytes:
    """Entries whose fields are chosen one by one, most of them wrong somewhere."""
    payload = draw(payloads())
    magic = draw(st.sampled_from((0, 1, 1, 1, 2, 255)))
    header_bytes = 6 if magic else 5
    length = header_bytes + len(payload) + draw(st.sampled_from((0, 0, 0, -1, 1, 7)))
    crc = zlib.crc32(payload) ^ draw(st.sampled_from((0, 0, 0, 1)))
    attributes = bytes((draw(st.integers(0, 255)),)) if magic else b""
    return struct.pack(">iB", length, magic) + attributes + struct.pack(">I", crc) + payload


def any_sets() -> st.SearchStrategy[bytes]:
    """What may stand where a message set should: good, damaged, or not one at all."""
    odd = st.lists(odd_entries() | entries().map(lambda entry: entry.data), max_size=4)
    return (
        message_sets().map(lambda built: built.data)
        | damaged_sets()
        | odd.map(b"".join)
        | st.binary(max_size=60)
    )


INT8 = st.integers(-(2**7), 2**7 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
SHORT_STRING = st.text(max_size=12)
SET_BYTES = st.binary(max_size=30)
PARTITION = st.builds(TopicPartition, SHORT_STRING, INT32, INT32)


T = TypeVar("T")


def _tuples(items: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(items, max_size=3).map(tuple)


PRODUCES = st.builds(ProduceRequest, SHORT_STRING, INT32, SET_BYTES)
FETCHES = st.builds(FetchRequest, SHORT_STRING, INT32, INT64, INT32)

BASE_REQUESTS: dict[type[BaseRequest], st.SearchStrategy[BaseRequest]] = {
    ProduceRequest: PRODUCES,
    MultiProduceRequest: st.builds(MultiProduceRequest, _tuples(PRODUCES)),
    FetchRequest: FETCHES,
    MultiFetchRequest: st.builds(MultiFetchRequest, _tuples(FETCHES)),
    OffsetsRequest: st.builds(OffsetsRequest, SHORT_STRING, INT32, INT64, INT32),
}

EXTENSION_REQUESTS: dict[type[ExtensionRequest], st.SearchStrategy[ExtensionRequest]] = {
    HelloRequest: st.just(HelloRequest()),
    PublishRequest: st.builds(
        PublishRequest,
        st.sampled_from(Acks),
        INT32,
        _tuples(st.builds(PartitionSet, PARTITION, SET_BYTES)),
    ),
    ReadRequest: st.builds(
        ReadRequest,
        INT32,
        INT32,
        INT32,
        _tuples(st.builds(PartitionPosition, PARTITION, INT64, INT32)),
    ),
    MetadataRequest: st.builds(MetadataRequest, st.none() | _tuples(SHORT_STRING)),
    LookupRequest: st.builds(
        LookupRequest,
        _tuples(st.builds(PartitionLookup, PARTITION, st.sampled_from(Lookup), INT64)),
    ),
    StatusRequest: st.just(StatusRequest()),
    ShutdownRequest: st.builds(ShutdownRequest, st.booleans()),
    CreateTopicRequest: st.builds(CreateTopicRequest, SHORT_STRING, INT32),
}

REQUEST_HEADERS = st.builds(RequestHeader, INT16, INT32, SHORT_STRING)

HELLO_RESPONSES = st.builds(
    responses.HelloResponse,
    INT32,
    SHORT_STRING,
    SHORT_STRING,
    INT32,
    INT32,
    st.dictionaries(INT16, st.tuples(INT16, INT16), max_size=3),
)
PUBLISHED = st.builds(responses.Published, PARTITION, INT16, INT64, SHORT_STRING)
READ_PARTS = st.builds(responses.ReadPart, PARTITION, INT16, INT64, INT64, SET_BYTES)
LOOKED_UP = st.builds(responses.LookedUp, PARTITION, INT16, INT64, INT64, INT64)


@st.composite
def _topic_metadata(draw: st.DrawFn) -> responses.TopicMetadata:
    topic = draw(SHORT_STRING)
    partitions = st.builds(
        responses.PartitionMetadata,
        st.builds(TopicPartition, st.just(topic), INT32, INT32),
        INT16,
        INT32,
        _tuples(INT32),
        _tuples(INT32),
    )
    return responses.TopicMetadata(topic, draw(INT16), draw(_tuples(partitions)))


METADATA_RESPONSES = st.builds(
    responses.MetadataResponse,
    SHORT_STRING,
    _tuples(st.builds(responses.BrokerAddress, INT32, SHORT_STRING, INT32)),
    _tuples(_topic_metadata()),
)
