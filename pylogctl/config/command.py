"""`pylogctl config`: the options of its commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from broker.units import format_duration
from pylogctl.cli.declarations import argument, flag, option
from pylogctl.cli.environment import DEFAULT_ZOOKEEPER, Environment, ExitStatus, UsageError
from pylogctl.cli.options import CHANGE, CLUSTER, CONNECTION, OUTPUT, App
from pylogctl.cli.render import render
from pylogctl.config.document import OPTIONS, OptionRow

app = App()

_READS = (ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.UNSUPPORTED)
_WRITES = (*_READS, ExitStatus.CONFLICT)

_VARIABLES = {"brokers": "PYLOGCTL_BROKER"}  # others have the name of their option

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
    render(env, OPTIONS.showing("origin") if origin else OPTIONS, _option_rows(env))


def _option_rows(env: Environment) -> Iterator[OptionRow]:
    """Yield the options that say which cluster, and how output looks."""
    settings, context = env.settings, env.context
    yield _row(env, "context", None if context is None else context.name, "none is current")
    by_context = {"zookeeper", "brokers"} if context is not None else set[str]()
    if context is not None and context.timeout is not None:
        by_context.add("timeout")
    values = {
        "zookeeper": settings.zookeeper or ("" if settings.brokers else DEFAULT_ZOOKEEPER),
        "brokers": ",".join(settings.brokers),
        "timeout": "" if settings.timeout_s is None else format_duration(settings.timeout_s),
        "output": env.output,
        "color": settings.color,
    }
    for name, value in values.items():
        if name in by_context and context is not None and value and name not in env.given:
            yield OptionRow(name, value, f"context {context.name} ({context.file})")
        else:
            yield _row(env, name, value or None, "default")


def _row(env: Environment, name: str, value: str | None, otherwise: str) -> OptionRow:
    variable = _VARIABLES.get(name, f"PYLOGCTL_{name.upper()}")
    origin = otherwise
    if name in env.given:
        origin = "option"
    elif env.environ.get(variable):
        origin = f"environment ({variable})"
    elif name == "context" and env.context is not None:
        origin = "current: pylogctl context use, or default_context of a file"
    elif name == "brokers" and value:
        origin = "found at the default address"
    return OptionRow(name, value, origin)


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
