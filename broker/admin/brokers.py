"""Single brokers: found by id, their status, and an orderly stop.

`session` is a started `broker.zk.session.Session`.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from broker import deadlines, errors
from broker.client.cluster import Connect
from broker.client.connection import Connection
from broker.client.controller_client import cluster_metadata
from broker.client.registry_cluster import RegisteredCluster
from broker.client.side import Side
from broker.protocol.extension_requests import (
    ALL_PARTS,
    ShutdownRequest,
    StatusParts,
    StatusRequest,
)
from broker.protocol.layouts import DATA
from broker.protocol.responses import BrokerAddress
from broker.records import (
    HIDDEN,
    UNTOLD,
    Bytes,
    ColumnKind,
    Fit,
    Flag,
    Integer,
    Moment,
    Rank,
    Rate,
    Seconds,
    Text,
    Title,
)
from broker.times import moment
from broker.topic import FORMAT_KAFKA, TopicPartition
from broker.units import format_duration
from broker.zk import paths
from broker.zk.values import decode_broker

if TYPE_CHECKING:
    from broker.zk.session import Session

_SHOWN_TOPICS = 3


_AS_TOLD = (
    *("topics", "partitions", "connections", "zookeeper", "runs_zookeeper", "retention_waits"),
    *("settings_problems", "metrics", "software", "codec", "pid", "listeners"),
)
"""What a status document has under the names of `BrokerStatus`, unless the broker is older."""


class StatusResponse(NamedTuple):
    """The status document of a broker; None if it knows only 0.7's requests, or with an error."""

    address: BrokerAddress
    document: dict[str, Any] | None
    error: errors.BrokerError | None = None


class DataDirectory(NamedTuple):
    """A data directory of a broker."""

    path: str  # on the machine of the broker
    partitions: int  # how many it has
    free_bytes: int | None  # None if the disk does not tell
    error: str | None  # why it cannot be used any more


class LogFailure(NamedTuple):
    """A partition that a disk of its broker fails, or ZooKeeper does not take."""

    partition: TopicPartition
    state: str  # full, unreadable, damaged, failed, offline or unregistered
    error: str


_STORAGE = (
    "ok, or the worst of partitions: full, unreadable, damaged, failed, offline, unregistered"
)


@dataclass(frozen=True, slots=True)
class BrokerStatus:
    """The state of a broker; None for what one does not tell that is down, or of Kafka 0.7."""

    id: Annotated[int, ColumnKind.INTEGER, "number in the cluster"]
    address: Annotated[Text, "for clients; none if it is not registered", Fit.WHOLE]
    phase: Annotated[str, "starting, running, stopping, down, or unknown", Fit.STATE]
    started: Annotated[Moment, "when it was started", HIDDEN] = None
    uptime_s: Annotated[Seconds, "since its start", Title("UPTIME"), UNTOLD] = None
    topics: Annotated[Integer, "number of topics", Rank(3), UNTOLD] = None
    partitions: Annotated[Integer, "number of partitions", Rank(1), UNTOLD] = None
    size_bytes: Annotated[Bytes, "size of its logs", Title("SIZE"), Rank(1), UNTOLD] = None
    connections: Annotated[Integer, "open connections", Rank(2), UNTOLD] = None
    produce_requests_per_s: Annotated[
        Rate, "produce requests per second", Title("PRODUCE-RATE"), Rank(1), UNTOLD
    ] = None
    fetch_requests_per_s: Annotated[
        Rate, "fetch requests per second", Title("FETCH-RATE"), Rank(1), UNTOLD
    ] = None
    last_flush: Annotated[Moment, "last flush of a log; none if nothing was flushed", Rank(4)] = (
        None
    )
    is_clean_start: Annotated[
        Flag, "whether it was stopped cleanly before", Title("CLEAN-START"), Rank(4)
    ] = None
    session: Annotated[Text, "state of the session with ZooKeeper", Fit.STATE, Rank(3)] = None
    is_registered: Annotated[
        Flag, "whether it and its topics are, in ZooKeeper", Title("REGISTERED"), Rank(4)
    ] = None
    zookeeper: Annotated[Text, "connect string of ZooKeeper", Fit.WRAP, HIDDEN] = None
    runs_zookeeper: Annotated[Flag, "whether that ends with the broker", HIDDEN] = None
    directories: Annotated[
        tuple[DataDirectory, ...] | None, "path, partitions, room and error of each", HIDDEN
    ] = None
    failures: Annotated[
        tuple[LogFailure, ...] | None, "partitions that a disk fails: state and error", HIDDEN
    ] = None
    retention_waits: Annotated[Text, "why old segments are kept for now", Fit.WRAP, HIDDEN] = None
    settings_problems: Annotated[
        Mapping[str, str] | None, "nodes of settings that are not used, and why", HIDDEN
    ] = None
    metrics: Annotated[
        Mapping[str, Mapping[str, Any]] | None, "counters under Kafka 0.7's names", HIDDEN
    ] = None
    software: Annotated[Text, "program and version", Fit.WRAP, HIDDEN] = None
    codec: Annotated[Text, "engine of its message codec", HIDDEN] = None
    pid: Annotated[Integer, "process id", HIDDEN] = None
    listeners: Annotated[
        Sequence[Mapping[str, Any]] | None, "name, tls, host and port of each", HIDDEN
    ] = None
    certificate_expires: Annotated[Moment, "end of the certificate of tls listeners", HIDDEN] = None

    @property
    def failing(self) -> Annotated[Integer, "partitions that the disk fails", Rank(1), UNTOLD]:
        """Return how many partitions the disks fail."""
        return None if self.failures is None else len({one.partition for one in self.failures})

    @property
    def storage(self) -> Annotated[Text, _STORAGE, Fit.STATE, UNTOLD]:
        """Return ok, or the states of partitions that the disks fail."""
        if self.failures is None:
            return None
        return ", ".join(sorted({one.state for one in self.failures})) or "ok"


