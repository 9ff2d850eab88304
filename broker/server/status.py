"""STATUS: the state, the settings and the metrics of a broker, as one document."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from broker import __version__
from broker.config import BrokerConfig
from broker.exposition import SCRAPES, Scrapes, exposition_text, label_text, lines
from broker.log.archiving import Archive
from broker.log.data_directory import DataDirectory
from broker.log.log import Log
from broker.log.manager import LogManager
from broker.metrics import Attributes, ManagedObject, Metric, Reading, counter, gauge, times, waits
from broker.protocol import codec
from broker.protocol.extension_requests import StatusParts
from broker.protocol.fetch_sessions import FetchSessions
from broker.server import replication_status
from broker.server.cluster.cluster_membership import ClusterMembership
from broker.server.cluster.replica_manager import ReplicaManager
from broker.server.network.connection_state import ConnectionState
from broker.server.network.socket_server import SocketServer
from broker.server.requests import metrics
from broker.server.requests.broker_parts import BrokerParts
from broker.server.requests.creation_limits import CreationLimits
from broker.topic import NO_HOME, unregistrable_in
from broker.topic_settings import TOPIC_SETTINGS, TopicConfig, value_text

if TYPE_CHECKING:
    from broker.zk.registry import Registry

SOFTWARE = f"pylogctl {__version__}"
_STATES = {"starting": 1, "running": 3, "stopping": 6}
"""Kafka 0.8's numbers of the phases."""
_RUNNING_AS_CONTROLLER = 4
_SHOWN_THROTTLED = 20


CONNECTIONS: ManagedObject[SocketServer] = ManagedObject(
    metrics.REQUESTS.name,
    gauge("Connections", lambda it: it.network.connection_count.total,
        "open connections", series="broker_connections"),
    counter("ConnectionsAccepted", lambda it: it.network.connection_count.accepted,
        "connections that clients have opened", series="broker_connections_accepted_total"),
    counter("ConnectionsRefused", lambda it: it.network.connection_count.refused["max.connections"],
        "connections beyond `max.connections`", healthy="0",
        series='broker_connections_refused_total{reason="limit"}'),
    counter("ConnectionsRefusedByAddress",
        lambda it: it.network.connection_count.refused["max.connections.per.ip"],
        "connections beyond `max.connections.per.ip`", healthy="0",
        series='broker_connections_refused_total{reason="address_limit"}'),
    gauge("CertificateDaysLeft",
        lambda it: None if it.tls is None else round(it.tls.days_left, 2),
        "days until the certificate of the TLS listeners expires", healthy="above 30",
        series="broker_tls_certificate_days_left"),
    gauge("QueuedBytes", lambda it: it.network.queued_bytes.taken,
        "taken of `queued.max.bytes` by requests that arrive", unit="bytes",
        series="broker_queued_bytes"),
    gauge("QueuedBytesLimit", lambda it: it.network.queued_bytes.limit,
        "`queued.max.bytes`", series="broker_queued_bytes_limit"),
    gauge("ThrottledConnections", lambda it: it.network.queued_bytes.waiting_count,
        "connections that wait for a part of it", healthy="0",
        series="broker_throttled_connections"),
    gauge("ConnectionsOverQuota",
        lambda it: sum(one.state is ConnectionState.THROTTLED for one in it.connections),
        "connections that wait as their user has used more than its quota; `throttled` in the "
        "status names those users", healthy="0", series="broker_connections_over_quota"),
    counter("QuotaThrottleSeconds", lambda it: sum(one.throttled_s for one in it.metrics),
        "that connections waited for quotas, all together", healthy="still", unit="seconds",
        series="broker_quota_throttle_seconds_total"),
    gauge("ConnectionsWithHeldRequests",
        lambda it: sum(bool(one.receiver.held) for one in it.connections),
        "connections with requests that were received and wait for their turn, for a worker "
        "thread, or for room in the response queue", healthy="few",
        series="broker_connections_held"),
    gauge("ConnectionsWithUnsentResponses",
        lambda it: sum(one.responses.has_unsent for one in it.connections),
        "connections with a response that their client, or the network, has not taken yet",
        healthy="few", series="broker_connections_unsent"),
)  # fmt: skip


