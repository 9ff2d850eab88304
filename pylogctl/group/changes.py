"""The work of the commands of `pylogctl group` that change groups in ZooKeeper.

Nothing is written to a group that has members unless forced, as members commit their own offsets
over it. Old offsets are saved before they are replaced.
"""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime

from broker.errors import CoordinationError, RegistryNodeNotFoundError, RegistryUnreachableError
from broker.partition_patterns import PartitionList
from broker.topic import TopicPartition
from broker.units import counted
from broker.zk import paths
from broker.zk.session import Session
from broker.zk.values import encode_number
from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.render import render
from pylogctl.cli.selection import validate_group_name
from pylogctl.group.document import (
    NODES,
    REBALANCE,
    RESET,
    RESET_OF_GROUPS,
    NodeRow,
    RebalanceRow,
    change_row,
)
from pylogctl.group.lag import open_observer
from pylogctl.group.plan import (
    Change,
    by_group,
    find_target,
    plan_import,
    plan_reset,
    read_entries,
)
from pylogctl.group.reads import warn_of_offsets
from pylogctl.group.rebalance import (
    GroupProblem,
    LivePartitions,
    await_rebalance,
    expected_owners,
    trigger_rebalance,
)
from pylogctl.group.snapshot import GroupSnapshot, list_groups, read_members, require_group

_POLL_S = 0.1
_NAMED_MEMBERS = 5
_DRY_RUN = "nothing changed; this was a dry run"


def reset(
    env: Environment,
    group: str,
    to: str,
    *,
    topics: Sequence[str],
    wanted: PartitionList | None,
    execute: bool,
    force: bool,
    wait_s: float | None,
) -> None:
    """Move offsets of a group to `to`; only render the plan without `execute`."""
    with open_observer(env, group) as observer:
        _await_inactive(env, observer.session, [group], wait_s)
        target = find_target(env, observer, to)
        changes = plan_reset(
            observer, observer.snapshot(group), target, topics=topics, wanted=wanted
        )
        _carry_out(env, "group reset", observer.session, changes, execute=execute, force=force)


def import_offsets(
    env: Environment,
    file: str,
    group: str | None,
    *,
    execute: bool,
    force: bool,
    wait_s: float | None,
) -> None:
    """Set the offsets of groups to those of a file; see `reset`."""
    entries = by_group(read_entries(env, file), group)
    if not entries:
        env.note(f"'{file}' has no offsets; nothing to change")
    for name in entries:
        validate_group_name(name)
    with open_observer(env) as observer:
        _await_inactive(env, observer.session, list(entries), wait_s)
        changes = [
            change
            for name, wanted in entries.items()
            for change in plan_import(observer, observer.snapshot(name), wanted)
        ]
        _carry_out(env, "group import", observer.session, changes, execute=execute, force=force)


def clone(env: Environment, source: str, target: str) -> None:
    """Create a group with the offsets of another one."""
    validate_group_name(target)
    with open_observer(env, source) as observer:
        snapshot = observer.snapshot(source)
        warn_of_offsets(env, snapshot)
        _check_inactive(observer.session, target, advice="give another name")
        existing = observer.snapshot(target).offsets
        if existing:
            raise CliError(
                ExitStatus.CONFLICT,
                f"group '{target}' exists already and has {len(existing)} offsets",
                hints=[f"try: pylogctl group reset {target} --all-topics --to group:{source}"],
                code="GROUP_EXISTS",
            )
        changes = [
            Change(target, partition, None, stored.offset)
            for partition, stored in snapshot.offsets.items()
            if stored.offset is not None
        ]
        if env.settings.dry_run:
            env.note(_DRY_RUN)
        elif unwritten := _apply(observer.session, changes):
            raise _conflict(unwritten)
    render(env, RESET, [change_row(one) for one in changes])
    if len(changes) < len(snapshot.offsets):
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(snapshot.offsets) - len(changes)} of {len(snapshot.offsets)} offsets "
            "cannot be used; not copied",
            hints=[f"try: pylogctl group describe {source}"],
        )


def delete(env: Environment, group: str, *, confirmed: str | None, if_exists: bool) -> None:
    """Delete all nodes of a group after its name is confirmed; its offsets are saved."""
    validate_group_name(group)
    with open_observer(env) as observer:
        session = observer.session
        if if_exists and group not in list_groups(session):
            env.note(f"there is no group '{group}'")
            return
        require_group(session, group)
        _check_inactive(session, group, advice="stop them first")
        nodes = _nodes_of(session, group)
        if not env.settings.dry_run:
            confirm_name(env, "group delete", group, confirmed)
            changes = [
                Change(group, partition, stored, None)
                for partition, stored in observer.snapshot(group).offsets.items()
            ]
            if changes:
                _save(env, changes)
            _delete_group(session, group)
    action = "delete" if env.settings.dry_run else "deleted"
    render(env, NODES, [NodeRow(group, path, action) for path in nodes])
    if env.settings.dry_run:
        env.note(_DRY_RUN)


