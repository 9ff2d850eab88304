"""Facts and health checks of a cluster, from its metadata; no I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from broker.cluster_state import NO_CONTROLLER, NO_LEADER
from broker.errors import BrokerError
from broker.protocol.responses import ClusterMetadataResponse, PartitionMetadata
from pylogctl.cli.columns import Flag, Integer, Row, Text

OK, WARN, FAIL = "ok", "warn", "fail"
_IMBALANCE = 0.1
"""Share of partitions that may be led by another than the preferred replica (Kafka 0.8.2)."""


class BrokerFacts(Row):
    """A broker, and how many partitions it leads and holds; no address if it is not registered."""

    broker: Annotated[Integer, "number in the cluster"]
    live: Annotated[Flag, "whether it is registered"]
    address: Annotated[Text, "address for clients; empty if it is not registered"]
    rack: Annotated[str, "where it stands; empty if not set"]
    controller: Annotated[Flag, "whether it is the controller"]
    leads: Annotated[Integer, "partitions that it leads"]
    preferred: Annotated[Integer, "partitions that it should lead"]
    replicas: Annotated[Integer, "partitions of which it has a replica"]
    in_sync: Annotated[Integer, "those in which it is in sync"]


class Check(NamedTuple):
    """A check of the cluster; `found` names what fails it."""

    name: str
    result: str
    found: tuple[str, ...]


def partitions_of(metadata: ClusterMetadataResponse) -> list[PartitionMetadata]:
    """Return all partitions of all topics."""
    return [partition for topic in metadata.topics for partition in topic.partitions]


def broker_facts(metadata: ClusterMetadataResponse) -> list[BrokerFacts]:
    """Return the live brokers, and those that replicas are assigned to, by id."""
    leads: Counter[int] = Counter()
    preferred: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    in_sync: Counter[int] = Counter()
    for one in partitions_of(metadata):
        leads[one.leader] += 1
        preferred[one.replicas[0]] += 1
        replicas.update(one.replicas)
        in_sync.update(one.isr)
    addresses = {broker.id: f"{broker.host}:{broker.port}" for broker in metadata.brokers}
    return [
        BrokerFacts(
            id,
            id in addresses,
            addresses.get(id),
            metadata.racks.get(id, ""),
            id == metadata.controller_id,
            leads[id],
            preferred[id],
            replicas[id],
            in_sync[id],
        )
        for id in sorted(addresses.keys() | replicas.keys())
    ]


def health_checks(metadata: ClusterMetadataResponse) -> list[Check]:
    """Return the checks of controller, brokers, leaders and in-sync replicas."""
    partitions = partitions_of(metadata)
    replicated = [one for one in partitions if one.is_replicated]
    gone = tuple(f"broker {one.broker}" for one in broker_facts(metadata) if not one.live)
    has_controller = metadata.controller_id != NO_CONTROLLER or not replicated
    away = _names(
        partitions,
        lambda one: one.leader not in (NO_LEADER, one.replicas[0]),
    )
    share = len(away) / len(partitions) if partitions else 0.0
    return [
        Check(
            "controller",
            OK if has_controller else FAIL,
            () if has_controller else ("no broker is the controller",),
        ),
        _check("brokers not there", FAIL, gone),
        _check("offline", FAIL, _names(partitions, lambda one: one.leader == NO_LEADER)),
        _check(
            "below min in-sync replicas",
            FAIL,
            _names(replicated, lambda one: len(one.isr) < one.min_isr),
        ),
        _check(
            "under-replicated",
            FAIL,
            _names(replicated, lambda one: len(one.isr) < len(one.replicas)),
        ),
        _check(  # one more failure makes these unavailable
            "at min in-sync replicas",
            WARN,
            _names(replicated, lambda one: len(one.isr) == one.min_isr < len(one.replicas)),
        ),
        Check("not led by the preferred replica", WARN if share > _IMBALANCE else OK, away),
    ]


def storage_check(statuses: Mapping[int, Mapping[str, Any] | BrokerError]) -> Check:
    """Check the disks of brokers by their status; an error stands for a status that is missing."""
    found = []
    for broker_id, status in statuses.items():
        if isinstance(status, BrokerError):
            found.append(f"broker {broker_id} does not tell: {status}")
            continue
        lost = [one["error"] for one in status["directories"] if one["error"]]
        found += [f"broker {broker_id} offline: {error}" for error in lost]
        for one in status["failures"]:
            if not any(error in one["error"] for error in lost):
                found.append(f"broker {broker_id} {one['state']}: {one['error']}")
    return _check("storage", FAIL, tuple(found))


def _check(name: str, result: str, found: tuple[str, ...]) -> Check:
    return Check(name, result if found else OK, found)


def _names(
    partitions: Iterable[PartitionMetadata], is_meant: Callable[[PartitionMetadata], bool]
) -> tuple[str, ...]:
    return tuple(str(one.partition) for one in partitions if is_meant(one))
