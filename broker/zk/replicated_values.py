"""The values of nodes of replicated topics: JSON in the form of Kafka 0.8.

Decoders raise `CoordinationError` for a malformed value.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from broker import errors
from broker.cluster_state import (
    Creation,
    DeletedTopic,
    KeptCreation,
    LiveBroker,
    PartitionState,
    Reassignment,
    TopicAssignment,
)
from broker.endpoints import Endpoint, parse_endpoints
from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.values import parsed


def encode_assignment(assignment: TopicAssignment) -> bytes:
    """Return the value of a replicated topic's node."""
    document: dict[str, object] = {
        "version": 1,
        "creation_id": assignment.creation_id,
        "partitions": {one.name: list(ids) for one, ids in assignment.replicas.items()},
    }
    if assignment.kept:
        document["kept"] = {
            str(home): [*creation, count] for home, (creation, count) in assignment.kept.items()
        }
    return _json(document)


def encode_state(state: PartitionState) -> bytes:
    """Return the value of a partition's state, as Kafka 0.8 writes it."""
    return _json({"version": 1, **state._asdict()})  # whose fields have the names of Kafka's


def encode_replicated_broker(broker: LiveBroker) -> bytes:
    """Return the value of a broker's registration for replication; `host` is for other brokers."""
    node: dict[str, object] = {
        "version": 1,
        "host": broker.host,
        "port": broker.port,
        "is_clean": broker.is_clean,
        "rack": broker.rack,
        "has_replicas": broker.has_replicas,
    }
    if named := list(map(str, broker.endpoints)):
        node["endpoints"] = named
    return json.dumps(node).encode()


def decode_endpoints(broker_id: int, value: bytes) -> tuple[Endpoint, ...]:
    """Parse the endpoints in a broker's registration for replication, which may have none."""
    with _parsed(paths.replicated_broker(broker_id), value) as found:
        return _endpoints(found)


def decode_replicated_broker(broker_id: int, value: bytes, epoch: int) -> LiveBroker:
    """Parse a broker's registration for replication; `epoch` is the zxid of its creation."""
    with _parsed(paths.replicated_broker(broker_id), value) as found:
        host, rack = str(found["host"]), str(found.get("rack", ""))
        return LiveBroker(
            broker_id,
            host,
            int(found["port"]),
            epoch,
            found["is_clean"] is True,
            rack,
            found.get("has_replicas") is True,
            _endpoints(found),
        )


def decode_assignment(topic: str, value: bytes, version: int) -> TopicAssignment:
    """Parse a replicated topic's node, of the given version."""
    with _parsed(paths.replicated_topic(topic), value) as found:
        replicas = {
            TopicPartition.named(topic, name): _ids(ids)
            for name, ids in found["partitions"].items()
        }
        if not replicas:
            raise ValueError("no partitions")
        if len({one.format for one in replicas}) > 1:
            raise ValueError("partitions of both formats")
        kept = {
            int(home): KeptCreation(Creation(str(creation_id), int(zxid)), int(count))
            for home, (creation_id, zxid, count) in found.get("kept", {}).items()
        }
        return TopicAssignment(topic, str(found["creation_id"]), replicas, version, kept)


def decode_state(partition: TopicPartition, value: bytes) -> PartitionState:
    """Parse a partition's state."""
    with _parsed(paths.partition_state(partition), value) as found:
        numbers = (int(found[name]) for name in ("leader", "leader_epoch", "controller_epoch"))
        leader, leader_epoch, controller_epoch = numbers
        return PartitionState(leader, leader_epoch, _ids(found["isr"]), controller_epoch)


def encode_reassignments(
    changes: Mapping[TopicPartition, Reassignment], throttle_bytes_per_s: int
) -> bytes:
    """Return the value of the node of the changes of replicas."""
    listed = [
        {
            "topic": partition.topic,
            "partition": partition.name,
            "replicas": list(change.target),
            "original": list(change.original),
        }
        for partition, change in changes.items()
    ]
    return _json({"version": 1, "throttle": throttle_bytes_per_s, "partitions": listed})


def decode_reassignments(value: bytes) -> tuple[dict[TopicPartition, Reassignment], int]:
    """Return the changes of replicas and their throttle."""
    with _parsed(paths.REASSIGNMENTS, value) as found:
        changes = {
            TopicPartition.named(str(one["topic"]), str(one["partition"])): Reassignment(
                _ids(one["original"]), _ids(one["replicas"])
            )
            for one in found["partitions"]
        }
        return changes, max(0, int(found.get("throttle", 0)))


def encode_deleted(deleted: DeletedTopic) -> bytes:
    """Return the value of the node of a deleted topic."""
    return _json(
        {
            "version": 1,
            "topic": deleted.topic,
            "partitions": [one.name for one in deleted.partitions],
            "brokers": sorted(deleted.brokers),
        }
    )


def decode_deleted(creation_id: str, value: bytes) -> DeletedTopic:
    """Parse the node of a deleted topic."""
    with _parsed(paths.deleted(creation_id), value) as found:
        topic = str(found["topic"])
        names = map(str, found["partitions"])
        partitions = tuple(TopicPartition.named(topic, one) for one in names)
        return DeletedTopic(topic, creation_id, partitions, frozenset(_ids(found["brokers"])))


def _endpoints(found: Any) -> tuple[Endpoint, ...]:
    try:
        return parse_endpoints(",".join(map(str, found.get("endpoints", ()))))
    except errors.ConfigError as error:
        raise ValueError(str(error)) from error


def _json(document: Mapping[str, object]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _parsed(path: str, value: bytes) -> AbstractContextManager[Any]:
    return parsed(f"node {path} is malformed", value)


def _ids(found: Any) -> tuple[int, ...]:
    """Return broker ids, of which there must be some, each once."""
    ids = tuple(int(one) for one in found)
    if not ids or len(set(ids)) < len(ids):
        raise ValueError("no broker ids, or one twice")
    return ids
