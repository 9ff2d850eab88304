"""The nodes that brokers and consumers write, decoded into fields for tools that show them.

Kafka 0.7 writes the same nodes but for those of replicas, creation ids and settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping

from broker.errors import CoordinationError
from broker.topic import TopicPartition
from broker.zk import paths, replicated_values, values

_Fields = dict[str, object]


def decode_node(path: str, value: bytes) -> Mapping[str, object] | None:
    """Return the fields of a known node, and as `kind` what it is; None for any other.

    A value that is malformed is one of no known node.
    """
    for kind, pattern, decode in _KNOWN:
        if value and (found := re.fullmatch(pattern, path)):
            try:
                return {"kind": kind, **decode(value, *found.groups())}
            except (CoordinationError, ValueError):
                return None
    return None


def _broker(value: bytes, broker_id: str) -> _Fields:
    info = values.decode_broker(int(broker_id), value)
    return {"host": info.host, "port": info.port, "creator": info.creator}


def _field(name: str, decode: Callable[[bytes], object]) -> Callable[[bytes], _Fields]:
    return lambda value: {name: decode(value)}


def _number(name: str) -> Callable[[bytes], _Fields]:
    return lambda value: {name: values.decode_number(value, name)}


def _subscription(value: bytes) -> _Fields:
    found = values.decode_subscription(value)
    if isinstance(found, values.StaticSubscription):
        return {"topics": dict(found.stream_counts), "is_kafka07": found.is_kafka07}
    name = "exclude" if found.kind is values.FilterKind.BLACKLIST else "include"
    return {name: found.regex, "streams": found.stream_count, "is_kafka07": found.is_kafka07}


def _json(value: bytes, *_: str) -> _Fields:
    found = json.loads(value)
    if not isinstance(found, dict):
        raise CoordinationError("not an object")
    return {name: field for name, field in found.items() if name != "version"}


def _assignment(value: bytes, topic: str) -> _Fields:
    replicated_values.decode_assignment(topic, value, 0)
    return _json(value)


def _state(value: bytes, topic: str, name: str) -> _Fields:
    partition = TopicPartition.named(topic, name)
    replicated_values.decode_state(partition, value)
    return _json(value)


_CREATION_ID = _field("creation_id", values.decode_creation_id)
_NAME = "([^/]+)"
_ID = "([0-9]+)"
_PARTITION = "[^/]+/(?:[0-9]+-)?[0-9]+"
_KNOWN: tuple[tuple[str, str, Callable[..., _Fields]], ...] = (
    ("broker", f"{paths.BROKER_IDS}/{_ID}", _broker),
    ("partition count", f"{paths.TOPICS}/[^/]+/[0-9]+", _number("partitions")),
    ("offset", f"{paths.CONSUMERS}/[^/]+/offsets/{_PARTITION}", _number("offset")),
    ("owner", f"{paths.CONSUMERS}/[^/]+/owners/{_PARTITION}", _field("owner", values.decode_owner)),
    ("member", f"{paths.CONSUMERS}/[^/]+/ids/[^/]+", _subscription),
    ("cluster id", paths.CLUSTER_ID, _json),
    ("homes of topic", paths.creation_ids("[^/]+"), _json),
    ("creation id", paths.creation_ids("[^/]+") + "/[0-9]+", _CREATION_ID),
    ("controller", paths.CONTROLLER, _json),
    ("controller epoch", paths.CONTROLLER_EPOCH, _number("epoch")),
    ("replicated broker", f"{paths.REPLICATED_BROKERS}/{_ID}", _json),
    ("replicated topic", paths.replicated_topic(_NAME), _assignment),
    ("partition state", f"{paths.replicated_partitions(_NAME)}/{_NAME}/state", _state),
    ("settings", f"{paths.TOPIC_SETTINGS}/{_NAME}", _json),
    ("settings", f"{paths.BROKER_SETTINGS}/{_ID}", _json),
    ("reassignments", paths.REASSIGNMENTS, _json),
    ("deleted topic", f"{paths.DELETED}/{_NAME}", _json),
)
