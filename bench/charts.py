"""Figures that belong together: as an SVG chart, and as a table for a page of text.

Takes figures as a file of results has them, so that pages can be made of saved runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.svg import bars, lines, short


@dataclass
class Chart:
    """Medians by series and x; `title` ends in `over X` if x is a number."""

    title: str
    unit: str
    series: dict[str, dict[float | str, float]] = field(default_factory=dict)

    @property
    def slug(self) -> str:
        """Return a file name."""
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")

    @property
    def xs(self) -> list[float | str]:
        """Return all x: numbers by size, names in the order they were added."""
        found = list(dict.fromkeys(x for points in self.series.values() for x in points))
        return sorted(found, key=lambda x: x if isinstance(x, int | float) else 0)

    @property
    def is_of_names(self) -> bool:
        """Return whether x are names and not numbers."""
        return any(isinstance(x, str) for x in self.xs)

    @property
    def is_drawable(self) -> bool:
        """Return whether the figures can be drawn; series of names over names are a table only."""
        return len(self.series) == 1 or not self.is_of_names

    def svg(self) -> str:
        """Return the chart as SVG."""
        if self.is_of_names:
            (points,) = self.series.values()
            return bars(self.title, self.unit, {str(x): y for x, y in points.items()})
        numbers = {
            name: [(float(x), y) for x, y in points.items()] for name, points in self.series.items()
        }
        return lines(self.title, self.unit, self.title.rpartition(" over ")[2], numbers)

    def markdown(self) -> str:
        """Return the chart's figures as a table."""
        first = "" if self.is_of_names else self.title.rpartition(" over ")[2]
        head = [first, *(name or self.unit for name in self.series)]
        rows = [
            [_x_text(x), *(_y_text(points.get(x)) for points in self.series.values())]
            for x in self.xs
        ]
        rule = ["---", *("---:" for _ in self.series)]
        return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def charts_of(figures: Sequence[Mapping[str, Any]]) -> list[Chart]:
    """Return the charts of figures, in their order."""
    found: dict[str, Chart] = {}
    for one in figures:
        position = one["place"]
        if position is None:
            continue
        chart = found.setdefault(position["chart"], Chart(position["chart"], one["unit"]))
        chart.series.setdefault(position["series"], {})[position["x"]] = one["median"]
    return list(found.values())


def write_charts(directory: Path, charts: Sequence[Chart]) -> None:
    """Write each chart that can be drawn to its own file."""
    directory.mkdir(parents=True, exist_ok=True)
    for chart in charts:
        if chart.is_drawable:
            (directory / f"{chart.slug}.svg").write_text(chart.svg(), encoding="utf-8")


def _x_text(x: float | str) -> str:
    return x if isinstance(x, str) else f"{x:,g}" if x < 1 else f"{x:,.10g}"


def _y_text(y: float | None) -> str:
    if y is None:
        return ""
    return f"{y:,.0f}" if abs(y) >= 100 else short(y)
