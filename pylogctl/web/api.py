"""The JSON API below `/api/v1`: its handlers that read, and their rows in the table of routes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import quote

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from broker.admin.cluster import FAIL, Health, HealthCheck
from broker.admin.settings import Setting
from broker.admin.topics import TopicInfo
from broker.api.client import Client
from broker.api.errors import TimedOut, Unreachable
from broker.topic import MessagePosition, TopicPartition
from pylogctl.web import documents as docs
from pylogctl.web.documents import document_of, list_document, struct_of
from pylogctl.web.exchange import listed, query_of, respond
from pylogctl.web.messages import (
    Budget,
    MessagePage,
    Row,
    cursor_of,
    parse_cursor,
    read_page,
    start_positions,
)
from pylogctl.web.problems import ProblemError
from pylogctl.web.site import Route, site_of

BASE = "/api/v1"
_MAX_JSON_BYTES = 256 << 10
MAX_PARTITIONS = 200  # whose positions a cursor has
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)


async def live(request: Request) -> Response:
    """Respond, whatever the cluster does."""
    query_of(request, docs.NoQuery)
    return respond(docs.Live(ok=True))


async def health(request: Request) -> Response:
    """Check the cluster; 503 if a check fails, or no broker responds."""
    query_of(request, docs.NoQuery)
    try:
        found = await site_of(request).read(lambda client: client.health())
    except (Unreachable, TimedOut) as error:
        found = Health((HealthCheck("brokers not there", FAIL, (str(error),)),))
    return respond(document_of(docs.HealthDocument, found, ok=found.ok), 200 if found.ok else 503)


async def cluster(request: Request) -> Response:
    """Tell of the cluster as a whole."""
    query_of(request, docs.NoQuery)
    site = site_of(request)
    cluster_id, brokers, topics = await asyncio.gather(
        site.read(lambda client: client.cluster_id),
        site.read(lambda client: client.brokers()),
        site.read(lambda client: client.topics()),
    )
    sizes = [one.size_bytes for one in topics]
    controllers = [one.id for one in brokers if one.is_controller]
    return respond(
        docs.ClusterDocument(
            cluster_id=cluster_id,
            controller=controllers[0] if controllers else None,
            brokers=len(brokers),
            live_brokers=sum(one.is_live for one in brokers),
            topics=len(topics),
            partitions=sum(one.partitions for one in topics),
            size_bytes=None if None in sizes else sum(one or 0 for one in sizes),
            figures=_figures(request, "cluster/"),
            allow_changes=site.allow_changes,
        )
    )


def _figures(request: Request, prefix: str) -> dict[str, float]:
    newest = site_of(request).sampler.newest(prefix)
    return {name.removeprefix(prefix): value for name, value in newest.items()}


async def brokers(request: Request) -> Response:
    """List the brokers."""
    query_of(request, docs.NoQuery)
    found = await site_of(request).read(lambda client: client.brokers())
    return respond(list_document(docs.BrokerList, found))


async def broker(request: Request) -> Response:
    """Tell of one broker."""
    query_of(request, docs.NoQuery)
    broker_id = request.path_params["id"]
    found = await site_of(request).read(lambda client: client.broker(broker_id))
    figures = _figures(request, f"broker/{broker_id}/")
    return respond(document_of(docs.BrokerDocument, found, figures=figures))


async def broker_settings(request: Request) -> Response:
    """List the settings in effect on a broker."""
    broker_id = request.path_params["id"]
    return await _settings(request, lambda client: client.settings(broker=broker_id))


async def topic_settings(request: Request) -> Response:
    """List the settings in effect for a topic."""
    topic = request.path_params["topic"]
    return await _settings(request, lambda client: client.settings(topic=topic))


async def _settings(request: Request, read: Callable[[Client], Mapping[str, Setting]]) -> Response:
    query_of(request, docs.NoQuery)
    found = await site_of(request).read(read)
    rows = [
        document_of(docs.SettingDocument, one, name=name) for name, one in sorted(found.items())
    ]
    return respond(list_document(docs.SettingList, rows))


async def topics(request: Request) -> Response:
    """List topics."""
    query = query_of(request, docs.ListQuery)
    found = await site_of(request).read(lambda client: client.topics())
    page, following, total = listed(query, found, lambda one: one.name)
    return respond(list_document(docs.TopicList, page, next=following, total=total))


async def topic(request: Request) -> Response:
    """Tell of one topic; its ETag is of its shape, not of its size."""
    query_of(request, docs.NoQuery)
    name = request.path_params["topic"]
    found = await site_of(request).read(lambda client: topic_of(client, name))
    return respond(document_of(struct_of(TopicInfo), found), headers={"ETag": etag_of(found)})


def topic_of(client: Client, name: str) -> TopicInfo:
    """Return a topic, without a look at all the others."""
    found = client.describe(name)
    sizes = [one.size_bytes for one in found]
    copies = [len(one.replicas) for one in found if one.leader_epoch is not None]
    return TopicInfo(
        name,
        partitions=len(found),
        replicas=max(copies, default=None),
        brokers=tuple(sorted({id for one in found for id in one.replicas})),
        size_bytes=None if None in sizes else sum(one or 0 for one in sizes),
        offline=sum(one.leader is None for one in found),
        under_replicated=sum(len(one.in_sync) < len(one.replicas) for one in found),
    )


def etag_of(found: TopicInfo) -> str:
    """Return what changes with the shape of a topic."""
    shape = repr((found.name, found.partitions, found.replicas, found.brokers))
    return f'"{hashlib.sha256(shape.encode()).hexdigest()[:16]}"'


async def partitions(request: Request) -> Response:
    """List the partitions of a topic."""
    query_of(request, docs.NoQuery)
    name = request.path_params["topic"]
    found = await site_of(request).read(lambda client: client.describe(name))
    return respond(list_document(docs.PartitionList, found))


async def messages(request: Request) -> Response:
    """Return a page of messages, in either direction from a place or a cursor."""
    query = query_of(request, docs.MessagesQuery)
    name = request.path_params["topic"]
    budget = Budget()

    def read(client: Client) -> MessagePage:
        return read_page(
            client,
            name,
            positions_of(client, name, query),
            is_backward=query.direction == "older",
            limit=query.limit,
            contains=query.filter,
            budget=budget,
        )

    reading = asyncio.ensure_future(site_of(request).scan(read))
    watching = asyncio.ensure_future(_disconnected(request))
    await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
    watching.cancel()
    if not reading.done():
        budget.max_bytes = 0  # nobody waits for it
    found = await reading
    rows = [message_document(one, query.shown_as, query.max_bytes) for one in found.rows]
    return respond(
        docs.MessageList(
            rows,
            next=cursor_of(found.end) if found.has_newer else None,
            previous=cursor_of(found.start) if found.has_older else None,
            stopped=found.stopped,
            scanned=found.scanned_bytes,
        )
    )


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def positions_of(
    client: Client, topic: str, query: docs.MessagesQuery, *, allow_missing: bool = False
) -> dict[TopicPartition, MessagePosition]:
    """Return where reading begins in each partition that is asked for."""
    if query.cursor:
        return parse_cursor(topic, query.cursor)
    there = sorted(client.offsets(topic, "start", allow_missing=allow_missing))
    wanted = [one for one in there if not query.partition or one.name in query.partition]
    if len(wanted) < len(set(query.partition)):
        has = ", ".join(one.name for one in there)
        raise ProblemError(
            404,
            f"'{topic}' has no partition {' or '.join(map(repr, query.partition))}",
            hints=(f"it has {has}",),
        )
    if len(wanted) > MAX_PARTITIONS:
        raise ProblemError(
            422,
            f"'{topic}' has {len(wanted)} partitions; at most {MAX_PARTITIONS} are read at a time",
            hints=("partition=0-0&partition=0-1 chooses some",),
        )
    return start_positions(client, topic, wanted, query.place)


_As = Literal["auto", "text", "json", "hex", "base64"]


def message_document(row: Row, shown_as: _As, max_bytes: int) -> docs.MessageDocument:
    """Return a message as a document; a value that is not as was asked is shown as base64."""
    data = row.value[:max_bytes]
    is_cut = len(data) < len(row.value)
    encoding, value = _shown(data, is_cut, shown_as)
    return docs.MessageDocument(
        partition=row.partition.name,
        offset=row.offset,
        next_offset=row.next_offset,
        inner=row.inner,
        size=len(row.value),
        value=value,
        encoding=encoding,
        truncated=is_cut,
        problem=row.problem,
    )


def _shown(
    data: bytes, is_cut: bool, shown_as: _As
) -> tuple[Literal["text", "json", "hex", "base64"], str]:
    if shown_as == "hex":
        return "hex", data.hex()
    text = None if shown_as == "base64" else _text_of(data, is_cut)
    if text is None:
        return ("hex", data.hex()) if shown_as == "auto" else ("base64", _base64(data))
    if shown_as == "text":
        return "text", text
    if not is_cut and len(data) <= _MAX_JSON_BYTES and _is_json(text):
        return "json", text
    return ("base64", _base64(data)) if shown_as == "json" else ("text", text)


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _text_of(data: bytes, is_cut: bool) -> str | None:
    """Return UTF-8 without control characters but tabs and line ends; None for anything else."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if not is_cut or error.start < len(data) - 3:
            return None
        text = data[: error.start].decode()  # the cut has divided a character
    is_text = all(one in "\t\r\n" or not (one < " " or "\x7f" <= one <= "\x9f") for one in text)
    return text if is_text else None


