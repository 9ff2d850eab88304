"""The commands of `pylogctl group` that only read: they render their results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import NamedTuple, cast

from broker.admin import groups as admin
from broker.admin.lag import GroupLag, GroupObserver, LagStatus, total
from broker.admin.rebalance import problems_of
from broker.client.selection import topic_not_found
from broker.errors import ArgumentError
from broker.units import counted, format_size, format_time, parse_size
from pylogctl.cli.columns import known_values
from pylogctl.cli.connections import connector, open_registry
from pylogctl.cli.environment import CliError, Environment, ExitStatus, OutputFormat, UsageError
from pylogctl.cli.failures import Done, raise_failures
from pylogctl.cli.process import graceful_stop
from pylogctl.cli.progress import announced_wait, progress
from pylogctl.cli.render import render
from pylogctl.group import document
from pylogctl.group.offsets_file import zk07_line
from pylogctl.group.options import DescribeOptions, LagOptions

_WATCHED_MS = 60_000  # that rates and status of `group watch` cover
_CLEAR = "\x1b[H\x1b[2J"
_OPEN_SCREEN, _CLOSE_SCREEN = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


class LagLimit(NamedTuple):
    """A limit of the lag of a group, in messages or in bytes."""

    amount: int
    in_messages: bool

    def text(self, amount: int) -> str:
        """Return an amount with the limit's unit."""
        return counted(amount, "message") if self.in_messages else format_size(amount)


def parse_limit(text: str) -> LagLimit:
    """Parse a size with a unit, such as `64MiB` or `100B`, or a bare number of messages."""
    if re.fullmatch(r"\d+", text):
        return LagLimit(int(text), in_messages=True)
    try:
        return LagLimit(parse_size(text), in_messages=False)
    except ArgumentError as error:
        raise UsageError(
            f"not a limit of lag: '{text}'",
            "valid: 64MiB, 500B, or 1000 (a bare number is messages)",
        ) from error


@contextmanager
def open_observer(env: Environment, *groups: str, window_ms: int = 0) -> Iterator[GroupObserver]:
    """Connect to ZooKeeper and validate that groups exist."""
    connect = connector(env)
    with open_registry(env) as registry:
        for group in groups:
            admin.require_group(registry.session, group)
        yield GroupObserver(registry, connect, env.clock, window_ms)


def list_groups(env: Environment, state: str | None) -> None:
    """Render groups of a state and their lag; names alone are rendered without asking brokers."""
    with open_observer(env) as observer:
        names = admin.list_groups(observer.session)
        if state is not None:
            names = [name for name in names if observer.snapshot(name).state == state]
        if env.output == "name" and not (env.settings.columns or env.settings.sort):
            render(env, document.LIST, map(document.GroupRow, names))
            return
        lags = observer.lag(*names)
    rows = [document.group_row(one) for one in lags]
    render(env, document.LIST, rows)
    _check_brokers(env, lags)


def _check_brokers(env: Environment, lags: Sequence[GroupLag]) -> None:
    """Raise CliError if brokers did not respond."""
    failures = [error for one in lags for error in one.failures]
    homes = {home for one in lags for home in one.homes}
    raise_failures(
        env, Done(list({str(one): one for one in failures}.values()), len(homes), "brokers")
    )


def warn_of_offsets(env: Environment, group: admin.GroupSnapshot) -> None:
    """Warn of stored offsets that cannot be used, and of nodes not named after a partition."""
    for partition, stored in group.offsets.items():
        if stored.offset is None:
            env.warn(f"{partition}: the stored offset {stored.problem}")
    for path in group.strays:
        env.warn(f"{path} is not named after a partition")


