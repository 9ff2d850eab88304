"""Shows settings: those in ZooKeeper, those in effect, and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from broker.admin.settings import BrokerSettings, Target, target_of_broker, topic_values
from broker.config import BrokerConfig
from broker.errors import CoordinationError, RegistryUnreachableError
from broker.properties import Property
from broker.topic_settings import TOPIC_SETTINGS, TopicSetting, value_text
from broker.zk.settings import SettingsRegistry
from pylogctl.cli.environment import Environment
from pylogctl.cli.render import render
from pylogctl.config import document
from pylogctl.config.targets import target_of_topic, warn_of_problems

if TYPE_CHECKING:
    from broker.zk.registry import Registry

_IDENTITY = frozenset(("broker_id", "host", "hostname", "port", "data_dir", "data_dirs", "rack"))
"""Fields that differ between brokers by their nature."""


def list_overrides(env: Environment, registry: Registry) -> None:
    """Render the settings of all topics and brokers in ZooKeeper."""
    settings = SettingsRegistry(registry.session)
    targets = [target_of_topic(topic) for topic in settings.topics()]
    targets += [target_of_broker(broker_id) for broker_id in settings.brokers()]
    render(env, document.OVERRIDES, list(_overrides(env, settings, targets)))


def _overrides(
    env: Environment, settings: SettingsRegistry, targets: Iterable[Target]
) -> Iterator[document.OverrideRow]:
    for target in targets:
        try:
            texts = settings.read(target.node)
        except RegistryUnreachableError:
            raise
        except CoordinationError as error:
            env.leave_out(str(error))
            continue
        for name, text in texts.items():
            yield document.OverrideRow(target.topic, target.broker_id, name, text, target.node.path)


def show_topic(
    env: Environment, topic: str, brokers: Sequence[BrokerSettings], *, only_differences: bool
) -> None:
    """Render the settings of a topic, one row for each value that is in effect on some broker."""
    rows: list[document.TopicRow] = []
    for setting in TOPIC_SETTINGS:
        found = list(_topic_rows(topic, setting, brokers))
        if not only_differences or len(found) > 1 or found[0].origin != "default":
            rows += found
    render(env, document.TOPIC, rows)
    warn_of_problems(env, brokers)


def _topic_rows(
    topic: str, setting: TopicSetting, brokers: Sequence[BrokerSettings]
) -> Iterator[document.TopicRow]:
    for found in topic_values(topic, setting, brokers):
        yield document.TopicRow(
            setting.property.name,
            found.text,
            found.origin,
            ",".join(map(str, found.brokers)),
            value_text(getattr(BrokerConfig(), setting.broker_field), setting),
            setting.applied,
            setting.property.doc,
        )


def show_broker(env: Environment, broker: BrokerSettings) -> None:
    """Render all settings of a broker."""
    rows = [
        document.BrokerRow(
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


def compare_broker(
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


def compare_brokers(env: Environment, brokers: Sequence[BrokerSettings]) -> None:
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
