"""STATUS: the state, the settings and the metrics of a broker, as one document."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from broker import __version__
from broker.clock import Clock
from broker.config import BrokerConfig
from broker.log.manager import LogManager
from broker.protocol import codec
from broker.protocol.responses import BrokerAddress
from broker.server.cluster_membership import ClusterMembership
from broker.server.metrics import (
    purgatory_attributes,
    socket_server_attributes,
    stats_attributes,
    topic_attributes,
)
from broker.server.replica_manager import ReplicaManager
from broker.server.replication_status import replica_records, replication_metrics
from broker.server.socket_server import SocketServer
from broker.topic import TopicPartition
from broker.topic_settings import TOPIC_SETTINGS, value_text

SOFTWARE = f"pylogctl {__version__}"
_STATES = {"starting": 1, "running": 3, "stopping": 6}
"""Kafka 0.8's numbers of the phases."""
_RUNNING_AS_CONTROLLER = 4


@dataclass(kw_only=True)
class BrokerStatus:
    """Reads the status of a broker from its parts; any thread."""

    logs: LogManager
    replicas: ReplicaManager
    membership: ClusterMembership
    server: SocketServer
    clock: Clock
    start_config: BrokerConfig
    runs_zookeeper: bool  # whether it ends with the broker's process
    started_ms: int

    def document(self, phase: str, address: BrokerAddress, config: BrokerConfig) -> dict[str, Any]:
        """Return all there is; `config` is in effect."""
        logs = self.logs.table.all()
        settings = self.membership.settings
        return {
            "broker": address.id,
            "host": address.host,
            "port": address.port,
            "pid": os.getpid(),
            "software": SOFTWARE,
            "codec": codec.describe(),
            "phase": phase,
            "started_ms": self.started_ms,
            "uptime_ms": self.clock.time_ms() - self.started_ms,
            "data": str(self.logs.directories.first_path().absolute()),
            "directories": self._directories(),
            "topics": len(self.logs.topics.names()),
            "partitions": len(logs),
            "bytes": sum(log.size_bytes for log in logs),
            "connections": self.server.connection_count.total,
            "queued_bytes": self.server.queued_bytes.taken,
            "waiting_for_queued_bytes": self.server.queued_bytes.waiting_count,
            "flush": {
                "before_read": config.flush_before_read,
                "interval_messages": config.flush_interval_messages,
                "interval_ms": config.flush_interval_ms,
                "topic_intervals_ms": dict(config.topic_flush_interval_ms),
            },
            "settings": self._settings_in_effect(config),
            "start_settings": {
                prop.name: self.start_config.value_text(prop)
                for prop in self.start_config.shown_properties()
            },
            "topic_settings": self._topic_settings(),
            "settings_problems": {} if settings is None else dict(settings.problems),
            "failures": self._failures(),
            "retention_waits": self.logs.retention.waits,
            "last_flush_ms": max((log.last_flush_ms for log in logs), default=0) or None,
            "clean_start": not self.logs.loaded.was_recovered,
            "zookeeper": config.zookeeper_connect or None,
            "runs_zookeeper": self.runs_zookeeper,
            "session": self._session(),
            "replicas": self._replica_records(),
            "metrics": self.metrics(phase, address.id),
        }

    def _settings_in_effect(self, config: BrokerConfig) -> dict[str, dict[str, str]]:
        """Return value and origin of the settings by name."""
        settings = self.membership.settings
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
        settings = self.membership.settings
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
            for one in self.logs.directories.states()
        ]

    def _failures(self) -> list[dict[str, str]]:
        found = [(one, error, "offline") for one, error in self.logs.table.errors().items()]
        for log in self.logs.table.all():
            found += [(log.partition, error, error.state) for error in log.failures()]
        return [
            {
                "topic": partition.topic,
                "partition": partition.name,
                "state": state,
                "error": str(error),
            }
            for partition, error, state in found
        ]

    def _session(self) -> dict[str, Any] | None:
        registry = self.membership.registry
        if registry is None:
            return None
        status = registry.status
        return {
            "state": status.state,
            "id": status.session_id,
            "is_registered": status.is_registered,
            "error": status.error,
        }

    def _replica_records(self) -> list[dict[str, Any]]:
        return replica_records(self.replicas.all(), self.clock.monotonic_s())

    def metrics(self, phase: str, broker_id: int) -> dict[str, dict[str, Any]]:
        """Return the attributes of 0.7's managed objects, by object name (the MBeans of Kafka 0.7).

        Sizes of a log are absolute: `CurrentOffset` is its high watermark, where 0.7 shows the
        position inside the last segment.
        """
        controller, registry = self.membership.controller, self.membership.registry
        state = _STATES.get(phase, 0)
        if phase == "running" and controller is not None and controller.controller:
            state = _RUNNING_AS_CONTROLLER
        shards, processors = self.server.metrics, self.server.processors
        logs = {
            f"logs.{_name_in_metrics(log.partition, broker_id)}": {
                "Name": log.partition.name,
                "Size": log.size_bytes,
                "NumberOfSegments": len(log.segments.all),
                "CurrentOffset": log.high_watermark,
                "LogStartOffset": log.log_start_offset,
                "LogEndOffset": log.log_end_offset,
                "NumAppendedMessages": log.appended_message_count,
            }
            for log in self.logs.table.all()
        }
        offline_count = sum(one.failure is not None for one in self.logs.directories.states())
        return {
            "SocketServerStats": {
                **socket_server_attributes(shards),
                "ConnectionsWithHeldRequests": sum(one.held_count for one in processors),
                "ConnectionsWithUnsentResponses": sum(one.unsent_count for one in processors),
            },
            "KafkaServer": {"BrokerState": state, "CpuSeconds": time.process_time()},
            "Purgatory": purgatory_attributes(
                [delayed for one in processors for delayed in one.waiting],
                [one.delay_counts for one in processors],
                sum(one.deadline_count for one in processors),
            ),
            "ZooKeeper": {
                "SessionState": None if registry is None else registry.status.state,
                "SessionExpirations": 0 if registry is None else registry.expiration_count,
            },
            "LogManager": {
                "OfflineLogDirectoryCount": offline_count,
                "RecoveryMs": round(1000 * self.logs.loaded.recovery_s),
            },
            **topic_attributes(shards),
            **replication_metrics(
                self._replica_records(),
                controller,
                self.replicas,
                sum(shard.fenced_fetch_count for shard in shards),
            ),
            "LogFlushStats": stats_attributes(self.logs.flush_stats, "Flush", "Flushes"),
            **logs,
        }


def _name_in_metrics(partition: TopicPartition, broker_id: int) -> str:
    """Return the name of a log in metrics: 0.7's, if this broker is its home."""
    if partition.home == broker_id:
        return f"{partition.topic}-{partition.index}"
    return str(partition)  # `t[2-0]`, as `t-2-0` would be partition 0 of a topic `t-2`
