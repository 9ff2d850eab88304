"""Metrics of clients: their names and meanings, and how a registry of the program collects them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from broker.client.counts import (
    ClientCounts,
    ConsumerCounts,
    ConsumerLedger,
    MetricsRegistry,
    ProducerCounts,
    ReadPlace,
    TopicCounts,
)
from broker.errors import ArgumentError
from broker.exposition import declared, families
from broker.metrics import ManagedObject, Reading, counter, gauge, waits

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

_LABEL = re.compile(r"(?!__)[a-zA-Z_]\w*", re.ASCII)


class _Member(NamedTuple):
    """The consumers of one group in a client."""

    counts: ConsumerCounts
    places: list[ReadPlace]

    @property
    def max_lag_bytes(self) -> int | None:
        lags = map(_lag_bytes, self.places)
        return max((one for one in lags if one is not None), default=None)


def _lag_bytes(place: ReadPlace) -> int | None:
    if place.log_end < 0 or place.read_up_to < 0:
        return None
    return max(0, place.log_end - place.read_up_to)


PRODUCER: ManagedObject[ProducerCounts] = ManagedObject(
    "producer-metrics",
    gauge("records-queued", lambda it: it.queued_messages,
        "messages that wait to be sent", series="producer_queued_messages"),
    waits("record-queue-time", lambda it: [it.queue_times],
        "how long batches waited to be sent, from their first message on",
        series="producer_queue_seconds"),
    gauge("requests-in-flight", lambda it: it.in_flight,
        "requests without a response yet", series="producer_in_flight_requests"),
    waits("request-latency", lambda it: [it.request_times],
        "from a request to its response", series="producer_request_seconds"),
    waits("batch-size", lambda it: [it.set_bytes],
        "bytes that were sent to one partition in one request", series="producer_batch_bytes"),
)  # fmt: skip

PRODUCER_TOPIC: ManagedObject[TopicCounts] = ManagedObject(
    "producer-topic-metrics.{topic}",
    counter("record-send-total", lambda it: it.messages,
        "messages that brokers have acknowledged", series="producer_messages_total"),
    counter("byte-total", lambda it: it.size_bytes,
        "what they take in a log", series="producer_bytes_total"),
    counter("record-error-total", lambda it: it.errors,
        "messages that could not be delivered", series="producer_errors_total"),
    counter("record-retry-total", lambda it: it.retries,
        "messages that came back to be sent again", series="producer_retries_total"),
)  # fmt: skip

CONSUMER: ManagedObject[_Member] = ManagedObject(
    "consumer-fetch-manager-metrics.{group}",
    waits("fetch-latency", lambda it: [it.counts.fetch_times],
        "from a request to its response, a broker's wait for messages included",
        series="consumer_fetch_seconds"),
    gauge("records-lag-max", lambda it: it.max_lag_bytes,
        "the largest lag of a partition that is read here", series="consumer_lag_max_bytes"),
)  # fmt: skip

MEMBER: ManagedObject[_Member] = ManagedObject(
    "consumer-coordinator-metrics.{group}",
    counter("commit-total", lambda it: it.counts.commits,
        "commits of positions", series='consumer_commits_total{outcome="done"}'),
    counter("commit-failed-total", lambda it: it.counts.failed_commits,
        "commits that failed, also for one partition",
        series='consumer_commits_total{outcome="failed"}'),
    waits("commit-latency", lambda it: [it.counts.commit_times],
        "how long commits took", series="consumer_commit_seconds"),
    counter("rebalance-total", lambda it: it.counts.rebalances,
        "rebalances of this member", series='consumer_rebalances_total{outcome="done"}'),
    counter("failed-rebalance-total", lambda it: it.counts.failed_rebalances,
        "rebalances that were given up, with all partitions",
        series='consumer_rebalances_total{outcome="failed"}'),
    waits("rebalance-latency", lambda it: [it.counts.rebalance_times],
        "how long rebalances took that were done", series="consumer_rebalance_seconds"),
    gauge("assigned-partitions", lambda it: len(it.places),
        "partitions that are this member's now", series="consumer_assigned_partitions"),
)  # fmt: skip

CONSUMER_TOPIC: ManagedObject[TopicCounts] = ManagedObject(
    "consumer-topic-metrics.{group}-{topic}",
    counter("records-consumed-total", lambda it: it.messages,
        "messages that were taken to be handed out", series="consumer_messages_total"),
    counter("bytes-consumed-total", lambda it: it.size_bytes,
        "what was read of logs for them", series="consumer_bytes_total"),
)  # fmt: skip

CONSUMER_PARTITION: ManagedObject[ReadPlace] = ManagedObject(
    "consumer-partition-metrics.{group}-{topic}-{partition}",
    gauge("records-lag", _lag_bytes,
        "bytes that are not finished, up to the end in the last response",
        series="consumer_lag_bytes"),
    gauge("position", lambda it: None if it.read_up_to < 0 else it.read_up_to,
        "offset after the last message that is finished", series="consumer_position_bytes"),
)  # fmt: skip

MANAGED_OBJECTS: tuple[ManagedObject[Any], ...] = (
    *(PRODUCER, PRODUCER_TOPIC, CONSUMER, MEMBER, CONSUMER_TOPIC, CONSUMER_PARTITION),
)


def readings(counts: ClientCounts) -> Iterator[Reading]:
    """Yield what a client has counted."""
    sent = counts.producers.total()
    yield Reading(PRODUCER, sent)
    for topic, one in sent.topics.items():
        yield Reading(PRODUCER_TOPIC, one, (topic,))
    for consumers in counts.all_consumers():
        yield from consumer_readings(consumers)


def consumer_readings(consumers: ConsumerLedger) -> Iterator[Reading]:
    """Yield what the consumers of a group have counted."""
    group = consumers.group
    # of two readers of a partition the later one is shown
    places = {one.partition: one for find in list(consumers.places) for one in list(find())}
    member = _Member(consumers.total(), list(places.values()))
    yield Reading(CONSUMER, member, (group,))
    if group:
        yield Reading(MEMBER, member, (group,))
    for topic, one in member.counts.topics.items():
        yield Reading(CONSUMER_TOPIC, one, (group, topic))
    for partition, place in places.items():
        yield Reading(CONSUMER_PARTITION, place, (group, partition.topic, partition.name))


class _Collector:
    """The clients that one registry collects, by their labels."""

    def __init__(self) -> None:
        self.clients: dict[tuple[tuple[str, str], ...], ClientCounts] = {}

    def describe(self) -> Iterable[Metric]:
        """Return the families without samples: the registry looks for clashes of names."""
        return declared(MANAGED_OBJECTS)

    def collect(self) -> Iterable[Metric]:
        """Return the families, each with the samples of all clients."""
        found: dict[str, Metric] = {}
        for labels, counts in list(self.clients.items()):
            for family in families(readings(counts)):
                samples = [
                    one._replace(labels={**dict(labels), **one.labels}) for one in family.samples
                ]
                family.samples = []
                found.setdefault(family.name, family).samples += samples
        return found.values()


_lock = Lock()
_collectors: WeakKeyDictionary[MetricsRegistry, _Collector] = WeakKeyDictionary()


def register(registry: MetricsRegistry, counts: ClientCounts, labels: dict[str, str]) -> None:
    """Have a registry collect what a client has counted, until the end of the counts.

    Raises:
        ArgumentError: a label is malformed or taken, or a client with these labels is registered.
    """
    taken = {name for one in MANAGED_OBJECTS for name in one.labels} | {"outcome", "le"}
    for name in labels:
        if not _LABEL.fullmatch(name) or name in taken:
            raise ArgumentError(f"'{name}' cannot be a label of a client's metrics")
    key = tuple(sorted((name, str(value)) for name, value in labels.items()))
    with _lock:
        collector = _collectors.get(registry)
        if collector is None:
            collector = _Collector()
            registry.register(collector)
            _collectors[registry] = collector
        if key in collector.clients:
            hint = 'give each a label of its own: register_metrics(registry, client="billing")'
            raise ArgumentError(
                "a client with these labels is in this registry already", hints=[hint]
            )
        collector.clients[key] = counts

    def leave() -> None:
        with _lock:
            del collector.clients[key]
            if not collector.clients:
                del _collectors[registry]
                registry.unregister(collector)

    counts.leave_registries.append(leave)
