"""The commands of `pylogctl group` that only look."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import OUTPUT, PROGRESS, REGISTRY, TIMEOUT, accepts
from pylogctl.cli.progress import announced_wait, progress
from pylogctl.cli.render import render
from pylogctl.cli.units import format_time, parse_duration_ms, parse_duration_s, parse_size

if TYPE_CHECKING:
    from pylogctl.group.access import Limit
    from pylogctl.group.lag import GroupObserver, GroupStanding

READS = (
    ExitStatus.NOT_FOUND,
    ExitStatus.PARTIAL,
    ExitStatus.TIMEOUT,
    ExitStatus.UNREACHABLE,
    ExitStatus.REMOTE,
)
_SAMPLES_PER_WINDOW = 10
_MIN_INTERVAL_S = 0.1
_CLEAR = "\x1b[H\x1b[2J"
_OPEN_SCREEN, _CLOSE_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="Name of the group.")]
TopicOption = Annotated[
    list[str] | None,
    typer.Option(
        "-t",
        "--topic",
        metavar="TOPIC",
        help="Only this topic (repeatable).",
        rich_help_panel="Selection",
    ),
]
CountOption = Annotated[
    bool, typer.Option("--count", help="Count messages too, by reading all that lags.")
]
WindowOption = Annotated[
    str | None,
    typer.Option("--window", metavar="DUR", help="Look for so long, to know rates and trends."),
]


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    exits=READS[1:],
    examples=("pylogctl group list", "pylogctl group list --state active --output name"),
)
def list_groups(
    env: Environment,
    state: Annotated[
        Literal["active", "empty", "dead"] | None,
        typer.Option(
            "--state",
            help="Only groups with members, with offsets only, or with neither.",
            rich_help_panel="Selection",
        ),
    ] = None,
) -> None:
    """List groups with their state and lag.

    A broker that does not answer leaves gaps and makes the exit status 6.
    """
    from pylogctl.group import document, snapshot
    from pylogctl.group.access import check_brokers, open_observer

    with open_observer(env) as observer:
        names = snapshot.list_groups(observer.registry.session)
        if state is not None:
            names = [name for name in names if observer.snapshot(name).state == state]
        if env.output == "name" and not (env.settings.columns or env.settings.sort):
            render(env, document.LIST, [{"group": name} for name in names])
            return
        standings = observer.look(*names)
    records = [document.list_record(one.snapshot, one.lag_bytes) for one in standings]
    render(env, document.LIST, records)
    check_brokers(env, standings)


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *PROGRESS,
    exits=(*READS, ExitStatus.CORRUPT),
    examples=(
        "pylogctl group describe billing",
        "pylogctl group describe billing --by member",
        "pylogctl group describe billing --window 10s --count --output json",
    ),
)
def describe(
    env: Environment,
    group: GroupArgument,
    by: Annotated[
        Literal["partition", "topic", "member", "group"],
        typer.Option("--by", help="What a row is."),
    ] = "partition",
    topics: TopicOption = None,
    count: CountOption = False,
    window: WindowOption = None,
) -> None:
    """Show where a group stands: owners, offsets, lag and pace; the last line is the total.

    Partitions without an owner and members without a partition are shown as well. RATE and ETA
    need two looks, so they are unknown without --window.
    """
    from pylogctl.group import document
    from pylogctl.group.access import check_brokers, warn_of_offsets

    found = _look(env, group, topics or (), window=window, looks=2, count=count)
    warn_of_offsets(env, found.snapshot)
    if by == "topic":
        render(env, document.BY_TOPIC, document.topic_records(found))
    elif by == "member":
        render(env, document.BY_MEMBER, document.member_records(found))
    elif by == "group":
        render(env, document.BY_GROUP, [document.group_record(found)])
    else:
        _render_table(env, found)
    check_brokers(env, [found])


def _look(
    env: Environment,
    group: str,
    topics: Sequence[str],
    *,
    window: str | None,
    looks: int,
    count: bool,
) -> GroupStanding:
    """Look at a group once, or `looks` times over a window; messages are counted the last time."""
    from pylogctl.group.access import open_observer

    window_ms = 0 if window is None else parse_duration_ms(window)
    with open_observer(env, group, window_ms=window_ms) as observer:
        if window_ms:
            _watch_window(env, observer, group, topics, window_s=window_ms / 1000, looks=looks)
        _check_topics(observer, group, topics)
        if not count:
            return observer.look(group, topics=topics)[0]
        with progress(env, "count", None) as meter:
            return observer.look(group, topics=topics, count=meter.advance)[0]


def _check_topics(observer: GroupObserver, group: str, topics: Sequence[str]) -> None:
    from pylogctl.cli.selection import topic_not_found

    if topics:
        known = observer.snapshot(group).topics
        for topic in topics:
            if topic not in known:
                raise topic_not_found(topic, known)


def _watch_window(
    env: Environment,
    observer: GroupObserver,
    group: str,
    topics: Sequence[str],
    *,
    window_s: float,
    looks: int,
) -> None:
    """Look at a group again and again until a window is over, but for the last look."""
    end_s = time.monotonic() + window_s
    interval_s = max(window_s / (looks - 1), _MIN_INTERVAL_S)
    with announced_wait(env, f"the window of {window_s:g}s"):
        while (left_s := end_s - time.monotonic()) > 0:
            observer.look(group, topics=topics)
            time.sleep(max(0.0, min(interval_s, left_s)))


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *PROGRESS,
    exits=(*READS, ExitStatus.CORRUPT, ExitStatus.THRESHOLD),
    examples=(
        "pylogctl group lag billing",
        "pylogctl group lag billing --fail-above 64MiB || page-someone",
        "pylogctl group lag billing --window 60s --allowed-lag 64KiB",
    ),
)
def lag(
    env: Environment,
    group: GroupArgument,
    topics: TopicOption = None,
    fail_above: Annotated[
        str | None,
        typer.Option(
            "--fail-above",
            metavar="SIZE|COUNT",
            help="Exit 12 if the whole lag is more: 64MiB, or 1000 messages, which are counted.",
        ),
    ] = None,
    min_lag: Annotated[
        str | None,
        typer.Option(
            "--min-lag",
            metavar="SIZE",
            help="Show only partitions with at least so much, or with unknown lag.",
            rich_help_panel="Selection",
        ),
    ] = None,
    allowed_lag: Annotated[
        str, typer.Option("--allowed-lag", metavar="SIZE", help="Lag of a partition that is OK.")
    ] = "0",
    count: CountOption = False,
    window: WindowOption = None,
) -> None:
    """Show how far a group is behind, and judge each partition.

    The status needs a history: with --window the group is looked at for so long. Without one a
    partition is OK or just has LAG.
    """
    from pylogctl.group import document
    from pylogctl.group.access import check_brokers, parse_limit, warn_of_offsets

    limit = None if fail_above is None else parse_limit(fail_above)
    least = 0 if min_lag is None else parse_size(min_lag)
    allowed = parse_size(allowed_lag)
    count = count or (limit is not None and limit.in_messages)
    found = _look(env, group, topics or (), window=window, looks=_SAMPLES_PER_WINDOW, count=count)
    warn_of_offsets(env, found.snapshot)
    rows = [
        document.partition_record(one, found, allowed_lag=allowed)
        for one in found.partitions
        if one.lag_bytes is None or one.lag_bytes >= least
    ]
    total = document.total_record(found, allowed_lag=allowed)
    render(env, document.LAG, rows, total=total)
    check_brokers(env, [found])
    if limit is not None:
        _check_limit(found, limit)


def _check_limit(found: GroupStanding, limit: Limit) -> None:
    """Check that a group is not too far behind, nor at a place that nobody can tell.

    Raises:
        CliError: it is.
    """
    from pylogctl.group.access import lag_text
    from pylogctl.group.lag import Status, total

    name = found.snapshot.name
    amounts = [one.lag_messages if limit.in_messages else one.lag_bytes for one in found.partitions]
    behind = total(amounts) or 0
    if behind > limit.amount:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"group '{name}' is {lag_text(behind, in_messages=limit.in_messages)} behind, "
            f"more than {limit.text}",
            code="LAG_ABOVE_LIMIT",
            details={"group": name, "lag": behind, "limit": limit.amount},
        )
    for one, amount in zip(found.partitions, amounts, strict=True):
        status = one.status()
        if amount is None and status not in (Status.NO_OFFSET, Status.GONE):
            raise CliError(
                ExitStatus.THRESHOLD,
                f"group '{name}': the lag of {one.partition} cannot be told: {status}",
                code="LAG_UNKNOWN",
            )


@accepts(*OUTPUT, *REGISTRY, *TIMEOUT, exits=READS, examples=("pylogctl group members billing",))
def members(env: Environment, group: GroupArgument) -> None:
    """Show the members of a group: what they read, since when, and how much they own."""
    from pylogctl.group.access import open_observer
    from pylogctl.group.document import MEMBERS, member_record

    with open_observer(env, group) as observer:
        found = observer.snapshot(group)
    render(env, MEMBERS, [member_record(one, found) for one in found.members])


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    exits=(*READS, ExitStatus.CORRUPT),
    examples=("pylogctl group verify billing",),
)
def verify(env: Environment, group: GroupArgument) -> None:
    """Check that every partition has one live owner, and that no owner node is stale.

    Problems are written to stdout, and make the exit status 8.
    """
    from pylogctl.group.access import counted, open_observer
    from pylogctl.group.document import VERIFY, problem_record
    from pylogctl.group.lag import partitions_there
    from pylogctl.group.rebalance import problems_of

    with open_observer(env, group) as observer:
        found = observer.snapshot(group)
        there = partitions_there(observer.registry, found)
    problems = problems_of(found, there)
    render(env, VERIFY, [problem_record(group, one) for one in problems])
    if problems:
        hints = [f"try: pylogctl group rebalance {group}"] if found.members else []
        raise CliError(
            ExitStatus.CORRUPT,
            f"group '{group}' has {counted(len(problems), 'problem')}",
            hints=hints or [f"it has no members; start one: pylogctl consume --group {group}"],
            code="GROUP_UNSOUND",
        )
    env.note(
        f"group '{group}' is sound: {counted(len(found.members), 'member')}, "
        f"{counted(len(found.owners), 'partition')}"
    )


@accepts(
    *REGISTRY,
    *TIMEOUT,
    exits=READS,
    examples=(
        "pylogctl group watch billing",
        "pylogctl group watch billing --count 3 | jq .lag_bytes",
    ),
)
def watch(
    env: Environment,
    group: GroupArgument,
    interval: Annotated[
        str, typer.Option("--interval", metavar="DUR", help="Time between two looks.")
    ] = "2s",
    count: Annotated[
        int | None,
        typer.Option("--count", metavar="N", min=1, help="Stop after so many looks."),
    ] = None,
    window: Annotated[
        str, typer.Option("--window", metavar="DUR", help="How far back rates and status look.")
    ] = "60s",
) -> None:
    """Show a group again and again, until interrupted.

    On a terminal it fills the screen; in a pipe each look is a JSON object on one line.
    """
    from pylogctl.cli.process import graceful_stop
    from pylogctl.group.access import open_observer

    interval_s = parse_duration_s(interval)
    if interval_s <= 0:
        raise UsageError(f"--interval must be above zero: '{interval}'")
    show = _show_on_screen if env.streams.stdout_is_tty else _show_line
    with (
        open_observer(env, group, window_ms=parse_duration_ms(window)) as observer,
        graceful_stop() as stop,
    ):
        last = _watch(env, observer, group, show, count=count, wait=lambda: stop.wait(interval_s))
    if env.streams.stdout_is_tty and last is not None:
        _render_table(env, last)


def _watch(
    env: Environment,
    observer: GroupObserver,
    group: str,
    show: Callable[[Environment, GroupStanding], None],
    *,
    count: int | None,
    wait: Callable[[], bool],
) -> GroupStanding | None:
    """Look and show until it is enough or `wait` says so; return the last look."""
    looks = 0
    with _screen(env):
        while True:
            found = observer.look(group)[0]
            show(env, found)
            env.flush()
            looks += 1
            if looks == count or wait():
                return found


@contextmanager
def _screen(env: Environment) -> Iterator[None]:
    """Have a screen of our own on a terminal; what was there comes back in the end."""
    if not env.streams.stdout_is_tty:
        yield
        return
    env.write(_OPEN_SCREEN.encode())
    try:
        yield
    finally:
        env.write(_CLOSE_SCREEN.encode())
        env.flush()


def _show_on_screen(env: Environment, found: GroupStanding) -> None:
    snapshot = found.snapshot
    env.write(_CLEAR.encode())
    env.write_line(
        f"{snapshot.name}  {snapshot.state}  {len(snapshot.members)} members  "
        f"{format_time(found.time_ms)}  {found.status()}"
    )
    _render_table(env, found)


def _render_table(env: Environment, found: GroupStanding) -> None:
    from pylogctl.group import document

    rows = [document.partition_record(one, found) for one in found.partitions]
    idle = [document.idle_record(one, found) for one in found.idle_members]
    render(env, document.DESCRIBE, [*rows, *idle], total=document.total_record(found))


def _show_line(env: Environment, found: GroupStanding) -> None:
    from pylogctl.group import document

    columns = [column.name for column in document.DESCRIBE.columns if column.name != "group"]
    rows = [document.partition_record(one, found) for one in found.partitions]
    record = {
        "time": format_time(found.time_ms),
        **document.group_record(found),
        "by_partition": [{name: row[name] for name in columns} for row in rows],
        "idle_members": [member.consumer_id for member in found.idle_members],
    }
    env.write_line(json.dumps(record, separators=(",", ":")))
