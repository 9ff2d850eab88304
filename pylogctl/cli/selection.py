"""Selection of topics by name and pattern, and of their partitions.

A malformed value is a UsageError.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from pylogctl.cli.errors import CliError, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.client.cluster import Cluster
    from broker.partition_patterns import PartitionList
    from broker.topic import TopicPartition

_TOPIC_POLL_S = 0.1


def compile_patterns(texts: Iterable[str], option: str) -> list[re.Pattern[str]]:
    """Return the regular expressions of an option."""
    patterns = []
    for text in texts:
        try:
            patterns.append(re.compile(text))
        except re.error as error:
            raise UsageError(f"{option} '{text}' is no regular expression: {error}") from error
    return patterns


class TopicPatterns(NamedTuple):
    """Regular expressions that select topics by their whole name; see `topic_filter`."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


def topic_filter(patterns: TopicPatterns) -> Callable[[str], bool]:
    """Return a test of topics by `--include` and `--exclude`; without includes all are included."""
    included = compile_patterns(patterns.include, "--include")
    excluded = compile_patterns(patterns.exclude, "--exclude")

    def selects(topic: str) -> bool:
        return (not included or any(p.fullmatch(topic) for p in included)) and not any(
            p.fullmatch(topic) for p in excluded
        )

    return selects


def select_topics(
    cluster: Cluster,
    names: Sequence[str],
    *,
    include: Sequence[re.Pattern[str]] = (),
    exclude: Sequence[re.Pattern[str]] = (),
) -> list[str]:
    """Return the named topics (which need not exist), then those whose whole name matches."""
    from broker.topic import validate_topic_name  # late: the options of all commands import this

    for name in names:
        validate_topic_name(name)
    chosen = dict.fromkeys(names)
    if include:
        matching = [t for t in cluster.topics() if any(p.fullmatch(t) for p in include)]
        chosen |= dict.fromkeys(t for t in matching if not any(p.fullmatch(t) for p in exclude))
        if not chosen:
            shown = ", ".join(pattern.pattern for pattern in include)
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"no topic matches '{shown}'",
                hints=["try: pylogctl topic list"],
                code="TOPIC_NOT_FOUND",
            )
    return list(chosen)


def select_partitions(
    cluster: Cluster, topics: Sequence[str], wanted: PartitionList | None = None
) -> list[TopicPartition]:
    """Return the partitions of topics, by topic; each topic must exist and have a selected one."""
    selected: list[TopicPartition] = []
    for topic in topics:
        there = cluster.partitions(topic)
        if not there:
            raise _topic_without_partitions(cluster, topic)
        matching = [one for one in there if wanted is None or wanted.matches(one)]
        if wanted is not None and not matching:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"topic '{topic}' has no partition '{wanted.text}'",
                hints=[f"its partitions: {', '.join(one.name for one in there)}"],
                code="PARTITION_NOT_FOUND",
            )
        selected += matching
    return selected


def _topic_without_partitions(cluster: Cluster, topic: str) -> CliError:
    """Return the error for a topic without partitions: its brokers are down, or it is unknown."""
    from broker.client.cluster import absence_of  # late: loads the client

    if absence := absence_of(cluster, topic):
        return CliError(
            ExitStatus.UNREACHABLE,
            absence,
            hints=["pylogctl broker list shows the brokers that are registered"],
            code="BROKER_UNREACHABLE",
            details={"topic": topic},
        )
    return topic_not_found(topic, cluster.topics())


def topic_not_found(topic: str, known: Sequence[str]) -> CliError:
    """Return the error for an unknown topic; it suggests similar names."""
    near = get_close_matches(topic, [one for one in known if one != topic], n=3)
    hints = [f"known topics with a similar name: {', '.join(near)}"] if near else []
    return CliError(
        ExitStatus.NOT_FOUND,
        f"topic '{topic}' not found",
        hints=[*hints, "try: pylogctl topic list"],
        code="TOPIC_NOT_FOUND",
        details={"topic": topic, "similar": near},
    )


def wait_for_topics(
    cluster: Cluster,
    topics: Sequence[str],
    *,
    timeout_s: float,
    should_stop: Callable[[], bool],
) -> None:
    """Wait until every topic has a partition on a live broker; `timeout_s` may be infinite."""
    give_up_s = time.monotonic() + timeout_s
    for topic in topics:
        while not cluster.partitions(topic) and not should_stop():
            if time.monotonic() >= give_up_s:
                raise CliError(
                    ExitStatus.TIMEOUT, f"topic '{topic}' did not appear within {timeout_s:g}s"
                )
            time.sleep(_TOPIC_POLL_S)


def validate_group_name(group: str) -> None:
    """Validate that a consumer group's name can be part of a ZooKeeper path."""
    from broker.consumer import membership  # late: loads the ZooKeeper client
    from broker.errors import ConfigError

    try:
        membership.validate_group_name(group)
    except ConfigError as error:
        if not group:
            reason = "it is empty"
        elif "/" in group:
            reason = "'/' is not allowed"
        else:
            reason = "it cannot be part of a ZooKeeper path"
        raise UsageError(f"invalid group name '{group}': {reason}") from error
