"""Properties: the table that a settings class declares, and how their texts become values.

`ALIASES` has the names that Kafka 0.8 gives to properties of 0.7. Unknown names are errors, with
the nearest known name (0.7 ignored them: KAFKA-181).
"""

from __future__ import annotations

import difflib
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, dataclass, field, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from broker.errors import ConfigError

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1


class Alias(NamedTuple):
    """Another name of a property, with the same meaning and unit."""

    name: str
    property: str


# the names of Kafka 0.8 for properties of 0.7; one name may mean another property elsewhere
ALIASES = (
    # broker
    Alias("broker.id", "brokerid"),
    Alias("host.name", "host"),
    Alias("advertised.host.name", "hostname"),
    Alias("log.dirs", "log.dir"),
    Alias("num.network.threads", "num.threads"),
    Alias("message.max.bytes", "max.message.size"),
    Alias("socket.request.max.bytes", "max.socket.request.bytes"),
    Alias("socket.send.buffer.bytes", "socket.send.buffer"),
    Alias("socket.receive.buffer.bytes", "socket.receive.buffer"),
    Alias("log.segment.bytes", "log.file.size"),
    Alias("log.segment.bytes.per.topic", "topic.log.file.size"),
    Alias("log.roll.hours.per.topic", "topic.log.roll.hours"),
    Alias("log.retention.hours.per.topic", "topic.log.retention.hours"),
    Alias("log.retention.bytes", "log.retention.size"),
    Alias("log.retention.bytes.per.topic", "topic.log.retention.size"),
    Alias("log.flush.interval.messages", "log.flush.interval"),
    Alias("log.flush.interval.messages.per.topic", "topic.log.flush.interval"),
    Alias("log.flush.interval.ms", "log.default.flush.interval.ms"),
    Alias("log.flush.interval.ms.per.topic", "topic.flush.intervals.ms"),
    Alias("log.flush.scheduler.interval.ms", "log.default.flush.scheduler.interval.ms"),
    Alias("log.flush.offset.checkpoint.interval.ms", "log.checkpoint.interval.ms"),
    # producer
    Alias("metadata.broker.list", "broker.list"),
    Alias("message.send.max.retries", "num.retries"),
    Alias("request.timeout.ms", "socket.timeout.ms"),
    Alias("send.buffer.bytes", "buffer.size"),
    Alias("queue.buffering.max.ms", "queue.time"),
    Alias("queue.buffering.max.messages", "queue.size"),
    Alias("queue.enqueue.timeout.ms", "queue.enqueueTimeout.ms"),
    Alias("batch.num.messages", "batch.size"),
    # consumer
    Alias("group.id", "groupid"),
    Alias("consumer.id", "consumerid"),
    Alias("fetch.message.max.bytes", "fetch.size"),
    Alias("socket.receive.buffer.bytes", "socket.buffersize"),
    Alias("auto.commit.enable", "autocommit.enable"),
    Alias("auto.commit.interval.ms", "autocommit.interval.ms"),
    Alias("auto.offset.reset", "autooffset.reset"),
    Alias("queued.max.message.chunks", "queuedchunks.max"),
    Alias("rebalance.max.retries", "rebalance.retries.max"),
    Alias("refresh.leader.backoff.ms", "fetcher.backoff.ms"),
    # all
    Alias("zookeeper.connect", "zk.connect"),
    Alias("zookeeper.session.timeout.ms", "zk.sessiontimeout.ms"),
    Alias("zookeeper.connection.timeout.ms", "zk.connectiontimeout.ms"),
    Alias("zookeeper.sync.time.ms", "zk.synctime.ms"),
)


class Secret:
    """A password or key: its text is `***`, so that no message, log or listing shows it."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return what is secret."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return "***" if self._text else ""


class PropertyKind(Enum):
    """The type of a property's value."""

    INTEGER = "integer"
    RATIO = "number from 0 to 1"
    BOOLEAN = "boolean"
    TEXT = "text"
    OPTIONAL_PATH = "path or nothing"
    PATHS = "path,path"
    TOPIC_MAP = "topic:integer,topic:integer"
    TEXT_MAP = "topic:text,topic:text"
    SECRET = "secret"


class Property(NamedTuple):
    """One property: the field it sets, and its valid values.

    `minimum` and `maximum` are in the unit of the text; its number times `scale` is in the unit of
    the field. `choices`, if not empty, are the only texts allowed. As in 0.7, numbers are int32 by
    default: they may be sent in requests, passed to the system or used as timeouts.
    """

    name: str
    field: str
    kind: PropertyKind
    doc: str
    minimum: int | None = None
    scale: int = 1
    choices: tuple[str, ...] = ()
    maximum: int = INT32_MAX


