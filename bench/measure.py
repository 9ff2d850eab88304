"""Measurements: the values of repeated runs, and goals."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import NamedTuple

BUDGET_S = 150.0
"""A run that takes longer is not repeated any more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run benchmarks.

    Args:
        is_quick: small inputs, to try a benchmark rather than to measure.
        repetitions: number of runs, at least 1; fewer if one takes long.
        directory: for data; each benchmark removes its own.
        log_gib: largest size of a single log.
    """

    is_quick: bool
    repetitions: int
    directory: Path
    log_gib: int = 4

    def size(self, full: int, quick: int) -> int:
        """Return the size of an input: `quick` in a quick run, else `full`."""
        return quick if self.is_quick else full


@dataclass(frozen=True, slots=True)
class Goal:
    """A value to reach at least, or at most where less is better."""

    value: float
    is_most: bool = False

    def is_met_by(self, value: float) -> bool:
        """Return whether a value reaches the goal."""
        return value <= self.value if self.is_most else value >= self.value

    def __str__(self) -> str:
        return f"{'<=' if self.is_most else '>='} {self.value:,g}"


class ChartPosition(NamedTuple):
    """The position of a figure in a chart: a bar if `x` is a name, on a line if it is a number."""

    chart: str
    series: str
    x: float | str


@dataclass(frozen=True, slots=True)
class Measurement:
    """The values of one figure, one for each repetition."""

    name: str
    unit: str
    values: Sequence[float]
    goal: Goal | None = None
    position: ChartPosition | None = None

    @property
    def median(self) -> float:
        """Return the median, which one disturbed repetition does not change."""
        return median(self.values)


def repeat(plan: Plan, run: Callable[[], float]) -> list[float]:
    """Return the results of all repetitions; fewer if one takes long."""
    started_s = time.monotonic()
    values: list[float] = []
    while len(values) < plan.repetitions and time.monotonic() - started_s < BUDGET_S:
        values.append(run())
    return values


def repeat_rate(plan: Plan, amount: float, run: Callable[[], float]) -> list[float]:
    """Return rates: `amount` divided by the seconds that `run` returns."""
    return [amount / elapsed_s for elapsed_s in repeat(plan, run)]


def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return one measurement for each name, with the values of all measurements of that name."""
    found: dict[str, Measurement] = {}
    for one in measurements:
        known = found.get(one.name)
        values = one.values if known is None else [*known.values, *one.values]
        found[one.name] = replace(one, values=values)
    return list(found.values())
