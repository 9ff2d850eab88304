"""Metrics of a running mirror, as Prometheus reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from broker.client.list_offsets import OffsetLister
from broker.errors import BrokerError
from broker.exposition import exposition_text
from broker.metrics import ManagedObject, Reading, counter, gauge
from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from pylogctl.cli.connections import Side

Ends = Mapping[TopicPartition, int]  # latest offsets; unreachable brokers' are missing


class _Route(NamedTuple):
    status: RouteStatus
    ends: Ends


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
)  # fmt: skip


def _lag_bytes(route: RouteStatus, ends: Ends) -> int | None:
    if route.next_offset is None or route.source not in ends:
        return None
    return max(0, ends[route.source] - route.next_offset)


def exposition(routes: Sequence[RouteStatus], ends: Ends) -> str:
    """Return the metrics of a mirror's routes in Prometheus' format; `ends` are of the sources."""
    return exposition_text(
        Reading(ROUTE, _Route(route, ends), tuple(_labels(route))) for route in routes
    )


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
