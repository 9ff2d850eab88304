"""Creates topics without replicas on brokers, and waits until clients can find them."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import closing

from broker import errors
from broker.client.cluster import Cluster, Connect
from broker.protocol.extension_requests import CreateTopicRequest, HomeCount
from broker.protocol.responses import BrokerAddress
from broker.topic import FORMAT_07, NO_HOME, TopicPartition

_POLL_S = 0.05


def create_on(
    connect: Connect,
    topic: str,
    homes: Mapping[int, int],
    brokers: Iterable[BrokerAddress],
    *,
    format: str = FORMAT_07,
    is_repeated: bool = False,
) -> set[int]:
    """Create a topic on brokers, and return those that have got it; others had it meanwhile.

    In a cluster the first one asked creates it on all of them, as a whole. `homes` are their
    numbers of partitions. With `is_repeated`, a broker that has the topic may have got it by an
    earlier attempt.
    """
    wanted = tuple(HomeCount(*one) for one in sorted(homes.items()))
    made: set[int] = set()
    for broker in brokers:
        if broker.id in made:
            continue
        with closing(connect(broker)) as connection:
            try:
                body = connection.call(CreateTopicRequest(topic, homes=wanted, format=format))
            except errors.TopicExistsError:
                if is_repeated:
                    made.add(broker.id)
                continue
            made.update(CreateTopicRequest.RESPONSE.decode(body))
    return made


def await_topic(
    cluster: Cluster, topic: str, homes: Collection[int], *, timeout_s: float
) -> list[TopicPartition]:
    """Return the partitions of a topic once clients can find those of brokers that created it."""
    give_up_s = time.monotonic() + timeout_s
    while True:
        found = cluster.partitions(topic)
        known = {one.home for one in found}
        missing = set(homes) - known
        if not missing or NO_HOME in known:
            return found
        if time.monotonic() >= give_up_s:
            where = ", ".join(map(str, sorted(missing)))
            raise errors.RequestTimeoutError(
                f"topic '{topic}' is created but not registered by broker {where} "
                f"after {timeout_s:g}s"
            )
        time.sleep(_POLL_S)