async def raw(request: Request) -> Response:
    """Return the bytes of one message, as a file that no browser shows."""
    query = query_of(request, docs.RawQuery)
    path = request.path_params
    topic, name, offset = path["topic"], path["partition"], path["offset"]

    def read(client: Client) -> bytes:
        (partition,) = parse_cursor(topic, f"{name}:{offset}")
        with client.read(topic, partition=name, start=offset, limit=query.inner + 1) as reader:
            for one in reader:
                if (one.offset, one.inner) == (offset, query.inner):
                    return one.value
        raise ProblemError(404, f"there is no message at {offset} of {partition}")

    value = await site_of(request).read(read)
    file_name = f"{topic}-{name}-{offset}.bin"
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file_name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Accept-Ranges": "bytes",
    }
    status = 200
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match and any(match.groups()):
        start, end = _range_of(match, len(value))
        if start >= end:
            raise ProblemError(
                416,
                f"the message has {len(value)} bytes",
                headers={"Content-Range": f"bytes */{len(value)}"},
            )
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(value)}"
        value, status = value[start:end], 206
    return Response(value, status, headers, "application/octet-stream")


def _range_of(match: re.Match[str], size: int) -> tuple[int, int]:
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size
    return int(first), min(size, int(last) + 1) if last else size


async def groups(request: Request) -> Response:
    """List groups."""
    query = query_of(request, docs.ListQuery)
    site = site_of(request)
    found = await site.read(lambda client: client.groups())
    page, following, total = listed(query, found, lambda one: one.name)
    lags = site.sampler.lags()
    rows = []
    for one in page:
        lag = lags.get(one.name)
        known = (None, None) if lag is None else (lag.status, lag.total_bytes)
        row = dict(zip(("status", "lag_bytes"), known, strict=True))
        rows.append(document_of(docs.GroupRow, one, members=len(one.members), **row))
    return respond(list_document(docs.GroupList, rows, next=following, total=total))


