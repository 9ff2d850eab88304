"""The work of the commands of `pylogctl group` that change groups in ZooKeeper.

Nothing is written to a group that has members unless forced, as members commit their own offsets
over it. Old offsets are saved before they are replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from broker.admin import group_changes, group_plans
from broker.admin import rebalance as admin
from broker.admin.group_plans import Change, OffsetRecord, Target, plan_import, plan_removal
from broker.admin.groups import GroupSnapshot, list_groups, require_group, validate_group_name
from broker.admin.lag import GroupObserver
from broker.client.selection import select_partitions, select_topics
from broker.errors import ArgumentError, GroupActiveError
from broker.files import write_atomically
from broker.positions import OffsetSpec, parse_offset_spec
from broker.units import counted, format_duration
from broker.zk.session import Session
from pylogctl.cli.confirmation import confirm, confirm_name, new_undo_file, tell_undo
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.render import render
from pylogctl.group import document
from pylogctl.group.offsets_file import parse_entries
from pylogctl.group.options import Execution, ImportOptions, ResetOptions
from pylogctl.group.reads import open_observer

_DRY_RUN = "nothing changed; this was a dry run"
_HINT = (
    "valid: start, end, 4096, ~4096, -100, -64KiB, @-10m, 0=4096,1=end, "
    "shift:-100, by:-1h, group:OTHER, file:PATH"
)


def reset(env: Environment, group: str, options: ResetOptions) -> None:
    """Move offsets of a group to `--to`; only render the plan without `--execute`."""
    how = options.execution
    with open_observer(env, group) as observer:
        _await_inactive(env, observer.session, [group], how)
        target = _find_target(env, observer, options.to)
        changes = _plan_reset(observer, observer.snapshot(group), target, options)
        _carry_out(env, "group reset", observer.session, changes, how)


def import_offsets(env: Environment, options: ImportOptions) -> None:
    """Set the offsets of groups to those of a file; see `reset`."""
    entries = _by_group(_read_entries(env, options.file), options.group)
    if not entries:
        env.note(f"'{options.file}' has no offsets; nothing to change")
    for name in entries:
        validate_group_name(name)
    with open_observer(env) as observer:
        _await_inactive(env, observer.session, entries, options.execution)
        changes = [
            change
            for name, wanted in entries.items()
            for change in plan_import(observer, observer.snapshot(name), wanted)
        ]
        _carry_out(env, "group import", observer.session, changes, options.execution)


def delete(env: Environment, group: str, *, confirmed: str | None, if_exists: bool) -> None:
    """Delete all nodes of a group after its name is confirmed; its offsets are saved."""
    validate_group_name(group)
    with open_observer(env) as observer:
        session = observer.session
        if if_exists and group not in list_groups(session):
            env.note(f"there is no group '{group}'")
            return
        require_group(session, group)
        group_changes.check_inactive(session, group, advice="stop them first")
        nodes = group_changes.nodes_of(session, group)
        if not env.settings.dry_run:
            confirm_name(env, "group delete", group, confirmed)
            with _saved(env, session, plan_removal(observer.snapshot(group))):
                group_changes.delete_group(session, group)
    action = "delete" if env.settings.dry_run else "deleted"
    render(env, document.NODES, [document.NodeRow(group, path, action) for path in nodes])
    if env.settings.dry_run:
        env.note(_DRY_RUN)


def rebalance(env: Environment, group: str, *, wait: str, timeout_s: float) -> None:
    """Make the members of a group rebalance, and render owners before and after."""
    problems: Sequence[admin.GroupProblem] = ()
    settled = ""
    with open_observer(env, group) as observer:
        before, live = admin.read_assignment(observer, group)
        if not before.members:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"group '{group}' has no members that could rebalance",
                f"start one, such as: pylogctl consume --group {group}",
                code="GROUP_EMPTY",
            )
        if env.settings.dry_run:
            after = admin.expected_owners(before, live)
            env.note(_DRY_RUN)
        else:
            members = counted(len(before.members), "member")
            confirm(env, "group rebalance", f"have {members} of '{group}' rebalance?")
            began_s = env.clock.monotonic_s()
            admin.trigger_rebalance(observer.session, group)
            with announced_wait(env, f"group '{group}' to rebalance"):
                snapshot, problems = admin.await_rebalance(
                    lambda: admin.read_assignment(observer, group), timeout_s=timeout_s
                )
            after = snapshot.owner_threads
            settled = format_duration(env.clock.monotonic_s() - began_s)
    owners = list(admin.owner_changes(before.owner_threads, after, problems))
    moved = [
        document.RebalanceRow(group, one.topic, one.name, was, now)
        for one, was, now in owners
        if was != now
    ]
    render(env, document.REBALANCE, moved)
    if not problems:
        number = counted(len(owners), "partition")
        env.note(f"{number}, {len(moved)} moved" + (f", settled in {settled}" if settled else ""))
    if problems:
        first = problems[0]
        raise CliError(
            ExitStatus.TIMEOUT,
            f"group '{group}' has not rebalanced within {wait}: "
            f"{counted(len(problems), 'problem')}",
            f"{first.partition or first.owner}: {first.detail}",
            f"try: pylogctl group verify {group}",
            code="GROUP_UNSETTLED",
        )


def _await_inactive(
    env: Environment, session: Session, groups: Iterable[str], how: Execution
) -> None:
    """Wait until groups have no members, for `--wait-inactive` each if it is given."""
    if how.wait_inactive is None:
        return
    for group in groups:
        try:
            with announced_wait(env, f"group '{group}' to have no members"):
                group_changes.await_inactive(session, group, how.wait_inactive)
        except GroupActiveError as error:
            raise CliError(
                ExitStatus.TIMEOUT,
                str(error),
                *error.hints,
                code="GROUP_ACTIVE",
                details=error.details,
            ) from error


def _carry_out(
    env: Environment, command: str, session: Session, changes: Sequence[Change], how: Execution
) -> None:
    """Render a plan; with `--execute`, first confirm it, save the old offsets, write the new ones.

    The plan has the offsets that change, and those that something is to be said about.
    """
    groups = list(dict.fromkeys(one.group for one in changes))
    layout = document.RESET if len(groups) < 2 else document.RESET_OF_GROUPS
    shown = [one for one in changes if one.is_needed or one.notes]
    rows = [document.change_row(one) for one in shown]
    executes = how.execute and not env.settings.dry_run
    if unchanged := len(changes) - len(shown):
        env.note(f"unchanged, and left out: {counted(unchanged, 'offset')}")
    if not executes:
        render(env, layout, rows)
    if not how.force:
        for group in groups:
            group_changes.check_inactive(session, group, advice="stop them or use --wait-inactive")
    needed = [one for one in changes if one.is_needed]
    if not executes:
        advice = "this was a dry run" if how.execute else "add --execute"
        env.note(f"nothing changed; {advice}" if needed else "nothing to change")
    else:
        if needed:
            names = " and ".join(f"'{name}'" for name in groups)
            confirm(env, command, f"change {counted(len(needed), 'offset')} of group {names}?")
            _write(env, session, needed, force=how.force)
        else:
            env.note("nothing to change")
        render(env, layout, rows)
    failed = [one for one in changes if one.fails]
    if failed:
        first = failed[0]
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(failed)} of {len(changes)} offsets cannot be changed",
            f"{first.partition}: {'; '.join(first.notes)}",
        )


def _write(env: Environment, session: Session, changes: Sequence[Change], *, force: bool) -> None:
    groups = list(dict.fromkeys(one.group for one in changes))
    if not force:
        # Members may have joined while the question was open.
        for group in groups:
            group_changes.check_inactive(session, group, advice="nothing changed")
    with _saved(env, session, changes) as unwritten:
        unwritten += group_changes.apply_changes(session, changes, force=force)
    env.note(f"{counted(len(changes) - len(unwritten), 'offset')} changed")
    if unwritten:
        raise group_changes.offset_changed(unwritten)
    if force:
        env.warn("members of the group may write over the new offsets")


@contextmanager
def _saved(env: Environment, session: Session, changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Save the offsets that changes replace; afterwards tell how to restore those replaced.

    Gives a list for the changes that were not made.
    """
    before = [
        one
        for one in changes
        if one.is_needed and (one.current is None or one.current.offset is not None)
    ]
    files = {one.group: new_undo_file(env, one.group) for one in before}
    for group, path in files.items():
        _write_offsets(path, [one for one in before if one.group == group])
    left: list[Change] = []
    try:
        yield left
    except BaseException:
        left += group_changes.unmade(session, before)
        raise
    finally:
        for group, path in files.items():
            made = [one for one in before if one.group == group and one not in left]
            if made and left:
                _write_offsets(path, made)
            if made:
                tell_undo(env, path, ["group", "import", group])
            else:
                path.unlink()