_KINDS = {
    "int": PropertyKind.INTEGER,
    "float": PropertyKind.RATIO,
    "bool": PropertyKind.BOOLEAN,
    "str": PropertyKind.TEXT,
    "Path | None": PropertyKind.OPTIONAL_PATH,
    "tuple[Path, ...]": PropertyKind.PATHS,
    "Mapping[str, int]": PropertyKind.TOPIC_MAP,
    "Mapping[str, str]": PropertyKind.TEXT_MAP,
    "Secret": PropertyKind.SECRET,
}
"""The kinds of properties by the annotations of their fields."""


def unit(name: str, doc: str, minimum: int | None = None, scale: int = 1, **more: Any) -> Property:
    """Return a property whose field and kind are those of the setting that declares it."""
    return Property(name, "", PropertyKind.TEXT, doc, minimum, scale, **more)


def setting(
    default: object,  # or a function that makes it
    name: str,
    doc: str,
    minimum: int | None = None,
    scale: int = 1,
    *,
    also: tuple[Property, ...] = (),  # that set the field in other units
    is_dynamic: bool = False,
    **more: Any,
) -> Any:
    """Declare a field of settings by the property that sets it; see `Property`."""
    metadata = {
        "properties": (unit(name, doc, minimum, scale, **more), *also),
        "is_dynamic": is_dynamic,
    }
    if callable(default):
        return field(default_factory=default, metadata=metadata)
    return field(default=default, metadata=metadata)


live = partial(setting, is_dynamic=True)
"""Declare a setting that changes while the broker runs; all others need a restart."""