class StopStep(NamedTuple):
    """A step of a broker's shutdown."""

    name: str
    duration_s: float
    is_done: bool  # whether it succeeded
    note: str | None  # reason of a failure, or a remark


@dataclass(frozen=True, slots=True)
class StopReport:
    """How a broker was stopped."""

    broker: int
    steps: tuple[StopStep, ...]
    duration_s: float

    @property
    def failed(self) -> tuple[StopStep, ...]:
        """Return the steps that failed; the next start recovers the logs if they need it."""
        return tuple(one for one in self.steps if not one.is_done)


class RegisteredBroker(NamedTuple):
    """A broker as it is registered in ZooKeeper."""

    id: int
    host: str
    port: int
    creator: str  # token of its data directory
    since_ms: int  # since 1970
    session: str  # hexadecimal
    topic_count: int


def find_broker(side: Side, broker_id: int) -> BrokerAddress:
    """Return the address of a live broker; `BrokerNotFoundError` if there is none of that id.

    `BrokerUnreachableError` if it is known by its topics, and not live.
    """
    brokers = side.brokers()
    for address in brokers:
        if address.id == broker_id:
            return address
    away = find_away(side)
    if broker_id in away:
        raise away_error(broker_id, away[broker_id])
    known = ", ".join(map(str, sorted([*away, *(address.id for address in brokers)]))) or "none"
    raise errors.BrokerNotFoundError(
        f"broker '{broker_id}' not found",
        hints=[f"known brokers: {known}", "try: pylogctl broker list"],
    )


def away_error(broker_id: int, topics: Sequence[str]) -> errors.BrokerUnreachableError:
    """Return the error for a broker that is not live and has logs of topics."""
    shown = ", ".join(topics[:_SHOWN_TOPICS]) + ", ..." * (len(topics) > _SHOWN_TOPICS)
    return errors.BrokerUnreachableError(
        f"broker {broker_id} is down: it is not registered, and has logs of {shown}",
        hints=[f"start it; if it is gone for good: pylogctl broker decommission {broker_id}"],
    )


def request_status(
    connect: Connect, address: BrokerAddress, parts: StatusParts = ALL_PARTS
) -> StatusResponse:
    """Request the state of a broker, and parts of its status; a failure is part of the result."""
    with closing(connect(address)) as connection:
        try:
            if connection.hello() is None:
                return StatusResponse(address, None)
            document = json.loads(DATA.decode(connection.call(StatusRequest(parts))))
            return StatusResponse(address, document)
        except errors.BrokerError as error:
            return StatusResponse(address, None, error)


