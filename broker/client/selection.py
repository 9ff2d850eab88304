"""Selection of topics and of their partitions; what is selected must exist."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from typing import NamedTuple

from broker import errors
from broker.client.cluster import Cluster, absence_of
from broker.partition_patterns import PartitionList
from broker.patterns import Pattern
from broker.topic import TopicPartition, validate_topic_name

_MAX_RUNS = 8  # of partitions with indexes in a row, in one sentence


def select_topics(
    cluster: Cluster,
    names: Sequence[str],
    *,
    include: Sequence[Pattern] = (),
    exclude: Sequence[Pattern] = (),
) -> list[str]:
    """Return the named topics (which need not exist), then those whose whole name matches."""
    for name in names:
        validate_topic_name(name)
    chosen = dict.fromkeys(names)
    if include:
        matching = [t for t in cluster.topics() if any(p.fullmatch(t) for p in include)]
        chosen |= dict.fromkeys(t for t in matching if not any(p.fullmatch(t) for p in exclude))
        if not chosen:
            shown = ", ".join(pattern.text for pattern in include)
            raise errors.TopicNotFoundError(f"no topic matches '{shown}'")
    return list(chosen)


class Selected(NamedTuple):
    """Partitions of topics, by topic: those with a leader, and those that cannot be read now."""

    led: list[TopicPartition]
    away: list[TopicPartition]

    def filtered(self, matches: Callable[[TopicPartition], bool]) -> Selected:
        """Return those that match."""
        return Selected(list(filter(matches, self.led)), list(filter(matches, self.away)))


def find_partitions(
    cluster: Cluster, topics: Sequence[str], wanted: PartitionList | None = None
) -> Selected:
    """Return the partitions of topics; each topic must exist and have a selected one."""
    led: list[TopicPartition] = []
    away: list[TopicPartition] = []
    for topic in topics:
        validate_topic_name(topic)
        every = partitions_of(cluster, topic)
        if not every.led and (not every.away or len(topics) == 1):
            raise topic_without_partitions(cluster, topic)
        matching = every if wanted is None else every.filtered(wanted.matches)
        if wanted is not None and not any(matching):
            names = ", ".join(one.name for one in sorted(every.led + every.away))
            raise errors.WrongPartitionError(
                f"topic '{topic}' has no partition '{wanted.text}'",
                hints=[f"its partitions: {names}"],
            )
        led += matching.led
        away += matching.away
    return Selected(led, away)


def partitions_of(cluster: Cluster, topic: str) -> Selected:
    """Return the partitions of a topic; none of an unknown one."""
    led = cluster.partitions(topic)
    return Selected(led, sorted({*cluster.assigned(topic)} - {*led}))


def select_partitions(
    cluster: Cluster, topics: Sequence[str], wanted: PartitionList | None = None
) -> list[TopicPartition]:
    """Return the same, all of which must have a leader."""
    found = find_partitions(cluster, topics, wanted)
    if found.away:
        raise partitions_away(cluster, found.away)
    return found.led


def partitions_away(
    cluster: Cluster, partitions: Sequence[TopicPartition], advice: str = ""
) -> errors.PartitionsAwayError:
    """Return the error for partitions that cannot be read."""
    return errors.PartitionsAwayError(
        "\n".join(causes_of_absence(cluster, partitions)) + advice,
        details={"partitions": [str(one) for one in partitions]},
    )


def causes_of_absence(cluster: Cluster, partitions: Sequence[TopicPartition]) -> list[str]:
    """Return a sentence for each broker due to which partitions have no leader."""
    if not partitions:
        return []
    live = {one.id for one in cluster.brokers()}
    isr = cluster.in_sync_replicas({one.topic for one in partitions}).replicas
    found: dict[str, list[TopicPartition]] = {}
    for one in partitions:
        absent = [str(id) for id in isr.get(one, (one.home,)) if id not in live]
        cause = "no leader"
        if absent:
            are = "brokers {} are" if len(absent) > 1 else "broker {} is"
            cause = f"{are.format(', '.join(absent))} away"
        found.setdefault(cause, []).append(one)
    return [unreadable_text(cluster, cause, some) for cause, some in found.items()]


def unreadable_text(cluster: Cluster, cause: object, partitions: Sequence[TopicPartition]) -> str:
    """Return a sentence about partitions that cannot be read for a cause."""
    topic, *others = {one.topic for one in partitions}
    total = "" if others else f" of {sum(map(len, partitions_of(cluster, topic)))}"
    return f"{cause}: {named(partitions, total)} cannot be read"


def named(partitions: Collection[TopicPartition], total: str = "") -> str:
    """Return which partitions these are, as a part of a sentence."""
    count = f"{len(partitions)}{total} partition{'s' * (len(partitions) > 1 or bool(total))}"
    topic, *others = {one.topic for one in partitions}
    if others:
        return f"{count} of {1 + len(others)} topics"
    runs: list[list[TopicPartition]] = []
    for one in sorted(partitions):
        if runs and (one.home, one.index - 1) == runs[-1][-1][1:]:
            runs[-1].append(one)
        else:
            runs.append([one])
    names = [f"{run[0].name} .. {run[-1].name}" if run[1:] else run[0].name for run in runs]
    shown = ", ".join(names[:_MAX_RUNS]) + ", .." * (len(names) > _MAX_RUNS)
    return f"{count} of topic '{topic}' ({shown})"


def topic_without_partitions(cluster: Cluster, topic: str) -> errors.BrokerError:
    """Return the error for a topic without partitions: its brokers are down, or it is unknown."""
    if absence := absence_of(cluster, topic):
        return errors.BrokerUnreachableError(
            absence,
            hints=["pylogctl broker list shows the brokers that are registered"],
            details={"topic": topic},
        )
    return topic_not_found(topic, cluster.topics())


def topic_not_found(topic: str, known: Sequence[str]) -> errors.TopicNotFoundError:
    """Return the error for an unknown topic; it suggests similar names."""
    near = get_close_matches(topic, [one for one in known if one != topic], n=3)
    hints = [f"known topics with a similar name: {', '.join(near)}"] if near else []
    return errors.TopicNotFoundError(
        f"topic '{topic}' not found",
        hints=[*hints, "try: pylogctl topic list"],
        details={"topic": topic, "similar": near},
    )
