"""`pylogctl config`: the options of its commands."""

from __future__ import annotations

from typing import Annotated

from pylogctl.cli.declarations import argument, flag, option
from pylogctl.cli.environment import Environment, ExitStatus, UsageError
from pylogctl.cli.options import CHANGE, CLUSTER, CONNECTION, OUTPUT, App
from pylogctl.cli.render import render
from pylogctl.config.document import OPTIONS
from pylogctl.config.effective import option_rows

app = App()

_READS = (ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.UNSUPPORTED)
_WRITES = (*_READS, ExitStatus.CONFLICT)

_Topic = Annotated[str | None, option("-t, --topic TOPIC", "The settings of a topic.")]
_Broker = Annotated[
    str | None, option("-b, --broker ID|HOST:PORT", "Those of a broker, by its id or its address.")
]


@app.command(OUTPUT + CLUSTER + CHANGE, exits=_WRITES)
def set_(
    env: Environment,
    assignments: list[str] = argument("NAME=VALUE...", "Settings."),
    topic: _Topic = None,
    broker: _Broker = None,
    absent: bool = flag(
        "--absent", "Accept a topic that is not created yet, or a broker that is down."
    ),
) -> None:
    """Set settings of a topic or a broker, for good, and wait until brokers apply them.

    They are stored in ZooKeeper, and go over those of the brokers' files. Nothing is changed if a
    name is unknown, a value is out of range, or a setting of a broker needs a restart.

    $ pylogctl config set --topic orders retention.ms=86400000 flush.messages=1
    $ pylogctl config set --topic orders log.retention.hours=24
    $ pylogctl config set --broker 0 log.flush.interval.messages=500
    """
    from pylogctl.config.changes import set_settings

    set_settings(env, topic, broker, assignments, may_be_absent=absent)


@app.command(OUTPUT + CLUSTER + CHANGE, exits=_WRITES)
def unset(
    env: Environment,
    names: list[str] | None = argument("[NAME...]", "Settings.", default=None),
    topic: _Topic = None,
    broker: _Broker = None,
    everything: bool = flag("--all", "All settings; also repairs a damaged node."),
) -> None:
    """Remove settings of a topic or a broker; those of the brokers' files hold again.

    $ pylogctl config unset --topic orders retention.ms
    $ pylogctl config unset --broker 0 --all
    """
    from pylogctl.config.changes import unset_settings

    if everything == bool(names):
        raise UsageError("name the settings to remove, or give --all")
    unset_settings(env, topic, broker, names or [])


@app.command(OUTPUT + CLUSTER, exits=_READS)
def list_(env: Environment, topic: _Topic = None, broker: _Broker = None) -> None:
    """List the settings in ZooKeeper, or all that are in effect for a topic or on a broker.

    The origin of a value is `topic` or `broker` if it was set in ZooKeeper, `start` if it comes
    from the broker's properties file or an option of its start, else `default`.

    $ pylogctl config list
    $ pylogctl config list --topic orders
    $ pylogctl config list --broker 0 --columns setting,value,origin,change,doc
    """
    from pylogctl.config.reads import list_settings

    list_settings(env, topic, broker)


@app.command(OUTPUT + CONNECTION, exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND))
def show(
    env: Environment, origin: bool = flag("--origin", "Say where each value comes from.")
) -> None:
    """Show which cluster commands use here, and other options that files and variables set.

    $ pylogctl config show --origin
    $ pylogctl config show --context prod --origin
    """
    render(env, OPTIONS.showing("origin") if origin else OPTIONS, option_rows(env))


@app.command(OUTPUT + CLUSTER, exits=_READS)
def diff(env: Environment, topic: _Topic = None, broker: _Broker = None) -> None:
    """Show settings that differ: between brokers, from a broker's file, from the defaults.

    Without --topic and --broker: those that differ between the live brokers.

    $ pylogctl config diff
    $ pylogctl config diff --topic orders
    $ pylogctl config diff --broker 0
    """
    from pylogctl.config.reads import compare_settings

    compare_settings(env, topic, broker)
