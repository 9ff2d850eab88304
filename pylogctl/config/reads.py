"""The topic or broker that a command is about, and its settings: stored, in effect, differing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from broker import errors
from broker.admin import settings as admin
from broker.admin.brokers import request_status
from broker.admin.settings import BrokerSettings, Target, target_of_broker, topic_values
from broker.client.connection import parse_broker_list
from broker.client.registry_cluster import RegistryCluster
from broker.config import BrokerConfig
from broker.properties import Property
from broker.protocol.responses import BrokerAddress
from broker.topic_settings import TOPIC_SETTINGS, TopicSetting, value_text
from broker.zk.registry import Registry
from broker.zk.settings import SettingsRegistry
from pylogctl.cli.connections import connector, open_registry
from pylogctl.cli.environment import CliError, Environment, ExitStatus, UsageError
from pylogctl.cli.render import render
from pylogctl.config import document


def target_of_topic(topic: str) -> Target:
    """Return a topic as a target; an invalid name is a UsageError."""
    try:
        return admin.target_of_topic(topic)
    except errors.InvalidTopicError as error:
        raise UsageError(str(error)) from error


def read_settings(env: Environment, addresses: Sequence[BrokerAddress]) -> list[BrokerSettings]:
    """Return the settings of brokers; those that do not report them are left out with an error."""
    report = admin.read_settings(connector(env), addresses)
    for broker_id, error in report.failed.items():
        if isinstance(error, errors.UnsupportedVersionError):
            env.leave_out(f"broker {broker_id} does not tell its settings: it is an older one")
        else:
            env.leave_out(f"broker {broker_id}: {error}")
    return report.brokers


def warn_of_problems(env: Environment, brokers: Sequence[BrokerSettings]) -> None:
    """Warn of nodes in ZooKeeper that brokers cannot use; each node once."""
    for path, problem, ids in admin.problems_of_nodes(brokers):
        who = ", ".join(map(str, ids))
        env.warn(f"node {path} is not used by broker {who}: {problem}")


def _settings_of(env: Environment, broker: str) -> tuple[BrokerSettings, list[BrokerSettings]]:
    """Return the settings of one broker, and those of the other live ones of its cluster."""
    if not broker.isdecimal():
        env, settings = _at_address(env, broker)
        if not settings.has_zookeeper:
            return settings, []
        broker = str(settings.id)
    with open_registry(env) as registry:
        addresses = RegistryCluster(registry).brokers()
        admin.validate_exists(registry, target_of_broker(int(broker)))
        own = [address for address in addresses if address.id == int(broker)]
        others = [address for address in addresses if address.id != int(broker)]
        with _unsupported():
            found = admin.settings_of(request_status(connector(env), own[0]))
        return found, read_settings(env, others)


def _at_address(env: Environment, address: str) -> tuple[Environment, BrokerSettings]:
    """Return the settings of the broker at an address, and the environment with its ZooKeeper."""
    try:
        (found,) = parse_broker_list(address) if ":" in address else []  # a misspelt id
    except (errors.ProtocolError, ValueError) as error:
        raise UsageError(f"'{address}' is neither a broker's id nor HOST:PORT") from error
    response = request_status(connector(env), found)
    with _unsupported():
        settings = admin.settings_of(response)
    zookeeper = None if response.document is None else response.document["zookeeper"]
    if env.settings.zookeeper is None and zookeeper:
        env = env.changed(settings=env.settings._replace(zookeeper=zookeeper))
    return env, settings


@contextmanager
def open_target(
    env: Environment, topic: str | None, broker: str | None
) -> Iterator[tuple[Registry, Target]]:
    """Give the registry and the target that `--topic` or `--broker` names; one must be given."""
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
                "set it in the broker's properties file, and restart the broker",
            )
        target = target_of_broker(settings.id)
    with open_registry(env) as registry:
        yield registry, target


def _validate_one(topic: str | None, broker: str | None) -> None:
    if (topic is None) == (broker is None):
        raise UsageError("name one: --topic TOPIC or --broker ID")


@contextmanager
def _unsupported() -> Iterator[None]:
    """End with UNSUPPORTED if the broker that was asked is an older one."""
    try:
        yield
    except errors.UnsupportedVersionError as error:
        raise CliError(ExitStatus.UNSUPPORTED, str(error)) from error


_IDENTITY = frozenset(("broker_id", "host", "hostname", "port", "data_dir", "data_dirs", "rack"))
"""Fields that differ between brokers by their nature."""


def list_settings(env: Environment, topic: str | None, broker: str | None) -> None:
    """Render the settings of a topic, of a broker, or all in ZooKeeper."""
    if topic is not None:
        _show_topic(env, topic, broker, only_differences=False)
    elif broker is not None:
        _show_broker(env, _settings_of(env, broker)[0])
    else:
        with open_registry(env) as registry:
            settings = SettingsRegistry(registry.session)
            targets = [target_of_topic(topic) for topic in settings.topics()]
            targets += [target_of_broker(broker_id) for broker_id in settings.brokers()]
            render(env, document.OVERRIDES, list(_overrides(env, settings, targets)))


def compare_settings(env: Environment, topic: str | None, broker: str | None) -> None:
    """Render the settings of a topic or broker that differ, or those that do between brokers."""
    if topic is not None:
        _show_topic(env, topic, broker, only_differences=True)
    elif broker is not None:
        _compare_broker(env, *_settings_of(env, broker))
    else:
        with open_registry(env) as registry:
            _compare_brokers(env, _live(env, registry))


def _live(env: Environment, registry: Registry) -> list[BrokerSettings]:
    return read_settings(env, RegistryCluster(registry).brokers())


def _overrides(
    env: Environment, settings: SettingsRegistry, targets: Iterable[Target]
) -> Iterator[document.OverrideRow]:
    for target in targets:
        try:
            texts = settings.read(target.node)
        except errors.RegistryUnreachableError:
            raise
        except errors.CoordinationError as error:
            env.leave_out(str(error))
            continue
        for name, text in texts.items():
            yield document.OverrideRow(target.topic, target.broker_id, name, text, target.node.path)


def _show_topic(
    env: Environment, topic: str, broker: str | None, *, only_differences: bool
) -> None:
    """Render the settings of a topic, one row for each value that is in effect on some broker."""
    _validate_one(topic, broker)
    with open_registry(env) as registry:
        brokers = _live(env, registry)
        admin.validate_exists(registry, target_of_topic(topic))
    rows: list[document.TopicSettingRow] = []
    for setting in TOPIC_SETTINGS:
        found = list(_topic_rows(topic, setting, brokers))
        if not only_differences or len(found) > 1 or found[0].origin != "default":
            rows += found
    render(env, document.TOPIC, rows)
    warn_of_problems(env, brokers)


def _topic_rows(
    topic: str, setting: TopicSetting, brokers: Sequence[BrokerSettings]
) -> Iterator[document.TopicSettingRow]:
    for found in topic_values(topic, setting, brokers):
        yield document.TopicSettingRow(
            setting.property.name,
            found.text,
            found.origin,
            ",".join(map(str, found.brokers)),
            value_text(setting.default_of(BrokerConfig()), setting),
            setting.applied,
            setting.property.doc,
        )


def _show_broker(env: Environment, broker: BrokerSettings) -> None:
    """Render all settings of a broker."""
    rows = [
        document.BrokerSettingRow(
            _in_effect(broker, prop),
            "running" if prop.field in BrokerConfig.DYNAMIC else "restart",
            prop.doc,
        )
        for prop in broker.now.shown_properties()
    ]
    render(env, document.BROKER, rows)
    warn_of_problems(env, [broker])


def _in_effect(broker: BrokerSettings, prop: Property) -> document.InEffect:
    return document.InEffect(prop.name, broker.now.value_text(prop), broker.origin(prop.field))


def _compare_broker(
    env: Environment, broker: BrokerSettings, others: Sequence[BrokerSettings]
) -> None:
    """Render the settings of a broker that differ from its start, the default or other brokers."""
    defaults = BrokerConfig()
    rows: list[document.BrokerDiffRow] = []
    for prop in broker.now.shown_properties():
        value = getattr(broker.now, prop.field)
        differing = [
            f"{one.id}: {_beside(prop, one.now) or 'empty'}"
            for one in others
            if prop.field not in _IDENTITY and getattr(one.now, prop.field) != value
        ]
        known = (getattr(broker.start, prop.field), getattr(defaults, prop.field))
        if differing or known != (value, value):
            rows.append(
                document.BrokerDiffRow(
                    _in_effect(broker, prop),
                    _beside(prop, broker.start),
                    _beside(prop, defaults),
                    ", ".join(differing),
                )
            )
    render(env, document.BROKER_DIFF, rows)
    warn_of_problems(env, [broker])


def _compare_brokers(env: Environment, brokers: Sequence[BrokerSettings]) -> None:
    """Render the settings that differ between brokers, one row for each value."""
    rows: list[document.BrokersDiffRow] = []
    for first in BrokerConfig().shown_properties():
        if first.field in _IDENTITY:
            continue
        found: dict[tuple[str, str, str], list[int]] = {}
        for broker in brokers:
            (prop,) = (one for one in broker.now.shown_properties() if one.field == first.field)
            now = prop.name, broker.now.value_text(prop), broker.origin(prop.field)
            found.setdefault(now, []).append(broker.id)
        if len({(name, text) for name, text, _ in found}) > 1:
            rows += [
                document.BrokersDiffRow(document.InEffect(*now), ",".join(map(str, ids)))
                for now, ids in found.items()
            ]
    render(env, document.BROKERS_DIFF, rows)
    warn_of_problems(env, brokers)


def _beside(prop: Property, config: BrokerConfig) -> str:
    """Return the value of a property in other settings, with its name if the unit is another."""
    (shown,) = (one for one in config.shown_properties() if one.field == prop.field)
    text = config.value_text(shown)
    return text if shown.name == prop.name else f"{shown.name}={text}"
