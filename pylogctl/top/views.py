"""The views of `pylogctl top`: the rows of each, from what is known. Pure.

A view with a target shows what the row of that name in another view is made of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from broker.admin.cluster import broker_infos
from broker.admin.lag import GroupLag, total
from broker.errors import ArgumentError, InvalidPatternError
from broker.ids import NO_LEADER
from broker.patterns import Pattern
from broker.protocol.extension_requests import StatusParts
from broker.protocol.responses import PartitionMetadata
from broker.topic import TopicPartition
from broker.units import format_size
from pylogctl.cli.columns import UNKNOWN, Document, Row
from pylogctl.group.document import partition_row, sums_of
from pylogctl.top import document
from pylogctl.top.state import BrokerState, Numbers, TopState, sum_of_known, times_of

_ALL_TOPICS = "BrokerAllTopicStat"
_SOCKETS = "SocketServerStats"


class Moment(NamedTuple):
    """A time: since 1970, and monotonic."""

    ms: int
    s: float


class ViewLine(NamedTuple):
    """A row of a view; the `name` stays the same from look to look."""

    name: str
    row: Row
    is_silent: bool = False  # the values are old, as its broker does not answer
    trend: tuple[float | None, ...] = ()


class View(NamedTuple):
    """A view: its rows, and what brokers are asked for while it is shown."""

    document: Document
    lines: Callable[[TopState, str, Moment], Iterator[ViewLine]]  # of a target
    parts: StatusParts = StatusParts.METRICS | StatusParts.REQUESTS
    sort: str = ""  # column; `-` before it for descending
    drill: str = ""  # view that shows what a row is made of
    has_trend: bool = False
    of: str = ""  # what the target is
    headings: Mapping[str, str] = MappingProxyType({})  # instead of those of other views


class ViewPlace(NamedTuple):
    """A view as a user has set it."""

    view: str
    target: str = ""
    sort: str = ""
    filter: str = ""
    selected: str = ""  # name of a line; empty for the first
    row: int = 0  # where that was, for when it is gone


def _brokers(state: TopState, _: str, now: Moment) -> Iterator[ViewLine]:
    cluster = state.cluster
    infos = {} if cluster is None else {one.id: one for one in broker_infos(cluster)}
    for id in sorted(state.brokers.keys() | infos.keys()):
        info, known = infos.get(id), state.brokers.get(id)
        if known is None:  # it was away when this began
            yield ViewLine(str(id), document.TopBrokerRow(now.ms, id), is_silent=True)
            continue
        figures = known.document
        is_controller = cluster is not None and cluster.controller_id == id
        phase = figures.get("phase", "running (0.7)")
        rate = _metric_rate(known)
        times = times_of([known], "produce", "total")
        row = document.TopBrokerRow(
            now.ms,
            id,
            known.last.address,
            "DOWN" if known.is_silent else "ctl" if is_controller and phase == "running" else phase,
            rate("KafkaServer", "CpuSeconds"),
            None if info is None else info.leads,
            None if info is None else info.replicas,
            known.value("ReplicaManager", "UnderReplicatedPartitions"),
            rate(_ALL_TOPICS, "MessagesIn"),
            rate(_ALL_TOPICS, "BytesIn"),
            rate(_ALL_TOPICS, "BytesOut"),
            request_rate(known),
            figures.get("connections"),
            None if times is None else times.quantile_s(0.99),
            max(_disk_shares(known), default=None),
            figures["uptime_ms"] / 1000 if figures else None,
            _age(known, now),
            known.error or None,
        )
        yield ViewLine(str(id), row, known.is_silent)


def _disk_shares(broker: BrokerState) -> Iterator[float]:
    """Yield which share of each disk is used."""
    for name, one in broker.metrics.items():
        if name.startswith("LogDirectory.") and one["SizeBytes"] and one["FreeBytes"] is not None:
            yield round(1 - one["FreeBytes"] / one["SizeBytes"], 3)


def _metric_rate(broker: BrokerState) -> Callable[[str, str], float | None]:
    return lambda name, attribute: broker.rate(name, attribute, StatusParts.METRICS)


def request_rate(broker: BrokerState) -> float | None:
    """Return how many requests of all types a broker responds to a second."""
    names = [name for name in broker.metrics if name.startswith("RequestMetrics.")]
    return sum_of_known(broker.rate(one, "Requests", StatusParts.METRICS) for one in names)


def _age(broker: BrokerState, now: Moment) -> float | None:
    return None if broker.silent_since_s is None else round(now.s - broker.silent_since_s, 3)


def _facts(state: TopState, target: str, now: Moment) -> Iterator[ViewLine]:
    broker = state.brokers.get(int(target)) if target.isdecimal() else None
    if broker is None:
        return
    for name, value in _facts_of(broker):
        row = document.FactRow(now.ms, int(target), name, value)
        yield ViewLine(name, row, broker.is_silent)


def _facts_of(broker: BrokerState) -> Iterator[tuple[str, str]]:
    figures = broker.document
    if broker.error:
        yield "error", broker.error
    yield "address", broker.last.address
    for name in ("software", "codec", "pid", "phase", "zookeeper"):
        if figures.get(name) is not None:
            yield name, str(figures[name])
    session = figures.get("session")
    if session:
        yield "session", f"{session['state']}{'' if session['is_registered'] else ', unregistered'}"
    for one in figures.get("directories", ()):
        free = "" if one["free_bytes"] is None else f", {format_size(one['free_bytes'])} free"
        yield f"disk {one['path']}", one["error"] or f"{one['partitions']} partitions{free}"
    for one in figures.get("failures", ()):
        yield f"{one['topic']}[{one['partition']}]", f"{one['state']}: {one['error']}"
    for name, attribute, form in _NUMBERS:
        value = broker.value(name, attribute)
        if value is not None:
            yield _words(attribute), f"{value:{form}}"
    for name, setting in figures.get("settings", {}).items():
        if setting["origin"] != "default":
            yield name, setting["value"]


_SOCKET_FACTS = (
    *("Connections", "ConnectionsAccepted", "ConnectionsRefused", "QueuedBytes"),
    *("ConnectionsWithHeldRequests", "ConnectionsWithUnsentResponses", "BadFrames"),
)
_NUMBERS = (
    *((_SOCKETS, name, "") for name in _SOCKET_FACTS),
    *(("LogFlushStats", name, ".1f") for name in ("AvgFlushMs", "MaxFlushMs")),
)


def _words(name: str) -> str:
    """Return `Connections refused` for `ConnectionsRefused`."""
    return re.sub(r"(?<=[a-z])([A-Z])", lambda match: f" {match[0].lower()}", name)


def _topics(state: TopState, _: str, now: Moment) -> Iterator[ViewLine]:
    cluster = state.cluster
    sizes: Counter[str] = Counter()
    last_ms: dict[str, int] = {}
    leaders = {one.partition: one.leader for one in state.partitions()}
    for id, broker in state.brokers.items():
        for partition, log in broker.logs():
            if leaders.get(partition) == id:
                sizes[partition.topic] += log["Size"]
        for partition, one in broker.replicas().items():
            if one["last_append_ms"] is not None:
                before = last_ms.get(partition.topic, 0)
                last_ms[partition.topic] = max(before, one["last_append_ms"])
    knows_sizes = any(one.last.parts & StatusParts.LOGS for one in state.brokers.values())
    for topic in [] if cluster is None else cluster.topics:
        name = topic.topic
        object = f"BrokerTopicStat.{name}"
        silent = _silent_of(state, topic.partitions)
        rate = partial(state.total_rate, object, part=StatusParts.TOPICS)
        row = document.TopTopicRow(
            now.ms,
            name,
            len(topic.partitions),
            max((len(one.replicas) for one in topic.partitions), default=None),
            rate("MessagesIn"),
            rate("BytesIn"),
            rate("BytesOut"),
            sizes[name] if knows_sizes else None,
            sum(one.leader == NO_LEADER for one in topic.partitions),
            sum(len(one.isr) < len(one.replicas) for one in topic.partitions),
            max(0, now.ms - last_ms[name]) / 1000 if name in last_ms else None,
            max((_age(one, now) or 0.0 for one in silent), default=None),
        )
        yield ViewLine(name, row, bool(silent), state.trends.get(("topic", name), ()))


def _silent_of(state: TopState, partitions: Sequence[PartitionMetadata]) -> list[BrokerState]:
    """Return the leaders of partitions that do not answer."""
    leaders = {one.leader for one in partitions}
    return [one for id, one in state.brokers.items() if id in leaders and one.is_silent]


def _partitions(state: TopState, target: str, now: Moment) -> Iterator[ViewLine]:
    logs = {id: dict(one.logs()) for id, one in state.brokers.items()}
    replicas = {id: one.replicas() for id, one in state.brokers.items()}
    for one in state.partitions():
        if one.partition.topic == target:
            log = logs.get(one.leader, {}).get(one.partition, {})
            replica = replicas.get(one.leader, {}).get(one.partition, {})
            yield _partition_line(one, state.brokers.get(one.leader), log, replica, now)


def _partition_line(
    one: PartitionMetadata, leader: BrokerState | None, log: Numbers, replica: Numbers, now: Moment
) -> ViewLine:
    partition = one.partition
    isr = tuple(replica.get("isr", one.isr))
    lags = [lag for lag in replica.get("lags", {}).values() if lag is not None]
    stalled_ms = replica.get("stalled_ms")
    state = "offline" if one.leader == NO_LEADER else "ok"
    if state == "ok" and len(isr) < len(one.replicas):
        state = "behind"
    row = document.PartitionRow(
        now.ms,
        partition.topic,
        partition.name,
        state,
        None if one.leader == NO_LEADER else one.leader,
        one.leader_epoch if one.is_replicated else None,
        isr,
        one.replicas,
        log.get("LogStartOffset"),
        log.get("LogEndOffset"),
        None if leader is None else leader.log_rate(partition, "LogEndOffset"),
        replica["log_end"] - replica["flushed"] if replica else None,
        log.get("Size"),
        log.get("NumberOfSegments"),
        max(lags, default=None),
        None if stalled_ms is None else stalled_ms / 1000,
        None if leader is None else _age(leader, now),
    )
    return ViewLine(partition.name, row, leader is not None and leader.is_silent)


def _replicas(state: TopState, target: str, now: Moment) -> Iterator[ViewLine]:
    topic, _, name = target.rpartition("/")
    for one in state.partitions():
        if one.partition.topic != topic or one.partition.name != name:
            continue
        leader = state.brokers.get(one.leader)
        led = {} if leader is None else leader.replicas().get(one.partition, {})
        for id in one.replicas:
            broker = state.brokers.get(id)
            record = {} if broker is None else broker.replicas().get(one.partition, {})
            log = {} if broker is None else dict(broker.logs()).get(one.partition, {})
            is_silent = broker is None or broker.is_silent
            in_sync = id in led.get("isr", one.isr)
            yield ViewLine(
                str(id),
                document.ReplicaRow(
                    now.ms,
                    topic,
                    name,
                    id,
                    "leader" if id == one.leader else "follower",
                    "DOWN" if is_silent else "in sync" if in_sync else "behind",
                    log.get("LogStartOffset"),
                    log.get("LogEndOffset"),
                    log.get("CurrentOffset"),
                    record.get("flushed"),
                    led.get("lags", {}).get(str(id)),
                    log.get("NumberOfSegments"),
                    record.get("truncations"),
                    None if broker is None else _age(broker, now),
                ),
                is_silent,
            )


def _groups(state: TopState, _: str, now: Moment) -> Iterator[ViewLine]:
    for one in state.groups or ():
        name = one.snapshot.name
        grown = [
            (last.end - first.end) * 1000 / (last.time_ms - first.time_ms)
            for first, last in (
                (lag.samples[0], lag.samples[-1]) for lag in one.partitions if lag.samples
            )
            if last.time_ms > first.time_ms
        ]
        row = document.TopGroupRow(
            now.ms, name, len(one.snapshot.members), total(grown), sums_of(one.partitions, one)
        )
        yield ViewLine(name, row, trend=state.trends.get(("group", name), ()))


def _group(state: TopState, target: str, now: Moment) -> Iterator[ViewLine]:
    for group in state.groups or ():
        if group.snapshot.name == target:
            yield from _partitions_of_group(group, now)


def _partitions_of_group(group: GroupLag, now: Moment) -> Iterator[ViewLine]:
    for one in group.partitions:
        row = document.GroupPartitionRow(now.ms, partition_row(one, group))
        yield ViewLine(str(one.partition), row, one.exists and one.ends is None)


def _replication(state: TopState, _: str, now: Moment) -> Iterator[ViewLine]:
    pairs: dict[tuple[int, int], list[TopicPartition]] = {}
    for leader, broker in state.brokers.items():
        for partition, one in broker.replicas().items():
            if one["role"] == "leader":
                for follower in one["lags"]:
                    pairs.setdefault((int(follower), leader), []).append(partition)
    for (follower, leader), partitions in sorted(pairs.items()):
        yield _follower_line(state, follower, leader, partitions, now)


def _follower_line(
    state: TopState, follower: int, leader: int, partitions: Sequence[TopicPartition], now: Moment
) -> ViewLine:
    source, copying = state.brokers[leader], state.brokers.get(follower)
    records = source.replicas()
    lags = [records[one]["lags"][str(follower)] for one in partitions]
    out_count = sum(follower not in records[one]["isr"] for one in partitions)
    if copying is None or copying.is_silent:
        word = "DOWN"
    elif copying.value("ReplicaFetcherManager", "FailedFetcherCount"):
        word = "failing"
    else:
        word = "behind" if out_count else "ok"
    row = document.FollowerRow(
        now.ms,
        follower,
        leader,
        word,
        len(partitions),
        out_count,
        total(lags),
        _copied_rate(source, str(follower), partitions),
        None
        if copying is None
        else _metric_rate(copying)("ReplicaFetcherManager", "FetchRequests"),
        _age(source, now),
    )
    return ViewLine(f"{follower} from {leader}", row, source.is_silent)


def bytes_to_copy(state: TopState) -> int:
    """Return what replicas that are not in sync still have to copy, as far as it is known."""
    return sum(
        lag or 0
        for broker in state.brokers.values()
        for one in broker.replicas().values()
        for follower, lag in one["lags"].items()
        if int(follower) not in one["isr"]
    )


def _copied_rate(
    source: BrokerState, follower: str, partitions: Sequence[TopicPartition]
) -> float | None:
    """Return by how much the ends of a follower's copies grow a second."""
    new, old, before = source.replicas(), source.replicas_before(), source.before
    copied, is_known = 0, False
    for one in partitions:
        lags = [looked.get(one, {}).get("lags", {}).get(follower) for looked in (new, old)]
        if None not in lags:
            is_known = True
            copied += (new[one]["log_end"] - lags[0]) - (old[one]["log_end"] - lags[1])
    if before is None or not is_known:
        return None
    return round(copied / (source.last.time_s - before.time_s), 3)


