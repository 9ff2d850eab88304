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

from broker.cluster_state import (
    EpochEnd,
    EpochStart,
    IsrChange,
    IsrDecision,
    IsrMember,
    LiveBroker,
    PartitionState,
    Reassignment,
    ReplicatedPartition,
    ShutdownProgress,
    StoppedReplica,
    Unmoved,
)
from broker.protocol import responses
from broker.protocol.client_connection import encode_extension_parts
from broker.protocol.client_requests import (
    Acks,
    AnyReplicaReadRequest,
    AuthenticateRequest,
    ClusterMetadataRequest,
    DigestLogRequest,
    FilteredReadRequest,
    HelloRequest,
    ListOffsetsRequest,
    ListSegmentsRequest,
    MetadataRequest,
    OffsetKind,
    OffsetQuery,
    PartitionPosition,
    PartitionSet,
    PayloadFilter,
    PublishRequest,
    ReadRequest,
    SchemaOperation,
    SchemasRequest,
    SessionReadRequest,
    StampedPublishRequest,
)
from broker.protocol.cluster_requests import (
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    DeleteReplicatedTopicRequest,
    ElectionKind,
    ElectLeadersRequest,
    ListedReassignments,
    ListReassignmentsRequest,
    ListUnknownReplicasRequest,
    PartitionOutcome,
    PartitionReassignment,
    ReassignRequest,
    ReplicaTarget,
    ReplicateTopicRequest,
    RestorePartitionsRequest,
    SettingText,
)
from broker.protocol.compression import Codec, compress
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    MoveLogRequest,
    ReadChangesRequest,
    ShutdownRequest,
    StatusRequest,
)
from broker.protocol.framing import encode_frame
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.message import ProducerStamp
from broker.protocol.replica_requests import (
    ChangeIsrRequest,
    ControlledShutdownRequest,
    ProbeBrokerRequest,
    PushStatesRequest,
    ReplicaFetchRequest,
    ReplicaPart,
    ReplicaPosition,
    SessionFetchRequest,
)
from broker.protocol.requests import (
    BaseRequest,
    FetchRequest,
    MultiFetchRequest,
    MultiProduceRequest,
    OffsetsRequest,
    ProduceRequest,
    RequestHeader,
    encode_request,
)
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import FORMAT_07, FORMATS, TopicPartition

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


_BYTE = st.integers(0, 255)
_LENGTHS = st.sampled_from((-(2**31), -1, 0, 4, 5, 6, 2**31 - 1))
_DAMAGES = st.sampled_from(("flip", "length", "cut", "insert", "end"))

PAYLOADS = st.binary(max_size=40) | st.builds(
    lambda piece, n: piece * n, st.binary(max_size=4), st.integers(0, 60)
)
"""Short ones, empty ones, and ones long enough to compress."""

PLAIN_ENTRIES = st.builds(
    lambda payload, high: BuiltEntry(magic1_bytes(payload, high << 2), (payload,)),
    PAYLOADS,
    st.just(0) | st.integers(0, 63),
) | PAYLOADS.map(lambda payload: BuiltEntry(magic0_bytes(payload), (payload,)))
"""Entries without compression, of both magics, with any meaningless attribute bits."""


def _wrapper(
    codec: Codec, meaningless_bits: int, inner: list[BuiltEntry], tail: bytes
) -> BuiltEntry:
    """Wrap entries and a partial one behind them, which may be the first only if it is tiny."""
    meaningless_mask = 0xFC if codec in (Codec.GZIP, Codec.SNAPPY) else 0xF0
    data = b"".join(entry.data for entry in inner) + (tail if inner else tail[:3])
    return BuiltEntry(
        wrapper_bytes(codec, data, meaningless_bits & meaningless_mask),
        tuple(payload for entry in inner for payload in entry.payloads),
        is_wrapper=True,
    )


def _wrappers(inner: st.SearchStrategy[BuiltEntry]) -> st.SearchStrategy[BuiltEntry]:
    return st.builds(
        _wrapper,
        st.sampled_from(WRAPPER_CODECS),
        st.just(0) | _BYTE,
        st.lists(inner, max_size=3),
        st.just(b"") | PLAIN_ENTRIES.map(lambda entry: entry.data[:-1]),
    )