def rebalance(env: Environment, group: str, *, wait: str, timeout_s: float) -> None:
    """Make the members of a group rebalance, and render owners before and after."""
    problems: Sequence[GroupProblem] = ()
    with open_observer(env, group) as observer:

        def read() -> tuple[GroupSnapshot, LivePartitions]:
            snapshot = observer.snapshot(group)
            return snapshot, observer.live_partitions(snapshot)

        before, live = read()
        if not before.members:
            raise CliError(
                ExitStatus.NOT_FOUND,
                f"group '{group}' has no members that could rebalance",
                hints=[f"start one, such as: pylogctl consume --group {group}"],
                code="GROUP_EMPTY",
            )
        if env.settings.dry_run:
            after = expected_owners(before, live)
            env.note(_DRY_RUN)
        else:
            members = counted(len(before.members), "member")
            confirm(env, "group rebalance", f"have {members} of '{group}' rebalance?")
            trigger_rebalance(observer.session, group)
            with announced_wait(env, f"group '{group}' to rebalance"):
                snapshot, problems = await_rebalance(read, timeout_s=timeout_s)
            after = snapshot.owner_threads
    old = before.owner_threads
    partitions: list[TopicPartition] = sorted(
        {*old, *after, *(one.partition for one in problems if one.partition)}
    )
    rows = []
    for one in partitions:
        was, now = old.get(one), after.get(one)
        rows.append(RebalanceRow(group, one.topic, one.name, was, now, was != now))
    render(env, REBALANCE, rows)
    if problems:
        first = problems[0]
        raise CliError(
            ExitStatus.TIMEOUT,
            f"group '{group}' has not rebalanced within {wait}: "
            f"{counted(len(problems), 'problem')}",
            hints=[
                f"{first.partition or first.owner}: {first.detail}",
                f"try: pylogctl group verify {group}",
            ],
            code="GROUP_UNSETTLED",
        )


def _check_inactive(session: Session, group: str, *, advice: str) -> None:
    """Raise CliError if a group has members; `advice` ends the error's sentence."""
    names = [member.consumer_id for member in read_members(session, group)]
    if names:
        raise _group_active(ExitStatus.CONFLICT, group, names, "has {}; " + advice)


