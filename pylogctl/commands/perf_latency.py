"""`pylogctl perf e2e`: latency through the broker at a fixed rate."""

from __future__ import annotations

from typing import Annotated

import typer

from pylogctl.commands.perf_loads import (
    READS,
    AcksOption,
    CodecOption,
    Duration,
    IntervalOption,
    Messages,
    Save,
    Topic,
    end,
)
from pylogctl.context import Environment
from pylogctl.exit_status import ExitStatus
from pylogctl.options import CONNECTION, OUTPUT, PROGRESS, PROPERTIES, accepts


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
    from pylogctl.perf import options, runs
    from pylogctl.perf.report import E2E, Run, e2e_figures
    from pylogctl.property_use import PERF_E2E
    from pylogctl.units import parse_rate

    config = options.producer_config(env, PERF_E2E, codec=codec, acks=acks)
    options.check_output(env, compat07=False, save=save)
    plan = options.e2e_plan(
        env,
        config,
        topic,
        rate=parse_rate(rate),
        sizes=options.parse_sizes(size),
        message_count=messages,
        duration_s=options.duration_s_of(messages, duration),
        warmup_count=warmup,
        idle_timeout_s=options.idle_timeout_s_of(idle_timeout, has_duration=False),
    )
    outcome = runs.run_e2e(env, plan, config, every_s=options.interval_s_of(interval))
    used = {
        "topic": topic,
        "messages": plan.message_count,
        "rate": plan.rate,
        "size": size,
        "warmup": plan.warmup_count,
        "properties": options.property_texts(config),
    }
    figures = e2e_figures(outcome.found, rate=plan.rate, acks=config.acks, flush=outcome.flush)
    run = Run("perf e2e", used, outcome.found.result, outcome.intervals, figures)
    runs.report(env, E2E, run, save=save, csv_07=None)
    end(env, outcome.status)
    if outcome.found.missing_count:
        env.note(f"{outcome.found.missing_count} messages were sent and did not come")
        raise typer.Exit(ExitStatus.TIMEOUT)
