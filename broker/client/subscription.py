"""What a member of a group wants to read, and under which ids it is known.

Pure but for the clock and the random numbers in a generated id. How a subscription is written
into the registry is the subject of `broker.zk.values`.
"""

from __future__ import annotations

import re
import socket
import uuid
from collections.abc import Iterable, Mapping

from broker.client.rebalance import thread_ids
from broker.clock import Clock
from broker.errors import ConfigError
from broker.topic import check_topic_name
from broker.zk.values import (
    FilterKind,
    FilterSubscription,
    StaticSubscription,
    Subscription,
    normalize_filter_regex,
)


class TopicFilter:
    """Chooses topics by a regular expression on the whole name.

    Args:
        kind: whether the expression names the topics to take, or those to leave out.
        text: the expression; a comma means "or", blanks and outer quotes do not count. 0.7's
            members of a group read it as a Java expression, so keep to what both understand.

    Raises:
        ConfigError: it is no regular expression.

    Source: Kafka 0.7 `TopicFilter`.
    """

    def __init__(self, kind: FilterKind, text: str) -> None:
        self.kind = kind
        self.regex = normalize_filter_regex(text)
        try:
            self._pattern = re.compile(self.regex)
        except re.error as error:
            raise ConfigError(f"illegal topic filter '{text}': {error}") from error

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.regex!r})"

    def allows(self, topic: str) -> bool:
        """Say whether the filter takes a topic."""
        return bool(self._pattern.fullmatch(topic)) is (self.kind is FilterKind.WHITELIST)


class Whitelist(TopicFilter):
    """Takes the topics whose whole name matches.

    Args:
        text: see `TopicFilter`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(FilterKind.WHITELIST, text)


class Blacklist(TopicFilter):
    """Takes the topics whose whole name does not match.

    Args:
        text: see `TopicFilter`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(FilterKind.BLACKLIST, text)


def make_consumer_id(group: str, name: str, clock: Clock) -> str:
    """Return the id of a member.

    Args:
        group: the group's name.
        name: 0.7's `consumerid`; empty to have one made of host name, time and chance.
        clock: tells the time.

    Source: Kafka 0.7 `ZookeeperConsumerConnector`, `consumerIdString`.
    """
    if name:
        return f"{group}_{name}"
    digits = f"{uuid.uuid4().int >> 64:x}"[:8]
    return f"{group}_{socket.gethostname()}-{clock.time_ms()}-{digits}"


def check_group_name(group: str) -> None:
    """Check that a group, or a member of one, may have this name: it is a step of a path.

    Raises:
        ConfigError: it may not.
    """
    if not group or "/" in group or group in {".", "..", "zookeeper"} or not group.isprintable():
        raise ConfigError(f"'{group}' cannot be the name of a consumer group or of a member")


def static_subscription(stream_counts: Mapping[str, int]) -> StaticSubscription:
    """Return the subscription of a member that names its topics.

    Args:
        stream_counts: how many streams of each topic, at least 1.

    Raises:
        ConfigError: no topic, or no stream of one.
        InvalidTopicError: there can be no such topic.
    """
    if not stream_counts:
        raise ConfigError("no topic to consume")
    for topic, count in stream_counts.items():
        check_topic_name(topic)
        _check_count(count, f"topic '{topic}'")
    return StaticSubscription(dict(stream_counts))


def filter_subscription(topic_filter: TopicFilter, stream_count: int) -> FilterSubscription:
    """Return the subscription of a member that takes topics by a filter.

    Raises:
        ConfigError: there is no stream.
    """
    _check_count(stream_count, f"filter '{topic_filter.regex}'")
    return FilterSubscription(topic_filter.kind, stream_count, topic_filter.regex)


def _check_count(count: int, what: str) -> None:
    if count < 1:
        raise ConfigError(f"{what} needs at least 1 stream, not {count}")


def topics_of(subscription: Subscription, all_topics: Iterable[str]) -> dict[str, int]:
    """Return how many streams a member has of each topic it reads.

    Args:
        subscription: of the member.
        all_topics: the topics there are; a filter takes from these.

    Raises:
        ConfigError: the filter is no regular expression here.
    """
    if isinstance(subscription, StaticSubscription):
        return dict(subscription.stream_counts)
    chosen = TopicFilter(subscription.kind, subscription.regex)
    return {topic: subscription.stream_count for topic in all_topics if chosen.allows(topic)}


def threads_by_topic(
    members: Mapping[str, Subscription], all_topics: Iterable[str]
) -> dict[str, list[str]]:
    """Return the thread ids that read each topic, over all members of a group.

    Args:
        members: subscription of each consumer id.
        all_topics: the topics there are.

    Raises:
        ConfigError: a member's filter is no regular expression here.
    """
    threads: dict[str, list[str]] = {}
    topics = list(all_topics)
    for consumer_id, subscription in members.items():
        for topic, count in topics_of(subscription, topics).items():
            threads.setdefault(topic, []).extend(thread_ids(consumer_id, count))
    return threads
