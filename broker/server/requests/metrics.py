"""Counters of the threads that serve clients, and their metrics.

Each thread counts into objects of its own, so that counting takes no lock; they are added up when
they are read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from broker.clock import Clock
from broker.metrics import ManagedObject, Metric, Reading, counter, gauge, times, waits
from broker.protocol.requests import RequestType
from broker.server.requests.purgatory import DelayCounts, DelayKind
from broker.stats import WindowedStats


@dataclass(slots=True)
class TopicCounters:
    """What happened to messages of one topic."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    failed_produce: int = 0
    failed_fetch: int = 0
    messages_filtered_out: int = 0


_counts = attrgetter(*TopicCounters.__slots__)


def _total(shards: Iterable[TopicCounters]) -> TopicCounters:
    none = TopicCounters()
    return TopicCounters(*map(sum, zip(_counts(none), *map(_counts, shards), strict=True)))


TOPIC: ManagedObject[TopicCounters] = ManagedObject(
    "BrokerTopicStat.{topic}",
    counter("MessagesIn", lambda it: it.messages_in,
        "messages taken from producers, without what replicas copy",
        series="broker_messages_received_total"),
    counter("BytesIn", lambda it: it.bytes_in,
        "taken from producers, without what replicas copy", unit="bytes",
        series="broker_received_bytes_total"),
    counter("BytesOut", lambda it: it.bytes_out,
        "sent to consumers, without what replicas copy", unit="bytes",
        series="broker_sent_bytes_total"),
    counter("FailedProduceRequest", lambda it: it.failed_produce,
        "message sets of producers that were refused, for whatever reason", healthy="0",
        series="broker_failed_sets_total"),
    counter("FailedFetchRequest", lambda it: it.failed_fetch,
        "reads of consumers that were refused, for whatever reason", healthy="0",
        series="broker_failed_reads_total"),
    counter("MessagesFilteredOut", lambda it: it.messages_filtered_out,
        "messages left out for the pattern of a read (`--grep-at broker`)",
        series="broker_filtered_messages_total"),
)  # fmt: skip
# Prometheus adds up what it is told of each topic
ALL_TOPICS = ManagedObject(
    "BrokerAllTopicStat", *(one._replace(series="") for one in TOPIC.metrics)
)


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
        self.requests: defaultdict[int, int] = defaultdict(int)  # by type


# `BytesReadPerSecond` and `BytesWrittenPerSecond` are left out: 0.7 shows the average size of a
# read or write under these names.
REQUESTS: ManagedObject[Sequence[ProcessorMetrics]] = ManagedObject(
    "SocketServerStats",
    times("ProduceRequest", lambda shards: [one.produce for one in shards],
        "produce and publish requests, and how long it took to validate and write them: processor "
        "and disk",
        series='broker_request_local_seconds{request="produce"}'),
    times("FetchRequest", lambda shards: [one.fetch for one in shards],
        "fetches and reads of consumers, and how long it took to make the response, without the "
        "wait for messages",
        series='broker_request_local_seconds{request="fetch"}'),
    times("FollowerFetchRequest", lambda shards: [one.follower_fetch for one in shards],
        "reads of followers, and how long it took to make the response, without the wait for "
        "messages",
        series='broker_request_local_seconds{request="follower_fetch"}'),
    counter("TotalBytesRead", lambda shards: sum(one.bytes_read for one in shards),
        "received on all connections", unit="bytes",
        series="broker_network_received_bytes_total"),
    counter("TotalBytesWritten", lambda shards: sum(one.bytes_written for one in shards),
        "sent on all connections", unit="bytes",
        series="broker_network_sent_bytes_total"),
    counter("BadFrames", lambda shards: sum(one.bad_frames for one in shards),
        "connections closed for bytes that are no request", healthy="0",
        series="broker_bad_frames_total"),
)  # fmt: skip


REQUEST: ManagedObject[int] = ManagedObject(
    "RequestMetrics.{request}",
    counter("Requests", lambda it: it,
        "requests of this type", series="broker_requests_total"),
)  # fmt: skip


def request_readings(shards: Iterable[ProcessorMetrics]) -> Iterator[Reading]:
    """Yield the counts of each type of request that came."""
    requests: Counter[str] = Counter()
    for shard in shards:
        for request_type, count in list(shard.requests.items()):
            is_known = request_type in RequestType.__members__.values()
            requests[RequestType(request_type).name.lower() if is_known else "other"] += count
    for name, count in sorted(requests.items()):
        yield Reading(REQUEST, count, (name,))


def total_of(shards: Iterable[ProcessorMetrics]) -> TopicCounters:
    """Return what happened to the messages of all topics together."""
    return _total(one for shard in shards for one in list(shard.topics.values()))


def topic_readings(shards: Iterable[ProcessorMetrics], topic: str = "") -> Iterator[Reading]:
    """Yield the counters of each topic seen, or of one."""
    by_topic: defaultdict[str, list[TopicCounters]] = defaultdict(list)
    for shard in shards:
        for name, counters in list(shard.topics.items()):
            if topic in ("", name):
                by_topic[name].append(counters)
    for name, found in by_topic.items():
        yield Reading(TOPIC, _total(found), (name,))


class Delays(NamedTuple):
    """The delayed responses of all processors."""

    waiting: Counter[DelayKind]
    counts: Sequence[Sequence[DelayCounts]]  # by kind, of each processor
    deadline_count: int


_REQUEST_OF = {
    DelayKind.PUBLISH: "produce",
    DelayKind.READ: "fetch",
    DelayKind.FOLLOWER_READ: "follower_fetch",
}


def _delays(
    kind: DelayKind, name: str, noun: str, *, hint: str = "", expired: str, healthy: str = ""
) -> tuple[Metric[Delays], ...]:
    label = f'{{kind="{kind.name.lower()}"}}'
    waited = f'broker_request_remote_seconds{{request="{_REQUEST_OF[kind]}"}}'
    return (
        gauge(f"{name}Waiting", lambda it: it.waiting[kind],
            f"{noun} that wait now{hint}", healthy=healthy and "few",
            series=f"broker_waiting_responses{label}"),
        waits(f"{name}Wait", lambda it: [one[kind].waits for one in it.counts],
            f"{noun} that had to wait, complete by now, and how long they waited together",
            healthy=healthy and "short", series=waited),
        counter(f"{name}Expirations", lambda it: sum(one[kind].expired for one in it.counts),
            expired, healthy=healthy, series=f"broker_expired_responses_total{label}"),
    )  # fmt: skip


_QUIET = "reads whose time was over before there was enough: quiet topics"
PURGATORY: ManagedObject[Delays] = ManagedObject(
    "Purgatory",
    gauge("Waiting", lambda it: it.waiting.total(),
        "responses that wait now", healthy="about the number of pollers"),
    *_delays(
        DelayKind.PUBLISH,
        "Publish",
        "publishes",
        hint=". More and more: replicas or disks are slow",
        expired="publishes that were not committed in their time: error 7",
        healthy="0",
    ),
    *_delays(DelayKind.READ, "Read", "reads of consumers", expired=_QUIET),
    *_delays(DelayKind.FOLLOWER_READ, "FollowerRead", "reads of followers", expired=_QUIET),
    gauge("Deadlines", lambda it: it.deadline_count,
        "deadlines that are kept. Far more: responses are not forgotten",
        healthy="below twice `Waiting`, or 100"),
)  # fmt: skip
