"""Runs `pipeline audit`: compares topics and loads of them with the counts of the producers."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from pyspark.sql import SparkSession

from broker.spark.audit import WindowCounts, count_messages, tally_events, with_payload
from broker.spark.loading.output import LoadOutput, Manifest
from broker.spark.source import read_messages
from broker.tools.audit import ENVELOPE_TIME, AuditWindow, compare, merged
from pylogctl.audit.run import no_tier
from pylogctl.cli.environment import CliError, Environment, ExitStatus
from pylogctl.cli.render import render
from pylogctl.cli.selection import compile_patterns, split_patterns
from pylogctl.pipeline.document import AUDIT, AuditRow, audit_row
from pylogctl.pipeline.options import AuditChoice
from pylogctl.pipeline.reading import PlannedReading, plan_reading
from pylogctl.pipeline.spark import open_spark

_LOG_TIER, _LOAD_TIER = "log", "load"
_JSON_ROW = (
    "topic STRING, partition STRING, offset BIGINT, inner_index INT, value STRING, "
    "envelope STRUCT<timestamp TIMESTAMP>"
)
_CONF = {"spark.sql.sources.partitionColumnTypeInference.enabled": "false"}


def run_audit(env: Environment, audit_topic: str, choice: AuditChoice) -> None:
    """Compare counts by window, render those that differ (or all), and fail above the limit."""
    comparison, time_field = choice.comparison, choice.time_field
    reference = comparison.reference
    output = None if choice.load is None else _load_output(choice.load)
    patterns = compile_patterns(split_patterns(choice.include or []), "--include")
    events = plan_reading(env, [audit_topic], on_absent=env.leave_out)
    with open_spark(env, choice.spark, _CONF) as session:
        found = tally_events(read_messages(session, events.of_batch(), columns=["value"]))
        if found.problem_count:
            env.leave_out(f"{found.problem_count} messages of '{audit_topic}' are no audit events")
        tallied = {
            window: counts
            for window, counts in found.tallied.items()
            if not patterns or any(one.fullmatch(window.topic) for one in patterns)
        }
        if not any(reference in counts for counts in tallied.values()):
            raise no_tier(audit_topic, reference, tallied)
        if time_field is None:
            tallied = merged(tallied)
        topics = sorted({window.topic for window in tallied})
        reading = plan_reading(env, topics, on_absent=env.leave_out)
        counted = _count(env, session, reading, output, set(tallied), time_field)
    for tier, one in counted.items():
        for window, count in one.counts.items():
            tallied.setdefault(window, {})[tier] = count
    verdicts = compare(
        tallied,
        reference,
        list(counted),
        now_ms=env.clock.time_ms(),
        grace_ms=comparison.grace_ms,
        complete=[_LOG_TIER, *([_LOAD_TIER] if output and _is_complete(output, reading) else [])],
    )
    rows = [audit_row(one, counted[one.tier].repeated.get(one.window, 0)) for one in verdicts]
    shown = [one for one in rows if comparison.shows_all or one.status not in ("ok", "open")]
    render(env, AUDIT, shown)
    _judge(env, rows, comparison.fail_above)


def _load_output(path: Path) -> LoadOutput:
    """Open the directory of loads; its format must include the offsets of messages."""
    output = LoadOutput(path)
    last = output.last()
    if last is None:
        raise CliError(ExitStatus.NOT_FOUND, f"'{path}' has no load")
    if last.layout["format"] == "text":
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"'{path}' has text, which does not say which messages it has",
            "load parquet or json",
        )
    return output


def _count(
    env: Environment,
    session: SparkSession,
    reading: PlannedReading,
    output: LoadOutput | None,
    windows: Collection[AuditWindow],
    time_field: str | None,
) -> dict[str, WindowCounts]:
    """Count messages in topics, and in a load if there is one; by tier."""
    columns = ["topic", "partition", "offset", "inner_index", "value"]
    if time_field == ENVELOPE_TIME:
        columns.append("envelope")
    tables = {_LOG_TIER: read_messages(session, reading.of_batch(), columns=columns)}
    if output is not None and (last := output.last()) is not None:
        reader = session.read.format(last.layout["format"])
        if last.layout["format"] == "json":
            reader = reader.schema(_JSON_ROW)  # values that are objects stay text
        _check_columns(output, last, columns)
        loaded = reader.load(str(output.loads_path)).select(*columns)
        tables[_LOAD_TIER] = with_payload(loaded)
    counted = {
        tier: count_messages(table, windows, time_field=time_field)
        for tier, table in tables.items()
    }
    for tier, one in counted.items():
        if one.timeless_count:
            env.warn(f"{one.timeless_count} messages have no time in {time_field}: not in {tier}")
    return counted


def _check_columns(output: LoadOutput, last: Manifest, columns: Collection[str]) -> None:
    if "envelope" in columns and "envelope" not in last.layout:
        raise CliError(
            ExitStatus.UNSUPPORTED,
            f"the loads in '{output.path}' have no times of envelopes",
            "load with --envelope into another directory",
        )


def _is_complete(output: LoadOutput, reading: PlannedReading) -> bool:
    """Return whether the loads reach the ends of the topics."""
    last = output.last()
    reached = {} if last is None else last.offsets
    return all(reached.get(one.partition, -1) >= one.end for one in reading.plan.ranges)


def _judge(env: Environment, rows: list[AuditRow], fail_above: int | None) -> None:
    """Print the sums, and fail if their total is above the limit."""
    sums = {
        "lost": sum(one.lost for one in rows),
        "late": sum(one.late for one in rows),
        "duplicated": sum(one.duplicated for one in rows),
    }
    counts = ", ".join(f"{count} {name}" for name, count in sums.items())
    env.note(f"{len(rows)} windows compared: {counts}")
    total = sum(sums.values())
    if fail_above is not None and total > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"{total} messages lost, late or duplicated; the limit is {fail_above}",
            details={**sums, "limit": fail_above},
        )
