"""The cluster as a whole: its brokers, how partitions are spread over them, and health checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from broker import deadlines, errors
from broker.admin.brokers import request_status
from broker.admin.recovery import find_unknown
from broker.admin.topics import TopicInfo, shape_of
from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.controller_client import cluster_metadata
from broker.client.side import Side
from broker.ids import NO_CONTROLLER, NO_LEADER
from broker.protocol.extension_requests import StatusParts
from broker.protocol.responses import (
    BrokerAddress,
    ClusterMetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from broker.records import HIDDEN, UNTOLD, ColumnKind, Count, Fit, Integer, Rank, Text, Title
from broker.units import counted

if TYPE_CHECKING:
    from broker.zk.registry import Registry

OK, WARN, FAIL, UNKNOWN, NOT_SHOWN = "ok", "warn", "fail", "unknown", "hidden"
_IMBALANCE = 0.1
"""Share of partitions that may be led by another than the preferred replica (Kafka 0.8.2)."""


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A broker, and how many partitions it leads and holds.

    The counts are None if no broker tells them, as those of Kafka 0.7.
    """

    id: Annotated[int, ColumnKind.INTEGER, "number in the cluster"]
    address: Annotated[Text, "for clients, `host:port`; none if it is not live", Fit.WHOLE]
    rack: Annotated[str, "where it stands; empty if not set", Rank(3)]
    # one that is not live is known as replicas are assigned to it
    is_live: Annotated[bool, ColumnKind.BOOLEAN, "whether it is registered", HIDDEN]
    is_controller: Annotated[
        bool, ColumnKind.BOOLEAN, "whether it is the controller", Title("CONTROLLER")
    ]
    leads: Annotated[Integer, "partitions that it leads", UNTOLD]
    preferred: Annotated[Integer, "partitions that it should lead", UNTOLD, Rank(3)]
    replicas: Annotated[
        Integer, "partitions of which it has a replica, or the only log", UNTOLD, Rank(1)
    ]
    in_sync: Annotated[Integer, "those in which it is in sync", UNTOLD, Rank(2)]
    offline_partitions: Annotated[
        tuple[str, ...], "partitions without a leader, if it is not live", Fit.WRAP, HIDDEN
    ] = ()

    @property
    def state(self) -> Annotated[str, "up, or down: not registered", Fit.ALARM]:
        """Return up or down."""
        return "up" if self.is_live else "down"

    @property
    def offline(self) -> Annotated[Count, "how many partitions have no leader, as it is not live"]:
        """Return how many partitions have no leader, as it is not live."""
        return len(self.offline_partitions)


class HealthCheck(NamedTuple):
    """A check of the cluster."""

    name: Annotated[str, "what is counted", Fit.WHOLE]
    result: Annotated[str, "ok, warn, fail, unknown, or hidden from this user", Fit.STATE]
    found: Annotated[tuple[str, ...], "what is not as it should be", Fit.WRAP, HIDDEN]

    # `count` is a method of tuples
    @property
    def found_count(self) -> Annotated[Count, "how many there are", Title("COUNT")]:
        """Return how many things are not as they should be."""
        return len(self.found)

    @property
    def detail(self) -> Annotated[str, "the first of them", Fit.WRAP]:
        """Return the first of them."""
        shown = ", ".join(self.found[:3])
        return f"{shown}, ..." if len(self.found) > 3 else shown