WRAPPERS = _wrappers(PLAIN_ENTRIES | _wrappers(PLAIN_ENTRIES | _wrappers(PLAIN_ENTRIES)))
"""Wrappers of every codec, also nested ones, empty ones and ones with a partial inner tail."""

ENTRIES = PLAIN_ENTRIES | PLAIN_ENTRIES | WRAPPERS
"""Entries of every kind."""


def _sets(each: st.SearchStrategy[BuiltEntry], min_size: int = 0) -> st.SearchStrategy[BuiltSet]:
    lists = st.lists(each, min_size=min_size, max_size=4)
    return lists.map(lambda found: BuiltSet(tuple(found)))


MESSAGE_SETS = _sets(ENTRIES)
FILLED_SETS = _sets(ENTRIES, min_size=1)
PLAIN_SETS = _sets(PLAIN_ENTRIES)


@st.composite
def _damaged_sets(draw: st.DrawFn) -> bytes:
    """Message sets with a few bits flipped, lengths overwritten, bytes cut out or put in."""
    built = draw(FILLED_SETS)
    data = bytearray(built.data)
    for _ in range(draw(st.integers(1, 3))):
        position = draw(st.sampled_from(built.boundaries) | st.integers(0, len(data)))
        match draw(_DAMAGES):
            case "flip" if position < len(data):
                data[position] ^= 1 << draw(st.integers(0, 7))
            case "length":
                data[position : position + 4] = struct.pack(">i", draw(_LENGTHS))
            case "cut":
                del data[position : position + draw(st.integers(1, 12))]
            case "insert":
                data[position:position] = draw(st.binary(min_size=1, max_size=12))
            case _:
                del data[position:]
    return bytes(data)


def _odd_entry(
    payload: bytes, magic: int, length_error: int, crc_error: int, attributes: int
) -> bytes:
    header = bytes((magic, attributes)) if magic else b"\x00"
    crc = struct.pack(">I", zlib.crc32(payload) ^ crc_error)
    return struct.pack(">i", len(header + crc + payload) + length_error) + header + crc + payload


ODD_ENTRIES = st.builds(
    _odd_entry,
    PAYLOADS,
    st.sampled_from((0, 1, 1, 1, 2, 255)),
    st.sampled_from((0, 0, 0, -1, 1, 7)),
    st.sampled_from((0, 0, 0, 1)),
    _BYTE,
)
"""Entries whose fields are chosen one by one, most of them wrong somewhere."""

ANY_SETS = (
    MESSAGE_SETS.map(lambda built: built.data)
    | _damaged_sets()
    | st.lists(ODD_ENTRIES | ENTRIES.map(lambda entry: entry.data), max_size=3).map(b"".join)
    | st.binary(max_size=60)
)
"""What may stand where a message set should: good, damaged, or not one at all."""


def append_frame(kind: int, topic: str, index: int, message_set: bytes, at: int, bit: int) -> bytes:
    """Return a produce (kind 0), or a publish, of one set; a bit of it is wrong if `bit` < 8."""
    place = TopicPartition(topic, -1, index)
    if kind:
        request = PublishRequest(Acks.WRITTEN, kind, (PartitionSet(place, message_set),))
        header = RequestHeader(request.VERSION, at, "client")
        frame = bytearray(b"".join(encode_extension_parts(request, header)))
    else:
        frame = bytearray(encode_request(ProduceRequest(topic, index, message_set)))
    if bit < 8:
        frame[at % len(frame)] ^= 1 << bit
    return bytes(frame)


APPEND_FRAMES = st.builds(
    append_frame,
    *(st.integers(0, 2), st.sampled_from(("a", "b")), st.integers(0, 1), ANY_SETS),
    *(st.integers(0, 90), st.sampled_from((8, 8, 8, 8, *range(8)))),
) | st.binary(max_size=40).map(encode_frame)
"""Frames of requests that append one set, some of them damaged, and of others."""


