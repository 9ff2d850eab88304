"""A cluster of three brokers as `pylogctl top` knows it, one of them silent, after two looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from broker.admin.groups import GroupSnapshot, Member, Owner, StoredOffset
from broker.protocol.extension_requests import ALL_PARTS
from broker.protocol.responses import (
    BrokerAddress,
    ClusterMetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from broker.topic import TopicPartition
from pylogctl.top.state import BrokerAnswer, GroupsAnswer, TopState
from pylogctl.top.views import Moment

START_MS = 1_795_701_731_000  # 14:02:11 in UTC
BROKERS = (1, 2, 3)
TOPICS = {"orders": 4, "orders-dlq": 2, "注文": 1, "payments.settlement.eu-1.transactions-v2": 3}
LOOK_S = 2.0


def address(broker: int) -> str:
    return f"10.0.0.{broker}:9092"


def partitions(topic: str) -> list[TopicPartition]:
    return [TopicPartition(topic, 1 + index % 3, index // 3) for index in range(TOPICS[topic])]


def metadata(*, live: tuple[int, ...] = BROKERS) -> ClusterMetadataResponse:
    """What brokers know; partitions of a dead leader are led by the next replica."""
    topics = []
    for topic in TOPICS:
        found = []
        for one in partitions(topic):
            replicas = (one.home, one.home % 3 + 1)
            isr = tuple(id for id in replicas if id in live)
            found.append(PartitionMetadata(one, 0, isr[0] if isr else -1, replicas, isr, 7, 1))
        topics.append(TopicMetadata(topic, 0, tuple(found)))
    addresses = tuple(BrokerAddress(id, f"10.0.0.{id}", 9092) for id in live)
    return ClusterMetadataResponse("c", live[0], 2, addresses, {}, tuple(topics))


def _requests(look: int) -> dict[str, Any]:
    def times(part: str, ms: float) -> dict[str, Any]:
        return {"counts": [0, 900 * look, 90 * look, 10 * look], "total_s": ms * look / 1000}

    parts = {"queue": 20.0, "local": 310.0, "remote": 660.0, "send": 10.0, "total": 1000.0}
    found = {part: times(part, ms) for part, ms in parts.items()}
    return {"bounds_s": [0.0005, 0.001, 0.005], "times": {"produce": found, "fetch": found}}


def document(broker: int, look: int) -> dict[str, Any]:
    """The status of a broker; counters grow from look to look."""
    led = [one for topic in TOPICS for one in partitions(topic) if one.home == broker]
    metrics: dict[str, Mapping[str, Any]] = {
        "SocketServerStats": {
            "Connections": 40 + broker,
            "MaxProduceRequestMs": 4.2,
            "TotalProduceRequestMs": 100.0 * look,
            "NumProduceRequests": 200 * look,
            "MaxFetchRequestMs": 1.2,
            "TotalFetchRequestMs": 10.0 * look,
            "NumFetchRequests": 100 * look,
        },
        "RequestMetrics.publish": {"Requests": 610 * look},
        "RequestMetrics.read": {"Requests": 880 * look},
        "RequestMetrics.status": {"Requests": look},
        "RequestErrors.produce.not_leader": {"Errors": 2 * look},
        "LogDirectory./data": {"FreeBytes": 39_000_000_000, "SizeBytes": 100_000_000_000},
        "KafkaServer": {"BrokerState": 3, "CpuSeconds": 0.8 * look},
        "Purgatory": {
            "PublishWaiting": 12,
            "ReadWaiting": 140,
            "TotalPublishWaitMs": 660.0 * look,
            "NumPublishWaits": 200 * look,
            "TotalReadWaitMs": 0.0,
            "NumReadWaits": 0,
        },
        "BrokerAllTopicStat": {
            "MessagesIn": 8200 * look,
            "BytesIn": 2_100_000 * look,
            "BytesOut": 6_000_000 * look,
        },
        "ReplicaManager": {
            "UnderReplicatedPartitions": 0 if look < 2 else 1,
            "UnderMinIsrPartitionCount": 0,
            "IsrShrinks": 3,
            "IsrExpands": 2,
        },
        "ReplicaFetcherManager": {
            "FailedFetcherCount": 0,
            "FetchRequests": 420 * look,
            "ReassignmentBytesFetched": 0,
        },
    }
    if broker == 2:
        metrics["KafkaController"] = {
            "OfflinePartitionsCount": 0,
            "LeaderElections": 4,
            "UncleanLeaderElections": 0,
        }
    replicas = []
    for number, one in enumerate(led):
        end = 8_000_000 + 100_000 * number + 40_960 * look
        metrics[f"logs.{one.topic}-{one.index}"] = {
            "Name": one.name,
            "Size": end,
            "NumberOfSegments": 3,
            "CurrentOffset": end,
            "LogStartOffset": 0,
            "LogEndOffset": end,
        }
        metrics[f"BrokerTopicStat.{one.topic}"] = {
            "MessagesIn": 100 * (number + 1) * look,
            "BytesIn": 20_000 * (number + 1) * look,
            "BytesOut": 40_000 * (number + 1) * look,
        }
        follower = broker % 3 + 1
        replicas.append(
            {
                "topic": one.topic,
                "partition": one.name,
                "role": "leader",
                "isr": [broker, follower],
                "replicas": [broker, follower],
                "log_end": end,
                "flushed": end - 4096,
                "last_append_ms": START_MS - 3_600_000 * number,
                "lags": {str(follower): 90_000 * (follower == 3)},
                "stalled_ms": 400 * (follower == 3),
                "truncations": 0,
            }
        )
    return {
        "broker": broker,
        "phase": "running",
        "software": "pylogctl 0.1.0",
        "pid": 4000 + broker,
        "started_ms": START_MS - 12 * 86_400_000,
        "uptime_ms": 12 * 86_400_000,
        "zookeeper": "zk1:2181",
        "session": {"state": "connected", "is_registered": True},
        "directories": [
            {"path": "/data", "partitions": 9, "free_bytes": 39_000_000_000, "error": None}
        ],
        "failures": [],
        "connections": 40 + broker,
        "settings": {"num.partitions": {"value": "3", "origin": "start"}},
        "partitions": 9,
        "requests": _requests(look),
        "replicas": replicas,
        "metrics": metrics,
    }


def answer(broker: int, look: int, *, cluster: ClusterMetadataResponse | None = None) -> Any:
    """The answer of a broker to a look, which are every `LOOK_S`."""
    time_s = LOOK_S * look
    found = document(broker, look)
    return BrokerAnswer(broker, address(broker), time_s, time_s, ALL_PARTS, "", found, cluster, "")


def failure(broker: int, look: int) -> BrokerAnswer:
    """What is taken for the answer of a broker that does not answer."""
    error = f"cannot reach broker {broker}: connection refused"
    return BrokerAnswer(
        broker, address(broker), LOOK_S * look, LOOK_S * look, ALL_PARTS, error=error
    )


def groups(look: int) -> GroupsAnswer:
    """Two groups: `billing` is behind, `audit` is not."""
    snapshots = []
    for name, behind in (("audit", 0), ("billing", 300_000)):
        owner = Owner(f"{name}_web1-1-0", 1, 1)
        ends = {
            one: log["CurrentOffset"]
            for broker in (1, 2)
            for one in partitions("orders")
            for key, log in document(broker, look)["metrics"].items()
            if key == f"logs.{one.topic}-{one.index}" and one.home == broker
        }
        offsets = {
            one: StoredOffset(end - behind, str(end - behind), START_MS, 1)
            for one, end in ends.items()
        }
        member = Member(f"{name}_web1-1", "", None, {"orders": 1}, 1, START_MS)
        owners = dict.fromkeys(offsets, owner)
        snapshots.append(GroupSnapshot(name, (member,), owners, offsets))
    return GroupsAnswer(LOOK_S * look - 0.5, tuple(snapshots))


def now(look: int) -> Moment:
    return Moment(START_MS + round(1000 * LOOK_S * look), LOOK_S * look)


def watched(*, silent: tuple[int, ...] = (3,), looks: int = 2) -> TopState:
    """What is known after some looks; brokers that are `silent` did not answer the last two."""
    state = TopState(has_zookeeper=True)
    for look in range(1, looks + 1):
        for broker in BROKERS:
            cluster = metadata() if look == 1 else None
            state.take(answer(broker, look, cluster=cluster), now(look).ms)
        state.take(groups(look), now(look).ms)
        state.end_look(now(look).ms)
    if silent:
        for look in (looks + 1, looks + 2):
            live = tuple(id for id in BROKERS if id not in silent)
            for broker in BROKERS:
                if broker in silent:
                    state.take(failure(broker, look), now(look).ms)
                else:
                    found = answer(broker, look, cluster=metadata(live=live))
                    state.take(found, now(look).ms)
            state.end_look(now(look).ms)
    return state