@dataclass(frozen=True, slots=True)
class Health:
    """The checks of a cluster, and what it has at the same look.

    Attributes:
        checks: each with what is not as it should be.
        brokers: live are those that responded.
        topics: without their sizes.
    """

    checks: tuple[HealthCheck, ...]
    brokers: tuple[BrokerInfo, ...] = ()
    topics: tuple[TopicInfo, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether no check fails; a warning is no failure."""
        return not self.failed

    @property
    def failed(self) -> tuple[HealthCheck, ...]:
        """Return the checks that fail."""
        return tuple(one for one in self.checks if one.result == FAIL)

    @property
    def hidden(self) -> tuple[HealthCheck, ...]:
        """Return the checks of which this user is not allowed to see all."""
        return tuple(one for one in self.checks if one.result == NOT_SHOWN)


def describe_cluster(side: Side) -> ClusterMetadataResponse:
    """Return the brokers and topics that the brokers know.

    `UnsupportedVersionError` if none knows of more than itself, as in Kafka 0.7.
    """
    brokers = side.brokers()
    found = cluster_metadata(brokers, side.connect, None)
    if found.cluster_id:
        return found
    answers = []
    for broker in brokers:
        with suppress(errors.UnsupportedVersionError):
            answers.append(cluster_metadata([broker], side.connect, None))
    return merged(answers)._replace(cluster_id="", brokers=tuple(brokers))


def merged(answers: Sequence[ClusterMetadataResponse]) -> ClusterMetadataResponse:
    """Return what brokers (at least one) say together: without ZooKeeper each knows only itself."""
    for one in answers:
        if one.cluster_id:
            return one
    brokers: set[BrokerAddress] = set()
    racks: dict[int, str] = {}
    partitions: dict[str, list[PartitionMetadata]] = {}
    for one in answers:
        brokers.update(one.brokers)
        racks |= one.racks
        for topic in one.topics:
            partitions.setdefault(topic.topic, []).extend(topic.partitions)
    topics = [
        TopicMetadata(name, errors.NO_ERROR, tuple(some)) for name, some in partitions.items()
    ]
    first = answers[0]
    return ClusterMetadataResponse(
        "", first.broker_id, first.controller_id, tuple(sorted(brokers)), racks, tuple(topics)
    )


def list_brokers(side: Side) -> list[BrokerInfo]:
    """Return the live brokers, and those that replicas are assigned to, by id."""
    try:
        return broker_infos(describe_cluster(side))
    except errors.UnsupportedVersionError:
        return [
            BrokerInfo(one.id, one.text, "", True, False, *(None,) * 4) for one in side.brokers()
        ]


def check_health(side: Side, registry: Registry | None = None) -> Health:
    """Check brokers, disks, leaders, replicas, and with a started `registry` what disks lost.

    A broker that does not answer is asked for nothing else: each wait would take as long.
    """
    asked: set[int] = set()
    told = Statuses()
    silent: dict[int, errors.BrokerError] = {}

    def connect_unless_silent(address: BrokerAddress) -> Connection:
        if address.id in silent:
            raise silent[address.id]
        return side.connect(address)

    def look(brokers: Iterable[BrokerAddress]) -> None:
        for address in sorted(brokers):
            if address.id in asked:
                continue
            asked.add(address.id)
            with deadlines.Limit(deadlines.left_s() / 2):  # others have time to respond
                _, document, error = request_status(side.connect, address, StatusParts(0))
            if error is not None:
                told.failures[address.id] = error
                if isinstance(error, errors.BrokerUnreachableError | errors.RequestTimeoutError):
                    silent[address.id] = error
            elif document is not None:  # a 0.7 broker has none
                told.known[address.id] = document

    look(side.brokers())
    metadata = describe_cluster(side._replace(connect=connect_unless_silent))
    look(metadata.brokers)
    lost = lost_check(connect_unless_silent, metadata.brokers)
    suspected = {id for one in told.known.values() for id in one.get("taken_for_dead", ())}
    checks = [
        *health_checks(metadata, suspected),
        *(storage_check(told), retention_check(told), access_check(told), lost),
    ]
    brokers = tuple(
        replace(one, is_live=False) if one.id in silent else one for one in broker_infos(metadata)
    )
    lost_logs = tuple(text for id, one in told.known.items() for text in lost_logs_of(id, one))
    losses = losses_check(registry, connect_unless_silent, lost_logs)
    topics = tuple(shape_of(one.topic, one.partitions, None) for one in metadata.topics)
    return Health((*checks, losses), brokers, topics)


def broker_infos(metadata: ClusterMetadataResponse) -> list[BrokerInfo]:
    """Return the live brokers, and those that replicas are assigned to, by id."""
    partitions = metadata.partitions
    leads = Counter(one.leader for one in partitions)
    preferred = Counter(one.replicas[0] for one in partitions)
    replicas = Counter(id for one in partitions for id in one.replicas)
    in_sync = Counter(id for one in partitions for id in one.isr)
    addresses = {broker.id: broker.text for broker in metadata.brokers}
    offline: dict[int, list[str]] = {}
    for one in partitions:
        for id in one.replicas if one.leader == NO_LEADER else ():
            if id not in addresses:
                offline.setdefault(id, []).append(str(one.partition))
    return [
        BrokerInfo(
            *(id, addresses.get(id), metadata.racks.get(id, ""), id in addresses),
            id == metadata.controller_id,
            *(leads[id], preferred[id], replicas[id], in_sync[id]),
            tuple(offline.get(id, ())),
        )
        for id in sorted(addresses.keys() | replicas.keys())
    ]


def health_checks(
    metadata: ClusterMetadataResponse, suspected: Collection[int] = ()
) -> list[HealthCheck]:
    """Return the checks of controller, brokers, leaders and in-sync replicas.

    `suspected` brokers are registered, and taken for dead by the controller.
    """
    partitions = metadata.partitions
    replicated = [one for one in partitions if one.is_replicated]
    gone = tuple(
        f"broker {one.id}" + (" (taken for dead)" if one.is_live else "")
        for one in broker_infos(metadata)
        if not one.is_live or one.id in suspected
    )
    has_controller = metadata.controller_id != NO_CONTROLLER or not replicated
    away = _names(partitions, lambda one: one.leader not in (NO_LEADER, one.replicas[0]))
    share = len(away) / len(partitions) if partitions else 0.0
    single = tuple(
        topic.topic
        for topic in metadata.topics
        if len(metadata.brokers) > 1 and any(len(one.replicas) < 2 for one in topic.partitions)
    )
    offline = _names(partitions, lambda one: one.leader == NO_LEADER)
    below = _names(replicated, lambda one: len(one.isr) < one.min_isr)
    behind = _names(replicated, lambda one: len(one.isr) < len(one.replicas))
    # one more failure makes these unavailable
    at_minimum = _names(replicated, lambda one: len(one.isr) == one.min_isr < len(one.replicas))
    return [
        _check("controller", FAIL, () if has_controller else ("no broker is the controller",)),
        _check("brokers not there", FAIL, gone),
        _check("offline", FAIL, offline),
        _check("below min in-sync replicas", FAIL, below),
        _check("under-replicated", FAIL, behind),
        _check("at min in-sync replicas", WARN, at_minimum),
        HealthCheck("not led by the preferred replica", WARN if share > _IMBALANCE else OK, away),
        _check("without replicas", WARN, single),  # lost with the broker, or the disk, they are on
    ]


@dataclass(slots=True)
class Statuses:
    """The status of each broker that tells it, and why others do not, by broker id."""

    known: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    failures: dict[int, errors.BrokerError] = field(default_factory=dict)

    @property
    def hidden(self) -> tuple[str, ...]:
        """Return for a check which brokers do not tell this user their status."""
        refused = {
            id: isinstance(e, errors.ClusterAuthorizationError) for id, e in self.failures.items()
        }
        return tuple(_not_allowed(id) for id, is_refused in refused.items() if is_refused)


def storage_check(told: Statuses) -> HealthCheck:
    """Check the disks of brokers by their status; one that tells none has failed."""
    found = [
        (id, f"does not tell: {error}")
        for id, error in told.failures.items()
        if not isinstance(error, errors.ClusterAuthorizationError)
    ]
    for id, status in told.known.items():
        lost = [one["error"] for one in status["directories"] if one["error"]]
        found += [(id, f"offline: {error}") for error in lost]
        for one in status["failures"]:
            if not any(error in one["error"] for error in lost):
                found.append((id, f"{one['state']}: {one['error']}"))
    found.sort(key=lambda item: item[0])
    return _check("storage", FAIL, tuple(f"broker {id} {text}" for id, text in found), told.hidden)


def access_check(told: Statuses) -> HealthCheck:
    """Check that others can change neither the rules nor what else brokers have in ZooKeeper."""
    failures = [text for one in told.known.values() for text in access_problems_of(one)]
    vanished = [
        f"broker {id}: the rules vanished from ZooKeeper {counted(count, 'time')} since its start"
        for id, one in told.known.items()
        if (count := one.get("rules", {}).get("vanished_count", 0))
    ]
    found = tuple(dict.fromkeys(failures + vanished))  # all brokers look at the same nodes
    return _check("access", FAIL if failures else WARN, found, told.hidden)


def access_problems_of(status: Mapping[str, Any]) -> Iterator[str]:
    """Yield, as a broker's status tells, why rules and nodes in ZooKeeper are not as they were."""
    yield from status.get("security", {}).get("open_nodes", ())
    if problem := status.get("rules", {}).get("problem"):
        yield f"the last good rules stay in effect: {problem}"


def retention_check(told: Statuses) -> HealthCheck:
    """Check that clocks and file times are right, and no leader lacks what its followers keep."""
    known = told.known.items()
    kept = [f"broker {id}: {text}" for id, one in known for text in one["kept_messages"]]
    waits = [f"broker {id}: {text}" for id, one in known if (text := one["retention_waits"])]
    return _check("retention", FAIL if kept else WARN, (*kept, *waits), told.hidden)


def lost_check(connect: Connect, brokers: Sequence[BrokerAddress]) -> HealthCheck:
    """Check that brokers have no logs of topics that ZooKeeper does not know."""
    topics: set[str] = set()
    failures = []
    hidden = []
    for broker in brokers:
        try:
            topics |= {one.record.partition.topic for one in find_unknown(connect, broker)[1]}
        except errors.ClusterAuthorizationError:
            hidden.append(_not_allowed(broker.id))
        except errors.BrokerError as error:
            failures.append(str(error))
    return _check("lost by ZooKeeper", FAIL, (*sorted(topics), *failures), tuple(hidden))


def lost_logs_of(broker_id: int, status: Mapping[str, Any]) -> Iterator[str]:
    """Yield by topic, as a broker's status tells, which partitions began again on a new disk."""
    for topic, names in status.get("lost_logs", {}).items():
        yield (
            f"{topic} on broker {broker_id}: {', '.join(names)} lost all messages with a disk; "
            "send them again, or delete the topic and create it again"
        )


def losses_check(
    registry: Registry | None, connect: Connect, lost_logs: tuple[str, ...] = ()
) -> HealthCheck:
    """Check that brokers have what they, the registry and groups remember of topics."""
    name = "lost by disks"
    if registry is None:
        if lost_logs:
            return HealthCheck(name, FAIL, lost_logs)
        return HealthCheck(name, UNKNOWN, ("only ZooKeeper remembers all that there was",))
    from broker.admin.losses import find_losses  # late: kazoo, as the registry

    sure, possible = find_losses(registry, connect)
    sure = (*lost_logs, *sure)
    return _check(name, FAIL if sure else WARN, (*sure, *possible))


def _not_allowed(broker_id: int) -> str:
    return f"broker {broker_id}: not allowed to see"


def _check(
    name: str, result: str, found: tuple[str, ...], hidden: tuple[str, ...] = ()
) -> HealthCheck:
    return HealthCheck(name, result if found else NOT_SHOWN if hidden else OK, found + hidden)


def _names(
    partitions: Iterable[PartitionMetadata], is_meant: Callable[[PartitionMetadata], bool]
) -> tuple[str, ...]:
    return tuple(str(one.partition) for one in partitions if is_meant(one))
