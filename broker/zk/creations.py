"""Creations of topics, as ZooKeeper records them, and the offsets that are older.

A topic can be deleted and created again under its name. ZooKeeper numbers all changes, so that an
offset last written before the creation of its topic is known to belong to a former one, whichever
client wrote it. Of a topic with replicas the creation is that of its node, which the controller
writes; of any other one each home broker records its own. Brokers of Kafka 0.7 record none.

The node above these has the homes of a topic without replicas: how many partitions each broker has,
live or not. It is written as a whole before the first of them has the topic, so that clients never
take some of its partitions for all.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from broker.cluster_state import Creation, KeptCreation, TopicAssignment
from broker.errors import CoordinationError
from broker.topic import TopicPartition
from broker.zk import paths, values
from broker.zk.replicated_values import decode_assignment
from broker.zk.session import Session


class Creations(NamedTuple):
    """The known creations of some partitions' topics, by topic and home broker.

    In `by_home` None stands for an unknown time. `kept_counts` has the number of partitions that
    are older than the topic's node, of those with replicas.
    """

    by_home: dict[tuple[str, int], Creation | None]
    kept_counts: dict[tuple[str, int], int]

    def of(self, partition: TopicPartition) -> Creation | None:
        """Return the creation of a partition's topic, None if unknown."""
        return self.by_home.get((partition.topic, partition.home))

    def is_recorded(self, partition: TopicPartition) -> bool:
        """Return whether the topic has a record of its creation; not on a broker of Kafka 0.7."""
        return (partition.topic, partition.home) in self.by_home

    def is_of_controller(self, partition: TopicPartition) -> bool:
        """Return whether the partition was created with replicas, after its topic or with it."""
        count = self.kept_counts.get((partition.topic, partition.home))
        return count is not None and partition.index >= count


def read_creations(session: Session, partitions: Iterable[TopicPartition]) -> Creations:
    """Read the creations of the topics of partitions."""
    homes = {(one.topic, one.home) for one in partitions}
    nodes = {paths.replicated_topic(topic): topic for topic, _ in homes}
    found = session.get_many([*nodes, *(paths.creation_id(*one) for one in homes)])
    creations = Creations({}, {})
    assignments: dict[str, tuple[TopicAssignment | None, int]] = {}
    for path in nodes.keys() & found.keys():
        value, stat = found[path]
        assignment = None
        with suppress(CoordinationError):  # brokers log a malformed node
            assignment = decode_assignment(nodes[path], value, stat.version)
        assignments[nodes[path]] = assignment, stat.czxid
    for topic, home in homes:
        creation = None
        if topic in assignments:
            assignment, zxid = assignments[topic]
            if assignment is not None:
                creation, creations.kept_counts[topic, home] = assignment.kept.get(
                    home, KeptCreation(Creation(assignment.creation_id, zxid), 0)
                )
        elif (path := paths.creation_id(topic, home)) in found:
            value, stat = found[path]
            creation_id = values.decode_creation_id(value)
            creation = None if creation_id is None else Creation(creation_id, stat.czxid)
        else:
            continue
        creations.by_home[topic, home] = creation
    return creations


def is_current(session: Session, partition: TopicPartition, known: Creation | None) -> bool:
    """Return whether a partition's topic has not been created again, or deleted, since `known`."""
    present = read_creations(session, [partition])
    if known is None:
        return True
    found = present.of(partition)
    return present.is_recorded(partition) and (found is None or found.id == known.id)


def record_creations(
    session: Session, broker_id: int, creation_ids: Mapping[str, str | None], new: Collection[str]
) -> list[str]:
    """Record topics of a home broker: replace the ids of those created again, add missing ones.

    `new` are those created just now, `creation_ids` has None for an unknown creation. Returns the
    topics without replicas.
    """
    # a topic with replicas has the id that the controller gives
    with_replicas = session.get_many(map(paths.replicated_topic, creation_ids))
    nodes = {
        paths.creation_id(topic, broker_id): topic
        for topic in creation_ids
        if paths.replicated_topic(topic) not in with_replicas
    }
    found = session.get_many(nodes)
    # The moment at which a node was created tells which offsets are older than the topic. That
    # of an existing topic whose node is missing, as ZooKeeper has lost its data, is unknown, so
    # no id is written for it.
    missing = {
        path: creation_ids[topic] if topic in new else None
        for path, topic in nodes.items()
        if path not in found
    }
    replaced: dict[str, str | None] = {}
    for path, (value, _) in found.items():
        creation_id, known = creation_ids[nodes[path]], values.decode_creation_id(value)
        is_surely_another = known is not None or nodes[path] in new
        if creation_id not in (None, known) and is_surely_another:
            replaced[path] = creation_id
    session.delete_many(replaced)
    wanted = {path: values.encode_creation_id(one) for path, one in (missing | replaced).items()}
    session.create_many(wanted, ephemeral=False)
    return list(nodes.values())


def record_deletions(session: Session, broker_id: int, topics: Iterable[str]) -> None:
    """Mark the creations of topics that a home broker has deleted."""
    nodes = [paths.creation_id(topic, broker_id) for topic in topics]
    session.set_many(dict.fromkeys(nodes, (values.DELETED_CREATION, -1)))


def read_homes(session: Session, topics: Iterable[str]) -> dict[str, dict[int, int]]:
    """Return the partitions of each home broker of topics, live or not, where they are recorded."""
    nodes = {paths.creation_ids(topic): topic for topic in topics}
    found = session.get_many(nodes)
    homes = {nodes[path]: values.decode_homes(path, value) for path, (value, _) in found.items()}
    return {topic: one for topic, one in homes.items() if one}


def change_homes(
    session: Session, changes: Mapping[str, Callable[[dict[int, int]], dict[int, int]]]
) -> dict[str, dict[int, int]]:
    """Change the recorded homes of topics, each in one step; return what they are then.

    A change gets the homes before, and is repeated if another broker changes them meanwhile.
    """
    homes: dict[str, dict[int, int]] = {}
    left = {paths.creation_ids(topic): topic for topic in changes}
    while left:
        found = session.get_many(left)
        missing: dict[str, bytes] = {}
        changed: dict[str, tuple[bytes, int]] = {}
        for path, topic in left.items():
            value, stat = found.get(path, (b"", None))
            before = values.decode_homes(path, value)
            homes[topic] = changes[topic](dict(before))
            if homes[topic] == before:
                continue
            if stat is None:
                missing[path] = values.encode_homes(homes[topic])
            else:
                changed[path] = values.encode_homes(homes[topic]), stat.version
        done = missing.keys() - session.create_many(missing, ephemeral=False)
        done |= session.set_many(changed).keys()
        left = {path: left[path] for path in (*missing, *changed) if path not in done}
    return homes


def absent_homes(
    session: Session, topics: Iterable[str], live: Collection[int]
) -> dict[str, list[int]]:
    """Return the brokers that have each topic and are not `live`; see `Registry.absent_homes`."""
    return {
        topic: sorted(homes.keys() - set(live))
        for topic, homes in read_homes(session, topics).items()
    }