def _write_offsets(path: Path, changes: Sequence[Change]) -> None:
    """Write offsets as JSON lines, with null where there is none."""
    lines = [
        json.dumps(
            {
                "group": one.group,
                "topic": one.partition.topic,
                "partition": one.partition.name,
                "offset": one.current_offset,
            }
        )
        for one in changes
    ]
    write_atomically(path, "".join(f"{line}\n" for line in lines).encode())


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


def _read_entries(env: Environment, file: str) -> list[OffsetRecord]:
    """Return the offsets of a file, `-` for standard input."""
    try:
        if file == "-":
            stdin = env.streams.stdin
            return parse_entries("" if stdin is None else stdin.read().decode(), "stdin")
        return parse_entries(Path(file).read_text(encoding="utf-8"), file)
    except UnicodeDecodeError as error:
        raise UsageError(f"'{file}' is not UTF-8 text") from error


def _find_target(env: Environment, observer: GroupObserver, text: str) -> Target:
    """Parse `--to`: an offset expression, or `shift:`, `by:`, `group:` or `file:` and a value."""
    kind, colon, rest = text.partition(":")
    if colon and kind == "shift":
        return group_plans.parse_shift(rest)
    if colon and kind == "by":
        return group_plans.parse_shift_time(rest)
    if colon and kind == "file":
        return _read_entries(env, rest)
    if colon and kind == "group":
        require_group(observer.session, rest)
        return observer.snapshot(rest)
    spec = parse_spec(text, now_ms=env.clock.time_ms())
    return lambda partition: spec.range_for(partition).start


def _plan_reset(
    observer: GroupObserver,
    snapshot: GroupSnapshot,
    target: Target,
    options: ResetOptions,
) -> list[Change]:
    """Plan the changes of a group's offsets in existing topics, or in all topics of the group."""
    if options.topics:
        cluster = observer.cluster
        topics = select_topics(cluster, options.topics)
        live = select_partitions(cluster, topics, options.partition)
        return group_plans.plan_reset(observer, snapshot, target, live)
    if not snapshot.topics:
        raise CliError(
            ExitStatus.NOT_FOUND, f"group '{snapshot.name}' has no topics", "name one with --topic"
        )
    return group_plans.plan_reset(observer, snapshot, target)


def _by_group(entries: Iterable[OffsetRecord], group: str | None) -> dict[str, list[OffsetRecord]]:
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
