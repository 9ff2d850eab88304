"""`pylogctl perf`: how fast a cluster takes messages, and how fast it gives them back."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.connections import open_cluster
from pylogctl.context import Environment
from pylogctl.exit_status import ExitStatus
from pylogctl.options import CONNECTION, DRY_RUN, OUTPUT, PROGRESS, PROPERTIES, accepts
from pylogctl.render import Column, Document, Kind, render
from pylogctl.signals import StopRequest, graceful_stop
from pylogctl.tree import Command, new_app

if TYPE_CHECKING:
    from broker.client.cluster import Cluster, Connect
    from broker.config import ProducerConfig, Settings
    from broker.topic import TopicPartition
    from pylogctl.consume_options import Span
    from pylogctl.offset_resolution import ResolvedRange
    from pylogctl.partition_list import PartitionList
    from pylogctl.perf.display import Intervals
    from pylogctl.perf.measure import Result
    from pylogctl.perf.produce import ProducePlan

app = new_app("Measure throughput.")

RUNS = (
    ExitStatus.FAILED,
    ExitStatus.NOT_FOUND,
    ExitStatus.TIMEOUT,
    ExitStatus.CONFIG,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)

PLAN = Document(
    "perf.produce.plan/1",
    (
        Column("topic", "where messages would go"),
        Column("partitions", "partitions it has; none if it would be created"),
        Column("messages", "how many would be sent", Kind.INTEGER),
        Column("seconds", "for how long at most", Kind.SECONDS),
        Column("batch", "messages in a batch", Kind.INTEGER),
        Column("bytes", "bytes of payload in a batch, on average", Kind.BYTES),
        Column("codec", "compression"),
        Column("acks", "acknowledgement asked for"),
        Column("threads", "threads with a producer each", Kind.INTEGER),
    ),
    empty="nothing to send",
)

Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic.", show_default=False)]
Messages = Annotated[
    int | None,
    typer.Option(
        "--messages",
        metavar="N",
        min=1,
        rich_help_panel="Limits",
        help="Stop after so many. Default: 10s without --duration.",
    ),
]
Duration = Annotated[
    str | None,
    typer.Option("--duration", metavar="DUR", rich_help_panel="Limits", help="Stop after so long."),
]
Threads = Annotated[int, typer.Option("--threads", metavar="N", min=1, help="Threads.")]
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


@app.command("produce", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROPERTIES,
    *PROGRESS,
    *DRY_RUN,
    exits=RUNS,
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
    codec: Annotated[
        Literal["none", "gzip", "snappy", "lz4", "zstd"] | None,
        typer.Option("-z", "--codec", help="Compression of a batch. Default: none."),
    ] = None,
    acks: Annotated[
        Literal["0", "1", "-1"] | None,
        typer.Option(
            "--acks", help="Wait for nothing, for written (1) or for flushed (-1). Default: -1."
        ),
    ] = None,
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
    before the next is sent.
    """
    from pylogctl.perf import options, report
    from pylogctl.perf.produce import ProducePlan
    from pylogctl.units import parse_rate

    options.check_output(env, compat07=compat07, save=save)
    config = options.producer_config(env, codec=codec, acks=acks)
    plan = ProducePlan(
        topic,
        options.batches_of(size, payload_file, batch),
        message_count=messages,
        duration_s=options.duration_s_of(messages, duration),
        warmup_count=warmup,
        thread_count=threads,
        rate=None if rate is None else parse_rate(rate),
        is_sequential=config.max_in_flight == 1,
    )
    every_s = options.interval_s_of(interval)
    if env.settings.dry_run:
        _show_plan(env, plan, config)
        return
    result, shown, stop = _run_produce(env, plan, config, every_s)
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
        "properties": _property_texts(config),
    }
    _save(save, "perf produce", used, result, shown)
    if compat07:
        row = report.produce_row_07(
            result,
            codec_id=options.codec_of(config),
            message_bytes=max(len(payload) for one in plan.batches for payload in one),
            batch_count=batch,
        )
        _write_07(env, report.PRODUCE_HEADER_07, row)
    else:
        render(env, report.PRODUCE, [report.result_record(result)])
    _end(env, stop)


def _property_texts(config: Settings) -> dict[str, str]:
    return {prop.name: config.value_text(prop) for prop in config.PROPERTIES}


def _show_plan(env: Environment, plan: ProducePlan, config: ProducerConfig) -> None:
    from broker.topic import check_topic_name
    from pylogctl.perf.options import codec_of

    check_topic_name(plan.topic)
    with open_cluster(env) as cluster:
        partitions = cluster.partitions(plan.topic)
    sizes = [sum(map(len, batch)) for batch in plan.batches]
    record = {
        "topic": plan.topic,
        "partitions": [partition.name for partition in partitions] or None,
        "messages": plan.message_count,
        "seconds": plan.duration_s,
        "batch": len(plan.batches[0]),
        "bytes": sum(sizes) // len(sizes),
        "codec": codec_of(config).name.lower(),
        "acks": config.acks,
        "threads": plan.thread_count,
    }
    render(env, PLAN, [record])
    env.note("nothing sent; this was a dry run")


def _run_produce(
    env: Environment, plan: ProducePlan, config: ProducerConfig, every_s: float
) -> tuple[Result, Intervals, StopRequest]:
    from pylogctl.perf.display import intervals
    from pylogctl.perf.measure import Halt
    from pylogctl.perf.options import connect_with, make_producer
    from pylogctl.perf.produce import SharedCluster, produce_load

    connect = connect_with(env, config)
    with (
        open_cluster(env, connect) as cluster,
        graceful_stop() as stop,
        intervals(env, every_s) as shown,
    ):
        shared = SharedCluster(cluster)
        result = produce_load(
            plan,
            lambda: make_producer(shared, connect, config),
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
        )
    return result, shown, stop


