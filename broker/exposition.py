"""What Prometheus scrapes: declared metrics as families of its client library, and as text.

Sources: Prometheus, "Exposition formats", text version 0.0.4, and "Metric and label naming".
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any, TypeVar

from broker.metrics import Kind, ManagedObject, Metric, Reading, counter
from broker.stats import bucket_counts

if TYPE_CHECKING:
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    from broker.stats import Histogram

    Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily

_T = TypeVar("_T")
logger = logging.getLogger(__name__)

PREFIX = "pylogctl_"
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_LINES_AT_ONCE = 200
"""After as many lines, threads that serve clients get their turn at the interpreter's lock."""


class Scrapes:
    """Leaves out the parts of scrapes that fail, and counts them."""

    def __init__(self) -> None:
        self.error_count = 0

    def part(self, make: Callable[[], Iterable[_T]]) -> Iterator[_T]:
        """Yield what a function returns, up to its failure."""
        try:
            yield from make()
        except Exception:  # a bug costs a part of one scrape
            logger.exception("a part of the metrics cannot be read")
            self.error_count += 1


SCRAPES: ManagedObject[Scrapes] = ManagedObject(
    "Scrapes",
    counter("ScrapeErrors", lambda it: it.error_count,
        "parts of scrapes that were left out, as they could not be read; the log says why",
        healthy="0", series="scrape_errors_total"),
)  # fmt: skip


def exposition_text(readings: Iterable[Reading], scrapes: Scrapes | None = None) -> str:
    """Return the metrics of objects as text, with those of the process and of Python.

    With `scrapes`, a metric that cannot be read is left out, and the count of these added.
    """
    from prometheus_client import CollectorRegistry, GCCollector, PlatformCollector, generate_latest
    from prometheus_client.process_collector import ProcessCollector

    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    registry.register(_Collector(readings, scrapes))
    return generate_latest(registry).decode()


class _Collector:
    """Has families collected; the registry asks for them once, as this does not describe itself."""

    def __init__(self, readings: Iterable[Reading], scrapes: Scrapes | None) -> None:
        self._readings = readings
        self._scrapes = scrapes

    def collect(self) -> Iterator[Family]:
        return families(self._readings, self._scrapes)


def families(readings: Iterable[Reading], scrapes: Scrapes | None = None) -> Iterator[Family]:
    """Yield a family for each series that the metrics of the objects declare."""
    found: dict[str, Family] = {}
    count = [] if scrapes is None else [Reading(SCRAPES, scrapes)]
    for managed, source, values in chain(readings, count):
        for metric in managed.metrics:
            if not metric.series:
                continue
            name, own = _name_and_labels(metric)
            family = found.get(name)
            if family is None:
                family = found[name] = _family(name, [*managed.labels, *own], metric)
            try:
                _add(family, [*map(str, values), *own.values()], metric, source)
            except Exception:
                if scrapes is None:
                    raise
                logger.exception("metric %s cannot be read", name)
                scrapes.error_count += 1
    yield from found.values()


def declared(objects: Iterable[ManagedObject[Any]]) -> Iterator[Family]:
    """Yield the same families without samples."""
    found: set[str] = set()
    for managed in objects:
        for metric in managed.metrics:
            name, own = _name_and_labels(metric)
            if metric.series and name not in found:
                found.add(name)
                yield _family(name, [*managed.labels, *own], metric)


def _name_and_labels(metric: Metric[Any]) -> tuple[str, dict[str, str]]:
    name, _, labels = metric.series.partition("{")
    return PREFIX + name, dict(_LABEL.findall(labels))


def _family(name: str, labels: Sequence[str], metric: Metric[Any]) -> Family:
    from prometheus_client.metrics_core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    match metric.kind:
        case Kind.GAUGE:
            return GaugeMetricFamily(name, _help(metric), labels=labels)
        case Kind.COUNTER:
            return CounterMetricFamily(name, _help(metric), labels=labels)
        case Kind.TIMES | Kind.WAITS:
            return HistogramMetricFamily(name, _help(metric), labels=labels)


def _help(metric: Metric[Any]) -> str:
    return f"{metric.name}: {metric.meaning}"


def _add(family: Family, labels: Sequence[str], metric: Metric[Any], source: Any) -> None:
    from prometheus_client.metrics_core import HistogramMetricFamily

    if isinstance(family, HistogramMetricFamily):
        if stats := metric.read(source):
            family.add_metric(labels, *_histogram(stats))
    elif (value := metric.sample(source)) is not None:
        family.add_metric(labels, value)


def _histogram(stats: Sequence[Histogram]) -> tuple[list[tuple[str, float]], float]:
    """Return the cumulative buckets by upper end, and the sum, of what several threads counted."""
    counts = bucket_counts(stats)
    ends = [*map(str, stats[0].bounds_s), "+Inf"]
    return list(zip(ends, accumulate(counts), strict=True)), sum(one.total_s for one in stats)


def label_text(**labels: object) -> str:
    """Return labels as they stand in a line."""
    return ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def lines(metrics: Iterable[Metric[Any]], sources: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Yield the lines of gauges and counters for thousands of sources, each with its labels.

    The library's families take forty times as long, with the interpreter's lock held.
    """
    written = 0
    for metric in metrics:
        if not metric.series:
            continue
        name = PREFIX + metric.series
        yield f"# HELP {name} {_help(metric)}\n# TYPE {name} {metric.kind}\n"
        for labels, source in sources:
            if (value := metric.sample(source)) is not None:
                yield f"{name}{{{labels}}} {value}\n"
                written += 1
                if written % _LINES_AT_ONCE == 0:
                    time.sleep(0)
