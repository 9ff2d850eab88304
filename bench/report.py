"""Measurements as a table for people and as JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from bench.measure import Measurement

_HEADERS = ("figure", "median", "min", "max", "unit", "runs", "goal", "met")


def table(measurements: Sequence[Measurement]) -> str:
    """Return a table with a row for each measurement."""
    rows = [_row(one) for one in measurements]
    alignment = ("left", "right", "right", "right", "left", "right", "right", "left")
    return tabulate(rows, _HEADERS, tablefmt="simple", colalign=alignment, disable_numparse=True)


def line(one: Measurement) -> str:
    """Return a measurement in one line, printed while others run."""
    return f"{one.name}: {_number(one.median)} {one.unit}"


def figures(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return measurements in the form of a file of results."""
    return [
        {
            "name": one.name,
            "unit": one.unit,
            "median": one.median,
            "min": min(one.values),
            "max": max(one.values),
            "values": list(one.values),
            "goal": str(one.goal) if one.goal else None,
            "met": one.goal.is_met_by(one.median) if one.goal else None,
            "place": one.position._asdict() if one.position else None,
        }
        for one in measurements
    ]


def write_json(path: Path, machine: dict[str, Any], measurements: Sequence[Measurement]) -> None:
    """Write machine and measurements to a file."""
    document = {"machine": machine, "figures": figures(measurements)}
    path.write_text(json.dumps(document, indent=2) + "\n")


def _row(one: Measurement) -> list[str]:
    goal = one.goal
    return [
        one.name,
        _number(one.median),
        _number(min(one.values)),
        _number(max(one.values)),
        one.unit,
        str(len(one.values)),
        str(goal) if goal else "",
        ("yes" if goal.is_met_by(one.median) else "NO") if goal else "",
    ]


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
