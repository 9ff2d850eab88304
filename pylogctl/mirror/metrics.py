"""Metrics of a running mirror, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from broker.admin.lag import LagSample, age_s, within_window
from broker.client.counts import ProducerCounts
from broker.client.list_offsets import OffsetLister
from broker.client.side import Side
from broker.errors import BrokerError
from broker.exposition import exposition_text
from broker.metrics import ManagedObject, Reading, counter, gauge, waits
from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition

Ends = Mapping[TopicPartition, int]  # latest offsets; unreachable brokers' are missing
_WINDOW_MS = 3_600_000


class _Route(NamedTuple):
    status: RouteStatus
    ends: Ends
    lags_s: Mapping[TopicPartition, float]  # by source


ROUTE: ManagedObject[_Route] = ManagedObject(
    "MirrorRoute.{topic}-{partition}-{target_topic}-{target_partition}",
    counter("Messages", lambda it: it.status.message_count,
        "messages that the target has acknowledged", series="mirror_messages_total"),
    counter("Bytes", lambda it: it.status.size_bytes,
        "what they take in a log", series="mirror_bytes_total"),
    counter("Errors", lambda it: it.status.error_count,
        "how often something went wrong", series="mirror_errors_total"),
    counter("CorruptMessages", lambda it: it.status.corrupt_count,
        "corrupt messages that were left out", series="mirror_corrupt_messages_total"),
    gauge("Failing", lambda it: int(it.status.is_failing),
        "1 if nothing was acknowledged since something went wrong", series="mirror_failing"),
    gauge("LastErrorMs", lambda it: it.status.error_ms,
        "when something went wrong last", unit="ms",
        series="mirror_last_error_timestamp_seconds"),
    gauge("Offset", lambda it: it.status.next_offset,
        "offset of the source up to which this mirror has mirrored", series="mirror_offset_bytes"),
    gauge("EndOffset", lambda it: it.ends.get(it.status.source),
        "offset of the source after its last message", series="mirror_end_offset_bytes"),
    gauge("Lag", lambda it: _lag_bytes(it.status, it.ends),
        "bytes of the source that are not mirrored yet", series="mirror_lag_bytes"),
    gauge("LagSeconds", lambda it: it.lags_s.get(it.status.source),
        "age of the oldest message of the source that is not mirrored yet, by the ends that "
        "earlier scrapes saw: at least so much", unit="seconds", series="mirror_lag_seconds"),
)  # fmt: skip


MIRROR: ManagedObject[ProducerCounts] = ManagedObject(
    "Mirror",
    waits("Request", lambda it: [it.request_times],
        "from a request of messages to the target to its response",
        series="mirror_request_seconds"),
)  # fmt: skip


def _lag_bytes(route: RouteStatus, ends: Ends) -> int | None:
    if route.next_offset is None or route.source not in ends:
        return None
    return max(0, ends[route.source] - route.next_offset)


class LagTimes:
    """Tells how long messages have waited to be mirrored, by the ends that earlier scrapes saw."""

    def __init__(self) -> None:
        self._samples: dict[TopicPartition, Sequence[LagSample]] = {}

    def at(
        self, time_ms: int, routes: Sequence[RouteStatus], ends: Ends
    ) -> dict[TopicPartition, float]:
        """Return the seconds by source, at least; of a source that was never at its end, so far."""
        found = {}
        for route in routes:
            if route.next_offset is None or route.source not in ends:
                continue
            new = LagSample(time_ms, route.next_offset, ends[route.source], time_ms)
            samples = within_window((*self._samples.get(route.source, ()), new), _WINDOW_MS)
            self._samples[route.source] = samples
            age = age_s(samples)
            found[route.source] = (time_ms - samples[0].time_ms) / 1000 if age is None else age
        return found


def exposition(
    routes: Sequence[RouteStatus],
    ends: Ends,
    lags_s: Mapping[TopicPartition, float],
    sent: ProducerCounts,
) -> str:
    """Return the metrics of a mirror's routes in Prometheus' format, with facts by source."""
    found = [Reading(ROUTE, _Route(one, ends, lags_s), tuple(_labels(one))) for one in routes]
    return exposition_text([Reading(MIRROR, sent), *found])


def _labels(route: RouteStatus) -> Iterator[str]:
    for one in (route.source, route.target):
        yield from ("", "") if one is None else (one.topic, one.name)


def source_ends(side: Side, routes: Sequence[RouteStatus]) -> Ends:
    """Return latest offsets of the sources."""
    ends = {}
    silent: set[int] = set()
    with OffsetLister(side.cluster, side.connect) as offsets:
        for route in routes:
            if route.source.home not in silent:
                try:
                    ends[route.source] = offsets.latest(route.source)
                except BrokerError:
                    silent.add(route.source.home)
    return ends