def _await_inactive(
    env: Environment,
    session: Session,
    groups: Sequence[str],
    wait_s: float | None,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Wait until groups have no members, for `wait_s` each; do not wait if it is None."""
    if wait_s is None:
        return
    for group in groups:
        give_up_s = time.monotonic() + wait_s
        with announced_wait(env, f"group '{group}' to have no members"):
            while members := read_members(session, group):
                if time.monotonic() >= give_up_s:
                    names = [member.consumer_id for member in members]
                    text = f"still has {{}} after {wait_s:g}s"
                    raise _group_active(ExitStatus.TIMEOUT, group, names, text)
                sleep(_POLL_S)


def _group_active(status: ExitStatus, group: str, names: Sequence[str], text: str) -> CliError:
    more = f" and {len(names) - _NAMED_MEMBERS} more" if len(names) > _NAMED_MEMBERS else ""
    return CliError(
        status,
        f"group '{group}' {text.format(counted(len(names), 'active member'))}",
        hints=[f"members: {', '.join(names[:_NAMED_MEMBERS])}{more}"],
        code="GROUP_ACTIVE",
        details={"group": group, "members": names},
    )


def _carry_out(
    env: Environment,
    command: str,
    session: Session,
    changes: Sequence[Change],
    *,
    execute: bool,
    force: bool,
) -> None:
    """Render a plan; with `execute`, first confirm it, save the old offsets, write the new ones."""
    groups = list(dict.fromkeys(one.group for one in changes))
    document = RESET if len(groups) < 2 else RESET_OF_GROUPS
    rows = [change_row(one) for one in changes]
    executes = execute and not env.settings.dry_run
    if not executes:
        render(env, document, rows)
    if not force:
        for group in groups:
            _check_inactive(session, group, advice="stop them or use --wait-inactive")
    needed = [one for one in changes if one.is_needed]
    if not executes:
        advice = "this was a dry run" if execute else "add --execute"
        env.note(f"nothing changed; {advice}" if needed else "nothing to change")
    else:
        if needed:
            names = " and ".join(f"'{name}'" for name in groups)
            confirm(env, command, f"change {counted(len(needed), 'offset')} of group {names}?")
            _write(env, session, needed, force=force)
        else:
            env.note("nothing to change")
        render(env, document, rows)
    failed = [one for one in changes if one.fails]
    if failed:
        first = failed[0]
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(failed)} of {len(changes)} offsets cannot be changed",
            hints=[f"{first.partition}: {'; '.join(first.notes)}"],
        )


def _write(env: Environment, session: Session, changes: Sequence[Change], *, force: bool) -> None:
    groups = list(dict.fromkeys(one.group for one in changes))
    if not force:
        # Members may have joined while the question was open.
        for group in groups:
            _check_inactive(session, group, advice="nothing changed")
    for group in groups:
        _save(env, [one for one in changes if one.group == group])
    unwritten = _apply(session, changes, force=force)
    env.note(f"{counted(len(changes) - len(unwritten), 'offset')} changed")
    if unwritten:
        raise _conflict(unwritten)
    if force:
        env.warn("members of the group may write over the new offsets")


def _save(env: Environment, changes: Sequence[Change]) -> None:
    """Save the offsets of a group that changes replace; print the command that restores them."""
    directory = env.state_dir / "undo"
    directory.mkdir(parents=True, exist_ok=True)
    group, time_ms = changes[0].group, env.clock.time_ms()
    moment = datetime.fromtimestamp(time_ms / 1000, UTC)
    path = directory / f"{group}-{moment:%Y%m%dT%H%M%S}{time_ms % 1000:03d}.jsonl"
    # JSON lines, with null where there is no offset.
    lines = [
        json.dumps(
            {
                "group": group,
                "topic": one.partition.topic,
                "partition": one.partition.name,
                "offset": one.current_offset,
            }
        )
        for one in changes
        if one.is_needed and (one.current is None or one.current.offset is not None)
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    words = ["pylogctl", "group", "import", group, "--file", str(path), "--execute"]
    if env.settings.zookeeper:
        words += ["--zookeeper", env.settings.zookeeper]
    env.note(f"undo: {shlex.join(words)}")


def _apply(session: Session, changes: Iterable[Change], *, force: bool = False) -> list[Change]:
    """Write planned offsets; return those that changed since they were read and are not written."""
    needed = {paths.offset(one.group, one.partition): one for one in changes if one.is_needed}
    try:
        done = _replace(session, needed, force=force) | _create(session, needed)
        if force:
            # A node may have been created or deleted since it was read.
            left = {path: one for path, one in needed.items() if path not in done}
            done |= _create(session, left, all_changes=True)
            done |= _replace(session, left, force=True, all_changes=True)
        done |= _remove(session, needed, force=force)
    except RegistryUnreachableError as error:
        groups = list(dict.fromkeys(one.group for one in needed.values()))
        raise CliError(
            ExitStatus.UNREACHABLE,
            f"{error}; some of the {len(needed)} offsets may be changed, others not",
            hints=[f"look again: pylogctl group describe {groups[0]}", "then repeat the command"],
            code="REGISTRY_UNREACHABLE",
            details={"groups": groups},
        ) from error
    return [one for path, one in needed.items() if path not in done]


def _replace(
    session: Session, changes: dict[str, Change], *, force: bool, all_changes: bool = False
) -> set[str]:
    """Write the nodes that existed when they were read; return the paths written."""
    values = {
        path: (
            encode_number(one.new),
            -1 if force or one.current is None else one.current.version,
        )
        for path, one in changes.items()
        if one.new is not None and (one.current is not None or all_changes)
    }
    return set(session.set_many(values)) if values else set()


def _create(session: Session, changes: dict[str, Change], *, all_changes: bool = False) -> set[str]:
    """Create the nodes that did not exist when they were read; return the paths created."""
    values = {
        path: encode_number(one.new)
        for path, one in changes.items()
        if one.new is not None and (one.current is None or all_changes)
    }
    if not values:
        return set()
    return values.keys() - set(session.create_many(values, ephemeral=False))


def _remove(session: Session, changes: dict[str, Change], *, force: bool) -> set[str]:
    done = set()
    for path, one in changes.items():
        if one.new is None and one.current is not None:
            try:
                session.delete(path, version=-1 if force else one.current.version)
            except RegistryUnreachableError:
                raise
            except RegistryNodeNotFoundError:
                done.add(path)
            except CoordinationError:
                continue  # changed since it was read: reported as a conflict
            else:
                done.add(path)
    return done


def _conflict(changes: Sequence[Change]) -> CliError:
    names = ", ".join(str(one.partition) for one in changes)
    return CliError(
        ExitStatus.CONFLICT,
        f"group '{changes[0].group}': the offset of {names} was changed meanwhile; "
        f"{len(changes)} not written",
        hints=["look again, then repeat the command"],
        code="OFFSET_CHANGED",
        details={"partitions": [str(one.partition) for one in changes]},
    )


def _nodes_of(session: Session, group: str) -> list[str]:
    """Return the paths of a group's nodes in an order in which they can be deleted."""
    found = [path for _, path in session.walk(paths.group(group))][::-1]
    # `ids` comes first: if a member joins meanwhile, it cannot be deleted, and no other node is.
    ids = paths.consumer_ids(group)
    return sorted(found, key=lambda path: not (path == ids or path.startswith(f"{ids}/")))


def _delete_group(session: Session, group: str) -> None:
    advice = "stop them first"
    _check_inactive(session, group, advice=advice)
    for path in _nodes_of(session, group):
        try:
            with suppress(RegistryNodeNotFoundError):
                session.delete(path)
        except RegistryUnreachableError as error:
            raise CliError(
                ExitStatus.UNREACHABLE,
                f"{error}; group '{group}' is deleted in part",
                hints=["repeat the command to delete the rest"],
                code="REGISTRY_UNREACHABLE",
                details={"groups": [group]},
            ) from error
        except CoordinationError:
            _check_inactive(session, group, advice=advice)  # if a member has joined, say so
            raise
