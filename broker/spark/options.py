"""Options of the data source `pylog`: text to values, and what is wrong with them.

Names follow Spark's Kafka source where the meaning is the same. Opens nothing.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from broker.errors import ConfigError, ProtocolError
from broker.protocol.compression import Codec
from broker.spark.offsets import EARLIEST, LATEST, parse_assignment, parse_offsets
from broker.topic import TopicPartition, validate_topic_name

if TYPE_CHECKING:
    from broker.protocol.responses import BrokerAddress

_MIB = 1 << 20
_UNITS = {"": 1, "k": 1 << 10, "m": _MIB, "g": 1 << 30}
_SIZE = re.compile(r"([0-9]+) ?([kmg]?)(?:i?b)?", re.IGNORECASE)
_WORDS = {"earliest": EARLIEST, "latest": LATEST}
_Choice = TypeVar("_Choice")

_WHERE = ("brokers", "kafka.bootstrap.servers", "zk")
_SELECT = ("subscribe", "subscribePattern", "assign")
_READ_ONLY = (
    "path",
    "paths",
    *_SELECT,
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "failOnDataLoss",
    "crc",
    "maxBytesPerPartition",
    "minPartitions",
    "maxBytesPerTrigger",
    "fetchSize",
    "pushFilters",
    "reportPath",
)
_BOTH = (*_WHERE, "timeoutMs", "connectTimeoutMs")
_WRITE_ONLY = ("topic", "compression", "batchSize", "retries", "stagingPath")
_OF_SPARK = ("path", "checkpointLocation", "queryName")
"""Spark hands its own options on to the source."""

_HINTS = {
    "maxoffsetspertrigger": "offsets are bytes here: use maxBytesPerTrigger",
    "minoffsetspertrigger": "there is no such limit; use a trigger with an interval",
    "maxrecordsperpartition": "use maxBytesPerPartition",
    "includeheaders": "messages have no headers",
    "kafka.group.id": "Spark keeps the offsets, no group does",
    "groupidprefix": "Spark keeps the offsets, no group does",
    "startingoffsetsbytimestampstrategy": "times always have a segment: it is not needed",
}


class Crc(Enum):
    """What to do about a message whose bytes are not what was written."""

    FAIL = "fail"
    """The task fails, naming topic, partition and offset."""
    MARK = "mark"
    """The row is delivered with `crc_ok` false; only then is there such a column."""
    SKIP = "skip"
    """The message is left out, with a warning and an entry in the report."""
    OFF = "off"
    """CRCs are not looked at; a broken chain of lengths still fails."""


_CRCS = {one.value: one for one in Crc}
_CODECS = {one.name.lower(): one for one in Codec}


@dataclass(frozen=True, slots=True)
class BrokerList:
    """Brokers that are known without a registry."""

    addresses: tuple[BrokerAddress, ...]


@dataclass(frozen=True, slots=True)
class RegistryAddress:
    """A ZooKeeper to find brokers and topics in: `HOST:PORT[,..][/CHROOT]`."""

    connect: str


@dataclass(frozen=True, slots=True)
class SegmentPaths:
    """Segment files, and directories that have some below them."""

    paths: tuple[Path, ...]


Where = BrokerList | RegistryAddress | SegmentPaths


@dataclass(frozen=True, slots=True)
class Selection:
    """Which topics and partitions: by name, by pattern, or one by one; all if nothing is set.

    `partitions` may be empty, which is none at all.
    """

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] | None = None

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic, or a partition of it, is wanted."""
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        if self.partitions is not None:
            return any(one.topic == topic for one in self.partitions)
        return not self.topics or topic in self.topics

    def has_partition(self, partition: TopicPartition) -> bool:
        """Return whether a partition is wanted."""
        if self.partitions is not None:
            return partition in self.partitions
        return self.has_topic(partition.topic)


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends in each partition.

    Attributes:
        option: the option that said so, for messages.
        default: an offset, `EARLIEST` or `LATEST`, or milliseconds since 1970.
        by_partition: others for some partitions; if there are any, all must be there.
        is_time: whether the numbers are times.
    """

    option: str
    default: int
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    is_time: bool = False

    def value(self, partition: TopicPartition) -> int:
        """Return what was asked for of one partition.

        Raises:
            ConfigError: there are numbers for partitions, but none for this one.
        """
        if not self.by_partition:
            return self.default
        if partition not in self.by_partition:
            raise ConfigError(
                f"{self.option} has nothing for {partition}: name all partitions, "
                f"{EARLIEST} standing for the start and {LATEST} for the end"
            )
        return self.by_partition[partition]


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """How brokers are talked to."""

    timeout_s: float = 30.0
    connect_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What a read was asked to do; see the table in `broker/spark/__init__.py`."""

    where: Where
    selection: Selection
    starting: Bound
    ending: Bound
    fail_on_data_loss: bool
    crc: Crc
    max_partition_bytes: int
    min_partitions: int
    max_trigger_bytes: int | None
    fetch_bytes: int
    push_filters: bool
    report_path: Path | None
    connection: ConnectionOptions


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """What a write was asked to do.

    `topic` is None if each row names its own; with a `staging_path` sets are kept there until it is
    known which attempts of tasks count.
    """

    where: BrokerList | RegistryAddress
    topic: str | None
    codec: Codec
    batch_bytes: int
    retries: int
    staging_path: Path | None
    connection: ConnectionOptions


