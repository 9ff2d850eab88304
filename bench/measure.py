"""What a benchmark gives back: values of repeated runs, and what was hoped for.

Owns repetition and its bound in time. Knows neither brokers nor tables.
"""

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
    """How benchmarks are run.

    Args:
        is_quick: small inputs, for a look rather than a figure.
        repetitions: how often each run is repeated, time permitting; at least 1.
        directory: where data goes; each benchmark removes what it put there.
        log_gib: how large a single log may become.
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
    """The value to reach: at least it, or at most it where less is better."""

    value: float
    is_most: bool = False

    def is_met_by(self, value: float) -> bool:
        """Return whether a value reaches the goal."""
        return value <= self.value if self.is_most else value >= self.value

    def __str__(self) -> str:
        return f"{'<=' if self.is_most else '>='} {self.value:,g}"


class Place(NamedTuple):
    """Where a figure stands in a chart: bars if `x` is a name, a line if it is a number."""

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
    place: Place | None = None

    @property
    def median(self) -> float:
        """Return the middle value, which one disturbed repetition does not move."""
        return median(self.values)


def repeat(plan: Plan, run: Callable[[], float]) -> list[float]:
    """Return what `run` returns in each repetition; one that takes long ends the row early."""
    started_s = time.monotonic()
    values: list[float] = []
    while len(values) < plan.repetitions and time.monotonic() - started_s < BUDGET_S:
        values.append(run())
    return values


def repeat_rate(plan: Plan, amount: float, run: Callable[[], float]) -> list[float]:
    """Return what is done a second: `amount` over the seconds that `run` returns."""
    return [amount / elapsed_s for elapsed_s in repeat(plan, run)]


def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
    """Return one measurement for each name, with the values of all of that name."""
    found: dict[str, Measurement] = {}
    for one in measurements:
        known = found.get(one.name)
        values = one.values if known is None else [*known.values, *one.values]
        found[one.name] = replace(one, values=values)
    return list(found.values())
