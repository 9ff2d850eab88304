"""The figures of a mirror as Prometheus reads them."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from broker.tools.mirror import RouteStatus
from broker.topic import TopicPartition
from pylogctl.mirror.metrics import exposition

SOURCE = TopicPartition("t", 3, 0)
ROUTE = RouteStatus(SOURCE, TopicPartition("m.t", 7, 1), 10, 110, 60, 2, "away", 1_500, True)


def mirror_samples(text: str) -> dict[str, float]:
    return {
        sample.name.removeprefix("pylogctl_mirror_"): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("pylogctl_mirror_")
    }


def test_exposition_of_a_route_has_its_figures_with_their_kinds() -> None:
    text = exposition([ROUTE], {SOURCE: 100})
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
    }
    lines = text.splitlines()
    assert (
        'pylogctl_mirror_lag_bytes{partition="3-0",target_partition="7-1",'
        'target_topic="m.t",topic="t"} 40.0' in lines
    )
    assert "# TYPE pylogctl_mirror_messages_total counter" in lines
    assert "# TYPE pylogctl_mirror_lag_bytes gauge" in lines


def test_exposition_leaves_out_what_is_not_known() -> None:
    found = mirror_samples(exposition([RouteStatus(SOURCE)], {}))
    assert found.keys() == {
        "messages_total", "bytes_total", "errors_total", "corrupt_messages_total", "failing",
    }  # fmt: skip