def parse_read_options(options: Mapping[str, str], *, is_stream: bool) -> ReadOptions:
    """Return what the options of a read mean.

    Args:
        options: as Spark hands them over; looked up whatever their case.
        is_stream: for a stream, which starts at the end unless told otherwise, and has no end.

    Raises:
        ConfigError: one is unknown, malformed, missing or contradicts another.
    """
    values = _Values(options)
    values.check_names((*_BOTH, *_READ_ONLY, *_OF_SPARK))
    where = _where(values)
    ending = _bound(values, "ending", LATEST, forbidden=EARLIEST)
    if is_stream:
        if isinstance(where, SegmentPaths):
            raise ConfigError("streams read from brokers: set brokers or zk instead of path")
        if ending != Bound("endingOffsets", LATEST):
            raise ConfigError(f"{ending.option} is for batch reads; a stream has no end")
    else:
        values.refuse("maxBytesPerTrigger", "it is for streams")
    return ReadOptions(
        where=where,
        selection=_selection(values, is_required=not isinstance(where, SegmentPaths)),
        starting=_starting(values, is_stream=is_stream),
        ending=ending,
        fail_on_data_loss=values.flag("failOnDataLoss", True),
        crc=values.choice("crc", _CRCS, Crc.FAIL),
        max_partition_bytes=values.size("maxBytesPerPartition", 1024 * _MIB),
        min_partitions=values.number("minPartitions", 1),
        max_trigger_bytes=values.size("maxBytesPerTrigger", 0) or None,
        fetch_bytes=values.size("fetchSize", _MIB),
        push_filters=values.flag("pushFilters", False),
        report_path=values.path("reportPath"),
        connection=_connection(values),
    )


