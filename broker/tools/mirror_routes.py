"""Target topics and partitions of mirrors and copies; sends no messages.

`TopicMap` names the target topic, `create_topic` creates it, and the `place_...` functions assign
each source partition one target partition, so that its messages keep their order.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from typing import NamedTuple

from broker import errors
from broker.client.cluster import Cluster, Connect
from broker.client.topic_creation import await_topic, create_on
from broker.patterns import Pattern
from broker.protocol.extension_requests import CreateTopicRequest
from broker.protocol.responses import BrokerAddress
from broker.topic import TopicPartition, validate_new_topic_name


def place_by_order(
    sources: Sequence[TopicPartition], targets: Sequence[TopicPartition]
) -> dict[TopicPartition, TopicPartition]:
    """Return a target for each source: the n-th for the n-th, by home and index.

    Both are all partitions of their topic, at least one. With fewer targets than sources, several
    sources share a target; with more, the last targets get no source.
    """
    ordered = sorted(targets)
    return {one: ordered[rank % len(ordered)] for rank, one in enumerate(sorted(sources))}


def place_by_name(
    sources: Sequence[TopicPartition], targets: Sequence[TopicPartition]
) -> dict[TopicPartition, TopicPartition]:
    """Return the target of the same name, home and index, for each source."""
    named = {one.name: one for one in targets}
    for source in sources:
        if source.name not in named:
            raise errors.WrongPartitionError(
                f"topic '{targets[0].topic}' has no partition {source.name} for {source}; "
                f"its partitions: {', '.join(named)}"
            )
    return {source: named[source.name] for source in sources}


def counts_like(sources: Sequence[TopicPartition], broker_ids: Sequence[int]) -> dict[int, int]:
    """Return how many partitions each broker gets so that no two sources share a target."""
    each = -(-len(sources) // len(broker_ids))
    return dict.fromkeys(broker_ids, each)


def counts_by_name(sources: Sequence[TopicPartition]) -> dict[int, int]:
    """Return how many partitions each broker gets so that each source has a target of its name."""
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
    """Create a topic with some partitions on each broker, and wait until clients can find it.

    A broker that knows only 0.7's requests is skipped: it creates the topic with the first message,
    with its configured number of partitions. Of such a broker only partition 0, which each of its
    topics has, is returned.
    """
    validate_new_topic_name(topic)
    live = {one.id: one for one in cluster.brokers()}
    for broker_id in counts:
        if broker_id not in live:
            raise errors.BrokerUnreachableError(
                f"there is no live broker {broker_id} to create topic '{topic}' on"
            )
    ours = {one: live[one] for one in counts if _can_create(connect, live[one])}
    create_on(connect, topic, {one: counts[one] for one in ours}, ours.values())
    found = await_topic(cluster, topic, ours, timeout_s=timeout_s)
    homes = {one.home for one in found}
    return sorted([*found, *(TopicPartition(topic, one, 0) for one in counts if one not in homes)])


def _can_create(connect: Connect, broker: BrokerAddress) -> bool:
    """Return whether a broker knows the request that creates a topic."""
    with closing(connect(broker)) as connection:
        return connection.understands(CreateTopicRequest)


_UNESCAPED_AMPERSAND = re.compile(r"(\\.)|&")


class _Substitution(NamedTuple):
    pattern: Pattern
    replacement: str
    limit: int


class TopicMap:
    r"""Renames topics.

    Args:
        texts: sed's substitutions, such as `s/^/a./`, applied one after another. Any punctuation
            may replace the slash. `&` is the match, `\1` a group; the flag `g` replaces every
            match, `i` ignores case.

    Raises:
        ConfigError: one is malformed.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._steps: Sequence[_Substitution] = [_parse(text) for text in texts]

    def __call__(self, topic: str) -> str:
        """Return the new name of a topic.

        Raises:
            InvalidTopicError: no topic can have it.
        """
        for step in self._steps:
            topic = step.pattern.replace(topic, step.replacement, step.limit)
        validate_new_topic_name(topic)
        return topic


def _parse(text: str) -> _Substitution:
    parts = _split(text)
    if len(parts) != 4 or parts[0] != "s" or set(parts[3]) - set("gi"):
        raise errors.ConfigError(f"not a substitution: '{text}'; valid: s/^/a./, s/old/new/g")
    _, pattern_text, replacement, flags = parts
    replacement = _UNESCAPED_AMPERSAND.sub(_python_form, replacement)
    try:
        pattern = Pattern(pattern_text, ignore_case="i" in flags)
        # fails for a reference to a missing group
        names = {number: f"?P<{name}>" for name, number in pattern.group_numbers.items()}
        groups = (f"({names.get(1 + one, '')})" for one in range(pattern.group_count))
        Pattern("".join(groups)).replace("", replacement)
    except (errors.InvalidPatternError, IndexError, ValueError) as error:
        raise errors.ConfigError(f"illegal substitution '{text}': {error}") from error
    return _Substitution(pattern, replacement, 0 if "g" in flags else 1)


def _python_form(match: re.Match[str]) -> str:
    if match[1] is None:
        return r"\g<0>"
    return "&" if match[1] == r"\&" else match[1]


def _split(text: str) -> list[str]:
    """Split at the character after the `s`, where no backslash is before it."""
    delimiter = text[1:2]
    if not delimiter or delimiter.isalnum() or delimiter == "\\":
        return []
    parts = re.split(rf"(?<!\\){re.escape(delimiter)}", text)
    return [part.replace(f"\\{delimiter}", delimiter) for part in parts]
