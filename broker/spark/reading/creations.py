"""Creations of topics in checkpoints and manifests: offsets of a former topic are not used.

A topic can be deleted and created again under its name. Offsets reached in the former topic mean
nothing in the new one, though they may be valid there. The leader of a partition tells the creation
id of its topic; a broker of Kafka 0.7 has none.

In the same topic, a message that was read once stays until retention removes it. A new leader may
not know yet that the message is committed: readers wait for that, and read nothing again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.spark.offsets import Offsets
from broker.topic import TopicPartition

CreationIds = Mapping[tuple[str, int], str]
"""The known creation ids of topics, by topic and home broker."""
CreationDocument = dict[str, dict[str, str]]
"""Ids as checkpoints and manifests have them: `{"topic": {"0": "ID"}}`."""


class Reached(NamedTuple):
    """The offsets that a load or batch ended at, and the creations of their topics."""

    offsets: Offsets
    creation_ids: CreationIds

    def of_former_topics(
        self, present: CreationIds, partitions: Iterable[TopicPartition]
    ) -> set[TopicPartition]:
        """Return those of some partitions whose topic was created again since they were reached."""

        def is_former(one: TopicPartition) -> bool:
            key = one.topic, one.home
            known = self.creation_ids.get(key)
            return known is not None and present.get(key, known) != known

        return {one for one in partitions if one in self.offsets and is_former(one)}

    def is_known(self, partition: TopicPartition) -> bool:
        """Return whether the creation is known that a partition's offset belongs to."""
        return (partition.topic, partition.home) in self.creation_ids


def joined_ids(known: CreationIds, present: CreationIds) -> CreationIds:
    """Return the ids to store: the present ones, else the ones stored before."""
    return {**known, **present}


def to_creation_document(
    creation_ids: CreationIds, partitions: Iterable[TopicPartition]
) -> CreationDocument:
    """Return the ids of some partitions' topics as a document, sorted."""
    document: CreationDocument = {}
    for topic, home in sorted({(one.topic, one.home) for one in partitions}):
        if creation_id := creation_ids.get((topic, home)):
            document.setdefault(topic, {})[str(home)] = creation_id
    return document


def from_creation_document(document: Mapping[str, Mapping[str, str]]) -> CreationIds:
    """Return the ids in a document."""
    return {
        (topic, int(home)): creation_id
        for topic, homes in document.items()
        for home, creation_id in homes.items()
    }