def require_status(connect: Connect, address: BrokerAddress) -> BrokerStatus:
    """Return the state of a broker; raise if it does not respond."""
    response = request_status(connect, address)
    if response.error is not None:
        raise response.error
    return status_of(response)


def status_of(response: StatusResponse) -> BrokerStatus:
    """Return what a response tells; of a failure, whether the broker is down."""
    address, document, error = response
    where = address.text if address.host else None
    if document is None:
        # one that refuses this user runs, and does not say more
        refused = isinstance(error, errors.AuthenticationError | errors.ClusterAuthorizationError)
        phase = "unknown" if refused else "down" if error else "running (0.7)"
        return BrokerStatus(address.id, where, phase)
    session = document["session"] or {}
    sockets = document["metrics"]["SocketServerStats"]
    return BrokerStatus(
        address.id,
        where,
        document["phase"],
        started=moment(document["started_ms"]),
        uptime_s=document["uptime_ms"] / 1000,
        size_bytes=document["bytes"],
        produce_requests_per_s=round(sockets["ProduceRequestsPerSecond"], 3),
        fetch_requests_per_s=round(sockets["FetchRequestsPerSecond"], 3),
        last_flush=moment(document["last_flush_ms"]),
        is_clean_start=document["clean_start"],
        session=session.get("state"),
        is_registered=session.get("is_registered"),
        directories=tuple(
            DataDirectory(one["path"], one["partitions"], one["free_bytes"], one["error"])
            for one in document["directories"]
        ),
        failures=tuple(
            LogFailure(_partition(one), one["state"], one["error"]) for one in document["failures"]
        ),
        certificate_expires=moment((document.get("certificate") or {}).get("not_after_ms")),
        **{name: document.get(name) for name in _AS_TOLD},
    )


def _partition(record: Mapping[str, str]) -> TopicPartition:
    return TopicPartition.named(record["topic"], record["partition"])


def shut_down(connection: Connection, *, force: bool) -> list[StopStep]:
    """Shut a broker down, wait until it closes the connection, and return the steps it took.

    The connection's timeout limits the wait. Without `force` the broker waits for clients that send
    without acknowledgements.
    """
    if connection.hello() is None:
        raise errors.UnsupportedVersionError(
            f"{connection.name} speaks Kafka 0.7 only and cannot be asked to stop",
            hints=["send its process SIGTERM"],
        )
    steps = json.loads(DATA.decode(connection.call(ShutdownRequest(force))))
    try:
        connection.receive()
    except errors.RequestTimeoutError:
        raise
    except errors.BrokerUnreachableError:
        pass  # the broker has closed the connection, as expected
    return [
        StopStep(one["step"], one["seconds"], one.get("done", True), one.get("note"))
        for one in steps
    ]


def stop_broker(
    side: Side,
    address: BrokerAddress,
    *,
    force: bool = False,
    takes_zookeeper: bool = False,  # which it runs
) -> StopReport:
    """Shut a broker down, and return once the others do not name it any more."""
    started_s, give_up_s = time.monotonic(), side.give_up_s
    with closing(side.connect(address)) as connection:
        connection.timeout_s = side.timeout_s
        try:
            steps = shut_down(connection, force=force)
        except errors.RequestTimeoutError as error:
            raise errors.RequestTimeoutError(
                f"{connection.name} did not stop within {format_duration(side.timeout_s)}",
                hints=["nothing was killed; it may still be stopping"],
            ) from error
    if not takes_zookeeper and deadlines.remaining(lambda: _is_live(side, address.id), give_up_s):
        raise errors.RequestTimeoutError(f"{connection.name} has stopped; others name it still")
    return StopReport(address.id, tuple(steps), time.monotonic() - started_s)


def _is_live(side: Side, broker_id: int) -> bool:
    try:
        return any(one.id == broker_id for one in side.brokers())
    except errors.UNANSWERED:  # it was the last one
        return False


def validate_unused(session: Session, address: BrokerAddress, zookeeper: str) -> None:
    """Raise `ConflictError` if others use the ZooKeeper that a broker runs."""
    others = [one.id for one in registered_brokers(session) if one.id != address.id]
    users = [*(f"broker {one}" for one in others), *member_texts(registered_members(session))]
    if users:
        raise errors.ConflictError(
            in_use_text(name_of(address), zookeeper, users),
            "ZOOKEEPER_IN_USE",
            hints=["stop those first; they can do little without it"],
        )


