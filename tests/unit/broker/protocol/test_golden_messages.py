"""The bytes of every extension request and response, as they were when this file was made.

Brokers and clients of different releases talk to each other: a message whose bytes change needs
another version of its request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from broker.cluster_state import (
    EpochEnd,
    EpochStart,
    IsrChange,
    IsrDecision,
    IsrMember,
    LiveBroker,
    PartitionState,
    PeerFinding,
    Reassignment,
    ReplicatedPartition,
    ShutdownProgress,
    StoppedReplica,
    Unmoved,
)
from broker.protocol import (
    client_requests,
    cluster_requests,
    layouts,
    replica_requests,
    responses,
)
from broker.protocol import extension_requests as extensions
from broker.protocol.client_requests import PayloadFilter
from broker.protocol.message import ProducerStamp
from broker.protocol.primitives import INT32, Reader
from broker.replica_records import ReplicaRecord, UnknownReplica
from broker.topic import TopicPartition
from tests.support.replica_parts import read_replica_parts

GOLDEN: dict[str, str] = json.loads(
    Path(__file__).with_name("golden_messages.json").read_text(encoding="utf-8")
)
ORDERS = TopicPartition("orders", 2, 0)
UMLAUT = TopicPartition("größe", 1, 65536)
STATE = PartitionState(leader=3, leader_epoch=7, isr=(3, 2), controller_epoch=5)
REPLICATED = ReplicatedPartition(
    ORDERS, "c0ffee", (2, 3, 1), 2, STATE, version=9, adding=(1,), kept_id="cafe"
)
BARE = ReplicatedPartition(UMLAUT, "", (), 1, PartitionState(-1, 0, (), 0), 0)
RECORD = ReplicaRecord(ORDERS, "c0ffee", (2, 3), STATE, 9, {"min.insync.replicas": "2"})
READ = client_requests.ReadRequest(
    500, 1, 1 << 20, (client_requests.PartitionPosition(ORDERS, 1 << 40, 4096),)
)

REQUESTS: list[layouts.ExtensionRequest] = [
    client_requests.HelloRequest(),
    client_requests.PublishRequest(
        client_requests.Acks.AUTO,
        30_000,
        (client_requests.PartitionSet(ORDERS, b"set"), client_requests.PartitionSet(UMLAUT, b"")),
    ),
    client_requests.StampedPublishRequest(
        client_requests.Acks.COMMITTED,
        30_000,
        (
            client_requests.PartitionSet(ORDERS, b"set", ProducerStamp(1 << 62, 0, 17, 0)),
            client_requests.PartitionSet(UMLAUT, b"batch"),
        ),
    ),
    READ,
    client_requests.AnyReplicaReadRequest(**vars(READ)),
    client_requests.FilteredReadRequest(READ, PayloadFilter(b"a|b", ignore_case=True)),
    client_requests.SessionReadRequest(READ, 1 << 62, 3, True, (UMLAUT,)),
    replica_requests.ReplicaFetchRequest(
        *(2, 77, 500, 1, 1 << 20),
        (replica_requests.ReplicaPosition(ORDERS, 7, 1 << 40, 6, 1 << 39, 12345, 4096),),
    ),
    replica_requests.SessionFetchRequest(
        *(2, 77, 1 << 62, 3, 500, 1, 1 << 20),
        (replica_requests.ReplicaPosition(ORDERS, 7, 1 << 40, 6, 1 << 39, 12345, 4096),),
        (ORDERS,),
    ),
    client_requests.MetadataRequest(("orders", "größe")),
    client_requests.ClusterMetadataRequest(None),
    client_requests.ListOffsetsRequest(
        (client_requests.OffsetQuery(ORDERS, client_requests.OffsetKind.TERM_END, 7),)
    ),
    client_requests.ListSegmentsRequest(ORDERS, -2, 10),
    extensions.StatusRequest(
        extensions.StatusParts.LOGS | extensions.StatusParts.METRICS, "orders"
    ),
    extensions.ShutdownRequest(force=True),
    extensions.CreateTopicRequest(
        "größe", homes=(extensions.HomeCount(0, 2), extensions.HomeCount(3, 4))
    ),
    cluster_requests.CreateReplicatedTopicRequest(
        "orders", 6, 3, (cluster_requests.SettingText("min.insync.replicas", "2"),), "kafka"
    ),
    extensions.DeleteTopicRequest("orders"),
    cluster_requests.DeleteReplicatedTopicRequest("orders"),
    extensions.MoveLogRequest(ORDERS, "/data/ä"),
    extensions.ReadChangesRequest(-1),
    client_requests.DigestLogRequest(ORDERS, 1 << 40, 4096),
    client_requests.AuthenticateRequest("SCRAM-SHA-256", 1, b"data"),
    client_requests.SchemasRequest(
        client_requests.SchemaOperation.VERSION, "größe-value", b'{"version": 3}'
    ),
    replica_requests.PushStatesRequest(
        *(1, 5, 77),
        is_full=True,
        brokers=(LiveBroker(2, "bröker", 9092, 78, is_clean=True, rack="r1"),),
        partitions=(REPLICATED, BARE),
        stopped=(StoppedReplica(UMLAUT, "dead", 8, deletes_log=True),),
        throttle_bytes_per_s=1 << 33,
    ),
    cluster_requests.ListUnknownReplicasRequest(),
    cluster_requests.RestorePartitionsRequest((RECORD,)),
    replica_requests.ChangeIsrRequest(
        2, 77, (IsrChange(ORDERS, 7, 9, (IsrMember(2, 77), IsrMember(3, -1)), 12345),)
    ),
    replica_requests.ControlledShutdownRequest(2, 77),
    replica_requests.ProbeBrokerRequest(2, 1, 76, 1000),
    cluster_requests.AddPartitionsRequest("orders", 3),
    cluster_requests.ReplicateTopicRequest("orders", 3),
    cluster_requests.ElectLeadersRequest(cluster_requests.ElectionKind.UNCLEAN, (ORDERS, UMLAUT)),
    cluster_requests.ReassignRequest(
        (
            cluster_requests.ReplicaTarget(ORDERS, (3, 1)),
            cluster_requests.ReplicaTarget(UMLAUT, ()),
        ),
        throttle_bytes_per_s=1 << 20,
    ),
    cluster_requests.ListReassignmentsRequest(),
]


class Response(NamedTuple):
    """A value, how it becomes the body of a response, and back."""

    value: Any
    encode: Callable[[Any], bytes]
    decode: Callable[[Reader], Any]


def encode_replica_parts(parts: list[replica_requests.ReplicaPart]) -> bytes:
    return INT32.pack(len(parts)) + b"".join(
        replica_requests.encode_replica_part_header(part, len(part.data)) + part.data
        for part in parts
    )


RESPONSES = {
    "hello": Response(
        responses.HelloResponse(
            2, "cluster", "pylogctl", 1000, 2000, {65: (0, 1), 66: (0, 3)}, 1 << 40
        ),
        responses.HELLO.encode,
        responses.HELLO.decode,
    ),
    "publish": Response(
        [
            responses.Published(ORDERS, 0, 1 << 40, "", 7),
            responses.Published(UMLAUT, 6, 3, "größe: 3 leads"),
        ],
        responses.encode_publish_response,
        responses.decode_publish_response,
    ),
    "list offsets": Response(
        [responses.ListedOffset(ORDERS, 0, 1 << 40, 17, (1 << 40) + 1)],
        responses.LISTED_OFFSETS.encode,
        responses.LISTED_OFFSETS.decode,
    ),
    "list segments": Response(
        [1 << 40, 0], responses.SEGMENT_STARTS.encode, responses.SEGMENT_STARTS.decode
    ),
    "digest": Response(
        responses.LogDigest(
            *(17, 1 << 40, 4096, 99),
            responses.LogDamage(responses.DamageState.MENDABLE, 5000),
            bytes(range(32)),
        ),
        responses.LOG_DIGEST.encode,
        responses.LOG_DIGEST.decode,
    ),
    "changes": Response(
        responses.LoggedLines(4096, b"a line\n"),
        responses.CHANGES.encode,
        responses.CHANGES.decode,
    ),
    "document": Response(b'{"id": 2}', layouts.DATA.encode, layouts.DATA.decode),
    "replica fetch": Response(
        [
            replica_requests.ReplicaPart(
                *(ORDERS, 0, 1 << 40, 17, EpochEnd(-1, -1)),
                (EpochStart(6, 17), EpochStart(7, 4096)),
                b"entries",
                1 << 40,
                b"rows",
            ),
            replica_requests.ReplicaPart(UMLAUT, 6, 3, 0, EpochEnd(5, 99), (), b""),
        ],
        encode_replica_parts,
        read_replica_parts,
    ),
    "authenticated": Response(
        client_requests.Authenticated(True, 3_600_000, "User:größe", b"answer"),
        client_requests.AUTHENTICATED.encode,
        client_requests.AUTHENTICATED.decode,
    ),
    "change isr": Response(
        [
            IsrDecision(ORDERS, 0, "", REPLICATED),
            IsrDecision(UMLAUT, 3, "größe is not known", None),
        ],
        replica_requests.ISR_DECISIONS.encode,
        replica_requests.ISR_DECISIONS.decode,
    ),
    "probe": Response(
        PeerFinding.SILENT,
        replica_requests.ProbeBrokerRequest.RESPONSE.encode,
        replica_requests.ProbeBrokerRequest.RESPONSE.decode,
    ),
    "controlled shutdown": Response(
        ShutdownProgress((REPLICATED,), (ORDERS, UMLAUT), (Unmoved(UMLAUT, "no replica"),)),
        replica_requests.SHUTDOWN_PROGRESS.encode,
        replica_requests.SHUTDOWN_PROGRESS.decode,
    ),
    "partitions": Response(
        (REPLICATED, BARE),
        replica_requests.PARTITIONS.encode,
        replica_requests.PARTITIONS.decode,
    ),
    "outcomes": Response(
        [
            cluster_requests.PartitionOutcome(ORDERS, 0, ""),
            cluster_requests.PartitionOutcome(UMLAUT, 21, "größe has a leader"),
        ],
        cluster_requests.OUTCOMES.encode,
        cluster_requests.OUTCOMES.decode,
    ),
    "reassignments": Response(
        cluster_requests.ListedReassignments(
            1 << 20,
            (cluster_requests.PartitionReassignment(ORDERS, Reassignment((2, 3), (3, 1))),),
        ),
        cluster_requests.REASSIGNMENTS.encode,
        cluster_requests.REASSIGNMENTS.decode,
    ),
    "unknown replicas": Response(
        [
            UnknownReplica(
                RECORD, is_live=True, last_epoch=7, log_start_offset=17, log_end_offset=99
            )
        ],
        replica_requests.UNKNOWN_REPLICAS.encode,
        replica_requests.UNKNOWN_REPLICAS.decode,
    ),
}


def test_requests_when_listed_then_all_kinds_have_golden_bytes() -> None:
    assert {type(one) for one in REQUESTS} == set(layouts.EXTENSION_REQUESTS.values())
    assert GOLDEN.keys() == {type(one).__name__ for one in REQUESTS} | RESPONSES.keys()


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_request_when_encoded_then_its_bytes_are_the_golden_ones(
    request_: layouts.ExtensionRequest,
) -> None:
    body = request_.encode()
    assert body.hex() == GOLDEN[type(request_).__name__]
    assert type(request_).decode(Reader(body)) == request_


@pytest.mark.parametrize("name", RESPONSES)
def test_response_when_encoded_then_its_bytes_are_the_golden_ones(name: str) -> None:
    value, encode, decode = RESPONSES[name]
    body = encode(value)
    assert body.hex() == GOLDEN[name]
    assert decode(Reader(body)) == value
