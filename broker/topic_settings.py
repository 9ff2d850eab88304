"""The settings of single topics: one table, their texts as values, and the result for a topic.

An operator overrides them in ZooKeeper, under Kafka 0.8's names; the names that 0.7 and 0.8 give to
the broker's property are accepted as well, in the unit of that property. Without an override, the
topic's entry in one of the broker's maps by topic applies, else the broker's own setting.

`ConfigError` for a name that is unknown, or a text that is malformed or out of range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from broker.config import CLEANUP_POLICIES, COMPACTION_POLICIES, VALIDATIONS, BrokerConfig
from broker.errors import ConfigError
from broker.properties import (
    HOUR_MS,
    INT32_MAX,
    INT64_MAX,
    Property,
    PropertyKind,
    parse_property,
    unknown_name,
)
from broker.topic import FORMAT_07, FORMAT_KAFKA

_INT, _BOOL, _TEXT = PropertyKind.INTEGER, PropertyKind.BOOLEAN, PropertyKind.TEXT


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """The settings of one topic on one broker, times in milliseconds."""

    segment_bytes: int
    roll_ms: int
    retention_ms: int
    retention_bytes: int
    flush_interval_messages: int
    flush_interval_ms: int
    flush_before_read: bool = True
    partition_count: int = 1
    min_insync_replicas: int = 1
    allows_unclean_election: bool = False
    cleanup_policy: str = "delete"
    schema_subject: str = ""
    schema_validation: str = "none"
    has_envelopes: bool = False
    min_cleanable_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    delete_retention_ms: int = 24 * HOUR_MS

    @property
    def is_compacted(self) -> bool:
        """Return whether only the last record of each key stays."""
        return self.cleanup_policy in COMPACTION_POLICIES


class TopicSetting(NamedTuple):
    """One setting of topics."""

    property: Property  # sets a field of `TopicConfig`
    broker_field: str  # of `BrokerConfig`; applies without an override; empty for none
    map_field: str  # of `BrokerConfig`, with values by topic; empty for none
    applied: str  # when a change takes effect, as a part of a sentence

    def default_of(self, config: BrokerConfig) -> Any:
        """Return the value that topics without their own have on a broker."""
        if self.broker_field:
            return getattr(config, self.broker_field)
        return False if self.property.kind is _BOOL else ""


MIN_ISR = "min.insync.replicas"
PARTITION_COUNT = "partition.count"
_NEXT_APPEND = "with the next message"
_NEXT_COMPACTION = "the next time that logs to compact are looked for"
_NEXT_RETENTION = "the next time that segments past retention are looked for"


def _by_topic(
    name: str, field: str, minimum: int, maximum: int, applied: str, doc: str
) -> TopicSetting:
    """Return a number that the broker has a map by topic for."""
    number = Property(name, field, _INT, doc, minimum, maximum=maximum)
    return TopicSetting(number, field, f"topic_{field}", applied)


_RETAINED = "keep so much of a partition; -1 all"
_COUNT = Property(PARTITION_COUNT, "partition_count", _INT, "partitions on each broker, or more", 1)
_IN_SYNC = Property(MIN_ISR, "min_insync_replicas", _INT, "replicas in sync that acks -1 needs", 1)
_FLUSHED = Property(
    "flush.before.read", "flush_before_read", _BOOL, "consumers see flushed messages"
)
_UNCLEAN = Property(
    *("unclean.leader.election.enable", "allows_unclean_election", _BOOL),
    "a replica that lacks messages may lead if no other is there",
)
_POLICY = Property(
    *("cleanup.policy", "cleanup_policy", _TEXT, "what happens to segments past retention"),
    choices=CLEANUP_POLICIES,
)
_CLEANABLE = Property(
    *("min.cleanable.dirty.ratio", "min_cleanable_ratio", PropertyKind.RATIO),
    "compact a log of which so much is new",
)
_LAG = Property(
    *("min.compaction.lag.ms", "min_compaction_lag_ms", _INT, "leave records of this age", 0),
    maximum=INT64_MAX,
)
_DELETED = Property(
    *("delete.retention.ms", "delete_retention_ms", _INT),
    *("keep records that delete a key so long", 0),
    maximum=INT64_MAX,
)
_SUBJECT = Property(
    "schema.subject", "schema_subject", _TEXT, "subject of its schemas; its contract"
)
_VALIDATION = Property(
    *("schema.validation", "schema_validation", _TEXT),
    "refuse messages without an id of that subject (id), or that do not decode with it (full)",
    choices=VALIDATIONS,
)
ENVELOPE = "envelope"
_ENVELOPE = Property(
    *(ENVELOPE, "has_envelopes", _BOOL),
    "producers put time, host and sequence in front of messages",
)
TOPIC_SETTINGS = (
    _by_topic(
        *("segment.bytes", "segment_bytes", 5, INT64_MAX, _NEXT_APPEND),
        "roll a segment above this size, bytes",
    ),
    _by_topic("segment.ms", "roll_ms", 1, INT64_MAX, _NEXT_APPEND, "roll a segment of this age"),
    _by_topic(
        "retention.ms", "retention_ms", 1, INT64_MAX, _NEXT_RETENTION, "keep segments so long"
    ),
    _by_topic("retention.bytes", "retention_bytes", -1, INT64_MAX, _NEXT_RETENTION, _RETAINED),
    _by_topic(
        *("flush.messages", "flush_interval_messages", 1, INT32_MAX, "at once"),
        "flush after n messages",
    ),
    _by_topic("flush.ms", "flush_interval_ms", 1, INT32_MAX, "at once", "flush after this time"),
    TopicSetting(_FLUSHED, "flush_before_read", "", "at once"),
    TopicSetting(
        _COUNT, "num_partitions", "topic_partition_counts", "at once; partitions that exist stay"
    ),
    TopicSetting(_IN_SYNC, "min_insync_replicas", "", "at once, by the controller"),
    TopicSetting(_UNCLEAN, "allows_unclean_election", "", "at the next election"),
    TopicSetting(_POLICY, "retention_policy", "topic_retention_policy", _NEXT_RETENTION),
    TopicSetting(_CLEANABLE, "min_cleanable_ratio", "", _NEXT_COMPACTION),
    TopicSetting(_LAG, "min_compaction_lag_ms", "", _NEXT_COMPACTION),
    TopicSetting(_DELETED, "delete_retention_ms", "", _NEXT_COMPACTION),
    TopicSetting(_SUBJECT, "", "", _NEXT_APPEND),
    TopicSetting(_VALIDATION, "schema_validation", "", _NEXT_APPEND),
    TopicSetting(_ENVELOPE, "", "", "by producers that start later"),
)

TopicOverrides = Mapping[str, object]  # by field of `TopicConfig`

NO_OVERRIDES: TopicOverrides = MappingProxyType({})


def topic_config(
    config: BrokerConfig, topic: str, overrides: TopicOverrides = NO_OVERRIDES
) -> TopicConfig:
    """Return the settings of a topic: its overrides, then the broker's map, then the broker's."""
    values: dict[str, Any] = {}
    for one in TOPIC_SETTINGS:
        value = one.default_of(config)
        if one.map_field:
            value = getattr(config, one.map_field).get(topic, value)
        values[one.property.field] = overrides.get(one.property.field, value)
    return TopicConfig(**values)


def normalize(texts: Mapping[str, str]) -> dict[str, str]:
    """Return overrides under the names and in the units of the table."""
    normal = {}
    for name, text in texts.items():
        setting, value = _find(name, text)
        normal[setting.property.name] = _text_of(setting.property, value)
    return normal


def parse_overrides(texts: Mapping[str, str]) -> TopicOverrides:
    """Return the values of overrides by field."""
    normal = normalize(texts)
    return {
        one.property.field: parse_property(one.property, normal[one.property.name])
        for one in TOPIC_SETTINGS
        if one.property.name in normal
    }


def validate_for_format(topic: str, topic_format: str, texts: Mapping[str, str]) -> None:
    """Raise `ConfigError` if a topic cannot have these normal overrides in its format."""
    policy = texts.get(_POLICY.name)
    if topic_format == FORMAT_07 and policy in COMPACTION_POLICIES:
        raise ConfigError(
            f"topic '{topic}' cannot have {_POLICY.name}={policy}: messages of Kafka 0.7 have no "
            f"keys; only topics of format {FORMAT_KAFKA} are compacted"
        )


def setting_of(name: str) -> TopicSetting:
    """Return a setting by its name, or by that of the broker's property in 0.7 or 0.8."""
    return _of_table(name) or _of_broker(name)


