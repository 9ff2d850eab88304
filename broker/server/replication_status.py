"""What a broker tells of its replicas: counts for monitoring, and each replica by itself.

Source: the metrics of Kafka 0.8 `ReplicaManager`, `Partition`, `KafkaController` and of its
fetchers; a count here has the meaning it has there. What only the leader knows, only it counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from broker.replication.leader import Leader
from broker.server.hosted_replica import HostedReplica

if TYPE_CHECKING:
    from broker.server.controller_thread import ControllerThread
    from broker.server.replica_fetcher import ReplicaFetcher
    from broker.server.replica_manager import IsrCounts


def replica_records(replicas: Iterable[HostedReplica]) -> list[dict[str, Any]]:
    """Return the state of each replica; `lags` is in bytes, None before a follower's first fetch.

    Args:
        replicas: of this broker.
    """
    return [_record(one) for one in replicas]


def _record(hosted: HostedReplica) -> dict[str, Any]:
    replica, log = hosted.replica, hosted.log
    role = replica.role
    record: dict[str, Any] = {
        "topic": log.partition.topic,
        "partition": log.partition.name,
        "role": "none",
        "leader": None,
        "leader_epoch": replica.leader_epoch,
        "isr": [],
        "replicas": [],
        "min_isr": 1,
        "log_start": log.log_start_offset,
        "log_end": log.log_end_offset,
        "flushed": log.flushed_offset,
        "high_watermark": log.high_watermark,
        "segments": log.segment_count,
        "last_append_ms": log.last_append_ms if log.log_end_offset > log.log_start_offset else None,
        "lags": {},
        "truncations": replica.counts.truncations,
        "truncated_bytes": replica.counts.truncated_bytes,
        "truncations_below_high_watermark": replica.counts.below_high_watermark,
    }
    if role is None:
        return record
    info = role.info
    record |= {
        "role": "leader" if isinstance(role, Leader) else "follower",
        "leader": info.state.leader,
        "isr": list(info.state.isr),
        "replicas": list(info.replicas),
        "min_isr": info.min_isr,
    }
    if isinstance(role, Leader):
        followers = [one for one in info.replicas if one != info.state.leader]
        record["lags"] = {str(one): role.lag_of(one) for one in followers}
    return record


def replication_metrics(
    records: list[dict[str, Any]],
    controller: ControllerThread | None,
    isr_counts: IsrCounts,
    fetchers: Sequence[ReplicaFetcher],
) -> dict[str, dict[str, Any]]:
    """Return the attributes of 0.8's managed objects, by object name.

    Args:
        records: of `replica_records`.
        controller: this broker's part in the office; None without a registry.
        isr_counts: of what this broker asked for.
        fetchers: which copy from other brokers.
    """
    led = [one for one in records if one["role"] == "leader"]
    in_office = None if controller is None else controller.controller
    found: dict[str, dict[str, Any]] = {
        "ReplicaManager": {
            "PartitionCount": len(records),
            "LeaderCount": len(led),
            "UnderReplicatedPartitions": sum(len(one["isr"]) < len(one["replicas"]) for one in led),
            "UnderMinIsrPartitionCount": sum(len(one["isr"]) < one["min_isr"] for one in led),
            "AtMinIsrPartitionCount": sum(
                len(one["isr"]) == one["min_isr"] < len(one["replicas"]) for one in led
            ),
            "MaxLagBytes": max(
                (lag for one in led for lag in one["lags"].values() if lag is not None), default=0
            ),
            "IsrShrinks": isr_counts.shrinks,
            "IsrExpands": isr_counts.expands,
            "FailedIsrUpdates": isr_counts.failed,
            "UnflushedBytes": sum(one["log_end"] - one["flushed"] for one in records),
            "Truncations": sum(one["truncations"] for one in records),
            "TruncatedBytes": sum(one["truncated_bytes"] for one in records),
            "TruncationsBelowHighWatermark": sum(
                one["truncations_below_high_watermark"] for one in records
            ),
        },
        "ReplicaFetcherManager": {
            "FetcherCount": len(fetchers),
            "FailedFetcherCount": sum(one.is_failing for one in fetchers),
            "FetchRequests": sum(one.request_count for one in fetchers),
            "BytesFetched": sum(one.fetched_bytes for one in fetchers),
        },
        "KafkaController": {
            "ActiveControllerCount": int(in_office is not None),
            "EventQueueSize": 0 if controller is None else controller.event_count,
        },
    }
    if in_office is not None:
        counts = in_office.counts()
        found["KafkaController"] |= {
            "OfflinePartitionsCount": counts.offline,
            "PreferredReplicaImbalanceCount": counts.away,
            "UncleanLeaderElections": counts.unclean_elections,
        }
    return found
