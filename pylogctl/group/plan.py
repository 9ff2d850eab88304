"""Options of `group reset` and `group import` to what `broker.admin.group_plans` takes.

A malformed option or file is a UsageError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from broker.admin import group_plans
from broker.admin.group_plans import Change, OffsetRecord, Target
from broker.admin.groups import GroupSnapshot, require_group
from broker.admin.lag import GroupObserver
from broker.client.selection import select_partitions, select_topics
from broker.errors import ArgumentError
from broker.partition_patterns import PartitionList
from broker.positions import OffsetSpec, parse_offset_spec
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.group.offsets_file import parse_entries

_HINT = (
    "valid: start, end, 4096, ~4096, -100, -64KiB, @-10m, 0=4096,1=end, "
    "shift:-100, by:-1h, group:OTHER, file:PATH"
)


def parse_spec(text: str, *, now_ms: int) -> OffsetSpec:
    """Parse an offset expression without an end."""
    try:
        spec = parse_offset_spec([text], now_ms=now_ms)
    except ArgumentError as error:
        raise UsageError(str(error), _HINT) from error
    ranges = [spec.default, *(offsets for _, offsets in spec.partitions)]
    if any(one.end is not None for one in ranges):
        raise UsageError(f"--to '{text}' has an end, but a group has only one position")
    return spec


def read_entries(env: Environment, file: str) -> list[OffsetRecord]:
    """Return the offsets of a file, `-` for standard input."""
    try:
        if file == "-":
            stdin = env.streams.stdin
            return parse_entries("" if stdin is None else stdin.read().decode(), "stdin")
        return parse_entries(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is not UTF-8 text") from error


def find_target(env: Environment, observer: GroupObserver, text: str) -> Target:
    """Parse `--to`: an offset expression, or `shift:`, `by:`, `group:` or `file:` and a value."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "shift":
        return group_plans.parse_shift(rest)
    if colon and kind == "by":
        return group_plans.parse_shift_time(rest)
    if colon and kind == "file":
        return read_entries(env, rest)
    if colon and kind == "group":
        require_group(observer.session, rest)
        return observer.snapshot(rest)
    spec = parse_spec(text, now_ms=env.clock.time_ms())
    return lambda partition: spec.range_for(partition).start


def plan_reset(
    observer: GroupObserver,
    snapshot: GroupSnapshot,
    target: Target,
    *,
    topics: Sequence[str],
    wanted: PartitionList | None,
) -> list[Change]:
    """Plan the changes of a group's offsets in existing topics, or in all topics of the group."""
    if topics:
        cluster = observer.cluster
        live = select_partitions(cluster, select_topics(cluster, topics), wanted)
        return group_plans.plan_reset(observer, snapshot, target, live)
    if not snapshot.topics:
        raise CliError(
            ExitStatus.NOT_FOUND, f"group '{snapshot.name}' has no topics", "name one with --topic"
        )
    return group_plans.plan_reset(observer, snapshot, target)


def by_group(entries: Iterable[OffsetRecord], group: str | None) -> dict[str, list[OffsetRecord]]:
    """Return the offsets of a file by group; all for `group` if it is given."""
    groups: dict[str, list[OffsetRecord]] = {}
    for entry in entries:
        name = group or entry.group
        if name is None:
            raise UsageError(
                f"line {entry.line} names no group", "name it: pylogctl group import GROUP"
            )
        groups.setdefault(name, []).append(entry)
    return groups