def value_text(value: object, setting: TopicSetting) -> str:
    """Return the value of a setting as text."""
    return _text_of(setting.property, value)


def _find(name: str, text: str) -> tuple[TopicSetting, object]:
    setting = _of_table(name)
    if setting is not None:
        return setting, parse_property(setting.property, text)
    setting = _of_broker(name)
    named = BrokerConfig.property_of(name)
    if named.kind is PropertyKind.TOPIC_MAP:  # for one topic it is a number
        named = named._replace(kind=PropertyKind.INTEGER)
    elif named.kind is PropertyKind.TEXT_MAP:
        named = named._replace(kind=_TEXT)
    value = parse_property(named, text)
    return setting, parse_property(setting.property, _text_of(setting.property, value))


def _of_table(name: str) -> TopicSetting | None:
    return next((one for one in TOPIC_SETTINGS if one.property.name == name), None)


def _of_broker(name: str) -> TopicSetting:
    """Return the setting of topics that a property of the broker sets the default of."""
    try:
        field = BrokerConfig.property_of(name).field
    except ConfigError:
        known = [one.property.name for one in TOPIC_SETTINGS]
        raise ConfigError(
            unknown_name("setting of topics", name, [*known, *_broker_names()])
        ) from None
    for one in TOPIC_SETTINGS:
        if field in (one.broker_field, one.map_field):
            return one
    raise ConfigError(f"'{name}' is a setting of brokers, which topics do not have")


def _broker_names() -> list[str]:
    fields = {field for one in TOPIC_SETTINGS for field in (one.broker_field, one.map_field)}
    names = {prop.name: prop.field in fields for prop in BrokerConfig.PROPERTIES}
    aliases = BrokerConfig.aliases().items()
    return [
        *(name for name, is_of_topics in names.items() if is_of_topics),
        *(alias for alias, name in aliases if names.get(name)),
    ]


def _text_of(prop: Property, value: object) -> str:
    return str(value).lower() if prop.kind is _BOOL else str(value)
