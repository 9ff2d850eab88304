"""Counters of the broker, under the names that Kafka 0.7 shows over JMX.

Each processor counts into objects of its own, so that counting takes no lock; `Broker.metrics` adds
them up.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from broker.clock import Clock
from broker.server.purgatory import DelayCounts, DelayedResponse, DelayKind
from broker.stats import WindowedStats


class TopicCounters:
    """Messages and bytes in and out of one topic."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "failed_fetch",
        "failed_produce",
        "messages_filtered_out",
        "messages_in",
    )

    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.failed_produce = 0
        self.failed_fetch = 0
        self.messages_filtered_out = 0

    def add(self, other: TopicCounters) -> None:
        """Add another processor's counts to these."""
        self.messages_in += other.messages_in
        self.bytes_in += other.bytes_in
        self.bytes_out += other.bytes_out
        self.failed_produce += other.failed_produce
        self.failed_fetch += other.failed_fetch
        self.messages_filtered_out += other.messages_filtered_out

    def as_attributes(self) -> dict[str, float]:
        """Return the counts under 0.7's attribute names; `MessagesFilteredOut` is ours."""
        return {
            "MessagesIn": self.messages_in,
            "BytesIn": self.bytes_in,
            "BytesOut": self.bytes_out,
            "FailedProduceRequest": self.failed_produce,
            "FailedFetchRequest": self.failed_fetch,
            "MessagesFilteredOut": self.messages_filtered_out,
        }


class ProcessorMetrics:
    """The counters of one processor, with windows of `period_s` seconds."""

    def __init__(self, clock: Clock, period_s: float) -> None:
        self.produce = WindowedStats(clock, period_s)
        self.fetch = WindowedStats(clock, period_s)
        self.follower_fetch = WindowedStats(clock, period_s)
        self.fenced_fetch_count = 0  # partitions in followers' fetches refused for an epoch
        self.bytes_read = 0
        self.bytes_written = 0
        self.bad_frames = 0
        self.topics: defaultdict[str, TopicCounters] = defaultdict(TopicCounters)


def socket_server_attributes(metrics: Iterable[ProcessorMetrics]) -> dict[str, float]:
    """Return the attributes of `kafka:type=kafka.SocketServerStats` over all processors.

    `BytesReadPerSecond` and `BytesWrittenPerSecond` are left out: 0.7 shows the average size of a
    read or write under these names. Ours are `BadFrames`, connections closed for bytes that are no
    request, and those of `FollowerFetch`, the fetches of followers.
    """
    shards = list(metrics)
    attributes: dict[str, float] = {}
    for name, stats in (
        ("Produce", [shard.produce for shard in shards]),
        ("Fetch", [shard.fetch for shard in shards]),
        ("FollowerFetch", [shard.follower_fetch for shard in shards]),
    ):
        windows = [one.window() for one in stats]
        count = sum(window.event_count for window in windows)
        total_s = sum(window.total_s for window in windows)
        attributes |= {
            f"{name}RequestsPerSecond": sum(window.per_second for window in windows),
            f"Avg{name}RequestMs": 1000 * total_s / count if count else 0.0,
            f"Max{name}RequestMs": 1000 * max((window.max_s for window in windows), default=0.0),
            f"Num{name}Requests": sum(one.count for one in stats),
            f"Total{name}RequestMs": 1000 * sum(one.total_s for one in stats),
        }
    attributes["TotalBytesRead"] = sum(shard.bytes_read for shard in shards)
    attributes["TotalBytesWritten"] = sum(shard.bytes_written for shard in shards)
    attributes["BadFrames"] = sum(shard.bad_frames for shard in shards)
    return attributes


def purgatory_attributes(
    waiting: Iterable[DelayedResponse], counts: Iterable[Sequence[DelayCounts]], deadline_count: int
) -> dict[str, float]:
    """Return how many responses wait and have waited, for publishes and the two kinds of reads."""
    kinds = Counter(one.kind for one in waiting)
    attributes: dict[str, float] = {"Waiting": kinds.total(), "Deadlines": deadline_count}
    shards = list(counts)
    for kind, name in _DELAYS.items():
        attributes |= {
            f"{name}Waiting": kinds[kind],
            f"{name}Waits": sum(one[kind].completed for one in shards),
            f"Total{name}WaitMs": 1000 * sum(one[kind].total_s for one in shards),
            f"{name}Expirations": sum(one[kind].expired for one in shards),
        }
    return attributes


_DELAYS = {
    DelayKind.PUBLISH: "Publish",
    DelayKind.READ: "Read",
    DelayKind.FOLLOWER_READ: "FollowerRead",
}


def topic_attributes(metrics: Iterable[ProcessorMetrics]) -> dict[str, dict[str, float]]:
    """Return `BrokerAllTopicStat` and a `BrokerTopicStat.TOPIC` for each topic seen."""
    overall = TopicCounters()
    by_topic: defaultdict[str, TopicCounters] = defaultdict(TopicCounters)
    for shard in metrics:
        for topic, counters in list(shard.topics.items()):
            by_topic[topic].add(counters)
            overall.add(counters)
    named = {f"BrokerTopicStat.{topic}": c.as_attributes() for topic, c in by_topic.items()}
    return {"BrokerAllTopicStat": overall.as_attributes(), **named}


def stats_attributes(stats: WindowedStats, noun: str, plural: str) -> dict[str, float]:
    """Return the attributes of an event; `noun`, `plural`: as in `AvgFlushMs`, `NumFlushes`."""
    window = stats.window()
    return {
        f"{plural}PerSecond": window.per_second,
        f"Avg{noun}Ms": window.average_ms,
        f"Max{noun}Ms": 1000 * window.max_s,
        f"Total{noun}Ms": 1000 * stats.total_s,
        f"Num{plural}": stats.count,
    }
