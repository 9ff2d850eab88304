"""The JSON API below `/api/v1`: its handlers that read, in its table of routes."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, TypeVar
from urllib.parse import quote

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from broker.admin.cluster import FAIL, Health, HealthCheck
from broker.admin.settings import Setting
from broker.admin.topics import PartitionInfo, TopicInfo
from broker.api.client import Client
from broker.api.errors import TimedOut, Unreachable
from broker.topic import MessagePosition, TopicPartition
from pylogctl.web import documents as docs
from pylogctl.web import messages as paging
from pylogctl.web.documents import document_of, list_document, struct_of
from pylogctl.web.problems import FieldError, ProblemError
from pylogctl.web.site import Call, WebRoutes, respond

BASE = "/api/v1"
ROUTES = WebRoutes(BASE, {"query": docs.NoQuery})
_MAX_JSON_BYTES = 256 << 10
MAX_PARTITIONS = 200  # whose positions a cursor has
_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
_T = TypeVar("_T")
_secret = secrets.token_bytes(32)  # of this process; cursors of another one are refused


@ROUTES.at("/health", also=(503,), response=docs.HealthDocument)
async def health(call: Call) -> Response:
    """Check the cluster; 503 if a check fails, or no broker responds."""
    try:
        found = await call.read(lambda client: client.health())
    except (Unreachable, TimedOut) as error:
        found = Health((HealthCheck("brokers not there", FAIL, (str(error),)),))
    return respond(document_of(docs.HealthDocument, found, ok=found.ok), 200 if found.ok else 503)


@ROUTES.at("/health/live", response=docs.Live)
async def live(call: Call) -> Struct:
    """Respond, whatever the cluster does."""
    return docs.Live(ok=True)


@ROUTES.at("/cluster", response=docs.ClusterDocument)
async def cluster(call: Call) -> Struct:
    """Tell of the cluster as a whole."""
    cluster_id, brokers, topics = await asyncio.gather(
        call.read(lambda client: client.cluster_id),
        call.read(lambda client: client.brokers()),
        call.read(lambda client: client.topics()),
    )
    return docs.ClusterDocument(
        cluster_id=cluster_id,
        controller=next((one.id for one in brokers if one.is_controller), None),
        brokers=len(brokers),
        live_brokers=sum(one.is_live for one in brokers),
        topics=len(topics),
        partitions=sum(one.partitions for one in topics),
        size_bytes=size_of(topics),
        figures=_figures(call, "cluster/"),
        allow_changes=call.site.allow_changes,
    )


def size_of(found: Iterable[TopicInfo | PartitionInfo]) -> int | None:
    """Return the size of topics or partitions together; None unless that of each is known."""
    sizes = [one.size_bytes for one in found]
    return None if None in sizes else sum(one or 0 for one in sizes)


def _figures(call: Call, prefix: str) -> dict[str, float]:
    newest = call.sampler.newest(prefix)
    return {name.removeprefix(prefix): value for name, value in newest.items()}


@ROUTES.at("/brokers", response=docs.BrokerList)
async def brokers(call: Call) -> Struct:
    """List the brokers."""
    return list_document(docs.BrokerList, await call.read(lambda client: client.brokers()))


@ROUTES.at("/brokers/{id:int}", response=docs.BrokerDocument)
async def broker(call: Call, id: int) -> Struct:
    """Tell of one broker."""
    found = await call.read(lambda client: client.broker(id))
    return document_of(docs.BrokerDocument, found, figures=_figures(call, f"broker/{id}/"))


@ROUTES.at("/brokers/{id:int}/settings", response=docs.SettingList)
async def broker_settings(call: Call, id: int) -> Struct:
    """List the settings in effect on a broker."""
    return _settings(await call.read(lambda client: client.settings(broker=id)))


@ROUTES.at("/topics", query=docs.ListQuery, response=docs.TopicList)
async def topics(call: Call, query: docs.ListQuery) -> Struct:
    """List topics."""
    found = await call.read(lambda client: client.topics())
    page, following, total = listed(query, found, lambda one: one.name)
    return list_document(docs.TopicList, page, next=following, total=total)


@ROUTES.at("/topics/{topic}", response=struct_of(TopicInfo))
async def topic(call: Call, topic: str) -> Response:
    """Tell of one topic; its ETag is of its shape, not of its size."""
    found = await call.read(lambda client: topic_of(client, topic))
    return respond(document_of(struct_of(TopicInfo), found), headers={"ETag": etag_of(found)})


@ROUTES.at("/topics/{topic}/settings", response=docs.SettingList)
async def topic_settings(call: Call, topic: str) -> Struct:
    """List the settings in effect for a topic."""
    return _settings(await call.read(lambda client: client.settings(topic=topic)))


def _settings(found: Mapping[str, Setting]) -> Struct:
    rows = [
        document_of(docs.SettingDocument, one, name=name) for name, one in sorted(found.items())
    ]
    return list_document(docs.SettingList, rows)


def topic_of(client: Client, name: str) -> TopicInfo:
    """Return a topic, without a look at all the others."""
    found = client.describe(name)
    copies = [len(one.replicas) for one in found if one.leader_epoch is not None]
    return TopicInfo(
        name,
        partitions=len(found),
        replicas=max(copies, default=None),
        brokers=tuple(sorted({id for one in found for id in one.replicas})),
        size_bytes=size_of(found),
        offline=sum(one.leader is None for one in found),
        under_replicated=sum(len(one.in_sync) < len(one.replicas) for one in found),
        format=found[0].format,
    )


def etag_of(found: TopicInfo) -> str:
    """Return what changes with the shape of a topic."""
    shape = repr((found.name, found.partitions, found.replicas, found.brokers))
    return f'"{hashlib.sha256(shape.encode()).hexdigest()[:16]}"'


@ROUTES.at("/topics/{topic}/partitions", response=docs.PartitionList)
async def partitions(call: Call, topic: str) -> Struct:
    """List the partitions of a topic."""
    return list_document(docs.PartitionList, await call.read(lambda client: client.describe(topic)))


@ROUTES.at(
    "/topics/{topic}/messages",
    shows_messages=True,
    query=docs.MessagesQuery,
    response=docs.MessageList,
)
async def messages(call: Call, query: docs.MessagesQuery, topic: str) -> Struct:
    """Return a page of messages, in either direction from a place or a cursor."""
    budget = paging.PageBudget()

    def read(client: Client) -> paging.MessagePage:
        found = paging.read_page(
            client,
            topic,
            positions_of(client, topic, query),
            is_backward=query.direction == "older",
            limit=query.limit,
            contains=query.filter,
            budget=budget,
        )
        if query.shown_as != "decoded":
            return found
        decoder = paging.ValueDecoder(client)
        return found._replace(rows=[decoder.shown(one) for one in found.rows])

    reading = asyncio.ensure_future(call.scan(read))
    watching = asyncio.ensure_future(_disconnected(call))
    await asyncio.wait({reading, watching}, return_when=asyncio.FIRST_COMPLETED)
    watching.cancel()
    if not reading.done():
        budget.max_bytes = 0  # nobody waits for it
    found = await reading
    return docs.MessageList(
        [message_document(one, query.shown_as, query.max_bytes) for one in found.rows],
        next=paging.cursor_of(found.end) if found.has_newer else None,
        previous=paging.cursor_of(found.start) if found.has_older else None,
        stopped=found.stopped,
        scanned=found.scanned_bytes,
    )


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def positions_of(
    client: Client, topic: str, query: docs.MessagesQuery, *, allow_missing: bool = False
) -> dict[TopicPartition, MessagePosition]:
    """Return where reading begins in each partition that is asked for."""
    if query.cursor:
        return paging.parse_cursor(topic, query.cursor)
    there = client.offsets(topic, "start", allow_missing=allow_missing)
    wanted = paging.chosen_of(topic, there, query.partition)
    if len(wanted) > MAX_PARTITIONS:
        raise ProblemError(
            422,
            f"'{topic}' has {len(wanted)} partitions; at most {MAX_PARTITIONS} are read at a time",
            hints=("partition=0-0&partition=0-1 chooses some",),
        )
    return paging.start_positions(client, topic, wanted, query.place)


_As = Literal["auto", "text", "json", "hex", "base64", "decoded"]


def message_document(
    row: paging.ShownMessage, shown_as: _As, max_bytes: int
) -> docs.MessageDocument:
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
        note=row.note,
        sent=row.sent,
    )


def _shown(
    data: bytes, is_cut: bool, shown_as: _As
) -> tuple[Literal["text", "json", "hex", "base64"], str]:
    if shown_as == "hex":
        return "hex", data.hex()
    text = None if shown_as == "base64" else paging.text_of(data, is_cut=is_cut)
    if text is None:
        return ("hex", data.hex()) if shown_as in ("auto", "decoded") else ("base64", _base64(data))
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


@ROUTES.at(
    "/topics/{topic}/partitions/{partition}/messages/{offset:int}/raw",
    shows_messages=True,
    query=docs.RawQuery,
    media_type="application/octet-stream",
    also=(206,),
)
async def raw(
    call: Call, query: docs.RawQuery, topic: str, partition: str, offset: int
) -> Response:
    """Return the bytes of one message, as a file that no browser shows."""

    def read(client: Client) -> bytes:
        (found,) = paging.parse_cursor(topic, f"{partition}:{offset}")
        with client.read(topic, partition=partition, start=offset, limit=query.inner + 1) as reader:
            for one in reader:
                if (one.offset, one.inner) == (offset, query.inner):
                    return one.value
        raise ProblemError(404, f"there is no message at {offset} of {found}")

    value = await call.read(read)
    file_name = f"{topic}-{partition}-{offset}.bin"
    headers = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file_name, safe='')}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "Accept-Ranges": "bytes",
    }
    status = 200
    match = _RANGE.fullmatch(call.headers.get("range", ""))
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


@ROUTES.at("/groups", query=docs.ListQuery, response=docs.GroupList)
async def groups(call: Call, query: docs.ListQuery) -> Struct:
    """List groups."""
    found = await call.read(lambda client: client.groups())
    page, following, total = listed(query, found, lambda one: one.name)
    lags = call.sampler.lags()
    rows = []
    for one in page:
        lag = lags.get(one.name)
        known = (None, None) if lag is None else (lag.status, lag.total_bytes)
        row = dict(zip(("status", "lag_bytes"), known, strict=True))
        rows.append(document_of(docs.GroupRow, one, members=len(one.members), **row))
    return list_document(docs.GroupList, rows, next=following, total=total)


@ROUTES.at("/groups/{group}", response=docs.GroupDocument)
async def group(call: Call, group: str) -> Struct:
    """Tell of one group."""
    found = await call.read(lambda client: client.describe_group(group))
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
    return document_of(docs.GroupDocument, found, offsets=offsets)


@ROUTES.at("/groups/{group}/lag", query=docs.LagQuery, response=docs.LagDocument)
async def lag(call: Call, query: docs.LagQuery, group: str) -> Struct:
    """Tell how far a group is behind, judged by what was seen in the last minutes."""
    found = call.sampler.judged(await call.read(lambda client: client.lag(group)))
    since_s = time.time() - query.window
    points = call.sampler.points(f"group/{group}/lag")
    samples = [point for point in points if point.time_s >= since_s]
    return document_of(docs.LagDocument, found, samples=samples)


@ROUTES.at("/openapi.json")
async def openapi(call: Call) -> Response:
    """Describe the API."""
    from pylogctl.web.openapi import description

    return Response(json.dumps(description(call.app.state.routes)), media_type="application/json")


def listed(
    query: docs.ListQuery, items: Iterable[_T], name_of: Callable[[_T], str]
) -> tuple[list[_T], str | None, int]:
    """Return the rows that a query asks for, the cursor of what follows, and how many match."""
    is_down = query.sort.startswith("-")
    found = [one for one in items if query.filter.casefold() in name_of(one).casefold()]
    found.sort(key=name_of, reverse=is_down)
    rest = found
    if query.cursor:
        last = _read_cursor(query.cursor)
        rest = [one for one in found if (name_of(one) < last if is_down else name_of(one) > last)]
    page = rest[: query.limit]
    following = _write_cursor(name_of(page[-1])) if len(rest) > len(page) else None
    return page, following, len(found)


def _write_cursor(key: str) -> str:
    data = key.encode("utf-8", "surrogatepass")
    return base64.urlsafe_b64encode(_sign(data) + data).decode()


def _read_cursor(cursor: str) -> str:
    try:
        signed = base64.b64decode(cursor.encode(), b"-_", validate=True)
    except ValueError:
        signed = b""
    mark, data = signed[:16], signed[16:]
    if not hmac.compare_digest(mark, _sign(data)):
        raise ProblemError(
            422,
            "the cursor is not of this server since it started",
            hints=("begin again without it",),
            errors=(FieldError("/cursor", "not valid any more"),),
        )
    return data.decode("utf-8", "surrogatepass")


def _sign(data: bytes) -> bytes:
    return hmac.digest(_secret, data, hashlib.sha256)[:16]