async def group(request: Request) -> Response:
    """Tell of one group."""
    query_of(request, docs.NoQuery)
    name = request.path_params["group"]
    found = await site_of(request).read(lambda client: client.describe_group(name))
    offsets = [
        document_of(
            docs.Committed,
            one,
            topic=partition.topic,
            partition=partition.name,
            owner=found.owners.get(partition),
        )
        for partition, one in sorted(found.offsets.items())
    ]
    return respond(document_of(docs.GroupDocument, found, offsets=offsets))


async def lag(request: Request) -> Response:
    """Tell how far a group is behind, judged by what was seen in the last minutes."""
    query = query_of(request, docs.LagQuery)
    name = request.path_params["group"]
    site = site_of(request)
    found = site.sampler.judged(await site.read(lambda client: client.lag(name)))
    since_s = time.time() - query.window
    points = site.sampler.points(f"group/{name}/lag")
    samples = [point for point in points if point.time_s >= since_s]
    return respond(document_of(docs.LagDocument, found, samples=samples))


async def openapi(request: Request) -> Response:
    """Describe the API."""
    from pylogctl.web.openapi import description

    query_of(request, docs.NoQuery)
    return Response(
        json.dumps(description(request.app.state.routes)), media_type="application/json"
    )


ROUTES = (
    Route("GET", f"{BASE}/health", health, also=(503,), response=docs.HealthDocument),
    Route("GET", f"{BASE}/health/live", live, response=docs.Live),
    Route("GET", f"{BASE}/cluster", cluster, response=docs.ClusterDocument),
    Route("GET", f"{BASE}/brokers", brokers, response=docs.BrokerList),
    Route("GET", f"{BASE}/brokers/{{id:int}}", broker, response=docs.BrokerDocument),
    Route("GET", f"{BASE}/brokers/{{id:int}}/settings", broker_settings, response=docs.SettingList),
    Route("GET", f"{BASE}/topics", topics, query=docs.ListQuery, response=docs.TopicList),
    Route("GET", f"{BASE}/topics/{{topic}}", topic, response=struct_of(TopicInfo)),
    Route("GET", f"{BASE}/topics/{{topic}}/settings", topic_settings, response=docs.SettingList),
    Route("GET", f"{BASE}/topics/{{topic}}/partitions", partitions, response=docs.PartitionList),
    Route(
        "GET",
        f"{BASE}/topics/{{topic}}/messages",
        messages,
        shows_messages=True,
        query=docs.MessagesQuery,
        response=docs.MessageList,
    ),
    Route(
        "GET",
        f"{BASE}/topics/{{topic}}/partitions/{{partition}}/messages/{{offset:int}}/raw",
        raw,
        shows_messages=True,
        query=docs.RawQuery,
        media_type="application/octet-stream",
        also=(206,),
    ),
    Route("GET", f"{BASE}/groups", groups, query=docs.ListQuery, response=docs.GroupList),
    Route("GET", f"{BASE}/groups/{{group}}", group, response=docs.GroupDocument),
    Route(
        "GET",
        f"{BASE}/groups/{{group}}/lag",
        lag,
        query=docs.LagQuery,
        response=docs.LagDocument,
    ),
    Route("GET", f"{BASE}/openapi.json", openapi),
)
