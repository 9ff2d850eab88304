"""`pylogctl pipeline audit`: both ends of a pipeline against the counts of the producers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.options import CONNECTION, OUTPUT, accepts
from pylogctl.cli.render import Column, Document, Kind
from pylogctl.cli.units import parse_duration_ms
from pylogctl.pipeline.input import Include
from pylogctl.pipeline.spark import DEFAULT_SPARK, SPARK, SparkChoice
from pylogctl.pipeline.sql import READS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from broker.spark.audit import Counted
    from broker.spark.output import LoadOutput
    from broker.tools.audit import Count, Verdict, Window
    from pylogctl.pipeline.reading import Reading

LOG_TIER, LOAD_TIER = "log", "load"
_JSON_ROW = "topic STRING, partition STRING, offset BIGINT, inner_index INT, value STRING"
_TEXT_PARTITIONS = "spark.sql.sources.partitionColumnTypeInference.enabled=false"
AUDIT = Document(
    "pipeline.audit/1",
    (
        Column("topic", "topic that was counted"),
        Column("start", "start of the time window", Kind.TIME),
        Column("end", "its end, exclusive", Kind.TIME),
        Column("tier", "log: in the topic; load: in the directory of the loads"),
        Column("expected", "messages that producers have counted", Kind.INTEGER),
        Column("found", "messages that are there, each once", Kind.INTEGER),
        Column("lost", "that are not there, and will not be", Kind.INTEGER),
        Column("late", "that are not there yet", Kind.INTEGER),
        Column("duplicated", "that are there, and were not counted or came twice", Kind.INTEGER),
        Column("status", "ok, lost, late, duplicated or open"),
    ),
    empty="",
)

AuditTopic = Annotated[
    str, typer.Argument(metavar="AUDIT-TOPIC", help="Topic that counts are published to.")
]
Load = Annotated[
    Path | None,
    typer.Option(
        "--load",
        metavar="DIR",
        help="Directory of pipeline load to compare, too.",
        rich_help_panel="Input",
    ),
]
TimeField = Annotated[
    str | None,
    typer.Option(
        "--time-field",
        metavar="PATH",
        help="Field of JSON messages that has their time, as given to produce --time-field. "
        "Without it each topic is compared as a whole.",
        rich_help_panel="Selection",
    ),
]
Reference = Annotated[
    str,
    typer.Option(
        "--reference",
        metavar="TIER",
        help="Tier whose counts are expected.",
        rich_help_panel="Selection",
    ),
]
Grace = Annotated[
    str,
    typer.Option(
        "--grace",
        metavar="DUR",
        help="How long after its end a window may still be reported.",
        rich_help_panel="Limits",
    ),
]
FailAbove = Annotated[
    int | None,
    typer.Option(
        "--fail-above",
        metavar="N",
        min=0,
        help="Status 12 if more messages than this are lost, late or duplicated.",
        rich_help_panel="Limits",
    ),
]
Everything = Annotated[
    bool,
    typer.Option("--all", help="Show windows that agree, too.", rich_help_panel="Output"),
]


@accepts(
    *OUTPUT,
    *CONNECTION,
    exits=(*READS, ExitStatus.PARTIAL, ExitStatus.THRESHOLD, ExitStatus.UNSUPPORTED),
    examples=(
        "pylogctl pipeline audit audit --time-field .ts --fail-above 0",
        "pylogctl pipeline audit audit --load /data/lake --include 'web|orders' --output json",
    ),
)
def audit(
    env: Environment,
    *,
    audit_topic: AuditTopic,
    load: Load = None,
    include: Include = None,
    time_field: TimeField = None,
    reference: Reference = "producer",
    grace: Grace = "5m",
    fail_above: FailAbove = None,
    everything: Everything = False,
    spark: Annotated[SparkChoice, SPARK] = DEFAULT_SPARK,
) -> None:
    """Compare what is in topics, and in a load of them, with what producers have counted.

    A window is judged when it is over and a grace time has passed. Messages that a load lacks are
    late as long as it has not come to the end of the topic; then they are lost.
    """
    grace_ms = parse_duration_ms(grace)
    from pylogctl.pipeline.spark import check_spark

    check_spark(env)
    from broker.spark.frames import read_messages
    from broker.tools.audit import compare, merged
    from pylogctl.audit.run import no_tier
    from pylogctl.cli.render import render
    from pylogctl.pipeline.reading import plan_reading
    from pylogctl.pipeline.spark import open_spark

    output = None if load is None else _load_output(load)
    events = plan_reading(env, [audit_topic])
    with open_spark(env, spark.with_conf(_TEXT_PARTITIONS)) as session:
        from broker.spark.audit import tally_events

        found = tally_events(read_messages(session, events.of_batch(), columns=["value"]))
        if found.problem_count:
            env.leave_out(f"{found.problem_count} messages of '{audit_topic}' are no audit events")
        tallied = _wanted(found.tallied, include or [])
        if not any(reference in counts for counts in tallied.values()):
            raise no_tier(audit_topic, reference, tallied)
        if time_field is None:
            tallied = merged(tallied)
        reading = plan_reading(env, sorted({window.topic for window in tallied}))
        counted = _count(env, session, reading, output, set(tallied), time_field)
    for tier, one in counted.items():
        for window, count in one.counts.items():
            tallied.setdefault(window, {})[tier] = count
    complete = [LOG_TIER, *([LOAD_TIER] if output and _is_complete(output, reading) else [])]
    verdicts = compare(
        tallied,
        reference,
        list(counted),
        now_ms=env.clock.time_ms(),
        grace_ms=grace_ms,
        complete=complete,
    )
    records = [_record(one, counted[one.tier].repeated.get(one.window, 0)) for one in verdicts]
    shown = [one for one in records if everything or one["status"] not in ("ok", "open")]
    render(env, AUDIT, shown)
    _judge(env, records, fail_above)


def _wanted(
    tallied: dict[Window, dict[str, Count]], include: list[str]
) -> dict[Window, dict[str, Count]]:
    from pylogctl.cli.selection import compile_patterns

    patterns = compile_patterns(include, "--include")
    return {
        window: counts
        for window, counts in tallied.items()
        if not patterns or any(one.fullmatch(window.topic) for one in patterns)
    }


def _load_output(path: Path) -> LoadOutput:
    """Return the directory of loads.

    Raises:
        CliError: there is no load, or none whose files name the messages they have.
    """
    from broker.spark.output import LoadOutput

    output = LoadOutput(path)
    last = output.last()
    if last is None:
        raise CliError(ExitStatus.NOT_FOUND, f"'{path}' has no load")
    if last.layout["format"] == "text":
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"'{path}' has text, which does not say which messages it has",
            hints=["load parquet or json"],
        )
    return output


def _count(
    env: Environment,
    session: SparkSession,
    reading: Reading,
    output: LoadOutput | None,
    windows: set[Window],
    time_field: str | None,
) -> dict[str, Counted]:
    """Return what is in topics, and in a load if there is one, by tier."""
    from broker.spark.audit import count_messages, with_payload
    from broker.spark.frames import read_messages

    columns = ["topic", "partition", "offset", "inner_index", "value"]
    tables = {LOG_TIER: read_messages(session, reading.of_batch(), columns=columns)}
    if output is not None and (last := output.last()) is not None:
        reader = session.read.format(last.layout["format"])
        if last.layout["format"] == "json":
            reader = reader.schema(_JSON_ROW)  # what is nested in value stays text
        loaded = reader.load(str(output.loads_path)).select(*columns)
        tables[LOAD_TIER] = with_payload(loaded)
    counted = {
        tier: count_messages(table, windows, time_field=time_field)
        for tier, table in tables.items()
    }
    for tier, one in counted.items():
        if one.timeless_count:
            env.warn(f"{one.timeless_count} messages have no time in {time_field}: not in {tier}")
    return counted


def _is_complete(output: LoadOutput, reading: Reading) -> bool:
    """Say whether the loads have come to the ends of topics."""
    last = output.last()
    reached = {} if last is None else last.offsets
    return all(reached.get(one.partition, -1) >= one.end for one in reading.plan.ranges)


def _record(verdict: Verdict, repeated: int) -> dict[str, Any]:
    from broker.tools.audit import Judgement

    judgement = verdict.judgement
    lacking = max(0, -verdict.difference)
    is_open = judgement is Judgement.OPEN
    counts = {
        "lost": lacking if judgement is Judgement.MISSING else 0,
        "late": lacking if judgement is Judgement.LATE else 0,
        "duplicated": 0 if is_open else max(0, verdict.difference) + repeated,
    }
    wrong = [name for name, count in counts.items() if count]
    return {
        "topic": verdict.window.topic,
        "start": verdict.window.start_ms,
        "end": verdict.window.end_ms,
        "tier": verdict.tier,
        "expected": verdict.expected.message_count,
        "found": verdict.found.message_count,
        **counts,
        "status": "open" if is_open else (wrong[0] if wrong else "ok"),
    }


def _judge(env: Environment, records: list[dict[str, Any]], fail_above: int | None) -> None:
    """Tell the sums, and fail if they are beyond the limit."""
    sums = {name: sum(one[name] for one in records) for name in ("lost", "late", "duplicated")}
    told = ", ".join(f"{count} {name}" for name, count in sums.items())
    env.note(f"{len(records)} windows compared: {told}")
    total = sum(sums.values())
    if fail_above is not None and total > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"{total} messages lost, late or duplicated; the limit is {fail_above}",
            details={**sums, "limit": fail_above},
        )
