"""Metrics, each declared once: its name, kind, unit and meaning, and how to read it.

Counters and gauges are plain attributes of the objects that count, which know nothing of this: a
metric is read when a status or a scrape is asked for. STATUS, what Prometheus scrapes
(`exposition`) and the tables of `docs/operations/metrics.md` come from the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from broker.stats import Histogram, WindowedStats

Source = TypeVar("Source")
_LABEL = re.compile(r"{(\w+)}")
Attributes = dict[str, Any]
"""Values by the names of 0.7 and 0.8."""


class Kind(StrEnum):
    """What may happen to a value."""

    GAUGE = "gauge"
    COUNTER = "counter"  # only grows, from 0 at the start of the process
    TIMES = "times"  # of an event: five attributes
    WAITS = "waits"  # of an event: two attributes


class Metric(NamedTuple, Generic[Source]):
    """One metric of a source; see `gauge`, `counter` and `times`.

    `series` is its name for Prometheus, labels included that no object's name has, empty if that
    would say nothing new; `number` makes a number of a value that is none.
    """

    name: str
    kind: Kind
    unit: str
    healthy: str
    meaning: str
    read: Callable[[Source], Any]
    series: str
    number: Callable[[Any], float] | None = None

    def sample(self, source: Source) -> float | None:
        """Return the value in base units, None for none."""
        value = self.read(source)
        if value is None:
            return None
        if self.number is not None:
            return self.number(value)
        return float(value) / 1000 if self.unit == "ms" else value


def gauge(
    name: str,
    read: Callable[[Source], Any],
    meaning: str,
    *,
    healthy: str = "",
    unit: str = "",
    series: str = "",
    number: Callable[[Any], float] | None = None,
) -> Metric[Source]:
    """Declare a value that comes and goes."""
    return Metric(name, Kind.GAUGE, unit, healthy, meaning, read, series, number)


def counter(
    name: str,
    read: Callable[[Source], float],
    meaning: str,
    *,
    healthy: str = "",
    unit: str = "",
    series: str = "",
) -> Metric[Source]:
    """Declare a count since the start."""
    return Metric(name, Kind.COUNTER, unit, healthy, meaning, read, series)


def times(
    event: str,
    read: Callable[[Source], Sequence[WindowedStats]],
    meaning: str,
    *,
    healthy: str = "short",
    series: str = "",
) -> Metric[Source]:
    """Declare the rate and the times of an event; `read` returns the stats of each thread."""
    return Metric(event, Kind.TIMES, "ms", healthy, meaning, read, series)


def waits(
    event: str,
    read: Callable[[Source], Sequence[Histogram]],
    meaning: str,
    *,
    healthy: str = "",
    series: str = "",
) -> Metric[Source]:
    """Declare the number and the times of an event since the start; `read` as for `times`."""
    return Metric(event, Kind.WAITS, "ms", healthy, meaning, read, series)


class ManagedObject(Generic[Source]):
    """Metrics that are read from one source, under the name of an object as Kafka shows it by JMX.

    A name may have labels in braces: then there is an object for each topic or the like.
    """

    def __init__(self, name: str, *metrics: Metric[Source]) -> None:
        self.name = name
        self.metrics = metrics
        self.labels = _LABEL.findall(name)
        self._form = _LABEL.sub("%s", name)
        self._events = [one for one in metrics if one.kind in _ATTRIBUTES]
        self._values = [(one.name, one.read) for one in metrics if one.kind not in _ATTRIBUTES]

    def read(self, source: Source, *labels: object) -> tuple[str, Attributes]:
        """Return the name and the attributes of the object with these labels."""
        found = {name: read(source) for name, read in self._values}
        for one in self._events:
            found |= _ATTRIBUTES[one.kind](one.name, one.read(source))
        return self._form % labels, found

    @property
    def title(self) -> str:
        """The name with its labels in capitals."""
        return _LABEL.sub(lambda label: label[1].upper(), self.name)

    def rows(self) -> Iterator[str]:
        """Return rows of a table in Markdown: attribute, series, kind, healthy, meaning."""
        for one in self.metrics:
            attributes = _ATTRIBUTES.get(one.kind)
            names = (one.name,) if attributes is None else attributes(one.name, ())
            kind = f"{one.kind}, {one.unit}" if one.unit else one.kind
            series = f"`{one.series}`" if one.series else ""
            shown = ", ".join(f"`{name}`" for name in names)
            cells = (shown, series, kind, one.healthy, one.meaning)
            yield f"| {' | '.join(cells)} |".replace("|  |", "| |")

    def series_rows(self) -> Iterator[str]:
        """Return rows of a table in Markdown: series, labels, kind, name, meaning."""
        for one in self.metrics:
            name, _, own = one.series.partition("{")
            kind = "histogram" if one.kind in _ATTRIBUTES else one.kind
            labels = ", ".join(f"`{label}`" for label in self.labels)
            labels += own and f", `{own.removesuffix('}')}`"
            yield f"| `{name}` | {labels} | {kind} | `{one.name}` | {one.meaning} |"


class Reading(NamedTuple):
    """A managed object with a source of its values, and the labels in its name."""

    managed: ManagedObject[Any]
    source: Any
    labels: Sequence[object] = ()

    def attributes(self) -> tuple[str, Attributes]:
        """Return the name and the attributes for STATUS."""
        return self.managed.read(self.source, *self.labels)


def times_attributes(event: str, stats: Sequence[WindowedStats]) -> Attributes:
    """Return the attributes of an event that several threads have counted."""
    windows = [one.window() for one in stats]
    count = sum(window.event_count for window in windows)
    total_s = sum(window.total_s for window in windows)
    return {
        f"{_plural(event)}PerSecond": sum(window.per_second for window in windows),
        f"Avg{event}Ms": 1000 * total_s / count if count else 0.0,
        f"Max{event}Ms": 1000 * max((window.max_s for window in windows), default=0.0),
    } | waits_attributes(event, stats)


def waits_attributes(event: str, stats: Sequence[Histogram]) -> Attributes:
    """Return the attributes of an event since the start."""
    return {
        f"Total{event}Ms": 1000 * sum(one.total_s for one in stats),
        f"Num{_plural(event)}": sum(one.count for one in stats),
    }


def _plural(event: str) -> str:
    return f"{event}es" if event.endswith("sh") else f"{event}s"


_ATTRIBUTES: dict[Kind, Callable[[str, Sequence[Any]], Attributes]] = {
    Kind.TIMES: times_attributes,
    Kind.WAITS: waits_attributes,
}
