"""Creations of topics in checkpoints and manifests: offsets of a former topic are not used.

A topic can be deleted and created again under its name. The offsets that were reached in the former
one mean nothing in the new one, where they may even be valid. ZooKeeper has an id of each creation
(see `broker.consumer.creations`); a list of brokers has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from broker.spark.options import Offsets
from broker.topic import TopicPartition

CreationIds = Mapping[tuple[str, int], frozenset[str]]
"""The ids of creations by topic and home broker, as far as they are known."""
CreationDocument = dict[str, dict[str, list[str]]]
"""Ids as checkpoints and manifests have them: `{"topic": {"0": ["ID"]}}`."""


class Reached(NamedTuple):
    """The offsets that a load or batch ends at, and the creations that they are of."""

    offsets: Offsets
    creation_ids: CreationIds


def of_former_topics(
    reached: Reached, present: CreationIds, partitions: Iterable[TopicPartition]
) -> set[TopicPartition]:
    """Return those of some partitions whose topic was created again since their offset was reached.

    Args:
        reached: the offsets.
        present: the ids of the creations there are.
        partitions: to be read.
    """

    def is_former(one: TopicPartition) -> bool:
        known, found = (ids.get((one.topic, one.home)) for ids in (reached.creation_ids, present))
        return bool(known and found and known.isdisjoint(found))

    return {one for one in partitions if one in reached.offsets and is_former(one)}


def text_of_former(offset: int, first: int) -> str:
    """Return the text of the omission of a partition that is of a topic created again.

    Args:
        offset: reached in the former topic.
        first: the log start offset.
    """
    return (
        f"offset {offset} was reached, and the topic was deleted and created again since; it "
        f"starts at {first} now"
    )


def joined_ids(known: CreationIds, present: CreationIds) -> CreationIds:
    """Return the ids to store: those there are, or where none is known, those that were stored."""
    return {**known, **{key: ids for key, ids in present.items() if ids}}


def to_creation_document(
    creation_ids: CreationIds, partitions: Iterable[TopicPartition]
) -> CreationDocument:
    """Return the ids of some partitions' topics as a document, sorted."""
    document: CreationDocument = {}
    for topic, home in sorted({(one.topic, one.home) for one in partitions}):
        if ids := creation_ids.get((topic, home)):
            document.setdefault(topic, {})[str(home)] = sorted(ids)
    return document


def from_creation_document(document: Mapping[str, Mapping[str, Iterable[str]]]) -> CreationIds:
    """Return the ids in a document.

    Raises:
        ValueError: the id of a broker is no number.
    """
    return {
        (topic, int(home)): frozenset(ids)
        for topic, homes in document.items()
        for home, ids in homes.items()
    }