def describe(env: Environment, group: str, options: DescribeOptions) -> None:
    """Render the lag of a group by partition, topic, member, or as a whole."""
    found = _observe(env, group, options, samples=2, with_count=options.count)
    warn_of_offsets(env, found.snapshot)
    pace = document.PACE if options.window else ()
    if options.by == "topic":
        render(env, document.BY_TOPIC.showing(*pace), document.topic_rows(found))
    elif options.by == "member":
        render(env, document.BY_MEMBER.showing(*pace), document.member_rows(found))
    elif options.by == "group":
        render(env, document.BY_GROUP.showing(*pace), [document.group_lag_row(found)])
    else:
        _render_partitions(env, found, pace)
    _check_brokers(env, [found])


def _observe(
    env: Environment,
    group: str,
    options: DescribeOptions | LagOptions,
    *,
    samples: int,
    with_count: bool,
    estimates: bool = False,
) -> GroupLag:
    """Return the lag of a group, sampled over a window if there is one."""
    topics, window_ms = options.topics or (), options.window or 0
    with open_observer(env, group, window_ms=window_ms) as observer:
        if window_ms:
            with announced_wait(env, f"the window of {window_ms / 1000:g}s"):
                observer.sample(group, topics=topics, samples=samples)
        known = observer.snapshot(group).topics if topics else []
        for topic in topics:
            if topic not in known:
                raise topic_not_found(topic, known)
        if not with_count:
            return observer.lag(group, topics=topics, estimates=estimates)[0]
        with progress(env, "count", None) as meter:  # with the last sample only
            return observer.lag(group, topics=topics, count=meter.advance, estimates=estimates)[0]


def show_lag(env: Environment, group: str, options: LagOptions) -> None:
    """Render the lag of partitions with at least `--min-lag` bytes; fail above `--fail-above`."""
    limit = None if options.fail_above is None else parse_limit(options.fail_above)
    with_count = options.count or (limit is not None and limit.in_messages)
    found = _observe(env, group, options, samples=10, with_count=with_count, estimates=True)
    warn_of_offsets(env, found.snapshot)
    rows = [
        document.partition_row(one, found, allowed_lag=options.allowed_lag)
        for one in found.partitions
        if one.lag_bytes is None or one.lag_bytes >= (options.min_lag or 0)
    ]
    last_row = document.total_row(found, allowed_lag=options.allowed_lag)
    shown = document.LAG.showing(*document.PACE) if options.window else document.LAG
    render(env, shown, rows, total=last_row)
    _check_brokers(env, [found])
    if limit is not None:
        _check_limit(found, limit)


def _check_limit(found: GroupLag, limit: LagLimit) -> None:
    name = found.snapshot.name
    amounts = [one.lag_messages if limit.in_messages else one.lag_bytes for one in found.partitions]
    behind = total(amounts) or 0
    if behind > limit.amount:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"group '{name}' is {limit.text(behind)} behind, more than {limit.text(limit.amount)}",
            code="LAG_ABOVE_LIMIT",
            details={"group": name, "lag": behind, "limit": limit.amount},
        )
    if not amounts:
        raise CliError(
            ExitStatus.THRESHOLD,
            f"group '{name}': the lag is unknown, as it has no offsets in ZooKeeper",
            code="LAG_UNKNOWN",
        )
    for one, amount in zip(found.partitions, amounts, strict=True):
        status = one.status()
        if amount is None and status not in (LagStatus.NO_OFFSET, LagStatus.GONE):
            raise CliError(
                ExitStatus.THRESHOLD,
                f"group '{name}': the lag of {one.partition} is unknown: {status}",
                code="LAG_UNKNOWN",
            )


def show_members(env: Environment, group: str) -> None:
    """Render the members of a group."""
    with open_observer(env, group) as observer:
        found = observer.snapshot(group)
    render(env, document.MEMBERS, [document.member_row(one, found) for one in found.members])


def verify(env: Environment, group: str) -> None:
    """Render the problems of a group's assignment; fail if there are any."""
    with open_observer(env, group) as observer:
        found = observer.snapshot(group)
        live = observer.live_partitions(found)
    problems = problems_of(found, live)
    render(env, document.VERIFY, [document.problem_row(group, one) for one in problems])
    if problems:
        hint = (
            f"try: pylogctl group rebalance {group}"
            if found.members
            else f"it has no members; start one: pylogctl consume --group {group}"
        )
        raise CliError(
            ExitStatus.CORRUPT,
            f"group '{group}' has {counted(len(problems), 'problem')}",
            hint,
            code="GROUP_UNSOUND",
        )
    env.note(
        f"group '{group}' is sound: {counted(len(found.members), 'member')}, "
        f"{counted(len(found.owners), 'partition')}"
    )