@dataclass(frozen=True)
class BaseConfig:
    """Base of the three settings classes: parsing and validation of property texts.

    Their fields are declared by `setting`, from which `PROPERTIES` and `DYNAMIC` are made.

    `ConfigError` for a name that is unknown, or a text that is malformed or out of range.
    """

    PROPERTIES: ClassVar[tuple[Property, ...]] = ()
    DYNAMIC: ClassVar[frozenset[str]] = frozenset()  # fields that change while the broker runs
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {}  # accepted and ignored, and why

    def __init_subclass__(cls) -> None:
        own = {name: one.metadata for name, one in vars(cls).items() if isinstance(one, Field)}
        cls.PROPERTIES = tuple(
            prop._replace(field=name, kind=_KINDS[cls.__annotations__[name]])
            for name, declared in own.items()
            for prop in declared["properties"]
        )
        cls.DYNAMIC = frozenset(name for name, declared in own.items() if declared["is_dynamic"])
        for base in cls.__bases__:
            if issubclass(base, BaseConfig):
                cls.PROPERTIES += base.PROPERTIES
                cls.DYNAMIC |= base.DYNAMIC

    @classmethod
    def from_properties(cls, *layers: Mapping[str, str]) -> Self:
        """Return settings from property texts, defaults for the rest.

        Args:
            layers: texts by name, as from `.properties` files and `-X name=value`; a later layer
                overrides an earlier one, also where it sets the same field by another name, such as
                hours and minutes of one time.
        """
        return cls().changed(*layers)

    def changed(self, *layers: Mapping[str, str]) -> Self:
        """Return these settings with some replaced; see `from_properties`."""
        values: dict[str, Any] = {}
        for name, text in (item for properties in layers for item in properties.items()):
            if (reason := self.WITHOUT_EFFECT.get(self.name_in_07(name))) is not None:
                logger.warning("%s has no effect: %s", name, reason)
            else:
                prop = self.property_of(name)
                values[prop.field] = parse_property(prop, text)
        return replace(self, **values)

    @classmethod
    def aliases(cls) -> dict[str, str]:
        """Return the property names by their Kafka 0.8 names, for this kind of settings."""
        names = {prop.name for prop in cls.PROPERTIES} | cls.WITHOUT_EFFECT.keys()
        return {alias.name: alias.property for alias in ALIASES if alias.property in names}

    @classmethod
    def name_in_07(cls, name: str) -> str:
        """Return the name that Kafka 0.7 gives to a property of 0.8; any other name unchanged."""
        return cls.aliases().get(name, name)

    @classmethod
    def property_of(cls, name: str) -> Property:
        """Return a property by its name of Kafka 0.7 or 0.8; an error has the nearest name."""
        known = {prop.name: prop for prop in cls.PROPERTIES}
        prop = known.get(cls.name_in_07(name))
        if prop is None:
            raise ConfigError(unknown_name("property", name, [*known, *cls.aliases()]))
        return prop

    def shown_properties(self) -> Iterator[Property]:
        """Give one property for each field: of several units the first that has a whole number."""
        shown: dict[str, Property] = {}
        for prop in self.PROPERTIES:
            value = getattr(self, prop.field)
            known = shown.get(prop.field)
            if known is None or (value % known.scale and not value % prop.scale):
                shown[prop.field] = prop
        yield from shown.values()

    def value_text(self, prop: Property) -> str:
        """Return a property's value in this object as property text."""
        value = getattr(self, prop.field)
        if prop.kind is PropertyKind.BOOLEAN:
            return str(value).lower()
        if prop.kind is PropertyKind.TOPIC_MAP:
            return ",".join(f"{topic}:{n // prop.scale}" for topic, n in value.items())
        if prop.kind is PropertyKind.TEXT_MAP:
            return ",".join(map(":".join, value.items()))
        if prop.kind is PropertyKind.PATHS:
            return ",".join(map(str, value))
        if prop.kind is PropertyKind.INTEGER and value % prop.scale == 0:
            return str(value // prop.scale)
        if prop.kind is PropertyKind.INTEGER:
            return str(value / prop.scale)  # a time set in minutes and shown in hours
        return "" if value is None else str(value)


@dataclass(frozen=True)
class ZooKeeperConfig(BaseConfig):
    """How a broker or a client reaches ZooKeeper."""

    zookeeper: str = setting("", "zk.connect", "HOST:PORT[,..][/CHROOT]; empty: none")
    zk_session_timeout_ms: int = setting(
        6000, "zk.sessiontimeout.ms", "ZooKeeper session timeout", 1
    )
    zk_connection_timeout_ms: int = setting(6000, "zk.connectiontimeout.ms", "wait at start", 1)
    zk_credential_file: Path | None = setting(
        None,
        "zookeeper.credential.file",
        "file with a line user:password for ZooKeeper (mode 0600)",
    )
    zk_tls: bool = setting(False, "zookeeper.ssl.client.enable", "TLS with ZooKeeper")
    zk_tls_ca: Path | None = setting(
        None, "zookeeper.ssl.ca.location", "PEM file of ZooKeeper's CA; empty: the system's CAs"
    )
    zk_tls_cert: Path | None = setting(
        None, "zookeeper.ssl.certificate.location", "PEM file of a certificate for ZooKeeper"
    )
    zk_tls_key: Path | None = setting(
        None, "zookeeper.ssl.key.location", "PEM file of its key; empty: the same"
    )


def parse_property(prop: Property, text: str) -> object:
    """Return the value of a property's text, in the unit of its field."""
    text = text.strip()
    if prop.kind is PropertyKind.INTEGER:
        return _parse_integer(prop, text)
    if prop.kind is PropertyKind.RATIO:
        return _parse_ratio(prop, text)
    if prop.kind is PropertyKind.BOOLEAN:
        if text not in ("true", "false"):
            raise ConfigError(f"{prop.name} is '{text}'; it must be true or false")
        return text == "true"
    if prop.kind is PropertyKind.TOPIC_MAP:
        return _parse_topic_map(prop, text)
    if prop.kind is PropertyKind.TEXT_MAP:
        return _parse_text_map(prop, text)
    if prop.kind is PropertyKind.SECRET:
        return Secret(text)
    if prop.choices and text not in prop.choices:
        raise ConfigError(f"{prop.name} is '{text}'; it must be one of {', '.join(prop.choices)}")
    if prop.kind is PropertyKind.PATHS:
        return tuple(_parse_path(prop, one.strip()) for one in text.split(","))
    if prop.kind is PropertyKind.OPTIONAL_PATH:
        return _parse_path(prop, text) if text else None
    return text


def _parse_path(prop: Property, text: str) -> Path:
    if "," in text:  # it may be meant as a list
        raise ConfigError(f"{prop.name} is '{text}'; it must be one path, without a comma")
    if not text:
        raise ConfigError(f"{prop.name} is empty, or has an empty item; it must be a path")
    if "\n" in text:
        raise ConfigError(f"{prop.name} is {text!r}; a path must be one line")
    try:
        return Path(text).expanduser()
    except RuntimeError as error:  # the home directory of an unknown user
        raise ConfigError(f"{prop.name} is '{text}'; {error}") from error


def _parse_integer(prop: Property, text: str) -> int:
    try:
        number = int(text)
    except ValueError as error:
        raise ConfigError(f"{prop.name} is '{text}'; it must be a whole number") from error
    if prop.minimum is not None and number < prop.minimum:
        raise ConfigError(f"{prop.name} is {number}; it must be at least {prop.minimum}")
    if number > prop.maximum:
        raise ConfigError(f"{prop.name} is {number}; it must be at most {prop.maximum}")
    return number * prop.scale if number > 0 else number


def _parse_ratio(prop: Property, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise ConfigError(f"{prop.name} is '{text}'; it must be a number from 0 to 1")
    return number


def _parse_topic_map(prop: Property, text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        topic, colon, number = item.rpartition(":")
        if not colon or not topic.strip():
            raise ConfigError(f"{prop.name} has '{item}'; each item is topic:number")
        values[topic.strip()] = _parse_integer(prop, number.strip())
    return values


def _parse_text_map(prop: Property, text: str) -> dict[str, str]:
    items = [one.partition(":") for one in filter(None, map(str.strip, text.split(",")))]
    for topic, _, value in items:
        if not topic.strip() or not value.strip():
            raise ConfigError(f"{prop.name} has '{topic}:{value}'; each item is topic:value")
    return {topic.strip(): value.strip() for topic, _, value in items}


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """Return the text of an error about an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(name, known, n=1)
    return f"no {kind} '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")
