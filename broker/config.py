"""Every setting of broker, producer and consumer, under the property names of Kafka 0.7.

A `Property` is one line: name, field, kind, range, meaning. Settings are read once into a frozen
object: defaults, then file (TOML, or Java properties as 0.7 reads them), then environment, then
options. Unknown names are errors, with the nearest known name (0.7 ignored them: KAFKA-181).
"""

from __future__ import annotations

import difflib
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Self

from broker.errors import ConfigError

logger = logging.getLogger(__name__)

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
_INT32_MAX = 2**31 - 1
_INT64_MAX = 2**63 - 1


class Kind(Enum):
    """The type of a property's value."""

    INTEGER = "integer"
    BOOLEAN = "boolean"
    TEXT = "text"
    PATH = "path"
    OPTIONAL_PATH = "path or nothing"
    TOPIC_MAP = "topic:integer,topic:integer"


class Property(NamedTuple):
    """One property: the field it sets, and its valid values.

    `minimum` and `maximum` are in the unit of the text; its number times `scale` is in the unit of
    the field. `choices`, if not empty, are the only texts allowed. As in 0.7, numbers are int32 by
    default: they may be sent in requests, passed to the system or used as timeouts.
    """

    name: str
    field: str
    kind: Kind
    doc: str
    minimum: int | None = None
    scale: int = 1
    choices: tuple[str, ...] = ()
    maximum: int = _INT32_MAX


@dataclass(frozen=True, slots=True)
class LogConfig:
    """The settings of one topic's logs."""

    segment_bytes: int
    roll_ms: int
    retention_ms: int
    retention_bytes: int
    flush_interval_messages: int
    flush_interval_ms: int
    flush_before_read: bool = True


