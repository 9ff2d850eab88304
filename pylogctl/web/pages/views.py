"""The pages for browsers: their handlers, in a table of routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.responses import RedirectResponse, Response

from broker.admin.brokers import BrokerStatus
from broker.admin.cluster import FAIL, WARN, BrokerInfo, Health
from broker.admin.lag import MEANINGS, GroupInfo, Lag, LagStatus, total
from broker.admin.topics import TopicInfo
from broker.api.client import Client
from broker.api.errors import NoZooKeeper
from broker.api.group_calls import look_at_group
from broker.errors import BrokerError, PartialError, UnsupportedVersionError
from pylogctl.web.api import size_of
from pylogctl.web.pages.charts import Line, chart, spark, thinned
from pylogctl.web.pages.rendering import (
    StateWord,
    formatter,
    lag_state,
    link,
    page,
    path_of,
    state_of,
    text_of_series,
    topic_page,
)
from pylogctl.web.problems import ProblemError
from pylogctl.web.sampler import PARTS_OF_TIME, TIMED, StatusSampler
from pylogctl.web.site import Call, WebRoutes

ROUTES = WebRoutes()
_T = TypeVar("_T")
_LIST_ROWS = 100
_FOUND = 100
_REQUESTS = "RequestMetrics."
_SOON_S = 4.0  # in which the overview is there although brokers do not respond
_BEHIND = "behind; after some minutes it is known whether it catches up"
_TOP_TOPICS = 10
_ATTENTION = 20


def _explained(status: LagStatus) -> StateWord:
    text = _BEHIND if status is LagStatus.LAG else MEANINGS[status]
    return lag_state(status)._replace(text=text)


def _groups(client: Client) -> list[GroupInfo] | None:
    try:
        return client.groups()
    except NoZooKeeper:
        return None


def _chart(sampler: StatusSampler, title: str, prefix: str, lines: Mapping[str, str]) -> Any:
    """Return a chart of series, by their names behind the prefix; all have one unit."""
    return chart(
        title,
        [Line(shown, sampler.points(f"{prefix}/{name}")) for name, shown in lines.items()],
        formatter(next(iter(lines))),
    )


def charts_of(sampler: StatusSampler, prefix: str) -> list[Any]:
    """Return the charts of the cluster, a topic, group or broker, by the start of its series."""
    kind = prefix.partition("/")[0]
    lines: dict[str, dict[str, str]] = {}
    if kind == "group":
        lines["Lag"] = {"lag": "lag"}
        lines["Offsets, all partitions"] = {"position": "position", "end": "end"}
    elif kind == "broker":
        lines["Bytes of producers and consumers"] = {"in": "in", "out": "out"}
        for request in TIMED:
            parts = {f"{request}_{part}_ms": part for part in PARTS_OF_TIME}
            lines[f"Time of a {request} request, by part"] = parts
        lines["Slowest request"] = {f"{request}_max_ms": request for request in TIMED}
        lines["Processor"] = {"cpu": "cpu"}
    else:
        lines["Bytes"] = {"in": "in", "out": "out"}
        lines["Messages from producers"] = {"messages": "messages"}
    charts = [_chart(sampler, title, prefix, names) for title, names in lines.items()]
    if kind == "cluster":
        slowest = sorted(
            (int(name.split("/")[1]), name)
            for name in sampler.newest("broker/")
            if name.endswith("/produce_max_ms")
        )
        some = [Line(f"broker {id}", sampler.points(name)) for id, name in slowest[:4]]
        charts.append(chart("Slowest request of a broker", some, formatter("produce_max_ms")))
    return charts


@ROUTES.at("/charts")
async def show_charts(call: Call) -> Response:
    """Return the charts of a page alone, for its script."""
    prefix = call.query_params.get("of", "cluster")
    return page(call, "charts.html", "", charts=charts_of(call.sampler, prefix))


@ROUTES.at("/")
async def show_overview(call: Call) -> Response:
    """Overview: the state of the cluster in one look, also while brokers do not respond."""
    sampler = call.sampler

    async def known(work: Callable[[Client], _T], otherwise: _T) -> tuple[_T, str]:
        try:
            return await call.read(work), ""
        except BrokerError as error:
            return otherwise, str(error)

    brokers: Sequence[BrokerInfo] = []
    topics: Sequence[TopicInfo] = []
    health, problem = await known(lambda _: sampler.check_health(_SOON_S), None)
    if health is not None:
        brokers, topics = health.brokers, health.topics
    elif not problem:  # of Kafka 0.7
        brokers, problem = await known(lambda client: client.brokers(timeout=_SOON_S), brokers)
        topics, _ = await known(lambda client: client.topics(timeout=_SOON_S), topics)
    newest, lags = sampler.newest(), sampler.lags()
    attention = [*_attention(health), *_late_groups(lags.values())]
    topics = sorted(topics, key=lambda one: -_traffic(one, newest))
    return page(
        call,
        "overview.html",
        "Overview",
        verdict=_verdict(health, problem),
        look=_look_of(health),
        attention=attention[:_ATTENTION],
        brokers=brokers,
        live_count=sum(one.is_live for one in brokers),
        partition_count=sum(one.partitions for one in topics),
        topics=topics,
        group_count=len(lags),
        newest=newest,
        problem=problem or sampler.problem,
        charts=charts_of(sampler, "cluster"),
        top=[(one, *_inflow(sampler, one.name)) for one in topics[:_TOP_TOPICS]],
    )


def _traffic(topic: TopicInfo, newest: Mapping[str, float]) -> float:
    name = f"topic/{topic.name}"
    return newest.get(f"{name}/in", 0.0) + newest.get(f"{name}/out", 0.0)


def _inflow(sampler: StatusSampler, topic: str) -> tuple[str, Any]:
    """Return the bytes in of the last hour, as numbers for the script and as a small line."""
    points = thinned(sampler.points(f"topic/{topic}/in"), 60)
    return " ".join(f"{one.value:.0f}" for one in points), spark(points, f"bytes in of {topic}")


def _verdict(health: Health | None, problem: str = "") -> StateWord:
    """Return the state of the cluster in one sentence."""
    if health is None and problem:
        return StateWord("FAIL", "fail", problem)
    if health is None:
        return StateWord("UNKNOWN", "unknown", "brokers of Kafka 0.7 do not tell their state")
    if health.ok and not any(one.result == WARN for one in health.checks):
        return StateWord("OK", "ok", "all partitions are led and in sync")
    names = ", ".join(one.name for one in health.checks if one.result in (WARN, FAIL))
    return StateWord("WARN", "warn", names) if health.ok else StateWord("FAIL", "fail", names)


def _look_of(health: Health | None) -> str:
    """Return what is another one where a look at the cluster has found something else."""
    return f"{hash(health):x}"


def _attention(health: Health | None) -> list[StateWord]:
    """Return what is wrong in the cluster, the worst first."""
    checks = [one for one in health.checks if one.result in (FAIL, WARN)] if health else []
    return [
        StateWord(one.result.upper(), one.result, f"{one.name}: {_some(one.found)}", "/health")
        for one in sorted(checks, key=lambda one: one.result)
    ]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _late_groups(lags: Collection[Lag]) -> list[StateWord]:
    found = []
    for lag in lags:
        state = lag_state(lag.status)
        if state.kind in ("warn", "fail"):
            text = f"{lag.group} is {text_of_series(lag.total_bytes, 'lag')} behind"
            found.append(StateWord(state.word, state.kind, text, path_of("groups", lag.group)))
    return sorted(found, key=lambda one: one.kind)


@ROUTES.at("/brokers")
async def show_brokers(call: Call) -> Response:
    """All brokers."""
    sampler = call.sampler
    health = await call.read(lambda _: sampler.check_health(_SOON_S))
    return page(
        call,
        "brokers.html",
        "Brokers",
        verdict=_verdict(health),
        look=_look_of(health),
        brokers=health.brokers if health else await call.read(lambda client: client.brokers()),
        newest=sampler.newest("broker/"),
    )


@ROUTES.at("/topics")
async def show_topics(call: Call) -> Response:
    """All topics, by a part of their names."""
    found = await call.read(lambda client: client.topics())
    newest = call.sampler.newest("topic/")
    keys: dict[str, Callable[[TopicInfo], Any]] = {
        "name": lambda one: one.name,
        "partitions": lambda one: one.partitions,
        "replicas": lambda one: one.replicas or 0,
        "state": lambda one: one.state,
        "size": lambda one: one.size_bytes or 0,
        "messages": lambda one: newest.get(f"topic/{one.name}/messages", 0.0),
        "in": lambda one: newest.get(f"topic/{one.name}/in", 0.0),
        "out": lambda one: newest.get(f"topic/{one.name}/out", 0.0),
    }
    return page(
        call,
        "topics.html",
        "Topics",
        newest=newest,
        **_found(call, found, keys, lambda one: state_of(one.state)),
    )


def _found(
    call: Call,
    every: Sequence[_T],
    keys: Mapping[str, Callable[[_T], Any]],
    state_of_row: Callable[[_T], StateWord],
) -> dict[str, Any]:
    """Return the rows of a long list whose names contain what the query says, sorted by it."""
    q, sort = call.query_params.get("q", ""), call.query_params.get("sort", "name")
    field, name_of = sort.removeprefix("-"), keys["name"]
    if field not in keys:
        raise ProblemError(
            422, f"the list cannot be sorted by '{field}'", hints=(f"valid: {', '.join(keys)}",)
        )
    rows = [one for one in every if q.lower() in name_of(one).lower()]
    rows.sort(key=keys[field], reverse=sort.startswith("-"))
    said = {"q": q, "sort": field, "descending": sort.startswith("-")}
    return said | _listed(call, rows, name_of, state_of_row)


def _listed(
    call: Call,
    every: Sequence[_T],
    name_of: Callable[[_T], str],
    state_of_row: Callable[[_T], StateWord],
) -> dict[str, Any]:
    """Return the rows of a long list after the one that the query names, and links to others.

    With `show=not-ok` only those that are not ok. The query keeps what it has beside the place.
    """
    kept: dict[str, object] = {**call.query_params}
    after, path = kept.pop("after", ""), call.url.path
    shows_all = kept.get("show") != "not-ok"
    rows = [one for one in every if shows_all or state_of_row(one).kind != "ok"]
    names = list(map(name_of, rows))
    start = names.index(after) + 1 if after in names else 0
    end = start + _LIST_ROWS
    return {
        "rows": rows[start:end],
        "total": len(rows),
        "first_url": link(path, **kept) if start else "",
        "next_url": link(path, **kept, after=names[end - 1]) if end < len(rows) else "",
    }


@ROUTES.at("/topics/{topic}")
async def show_topic(call: Call, topic: str) -> Response:
    """A topic: its partitions, rates, readers and settings."""
    sampler, prefix = call.sampler, f"topic/{topic}"
    partitions, settings, groups = await asyncio.gather(
        call.read(lambda client: client.describe(topic)),
        call.read(lambda client: _settings(client, topic=topic)),
        call.read(_groups),
    )
    return topic_page(
        call,
        "topic.html",
        topic,
        tab="topic",
        partition_count=len(partitions),
        replicas=max((len(one.replicas) for one in partitions), default=None),
        size_bytes=size_of(partitions),
        newest=sampler.newest(f"{prefix}/"),
        charts=charts_of(sampler, prefix),
        readers=None if groups is None else list(_readers(topic, groups, sampler.lags())),
        settings=settings,
        **_listed(
            call, partitions, lambda one: one.partition.name, lambda one: state_of(one.state)
        ),
    )


def _settings(client: Client, **of: Any) -> Mapping[str, Any] | None:
    """Return settings in effect; of the brokers that tell them, None if none does."""
    try:
        return client.settings(**of)
    except PartialError as error:
        found: Mapping[str, Any] = error.done[0]
        return found
    except UnsupportedVersionError:
        return None


def _readers(
    topic: str, groups: Sequence[GroupInfo], lags: Mapping[str, Lag]
) -> Iterator[tuple[GroupInfo, StateWord, int | None]]:
    """Yield the groups that read a topic, each with its status and its lag there."""
    for group in groups:
        if topic in group.topics:
            lag = lags.get(group.name)
            parts = [one for one in lag.partitions if one.partition.topic == topic] if lag else []
            yield group, _status_of(lag), total(one.lag_bytes for one in parts)


def _status_of(lag: Lag | None) -> StateWord:
    return StateWord("-", "unknown") if lag is None else lag_state(lag.status)


@ROUTES.at("/groups")
async def show_groups(call: Call) -> Response:
    """All groups, by a part of their names."""
    every, lags = await call.read(_groups), call.sampler.lags()

    def status_of(group: GroupInfo) -> StateWord:
        return _status_of(lags.get(group.name))

    keys: dict[str, Callable[[GroupInfo], Any]] = {
        "name": lambda one: one.name,
        "status": lambda one: status_of(one).kind,
        "lag": lambda one: (one.name in lags and lags[one.name].total_bytes) or 0,
    }
    found = {"rows": None} if every is None else _found(call, every, keys, status_of)
    newest = call.sampler.newest("group/")
    return page(call, "groups.html", "Groups", newest=newest, status_of=status_of, **found)


@ROUTES.at("/groups/{group}")
async def show_group(call: Call, group: str) -> Response:
    """A group: its lag over time, members, and a reset."""
    info, seen = await call.read(lambda client: look_at_group(client, group))
    lag = call.sampler.judged(seen)
    return page(
        call,
        "group.html",
        "Groups",
        group=info,
        lag=lag,
        by_topic=_by_topic(lag),
        status=_explained(lag.status),
        newest={f"group/{group}/lag": lag.total_bytes},
        charts=charts_of(call.sampler, f"group/{group}"),
        **_listed(
            call, lag.partitions, lambda one: str(one.partition), lambda one: lag_state(one.status)
        ),
    )


def _by_topic(lag: Lag) -> list[tuple[str, int, int | None]]:
    """Return each topic with the number of its partitions, and their lag where it is known."""
    found: dict[str, list[int | None]] = {}
    for one in lag.partitions:
        found.setdefault(one.partition.topic, []).append(one.lag_bytes)
    return [(topic, len(lags), total(lags)) for topic, lags in found.items()]


@ROUTES.at("/brokers/{id:int}")
async def show_broker(call: Call, id: int) -> Response:
    """A broker: its charts, directories, requests and settings."""
    sampler, prefix = call.sampler, f"broker/{id}"
    broker, brokers, settings = await asyncio.gather(
        call.read(lambda client: client.broker(id)),
        call.read(lambda client: client.brokers()),
        call.read(lambda client: _settings(client, broker=id)),
    )
    metrics = broker.metrics or {}
    inflow = [one.value for one in sampler.points(f"{prefix}/in")]
    per_s = sum(inflow) / len(inflow) if inflow else 0.0
    return page(
        call,
        "broker.html",
        "Brokers",
        broker=broker,
        prefix=prefix,
        is_controller=any(one.is_controller for one in brokers if one.id == id),
        newest=sampler.newest(f"{prefix}/"),
        problems=_problems_of(broker),
        directories=broker.directories
        and [
            (one, one.free_bytes / per_s if per_s and one.free_bytes else None)
            for one in broker.directories
        ],
        requests=[
            (name.removeprefix(_REQUESTS), one["Requests"])
            for name, one in metrics.items()
            if name.startswith(_REQUESTS)
        ],
        settings=settings,
        changed=[name for name, one in (settings or {}).items() if one.value != one.default],
        charts=charts_of(sampler, prefix),
    )


def _problems_of(broker: BrokerStatus) -> list[str]:
    found = [f"{one.partition}: {one.state}: {one.error}" for one in broker.failures or ()]
    if broker.retention_waits:
        found.append(f"old segments are kept for now: {broker.retention_waits}")
    settings = (broker.settings_problems or {}).items()
    return found + [f"settings at {path} are not used: {why}" for path, why in settings]


@ROUTES.at("/search")
async def search(call: Call) -> Response:
    """Topics, groups and brokers whose names contain what is searched for."""
    searched = call.query_params.get("q", "").strip()
    found: list[tuple[str, str, str]] = []
    if searched:
        topics, groups, brokers = await asyncio.gather(
            call.read(lambda client: client.topics()),
            call.read(_groups),
            call.read(lambda client: client.brokers()),
        )
        found = [("topic", one.name, path_of("topics", one.name)) for one in topics]
        found += [("group", one.name, path_of("groups", one.name)) for one in groups or ()]
        found = [one for one in found if searched.lower() in one[1].lower()]
        found += [
            ("broker", str(one.id), path_of("brokers", one.id))
            for one in brokers
            if searched in (str(one.id), one.address)
        ]
    exact = [url for _, name, url in found if name == searched]
    if len(exact) == 1:
        return RedirectResponse(exact[0], 303)
    return page(call, "search.html", "", searched=searched, found=found[:_FOUND], limit=_FOUND)


@ROUTES.at("/health")
async def show_health(call: Call) -> Response:
    """The checks of the cluster."""
    sampler = call.sampler
    found = await call.read(lambda _: sampler.check_health(_SOON_S))
    return page(call, "health.html", "Health", verdict=_verdict(found), health=found)


@ROUTES.at("/values")
async def newest_values(call: Call) -> Response:
    """Return the newest values of the series that a page shows, as numbers and as text."""
    sampler = call.sampler
    newest, lags = sampler.newest(), sampler.lags()
    found: dict[str, dict[str, Any]] = {}
    for key in call.query_params.getlist("key"):
        if key == "cluster/state":
            state = _verdict(sampler.health, sampler.problem)
            found[key] = state._asdict() | {"look": _look_of(sampler.health)}
        elif (lag := lags.get(key.removeprefix("group/").removesuffix("/state"))) is not None:
            found[key] = _explained(lag.status)._asdict()
        elif key in newest:
            found[key] = {"value": newest[key], "text": text_of_series(newest[key], key)}
    return Response(msgspec.json.encode(found), media_type="application/json")