def _save(
    path: Path | None,
    command: str,
    used: Mapping[str, object],
    result: Result,
    shown: Intervals,
) -> None:
    if path is not None:
        from pylogctl.perf.report import Run, save_run

        save_run(path, Run(command, used, result, shown.done))


def _write_07(env: Environment, header: str, row: str) -> None:
    if env.settings.header:
        env.write_line(header)
    env.write_line(row)


def _end(env: Environment, stop: StopRequest) -> None:
    """End an interrupted run as such; its result is written by now."""
    if stop.is_set:
        env.note("interrupted; the result is that of the part that was done")
        raise typer.Exit(stop.status)


@app.command("consume", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROPERTIES,
    *PROGRESS,
    exits=(*RUNS, ExitStatus.CORRUPT),
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
    offset: Annotated[
        list[str] | None,
        typer.Option(
            "-o",
            "--offset",
            metavar="SPEC",
            rich_help_panel="Selection",
            help="Where to start, and to end: START[:END]. Default: start.",
        ),
    ] = None,
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
    fetch_size: Annotated[
        str | None,
        typer.Option(
            "--fetch-size",
            metavar="SIZE",
            rich_help_panel="Connection",
            help="Bytes per partition and request. Default: 1MiB.",
        ),
    ] = None,
    threads: Threads = 1,
    idle_timeout: Annotated[
        str | None,
        typer.Option(
            "--idle-timeout",
            metavar="DUR",
            rich_help_panel="Limits",
            help="Stop when nothing came for so long; status 7 if --messages is not reached. "
            "Default: 5s without --duration.",
        ),
    ] = None,
    interval: IntervalOption = "1s",
    compat07: Compat07 = False,
    save: Save = None,
) -> None:
    """Read messages as fast as possible, decode every one, and measure it.

    Without --messages and --duration it reads what is there now, for 10s at most. The clock stops
    with the last message. Latencies are the times a reader waits for the next bytes; one request
    is always ahead.
    """
    from pylogctl.consume_options import make_span
    from pylogctl.partition_list import parse_partition_list
    from pylogctl.perf import options, report
    from pylogctl.perf.consume import ConsumePlan, End, consume_load
    from pylogctl.perf.display import intervals
    from pylogctl.perf.measure import Halt

    options.check_output(env, compat07=compat07, save=save)
    config = options.consumer_config(env, fetch_size=fetch_size)
    every_s = options.interval_s_of(interval)
    # Without any limit there must be an end: what is there now.
    span = make_span(
        env, offset or [], from_beginning=False, exit_at_end=not messages and not duration
    )
    chosen = None if partition is None else parse_partition_list(partition)
    plan = ConsumePlan(
        message_count=messages,
        duration_s=options.duration_s_of(messages, duration),
        idle_timeout_s=options.idle_timeout_s_of(idle_timeout, has_duration=duration is not None),
        thread_count=threads,
        fetch_bytes=config.fetch_bytes,
        max_wait_ms=config.max_wait_ms,
    )
    connect = options.connect_with(env, config)
    with ExitStack() as stack:
        cluster = stack.enter_context(open_cluster(env, connect))
        ranges = _resolve(env, cluster, connect, topic, chosen, span)
        stop = stack.enter_context(graceful_stop())
        shown = stack.enter_context(intervals(env, every_s))
        result, end = consume_load(
            plan,
            ranges,
            cluster,
            connect,
            clock=env.clock,
            halt=Halt(lambda: stop.is_set),
            on_tick=shown.tick,
        )
    used = {
        "topic": topic,
        "messages": messages,
        "duration_s": plan.duration_s,
        "offset": offset,
        "partition": partition,
        "threads": threads,
        "idle_timeout_s": plan.idle_timeout_s,
        "properties": _property_texts(config),
    }
    _save(save, "perf consume", used, result, shown)
    if compat07:
        row = report.consume_row_07(result, fetch_bytes=config.fetch_bytes)
        _write_07(env, report.CONSUME_HEADER_07, row)
    else:
        render(env, report.CONSUME, [report.result_record(result)])
    _end(env, stop)
    if end is End.IDLE:
        env.note(f"stopped: nothing came for {plan.idle_timeout_s:g}s")
        raise typer.Exit(ExitStatus.OK if messages is None else ExitStatus.TIMEOUT)


def _resolve(
    env: Environment,
    cluster: Cluster,
    connect: Connect,
    topic: str,
    chosen: PartitionList | None,
    span: Span,
) -> dict[TopicPartition, ResolvedRange]:
    """Return from where to where each partition is read; a compressed set is read as a whole."""
    from broker.client.positions import Positions
    from pylogctl.offset_resolution import resolve
    from pylogctl.offset_spec import Mark
    from pylogctl.selection import select_partitions, select_topics

    ranges = {}
    topics = select_topics(cluster, [topic])
    with Positions(cluster, connect) as positions:
        for partition in select_partitions(cluster, topics, chosen):
            wanted = span.range_for(partition)
            wanted = wanted._replace(start=wanted.start or Mark.EARLIEST)
            found = resolve(wanted, partition, positions)
            for warning in found.warnings:
                env.warn(warning)
            end = None if found.end is None else found.end._replace(inner=0)
            ranges[partition] = found._replace(start=found.start._replace(inner=0), end=end)
    return ranges
