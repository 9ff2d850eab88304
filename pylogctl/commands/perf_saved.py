"""`pylogctl perf compare` and `report`: what saved runs say, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pylogctl.context import Environment
from pylogctl.errors import UsageError
from pylogctl.exit_status import ExitStatus
from pylogctl.options import OUTPUT, accepts
from pylogctl.render import render

_DEFAULT_LIMIT = "5%"


@accepts(
    *OUTPUT,
    exits=(ExitStatus.NOT_FOUND, ExitStatus.THRESHOLD),
    examples=(
        "pylogctl perf compare before.json after.json",
        "pylogctl perf compare before.json after.json --fail-below 5%",
    ),
)
def compare(
    env: Environment,
    before: Annotated[
        Path, typer.Argument(metavar="BEFORE", help="Saved run.", show_default=False)
    ],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="Saved run of the same command.")],
    fail_below: Annotated[
        str | None,
        typer.Option(
            "--fail-below",
            metavar="PERCENT",
            help="Status 12 if the second run is worse by more than this. Verdicts without it: 5%.",
        ),
    ] = None,
) -> None:
    """Compare two saved runs, figure by figure.

    What decides is the rate, of `perf e2e` median and p99 of the latency. What else was different
    is told on standard error.
    """
    from pylogctl.perf.saved import COMPARE, compare_records, differences, is_regression, load_run

    limit = _parse_percent(_DEFAULT_LIMIT if fail_below is None else fail_below)
    runs = load_run(before), load_run(after)
    records = list(compare_records(*runs, limit=limit))
    for difference in differences(*runs):
        env.warn(f"the runs differ in {difference}")
    render(env, COMPARE, records)
    env.flush()
    if fail_below is not None and is_regression(records):
        env.note(f"worse by more than {100 * limit:g}%")
        raise typer.Exit(ExitStatus.THRESHOLD)


@accepts(
    *OUTPUT,
    exits=(ExitStatus.NOT_FOUND,),
    examples=(
        "pylogctl perf report *.json",
        "pylogctl perf report *.json --sort -msg_per_s --output markdown",
    ),
)
def report(
    env: Environment,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Saved runs.", show_default=False)
    ],
) -> None:
    """List saved runs, a row for each."""
    from pylogctl.perf.saved import REPORT, load_run, report_record

    render(env, REPORT, [report_record(load_run(path)) for path in files])


def _parse_percent(text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise UsageError(f"not a percentage: '{text}'", hints=["valid: 5%, 0.5%, 0"])
    return percent / 100
