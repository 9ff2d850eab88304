"""The commands of `pylogctl group` that move, delete and rebalance groups.

Every change of offsets goes through `carry_out`: shown or asked for, checked, saved, written.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from pylogctl.cli.confirmation import confirm, confirm_name
from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus, UsageError
from pylogctl.cli.options import CONFIRM, DRY_RUN, OUTPUT, REGISTRY, TIMEOUT, accepts
from pylogctl.cli.progress import announced_wait
from pylogctl.cli.render import render
from pylogctl.cli.units import parse_duration_s
from pylogctl.group.read_commands import READS, GroupArgument

if TYPE_CHECKING:
    from broker.zk.session import Session
    from pylogctl.group.plan import Change
    from pylogctl.group.rebalance import Problem
    from pylogctl.group.snapshot import GroupSnapshot

CHANGES = (*READS, ExitStatus.CONFLICT, ExitStatus.DECLINED)
Execute = Annotated[
    bool,
    typer.Option(
        "--execute", help="Do it; without this only the plan is shown.", rich_help_panel="Safety"
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Do it although the group has members; they may write over it.",
        rich_help_panel="Safety",
    ),
]
WaitInactive = Annotated[
    str | None,
    typer.Option(
        "--wait-inactive",
        metavar="DUR",
        help="Wait for the group to have no members; exit 7 if it still has.",
        rich_help_panel="Safety",
    ),
]


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *CONFIRM,
    *DRY_RUN,
    exits=CHANGES,
    examples=(
        "pylogctl group reset billing --topic orders --to @-1h",
        "pylogctl group reset billing --topic orders --to @2026-11-20T08:00 --execute -y",
        "pylogctl group reset billing --all-topics --to shift:-100 --execute",
    ),
)
def reset(
    env: Environment,
    group: GroupArgument,
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="SPEC",
            help="Where to: an offset expression, or shift:+N, shift:-SIZE, by:-1h, group:OTHER, "
            "file:PATH.",
            show_default=False,
        ),
    ],
    topics: Annotated[
        list[str] | None,
        typer.Option(
            "-t",
            "--topic",
            metavar="TOPIC",
            help="Topic to reset (repeatable).",
            rich_help_panel="Selection",
        ),
    ] = None,
    all_topics: Annotated[
        bool,
        typer.Option(
            "--all-topics",
            help="Reset all topics that the group reads or has read.",
            rich_help_panel="Selection",
        ),
    ] = False,
    partition: Annotated[
        str | None,
        typer.Option(
            "-p",
            "--partition",
            metavar="LIST",
            help="Partitions: 0, 2-0, *-0, 0,1 or 0..3. Default: all.",
            rich_help_panel="Selection",
        ),
    ] = None,
    execute: Execute = False,
    force: Force = False,
    wait_inactive: WaitInactive = None,
) -> None:
    """Move a group to other offsets; shows the plan only, unless --execute is given.

    New offsets lie in the log and on a message boundary; what is not is moved there, back rather
    than on. A group with members is refused, as they would write over it.
    """
    from pylogctl.cli.selection import parse_partition_list
    from pylogctl.group.access import open_observer
    from pylogctl.group.plan import find_target, plan_reset

    if bool(topics) == all_topics:
        raise UsageError(
            "either --topic or --all-topics must say what to reset",
            hints=[f"try: pylogctl group describe {group} --by topic"],
        )
    if partition is not None and not topics:
        raise UsageError("--partition needs --topic TOPIC, not --all-topics")
    wanted = None if partition is None else parse_partition_list(partition)
    with open_observer(env, group) as observer:
        wait_for_nobody(env, observer.registry.session, [group], wait_inactive)
        target = find_target(env, observer, to)
        changes = plan_reset(
            observer, observer.snapshot(group), target, topics=topics or (), wanted=wanted
        )
        carry_out(
            env, "group reset", observer.registry.session, changes, execute=execute, force=force
        )


def wait_for_nobody(
    env: Environment, session: Session, groups: Sequence[str], wait_inactive: str | None
) -> None:
    """Wait for groups to have no members, if `--wait-inactive` says so.

    Raises:
        CliError: one of them still has when its time is up.
    """
    from pylogctl.group.changes import await_inactive

    if wait_inactive is not None:
        timeout_s = parse_duration_s(wait_inactive)
        for group in groups:
            with announced_wait(env, f"group '{group}' to have no members"):
                await_inactive(session, group, timeout_s=timeout_s)


def carry_out(
    env: Environment,
    command: str,
    session: Session,
    changes: Sequence[Change],
    *,
    execute: bool,
    force: bool,
) -> None:
    """Show a plan, or carry it out: ask, save the old offsets, write the new ones.

    Args:
        env: whom to ask, and where to write.
        command: such as `group reset`, for the question.
        session: started.
        changes: the plan, of one or more groups.
        execute: carry it out.
        force: do so even where groups have members.

    Raises:
        CliError: a group has members, the answer was no, an offset was changed meanwhile, or some
            of the plan cannot be fulfilled.
    """
    from pylogctl.group.access import counted
    from pylogctl.group.changes import check_inactive
    from pylogctl.group.document import RESET, RESET_OF_GROUPS, change_record

    groups = list(dict.fromkeys(one.group for one in changes))
    document = RESET if len(groups) < 2 else RESET_OF_GROUPS
    records = [change_record(one) for one in changes]
    executes = execute and not env.settings.dry_run
    if not executes:
        render(env, document, records)
    if not force:
        for group in groups:
            check_inactive(session, group, advice="stop them or use --wait-inactive")
    needed = [one for one in changes if one.is_needed]
    if not executes:
        advice = "this was a dry run" if execute else "add --execute"
        env.note(f"nothing changed; {advice}" if needed else "nothing to change")
        _check_possible(changes)
        return
    if needed:
        names = " and ".join(f"'{name}'" for name in groups)
        confirm(env, command, f"change {counted(len(needed), 'offset')} of group {names}?")
        _write(env, session, needed, force=force)
    else:
        env.note("nothing to change")
    render(env, document, records)
    _check_possible(changes)


def _check_possible(changes: Sequence[Change]) -> None:
    """Check that everything could be done.

    Raises:
        CliError: some offsets stay, against the wish.
    """
    failed = [one for one in changes if one.fails]
    if failed:
        first = failed[0]
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(failed)} of {len(changes)} offsets cannot be changed",
            hints=[f"{first.partition}: {'; '.join(first.notes)}"],
        )


def _write(env: Environment, session: Session, changes: Sequence[Change], *, force: bool) -> None:
    """Write offsets, the old ones being saved before.

    Raises:
        CliError: somebody else has changed one of them meanwhile.
    """
    from pylogctl.group.access import counted
    from pylogctl.group.changes import apply, check_inactive, conflict

    groups = list(dict.fromkeys(one.group for one in changes))
    if not force:
        # The answer to the question may have taken a while.
        for group in groups:
            check_inactive(session, group, advice="nothing changed")
    for group in groups:
        save(env, [one for one in changes if one.group == group])
    unwritten = apply(session, changes, force=force)
    env.note(f"{counted(len(changes) - len(unwritten), 'offset')} changed")
    if unwritten:
        raise conflict(unwritten)
    if force:
        env.warn("members of the group may write over the new offsets")


def save(env: Environment, changes: Sequence[Change]) -> None:
    """Save the offsets that changes are about to replace, and tell how to bring them back."""
    from pylogctl.group.changes import save_offsets

    path = save_offsets(env.state_dir / "undo", changes, time_ms=env.clock.time_ms())
    words = ["pylogctl", "group", "import", changes[0].group, "--file", str(path), "--execute"]
    if env.settings.zookeeper:
        words += ["--zookeeper", env.settings.zookeeper]
    env.note(f"undo: {shlex.join(words)}")


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *CONFIRM,
    *DRY_RUN,
    exits=CHANGES,
    examples=(
        "pylogctl group delete billing-test",
        "pylogctl group delete billing-test --yes --confirm billing-test",
    ),
)
def delete(
    env: Environment,
    group: GroupArgument,
    confirmed: Annotated[
        str | None,
        typer.Option(
            "--confirm",
            metavar="NAME",
            help="The group's name again; with --yes nothing is asked.",
            rich_help_panel="Safety",
        ),
    ] = None,
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Without such a group: exit 0.")
    ] = False,
) -> None:
    """Delete a group: its offsets and all its nodes. A group with members is refused.

    The offsets are saved first, and the command that brings them back is shown.
    """
    from pylogctl.cli.selection import validate_group_name
    from pylogctl.group.access import open_observer
    from pylogctl.group.changes import check_inactive, delete_group, nodes_of, removals
    from pylogctl.group.document import NODES
    from pylogctl.group.snapshot import list_groups, require_group

    validate_group_name(group)
    with open_observer(env) as observer:
        session = observer.registry.session
        if if_exists and group not in list_groups(session):
            env.note(f"there is no group '{group}'")
            return
        require_group(session, group)
        check_inactive(session, group, advice="stop them first")
        nodes = nodes_of(session, group)
        if not env.settings.dry_run:
            confirm_name(env, "group delete", group, confirmed)
            changes = removals(observer.snapshot(group))
            if changes:
                save(env, changes)
            delete_group(session, group)
    action = "delete" if env.settings.dry_run else "deleted"
    render(env, NODES, [{"group": group, "path": path, "action": action} for path in nodes])
    if env.settings.dry_run:
        env.note("nothing changed; this was a dry run")


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *CONFIRM,
    *DRY_RUN,
    exits=(*READS, ExitStatus.DECLINED),
    examples=("pylogctl group rebalance billing", "pylogctl group rebalance billing -y --wait 1m"),
)
def rebalance(
    env: Environment,
    group: GroupArgument,
    wait: Annotated[
        str,
        typer.Option("--wait", metavar="DUR", help="How long to wait until it is settled."),
    ] = "30s",
) -> None:
    """Have all members of a group divide the partitions again, and wait until they have.

    Shows the owner of each partition before and after. The exit status is 7 if partitions still
    have no live owner when the time is up.
    """
    from pylogctl.group.access import counted, open_observer
    from pylogctl.group.document import REBALANCE, rebalance_record
    from pylogctl.group.rebalance import await_settled, expected_owners, look, touch

    timeout_s = parse_duration_s(wait)
    problems: Sequence[Problem] = ()
    with open_observer(env, group) as observer:
        before, there = look(observer, group)
        _check_has_members(before)
        if env.settings.dry_run:
            after = expected_owners(before, there)
            env.note("nothing changed; this was a dry run")
        else:
            who = counted(len(before.members), "member")
            confirm(env, "group rebalance", f"have {who} of '{group}' rebalance?")
            touch(observer.registry.session, group)
            with announced_wait(env, f"group '{group}' to settle"):
                settled = await_settled(lambda: look(observer, group), timeout_s=timeout_s)
            problems = settled.problems
            after = settled.snapshot.owner_threads
    old = before.owner_threads
    partitions = sorted({*old, *after, *(one.partition for one in problems if one.partition)})
    render(
        env,
        REBALANCE,
        [rebalance_record(group, one, old.get(one), after.get(one)) for one in partitions],
    )
    _check_settled(group, wait, problems)


def _check_has_members(snapshot: GroupSnapshot) -> None:
    if not snapshot.members:
        raise CliError(
            ExitStatus.NOT_FOUND,
            f"group '{snapshot.name}' has no members that could rebalance",
            hints=[f"start one, such as: pylogctl consume --group {snapshot.name}"],
            code="GROUP_EMPTY",
        )


def _check_settled(group: str, wait: str, problems: Sequence[Problem]) -> None:
    from pylogctl.group.access import counted

    if problems:
        first = problems[0]
        raise CliError(
            ExitStatus.TIMEOUT,
            f"group '{group}' has not settled within {wait}: {counted(len(problems), 'problem')}",
            hints=[
                f"{first.partition or first.owner}: {first.detail}",
                f"try: pylogctl group verify {group}",
            ],
            code="GROUP_UNSETTLED",
        )
