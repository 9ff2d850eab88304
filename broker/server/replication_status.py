"""Replication in the broker's status: counts for monitoring, and the state of each replica.

Source: the metrics of Kafka 0.8 `ReplicaManager`, `Partition`, `KafkaController` and of its
fetchers; a count here has the meaning it has there. Facts that only the leader knows, only it
counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from broker.replication.leader import Leader
from broker.server.hosted_replica import HostedReplica
from broker.server.metrics import stats_attributes

if TYPE_CHECKING:
    from broker.server.controller_thread import ControllerThread
    from broker.server.replica_manager import ReplicaManager


def replica_records(replicas: Iterable[HostedReplica], now_s: float) -> list[dict[str, Any]]:
    """Return the state of each replica.

    `lags` is in bytes, None before a follower's first fetch; `stalled_ms` is how long messages have
    waited at the leader without an advance of the high watermark, None of a follower.
    """
    return [_record(one, now_s) for one in replicas]


def _record(hosted: HostedReplica, now_s: float) -> dict[str, Any]:
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
        "segments": len(log.segments.all),
        "last_append_ms": log.last_append_ms if log.log_end_offset > log.log_start_offset else None,
        "lags": {},
        "stalled_ms": None,
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
        record["stalled_ms"] = round(1000 * role.stalled_s(now_s))
    return record


def replication_metrics(
    records: list[dict[str, Any]],
    controller: ControllerThread | None,
    replicas: ReplicaManager,
    fenced_fetch_count: int,
) -> dict[str, dict[str, Any]]:
    """Return the attributes of 0.8's managed objects, by object name."""
    isr_counts, fetchers = replicas.isr_counts, replicas.fetchers()
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
            "MaxStalledMs": max((one["stalled_ms"] for one in led), default=0),
            "IsrShrinks": isr_counts.shrinks,
            "IsrExpands": isr_counts.expands,
            "FailedIsrUpdates": isr_counts.failed,
            "UnflushedBytes": sum(one["log_end"] - one["flushed"] for one in records),
            "Truncations": sum(one["truncations"] for one in records),
            "TruncatedBytes": sum(one["truncated_bytes"] for one in records),
            "TruncationsBelowHighWatermark": sum(
                one["truncations_below_high_watermark"] for one in records
            ),
            "FencedFetches": fenced_fetch_count,
            "FencedOrders": replicas.fenced_order_count,
            **stats_attributes(replicas.order_stats, "Order", "Orders"),
        },
        "ReplicaFetcherManager": {
            "FetcherCount": len(fetchers),
            "FailedFetcherCount": sum(one.is_failing for one in fetchers),
            "FetchRequests": sum(one.request_count for one in fetchers),
            "BytesFetched": sum(one.fetched_bytes for one in fetchers),
            "ReassignmentBytesFetched": sum(one.added_bytes for one in fetchers),
            "ReassignmentThrottle": replicas.throttle.bytes_per_s,
        },
        "KafkaController": {
            "ActiveControllerCount": int(in_office is not None),
            "EventQueueSize": 0 if controller is None else controller.events.waiting_count,
        },
    }
    if controller is not None:
        found["KafkaController"] |= {
            "OldestEventMs": round(1000 * controller.events.oldest_s),
            "LeaderElections": controller.election_count,
            **stats_attributes(controller.election_stats, "Election", "Elections"),
            "LostOffices": controller.fenced_count,
        }
        for broker_id, times in controller.senders.times().items():
            found[f"ControllerChannelManager.{broker_id}"] = {
                **stats_attributes(times.stats, "Push", "Pushes"),
                "OldestPushMs": round(1000 * times.oldest_s),
            }
    if in_office is not None:
        counts = in_office.counts()
        found["KafkaController"] |= {
            "OfflinePartitionsCount": counts.offline,
            "PreferredReplicaImbalanceCount": counts.away,
            "UncleanLeaderElections": counts.unclean_elections,
            "TopicsToDelete": counts.deletions,
        }
    return found
