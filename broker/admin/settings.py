"""Settings of topics and brokers: whose they are, what brokers report, and the values in effect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from broker import errors, topic_settings
from broker.admin.brokers import StatusResponse, find_broker, request_status
from broker.client.cluster import Connect
from broker.client.selection import topic_not_found
from broker.client.side import Side
from broker.config import BrokerConfig
from broker.properties import Property, PropertyKind
from broker.protocol.extension_requests import StatusParts
from broker.protocol.responses import BrokerAddress
from broker.topic_settings import TopicSetting, normalize
from broker.zk import paths
from broker.zk.settings import SettingsNode, node_of_broker, node_of_topic

if TYPE_CHECKING:
    from broker.zk.registry import Registry

SettingValue = bool | int | float | str
"""A number (in the unit that the name says), a truth value, or text, by the kind of the setting."""


class Target(NamedTuple):
    """A topic or a broker; one of the two is None."""

    topic: str | None
    broker_id: int | None
    node: SettingsNode

    @property
    def options(self) -> str:
        """Return the options that name it."""
        return f"--broker {self.broker_id}" if self.topic is None else f"--topic {self.topic}"

    def normalize(self, texts: Mapping[str, str]) -> dict[str, str]:
        """Return settings under the names that are stored; ConfigError if one cannot be set."""
        return BrokerConfig.normalize_overrides(texts) if self.topic is None else normalize(texts)


def target_of_topic(topic: str) -> Target:
    """Return a topic as a target; `InvalidTopicError` for an invalid name."""
    return Target(topic, None, node_of_topic(topic))


def target_of_broker(broker_id: int) -> Target:
    """Return a broker as a target."""
    return Target(None, broker_id, node_of_broker(broker_id))


def validate_exists(registry: Registry, target: Target) -> None:
    """Validate that there is such a topic, or that such a broker is registered."""
    if target.topic is not None:
        known = registry.topics()
        is_replicated = registry.session.exists(paths.replicated_topic(target.topic)) is not None
        if target.topic not in known and not is_replicated:
            raise topic_not_found(target.topic, known)
        return
    ids = [broker.id for broker in registry.brokers()]
    if target.broker_id not in ids:
        raise errors.BrokerNotFoundError(
            f"broker '{target.broker_id}' not found",
            hints=[f"known brokers: {', '.join(map(str, ids)) or 'none'}"],
        )


class BrokerSettings(NamedTuple):
    """The settings that a broker reports."""

    id: int
    now: BrokerConfig  # in effect
    start: BrokerConfig  # of its start, from file and options
    overridden: frozenset[str]  # fields that are set in ZooKeeper
    topics: Mapping[str, Mapping[str, str]]  # overrides in effect, by topic and name
    problems: Mapping[str, str]  # why nodes in ZooKeeper are not used, by path
    has_zookeeper: bool  # whether it follows settings there

    def origin(self, field: str) -> str:
        """Return where the value of a field is from: broker, start or default."""
        if field in self.overridden:
            return "broker"
        is_default = getattr(self.now, field) == getattr(BrokerConfig(), field)
        return "default" if is_default else "start"


def settings_in(document: Mapping[str, Any]) -> BrokerSettings | None:
    """Return the settings in a status document; None if an older broker does not report them."""
    if "settings" not in document:
        return None
    settings = document["settings"]
    return BrokerSettings(
        document["broker"],
        _config({name: one["value"] for name, one in settings.items()}),
        _config(document["start_settings"]),
        frozenset(
            field
            for name, one in settings.items()
            if one["origin"] == "broker"
            for field in _fields_of(name)
        ),
        document["topic_settings"],
        document["settings_problems"],
        document["zookeeper"] is not None,
    )


def _config(texts: Mapping[str, str]) -> BrokerConfig:
    """Return settings by their texts; properties of newer brokers are left out."""
    return BrokerConfig.from_properties({name: texts[name] for name in texts if _fields_of(name)})


def _fields_of(name: str) -> tuple[str, ...]:
    """Return the field of a property, none of an unknown one."""
    try:
        return (BrokerConfig.property_of(name).field,)
    except errors.ConfigError:
        return ()


def settings_of(response: StatusResponse) -> BrokerSettings:
    """Return the settings in a response; raise if it is an error, or has none."""
    if response.error is not None:
        raise response.error
    found = None if response.document is None else settings_in(response.document)
    if found is None:
        raise errors.UnsupportedVersionError(
            f"the broker at {response.address.host}:{response.address.port} does not tell its "
            "settings: it is an older one"
        )
    return found


class SettingsReport(NamedTuple):
    """The settings that brokers report, and why others do not, by broker id."""

    brokers: list[BrokerSettings]
    failed: dict[int, errors.BrokerError]


def read_settings(connect: Connect, addresses: Iterable[BrokerAddress]) -> SettingsReport:
    """Ask brokers for their settings."""
    report = SettingsReport([], {})
    for address in addresses:
        response = request_status(connect, address, StatusParts.SETTINGS)
        try:
            report.brokers.append(settings_of(response))
        except errors.BrokerError as error:
            report.failed[address.id] = error
    return report


class TopicValue(NamedTuple):
    """A value of a topic's setting, and the brokers on which it is in effect."""

    value: SettingValue
    text: str
    origin: str  # topic, broker, start or default
    brokers: Sequence[int]


