"""Requests that no broker, controller or client of ours would send, on the port of a broker.

This is about bytes, and about invalid orders of a client that has proved to be a broker: they
change nothing, and cost no more than their connection.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import pytest

from broker.client.connection import Connection
from broker.cluster_state import (
    IsrChange,
    IsrMember,
    LiveBroker,
    PartitionState,
    ReplicatedPartition,
    StoppedReplica,
)
from broker.errors import (
    InvalidRequestError,
    InvalidTopicError,
    StaleBrokerEpochError,
    StaleControllerEpochError,
    UnknownEpochError,
)
from broker.protocol.client_requests import (
    Acks,
    ClusterMetadataRequest,
    DigestLogRequest,
    ListSegmentsRequest,
    MetadataRequest,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.cluster_requests import (
    AddPartitionsRequest,
    CreateReplicatedTopicRequest,
    DeleteReplicatedTopicRequest,
    ElectionKind,
    ElectLeadersRequest,
    ListReassignmentsRequest,
    ReassignRequest,
    ReplicaTarget,
    ReplicateTopicRequest,
    SettingText,
)
from broker.protocol.codec import encode
from broker.protocol.extension_requests import (
    CreateTopicRequest,
    DeleteTopicRequest,
    MoveLogRequest,
)
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32
from broker.protocol.replica_requests import (
    ChangeIsrRequest,
    ControlledShutdownRequest,
    PushStatesRequest,
    ReplicaFetchRequest,
    ReplicaPosition,
    SessionFetchRequest,
)
from broker.protocol.responses import decode_publish_response
from broker.security.cluster_keys import BrokerIdentity
from broker.topic import TopicPartition
from broker.zk import paths
from tests.integration.broker.server.peer import Peer, extension_frame
from tests.integration.replication.replicated_cluster import ReplicatedCluster, is_alive
from tests.support.broker_proof import prove, registered
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.zookeeper, pytest.mark.open_only("its peers speak plain")]

_T = TypeVar("_T")
StartCluster = Callable[..., ReplicatedCluster]
SEED = 7
_SIZE_TYPE_VERSION = 8
"""What mutations leave alone, so that no request becomes one that deletes or shuts down."""
_NUMBERS = (-(2**31), -2, -1, 0, 1, 2, 7, 255, 32767, 32768, 2**24, 2**31 - 1)
_NAMES = ("t", "", ".", "..", "../../t", "a/b", "t\n", "\0", "x" * 300, "ä" * 200, "no-such")
MEMORY_GROWTH_MB = 60


class Requests:
    """Requests with the fields of true ones, and numbers and names that fit nothing."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.sender = 0  # of orders: the broker that was proved, more often than not

    def __iter__(self) -> Iterator[ExtensionRequest]:
        makers = (
            self._fetch,
            self._fetch_in_session,
            self._push,
            self._change_isr,
            lambda: ControlledShutdownRequest(self.sender, -1),
            self._create,
            lambda: DeleteReplicatedTopicRequest(self.random.choice(_NAMES[1:])),
            lambda: AddPartitionsRequest(self._name(), self.random.choice((-(2**31), -1, 0))),
            lambda: ElectLeadersRequest(ElectionKind.UNCLEAN, self._many(self._partition)),
            lambda: ReassignRequest(self._many(self._target)),
            ListReassignmentsRequest,
            lambda: ClusterMetadataRequest(self._many(self._name)),
            lambda: MoveLogRequest(self._partition(), self.random.choice(("/", "", "..", "\0"))),
        )
        while True:
            yield self.random.choice(makers)()

    def _number(self) -> int:
        return self.random.choice(_NUMBERS)

    def _name(self) -> str:
        return self.random.choice(_NAMES)

    def _many(self, make: Callable[[], _T]) -> tuple[_T, ...]:
        return tuple(make() for _ in range(self.random.choice((0, 1, 1, 2, 30))))

    def _partition(self) -> TopicPartition:
        return TopicPartition(self._name(), self._number(), self._number())

    def _fetch(self) -> ReplicaFetchRequest:
        number = self._number
        return ReplicaFetchRequest(
            self.random.choice((-1, self.sender, self.sender)),
            number(),
            self.random.choice((-1, 0, 5)),
            number(),
            number(),
            self._many(self._position),
        )

    def _fetch_in_session(self) -> SessionFetchRequest:
        number = self._number
        return SessionFetchRequest(
            *(self.sender, number(), self.random.choice((0, 0, number())), number()),
            *(self.random.choice((-1, 0, 5)), number(), number()),
            self._many(self._position),
            self._many(self._partition),
        )

    def _position(self) -> ReplicaPosition:
        number = self._number
        return ReplicaPosition(
            *(self._partition(), number(), number(), number()), *(number(), number(), number())
        )

    def _state(self) -> ReplicatedPartition:
        number = self._number
        state = PartitionState(number(), number(), self._many(number), number())
        return ReplicatedPartition(
            self._partition(), self._name(), self._many(number), number(), state, number()
        )

    def _push(self) -> PushStatesRequest:
        """Of a controller that is over, or for a registration that is over."""
        number = self._number
        epochs = self.random.choice(((-1, 2**62), (0, 2**62), (2**31 - 1, 0), (2**31 - 1, -1)))
        return PushStatesRequest(
            self.sender,
            *epochs,
            self.random.random() < 0.5,
            self._many(lambda: LiveBroker(number(), "host", number(), number(), True, "rack")),
            self._many(self._state),
            self._many(lambda: StoppedReplica(self._partition(), "", number(), True)),
        )

    def _change_isr(self) -> ChangeIsrRequest:
        number = self._number
        return ChangeIsrRequest(
            self.sender,
            self.random.choice((-(2**63), -1, 0, 2**63 - 1)),
            self._many(
                lambda: IsrChange(
                    self._partition(),
                    number(),
                    number(),
                    self._many(lambda: IsrMember(number(), number())),
                    number(),
                )
            ),
        )

    def _create(self) -> CreateReplicatedTopicRequest:
        return CreateReplicatedTopicRequest(
            self.random.choice(_NAMES[1:-1]),
            self._number(),
            self.random.choice((-1, 0, 3, 2**31 - 1)),
            self._many(lambda: SettingText(self._name(), self._name())),
        )

    def _target(self) -> ReplicaTarget:
        return ReplicaTarget(self._partition(), (7, *self._many(self._number)))

    def mutated(self, frame: bytes) -> bytes:
        """Return a frame with some of its bytes changed, of the same type and version."""
        body = bytearray(frame[_SIZE_TYPE_VERSION:])
        for _ in range(self.random.choice((1, 1, 2, 8))):
            at = self.random.randrange(len(body) + 1)
            match self.random.randrange(4):
                case 0:
                    body[at : at + 1] = self.random.randbytes(1)
                case 1:
                    body[at : at + 4] = struct.pack(">i", self._number())
                case 2:
                    del body[at:]
                case 3:
                    body[at:at] = self.random.randbytes(self.random.choice((1, 2, 4, 300)))
        kept = frame[INT32.size : _SIZE_TYPE_VERSION]
        return INT32.pack(len(kept) + len(body)) + kept + body


