"""Options of the data source `pylog`: text of Spark to typed values, and back.

Spark hands a data source only text. It is parsed once, on the driver; the rest of this package
works with the values. `to_options` is the way back, for programs that start a read or write through
Spark. Malformed text raises a `ConfigError` that names the option.

Names follow Spark's Kafka source where the meaning is the same. Imports little and opens nothing:
Spark imports this module on every look-up of a format.
"""

from __future__ import annotations

import difflib
import json
import logging
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from broker.errors import ConfigError, ProtocolError
from broker.protocol.compression import Codec
from broker.topic import TopicPartition, validate_topic_name

if TYPE_CHECKING:
    from broker.client.connection import Connection
    from broker.consumer.boundaries import BoundaryFinder
    from broker.protocol.responses import BrokerAddress

logger = logging.getLogger(__name__)

Offsets = dict[TopicPartition, int]
OffsetDocument = dict[str, dict[str, int]]
"""Offsets as checkpoints and manifests have them: `{"topic": {"0-0": 123}}`."""

EARLIEST = -2
"""Stands for the log start offset, as in 0.7's requests."""
LATEST = -1
"""Stands for the high watermark, as in 0.7's requests."""

_KIB, _MIB, _GIB = 1 << 10, 1 << 20, 1 << 30
_FETCH_BYTES = _MIB
_BATCH_BYTES = 256 * _KIB
_UNITS = {"": 1, "k": _KIB, "m": _MIB, "g": _GIB}
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
    "reportPath",
)
_BOTH = (*_WHERE, "timeoutMs", "connectTimeoutMs")
_WRITE_ONLY = ("topic", "compression", "batchSize", "retries", "stagingPath")
_OF_SPARK = ("path", "checkpointLocation", "queryName")  # Spark hands these on to the source

_WITHOUT_EFFECT = {
    "includeHeaders": "messages have no headers",
    "fetchOffset.numRetries": "offsets are asked for again during timeoutMs",
    "fetchOffset.retryIntervalMs": "offsets are asked for again during timeoutMs",
    "kafkaConsumer.pollTimeoutMs": "timeoutMs limits the wait for a response",
}
"""Options of Spark's Kafka source that are accepted and ignored, and why."""

_HINTS = {
    "maxoffsetspertrigger": "offsets are bytes here: use maxBytesPerTrigger",
    "minoffsetspertrigger": "there is no such limit; use a trigger with an interval",
    "maxrecordsperpartition": "use maxBytesPerPartition",
    "includeheaders": "messages have no headers",
    "kafka.group.id": "Spark keeps the offsets, no group does",
    "groupidprefix": "Spark keeps the offsets, no group does",
    "pushfilters": "filters are not pushed down; use assign, startingOffsets and endingOffsets",
    "startingoffsetsbytimestampstrategy": "times always have a segment: it is not needed",
}


def partition_of(topic: str, name: str) -> TopicPartition:
    """Return the partition of a topic that is named `HOME-INDEX`, such as `0-3`."""
    home, dash, index = name.partition("-")
    if not dash or not home.isdecimal() or not index.isdecimal():
        raise ConfigError(f"'{name}' is no partition of '{topic}'; valid: HOME-INDEX, such as 0-3")
    return TopicPartition(topic, int(home), int(index))


def parse_offsets(text: str, option: str, *, minimum: int = EARLIEST) -> Offsets:
    """Return the numbers by partition in an option such as `{"topic": {"0-0": 123}}`."""
    try:
        document = json.loads(text)
        items = [
            (partition_of(topic, name), number)
            for topic, numbers in document.items()
            for name, number in numbers.items()
        ]
    except (ValueError, AttributeError) as error:
        raise _malformed(text, option) from error
    for partition, number in items:
        if not isinstance(number, int) or isinstance(number, bool) or number < minimum:
            raise ConfigError(f"{option}: {partition} has {number!r}; valid: {minimum} and up")
    return dict(items)


def parse_assignment(text: str, option: str) -> frozenset[TopicPartition]:
    """Return the partitions in an option such as `{"topic": ["0-0", "1-0"]}`."""
    try:
        document = json.loads(text)
        names = [(topic, name) for topic, names in document.items() for name in list(names)]
    except (ValueError, AttributeError, TypeError) as error:
        raise _malformed(text, option, '{"topic": ["0-0"]}') from error
    if not all(isinstance(name, str) for _, name in names):
        raise _malformed(text, option, '{"topic": ["0-0"]}')
    return frozenset(partition_of(topic, name) for topic, name in names)


