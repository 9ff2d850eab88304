"""What the registry remembers of topics, and brokers have no more: a disk was replaced, or emptied.

It remembers which home brokers have a topic, and how far groups have read each partition. Messages
that no group has read leave no trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from broker.admin.groups import StoredOffset, list_groups, read_group
from broker.admin.topics import TopicFacts
from broker.client.cluster import Connect
from broker.client.registry_cluster import RegistryCluster
from broker.client.side import Side
from broker.errors import BrokerError
from broker.topic import TopicPartition
from broker.units import format_size
from broker.zk.creations import absent_homes
from broker.zk.registry import Registry
from broker.zk.replicated_topics import ReplicatedTopics


class Losses(NamedTuple):
    """Texts for what is lost, and for what a topic of the same name may have had before."""

    sure: tuple[str, ...]
    possible: tuple[str, ...]


def find_losses(registry: Registry, connect: Connect) -> Losses:
    """Compare the records and committed offsets in ZooKeeper with the logs of live brokers."""
    cluster = RegistryCluster(registry)
    topics = registry.topics()
    live = {one.id for one in registry.brokers()}
    replicated = set(ReplicatedTopics(registry.session).topics())
    counts = registry.partitions_of(topics)
    homes = absent_homes(registry.session, set(topics) - replicated, ())
    sure = [
        f"{topic} on broker {home}: all partitions are gone"
        for topic, recorded in sorted(homes.items())
        for home in sorted(live.intersection(recorded) - counts.get(topic, {}).keys())
    ]
    void = []
    with TopicFacts(Side(cluster, connect)) as facts:
        for partition, offsets in sorted(_offsets(registry).items()):
            count = counts.get(partition.topic, {}).get(partition.home)
            if partition.topic not in topics or (count is None and partition.topic in homes):
                continue  # deleted, away, or named above
            group, stored = max(offsets.items(), key=lambda item: item[1].offset or 0)
            if stored.is_void:
                void.append(f"{partition}: group '{group}' read to {stored.text} of a former topic")
            elif partition.topic in homes and count is not None and partition.index >= count:
                sure.append(f"{partition}: gone, group '{group}' read to {stored.text}")
            elif stored.offset is not None:
                with suppress(BrokerError):  # another check names brokers that do not respond
                    if (end := facts.ends(partition).end) < stored.offset:
                        size = format_size(stored.offset - end)
                        sure.append(
                            f"{partition}: ends at {end}, group '{group}' read to {stored.offset}: "
                            f"{size} gone, or more"
                        )
    return Losses(tuple(sure), tuple(void))


def _offsets(registry: Registry) -> Mapping[TopicPartition, Mapping[str, StoredOffset]]:
    found: dict[TopicPartition, dict[str, StoredOffset]] = {}
    for group in list_groups(registry.session):
        for partition, stored in read_group(registry.session, group, all_topics=()).offsets.items():
            found.setdefault(partition, {})[group] = stored
    return found
