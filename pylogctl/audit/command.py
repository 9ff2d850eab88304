"""`pylogctl audit`: compare how many messages the tiers of a pipeline have counted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import CONNECTION, OUTPUT, PROGRESS, accepts
from pylogctl.cli.tree import Command, new_app
from pylogctl.cli.units import parse_duration_ms

if TYPE_CHECKING:
    from broker.tools.audit import AuditEvent, Count, Window
    from pylogctl.cli.connections import Side

app = new_app("Compare message counts along a pipeline.")

READS = (
    ExitStatus.NOT_FOUND,
    ExitStatus.PARTIAL,
    ExitStatus.TIMEOUT,
    ExitStatus.CORRUPT,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)

AuditTopic = Annotated[
    str, typer.Argument(metavar="AUDIT-TOPIC", help="Topic that counts are published to.")
]
Offset = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--offset",
        metavar="SPEC",
        help="Which counts to read, START or START:END. Default: start:end.",
        rich_help_panel="Selection",
    ),
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        metavar="RE",
        help="Only topics whose whole name matches (repeatable).",
        rich_help_panel="Selection",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="RE",
        help="Leave out topics whose whole name matches (repeatable).",
        rich_help_panel="Selection",
    ),
]
Tiers = Annotated[
    list[str] | None,
    typer.Option(
        "--tier",
        metavar="NAME",
        help="Only this tier (repeatable).",
        rich_help_panel="Selection",
    ),
]


@app.command("show", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROGRESS,
    exits=READS,
    examples=(
        "pylogctl audit show audit",
        "pylogctl audit show audit -o @-1d --include orders --tier producer --output csv",
    ),
)
def show(
    env: Environment,
    audit_topic: AuditTopic,
    offset: Offset = None,
    include: Include = None,
    exclude: Exclude = None,
    tier: Tiers = None,
) -> None:
    """Show how many messages each tier has counted, by topic and time window."""
    from broker.tools.audit import tally
    from pylogctl.audit.document import SHOW, show_records
    from pylogctl.cli.render import render

    chosen = _topic_filter(include, exclude)
    with _events(env, audit_topic, offset) as (_, events):
        tallied = tally(one for one in events if chosen(one.topic))
        render(env, SHOW, show_records(tallied, tier or ()))


@app.command("check", cls=Command)
@accepts(
    *OUTPUT,
    *CONNECTION,
    *PROGRESS,
    exits=(*READS, ExitStatus.THRESHOLD),
    examples=(
        "pylogctl audit check audit --fail-above 0",
        "pylogctl audit check audit --tier mirror --grace 15m --all",
        "pylogctl audit check audit --count --time-field .ts -o @-1d",
    ),
)
def check(
    env: Environment,
    audit_topic: AuditTopic,
    offset: Offset = None,
    include: Include = None,
    exclude: Exclude = None,
    tier: Tiers = None,
    reference: Annotated[
        str,
        typer.Option(
            "--reference",
            metavar="NAME",
            help="Tier whose counts are expected.",
            rich_help_panel="Selection",
        ),
    ] = "producer",
    count: Annotated[
        bool,
        typer.Option(
            "--count",
            help="Count what the brokers have, by reading it, as tier 'log'.",
            rich_help_panel="Selection",
        ),
    ] = False,
    time_field: Annotated[
        str | None,
        typer.Option(
            "--time-field",
            metavar="PATH",
            help="With --count: field of JSON messages that has their time, such as .meta.ts. "
            "Default: compare totals.",
            rich_help_panel="Selection",
        ),
    ] = None,
    grace: Annotated[
        str,
        typer.Option(
            "--grace",
            metavar="DUR",
            help="How long after its end a window may still be reported.",
            rich_help_panel="Limits",
        ),
    ] = "5m",
    fail_above: Annotated[
        int | None,
        typer.Option(
            "--fail-above",
            metavar="N",
            min=0,
            help="Status 12 if more messages than this are missing, late or surplus.",
            rich_help_panel="Limits",
        ),
    ] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Show windows that agree, too.", rich_help_panel="Output"),
    ] = False,
) -> None:
    """Compare what tiers have counted with the counts of the producers.

    Without --all only windows are shown whose counts differ. A window is judged when it is over,
    and a grace time has passed.
    """
    from broker.tools.audit import Judgement, compare, difference_count, merged, tally
    from pylogctl.audit.document import CHECK, check_record, check_summary
    from pylogctl.audit.run import LOG_TIER
    from pylogctl.cli.render import render
    from pylogctl.produce.sender import count_text

    if time_field is not None and not count:
        raise UsageError("--time-field says how --count finds windows, which is not given")
    chosen = _topic_filter(include, exclude)
    grace_ms = parse_duration_ms(grace)
    with _events(env, audit_topic, offset) as (side, events):
        tallied = tally(one for one in events if chosen(one.topic))
        if not any(reference in counts for counts in tallied.values()):
            raise no_tier(audit_topic, reference, tallied)
        if count:
            if time_field is None:
                tallied = merged(tallied)
            _add_log(env, side, tallied, time_field)
        found = {name for counts in tallied.values() for name in counts} - {reference}
        tiers = sorted(tier or found)
        if not tiers:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"only tier '{reference}' has reported to '{audit_topic}'",
                hints=["try: --count, which counts what the brokers have"],
                code="TIER_NOT_FOUND",
            )
        verdicts = compare(
            tallied,
            reference,
            tiers,
            now_ms=env.clock.time_ms(),
            grace_ms=grace_ms,
            complete=[LOG_TIER],
        )
        quiet = () if everything else (Judgement.OK, Judgement.OPEN)
        render(env, CHECK, [check_record(v) for v in verdicts if v.judgement not in quiet])
        env.note(check_summary(verdicts))
    total = difference_count(verdicts)
    if fail_above is not None and total > fail_above:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"{count_text(total)} missing, late or surplus; the limit is {fail_above}",
            details={"difference": total, "limit": fail_above},
        )


def _topic_filter(include: list[str] | None, exclude: list[str] | None) -> Callable[[str], bool]:
    """Return what says whether a topic is wanted."""
    from pylogctl.cli.selection import compile_patterns

    included = compile_patterns(include or (), "--include")
    excluded = compile_patterns(exclude or (), "--exclude")

    def is_wanted(topic: str) -> bool:
        if included and not any(one.fullmatch(topic) for one in included):
            return False
        return not any(one.fullmatch(topic) for one in excluded)

    return is_wanted


@contextmanager
def _events(
    env: Environment, audit_topic: str, offset: list[str] | None
) -> Iterator[tuple[Side, list[AuditEvent]]]:
    """Give the cluster and the audit's events; what is no event ends the command as partly done."""
    from pylogctl.audit.run import read_events
    from pylogctl.cli.connections import open_side
    from pylogctl.cli.offset_resolution import resolve_ranges, total_bytes
    from pylogctl.cli.offsets import make_span
    from pylogctl.cli.progress import progress
    from pylogctl.cli.selection import select_partitions
    from pylogctl.produce.sender import count_text

    span = make_span(env, offset or [], from_beginning=False, exit_at_end=True)
    with open_side(env) as side:
        partitions = select_partitions(side.cluster, [audit_topic])
        ranges = resolve_ranges(env, side, partitions, span)
        with progress(env, "read counts", total_bytes(ranges)) as meter:
            found = read_events(side, ranges, meter.advance)
        if found.problems and not found.events:
            raise CliError(
                ExitStatus.PARTIAL,
                f"'{audit_topic}' is no audit topic: none of {count_text(len(found.problems))} "
                "is an audit event",
                hints=["name the topic of produce --audit, or of an Auditor"],
                code="NO_AUDIT_TOPIC",
            )
        yield side, found.events
    if found.problems:
        env.complain(found.problems[0])
        raise CliError(
            ExitStatus.PARTIAL,
            f"no audit events in '{audit_topic}': {count_text(len(found.problems))}",
        )


