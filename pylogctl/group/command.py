"""`pylogctl group`: the options of its commands."""

from __future__ import annotations

from typing import Annotated, Literal

from broker.units import parse_duration_s
from pylogctl.cli import options as shared
from pylogctl.cli.declarations import argument, flag, option, outputs, selection
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.group.options import DescribeOptions, ImportOptions, LagOptions, ResetOptions

app = shared.App()

_READS = (ExitStatus.NOT_FOUND, ExitStatus.PARTIAL)
_CHANGES = (*_READS, ExitStatus.CONFLICT)
_READ_OPTIONS = (*shared.OUTPUT, *shared.REGISTRY, *shared.SECURITY, *shared.TIMEOUT)
_CHANGE_OPTIONS = (*_READ_OPTIONS, *shared.CONFIRM, *shared.DRY_RUN)

_Group = Annotated[str, argument("GROUP", "Name of the group.")]
_ExportFormat = Literal["jsonl", "csv", "zk07", "table", "json", "tsv", "plain", "markdown", "name"]


@app.command(_READ_OPTIONS, name="list", exits=(ExitStatus.PARTIAL,))
def list_groups(
    env: Environment,
    state: Literal["active", "empty", "dead"] | None = selection.option(
        "--state", "Only groups with members, with offsets only, or with neither."
    ),
) -> None:
    """List groups with their state and lag.

    A broker that does not respond leaves gaps and makes the exit status 6.

    $ pylogctl group list
    $ pylogctl group list --state active --output name
    """
    from pylogctl.group import reads

    reads.list_groups(env, state)


@app.command(_READ_OPTIONS + shared.PROGRESS, exits=(*_READS, ExitStatus.CORRUPT))
def describe(env: Environment, group: _Group, options: DescribeOptions) -> None:
    """Show the owners, offsets, lag and rate of a group; the last line is the total.

    Partitions without an owner and members without a partition are shown as well. RATE and ETA
    are shown with --window.

    $ pylogctl group describe billing
    $ pylogctl group describe billing --by member
    $ pylogctl group describe billing --window 10s --count --output json
    """
    from pylogctl.group import reads

    reads.describe(env, group, options)


@app.command(
    _READ_OPTIONS + shared.PROGRESS, exits=(*_READS, ExitStatus.CORRUPT, ExitStatus.THRESHOLD)
)
def lag(env: Environment, group: _Group, options: LagOptions) -> None:
    """Show how far a group is behind, and judge each partition.

    The status is judged by history: with --window the group is observed for so long. Without one a
    partition is OK or just has LAG, and AGE, RATE and ETA are not shown. A lag of up to 16 MiB is
    counted in messages too, more of it with --count.

    $ pylogctl group lag billing
    $ pylogctl group lag billing --fail-above 64MiB || page-someone
    $ pylogctl group lag billing --window 60s --allowed-lag 64KiB
    """
    from pylogctl.group import reads

    reads.show_lag(env, group, options)


@app.command(_READ_OPTIONS, exits=_READS)
def members(env: Environment, group: _Group) -> None:
    """Show the members of a group: subscription, time of joining, assigned partitions.

    $ pylogctl group members billing
    """
    from pylogctl.group import reads

    reads.show_members(env, group)


@app.command(_READ_OPTIONS, exits=(*_READS, ExitStatus.CORRUPT))
def verify(env: Environment, group: _Group) -> None:
    """Check that every partition has one live owner, and that no owner node is stale.

    Problems are written to stdout, and make the exit status 8.

    $ pylogctl group verify billing
    """
    from pylogctl.group import reads

    reads.verify(env, group)


