"""Orders of strangers who know every epoch, and how brokers prove that they are of the cluster."""

from __future__ import annotations

import json
import random
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from broker.cluster_state import (
    IsrChange,
    IsrMember,
    LiveBroker,
    StoppedReplica,
    creation_key,
)
from broker.endpoints import PLAIN_LISTENER
from broker.errors import (
    AuthenticationFailedError,
    AuthenticationStateError,
    ClusterAuthorizationError,
    ServerError,
    UnknownEpochError,
)
from broker.protocol.client_requests import (
    Acks,
    AuthenticateRequest,
    HelloRequest,
    PartitionSet,
    PublishRequest,
)
from broker.protocol.codec import encode
from broker.protocol.layouts import ExtensionRequest
from broker.protocol.primitives import INT32
from broker.protocol.replica_requests import (
    ChangeIsrRequest,
    ControlledShutdownRequest,
    PushStatesRequest,
    ReplicaFetchRequest,
    ReplicaPosition,
)
from broker.protocol.responses import decode_extension_response, decode_publish_response
from broker.security.cluster_keys import CLUSTER_PROOF, ClusterKeys
from broker.security.cluster_proof import BrokerProof
from broker.security.mechanisms import PLAIN
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.replicated_topics import ReplicatedTopics
from pylogctl.cli.environment import ExitStatus
from tests.integration.broker.server.peer import Peer, extension_frame
from tests.integration.replication.replicated_cluster import ReplicatedCluster
from tests.support.broker_proof import prove, registered
from tests.support.command_line import Invoke
from tests.support.replica_parts import read_replica_parts
from tests.support.waiting import wait_until

StartCluster = Callable[..., ReplicatedCluster]
pytestmark = [pytest.mark.zookeeper, pytest.mark.open_only("its peers speak plain")]


class Known:
    """All that a stranger can know of a cluster with one partition, led by `leader`."""

    def __init__(self, cluster: ReplicatedCluster, partition: TopicPartition) -> None:
        self.cluster = cluster
        topics = ReplicatedTopics(cluster.session, lambda _topic: {})
        (self.state,) = topics.partitions([partition.topic], lambda _topic: 1)
        self.leader = self.state.state.leader
        self.follower = next(one for one in self.state.replicas if one != self.leader)
        self.controller_epoch = int(cluster.session.get(paths.CONTROLLER_EPOCH)[0])
        self.controller = cluster.controller()
        self.epochs = {one: registered(cluster.session, one).epoch for one in cluster.brokers}
        self.live = tuple(
            LiveBroker(one, "127.0.0.1", broker.port, self.epochs[one], is_clean=True, rack="")
            for one, broker in cluster.brokers.items()
        )

    def connect(self, broker_id: int, sender: int | None = None) -> Peer:
        """Connect to a broker, as another one that has proved itself or as a stranger."""
        peer = Peer(self.cluster.brokers[broker_id].port)
        if sender is not None:
            own = registered(self.cluster.session, sender)
            prove(peer.call, own, broker_id, self.cluster.network.door_to_broker(broker_id))
        return peer

    def push(
        self, to: int, *, epoch: int, stopped: tuple[StoppedReplica, ...] = ()
    ) -> ExtensionRequest:
        return PushStatesRequest(
            self.controller, epoch, self.epochs[to], bool(stopped), self.live, (), stopped
        )

    def fetch(self, offset: int) -> ExtensionRequest:
        state = self.state
        position = ReplicaPosition(
            *(state.partition, state.state.leader_epoch, offset, state.state.leader_epoch),
            *(offset, creation_key(state.creation_id), 1 << 20),
        )
        follower = self.follower
        return ReplicaFetchRequest(follower, self.epochs[follower], 0, 0, 1 << 20, (position,))


def status_of(cluster: ReplicatedCluster, broker_id: int) -> dict[str, Any]:
    with Peer(cluster.brokers[broker_id].port) as peer:
        return peer.status()


def code_of(frame: bytes) -> int:
    """Return the error code of a response, 0 for none."""
    try:
        decode_extension_response(frame)
    except ServerError as error:
        return error.code
    return 0


