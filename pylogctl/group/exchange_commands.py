"""The commands of `pylogctl group` that carry offsets from place to place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from pylogctl.cli.context import Environment
from pylogctl.cli.errors import CliError, ExitStatus
from pylogctl.cli.options import CONFIRM, DRY_RUN, OUTPUT, REGISTRY, TIMEOUT, accepts
from pylogctl.cli.render import render
from pylogctl.group.change_commands import (
    CHANGES,
    Execute,
    Force,
    WaitInactive,
    carry_out,
    wait_for_nobody,
)
from pylogctl.group.read_commands import READS

if TYPE_CHECKING:
    from pylogctl.group.snapshot import GroupSnapshot

ExportFormat = Literal["jsonl", "csv", "zk07", "table", "json", "tsv", "plain", "markdown", "name"]
_OUTPUT_BUT_FORMAT = OUTPUT[1:]


@accepts(
    *_OUTPUT_BUT_FORMAT,
    *REGISTRY,
    *TIMEOUT,
    exits=READS,
    examples=(
        "pylogctl group export billing > offsets.jsonl",
        "pylogctl group export --output zk07 > offsets.txt",
    ),
)
def export(
    env: Environment,
    groups: Annotated[
        list[str] | None,
        typer.Argument(metavar="[GROUP...]", help="Groups. Default: all.", show_default=False),
    ] = None,
    output: Annotated[
        ExportFormat,
        typer.Option(
            "--output",
            metavar="FMT",
            envvar="PYLOGCTL_OUTPUT",
            rich_help_panel="Output",
            help="Format; zk07 is the one of Kafka 0.7's export tool.",
        ),
    ] = "jsonl",
) -> None:
    """Write the offsets of groups to stdout, in a form that `group import` reads."""
    from pylogctl.group.access import open_observer, warn_of_offsets
    from pylogctl.group.document import EXPORT, export_record
    from pylogctl.group.offsets_file import zk07_line
    from pylogctl.group.snapshot import list_groups

    with open_observer(env, *(groups or ())) as observer:
        names = list(dict.fromkeys(groups or list_groups(observer.registry.session)))
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
    env = replace(env, settings=replace(env.settings, output=output))
    good = [one for one in offsets if one[2].offset is not None]
    render(env, EXPORT, [export_record(*one) for one in good])
    if len(good) < len(offsets):
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(offsets) - len(good)} of {len(offsets)} offsets are no numbers; left out",
            hints=["--output zk07 writes them as they are"],
        )


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *CONFIRM,
    *DRY_RUN,
    exits=CHANGES,
    examples=(
        "pylogctl group import --file offsets.txt",
        "pylogctl group import billing --file offsets.jsonl --execute",
    ),
)
def import_offsets(
    env: Environment,
    file: Annotated[
        str,
        typer.Option(
            "--file", metavar="FILE", help="Offsets to read; - for stdin.", show_default=False
        ),
    ],
    group: Annotated[
        str | None,
        typer.Argument(metavar="[GROUP]", help="Group, if the file is to be for another one."),
    ] = None,
    execute: Execute = False,
    force: Force = False,
    wait_inactive: WaitInactive = None,
) -> None:
    """Give groups the offsets of a file; shows the plan only, unless --execute is given.

    Reads what `group export` writes, a plan saved from `group reset --output json`, and lines of
    TOPIC PARTITION OFFSET. Groups that do not exist are made. A broken line is named by its
    number, and then nothing is changed.
    """
    from pylogctl.cli.selection import validate_group_name
    from pylogctl.group.access import open_observer
    from pylogctl.group.plan import by_group, plan_import, read_entries

    entries = by_group(read_entries(env, file), group)
    if not entries:
        env.note(f"'{file}' has no offsets; nothing to change")
    for name in entries:
        validate_group_name(name)
    with open_observer(env) as observer:
        wait_for_nobody(env, observer.registry.session, list(entries), wait_inactive)
        changes = [
            change
            for name, wanted in entries.items()
            for change in plan_import(observer, observer.snapshot(name), wanted)
        ]
        carry_out(
            env, "group import", observer.registry.session, changes, execute=execute, force=force
        )


@accepts(
    *OUTPUT,
    *REGISTRY,
    *TIMEOUT,
    *DRY_RUN,
    exits=CHANGES,
    examples=("pylogctl group clone billing billing-test",),
)
def clone(
    env: Environment,
    source: Annotated[str, typer.Argument(metavar="GROUP", help="Group to copy.")],
    target: Annotated[str, typer.Argument(metavar="NEW", help="Group to make.")],
) -> None:
    """Make a group with the offsets of another one.

    The new group must not have offsets or members yet.
    """
    from pylogctl.cli.selection import validate_group_name
    from pylogctl.group.access import open_observer, warn_of_offsets
    from pylogctl.group.changes import apply, check_inactive, conflict, copies
    from pylogctl.group.document import RESET, change_record

    validate_group_name(target)
    with open_observer(env, source) as observer:
        snapshot = observer.snapshot(source)
        warn_of_offsets(env, snapshot)
        check_inactive(observer.registry.session, target, advice="give another name")
        _check_without_offsets(observer.snapshot(target), source)
        changes = copies(snapshot, target)
        if env.settings.dry_run:
            env.note("nothing changed; this was a dry run")
        elif unwritten := apply(observer.registry.session, changes):
            raise conflict(unwritten)
    render(env, RESET, [change_record(one) for one in changes])
    if len(changes) < len(snapshot.offsets):
        raise CliError(
            ExitStatus.PARTIAL,
            f"{len(snapshot.offsets) - len(changes)} of {len(snapshot.offsets)} offsets are no "
            "numbers; not copied",
            hints=[f"try: pylogctl group describe {source}"],
        )


def _check_without_offsets(target: GroupSnapshot, source: str) -> None:
    if target.offsets:
        raise CliError(
            ExitStatus.CONFLICT,
            f"group '{target.name}' exists already and has {len(target.offsets)} offsets",
            hints=[f"try: pylogctl group reset {target.name} --all-topics --to group:{source}"],
            code="GROUP_EXISTS",
        )
