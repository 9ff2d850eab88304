"""Counters of the threads that serve clients, and their metrics.

Each thread counts into objects of its own, so that counting takes no lock; they are added up when
they are read.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from broker import errors
from broker.clock import Clock
from broker.metrics import ManagedObject, Metric, Reading, counter, gauge, times, waits
from broker.protocol.primitives import INT16
from broker.protocol.replica_requests import ReplicaFetchRequest, SessionFetchRequest
from broker.protocol.requests import RequestType
from broker.server.requests.purgatory import DelayCounts, DelayKind, RequestGroup
from broker.server.requests.validation import REFUSAL_REASONS
from broker.stats import REQUEST_BOUNDS_S, Histogram, WindowedStats, bucket_counts


@dataclass(slots=True)
class TopicCounters:
    """What happened to messages of one topic."""

    messages_in: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    failed_produce: int = 0
    failed_fetch: int = 0
    messages_filtered_out: int = 0


_CAPITAL = re.compile(r"(?<!^)([A-Z])")
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


@dataclass(eq=False, slots=True)
class RequestTimes:
    """How long the requests of one group took, by part; `REQUEST_TIMES` says which is which."""

    local: WindowedStats
    queue: Histogram = field(default_factory=Histogram)
    send: Histogram = field(default_factory=Histogram)
    total: Histogram = field(default_factory=Histogram)

    def record(
        self, arrived_s: float, started_s: float, ended_s: float, count: int, is_complete: bool, /
    ) -> None:
        """Count requests that were handled together; if not complete, without their total time.

        On the path of every publish: what `Histogram.record` does, without the calls.
        """
        waited_s = started_s - arrived_s
        queue = self.queue
        queue.bucket_counts[bisect_left(REQUEST_BOUNDS_S, waited_s)] += count
        queue.total_s += waited_s * count
        self.local.record(ended_s - started_s, count)
        if is_complete:
            elapsed_s = ended_s - arrived_s
            total = self.total
            total.bucket_counts[bisect_left(REQUEST_BOUNDS_S, elapsed_s)] += count
            total.total_s += elapsed_s * count


class RequestErrors:
    """How many requests, or parts of them, were refused, by the code that says why; any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[tuple[RequestGroup, int]] = Counter()

    def note(self, group: RequestGroup, code: int, count: int = 1) -> None:
        """Count refusals."""
        with self._lock:
            self.counts[group, code] += count


class ProcessorMetrics:
    """The counters of one processor, with windows of `period_s` seconds.

    Args:
        errors: those of the broker, which processors and workers count together.
    """

    def __init__(self, clock: Clock, period_s: float, errors: RequestErrors | None = None) -> None:
        self.times = [RequestTimes(WindowedStats(clock, period_s)) for _ in RequestGroup]
        self.errors = errors or RequestErrors()
        self.fenced_fetch_count = 0  # partitions in followers' fetches refused for an epoch
        self.bytes_read = 0
        self.bytes_written = 0
        self.bad_frames = 0
        self.busy_s = self.idle_s = 0.0
        self.throttled_s = 0.0  # that connections waited for quotas
        self.offloaded_count = 0  # requests handed over to the worker, or taken by it
        self.refused_sets: Counter[str] = Counter()  # by reason
        self.replication_sent_bytes = 0
        self.is_topic: Callable[[str], bool] = lambda _name: True  # whether there is one
        self.topics: defaultdict[str, TopicCounters] = defaultdict(TopicCounters)
        self.requests: defaultdict[int, int] = defaultdict(int)  # by type

    def forget_topics(self) -> None:
        """Drop the counters of deleted topics; on the thread that counts."""
        for name in [one for one in self.topics if not self.is_topic(one)]:
            del self.topics[name]


def _refused_sets(reason: str, why: str) -> Metric[Sequence[ProcessorMetrics]]:
    return counter(
        f"RefusedFor{reason.title()}", lambda shards: sum(it.refused_sets[reason] for it in shards),
        f"message sets refused: {why} (InvalidMessageCrcRecordsPerSec)", healthy="0",
        series=f'broker_refused_messages_total{{reason="{reason}"}}',
    )  # fmt: skip