INT8 = st.integers(-(2**7), 2**7 - 1)
INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
SHORT_STRING = st.text(max_size=12)
TOPIC_FORMATS = st.sampled_from(("", *FORMATS))
SET_BYTES = st.binary(max_size=30)
TOPIC = st.text(
    st.characters(
        exclude_categories=("Cc", "Cs", "Co"),
        exclude_characters="/" + "".join(map(chr, range(0xFFF0, 0x10000))),
    ),
    min_size=1,
    max_size=12,
).filter(lambda name: name not in (".", ".."))
PARTITION = st.builds(TopicPartition, TOPIC, INT32, INT32)
REPLICA_POSITION = st.builds(ReplicaPosition, PARTITION, INT32, INT64, INT32, INT64, INT32, INT32)


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

PAYLOAD_FILTERS = st.builds(
    PayloadFilter, st.binary(max_size=12), ignore_case=st.booleans(), invert=st.booleans()
)
_READ_FIELDS = (
    *(INT32, INT32, INT32),
    _tuples(st.builds(PartitionPosition, PARTITION, INT64, INT32)),
)
READS = st.builds(ReadRequest, *_READ_FIELDS)

_NUMBER = st.integers(0, (1 << 31) - 1)
REPLICA_RECORDS = st.builds(
    ReplicaRecord,
    st.builds(TopicPartition, TOPIC, _NUMBER, _NUMBER),
    SHORT_STRING,
    _tuples(INT32),
    st.builds(PartitionState, INT32, INT32, _tuples(INT32), INT32),
    INT32,
    st.dictionaries(SHORT_STRING, SHORT_STRING, max_size=3),
)
UNKNOWN_REPLICAS = st.builds(UnknownReplica, REPLICA_RECORDS, st.booleans(), INT32, INT64, INT64)
REPLICATED_PARTITION = st.builds(
    ReplicatedPartition,
    *(PARTITION, SHORT_STRING, _tuples(INT32), INT32),
    st.builds(PartitionState, INT32, INT32, _tuples(INT32), INT32),
    INT32,
    _tuples(INT32),
    SHORT_STRING,
)