def watch(env: Environment, group: str, *, interval_s: float, sample_count: int | None) -> None:
    """Show the lag of a group repeatedly, `sample_count` times or until interrupted."""
    has_screen = env.streams.stdout_is_tty
    show = _show_on_screen if has_screen else _show_line
    with open_observer(env, group, window_ms=_WATCHED_MS) as observer:
        found = observer.lag(group)[0]
        with graceful_stop() as stop, _screen(env):
            for number in count(1):
                show(env, found)
                env.flush()
                if number == sample_count or stop.wait(interval_s):
                    break
                found = observer.lag(group)[0]
    if has_screen:
        _render_partitions(env, found)


@contextmanager
def _screen(env: Environment) -> Iterator[None]:
    """Switch a terminal to its alternate screen for the block."""
    if not env.streams.stdout_is_tty:
        yield
        return
    env.write(_OPEN_SCREEN.encode())
    try:
        yield
    finally:
        env.write(_CLOSE_SCREEN.encode())
        env.flush()


def _show_on_screen(env: Environment, found: GroupLag) -> None:
    group = found.snapshot
    env.write(_CLEAR.encode())
    env.write_line(
        f"{group.name}  {group.state}  {len(group.members)} members  "
        f"{format_time(found.time_ms)}  {found.status()}"
    )
    _render_partitions(env, found)


def _render_partitions(
    env: Environment, found: GroupLag, pace: Sequence[str] = document.PACE
) -> None:
    rows = [document.partition_row(one, found) for one in found.partitions]
    idle = [document.idle_row(one, found) for one in found.idle_members]
    shown = document.DESCRIBE.showing(*pace)
    render(env, shown, [*rows, *idle], total=document.total_row(found))


def _show_line(env: Environment, found: GroupLag) -> None:
    columns = [column.name for column in document.DESCRIBE.columns if column.name != "group"]
    rows = [
        known_values(document.partition_row(one, found).by_column()) for one in found.partitions
    ]
    group = found.snapshot
    record = {
        "time": format_time(found.time_ms),
        "state": group.state,
        "members": len(group.members),
        "topics": len(group.topics),
        "group": group.name,
        **known_values(document.sums_of(found.partitions, found).by_column()),
        "by_partition": [{name: row[name] for name in columns} for row in rows],
        "idle_members": [member.consumer_id for member in found.idle_members],
    }
    env.write_line(json.dumps(record, separators=(",", ":")))


def export(env: Environment, groups: Sequence[str], output: str) -> None:
    """Write the offsets of groups, of all if none is named."""
    with open_observer(env, *groups) as observer:
        names = list(dict.fromkeys(groups or admin.list_groups(observer.session)))
        snapshots = [observer.snapshot(name) for name in names]
    offsets = [
        (one.name, partition, o) for one in snapshots for partition, o in one.offsets.items()
    ]
    if output == "zk07":
        for name, partition, stored in offsets:
            env.write_line(zk07_line(name, partition, stored.text))
        return
    for one in snapshots:
        warn_of_offsets(env, one)
    env = env.changed(settings=env.settings._replace(output=cast(OutputFormat, output)))
    numbers = [one for one in offsets if one[2].offset is not None]
    rows = [
        document.OffsetRow(name, one.topic, one.name, stored.offset, stored.commit_ms)
        for name, one, stored in numbers
    ]
    render(env, document.EXPORT, rows)
    if len(numbers) < len(offsets):
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(offsets) - len(numbers)} of {len(offsets)} offsets cannot be used; left out",
            "--output zk07 writes them as they are",
        )