# `BytesReadPerSecond` and `BytesWrittenPerSecond` are left out: 0.7 shows the average size of a
# read or write under these names.
REQUESTS: ManagedObject[Sequence[ProcessorMetrics]] = ManagedObject(
    "SocketServerStats",
    times("ProduceRequest", lambda shards: _local(shards, RequestGroup.PRODUCE),
        "produce and publish requests, and how long it took to validate and write them: processor "
        "and disk"),
    times("FetchRequest", lambda shards: _local(shards, RequestGroup.FETCH),
        "fetches and reads of consumers, and how long it took to handle them, without the wait "
        "for messages"),
    times("FollowerFetchRequest", lambda shards: _local(shards, RequestGroup.FOLLOWER_FETCH),
        "reads of followers, and how long it took to handle them, without the wait for messages"),
    counter("TotalBytesRead", lambda shards: sum(one.bytes_read for one in shards),
        "received on all connections", unit="bytes", series="broker_network_received_bytes_total"),
    counter("TotalBytesWritten", lambda shards: sum(one.bytes_written for one in shards),
        "sent on all connections", unit="bytes", series="broker_network_sent_bytes_total"),
    *(_refused_sets(reason, why) for reason, why in REFUSAL_REASONS.items()),
    counter("BadFrames", lambda shards: sum(one.bad_frames for one in shards),
        "connections closed for bytes that are no request", healthy="0",
        series="broker_bad_frames_total"),
)  # fmt: skip


PROCESSOR: ManagedObject[ProcessorMetrics] = ManagedObject(
    "NetworkProcessor.{processor}",
    counter("BusySeconds", lambda it: it.busy_s,
        "time that the thread worked, or waited for the interpreter or the disk "
        "(NetworkProcessorAvgIdlePercent)", healthy="below 0.8 a second", unit="seconds",
        series="broker_processor_busy_seconds_total"),
    counter("IdleSeconds", lambda it: it.idle_s,
        "time that it waited for its clients", unit="seconds",
        series="broker_processor_idle_seconds_total"),
)  # fmt: skip
WORKER: ManagedObject[Sequence[ProcessorMetrics]] = ManagedObject(
    "OffloadWorker",
    counter("BusySeconds", lambda shards: shards[-1].busy_s,
        "time that the thread for requests that take long worked (RequestHandlerAvgIdlePercent)",
        unit="seconds", series="broker_worker_busy_seconds_total"),
    gauge("QueuedRequests",
        lambda shards: sum(one.offloaded_count for one in shards[:-1]) - shards[-1].offloaded_count,
        "requests that wait for it", healthy="0", series="broker_worker_queued_requests"),
)  # fmt: skip


class GroupTimes(NamedTuple):
    """How long the requests of one group took, by thread."""

    queue: Sequence[Histogram]
    local: Sequence[Histogram]
    remote: Sequence[Histogram]
    send: Sequence[Histogram]
    total: Sequence[Histogram]


REQUEST_TIMES: ManagedObject[GroupTimes] = ManagedObject(
    "RequestTimes.{request}",
    waits("QueueTime", lambda it: it.queue,
        "requests, and how long they waited for their turn after the thread that received them "
        "had seen that they were there (RequestQueueTimeMs)", healthy="short",
        series="broker_request_queue_seconds"),
    waits("LocalTime", lambda it: it.local,
        "requests, and how long they were handled, by another thread as well; those that came "
        "together count with equal shares (LocalTimeMs)", healthy="short",
        series="broker_request_local_seconds"),
    waits("RemoteTime", lambda it: it.remote,
        "requests that had to wait for replicas, a flush or messages, and how long (RemoteTimeMs)",
        series="broker_request_remote_seconds"),
    waits("SendTime", lambda it: it.send,
        "responses for which their client's socket had no room, and how long it took until they "
        "were sent (ResponseSendTimeMs)", healthy="short, few",
        series="broker_request_send_seconds"),
    waits("RequestTime", lambda it: it.total,
        "requests, and how long it took from their arrival until the response was complete: "
        "queue, local and remote; unlike Kafka's, without the time to send it (TotalTimeMs)",
        series="broker_request_seconds"),
)  # fmt: skip
REQUEST_ERROR: ManagedObject[int] = ManagedObject(
    "RequestErrors.{request}.{error}",
    counter("Errors", lambda it: it,
        "requests refused for this reason, and message sets, reads and partitions in them "
        "(ErrorsPerSec)", healthy="still", series="broker_request_errors_total"),
)  # fmt: skip
_DELAY_OF = {
    RequestGroup.PRODUCE: DelayKind.PUBLISH,
    RequestGroup.FETCH: DelayKind.READ,
    RequestGroup.FOLLOWER_FETCH: DelayKind.FOLLOWER_READ,
}
_TYPES_OF = {
    RequestGroup.PRODUCE: (RequestType.PRODUCE, RequestType.MULTIPRODUCE, RequestType.PUBLISH),
    RequestGroup.FETCH: (RequestType.FETCH, RequestType.MULTIFETCH, RequestType.READ),
    RequestGroup.METADATA: (RequestType.METADATA,),
    RequestGroup.PUSH: (RequestType.PUSH_STATES,),
}
# by plain numbers, which are compared faster
_GROUP_OF = {int(one): group for group, types in _TYPES_OF.items() for one in types}
_READ_TYPE = int(RequestType.READ)
_FOLLOWER_VERSIONS = [INT16.pack(one.VERSION) for one in (ReplicaFetchRequest, SessionFetchRequest)]