_REQUESTS = ("produce", "fetch", "follower_fetch", "metadata", "push", "other")
_WAITS = {"produce": "Publish", "fetch": "Read", "follower_fetch": "FollowerRead"}


def _requests(state: TopState, target: str, now: Moment) -> Iterator[ViewLine]:
    if target:
        for id, broker in sorted(state.brokers.items()):
            yield ViewLine(str(id), _request_row(target, [broker], id, now), broker.is_silent)
        return
    for name in _REQUESTS:
        if any(
            name in one.document.get("requests", {}).get("times", ())
            for one in state.brokers.values()
        ):
            yield ViewLine(name, _request_row(name, list(state.brokers.values()), None, now))


def _request_row(
    name: str, brokers: Sequence[BrokerState], id: int | None, now: Moment
) -> document.RequestRow:
    times = times_of(brokers, name, "total")
    waits = (one.value("Purgatory", f"{_WAITS.get(name)}Waiting") for one in brokers)
    parts = [times_of(brokers, name, part) for part in ("queue", "local", "remote", "send")]
    elapsed_s = max((one.elapsed_s or 0.0 for one in brokers if not one.is_silent), default=0.0)
    if times is None or not elapsed_s:
        return document.RequestRow(now.ms, name, id)
    spent_s = sum(one.total_s for one in parts if one is not None)
    queue, local, remote, send = (
        None if one is None or not spent_s else round(one.total_s / spent_s, 3) for one in parts
    )
    return document.RequestRow(
        now.ms,
        name,
        id,
        round(times.event_count / elapsed_s, 3),
        _error_rate(brokers, name),
        times.quantile_s(0.5),
        times.quantile_s(0.99),
        queue,
        local,
        remote,
        send,
        total(waits),
    )


