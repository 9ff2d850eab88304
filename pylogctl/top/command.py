"""`pylogctl top`: its options."""

from __future__ import annotations

from typing import Literal

from pylogctl.cli import options as shared
from pylogctl.cli.declarations import option
from pylogctl.cli.environment import Environment, UsageError

app = shared.App()

_View = Literal["overview", "brokers", "topics", "groups", "replication", "requests"]


@app.command(shared.OUTPUT + shared.CONNECTION)
def top(
    env: Environment,
    view: _View = option("--view", "What to show first.", default="overview"),
    into: str | None = option(
        "--into NAME", "Go into this row: a topic, a group, a broker, or a request."
    ),
    filter: str | None = option(
        "--filter TEXT", "Rows with this in a name; ~RE: that a regex finds."
    ),
    interval: float = option(
        "--interval DUR", "Time between two looks, 500ms to 60s.", default="2s"
    ),
    batch: int | None = option("--batch N", "Write N looks without escape codes, and end.", min=1),
) -> None:
    """Watch a cluster live.

    Brokers, topics, consumer groups, replication and requests, with rates. On a terminal keys
    choose what is shown, see `?` there; elsewhere one look is written as text, or those of --batch.
    Brokers are asked once an interval. Rates are differences between two looks. Groups need
    ZooKeeper, and are read each 5 seconds.

    $ pylogctl top
    $ pylogctl top --view groups --filter billing
    $ pylogctl top --view topics --into orders
    $ pylogctl top --view topics --sort=-bytes_in --batch 1
    $ pylogctl top --batch 10 --interval 1s --output json | jq '.data[].bytes_in'
    """
    from pylogctl.top.run import run
    from pylogctl.top.views import VIEWS, ViewPlace, compile_filter

    if not 0.5 <= interval <= 60:
        raise UsageError("--interval must be between 500ms and 60s")
    if filter:
        compile_filter(filter)
    places = [ViewPlace(view, sort=VIEWS[view].sort, selected=into or "")]
    if into is not None:
        drill = VIEWS[view].drill
        if not drill:
            raise UsageError(f"--into has nothing to go into in --view {view}")
        places.append(ViewPlace(drill, into, VIEWS[drill].sort))
    places[-1] = places[-1]._replace(filter=filter or "")
    run(env, places, interval_s=interval, look_count=batch)
