"""The message browser: pages of messages in both directions, and single messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from broker.api.client import Client
from broker.errors import ArgumentError
from broker.topic import MessagePosition, TopicPartition
from broker.units import counted, format_size
from pylogctl.web.messages import (
    MAX_ROWS,
    MessagePage,
    Positions,
    Row,
    cursor_of,
    parse_cursor,
    read_page,
    start_positions,
)
from pylogctl.web.pages.payloads import WHOLE_BYTES, As, payload_of
from pylogctl.web.pages.rendering import link, page, path_of
from pylogctl.web.problems import ProblemError
from pylogctl.web.site import site_of

_LIMIT = 50
_MAX_PARTITIONS = 200  # more do not fit into an address
_WAYS: tuple[As, ...] = ("auto", "text", "json", "hex")
_STOPPED = {
    "limit": "",
    "end": "",
    "bytes": "Stopped here: enough was read for one page. There may be more behind it.",
    "time": "Stopped here: reading took long enough for one page. There may be more behind it.",
}


def _left_out(every: list[TopicPartition]) -> str:
    if len(every) <= _MAX_PARTITIONS:
        return ""
    return (
        f"These are of the first {_MAX_PARTITIONS} of {len(every)} partitions: choose one of them "
        "for its messages."
    )


async def show_messages(request: Request) -> Response:
    """Messages of a topic, before or from where the query says; the newest without a word."""
    site, topic = site_of(request), request.path_params["topic"]
    query = request.query_params
    chosen, place = query.get("partition", ""), query.get("from", "")
    contains, wanted = query.get("filter", ""), _way_of(request)
    limit = _limit_of(query.get("limit", str(_LIMIT)))
    before, after = query.get("before", ""), query.get("after", "")

    def read(client: Client) -> tuple[list[TopicPartition], MessagePage]:
        every = sorted(one.partition for one in client.describe(topic))
        positions = _positions(client, topic, every, chosen, place, before or after)
        is_backward = bool(before) or not (after or place.strip() not in ("", "end"))
        found = read_page(
            client, topic, positions, is_backward=is_backward, limit=limit, contains=contains
        )
        return every, found

    every, found = await site.scan(read)
    url = path_of("topics", topic, "messages")
    kept: dict[str, Any] = {"partition": chosen, "filter": contains, "limit": limit}
    kept["as"] = "" if wanted == "auto" else wanted
    return page(
        request,
        "messages.html",
        "Topics",
        topic=topic,
        topic_url=path_of("topics", topic),
        tab="messages",
        names=[one.name for one in every],
        partition=chosen,
        start=place,
        filter=contains,
        wanted=wanted,
        limit=limit,
        rows=[_row(topic, one, wanted) for one in _newest_first(found.rows)],
        summary=_summary(found),
        problems=[
            one for one in (_STOPPED[found.stopped], "" if chosen else _left_out(every)) if one
        ],
        is_by_time="@" in place,
        nothing=_nothing(found, contains),
        older_url=link(url, **kept, before=cursor_of(found.start)) if found.has_older else "",
        newer_url=link(url, **kept, after=cursor_of(found.end)) if found.has_newer else "",
        allow_changes=site.allow_changes,
        live_url=link(f"/api/v1{url}/live", partition=chosen, filter=contains, **{"as": wanted}),
        json_url=link(
            f"/api/v1{url}",
            filter=contains,
            limit=limit,
            max_bytes=65536,
            direction="newer",
            cursor=cursor_of(found.start),
        ),
    )


def _newest_first(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield the messages of each partition, the newest of it first."""
    for _, some in groupby(rows, key=lambda one: one.partition):
        yield from reversed(list(some))


def _positions(
    client: Client,
    topic: str,
    every: list[TopicPartition],
    chosen: str,
    place: str,
    cursor: str,
) -> Positions:
    if cursor:
        return parse_cursor(topic, cursor)
    partitions = [one for one in every if chosen in ("", one.name)]
    if not partitions:
        names = ", ".join(one.name for one in every[:10])
        raise ProblemError(
            404, f"'{topic}' has no partition '{chosen}'", hints=(f"it has {names}",)
        )
    if len(partitions) > _MAX_PARTITIONS:
        partitions = partitions[:_MAX_PARTITIONS]
    return start_positions(client, topic, partitions, place.strip() or "end")


def _limit_of(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= MAX_ROWS:
        raise ProblemError(422, f"not a number of messages from 1 to {MAX_ROWS}: '{text}'")
    return int(text)


def _way_of(request: Request) -> As:
    given = request.query_params.get("as", "auto")
    for one in _WAYS:
        if given == one:
            return one
    raise ProblemError(
        422, f"messages cannot be shown as '{given}'", hints=(f"valid: {', '.join(_WAYS)}",)
    )


def _summary(found: MessagePage) -> str:
    read = f", {format_size(found.scanned_bytes)} read for it" if found.scanned_bytes else ""
    return f"{counted(len(found.rows), 'message')}{read}."


def _nothing(found: MessagePage, contains: str) -> str:
    if contains and found.stopped == "end":
        return f"No message here contains “{contains}”."
    if contains:
        return f"None of the messages read contains “{contains}”: go on to older or newer ones."
    if found.has_older or found.has_newer:
        return "There are no messages in this direction."
    return "No messages. To send one: pylogctl produce"


def _row(topic: str, row: Row, wanted: As) -> dict[str, Any]:
    url = path_of("topics", topic, "partitions", row.partition.name, "messages", row.offset)
    inner = row.inner or ""
    return {
        "partition": row.partition.name,
        "offset": row.offset,
        "inner": row.inner,
        "problem": row.problem,
        "payload": payload_of(row.value, wanted=wanted),
        "url": link(url, inner=inner),
        "raw_url": link(f"/api/v1{url}/raw", inner=inner),
    }


async def show_message(request: Request) -> Response:
    """One message, up to what a page can show of it."""
    wanted = _way_of(request)
    row, next_offset = await _message_of(request)
    topic, partition = row.partition.topic, row.partition.name
    found = _row(topic, row, wanted)
    return page(
        request,
        "message.html",
        "Topics",
        topic=topic,
        topic_url=path_of("topics", topic),
        tab="messages",
        partition=partition,
        offset=row.offset,
        inner=row.inner,
        next_offset=next_offset,
        problem=row.problem,
        shown=payload_of(row.value, limit=WHOLE_BYTES, wanted=wanted),
        wanted=wanted,
        raw_url=found["raw_url"],
        around_url=link(
            path_of("topics", topic, "messages"), partition=partition, **{"from": row.offset}
        ),
    )


async def _message_of(request: Request) -> tuple[Row, int]:
    """Return the message that a path names, and the offset after its entry."""
    path, inner = request.path_params, request.query_params.get("inner", "0")
    topic, name, offset = path["topic"], path["partition"], path["offset"]
    try:
        (partition,) = parse_cursor(topic, f"{name}:{offset}.{inner}")
    except ArgumentError as error:
        raise ProblemError(404, f"there is no message at {offset} of {topic} {name}") from error
    at = MessagePosition(offset, int(inner))

    def read(client: Client) -> tuple[Row, int]:
        found = read_page(client, topic, {partition: at}, is_backward=False, limit=1)
        if not found.rows or found.rows[0][1:3] != at:
            raise ProblemError(404, f"there is no message at {offset} of {partition}")
        return found.rows[0], found.end[partition].offset

    return await site_of(request).read(read)
