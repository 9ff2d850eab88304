"""The figures of a mirror as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from broker.client.counts import ProducerCounts
from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from pylogctl.mirror.metrics import LagTimes, exposition

SOURCE = TopicPartition("t", 3, 0)
ROUTE = RouteStatus(SOURCE, TopicPartition("m.t", 7, 1), 10, 110, 60, 2, "away", 1_500, True)


def mirror_samples(text: str) -> dict[str, float]:
    return {
        sample.name.removeprefix("pylogctl_mirror_"): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("pylogctl_mirror_") and family.type != "histogram"
    }


def test_exposition_of_a_route_has_its_figures_with_their_kinds() -> None:
    text = exposition([ROUTE], {SOURCE: 100}, {SOURCE: 2.5}, ProducerCounts())
    assert mirror_samples(text) == {
        "messages_total": 10,
        "bytes_total": 110,
        "errors_total": 2,
        "corrupt_messages_total": 0,
        "failing": 1,
        "last_error_timestamp_seconds": 1.5,
        "offset_bytes": 60,
        "end_offset_bytes": 100,
        "lag_bytes": 40,
        "lag_seconds": 2.5,
    }
    lines = text.splitlines()
    assert (
        'pylogctl_mirror_lag_bytes{partition="3-0",target_partition="7-1",'
        'target_topic="m.t",topic="t"} 40.0' in lines
    )
    assert "# TYPE pylogctl_mirror_messages_total counter" in lines
    assert "# TYPE pylogctl_mirror_lag_bytes gauge" in lines


def test_exposition_leaves_out_what_is_not_known() -> None:
    found = mirror_samples(exposition([RouteStatus(SOURCE)], {}, {}, ProducerCounts()))
    assert found.keys() == {
        "messages_total", "bytes_total", "errors_total", "corrupt_messages_total", "failing",
    }  # fmt: skip


def test_lag_times_when_a_route_stands_still_then_count_from_the_message_it_waits_at() -> None:
    times, ends = LagTimes(), {SOURCE: 100}

    def lag_s(time_s: int, offset: int, end: int) -> float:
        ends[SOURCE] = end
        return times.at(1000 * time_s, [RouteStatus(SOURCE, next_offset=offset)], ends)[SOURCE]

    assert lag_s(0, 50, 100) == 0  # nothing is known yet
    assert lag_s(10, 50, 100) == 10
    assert lag_s(20, 100, 100) == 0
    assert lag_s(30, 100, 200) == 10
    assert lag_s(40, 150, 200) == 15  # half of what came between 20 and 30
    assert times.at(50_000, [RouteStatus(SOURCE, next_offset=150)], {}) == {}


def test_exposition_has_the_times_of_requests_to_the_target() -> None:
    sent = ProducerCounts()
    sent.request_times.record(0.2)
    lines = exposition([], {}, {}, sent).splitlines()
    assert 'pylogctl_mirror_request_seconds_bucket{le="0.25"} 1.0' in lines
    assert "pylogctl_mirror_request_seconds_sum 0.2" in lines