def name_of(address: BrokerAddress) -> str:
    """Return a broker's id and address, for messages."""
    return f"broker {address.id} at {address.host}:{address.port}"


def in_use_text(name: str, zookeeper: str, users: Iterable[str]) -> str:
    """Return for a message who uses the ZooKeeper that a broker runs."""
    return f"{name} runs the ZooKeeper of the cluster, {zookeeper}, used by {', '.join(users)}"


def member_texts(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield for a message how many members consumer groups have."""
    for group, count in counts.items():
        yield f"{count} member{'s' * (count != 1)} of group '{group}'"


def registered_brokers(session: Session) -> Iterator[RegisteredBroker]:
    """Yield the registered brokers by id."""
    topic_counts = _topic_counts(session)
    for name in sorted(session.children_if_any(paths.BROKER_IDS), key=int):
        try:
            value, stat = session.get(paths.broker(int(name)))
        except errors.RegistryNodeNotFoundError:
            continue  # deregistered meanwhile
        info = decode_broker(int(name), value)
        yield RegisteredBroker(
            info.id,
            info.host,
            info.port,
            info.creator,
            stat.ctime_ms,
            f"0x{stat.ephemeral_owner & (1 << 64) - 1:x}",
            topic_counts.get(name, 0),
        )


def find_away(side: Side) -> dict[int, list[str]]:
    """Return the topics of each broker that is not live and has logs of some, by id.

    ZooKeeper tells if the cluster is known from there, else a broker that knows the whole cluster.
    """
    if isinstance(side.cluster, RegisteredCluster):
        return away_brokers(side.cluster.registry.session)
    return told_away(side.brokers(), side.connect)


def told_away(brokers: Sequence[BrokerAddress], connect: Connect) -> dict[int, list[str]]:
    """Return what `find_away` does, as the first of `brokers` that responds tells it."""
    try:
        metadata = cluster_metadata(brokers, connect, None)
    except errors.UnsupportedVersionError:
        return {}
    live = {one.id for one in metadata.brokers}
    found: dict[int, list[str]] = {}
    for topic in metadata.topics:
        for id in {id for one in topic.partitions for id in one.replicas} - live:
            found.setdefault(id, []).append(topic.topic)
    return dict(sorted(found.items()))


def away_brokers(session: Session) -> dict[int, list[str]]:
    """Return the topics of each broker that is not registered and has logs of some, by id."""
    from broker.zk.creations import absent_homes  # late: kazoo, which a broker may do without
    from broker.zk.replicated_topics import ReplicatedTopics

    live = {int(name) for name in session.children_if_any(paths.BROKER_IDS)}
    replicas = ReplicatedTopics(session)
    assigned = {
        one.topic: {id for ids in one.replicas.values() for id in ids}
        for one in replicas.assignments(replicas.topics())
    }
    homes = absent_homes(session, session.children_if_any(paths.TOPICS), live)
    found: dict[int, set[str]] = {}
    for topic, ids in [*assigned.items(), *homes.items()]:
        for id in set(ids) - live:
            found.setdefault(id, set()).add(topic)
    return {id: sorted(topics) for id, topics in sorted(found.items())}


def registered_members(session: Session) -> dict[str, int]:
    """Return how many members each consumer group has, without groups that have none."""
    counts = {}
    for group in session.children_if_any(paths.CONSUMERS):
        if count := len(session.children_if_any(paths.consumer_ids(group))):
            counts[group] = count
    return counts


def _topic_counts(session: Session) -> dict[str, int]:
    from broker.zk.replicated_topics import ReplicatedTopics  # late: kazoo

    counts: Counter[str] = Counter()
    for topic in session.children_if_any(paths.TOPICS):
        counts.update(session.children(paths.topic(topic)))
    replicas = ReplicatedTopics(session)
    for one in replicas.assignments(replicas.topics()):
        if one.format == FORMAT_KAFKA:  # which homes register no part of
            counts.update({str(id) for ids in one.replicas.values() for id in ids})
    return counts