def parse_crc(options: Mapping[str, str]) -> Crc:
    """Return what to do about damage; the other options are not looked at.

    Raises:
        ConfigError: it is none of the words for it.
    """
    return _Values(options).choice("crc", _CRCS, Crc.FAIL)


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Return what the options of a write mean.

    Raises:
        ConfigError: one is unknown, malformed or missing.
    """
    values = _Values(options)
    values.check_names((*_BOTH, *_WRITE_ONLY, *_OF_SPARK))
    where = _where(values)
    if isinstance(where, SegmentPaths):
        raise ConfigError("topics are written through brokers: set brokers or zk instead of path")
    topic = values.get("topic")
    if topic is not None:
        validate_topic_name(topic)
    return WriteOptions(
        where=where,
        topic=topic,
        codec=values.choice("compression", _CODECS, Codec.NONE),
        batch_bytes=values.size("batchSize", 256 << 10),
        retries=values.number("retries", 3, minimum=0),
        staging_path=values.path("stagingPath"),
        connection=_connection(values),
    )


class _Values:
    """Options by name, whatever their case."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def check_names(self, known: tuple[str, ...]) -> None:
        names = {name.lower(): name for name in known}
        for name in self._values:
            if name.lower() not in names:
                raise ConfigError(f"unknown option '{name}'{_hint(name, names)}")

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def given(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if self.get(name) is not None]

    def refuse(self, name: str, reason: str) -> None:
        if self.get(name) is not None:
            raise ConfigError(f"{name} cannot be used here: {reason}")

    def number(self, name: str, default: int, *, minimum: int = 1) -> int:
        text = self.get(name)
        if text is None:
            return default
        if not text.isdecimal() or int(text) < minimum:
            raise ConfigError(f"{name} is '{text}'; valid: whole numbers from {minimum}")
        return int(text)

    def size(self, name: str, default: int) -> int:
        text = self.get(name)
        if text is None:
            return default
        found = _SIZE.fullmatch(text.strip())
        size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
        if not size:
            raise ConfigError(f"{name} is '{text}'; valid: bytes, such as 1048576, 512k, 64m, 1g")
        return size

    def path(self, name: str) -> Path | None:
        text = self.get(name)
        return Path(text).absolute() if text else None

    def flag(self, name: str, default: bool) -> bool:
        text = self.get(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise ConfigError(f"{name} is '{text}'; valid: true, false")
        return text.lower() == "true"

    def choice(self, name: str, choices: Mapping[str, _Choice], default: _Choice) -> _Choice:
        text = self.get(name)
        if text is None:
            return default
        if text.lower() not in choices:
            raise ConfigError(f"{name} is '{text}'; valid: {', '.join(choices)}")
        return choices[text.lower()]


def _hint(name: str, names: Mapping[str, str]) -> str:
    if hint := _HINTS.get(name.lower()):
        return f": {hint}"
    close = difflib.get_close_matches(name.lower(), names, n=1)
    return (
        f"; did you mean {names[close[0]]}?" if close else f"; valid: {', '.join(names.values())}"
    )


def _where(values: _Values) -> Where:
    given = values.given((*_WHERE, "path", "paths"))
    if len(given) != 1:
        found = f"these are set: {', '.join(given)}" if given else "none of them is set"
        raise ConfigError(f"exactly one of brokers, zk and path is needed; {found}")
    (name,) = given
    text = values.get(name) or ""
    if not text.strip():
        raise ConfigError(f"{name} is empty")
    if name == "zk":
        return RegistryAddress(text)
    if name == "path":
        return SegmentPaths((Path(text),))
    if name == "paths":
        return SegmentPaths(tuple(Path(one) for one in json.loads(text)))
    from broker.client.connection import parse_broker_list  # late: see `source`

    try:
        return BrokerList(tuple(parse_broker_list(text)))
    except ProtocolError as error:
        raise ConfigError(f"{name}: {error}") from error


def _selection(values: _Values, *, is_required: bool) -> Selection:
    given = values.given(_SELECT)
    if len(given) > 1 or (is_required and not given):
        found = f"these are set: {', '.join(given)}" if given else "none of them is set"
        raise ConfigError(f"exactly one of {', '.join(_SELECT)} is needed; {found}")
    if not given:
        return Selection()
    (name,) = given
    text = values.get(name) or ""
    if name == "subscribePattern":
        try:
            return Selection(pattern=re.compile(text))
        except re.error as error:
            raise ConfigError(f"subscribePattern '{text}' is no regular expression: {error}") from (
                error
            )
    if name == "assign":
        return Selection(partitions=parse_assignment(text, name))
    topics = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    if not topics:
        raise ConfigError("subscribe names no topic")
    for topic in topics:
        validate_topic_name(topic)
    return Selection(topics)


def _starting(values: _Values, *, is_stream: bool) -> Bound:
    if is_stream:
        return _bound(values, "starting", LATEST)
    return _bound(values, "starting", EARLIEST, forbidden=LATEST)


def _bound(values: _Values, side: str, default: int, *, forbidden: int | None = None) -> Bound:
    """Return the start or end asked for: a time comes before times by partition, then offsets."""
    option = f"{side}Timestamp"
    if values.get(option) is not None:
        return Bound(option, values.number(option, 0, minimum=0), is_time=True)
    option = f"{side}OffsetsByTimestamp"
    if (text := values.get(option)) is not None:
        return Bound(option, default, parse_offsets(text, option, minimum=0), is_time=True)
    option = f"{side}Offsets"
    text = values.get(option)
    if text is None:
        return Bound(option, default)
    if text.lower() in _WORDS:
        bound = Bound(option, _WORDS[text.lower()])
    else:
        bound = Bound(option, default, parse_offsets(text, option))
    wanted = set(bound.by_partition.values()) or {bound.default}
    if forbidden in wanted:
        word = next(word for word, number in _WORDS.items() if number == forbidden)
        raise ConfigError(f"{option} of a batch read cannot be {word}: there would be nothing")
    return bound


def _connection(values: _Values) -> ConnectionOptions:
    return ConnectionOptions(
        timeout_s=values.number("timeoutMs", 30_000) / 1000,
        connect_timeout_s=values.number("connectTimeoutMs", 5_000) / 1000,
    )
