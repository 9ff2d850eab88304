"""Benchmarks of the broker and its tools: `python -m tests.bench [NAME ...]`.

Each prints medians over repetitions; nothing is asserted. Figures of a shared machine are worth
what its load lets them be worth, so compare runs made side by side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.bench import (
    codec_loops,
    commands,
    fetch,
    latency,
    library,
    limits,
    machine,
    memory,
    peers,
    pipes,
    produce,
    report,
    start,
    verify,
)
from tests.bench.broker_process import REPOSITORY
from tests.bench.charts import charts_of, write_charts
from tests.bench.measure import Measurement, Plan

Benchmark = Callable[[Plan], Iterator[Measurement]]

BENCHMARKS: dict[str, Benchmark] = {
    "codec": codec_loops.run,
    "produce": produce.run,
    "fetch": fetch.run,
    "library": library.run,
    "pipes": pipes.run,
    "verify": verify.run,
    "latency": latency.run,
    "memory": memory.run,
    "start": start.run,
    "commands": commands.run,
    "limits": limits.run,
    "peers": peers.run,
}


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    arguments = _parse_arguments()
    plan = Plan(arguments.quick, arguments.repetitions, arguments.directory)
    facts = machine.facts(REPOSITORY)
    print(", ".join(f"{name}: {value}" for name, value in facts.items()))
    measurements: list[Measurement] = []
    for name in arguments.names or BENCHMARKS:
        for one in BENCHMARKS[name](plan):
            print(report.line(one), file=sys.stderr, flush=True)
            measurements.append(one)
    print(report.table(measurements))
    charts = charts_of(report.figures(measurements))
    for chart in charts:
        if chart.unit == "x":
            print(f"\n{chart.title}\n\n{chart.markdown()}")
    if arguments.output is not None:
        report.write_json(arguments.output, facts, measurements)
        write_charts(arguments.output.with_suffix(""), charts)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--quick", action="store_true", help="small inputs")
    parser.add_argument("--repetitions", type=int, default=3, help="of each run (default 3)")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where data goes: some gigabytes in a full run",
    )
    parser.add_argument("--output", type=Path, help="write figures as JSON here, charts beside it")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in BENCHMARKS]
    if unknown or arguments.repetitions < 1:
        parser.error(f"no benchmark '{unknown[0]}'" if unknown else "--repetitions is at least 1")
    return arguments


if __name__ == "__main__":
    main()