def _error_rate(brokers: Sequence[BrokerState], request: str) -> float:
    prefix = f"RequestErrors.{request}."
    rates = (
        _metric_rate(one)(name, "Errors")
        for one in brokers
        for name in one.metrics
        if name.startswith(prefix)
    )
    return sum_of_known(rates) or 0.0


_OVERVIEW = StatusParts.METRICS | StatusParts.REQUESTS
_LOGS = _OVERVIEW | StatusParts.LOGS
_REPLICAS = _OVERVIEW | StatusParts.REPLICAS

VIEWS: Mapping[str, View] = {
    "overview": View(document.BROKERS, _brokers, drill="broker"),
    "brokers": View(document.BROKERS, _brokers, drill="broker"),
    "broker": View(document.FACTS, _facts, _OVERVIEW | StatusParts.SETTINGS, of="broker"),
    "topics": View(
        document.TOPICS,
        _topics,
        _LOGS | _REPLICAS | StatusParts.TOPICS,
        "-bytes_in",
        "partitions",
        has_trend=True,
    ),
    "partitions": View(
        document.PARTITIONS, _partitions, _LOGS | _REPLICAS, drill="replicas", of="topic"
    ),
    "replicas": View(document.REPLICAS, _replicas, _LOGS | _REPLICAS, of="partition"),
    "groups": View(
        document.GROUPS,
        _groups,
        sort="-lag_bytes",
        drill="group",
        has_trend=True,
        headings={"bytes_per_s": "out/s"},
    ),
    "group": View(document.GROUP, _group, of="group"),
    "replication": View(document.REPLICATION, _replication, _REPLICAS, sort="-lag"),
    "requests": View(document.REQUESTS, _requests, sort="-rate", drill="request"),
    "request": View(document.REQUESTS.showing("broker"), _requests, of="request"),
}
KEYS = {
    "o": "overview",
    "b": "brokers",
    "t": "topics",
    "g": "groups",
    "r": "replication",
    "q": "requests",
}


