"""Creations of topics, as brokers record them in ZooKeeper, and the offsets that are older.

A topic can be deleted and created again under its name. ZooKeeper numbers all changes, so that an
offset last written before the creation of its topic is known to belong to a former one, whoever
has written it. Brokers of Kafka 0.7 record no creations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from broker.topic import TopicPartition
from broker.zk import paths
from broker.zk.session import NodeStat, Session
from broker.zk.values import decode_creation_id


class Creation(NamedTuple):
    """The creation of a topic on one broker.

    Attributes:
        id: differs from that of former topics of the same name.
        zxid: the number of the change in ZooKeeper by which the broker has registered it.
    """

    id: str
    zxid: int

    def voids(self, offset_stat: NodeStat) -> bool:
        """Return whether an offset node was last written before this creation."""
        return offset_stat.mzxid < self.zxid


class Creations(NamedTuple):
    """The known creations of some partitions' topics.

    Attributes:
        by_home: by topic and home broker; None where the broker did not know when it was.
    """

    by_home: dict[tuple[str, int], Creation | None]

    def of(self, partition: TopicPartition) -> Creation | None:
        """Return the creation of a partition's topic, None if unknown."""
        return self.by_home.get((partition.topic, partition.home))

    def is_recorded(self, partition: TopicPartition) -> bool:
        """Return whether the home broker records creations."""
        return (partition.topic, partition.home) in self.by_home


def read_creations(session: Session, partitions: Iterable[TopicPartition]) -> Creations:
    """Read the creations of the topics of partitions.

    Raises:
        RegistryUnreachableError: ZooKeeper did not respond in time.
    """
    homes = {(one.topic, one.home) for one in partitions}
    nodes = {paths.creation_id(topic, home): (topic, home) for topic, home in homes}
    by_home: dict[tuple[str, int], Creation | None] = {}
    for path, (value, stat) in session.get_many(nodes).items():
        creation_id = decode_creation_id(value)
        by_home[nodes[path]] = None if creation_id is None else Creation(creation_id, stat.czxid)
    return Creations(by_home)


def is_current(session: Session, partition: TopicPartition, known: Creation | None) -> bool:
    """Return whether a partition's topic has not been created again, or deleted, since `known`.

    Raises:
        RegistryUnreachableError: ZooKeeper did not respond in time.
    """
    present = read_creations(session, [partition]).of(partition)
    return known is None or present is None or present.id == known.id