SESSIONS: ManagedObject[FetchSessions[Any]] = ManagedObject(
    "FetchSessions",
    gauge("Sessions", len,
        "fetch sessions that are kept: of followers, and of consumers of many partitions",
        healthy="below 1000", series="broker_fetch_sessions"),
    counter("Evicted", lambda it: it.evicted_count,
        "sessions given up for want of room; their readers name all positions again, consumers in "
        "each read", healthy="still", series="broker_fetch_sessions_evicted_total"),
)  # fmt: skip


class Running(NamedTuple):
    """What the broker is doing, and since when."""

    state: int
    started_ms: int


INFO: ManagedObject[None] = ManagedObject(
    "BrokerInfo.{id}.{version}",
    gauge("Info", lambda _: 1, "always 1: who this is", series="broker_info"),
)  # fmt: skip
SERVER: ManagedObject[Running] = ManagedObject(
    "KafkaServer",
    gauge("BrokerState", lambda it: it.state,
        "0 not running, 1 starting or recovering, 3 running, 4 running as the controller, 6 "
        "shutting down", healthy="3 or 4", series="broker_state"),
    gauge("StartTimeMs", lambda it: it.started_ms,
        "when it started, since 1970", unit="ms", series="broker_start_timestamp_seconds"),
    counter("CpuSeconds", lambda _: time.process_time(),
        "processor time of the process since its start. Its threads share one interpreter: near 1 "
        "a second there is no room left", healthy="below 0.7 a second", unit="seconds"),
)  # fmt: skip
ZOOKEEPER: ManagedObject[Registry | None] = ManagedObject(
    "ZooKeeper",
    gauge("SessionState", lambda registry: None if registry is None else registry.status.state,
        "`suspended`: the connection is lost for now; `lost`: the session has expired; null "
        "without ZooKeeper. `session` in the status says more", healthy="`connected`",
        series="zookeeper_connected", number=lambda state: state == "connected"),
    counter("SessionExpirations",
        lambda registry: 0 if registry is None else registry.expiration_count,
        "each costs the leaderships of the broker", healthy="0",
        series="zookeeper_expirations_total"),
    waits("Read", lambda registry: [registry.session.read_times] if registry else [],
        "requests that read nodes, and how long they took; those for many nodes at once count as "
        "one (ZooKeeperRequestLatencyMs)", healthy="short",
        series='zookeeper_request_seconds{op="read"}'),
    waits("Write", lambda registry: [registry.session.write_times] if registry else [],
        "requests that change nodes, and how long they took", healthy="short",
        series='zookeeper_request_seconds{op="write"}'),
)  # fmt: skip
ACCESS: ManagedObject[ClusterMembership] = ManagedObject(
    "Access",
    gauge("OpenNodes", lambda it: 0 if it.open_nodes is None else len(it.open_nodes.found),
        "nodes of brokers in ZooKeeper that others can change although `zookeeper.set.acl` is on; "
        "`cluster health` names them", healthy="0", series="zookeeper_open_nodes"),
    gauge("RulesUnusable", lambda it: 0 if it.rules is None else int(bool(it.rules.problem)),
        "the node with the rules is malformed, gone, or made by others: the broker judges by the "
        "last good ones", healthy="0", series="broker_rules_unusable"),
    counter("RulesVanished", lambda it: 0 if it.rules is None else it.rules.vanished_count,
        "how often that node was found deleted, or made again by others", healthy="0",
        series="broker_rules_vanished_total"),
)  # fmt: skip
LOG_MANAGER: ManagedObject[LogManager] = ManagedObject(
    "LogManager",
    gauge("OfflineLogDirectoryCount",
        lambda logs: sum(one.failure is not None for one in logs.directories.all),
        "data directories that have failed", healthy="0", series="log_offline_directories"),
    gauge("RecoveryMs", lambda logs: round(1000 * logs.loaded.recovery_s),
        "how long the start took to recover and load the logs; 0 if all had been closed cleanly",
        healthy="0", unit="ms", series="log_recovery_seconds"),
    waits("Retention", lambda logs: [logs.retention.times],
        "looks for segments past their age or size, and how long they took with the removals",
        series="log_retention_seconds"),
    counter("RetentionBytes", lambda logs: logs.retention.removed_bytes,
        "removed by them", unit="bytes", series="log_retention_deleted_bytes_total"),
    waits("Compaction", lambda logs: [logs.cleaner.times],
        "compactions of logs, and how long they took", series="log_compaction_seconds"),
    counter("CompactionBytes", lambda logs: logs.cleaner.copied_bytes,
        "read and written by them", unit="bytes", series="log_compaction_bytes_total"),
    counter("CompactedBytes", lambda logs: logs.cleaner.removed_bytes,
        "removed by them", unit="bytes", series="log_compaction_deleted_bytes_total"),
    gauge("MaxDirtyRatio", lambda logs: logs.cleaner.max_dirty_ratio,
        "the largest part of a log with `cleanup.policy=compact` that is new since its last "
        "compaction, and old enough for one", healthy="near `min.cleanable.dirty.ratio`, or below",
        series="log_compaction_max_dirty_ratio"),
    gauge("CompactionIdleMs", lambda logs: round(1000 * logs.cleaner.idle_s),
        "since when no logs to compact were looked for: a compaction takes so long, or hangs",
        unit="ms", series="log_compaction_idle_seconds"),
    gauge("UncleanablePartitions", lambda logs: len(logs.cleaner.uncleanable),
        "logs that cannot be compacted, as the broker's log says", healthy="0",
        series="log_compaction_failed_partitions"),
)  # fmt: skip
DIRECTORY: ManagedObject[DataDirectory | Archive] = ManagedObject(
    "LogDirectory.{directory}",
    gauge("FreeBytes", lambda it: it.space.free_bytes if it.space else None,
        "free on its file system, as it was at most ten seconds ago", unit="bytes",
        series="log_directory_free_bytes"),
    gauge("SizeBytes", lambda it: it.space.size_bytes if it.space else None,
        "of its file system", unit="bytes", series="log_directory_size_bytes"),
    gauge("Offline", lambda it: int(it.failure is not None),
        "it has failed; of the archive: segments could not be put there", healthy="0",
        series="log_directory_offline"),
)  # fmt: skip
CREATIONS: ManagedObject[CreationLimits] = ManagedObject(
    "TopicCreations",
    counter("Refused", lambda it: it.refused_count,
        "topics that clients did not create, as they are too many (`quota.creation.default`, "
        "`max.partitions`)", healthy="0", series="broker_topic_creations_refused_total"),
)  # fmt: skip
RETENTION: ManagedObject[TopicConfig] = ManagedObject(
    "LogRetention.{topic}",
    gauge("LimitMs", lambda it: it.retention_ms,
        "age at which segments are removed", unit="ms", series="log_retention_limit_seconds"),
)  # fmt: skip
FLUSHES: ManagedObject[LogManager] = ManagedObject(
    "LogFlushStats",
    times("Flush", lambda logs: [logs.flush_stats],
        "flushes of logs, and how long they took: the disk", series="log_flush_seconds"),
)  # fmt: skip
# Sizes of a log are absolute: 0.7 shows the position inside the last segment as `CurrentOffset`.
LOG: ManagedObject[Log] = ManagedObject(
    "logs.{topic}-{index}",
    gauge("Name", lambda log: log.partition.name, "the partition's name"),
    gauge("Size", lambda log: log.size_bytes, "of the segments on disk", unit="bytes",
        series="log_size_bytes"),
    gauge("NumberOfSegments", lambda log: len(log.segments.all), "segments on disk",
        series="log_segments"),
    gauge("CurrentOffset", lambda log: log.high_watermark, "high watermark", unit="bytes",
        series="log_high_watermark_bytes"),
    gauge("LogStartOffset", lambda log: log.log_start_offset,
        "first offset there is", unit="bytes", series="log_start_offset_bytes"),
    gauge("LogEndOffset", lambda log: log.log_end_offset,
        "end of what is written", healthy="near `CurrentOffset`", unit="bytes",
        series="log_end_offset_bytes"),
    counter("NumAppendedMessages", lambda log: log.appended_message_count,
        "messages appended since the start", series="log_messages_appended_total"),
)  # fmt: skip
FOLLOWER_LAG: Metric[int | None] = gauge(
    "ConsumerLag", lambda lag: lag,
    "how far a follower is behind a log led here", unit="bytes",
    series="broker_follower_lag_bytes",
)  # fmt: skip
# away from its home: `t[2-0]`, as `t-2-0` would be partition 0 of a topic `t-2`
LOG_AWAY = ManagedObject("logs.{topic}[{home}-{index}]", *LOG.metrics)