def _malformed(text: str, option: str, example: str = '{"topic": {"0-0": 123}}') -> ConfigError:
    return ConfigError(f"{option}: '{text}' is not of the form {example}")


def to_document(offsets: Mapping[TopicPartition, int]) -> OffsetDocument:
    """Return offsets as a document for a checkpoint or manifest, sorted."""
    document: OffsetDocument = {}
    for partition, offset in sorted(offsets.items()):
        document.setdefault(partition.topic, {})[partition.name] = offset
    return document


def from_document(document: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return the offsets in a document; malformed partition names are those of another source."""
    return {
        partition_of(topic, name): offset
        for topic, offsets in document.items()
        for name, offset in offsets.items()
    }


def to_json(offsets: Mapping[TopicPartition, int]) -> str:
    """Return offsets as the text of an option."""
    return json.dumps(to_document(offsets), separators=(",", ":"))


def to_assignment(partitions: Iterable[TopicPartition]) -> str:
    """Return partitions as the text of an option, such as `{"topic":["0-0","1-0"]}`."""
    document: dict[str, list[str]] = {}
    for partition in sorted(partitions):
        document.setdefault(partition.topic, []).append(partition.name)
    return json.dumps(document, separators=(",", ":"))


class Crc(Enum):
    """How a read treats a message whose bytes are damaged."""

    FAIL = "fail"
    """The task fails, naming topic, partition and offset."""
    MARK = "mark"
    """The row is delivered with `crc_ok` false; only then is there such a column."""
    SKIP = "skip"
    """The message is left out, with a warning and an entry in the report."""
    OFF = "off"
    """CRCs are not validated; a broken chain of lengths still fails."""


_CRCS = {one.value: one for one in Crc}
_CODECS = {one.name.lower(): one for one in Codec}


@dataclass(frozen=True, slots=True)
class Where:
    """Where messages are read or written: brokers, a ZooKeeper, or segment files; one is set."""

    brokers: tuple[BrokerAddress, ...] = ()
    zookeeper: str | None = None  # HOST:PORT[,..][/CHROOT]
    paths: tuple[Path, ...] = ()  # segment files, directories above them, and patterns

    def to_options(self) -> dict[str, str]:
        """Return the option of the data source for this."""
        if self.paths:
            return {"paths": json.dumps([str(path) for path in self.paths])}
        if self.zookeeper is not None:
            return {"zk": self.zookeeper}
        return {"brokers": ",".join(_address_text(*one) for one in self.brokers)}


def _address_text(broker_id: int, host: str, port: int) -> str:
    return f"{host}:{port}" if broker_id < 0 else f"{broker_id}:{host}:{port}"


@dataclass(frozen=True, slots=True)
class Selection:
    """Selected topics or partitions; all if nothing is set, none if `partitions` is empty."""

    topics: tuple[str, ...] = ()
    pattern: re.Pattern[str] | None = None
    partitions: frozenset[TopicPartition] | None = None

    def has_topic(self, topic: str) -> bool:
        """Return whether a topic, or a partition of it, is selected."""
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        if self.partitions is not None:
            return any(one.topic == topic for one in self.partitions)
        return not self.topics or topic in self.topics

    def has_partition(self, partition: TopicPartition) -> bool:
        """Return whether a partition is selected."""
        if self.partitions is not None:
            return partition in self.partitions
        return self.has_topic(partition.topic)

    def to_options(self) -> dict[str, str]:
        """Return the option of the data source for this."""
        if self.partitions is not None:
            return {"assign": to_assignment(self.partitions)}
        if self.pattern is not None:
            return {"subscribePattern": self.pattern.pattern}
        return {"subscribe": ",".join(self.topics)} if self.topics else {}


ALL_TOPICS = Selection()


@dataclass(frozen=True, slots=True)
class Bound:
    """Where reading starts or ends in each partition.

    Attributes:
        option: the option it comes from, for error messages.
        default: an offset, `EARLIEST` or `LATEST`; with `is_time` milliseconds since 1970.
        by_partition: the same for each partition that is read; empty if `default` is for all.
        offset_of: finds the offset when the read is planned, where no number or time can name it,
            such as 100 messages before the end.
    """

    option: str
    default: int
    by_partition: Mapping[TopicPartition, int] = field(default_factory=dict)
    is_time: bool = False
    offset_of: Callable[[TopicPartition, BoundaryFinder], int] | None = None

    def value(self, partition: TopicPartition) -> int:
        """Return the number for one partition; raise a `ConfigError` if only others have one."""
        if not self.by_partition:
            return self.default
        if partition not in self.by_partition:
            raise ConfigError(
                f"{self.option} has nothing for {partition}: name all partitions, "
                f"{EARLIEST} standing for the start and {LATEST} for the end"
            )
        return self.by_partition[partition]

    def to_options(self) -> dict[str, str]:
        """Return the option of the data source for this; a bound with `offset_of` has none."""
        assert self.offset_of is None
        if self.by_partition:
            return {self.option: to_json(self.by_partition)}
        if self.is_time:
            return {self.option: str(self.default)}
        (word,) = (word for word, number in _WORDS.items() if number == self.default)
        return {self.option: word}


FROM_START = Bound("startingOffsets", EARLIEST)
UP_TO_END = Bound("endingOffsets", LATEST)


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Timeouts of connections to brokers, in seconds."""

    timeout_s: float = 30.0
    connect_timeout_s: float = 5.0

    def connect(self, address: BrokerAddress) -> Connection:
        """Return a connection to a broker, opened with the first request."""
        from broker.client.connection import Connection

        return Connection(
            address, timeout_s=self.timeout_s, connect_timeout_s=self.connect_timeout_s
        )

    def to_options(self) -> dict[str, str]:
        """Return the options of the data source for these."""
        return {
            "timeoutMs": str(max(1, round(self.timeout_s * 1000))),
            "connectTimeoutMs": str(max(1, round(self.connect_timeout_s * 1000))),
        }


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read; the table in `broker/spark/__init__.py` says what they mean."""

    where: Where
    selection: Selection = ALL_TOPICS
    starting: Bound = FROM_START
    ending: Bound = UP_TO_END
    fail_on_data_loss: bool = True
    crc: Crc = Crc.FAIL
    max_partition_bytes: int | None = None  # the default of the reader: 1 GiB, in loads 64 MiB
    min_partitions: int | None = None
    max_trigger_bytes: int | None = None
    fetch_bytes: int = _FETCH_BYTES
    report_path: Path | None = None
    connection: ConnectionOptions = ConnectionOptions()

    @property
    def task_bytes(self) -> int:
        """Return the maximum bytes of a task."""
        return self.max_partition_bytes or _GIB

    def between(self, starts: Offsets, ends: Offsets) -> ReadOptions:
        """Return options for these ranges only; bounds may be `EARLIEST` or `LATEST`."""
        return replace(
            self,
            selection=Selection(partitions=frozenset(starts)),
            starting=replace(FROM_START, by_partition=starts),
            ending=replace(UP_TO_END, by_partition=ends),
        )

    def to_options(self) -> dict[str, str]:
        """Return these options as the text that Spark takes; parsing it gives them again."""
        options = {
            **self.where.to_options(),
            **self.selection.to_options(),
            **self.starting.to_options(),
            **self.ending.to_options(),
            "failOnDataLoss": _flag_text(self.fail_on_data_loss),
            "crc": self.crc.value,
            "fetchSize": str(self.fetch_bytes),
            **self.connection.to_options(),
        }
        if self.max_partition_bytes is not None:
            options["maxBytesPerPartition"] = str(self.max_partition_bytes)
        if self.min_partitions is not None:
            options["minPartitions"] = str(self.min_partitions)
        if self.max_trigger_bytes is not None:
            options["maxBytesPerTrigger"] = str(self.max_trigger_bytes)
        if self.report_path is not None:
            options["reportPath"] = str(self.report_path)
        return options


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """Options of a write, from the same table."""

    where: Where  # not segment files
    topic: str | None = None  # None: each row names its own
    codec: Codec = Codec.NONE
    batch_bytes: int = _BATCH_BYTES
    retries: int | None = None  # of a message set; None: until the producer's delivery timeout
    staging_path: Path | None = None  # None: tasks send at once; see `writer`
    connection: ConnectionOptions = ConnectionOptions()

    def to_options(self) -> dict[str, str]:
        """Return these options as the text that Spark takes; parsing it gives them again."""
        options = {
            **self.where.to_options(),
            "compression": self.codec.name.lower(),
            "batchSize": str(self.batch_bytes),
            **self.connection.to_options(),
        }
        if self.retries is not None:
            options["retries"] = str(self.retries)
        if self.topic is not None:
            options["topic"] = self.topic
        if self.staging_path is not None:
            options["stagingPath"] = str(self.staging_path)
        return options


def _flag_text(flag: bool) -> str:
    return "true" if flag else "false"


def parse_read_options(options: Mapping[str, str], *, is_stream: bool = False) -> ReadOptions:
    """Parse the options of a read; a stream starts at `latest` by default, and has no end."""
    values = _Values(options)
    values.drop_without_effect()
    values.check_names((*_BOTH, *_READ_ONLY, *_OF_SPARK))
    where = _parse_where(values)
    ending = _parse_bound(values, UP_TO_END, forbidden=EARLIEST)
    if is_stream:
        if where.paths:
            raise ConfigError("streams read from brokers: set brokers or zk instead of path")
        if ending != UP_TO_END:
            raise ConfigError(f"{ending.option} is for batch reads; a stream has no end")
        starting = _parse_bound(values, replace(FROM_START, default=LATEST))
    else:
        values.refuse("maxBytesPerTrigger", "it is for streams")
        starting = _parse_bound(values, FROM_START, forbidden=LATEST)
    return ReadOptions(
        where=where,
        selection=_parse_selection(values, is_required=not where.paths),
        starting=starting,
        ending=ending,
        fail_on_data_loss=values.flag("failOnDataLoss") is not False,
        crc=values.choice("crc", _CRCS, Crc.FAIL),
        max_partition_bytes=values.size("maxBytesPerPartition"),
        min_partitions=values.number("minPartitions"),
        max_trigger_bytes=values.size("maxBytesPerTrigger"),
        fetch_bytes=values.size("fetchSize") or _FETCH_BYTES,
        report_path=values.path("reportPath"),
        connection=_parse_connection(values),
    )


def parse_crc(options: Mapping[str, str]) -> Crc:
    """Parse the option `crc`, and no other."""
    return _Values(options).choice("crc", _CRCS, Crc.FAIL)


def parse_write_options(options: Mapping[str, str]) -> WriteOptions:
    """Parse the options of a write."""
    values = _Values(options)
    values.check_names((*_BOTH, *_WRITE_ONLY, *_OF_SPARK))
    where = _parse_where(values)
    if where.paths:
        raise ConfigError("topics are written through brokers: set brokers or zk instead of path")
    topic = values.get("topic")
    if topic is not None:
        validate_topic_name(topic)
    return WriteOptions(
        where=where,
        topic=topic,
        codec=values.choice("compression", _CODECS, Codec.NONE),
        batch_bytes=values.size("batchSize") or _BATCH_BYTES,
        retries=values.number("retries", minimum=0),
        staging_path=values.path("stagingPath"),
        connection=_parse_connection(values),
    )


class _Values:
    """Options by name in any case; None for those that are not set."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._values = {name.lower(): value for name, value in options.items()}

    def check_names(self, known: tuple[str, ...]) -> None:
        names = {name.lower(): name for name in known}
        for name in self._values:
            if name not in names:
                raise ConfigError(f"unknown option '{name}'{_hint(name, names)}")

    def drop_without_effect(self) -> None:
        for name, reason in _WITHOUT_EFFECT.items():
            if name == "includeHeaders" and self.flag(name):
                continue  # `check_names` refuses it
            if self._values.pop(name.lower(), None) is not None:
                logger.warning("the option %s has no effect: %s", name, reason)

    def get(self, name: str) -> str | None:
        return self._values.get(name.lower())

    def given(self, names: tuple[str, ...]) -> list[str]:
        return [name for name in names if self.get(name) is not None]

    def refuse(self, name: str, reason: str) -> None:
        if self.get(name) is not None:
            raise ConfigError(f"{name} cannot be used here: {reason}")

    def number(self, name: str, *, minimum: int = 1) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        if not text.isdecimal() or int(text) < minimum:
            raise ConfigError(f"{name} is '{text}'; valid: whole numbers from {minimum}")
        return int(text)

    def size(self, name: str) -> int | None:
        text = self.get(name)
        if text is None:
            return None
        found = _SIZE.fullmatch(text.strip())
        size = int(found[1]) * _UNITS[found[2].lower()] if found else 0
        if not size:
            raise ConfigError(f"{name} is '{text}'; valid: bytes, such as 1048576, 512k, 64m, 1g")
        return size

    def path(self, name: str) -> Path | None:
        text = self.get(name)
        return Path(text).absolute() if text else None

    def flag(self, name: str) -> bool | None:
        text = self.get(name)
        if text is None:
            return None
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
    if hint := _HINTS.get(name):
        return f": {hint}"
    close = difflib.get_close_matches(name, names, n=1)
    return (
        f"; did you mean {names[close[0]]}?" if close else f"; valid: {', '.join(names.values())}"
    )


def _parse_where(values: _Values) -> Where:
    given = values.given((*_WHERE, "path", "paths"))
    if len(given) != 1:
        found = f"these are set: {', '.join(given)}" if given else "none of them is set"
        raise ConfigError(f"exactly one of brokers, zk and path is needed; {found}")
    (name,) = given
    text = values.get(name) or ""
    if not text.strip():
        raise ConfigError(f"{name} is empty")
    if name == "zk":
        return Where(zookeeper=text)
    if name in ("path", "paths"):
        paths = [text] if name == "path" else json.loads(text)
        if not paths:
            raise ConfigError(f"{name} is empty")
        return Where(paths=tuple(Path(one) for one in paths))
    return Where(brokers=parse_brokers(text, name))


def parse_brokers(text: str, option: str) -> tuple[BrokerAddress, ...]:
    """Parse a static list of brokers."""
    from broker.client.connection import parse_broker_list  # late: see the module's docstring

    try:
        return tuple(parse_broker_list(text))
    except ProtocolError as error:
        raise ConfigError(f"{option}: {error}") from error


def _parse_selection(values: _Values, *, is_required: bool) -> Selection:
    given = values.given(_SELECT)
    if len(given) > 1 or (is_required and not given):
        found = f"these are set: {', '.join(given)}" if given else "none of them is set"
        raise ConfigError(f"exactly one of {', '.join(_SELECT)} is needed; {found}")
    if not given:
        return ALL_TOPICS
    (name,) = given
    text = values.get(name) or ""
    if name == "subscribePattern":
        return Selection(pattern=parse_topic_pattern(text, name))
    if name == "assign":
        return Selection(partitions=parse_assignment(text, name))
    return parse_topics(text)


def parse_topics(text: str) -> Selection:
    """Return the selection of topics named in a list with commas."""
    topics = tuple(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    if not topics:
        raise ConfigError("subscribe names no topic")
    for topic in topics:
        validate_topic_name(topic)
    return Selection(topics)


def parse_topic_pattern(text: str, option: str) -> re.Pattern[str]:
    """Compile a regular expression for whole names of topics."""
    try:
        return re.compile(text)
    except re.error as error:
        raise ConfigError(f"{option} '{text}' is no regular expression: {error}") from error


def _parse_bound(values: _Values, default: Bound, *, forbidden: int | None = None) -> Bound:
    """Return a bound: a time takes precedence over times by partition, those over offsets."""
    side = default.option.removesuffix("Offsets")
    option = f"{side}Timestamp"
    if (time_ms := values.number(option, minimum=0)) is not None:
        return Bound(option, time_ms, is_time=True)
    option = f"{side}OffsetsByTimestamp"
    if (text := values.get(option)) is not None:
        times = parse_offsets(text, option, minimum=0)
        return Bound(option, default.default, times, is_time=True)
    option = default.option
    text = values.get(option)
    if text is None:
        return default
    if text.lower() in _WORDS:
        bound = Bound(option, _WORDS[text.lower()])
    else:
        bound = replace(default, by_partition=parse_offsets(text, option))
    wanted = set(bound.by_partition.values()) or {bound.default}
    if forbidden in wanted:
        word = next(word for word, number in _WORDS.items() if number == forbidden)
        raise ConfigError(f"{option} of a batch read cannot be {word}: there would be nothing")
    return bound


def _parse_connection(values: _Values) -> ConnectionOptions:
    timeout_ms = values.number("timeoutMs") or 30_000
    return ConnectionOptions(timeout_ms / 1000, (values.number("connectTimeoutMs") or 5_000) / 1000)