def proved(cluster: ReplicatedCluster, broker_id: int, sender: BrokerIdentity) -> Peer:
    """Connect to a broker, as another one of the cluster, or itself."""
    peer = Peer(cluster.brokers[broker_id].port)
    prove(peer.call, sender, broker_id, cluster.network.door_to_broker(broker_id))
    return peer


def send(cluster: ReplicatedCluster, broker_id: int, sender: BrokerIdentity, frame: bytes) -> None:
    """Send a frame on a connection of its own, and wait for a response or the end, but not for
    data that a fetch may wait for as long as it says."""
    with proved(cluster, broker_id, sender) as peer, suppress(TimeoutError):
        peer.send_bytes(frame)
        peer.socket.settimeout(1)
        peer.socket.recv(65536)


def push_frame(controller_epoch: int, broker_epoch: int, rest: bytes) -> bytes:
    """Return a push that names no partitions, with its last two counts replaced by other bytes."""
    request = PushStatesRequest(0, controller_epoch, broker_epoch, False, (), (), ())
    kept = extension_frame(request)[INT32.size : -2 * INT32.size]
    return INT32.pack(len(kept) + len(rest)) + kept + rest


def epochs_of(cluster: ReplicatedCluster, broker_id: int) -> tuple[int, int]:
    """Return the epochs of the controller and of a broker's registration."""
    stat = cluster.session.exists(paths.replicated_broker(broker_id))
    assert stat is not None
    return int(cluster.session.get(paths.CONTROLLER_EPOCH)[0]), stat.czxid


def publish(connection: Connection, partition: TopicPartition) -> int:
    message_set = PartitionSet(partition, encode([b"a message"]))
    request = PublishRequest(Acks.COMMITTED, 30_000, (message_set,))
    (published,) = decode_publish_response(connection.call(request))
    assert published.error == 0
    return published.base_offset


def test_broker_when_invalid_requests_come_then_goes_on_and_nothing_has_changed(
    start_cluster: StartCluster,
) -> None:
    # the states of partitions change by these requests alone
    cluster = start_cluster(2, replica_lag_time_max_ms="60000", zk_sessiontimeout_ms="10000")
    partitions = cluster.create_topic("t", 2, 2)
    cluster.await_full_isr(partitions)
    states = [cluster.state(one) for one in partitions]
    requests = Requests(SEED)
    made = iter(requests)
    senders = [registered(cluster.session, one) for one in cluster.brokers]
    memory_mb = {}
    for count in range(600):
        requests.sender = count % 2
        frame = extension_frame(next(made))
        for broker_id in cluster.brokers:
            sent = frame if count % 3 == 0 else requests.mutated(frame)
            send(cluster, broker_id, senders[count % 2], sent)
        if count == 100:
            memory_mb = {id: one.memory_mb("VmRSS") for id, one in cluster.brokers.items()}

    for broker_id, broker in cluster.brokers.items():
        assert is_alive(cluster, broker_id)
        assert broker.memory_mb("VmRSS") - memory_mb[broker_id] < MEMORY_GROWTH_MB
        assert "Traceback" not in cluster.output_of(broker_id)
    assert [cluster.state(one) for one in partitions] == states
    assert cluster.session.children("/replicated/topics") == ["t"]
    for partition in partitions:
        connection = cluster.connect(cluster.leader(partition))
        assert publish(connection, partition) == 0
        connection.close()
        cluster.await_equal_logs(partition)


