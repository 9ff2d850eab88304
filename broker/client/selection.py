"""Selection of topics and of their partitions; what is selected must exist."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches

from broker.client.cluster import Cluster, absence_of
from broker.errors import (
    BrokerError,
    BrokerUnreachableError,
    TopicNotFoundError,
    WrongPartitionError,
)
from broker.partition_patterns import PartitionList
from broker.topic import TopicPartition, validate_topic_name


def select_topics(
    cluster: Cluster,
    names: Sequence[str],
    *,
    include: Sequence[re.Pattern[str]] = (),
    exclude: Sequence[re.Pattern[str]] = (),
) -> list[str]:
    """Return the named topics (which need not exist), then those whose whole name matches."""
    for name in names:
        validate_topic_name(name)
    chosen = dict.fromkeys(names)
    if include:
        matching = [t for t in cluster.topics() if any(p.fullmatch(t) for p in include)]
        chosen |= dict.fromkeys(t for t in matching if not any(p.fullmatch(t) for p in exclude))
        if not chosen:
            shown = ", ".join(pattern.pattern for pattern in include)
            raise TopicNotFoundError(f"no topic matches '{shown}'")
    return list(chosen)


def select_partitions(
    cluster: Cluster, topics: Sequence[str], wanted: PartitionList | None = None
) -> list[TopicPartition]:
    """Return the partitions of topics, by topic; each topic must exist and have a selected one."""
    selected: list[TopicPartition] = []
    for topic in topics:
        there = cluster.partitions(topic)
        if not there:
            raise topic_without_partitions(cluster, topic)
        matching = [one for one in there if wanted is None or wanted.matches(one)]
        if wanted is not None and not matching:
            raise WrongPartitionError(
                f"topic '{topic}' has no partition '{wanted.text}'",
                hints=[f"its partitions: {', '.join(one.name for one in there)}"],
            )
        selected += matching
    return selected


def topic_without_partitions(cluster: Cluster, topic: str) -> BrokerError:
    """Return the error for a topic without partitions: its brokers are down, or it is unknown."""
    if absence := absence_of(cluster, topic):
        return BrokerUnreachableError(
            absence,
            hints=["pylogctl broker list shows the brokers that are registered"],
            details={"topic": topic},
        )
    return topic_not_found(topic, cluster.topics())


def topic_not_found(topic: str, known: Sequence[str]) -> TopicNotFoundError:
    """Return the error for an unknown topic; it suggests similar names."""
    near = get_close_matches(topic, [one for one in known if one != topic], n=3)
    hints = [f"known topics with a similar name: {', '.join(near)}"] if near else []
    return TopicNotFoundError(
        f"topic '{topic}' not found",
        hints=[*hints, "try: pylogctl topic list"],
        details={"topic": topic, "similar": near},
    )
