"""Selection of topics by patterns, and the wait for topics; a malformed value is a UsageError."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from broker.errors import InvalidPatternError
from pylogctl.cli.environment import CliError, ExitStatus, UsageError

if TYPE_CHECKING:
    from broker.client.cluster import Cluster
    from broker.patterns import Pattern

_TOPIC_POLL_S = 0.1
# of a pattern: quoted text, an escaped character, a class, or another character
_TOKEN = r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]])*\]|."


def split_patterns(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of an option that is given several times, or several of them by commas.

    A comma in brackets, or behind a backslash, is none between patterns.
    """
    return tuple(one.strip() for text in texts for one in _split(text))


def _split(text: str) -> list[str]:
    parts = [""]
    depth = 0
    for token in re.findall(_TOKEN, text, re.DOTALL):
        if token == "," and not depth:
            parts.append("")
            continue
        parts[-1] += token
        depth += (token in ("(", "{")) - (token in (")", "}"))
    return parts


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


def group_pattern(patterns: TopicPatterns) -> str:
    """Return the regular expression of topics that a group stores, for members of 0.7 as well."""
    from broker.consumer.membership import joined_filter  # late: loads the ZooKeeper client

    compile_patterns(patterns.include, "--include")  # so that an error names the malformed one
    compile_patterns(patterns.exclude, "--exclude")
    for pattern in (*patterns.include, *patterns.exclude):
        # members of 0.7 would change such a pattern
        if re.search(r"[\s,]|^[\"']|[\"']$", pattern):
            raise UsageError(
                f"a pattern of a group has no blank, comma or quote at its ends: '{pattern}'",
                "write . for a blank, aa? for a{1,2}: members of 0.7 read a comma as |",
            )
    return joined_filter(*patterns)


def wait_for_topics(cluster: Cluster, topics: Sequence[str], *, timeout_s: float) -> None:
    """Wait until every topic has a partition on a live broker; `timeout_s` may be infinite."""
    give_up_s = time.monotonic() + timeout_s
    for topic in topics:
        while not cluster.partitions(topic):
            if time.monotonic() >= give_up_s:
                raise CliError(
                    ExitStatus.TIMEOUT, f"topic '{topic}' did not appear within {timeout_s:g}s"
                )
            time.sleep(_TOPIC_POLL_S)