MANAGED_OBJECTS: tuple[ManagedObject[Any], ...] = (
    replication_status.REPLICAS,
    replication_status.FETCHERS,
    replication_status.CONTROLLERS,
    replication_status.ELECTIONS,
    replication_status.OFFICE,
    replication_status.PUSHES,
    SERVER,
    INFO,
    ZOOKEEPER,
    ACCESS,
    metrics.PURGATORY,
    metrics.REQUESTS,
    CONNECTIONS,
    SESSIONS,
    metrics.PROCESSOR,
    metrics.WORKER,
    metrics.REQUEST,
    metrics.REQUEST_TIMES,
    metrics.REQUEST_ERROR,
    LOG_MANAGER,
    DIRECTORY,
    CREATIONS,
    RETENTION,
    FLUSHES,
    metrics.ALL_TOPICS,
    metrics.TOPIC,
    LOG,
    LOG_AWAY,
    SCRAPES,
)


class _Broker(BrokerParts, Protocol):
    replica_manager: ReplicaManager
    membership: ClusterMembership
    server: SocketServer
    limits: CreationLimits
    start_config: BrokerConfig
    runs_zookeeper: bool  # whether it ends with the broker's process
    started_ms: int
    phase: str


@dataclass(eq=False)
class StatusReport:
    """Reads the status of a broker from its parts; any thread."""

    broker: _Broker
    scrapes: Scrapes = field(default_factory=Scrapes)

    def document(self, parts: StatusParts, topic: str) -> dict[str, Any]:
        """Return the state and the parts, of one topic or, if it is empty, of all."""
        found = self._state()
        if parts & StatusParts.SETTINGS:
            found |= self._settings(self.broker.config)
        records = []
        if parts & (StatusParts.REPLICAS | StatusParts.METRICS):
            records = self._replica_records()
        if parts & StatusParts.REPLICAS:
            found["replicas"] = [one for one in records if topic in ("", one["topic"])]
        if parts & StatusParts.REQUESTS:
            delays = [one.purgatory.counts for one in self.broker.server.processors]
            found["requests"] = metrics.time_counts(
                metrics.group_times(self.broker.server.metrics, delays)
            )
        found["metrics"] = self._metrics(parts, topic, records)
        return found

    def _replica_records(self) -> list[dict[str, Any]]:
        now_s, replicas = self.broker.clock.monotonic_s(), self.broker.replicas.all()
        return [replication_status.replica_record(one, now_s) for one in replicas]

    def _state(self) -> dict[str, Any]:
        address, config = self.broker.address(), self.broker.config
        audit = self.broker.judge.audit
        network, acls = self.broker.server.network, self.broker.membership.open_nodes
        logs = self.broker.logs.table.all()
        return {
            "broker": address.id,
            "host": address.host,
            "port": address.port,
            "pid": os.getpid(),
            "software": SOFTWARE,
            "codec": codec.describe(),
            "phase": self.broker.phase,
            "started_ms": self.broker.started_ms,
            "uptime_ms": self.broker.clock.time_ms() - self.broker.started_ms,
            "data": str(self.broker.logs.directories.first_path().absolute()),
            "directories": self._directories(),
            "topics": len(self.broker.logs.topics.names()),
            "partitions": self.broker.logs.partition_count(),
            "bytes": sum(log.size_bytes for log in logs),
            "connections": network.connection_count.total,
            "listeners": [
                {"name": one.listener, "tls": one.is_tls, "host": one.host, "port": one.port}
                for one in self.broker.server.endpoints
            ],
            "certificate": self._certificate(config),
            "queued_bytes": network.queued_bytes.taken,
            "waiting_for_queued_bytes": network.queued_bytes.waiting_count,
            "audit_dropped": None if audit is None else audit.dropped_count,
            "throttled": [one._asdict() for one in network.quotas.throttled()[:_SHOWN_THROTTLED]],
            "flush": {
                "before_read": config.flush_before_read,
                "interval_messages": config.flush_interval_messages,
                "interval_ms": config.flush_interval_ms,
                "topic_intervals_ms": dict(config.topic_flush_interval_ms),
            },
            "failures": self._failures(),
            "lost_logs": self._lost_logs(logs),
            "retention_waits": self.broker.logs.retention.waits,
            "kept_messages": self._kept_messages(),
            "last_flush_ms": max((log.last_flush_ms for log in logs), default=0) or None,
            "clean_start": not self.broker.logs.loaded.was_recovered,
            "zookeeper": config.zookeeper_connect or None,
            "runs_zookeeper": self.broker.runs_zookeeper,
            "session": self._session(),
            "rules": self._rules(),
            "taken_for_dead": self._suspected(),
            "security": {
                "key_ids": self.broker.membership.keys.key_ids,
                "orders_refused": self.broker.judge.refused_orders,
                "open_nodes": [] if acls is None else acls.found,
            },
        }

    def _kept_messages(self) -> list[str]:
        """Return which leaders lack messages that followers here keep."""
        table = self.broker.replicas
        return [str(error) for one in table.all() if (error := table.kept_error(one)) is not None]

    def _suspected(self) -> list[int]:
        """Return the registered brokers that this one, as the controller, takes for dead."""
        thread = self.broker.membership.controller
        controller = None if thread is None else thread.controller
        return [] if controller is None else sorted(controller.context.suspected)

    def _rules(self) -> dict[str, Any]:
        """Return by which rules clients are judged, with their age."""
        rules, follower = self.broker.judge.rules, self.broker.membership.rules
        if rules is None or follower is None:
            return {"enabled": False}
        return {
            "enabled": True,
            "version": rules.version,
            "count": len(rules.rules),
            "read_ms": follower.read_ms or None,
            "problem": follower.problem or None,
            "vanished_count": follower.vanished_count,
            "super_users": sorted(map(str, rules.super_users)),
        }

    def _certificate(self, config: BrokerConfig) -> dict[str, Any] | None:
        tls = self.broker.server.tls
        if tls is None:
            return None
        not_after_ms = round(1000 * tls.current.not_after_s)
        return {"path": str(config.ssl_certificate), "not_after_ms": not_after_ms}

    def _settings(self, config: BrokerConfig) -> dict[str, Any]:
        settings = self.broker.membership.settings
        return {
            "settings": self._settings_in_effect(config),
            "start_settings": {
                prop.name: self.broker.start_config.value_text(prop)
                for prop in self.broker.start_config.shown_properties()
            },
            "topic_settings": self._topic_settings(),
            "settings_problems": {} if settings is None else dict(settings.problems),
        }

    def _settings_in_effect(self, config: BrokerConfig) -> dict[str, dict[str, str]]:
        """Return value and origin of the settings by name."""
        settings = self.broker.membership.settings
        overrides = {} if settings is None else settings.applied.broker
        changed = {config.property_of(name).field for name in overrides}
        defaults = BrokerConfig()
        found = {}
        for prop in config.shown_properties():
            # `start`: from the properties file or an option; `broker`: from ZooKeeper
            origin = "broker" if prop.field in changed else "start"
            if origin == "start" and getattr(config, prop.field) == getattr(defaults, prop.field):
                origin = "default"
            found[prop.name] = {"value": config.value_text(prop), "origin": origin}
        return found

    def _topic_settings(self) -> dict[str, dict[str, str]]:
        settings = self.broker.membership.settings
        if settings is None:
            return {}
        return {
            topic: {
                one.property.name: value_text(value, one)
                for one in TOPIC_SETTINGS
                if (value := overrides.get(one.property.field)) is not None
            }
            for topic, overrides in settings.applied.topics.items()
        }

    def _directories(self) -> list[dict[str, Any]]:
        return [
            {
                "path": str(one.path),
                "partitions": one.log_count,
                "free_bytes": one.free_bytes,
                "error": None if one.failure is None else str(one.failure),
            }
            for one in self.broker.logs.directories.states()
        ]

    def _lost_logs(self, logs: list[Log]) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for log in logs:
            if log.has_lost_former:
                found.setdefault(log.partition.topic, []).append(log.partition.name)
        return found

    def _failures(self) -> list[dict[str, str]]:
        found = [
            (one, str(error), "offline") for one, error in self.broker.logs.table.errors().items()
        ]
        registry = self.broker.membership.registry
        for log in self.broker.logs.table.all():
            found += [(log.partition, str(error), error.state) for error in log.failures()]
            if registry and (character := unregistrable_in(log.partition.topic)):
                reason = f"{log.partition}: ZooKeeper takes no {character} in names; delete it"
                found.append((log.partition, reason, "unregistered"))
        return [
            {"topic": one.topic, "partition": one.name, "state": state, "error": error}
            for one, error, state in found
        ]

    def _session(self) -> dict[str, Any] | None:
        registry = self.broker.membership.registry
        if registry is None:
            return None
        status = registry.status
        return {
            "state": status.state,
            "id": status.session_id,
            "is_registered": status.is_registered,
            "error": status.error,
        }

    def _metrics(
        self, parts: StatusParts, topic: str, records: list[dict[str, Any]]
    ) -> dict[str, Attributes]:
        """Return the attributes of the managed objects, by object name."""
        found: dict[str, Attributes] = {}
        if parts & StatusParts.METRICS:
            scrapes = Reading(SCRAPES, self.scrapes)
            for reading in (*self._of_server(), *self._of_replication(records), scrapes):
                name, attributes = reading.attributes()
                found[name] = found[name] | attributes if name in found else attributes
        if parts & StatusParts.TOPICS:
            found |= (reading.attributes() for reading in self._of_topics(topic))
        if parts & StatusParts.LOGS:
            found |= self._of_logs(topic)
        return found

    def exposition(self, *, with_partitions: bool = True) -> str:
        """Return the metrics as Prometheus reads them, without any part that fails."""
        scrapes = self.scrapes
        records = list(scrapes.part(self._replica_records))
        many = [*scrapes.part(self._lines_of_topics)]  # before the count of what failed
        if with_partitions:
            many += scrapes.part(self._lines_of_logs)
            many += scrapes.part(lambda: _lines_of_lags(records))
        readings = chain(
            scrapes.part(lambda: self._of_server()),
            scrapes.part(lambda: self._of_replication(records)),
        )
        return "".join((exposition_text(readings, scrapes), *many))

    def _lines_of_topics(self) -> Iterator[str]:
        readings = list(self._of_topics())
        for managed in (metrics.TOPIC, RETENTION):
            found = [one for one in readings if one.managed is managed]
            sources = [(label_text(topic=one.labels[0]), one.source) for one in found]
            yield from lines(managed.metrics, sources)

    def _lines_of_logs(self) -> Iterator[str]:
        return lines(LOG.metrics, [(_labels(log), log) for log in self.broker.logs.table.all()])

    def _of_replication(self, records: list[dict[str, Any]]) -> Iterator[Reading]:
        return replication_status.replication_readings(
            records,
            self.broker.membership.controller,
            self.broker.replica_manager,
            self.broker.server.metrics,
        )

    def _of_server(self) -> Iterator[Reading]:
        controller = self.broker.membership.controller
        state = _STATES.get(self.broker.phase, 0)
        if self.broker.phase == "running" and controller is not None and controller.controller:
            state = _RUNNING_AS_CONTROLLER
        shards = self.broker.server.metrics
        purgatories = [one.purgatory for one in self.broker.server.processors]
        delays = metrics.Delays(
            Counter(delayed.kind for one in purgatories for delayed in one.all()),
            [one.counts for one in purgatories],
            sum(one.deadline_count for one in purgatories),
        )
        yield Reading(metrics.REQUESTS, shards)
        yield Reading(CONNECTIONS, self.broker.server)
        yield Reading(SESSIONS, self.broker.sessions)
        yield from metrics.request_readings(shards)
        for name, parts in metrics.group_times(shards, delays.counts):
            yield Reading(metrics.REQUEST_TIMES, parts, (name,))
        yield from metrics.error_readings(self.broker.server.errors)
        for number, shard in enumerate(shards[:-1]):
            yield Reading(metrics.PROCESSOR, shard, (number,))
        yield Reading(metrics.WORKER, shards)
        yield Reading(SERVER, Running(state, self.broker.started_ms))
        yield Reading(INFO, None, (self.broker.start_config.broker_id, __version__))
        yield Reading(metrics.PURGATORY, delays)
        yield Reading(ZOOKEEPER, self.broker.membership.registry)
        yield Reading(ACCESS, self.broker.membership)
        yield Reading(LOG_MANAGER, self.broker.logs)
        for directory in self.broker.logs.directories.all:
            yield Reading(DIRECTORY, directory, (directory.path.absolute(),))
        if (archive := self.broker.logs.retention.archive).path is not None:
            yield Reading(DIRECTORY, archive, (archive.path.absolute(),))
        yield Reading(CREATIONS, self.broker.limits)
        yield Reading(FLUSHES, self.broker.logs)
        yield Reading(metrics.ALL_TOPICS, metrics.total_of(shards))

    def _of_topics(self, topic: str = "") -> Iterator[Reading]:
        yield from metrics.topic_readings(self.broker.server.metrics, topic)
        for name in self.broker.logs.topics.names():
            if topic in ("", name):
                yield Reading(RETENTION, self.broker.logs.settings.of(name), (name,))

    def _of_logs(self, topic: str) -> Iterator[tuple[str, Attributes]]:
        for log in self.broker.logs.table.all():
            one = log.partition
            if topic not in ("", one.topic):
                continue
            if one.home in (NO_HOME, self.broker.config.broker_id):
                yield LOG.read(log, one.topic, one.index)
            else:
                yield LOG_AWAY.read(log, one.topic, one.home, one.index)


def _lines_of_lags(records: list[dict[str, Any]]) -> Iterator[str]:
    lags = [
        (label_text(topic=one["topic"], partition=one["partition"], follower=id), lag)
        for one in records
        for id, lag in one["lags"].items()
    ]
    return lines([FOLLOWER_LAG], lags)


def _labels(log: Log) -> str:
    return label_text(topic=log.partition.topic, partition=log.partition.name)