def request_group(request_type: int, frame: memoryview) -> RequestGroup:
    """Return the group that a request counts in."""
    if request_type == _READ_TYPE and frame[2:4] in _FOLLOWER_VERSIONS:
        return RequestGroup.FOLLOWER_FETCH
    return _GROUP_OF.get(request_type, RequestGroup.OTHER)


def _local(shards: Iterable[ProcessorMetrics], group: RequestGroup) -> list[WindowedStats]:
    return [one.times[group].local for one in shards]


def group_times(
    shards: Sequence[ProcessorMetrics], delays: Sequence[Sequence[DelayCounts]]
) -> Iterator[tuple[str, GroupTimes]]:
    """Yield the times of each group of requests, by its name."""
    for group in RequestGroup:
        found = [one.times[group] for one in shards]
        kind = _DELAY_OF.get(group)
        yield (
            group.name.lower(),
            GroupTimes(
                [one.queue for one in found],
                [one.local for one in found],
                [] if kind is None else [one[kind].waits for one in delays],
                [one.send for one in found],
                [one.total for one in found],
            ),
        )


def time_counts(times: Iterable[tuple[str, GroupTimes]]) -> dict[str, Any]:
    """Return the buckets of all times: differences of two looks give percentiles."""
    return {
        "bounds_s": REQUEST_BOUNDS_S,
        "times": {
            name: {
                part: {"counts": bucket_counts(stats), "total_s": sum(it.total_s for it in stats)}
                for part, stats in parts._asdict().items()
            }
            for name, parts in times
        },
    }


def error_readings(counted: RequestErrors) -> Iterator[Reading]:
    """Yield the counts of refusals, by group and the name of the error."""
    for (group, code), count in sorted(counted.counts.copy().items()):
        name = errors.NAME_OF_CODE.get(code, errors.UnknownServerError.__name__)
        words = _CAPITAL.sub(r"_\1", name.removesuffix("Error")).lower()
        yield Reading(REQUEST_ERROR, count, (group.name.lower(), words))


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
            if topic in ("", name) and shard.is_topic(name):
                by_topic[name].append(counters)
    for name, found in by_topic.items():
        yield Reading(TOPIC, _total(found), (name,))


class Delays(NamedTuple):
    """The delayed responses of all processors."""

    waiting: Counter[DelayKind]
    counts: Sequence[Sequence[DelayCounts]]  # by kind, of each processor
    deadline_count: int


def _delays(
    kind: DelayKind, name: str, noun: str, *, hint: str = "", expired: str, healthy: str = ""
) -> tuple[Metric[Delays], ...]:
    label = f'{{kind="{kind.name.lower()}"}}'
    return (
        gauge(f"{name}Waiting", lambda it: it.waiting[kind],
            f"{noun} that wait now{hint}", healthy=healthy and "few",
            series=f"broker_waiting_responses{label}"),
        waits(f"{name}Wait", lambda it: [one[kind].waits for one in it.counts],
            f"{noun} that had to wait, complete by now, and how long they waited together",
            healthy=healthy and "short"),
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
        expired="publishes that were not committed in their time: error 7", healthy="0",
    ),
    *_delays(DelayKind.READ, "Read", "reads of consumers", expired=_QUIET),
    *_delays(DelayKind.FOLLOWER_READ, "FollowerRead", "reads of followers", expired=_QUIET),
    gauge("Deadlines", lambda it: it.deadline_count,
        "deadlines that are kept. Far more: responses are not forgotten",
        healthy="below twice `Waiting`, or 100"),
)  # fmt: skip
