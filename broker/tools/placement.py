"""Which partition of the target cluster a source partition is copied to.

A source partition keeps one target partition, so its messages keep their order. Knows partitions
and how to create a topic that is missing; moves no messages.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence

from broker.client.cluster import Cluster, Connect
from broker.errors import (
    BrokerUnreachableError,
    RequestTimeoutError,
    TopicExistsError,
    WrongPartitionError,
)
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition, validate_topic_name

_POLL_S = 0.05


def place_by_order(
    sources: Sequence[TopicPartition], targets: Sequence[TopicPartition]
) -> dict[TopicPartition, TopicPartition]:
    """Return a target for each source: the one in the same place, by home and index.

    With fewer targets than sources the places go round, so that several sources share a target;
    with more, the last ones get nothing.

    Args:
        sources: all partitions of the source topic.
        targets: all partitions of the target topic, at least one.
    """
    ordered = sorted(targets)
    return {one: ordered[place % len(ordered)] for place, one in enumerate(sorted(sources))}


def place_by_name(
    sources: Sequence[TopicPartition], targets: Sequence[TopicPartition]
) -> dict[TopicPartition, TopicPartition]:
    """Return the target of the same name, home and index, for each source.

    Args:
        sources: partitions of the source topic.
        targets: all partitions of the target topic, at least one.

    Raises:
        WrongPartitionError: there is none of that name.
    """
    named = {one.name: one for one in targets}
    for source in sources:
        if source.name not in named:
            raise WrongPartitionError(
                f"topic '{targets[0].topic}' has no partition {source.name} for {source}; "
                f"its partitions: {', '.join(named)}"
            )
    return {source: named[source.name] for source in sources}


def counts_like(sources: Sequence[TopicPartition], broker_ids: Sequence[int]) -> dict[int, int]:
    """Return how many partitions each broker gets so that no two sources share a target.

    Args:
        sources: all partitions of the source topic, at least one.
        broker_ids: the brokers of the target cluster, at least one.
    """
    each = -(-len(sources) // len(broker_ids))
    return dict.fromkeys(broker_ids, each)


def counts_by_name(sources: Sequence[TopicPartition]) -> dict[int, int]:
    """Return how many partitions each broker gets so that every source finds its name there."""
    counts: Counter[int] = Counter()
    for source in sources:
        counts[source.home] = max(counts[source.home], source.index + 1)
    return dict(counts)


def create_topic(
    cluster: Cluster,
    connect: Connect,
    topic: str,
    counts: Mapping[int, int],
    *,
    timeout_s: float = 10.0,
) -> list[TopicPartition]:
    """Create a topic, and wait until clients can find it.

    A broker that knows only 0.7's requests is left out: there a topic comes into being with its
    first message, with as many partitions as that broker is set to.

    Args:
        cluster: where.
        connect: makes connections to brokers.
        topic: its name.
        counts: how many partitions each broker gets, by id.
        timeout_s: how long it may take until it can be found.

    Returns:
        Its partitions; for brokers of 0.7 the first one, which any of their topics has.

    Raises:
        InvalidTopicError: there can be no such topic.
        BrokerUnreachableError: a broker is not there.
        RequestTimeoutError: it cannot be found in time.
    """
    validate_topic_name(topic)
    live = {one.id: one for one in cluster.brokers()}
    created: set[int] = set()
    for broker_id, count in counts.items():
        if broker_id not in live:
            raise BrokerUnreachableError(
                f"there is no live broker {broker_id} to create topic '{topic}' on"
            )
        if _create_on(connect, live[broker_id], CreateTopicRequest(topic, count)):
            created.add(broker_id)
    found = _await_topic(cluster, topic, created, timeout_s)
    homes = {one.home for one in found}
    return sorted([*found, *(TopicPartition(topic, one, 0) for one in counts if one not in homes)])


def _create_on(connect: Connect, broker: BrokerAddress, request: CreateTopicRequest) -> bool:
    """Create a topic on one broker; return whether it is there now."""
    connection = connect(broker)
    try:
        if connection.hello() is None:
            return False
        connection.call(request)
    except TopicExistsError:
        return True
    finally:
        connection.close()
    return True


def _await_topic(
    cluster: Cluster, topic: str, homes: set[int], timeout_s: float
) -> list[TopicPartition]:
    give_up_s = time.monotonic() + timeout_s
    while True:
        found = cluster.partitions(topic)
        if homes <= {one.home for one in found}:
            return found
        if time.monotonic() >= give_up_s:
            raise RequestTimeoutError(
                f"topic '{topic}' is created but cannot be found after {timeout_s:g}s"
            )
        time.sleep(_POLL_S)
