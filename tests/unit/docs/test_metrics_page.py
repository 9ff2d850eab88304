from __future__ import annotations

import re

from broker.metrics import Kind
from broker.server.status import LOG, LOG_AWAY, MANAGED_OBJECTS
from docs.metrics_page import CLIENT_PAGE, PAGE, with_client_table, with_tables


def test_page_of_metrics_when_written_again_then_is_the_same() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_tables(page) == page, "run make generated"


def test_page_of_metrics_of_clients_when_written_again_then_is_the_same() -> None:
    page = CLIENT_PAGE.read_text(encoding="utf-8")
    assert with_client_table(page) == page, "run make generated"


def test_page_of_metrics_when_compared_with_the_objects_then_has_a_section_of_each() -> None:
    headings = "".join(
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("### ")
    )
    assert [one.title for one in MANAGED_OBJECTS if f"`{one.title}`" not in headings] == []


def test_series_when_declared_then_keep_the_rules_of_prometheus_and_have_the_same_labels() -> None:
    labels_of: dict[str, set[tuple[str, ...]]] = {}
    for managed in MANAGED_OBJECTS:
        for metric in managed.metrics:
            if not metric.series:
                continue
            name, _, own = metric.series.partition("{")
            assert re.fullmatch(r"(broker|controller|log|scrape|zookeeper)_[a-z_]+", name)
            assert name.endswith("_total") == (metric.kind is Kind.COUNTER), name
            assert name.endswith("_seconds") or metric.kind not in (Kind.TIMES, Kind.WAITS), name
            assert name.endswith("_seconds") or metric.unit != "ms", name
            assert name.removesuffix("_total").endswith("_bytes") or metric.unit != "bytes", name
            if managed not in (LOG, LOG_AWAY):
                labels = (*managed.labels, *re.findall(r"(\w+)=", own))
                labels_of.setdefault(name, set()).add(labels)
    assert {name: found for name, found in labels_of.items() if len(found) > 1} == {}
