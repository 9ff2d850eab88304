"""Selection of topics by patterns, and the wait for topics; a malformed value is a UsageError."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import InvalidPatternError
from pylogctl.cli.errors import CliError, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.client.cluster import Cluster
    from broker.patterns import Pattern

_TOPIC_POLL_S = 0.1


def compile_patterns(texts: Iterable[str], option: str) -> list[Pattern]:
    """Return the regular expressions of an option."""
    from broker.patterns import Pattern  # late: few commands need it

    patterns = []
    for text in texts:
        try:
            patterns.append(Pattern(text))
        except InvalidPatternError as error:
            raise UsageError(f"{option}: {error}") from error
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


def wait_for_topics(
    cluster: Cluster,
    topics: Sequence[str],
    *,
    timeout_s: float,
) -> None:
    """Wait until every topic has a partition on a live broker; `timeout_s` may be infinite."""
    give_up_s = time.monotonic() + timeout_s
    for topic in topics:
        while not cluster.partitions(topic):
            if time.monotonic() >= give_up_s:
                raise CliError(
                    ExitStatus.TIMEOUT, f"topic '{topic}' did not appear within {timeout_s:g}s"
                )
            time.sleep(_TOPIC_POLL_S)
