"""The pages for browsers: their handlers, and their rows in the table of routes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from broker.admin.brokers import BrokerStatus
from broker.admin.cluster import FAIL, WARN, BrokerInfo, Health
from broker.admin.lag import MEANINGS, GroupInfo, Lag, LagStatus, total
from broker.admin.topics import PartitionInfo, TopicInfo
from broker.api.client import Client
from broker.api.errors import NoZooKeeper
from broker.api.group_calls import look_at_group
from broker.errors import BrokerError, PartialError, UnsupportedVersionError
from pylogctl.web.pages.charts import Line, chart, spark, thinned
from pylogctl.web.pages.messages_view import show_message, show_messages
from pylogctl.web.pages.rendering import (
    State,
    asset,
    formatter,
    link,
    page,
    path_of,
    text_of_series,
)
from pylogctl.web.problems import ProblemError
from pylogctl.web.sampler import PARTS_OF_TIME, TIMED, Sampler
from pylogctl.web.site import Route, site_of

_T = TypeVar("_T")
_LIST_ROWS = 100
_FOUND = 100
_REQUESTS = "RequestMetrics."
_SOON_S = 4.0  # in which the overview is there although brokers do not respond
_BEHIND = "behind; after some minutes it is known whether it catches up"
_TOP_TOPICS = 10
_ATTENTION = 20
_STATES_OF_LAG = {
    LagStatus.OK: "ok",
    LagStatus.IDLE: "ok",
    LagStatus.NO_OFFSET: "unknown",
    LagStatus.LAG: "unknown",
    LagStatus.WARN: "warn",
    LagStatus.UNKNOWN: "unknown",
}
"""How bad the status of a group is; the others are failures."""


def lag_state(status: LagStatus) -> State:
    """Return the state that a status of a group is shown as."""
    return State(str(status), _STATES_OF_LAG.get(status, "fail"))


def _explained(status: LagStatus) -> State:
    text = _BEHIND if status is LagStatus.LAG else MEANINGS[status]
    return lag_state(status)._replace(text=text)


def partition_state(one: PartitionInfo) -> State:
    """Return the state that a partition is shown as."""
    return State("unknown", "unknown") if one.problem and one.state == "ok" else _state(one.state)


def _state(word: str) -> State:
    """Return a state of a partition, or of a topic, with how bad it is."""
    return State(word, {"ok": "ok", "under-replicated": "warn"}.get(word, "fail"))


def _groups(client: Client) -> list[GroupInfo] | None:
    try:
        return client.groups()
    except NoZooKeeper:
        return None


def _chart(sampler: Sampler, title: str, prefix: str, lines: Mapping[str, str]) -> Any:
    """Return a chart of series, by their names behind the prefix; all have one unit."""
    return chart(
        title,
        [Line(shown, sampler.points(f"{prefix}/{name}")) for name, shown in lines.items()],
        formatter(next(iter(lines))),
    )


def charts_of(sampler: Sampler, prefix: str) -> list[Any]:
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


async def show_charts(request: Request) -> Response:
    """Return the charts of a page alone, for its script."""
    prefix = request.query_params.get("of", "cluster")
    return page(request, "charts.html", "", charts=charts_of(site_of(request).sampler, prefix))


async def show_overview(request: Request) -> Response:
    """Overview: the state of the cluster in one look, also while brokers do not respond."""
    site, sampler = site_of(request), site_of(request).sampler

    async def known(work: Callable[[Client], _T], otherwise: _T) -> tuple[_T, str]:
        try:
            return await site.read(work), ""
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
        request,
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
        top=[_topic_row(sampler, one) for one in topics[:_TOP_TOPICS]],
    )


def _traffic(topic: TopicInfo, newest: Mapping[str, float]) -> float:
    name = f"topic/{topic.name}"
    return newest.get(f"{name}/in", 0.0) + newest.get(f"{name}/out", 0.0)


def _topic_row(sampler: Sampler, topic: TopicInfo) -> dict[str, Any]:
    points = thinned(sampler.points(f"topic/{topic.name}/in"), 60)
    return {
        "name": topic.name,
        "url": path_of("topics", topic.name),
        "state": _state(topic.state),
        "points": " ".join(f"{one.value:.0f}" for one in points),
        "spark": spark(points, f"bytes in of {topic.name}"),
    }


def _verdict(health: Health | None, problem: str = "") -> State:
    """Return the state of the cluster in one sentence."""
    if health is None and problem:
        return State("FAIL", "fail", problem)
    if health is None:
        return State("UNKNOWN", "unknown", "brokers of Kafka 0.7 do not tell their state")
    if health.ok and not any(one.result == WARN for one in health.checks):
        return State("OK", "ok", "all partitions are led and in sync")
    names = ", ".join(one.name for one in health.checks if one.result in (WARN, FAIL))
    return State("WARN", "warn", names) if health.ok else State("FAIL", "fail", names)


def _look_of(health: Health | None) -> str:
    """Return what is another one where a look at the cluster has found something else."""
    return f"{hash(health):x}"


def _attention(health: Health | None) -> list[State]:
    """Return what is wrong in the cluster, the worst first."""
    checks = [one for one in health.checks if one.result in (FAIL, WARN)] if health else []
    return [
        State(one.result.upper(), one.result, f"{one.name}: {_some(one.found)}", "/health")
        for one in sorted(checks, key=lambda one: one.result)
    ]


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def _late_groups(lags: Collection[Lag]) -> list[State]:
    found = []
    for lag in lags:
        state = lag_state(lag.status)
        if state.kind in ("warn", "fail"):
            text = f"{lag.group} is {text_of_series(lag.total_bytes, 'lag')} behind"
            found.append(State(state.word, state.kind, text, path_of("groups", lag.group)))
    return sorted(found, key=lambda one: one.kind)


async def show_brokers(request: Request) -> Response:
    """All brokers."""
    site, sampler = site_of(request), site_of(request).sampler
    health = await site.read(lambda _: sampler.check_health(_SOON_S))
    return page(
        request,
        "brokers.html",
        "Brokers",
        verdict=_verdict(health),
        look=_look_of(health),
        brokers=health.brokers if health else await site.read(lambda client: client.brokers()),
        newest=sampler.newest("broker/"),
    )


async def show_topics(request: Request) -> Response:
    """All topics, by a part of their names."""
    site = site_of(request)
    query = request.query_params
    q, sort = query.get("q", ""), query.get("sort", "name")
    found = await site.read(lambda client: client.topics())
    newest = site.sampler.newest("topic/")
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
    chosen = [
        one
        for one in found
        if q.lower() in one.name.lower() and _is_wanted(request, _state(one.state))
    ]
    _sort(chosen, sort, keys)
    shown = _listed(request, chosen, lambda one: one.name)
    return page(
        request,
        "topics.html",
        "Topics",
        q=q,
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        rows=[_topic_of_list(one) for one in shown.pop("rows")],
        newest=newest,
        **shown,
    )


def _listed(request: Request, rows: Sequence[_T], name_of: Callable[[_T], str]) -> dict[str, Any]:
    """Return the rows of a long list after the one that the query names, and links to others.

    The query keeps what it has beside the place.
    """
    names = list(map(name_of, rows))
    after = request.query_params.get("after", "")
    start = names.index(after) + 1 if after in names else 0
    end = start + _LIST_ROWS
    path = request.url.path
    kept: dict[str, object] = {**request.query_params}
    kept.pop("after", None)
    return {
        "rows": rows[start:end],
        "total": len(rows),
        "first_url": link(path, **kept) if start else "",
        "next_url": link(path, **kept, after=names[end - 1]) if end < len(rows) else "",
    }


def _is_wanted(request: Request, state: State) -> bool:
    """Return whether a list has a row with this state: with `show=not-ok` only if it is not ok."""
    return request.query_params.get("show") != "not-ok" or state.kind != "ok"


def _topic_of_list(topic: TopicInfo) -> dict[str, Any]:
    return {
        "name": topic.name,
        "url": path_of("topics", topic.name),
        "partitions": topic.partitions,
        "replicas": topic.replicas,
        "state": _state(topic.state),
        "size_bytes": topic.size_bytes,
    }


async def show_topic(request: Request) -> Response:
    """A topic: its partitions, rates, readers and settings."""
    site, name = site_of(request), request.path_params["topic"]
    partitions, settings, groups = await asyncio.gather(
        site.read(lambda client: client.describe(name)),
        site.read(lambda client: _settings(client, topic=name)),
        site.read(_groups),
    )
    sizes = [one.size_bytes for one in partitions]
    lags = site.sampler.lags()
    return page(
        request,
        "topic.html",
        "Topics",
        **_of_topic(name, "topic"),
        partition_count=len(partitions),
        partition_state=partition_state,
        **_listed(
            request,
            [one for one in partitions if _is_wanted(request, partition_state(one))],
            lambda one: one.partition.name,
        ),
        replicas=max((len(one.replicas) for one in partitions), default=None),
        size_bytes=None if None in sizes else sum(one or 0 for one in sizes),
        newest=site.sampler.newest(f"topic/{name}/"),
        charts=charts_of(site.sampler, f"topic/{name}"),
        groups=None
        if groups is None
        else [_reader_of(name, one, lags) for one in groups if name in one.topics],
        settings=settings,
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


def _of_topic(name: str, tab: str) -> dict[str, Any]:
    return {"topic": name, "topic_url": path_of("topics", name), "tab": tab}


def _reader_of(topic: str, group: GroupInfo, lags: Mapping[str, Lag]) -> dict[str, Any]:
    lag = lags.get(group.name)
    parts = [one for one in lag.partitions if one.partition.topic == topic] if lag else []
    return {
        "name": group.name,
        "url": path_of("groups", group.name),
        "word": group.state,
        "kind": lag_state(lag.status).kind if lag else "unknown",
        "lag_bytes": total(one.lag_bytes for one in parts),
    }


async def show_groups(request: Request) -> Response:
    """All groups, by a part of their names."""
    site, query = site_of(request), request.query_params
    q, sort = query.get("q", ""), query.get("sort", "name")
    found, lags = await site.read(_groups), site.sampler.lags()
    rows = (
        None
        if found is None
        else [
            row
            for row in (_group_of_list(one, lags) for one in found if q in one.name)
            if _is_wanted(request, row["status"])
        ]
    )
    keys: dict[str, Callable[[dict[str, Any]], Any]] = {
        "name": lambda one: one["name"],
        "status": lambda one: one["status"].kind,
        "lag": lambda one: one["lag_bytes"],
    }
    _sort(rows or [], sort, keys)
    shown = _listed(request, rows or [], lambda one: one["name"])
    return page(
        request,
        "groups.html",
        "Groups",
        q=q,
        sort=sort.removeprefix("-"),
        descending=sort.startswith("-"),
        newest=site.sampler.newest("group/"),
        **shown if rows is not None else {"rows": None},
    )


def _sort(rows: list[_T], sort: str, keys: Mapping[str, Callable[[_T], Any]]) -> None:
    """Sort rows by a field, descending if there is a minus before its name."""
    field = sort.removeprefix("-")
    if field not in keys:
        raise ProblemError(
            422, f"the list cannot be sorted by '{field}'", hints=(f"valid: {', '.join(keys)}",)
        )
    rows.sort(key=keys[field], reverse=sort.startswith("-"))


def _group_of_list(group: GroupInfo, lags: Mapping[str, Lag]) -> dict[str, Any]:
    lag = lags.get(group.name)
    return {
        "name": group.name,
        "url": path_of("groups", group.name),
        "state": group.state,
        "status": State("-", "unknown") if lag is None else lag_state(lag.status),
        "member_count": len(group.members),
        "topics": group.topics,
        "lag_bytes": (lag and lag.total_bytes) or 0,
    }


async def show_group(request: Request) -> Response:
    """A group: its lag over time, members, and a reset."""
    site, name = site_of(request), request.path_params["group"]
    sampler = site.sampler
    group, found = await site.read(lambda client: look_at_group(client, name))
    lag = sampler.judged(found)
    return page(
        request,
        "group.html",
        "Groups",
        group=group,
        lag=lag,
        by_topic=_by_topic(lag),
        status=_explained(lag.status),
        lag_state=lag_state,
        **_listed(
            request,
            [one for one in lag.partitions if _is_wanted(request, lag_state(one.status))],
            lambda one: str(one.partition),
        ),
        newest={f"group/{name}/lag": lag.total_bytes},
        charts=charts_of(sampler, f"group/{name}"),
        allow_changes=site.allow_changes,
    )


def _by_topic(lag: Lag) -> list[tuple[str, int, int | None]]:
    """Return each topic with the number of its partitions, and their lag where it is known."""
    found: dict[str, list[int | None]] = {}
    for one in lag.partitions:
        found.setdefault(one.partition.topic, []).append(one.lag_bytes)
    return [(topic, len(lags), total(lags)) for topic, lags in found.items()]


async def show_broker(request: Request) -> Response:
    """A broker: its charts, directories, requests and settings."""
    site, id = site_of(request), request.path_params["id"]
    sampler, prefix = site.sampler, f"broker/{id}"
    broker, brokers, settings = await asyncio.gather(
        site.read(lambda client: client.broker(id)),
        site.read(lambda client: client.brokers()),
        site.read(lambda client: _settings(client, broker=id)),
    )
    metrics = broker.metrics or {}
    inflow = [one.value for one in sampler.points(f"{prefix}/in")]
    per_s = sum(inflow) / len(inflow) if inflow else 0.0
    return page(
        request,
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


async def search(request: Request) -> Response:
    """Topics, groups and brokers whose names contain what is searched for."""
    site, searched = site_of(request), request.query_params.get("q", "").strip()
    found: list[tuple[str, str, str]] = []
    if searched:
        topics, groups, brokers = await asyncio.gather(
            site.read(lambda client: client.topics()),
            site.read(_groups),
            site.read(lambda client: client.brokers()),
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
    return page(request, "search.html", "", searched=searched, found=found[:_FOUND], limit=_FOUND)


async def show_health(request: Request) -> Response:
    """The checks of the cluster."""
    sampler = site_of(request).sampler
    found = await site_of(request).read(lambda _: sampler.check_health(_SOON_S))
    return page(request, "health.html", "Health", verdict=_verdict(found), health=found)


async def newest_values(request: Request) -> Response:
    """Return the newest values of the series that a page shows, as numbers and as text."""
    sampler = site_of(request).sampler
    newest, lags = sampler.newest(), sampler.lags()
    found: dict[str, dict[str, Any]] = {}
    for key in request.query_params.getlist("key"):
        if key == "cluster/state":
            state = _verdict(sampler.health, sampler.problem)
            found[key] = state._asdict() | {"look": _look_of(sampler.health)}
        elif (lag := lags.get(key.removeprefix("group/").removesuffix("/state"))) is not None:
            found[key] = _explained(lag.status)._asdict()
        elif key in newest:
            found[key] = {"value": newest[key], "text": text_of_series(newest[key], key)}
    return Response(msgspec.json.encode(found), media_type="application/json")


ROUTES = (
    Route("GET", "/", show_overview),
    Route("GET", "/brokers", show_brokers),
    Route("GET", "/topics", show_topics),
    Route("GET", "/topics/{topic}", show_topic),
    Route("GET", "/topics/{topic}/messages", show_messages, shows_messages=True),
    Route(
        "GET",
        "/topics/{topic}/partitions/{partition}/messages/{offset:int}",
        show_message,
        shows_messages=True,
    ),
    Route("GET", "/brokers/{id:int}", show_broker),
    Route("GET", "/groups", show_groups),
    Route("GET", "/groups/{group}", show_group),
    Route("GET", "/health", show_health),
    Route("GET", "/search", search),
    Route("GET", "/values", newest_values),
    Route("GET", "/charts", show_charts),
    Route("GET", "/assets/{name}", asset),
)
