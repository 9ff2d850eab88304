"""`pylogctl perf`: how fast a cluster takes messages, and how fast it gives them back.

Puts the commands together. Those that go as fast as they can stand in `perf_loads`, latency at a
fixed rate in `perf_latency`, what is done with saved runs in `perf_saved`.

`pylogctl perf produce`, `consume` and `simple`: as fast as can be.

`pylogctl perf e2e`: latency through the broker at a fixed rate.

`pylogctl perf compare` and `report`: what saved runs say, side by side.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import CONNECTION, DRY_RUN, OUTPUT, PROGRESS, PROPERTIES, accepts
from pylogctl.cli.render import Document, render
from pylogctl.cli.tree import Command, new_app

if TYPE_CHECKING:
    from pylogctl.perf.consume import OpenReadings


RUNS = (
    ExitStatus.FAILED,
    ExitStatus.NOT_FOUND,
    ExitStatus.TIMEOUT,
    ExitStatus.CONFIG,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)
READS = (*RUNS, ExitStatus.PARTIAL, ExitStatus.CORRUPT)

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic.", show_default=False)]
Messages = Annotated[
    int | None,
    typer.Option(
        "--messages",
        metavar="N",
        min=1,
        rich_help_panel="Limits",
        help="Stop after so many. Without it and --duration: after 10s.",
    ),
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", metavar="DUR", rich_help_panel="Limits", help="Stop after so long."),
]
Threads = Annotated[
    int, typer.Option("--threads", metavar="N", min=1, help="Threads that work at the same time.")
]
IntervalOption = Annotated[
    str,
    typer.Option(
        "--interval", metavar="DUR", rich_help_panel="Output", help="Time from row to row."
    ),
]
Compat07 = Annotated[
    bool,
    typer.Option(
        "--compat07",
        rich_help_panel="Output",
        help="CSV with the columns and number formats of Kafka 0.7's tools.",
    ),
]
Save = Annotated[
    Path | None,
    typer.Option(
        "--save",
        metavar="FILE",
        rich_help_panel="Output",
        help="Write result, intervals, options and platform to a JSON file.",
    ),
]


CodecOption = Annotated[
    Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
    typer.Option("-z", "--codec", help="Compression of a batch. Default: none."),
]
AcksOption = Annotated[
    Literal["0", "1", "-1"] | None,
    typer.Option(
        "--acks", help="Wait for nothing, for written (1) or for flushed (-1). Default: -1."
    ),
]
Offsets = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--offset",
        metavar="SPEC",
        rich_help_panel="Selection",
        help="Where to start, and to end: START[:END]. Default: start.",
    ),
]
FetchSize = Annotated[
    str | None,
    typer.Option(
        "--fetch-size",
        metavar="SIZE",
        rich_help_panel="Connection",
        help="Bytes per partition and request. Default: 1MiB.",
    ),
]
IdleTimeout = Annotated[
    str | None,
    typer.Option(
        "--idle-timeout",
        metavar="DUR",
        rich_help_panel="Limits",
        help="Stop when nothing came for so long; status 7 if --messages is not reached. "
        "Default: 5s without --duration.",
    ),
]


@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROPERTIES,
    *PROGRESS,
    *DRY_RUN,
    exits=RUNS,
    dumps_properties=True,
    examples=(
        "pylogctl perf produce bench --messages 1000000 --size 200 --batch 50",
        "pylogctl perf produce bench --duration 1m --size 100..2000 --rate 5MiB/s --acks 1",
        "pylogctl perf produce bench --payload-file app.log --codec snappy --save run.json",
    ),
)
def produce(
    env: Environment,
    topic: Topic,
    messages: Messages = None,
    duration: Duration = None,
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="N[..M]",
            rich_help_panel="Input",
            help="Bytes of payload, or a range to choose from evenly. Default: 100.",
        ),
    ] = None,
    payload_file: Annotated[
        Path | None,
        typer.Option(
            "--payload-file",
            metavar="FILE",
            rich_help_panel="Input",
            help="Send the lines of a file over and over, the first 64 MiB of it.",
        ),
    ] = None,
    batch: Annotated[
        int,
        typer.Option(
            "--batch", metavar="N", min=1, rich_help_panel="Input", help="Messages in a batch."
        ),
    ] = 200,
    codec: CodecOption = None,
    acks: AcksOption = None,
    threads: Threads = 1,
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            metavar="R",
            rich_help_panel="Limits",
            help="No faster than this on average: 1000/s, 5MiB/s.",
        ),
    ] = None,
    warmup: Annotated[
        int,
        typer.Option(
            "--warmup",
            metavar="N",
            min=0,
            rich_help_panel="Limits",
            help="Messages to send before the clock starts.",
        ),
    ] = 0,
    interval: IntervalOption = "1s",
    compat07: Compat07 = False,
    save: Save = None,
) -> None:
    """Send messages as fast as possible and measure it.

    The clock stops when all of it can be read. Latencies are those of a batch, from handing it
    over until its acknowledgement is read; with -X max.in.flight.requests=1 each is waited for
    before the next is sent. The overhead is what the topic's logs grew by beyond the payloads, a
    message; it means nothing if somebody else produces to the topic meanwhile.
    """
    from broker.producer.producer import codec_of
    from pylogctl.cli.properties import PERF_PRODUCE
    from pylogctl.cli.units import parse_rate
    from pylogctl.perf import plan as perf_plan
    from pylogctl.perf import run as perf_run
    from pylogctl.perf.produce import ProducePlan
    from pylogctl.perf.report import PLAN, PRODUCE, Run, produce_csv_07, produce_figures

    config = perf_plan.producer_config(env, PERF_PRODUCE, codec=codec, acks=acks)
    perf_plan.check_output(env, compat07=compat07, save=save)
    plan = ProducePlan(
        topic,
        perf_plan.batches_of(size, payload_file, batch),
        message_count=messages,
        duration_s=perf_plan.duration_s_of(messages, duration),
        warmup_count=warmup,
        thread_count=threads,
        rate=None if rate is None else parse_rate(rate),
        is_sequential=config.max_in_flight == 1,
    )
    every_s = perf_plan.interval_s_of(interval)
    if env.settings.dry_run:
        render(env, PLAN, [perf_run.plan_record(env, plan, config)])
        env.note("nothing sent; this was a dry run")
        return
    outcome = perf_run.run_produce(env, plan, config, every_s=every_s)
    used = {
        "topic": topic,
        "messages": messages,
        "duration_s": plan.duration_s,
        "size": size,
        "payload_file": None if payload_file is None else str(payload_file),
        "batch": batch,
        "threads": threads,
        "rate": rate,
        "warmup": warmup,
        "properties": perf_plan.property_texts(config),
    }
    figures = produce_figures(outcome.result)
    run = Run("perf produce", used, outcome.result, outcome.intervals, figures)
    csv_07 = produce_csv_07(outcome.result, plan, codec_of(config)) if compat07 else None
    perf_run.report(env, PRODUCE, run, save=save, csv_07=csv_07)
    end(env, outcome.status)


def end(env: Environment, status: ExitStatus) -> None:
    """End an interrupted run as such; its result is written by now."""
    if status:
        env.note("interrupted; the result is that of the part that was done")
        raise typer.Exit(status)


@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROPERTIES,
    *PROGRESS,
    exits=READS,
    dumps_properties=True,
    examples=(
        "pylogctl perf consume bench",
        "pylogctl perf consume bench --messages 1000000 --fetch-size 200kB --output json",
        "pylogctl perf consume bench --duration 1m -o end --threads 2",
    ),
)
def consume(
    env: Environment,
    topic: Topic,
    messages: Messages = None,
    duration: Duration = None,
    offset: Offsets = None,
    partition: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--partition",
            metavar="LIST",
            rich_help_panel="Selection",
            help="Only these: 0, 2-0, *-0, 0,1 or 0..3.",
        ),
    ] = None,
    fetch_size: FetchSize = None,
    threads: Threads = 1,
    idle_timeout: IdleTimeout = None,
    interval: IntervalOption = "1s",
    compat07: Compat07 = False,
    save: Save = None,
) -> None:
    """Read messages as fast as possible, decode every one, and measure it.

    Without --messages and --duration it reads what is there now, for 10s at most. The clock stops
    with the last message. Latencies are the times a reader waits for the next bytes; one request
    is always ahead.
    """
    from pylogctl.perf.consume import shared_readings
    from pylogctl.perf.report import CONSUME

    given = _Given(topic, messages, duration, offset, partition, fetch_size, threads, idle_timeout)
    _read(env, "perf consume", given, shared_readings, CONSUME, _Shown(interval, compat07, save))


@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROPERTIES,
    *PROGRESS,
    exits=READS,
    dumps_properties=True,
    examples=(
        "pylogctl perf simple bench --fetch-size 200kB",
        "pylogctl perf simple bench -p 1-0 --messages 1000000 --compat07",
    ),
)
def simple(
    env: Environment,
    topic: Topic,
    messages: Messages = None,
    duration: Duration = None,
    offset: Offsets = None,
    partition: Annotated[
        str,
        typer.Option(
            "-p",
            "--partition",
            metavar="PARTITION",
            rich_help_panel="Selection",
            help="Which one: 0, or 2-0 where several brokers have a 0.",
        ),
    ] = "0",
    fetch_size: FetchSize = None,
    idle_timeout: IdleTimeout = None,
    interval: IntervalOption = "1s",
    compat07: Compat07 = False,
    save: Save = None,
) -> None:
    """Read one partition as Kafka 0.7's simple consumer does, and measure it.

    One fetch request at a time, so that latencies are those of a request and its answer. Otherwise
    like `perf consume`.
    """
    from pylogctl.perf.report import SIMPLE
    from pylogctl.perf.simple import single_reading

    given = _Given(topic, messages, duration, offset, partition, fetch_size, 1, idle_timeout)
    _read(env, "perf simple", given, single_reading, SIMPLE, _Shown(interval, compat07, save))


class _Given(NamedTuple):
    """What options say of reading."""

    topic: str
    messages: int | None
    duration: str | None
    offset: list[str] | None
    partition: str | None
    fetch_size: str | None
    threads: int
    idle_timeout: str | None


class _Shown(NamedTuple):
    """What options say of the result."""

    interval: str
    compat07: bool
    save: Path | None


def _read(
    env: Environment,
    command: str,
    given: _Given,
    open_readings: OpenReadings,
    document: Document,
    shown: _Shown,
) -> None:
    from pylogctl.cli.offsets import make_span
    from pylogctl.cli.selection import parse_partition_list
    from pylogctl.perf import plan as perf_plan
    from pylogctl.perf import run as perf_run
    from pylogctl.perf.consume import ConsumePlan, End
    from pylogctl.perf.report import Run, consume_csv_07

    config = perf_plan.consumer_config(env, fetch_size=given.fetch_size)
    perf_plan.check_output(env, compat07=shown.compat07, save=shown.save)
    every_s = perf_plan.interval_s_of(shown.interval)
    # Without any limit there must be an end: what is there now.
    is_bounded = given.messages is None and given.duration is None
    span = make_span(env, given.offset or [], from_beginning=False, exit_at_end=is_bounded)
    chosen = None if given.partition is None else parse_partition_list(given.partition)
    plan = ConsumePlan(
        message_count=given.messages,
        duration_s=perf_plan.duration_s_of(given.messages, given.duration),
        idle_timeout_s=perf_plan.idle_timeout_s_of(
            given.idle_timeout, has_duration=given.duration is not None
        ),
        thread_count=given.threads,
        fetch_bytes=config.fetch_bytes,
        max_wait_ms=config.max_wait_ms,
    )
    selection = perf_run.Selection(given.topic, chosen, span)
    outcome = perf_run.run_consume(env, plan, config, selection, open_readings, every_s=every_s)
    used = {
        "topic": given.topic,
        "messages": given.messages,
        "duration_s": plan.duration_s,
        "offset": given.offset,
        "partition": given.partition,
        "threads": given.threads,
        "idle_timeout_s": plan.idle_timeout_s,
        "properties": perf_plan.property_texts(config),
    }
    run = Run(command, used, outcome.result, outcome.intervals)
    csv_07 = consume_csv_07(outcome.result, plan) if shown.compat07 else None
    perf_run.report(env, document, run, save=shown.save, csv_07=csv_07)
    end(env, outcome.status)
    if outcome.end is End.IDLE:
        env.note(f"stopped: nothing came for {plan.idle_timeout_s:g}s")
        raise typer.Exit(ExitStatus.OK if given.messages is None else ExitStatus.TIMEOUT)


@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROPERTIES,
    *PROGRESS,
    exits=READS,
    dumps_properties=True,
    examples=(
        "pylogctl perf e2e bench --rate 10000/s --size 200",
        "pylogctl perf e2e bench --rate 500/s --duration 1m --acks 1 --save latency.json",
    ),
)
def e2e(
    env: Environment,
    topic: Topic,
    messages: Messages = None,
    duration: Duration = None,
    rate: Annotated[
        str,
        typer.Option(
            "--rate",
            metavar="R",
            rich_help_panel="Limits",
            help="Send so much, whatever comes back: 10000/s, 5MiB/s.",
        ),
    ] = "1000/s",
    size: Annotated[
        str | None,
        typer.Option(
            "--size",
            metavar="N[..M]",
            rich_help_panel="Input",
            help="Bytes of payload, at least 16, or a range to choose from evenly. Default: 100.",
        ),
    ] = None,
    codec: CodecOption = None,
    acks: AcksOption = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            "--warmup",
            metavar="N",
            min=0,
            rich_help_panel="Limits",
            help="Messages to send before any is counted. Default: those of a second.",
        ),
    ] = None,
    idle_timeout: Annotated[
        str | None,
        typer.Option(
            "--idle-timeout",
            metavar="DUR",
            rich_help_panel="Limits",
            help="Stop when what was sent does not come for so long; status 7. Default: 5s.",
        ),
    ] = None,
    interval: IntervalOption = "1s",
    save: Save = None,
) -> None:
    """Measure how long messages take from producer to consumer at a fixed rate.

    A process of its own sends them at even distances and does not slow down when the broker does;
    this one reads them in long polls. A latency runs from when its message was due until it is
    decoded here: a pause counts for every message that was due in it. What is due at the same time
    goes as one batch. Neither of the two may be short of processor time: LATE-MS tells how late a
    message was sent at most.
    """
    from pylogctl.cli.properties import PERF_E2E
    from pylogctl.cli.units import parse_rate
    from pylogctl.perf import plan as perf_plan
    from pylogctl.perf import run as perf_run
    from pylogctl.perf.report import E2E, Run, e2e_figures

    config = perf_plan.producer_config(env, PERF_E2E, codec=codec, acks=acks)
    perf_plan.check_output(env, compat07=False, save=save)
    plan = perf_plan.e2e_plan(
        env,
        config,
        topic,
        rate=parse_rate(rate),
        sizes=perf_plan.parse_sizes(size),
        message_count=messages,
        duration_s=perf_plan.duration_s_of(messages, duration),
        warmup_count=warmup,
        idle_timeout_s=perf_plan.idle_timeout_s_of(idle_timeout, has_duration=False),
    )
    outcome = perf_run.run_e2e(env, plan, config, every_s=perf_plan.interval_s_of(interval))
    used = {
        "topic": topic,
        "messages": plan.message_count,
        "rate": plan.rate,
        "size": size,
        "warmup": plan.warmup_count,
        "properties": perf_plan.property_texts(config),
    }
    figures = e2e_figures(outcome.found, rate=plan.rate, acks=config.acks, flush=outcome.flush)
    run = Run("perf e2e", used, outcome.found.result, outcome.intervals, figures)
    perf_run.report(env, E2E, run, save=save, csv_07=None)
    end(env, outcome.status)
    if outcome.found.missing_count:
        env.note(f"{outcome.found.missing_count} messages were sent and did not come")
        raise typer.Exit(ExitStatus.TIMEOUT)


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


app = new_app("Measure throughput and latency.")

app.command("produce", cls=Command)(produce)
app.command("consume", cls=Command)(consume)
app.command("simple", cls=Command)(simple)
app.command("e2e", cls=Command)(e2e)
app.command("compare", cls=Command)(compare)
app.command("report", cls=Command)(report)