def no_tier(audit_topic: str, reference: str, tallied: dict[Window, dict[str, Count]]) -> CliError:
    """Return the error for a tier that nobody has counted for, with those that are known."""
    known = sorted({tier for counts in tallied.values() for tier in counts})
    return CliError(
        ExitStatus.NOT_FOUND,
        f"tier '{reference}' has not reported to '{audit_topic}'",
        hints=[f"tiers that have: {', '.join(known)}"] if known else [],
        code="TIER_NOT_FOUND",
    )


def _add_log(
    env: Environment,
    side: Side,
    tallied: dict[Window, dict[str, Count]],
    time_field: str | None,
) -> None:
    """Count the topics themselves, and add that as a tier."""
    from broker.tools.audit import json_time
    from pylogctl.audit.run import LOG_TIER, count_log
    from pylogctl.cli.offset_resolution import resolve_ranges, total_bytes
    from pylogctl.cli.offsets import make_span
    from pylogctl.cli.progress import progress

    topics = sorted({window.topic for window in tallied})
    partitions = [one for topic in topics for one in side.cluster.partitions(topic)]
    span = make_span(env, ["start:end"], from_beginning=False, exit_at_end=True)
    ranges = resolve_ranges(env, side, partitions, span)
    time_of = None if time_field is None else json_time(time_field)
    with progress(env, "count", total_bytes(ranges)) as meter:
        found = count_log(side, ranges, tallied, time_of, meter.advance)
    for window, counted in found.counts.items():
        tallied.setdefault(window, {})[LOG_TIER] = counted
    if found.timeless_count:
        env.warn(f"{found.timeless_count} messages have no time in {time_field}: not counted")