def compile_filter(text: str) -> Callable[[str], bool]:
    """Return what a name must match: a part of it, or after `~` a regular expression."""
    if not text.startswith("~"):
        return lambda name: text.lower() in name.lower()
    try:
        found = Pattern(text[1:])
    except InvalidPatternError as error:
        raise ArgumentError(str(error)) from error
    return lambda name: found.search(name) is not None


def selected_index(names: Sequence[str], place: ViewPlace) -> int:
    """Return which line is selected: the one of that name, or the one that is where it was."""
    if place.selected in names:
        return names.index(place.selected)
    return max(0, min(place.row, len(names) - 1))


def lines_of(state: TopState, place: ViewPlace, now: Moment) -> list[ViewLine]:
    """Return the lines of a view that match its filter, in its order."""
    lines = VIEWS[place.view].lines(state, place.target, now)
    if place.filter:
        matches = compile_filter(place.filter)
        lines = (one for one in lines if any(map(matches, _texts(one))))
    return ordered(list(lines), place.sort)


def _texts(line: ViewLine) -> Iterator[str]:
    yield line.name
    for value in line.row.by_column().values():
        if isinstance(value, str):
            yield value


def ordered(lines: Sequence[ViewLine], sort: str) -> list[ViewLine]:
    """Return lines by a column, descending with `-` before it, unknown values last."""
    if not sort:
        return list(lines)
    name = sort.removeprefix("-")
    known: list[tuple[Any, ViewLine]] = []
    rest: list[ViewLine] = []
    for line in lines:
        value = line.row.by_column().get(name)
        if value is None or value is UNKNOWN:
            rest.append(line)
        else:
            known.append((value, line))
    known.sort(key=lambda one: one[0], reverse=sort.startswith("-"))
    return [line for _, line in known] + rest