PRODUCER_STAMPS = st.builds(
    ProducerStamp,
    *(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)),
    st.just(0),
)
EXTENSION_REQUESTS: dict[type[ExtensionRequest], st.SearchStrategy[ExtensionRequest]] = {
    HelloRequest: st.just(HelloRequest()),
    PublishRequest: st.builds(
        PublishRequest,
        st.sampled_from(Acks),
        INT32,
        _tuples(st.builds(PartitionSet, PARTITION, SET_BYTES, st.none())),
    ),
    StampedPublishRequest: st.builds(
        StampedPublishRequest,
        st.sampled_from(Acks),
        INT32,
        _tuples(st.builds(PartitionSet, PARTITION, SET_BYTES, st.none() | PRODUCER_STAMPS)),
    ),
    ReadRequest: READS,
    AnyReplicaReadRequest: st.builds(AnyReplicaReadRequest, *_READ_FIELDS),
    FilteredReadRequest: st.builds(FilteredReadRequest, READS, PAYLOAD_FILTERS),
    SessionReadRequest: st.builds(
        SessionReadRequest, READS, INT64, INT64, st.booleans(), _tuples(PARTITION)
    ),
    MetadataRequest: st.builds(MetadataRequest, st.none() | _tuples(SHORT_STRING)),
    ClusterMetadataRequest: st.builds(ClusterMetadataRequest, st.none() | _tuples(SHORT_STRING)),
    ListOffsetsRequest: st.builds(
        ListOffsetsRequest,
        _tuples(st.builds(OffsetQuery, PARTITION, st.sampled_from(OffsetKind), INT64)),
    ),
    ListSegmentsRequest: st.builds(ListSegmentsRequest, PARTITION, INT64, INT32),
    StatusRequest: st.just(StatusRequest()),
    ShutdownRequest: st.builds(ShutdownRequest, st.booleans()),
    CreateTopicRequest: st.builds(CreateTopicRequest, TOPIC, INT32, format=TOPIC_FORMATS),
    DeleteTopicRequest: st.builds(DeleteTopicRequest, TOPIC),
    MoveLogRequest: st.builds(
        MoveLogRequest, PARTITION, SHORT_STRING.filter(lambda path: "\0" not in path)
    ),
    ReadChangesRequest: st.builds(ReadChangesRequest, INT64),
    DigestLogRequest: st.builds(DigestLogRequest, PARTITION, INT64, INT32),
    SchemasRequest: st.builds(
        SchemasRequest, st.sampled_from(SchemaOperation), SHORT_STRING, st.binary(max_size=40)
    ),
    AuthenticateRequest: st.builds(
        AuthenticateRequest, SHORT_STRING, st.integers(-128, 127), st.binary(max_size=40)
    ),
    ReplicaFetchRequest: st.builds(
        ReplicaFetchRequest,
        *(INT32, INT64, INT32, INT32, INT32),
        _tuples(REPLICA_POSITION),
    ),
    SessionFetchRequest: st.builds(
        SessionFetchRequest,
        *(INT32, INT64, INT64, INT64, INT32, INT32, INT32),
        _tuples(REPLICA_POSITION),
        _tuples(PARTITION),
    ),
    PushStatesRequest: st.builds(
        PushStatesRequest,
        *(INT32, INT32, INT64, st.booleans()),
        _tuples(
            st.builds(
                LiveBroker,
                *(INT32, SHORT_STRING, INT32, INT64, st.booleans(), SHORT_STRING),
                has_replicas=st.just(False),  # not told to brokers
                endpoints=st.just(()),  # nor these
            )
        ),
        _tuples(REPLICATED_PARTITION),
        _tuples(st.builds(StoppedReplica, PARTITION, SHORT_STRING, INT32, st.booleans())),
        throttle_bytes_per_s=INT64,
    ),
    ChangeIsrRequest: st.builds(
        ChangeIsrRequest,
        *(INT32, INT64),
        _tuples(
            st.builds(
                IsrChange,
                *(PARTITION, INT32, INT32),
                _tuples(st.builds(IsrMember, INT32, INT64)),
                INT32,
            )
        ),
    ),
    ControlledShutdownRequest: st.builds(ControlledShutdownRequest, INT32, INT64),
    ProbeBrokerRequest: st.builds(ProbeBrokerRequest, INT32, INT32, INT64, INT32),
    DeleteReplicatedTopicRequest: st.builds(DeleteReplicatedTopicRequest, TOPIC),
    AddPartitionsRequest: st.builds(AddPartitionsRequest, TOPIC, INT32),
    ReplicateTopicRequest: st.builds(ReplicateTopicRequest, TOPIC, INT32),
    ElectLeadersRequest: st.builds(
        ElectLeadersRequest, st.sampled_from(ElectionKind), _tuples(PARTITION)
    ),
    ReassignRequest: st.builds(
        ReassignRequest,
        _tuples(st.builds(ReplicaTarget, PARTITION, _tuples(INT32))),
        throttle_bytes_per_s=INT64,
    ),
    ListReassignmentsRequest: st.just(ListReassignmentsRequest()),
    ListUnknownReplicasRequest: st.just(ListUnknownReplicasRequest()),
    RestorePartitionsRequest: st.builds(RestorePartitionsRequest, _tuples(REPLICA_RECORDS)),
    CreateReplicatedTopicRequest: st.builds(
        CreateReplicatedTopicRequest,
        *(TOPIC, INT32, INT32),
        _tuples(st.builds(SettingText, SHORT_STRING, SHORT_STRING)),
        TOPIC_FORMATS,
    ),
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
    INT64,
)
PUBLISHED = st.builds(responses.Published, PARTITION, INT16, INT64, SHORT_STRING, INT64)
READ_PARTS = st.builds(responses.ReadPart, PARTITION, INT16, INT64, INT64, SET_BYTES)
FILTERED_PARTS = st.builds(
    responses.FilteredPart,
    PARTITION,
    INT16,
    INT64,
    INT64,
    INT64,
    SHORT_STRING,
    _tuples(st.builds(responses.Run, INT64, SET_BYTES)),
)
REPLICA_PARTS = st.builds(
    ReplicaPart,
    *(PARTITION, INT16, INT64, INT64),
    st.builds(EpochEnd, INT32, INT64),
    _tuples(st.builds(EpochStart, INT32, INT64)),
    *(SET_BYTES, INT64, SET_BYTES),
)
ISR_DECISIONS = st.builds(
    IsrDecision, PARTITION, INT16, SHORT_STRING, st.none() | REPLICATED_PARTITION
)
OUTCOMES = st.builds(PartitionOutcome, PARTITION, INT16, SHORT_STRING)
REASSIGNMENTS = st.builds(
    ListedReassignments,
    INT64,
    _tuples(
        st.builds(
            PartitionReassignment,
            PARTITION,
            st.builds(Reassignment, _tuples(INT32), _tuples(INT32)),
        )
    ),
)
SHUTDOWN_PROGRESS = st.builds(
    ShutdownProgress,
    _tuples(REPLICATED_PARTITION),
    _tuples(PARTITION),
    _tuples(st.builds(Unmoved, PARTITION, SHORT_STRING)),
)
LISTED_OFFSET = st.builds(responses.ListedOffset, PARTITION, INT16, INT64, INT64, INT64)


