"""Brokers that replicate by the orders of a controller, which the test plays."""

from __future__ import annotations

from pathlib import Path

from broker.cluster_state import LiveBroker, PartitionState, ReplicatedPartition
from broker.protocol.client_requests import (
    Acks,
    ListOffsetsRequest,
    OffsetKind,
    OffsetQuery,
    PartitionPosition,
    PartitionSet,
    PublishRequest,
    ReadRequest,
)
from broker.protocol.replica_requests import PushStatesRequest
from broker.protocol.responses import (
    LISTED_OFFSETS,
    ListedOffset,
    Published,
    ReadPart,
    decode_publish_response,
    decode_read_response,
)
from broker.server.broker import Broker
from broker.topic import NO_HOME, TopicPartition
from tests.integration.broker.factories import BrokerFactory, PeerFactory
from tests.integration.broker.server.peer import Peer
from tests.support.broker_proof import give_key, prove_to
from tests.support.waiting import wait_until

PARTITION = TopicPartition("events", 0, 0)
CONTROLLER = 9
TOPIC_ID = "0123456789abcdef" * 2


class ScriptedCluster:
    """Brokers 0, 1, 2 with a replica each of one partition; the test is their controller."""

    def __init__(
        self,
        start: BrokerFactory,
        connect: PeerFactory,
        directory: Path,
        partition: TopicPartition = PARTITION,
    ) -> None:
        self.partition = partition
        self._start = start
        self._connect = connect
        self._directory = directory
        self.brokers: dict[int, Broker] = {}
        self._peers: dict[int, Peer] = {}
        self._epoch = -1
        self._version = 0
        self.controller_epoch = 1
        self.replicas: tuple[int, ...] = (0, 1, 2)
        for broker_id in range(3):
            self.start(broker_id)

    def start(self, broker_id: int) -> None:
        broker = self._start(
            broker_id=broker_id, data_dir=give_key(self._directory / str(broker_id))
        )
        broker.replicas.registered_epoch = lambda: 1  # as if in ZooKeeper
        self.brokers[broker_id] = broker

    def stop(self, broker_id: int) -> None:
        self._peers.pop(broker_id, None)
        self.brokers.pop(broker_id).stop()

    def reconnect(self, broker_id: int) -> None:
        """Go on after a refusal, which holds for a connection."""
        self._peers.pop(broker_id).close()

    def connect(self, broker_id: int) -> Peer:
        return self._connect(self.brokers[broker_id])

    def peer(self, broker_id: int) -> Peer:
        if broker_id not in self._peers:
            self._peers[broker_id] = peer = self.connect(broker_id)
            prove_to(self.brokers[broker_id], peer.call, CONTROLLER)
        return self._peers[broker_id]

    def decide(self, leader: int, isr: tuple[int, ...], *, min_isr: int = 1) -> None:
        """Tell all brokers who leads."""
        self._epoch += 1
        self.change_isr(leader, isr, min_isr=min_isr)

    def change_isr(self, leader: int, isr: tuple[int, ...], *, min_isr: int = 1) -> None:
        """Tell all brokers who is in sync, in the same term."""
        self._version += 1
        for broker_id in self.brokers:
            self.push(broker_id, leader, isr, min_isr=min_isr)

    def push(self, broker_id: int, leader: int, isr: tuple[int, ...], *, min_isr: int = 1) -> None:
        state = PartitionState(leader, self._epoch, isr, self.controller_epoch)
        creation_id = TOPIC_ID if self.partition.home == NO_HOME else "id"
        info = ReplicatedPartition(
            self.partition, creation_id, self.replicas, min_isr, state, self._version
        )
        live = tuple(
            LiveBroker(one.config.broker_id, "127.0.0.1", one.port, 1, True, "")
            for one in self.brokers.values()
        )
        request = PushStatesRequest(
            controller_id=CONTROLLER,
            controller_epoch=self.controller_epoch,
            broker_epoch=1,
            is_full=False,
            brokers=live,
            partitions=(info,),
            stopped=(),
        )
        self.peer(broker_id).call(request)

    def publish(
        self,
        broker_id: int,
        message_set: bytes,
        *,
        acks: Acks = Acks.COMMITTED,
        timeout_ms: int = 50_000,
    ) -> Published:
        request = PublishRequest(acks, timeout_ms, (PartitionSet(self.partition, message_set),))
        peer = self.peer(broker_id)
        peer.send_extension(request)  # the topic is the controller's to create
        (published,) = decode_publish_response(peer.receive_extension())
        return published

    def read(self, broker_id: int, offset: int, *, max_wait_ms: int = 0) -> ReadPart:
        position = PartitionPosition(self.partition, offset, 1 << 20)
        request = ReadRequest(max_wait_ms, 1, 1 << 20, (position,))
        (part,) = decode_read_response(self.peer(broker_id).call(request))
        return part

    def list_offset(
        self,
        broker_id: int,
        kind: OffsetKind,
        argument: int = 0,
        *,
        partition: TopicPartition | None = None,
    ) -> ListedOffset:
        query = OffsetQuery(partition or self.partition, kind, argument)
        request = ListOffsetsRequest((query,))
        (found,) = LISTED_OFFSETS.decode(self.peer(broker_id).call(request))
        return found

    def bytes_of(self, broker_id: int) -> bytes:
        data = self._directory / str(broker_id)
        if self.partition.home == NO_HOME:
            segments = (data / "events-0").glob("*.log")
        else:
            where = data if broker_id == 0 else data / "replicas" / "0"
            segments = (where / "events_0").glob("*.pylog")
        return b"".join(one.read_bytes() for one in sorted(segments))

    def await_bytes(self, expected: bytes) -> None:
        wait_until(
            lambda: all(self.bytes_of(one) == expected for one in self.brokers),
            "the same bytes on all brokers",
        )
