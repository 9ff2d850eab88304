"""`pylogctl config`: the options of its commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from pylogctl.cli.declarations import argument, flag, option
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.options import CHANGE, CLUSTER, CONNECTION, OUTPUT, App
from pylogctl.cli.render import render

if TYPE_CHECKING:
    from broker.admin.settings import BrokerSettings, Target
    from broker.zk.registry import Registry

app = App("Change settings of topics and brokers while they run.")

_READS = (ExitStatus.NOT_FOUND, ExitStatus.PARTIAL, ExitStatus.UNSUPPORTED)
_WRITES = (*_READS, ExitStatus.CONFLICT)

_Topic = Annotated[str | None, option("-t, --topic TOPIC", "The settings of a topic.")]
_Broker = Annotated[
    str | None, option("-b, --broker ID|HOST:PORT", "Those of a broker, by its id or its address.")
]


@app.command(
    OUTPUT + CLUSTER + CHANGE,
    exits=_WRITES,
    examples=(
        "pylogctl config set --topic orders retention.ms=86400000 flush.messages=1",
        "pylogctl config set --topic orders log.retention.hours=24",
        "pylogctl config set --broker 0 log.flush.interval.messages=500",
    ),
)
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
    """
    from pylogctl.config.changes import parse_assignments, set_settings

    with _target(env, topic, broker) as (registry, target):
        texts = parse_assignments(target, assignments)
        set_settings(env, registry, target, texts, may_be_absent=absent)


@app.command(
    OUTPUT + CLUSTER + CHANGE,
    exits=_WRITES,
    examples=(
        "pylogctl config unset --topic orders retention.ms",
        "pylogctl config unset --broker 0 --all",
    ),
)
def unset(
    env: Environment,
    names: list[str] | None = argument("[NAME...]", "Settings.", default=None),
    topic: _Topic = None,
    broker: _Broker = None,
    everything: bool = flag("--all", "All settings; also repairs a damaged node."),
) -> None:
    """Remove settings of a topic or a broker; those of the brokers' files hold again."""
    from pylogctl.config.changes import unset_all, unset_settings

    if everything == bool(names):
        raise UsageError("name the settings to remove, or give --all")
    with _target(env, topic, broker) as (registry, target):
        if everything:
            unset_all(env, registry, target)
        else:
            unset_settings(env, registry, target, names or [])


@app.command(
    OUTPUT + CLUSTER,
    exits=_READS,
    examples=(
        "pylogctl config list",
        "pylogctl config list --topic orders",
        "pylogctl config list --broker 0 --columns setting,value,origin,change,doc",
    ),
)
def list_(env: Environment, topic: _Topic = None, broker: _Broker = None) -> None:
    """List the settings in ZooKeeper, or all that are in effect for a topic or on a broker.

    The origin of a value is `topic` or `broker` if it was set in ZooKeeper, `start` if it comes
    from the broker's properties file or an option of its start, else `default`.
    """
    from pylogctl.config import reads

    if topic is None and broker is None:
        with _registry(env) as registry:
            reads.list_overrides(env, registry)
    elif topic is not None:
        _validate_one(topic, broker)
        with _registry(env) as registry:
            brokers = _live(env, registry)
            reads.show_topic(env, _existing(registry, topic), brokers, only_differences=False)
    elif broker is not None:
        reads.show_broker(env, _settings_of(env, broker)[0])


@app.command(
    OUTPUT + CONNECTION,
    exits=(ExitStatus.CONFIG, ExitStatus.NOT_FOUND),
    examples=("pylogctl config show --origin", "pylogctl config show --context prod --origin"),
)
def show(
    env: Environment, origin: bool = flag("--origin", "Say where each value comes from.")
) -> None:
    """Show which cluster commands use here, and other options that files and variables set."""
    from pylogctl.config.document import OPTIONS
    from pylogctl.config.effective import option_rows

    render(env, OPTIONS.showing("origin") if origin else OPTIONS, option_rows(env))


@app.command(
    OUTPUT + CLUSTER,
    exits=_READS,
    examples=(
        "pylogctl config diff",
        "pylogctl config diff --topic orders",
        "pylogctl config diff --broker 0",
    ),
)
def diff(env: Environment, topic: _Topic = None, broker: _Broker = None) -> None:
    """Show settings that differ: between brokers, from a broker's file, from the defaults.

    Without --topic and --broker: those that differ between the live brokers.
    """
    from pylogctl.config import reads

    if topic is None and broker is None:
        with _registry(env) as registry:
            reads.compare_brokers(env, _live(env, registry))
    elif topic is not None:
        _validate_one(topic, broker)
        with _registry(env) as registry:
            brokers = _live(env, registry)
            reads.show_topic(env, _existing(registry, topic), brokers, only_differences=True)
    elif broker is not None:
        settings, others = _settings_of(env, broker)
        reads.compare_broker(env, settings, others)


@contextmanager
def _registry(env: Environment) -> Iterator[Registry]:
    from pylogctl.cli.connections import open_registry

    with open_registry(env) as registry:
        yield registry


def _validate_one(topic: str | None, broker: str | None) -> None:
    if (topic is None) == (broker is None):
        raise UsageError("name one: --topic TOPIC or --broker ID")


@contextmanager
def _target(
    env: Environment, topic: str | None, broker: str | None
) -> Iterator[tuple[Registry, Target]]:
    """Yield the registry and the target that `--topic` or `--broker` names; one must be given."""
    from broker.admin.settings import target_of_broker
    from pylogctl.config.reads import target_of_topic

    _validate_one(topic, broker)
    if topic is not None:
        target = target_of_topic(topic)
    elif broker is not None and broker.isdecimal():
        target = target_of_broker(int(broker))
    else:
        env, settings = _at_address(env, str(broker))
        if not settings.has_zookeeper:
            raise CliError(
                ExitStatus.UNSUPPORTED,
                f"broker {settings.id} at '{broker}' runs without ZooKeeper, where settings that "
                "change while it runs are kept",
                hints=["set it in the broker's properties file, and restart the broker"],
            )
        target = target_of_broker(settings.id)
    with _registry(env) as registry:
        yield registry, target


def _existing(registry: Registry, topic: str) -> str:
    from broker.admin.settings import validate_exists
    from pylogctl.config.reads import target_of_topic

    validate_exists(registry, target_of_topic(topic))
    return topic


def _live(env: Environment, registry: Registry) -> Sequence[BrokerSettings]:
    """Return the settings of the live brokers; those that do not report them are errors."""
    from broker.client.registry_cluster import RegistryCluster
    from pylogctl.config.reads import read_settings

    return read_settings(env, RegistryCluster(registry).brokers())


def _settings_of(env: Environment, broker: str) -> tuple[BrokerSettings, list[BrokerSettings]]:
    """Return the settings of one broker, and those of the other live ones of its cluster."""
    from pylogctl.config.reads import read_one

    if not broker.isdecimal():
        env, settings = _at_address(env, broker)
        if not settings.has_zookeeper:
            return settings, []
        broker = str(settings.id)
    with _registry(env) as registry:
        return read_one(env, registry, int(broker))


def _at_address(env: Environment, address: str) -> tuple[Environment, BrokerSettings]:
    """Return the settings of the broker at an address, and the environment with its ZooKeeper."""
    from pylogctl.config.reads import read_at_address

    settings, zookeeper = read_at_address(env, address)
    if env.settings.zookeeper is None and zookeeper:
        env = env.changed(settings=env.settings._replace(zookeeper=zookeeper))
    return env, settings