def requests_that_name(name: str, partition: TopicPartition) -> list[ExtensionRequest]:
    """Return requests about a topic of a name, one of them about a partition of another too."""
    bad = TopicPartition(name, 0, 0)
    return [
        CreateReplicatedTopicRequest(name, 1, 1, ()),
        CreateTopicRequest(name, 1),
        DeleteReplicatedTopicRequest(name),
        DeleteTopicRequest(name),
        AddPartitionsRequest(name, 1),
        ReplicateTopicRequest(name, 1),
        ElectLeadersRequest(ElectionKind.PREFERRED, (partition, bad)),
        ReassignRequest((ReplicaTarget(bad, (0,)),)),
        ChangeIsrRequest(0, 1, (IsrChange(bad, 0, 0, (IsrMember(0, 1),), 0),)),
        MoveLogRequest(bad, "/"),
        DigestLogRequest(bad, 0, 1),
        ListSegmentsRequest(bad, -1, 1),
    ]


def test_request_when_it_names_what_no_topic_can_be_named_then_says_so_and_looks_nothing_up(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(1)
    (partition,) = cluster.create_topic("t", 1, 1)
    cluster.await_full_isr([partition])
    names = ("", ".", "..", "../../t", "a/b", "t\n", "\0", "\ue000", "x" * 256)
    with proved(cluster, 0, registered(cluster.session, 0)) as peer:
        for name in names:
            for request in requests_that_name(name, partition):
                peer.send_bytes(extension_frame(request))
                with pytest.raises(InvalidTopicError):
                    peer.receive_extension()
            for asked in (MetadataRequest((name,)), ClusterMetadataRequest((name,))):
                peer.send_bytes(extension_frame(asked))
                peer.receive_extension()
        peer.send_bytes(extension_frame(MoveLogRequest(partition, "/tmp/\0")))
        with pytest.raises(InvalidRequestError, match="a path has no NUL"):
            peer.receive_extension()
    assert "Traceback" not in cluster.output_of(0)


def test_push_when_not_of_the_controller_then_is_refused_by_its_header_and_tells_no_epochs(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(1)
    (partition,) = cluster.create_topic("t", 1, 1)
    cluster.await_full_isr([partition])
    controller_epoch, broker_epoch = epochs_of(cluster, 0)
    garbage = b"\xff" * (3 << 20)  # what is decoded ends the connection

    with proved(cluster, 0, registered(cluster.session, 0)) as peer:
        for of_controller, of_broker, refusal in (
            (controller_epoch - 1, broker_epoch, StaleControllerEpochError),
            (controller_epoch, broker_epoch - 1, StaleBrokerEpochError),
            (controller_epoch, broker_epoch + 1, StaleBrokerEpochError),
            (2**31 - 1, broker_epoch, UnknownEpochError),
        ):
            peer.send_bytes(push_frame(of_controller, of_broker, garbage))
            with pytest.raises(refusal) as refused:
                peer.receive_extension()
            assert not re.search(rf"\b({controller_epoch}|{broker_epoch})\b", str(refused.value))
    connection = cluster.connect(0)
    assert publish(connection, partition) == 0  # the broker takes orders as before
    connection.close()
    assert epochs_of(cluster, 0) == (controller_epoch, broker_epoch)


def test_push_when_invalid_or_of_more_partitions_than_a_cluster_has_then_only_its_connection_ends(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(1)
    (partition,) = cluster.create_topic("t", 1, 1)
    cluster.await_full_isr([partition])
    epochs = epochs_of(cluster, 0)
    memory_mb = cluster.brokers[0].memory_mb("VmRSS")

    for rest in (b"\xff" * 8, INT32.pack(1_150_000) + bytes(95 << 20)):
        with proved(cluster, 0, registered(cluster.session, 0)) as peer:
            peer.send_bytes(push_frame(*epochs, rest))
            assert peer.is_closed()

    wait_until(
        lambda: cluster.brokers[0].memory_mb("VmRSS") < memory_mb + MEMORY_GROWTH_MB,
        "the end of the push in memory",
    )
    assert "Traceback" not in cluster.output_of(0)
    connection = cluster.connect(0)
    assert publish(connection, partition) == 0
    connection.close()