def fence(known: Known) -> tuple[int, ExtensionRequest]:
    return known.controller, known.push(known.controller, epoch=known.controller_epoch + 1)


def ack(known: Known) -> tuple[int, ExtensionRequest]:
    return known.leader, known.fetch(1 << 30)


def above(known: Known) -> tuple[int, ExtensionRequest]:
    return known.leader, known.fetch(0)


def wipe(known: Known) -> tuple[int, ExtensionRequest]:
    order = StoppedReplica(
        known.state.partition, known.state.creation_id, 2**31 - 1, deletes_log=True
    )
    push = known.push(known.leader, epoch=known.controller_epoch, stopped=(order,))
    return known.leader, push


def shrink(known: Known) -> tuple[int, ExtensionRequest]:
    state, leader = known.state, known.leader
    change = IsrChange(
        *(state.partition, state.state.leader_epoch, state.version),
        *((IsrMember(leader, known.epochs[leader]),), creation_key(state.creation_id)),
    )
    return known.controller, ChangeIsrRequest(leader, known.epochs[leader], (change,))


def leave(known: Known) -> tuple[int, ExtensionRequest]:
    return known.controller, ControlledShutdownRequest(known.leader, known.epochs[known.leader])


ATTACKS: list[Callable[[Known], tuple[int, ExtensionRequest]]] = [
    *(fence, ack, above, wipe, shrink, leave)
]


