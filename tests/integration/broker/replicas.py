"""Two stand-ins for brokers with replicas of one partition, whose leader a test moves."""

from __future__ import annotations

import socket
import threading
from functools import partial

from broker.errors import (
    NO_ERROR,
    NotEnoughReplicasError,
    NotLeaderError,
    OffsetNotAvailableError,
)
from broker.protocol.client_requests import (
    ClusterMetadataRequest,
    HelloRequest,
    ListOffsetsRequest,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.layouts import EXTENSION_REQUESTS
from broker.protocol.primitives import Reader
from broker.protocol.requests import RequestHeader, RequestType
from broker.protocol.responses import (
    HELLO,
    LISTED_OFFSETS,
    BrokerAddress,
    HelloResponse,
    ListedOffset,
    PartitionMetadata,
    Published,
    ReadPart,
    encode_cluster_metadata_header,
    encode_cluster_partition,
    encode_cluster_topic_header,
    encode_extension_response,
    encode_publish_response,
    encode_read_part_header,
)
from broker.topic import FORMAT_07, TopicPartition
from tests.integration.broker.peers import Server
from tests.support.framing import FrameDecoder

PARTITION = TopicPartition("t", 0, 0)
_TYPES = (
    RequestType.HELLO,
    RequestType.PUBLISH,
    RequestType.READ,
    RequestType.LIST_OFFSETS,
)


class Replicas:
    """Brokers 0 and 1, which share the log of `PARTITION`.

    Attributes:
        leader: id of the broker that leads it.
        gives_hint: whether a broker that refuses names the leader.
        log: the bytes of the partition.
        refused_count: sets that were refused.
        unavailable_count: how often no offset was given.
        knows_committed: whether the leader gives offsets.
        lacks_replicas: whether the leader refuses sets as too few replicas are in sync.
    """

    def __init__(self) -> None:
        self.leader = 0
        self.gives_hint = True
        self.log = b""
        self.refused_count = 0
        self.unavailable_count = 0
        self.knows_committed = True
        self.lacks_replicas = False
        self._lock = threading.Lock()
        self._servers = [Server(partial(self._serve, number)) for number in range(2)]

    @property
    def addresses(self) -> list[BrokerAddress]:
        return [
            BrokerAddress(one, "127.0.0.1", each.port) for one, each in enumerate(self._servers)
        ]

    def stop(self) -> None:
        for server in self._servers:
            server.stop()

    def _serve(self, broker_id: int, sock: socket.socket) -> None:
        decoder = FrameDecoder()
        refuses: set[int] = set()  # as a broker does behind a set that it has refused
        while data := sock.recv(1 << 16):
            decoder.receive_data(data)
            while (frame := decoder.next_frame()) is not None:
                reader = Reader(frame)
                request_type = reader.int16()
                header = RequestHeader.decode(reader)
                request = EXTENSION_REQUESTS[request_type, header.version].decode(reader)
                with self._lock:
                    body = self._answer(broker_id, request, refuses)
                sock.sendall(encode_extension_response(header.correlation_id, body))

    def _answer(self, broker_id: int, request: object, refuses: set[int]) -> bytes:
        is_leader = broker_id == self.leader
        hint = self.leader if self.gives_hint else -1
        match request:
            case HelloRequest():
                versions = {int(one): (0, 0) for one in _TYPES}
                versions[int(RequestType.METADATA)] = (0, 1)
                hello = HelloResponse(broker_id, "zk", "", 1 << 20, 1 << 20, versions)
                return HELLO.encode(hello)
            case ClusterMetadataRequest():
                return self._metadata(broker_id)
            case PublishRequest(sets=((partition, message_set, _),)):
                if not refuses and not is_leader:
                    refuses.add(NotLeaderError.code)
                elif not refuses and self.lacks_replicas:
                    refuses.add(NotEnoughReplicasError.code)
                if refuses:
                    self.refused_count += 1
                    (error,) = refuses
                    return encode_publish_response([Published(partition, error, hint, "no")])
                offset = len(self.log)
                self.log += bytes(message_set)
                return encode_publish_response([Published(partition, NO_ERROR, offset, "")])
            case ReadRequest(positions=((partition, offset, _),)):
                if not is_leader:
                    part = ReadPart(partition, NotLeaderError.code, hint, 0, b"")
                else:
                    part = ReadPart(partition, NO_ERROR, len(self.log), 0, self.log[offset:])
                head = encode_read_part_header(part, len(part.message_set))
                return b"\x00\x00\x00\x01" + head + bytes(part.message_set)
            case ListOffsetsRequest(queries=((partition, _, _),)):
                found = ListedOffset(partition, NO_ERROR, len(self.log), 0, len(self.log))
                if not is_leader:
                    found = ListedOffset(partition, NotLeaderError.code, hint, -1, -1)
                elif not self.knows_committed:
                    found = ListedOffset(partition, OffsetNotAvailableError.code, -1, -1, -1)
                    self.unavailable_count += 1
                return LISTED_OFFSETS.encode([found])
        raise AssertionError(f"no answer to {request}")

    def _metadata(self, broker_id: int) -> bytes:
        one = PartitionMetadata(PARTITION, NO_ERROR, self.leader, (0, 1), (0, 1), 1)
        return b"".join(
            (
                encode_cluster_metadata_header("zk", broker_id, -1, self.addresses, {}, 1),
                encode_cluster_topic_header("t", NO_ERROR, FORMAT_07, {}, 1),
                encode_cluster_partition(one),
            )
        )
