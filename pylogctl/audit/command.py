"""`pylogctl audit`: the options of its commands."""

from __future__ import annotations

from pylogctl.audit.options import CountOptions, Judging
from pylogctl.cli import options as shared
from pylogctl.cli.declarations import argument, limits, outputs, selection
from pylogctl.cli.environment import Environment, ExitStatus, UsageError

app = shared.App()

_READS = (ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.CORRUPT)


@app.command(shared.OUTPUT + shared.CONNECTION + shared.PROGRESS, exits=_READS)
def show(env: Environment, options: CountOptions) -> None:
    """Show how many messages each tier has counted, by topic and time window.

    $ pylogctl audit show audit
    $ pylogctl audit show audit -o @-1d --include orders --tier producer --output csv
    """
    from pylogctl.audit.run import show_counts

    show_counts(env, options)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS, exits=(*_READS, ExitStatus.THRESHOLD)
)
def check(
    env: Environment,
    *,
    options: CountOptions,
    count: bool = selection.flag(
        "--count", "Count the messages on the brokers, by reading them, as tier 'log'."
    ),
    time_field: str | None = selection.option(
        "--time-field PATH",
        "With --count: field of JSON messages that has their time, such as .meta.ts; envelope: "
        "the time in their envelopes. Default: compare totals.",
    ),
    comparison: Judging,
) -> None:
    """Compare the counts of tiers with the counts of the producers.

    Without --all only windows are shown whose counts differ. A window is judged once a grace time
    after its end has passed.

    $ pylogctl audit check audit --fail-above 0
    $ pylogctl audit check audit --tier mirror --grace 15m --all
    $ pylogctl audit check audit --count --time-field .ts -o @-1d
    """
    from pylogctl.audit.run import check_counts

    if time_field is not None and not count:
        raise UsageError("--time-field says how --count finds windows, which is not given")
    check_counts(env, options, comparison, counts_log=count, time_field=time_field)


@app.command(
    shared.OUTPUT + shared.CONNECTION + shared.PROGRESS, exits=(*_READS, ExitStatus.THRESHOLD)
)
def gaps(
    env: Environment,
    *,
    topics: list[str] = argument("TOPIC...", "Topics to read.", default=...),
    offset: list[str] | None = shared.offset_option(
        "Messages to read, START or START:END. Default: start:end."
    ),
    fail_above: int | None = limits.option(
        "--fail-above N", "Status 12 if more messages than this are missing or repeated.", min=0
    ),
    shows_all: bool = outputs.flag("--all", "Show producers without gaps and repeats, too."),
) -> None:
    """Find messages that are missing or repeated, by the sequences in their envelopes.

    Each producer numbers its messages to a topic; those that were never sent, and messages on their
    way, are missing as well.

    $ pylogctl audit gaps orders --fail-above 0
    $ pylogctl audit gaps orders web -o @-1d --all
    """
    from pylogctl.audit.gaps import find_gaps

    find_gaps(env, topics, offset or (), fail_above=fail_above, shows_all=shows_all)