def test_orders_when_of_strangers_who_know_every_epoch_then_are_refused_and_change_nothing(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(3, replica_lag_time_max_ms="60000", zk_sessiontimeout_ms="10000")
    (partition,) = cluster.create_topic("t", 1, 3)
    cluster.await_full_isr([partition])
    known = Known(cluster, partition)
    for attack in ATTACKS:
        to, order = attack(known)
        (sender,) = INT32.unpack_from(order.encode())
        another = next(one for one in cluster.brokers if one != sender)
        peers = [known.connect(to), known.connect(to, another)]
        for peer in peers:
            with peer, pytest.raises(ClusterAuthorizationError) as refused:
                peer.call(order)
            assert not re.search(r"\d", str(refused.value)), "it tells something of the cluster"
    with known.connect(known.leader) as peer:
        push = extension_frame(known.push(known.leader, epoch=known.controller_epoch))
        peer.send_bytes(INT32.pack(95 << 20) + push[INT32.size :] + bytes(40 << 10))
        assert peer.is_closed()  # nobody waits for the rest of it
    # a broker that is not the controller, and says it is
    with known.connect(known.leader, known.follower) as peer, pytest.raises(UnknownEpochError):
        peer.call(
            PushStatesRequest(
                known.follower, 2**31 - 1, known.epochs[known.leader], False, (), (), ()
            )
        )

    assert Known(cluster, partition).state == known.state
    with known.connect(known.leader, known.follower) as peer:  # the orders were true ones
        (part,) = read_replica_parts(peer.call(known.fetch(0)))
        assert part.error == 0
    counted = status_of(cluster, known.leader)["security"]
    assert counted["orders_refused"] >= 3


def test_exchange_when_broken_off_or_out_of_turn_then_ends_and_the_broker_goes_on(
    start_cluster: StartCluster,
) -> None:
    cluster = start_cluster(1)
    own = registered(cluster.session, 0)
    port, door = cluster.brokers[0].port, cluster.network.door_to_broker(0)
    proof = BrokerProof(lambda: own, 0, PLAIN_LISTENER, f"127.0.0.1:{door}")
    opening = next(proof.exchange(PLAIN))
    first = extension_frame(AuthenticateRequest(CLUSTER_PROOF, 0, opening))
    hello = extension_frame(HelloRequest())
    wrong = extension_frame(AuthenticateRequest(CLUSTER_PROOF, 1, bytes(32)))

    def codes(data: bytes) -> list[int]:
        """Return the error codes of the answers, until the broker closes the connection."""
        found = []
        with Peer(port) as peer:
            peer.send_bytes(data)
            with suppress(EOFError, ConnectionError):
                while True:
                    found.append(code_of(peer.receive()))
        return found

    assert codes(first + hello + wrong) == [0, 34]  # between the steps
    assert codes(first + wrong + hello) == [0, 58]  # behind a failure
    assert codes(first + first + wrong) == [0, 34]  # which would set the clock again
    for mechanism, step, code in (
        (CLUSTER_PROOF, 1, 34),
        (CLUSTER_PROOF, 127, 34),
        (CLUSTER_PROOF, -1, 34),
        (CLUSTER_PROOF.lower(), 0, 33),
        ("x" * 32_000, 0, 33),
    ):
        frame = extension_frame(AuthenticateRequest(mechanism, step, opening))
        assert codes(frame) == [code], (mechanism[:40], step)
    mixed = extension_frame(AuthenticateRequest("SCRAM-SHA-256", 1, bytes(32)))
    assert codes(first + mixed) == [0, 34]
    long = extension_frame(AuthenticateRequest(CLUSTER_PROOF, 0, bytes(4097)))
    assert codes(long) == [58]

    prove_with = random.Random(7)
    for _ in range(100):
        body = bytearray(first[INT32.size + 4 :])
        del body[prove_with.randrange(len(body)) :]
        body += prove_with.randbytes(prove_with.randrange(3))
        frame = first[INT32.size : INT32.size + 4] + body
        with Peer(port) as peer, suppress(EOFError, ConnectionError):
            peer.send_bytes(INT32.pack(len(frame)) + frame)
            peer.socket.shutdown(socket.SHUT_WR)
    with Peer(port) as peer:
        for number in first[:-1]:
            peer.send_bytes(bytes((number,)))
        peer.send_bytes(first[-1:])
        assert code_of(peer.receive()) == 0
        assert not peer.has_answer()  # nothing follows until the client proves it
    assert "Traceback" not in cluster.output_of(0)


def test_key_when_rotated_while_running_then_brokers_go_on_and_the_old_one_ends(
    start_cluster: StartCluster, invoke: Invoke
) -> None:
    cluster = start_cluster(2)
    (partition,) = cluster.create_topic("t", 1, 2)
    cluster.await_full_isr([partition])
    before = registered(cluster.session, 0)
    where = ("-Z", cluster.zookeeper)

    with Known(cluster, partition).connect(0, 1) as held:
        assert invoke("cluster", "rotate-key", "--yes", *where).status == ExitStatus.OK
        listed = json.loads(invoke("cluster", "keys", "--output", "json", *where).text)["data"]
        assert [one["state"] for one in listed] == ["chosen", "accepted"]
        assert listed[0]["brokers"] == [0, 1]
        assert before.keys[0].secret.hex() not in str(listed)
        with pytest.raises(UnknownEpochError):  # of the old key, which is still accepted
            held.call(PushStatesRequest(1, 2**31 - 1, before.epoch, False, (), (), ()))

        assert invoke("cluster", "rotate-key", "--now", "--yes", *where).status == ExitStatus.OK
        newest = ClusterKeys.decode(cluster.session.get(paths.CLUSTER_KEYS)[0], "").keys[0]

        def is_used() -> bool:
            ids = [status_of(cluster, one)["security"]["key_ids"] for one in (0, 1)]
            return ids == [[newest.id.hex()]] * 2

        wait_until(is_used, "the new key on both brokers")
        with pytest.raises(AuthenticationStateError):
            held.call(PushStatesRequest(1, 2**31 - 1, before.epoch, False, (), (), ()))
    with pytest.raises(AuthenticationFailedError), Peer(cluster.brokers[0].port) as peer:
        prove(peer.call, before._replace(id=1), 0, cluster.network.door_to_broker(0))

    connection = cluster.connect(cluster.leader(partition))
    request = PublishRequest(Acks.COMMITTED, 30_000, (PartitionSet(partition, encode([b"after"])),))
    (published,) = decode_publish_response(connection.call(request))
    assert published.error == 0
    connection.close()
    cluster.await_equal_logs(partition)
    cluster.await_full_isr([partition])
