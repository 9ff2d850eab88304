"""Every setting of a broker, under the property names of Kafka 0.7.

Settings are read into a frozen object: defaults, then file (TOML, or Java properties as 0.7 reads
them), then environment, then options. Those of a broker that change while it runs come from
ZooKeeper and replace the object; `topic_settings` has those of single topics.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from broker.errors import ConfigError
from broker.listener_config import ListenerConfig
from broker.properties import (
    HOUR_MS,
    INT64_MAX,
    MINUTE_MS,
    Property,
    PropertyKind,
    ZooKeeperConfig,
    live,
    parse_property,
    setting,
    unit,
)
from broker.times import parse_times_of_day
from broker.topic import FORMAT_07, FORMATS

COMPACTION_POLICIES = ("compact", "compact,delete", "delete,compact")
"""Those by which only the last record of each key stays, in topics of the format kafka."""
CLEANUP_POLICIES = ("delete", "archive", *COMPACTION_POLICIES)
"""What can happen to segments past retention."""
VALIDATIONS = ("none", "id", "full")
"""How far payloads of topics with a schema subject are validated."""


def _processor_count() -> int:
    """Return the default number of processor threads for this machine."""
    # 0.7 has one for each core. Ours share the interpreter's lock, and the cores with the work
    # done outside of it (flushes, CRCs, compression): on two cores, a second processor thread adds
    # latency and no throughput.
    return max(1, (os.cpu_count() or 1) // 2)


def _of_08(prefix: str, names: Iterable[str], reason: str) -> dict[str, str]:
    """Return properties of Kafka 0.8 that have no effect here, and why."""
    return {f"{prefix}.{name}": reason for name in names}


_CLEANER = ("enable", "threads", "io.buffer.size", "io.buffer.load.factor")
_REPORTERS = (
    *("metrics.polling.interval.secs", "metrics.reporters"),
    *("csv.metrics.reporter.enabled", "csv.metrics.dir"),
)
_PURGATORY = ("purgatory.purge.interval.requests",)


@dataclass(frozen=True)
class BrokerConfig(ListenerConfig, ZooKeeperConfig):
    """The settings of a broker.

    Defaults are 0.7's, except the port (0.7: 6667, its sample: 9092), the bind address (0.7: all
    interfaces), the flush interval (0.7: 500 messages or 3 s) and the limits that 0.7 lacks.
    """

    WITHOUT_EFFECT: ClassVar[Mapping[str, str]] = {
        "log.default.flush.scheduler.interval.ms": "a log is flushed when it is due",
        "num.io.threads": "num.threads says how many threads serve requests",
        "queued.max.requests": "requests are not queued; queued.max.bytes limits their memory",
        "zk.synctime.ms": "watches keep what is read from ZooKeeper up to date",
        **_of_08("log.cleaner", _CLEANER, "one thread compacts the topics that ask for it"),
        **_of_08(
            "log.index", ("size.max.bytes", "interval.bytes"), "rows of an index are 4 KiB apart"
        ),
        **_of_08("log", ("delete.delay.ms", "segment.delete.delay.ms"), "readers keep files open"),
        **_of_08("kafka", _REPORTERS, "metrics.port serves metrics"),
        **_of_08("fetch", _PURGATORY, "requests that wait are dropped as they are answered"),
        **_of_08("producer", _PURGATORY, "requests that wait are dropped as they are answered"),
        "background.threads": "num.threads says how many threads serve requests",
        "controller.message.queue.size": "the controller sends only the latest states",
        "replica.lag.max.messages": "replica.lag.time.max.ms alone says which replicas are in sync",
        "offset.metadata.max.bytes": "offsets are in ZooKeeper, without metadata",
    }

    broker_id: int = setting(0, "brokerid", "this broker's number in the cluster", 0)
    data_dirs: tuple[Path, ...] = setting(
        (Path("data"),), "log.dir", "data directory, or several with commas in between"
    )
    num_threads: int = setting(_processor_count, "num.threads", "processor threads", 1)
    num_partitions: int = live(1, "num.partitions", "partitions of a new topic", 1)
    topic_partition_counts: Mapping[str, int] = live(
        dict, "topic.partition.count.map", "partitions by topic", 1
    )
    auto_create_topics: bool = setting(
        True, "auto.create.topics.enable", "the first message to a topic makes it"
    )
    default_replication_factor: int = setting(
        1,
        "default.replication.factor",
        "replicas of a topic that its first message makes; 1: its partitions stay at home",
        1,
    )
    log_format: str = setting(
        FORMAT_07,
        "log.format",
        "format of a topic that 0.7's produce or a publish makes: 0.7, or kafka",
        choices=FORMATS,
    )
    max_message_bytes: int = live(
        1_000_000, "max.message.size", "largest outer payload or record batch, bytes", 0
    )
    max_request_bytes: int = setting(
        104_857_600, "max.socket.request.bytes", "largest frame, bytes", 1
    )
    max_topic_name_length: int = setting(255, "max.topic.name.length", "longest topic name", 1)
    segment_bytes: int = live(
        1 << 30, "log.file.size", "roll a segment above this size, bytes", 5, maximum=INT64_MAX
    )
    topic_segment_bytes: Mapping[str, int] = live(
        dict, "topic.log.file.size", "the same by topic", 1, maximum=INT64_MAX
    )
    roll_ms: int = live(
        168 * HOUR_MS,
        "log.roll.hours",
        "roll a segment of this age",
        1,
        HOUR_MS,
        also=(
            unit("log.roll.minutes", "the same in minutes", 1, MINUTE_MS),
            unit("log.roll.ms", "the same in milliseconds", 1, maximum=INT64_MAX),
        ),
    )
    topic_roll_ms: Mapping[str, int] = live(
        dict, "topic.log.roll.hours", "the same by topic", 1, HOUR_MS
    )
    retention_ms: int = live(
        168 * HOUR_MS,
        "log.retention.hours",
        "keep segments so long",
        1,
        HOUR_MS,
        also=(
            unit("log.retention.minutes", "the same in minutes", 1, MINUTE_MS),
            unit("log.retention.ms", "the same in ms", 1, maximum=INT64_MAX),
        ),
    )
    topic_retention_ms: Mapping[str, int] = live(
        dict, "topic.log.retention.hours", "by topic", 1, HOUR_MS
    )
    retention_bytes: int = live(
        -1, "log.retention.size", "keep so much of a partition; -1 all", maximum=INT64_MAX
    )
    topic_retention_bytes: Mapping[str, int] = live(
        dict, "topic.log.retention.size", "the same by topic", 1, maximum=INT64_MAX
    )
    retention_policy: str = setting(
        "delete",
        "log.cleanup.policy",
        "what happens to segments past retention: delete, archive, or what a plug-in says; "
        "compact, in the format kafka: of each key the last record stays",
    )
    topic_retention_policy: Mapping[str, str] = setting(
        dict, "topic.log.cleanup.policy", "the same by topic"
    )
    archive_dir: Path | None = setting(None, "log.archive.dir", "where policy archive puts them")
    archive_retention_ms: int = live(
        0,
        "log.archive.retention.hours",
        "keep archived segments so long, by the time of their last message; 0: for good",
        0,
        HOUR_MS,
    )
    archive_retention_bytes: int = live(
        -1,
        "log.archive.retention.size",
        "keep so much of a partition's archive, compressed; -1 all",
        -1,
        maximum=INT64_MAX,
    )
    cleanup_interval_ms: int = live(
        10 * MINUTE_MS,
        "log.cleanup.interval.mins",
        "how often segments past retention are looked for",
        1,
        MINUTE_MS,
        maximum=525_600,
        also=(
            unit(
                "log.retention.check.interval.ms",
                "the same in milliseconds",
                1,
                maximum=525_600 * MINUTE_MS,
            ),
        ),
    )
    cleanup_times: str = live(
        "",
        "log.cleanup.times",
        "times of day for it instead, of the machine's time zone: HH:MM,..; empty: none",
    )
    cleaner_bytes_per_s: int = live(
        32 << 20,
        "log.cleaner.io.max.bytes.per.second",
        "what compaction reads and writes in a second; 0: no limit",
        0,
        maximum=INT64_MAX,
    )
    cleaner_map_bytes: int = live(
        128 << 20, "log.cleaner.dedupe.buffer.size", "memory for the keys of one compaction", 1
    )
    cleaner_backoff_ms: int = live(
        15_000, "log.cleaner.backoff.ms", "how often logs to compact are looked for", 1
    )
    min_cleanable_ratio: float = live(
        0.5, "log.cleaner.min.cleanable.ratio", "compact a log of which so much is new"
    )
    min_compaction_lag_ms: int = live(
        0, "log.cleaner.min.compaction.lag.ms", "leave records of this age", 0, maximum=INT64_MAX
    )
    delete_retention_ms: int = live(
        24 * HOUR_MS,
        "log.cleaner.delete.retention.ms",
        "keep records that delete a key so long",
        0,
        maximum=INT64_MAX,
    )
    flush_interval_messages: int = live(10_000, "log.flush.interval", "flush after n messages", 1)
    topic_flush_interval_messages: Mapping[str, int] = live(
        dict, "topic.log.flush.interval", "the same by topic", 1
    )
    flush_interval_ms: int = live(100, "log.default.flush.interval.ms", "or after this time", 1)
    topic_flush_interval_ms: Mapping[str, int] = live(
        dict, "topic.flush.intervals.ms", "the same by topic", 1
    )
    flush_before_read: bool = live(True, "log.flush.before.read", "consumers see flushed messages")
    flusher_threads: int = setting(2, "log.flusher.threads", "threads that fsync", 1)
    checkpoint_interval_ms: int = live(5000, "log.checkpoint.interval.ms", "recovery point", 1)
    reuse_lost_offsets: bool = setting(
        False, "log.lost.offsets.reuse", "a log that lost its end goes on there, not behind it"
    )
    socket_send_bytes: int = setting(0, "socket.send.buffer", "SO_SNDBUF; 0 leaves the system's", 0)
    socket_receive_bytes: int = setting(0, "socket.receive.buffer", "SO_RCVBUF; 0 the system's", 0)
    max_fetch_wait_ms: int = live(
        MINUTE_MS, "max.fetch.wait.ms", "longest wait of a read; longer ones are cut", 1
    )
    max_fetch_positions: int = live(
        10_000, "max.fetch.positions", "partitions that one read may name", 1
    )
    max_connections: int = live(10_000, "max.connections", "connections in all", 1)
    max_connections_per_ip: int = live(
        1000, "max.connections.per.ip", "from one address of another machine", 1
    )
    quota_producer_bytes: int = live(
        0,
        "quota.producer.default",
        "bytes a second from each user without a quota of its own; 0: no limit",
        0,
        maximum=INT64_MAX,
    )
    quota_consumer_bytes: int = live(
        0, "quota.consumer.default", "the same of bytes to each user", 0, maximum=INT64_MAX
    )
    quota_request_percent: int = live(
        0,
        "quota.request.default",
        "the same of work for each user, percent of one thread's time",
        0,
    )
    quota_creation_rate: int = live(
        10,
        "quota.creation.default",
        "topics a second that each user may create, after 200 times as many; 0: no limit",
        0,
    )
    max_partitions: int = live(
        50_000,
        "max.partitions",
        "of this broker, up to which users create topics; half of them for one user",
        1,
    )
    max_connection_rate: int = live(
        0,
        "max.connection.creation.rate",
        "new connections a second; more have to wait; 0: no limit",
        0,
    )
    audit_log: Path | None = setting(
        None,
        "audit.log",
        "file that tells who was refused what and who administered, as JSON; empty: none",
    )
    max_idle_ms: int = live(
        10 * MINUTE_MS, "connections.max.idle.ms", "close after no whole request", 1
    )
    max_queued_bytes: int = setting(
        256 << 20,
        "queued.max.bytes",
        "of requests that come in pieces, each beyond 32 KiB; others wait",
        1,
        maximum=INT64_MAX,
    )
    monitoring_period_ms: int = setting(
        600_000, "monitoring.period.secs", "window of rates", 1, 1000
    )
    min_insync_replicas: int = setting(
        1,
        "min.insync.replicas",
        "replicas in sync that acks -1 needs, in topics without a number of their own",
        1,
    )
    allows_unclean_election: bool = setting(
        False,
        "unclean.leader.election.enable",
        "a replica that lacks messages may lead if no other is there, in topics without a "
        "choice of their own",
    )
    schema_validation: str = live(
        "none",
        "schema.validation",
        "what is refused of topics with a schema subject: nothing (none), messages without the id "
        "of a schema of it (id), or that do not decode with it (full)",
        choices=VALIDATIONS,
    )
    rack: str = setting("", "broker.rack", "where it stands; replicas are spread over racks")
    replica_lag_ms: int = setting(
        10_000, "replica.lag.time.max.ms", "a replica behind for longer is not in sync", 1
    )
    num_replica_fetchers: int = setting(
        1, "num.replica.fetchers", "threads that copy from each broker that leads", 1, maximum=64
    )
    replica_fetch_wait_ms: int = setting(
        500,
        "replica.fetch.wait.max.ms",
        "how long a fetch of a follower waits for messages, by the settings of both brokers at "
        "most; two seconds while nothing changes",
        1,
    )
    replica_fetch_min_bytes: int = setting(
        1,
        "replica.fetch.min.bytes",
        "for so many new bytes of the partitions that are copied together",
        1,
    )
    replica_fetch_bytes: int = setting(
        4 << 20, "replica.fetch.max.bytes", "of a partition, in one response to a follower", 1
    )
    replica_socket_timeout_ms: int = setting(
        30_000, "replica.socket.timeout.ms", "wait for a response of another broker", 1
    )
    replica_socket_receive_bytes: int = setting(
        0,
        "replica.socket.receive.buffer.bytes",
        "SO_RCVBUF of connections to leaders; 0 the system's",
        0,
    )
    controller_socket_timeout_ms: int = setting(
        30_000,
        "controller.socket.timeout.ms",
        "as the controller, wait for a response of a broker",
        1,
    )
    broker_silence_ms: int = setting(
        3000,
        "broker.silence.ms",
        "without an answer, another broker is taken for dead; 0: only its session tells",
        0,
    )
    high_watermark_checkpoint_ms: int = setting(
        5000,
        "replica.high.watermark.checkpoint.interval.ms",
        "between two checkpoints of high watermarks",
        1,
    )
    balances_leaders: bool = setting(
        True,
        "auto.leader.rebalance.enable",
        "give leaderships back to the preferred replicas from time to time",
    )
    leader_balance_interval_ms: int = setting(
        300_000, "leader.imbalance.check.interval.seconds", "between two looks at that", 1, 1000
    )
    max_leader_imbalance: int = setting(
        10,
        "leader.imbalance.per.broker.percentage",
        "percent of what a broker is to lead that others may lead",
        0,
        maximum=100,
    )
    enable_controlled_shutdown: bool = setting(
        True, "controlled.shutdown.enable", "move leaderships away before the broker stops"
    )
    controlled_shutdown_retries: int = setting(
        3, "controlled.shutdown.max.retries", "tries after a failure", 0
    )
    controlled_shutdown_backoff_ms: int = setting(
        5000, "controlled.shutdown.retry.backoff.ms", "before each of them", 0
    )
    enable_zookeeper: bool = setting(True, "enable.zookeeper", "whether to use zk.connect")
    zk_set_acl: bool = setting(
        False, "zookeeper.set.acl", "close nodes in ZooKeeper to all but the user of the credential"
    )

    def __post_init__(self) -> None:
        policies = self.policy_settings
        if "archive" in policies and self.archive_dir is None:
            raise ConfigError("log.cleanup.policy=archive needs log.archive.dir")
        for policy in policies.keys() - {*CLEANUP_POLICIES}:
            from broker.plugins import POLICY, installed  # late: few brokers have plug-ins

            names = [*CLEANUP_POLICIES, *(one.name for one in installed(POLICY))]
            if ":" not in policy and policy not in names:
                raise ConfigError(
                    f"{policies[policy]} is '{policy}'; it must be one of {', '.join(names)}, or a "
                    "plug-in, module:name"
                )
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
    def policy_settings(self) -> dict[str, str]:
        """Return the policies for segments past retention, each with the setting that names it."""
        by_topic = dict.fromkeys(self.topic_retention_policy.values(), "topic.log.cleanup.policy")
        return by_topic | {self.retention_policy: "log.cleanup.policy"}

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
    kinds = (PropertyKind.TOPIC_MAP, PropertyKind.TEXT_MAP)
    maps = {prop.name for prop in BrokerConfig.PROPERTIES if prop.kind in kinds}
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
