"""Benchmarks of the broker and its tools: `python -m bench [NAME ...]`.

Each prints medians over repetitions; nothing is asserted. Figures of a shared machine depend on
its load, so compare runs made side by side.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench import (
    aio,
    aio_sending,
    codec_loops,
    commands,
    failover,
    fetch,
    latency,
    library,
    limits,
    logs,
    machine,
    memory,
    messages,
    peers,
    pipes,
    produce,
    replication,
    report,
    spark,
    start,
    tls,
    verify,
)
from bench.broker_process import REPOSITORY
from bench.charts import charts_of, write_charts
from bench.measure import Measurement, Plan, merge
from bench.scale import brokers, connections, consumers, log_size, message_size, partitions

Benchmark = Callable[[Plan], Iterator[Measurement]]

BENCHMARKS: dict[str, Benchmark] = {
    "codec": codec_loops.run,
    "logs": logs.run,
    "messages": messages.run,
    "produce": produce.run,
    "fetch": fetch.run,
    "library": library.run,
    "aio": aio.run,
    "aio-sending": aio_sending.run,
    "pipes": pipes.run,
    "verify": verify.run,
    "latency": latency.run,
    "memory": memory.run,
    "replication": replication.run,
    "tls": tls.run,
    "failover": failover.run,
    "start": start.run,
    "commands": commands.run,
    "spark": spark.run,
    "limits": limits.run,
    "peers": peers.run,
}
SCALE: dict[str, Benchmark] = {
    "partitions": partitions.run_partitions,
    "topics": partitions.run_topics,
    "connections": connections.run,
    "parked-reads": connections.run_parked_reads,
    "log-size": log_size.run,
    "message-size": message_size.run,
    "consumers": consumers.run,
    "brokers": brokers.run,
}
"""How figures grow: run by these names, or all by the name `scale`."""
_NAMES = f"of {', '.join(BENCHMARKS)} (all without a name), {', '.join(SCALE)}, or scale"


def main() -> None:
    """Run the benchmarks named on the command line, or all."""
    arguments = _parse_arguments()
    plan = Plan(arguments.quick, arguments.repetitions, arguments.directory, arguments.log_gib)
    facts = machine.facts(REPOSITORY)
    print(", ".join(f"{name}: {value}" for name, value in facts.items()))
    measurements: list[Measurement] = []
    for run in _chosen(arguments.names, plan):
        for one in run(plan):
            print(report.line(one), file=sys.stderr, flush=True)
            measurements.append(one)
    measurements = merge(measurements)
    print(report.table(measurements))
    charts = charts_of(report.figures(measurements))
    for chart in charts:
        if chart.unit == "x":
            print(f"\n{chart.title}\n\n{chart.markdown()}")
    if arguments.output is not None:
        report.write_json(arguments.output, facts, measurements)
        write_charts(arguments.output.with_suffix(""), charts)


def _chosen(names: Sequence[str], plan: Plan) -> Iterator[Benchmark]:
    """Yield the runs; benchmarks that do not repeat their points themselves are repeated."""
    for name in names or BENCHMARKS:
        if name in BENCHMARKS:
            yield BENCHMARKS[name]
        else:
            yield from [one for key, one in SCALE.items() if name in (key, "scale")] * (
                plan.repetitions
            )


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", metavar="NAME", nargs="*", help=_NAMES)
    parser.add_argument("--quick", action="store_true", help="small inputs")
    parser.add_argument("--repetitions", type=int, default=3, help="of each run (default 3)")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where data goes: some gigabytes in a full run",
    )
    parser.add_argument("--output", type=Path, help="write figures as JSON here, charts beside it")
    parser.add_argument(
        "--log-gib", type=int, default=4, help="largest log of log-size (default 4)"
    )
    arguments = parser.parse_args()
    unknown = [name for name in arguments.names if name not in (*BENCHMARKS, *SCALE, "scale")]
    if unknown or arguments.repetitions < 1:
        parser.error(f"no benchmark '{unknown[0]}'" if unknown else "--repetitions is at least 1")
    return arguments


if __name__ == "__main__":
    main()
