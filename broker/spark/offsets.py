"""Offsets and partitions as text of options, and as documents of checkpoints and manifests."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from broker.errors import ConfigError
from broker.topic import TopicPartition

Offsets = dict[TopicPartition, int]
OffsetDocument = dict[str, dict[str, int]]
"""Offsets as checkpoints and manifests have them: `{"topic": {"0-0": 123}}`."""

EARLIEST = -2
"""Stands for the log start offset, as in 0.7's requests."""
LATEST = -1
"""Stands for the high watermark, as in 0.7's requests."""


def partition_of(topic: str, name: str) -> TopicPartition:
    """Return the partition of a topic that is named `HOME-INDEX`, such as `0-3`."""
    home, dash, index = name.partition("-")
    if not dash or not home.isdecimal() or not index.isdecimal():
        raise ConfigError(f"'{name}' is no partition of '{topic}'; valid: HOME-INDEX, such as 0-3")
    return TopicPartition(topic, int(home), int(index))


def parse_offsets(text: str, option: str, *, minimum: int = EARLIEST) -> Offsets:
    """Return the numbers by partition in an option such as `{"topic": {"0-0": 123}}`."""
    try:
        document = json.loads(text)
        items = [
            (partition_of(topic, name), number)
            for topic, numbers in document.items()
            for name, number in numbers.items()
        ]
    except (ValueError, AttributeError) as error:
        raise _malformed(text, option) from error
    for partition, number in items:
        if not isinstance(number, int) or isinstance(number, bool) or number < minimum:
            raise ConfigError(f"{option}: {partition} has {number!r}; valid: {minimum} and up")
    return dict(items)


def parse_assignment(text: str, option: str) -> frozenset[TopicPartition]:
    """Return the partitions in an option such as `{"topic": ["0-0", "1-0"]}`."""
    try:
        document = json.loads(text)
        names = [(topic, name) for topic, names in document.items() for name in list(names)]
    except (ValueError, AttributeError, TypeError) as error:
        raise _malformed(text, option, '{"topic": ["0-0"]}') from error
    if not all(isinstance(name, str) for _, name in names):
        raise _malformed(text, option, '{"topic": ["0-0"]}')
    return frozenset(partition_of(topic, name) for topic, name in names)


def _malformed(text: str, option: str, example: str = '{"topic": {"0-0": 123}}') -> ConfigError:
    return ConfigError(f"{option}: '{text}' is not of the form {example}")


def to_document(offsets: Mapping[TopicPartition, int]) -> OffsetDocument:
    """Return offsets as a document for a checkpoint or manifest, sorted."""
    document: OffsetDocument = {}
    for partition, offset in sorted(offsets.items()):
        document.setdefault(partition.topic, {})[partition.name] = offset
    return document


def from_document(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return the offsets in a document; malformed partition names are those of another source."""
    return {
        partition_of(topic, name): offset
        for topic, offsets in document.items()
        for name, offset in offsets.items()
    }


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return offsets as the text of an option."""
    return json.dumps(to_document(offsets), separators=(",", ":"))


def to_assignment(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as the text of an option, such as `{"topic":["0-0","1-0"]}`."""
    document: dict[str, list[str]] = {}
    for partition in sorted(partitions):
        document.setdefault(partition.topic, []).append(partition.name)
    return json.dumps(document, separators=(",", ":"))