@dataclass(frozen=True, slots=True)
class Settings:
    """Base of the three settings classes: parsing and validation of property texts."""

    PROPERTIES: ClassVar[tuple[Property, ...]] = ()
    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {}
    """Properties of 0.7 that are accepted and ignored, and why."""

    @classmethod
    def from_properties(cls, *layers: Mapping[str, str]) -> Self:
        """Return settings from property texts, defaults for the rest.

        Args:
            layers: texts by name, as from `.properties` files and `-X name=value`; a later layer
                overrides an earlier one, also where it sets the same field by another name, such as
                hours and minutes of one time.

        Raises:
            ConfigError: a name is unknown, or a text is malformed or out of range.
        """
        known = {prop.name: prop for prop in cls.PROPERTIES}
        values: dict[str, Any] = {}
        for name, text in (item for properties in layers for item in properties.items()):
            if name in cls.WITHOUT_EFFECT:
                logger.warning("%s has no effect: %s", name, cls.WITHOUT_EFFECT[name])
            elif name not in known:
                raise ConfigError(_unknown_property(name, known))
            else:
                values[known[name].field] = parse_property(known[name], text)
        return cls(**values)

    def value_text(self, prop: Property) -> str:
        """Return a property's value in this object as property text."""
        value = getattr(self, prop.field)
        if prop.kind is Kind.BOOLEAN:
            return str(value).lower()
        if prop.kind is Kind.TOPIC_MAP:
            return ",".join(f"{topic}:{n // prop.scale}" for topic, n in value.items())
        if prop.kind is Kind.INTEGER and value % prop.scale == 0:
            return str(value // prop.scale)
        if prop.kind is Kind.INTEGER:
            return str(value / prop.scale)  # a time set in minutes and shown in hours
        return "" if value is None else str(value)


def parse_property(prop: Property, text: str) -> object:
    """Return the value of a property's text, in the unit of its field.

    Raises:
        ConfigError: the text is malformed or out of range.
    """
    text = text.strip()
    if prop.kind is Kind.INTEGER:
        return _parse_integer(prop, text)
    if prop.kind is Kind.BOOLEAN:
        if text not in ("true", "false"):
            raise ConfigError(f"{prop.name} is '{text}'; it must be true or false")
        return text == "true"
    if prop.kind is Kind.TOPIC_MAP:
        return _parse_topic_map(prop, text)
    if prop.choices and text not in prop.choices:
        raise ConfigError(f"{prop.name} is '{text}'; it must be one of {', '.join(prop.choices)}")
    if prop.kind in (Kind.PATH, Kind.OPTIONAL_PATH):
        return _parse_path(prop, text)
    return text


def _parse_path(prop: Property, text: str) -> Path | None:
    if not text:
        if prop.kind is Kind.OPTIONAL_PATH:
            return None
        raise ConfigError(f"{prop.name} is empty; it must be a path")
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


def _parse_topic_map(prop: Property, text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    for item in filter(None, map(str.strip, text.split(","))):
        topic, colon, number = item.rpartition(":")
        if not colon or not topic.strip():
            raise ConfigError(f"{prop.name} has '{item}'; each item is topic:number")
        values[topic.strip()] = _parse_integer(prop, number.strip())
    return values


def _processor_count() -> int:
    """Return the default number of processor threads for this machine.

    0.7 has one for each core. Ours share the interpreter's lock, and the cores with the work done
    outside of it (flushes, CRCs, compression): on two cores, a second processor thread adds latency
    and no throughput.
    """
    return max(1, (os.cpu_count() or 1) // 2)


def _unknown_property(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"no property '{name}'" + (f"; did you mean '{near[0]}'?" if near else "")


_P = Property
_INT, _BOOL, _TEXT, _PATH, _MAP = (
    Kind.INTEGER,
    Kind.BOOLEAN,
    Kind.TEXT,
    Kind.PATH,
    Kind.TOPIC_MAP,
)

ZOOKEEPER_PROPERTIES = (
    _P("zk.connect", "zookeeper", _TEXT, "HOST:PORT[,..][/CHROOT]; empty: none"),
    _P("zk.sessiontimeout.ms", "zk_session_timeout_ms", _INT, "ZooKeeper session timeout", 1),
    _P("zk.connectiontimeout.ms", "zk_connection_timeout_ms", _INT, "wait at start", 1),
)


@dataclass(frozen=True, slots=True)
class BrokerConfig(Settings):
    """The settings of a broker.

    Defaults are 0.7's, except the port (0.7: 6667, its sample: 9092), the bind address (0.7: all
    interfaces), the flush interval (0.7: 500 messages or 3 s) and the limits that 0.7 lacks.
    """

    PROPERTIES: ClassVar[tuple[Property, ...]] = (
        _P("brokerid", "broker_id", _INT, "this broker's number in the cluster", 0),
        _P("host", "host", _TEXT, "address to listen on"),
        _P("hostname", "hostname", _TEXT, "address to advertise; empty: the one listened on"),
        _P("port", "port", _INT, "port to listen on; 0 picks a free one", 0, maximum=65535),
        _P("log.dir", "data_dir", _PATH, "data directory"),
        _P("num.threads", "num_threads", _INT, "processor threads", 1),
        _P("num.partitions", "num_partitions", _INT, "partitions of a new topic", 1),
        _P("topic.partition.count.map", "topic_partition_counts", _MAP, "partitions by topic", 1),
        _P("max.message.size", "max_message_bytes", _INT, "largest outer payload, bytes", 0),
        _P("max.socket.request.bytes", "max_request_bytes", _INT, "largest frame, bytes", 1),
        _P("max.topic.name.length", "max_topic_name_length", _INT, "longest topic name", 1),
        _P(
            "log.file.size",
            "segment_bytes",
            _INT,
            "roll a segment above this size, bytes",
            5,
            maximum=_INT64_MAX,
        ),
        _P(
            "topic.log.file.size",
            "topic_segment_bytes",
            _MAP,
            "the same by topic",
            1,
            maximum=_INT64_MAX,
        ),
        _P("log.roll.hours", "roll_ms", _INT, "roll a segment of this age", 1, HOUR_MS),
        _P("log.roll.minutes", "roll_ms", _INT, "the same in minutes", 1, MINUTE_MS),
        _P("topic.log.roll.hours", "topic_roll_ms", _MAP, "the same by topic", 1, HOUR_MS),
        _P("log.retention.hours", "retention_ms", _INT, "keep segments so long", 1, HOUR_MS),
        _P("log.retention.minutes", "retention_ms", _INT, "the same in minutes", 1, MINUTE_MS),
        _P("topic.log.retention.hours", "topic_retention_ms", _MAP, "by topic", 1, HOUR_MS),
        _P(
            "log.retention.size",
            "retention_bytes",
            _INT,
            "keep so much of a partition; -1 all",
            maximum=_INT64_MAX,
        ),
        _P(
            "topic.log.retention.size",
            "topic_retention_bytes",
            _MAP,
            "the same by topic",
            1,
            maximum=_INT64_MAX,
        ),
        _P(
            "log.cleanup.policy",
            "retention_policy",
            _TEXT,
            "what happens to segments past retention",
            choices=("delete", "archive"),
        ),
        _P("log.archive.dir", "archive_dir", Kind.OPTIONAL_PATH, "where policy archive puts them"),
        _P(
            "log.cleanup.interval.mins",
            "cleanup_interval_ms",
            _INT,
            "every",
            1,
            MINUTE_MS,
            maximum=525_600,
        ),
        _P("log.flush.interval", "flush_interval_messages", _INT, "flush after n messages", 1),
        _P("log.default.flush.interval.ms", "flush_interval_ms", _INT, "or after this time", 1),
        _P("topic.flush.intervals.ms", "topic_flush_interval_ms", _MAP, "the same by topic", 1),
        _P("log.flush.before.read", "flush_before_read", _BOOL, "consumers see flushed messages"),
        _P("log.flusher.threads", "flusher_threads", _INT, "threads that fsync", 1),
        _P("log.checkpoint.interval.ms", "checkpoint_interval_ms", _INT, "recovery point", 1),
        _P("socket.send.buffer", "socket_send_bytes", _INT, "SO_SNDBUF; 0 leaves the system's", 0),
        _P("socket.receive.buffer", "socket_receive_bytes", _INT, "SO_RCVBUF; 0 the system's", 0),
        _P("max.connections", "max_connections", _INT, "connections in all", 1),
        _P("max.connections.per.ip", "max_connections_per_ip", _INT, "from one address", 1),
        _P("connections.max.idle.ms", "max_idle_ms", _INT, "close after no whole request", 1),
        _P(
            "queued.max.bytes",
            "max_queued_bytes",
            _INT,
            "of large requests being received at once; others wait",
            1,
            maximum=_INT64_MAX,
        ),
        _P("monitoring.period.secs", "monitoring_period_ms", _INT, "window of rates", 1, 1000),
        _P("enable.zookeeper", "enable_zookeeper", _BOOL, "whether to use zk.connect"),
        *ZOOKEEPER_PROPERTIES,
    )

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "log.default.flush.scheduler.interval.ms": "a log is flushed when it is due",
    }

    broker_id: int = 0
    host: str = "127.0.0.1"
    hostname: str = ""
    port: int = 9092
    data_dir: Path = Path("data")
    num_threads: int = field(default_factory=_processor_count)
    num_partitions: int = 1
    topic_partition_counts: Mapping[str, int] = field(default_factory=dict)
    max_message_bytes: int = 1_000_000
    max_request_bytes: int = 104_857_600
    max_topic_name_length: int = 255
    segment_bytes: int = 1 << 30
    topic_segment_bytes: Mapping[str, int] = field(default_factory=dict)
    roll_ms: int = 168 * HOUR_MS
    topic_roll_ms: Mapping[str, int] = field(default_factory=dict)
    retention_ms: int = 168 * HOUR_MS
    topic_retention_ms: Mapping[str, int] = field(default_factory=dict)
    retention_bytes: int = -1
    topic_retention_bytes: Mapping[str, int] = field(default_factory=dict)
    retention_policy: str = "delete"
    archive_dir: Path | None = None
    cleanup_interval_ms: int = 10 * MINUTE_MS
    flush_interval_messages: int = 10_000
    flush_interval_ms: int = 100
    topic_flush_interval_ms: Mapping[str, int] = field(default_factory=dict)
    flush_before_read: bool = True
    flusher_threads: int = 2
    checkpoint_interval_ms: int = 5000
    socket_send_bytes: int = 0
    socket_receive_bytes: int = 0
    max_connections: int = 10_000
    max_connections_per_ip: int = 10_000
    max_idle_ms: int = 10 * MINUTE_MS
    max_queued_bytes: int = 256 << 20
    monitoring_period_ms: int = 600_000
    enable_zookeeper: bool = True
    zookeeper: str = ""
    zk_session_timeout_ms: int = 6000
    zk_connection_timeout_ms: int = 6000

    def __post_init__(self) -> None:
        if self.retention_policy == "archive" and self.archive_dir is None:
            raise ConfigError("log.cleanup.policy=archive needs log.archive.dir")

    @property
    def zookeeper_connect(self) -> str:
        """Return ZooKeeper's connect string; empty for a broker without ZooKeeper."""
        return self.zookeeper if self.enable_zookeeper else ""

    def for_topic(self, topic: str) -> LogConfig:
        """Return the log settings of one topic: its own, else the defaults."""
        return LogConfig(
            segment_bytes=self.topic_segment_bytes.get(topic, self.segment_bytes),
            roll_ms=self.topic_roll_ms.get(topic, self.roll_ms),
            retention_ms=self.topic_retention_ms.get(topic, self.retention_ms),
            retention_bytes=self.topic_retention_bytes.get(topic, self.retention_bytes),
            flush_interval_messages=self.flush_interval_messages,
            flush_interval_ms=self.topic_flush_interval_ms.get(topic, self.flush_interval_ms),
            flush_before_read=self.flush_before_read,
        )


@dataclass(frozen=True, slots=True)
class ProducerConfig(Settings):
    """The settings of a producer.

    Defaults are 0.7's, except acknowledgements (0.7 has none), the number of retries (0.7: 0) and
    the unlimited wait for space in a queue (0.7 drops messages at once: KAFKA-709).
    """

    PROPERTIES: ClassVar[tuple[Property, ...]] = (
        _P(
            "producer.type",
            "producer_type",
            _TEXT,
            "send in the caller's thread, or in threads of its own",
            choices=("sync", "async"),
        ),
        _P("broker.list", "broker_list", _TEXT, "[ID:]HOST:PORT,..; instead of ZooKeeper"),
        _P(
            "compression.codec",
            "codec",
            _TEXT,
            "compression of messages",
            choices=("0", "1", "2", "none", "gzip", "snappy", "lz4", "zstd"),
        ),
        _P("compressed.topics", "compressed_topics", _TEXT, "only these, TOPIC,..; empty: all"),
        _P(
            "request.required.acks",
            "acks",
            _TEXT,
            "0 none, 1 written, -1 committed",
            choices=("0", "1", "-1"),
        ),
        _P("connect.timeout.ms", "connect_timeout_ms", _INT, "for all attempts together", 1),
        _P("socket.timeout.ms", "socket_timeout_ms", _INT, "wait for a response", 1),
        _P("buffer.size", "socket_send_bytes", _INT, "SO_SNDBUF; 0 leaves the system's", 0),
        _P("max.message.size", "max_message_bytes", _INT, "largest outer payload, bytes", 0),
        _P("max.in.flight.requests", "max_in_flight", _INT, "requests without a response", 1),
        _P("num.retries", "num_retries", _INT, "tries after a failure", 0),
        _P("retry.backoff.ms", "retry_backoff_ms", _INT, "before the first of them", 0),
        _P("reconnect.interval", "reconnect_requests", _INT, "requests; 0 for no limit", 0),
        _P("reconnect.time.interval.ms", "reconnect_ms", _INT, "or time; negative: no limit"),
        _P("queue.size", "queue_size", _INT, "async: messages waiting for one broker", 1),
        _P("queue.time", "queue_ms", _INT, "async: how long a message may wait for others", 0),
        _P("batch.size", "batch_size", _INT, "async: messages that need not wait for others", 1),
        _P(
            "queue.enqueueTimeout.ms",
            "enqueue_timeout_ms",
            _INT,
            "async: wait for room; 0 not at all, negative without end",
        ),
        *ZOOKEEPER_PROPERTIES,
    )

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "serializer.class": "give Producer.from_config an encoder",
        "partitioner.class": "give Producer.from_config a partitioner",
        "event.handler": "there is one way to send batches",
        "event.handler.props": "there is one way to send batches",
        "callback.handler": "give Producer.from_config callbacks",
        "callback.handler.props": "give Producer.from_config callbacks",
        "zk.read.num.retries": "watches keep the cluster's metadata up to date",
    }

    producer_type: str = "sync"
    broker_list: str = ""
    codec: str = "none"
    compressed_topics: str = ""
    acks: str = "-1"
    connect_timeout_ms: int = 5000
    socket_timeout_ms: int = 30_000
    socket_send_bytes: int = 0
    max_message_bytes: int = 1_000_000
    max_in_flight: int = 64
    num_retries: int = 3
    retry_backoff_ms: int = 100
    reconnect_requests: int = 30_000
    reconnect_ms: int = 10_000_000
    queue_size: int = 10_000
    queue_ms: int = 5000
    batch_size: int = 200
    enqueue_timeout_ms: int = -1
    zookeeper: str = ""
    zk_session_timeout_ms: int = 6000
    zk_connection_timeout_ms: int = 6000


@dataclass(frozen=True, slots=True)
class ConsumerConfig(Settings):
    """The settings of a consumer."""

    PROPERTIES: ClassVar[tuple[Property, ...]] = (
        _P("broker.list", "broker_list", _TEXT, "[ID:]HOST:PORT,..; instead of ZooKeeper"),
        _P("connect.timeout.ms", "connect_timeout_ms", _INT, "for all attempts together", 1),
        _P("socket.timeout.ms", "socket_timeout_ms", _INT, "wait for a response", 1),
        _P("socket.buffersize", "socket_receive_bytes", _INT, "SO_RCVBUF; 0 the system's", 0),
        _P("fetch.size", "fetch_bytes", _INT, "per partition and request", 1),
        _P("fetch.wait.max.ms", "max_wait_ms", _INT, "how long a read may wait", 0),
        _P("groupid", "group", _TEXT, "the consumer group"),
        _P("consumerid", "consumer_name", _TEXT, "the member's name; empty: one is made"),
        _P("autocommit.enable", "auto_commit", _BOOL, "commit finished offsets"),
        _P("autocommit.interval.ms", "auto_commit_interval_ms", _INT, "time between commits", 1),
        _P(
            "autooffset.reset",
            "offset_reset",
            _TEXT,
            "where to start without an offset, or with one out of range",
            choices=("smallest", "largest", "fail"),
        ),
        _P(
            "autooffset.outofrange.reset",
            "out_of_range_reset",
            _TEXT,
            "the latter, if it differs",
            choices=("", "smallest", "largest", "fail"),
        ),
        _P("queuedchunks.max", "max_queued_chunks", _INT, "chunks a stream reads ahead", 1),
        _P("fetcher.backoff.ms", "fetch_backoff_ms", _INT, "longest wait for a lost broker", 1),
        _P("rebalance.retries.max", "rebalance_retries", _INT, "failures before all is revoked", 1),
        _P("rebalance.backoff.ms", "rebalance_backoff_ms", _INT, "longest wait in between", 1),
        _P(
            "consumer.timeout.ms",
            "consumer_timeout_ms",
            _INT,
            "raise after no message for so long; -1 waits for ever",
            -1,
        ),
        *ZOOKEEPER_PROPERTIES,
    )

    broker_list: str = ""
    connect_timeout_ms: int = 5000
    socket_timeout_ms: int = 30_000
    socket_receive_bytes: int = 0
    fetch_bytes: int = 1 << 20
    max_wait_ms: int = 500
    group: str = ""
    consumer_name: str = ""
    auto_commit: bool = True
    auto_commit_interval_ms: int = 10_000
    offset_reset: str = "smallest"
    out_of_range_reset: str = ""
    max_queued_chunks: int = 10
    fetch_backoff_ms: int = 1000
    rebalance_retries: int = 4
    rebalance_backoff_ms: int = 2000
    consumer_timeout_ms: int = -1
    zookeeper: str = ""
    zk_session_timeout_ms: int = 6000
    zk_connection_timeout_ms: int = 6000


def load_file(path: Path) -> dict[str, str]:
    """Return the property texts in a file.

    Args:
        path: `.toml`, where tables and dotted keys both form property names; any other file is
            read as Java properties.

    Raises:
        ConfigError: the file cannot be read or parsed; the text names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read configuration {path}: {error}") from error
    if path.suffix == ".toml":
        return _parse_toml(path, text)
    return _parse_java_properties(path, text)


def _parse_toml(path: Path, text: str) -> dict[str, str]:
    import tomllib  # late: most commands read no file

    try:
        return dict(_flatten(tomllib.loads(text)))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: {error}") from error


def _flatten(table: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    maps = {prop.name for prop in BrokerConfig.PROPERTIES if prop.kind is Kind.TOPIC_MAP}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name in maps:
            yield name, ",".join(f"{topic}:{number}" for topic, number in value.items())
        elif isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
        else:
            yield name, str(value).lower() if isinstance(value, bool) else str(value)


def _parse_java_properties(path: Path, text: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        if not equals:
            raise ConfigError(f"{path}:{number}: '{line}' is not name=value")
        properties[name.strip()] = value.strip()
    return properties
