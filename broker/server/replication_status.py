"""Replication in the broker's status: counts for monitoring, and the state of each replica.

Source: the metrics of Kafka 0.8 `ReplicaManager`, `Partition`, `KafkaController` and of its
fetchers; a count here has the meaning it has there. Facts that only the leader knows, only it
counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from broker.metrics import ManagedObject, Reading, counter, gauge, times
from broker.replication.leader import Leader
from broker.server.cluster.replica_manager import ReplicaManager
from broker.server.cluster.replica_table import HostedReplica
from broker.server.requests.metrics import ProcessorMetrics

if TYPE_CHECKING:
    from broker.controller.controller import Controller, ControllerCounts
    from broker.server.cluster.controller_thread import ControllerThread
    from broker.server.cluster.push_sender import PushTimes


def replica_record(hosted: HostedReplica, now_s: float) -> dict[str, Any]:
    """Return the state of a replica.

    `lags` is in bytes, None before a follower's first fetch; `stalled_ms` is how long messages have
    waited at the leader without an advance of the high watermark, None of a follower.
    """
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


class ReplicaFigures(NamedTuple):
    """What the counts of replicas come from."""

    manager: ReplicaManager
    records: list[dict[str, Any]]
    led: list[dict[str, Any]]
    shards: Sequence[ProcessorMetrics]


REPLICAS: ManagedObject[ReplicaFigures] = ManagedObject(
    "ReplicaManager",
    gauge("PartitionCount", lambda it: len(it.records),
        "replicas here", healthy="even over brokers", series="broker_partitions"),
    gauge("LeaderCount", lambda it: len(it.led),
        "replicas here that lead", healthy="even over brokers", series="broker_leader_partitions"),
    gauge("UnderReplicatedPartitions",
        lambda it: sum(len(one["isr"]) < len(one["replicas"]) for one in it.led),
        "partitions led here with a replica that is not in sync; look here first", healthy="0",
        series="broker_under_replicated_partitions"),
    gauge("UnderMinIsrPartitionCount",
        lambda it: sum(len(one["isr"]) < one["min_isr"] for one in it.led),
        "partitions led here for which acks -1 is refused", healthy="0",
        series="broker_under_min_isr_partitions"),
    gauge("AtMinIsrPartitionCount",
        lambda it: sum(len(one["isr"]) == one["min_isr"] < len(one["replicas"]) for one in it.led),
        "partitions led here for which one more loss leads to that", healthy="0",
        series="broker_at_min_isr_partitions"),
    gauge("MaxLagBytes",
        lambda it: max((lag for one in it.led for lag in one["lags"].values() if lag), default=0),
        "most that a follower is behind a log led here; `topic describe` has each",
        healthy="near 0", unit="bytes", series="broker_follower_lag_max_bytes"),
    gauge("MaxStalledMs", lambda it: max((one["stalled_ms"] for one in it.led), default=0),
        "longest time that messages of a partition led here have waited without an advance of its "
        "high watermark, to half a second; 0 where none waits. Growing: an in-sync replica does "
        "not fetch or flush, or fewer are in sync than required. `stalled_ms` in `replicas` of the "
        "status has each", healthy="below 1000", unit="ms", series="broker_stalled_max_seconds"),
    counter("IsrShrinks", lambda it: it.manager.isr.shrinks,
        "replicas have left the in-sync replicas of partitions led here. With expands: a follower "
        "comes and goes; without: it is broken. Those that leave because their broker is gone are "
        "the controller's: `cluster changes`", healthy="still", series="broker_isr_shrinks_total"),
    counter("IsrExpands", lambda it: it.manager.isr.expands,
        "replicas have joined the in-sync replicas of partitions led here", healthy="still",
        series="broker_isr_expands_total"),
    counter("FailedIsrUpdates", lambda it: it.manager.isr.failed,
        "changes of in-sync replicas that the controller refused, or did not respond to; tried "
        "again after a second", healthy="0", series="broker_isr_update_failures_total"),
    gauge("UnflushedBytes", lambda it: sum(one["log_end"] - one["flushed"] for one in it.records),
        "written to replicas here and not flushed", healthy="small", unit="bytes",
        series="log_unflushed_bytes"),
    counter("Truncations", lambda it: sum(one["truncations"] for one in it.records),
        "a follower's log was cut to what its leader has: after a change of leaders, or after it "
        "was away for longer than the leader keeps messages", healthy="still",
        series="broker_truncations_total"),
    counter("TruncatedBytes", lambda it: sum(one["truncated_bytes"] for one in it.records),
        "cut from logs of followers", healthy="still", unit="bytes",
        series="broker_truncated_bytes_total"),
    counter("TruncationsBelowHighWatermark",
        lambda it: sum(one["truncations_below_high_watermark"] for one in it.records),
        "committed messages were cut: after an unclean election, or a disk lost what it had "
        "flushed", healthy="0 for ever", series="broker_committed_truncations_total"),
    counter("BytesSent", lambda it: sum(one.replication_sent_bytes for one in it.shards),
        "sent to followers (ReplicationBytesOutPerSec)", unit="bytes",
        series="broker_replication_sent_bytes_total"),
    counter("FencedFetches", lambda it: sum(one.fenced_fetch_count for one in it.shards),
        "fetches of followers, partition by partition, refused as the two brokers knew different "
        "leader epochs, or for a former registration: some after each election", healthy="still",
        series='broker_fenced_requests_total{kind="fetch"}'),
    counter("FencedOrders", lambda it: it.manager.orders.fenced_count,
        "pushes of a former controller, or for a former registration of this broker, that were "
        "refused", healthy="still", series='broker_fenced_requests_total{kind="push"}'),
    times("Order", lambda it: [it.manager.orders.stats],
        "pushes of the controller, and how long it took to carry them out: the disk",
        series="broker_push_seconds"),
)  # fmt: skip

FETCHERS: ManagedObject[ReplicaManager] = ManagedObject(
    "ReplicaFetcherManager",
    gauge("FetcherCount", lambda it: len(it.fetchers.all()),
        "threads that copy from brokers that lead what this one follows",
        healthy="(brokers - 1) x `num.replica.fetchers`", series="broker_fetchers"),
    gauge("FailedFetcherCount", lambda it: sum(one.is_failing for one in it.fetchers.all()),
        "fetchers whose last request got no answer, or that have ended", healthy="0",
        series="broker_failed_fetchers"),
    counter("FetchRequests", lambda it: sum(one.request_count for one in it.fetchers.all()),
        "requests that leaders have answered; a count that stands still while `FetcherCount` is "
        "not 0: copying hangs", healthy="growing", series="broker_fetcher_requests_total"),
    counter("BytesFetched", lambda it: sum(one.fetched_bytes for one in it.fetchers.all()),
        "copied from leaders", healthy="growing", unit="bytes",
        series="broker_replication_received_bytes_total"),
    counter("ReassignmentBytesFetched",
        lambda it: sum(one.added_bytes for one in it.fetchers.all()),
        "copied to replicas that are being added, until these are in sync",
        healthy="growing while replicas are moved", unit="bytes",
        series="broker_reassignment_received_bytes_total"),
    gauge("ReassignmentThrottle", lambda it: it.throttle.bytes_per_s,
        "how much this broker may copy to replicas that are being added; 0: no limit",
        healthy="0 when none are moved", unit="bytes per second",
        series="broker_reassignment_limit_bytes_per_second"),
)  # fmt: skip


class Office(NamedTuple):
    """The office of controller, as this broker has it."""

    thread: ControllerThread | None  # None without ZooKeeper
    controller: Controller | None  # None out of office


CONTROLLERS: ManagedObject[Office] = ManagedObject(
    "KafkaController",
    gauge("ActiveControllerCount", lambda it: int(it.controller is not None),
        "this broker is the controller", healthy="1 over all brokers", series="controller_active"),
    gauge("EventQueueSize", lambda it: 0 if it.thread is None else it.thread.events.waiting_count,
        "events that wait for the controller's thread", healthy="0",
        series="controller_event_queue_size"),
)  # fmt: skip
ELECTIONS: ManagedObject[ControllerThread] = ManagedObject(  # with ZooKeeper
    CONTROLLERS.name,
    gauge("OldestEventMs", lambda it: round(1000 * it.events.oldest_s),
        "how long the oldest event waits or is being handled: ZooKeeper, or very many partitions",
        healthy="short", unit="ms", series="controller_oldest_event_seconds"),
    counter("LeaderElections", lambda it: it.election_count,
        "partitions that this broker, as the controller, has given another leader", healthy="still",
        series="controller_leader_changes_total"),
    counter("EarlyElections", lambda it: it.early_election_count,
        "of them, those because a broker was taken for dead before its session with ZooKeeper "
        "had ended", healthy="still", series="controller_early_leader_changes_total"),
    counter("UncleanLeaderElections", lambda it: it.unclean_election_count,
        "replicas that this broker, as the controller, has made leaders without being in sync: "
        "messages were probably lost (UncleanLeaderElectionsPerSec)", healthy="0 for ever",
        series="controller_unclean_elections_total"),
    times("Election", lambda it: [it.election_stats],
        "events that gave partitions other leaders, such as the end of a broker: from the arrival "
        "of the event until all new states were in ZooKeeper. The brokers hear of them as "
        "`ControllerChannelManager` says", healthy="0, short",
        series="controller_election_seconds"),
    counter("LostOffices", lambda it: it.fenced_count,
        "terms of office that ended because another broker had taken the office meanwhile",
        healthy="0", series="controller_lost_offices_total"),
)  # fmt: skip
OFFICE: ManagedObject[ControllerCounts] = ManagedObject(  # of the controller only
    CONTROLLERS.name,
    gauge("OfflinePartitionsCount", lambda it: it.offline,
        "partitions without a leader", healthy="0", series="controller_offline_partitions"),
    gauge("PreferredReplicaImbalanceCount", lambda it: it.away,
        "partitions not led by the preferred replica: `topic elect`", healthy="near 0",
        series="controller_imbalanced_partitions"),
    gauge("SuspectedBrokers", lambda it: it.suspected,
        "registered brokers that are taken for dead, as neither the controller nor another broker "
        "gets an answer", healthy="0", series="controller_suspected_brokers"),
    gauge("TopicsToDelete", lambda it: it.deletions,
        "deleted topics of which a broker may still have a log: it is away, or its disk refuses",
        healthy="0", series="controller_topics_to_delete"),
)  # fmt: skip
PUSHES: ManagedObject[PushTimes] = ManagedObject(
    "ControllerChannelManager.{broker}",
    times("Push", lambda it: [it.stats],
        "pushes of states, from the decision until the broker had carried them out; decisions that "
        "came meanwhile go together", series="controller_push_seconds"),
    gauge("OldestPushMs", lambda it: round(1000 * it.oldest_s),
        "how long the broker has not answered the oldest push yet: it is frozen or cut off",
        healthy="0", unit="ms", series="controller_oldest_push_seconds"),
)  # fmt: skip


def replication_readings(
    records: list[dict[str, Any]],
    controller: ControllerThread | None,
    replicas: ReplicaManager,
    shards: Sequence[ProcessorMetrics],
) -> Iterator[Reading]:
    """Yield 0.8's managed objects; those of one name belong together."""
    led = [one for one in records if one["role"] == "leader"]
    yield Reading(REPLICAS, ReplicaFigures(replicas, records, led, shards))
    yield Reading(FETCHERS, replicas)
    in_office = None if controller is None else controller.controller
    yield Reading(CONTROLLERS, Office(controller, in_office))
    if controller is not None:
        yield Reading(ELECTIONS, controller)
        for broker_id, push_times in controller.senders.times().items():
            yield Reading(PUSHES, push_times, (broker_id,))
    if in_office is not None:
        yield Reading(OFFICE, in_office.counts())