@app.command(shared.CLUSTER, exits=_READS)
def watch(
    env: Environment,
    group: _Group,
    interval: str = option("--interval DUR", "Time between two samples.", default="2s"),
    count: int | None = option("--count N", "Stop after so many samples.", min=1),
) -> None:
    """Show the lag of a group repeatedly, until interrupted.

    Rates and status are of the last 60 seconds. On a terminal it fills the screen; in a pipe each
    sample is a JSON object on one line.

    $ pylogctl group watch billing
    $ pylogctl group watch billing --count 3 | jq .lag_bytes
    """
    from pylogctl.group import reads

    interval_s = parse_duration_s(interval)
    if interval_s <= 0:
        raise UsageError(f"--interval must be above zero: '{interval}'")
    reads.watch(env, group, interval_s=interval_s, sample_count=count)


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def reset(env: Environment, group: _Group, options: ResetOptions) -> None:
    """Move a group to other offsets; shows the plan only, unless --execute is given.

    A new offset that is not in the log or not on a message boundary is moved to a valid one, back
    rather than forward. A group with members is refused, as they would write over it.

    $ pylogctl group reset billing --topic orders --to @-1h
    $ pylogctl group reset billing --topic orders --to @2026-11-20T08:00 --execute -y
    $ pylogctl group reset billing --all-topics --to shift:-100 --execute
    """
    from pylogctl.group import changes

    if bool(options.topics) == options.all_topics:
        raise UsageError(
            "either --topic or --all-topics must say what to reset",
            f"try: pylogctl group describe {group} --by topic",
        )
    if options.partition is not None and not options.topics:
        raise UsageError("--partition needs --topic TOPIC, not --all-topics")
    changes.reset(env, group, options)


@app.command(shared.OUTPUT[1:] + shared.CLUSTER, exits=_READS)
def export(
    env: Environment,
    groups: list[str] | None = argument("[GROUP...]", "Groups. Default: all.", default=None),
    output: _ExportFormat = outputs.option(
        "--output FMT",
        "Format; zk07 is the one of Kafka 0.7's export tool.",
        envvar="PYLOGCTL_OUTPUT",
        default="jsonl",
    ),
) -> None:
    """Write the offsets of groups to stdout, in a form that `group import` reads.

    $ pylogctl group export billing > offsets.jsonl
    $ pylogctl group export --output zk07 > offsets.txt
    """
    from pylogctl.group import reads

    reads.export(env, groups or [], output)


@app.command(_CHANGE_OPTIONS, name="import", exits=_CHANGES)
def import_offsets(env: Environment, options: ImportOptions) -> None:
    """Set the offsets of groups from a file; shows the plan only, unless --execute is given.

    Reads the output of `group export`, a plan saved from `group reset --output json`, and lines of
    TOPIC PARTITION OFFSET. Groups that do not exist are created. If a line is malformed, its
    number is printed and nothing is changed.

    $ pylogctl group import --file offsets.txt
    $ pylogctl group import billing --file offsets.jsonl --execute
    $ pylogctl group export billing | pylogctl group import billing-test --file - --execute -y
    """
    from pylogctl.group import changes

    changes.import_offsets(env, options)


@app.command(_CHANGE_OPTIONS, exits=_CHANGES)
def delete(
    env: Environment,
    group: _Group,
    confirmed: str | None = shared.confirm_option(
        "The group's name again; with --yes nothing is asked."
    ),
    if_exists: bool = flag("--if-exists", "A group that does not exist is no error: exit 0."),
) -> None:
    """Delete a group: its offsets and all its nodes. A group with members is refused.

    The offsets are saved first, and the command that restores them is shown.

    $ pylogctl group delete billing-test
    $ pylogctl group delete billing-test --yes --confirm billing-test
    """
    from pylogctl.group import changes

    changes.delete(env, group, confirmed=confirmed, if_exists=if_exists)


@app.command(_CHANGE_OPTIONS, exits=_READS)
def rebalance(
    env: Environment,
    group: _Group,
    wait: str = option("--wait DUR", "How long to wait for the rebalance to end.", default="30s"),
) -> None:
    """Make all members of a group rebalance, and wait until they have.

    Shows the owner of each partition before and after. The exit status is 7 if partitions still
    have no live owner when the time is up.

    $ pylogctl group rebalance billing
    $ pylogctl group rebalance billing -y --wait 1m
    """
    from pylogctl.group import changes

    changes.rebalance(env, group, wait=wait, timeout_s=parse_duration_s(wait))
