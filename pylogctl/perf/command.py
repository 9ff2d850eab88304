"""`pylogctl perf`: the options of its commands."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from pylogctl.cli import options as shared
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import ExitStatus, UsageError
from pylogctl.cli.options import accepts, argument, flag, offset_option, option
from pylogctl.cli.tree import Command, new_app

app = new_app("Measure throughput and latency.")

_RUNS = (ExitStatus.FAILED, ExitStatus.NOT_FOUND, ExitStatus.CONFIG)
_READS = (*_RUNS, ExitStatus.PARTIAL, ExitStatus.CORRUPT)
_DEFAULT_LIMIT = "5%"

_Topic = Annotated[str, argument("TOPIC", "Topic.")]
_Messages = Annotated[
    int | None,
    option(
        "--messages N", "Limits", "Stop after so many. Without it and --duration: after 10s.", min=1
    ),
]
_Duration = Annotated[float | None, option("--duration DUR", "Limits", "Stop after so long.")]
_Threads = Annotated[
    int, option("--threads N", "Options", "Threads that work at the same time.", min=1)
]
_Acks = Annotated[
    Literal["0", "1", "-1"] | None,
    option(
        "--acks", "Options", "Wait for nothing, for written (1) or for flushed (-1). Default: -1."
    ),
]
_Interval = Annotated[str, option("--interval DUR", "Output", "Time from row to row.")]
_Compat07 = Annotated[
    bool,
    option("--compat07", "Output", "CSV with the columns and number formats of Kafka 0.7's tools."),
]
_Save = Annotated[
    Path | None,
    option(
        "--save FILE", "Output", "Write result, intervals, options and platform to a JSON file."
    ),
]


@dataclass(frozen=True, slots=True)
class _ReadChoice:
    """The offsets to read, and when to stop."""

    offset: list[str] | None = offset_option("Offsets to read, START[:END]. Default: start.")
    fetch_size: shared.FetchSizeOption = None
    idle_timeout: float | None = option(
        "--idle-timeout DUR",
        "Limits",
        "Stop when no message came for so long; status 7 if --messages is not reached. Default: "
        "5s without --duration.",
    )


@app.command("produce", cls=Command)
@accepts(
    *shared.OUTPUT,
    *shared.CONNECTION,
    *shared.PROPERTIES,
    *shared.PROGRESS,
    *shared.DRY_RUN,
    exits=_RUNS,
    dumps_properties=True,
    first="--messages --duration --size --payload-file --batch -z --acks --threads --rate --save",
    examples=(
        "pylogctl perf produce bench --messages 1000000 --size 200 --batch 50",
        "pylogctl perf produce bench --duration 1m --size 100..2000 --rate 5MiB/s --acks 1",
        "pylogctl perf produce bench --payload-file app.log --codec snappy --save run.json",
    ),
)
def produce(
    env: Environment,
    topic: _Topic,
    messages: _Messages = None,
    duration: _Duration = None,
    size: str | None = option(
        "--size N[..M]",
        "Input",
        "Bytes of payload, or a range to choose from evenly. Default: 100.",
    ),
    payload_file: Path | None = option(
        "--payload-file FILE",
        "Input",
        "Send the lines of a file over and over, the first 64 MiB of it.",
    ),
    batch: int = option("--batch N", "Input", "Messages in a batch.", min=1, default=200),
    codec: shared.CodecOption = None,
    acks: _Acks = None,
    threads: _Threads = 1,
    rate: shared.RateOption = None,
    warmup: int = option(
        "--warmup N", "Limits", "Messages to send before the clock starts.", min=0, default=0
    ),
    interval: _Interval = "1s",
    compat07: _Compat07 = False,
    save: _Save = None,
) -> None:
    """Send messages as fast as possible and measure it.

    The clock stops when all messages are readable. A latency is the time from sending a batch
    until its acknowledgement is read; with -X max.in.flight.requests=1 each is awaited before the
    next is sent. The overhead is the growth of the topic's logs beyond the payloads, per message;
    it is wrong if others produce to the topic meanwhile.
    """
    from broker.units import parse_rate
    from pylogctl.cli.properties import PERF_PRODUCE
    from pylogctl.perf import plan as plans
    from pylogctl.perf import run as runs
    from pylogctl.perf.produce import ProducePlan

    config = plans.producer_config(env, PERF_PRODUCE, codec=codec, acks=acks)
    plans.validate_output(env, compat07=compat07, save=save)
    plan = ProducePlan(
        topic,
        plans.batches_of(size, payload_file, batch),
        message_count=messages,
        duration_s=plans.duration_s_of(messages, duration),
        warmup_count=warmup,
        thread_count=threads,
        rate=None if rate is None else parse_rate(rate),
        is_sequential=config.max_in_flight == 1,
    )
    options = {
        "topic": topic,
        "messages": messages,
        "duration_s": plan.duration_s,
        "size": size,
        "payload_file": None if payload_file is None else str(payload_file),
        "batch": batch,
        "threads": threads,
        "rate": rate,
        "warmup": warmup,
        "properties": plans.property_texts(config),
    }
    every_s = plans.interval_s_of(interval)
    if env.settings.dry_run:
        runs.show_plan(env, plan, config)
    else:
        runs.measure_produce(
            env, plan, config, options, every_s=every_s, compat07=compat07, save=save
        )


@app.command("consume", cls=Command)
@accepts(
    *shared.OUTPUT,
    *shared.CONNECTION,
    *shared.PROPERTIES,
    *shared.PROGRESS,
    exits=_READS,
    dumps_properties=True,
    first="--messages --duration -p -o --fetch-size --threads --simple --save",
    examples=(
        "pylogctl perf consume bench",
        "pylogctl perf consume bench --messages 1000000 --fetch-size 200kB --output json",
        "pylogctl perf consume bench --duration 1m -o end --threads 2",
        "pylogctl perf consume bench --simple -p 1-0 --fetch-size 200kB",
    ),
)
def consume(
    env: Environment,
    topic: _Topic,
    *,
    messages: _Messages = None,
    duration: _Duration = None,
    partition: shared.PartitionsOption = None,
    read: _ReadChoice,
    threads: _Threads = 1,
    simple: bool = flag(
        "--simple",
        "Options",
        "Read one partition (default: 0), one fetch request at a time, as Kafka 0.7's simple "
        "consumer.",
    ),
    interval: _Interval = "1s",
    compat07: _Compat07 = False,
    save: _Save = None,
) -> None:
    """Read messages as fast as possible, decode every one, and measure it.

    Without --messages and --duration it reads the messages that exist now, for 10s at most. The
    clock stops with the last message. A latency is the time a reader waits for the next chunk; one
    request is always in flight. With --simple it is that of a request and its response.
    """
    from broker.partition_patterns import parse_partition_list
    from pylogctl.cli.offsets import make_span
    from pylogctl.perf import plan as plans
    from pylogctl.perf import run as runs
    from pylogctl.perf.consume import ConsumePlan, shared_readings, single_reading
    from pylogctl.perf.document import CONSUME, SIMPLE

    if simple:
        if threads > 1:
            raise UsageError("--simple reads with one thread")
        partition = partition or parse_partition_list("0")
    config = plans.consumer_config(env, fetch_bytes=read.fetch_size)
    plans.validate_output(env, compat07=compat07, save=save)
    # Without any limit, reading ends at the present end of the log.
    is_bounded = messages is None and duration is None
    plan = ConsumePlan(
        message_count=messages,
        duration_s=plans.duration_s_of(messages, duration),
        idle_timeout_s=plans.idle_timeout_s_of(
            read.idle_timeout, has_duration=duration is not None
        ),
        thread_count=threads,
        fetch_bytes=config.fetch_bytes,
        max_wait_ms=config.max_wait_ms,
        min_bytes=config.fetch_min_bytes,
    )
    options = {
        "topic": topic,
        "messages": messages,
        "duration_s": plan.duration_s,
        "offset": read.offset,
        "partition": None if partition is None else partition.text,
        "threads": threads,
        "idle_timeout_s": plan.idle_timeout_s,
        "properties": plans.property_texts(config),
    }
    runs.measure_reading(
        env,
        "perf simple" if simple else "perf consume",
        SIMPLE if simple else CONSUME,
        single_reading if simple else shared_readings,
        plan,
        config,
        options,
        topic=topic,
        span=make_span(env, read.offset or [], from_beginning=False, exit_at_end=is_bounded),
        wanted=partition,
        every_s=plans.interval_s_of(interval),
        compat07=compat07,
        save=save,
    )


@app.command("e2e", cls=Command)
@accepts(
    *shared.OUTPUT,
    *shared.CONNECTION,
    *shared.PROPERTIES,
    *shared.PROGRESS,
    exits=_READS,
    dumps_properties=True,
    examples=(
        "pylogctl perf e2e bench --rate 10000/s --size 200",
        "pylogctl perf e2e bench --rate 500/s --duration 1m --acks 1 --save latency.json",
    ),
)
def e2e(
    env: Environment,
    topic: _Topic,
    messages: _Messages = None,
    duration: _Duration = None,
    rate: str = option(
        "--rate R",
        "Limits",
        "Send so much, even if the broker is slower: 10000/s, 5MiB/s.",
        default="1000/s",
    ),
    size: str | None = option(
        "--size N[..M]",
        "Input",
        "Bytes of payload, at least 16, or a range to choose from evenly. Default: 100.",
    ),
    codec: shared.CodecOption = None,
    acks: _Acks = None,
    warmup: int | None = option(
        "--warmup N",
        "Limits",
        "Messages to send before any is counted. Default: those of one second.",
        min=0,
    ),
    idle_timeout: float | None = option(
        "--idle-timeout DUR",
        "Limits",
        "Stop when sent messages do not arrive for so long; status 7. Default: 5s.",
    ),
    interval: _Interval = "1s",
    save: _Save = None,
) -> None:
    """Measure how long messages take from producer to consumer at a fixed rate.

    Another process sends messages at even intervals, and does not slow down when the broker does;
    this one reads them with long polls. A latency runs from the time its message was due until the
    message is decoded here: a pause counts for every message that was due in it. Messages due at
    the same time are sent as one batch. Both processes need enough processor time: LATE-MS is how
    late a message was sent at most.
    """
    from broker.units import parse_rate
    from pylogctl.cli.properties import PERF_E2E
    from pylogctl.perf import plan as plans
    from pylogctl.perf import run as runs

    config = plans.producer_config(env, PERF_E2E, codec=codec, acks=acks)
    plans.validate_output(env, compat07=False, save=save)
    plan = plans.e2e_plan(
        env,
        config,
        topic,
        rate=parse_rate(rate),
        sizes=plans.parse_sizes(size),
        message_count=messages,
        duration_s=plans.duration_s_of(messages, duration),
        warmup_count=warmup,
        idle_timeout_s=plans.idle_timeout_s_of(idle_timeout, has_duration=False),
    )
    options = {
        "topic": topic,
        "messages": plan.message_count,
        "rate": plan.rate,
        "size": size,
        "warmup": plan.warmup_count,
        "properties": plans.property_texts(config),
    }
    every_s = plans.interval_s_of(interval)
    runs.measure_e2e(env, plan, config, options, every_s=every_s, save=save)


@app.command("compare", cls=Command)
@accepts(
    *shared.OUTPUT,
    exits=(ExitStatus.NOT_FOUND, ExitStatus.THRESHOLD),
    examples=(
        "pylogctl perf compare before.json after.json",
        "pylogctl perf compare before.json after.json --fail-below 5%",
    ),
)
def compare(
    env: Environment,
    before: Path = argument("BEFORE", "Saved run."),
    after: Path = argument("AFTER", "Saved run of the same command."),
    fail_below: str | None = option(
        "--fail-below PERCENT",
        "Options",
        "Status 12 if the second run is worse by more than this. Verdicts without it: 5%.",
    ),
) -> None:
    """Compare two saved runs, figure by figure.

    The rate decides; for `perf e2e` the median and p99 of the latency. Other differences between
    the runs are printed on standard error.
    """
    from pylogctl.perf.document import compare_runs

    limit = _parse_percent(_DEFAULT_LIMIT if fail_below is None else fail_below)
    is_worse = compare_runs(env, before, after, limit=limit)
    if fail_below is not None and is_worse:
        env.note(f"worse by more than {100 * limit:g}%")
        raise typer.Exit(ExitStatus.THRESHOLD)


def _parse_percent(text: str) -> float:
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 100:
        raise UsageError(f"not a percentage: '{text}'", hints=["valid: 5%, 0.5%, 0"])
    return percent / 100


@app.command("report", cls=Command)
@accepts(
    *shared.OUTPUT,
    exits=(ExitStatus.NOT_FOUND,),
    examples=(
        "pylogctl perf report *.json",
        "pylogctl perf report *.json --sort -msg_per_s --output markdown",
    ),
)
def report(env: Environment, files: list[Path] = argument("FILE...", "Saved runs.")) -> None:
    """List saved runs, a row for each."""
    from pylogctl.perf.document import list_runs

    list_runs(env, files)
