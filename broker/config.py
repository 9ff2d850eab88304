"""Every setting of a broker, under the property names of Kafka 0.7.

Settings are read into a frozen object: defaults, then file (TOML, or Java properties as 0.7 reads
them), then environment, then options. Those of a broker that change while it runs come from
ZooKeeper and replace the object; `topic_settings` has those of single topics.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from broker.errors import ConfigError
from broker.listener_config import ListenerConfig
from broker.properties import (
    HOUR_MS,
    INT64_MAX,
    MINUTE_MS,
    ZOOKEEPER_PROPERTIES,
    Property,
    PropertyKind,
    parse_property,
)
from broker.times import parse_times_of_day


def _processor_count() -> int:
    """Return the default number of processor threads for this machine."""
    # 0.7 has one for each core. Ours share the interpreter's lock, and the cores with the work
    # done outside of it (flushes, CRCs, compression): on two cores, a second processor thread adds
    # latency and no throughput.
    return max(1, (os.cpu_count() or 1) // 2)


_P = Property
_INT, _BOOL, _TEXT, _PATHS, _MAP = (
    PropertyKind.INTEGER,
    PropertyKind.BOOLEAN,
    PropertyKind.TEXT,
    PropertyKind.PATHS,
    PropertyKind.TOPIC_MAP,
)


def _of_08(prefix: str, names: Iterable[str], reason: str) -> dict[str, str]:
    """Return properties of Kafka 0.8 that have no effect here, and why."""
    return {f"{prefix}.{name}": reason for name in names}


_CLEANER = (
    *("enable", "threads", "io.max.bytes.per.second", "dedupe.buffer.size", "io.buffer.size"),
    *("io.buffer.load.factor", "backoff.ms", "min.cleanable.ratio", "delete.retention.ms"),
)
_REPORTERS = (
    *("metrics.polling.interval.secs", "metrics.reporters"),
    *("csv.metrics.reporter.enabled", "csv.metrics.dir"),
)
_PURGATORY = ("purgatory.purge.interval.requests",)


@dataclass(frozen=True, slots=True)
class BrokerConfig(ListenerConfig):
    """The settings of a broker.

    Defaults are 0.7's, except the port (0.7: 6667, its sample: 9092), the bind address (0.7: all
    interfaces), the flush interval (0.7: 500 messages or 3 s) and the limits that 0.7 lacks.
    """

    PROPERTIES: ClassVar[tuple[Property, ...]] = (
        _P("brokerid", "broker_id", _INT, "this broker's number in the cluster", 0),
        *ListenerConfig.PROPERTIES,
        _P("log.dir", "data_dirs", _PATHS, "data directory, or several with commas in between"),
        _P("num.threads", "num_threads", _INT, "processor threads", 1),
        _P("num.partitions", "num_partitions", _INT, "partitions of a new topic", 1),
        _P("topic.partition.count.map", "topic_partition_counts", _MAP, "partitions by topic", 1),
        _P(
            "auto.create.topics.enable",
            "auto_create_topics",
            _BOOL,
            "the first message to a topic makes it",
        ),
        _P(
            "default.replication.factor",
            "default_replication_factor",
            _INT,
            "replicas of a topic that its first message makes; 1: its partitions stay at home",
            1,
        ),
        _P("max.message.size", "max_message_bytes", _INT, "largest outer payload, bytes", 0),
        _P("max.socket.request.bytes", "max_request_bytes", _INT, "largest frame, bytes", 1),
        _P("max.topic.name.length", "max_topic_name_length", _INT, "longest topic name", 1),
        _P(
            "log.file.size",
            "segment_bytes",
            _INT,
            "roll a segment above this size, bytes",
            5,
            maximum=INT64_MAX,
        ),
        _P(
            "topic.log.file.size",
            "topic_segment_bytes",
            _MAP,
            "the same by topic",
            1,
            maximum=INT64_MAX,
        ),
        _P("log.roll.hours", "roll_ms", _INT, "roll a segment of this age", 1, HOUR_MS),
        _P("log.roll.minutes", "roll_ms", _INT, "the same in minutes", 1, MINUTE_MS),
        _P("log.roll.ms", "roll_ms", _INT, "the same in milliseconds", 1, maximum=INT64_MAX),
        _P("topic.log.roll.hours", "topic_roll_ms", _MAP, "the same by topic", 1, HOUR_MS),
        _P("log.retention.hours", "retention_ms", _INT, "keep segments so long", 1, HOUR_MS),
        _P("log.retention.minutes", "retention_ms", _INT, "the same in minutes", 1, MINUTE_MS),
        _P("log.retention.ms", "retention_ms", _INT, "the same in ms", 1, maximum=INT64_MAX),
        _P("topic.log.retention.hours", "topic_retention_ms", _MAP, "by topic", 1, HOUR_MS),
        _P(
            "log.retention.size",
            "retention_bytes",
            _INT,
            "keep so much of a partition; -1 all",
            maximum=INT64_MAX,
        ),
        _P(
            "topic.log.retention.size",
            "topic_retention_bytes",
            _MAP,
            "the same by topic",
            1,
            maximum=INT64_MAX,
        ),
        _P(
            "log.cleanup.policy",
            "retention_policy",
            _TEXT,
            "what happens to segments past retention",
            choices=("delete", "archive"),
        ),
        _P(
            "log.archive.dir",
            "archive_dir",
            PropertyKind.OPTIONAL_PATH,
            "where policy archive puts them",
        ),
        _P(
            "log.cleanup.interval.mins",
            "cleanup_interval_ms",
            _INT,
            "how often segments past retention are looked for",
            1,
            MINUTE_MS,
            maximum=525_600,
        ),
        _P(
            "log.retention.check.interval.ms",
            "cleanup_interval_ms",
            _INT,
            "the same in milliseconds",
            1,
            maximum=525_600 * MINUTE_MS,
        ),
        _P(
            "log.cleanup.times",
            "cleanup_times",
            _TEXT,
            "times of day for it instead, of the machine's time zone: HH:MM,..; empty: none",
        ),
        _P("log.flush.interval", "flush_interval_messages", _INT, "flush after n messages", 1),
        _P(
            "topic.log.flush.interval",
            "topic_flush_interval_messages",
            _MAP,
            "the same by topic",
            1,
        ),
        _P("log.default.flush.interval.ms", "flush_interval_ms", _INT, "or after this time", 1),
        _P("topic.flush.intervals.ms", "topic_flush_interval_ms", _MAP, "the same by topic", 1),
        _P("log.flush.before.read", "flush_before_read", _BOOL, "consumers see flushed messages"),
        _P("log.flusher.threads", "flusher_threads", _INT, "threads that fsync", 1),
        _P("log.checkpoint.interval.ms", "checkpoint_interval_ms", _INT, "recovery point", 1),
        _P(
            "log.lost.offsets.reuse",
            "reuse_lost_offsets",
            _BOOL,
            "a log that lost its end goes on there, not behind it",
        ),
        _P("socket.send.buffer", "socket_send_bytes", _INT, "SO_SNDBUF; 0 leaves the system's", 0),
        _P("socket.receive.buffer", "socket_receive_bytes", _INT, "SO_RCVBUF; 0 the system's", 0),
        _P(
            "max.fetch.wait.ms",
            "max_fetch_wait_ms",
            _INT,
            "longest wait of a read; longer ones are cut",
            1,
        ),
        _P(
            "max.fetch.positions",
            "max_fetch_positions",
            _INT,
            "partitions that one read may name",
            1,
        ),
        _P("max.connections", "max_connections", _INT, "connections in all", 1),
        _P(
            "max.connections.per.ip",
            "max_connections_per_ip",
            _INT,
            "from one address of another machine",
            1,
        ),
        _P(
            "quota.producer.default",
            "quota_producer_bytes",
            _INT,
            "bytes a second from each user without a quota of its own; 0: no limit",
            0,
            maximum=INT64_MAX,
        ),
        _P(
            "quota.consumer.default",
            "quota_consumer_bytes",
            _INT,
            "the same of bytes to each user",
            0,
            maximum=INT64_MAX,
        ),
        _P(
            "quota.request.default",
            "quota_request_percent",
            _INT,
            "the same of work for each user, percent of one thread's time",
            0,
        ),
        _P(
            "quota.creation.default",
            "quota_creation_rate",
            _INT,
            "topics a second that each user may create, after 200 times as many; 0: no limit",
            0,
        ),
        _P(
            "max.partitions",
            "max_partitions",
            _INT,
            "of this broker, up to which users create topics; half of them for one user",
            1,
        ),
        _P(
            "max.connection.creation.rate",
            "max_connection_rate",
            _INT,
            "new connections a second; more have to wait; 0: no limit",
            0,
        ),
        _P(
            "audit.log",
            "audit_log",
            PropertyKind.OPTIONAL_PATH,
            "file that tells who was refused what and who administered, as JSON; empty: none",
        ),
        _P("connections.max.idle.ms", "max_idle_ms", _INT, "close after no whole request", 1),
        _P(
            "queued.max.bytes",
            "max_queued_bytes",
            _INT,
            "of requests that come in pieces, each beyond 32 KiB; others wait",
            1,
            maximum=INT64_MAX,
        ),
        _P("monitoring.period.secs", "monitoring_period_ms", _INT, "window of rates", 1, 1000),
        _P(
            "min.insync.replicas",
            "min_insync_replicas",
            _INT,
            "replicas in sync that acks -1 needs, in topics without a number of their own",
            1,
        ),
        _P(
            "unclean.leader.election.enable",
            "allows_unclean_election",
            _BOOL,
            "a replica that lacks messages may lead if no other is there, in topics without a "
            "choice of their own",
        ),
        _P("broker.rack", "rack", _TEXT, "where it stands; replicas are spread over racks"),
        _P(
            "replica.lag.time.max.ms",
            "replica_lag_ms",
            _INT,
            "a replica behind for longer is not in sync",
            1,
        ),
        _P(
            "num.replica.fetchers",
            "num_replica_fetchers",
            _INT,
            "threads that copy from each broker that leads",
            1,
            maximum=64,
        ),
        _P(
            "replica.fetch.wait.max.ms",
            "replica_fetch_wait_ms",
            _INT,
            "how long a fetch of a follower waits for messages, by the settings of both brokers at "
            "most; two seconds while nothing changes",
            1,
        ),
        _P(
            "replica.fetch.min.bytes",
            "replica_fetch_min_bytes",
            _INT,
            "for so many new bytes of the partitions that are copied together",
            1,
        ),
        _P(
            "replica.fetch.max.bytes",
            "replica_fetch_bytes",
            _INT,
            "of a partition, in one response to a follower",
            1,
        ),
        _P(
            "replica.socket.timeout.ms",
            "replica_socket_timeout_ms",
            _INT,
            "wait for a response of another broker",
            1,
        ),
        _P(
            "replica.socket.receive.buffer.bytes",
            "replica_socket_receive_bytes",
            _INT,
            "SO_RCVBUF of connections to leaders; 0 the system's",
            0,
        ),
        _P(
            "controller.socket.timeout.ms",
            "controller_socket_timeout_ms",
            _INT,
            "as the controller, wait for a response of a broker",
            1,
        ),
        _P(
            "broker.silence.ms",
            "broker_silence_ms",
            _INT,
            "without an answer, another broker is taken for dead; 0: only its session tells",
            0,
        ),
        _P(
            "replica.high.watermark.checkpoint.interval.ms",
            "high_watermark_checkpoint_ms",
            _INT,
            "between two checkpoints of high watermarks",
            1,
        ),
        _P(
            "auto.leader.rebalance.enable",
            "balances_leaders",
            _BOOL,
            "give leaderships back to the preferred replicas from time to time",
        ),
        _P(
            "leader.imbalance.check.interval.seconds",
            "leader_balance_interval_ms",
            _INT,
            "between two looks at that",
            1,
            1000,
        ),
        _P(
            "leader.imbalance.per.broker.percentage",
            "max_leader_imbalance",
            _INT,
            "percent of what a broker is to lead that others may lead",
            0,
            maximum=100,
        ),
        _P(
            "controlled.shutdown.enable",
            "enable_controlled_shutdown",
            _BOOL,
            "move leaderships away before the broker stops",
        ),
        _P(
            "controlled.shutdown.max.retries",
            "controlled_shutdown_retries",
            _INT,
            "tries after a failure",
            0,
        ),
        _P(
            "controlled.shutdown.retry.backoff.ms",
            "controlled_shutdown_backoff_ms",
            _INT,
            "before each of them",
            0,
        ),
        _P("enable.zookeeper", "enable_zookeeper", _BOOL, "whether to use zk.connect"),
        *ZOOKEEPER_PROPERTIES,
        _P(
            "zookeeper.set.acl",
            "zk_set_acl",
            _BOOL,
            "close nodes in ZooKeeper to all but the user of the credential",
        ),
    )

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "log.default.flush.scheduler.interval.ms": "a log is flushed when it is due",
        "num.io.threads": "num.threads says how many threads serve requests",
        "queued.max.requests": "requests are not queued; queued.max.bytes limits their memory",
        "zk.synctime.ms": "watches keep what is read from ZooKeeper up to date",
        **_of_08("log.cleaner", _CLEANER, "logs are not compacted"),
        **_of_08("log.index", ("size.max.bytes", "interval.bytes"), "logs have no index files"),
        **_of_08("log", ("delete.delay.ms", "segment.delete.delay.ms"), "readers keep files open"),
        **_of_08("kafka", _REPORTERS, "metrics.port serves metrics"),
        **_of_08("fetch", _PURGATORY, "requests that wait are dropped as they are answered"),
        **_of_08("producer", _PURGATORY, "requests that wait are dropped as they are answered"),
        "background.threads": "num.threads says how many threads serve requests",
        "controller.message.queue.size": "the controller sends only the latest states",
        "replica.lag.max.messages": "replica.lag.time.max.ms alone says which replicas are in sync",
        "offset.metadata.max.bytes": "offsets are in ZooKeeper, without metadata",
    }
    DYNAMIC: ClassVar[frozenset[str]] = frozenset(
        (
            "num_partitions",
            "topic_partition_counts",
            "max_message_bytes",
            "segment_bytes",
            "topic_segment_bytes",
            "roll_ms",
            "topic_roll_ms",
            "retention_ms",
            "topic_retention_ms",
            "retention_bytes",
            "topic_retention_bytes",
            "cleanup_interval_ms",
            "cleanup_times",
            "flush_interval_messages",
            "topic_flush_interval_messages",
            "flush_interval_ms",
            "topic_flush_interval_ms",
            "flush_before_read",
            "checkpoint_interval_ms",
            "max_fetch_wait_ms",
            "max_fetch_positions",
            "max_connections",
            "max_connections_per_ip",
            "max_idle_ms",
            "max_connection_rate",
            "quota_producer_bytes",
            "quota_consumer_bytes",
            "quota_request_percent",
            "quota_creation_rate",
            "max_partitions",
        )
    )
    """The fields that change while the broker runs; all others need a restart."""

    broker_id: int = 0
    data_dirs: tuple[Path, ...] = (Path("data"),)
    num_threads: int = field(default_factory=_processor_count)
    num_partitions: int = 1
    topic_partition_counts: Mapping[str, int] = field(default_factory=dict)
    auto_create_topics: bool = True
    default_replication_factor: int = 1
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
    cleanup_times: str = ""
    flush_interval_messages: int = 10_000
    topic_flush_interval_messages: Mapping[str, int] = field(default_factory=dict)
    flush_interval_ms: int = 100
    topic_flush_interval_ms: Mapping[str, int] = field(default_factory=dict)
    flush_before_read: bool = True
    flusher_threads: int = 2
    checkpoint_interval_ms: int = 5000
    reuse_lost_offsets: bool = False
    socket_send_bytes: int = 0
    socket_receive_bytes: int = 0
    max_fetch_wait_ms: int = MINUTE_MS
    max_fetch_positions: int = 10_000
    max_connections: int = 10_000
    max_connections_per_ip: int = 1000
    max_connection_rate: int = 0
    audit_log: Path | None = None
    quota_producer_bytes: int = 0
    quota_consumer_bytes: int = 0
    quota_request_percent: int = 0
    quota_creation_rate: int = 10
    max_partitions: int = 50_000
    max_idle_ms: int = 10 * MINUTE_MS
    max_queued_bytes: int = 256 << 20
    monitoring_period_ms: int = 600_000
    min_insync_replicas: int = 1
    allows_unclean_election: bool = False
    rack: str = ""
    replica_lag_ms: int = 10_000
    num_replica_fetchers: int = 1
    replica_fetch_wait_ms: int = 500
    replica_fetch_min_bytes: int = 1
    replica_fetch_bytes: int = 4 << 20
    replica_socket_timeout_ms: int = 30_000
    replica_socket_receive_bytes: int = 0
    controller_socket_timeout_ms: int = 30_000
    broker_silence_ms: int = 3000
    high_watermark_checkpoint_ms: int = 5000
    balances_leaders: bool = True
    leader_balance_interval_ms: int = 300_000
    max_leader_imbalance: int = 10
    enable_controlled_shutdown: bool = True
    controlled_shutdown_retries: int = 3
    controlled_shutdown_backoff_ms: int = 5000
    enable_zookeeper: bool = True
    zookeeper: str = ""
    zk_session_timeout_ms: int = 6000
    zk_connection_timeout_ms: int = 6000
    zk_credential_file: Path | None = None
    zk_tls: bool = False
    zk_tls_ca: Path | None = None
    zk_tls_cert: Path | None = None
    zk_tls_key: Path | None = None
    zk_set_acl: bool = False

    def __post_init__(self) -> None:
        if self.retention_policy == "archive" and self.archive_dir is None:
            raise ConfigError("log.cleanup.policy=archive needs log.archive.dir")
        self._check_listeners()
        try:
            parse_times_of_day(self.cleanup_times)
        except ConfigError as error:
            raise ConfigError(f"log.cleanup.times={self.cleanup_times}: {error}") from error
        if self.replica_fetch_wait_ms >= self.replica_lag_ms:
            raise ConfigError(
                f"replica.fetch.wait.max.ms={self.replica_fetch_wait_ms} must be below "
                f"replica.lag.time.max.ms={self.replica_lag_ms}: followers that wait for messages "
                "would count as lagging"
            )

    @classmethod
    def dynamic_property(cls, name: str) -> Property:
        """Return a property that changes while the broker runs, by its name of 0.7 or 0.8.

        Raises:
            ConfigError: there is none of that name, or it needs a restart.
        """
        prop = cls.property_of(name)
        if prop.field not in cls.DYNAMIC:
            raise ConfigError(
                f"{prop.name} changes at a start only: set it in the broker's properties file, and "
                "restart the broker"
            )
        return prop

    @classmethod
    def normalize_overrides(cls, texts: Mapping[str, str]) -> dict[str, str]:
        """Return settings of a running broker under their names of 0.7; one for each field.

        Raises:
            ConfigError: a name is unknown, its property needs a restart, or a text is invalid.
        """
        normal: dict[str, tuple[str, str]] = {}
        for name, text in texts.items():
            prop = cls.dynamic_property(name)
            parse_property(prop, text)
            normal[prop.field] = prop.name, text.strip()
        return dict(normal.values())

    @property
    def data_dir(self) -> Path:
        """Return the first data directory."""
        return self.data_dirs[0]

    @property
    def zookeeper_connect(self) -> str:
        """Return ZooKeeper's connect string; empty for a broker without ZooKeeper."""
        return self.zookeeper if self.enable_zookeeper else ""


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
    maps = {prop.name for prop in BrokerConfig.PROPERTIES if prop.kind is PropertyKind.TOPIC_MAP}
    maps |= {alias for alias, one in BrokerConfig.aliases().items() if one in maps}
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping) and name in maps:
            yield name, ",".join(f"{topic}:{number}" for topic, number in value.items())
        elif isinstance(value, Mapping):
            yield from _flatten(value, f"{name}.")
        elif isinstance(value, list):
            yield name, ",".join(map(str, value))
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
