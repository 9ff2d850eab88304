"""Metrics, each declared once: its name, kind, unit and meaning, and how to read it.

Counters and gauges are plain attributes of the objects that count, which know nothing of this: a
metric is read when a status is asked for. STATUS and the tables of `docs/operations/metrics.md`
come from the declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Generic, NamedTuple, TypeVar

from broker.stats import WindowedStats

Source = TypeVar("Source")
_LABEL = re.compile(r"{(\w+)}")
Attributes = dict[str, Any]
"""Values by the names of 0.7 and 0.8."""


class Kind(StrEnum):
    """What may happen to a value."""

    GAUGE = "gauge"
    COUNTER = "counter"  # only grows, from 0 at the start of the process
    TIMES = "times"  # of an event: five attributes


class Metric(NamedTuple, Generic[Source]):
    """One metric of a source; see `gauge`, `counter` and `times`."""

    name: str
    kind: Kind
    unit: str
    healthy: str
    meaning: str
    read: Callable[[Source], Any]


def gauge(
    name: str, read: Callable[[Source], Any], meaning: str, *, healthy: str = "", unit: str = ""
) -> Metric[Source]:
    """Declare a value that comes and goes."""
    return Metric(name, Kind.GAUGE, unit, healthy, meaning, read)


def counter(
    name: str, read: Callable[[Source], float], meaning: str, *, healthy: str = "", unit: str = ""
) -> Metric[Source]:
    """Declare a count since the start."""
    return Metric(name, Kind.COUNTER, unit, healthy, meaning, read)


def times(
    event: str,
    read: Callable[[Source], Sequence[WindowedStats]],
    meaning: str,
    *,
    healthy: str = "short",
) -> Metric[Source]:
    """Declare the rate and the times of an event; `read` returns the stats of each thread."""
    return Metric(event, Kind.TIMES, "ms", healthy, meaning, read)


class ManagedObject(Generic[Source]):
    """Metrics that are read from one source, under the name of an object as Kafka shows it by JMX.

    A name may have labels in braces: then there is an object for each topic or the like.
    """

    def __init__(self, name: str, *metrics: Metric[Source]) -> None:
        self.name = name
        self.metrics = metrics
        self._form = _LABEL.sub("%s", name)
        self._times = [(one.name, one.read) for one in metrics if one.kind is Kind.TIMES]
        self._values = [(one.name, one.read) for one in metrics if one.kind is not Kind.TIMES]

    def read(self, source: Source, *labels: object) -> tuple[str, Attributes]:
        """Return the name and the attributes of the object with these labels."""
        found = {name: read(source) for name, read in self._values}
        for event, read in self._times:
            found |= times_attributes(event, read(source))
        return self._form % labels, found

    @property
    def title(self) -> str:
        """The name with its labels in capitals."""
        return _LABEL.sub(lambda label: label[1].upper(), self.name)

    def rows(self) -> Iterator[str]:
        """Return rows of a table in Markdown: attribute, kind, healthy, meaning."""
        for one in self.metrics:
            names = times_attributes(one.name, ()) if one.kind is Kind.TIMES else (one.name,)
            kind = f"{one.kind}, {one.unit}" if one.unit else one.kind
            cells = (", ".join(f"`{name}`" for name in names), kind, one.healthy, one.meaning)
            yield f"| {' | '.join(cells)} |".replace("|  |", "| |")


def times_attributes(event: str, stats: Sequence[WindowedStats]) -> Attributes:
    """Return the attributes of an event that several threads have counted."""
    events = f"{event}es" if event.endswith("sh") else f"{event}s"
    windows = [one.window() for one in stats]
    count = sum(window.event_count for window in windows)
    total_s = sum(window.total_s for window in windows)
    return {
        f"{events}PerSecond": sum(window.per_second for window in windows),
        f"Avg{event}Ms": 1000 * total_s / count if count else 0.0,
        f"Max{event}Ms": 1000 * max((window.max_s for window in windows), default=0.0),
        f"Total{event}Ms": 1000 * sum(one.total_s for one in stats),
        f"Num{events}": sum(one.count for one in stats),
    }