def topic_values(
    topic: str, setting: TopicSetting, brokers: Iterable[BrokerSettings]
) -> list[TopicValue]:
    """Return the values of a topic's setting, each once with all its brokers."""
    prop = setting.property
    found: dict[tuple[SettingValue, str], list[int]] = {}
    for broker in brokers:
        overrides = topic_settings.parse_overrides(broker.topics.get(topic, {}))
        value = getattr(topic_settings.topic_config(broker.now, topic, overrides), prop.field)
        is_in_map = setting.map_field and topic in getattr(broker.now, setting.map_field)
        field = setting.map_field if is_in_map else setting.broker_field
        of_broker = broker.origin(field) if field else "default"
        origin = "topic" if prop.field in overrides else of_broker
        found.setdefault((value, origin), []).append(broker.id)
    return [
        TopicValue(value, topic_settings.value_text(value, setting), origin, ids)
        for (value, origin), ids in found.items()
    ]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting in effect."""

    value: SettingValue
    # topic or broker (set in ZooKeeper), start (the broker's file or options) or default
    origin: str
    default: SettingValue  # in effect where nothing else is said
    # of a topic: the value on those brokers where it is another, by id
    elsewhere: Mapping[int, SettingValue]


def settings_of_topic(side: Side, topic: str) -> dict[str, Setting]:
    """Return the settings of a topic by name; PartialError if brokers do not tell theirs."""
    known = side.cluster.topics()
    if topic not in known:
        raise topic_not_found(topic, known)
    report = read_settings(side.connect, sorted(side.brokers()))
    if not report.brokers:
        raise next(iter(report.failed.values()))
    found = {
        one.property.name: _topic_setting(one, topic_values(topic, one, report.brokers))
        for one in topic_settings.TOPIC_SETTINGS
    }
    if report.failed:
        raise errors.PartialError(
            f"{len(report.failed)} brokers do not tell their settings, such as broker "
            f"{min(report.failed)}",
            [found],
            {f"broker {broker_id}": error for broker_id, error in report.failed.items()},
        )
    return found


def _topic_setting(setting: TopicSetting, values: Sequence[TopicValue]) -> Setting:
    first, *others = values
    elsewhere = {
        broker_id: one.value
        for one in others
        if one.value != first.value
        for broker_id in one.brokers
    }
    default = setting.default_of(BrokerConfig())
    return Setting(first.value, first.origin, default, elsewhere)


def settings_of_broker(side: Side, broker_id: int) -> dict[str, Setting]:
    """Return the settings of a live broker by name."""
    address = find_broker(side, broker_id)
    found = settings_of(request_status(side.connect, address, StatusParts.SETTINGS))
    defaults = BrokerConfig()
    return {
        prop.name: Setting(
            value_of(prop, found.now.value_text(prop)),
            found.origin(prop.field),
            value_of(prop, defaults.value_text(prop)),
            {},
        )
        for prop in found.now.shown_properties()
    }


def value_of(prop: Property, text: str) -> SettingValue:
    """Return the value of a valid text, in the unit of the property's name."""
    if prop.kind is PropertyKind.BOOLEAN:
        return text == "true"
    if prop.kind is PropertyKind.RATIO:
        return float(text)
    if prop.kind is PropertyKind.INTEGER:
        number = float(text)  # half an hour, of a property in hours, is no whole number
        return int(text) if number.is_integer() else number
    return text


def problems_of_nodes(brokers: Iterable[BrokerSettings]) -> Iterator[tuple[str, str, list[int]]]:
    """Yield each node in ZooKeeper that brokers cannot use: its path, why, and their ids."""
    problems: dict[str, tuple[str, list[int]]] = {}
    for broker in brokers:
        for path, problem in broker.problems.items():
            problems.setdefault(path, (problem, []))[1].append(broker.id)
    for path, (problem, ids) in sorted(problems.items()):
        yield path, problem, ids
