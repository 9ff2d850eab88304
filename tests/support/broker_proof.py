"""Stands in for a broker of a cluster that gives orders: proves with the cluster's key."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from broker.endpoints import PLAIN_LISTENER
from broker.log.data_directory import CLUSTER_KEY_NAME
from broker.protocol.primitives import Reader
from broker.security.cluster_keys import BrokerIdentity, ClusterKey, ClusterKeys
from broker.security.cluster_proof import BrokerProof
from broker.security.mechanisms import PLAIN, authenticate
from broker.server.broker import Broker
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import decode_cluster_id

_KEYS = ClusterKeys((ClusterKey(bytes(range(32)), 0),))
Call = Callable[[Any], Reader]


def prove(call: Call, own: BrokerIdentity, server_id: int, port: int) -> None:
    """Prove to be a broker, on the connection that `call` sends requests on."""
    proof = BrokerProof(lambda: own, server_id, PLAIN_LISTENER, f"127.0.0.1:{port}")
    exchange = authenticate(proof, PLAIN)
    request = next(exchange)
    with suppress(StopIteration):
        while True:
            request = exchange.send(call(request))


def prove_to(broker: Broker, call: Call, broker_id: int, epoch: int = 1) -> None:
    """Prove to a broker of this process to be another one."""
    own = broker.keys._own()._replace(id=broker_id, epoch=epoch)
    prove(call, own, broker.config.broker_id, broker.port)


def give_key(data_dir: Path) -> Path:
    """Make the key of a cluster without ZooKeeper the one of a broker that will start."""
    data_dir.mkdir(parents=True, exist_ok=True)
    file = data_dir / CLUSTER_KEY_NAME
    file.touch(0o600)
    file.write_bytes(_KEYS.encode())
    return data_dir


def registered(session: Session, broker_id: int) -> BrokerIdentity:
    """Return a broker of a cluster as ZooKeeper knows it, with the cluster's keys."""
    stat = session.exists(paths.replicated_broker(broker_id))
    assert stat is not None
    keys = ClusterKeys.decode(session.get(paths.CLUSTER_KEYS)[0], "the node").keys
    cluster_id = decode_cluster_id(session.get(paths.CLUSTER_ID)[0])
    return BrokerIdentity(broker_id, stat.czxid, cluster_id, keys)