_PartitionFields = tuple[int, int, int, int, tuple[int, ...], tuple[int, ...], int, int]


def _topic_metadata(
    topic: str,
    topic_error: int,
    partitions: list[_PartitionFields],
    creation_ids: dict[int, str],
    format: str,
) -> responses.TopicMetadata:
    """Give the partitions the name of their topic: it is on the wire only once."""
    found = (
        responses.PartitionMetadata(
            TopicPartition(topic, home, index), error, leader, replicas, isr, epoch, min_isr
        )
        for home, index, error, leader, replicas, isr, epoch, min_isr in partitions
    )
    return responses.TopicMetadata(topic, topic_error, tuple(found), creation_ids, format)


def _topics_metadata(
    epochs: st.SearchStrategy[int],
    min_isrs: st.SearchStrategy[int],
    creation_ids: st.SearchStrategy[dict[int, str]],
    formats: st.SearchStrategy[str],
) -> st.SearchStrategy[tuple[responses.TopicMetadata, ...]]:
    ids = _tuples(INT32)
    partition = st.tuples(INT32, INT32, INT16, INT32, ids, ids, epochs, min_isrs)
    partitions = st.lists(partition, max_size=2)
    return _tuples(
        st.builds(_topic_metadata, SHORT_STRING, INT16, partitions, creation_ids, formats)
    )


_BROKER_ADDRESS = st.builds(responses.BrokerAddress, INT32, SHORT_STRING, INT32)

METADATA_RESPONSES = st.builds(
    responses.MetadataResponse,
    SHORT_STRING,
    st.tuples(_BROKER_ADDRESS),
    _topics_metadata(st.just(-1), st.just(1), st.just({}), st.just(FORMAT_07)),
)


def _cluster_metadata(
    cluster_id: str,
    broker_id: int,
    controller_id: int,
    brokers: list[tuple[responses.BrokerAddress, str]],
    topics: tuple[responses.TopicMetadata, ...],
) -> responses.ClusterMetadataResponse:
    racks = {one.id: rack for one, rack in brokers if rack}
    addresses = tuple(one for one, _ in brokers)
    return responses.ClusterMetadataResponse(
        cluster_id, broker_id, controller_id, addresses, racks, topics
    )


CLUSTER_METADATA_RESPONSES = st.builds(
    _cluster_metadata,
    SHORT_STRING,
    *(INT32, INT32),
    st.lists(st.tuples(_BROKER_ADDRESS, SHORT_STRING), max_size=3, unique_by=lambda one: one[0].id),
    _topics_metadata(INT32, INT32, st.dictionaries(INT32, SHORT_STRING, max_size=3), TOPIC_FORMATS),
)
